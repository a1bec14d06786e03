"""Suggestions as a model of the cost should see them: by their parameters and by what is known of them beforehand."""

import numpy as np
from numpy.typing import NDArray

from codesign.study.coding import Coding
from codesign.study.problem_protocol import Foreseer
from codesign.units import Array

_LEAST_SPREAD = 0.1  # of a trait in its own unit, mostly a logarithm: what varies less hardly matters


def settled(coding: Coding, foreseer: Foreseer | None, internal: Array) -> Array:
    """Internal rows as they are built after repair; as they are where nothing is foreseen."""
    if foreseer is None or not len(internal):
        return internal
    return coding.encode(foreseer.settled(coding.rows(internal)))


class Sight:
    """Coordinates of unit points: the points themselves, then traits, each by its spread over ``points`` (n, d)."""

    def __init__(self, coding: Coding, foreseer: Foreseer | None, points: Array) -> None:
        self._coding, self._foreseer = coding, foreseer
        self._low: Array = np.empty(0)
        _, traits = self._foreseen(points)
        self._low = traits.min(axis=0)
        self._spread: Array = np.maximum(traits.max(axis=0) - self._low, _LEAST_SPREAD)
        self.coordinates = self._joined(points, traits)
        self.ordered = np.concatenate([coding.ordered, np.ones(traits.shape[1], dtype=bool)])

    def __call__(self, points: Array) -> tuple[NDArray[np.bool_], Array]:
        """Which unit points (m, d) can be built as they are, and their coordinates (m, d + k)."""
        buildable, traits = self._foreseen(points)
        return buildable, self._joined(points, traits)

    def _foreseen(self, points: Array) -> tuple[NDArray[np.bool_], Array]:
        if self._foreseer is None or not len(points):
            return np.ones(len(points), dtype=bool), np.empty((len(points), len(self._low)))
        found = self._foreseer.foreseen(self._coding.columns(self._coding.decode(points)))
        return found.buildable, found.traits

    def _joined(self, points: Array, traits: Array) -> Array:
        return np.concatenate([points, (traits - self._low) / self._spread], axis=1)
