"""Micro-batches through the pipeline, collectives over the data ranks, the second tier and the optimizer."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.fabric.interference import exposed_ns
from codesign.model.workload.layout import (
    Layout,
    last_stage_layers_count,
    micro_batches_count,
    stage_layers_count,
)
from codesign.model.workload.machine import Machine
from codesign.model.workload.training_block import Block
from codesign.model.workload.training_exchange import DataExchange
from codesign.model.workload.training_inputs import Software, TrainingConstants, TrainingJob
from codesign.model.workload.training_memory import TrainingMemory
from codesign.model.workload.transformer import Transformer
from codesign.units import Numeric

BITS_PER_BYTE = 8.0


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Numbers of a schedule that follow from the layout and the depth alone."""

    passes_count: Numeric  # micro-batches of one rank
    stage_count: Numeric  # layers of the fullest rank
    last_count: Numeric  # layers of the rank with the head, prediction layers included
    heads_count: Numeric  # heads computed: one, and one per prediction layer
    fill_count: Numeric  # stages that fill and drain, in units of a whole rank
    window_count: Numeric  # micro-batches under which the collectives of one rank's weights may run
    ragged_count: Numeric  # micro-batches of idle time when they do not divide over the stages
    layers_count: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def counts(transformer: Transformer, job: TrainingJob, layout: Layout) -> Counts:
    """Layers and micro-batches of a schedule.

    Args:
        transformer: Depth of the model.
        job: Global batch, prediction layers.
        layout: Degrees and micro-batch.

    Returns:
        Counts that need no hardware.

    Source:
        narayanan-2021: bubble (p - 1) / v micro-batches of a rank, interleaved.
    """
    passes = micro_batches_count(job.global_batch_count, layout)
    left = passes - np.floor(passes / layout.pp_count) * layout.pp_count
    ragged = np.where(left > 0.0, layout.pp_count - left, 0.0)
    return Counts(
        passes_count=passes,
        stage_count=stage_layers_count(transformer.layers_count, layout),
        last_count=last_stage_layers_count(transformer.layers_count, layout) + job.mtp_layers_count,
        heads_count=1.0 + job.mtp_layers_count,
        fill_count=(layout.pp_count - 1.0) / layout.vp_count,
        window_count=np.minimum((1.0 + layout.pp_count * (layout.vp_count - 1.0)) / layout.vp_count, passes),
        ragged_count=ragged * (layout.vp_count - 1.0) / layout.vp_count,
        layers_count=transformer.layers_count + job.mtp_layers_count,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """The terms of a step before they are split by cause; ``step_ns`` is their sum and the straggler's share."""

    compute_ns: Numeric  # the bottleneck rank busy with its micro-batches
    bubble_ns: Numeric
    transfer_ns: Numeric
    data_ns: Numeric
    optimizer_ns: Numeric
    offload_ns: Numeric
    step_ns: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def schedule(
    layer: Block,
    exchange: DataExchange,
    numbers: Counts,
    layout: Layout,
    crossing_frac: Numeric,
    optimizer_ns: Numeric,
    streams: "Streams",
    software: Software,
    constants: TrainingConstants,
    straggler_ratio: Numeric,
) -> Schedule:
    """Put micro-batches, collectives and the optimizer after one another where nothing hides them.

    Args:
        layer: One micro-batch of an average layer.
        exchange: Collectives over the data ranks.
        numbers: Layers and micro-batches.
        layout: Degrees and sharding.
        crossing_frac: Share of pipeline boundaries between domains. [1], 0 to 1
        optimizer_ns: Update of the weights a rank owns. [ns], >= 0
        streams: Traffic to the second tier.
        software: Overlap.
        constants: Cost of hidden collectives, fixed time.
        straggler_ratio: Expected slowest rank over the mean. [1], >= 1

    Returns:
        Terms and their sum.

    Source:
        narayanan-2021: 1F1B and interleaved schedules.
    """
    head = numbers.heads_count * layer.head_ns
    rank = np.maximum(numbers.stage_count * layer.layer_ns, numbers.last_count * layer.layer_ns + head)
    mean = (numbers.layers_count * layer.layer_ns + head) / layout.pp_count
    compute = numbers.passes_count * rank
    bubble = numbers.fill_count * mean + numbers.ragged_count * rank
    transfer = layer.transfer_inside_ns + crossing_frac * (layer.transfer_outside_ns - layer.transfer_inside_ns)
    piped = np.where(layout.pp_count > 1.0, 2.0 * layout.vp_count, 0.0)
    hides = software.pp_overlap_flag * np.where(layout.vp_count > 1.0, 1.0, 0.0)
    shown = 1.0 - hides * (1.0 - constants.overlap_cost_frac)
    transfers = piped * (numbers.passes_count * shown + numbers.fill_count) * transfer
    forward = numbers.stage_count * layer.forward_ns
    data = _data_ns(exchange, forward, rank - forward, numbers, layout, software, constants)
    offload = numbers.passes_count * np.maximum(streams.pass_ns - rank, 0.0) + streams.step_ns
    total = compute + bubble + transfers + data + optimizer_ns + offload + constants.step_ns
    return Schedule(compute, bubble, transfers, data, optimizer_ns, offload, total * straggler_ratio)


def _data_ns(
    exchange: DataExchange,
    forward_ns: Numeric,
    backward_ns: Numeric,
    numbers: Counts,
    layout: Layout,
    software: Software,
    constants: TrainingConstants,
) -> Numeric:
    """Exposed collectives: under every micro-batch where weights are sharded, else once a step.

    The gradients of a virtual stage are complete while the pipeline still works through the others: interleaving
    widens the window from one micro-batch to nearly as many as there are stages.
    """
    overlap, cost = software.dp_overlap_flag, constants.data_cost_frac
    fully = np.where(layout.shard_count > 1.0, 1.0, 0.0)
    repeats = 1.0 + fully * (numbers.passes_count - 1.0)
    wide = numbers.window_count + fully * (1.0 - numbers.window_count)
    before = exposed_ns(exchange.gather_ns, wide * forward_ns, overlap, cost)
    after = exposed_ns(exchange.reduce_ns + fully * exchange.gather_ns, wide * backward_ns, overlap, cost)
    return repeats * (before + after)


@dataclass(frozen=True, slots=True, eq=False)
class Streams:
    """Traffic to and from the second tier: per micro-batch, hidden under it as far as it fits, and per step."""

    pass_ns: Numeric
    step_ns: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def streams(layout: Layout, memory: TrainingMemory, machine: Machine) -> Streams:
    """Traffic of what is offloaded.

    Activations go out in the forward pass and come back in the backward; weights come in for each pass of a group of
    micro-batches as deep as the pipeline; gradients and optimizer state come and go once a step.

    Args:
        layout: What is offloaded, pipeline depth.
        memory: Bytes of each part.
        machine: Rate of the second tier.

    Returns:
        Times of the traffic alone.

    Source:
        definition: bytes over rate, each direction by itself.
    """
    ns_per_byte = BITS_PER_BYTE / np.maximum(machine.second_tier_rate_gbps, 1e-6)
    per_pass = 2.0 * memory.moved_activations_bytes + 2.0 * memory.moved_weights_bytes / layout.pp_count
    return Streams(pass_ns=ns_per_byte * per_pass, step_ns=ns_per_byte * memory.moved_optimizer_bytes)


def optimizer_ns(job: TrainingJob, memory: TrainingMemory, machine: Machine) -> Numeric:
    """Update of the weights one rank owns: memory traffic.

    Args:
        job: Formats.
        memory: Weights the rank owns.
        machine: Memory rate.

    Returns:
        Time of the update. [ns]

    Source:
        definition: state read and written, gradient read, weight written.

    >>> job = TrainingJob(1.0, 1.0, 2.0, 2.0, 4.0, 12.0, 2.0, 2.0, 1.0, 1.0, 0.0)
    >>> memory = TrainingMemory(*[0.0] * 8, owned_count=1e6, moved_weights_bytes=0.0, moved_optimizer_bytes=0.0,
    ...                         moved_activations_bytes=0.0)
    >>> optimizer_ns(job, memory, Machine(1.0, 1.0, 8e3, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0))  # 30 MB at 1000 byte/ns
    30000.0
    """
    each = 2.0 * job.optimizer_bytes + job.gradient_bytes + job.weight_bytes
    moved = memory.owned_count * each
    return moved * BITS_PER_BYTE / (machine.memory_rate_gbps * machine.memory_frac)
