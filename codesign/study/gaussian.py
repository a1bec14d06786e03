"""A Gaussian process over settled unit points: what a cost is likely to be where nobody tried, and how sure that is.

Ordered parameters are near each other by their distance, words are the same or not. Every parameter has a weight of its
own, found by the most probable values given the points told; most weights end near nothing, since most parameters
hardly matter, and that is why a few hundred points tell so much about a space of two dozen parameters.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize

from codesign.units import Array

# Beliefs held before anything is told, in logarithms: a parameter matters over about the whole of its range, give or
# take a factor of seven; targets have unit variance; a thousandth of it is what the points do not explain.
_WEIGHT, _WEIGHT_SPREAD = float(np.log(0.3)), 2.0
_SCALE, _SCALE_SPREAD = 0.0, 1.0
_NOISE, _NOISE_SPREAD = float(np.log(1e-3)), 1.5
_WEIGHT_ENDS, _SCALE_ENDS, _NOISE_ENDS = (-9.0, 5.0), (-3.0, 4.0), (float(np.log(1e-6)), float(np.log(0.3)))
_ITERATIONS = 40


class GaussianProcess:
    """Fitted to points (n, d) of the unit cube and targets (n,); pure arithmetic, the same input the same answer.

    ``like`` is a process of the same points with other targets, whose weights are taken as they are: a fit costs far
    more than the rest.
    """

    def __init__(
        self, points: Array, targets: Array, ordered: NDArray[np.bool_], like: "GaussianProcess | None" = None
    ) -> None:
        self._ordered = ordered
        self._mean, self._spread = float(targets.mean()), max(float(targets.std()), 1e-9)
        self._points, self._targets = points, (targets - self._mean) / self._spread
        self._found: Array = _most_probable(points, self._targets, ordered) if like is None else like._found
        self._weights: Array = np.exp(self._found[:-2])
        self._scale, self._noise = float(np.exp(self._found[-2])), float(np.exp(self._found[-1]))
        whole = self._near(points)
        whole[np.diag_indices(len(whole))] = self._scale + self._noise
        self._factor: Array = np.tril(cho_factor(whole, lower=True, check_finite=False)[0])
        self._pull: Array = cho_solve((self._factor, True), self._targets, check_finite=False)

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the target at points (m, d), each (m,)."""
        near = self._near(points)
        part = solve_triangular(self._factor, near.T, lower=True, check_finite=False)
        variance = np.maximum(self._scale - (part * part).sum(axis=0), 1e-10)
        return self._mean + self._spread * (near @ self._pull), self._spread * np.sqrt(variance)

    def suppose(self, point: Array) -> None:
        """Take what is expected at one more point (d,) as told there, without weighing the parameters anew."""
        near = self._near(point[None, :])[0]
        expected = float(near @ self._pull)
        row = solve_triangular(self._factor, near, lower=True, check_finite=False)
        rest = np.sqrt(max(self._scale + self._noise - float(row @ row), self._noise))
        count = len(near)
        grown = np.zeros((count + 1, count + 1))
        grown[:count, :count], grown[count, :count], grown[count, count] = self._factor, row, rest
        self._factor = grown
        self._points = np.concatenate([self._points, point[None, :]])
        self._targets = np.append(self._targets, expected)
        self._pull = cho_solve((self._factor, True), self._targets, check_finite=False)

    def _near(self, points: Array) -> Array:
        """Covariance of points with the points told, (m, n)."""
        o = self._ordered
        root = np.sqrt(self._weights[o])
        left, right = points[:, o] * root, self._points[:, o] * root
        square = (left * left).sum(axis=1)[:, None] + (right * right).sum(axis=1) - 2.0 * left @ right.T
        total = np.maximum(square, 0.0)
        for j in np.flatnonzero(~o):
            total += self._weights[j] * (points[:, j, None] != self._points[:, j])
        return np.asarray(self._scale * _matern(np.sqrt(5.0 * total)))


def _apart(left: Array, right: Array, ordered: bool) -> Array:
    """Squared distance of pairs where a parameter has an order; whether the words differ where it has none."""
    difference = left - right
    return difference * difference if ordered else (difference != 0.0).astype(np.float64)


def _matern(root: Array) -> Array:
    """Matern's function of order 5/2 of sqrt(5) times the distance: twice differentiable, no smoother."""
    return np.asarray((1.0 + root + root * root / 3.0) * np.exp(-root))


def _most_probable(points: Array, targets: Array, ordered: NDArray[np.bool_]) -> Array:
    """Logarithms of the weights, the scale and the noise that are most probable, prior and likelihood together."""
    left, right = pairs = np.tril_indices(len(points), -1)
    apart = np.stack([_apart(column[left], column[right], o) for column, o in zip(points.T, ordered, strict=True)])
    parameters = len(apart)
    belief = np.array([*[_WEIGHT] * parameters, _SCALE, _NOISE])
    trust = np.array([*[_WEIGHT_SPREAD] * parameters, _SCALE_SPREAD, _NOISE_SPREAD])
    ends = [*[_WEIGHT_ENDS] * parameters, _SCALE_ENDS, _NOISE_ENDS]
    found = minimize(
        _improbability, belief, args=(apart, pairs, targets, belief, trust), jac=True, method="L-BFGS-B", bounds=ends,
        options={"maxiter": _ITERATIONS},
    )  # fmt: skip
    return np.asarray(found.x)


def _improbability(
    at: Array, apart: Array, pairs: tuple[Any, Any], targets: Array, belief: Array, trust: Array
) -> tuple[float, Any]:
    """Minus the log of the posterior up to a constant, and its slope; ``apart`` is (d, pairs), each pair once."""
    weights, scale, noise = np.exp(at[:-2]), float(np.exp(at[-2])), float(np.exp(at[-1]))
    count = len(targets)
    root = np.sqrt(5.0 * (weights @ apart))
    decay = scale * np.exp(-root)
    near = (1.0 + root + root * root / 3.0) * decay
    whole = np.zeros((count, count))
    whole[pairs] = near
    whole[np.diag_indices(count)] = scale + noise
    away = (at - belief) / trust
    factor, failed = dpotrf(whole, lower=1)
    if failed:
        return 1e10, np.zeros_like(at)
    pull = cho_solve((factor, True), targets, check_finite=False)
    inverse, _ = dpotri(factor, lower=1)
    value = 0.5 * float(targets @ pull) + float(np.log(np.diag(factor)).sum()) + 0.5 * float(away @ away)
    misfit = inverse[pairs] - pull[pairs[0]] * pull[pairs[1]]
    diagonal = float((np.diag(inverse) - pull * pull).sum())
    slope = np.empty_like(at)
    # the slope of Matern's function by the squared distance is -5/6 (1 + root) exp(-root); each pair stands twice
    slope[:-2] = weights * (apart @ (misfit * (-5.0 / 6.0 * (1.0 + root) * decay)))
    slope[-2] = float(misfit @ near) + 0.5 * scale * diagonal
    slope[-1] = 0.5 * noise * diagonal
    return value, slope + away / trust
