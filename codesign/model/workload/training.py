"""One training step: micro-batches through the pipeline, collectives over the data ranks, the optimizer.

The step is built in three pieces that a search can share between layouts: `block` (tensor, context and expert degrees,
micro-batch, recompute), `data_exchange` (weights and gradients of a rank over its data ranks) and `schedule`.
"""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.fabric.collectives import Fabric
from codesign.model.workload.layout import Layout
from codesign.model.workload.machine import Machine
from codesign.model.workload.training_block import Block, block
from codesign.model.workload.training_exchange import data_exchange, transfer_crossing_frac
from codesign.model.workload.training_inputs import Software, TrainingConstants, TrainingEngines, TrainingJob
from codesign.model.workload.training_memory import TrainingMemory, training_memory
from codesign.model.workload.training_schedule import Counts, Schedule, counts, optimizer_ns, schedule, streams
from codesign.model.workload.transformer import Transformer
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class StepParts:
    """A step by cause; ``total_ns`` is their sum, in the order of the fields."""

    gemm_ns: Numeric
    attention_ns: Numeric
    elementwise_ns: Numeric
    head_ns: Numeric
    recompute_ns: Numeric
    tensor_ns: Numeric
    context_ns: Numeric
    expert_ns: Numeric
    launch_ns: Numeric
    bubble_ns: Numeric
    transfer_ns: Numeric
    data_ns: Numeric
    optimizer_ns: Numeric
    offload_ns: Numeric
    fixed_ns: Numeric
    straggler_ns: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingStep:
    """Time of a step, why, and whether it fits."""

    step_ns: Numeric
    parts: StepParts
    memory: TrainingMemory
    memory_excess_bytes: Numeric  # first tier: needed over available, 0 where it fits
    second_tier_excess_bytes: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def training_step(
    transformer: Transformer,
    job: TrainingJob,
    layout: Layout,
    engines: TrainingEngines,
    fabric: Fabric,
    machine: Machine,
    software: Software,
    constants: TrainingConstants,
    straggler_ratio: Numeric = 1.0,
) -> TrainingStep:
    """Time and memory of one training step: one row per job in a replay, ``(n, 1)`` against ``(1, m)`` in a search.

    Args:
        transformer: Shape of the model.
        job: Batch, formats, what learns.
        layout: Degrees, micro-batch, recompute, sharding, offload; see `violations` for what must divide.
        engines: Matrix units and attention.
        fabric: The two tiers.
        machine: Memory, launch gap, clock.
        software: What the framework can do.
        constants: Fitted factors.
        straggler_ratio: Expected slowest rank over the mean. [1], >= 1

    Returns:
        Step, parts that sum to it, memory by part, what does not fit.

    Source:
        narayanan-2021: pipeline schedules.
        korthikanti-2022: tensor and sequence parallelism, recompute.
        rajbhandari-2020: sharded states.
    """
    layer = block(transformer, job, layout, engines, fabric, machine, software, constants)
    exchange = data_exchange(transformer, job, layout, fabric)
    memory = training_memory(transformer, job, layout, machine, software)
    numbers = counts(transformer, job, layout)
    crossing = transfer_crossing_frac(layout, fabric.scale_up.domain_count)
    update = optimizer_ns(job, memory, machine)
    second = streams(layout, memory, machine)
    terms = schedule(layer, exchange, numbers, layout, crossing, update, second, software, constants, straggler_ratio)
    return TrainingStep(
        step_ns=terms.step_ns,
        parts=step_parts(layer, numbers, terms, constants, straggler_ratio),
        memory=memory,
        memory_excess_bytes=np.maximum(memory.total_bytes - machine.memory_bytes, 0.0),
        second_tier_excess_bytes=np.maximum(memory.second_tier_bytes - machine.second_tier_bytes, 0.0),
    )


def step_parts(
    layer: Block, numbers: Counts, terms: Schedule, constants: TrainingConstants, straggler_ratio: Numeric
) -> StepParts:
    """A step split by cause: what the bottleneck rank spends its micro-batches on, and the terms around them.

    Args:
        layer: One micro-batch of an average layer.
        numbers: Layers and micro-batches.
        terms: Terms of the step.
        constants: Fixed time.
        straggler_ratio: Expected slowest rank over the mean. [1], >= 1

    Returns:
        Parts in the order of a waterfall.

    Source:
        definition: the rank with the head leads where its layers and the head exceed a full rank.
    """
    head = numbers.heads_count * layer.head_ns
    leads = numbers.last_count * layer.layer_ns + head > numbers.stage_count * layer.layer_ns
    layers = numbers.passes_count * np.where(leads, numbers.last_count, numbers.stage_count)
    return StepParts(
        gemm_ns=layers * layer.gemm_ns,
        attention_ns=layers * layer.attention_ns,
        elementwise_ns=layers * layer.elementwise_ns,
        head_ns=numbers.passes_count * np.where(leads, head, 0.0),
        recompute_ns=layers * layer.recompute_ns,
        tensor_ns=layers * layer.tensor_ns,
        context_ns=layers * layer.context_ns,
        expert_ns=layers * layer.expert_ns,
        launch_ns=layers * layer.host_ns,
        bubble_ns=terms.bubble_ns,
        transfer_ns=terms.transfer_ns,
        data_ns=terms.data_ns,
        optimizer_ns=terms.optimizer_ns,
        offload_ns=terms.offload_ns,
        fixed_ns=constants.step_ns + 0.0 * terms.step_ns,
        straggler_ns=terms.step_ns * (straggler_ratio - 1.0) / straggler_ratio,
    )
