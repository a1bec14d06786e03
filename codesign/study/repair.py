"""Repair before refusal: a stated order of moves to the nearest design that breaks no rule.

Each rule names the moves that help against it, best first. A move shifts one parameter one step in the one direction
that parameter may ever be shifted, within what the space lets it be. So repair ends, and what it returns it would leave
alone: ``repair(repair(x)) == repair(x)``. Parameters the space fixes are never touched.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from codesign.space import Choices, Range, Value

Row = dict[str, Value]
Options = Mapping[str, Choices | Range]
Excess = Callable[[Sequence[Row]], NDArray[np.float64]]

#: Words in the order in which repair walks them.
ORDERS: dict[str, tuple[str, ...]] = {
    "cooling": ("air", "liquid"),
    "equaliser": ("ctle", "ffe_dfe", "adc_dsp"),
}

#: The one direction in which repair may shift a parameter.
DIRECTIONS: dict[str, int] = {
    "scale_up_lane_rate_gbps": -1,
    "scale_out_lane_rate_gbps": -1,
    "scale_up_lanes_count": -1,
    "scale_up_port_lanes_count": -1,
    "scale_up_spare_lanes_count": -1,
    "scale_up_domain_count": -1,
    "scale_up_virtual_channels_count": 1,
    "scale_out_virtual_channels_count": 1,
    "scale_up_equaliser": 1,
    "scale_out_equaliser": 1,
    "scale_up_fec": 1,
    "scale_out_fec": 1,
    "scale_up_medium": 1,
    "scale_out_medium": 1,
    "scale_up_modulation": -1,
    "scale_out_modulation": -1,
    "scale_up_payload_bytes": -1,
    "scale_out_payload_bytes": -1,
    "scale_out_tiers_count": 1,
    "scale_out_topology": 1,
    "nic_rate_gbps": -1,
    "memory_stacks_count": -1,
    "memory_height_count": -1,
    "memory_pin_rate_gbps": -1,
    "second_tier_gb": 1,
    "compute_dies_count": 1,
    "io_dies_count": -1,
    "die_to_die": 1,
    "compute_scale_frac": -1,
    "sram_mb": -1,
    "cooling": 1,
    "power_cap_w": 1,
}

_AHEAD_MOST = 12  # steps foreseen for a row
_AHEAD_ROWS = 384  # rows judged at once: up to here a batch costs little more than one row


@dataclass(frozen=True, slots=True)
class Change:
    """One parameter that repair moved away from what was asked."""

    parameter: str
    asked: Value
    repaired: Value
    rule: str


def repair(
    rows: Sequence[Row],
    rules: Sequence[str],
    moves: Mapping[str, Sequence[str]],
    options: Options,
    orders: Mapping[str, Sequence[str]],
    excess: Excess,
    usual: Mapping[str, Value] = MappingProxyType({}),
) -> tuple[list[Row], list[list[Change]]]:
    """Move every row to the nearest design that breaks no rule, or as far as its moves reach.

    Args:
        rows: Values of the varied parameters, one row per candidate.
        rules: Names of the rules, in the order in which they are repaired.
        moves: Rule -> parameters that help against it, best first.
        options: What the space lets each parameter be.
        orders: Parameter -> its words in the order repair walks them.
        excess: ``(rules, n)`` graded excess of some rows; a rule is broken above 0.
        usual: Values of conditional parameters, for rows in which a move makes them apply.

    Returns:
        The repaired rows, and for each the parameters that changed with the rule that asked for it. A parameter that no
        longer applies after a move is gone from its row.
    """
    dependent = {name: one.when for name, one in options.items() if one.when}

    def moved(row: Row, name: str, value: Value) -> Row:
        row = {**row, name: value}
        return _applying(row, dependent, usual) if any(name in when for when in dependent.values()) else row

    current = [dict(row) for row in rows]
    reasons: list[dict[str, str]] = [{} for _ in rows]
    broken = _broken(current, rules, excess)
    while any(broken):
        pending = [i for i, named in enumerate(broken) if named]
        ahead = max(1, min(_AHEAD_MOST, _AHEAD_ROWS // len(pending)))
        walks = [_walk(current[i], broken[i], ahead, moves, options, orders, moved) for i in pending]
        found = iter(_broken([row for walk in walks for row, _, _ in walk], rules, excess))
        for i, walk in zip(pending, walks, strict=True):
            known = [next(found) for _ in walk]
            broken[i] = broken[i] if walk else []  # nothing left to move
            for (row, name, rule), named in zip(walk, known, strict=True):
                reasons[i].setdefault(name, rule)
                foreseen = broken[i] == named
                current[i], broken[i] = row, named
                if not foreseen:
                    break
    changes = [
        [Change(name, row[name], now[name], reasons[i][name]) for name in row if now.get(name, row[name]) != row[name]]
        for i, (row, now) in enumerate(zip(rows, current, strict=True))
    ]
    return current, changes


def _broken(rows: Sequence[Row], rules: Sequence[str], excess: Excess) -> list[list[str]]:
    """Names of the rules each row breaks, in their order."""
    if not rows:
        return []
    return [[rule for rule, bad in zip(rules, column, strict=True) if bad] for column in (excess(rows) > 0.0).T]


def _walk(
    row: Row,
    broken: Sequence[str],
    most: int,
    moves: Mapping[str, Sequence[str]],
    options: Options,
    orders: Mapping[str, Sequence[str]],
    moved: Callable[[Row, str, Value], Row],
) -> list[tuple[Row, str, str]]:
    """The row after each of the next moves, with what moved and for which rule, as long as the same rules stay broken.

    Judging a batch costs much the same for one row as for hundreds, so steps are foreseen and judged together; the
    caller takes them up to the first that changes what is broken.
    """
    walk: list[tuple[Row, str, str]] = []
    while len(walk) < most:
        step = _first_move(row, broken, moves, options, orders)
        if step is None:
            break
        name, value, rule = step
        row = moved(row, name, value)
        walk.append((row, name, rule))
    return walk


def _first_move(
    row: Row,
    broken: Sequence[str],
    moves: Mapping[str, Sequence[str]],
    options: Options,
    orders: Mapping[str, Sequence[str]],
) -> tuple[str, Value, str] | None:
    for rule in broken:
        for name in moves.get(rule, ()):
            if name in row and name in options:
                value = shifted(row[name], options[name], DIRECTIONS[name], orders.get(name))
                if value is not None:
                    return name, value, rule
    return None


def shifted(value: Value, options: Choices | Range, direction: int, order: Sequence[str] | None) -> Value | None:
    """The next allowed value in a direction, or None at the end.

    >>> shifted(8, Choices(choices=(2, 4, 8)), -1, None), shifted(2, Choices(choices=(2, 4, 8)), -1, None)
    (4, None)
    >>> shifted("air", Choices(choices=("liquid", "air")), 1, ("air", "liquid"))
    'liquid'
    """
    if isinstance(options, Range):
        return _shifted_in_range(value, options, direction)
    if isinstance(value, str):
        known = [word for word in order or () if word in options.choices]
        if value not in known:
            return None
        at = known.index(value) + direction
        return known[at] if 0 <= at < len(known) else None
    numbers = sorted(choice for choice in options.choices if not isinstance(choice, str))
    beyond = [n for n in numbers if (n - value) * direction > 0]
    return (min(beyond) if direction > 0 else max(beyond)) if beyond else None


def _shifted_in_range(value: Value, options: Range, direction: int) -> Value | None:
    assert not isinstance(value, str)
    if options.step is not None:
        place = round((value - options.low) / options.step) + direction
        last = int((options.high - options.low) / options.step + 1e-9)
        return type(value)(options.low + place * options.step) if 0 <= place <= last else None
    moved = value * 1.25**direction if options.log else value + direction * (options.high - options.low) / 16.0
    if isinstance(value, int):  # a whole number moves by one at least, or repair would never end
        moved = max(int(moved), value + 1) if direction > 0 else min(int(moved), value - 1)
    bounded = min(max(moved, options.low), options.high)
    return None if bounded == value else type(value)(bounded)


def _applying(row: Row, dependent: Mapping[str, Mapping[str, Sequence[Value]]], usual: Mapping[str, Value]) -> Row:
    """A row with the parameters whose conditions hold, no others."""
    row = dict(row)
    for _ in dependent:  # a child may be a parent
        for name, when in dependent.items():
            if all(row.get(parent) in values for parent, values in when.items()):
                if name in usual:
                    row.setdefault(name, usual[name])
            else:
                row.pop(name, None)
    return row
