"""The search over layouts: every one that divides, priced on the candidates-by-layouts grid, exact best."""

from dataclasses import dataclass, fields, is_dataclass
from typing import TypeVar, cast

import numpy as np

from codesign.columns import freeze
from codesign.model.fabric.collectives import Fabric, over_mappings
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

#: elements of the grid that are priced at once: the arrays of a pass then stay in the second-level cache
CHUNK_COUNT = 8192
#: users of one attention replica that the search tries
REPLICA_USERS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
#: users of one decode replica and accelerators of the prefill pool over those of the decode pool, with two pools
POOLED_USERS = (1, 4, 16, 32, 64, 128, 256, 512)
POOL_RATIOS = (0.25, 0.5, 1.0, 2.0, 4.0)
LARGEST_TP = 64

Struct = TypeVar("Struct")


@dataclass(frozen=True, slots=True, eq=False)
class BestServing:
    """The chosen layout of every candidate, its point, and the runner-up."""

    layout_index: Array  # into the layouts searched
    runner_up_index: Array
    runner_up_tokens_per_s: Array  # output tokens per second and accelerator of the runner-up
    feasible_flag: Array  # 1: every rule is met at the chosen layout
    layout: ServingLayout
    point: ServingPoint

    def __post_init__(self) -> None:
        freeze(self)


