"""Samplers as arrays: a batch of suggestions in one call, rebuilt at will from what was told.

A sampler never remembers anything but what it was told, in the order of batches, and draws from a generator made anew
for every batch from (study seed, batch index). So a resumed study goes on exactly where it was.
"""

import math
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from codesign.columns import rows_of
from codesign.study.coding import Coding
from codesign.study.fronts import crowding, ranks
from codesign.units import Array


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """One finished batch: suggestions, objectives turned so that lower is better, total excess over the rules."""

    internal: Array  # (n, d)
    costs: Array  # (n, k), finite
    violation: Array  # (n,)

    def joined(self, *later: "Told") -> "Told":
        """This and later batches together."""
        every = (self, *later)
        return Told(
            internal=np.concatenate([t.internal for t in every]),
            costs=np.concatenate([t.costs for t in every]),
            violation=np.concatenate([t.violation for t in every]),
        )

    def windowed(self, most_count: int) -> "Told":
        """The best quarter of a window and the most recent, in their order; all where it is wide enough."""
        if len(self.internal) <= most_count:
            return self
        keep = np.zeros(len(self.internal), dtype=bool)
        keep[best_first(self)[: most_count // 4]] = True
        keep[np.flatnonzero(~keep)[int(keep.sum()) - most_count :]] = True
        return rows_of(self, keep)


class History:
    """What a sampler with a window knows: the best quarter of it and the most recent, and how many there ever were."""

    def __init__(self, startup_count: int, window_count: int) -> None:
        self._startup_count, self._window_count = startup_count, window_count
        self._told: Told | None = None
        self.count = 0

    def add(self, told: Told) -> None:
        """A finished batch; what falls out of the window is forgotten."""
        self.count += len(told.internal)
        whole = told if self._told is None else self._told.joined(told)
        self._told = whole.windowed(self._window_count)

    @property
    def learnt(self) -> Told | None:
        """What there is to learn from, once it is enough to believe a model of it."""
        if self._told is None or self.count < self._startup_count or len(self._told.internal) < 3:
            return None
        return self._told


class Sampler(Protocol):
    """Learns from batches, suggests batches."""

    def observe(self, told: Told) -> None:
        """Learn from a finished batch."""
        ...

    def suggest(self, rng: np.random.Generator, first_index: int, count: int) -> Array:
        """Unit points (count, d) for the suggestions from ``first_index`` on."""
        ...


class RandomSampler:
    """Independent draws that follow the priors of the space."""

    def __init__(self, coding: Coding) -> None:
        self._coding = coding

    def observe(self, told: Told) -> None:
        """Nothing to learn."""

    def suggest(self, rng: np.random.Generator, first_index: int, count: int) -> Array:  # noqa: ARG002 - every sampler's form
        """Uniform points, bent by the priors."""
        return self._coding.warp(rng.random((count, len(self._coding.names))))


class SobolSampler:
    """Scrambled Sobol points: they fill the space evenly and follow its priors."""

    def __init__(self, coding: Coding, seed: int) -> None:
        self._coding = coding
        self._seed = seed

    def observe(self, told: Told) -> None:
        """Nothing to learn."""

    def suggest(self, rng: np.random.Generator, first_index: int, count: int) -> Array:  # noqa: ARG002 - every sampler's form
        """The points at these indices of the sequence."""
        return self._coding.warp(sobol(len(self._coding.names), self._seed, first_index, count))


class ExhaustiveSampler:
    """Every suggestion of a small space once, in an order that visits all its regions early."""

    def __init__(self, coding: Coding, seed: int) -> None:
        self._coding = coding
        self._seed = seed

    def observe(self, told: Told) -> None:
        """Nothing to learn."""

    def suggest(self, rng: np.random.Generator, first_index: int, count: int) -> Array:  # noqa: ARG002 - every sampler's form
        """The grid points at these places of the order."""
        return grid(self._coding, self._seed, first_index, count)


def sobol(dimensions_count: int, seed: int, first_index: int, count: int) -> Array:
    """Points first_index, first_index + 1, ... of one scrambled Sobol sequence, whatever the split into calls."""
    from scipy.stats import qmc  # half a second to import: only where it is used

    engine = qmc.Sobol(dimensions_count, scramble=True, bits=32, rng=np.random.default_rng(_seed(seed, 1)))
    if first_index:
        engine.fast_forward(first_index)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a batch is rarely a power of two; the sequence does not mind
        return np.asarray(engine.random(count))


def uniform(dimensions_count: int, seed: int, first_index: int, count: int) -> Array:
    """Independent uniform points by index: row i is the same whatever the split into calls."""
    blocks = -(-dimensions_count // 4)  # Philox gives four numbers per step of its counter
    bits = np.random.Philox(key=_seed(seed, 2))
    bits.advance(first_index * blocks)
    return np.random.Generator(bits).random((count, 4 * blocks))[:, :dimensions_count]


def grid(coding: Coding, seed: int, first_index: int, count: int, float_levels: int = 1) -> Array:
    """Points of the full grid in a scattered order: place i holds cell ``(start + i * stride) mod size``."""
    levels = [int(n) or float_levels for n in coding.levels]
    size, stride, start = _walk(tuple(levels), seed)
    cells: NDArray[Any] = np.array([(start + (first_index + i) * stride) % size for i in range(count)])
    unit = np.empty((count, len(levels)))
    for j in range(len(levels) - 1, -1, -1):  # whole numbers of any size where 64 bits do not hold the grid
        unit[:, j] = ((cells % levels[j]).astype(np.float64) + 0.5) / levels[j]
        cells = cells // levels[j]
    return unit


def grid_size(coding: Coding, float_levels: int = 1) -> int:
    """Number of cells of the grid, conditions not counted."""
    size = 1
    for n in coding.levels:
        size *= int(n) or float_levels
    return size


@lru_cache(maxsize=64)
def _walk(levels: tuple[int, ...], seed: int) -> tuple[int, int, int]:
    size = math.prod(levels)
    stride = max(1, int(size * 0.6180339887498949))
    while math.gcd(stride, size) != 1:
        stride += 1
    start = int(np.random.default_rng(_seed(seed, 3)).integers(0, min(size, 2**62)))
    return size, stride, start


def _seed(seed: int, stream: int) -> int:
    """A seed of its own for each use, so that two uses never share draws."""
    return int(np.random.SeedSequence([seed, stream]).generate_state(2, np.uint64)[0])


def batch_generator(seed: int, batch_index: int) -> np.random.Generator:
    """The generator of one batch."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, 0, batch_index])))


def best_first(told: Told) -> NDArray[np.int64]:
    """Indices from the fittest on: by front, then the lonelier, then the older."""
    rank = ranks(told.costs, told.violation)
    lonely = np.zeros(len(rank))
    if told.costs.shape[1] > 1:
        for level in np.unique(rank):
            lonely[rank == level] = crowding(told.costs[rank == level])
    return np.lexsort((np.arange(len(rank)), -lonely, rank))
