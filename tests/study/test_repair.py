"""Repair: nearest valid design, a stated order, nothing fixed is touched, and a second pass changes nothing."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from codesign.space import Choices, Range
from codesign.study.repair import DIRECTIONS, Change, Row, repair, shifted

OPTIONS: dict[str, Choices | Range] = {
    "scale_up_lanes_count": Choices(choices=(8, 16, 32, 64)),
    "cooling": Choices(choices=("air", "liquid")),
    "power_cap_w": Range(low=400, high=1400, step=100),
}
ORDERS = {"cooling": ("air", "liquid")}
RULES = ("edge", "power")
MOVES = {"edge": ("scale_up_lanes_count",), "power": ("power_cap_w", "cooling")}


def excess(rows: Sequence[Row]) -> NDArray[np.float64]:
    edge = [float(row["scale_up_lanes_count"]) - 24.0 for row in rows]
    power = [900.0 - float(row["power_cap_w"]) + (500.0 if row["cooling"] == "air" else 0.0) for row in rows]
    return np.array([edge, power])


def test_repair_takes_the_nearest_step_and_says_why() -> None:
    rows, changes = repair(
        [{"scale_up_lanes_count": 64, "cooling": "liquid", "power_cap_w": 800}], RULES, MOVES, OPTIONS, ORDERS, excess
    )

    assert rows == [{"scale_up_lanes_count": 16, "cooling": "liquid", "power_cap_w": 900}]
    assert changes == [[Change("scale_up_lanes_count", 64, 16, "edge"), Change("power_cap_w", 800, 900, "power")]]


def test_repair_uses_the_next_kind_of_move_when_the_first_is_exhausted() -> None:
    tight = OPTIONS | {"power_cap_w": Range(low=400, high=1000, step=100)}

    rows, _ = repair(
        [{"scale_up_lanes_count": 8, "cooling": "air", "power_cap_w": 1000}], RULES, MOVES, tight, ORDERS, excess
    )

    assert rows[0]["cooling"] == "liquid"


def test_what_the_space_fixes_is_never_touched() -> None:
    fixed = {name: options for name, options in OPTIONS.items() if name != "scale_up_lanes_count"}

    rows, _ = repair(
        [{"scale_up_lanes_count": 64, "cooling": "liquid", "power_cap_w": 900}], RULES, MOVES, fixed, ORDERS, excess
    )

    assert rows[0]["scale_up_lanes_count"] == 64


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "scale_up_lanes_count": st.sampled_from([8, 16, 32, 64]),
                "cooling": st.sampled_from(["air", "liquid"]),
                "power_cap_w": st.sampled_from(range(400, 1500, 100)),
            }
        ),
        min_size=1,
        max_size=8,
    )
)
def test_repair_is_idempotent_and_a_batch_is_its_rows(rows: list[Row]) -> None:
    once, _ = repair(rows, RULES, MOVES, OPTIONS, ORDERS, excess)
    again, changes = repair(once, RULES, MOVES, OPTIONS, ORDERS, excess)

    assert again == once
    assert changes == [[] for _ in rows]
    assert once == [repair([row], RULES, MOVES, OPTIONS, ORDERS, excess)[0][0] for row in rows]
    assert (excess(once) <= 0).all()


def one_step_at_a_time(row: Row) -> Row:
    """The definition: judge, move by the first rule that a move helps, judge again."""
    while True:
        broken = excess([row])[:, 0] > 0.0
        ladder = [
            (name, shifted(row[name], OPTIONS[name], DIRECTIONS[name], ORDERS.get(name)))
            for rule, bad in zip(RULES, broken, strict=True)
            for name in MOVES[rule]
            if bad
        ]
        step = next(((name, value) for name, value in ladder if value is not None), None)
        if step is None:
            return row
        row = {**row, step[0]: step[1]}


@given(st.sampled_from([8, 16, 32, 64]), st.sampled_from(["air", "liquid"]), st.sampled_from(range(400, 1500, 100)))
def test_steps_foreseen_together_end_where_single_steps_end(lanes: int, cooling: str, cap_w: int) -> None:
    row: Row = {"scale_up_lanes_count": lanes, "cooling": cooling, "power_cap_w": cap_w}

    assert repair([row], RULES, MOVES, OPTIONS, ORDERS, excess)[0] == [one_step_at_a_time(row)]


def test_every_move_has_one_direction() -> None:
    assert set(DIRECTIONS.values()) == {-1, 1}


@given(
    low=st.integers(0, 40),
    width=st.integers(1, 60),
    step=st.one_of(st.none(), st.integers(1, 25)),
    log=st.booleans(),
    whole=st.booleans(),
    direction=st.sampled_from([-1, 1]),
    at=st.floats(0.0, 1.0),
)
def test_shifts_come_to_an_end_and_stay_on_the_grid(
    low: int, width: int, step: int | None, log: bool, whole: bool, direction: int, at: float
) -> None:
    low, step = low + 1 if log else low, None if step is None else min(step, width)
    options = Range(low=low, high=low + width, step=step, log=log and step is None)
    start = low + at * width if step is None else low + int(at * (width // step)) * step
    value: float | int = int(start) if whole else float(start)
    met = [value]
    while (moved := shifted(met[-1], options, direction, None)) is not None:
        assert not isinstance(moved, str)
        met.append(moved)
        assert len(met) < 100
    assert all(low <= v <= low + width and type(v) is type(value) for v in met)
    assert all((b - a) * direction > 0 for a, b in pairwise(met))
    if step is not None:
        assert all((v - low) % step == 0 for v in met)
        assert met[-1] == (low if direction < 0 else low + width // step * step)


def test_a_move_takes_and_brings_what_depends_on_it() -> None:
    options = OPTIONS | {
        "power_cap_w": Range(low=400, high=1000, step=100, when={"cooling": ("air",)}),
        "sram_mb": Range(low=32, high=64, step=16, when={"cooling": ("liquid",)}),
    }

    def hot(rows: Sequence[Row]) -> NDArray[np.float64]:
        return np.array([[0.0 for _ in rows], [float(row["cooling"] == "air") for row in rows]])

    row: Row = {"scale_up_lanes_count": 8, "cooling": "air", "power_cap_w": 1000}
    rows, changes = repair([row], RULES, {"edge": (), "power": ("cooling",)}, options, ORDERS, hot, {"sram_mb": 48})

    assert rows == [{"scale_up_lanes_count": 8, "cooling": "liquid", "sram_mb": 48}]
    assert changes == [[Change("cooling", "air", "liquid", "power")]]
