"""One range of a sweep, as a worker computes it: candidates from indices, numbers, a Parquet file, a glance at it."""

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from codesign.study.coding import Coding
from codesign.study.fronts import crowding, excess, front
from codesign.study.parameters import Choices, IntRange, Parameter
from codesign.study.problem_protocol import Problem, Screener, fidelity_of
from codesign.study.samplers import grid, sobol, uniform
from codesign.units import Array

METHODS = ("grid", "random", "sobol")
_BINS = 16  # of a continuous range in the marginals
_FRONT_MOST = 400


@dataclass(frozen=True, slots=True)
class Range:
    """What a worker needs to know to make its own candidates."""

    method: str
    seed: int
    start: int
    stop: int
    float_levels: int = 1
    skip: tuple[int, ...] = ()  # indices known to kill workers


@dataclass(frozen=True, slots=True, eq=False)
class Screened:
    """A finished range: the bytes of its Parquet file, their hash and a summary."""

    data: bytes
    sha256: str
    summary: dict[str, Any]


def points(coding: Coding, span: Range) -> Array:
    """Internal rows of a range of indices; the same whatever ranges a sweep is cut into."""
    count, dimensions = span.stop - span.start, len(coding.names)
    if span.method == "grid":
        return coding.decode(grid(coding, span.seed, span.start, count, span.float_levels))
    if span.method == "sobol":
        return coding.decode(coding.warp(sobol(dimensions, span.seed, span.start, count)))
    return coding.decode(coding.warp(uniform(dimensions, span.seed, span.start, count)))


def screen_range(problem: Problem, span: Range, keep: int) -> Screened:
    """Candidates, numbers, file and summary of one range."""
    coding = Coding(problem.parameters)
    internal = points(coding, span)
    index = np.arange(span.start, span.stop)
    alive = ~np.isin(index, span.skip)
    values = np.full((len(index), len(problem.objectives)), np.nan)
    constraints = np.full((len(index), len(problem.rules)), np.nan)
    if alive.any():
        values[alive], constraints[alive] = numbers(problem, coding, internal[alive])
    data = _parquet(problem, coding, index, internal, values, constraints)
    summary = summarise(problem, coding, index[alive], internal[alive], values[alive], constraints[alive], keep)
    summary["failed"] = [int(i) for i in index[~alive]]
    return Screened(data, hashlib.sha256(data).hexdigest(), summary)


def numbers(problem: Problem, coding: Coding, internal: Array) -> tuple[Array, Array]:
    """Objectives and constraints, by columns where the problem can."""
    if isinstance(problem, Screener):
        return problem.screen(coding.columns(internal))
    answer = problem.evaluate(coding.rows(internal))
    return answer.values, answer.constraints


def summarise(
    problem: Problem,
    coding: Coding,
    index: NDArray[np.int64],
    internal: Array,
    values: Array,
    constraints: Array,
    keep: int,
) -> dict[str, Any]:
    """Best rows, Pareto rows, effect of every parameter on its own, and which rules refuse."""
    signs = np.array([1.0 if d == "minimize" else -1.0 for _, d in problem.objectives])
    costs, violation = values * signs, excess(constraints)
    kept = violation <= 0.0
    top = np.lexsort((index, costs[:, 0], violation))[:keep]
    on_front = np.flatnonzero(kept)[front(costs[kept])]
    if len(on_front) > _FRONT_MOST:
        on_front = on_front[np.argsort(-crowding(costs[on_front]), kind="stable")[:_FRONT_MOST]]
    return {
        "count": len(index),
        "feasible": int(kept.sum()),
        "top": _entries(coding, index, internal, values, violation, top),
        "front": _entries(coding, index, internal, values, violation, on_front),
        "marginals": {
            name: _marginal(coding, i, internal[:, i], costs[:, 0], kept) for i, name in enumerate(coding.names)
        },
        "refusals": {r: int(n) for r, n in zip(problem.rules, (constraints > 0.0).sum(axis=0), strict=True)},
    }


def _entries(
    coding: Coding,
    index: NDArray[np.int64],
    internal: Array,
    values: Array,
    violation: Array,
    chosen: NDArray[np.intp],
) -> list[dict[str, Any]]:
    rows = coding.rows(internal[chosen])
    return [
        {"index": int(index[i]), "row": row, "values": values[i].tolist(), "excess": float(violation[i])}
        for i, row in zip(chosen, rows, strict=True)
    ]


