"""The best layout of a training job for every candidate: the whole grid of candidates and layouts, exact argmin.

What only some degrees decide is computed once per distinct combination of them, then spread over the layouts that
share it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codesign.columns import S, distinct_rows, number_at, remade
from codesign.model.fabric.collectives import Fabric
from codesign.model.workload.layout import Layout
from codesign.model.workload.machine import Machine
from codesign.model.workload.training import TrainingStep, training_step
from codesign.model.workload.training_block import Block, block
from codesign.model.workload.training_exchange import DataExchange, data_exchange, transfer_crossing_frac
from codesign.model.workload.training_inputs import Software, TrainingConstants, TrainingEngines, TrainingJob
from codesign.model.workload.training_layouts import training_layouts
from codesign.model.workload.training_memory import TrainingMemory, training_memory
from codesign.model.workload.training_schedule import Counts, Streams, counts, optimizer_ns, schedule, streams
from codesign.model.workload.transformer import Transformer
from codesign.units import Array, Numeric

__all__ = ["BestTraining", "best_training", "columns_of", "training_layouts"]

GRID_COUNT = 65536  # elements of one chunk: a few dozen columns of it stay in the second-level cache
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

BLOCK_COUNT = 8192  # candidates times distinct blocks worked out at once
NOTHING_RESERVED = Machine(1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0)

Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class BestTraining:
    """The fastest layout that fits each candidate, the next one, and what the fastest does with its time."""

    best_index_count: NDArray[np.intp]  # column of the layout grid
    next_index_count: NDArray[np.intp]  # the runner-up; the best itself where the grid has one layout
    next_step_ns: Array
    fits_flag: Array  # 0: nothing fits, and the layout that misses by least is given
    layout: Layout
    step: TrainingStep


def _rows_of(struct: S, rows: slice) -> S:
    """Some candidates of a struct of ``(n,)`` columns, as ``(k, 1)`` columns; plain numbers stay plain."""

    def some(value: Numeric) -> Numeric:
        if not isinstance(value, np.ndarray):
            return value
        return value.reshape(-1)[rows, None] if value.size > 1 else number_at(value)

    return remade(struct, some)


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
    return remade(layout, lambda value: np.asarray(value)[columns])


def _distinct(layout: Layout, names: Sequence[str]) -> tuple[Layout, NDArray[np.intp]]:
    """Layouts that differ in some degrees, and for every layout of the grid the one it equals in them."""
    first, place = distinct_rows(*(np.asarray(getattr(layout, name)) for name in names))
    return columns_of(layout, first), place


def _spread(struct: S, columns: NDArray[np.intp]) -> S:
    """Columns of distinct layouts, repeated for every layout of the grid."""

    def repeated(value: Numeric) -> Array:
        whole = np.asarray(value)
        return whole if whole.ndim == 0 or whole.shape[-1] == 1 else np.take(whole, columns, axis=-1)

    return remade(struct, repeated)


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """A layout grid with its distinct parts worked out once."""

    layout: Layout
    blocks: Layout
    block_columns: NDArray[np.intp]
    exchanges: Layout
    exchange_columns: NDArray[np.intp]
    counts: Counts
    memory: TrainingMemory  # without what the machine itself reserves
    offloads: bool


def _grid(layout: Layout, transformer: Transformer, job: TrainingJob, software: Software) -> _Grid:
    return _Grid(
        layout,
        *_distinct(layout, BLOCK_FIELDS),
        *_distinct(layout, EXCHANGE_FIELDS),
        counts(transformer, job, layout),
        training_memory(transformer, job, layout, NOTHING_RESERVED, _rows_of(software, slice(0, 1))),
        bool(np.any(layout.activation_offload_frac) or np.any(layout.state_offload_flag)),
    )


def _keys(
    job: TrainingJob,
    grid: _Grid,
    shared: tuple[Block, DataExchange],
    fabric: Fabric,
    machine: Machine,
    software: Software,
    constants: TrainingConstants,
    straggler_ratio: Numeric,
) -> Array:
    """What argmin ranks: step time where a layout fits, beyond any step time by the missing share where not."""
    layout, memory = grid.layout, grid.memory
    terms = schedule(
        _spread(shared[0], grid.block_columns),
        _spread(shared[1], grid.exchange_columns),
        grid.counts,
        layout,
        transfer_crossing_frac(layout, fabric.scale_up.domain_count),
        optimizer_ns(job, memory, machine),
        streams(layout, memory, machine) if grid.offloads else Streams(0.0, 0.0),
        software,
        constants,
        straggler_ratio,
    )
    missing = np.maximum((memory.total_bytes + machine.reserved_bytes) / machine.memory_bytes - 1.0, 0.0)
    if grid.offloads:
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
        software: One release; only its attention speed may differ between candidates.
        constants: Plain numbers.
        straggler_ratio: Expected slowest rank over the mean, ``(n,)`` or a plain number. [1], >= 1

    Returns:
        Best layout with its step, parts and memory; the runner-up; whether anything fits.

    Source:
        definition: exhaustive search.
    """
    structs = (engines, fabric, machine, software, constants)
    count = _length(*structs, straggler_ratio)
    grid = _grid(layouts, transformer, job, software)
    found = _Found(count)
    distinct = max(np.size(grid.blocks.tp_count), np.size(grid.exchanges.tp_count))
    for outer in _slices(0, count, max(1, BLOCK_COUNT // distinct)):
        parts = [_rows_of(s, outer) for s in structs]
        shared = (
            block(transformer, job, grid.blocks, *parts),  # type: ignore[arg-type]  # one list, five kinds of struct
            data_exchange(transformer, job, grid.exchanges, parts[1]),  # type: ignore[arg-type]  # the fabric
        )
        for inner in _slices(outer.start, outer.stop, max(1, GRID_COUNT // len(grid.block_columns))):
            rows = [_rows_of(s, inner) for s in structs]
            local = slice(inner.start - outer.start, inner.stop - outer.start)
            ratio = _some(straggler_ratio, inner)
            # one list, five kinds of struct
            keys = _keys(job, grid, _part(shared, local), *rows[1:], ratio)  # type: ignore[arg-type,call-arg]
            found.take(inner, np.broadcast_to(keys, (inner.stop - inner.start, len(grid.block_columns))))
    chosen = columns_of(layouts, found.best)
    step = training_step(transformer, job, chosen, engines, fabric, machine, software, constants, straggler_ratio)
    fits = np.where(found.best_key < NOWHERE_NS, 1.0, 0.0)
    return BestTraining(found.best, found.following, found.next_key, fits, chosen, step)


class _Found:
    """Smallest and second smallest key of every candidate, filled slice by slice."""

    def __init__(self, count: int) -> None:
        self.best, self.following = np.zeros(count, dtype=np.intp), np.zeros(count, dtype=np.intp)
        self.best_key, self.next_key = np.zeros(count), np.zeros(count)

    def take(self, rows: slice, keys: Array) -> None:
        keys = np.array(keys)
        line = np.arange(len(keys))
        self.best[rows] = keys.argmin(axis=1)
        self.best_key[rows] = keys[line, self.best[rows]]
        if keys.shape[1] > 1:
            keys[line, self.best[rows]] = np.inf
        self.following[rows] = keys.argmin(axis=1)
        self.next_key[rows] = np.minimum(keys[line, self.following[rows]], 2.0 * NOWHERE_NS)


def _slices(start: int, stop: int, size: int) -> list[slice]:
    return [slice(at, min(at + size, stop)) for at in range(start, stop, size)]


def _some(column: Numeric, rows: slice) -> Numeric:
    return column.reshape(-1)[rows, None] if isinstance(column, np.ndarray) and column.size > 1 else column


def _part(shared: tuple[Block, DataExchange], rows: slice) -> tuple[Block, DataExchange]:
    """Some candidates of ``(k, columns)`` results; what is the same for all stays."""
    return _cut(shared[0], rows), _cut(shared[1], rows)


def _cut(struct: S, rows: slice) -> S:
    return remade(struct, lambda value: value[rows] if np.ndim(value) == 2 and len(value) > 1 else value)


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
