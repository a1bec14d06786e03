"""Tree-structured Parzen estimator over whole batches: one model per batch, suggestions drawn and judged as arrays.

Trials are split into the good tenth and the rest; each part becomes a density; suggestions are drawn from the good
density and, of a few each time, the one with the highest ratio good / rest is kept. Within a batch every suggestion
counts as one bad trial more for those that follow (a constant liar), so that a batch spreads. The model sees a window
of history, the best and the most recent, so a suggestion never costs more than a stated time.
"""

import math

import numpy as np

from codesign.study.coding import Coding
from codesign.study.parzen import Mixture
from codesign.study.samplers import History, SobolSampler, Told, best_first
from codesign.units import Array


class TpeSampler:
    """Multivariate, graded by rules, for one to three objectives."""

    def __init__(
        self,
        coding: Coding,
        seed: int,
        *,
        startup_count: int,
        candidates_count: int = 24,
        window_count: int = 600,
        good_frac: float = 0.1,
        good_most_count: int | None = None,
    ) -> None:
        self._coding = coding
        self._startup = SobolSampler(coding, seed)
        self._history = History(startup_count, window_count)
        self._candidates_count = candidates_count
        self._good_frac = good_frac
        self._good_most_count = good_most_count

    def observe(self, told: Told) -> None:
        """Add a batch; what falls out of the window is forgotten."""
        self._history.add(told)

    def suggest(self, rng: np.random.Generator, first_index: int, count: int) -> Array:
        """Draw from the good density, keep what the ratio likes best."""
        told = self._history.learnt
        if told is None:
            return self._startup.suggest(rng, first_index, count)
        unit = self._coding.unit(told.internal)[best_first(told)]  # best first
        good, rest = self._split(unit, told.costs.shape[1])
        drawn = self._settled(good.draw(rng, count * self._candidates_count))
        return self._chosen(drawn, good.log_density(drawn), rest, count)

    def _split(self, unit: Array, objectives_count: int) -> tuple[Mixture, Mixture]:
        """Densities of the good and of the rest, of points sorted best first.

        With one objective the good are at most 25: more would blur the best. A front needs as many as it has.
        """
        most = self._good_most_count or (25 if objectives_count == 1 else len(unit))
        share = math.ceil(self._good_frac * min(self._history.count, len(unit)))
        good_count = max(1, min(share, most, len(unit) - 1))
        return Mixture(self._coding, unit[:good_count]), Mixture(self._coding, unit[good_count:])

    def _settled(self, unit: Array) -> Array:
        """Points moved to the middle of their cells; parameters whose condition fails become NaN."""
        return self._coding.unit(self._coding.decode(unit))

    def _chosen(self, drawn: Array, log_good: Array, rest: Mixture, count: int) -> Array:
        """Best of each group in turn; every choice counts as one bad trial more for the groups that follow."""
        per = self._candidates_count
        log_rest = rest.log_density(drawn)
        lies = np.zeros(len(drawn))  # density of the lies relative to the density of the rest, times its kernels
        chosen = np.empty((count, drawn.shape[1]))
        for j in range(count):
            group = slice(j * per, (j + 1) * per)
            ratio = log_good[group] - log_rest[group] - np.log1p(lies[group] / (rest.count + 1.0))
            chosen[j] = drawn[group][int(np.argmax(ratio))]
            later = slice((j + 1) * per, None)
            if j + 1 < count:
                kernel = rest.log_kernel_at(drawn[later], chosen[j])
                lies[later] = lies[later] + np.exp(np.clip(kernel - log_rest[later], -50.0, 50.0))
        return np.where(np.isnan(chosen), 0.5, chosen)