def serving_layouts(
    transformer: Transformer, accelerators_count: int, disaggregated: bool = False
) -> ServingLayout:
    """Every layout of a model on a machine: sizes are powers of two that divide heads, experts, layers and the machine.

    Aggregated engines fill the machine with equal copies. With two pools, each is filled with equal engines and their
    sizes stand in a stated ratio. With attention replicas the experts spread over the whole engine.

    Args:
        transformer: One model (plain numbers).
        accelerators_count: Accelerators that serve it. [count], >= 1
        disaggregated: Also layouts with a pool of their own for prompts.

    Returns:
        The layouts as columns ``(m,)``.

    Source:
        definition: every combination that divides.

    >>> from codesign.model.workload.transformer import LLAMA_3_8B
    >>> serving_layouts(LLAMA_3_8B, 2).users_count.size  # one or two accelerators an engine; tensor, data or pipeline
    60
    """
    engines = _engines(transformer, accelerators_count)
    rows = [
        (*(_copies(engine, accelerators_count // _size(engine)) * 2), 0.0, users * engine[1] * (accelerators_count // _size(engine)))
        for engine in engines
        for users in REPLICA_USERS
    ]
    if disaggregated:
        rows += _pooled(engines, accelerators_count)
    columns = [np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)]
    return ServingLayout(Pool(*columns[:5]), Pool(*columns[5:10]), columns[10], columns[11])


_Engine = tuple[int, int, int, int]  # tp, dp, pp, ep


def _size(engine: _Engine) -> int:
    return engine[0] * engine[1] * engine[2]


def _copies(engine: _Engine, workers: int) -> tuple[int, ...]:
    return (workers, *engine)


def _powers(limit: int) -> list[int]:
    return [1 << i for i in range(max(limit, 1).bit_length())]


def _engines(t: Transformer, accelerators: int) -> list[_Engine]:
    heads, experts, layers = (int(cast(float, x)) for x in (t.heads_count, t.experts_count, t.layers_count))
    found = []
    for tp in (p for p in _powers(min(LARGEST_TP, accelerators)) if heads % p == 0):
        for dp in _powers(accelerators // tp):
            for pp in (p for p in _powers(accelerators // (tp * dp)) if p <= layers):
                if accelerators % (tp * dp * pp) == 0 and (dp == 1 or experts > 0 or tp * pp == 1 == accelerators // dp):
                    found += [(tp, dp, pp, ep) for ep in _expert_groups(tp, dp, experts)]
    return found


def _expert_groups(tp: int, dp: int, experts: int) -> list[int]:
    """Whole experts on each rank where attention is replicated; either way where it is not."""
    ranks = tp * dp
    if experts == 0 or ranks == 1:
        return [1]
    whole = [ranks] if experts % ranks == 0 else []
    return whole if dp > 1 else [1, *whole]


def _pooled(engines: list[_Engine], accelerators: int) -> list[tuple[float, ...]]:
    rows: list[tuple[float, ...]] = []
    flat = [engine for engine in engines if engine[2] == 1]
    for ratio in POOL_RATIOS:
        entry_size = round(accelerators * ratio / (1.0 + ratio))
        for entry in flat:
            first = entry_size // _size(entry)
            for answer in flat:
                second = (accelerators - first * _size(entry)) // _size(answer)
                if first and second:
                    both = (*_copies(entry, first), *_copies(answer, second))
                    rows += [(*both, 1.0, users * answer[1] * second) for users in POOLED_USERS]
    return rows


def _spread(struct: Struct) -> Struct:
    """The struct with every (n,) column as (n, 1), nested structs among them."""
    assert is_dataclass(struct)
    values = {f.name: getattr(struct, f.name) for f in fields(struct) if f.init}
    wide = {
        name: over_mappings(value)
        if isinstance(value, Fabric)
        else _spread(value)
        if is_dataclass(value)
        else value[:, None]
        if np.ndim(value) == 1
        else value
        for name, value in values.items()
    }
    return type(struct)(**wide)


def _cut(struct: Struct, rows: slice | Array) -> Struct:
    """Rows of a struct of columns; scalars stay."""
    assert is_dataclass(struct)
    values = {f.name: getattr(struct, f.name) for f in fields(struct) if f.init}
    cut = {
        name: _cut(value, rows) if is_dataclass(value) else value[rows] if np.ndim(value) else value
        for name, value in values.items()
    }
    return type(struct)(**cut)


def serving_score(point: ServingPoint) -> Numeric:
    """What the search maximises: output tokens per second and accelerator, or minus what is broken.

    A layout that meets every rule has a positive score; one that does not has a negative one that grows towards zero as
    the excesses shrink, so the least-violating layout wins where none is feasible.
    """
    broken = point.memory_excess_frac + point.ttft_excess_frac + point.tpot_excess_frac
    return np.where(broken > 0.0, -broken, point.output_tokens_per_s)


def best_serving(
    transformer: Transformer,
    job: ServingJob,
    layouts: ServingLayout,
    kernels: ServingKernels,
    fabric: Fabric,
    software: ServingSoftware,
    queue: QueueConstants,
    candidates_count: int,
) -> BestServing:
    """The best layout of every candidate under its memory and service levels, over the whole grid.

    The grid is priced in blocks; the highest score wins, ties go to the lowest index. Nothing is skipped.

    Args:
        transformer: One model (plain numbers) or one per candidate.
        job: Lengths, formats, service levels: numbers or ``(n,)``.
        layouts: The ``(m,)`` layouts, see `serving_layouts`.
        kernels: ``(n,)`` columns or numbers.
        fabric: ``(n,)`` columns or numbers.
        software: ``(n,)`` columns or numbers.
        queue: ``(n,)`` columns or numbers.
        candidates_count: n. [count]

    Returns:
        Chosen layouts with their points, and the runners-up.

    Source:
        definition: arg max.

    >>> BestServing.__slots__[0]
    'layout_index'
    """
    parts = (transformer, job, kernels, fabric, software, queue)
    total = int(np.size(layouts.users_count))
    index = np.zeros(candidates_count, dtype=np.int64)
    second = np.zeros(candidates_count, dtype=np.int64)
    scores = np.full((2, candidates_count), -np.inf)
    width = min(total, CHUNK_COUNT)
    height = max(CHUNK_COUNT // width, 1)
    for top in range(0, candidates_count, height):
        rows = slice(top, min(top + height, candidates_count))
        t, j, k, f, s, q = (_spread(_cut(part, rows)) for part in parts)
        for left in range(0, total, width):
            columns = slice(left, min(left + width, total))
            point = serving_point(t, j, _across(_cut(layouts, columns)), k, f, s, q)
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            _merge(np.broadcast_to(serving_score(point), shape), left, index, second, scores, rows)
    layout = _cut(layouts, index)
    point = serving_point(transformer, job, layout, kernels, fabric, software, queue)
    runner_up = serving_point(transformer, job, _cut(layouts, second), kernels, fabric, software, queue)
    return BestServing(
        layout_index=index.astype(np.float64),
        runner_up_index=second.astype(np.float64),
        runner_up_tokens_per_s=np.broadcast_to(runner_up.output_tokens_per_s, (candidates_count,)).copy(),
        feasible_flag=(scores[0] > 0.0).astype(np.float64),
        layout=layout,
        point=point,
    )


def _across(layouts: ServingLayout) -> ServingLayout:
    def row(pool: Pool) -> Pool:
        return Pool(*(np.asarray(getattr(pool, f.name))[None, :] for f in fields(Pool)))

    return ServingLayout(
        row(layouts.prefill),
        row(layouts.decode),
        np.asarray(layouts.disaggregated_flag)[None, :],
        np.asarray(layouts.users_count)[None, :],
    )


def _merge(block: Array, left: int, index: Array, second: Array, scores: Array, rows: slice) -> None:
    """Keep the two highest scores and where they are; earlier blocks win ties."""
    for place in range(2):
        at = np.argmax(block, axis=1)
        value = np.take_along_axis(block, at[:, None], axis=1)[:, 0]
        first_better = value > scores[0, rows]
        second_better = ~first_better & (value > scores[1, rows])
        second[rows] = np.where(first_better, index[rows], np.where(second_better, at + left, second[rows]))
        scores[1, rows] = np.where(first_better, scores[0, rows], np.where(second_better, value, scores[1, rows]))
        index[rows] = np.where(first_better, at + left, index[rows])
        scores[0, rows] = np.where(first_better, value, scores[0, rows])
        if place == 0:
            block = np.array(block)
            np.put_along_axis(block, at[:, None], -np.inf, axis=1)
