"""The search over layouts: the candidates-by-layouts grid priced in blocks, the exact best, and the frontier."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codesign.columns import freeze, over_mappings, rows_of
from codesign.model.fabric.collectives import Fabric
from codesign.model.workload.serving import ServingPoint, serving_point
from codesign.model.workload.serving_inputs import (
    Pool,
    QueueConstants,
    ServingJob,
    ServingKernels,
    ServingLayout,
    ServingSoftware,
)
from codesign.model.workload.transformer import Transformer
from codesign.units import Array, Numeric

Index = NDArray[np.intp]

#: elements of the grid that are priced at once: the arrays of a pass then stay in the second-level cache
CHUNK_COUNT = 8192


@dataclass(frozen=True, slots=True, eq=False)
class ServingSystem:
    """Everything but the layout, as numbers or ``(n,)`` columns."""

    transformer: Transformer
    job: ServingJob
    kernels: ServingKernels
    fabric: Fabric
    software: ServingSoftware
    queue: QueueConstants


@dataclass(frozen=True, slots=True, eq=False)
class BestServing:
    """The chosen layout of every candidate, its point, and the runner-up."""

    layout_index: Index  # into the layouts searched
    runner_up_index: Index
    runner_up_tokens_per_s: Numeric  # output tokens per second and accelerator of the runner-up
    feasible_flag: Numeric  # 1: every rule is met at the chosen layout
    layout: ServingLayout
    point: ServingPoint

    def __post_init__(self) -> None:
        freeze(self)


def at_layout(system: ServingSystem, layout: ServingLayout) -> ServingPoint:
    """The point of a system at one layout per candidate: a pinned mapping, or the one a search chose.

    Args:
        system: Numbers or ``(n,)`` columns.
        layout: The same.

    Returns:
        The point.

    Source:
        definition: see `serving_point`.

    >>> at_layout.__annotations__["layout"].__name__
    'ServingLayout'
    """
    s = system
    return serving_point(s.transformer, s.job, layout, s.kernels, s.fabric, s.software, s.queue)


def best_serving(system: ServingSystem, layouts: ServingLayout, candidates_count: int) -> BestServing:
    """The best layout of every candidate under memory and service levels, over the whole grid.

    The most output tokens per second and accelerator wins among the layouts that meet every rule, none of whose users
    queues for room in the cache; the least-violating one where none does. Ties go to the lowest index. Nothing is
    skipped.

    Args:
        system: The candidates.
        layouts: The ``(m,)`` layouts, see `serving_layouts`.
        candidates_count: n. [count]

    Returns:
        Chosen layouts with their points, and the runners-up.

    Source:
        definition: arg max.

    >>> BestServing.__slots__[0]
    'layout_index'
    """
    index = np.full((2, candidates_count), np.size(layouts.users_count) - 1, dtype=np.intp)
    scores = np.full((2, candidates_count), -np.inf)
    for rows, columns, point, shape in _blocks(system, layouts, candidates_count):
        _merge(np.array(np.broadcast_to(_score(point), shape)), columns, index[:, rows], scores[:, rows])
    layout = rows_of(layouts, index[0])
    runner_up = at_layout(system, rows_of(layouts, index[1]))
    return BestServing(
        layout_index=index[0],
        runner_up_index=index[1],
        runner_up_tokens_per_s=np.array(np.broadcast_to(runner_up.output_tokens_per_s, (candidates_count,))),
        feasible_flag=(scores[0] > 0.0).astype(np.float64),
        layout=layout,
        point=at_layout(system, layout),
    )


def _score(point: ServingPoint) -> Numeric:
    """Output tokens per second and accelerator, or minus what is broken, which grows towards zero as it heals."""
    broken = point.memory_excess_frac + point.cache_excess_frac + point.ttft_excess_frac + point.tpot_excess_frac
    return np.where(broken > 0.0, -broken, point.output_tokens_per_s)


def serving_frontier_tokens_per_s(
    system: ServingSystem, layouts: ServingLayout, candidates_count: int, interactivity_tokens_per_s: Array
) -> Array:
    """Most output tokens per second and accelerator at each least speed of one user, over all layouts that fit.

    The speed of a user is one over the time per token. Time to the first token counts against its service level, the
    time per token does not: it is the axis.

    Args:
        system: The candidates.
        layouts: The ``(m,)`` layouts.
        candidates_count: n. [count]
        interactivity_tokens_per_s: Least speeds, ``(k,)``. [token/s], > 0

    Returns:
        Throughput ``(n, k)``. [token/s]; 0 where no layout is that fast.

    Source:
        definition: upper envelope over layouts.

    >>> serving_frontier_tokens_per_s.__name__
    'serving_frontier_tokens_per_s'
    """
    best = np.zeros((candidates_count, len(interactivity_tokens_per_s)))
    for rows, _, point, shape in _blocks(system, layouts, candidates_count):
        lacking = point.memory_excess_frac + point.cache_excess_frac
        broken = np.broadcast_to(lacking + point.ttft_excess_frac, shape)
        rate = np.where(broken > 0.0, 0.0, point.output_tokens_per_s)
        speed = np.broadcast_to(1e9 / point.tpot_ns, shape)
        for k, least in enumerate(interactivity_tokens_per_s):
            best[rows, k] = np.maximum(best[rows, k], np.where(speed >= least, rate, 0.0).max(axis=1))
    return best


def _blocks(
    system: ServingSystem, layouts: ServingLayout, candidates_count: int
) -> Iterator[tuple[slice, Any, ServingPoint, tuple[int, int]]]:
    """Points of the grid block by block; the layouts of a block have the same kind of work in them."""
    for same in _groups(layouts):
        width = min(len(same), CHUNK_COUNT)
        height = max(CHUNK_COUNT // width, 1)
        for left in range(0, len(same), width):
            columns = same[left : left + width]
            across = _across(rows_of(layouts, columns))
            for top in range(0, candidates_count, height):
                rows = slice(top, min(top + height, candidates_count))
                shape = (rows.stop - rows.start, len(columns))
                yield rows, columns, at_layout(over_mappings(rows_of(system, rows)), across), shape


def _groups(layouts: ServingLayout) -> list[Any]:
    """Indices of layouts that need the same work (pools, all-reduces, exchanges), ascending in each group.

    A pass leaves out work that no layout of its block has. Layouts with one pool for prompts in common stand together,
    so that the prompts are priced once.
    """
    entry, answer = layouts.prefill, layouts.decode
    pooled = np.asarray(layouts.disaggregated_flag) > 0.0
    shared = np.stack([np.where(pooled, np.asarray(getattr(entry, f.name)), 0.0) for f in fields(Pool)])
    work = np.stack([pooled, np.asarray(answer.tp_count) > 1.0, np.asarray(answer.dp_count) > 1.0])
    _, group = np.unique(np.concatenate([shared, work]), axis=1, return_inverse=True)
    group = np.ravel(group)
    order = np.argsort(group, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group[order])) + 1)


def _across(layouts: ServingLayout) -> ServingLayout:
    """Columns ``(m,)`` as ``(1, m)``; a pool that is the same for all of them as ``(1, 1)``."""

    def row(pool: Pool) -> Pool:
        columns = [np.asarray(getattr(pool, f.name)) for f in fields(Pool)]
        one = all((column == column[0]).all() for column in columns)
        return Pool(*(column[None, : 1 if one else None] for column in columns))

    return ServingLayout(
        row(layouts.prefill),
        row(layouts.decode),
        np.asarray(layouts.disaggregated_flag)[None, :],
        np.asarray(layouts.users_count)[None, :],
    )


def _merge(block: Array, columns: Any, index: Any, scores: Array) -> None:
    """Keep the two highest scores and where they are; ties go to the lower index."""
    for _ in range(2):
        at = np.argmax(block, axis=1)
        value, here = np.take_along_axis(block, at[:, None], axis=1)[:, 0], columns[at]
        better = (value > scores[0]) | ((value == scores[0]) & (here < index[0]))
        second = ~better & ((value > scores[1]) | ((value == scores[1]) & (here < index[1])))
        index[1] = np.where(better, index[0], np.where(second, here, index[1]))
        scores[1] = np.where(better, scores[0], np.where(second, value, scores[1]))
        index[0] = np.where(better, here, index[0])
        scores[0] = np.where(better, value, scores[0])
        np.put_along_axis(block, at[:, None], -np.inf, axis=1)
