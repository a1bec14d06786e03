"""Order among candidates with one to three objectives and graded rules. Lower is better in every column here."""

import numpy as np
from numpy.typing import NDArray

from codesign.units import Array


def excess(constraints: Array) -> Array:
    """How far a candidate breaks the rules in total: the sum of positive excesses, added rule by rule.

    NaN is a rule that was not judged and counts for nothing.

    >>> excess(np.array([[-1.0, 0.0], [0.5, 2.0], [0.5, np.nan]])).tolist()
    [0.0, 2.5, 0.5]
    """
    total = np.zeros(len(constraints))
    for r in range(constraints.shape[1]):
        total = total + np.fmax(constraints[:, r], 0.0)
    return total


def ranks(costs: Array, violation: Array) -> NDArray[np.int64]:
    """Front number of every row; 0 is beaten by nobody. A smaller violation beats a larger one whatever it costs.

    >>> ranks(np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0], [0.0, 0.0]]), np.array([0.0, 0.0, 0.0, 1.0])).tolist()
    [0, 0, 1, 2]
    """
    rank = np.zeros(len(costs), dtype=np.int64)
    broken = violation > 0.0
    if costs.shape[1] == 1:
        levels, place = np.unique(costs[~broken, 0], return_inverse=True)
        rank[~broken] = place
        top = len(levels)
    else:
        rank[~broken] = _peeled(costs[~broken])
        top = int(rank[~broken].max(initial=-1)) + 1
    _, place = np.unique(violation[broken], return_inverse=True)
    rank[broken] = top + place
    return rank


def _peeled(costs: Array) -> NDArray[np.int64]:
    beats = _dominance(costs, costs)
    beaten_by = beats.sum(axis=0)
    rank = np.full(len(costs), -1, dtype=np.int64)
    level = 0
    while (rank < 0).any():
        free = (beaten_by == 0) & (rank < 0)
        rank[free] = level
        beaten_by = beaten_by - beats[free].sum(axis=0)
        level += 1
    return rank


def _dominance(one: Array, other: Array) -> NDArray[np.bool_]:
    """(a, b): row a of one is no worse than row b of the other everywhere and better somewhere."""
    no_worse = np.ones((len(one), len(other)), dtype=bool)
    better = np.zeros((len(one), len(other)), dtype=bool)
    for k in range(one.shape[1]):
        no_worse &= one[:, None, k] <= other[None, :, k]
        better |= one[:, None, k] < other[None, :, k]
    return no_worse & better


def front(costs: Array) -> NDArray[np.bool_]:
    """Mark the rows that no row beats; equal rows are all kept. Cheap for a hundred thousand rows.

    >>> front(np.array([[1.0, 2.0], [2.0, 1.0], [2.0, 2.0]])).tolist()
    [True, True, False]
    """
    kept = np.zeros(len(costs), dtype=bool)
    if not len(costs):
        return kept
    order = np.lexsort(costs.T[::-1])
    members: list[int] = []
    for start in range(0, len(order), 512):  # whoever beats a row sorts before it
        block = order[start : start + 512]
        if members:
            block = block[~_dominance(costs[members], costs[block]).any(axis=0)]
        block = block[~_dominance(costs[block], costs[block]).any(axis=0)]
        members += block.tolist()
    kept[members] = True
    return kept


def crowding(costs: Array) -> Array:
    """Distance of each row to its neighbours within one front; ends are infinitely far."""
    distance = np.zeros(len(costs))
    for k in range(costs.shape[1]):
        order = np.argsort(costs[:, k], kind="stable")
        sorted_costs = costs[order, k]
        span = sorted_costs[-1] - sorted_costs[0]
        gap = np.full(len(costs), np.inf)
        if len(costs) > 2 and span > 0.0:
            gap[1:-1] = (sorted_costs[2:] - sorted_costs[:-2]) / span
        elif len(costs) > 2:
            gap[1:-1] = 0.0
        distance[order] = distance[order] + gap
    return distance


def hypervolume(costs: Array, reference: Array) -> float:
    """Volume between a set of rows and a reference point they are to beat, for one to three objectives.

    >>> hypervolume(np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([3.0, 3.0]))
    3.0
    """
    inside = costs[(costs < reference).all(axis=1)]
    inside = inside[front(inside)]
    if not len(inside):
        return 0.0
    if costs.shape[1] == 1:
        return float(reference[0] - inside[:, 0].min())
    if costs.shape[1] == 2:
        return _area(inside, reference)
    order = np.argsort(inside[:, 2], kind="stable")
    inside = inside[order]
    floors = np.append(inside[:, 2], reference[2])
    return float(
        sum(
            _area(inside[: i + 1, :2], reference[:2]) * (floors[i + 1] - floors[i])
            for i in range(len(inside))
            if floors[i + 1] > floors[i]
        )
    )


def _area(costs: Array, reference: Array) -> float:
    order = np.lexsort((costs[:, 1], costs[:, 0]))
    x, y = costs[order, 0], np.minimum.accumulate(costs[order, 1])
    right = np.append(x[1:], reference[0])
    return float(((right - x) * (reference[1] - y)).sum())
