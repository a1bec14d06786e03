"""What to try next: first rows, then the sampler, never the same suggestion twice."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from codesign.study.coding import Coding
from codesign.study.policy import build
from codesign.study.problem_protocol import Foreseer
from codesign.study.samplers import Told, batch_generator, grid, grid_size
from codesign.units import Array

_REDRAWS = 6
_ENUMERABLE = 2_000_000
_STRIDE = 1024


class Suggester(Protocol):
    """Asks one batch after another; told batches in order."""

    def observe(self, told: Told, state: str | None) -> None:
        """Learn from a finished batch and what the sampler kept of it."""
        ...

    def suggest(self, batch_index: int, first_index: int, count: int) -> tuple[Array, str | None]:
        """Internal rows and what the sampler wants kept with them."""
        ...


class ArraySuggester:
    """A sampler of ours behind the interface that samplers of Optuna share."""

    def __init__(
        self, coding: Coding, spec: Mapping[str, Any], seed: int, batch_count: int, foreseer: Foreseer | None
    ) -> None:
        self._coding = coding
        self._seed = seed
        self._sampler = build(spec, coding, seed, batch_count, foreseer)

    def observe(self, told: Told, state: str | None) -> None:  # noqa: ARG002 - every sampler's form
        """Learn from a finished batch."""
        self._sampler.observe(told)

    def suggest(self, batch_index: int, first_index: int, count: int) -> tuple[Array, str | None]:
        """Rows drawn with the generator of this batch."""
        rng = batch_generator(self._seed, batch_index)
        return self._coding.decode(self._sampler.suggest(rng, first_index, count)), None


class Search:
    """The sequence of batches of one study: a function of the space, the seed and what was told, nothing else."""

    def __init__(self, coding: Coding, suggester: Suggester, seed: int, batch_count: int, first_rows: Array) -> None:
        self._coding = coding
        self._suggester = suggester
        self._seed = seed
        self._batch_count = batch_count
        keys = coding.keys(first_rows)
        self._first_rows = first_rows[sorted({key: i for i, key in reversed(list(enumerate(keys)))}.values())]
        self._seen: set[bytes] = set()
        self._cursor = 0

    def remember(self, internal: Array) -> None:
        """Count rows as tried; asked rows of batches that this object did not ask itself."""
        self._seen.update(self._coding.keys(internal))

    def observe(self, told: Told, state: str | None) -> None:
        """Learn from the next batch, in the order of batches."""
        if len(told.internal):
            self._suggester.observe(told, state)

    def ask(self, batch_index: int) -> tuple[Array, str | None]:
        """The rows of a batch; fewer than a full batch, or none, when the space is used up."""
        first_index = batch_index * self._batch_count
        rows = self._fresh(self._first_rows[first_index : first_index + self._batch_count])
        state = None
        if len(rows) < self._batch_count:
            drawn, state = self._suggester.suggest(batch_index, first_index, self._batch_count)
            if state is not None:  # a sampler of Optuna's binds its notes to its rows: all of them or none
                more = self._fresh(drawn)
                return (more, state) if len(more) == len(drawn) else (self._filled(more, batch_index), None)
            rows = self._joined(rows, drawn)
        return self._filled(rows, batch_index), state

    def _filled(self, rows: Array, batch_index: int) -> Array:
        """Top up with further draws, then with anything never tried."""
        attempt = 1
        while len(rows) < self._batch_count and attempt <= _REDRAWS:
            rng = np.random.default_rng([self._seed, 4, batch_index, attempt])
            unit = self._coding.warp(rng.random((2 * self._batch_count, len(self._coding.names))))
            if len(rows) and attempt < _REDRAWS:  # near what the sampler liked
                parents = self._coding.unit(rows)[rng.integers(0, len(rows), len(unit))]
                unit = np.where((rng.random(unit.shape) < 0.75) & ~np.isnan(parents), parents, unit)
            rows = self._joined(rows, self._coding.decode(unit))
            attempt += 1
        size = grid_size(self._coding)
        if (self._coding.levels == 0).any() or size > _ENUMERABLE:
            return rows
        while len(rows) < self._batch_count and self._cursor < size:  # every cell before the cursor was tried
            count = min(_STRIDE, size - self._cursor)
            rows = self._joined(rows, self._coding.decode(grid(self._coding, self._seed, self._cursor, count)))
            self._cursor += count if len(rows) < self._batch_count else 0
        return rows

    def _joined(self, rows: Array, more: Array) -> Array:
        return np.concatenate([rows, self._fresh(more, self._batch_count - len(rows))])

    def _fresh(self, internal: Array, most: int | None = None) -> Array:
        """Rows not tried before, marked as tried."""
        kept: list[int] = []
        for i, key in enumerate(self._coding.keys(internal)):
            if len(kept) == most:
                break
            if key not in self._seen:
                self._seen.add(key)
                kept.append(i)
        return internal[kept]
