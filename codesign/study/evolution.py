"""NSGA-II and NSGA-III over whole batches: the survivors of all batches so far breed the next one, as arrays.

Survivors are folded batch by batch: the best of (survivors + new batch), so state and cost do not grow with history.
Rules come first: a smaller excess beats a larger one whatever the objectives say.
"""

import math
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from codesign.columns import rows_of
from codesign.study.coding import Coding
from codesign.study.fronts import ranks
from codesign.study.samplers import Sampler, SobolSampler, Told, best_first
from codesign.units import Array


class EvolutionSampler:
    """Tournament, uniform crossover with blending, mutation by neighbours; elitist survival."""

    def __init__(
        self,
        coding: Coding,
        seed: int,
        *,
        spread: Literal["nsga2", "nsga3"] = "nsga2",
        population_count: int = 48,
        crossover_prob: float = 0.9,
        swap_prob: float = 0.5,
        mutations_count: float = 1.5,
        startup: Sampler | None = None,
        startup_count: int = 0,
    ) -> None:
        """``startup`` makes the first ``startup_count`` suggestions, at least a population of them; else Sobol does."""
        self._coding = coding
        self._startup = startup or SobolSampler(coding, seed)
        self._startup_count = max(startup_count, population_count)
        self._spread = spread
        self._population_count = population_count
        self._crossover_prob = crossover_prob
        self._swap_prob = swap_prob
        self._mutation_prob = min(1.0, mutations_count / len(coding.names))
        self._alive: Told | None = None
        self._seen_count = 0

    def observe(self, told: Told) -> None:
        """Let the new batch compete with the survivors."""
        if self._seen_count < self._startup_count:
            self._startup.observe(told)
        self._seen_count += len(told.internal)
        whole = told if self._alive is None else self._alive.joined(told)
        self._alive = rows_of(whole, survivors(whole, self._population_count, self._spread))

    def suggest(self, rng: np.random.Generator, first_index: int, count: int) -> Array:
        """Children of the survivors."""
        if self._alive is None or self._seen_count < self._startup_count:
            return self._startup.suggest(rng, first_index, count)
        unit = self._coding.filled_unit(self._alive.internal)
        fitness = np.empty(len(unit), dtype=np.int64)
        fitness[best_first(self._alive)] = np.arange(len(unit))
        mother, father = unit[_tournament(rng, fitness, count)], unit[_tournament(rng, fitness, count)]
        return self._mutated(rng, self._crossed(rng, mother, father))

    def _crossed(self, rng: np.random.Generator, mother: Array, father: Array) -> Array:
        swap = rng.random(mother.shape) < self._swap_prob
        blend = rng.random(mother.shape) * 1.5 - 0.25  # ordered parameters may land between and slightly beyond
        between = np.clip(mother + blend * (father - mother), 0.0, 1.0)
        mixed = np.where(rng.random(mother.shape) < 0.5, between, father)
        child = np.where(swap, np.where(self._coding.ordered[None, :], mixed, father), mother)
        return np.where(rng.random((len(mother), 1)) < self._crossover_prob, child, mother)

    def _mutated(self, rng: np.random.Generator, child: Array) -> Array:
        hit = rng.random(child.shape) < self._mutation_prob
        anywhere = rng.random(child.shape)
        near = rng.laplace(0.0, 1.0, child.shape) * np.where(self._coding.levels > 0, 0.0, 0.08)[None, :]
        cells = np.maximum(self._coding.levels, 1)[None, :]
        step = rng.geometric(0.5, child.shape) * np.where(rng.random(child.shape) < 0.5, -1.0, 1.0) / cells
        moved = child + np.where(self._coding.levels[None, :] > 0, step, near)
        moved = np.where((moved < 0.0) | (moved > 1.0), anywhere, moved)
        far = (rng.random(child.shape) < 0.25) | ~self._coding.ordered[None, :]
        return np.where(hit, np.where(far, anywhere, moved), child)


def survivors(told: Told, count: int, spread: str) -> NDArray[np.int64]:
    """Indices, in rising order, of those that live on; the same design twice lives once."""
    _, first = np.unique(np.nan_to_num(told.internal, nan=-1e300), axis=0, return_index=True)
    unique = np.sort(first)
    if len(unique) <= count:
        return unique
    kept = rows_of(told, unique)
    if spread == "nsga2" or kept.costs.shape[1] == 1:
        return np.sort(unique[best_first(kept)[:count]])
    rank = ranks(kept.costs, kept.violation)
    last = int(np.sort(rank)[count - 1])
    sure, open_ = np.flatnonzero(rank < last), np.flatnonzero(rank == last)
    chosen = _niched(kept.costs, sure, open_, count - len(sure))
    return np.sort(unique[np.concatenate([sure, chosen])])


def _niched(costs: Array, sure: NDArray[np.int64], open_: NDArray[np.int64], missing: int) -> NDArray[np.int64]:
    """Fill the last places with the candidates nearest to the reference directions that have the fewest."""
    members = np.concatenate([sure, open_])
    low = costs[members].min(axis=0)
    span = np.maximum(costs[members].max(axis=0) - low, 1e-300)
    scaled = (costs - low) / span
    directions = _directions(costs.shape[1], max(missing + len(sure), 4))
    length = np.zeros((len(costs), len(directions)))
    for k in range(costs.shape[1]):
        length = length + scaled[:, None, k] * directions[None, :, k]
    squared = np.zeros_like(length)
    for k in range(costs.shape[1]):
        squared = squared + (scaled[:, None, k] - length * directions[None, :, k]) ** 2
    niche, distance = squared.argmin(axis=1), squared.min(axis=1)
    taken = np.bincount(niche[sure], minlength=len(directions))
    waiting = open_.tolist()
    chosen: list[int] = []
    while len(chosen) < missing:
        best = min(waiting, key=lambda i: (taken[niche[i]], distance[i], i))
        waiting.remove(best)
        chosen.append(best)
        taken[niche[best]] += 1
    return np.array(chosen, dtype=np.int64)


def _directions(objectives_count: int, least_count: int) -> Array:
    """Evenly spread unit vectors of the positive corner."""
    parts = 1
    while math.comb(parts + objectives_count - 1, objectives_count - 1) < least_count:
        parts += 1
    points = []
    for bars in combinations(range(parts + objectives_count - 1), objectives_count - 1):
        edges = (-1, *bars, parts + objectives_count - 1)
        points.append([(edges[i + 1] - edges[i] - 1) / parts for i in range(objectives_count)])
    raw = np.array(points)
    return np.asarray(raw / np.sqrt((raw * raw).sum(axis=1))[:, None])


def _tournament(rng: np.random.Generator, fitness: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    pairs = rng.integers(0, len(fitness), (count, 2))
    return np.where(fitness[pairs[:, 0]] <= fitness[pairs[:, 1]], pairs[:, 0], pairs[:, 1])
