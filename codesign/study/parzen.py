"""Mixtures of product kernels over the unit cube, one kernel per observed point plus a broad one, as arrays."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from codesign.study.coding import Coding
from codesign.units import Array

_CELLS_MOST = 64  # parameters with more steps than this are judged as continuous
_TINY = 1e-12
_WANDER = (
    4.0  # with 1, more runs settle on the wrong word for good; with 4 some still do (benchmarks/search/quality.py)
)


class Mixture:
    """A density over settled unit points (cell middles, NaN where a parameter is absent).

    Ordered parameters have a normal kernel cut at the ends of the range, its width the distance to the neighbouring
    points; words have a kernel that stays home except for a share that shrinks with the number of points. A parameter
    absent from the observed point is judged by the broad kernel, one absent from the judged point counts for nothing.
    """

    def __init__(self, coding: Coding, points: Array) -> None:
        self.coding = coding
        self.count = len(points)
        self.centres = np.concatenate([points, np.full((1, points.shape[1]), np.nan)])
        self.widths = np.concatenate([_widths(points, coding.levels), np.ones((1, points.shape[1]))])

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Points of this density: a kernel each, then every parameter on its own."""
        which = rng.integers(0, self.count + 1, count)
        uniform = rng.random((count, self.centres.shape[1]))
        return np.stack([self._draw_column(j, which, uniform[:, j]) for j in range(uniform.shape[1])], axis=1)

    def log_density(self, points: Array) -> Array:
        """Log density of settled points, relative to the uniform density."""
        total = np.zeros((len(points), self.count + 1))
        for j in range(points.shape[1]):
            total += self._log_kernel(j, points[:, j])
        top = total.max(axis=1)
        return np.asarray(top + np.log(np.exp(total - top[:, None]).sum(axis=1)) - math.log(self.count + 1))

    def log_kernel_at(self, points: Array, centre: Array) -> Array:
        """Log density of one kernel more at ``centre``, as wide as the kernels here typically are."""
        single = Mixture(self.coding, centre[None, :])
        single.count = self.count
        single.widths[0] = np.median(self.widths[:-1], axis=0) if self.count else 1.0
        total = np.zeros(len(points))
        for j in range(points.shape[1]):
            total += single._log_kernel(j, points[:, j])[:, 0]
        return total

    def _draw_column(self, j: int, which: NDArray[np.int64], uniform: Array) -> Array:
        centre, width = self.centres[which, j], self.widths[which, j]
        broad = np.isnan(centre)
        if not self.coding.ordered[j]:
            levels = int(self.coding.levels[j])
            stay = 1.0 - self._wander / (1.0 + self._wander)
            cell = np.floor(np.clip((uniform - stay) / (1.0 - stay), 0.0, 1.0 - _TINY) * levels)
            return np.asarray(np.where(broad, uniform, np.where(uniform < stay, centre, (cell + 0.5) / levels)))
        low, high = ndtr((0.0 - centre) / width), ndtr((1.0 - centre) / width)
        inside = centre + width * ndtri(np.clip(low + uniform * (high - low), _TINY, 1.0 - _TINY))
        return np.asarray(np.where(broad, uniform, np.clip(inside, 0.0, 1.0)))

    @property
    def _wander(self) -> float:
        """Weight with which a word leaves its point, beside one for staying."""
        return _WANDER / (self.count + 1.0)

    def _log_kernel(self, j: int, column: Array) -> Array:
        """(n, kernels) log density of one parameter under each kernel."""
        levels = int(self.coding.levels[j])
        absent = np.isnan(column)
        if 0 < levels <= _CELLS_MOST or not self.coding.ordered[j]:
            cell = np.floor(np.where(absent, 0.0, column) * levels).astype(np.int64)
            values = np.asarray(self._cells(j, levels)[np.minimum(cell, levels - 1)])
        else:
            centre, width = self.centres[:, j], self.widths[:, j]
            mass = ndtr((1.0 - centre) / width) - ndtr((0.0 - centre) / width)
            peak = -np.log(width * math.sqrt(2.0 * math.pi) * mass)
            distance = (column[:, None] - centre[None, :]) / width[None, :]
            values = np.asarray(np.where(np.isnan(centre)[None, :], 0.0, peak[None, :] - 0.5 * distance * distance))
        values[absent] = 0.0
        return values

    def _cells(self, j: int, levels: int) -> Array:
        """(levels, kernels) log share of each cell, relative to an even share."""
        centre, width = self.centres[:, j], self.widths[:, j]
        broad = np.isnan(centre)
        middle = np.where(broad, 0.5, centre)
        if self.coding.ordered[j]:
            below = ndtr((np.arange(levels + 1)[:, None] / levels - middle[None, :]) / width[None, :])
            share = (below[1:] - below[:-1]) / (below[-1:] - below[:1])
        else:
            home = np.arange(levels)[:, None] == np.floor(middle * levels)[None, :]
            share = (self._wander / levels + home) / (1.0 + self._wander)
        return np.asarray(np.where(broad[None, :], 0.0, np.log(np.maximum(share * levels, 1e-300))))


_CELL_WIDTH = 0.35


def _widths(points: Array, levels: NDArray[np.int64]) -> Array:
    """Width of every kernel in every parameter: the larger distance to its neighbours, within bounds.

    Where a parameter has few steps many points share one, and the distance between them says nothing: the width is
    at least a third of a step, so that neighbours are tried now and then.
    """
    count, dimensions = points.shape
    widths = np.ones((count, dimensions))
    for j in range(dimensions):
        least = max(1.0 / min(100.0, 2.0 + count), _CELL_WIDTH / levels[j] if levels[j] else 0.0)
        here = np.flatnonzero(~np.isnan(points[:, j]))
        order = here[np.argsort(points[here, j], kind="stable")]
        places = np.concatenate([[0.0], points[order, j], [1.0]])
        gaps = np.diff(places)
        widths[order, j] = np.clip(np.maximum(gaps[:-1], gaps[1:]), least, 1.0)
    return widths
