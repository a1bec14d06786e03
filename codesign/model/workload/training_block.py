"""One micro-batch of an average layer on one rank: products, attention, traffic, collectives, host, recompute."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.fabric.collectives import Fabric
from codesign.model.fabric.interference import exposed_ns
from codesign.model.workload.layout import Layout
from codesign.model.workload.machine import Machine
from codesign.model.workload.training_exchange import LayerExchange, layer_exchange
from codesign.model.workload.training_inputs import Software, TrainingConstants, TrainingEngines, TrainingJob
from codesign.model.workload.training_products import Products, products
from codesign.model.workload.training_traffic import (
    EXPERT_KERNELS_COUNT,
    FEED_KERNELS_COUNT,
    MIXER_KERNELS_COUNT,
    RECURRENT_KERNELS_COUNT,
    Traffic,
    traffic,
)
from codesign.model.workload.transformer import Transformer
from codesign.units import Numeric

BACKWARD_RATIO = 2.0  # kernels and traffic backward over forward


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """An average layer and the head, forward and backward of one micro-batch; the parts sum to ``layer_ns``."""

    gemm_ns: Numeric
    attention_ns: Numeric
    elementwise_ns: Numeric
    recompute_ns: Numeric
    tensor_ns: Numeric
    context_ns: Numeric
    expert_ns: Numeric
    host_ns: Numeric
    layer_ns: Numeric
    forward_ns: Numeric  # of layer_ns, the forward pass
    head_ns: Numeric
    transfer_inside_ns: Numeric
    transfer_outside_ns: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class _Pass:
    gemm: Numeric
    attention: Numeric
    elementwise: Numeric
    tensor: Numeric
    context: Numeric
    expert: Numeric

    def total(self) -> Numeric:
        return self.gemm + self.attention + self.elementwise + self.tensor + self.context + self.expert


def block(
    transformer: Transformer,
    job: TrainingJob,
    layout: Layout,
    engines: TrainingEngines,
    fabric: Fabric,
    machine: Machine,
    software: Software,
    constants: TrainingConstants,
) -> Block:
    """Time of one micro-batch in an average layer, and in the head.

    Depends on tensor, context and expert degrees, micro-batch and recompute only, so that layouts which differ in
    pipeline and data degrees share it.

    Args:
        transformer: Shape of the model.
        job: Sequence, formats, what learns.
        layout: Degrees, micro-batch, recompute.
        engines: Matrix units and attention.
        fabric: The two tiers.
        machine: Memory rate, launch gap, clock.
        software: What the framework can do.
        constants: Fitted factors.

    Returns:
        Parts of the layer, its forward share, the head, one pipeline transfer.

    Source:
        korthikanti-2022: structure of a layer with tensor and sequence parallelism and recompute.
    """
    work = products(transformer, job, layout, engines, software, constants)
    moved = traffic(transformer, job, layout, engines, machine, software, constants)
    links = layer_exchange(transformer, job, layout, fabric, software)
    hides = software.expert_overlap_flag * (1.0 - np.minimum(transformer.linear_layers_count, 1.0))
    forward = _forward(work, moved, links, machine, software, hides, constants)
    backward = _backward(work, moved, links, machine, software, hides, constants)
    recompute = _recompute(layout, forward, software.compiled_flag * work.last_forward_ns / machine.clock_frac)
    launches = _launches_ns(transformer, layout, machine, software, constants)
    forward_host = _join(forward.total(), launches, constants) - forward.total()
    busy = backward.total() + recompute
    backward_host = _join(busy, launches * (BACKWARD_RATIO + layout.full_recompute_frac), constants) - busy
    return _assemble(forward, backward, recompute, forward_host, backward_host, work, moved, links, machine)


def _forward(
    work: Products,
    moved: Traffic,
    links: LayerExchange,
    machine: Machine,
    software: Software,
    hides: Numeric,
    constants: TrainingConstants,
) -> _Pass:
    gemm = work.forward_ns / machine.clock_frac
    attention = moved.attention_forward_ns / machine.clock_frac
    cost = constants.overlap_cost_frac
    return _Pass(
        gemm=gemm,
        attention=attention,
        elementwise=moved.elementwise_forward_ns + moved.permute_forward_ns,
        tensor=exposed_ns(links.tensor_ns, gemm, software.tp_overlap_flag, cost),
        context=exposed_ns(links.context_ns, attention, 1.0, cost),
        expert=exposed_ns(links.expert_ns, gemm, hides, cost),
    )


def _backward(
    work: Products,
    moved: Traffic,
    links: LayerExchange,
    machine: Machine,
    software: Software,
    hides: Numeric,
    constants: TrainingConstants,
) -> _Pass:
    gemm = work.backward_ns / machine.clock_frac
    attention = moved.attention_backward_ns / machine.clock_frac
    cost = constants.overlap_cost_frac
    return _Pass(
        gemm=gemm,
        attention=attention,
        elementwise=BACKWARD_RATIO * moved.elementwise_forward_ns + moved.permute_forward_ns,
        tensor=exposed_ns(links.tensor_ns, gemm, software.tp_overlap_flag, cost),
        context=exposed_ns(2.0 * links.context_ns, attention, 1.0, cost),
        expert=exposed_ns(links.expert_ns, gemm, hides, cost),
    )


def _recompute(layout: Layout, forward: _Pass, dropped: Numeric) -> Numeric:
    """What runs again before its backward: the whole forward of some layers, or only parts of it.

    A whole-program compiler drops the last product of a layer, whose result the backward does not need.
    """
    parts = layout.attention_recompute_flag * forward.attention
    parts = parts + layout.elementwise_recompute_flag * forward.elementwise
    return layout.full_recompute_frac * (forward.total() - dropped) + (1.0 - layout.full_recompute_frac) * parts


def _launches_ns(
    t: Transformer, layout: Layout, machine: Machine, software: Software, constants: TrainingConstants
) -> Numeric:
    """Host time to launch the forward of an average layer: kernels that no captured graph covers."""
    local = np.minimum(t.experts_count, np.maximum(t.experts_count / layout.ep_count, 1.0))
    plain = (
        MIXER_KERNELS_COUNT * t.attention_layers_count
        + FEED_KERNELS_COUNT * t.dense_layers_count
        + RECURRENT_KERNELS_COUNT * t.linear_layers_count
    )
    routing = EXPERT_KERNELS_COUNT * t.moe_layers_count
    looped = software.expert_loop_flag * constants.expert_launches_count * local * t.moe_layers_count
    captured = software.expert_graph_frac * (1.0 - np.minimum(t.linear_layers_count, 1.0))
    kernels = plain * (1.0 - software.graph_frac) + routing * (1.0 - software.router_graph_frac)
    kernels = kernels + looped * (1.0 - captured)
    return machine.launch_ns * software.launch_ratio * kernels / t.layers_count


def _join(busy_ns: Numeric, host_ns: Numeric, constants: TrainingConstants) -> Numeric:
    """Accelerator and host run at once; the slower one leads, and near a tie each delays the other."""
    sharp = constants.host_sharpness_count
    lead = np.maximum(busy_ns, host_ns)
    return lead * (1.0 + (np.minimum(busy_ns, host_ns) / lead) ** sharp) ** (1.0 / sharp)


def _assemble(
    forward: _Pass,
    backward: _Pass,
    recompute: Numeric,
    forward_host: Numeric,
    backward_host: Numeric,
    work: Products,
    moved: Traffic,
    links: LayerExchange,
    machine: Machine,
) -> Block:
    gemm = forward.gemm + backward.gemm
    attention = forward.attention + backward.attention
    elementwise = forward.elementwise + backward.elementwise
    tensor = forward.tensor + backward.tensor
    context = forward.context + backward.context
    expert = forward.expert + backward.expert
    host = forward_host + backward_host
    return Block(
        gemm_ns=gemm,
        attention_ns=attention,
        elementwise_ns=elementwise,
        recompute_ns=recompute,
        tensor_ns=tensor,
        context_ns=context,
        expert_ns=expert,
        host_ns=host,
        layer_ns=gemm + attention + elementwise + recompute + tensor + context + expert + host,
        forward_ns=forward.total() + forward_host,
        head_ns=(work.head_forward_ns + work.head_backward_ns) / machine.clock_frac + moved.head_ns,
        transfer_inside_ns=links.transfer_inside_ns,
        transfer_outside_ns=links.transfer_outside_ns,
    )
