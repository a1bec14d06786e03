"""Bayesian optimisation over whole batches: a Gaussian process of the log cost, suggestions where it expects most gain.

With several objectives every suggestion has an aim of its own: other weights of the objectives (Knowles 2006).

Within a batch every suggestion counts as told with the cost expected there, so that a batch spreads. The model sees a
window of history, the best and the most recent, so a suggestion never costs more than a stated time.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from codesign.study.coding import Coding
from codesign.study.gaussian import GaussianProcess
from codesign.study.samplers import History, SobolSampler, Told
from codesign.units import Array

_PARENTS = 8  # best points whose neighbourhood is searched first
_BRED, _FREE = 600, 100  # points near them, points anywhere, looked at for one suggestion
_ROUNDS, _HEIRS, _BRED_LATER = 3, 10, 400  # then the neighbourhood of the most promising, again and again
_RATES = (0.0, 0.1, 0.2, 0.4, 0.6)  # share of the parameters moved besides one that always moves
_STEP = 0.15  # of the range, standard deviation
_STEP_FRAC = 0.6  # of the moves of an ordered parameter; the others are drawn anew
# Suggestions of a batch are careful, plain and bold in turn: the model is taken as surer of itself than it is, or less
# sure. Any alone leaves more runs in the wrong valley (benchmarks/search/quality.py).
_BOLDNESS = (0.6, 1.0, 2.0, 1.0)
_AIMS_ALIKE = 4  # suggestions with an aim each that share the weights of one fit
_SUM_FRAC = 0.05  # of the weighted sum added to the weighted worst: of two designs with one worst the better all round
_REFUSED = 0.2  # log cost of a refused design above the worst that was built: a step of a fifth, whatever it breaks


class GpSampler:
    """Graded by rules, for one to three objectives; the most that can be learnt from a few hundred trials."""

    def __init__(self, coding: Coding, seed: int, *, startup_count: int, window_count: int = 256) -> None:
        self._coding = coding
        self._startup = SobolSampler(coding, seed)
        self._history = History(startup_count, window_count)
        self._seen: set[bytes] = set()

    def observe(self, told: Told) -> None:
        """Add a batch; what falls out of the window is forgotten, but never suggested again."""
        self._seen.update(self._coding.keys(told.internal))
        self._history.add(told)

    def suggest(self, rng: np.random.Generator, first_index: int, count: int) -> Array:
        """Where the cost is expected to fall most below the best, one suggestion after another."""
        told = self._history.learnt
        if told is None:
            return self._startup.suggest(rng, first_index, count)
        points = self._coding.filled_unit(told.internal)
        taken, chosen = set(self._seen), np.empty((count, points.shape[1]))
        model: GaussianProcess | None = None
        for j, aim in enumerate(_aims(rng, told.costs.shape[1], count)):
            if model is None or len(aim) > 1:
                targets = _targets(told, aim)
                parents, best = points[np.argsort(targets, kind="stable")[:_PARENTS]], float(targets.min())
                like = model if j % _AIMS_ALIKE else None
                model = GaussianProcess(points, targets, self._coding.ordered, like)
                for point in chosen[:j]:
                    model.suppose(point)
            chosen[j] = self._next(rng, model, parents, best, _BOLDNESS[j % len(_BOLDNESS)], taken)
            model.suppose(chosen[j])
        return chosen

    def _next(
        self,
        rng: np.random.Generator,
        model: GaussianProcess,
        parents: Array,
        best: float,
        bold: float,
        taken: set[bytes],
    ) -> Array:
        """The most promising point not taken."""
        free = rng.random((_FREE, parents.shape[1]))
        pool = self._decoded(np.concatenate([self._bred(rng, parents, _BRED, _RATES), free]))
        gain = _gain(model, pool, best, bold)
        for _ in range(_ROUNDS):
            heirs = np.argsort(-gain, kind="stable")[:_HEIRS]
            more = self._decoded(self._bred(rng, pool[heirs], _BRED_LATER, _RATES[:3]))
            pool = np.concatenate([pool[heirs], more])
            gain = np.concatenate([gain[heirs], _gain(model, more, best, bold)])
        order = np.argsort(-gain, kind="stable")
        keys = self._coding.keys(self._coding.decode(pool[order]))
        at = next((i for i, key in enumerate(keys) if key not in taken), 0)
        taken.add(keys[at])
        return np.asarray(pool[order[at]])

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

    def _decoded(self, unit: Array) -> Array:
        return self._coding.filled_unit(self._coding.decode(unit))


def _aims(rng: np.random.Generator, objectives: int, count: int) -> Array:
    """Weights of the objectives for each suggestion of a batch: drawn anew where there are several."""
    return np.ones((count, 1)) if objectives == 1 else rng.dirichlet(np.ones(objectives), count)


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


def _gain(model: GaussianProcess, points: Array, best: float, bold: float) -> Array:
    """The fall below the best to expect of points, with deviations ``bold`` times theirs."""
    mean, deviation = model.predict(points)
    deviation = bold * deviation
    ahead = (best - mean) / deviation
    density = np.exp(-0.5 * ahead * ahead) / np.sqrt(2.0 * np.pi)
    return np.asarray(deviation * (ahead * ndtr(ahead) + density))
