"""A Gaussian process: it says what it was told, is unsure elsewhere, and finds which parameters matter."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from codesign.study.gaussian import GaussianProcess
from codesign.units import Array

RNG = np.random.default_rng(4)
POINTS = np.column_stack([RNG.random((60, 3)), (RNG.integers(0, 3, 60) + 0.5) / 3.0])
ORDERED = np.array([True, True, True, False])


def surface(points: Array) -> Array:
    """The second parameter and the word matter, the others do not."""
    return np.asarray(np.sin(4.0 * points[:, 1]) + np.where(points[:, 3] > 0.6, 0.8, 0.0))


@pytest.fixture(scope="module")
def model() -> GaussianProcess:
    return GaussianProcess(POINTS, surface(POINTS), ORDERED)


def test_it_says_what_it_was_told_and_foretells_the_rest(model: GaussianProcess) -> None:
    fresh = np.column_stack([RNG.random((200, 3)), (RNG.integers(0, 3, 200) + 0.5) / 3.0])

    told, sure = model.predict(POINTS)
    mean, deviation = model.predict(fresh)

    assert_allclose(told, surface(POINTS), atol=0.02)
    assert np.sqrt(np.mean((mean - surface(fresh)) ** 2)) < 0.05  # the surface spreads over more than two
    assert sure.mean() < deviation.mean()


def test_what_does_not_matter_is_far_from_nowhere(model: GaussianProcess) -> None:
    def moved(parameter: int, by: float) -> float:
        point = np.array([[0.5, 0.5, 0.5, 0.5]])
        other = point.copy()
        other[0, parameter] += by
        return abs(float(model.predict(other)[0][0] - model.predict(point)[0][0]))

    assert moved(1, 0.4) > 10.0 * max(moved(0, 0.4), moved(2, 0.4))
    assert moved(3, 1.0 / 3.0) > 10.0 * max(moved(0, 0.4), moved(2, 0.4))


def test_a_supposed_point_is_as_sure_as_a_told_one_and_moves_nothing() -> None:
    model = GaussianProcess(POINTS, surface(POINTS), ORDERED)
    point = np.array([[0.1, 0.99, 0.1, 0.5]])
    (mean,), (unsure,) = model.predict(point)
    elsewhere = model.predict(POINTS)[0]

    model.suppose(point[0])

    assert_allclose(model.predict(point)[0], [mean], atol=1e-6)
    assert model.predict(point)[1] < 0.5 * unsure
    assert_allclose(model.predict(POINTS)[0], elsewhere, atol=1e-6)


def test_other_targets_may_share_the_weights(model: GaussianProcess) -> None:
    turned = GaussianProcess(POINTS, -3.0 * surface(POINTS), ORDERED, like=model)

    assert_allclose(turned.predict(POINTS)[0], -3.0 * model.predict(POINTS)[0], atol=1e-9)


def test_the_same_points_give_the_same_bits() -> None:
    one, two = (GaussianProcess(POINTS.copy(), surface(POINTS), ORDERED) for _ in range(2))

    assert np.array_equal(one.predict(POINTS)[0], two.predict(POINTS)[0])
