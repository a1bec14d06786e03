"""Memory of one rank in training, by part, on the fullest pipeline rank."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.workload.layout import (
    Layout,
    last_stage_layers_count,
    micro_batches_count,
    stage_layers_count,
)
from codesign.model.workload.machine import Machine
from codesign.model.workload.training_inputs import Software, TrainingJob
from codesign.model.workload.transformer import (
    LLAMA_3_8B,  # noqa: F401  examples
    Transformer,
    attention_parameters_count,
    dense_ffn_parameters_count,
    expert_parameters_count,
    shared_parameters_count,
)
from codesign.units import Numeric

WIDE_BYTES = 2.0
LOGIT_BYTES = 6.0  # sixteen-bit logits and their thirty-two-bit copy, one micro-batch


@dataclass(frozen=True, slots=True, eq=False)
class TrainingMemory:
    """Bytes of one rank: what stays in the first tier, part by part, and what went to the second."""

    weights_bytes: Numeric
    gradients_bytes: Numeric
    optimizer_bytes: Numeric
    activations_bytes: Numeric
    logits_bytes: Numeric
    reserved_bytes: Numeric
    total_bytes: Numeric
    second_tier_bytes: Numeric
    owned_count: Numeric  # weights this rank updates
    moved_weights_bytes: Numeric  # weights that come from the second tier for one pass
    moved_optimizer_bytes: Numeric  # optimizer state and gradients that live there
    moved_activations_bytes: Numeric  # activations of one micro-batch that go out and come back

    def __post_init__(self) -> None:
        freeze(self)


def dense_rank_count(transformer: Transformer, mtp_layers_count: Numeric, layout: Layout) -> Numeric:
    """Weights of one rank that are not routed experts: layers of its stage, and one embedding where it sits.

    Args:
        transformer: Shape of the model.
        mtp_layers_count: Multi-token prediction layers. [count], >= 0
        layout: Tensor and pipeline degrees.

    Returns:
        Weights of the fullest rank. [count]

    Source:
        definition: weights over tensor ranks, layers over pipeline ranks.

    >>> alone = Layout(1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0)
    >>> float(dense_rank_count(LLAMA_3_8B, 0.0, alone))  # 8.03 billion without the norms
    8029995008.0
    """
    t = transformer
    layer = (
        t.attention_layers_count * attention_parameters_count(t)
        + t.linear_layers_count * (t.linear_projection_count + t.linear_other_count)
        + t.dense_layers_count * dense_ffn_parameters_count(t)
        + t.moe_layers_count * shared_parameters_count(t)
    ) / t.layers_count
    first = stage_layers_count(t.layers_count, layout)
    last = last_stage_layers_count(t.layers_count, layout) + mtp_layers_count
    embedding = t.vocab_count * t.hidden_count
    alone = np.where(layout.pp_count <= 1.0, 1.0 - t.tied_flag, 0.0)
    return np.maximum(first * layer + embedding, last * layer + embedding * (1.0 + alone)) / layout.tp_count


def expert_rank_count(transformer: Transformer, mtp_layers_count: Numeric, layout: Layout) -> Numeric:
    """Weights of routed experts on one rank.

    Args:
        transformer: Shape of the model.
        mtp_layers_count: Multi-token prediction layers. [count], >= 0
        layout: Expert, tensor and pipeline degrees.

    Returns:
        Weights of the fullest rank. [count]

    Source:
        definition: experts over expert ranks, layers over pipeline ranks.

    >>> alone = Layout(1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0)
    >>> float(expert_rank_count(LLAMA_3_8B, 0.0, alone))
    0.0
    """
    t = transformer
    first = stage_layers_count(t.layers_count, layout)
    last = last_stage_layers_count(t.layers_count, layout) + mtp_layers_count
    layers = np.maximum(first, last) * t.moe_layers_count / t.layers_count
    cut = layout.ep_count * (1.0 + layout.expert_tp_flag * (layout.tp_count - 1.0))
    return layers * t.experts_count * expert_parameters_count(t) / cut


def layer_activation_bytes(transformer: Transformer, job: TrainingJob, layout: Layout, software: Software) -> Numeric:
    """Activations that one average layer keeps for one micro-batch until its backward.

    Kept are: inputs of norms and products, queries, keys and values, the attention output, inner activations before
    and after the non-linearity, and, where attention is not fused, the score matrix three times (softmax, mask,
    dropped).

    Args:
        transformer: Shape of the model.
        job: Sequence.
        layout: Degrees, micro-batch, recompute.
        software: Fusion, dropout, sequence parallelism.

    Returns:
        Bytes of one layer. [byte]

    Source:
        korthikanti-2022: sbh (10 + 24/t + 5 a s / (h t)), sequence parallelism divides the 10 by t as well.

    >>> job = TrainingJob(1000.0, 1.0, 2.0, 2.0, 4.0, 12.0, 2.0, 2.0, 1.0, 1.0, 0.0)
    >>> layout = Layout(1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0)
    >>> float(layer_activation_bytes(LLAMA_3_8B, job, layout, Software(*[0.0] * 17)))  # full recompute: inputs alone
    8192000.0
    """
    t, tp = transformer, layout.tp_count
    tokens = layout.micro_batch_count * job.sequence_count / layout.cp_count
    residual = t.hidden_count / (1.0 + software.sequence_parallel_flag * (tp - 1.0))
    heads_dim = t.heads_count * t.head_dim_count + t.mla_flag * t.heads_count * t.v_head_dim_count
    kv_dim = 2.0 * t.kv_heads_count * t.head_dim_count
    key_dim = t.heads_count * (t.qk_nope_count + t.qk_rope_count)
    kv_dim = kv_dim + t.mla_flag * (2.0 * key_dim + t.heads_count * t.v_head_dim_count - kv_dim)
    query_dim = (1.0 - t.mla_flag) * t.heads_count * t.head_dim_count
    scores = 5.0 * t.heads_count * job.sequence_count / tp * software.unfused_attention_flag
    scores = scores * (1.0 - layout.attention_recompute_flag)
    norms = (1.0 - layout.elementwise_recompute_flag) * WIDE_BYTES * residual
    outer = norms + (WIDE_BYTES + software.dropout_flag) * residual
    mixer = outer + WIDE_BYTES * (query_dim + kv_dim + heads_dim) / tp + scores
    kept_inner = 1.0 + t.gated_flag + (1.0 - layout.elementwise_recompute_flag)
    dense = outer + WIDE_BYTES * kept_inner * t.ffn_count / tp
    shared = t.shared_experts_count * t.shared_ffn_count
    routed = t.top_k_count * (2.0 * t.moe_hidden_count + kept_inner * t.moe_ffn_count) * job.imbalance_ratio
    experts = outer + WIDE_BYTES * (kept_inner * shared + routed) / tp
    recurrent = outer + WIDE_BYTES * t.linear_projection_count / t.hidden_count / tp
    layers = (
        t.attention_layers_count * mixer
        + t.dense_layers_count * dense
        + t.moe_layers_count * experts
        + t.linear_layers_count * recurrent
    )
    kept = layers / t.layers_count
    full = layout.full_recompute_frac
    return tokens * (kept + full * (WIDE_BYTES * residual - kept))


def in_flight_layers_count(layers_count: Numeric, micro_batches_count: Numeric, layout: Layout) -> Numeric:
    """Layers times micro-batches whose activations the first pipeline rank holds at once.

    Args:
        layers_count: Layers of the stack. [count], > 0
        micro_batches_count: Micro-batches of one rank and step. [count], >= 1
        layout: Pipeline and virtual stages.

    Returns:
        Layers kept. [count]

    Source:
        korthikanti-2022: L (1 + (p - 1) / (p v)) with interleaving, never more than all micro-batches.

    >>> layout = Layout(8, 8, 3, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0)
    >>> float(in_flight_layers_count(96.0, 64.0, layout))
    124.0
    """
    stage = stage_layers_count(layers_count, layout)
    ahead = np.where(layout.vp_count > 1.0, (layout.pp_count - 1.0) / layout.vp_count, 0.0)
    return stage * np.minimum(layout.pp_count + ahead, micro_batches_count)


def training_memory(
    transformer: Transformer, job: TrainingJob, layout: Layout, machine: Machine, software: Software
) -> TrainingMemory:
    """Bytes of one rank by part.

    Args:
        transformer: Shape of the model.
        job: Formats, batch, what learns.
        layout: Degrees, sharding, recompute, offload.
        machine: Reserved bytes.
        software: Fusion, dropout, sequence parallelism.

    Returns:
        Parts, their sum in the first tier, and the second tier.

    Source:
        rajbhandari-2020: weights, gradients and optimizer state, each split or not over the data ranks.
    """
    t = transformer
    dense = dense_rank_count(t, job.mtp_layers_count, layout)
    expert = expert_rank_count(t, job.mtp_layers_count, layout)
    group = layout.dp_count * layout.cp_count
    expert_group = np.maximum(dense_group_ratio(layout), 1.0)
    shard = np.maximum(np.minimum(layout.shard_count, group), 1.0)
    owners = 1.0 + layout.optimizer_sharded_flag * (group - 1.0)
    expert_owners = 1.0 + layout.optimizer_sharded_flag * (expert_group - 1.0)
    held = dense / shard + expert / np.where(shard > 1.0, np.minimum(shard, expert_group), 1.0)
    owned = dense / np.maximum(owners, shard) + expert / np.maximum(expert_owners, np.minimum(shard, expert_group))
    graded = held + layout.gradients_sharded_flag * (owned - held)
    weights = job.weight_bytes * held
    gradients = job.gradient_bytes * job.trainable_frac * graded
    optimizer = job.optimizer_bytes * job.trainable_frac * owned
    layer = layer_activation_bytes(t, job, layout, software)
    passes = micro_batches_count(job.global_batch_count, layout)
    activations = layer * in_flight_layers_count(t.layers_count, passes, layout)
    tokens = layout.micro_batch_count * job.sequence_count / layout.cp_count
    logits = LOGIT_BYTES * tokens * t.vocab_count / layout.tp_count * np.where(layout.pp_count > 1.0, 0.0, 1.0)
    state = weights + gradients + optimizer
    resident = 1.0 - layout.state_offload_flag * (1.0 - _working_frac(t, layout))
    kept = 1.0 - layout.activation_offload_frac
    return TrainingMemory(
        weights_bytes=weights * resident,
        gradients_bytes=gradients * resident,
        optimizer_bytes=optimizer * resident,
        activations_bytes=activations * kept,
        logits_bytes=logits,
        reserved_bytes=machine.reserved_bytes,
        total_bytes=state * resident + activations * kept + logits + machine.reserved_bytes,
        second_tier_bytes=state * (1.0 - resident) + activations * layout.activation_offload_frac,
        owned_count=job.trainable_frac * owned,
        moved_weights_bytes=layout.state_offload_flag * weights,
        moved_optimizer_bytes=layout.state_offload_flag * (gradients + optimizer),
        moved_activations_bytes=layout.activation_offload_frac * layer * stage_layers_count(t.layers_count, layout),
    )


def dense_group_ratio(layout: Layout) -> Numeric:
    """Ranks that hold the same routed experts, over which their gradients are reduced.

    Args:
        layout: Degrees.

    Returns:
        Data, context and (where experts are whole) tensor ranks over expert ranks. [1]

    Source:
        definition: expert parallelism reuses the data ranks.

    >>> float(dense_group_ratio(Layout(1, 1, 1, 1, 8, 64, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0)))
    8.0
    """
    cut = 1.0 + layout.expert_tp_flag * (layout.tp_count - 1.0)
    return layout.dp_count * layout.cp_count * layout.tp_count / (layout.ep_count * cut)


def _working_frac(t: Transformer, layout: Layout) -> Numeric:
    """Share of a stage that stays in the first tier under offload: the layer at work, the next and the last."""
    return np.minimum(3.0 / stage_layers_count(t.layers_count, layout), 1.0)
