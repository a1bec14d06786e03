"""The best layout of a training job for every candidate: the whole grid of candidates and layouts, exact argmin.

What only some degrees decide is computed once per distinct combination of them and spread over the layouts that share it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from codesign.columns import freeze
from codesign.model.fabric.collectives import Fabric
from codesign.model.workload.layout import Layout
from codesign.model.workload.machine import Machine
from codesign.model.workload.training import (
    TrainingStep,
    counts,
    optimizer_ns,
    schedule,
    streams,
    training_step,
)
from codesign.model.workload.training_block import block
from codesign.model.workload.training_exchange import data_exchange, transfer_crossing_frac
from codesign.model.workload.training_inputs import Software, TrainingConstants, TrainingEngines, TrainingJob
from codesign.model.workload.training_memory import training_memory
from codesign.model.workload.transformer import Transformer
from codesign.units import Array, Numeric

GRID_COUNT = 16384  # elements of one chunk: a few dozen columns of it stay in the second-level cache
NOWHERE_NS = 1e30  # longer than any step; a layout that does not fit ranks behind it, by how much is missing

BLOCK_FIELDS = (
    "tp_count",
    "cp_count",
    "ep_count",
    "micro_batch_count",
    "expert_tp_flag",
    "full_recompute_frac",
    "attention_recompute_flag",
    "elementwise_recompute_flag",
)
EXCHANGE_FIELDS = (
    "tp_count",
    "pp_count",
    "vp_count",
    "cp_count",
    "ep_count",
    "dp_count",
    "expert_tp_flag",
    "shard_count",
)

S = TypeVar("S")


@dataclass(frozen=True, slots=True, eq=False)
class BestTraining:
    """The fastest layout that fits each candidate, the next one, and what the fastest does with its time."""

    best_index_count: NDArray[np.intp]  # column of the layout grid
    next_index_count: NDArray[np.intp]  # the runner-up; the best itself where the grid has one layout
    next_step_ns: Array
    fits_flag: Array  # 0: nothing fits, and the layout that misses by least is given
    layout: Layout
    step: TrainingStep


def rows_of(struct: S, rows: slice) -> S:
    """Some candidates of a struct of ``(n,)`` columns, as ``(k, 1)`` columns that face a row of layouts.

    Args:
        struct: Columns or plain numbers, nested structs too.
        rows: Which candidates.

    Returns:
        The same struct over fewer rows; plain numbers stay.

    Source:
        definition: axes n and m.
    """
    chosen: dict[str, Any] = {}
    for field in fields(struct):  # type: ignore[arg-type]
        if not field.init:
            continue
        value = getattr(struct, field.name)
        if is_dataclass(value):
            value = rows_of(value, rows)
        elif isinstance(value, np.ndarray) and value.ndim:
            value = value.reshape(-1)[rows, None]
        chosen[field.name] = value
    return type(struct)(**chosen)


def columns_of(layout: Layout, columns: NDArray[np.intp]) -> Layout:
    """Some layouts of a grid, in the order asked for.

    Args:
        layout: The grid, ``(m,)`` columns.
        columns: Which layouts.

    Returns:
        Those layouts.

    Source:
        definition: selection.
    """
    return Layout(**{f.name: np.asarray(getattr(layout, f.name))[columns] for f in fields(Layout)})


def _distinct(layout: Layout, names: Sequence[str]) -> tuple[Layout, NDArray[np.intp]]:
    """Layouts that differ in some degrees, and for every layout of the grid the one it equals in them."""
    table = np.stack([np.asarray(getattr(layout, name), dtype=np.float64) for name in names])
    _, first, inverse = np.unique(table, axis=1, return_index=True, return_inverse=True)
    return columns_of(layout, first), inverse.reshape(-1)


def _spread(struct: S, columns: NDArray[np.intp]) -> S:
    """Columns of distinct layouts, repeated for every layout of the grid."""
    spread = {}
    for field in fields(struct):  # type: ignore[arg-type]
        value = np.asarray(getattr(struct, field.name))
        spread[field.name] = value if value.ndim == 0 or value.shape[-1] == 1 else np.take(value, columns, axis=-1)
    return type(struct)(**spread)


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """A layout grid with its distinct parts worked out once."""

    layout: Layout
    blocks: Layout
    block_columns: NDArray[np.intp]
    exchanges: Layout
    exchange_columns: NDArray[np.intp]


def _grid(layout: Layout) -> _Grid:
    blocks, block_columns = _distinct(layout, BLOCK_FIELDS)
    exchanges, exchange_columns = _distinct(layout, EXCHANGE_FIELDS)
    return _Grid(layout, blocks, block_columns, exchanges, exchange_columns)


def _keys(
    transformer: Transformer,
    job: TrainingJob,
    grid: _Grid,
    engines: TrainingEngines,
    fabric: Fabric,
    machine: Machine,
    software: Software,
    constants: TrainingConstants,
    straggler_ratio: Numeric,
) -> Array:
    """What argmin ranks: step time where a layout fits, beyond any step time by the missing share where not."""
    layout = grid.layout
    layer = _spread(block(transformer, job, grid.blocks, engines, fabric, machine, software, constants), grid.block_columns)
    exchange = _spread(data_exchange(transformer, job, grid.exchanges, fabric), grid.exchange_columns)
    memory = training_memory(transformer, job, layout, machine, software)
    terms = schedule(
        layer,
        exchange,
        counts(transformer, job, layout),
        layout,
        transfer_crossing_frac(layout, fabric.scale_up.domain_count),
        optimizer_ns(job, memory, machine),
        streams(job, layout, memory, machine),
        software,
        constants,
        straggler_ratio,
    )
    missing = np.maximum(memory.total_bytes / machine.memory_bytes - 1.0, 0.0)
    second = np.maximum(memory.second_tier_bytes / np.maximum(machine.second_tier_bytes, 1.0) - 1.0, 0.0)
    missing = missing + second
    return np.where(missing > 0.0, NOWHERE_NS * (1.0 + missing), terms.step_ns)


def best_training(
    transformer: Transformer,
    job: TrainingJob,
    layouts: Layout,
    engines: TrainingEngines,
    fabric: Fabric,
    machine: Machine,
    software: Software,
    constants: TrainingConstants,
    straggler_ratio: Numeric = 1.0,
) -> BestTraining:
    """The layout with the shortest step that fits, for every candidate; ties go to the lowest index.

    Args:
        transformer: One model, plain numbers.
        job: One job, plain numbers.
        layouts: The grid, ``(m,)`` columns; see `training_layouts`.
        engines: ``(n,)`` columns or plain numbers.
        fabric: The same.
        machine: The same.
        software: The same.
        constants: The same.
        straggler_ratio: Expected slowest rank over the mean, ``(n,)`` or a plain number. [1], >= 1

    Returns:
        Best layout with its step, parts and memory; the runner-up; whether anything fits.

    Source:
        definition: exhaustive search.
    """
    count = _length(engines, fabric, machine, software, constants, straggler_ratio)
    grid = _grid(layouts)
    size = max(1, GRID_COUNT // len(grid.block_columns))
    best, following = np.zeros(count, dtype=np.intp), np.zeros(count, dtype=np.intp)
    best_key, next_key = np.zeros(count), np.zeros(count)
    for start in range(0, count, size):
        rows = slice(start, min(start + size, count))
        parts = [rows_of(s, rows) for s in (engines, fabric, machine, software, constants)]
        ratio = straggler_ratio if np.ndim(straggler_ratio) == 0 else np.asarray(straggler_ratio)[rows, None]
        keys = _keys(transformer, job, grid, *parts, straggler_ratio=ratio)  # type: ignore[arg-type]
        keys = np.array(np.broadcast_to(keys, (rows.stop - rows.start, len(grid.block_columns))))
        line = np.arange(len(keys))
        best[rows] = keys.argmin(axis=1)
        best_key[rows] = keys[line, best[rows]]
        if keys.shape[1] > 1:
            keys[line, best[rows]] = np.inf
        following[rows] = keys.argmin(axis=1)
        next_key[rows] = np.minimum(keys[line, following[rows]], 2.0 * NOWHERE_NS)
    chosen = columns_of(layouts, best)
    step = training_step(
        transformer, job, chosen, engines, fabric, machine, software, constants, straggler_ratio
    )
    return BestTraining(best, following, next_key, np.where(best_key < NOWHERE_NS, 1.0, 0.0), chosen, step)


def _length(*structs: Any) -> int:
    """Candidates in a set of structs: the length of their first column, one if all are plain numbers."""
    for struct in structs:
        if isinstance(struct, np.ndarray) and struct.ndim:
            return len(struct)
        if is_dataclass(struct):
            inner = _length(*(getattr(struct, f.name) for f in fields(struct)))
            if inner > 1:
                return inner
    return 1


def training_layouts(
    transformer: Transformer,
    job: TrainingJob,
    accelerators_count: int,
    offload: bool = False,
    tp_limit_count: int = 64,
) -> Layout:
    """Every layout of a job that divides: degrees, interleaving, micro-batch, recompute, sharding, offload.

    Tensor ranks divide the heads; expert ranks divide the experts and the ranks they are spread over; pipeline ranks
    hold at least one layer; interleaving divides the layers of a rank and needs micro-batches in multiples of the
    pipeline; the batch divides over data ranks and micro-batches. Weights are fully sharded only without a pipeline.

    Args:
        transformer: One model, plain numbers.
        job: One job, plain numbers.
        accelerators_count: Accelerators, all of them used. [count], >= 1
        offload: Whether states and activations may live in a second tier.
        tp_limit_count: Most tensor ranks tried. [count], >= 1

    Returns:
        ``(m,)`` columns, in a fixed order; none only when nothing divides.

    Source:
        narayanan-2021: which degrees divide what.
    """
    degrees = _degrees(transformer, job, accelerators_count, tp_limit_count)
    choices = _choices(transformer, job, offload)
    pairs = degrees[:, :, None] + np.zeros((1, 1, choices.shape[1]))
    picks = choices[:, None, :] + np.zeros((1, degrees.shape[1], 1))
    tp, pp, cp, ep, dp = (row.reshape(-1) for row in pairs)
    vp, mbs, recompute, sharded, moved = (row.reshape(-1) for row in picks)
    layers = float(np.asarray(transformer.layers_count))
    stage = np.ceil(layers / pp)
    passes = float(np.asarray(job.global_batch_count)) / (dp * mbs)
    keep = (passes >= 1.0) & (passes == np.floor(passes))
    keep &= np.where(vp > 1.0, (pp > 1.0) & (stage % vp == 0.0) & (passes % pp == 0.0), True)
    keep &= np.where(sharded > 0.0, (pp <= 1.0) & (dp * cp > 1.0), True)
    zeros, ones = np.zeros(int(keep.sum())), np.ones(int(keep.sum()))
    recompute = recompute[keep]
    return Layout(
        tp_count=tp[keep],
        pp_count=pp[keep],
        vp_count=vp[keep],
        cp_count=cp[keep],
        ep_count=ep[keep],
        dp_count=dp[keep],
        micro_batch_count=mbs[keep],
        expert_tp_flag=zeros,
        full_recompute_frac=np.where(recompute == 3.0, 1.0, 0.0),
        attention_recompute_flag=np.where((recompute == 1.0) | (recompute == 2.0), 1.0, 0.0),
        elementwise_recompute_flag=np.where(recompute == 2.0, 1.0, 0.0),
        shard_count=np.where(sharded[keep] > 0.0, dp[keep] * cp[keep], 1.0),
        optimizer_sharded_flag=ones,
        gradients_sharded_flag=np.where(sharded[keep] > 0.0, 1.0, 0.0),
        activation_offload_frac=moved[keep],
        state_offload_flag=moved[keep],
    )


def _powers(limit: float) -> Array:
    return 2.0 ** np.arange(0, int(np.floor(np.log2(max(limit, 1.0)))) + 1)


def _divisors(count: int) -> Array:
    numbers = np.arange(1, count + 1)
    return numbers[count % numbers == 0].astype(np.float64)


def _degrees(t: Transformer, job: TrainingJob, count: int, tp_limit: int) -> Array:
    """Tensor, pipeline, context, expert and data degrees whose product is the number of accelerators."""
    heads, layers, experts = (float(np.asarray(v)) for v in (t.heads_count, t.layers_count, t.experts_count))
    sequence = float(np.asarray(job.sequence_count))
    tps = _powers(min(tp_limit, count))
    tps = tps[(heads % tps == 0.0) & (count % tps == 0.0)]
    pps = _divisors(count)
    pps = pps[pps <= layers]
    cps = _powers(min(max(sequence / 4096.0, 1.0), count))
    eps = _powers(min(experts, count)) if experts > 0.0 else np.ones(1)
    eps = eps[experts % eps == 0.0]
    tp, pp, cp, ep = (a.reshape(-1) for a in np.meshgrid(tps, pps, cps, eps, indexing="ij"))
    dp = count / (tp * pp * cp)
    spread = tp * cp * dp / ep
    keep = (dp >= 1.0) & (dp == np.floor(dp)) & (spread >= 1.0) & (spread == np.floor(spread))
    return np.stack([tp[keep], pp[keep], cp[keep], ep[keep], dp[keep]])


def _choices(t: Transformer, job: TrainingJob, offload: bool) -> Array:
    """Interleaving, micro-batch, recompute (none, attention, with element-wise, full), sharding, offload."""
    layers, batch = float(np.asarray(t.layers_count)), float(np.asarray(job.global_batch_count))
    vps = np.unique(np.concatenate([_powers(min(layers, 16.0)), _divisors(int(layers))[_divisors(int(layers)) <= 16.0]]))
    mbs = _powers(min(batch, 16.0))
    grids = np.meshgrid(
        vps, mbs, np.arange(4.0), np.arange(2.0), np.arange(2.0 if offload else 1.0), indexing="ij"
    )
    return np.stack([grid.reshape(-1) for grid in grids])
