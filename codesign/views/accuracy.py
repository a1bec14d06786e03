"""Accuracy figures as a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table


def group_table(groups: Sequence[Mapping[str, Any]]) -> Table:
    """One row per group: how many rows were predicted and refused, and how far off the model is."""
    table = Table(title="accuracy: 100 (predicted - measured) / measured", title_justify="left")
    table.add_column("kind")
    table.add_column("metric")
    table.add_column("rows")
    for name in ("n", "refused", "MAPE %", "median %", "p90 %", "bias %", "rank", "within 50 %"):
        table.add_column(name, justify="right")
    for group in groups:
        where = ", ".join(f"{key} {value}" for key, value in group["where"].items()) or "all"
        table.add_row(
            group["kind"],
            group["metric"],
            where,
            str(group["n"]),
            str(group["refused"]),
            *(_number(group[key]) for key in ("mape_pct", "median_ape_pct", "p90_ape_pct", "bias_pct")),
            _number(group["spearman"], 3),
            _number(100 * group["within_50_pct"], 0) if group["within_50_pct"] is not None else "-",
        )
    return table


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
