"""CMA-ES over whole batches for the ordered parameters; words follow the best so far.

The strategy is rebuilt from what was told: each batch is one generation, ranked by rules first, so only ranks count
and a penalty never bends the model.
"""

from typing import Any

import numpy as np

from codesign.columns import rows_of
from codesign.study.coding import Coding
from codesign.study.samplers import SobolSampler, Told, best_first
from codesign.units import Array


class CmaSampler:
    """Covariance matrix adaptation in the unit cube."""

    def __init__(
        self, coding: Coding, seed: int, *, batch_count: int, sigma: float = 0.25, elite_count: int = 24
    ) -> None:
        self._coding = coding
        self._startup = SobolSampler(coding, seed)
        self._batch_count = max(batch_count, 4)
        self._sigma = sigma
        self._elite_count = elite_count
        self._columns = np.flatnonzero(coding.ordered)
        self._strategy: Any = None
        self._elite: Told | None = None

    def observe(self, told: Told) -> None:
        """One generation."""
        both = told if self._elite is None else self._elite.joined(told)
        self._elite = rows_of(both, np.sort(best_first(both)[: self._elite_count]))
        if len(self._columns) < 2:
            return
        if self._strategy is None:
            best = self._coding.filled_unit(self._elite.internal)[int(best_first(self._elite)[0])]
            self._strategy = self._fresh(best[self._columns])
        elif len(told.internal) >= self._batch_count:
            order = best_first(told)[: self._strategy.population_size]
            points = self._coding.filled_unit(told.internal)[:, self._columns]
            self._strategy.tell([(points[i], float(place)) for place, i in enumerate(order)])
            if self._strategy.should_stop():
                best = self._coding.filled_unit(self._elite.internal)[int(best_first(self._elite)[0])]
                self._strategy = self._fresh(best[self._columns])

    def suggest(self, rng: np.random.Generator, first_index: int, count: int) -> Array:
        """A generation of the strategy; words by the frequencies of the elite."""
        if self._elite is None or (self._strategy is None and len(self._columns) >= 2):
            return self._startup.suggest(rng, first_index, count)
        elite = self._coding.filled_unit(self._elite.internal)
        unit = elite[rng.integers(0, len(elite), (count, elite.shape[1])), np.arange(elite.shape[1])[None, :]]
        unit = np.where(rng.random(unit.shape) < 0.1, rng.random(unit.shape), unit)
        if self._strategy is not None:
            self._strategy._rng = np.random.RandomState(int(rng.integers(0, 2**32)))
            for i in range(count):
                unit[i, self._columns] = self._strategy.ask()
        return unit

    def _fresh(self, mean: Array) -> Any:
        from cmaes import CMA

        count = len(mean)
        return CMA(
            mean=np.clip(mean, 0.0, 1.0),
            sigma=self._sigma,
            bounds=np.tile([0.0, 1.0], (count, 1)),
            seed=0,
            population_size=self._batch_count,
        )
