"""Collectives of a training step: tensor, context, expert, pipeline and data parallel, hidden and exposed."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.fabric.collectives import (
    Fabric,
    all_gather_ns,
    all_reduce_ns,
    inner_count,
    moe_exchange_ns,
    point_to_point_ns,
    reduce_scatter_ns,
)
from codesign.model.workload.layout import Layout, crossing_frac, stage_layers_count
from codesign.model.workload.training_inputs import Software, TrainingJob
from codesign.model.workload.training_memory import dense_rank_count, expert_rank_count
from codesign.model.workload.transformer import Transformer
from codesign.units import Numeric

WIDE_BYTES = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class LayerExchange:
    """Collectives inside the layers, forward, one micro-batch, average layer; backward moves as much again."""

    tensor_ns: Numeric
    context_ns: Numeric
    expert_ns: Numeric
    transfer_inside_ns: Numeric  # one boundary between pipeline ranks of one domain
    transfer_outside_ns: Numeric  # the same between domains

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class DataExchange:
    """Collectives over the data ranks for all weights of one rank, before anything is hidden."""

    gather_ns: Numeric  # weights, once
    reduce_ns: Numeric  # gradients, once

    def __post_init__(self) -> None:
        freeze(self)


def layer_exchange(
    transformer: Transformer, job: TrainingJob, layout: Layout, fabric: Fabric, software: Software
) -> LayerExchange:
    """Collectives inside the layers of one micro-batch.

    Args:
        transformer: Shape of the model.
        job: Sequence, imbalance.
        layout: Degrees and micro-batch.
        fabric: The two tiers.
        software: Sequence parallelism.

    Returns:
        Times of an average layer, forward.

    Source:
        korthikanti-2022: gather before and scatter after every tensor-parallel part.
    """
    t, tp, domain = transformer, layout.tp_count, fabric.scale_up.domain_count
    tokens = layout.micro_batch_count * job.sequence_count / layout.cp_count
    hidden_bytes = WIDE_BYTES * tokens * t.hidden_count
    inner = inner_count(tp, 1.0, domain)
    gather = all_gather_ns(hidden_bytes, tp, inner, fabric)
    split = gather + reduce_scatter_ns(hidden_bytes, tp, inner, fabric)
    whole = all_reduce_ns(hidden_bytes, tp, inner, fabric)
    part = whole + software.sequence_parallel_flag * (split - whole)
    shared = np.minimum(t.shared_experts_count, 1.0)
    cut_experts = layout.expert_tp_flag * t.top_k_count + shared
    parts = t.attention_layers_count + t.linear_layers_count + t.dense_layers_count + cut_experts * t.moe_layers_count
    width = t.head_dim_count + t.mla_flag * (t.qk_nope_count + t.qk_rope_count - t.head_dim_count)
    kv_bytes = 2.0 * WIDE_BYTES * layout.micro_batch_count * job.sequence_count * width
    kv_bytes = kv_bytes * np.maximum(t.kv_heads_count / tp, 1.0)
    context = all_gather_ns(kv_bytes, layout.cp_count, inner_count(layout.cp_count, tp, domain), fabric)
    stride = 1.0 + layout.expert_tp_flag * (tp - 1.0)
    exchange = 2.0 * moe_exchange_ns(
        tokens / tp,
        WIDE_BYTES * t.moe_hidden_count,
        np.maximum(t.top_k_count, 1.0),
        layout.ep_count,
        inner_count(layout.ep_count, stride, domain),
        fabric,
    )
    # each tensor rank sends its share; without sequence parallelism the receivers gather the whole again
    boundary_bytes = hidden_bytes / tp
    again = (1.0 - software.sequence_parallel_flag) * gather
    return LayerExchange(
        tensor_ns=part * parts / t.layers_count,
        context_ns=context * t.attention_layers_count / t.layers_count,
        expert_ns=job.imbalance_ratio * exchange * t.moe_layers_count / t.layers_count,
        transfer_inside_ns=point_to_point_ns(boundary_bytes, 0.0, fabric) + again,
        transfer_outside_ns=point_to_point_ns(boundary_bytes, 1.0, fabric) + again,
    )


def transfer_crossing_frac(layout: Layout, domain_count: Numeric) -> Numeric:
    """Share of pipeline boundaries that leave the scale-up domain.

    Args:
        layout: Pipeline ranks stand tensor x context x data ranks apart.
        domain_count: Accelerators in one domain. [count], >= 1

    Returns:
        Share of boundaries. [1]

    Source:
        definition: see `crossing_frac`.

    >>> float(transfer_crossing_frac(Layout(8, 4, 1, 1, 1, 2, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0), 8.0))
    1.0
    """
    stride = layout.tp_count * layout.cp_count * layout.dp_count
    return crossing_frac(layout.pp_count, stride, domain_count)


def data_exchange(transformer: Transformer, job: TrainingJob, layout: Layout, fabric: Fabric) -> DataExchange:
    """Gradients and weights over the data ranks, layer by layer, dense weights and experts in their own groups.

    Adapters reduce only what learns; a frozen model that is not sharded moves nothing.

    Args:
        transformer: Shape of the model.
        job: Bytes on the wire, what learns.
        layout: Degrees and sharding.
        fabric: The two tiers.

    Returns:
        Time of one gather of all weights and of one reduction of all gradients of a rank.

    Source:
        rajbhandari-2020: sharded states are gathered and reduce-scattered.
    """
    t, domain = transformer, fabric.scale_up.domain_count
    layers = stage_layers_count(t.layers_count, layout)
    group = layout.dp_count * layout.cp_count
    sharded = np.minimum(layout.shard_count, group)
    fully = np.where(layout.shard_count > 1.0, 1.0, 0.0)
    ranks = group + fully * (sharded - group)
    dense = dense_rank_count(t, job.mtp_layers_count, layout) / layers
    expert = expert_rank_count(t, job.mtp_layers_count, layout) / layers
    expert_group = np.maximum(group * layout.tp_count / (layout.ep_count * _expert_cut(layout)), 1.0)
    dense_inner = inner_count(ranks, layout.tp_count, domain)
    expert_inner = inner_count(expert_group, layout.ep_count * _expert_cut(layout), domain)
    gathered = fully + (1.0 - fully) * job.trainable_frac
    gather = all_gather_ns(dense * gathered * job.weight_wire_bytes, ranks, dense_inner, fabric) + all_gather_ns(
        expert * gathered * job.weight_wire_bytes, expert_group, expert_inner, fabric
    )
    learned = job.trainable_frac * job.gradient_wire_bytes
    replicas = group / ranks
    outer_inner = inner_count(replicas, layout.tp_count * ranks, domain)
    reduce = (
        reduce_scatter_ns(dense * learned, ranks, dense_inner, fabric)
        + reduce_scatter_ns(expert * learned, expert_group, expert_inner, fabric)
        + all_reduce_ns(dense * learned / ranks, replicas, outer_inner, fabric)
    )
    return DataExchange(gather_ns=layers * gather, reduce_ns=layers * reduce)


def _expert_cut(layout: Layout) -> Numeric:
    return 1.0 + layout.expert_tp_flag * (layout.tp_count - 1.0)
