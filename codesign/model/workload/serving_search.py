"""The search over layouts: the exact best of a candidates-by-layouts grid, and the frontier.

Every layout gets a ceiling, the best score it could have; layouts are priced from the highest ceiling down until no
ceiling left reaches the runner-up. What is left can then be neither the best nor the runner-up: the answer is that of
pricing the whole grid.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codesign.columns import S, distinct_rows, freeze, over_mappings, remade, rows_of
from codesign.model.fabric.collectives import Fabric
from codesign.model.workload.serving import ServingPoint, in_step, pooled_point, serving_point, shared_point
from codesign.model.workload.serving_inputs import (
    Pool,
    QueueConstants,
    ServingJob,
    ServingKernels,
    ServingLayout,
    ServingSoftware,
)
from codesign.model.workload.serving_pools import (
    AnswerPool,
    Ceiling,
    Engine,
    PromptPool,
    answer_pool,
    pooled_ceiling,
    prompt_pool,
    prompt_supply,
    replica_users_count,
    shared_ceiling,
)
from codesign.model.workload.transformer import Transformer
from codesign.units import Array, Numeric

Index = NDArray[np.intp]

#: elements of the grid that are worked out at once: the arrays of a pass then stay in the second-level cache
CHUNK_COUNT = 8192
#: elements of the grid in a block, whose candidates are searched together: no more than the last-level cache takes
GRID_COUNT = 400_000
#: layouts whose price shows a candidate which of the others are worth one
FIRST_COUNT = 64


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
    queues for room in the cache; the least-violating one where none does. Ties go to the lowest index. Only a layout
    that cannot be the best or the runner-up goes without a price.

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
    for rows, block in _blocks(system, layouts, candidates_count):
        _search(block, index[:, rows], scores[:, rows])
    layout = rows_of(layouts, index[0])
    second = scores[1]
    if np.any(second <= 0.0):  # a score that is no throughput
        second = at_layout(system, rows_of(layouts, index[1])).output_tokens_per_s
    return BestServing(
        layout_index=index[0],
        runner_up_index=index[1],
        runner_up_tokens_per_s=np.array(np.broadcast_to(second, (candidates_count,))),
        feasible_flag=(scores[0] > 0.0).astype(np.float64),
        layout=layout,
        point=at_layout(system, layout),
    )


def _score(point: ServingPoint | Ceiling) -> Numeric:
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
    for rows, block in _blocks(system, layouts, candidates_count):
        whole = np.flatnonzero((block.ceilings() > 0.0).any(axis=0))
        for columns, point in block.points(whole):
            shape = (block.rows_count, len(columns))
            lacking = point.memory_excess_frac + point.cache_excess_frac
            broken = np.broadcast_to(lacking + point.ttft_excess_frac, shape)
            rate = np.where(broken > 0.0, 0.0, point.output_tokens_per_s)
            speed = np.broadcast_to(1e9 / point.tpot_ns, shape)
            for k, least in enumerate(interactivity_tokens_per_s):
                best[rows, k] = np.maximum(best[rows, k], np.where(speed >= least, rate, 0.0).max(axis=1))
    return best


@dataclass(frozen=True, slots=True, eq=False)
class _Layouts:
    """The layouts of a search, and the distinct pools that those with two pools are made of."""

    every: ServingLayout  # (1, m)
    kind: Index  # 0: two pools; with one pool by the work there is, as a pass leaves out what none of its layouts has
    prompts: Pool  # distinct, (1, e)
    answers: Pool  # distinct by engine and users of a replica, (1, a)
    users_count: Array  # of a replica of those, (1, a)
    prompts_at: Index  # place of every layout's pool among the distinct ones; 0 where the layout has one pool
    answers_at: Index


def _sorted_out(layouts: ServingLayout) -> _Layouts:
    pooled = np.asarray(layouts.disaggregated_flag) > 0.0
    two = rows_of(layouts, np.flatnonzero(pooled))
    users = np.asarray(replica_users_count(two))
    entries, entry_of = distinct_rows(*_degrees(two.prefill))
    answers, answer_of = distinct_rows(*_degrees(replace(two.decode, workers_count=1.0 + 0.0 * users)), users)
    prompts_at, answers_at = np.zeros((2, len(pooled)), dtype=np.intp)
    prompts_at[pooled], answers_at[pooled] = entry_of, answer_of
    tensor, replicated = (np.asarray(size) > 1.0 for size in (layouts.decode.tp_count, layouts.decode.dp_count))
    return _Layouts(
        every=_across(layouts),
        kind=np.where(pooled, 0, 1 + tensor + 2 * replicated),
        prompts=_across(rows_of(two.prefill, entries)),
        answers=_across(rows_of(two.decode, answers)),
        users_count=users[None, answers],
        prompts_at=prompts_at,
        answers_at=answers_at,
    )


def _degrees(pools: Pool) -> list[Array]:
    return [np.asarray(getattr(pools, f.name)) for f in fields(Pool)]


def _across(struct: S) -> S:
    """Columns (m,) as (1, m)."""
    return remade(struct, lambda value: np.asarray(value)[None, :])


def _places(struct: S, places: Index) -> S:
    """Places along the last axis of (n, k) columns; what is the same in all of them stays."""
    return remade(struct, lambda v: np.take(v, places, axis=1) if np.ndim(v) and v.shape[1] > 1 else v)


def _part(struct: S, rows: Index) -> S:
    """Rows of (n, k) columns; what is the same in all of them stays."""
    return remade(struct, lambda v: v[rows] if np.ndim(v) and v.shape[0] > 1 else v)


@dataclass(frozen=True, slots=True, eq=False)
class _Pools:
    """What the distinct pools cost some candidates by themselves."""

    prompts: PromptPool  # (n, e)
    answers: AnswerPool  # (n, a)


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Some candidates against all layouts."""

    layouts: _Layouts
    system: ServingSystem  # columns (n, 1), the fabric as a step meets it
    pools: _Pools | None  # None where no layout has two pools
    rows_count: int

    def rows(self, rows: Index) -> "_Block":
        """Some of the candidates."""
        pools = None if self.pools is None else _part(self.pools, rows)
        return _Block(self.layouts, _part(self.system, rows), pools, len(rows))

    def ceilings(self) -> Array:
        """The best score that each layout could have, (n, m)."""
        scores = np.empty((self.rows_count, len(self.layouts.kind)))
        for columns in self._pieces(np.arange(scores.shape[1])):
            scores[:, columns] = _score(self._ceiling(columns))
        return scores

    def points(self, columns: Index) -> Iterator[tuple[Index, ServingPoint]]:
        """Points at some layouts, piece by piece."""
        for piece in self._pieces(columns):
            yield piece, self._point(piece)

    def _pieces(self, columns: Index) -> Iterator[Index]:
        """Layouts cut to what is worked out at once, of one kind in a piece."""
        width = max(CHUNK_COUNT // self.rows_count, 1)
        kinds = self.layouts.kind[columns]
        if len(columns) <= width:  # too few to be worth passes of their own
            kinds = np.minimum(kinds, 1)
        for kind in np.unique(kinds):
            same = columns[kinds == kind]
            yield from np.array_split(same, -(-len(same) // width))

    def _ceiling(self, columns: Index) -> Ceiling:
        s, layout = self.system, _places(self.layouts.every, columns)
        if self.pools is None or self.layouts.kind[columns[0]]:
            return shared_ceiling(_engine(s, layout.decode, replica_users_count(layout)))
        prompts, answers = self._at(self.pools, columns)
        return pooled_ceiling(s.job, layout, prompt_supply(layout, s.fabric, s.queue, prompts), prompts, answers)

    def _point(self, columns: Index) -> ServingPoint:
        s, layout = self.system, _places(self.layouts.every, columns)
        engine = _engine(s, layout.decode, replica_users_count(layout))
        if self.pools is None or self.layouts.kind[columns[0]]:
            return shared_point(engine, layout, s.queue)
        return pooled_point(engine, layout, s.queue, *self._at(self.pools, columns))

    def _at(self, pools: _Pools, columns: Index) -> tuple[PromptPool, AnswerPool]:
        """The two pools of every layout."""
        entries, answers = self.layouts.prompts_at[columns], self.layouts.answers_at[columns]
        return _places(pools.prompts, entries), _places(pools.answers, answers)


def _blocks(system: ServingSystem, layouts: ServingLayout, candidates_count: int) -> Iterator[tuple[slice, _Block]]:
    """The grid, some candidates at a time."""
    known = _sorted_out(layouts)
    height = max(GRID_COUNT // len(known.kind), 1)
    stepped = replace(system, fabric=in_step(system.fabric, system.software))
    for top in range(0, candidates_count, height):
        rows = slice(top, min(top + height, candidates_count))
        s = over_mappings(rows_of(stepped, rows))
        pools = None if known.kind.all() else _pools(s, known)
        yield rows, _Block(known, s, pools, rows.stop - rows.start)


def _pools(system: ServingSystem, layouts: _Layouts) -> _Pools:
    return _Pools(
        prompt_pool(_engine(system, layouts.prompts, 1.0)),
        answer_pool(_engine(system, layouts.answers, layouts.users_count)),
    )


def _engine(system: ServingSystem, pool: Pool, users_count: Numeric) -> Engine:
    s = system
    return Engine(s.transformer, s.job, pool, s.kernels, s.fabric, s.software, users_count)


def _search(block: _Block, index: Any, scores: Array) -> None:
    """Price layouts of which nothing is known, then those with the highest ceilings, then all that still may win."""
    ceilings = block.ceilings()
    for count in (0, FIRST_COUNT, ceilings.shape[1]):
        ceilings[ceilings < scores[1][:, None]] = -np.inf  # not worth a price
        rows = np.flatnonzero((ceilings != -np.inf).any(axis=1))
        columns = _highest(ceilings[rows], count)
        if not len(columns):
            continue
        some = block if len(rows) == block.rows_count else block.rows(rows)
        best, at = scores[:, rows], index[:, rows]
        for piece, point in some.points(columns):
            _merge(np.array(np.broadcast_to(_score(point), (len(rows), len(piece)))), piece, at, best)
        scores[:, rows], index[:, rows] = best, at
        ceilings[np.ix_(rows, columns)] = -np.inf


def _highest(ceilings: Array, count: int) -> Index:
    """Layouts with ceilings among so many highest of any candidate, or without any."""
    left: Index = np.flatnonzero((ceilings != -np.inf).any(axis=0))
    if not count or len(left) > count:
        ceilings = ceilings[:, left]
        place = len(left) - count
        least = np.partition(ceilings, place, axis=1)[:, place, None] if count else np.inf
        left = left[(~(ceilings < least) & (ceilings != -np.inf)).any(axis=0)]
    return left


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
