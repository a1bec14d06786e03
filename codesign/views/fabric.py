"""The fabric of one design as rows: topology and counts, and collectives against message size with what limits them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codesign.columns import number_at, remade
from codesign.model.fabric.collectives import Fabric, inner_count
from codesign.model.fabric.parts import CollectiveParts, all_reduce_parts, all_to_all_parts
from codesign.model.fabric.topology import Topology
from codesign.units import Array, Numeric, gbytes_per_s, us_from_ns

Row = dict[str, object]

#: Largest part of a collective -> what a reader should look at.
LIMITS = {
    "launch_ns": "launch",
    "steps_ns": "message starts",
    "protocol_ns": "protocol change and pipeline filling",
    "scale_up_ns": "scale-up line rate",
    "scale_out_ns": "scale-out line rate",
}
FASTER = "in-switch or low-latency kernel"
SIZES: Array = np.array([2.0**power for power in range(10, 34)])
_COLOURS = ("#3b6ea5", "#d98e32", "#4f9d86", "#9a66bf", "#cf6f6f", "#66727f")


def topology_rows(scale_up: Topology, scale_out: Topology, row: int = 0) -> list[Row]:
    """Counts per endpoint, hops and contention of both networks, side by side."""
    names = {
        "switches_count": "switches per endpoint",
        "access_cables_count": "cables to the first switch or neighbour, per endpoint",
        "trunk_cables_count": "cables between switches, per endpoint",
        "hops_count": "switches on an average path",
        "worst_hops_count": "switches on the longest path",
        "bisection_frac": "bisection over the endpoints' rate",
        "all_to_all_ratio": "contention of all-to-all",
        "permutation_ratio": "contention of a permutation",
        "neighbour_ratio": "contention of nearest neighbours",
        "capacity_count": "endpoints that the radix allows",
        "radix_excess_ratio": "endpoints beyond that, over it",
    }
    return [
        {
            "quantity": label,
            "scale_up": number_at(getattr(scale_up, name), row),
            "scale_out": number_at(getattr(scale_out, name), row),
        }
        for name, label in names.items()
    ]


def curve_rows(fabric: Fabric, group_counts: Sequence[float], row: int = 0) -> list[Row]:
    """All-reduce and all-to-all over message sizes for some group sizes: time, bus bandwidth, and the limiting part."""
    one = _row_of(fabric, row)
    out: list[Row] = []
    for group in group_counts:
        inner = number_at(inner_count(group, 1.0, one.scale_up.domain_count), 0)
        out += _curve("all_reduce", all_reduce_parts(SIZES, group, inner, one), group, 2.0 * (group - 1.0) / group)
        out += _curve("all_to_all", all_to_all_parts(SIZES, group, inner, one), group, (group - 1.0) / group)
    return out


def _curve(operation: str, parts: CollectiveParts, group: float, bus_factor: float) -> list[Row]:
    total = np.asarray(parts.total_ns, dtype=np.float64)
    columns = {name: _wide(getattr(parts, name), total) for name in LIMITS}
    saved = _wide(parts.saved_ns, total)
    bus = np.asarray(gbytes_per_s(8.0 * bus_factor * SIZES / total))
    return [
        {
            "operation": operation,
            "group_count": group,
            "message_bytes": float(SIZES[i]),
            "time_us": float(us_from_ns(float(total[i]))),
            "bus_gbytes_per_s": float(bus[i]),
            "limit": limit_of({name: float(column[i]) for name, column in columns.items()}, float(saved[i])),
            **{name: float(column[i]) for name, column in columns.items()},
            "saved_ns": float(saved[i]),
        }
        for i in range(len(SIZES))
    ]


def limit_of(parts: Mapping[str, float], saved_ns: float) -> str:
    """What limits a collective: its largest part, or the faster kernel that replaced the ring altogether."""
    if -saved_ns > 0.25 * sum(parts.values()):
        return FASTER
    shown = dict(parts)
    if shown["scale_out_ns"] > 0.0:  # both tiers move at once: where the network takes longer, all of that is its time
        shown["scale_out_ns"] += shown.pop("scale_up_ns")
    return LIMITS[max(shown, key=lambda name: shown[name])]


def fabric_rows(
    fabric: Fabric, scale_up: Topology, scale_out: Topology, group_counts: Sequence[float], row: int = 0
) -> dict[str, list[Row]]:
    """Everything ``codesign fabric`` prints, as plain data."""
    return {"topology": topology_rows(scale_up, scale_out, row), "collectives": curve_rows(fabric, group_counts, row)}


def default_groups(fabric: Fabric, row: int = 0) -> list[float]:
    """Groups worth a curve: the scale-up domain, and sixteen domains across the network."""
    domain = float(max(2.0, min(number_at(fabric.scale_up.domain_count, row), 1024.0)))
    return [domain, 16.0 * domain]


def fabric_figure(rows: Sequence[Row]) -> Any:
    """Bus bandwidth and latency against message size, one line per operation and group; hover tells the limit."""
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=2, subplot_titles=("bus bandwidth [GB/s]", "time [us]"))
    curves = dict.fromkeys((str(r["operation"]), float(str(r["group_count"]))) for r in rows)
    for number, (operation, group) in enumerate(curves):
        mine = [r for r in rows if (r["operation"], r["group_count"]) == (operation, group)]
        line = {"color": _COLOURS[number % len(_COLOURS)]}
        for column, name in ((1, "bus_gbytes_per_s"), (2, "time_us")):
            figure.add_scatter(
                x=[r["message_bytes"] for r in mine], y=[r[name] for r in mine], text=[r["limit"] for r in mine],
                name=f"{operation}, {group:g} ranks", line=line, showlegend=column == 1, row=1, col=column,
            )  # fmt: skip
    figure.update_xaxes(type="log", title_text="message [byte]")
    figure.update_yaxes(type="log", row=1, col=2)
    return figure


def _wide(value: Numeric, like: Array) -> Array:
    return np.broadcast_to(np.asarray(value, dtype=np.float64), like.shape)


def _row_of(fabric: Fabric, row: int) -> Fabric:
    """One candidate's fabric as plain numbers."""
    return remade(fabric, lambda value: number_at(value, row))
