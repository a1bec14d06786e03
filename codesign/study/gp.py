"""Bayesian optimisation over whole batches: a Gaussian process of the log cost, suggestions where it expects most gain.

The process sees a design by its parameters and, where the problem foresees them, by the traits of the machine they
make: its rates, latencies, capacities, watts and price. Designs that break a rule known beforehand are not suggested.

With several objectives every suggestion has an aim of its own: other weights of the objectives (Knowles 2006).

Within a batch every suggestion counts as told with the cost expected there, so that a batch spreads. The model sees a
window of history, the best and the most recent, so a suggestion never costs more than a stated time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from threadpoolctl import ThreadpoolController

from codesign.study.coding import Coding
from codesign.study.foresight import Sight, settled
from codesign.study.gaussian import GaussianProcess
from codesign.study.problem_protocol import Foreseer
from codesign.study.samplers import History, SobolSampler, Told
from codesign.units import Array

# Sums of matrices on several threads are put together in another order: other bits on another number of cores.
_BLAS = ThreadpoolController()

_PARENTS = 8  # best points whose neighbourhood is searched first
_GENERATIONS, _BRED, _FREE = 4, 512, 100  # points looked at for a batch; of the first generation so many are anywhere
_KEPT = 256  # points left at the end at least, from which the batch is chosen
_HEIRS = 10  # most promising points, whose neighbourhood is the next generation
_RATES = (0.0, 0.1, 0.2, 0.4, 0.6)  # share of the parameters moved besides one that always moves
_LATER_RATES = _RATES[:3]
_STEP = 0.15  # of the range, standard deviation
_STEP_FRAC = 0.6  # of the moves of an ordered parameter; the others are drawn anew
# Suggestions of a batch are careful, plain and bold in turn: the model is taken as surer of itself than it is, or less
# sure. Any alone leaves more runs in the wrong valley (benchmarks/search/quality.py).
_BOLDNESS = (0.6, 1.0, 2.0, 1.0)
_AIMS_ALIKE = 4  # suggestions with an aim each that share the weights of one fit
_SUM_FRAC = 0.05  # of the weighted sum added to the weighted worst: of two designs with one worst the better all round
_REFUSED = 0.2  # log cost of a refused design above the worst that was built: a step of a fifth, whatever it breaks


@dataclass(frozen=True, slots=True, eq=False)
class _Aim:
    """What one suggestion is after: a model of its target, and the best told."""

    model: GaussianProcess
    targets: Array

    def gain(self, seen: Array, bold: float) -> Array:
        """The fall below the best to expect at coordinates (m, d), with deviations ``bold`` times theirs."""
        mean, deviation = self.model.predict(seen)
        deviation = bold * deviation
        ahead = (float(self.targets.min()) - mean) / deviation
        density = np.exp(-0.5 * ahead * ahead) / np.sqrt(2.0 * np.pi)
        return np.asarray(deviation * (ahead * ndtr(ahead) + density))


class GpSampler:
    """Graded by rules, for one to three objectives; the most that can be learnt from a few hundred trials."""

    def __init__(
        self,
        coding: Coding,
        seed: int,
        *,
        startup_count: int,
        window_count: int = 256,
        foreseer: Foreseer | None = None,
    ) -> None:
        self._coding = coding
        self._foreseer = foreseer
        self._startup = SobolSampler(coding, seed)
        self._history = History(startup_count, window_count)
        self._seen: set[bytes] = set()

    def observe(self, told: Told) -> None:
        """Add a batch as it was built; what falls out of the window is forgotten, but never suggested again."""
        built = settled(self._coding, self._foreseer, told.internal)
        for internal in (told.internal, built):
            self._seen.update(self._coding.keys(internal))
        self._history.add(replace(told, internal=built))

    def suggest(self, rng: np.random.Generator, first_index: int, count: int) -> Array:
        """Where the cost is expected to fall most below the best, one suggestion after another."""
        told = self._history.learnt
        if told is None:
            drawn = self._coding.decode(self._startup.suggest(rng, first_index, count))
            return self._untried(settled(self._coding, self._foreseer, drawn), set(self._seen))
        with _BLAS.limit(limits=1, user_api="blas"):
            return self._batch(rng, told, count)

    def _batch(self, rng: np.random.Generator, told: Told, count: int) -> Array:
        points = self._coding.filled_unit(told.internal)
        sight = Sight(self._coding, self._foreseer, points)
        aims = _aims(told, sight, _weights(rng, told.costs.shape[1], count))
        pool, seen = self._pool(rng, points, sight, aims[::_AIMS_ALIKE], max(_KEPT, 2 * count))
        chosen: list[int] = []
        for j in range(min(count, len(pool))):
            aim = aims[j % len(aims)]
            for i in chosen if len(aims) > 1 else chosen[-1:]:
                aim.model.suppose(seen[i])
            gain = aim.gain(seen, _BOLDNESS[j % len(_BOLDNESS)])
            gain[chosen] = -np.inf
            chosen.append(int(gain.argmax()))
        return np.asarray(pool[chosen])

    def _pool(
        self, rng: np.random.Generator, points: Array, sight: Sight, leads: list[_Aim], count: int
    ) -> tuple[Array, Array]:
        """Untried points that promise most, bred over generations from the best; with coordinates.

        Of points that can be built, where any can; none or few where hardly any is left to try.
        """
        share = -(-_PARENTS // len(leads))
        parents = np.concatenate([points[np.argsort(lead.targets, kind="stable")[:share]] for lead in leads])
        pool, seen = np.empty((0, points.shape[1])), np.empty((0, len(sight.ordered)))
        can, taken = np.empty(0, dtype=bool), set(self._seen)
        for generation in range(_GENERATIONS):
            more = self._bred(rng, parents, _BRED, _LATER_RATES if generation else _RATES)
            if not generation:
                more[:_FREE] = rng.random((_FREE, points.shape[1]))
            more = self._untried(self._coding.decode(more), taken)
            buildable, coordinates = sight(more)
            pool, seen = np.concatenate([pool, more]), np.concatenate([seen, coordinates])
            can = np.concatenate([can, buildable])
            live = np.flatnonzero(can if can.any() else ~can)
            if len(live):
                parents = pool[live[_promising(leads, seen[live], (max(_BOLDNESS),), _HEIRS)]]
        if len(live):
            live = live[_promising(leads, seen[live], (min(_BOLDNESS), max(_BOLDNESS)), count)]
        return pool[live], seen[live]

    def _untried(self, internal: Array, taken: set[bytes]) -> Array:
        """Unit points of internal rows, each once and none that is taken; they are taken from now on."""
        fresh = []
        for i, key in enumerate(self._coding.keys(internal)):
            if key not in taken:
                taken.add(key)
                fresh.append(i)
        return self._coding.filled_unit(internal[fresh])

    def _bred(self, rng: np.random.Generator, parents: Array, count: int, rates: tuple[float, ...]) -> Array:
        """Points that differ from a parent in one parameter and perhaps some more."""
        shape = (count, parents.shape[1])
        base = parents[rng.integers(0, len(parents), count)]
        moved = rng.random(shape) < rng.choice(rates, count)[:, None]
        moved[np.arange(count), rng.integers(0, shape[1], count)] = True
        stepped = np.abs(base + rng.normal(0.0, _STEP, shape))  # mirrored at both ends
        stepped = np.clip(np.where(stepped > 1.0, 2.0 - stepped, stepped), 0.0, 1.0)
        small = (rng.random(shape) < _STEP_FRAC) & self._coding.ordered
        return np.where(moved, np.where(small, stepped, rng.random(shape)), base)


def _weights(rng: np.random.Generator, objectives: int, count: int) -> Array:
    """Weights of the objectives, one row for each suggestion with an aim of its own; one for all of one objective."""
    return np.ones((1, 1)) if objectives == 1 else rng.dirichlet(np.ones(objectives), count)


def _aims(told: Told, sight: Sight, weights: Array) -> list[_Aim]:
    """A model for each row of weights; some in a row share what one fit found."""
    aims: list[_Aim] = []
    for j, weight in enumerate(weights):
        targets = _targets(told, weight)
        like = aims[-1].model if j % _AIMS_ALIKE else None
        aims.append(_Aim(GaussianProcess(sight.coordinates, targets, sight.ordered, like), targets))
    return aims


def _promising(leads: list[_Aim], seen: Array, boldness: Sequence[float], count: int) -> NDArray[np.intp]:
    """Places of about so many points that promise most, the same number to each aim taken each way."""
    share = -(-count // (len(leads) * len(boldness)))
    chosen = [np.argsort(-lead.gain(seen, bold), kind="stable")[:share] for lead in leads for bold in boldness]
    return np.asarray(list(dict.fromkeys(np.concatenate(chosen).tolist())), dtype=np.intp)


def _targets(told: Told, aim: Array) -> Array:
    """What the model learns: log cost, its upper half drawn together, since only what is good need be told apart.

    Several objectives become one: the worst of them by the weights of the aim, each over its own spread. They stay as
    they are, since a front is judged by what it leaves undone, not by ratios.
    """
    built = told.violation <= 0.0
    if not built.any():
        return np.log1p(told.violation)  # nothing can be built yet: nearer to it is better
    if len(aim) == 1:
        target = _logs(told.costs[:, 0], built)
    else:
        low, usual = told.costs[built].min(axis=0), np.median(told.costs[built], axis=0)
        place = aim * (told.costs - low) / np.maximum(usual - low, 1e-12)
        target = place.max(axis=1) + _SUM_FRAC * place.sum(axis=1)
    target = np.where(built, target, float(np.quantile(target[built], 0.9)) + _REFUSED)
    middle = float(np.median(target))
    return np.where(target > middle, middle + np.log1p(np.maximum(target - middle, 0.0)), target)


def _logs(cost: Array, built: NDArray[np.bool_]) -> Array:
    """Costs by their logarithm; by a curve like it where they are not all above zero."""
    if cost[built].min() > 0.0:
        return np.asarray(np.log(np.maximum(cost, cost[built].min())))
    return np.asarray(np.arcsinh(cost / max(float(np.median(np.abs(cost[built]))), 1e-300)))
