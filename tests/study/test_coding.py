"""Parameters as matrices and back: every form says the same, and nothing is lost on the way."""

from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from codesign.errors import SpaceError
from codesign.study import parameters
from codesign.study.coding import Coding, design_hash
from codesign.study.parameters import Choices, FloatRange, IntRange, When, check_parameters
from codesign.study.search import distribution, distribution_json
from tests.study import toy

CODING = Coding(toy.PARAMETERS)


def draw(count: int, seed: int = 0) -> Any:
    return CODING.decode(np.random.default_rng(seed).random((count, len(CODING.names))))


def test_rows_become_the_same_matrix_again() -> None:
    internal = draw(500)

    assert_array_equal(CODING.encode(CODING.rows(internal)), internal)


def test_the_middle_of_a_cell_decodes_to_the_cell() -> None:
    internal = draw(500)
    stepped = CODING.levels > 0

    again = CODING.decode(np.nan_to_num(CODING.unit(internal), nan=0.5))

    assert_array_equal(again[:, stepped], internal[:, stepped])
    np.testing.assert_allclose(again[:, ~stepped], internal[:, ~stepped], rtol=1e-12)


def test_a_parameter_is_absent_exactly_where_its_condition_fails() -> None:
    for row in CODING.rows(draw(200)):
        assert ("reach_m" in row) == (row["medium"] == "optics")


def test_every_value_lies_in_what_optuna_is_told() -> None:
    for row in CODING.rows(draw(300)):
        for name, value in row.items():
            described = distribution(toy.PARAMETERS[name])
            assert described._contains(described.to_internal_repr(value))


def test_internal_numbers_are_optunas() -> None:
    internal = draw(100)
    for i, name in enumerate(CODING.names):
        described = distribution(toy.PARAMETERS[name])
        for number, row in zip(internal[:, i], CODING.rows(internal), strict=True):
            if name in row:
                assert described.to_internal_repr(row[name]) == number
                assert described.to_external_repr(number) == row[name]


def test_sizes_count_conditions() -> None:
    assert CODING.size is None
    assert Coding(toy.SMALL).size == 4 * 4 * (1 + 3)
    assert Coding({"a": IntRange(1, 10, step=3), "b": FloatRange(0.0, 1.0, step=0.25)}).size == 4 * 5


@given(st.floats(0.0, 1.0), st.integers(1, 50), st.integers(0, 200))
@settings(max_examples=60, deadline=None)
def test_log_whole_numbers_keep_their_ends_and_cover_all(unit: float, low: int, more: int) -> None:
    coding = Coding({"n": IntRange(low, low + more, log=True)})

    value = coding.decode(np.array([[unit]]))[0, 0]

    assert low <= value <= low + more
    assert value == round(value)
    every = coding.decode(np.linspace(0.0, 1.0, 20_001)[:, None])
    if more < 30:
        assert set(every[:, 0]) == set(range(low, low + more + 1))


def test_priors_draw_more_where_they_believe() -> None:
    coding = Coding(
        {
            "rate": FloatRange(0.0, 1.0, peak=0.8, weight=0.5),
            "word": Choices(("a", "b", "c"), weights=(1.0, 0.0, 3.0)),
        }
    )
    internal = coding.decode(coding.warp(np.random.default_rng(1).random((20_000, 2))))

    near = (np.abs(internal[:, 0] - 0.8) < 0.15).mean()
    share = np.bincount(internal[:, 1].astype(int), minlength=3) / 20_000
    assert near == pytest.approx(0.5 * 0.3 + 0.5 * 0.77, abs=0.03)  # 0.77: within a spread, the upper tail cut at 1
    assert share == pytest.approx([0.25, 0.0, 0.75], abs=0.015)


def test_parameters_survive_json() -> None:
    assert parameters.from_json(parameters.to_json(toy.PARAMETERS)) == toy.PARAMETERS


def test_equal_rows_hash_alike_and_others_do_not() -> None:
    assert design_hash({"a": 1, "b": 2.5}) == design_hash({"b": 2.5, "a": 1})
    assert design_hash({"a": 1}) != design_hash({"a": 2})
    assert design_hash({"a": "1"}) != design_hash({"a": 1})


def test_stepped_ends_are_moved_onto_the_last_step() -> None:
    assert distribution(IntRange(1, 9, step=3)) == optuna.distributions.IntDistribution(1, 7, step=3)
    assert '"high": 0.8' in distribution_json(FloatRange(0.0, 1.0, step=0.4))
    assert Coding({"x": FloatRange(0.0, 1.0, step=0.4)}).decode(np.array([[1.0]]))[0, 0] == 0.8


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({}, "nothing to vary"),
        ({"a": Choices(())}, "no choices"),
        ({"a": Choices(("x", "x"))}, "same choice twice"),
        ({"a": Choices((True, False))}, "a word or a number"),
        ({"a": Choices(("x", "y"), weights=(0.0, 0.0))}, "weights"),
        ({"a": FloatRange(2.0, 1.0)}, "in this order"),
        ({"a": FloatRange(0.0, float("nan"))}, "finite"),
        ({"a": FloatRange(0.0, 1.0, log=True)}, "must start above zero"),
        ({"a": FloatRange(1.0, 2.0, step=-1.0)}, "step must be above zero"),
        ({"a": FloatRange(1.0, 2.0, peak=3.0)}, "peak 3.0 lies outside"),
        ({"a": IntRange(0, 2**60)}, "2\\^53"),
        ({"a": IntRange(0, 1, when=When("b", (1,)))}, "unknown parent 'b'"),
        ({"bb": Choices(("x", "y")), "a": IntRange(0, 1, when=When("bb", ("z",)))}, "'bb' never is 'z'"),
        (
            {"a": IntRange(0, 1, when=When("b", (1,))), "b": IntRange(0, 1, when=When("a", (1,)))},
            "in a circle",
        ),
    ],
)
def test_a_space_that_cannot_be_searched_is_refused_by_name(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(SpaceError, match=words):
        check_parameters(wrong)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"medium": "coper"}, "has no choice 'coper'"),
        ({"rate_gbps": 500.0}, "must lie between 25.0 and 224.0"),
        ({"stacks_count": 2.5}, "goes in steps of 1"),
        ({"lanes_count": None}, "has no choice None"),
    ],
)
def test_a_first_trial_that_does_not_fit_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(SpaceError, match=words):
        CODING.encode([{**toy.BASELINES[0][1], **change}])