def _marginal(coding: Coding, i: int, internal: Array, cost: Array, kept: NDArray[np.bool_]) -> list[list[float]]:
    """Per level: count, feasible count, sum of feasible costs, best feasible cost (or -1 count)."""
    levels = int(coding.levels[i]) or _BINS
    levels = min(levels, _BINS) if levels > 64 else levels
    present = ~np.isnan(internal)
    unit = np.nan_to_num(coding.unit_column(i, internal))
    cell = np.minimum((unit * levels).astype(np.int64), levels - 1)
    count = np.bincount(cell[present], minlength=levels)
    good = present & kept
    feasible = np.bincount(cell[good], minlength=levels)
    total = np.bincount(cell[good], weights=cost[good], minlength=levels)
    best = np.full(levels, np.inf)
    np.minimum.at(best, cell[good], cost[good])
    best = np.where(np.isfinite(best), best, 0.0)
    return [list(map(float, entry)) for entry in zip(count, feasible, total, best, strict=True)]


def _parquet(
    problem: Problem, coding: Coding, index: NDArray[np.int64], internal: Array, values: Array, constraints: Array
) -> bytes:
    arrays: dict[str, pa.Array] = {"index": pa.array(index)}
    for i, (name, parameter) in enumerate(coding.parameters.items()):
        arrays[name] = _arrow(parameter, internal[:, i])
    for k, (metric, _) in enumerate(problem.objectives):
        arrays[f"value:{metric}"] = pa.array(values[:, k])
    for r, rule in enumerate(problem.rules):
        arrays[f"excess:{rule}"] = pa.array(constraints[:, r], from_pandas=True)  # not judged: null
    sink = io.BytesIO()
    marked = pa.table(arrays).replace_schema_metadata({"fidelity": fidelity_of(problem)})
    pq.write_table(marked, sink, compression="zstd")
    return sink.getvalue()


def _arrow(parameter: Parameter, internal: Array) -> pa.Array:
    absent = np.isnan(internal)
    if isinstance(parameter, Choices):
        words: Sequence[Any] = parameter.values
        if any(isinstance(v, str) for v in words):
            words = [str(v) for v in words]
        place = pa.array(np.where(absent, 0, internal).astype(np.int32), mask=absent)
        return pa.DictionaryArray.from_arrays(place, pa.array(words))
    if isinstance(parameter, IntRange):
        return pa.array(np.where(absent, 0, internal).astype(np.int64), mask=absent)
    return pa.array(internal, mask=absent)


def merge(summaries: Sequence[Mapping[str, Any]], objectives: Sequence[tuple[str, str]], keep: int) -> dict[str, Any]:
    """The summary of several ranges together."""
    signs = np.array([1.0 if d == "minimize" else -1.0 for _, d in objectives])
    top = sorted(
        (entry for s in summaries for entry in s["top"]),
        key=lambda e: (e["excess"], e["values"][0] * float(signs[0]), e["index"]),
    )
    every = [entry for s in summaries for entry in s["front"]]
    costs = np.array([e["values"] for e in every]).reshape(len(every), len(signs)) * signs
    on_front = [e for e, kept in zip(every, front(costs), strict=True) if kept]
    marginals: dict[str, list[list[float]]] = {}
    for summary in summaries:
        for name, levels in summary["marginals"].items():
            here = marginals.setdefault(name, [[0.0, 0.0, 0.0, 0.0] for _ in levels])
            for one, more in zip(here, levels, strict=True):
                best = more[3] if not one[1] else one[3] if not more[1] else min(one[3], more[3])
                one[:] = [one[0] + more[0], one[1] + more[1], one[2] + more[2], best]
    refusals: dict[str, int] = {}
    for summary in summaries:
        for rule, n in summary["refusals"].items():
            refusals[rule] = refusals.get(rule, 0) + n
    return {
        "count": sum(s["count"] for s in summaries),
        "feasible": sum(s["feasible"] for s in summaries),
        "failed": [i for s in summaries for i in s["failed"]],
        "top": top[:keep],
        "front": on_front,
        "marginals": marginals,
        "refusals": refusals,
    }
