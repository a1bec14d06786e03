"""One design as a person reads it: what it is, its workloads, waterfall, bill, what binds, what it breaks."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from codesign.metrics import has_value
from codesign.units import unit_of

Trial = Mapping[str, Any]
_ROUNDED = 1.0 + 1e-9  # items of a bill add up to its total but for the last digits


def shown(name: str, value: Any) -> str:
    """A value with the unit its name promises, in readable digits.

    >>> shown("scale_up_lane_rate_gbps", 212.5), shown("scale_up_fec", "kp4"), shown("usd_per_mtok", 0.1234567)
    ('212.5 Gb/s', 'kp4', '0.1235 USD/Mtoken')
    >>> shown("usd_per_mtok", 1e6)  # what stands in for a price where nothing is delivered
    'none'
    """
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if not has_value(name, value):
        return "none"
    unit = unit_of(f"_{name}")
    number = _digits(float(value))
    return number if unit in (None, "count", "1") else f"{number} {unit}"


def _digits(value: float) -> str:
    if abs(value) >= 1e9 or not math.isfinite(value):
        return f"{value:.4g}"
    if value == int(value) or abs(value) >= 1000.0:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def less(name: str) -> str:
    """What a metric has taken off that the table of workloads has not."""
    return " after failures" if name == "tokens_per_s" else ""


def single(trial: Trial) -> RenderableType:
    """One evaluated design: its values, what it breaks, mapping, waterfall, bill and what binds."""
    parts: list[RenderableType] = [_verdict(trial)]
    parts += [violations_table(trial)] if trial["violations"] else []
    parts += [
        workload_table(trial),
        waterfall_table(trial, None),
        bill_table(trial, None),
        delivery_text(trial),
        binds_text(trial),
    ]
    return Group(*parts)


def _verdict(trial: Trial) -> RenderableType:
    lines = [Text(f"{trial['source']} on platform {trial['platform']}", style="bold")]
    if not trial["feasible"]:
        broken = ", ".join(v["rule"] for v in trial["violations"])
        lines.append(Text(f"cannot be built as it is: breaks {broken}", style="red"))
    style, were = ("green", "") if trial["feasible"] else ("yellow", ", were it built")
    for name, value in trial["values"].items():
        clause = were if has_value(name, value) else ": it delivers nothing"
        lines.append(Text(f"{name}: {shown(name, value)}{less(name)}{clause}", style=style))
    names = ("usd_per_h", "capex_usd", "package_power_w", "energy_j_per_token", "die_mm2", "availability_frac")
    lines.append(Text(", ".join(f"{name} {shown(name, trial['metrics'][name])}" for name in names)))
    return Group(*lines)


def violations_table(trial: Trial, title: str = "rules it breaks") -> Table:
    """Every broken rule with what it requires and what is available."""
    table = Table(title=title, title_justify="left")
    for column in ("rule", "required", "available", "too much by"):
        table.add_column(column, justify="left" if column == "rule" else "right")
    for v in trial["violations"]:
        required, available = f"{_digits(v['required'])} {v['unit']}", f"{_digits(v['available'])} {v['unit']}"
        table.add_row(v["rule"], required, available, _too_much(v["excess"]))
    return table


def _too_much(excess: float) -> str:
    """An excess over what is available; it is bounded, so that a huge one is no number to read.

    >>> _too_much(0.25), _too_much(1e6)
    ('25.0 %', 'over 1,000 times as much')
    """
    return f"{100 * excess:.1f} %" if excess < 1000.0 else "over 1,000 times as much"


def design_table(best: Trial, reference: Trial | None) -> Table:
    """Parameters that differ between the best design and the reference, repairs marked."""
    table = Table(title="design (what differs from the baseline)", title_justify="left")
    table.add_column("parameter")
    table.add_column("best", justify="right")
    table.add_column(reference["source"] if reference else "-", justify="right")
    repaired = {repair["parameter"]: repair["asked"] for repair in best.get("repairs", [])}
    for name, value in best["design"].items():
        other = reference["design"].get(name) if reference else None
        if value != other or name in repaired:
            note = f" (asked {shown(name, repaired[name])})" if name in repaired else ""
            table.add_row(name, shown(name, value) + note, shown(name, other))
    return table


def workload_table(best: Trial) -> RenderableType:
    """Mapping and delivery of every workload, and where one pool answers though two were allowed."""
    table = Table(title="workloads at their best mapping", title_justify="left")
    for column in ("workload", "mapping", "runner-up", "time", "tokens/s per accelerator while up", "p99/mean"):
        table.add_column(column)
    for name, work in best["workloads"].items():
        table.add_row(
            name,
            _mapping(work["mapping"]),
            f"{_mapping(work['runner_up'])} ({_apart(work['runner_up_ratio'])})",
            f"{work['time_name'].removesuffix('_ns')} {_digits(work['time_ms'])} ms",
            _digits(work["tokens_per_s"]),
            f"{work['p99_ratio']:.3f}",
        )
    shared = [
        Text(f"{name}: mode disaggregated was asked; one shared pool beat every split into two", style="yellow")
        for name, work in best["workloads"].items()
        if work.get("mode") == "disaggregated" and not work["mapping"]["disaggregated_flag"]
        if work["mappings_tried"] > 1  # a pinned mapping is what was asked
    ]
    return Group(table, *shared) if shared else table


def _apart(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %" if ratio < 100.0 else "over 100 times as much"


def _mapping(mapping: Mapping[str, float]) -> str:
    shown_parts = (f"{name.removesuffix('_count')} {_digits(value)}" for name, value in mapping.items())
    return ", ".join(part for part in shown_parts if not part.endswith(" 0"))


def waterfall_table(best: Trial, reference: Trial | None) -> RenderableType:
    """Where the time goes, part by part, best beside baseline."""
    tables = []
    for name, work in best["workloads"].items():
        table = Table(
            title=f"where the time of {name} goes ({work['time_name'].removesuffix('_ns')})", title_justify="left"
        )
        columns = ("part", "ms", "share", "baseline ms")[: 4 if reference else 3]
        for column in columns:
            table.add_column(column, justify="left" if column == "part" else "right")
        other = {p["part"]: p["ms"] for p in (reference or {}).get("workloads", {}).get(name, {}).get("waterfall", [])}
        for cells in _waterfall_rows(work, other):
            table.add_row(*cells[: len(columns)])
        total = ("total", _digits(work["time_ms"]), "100 %", _or_dash(sum(other.values()) if other else None))
        table.add_row(*total[: len(columns)])
        tables.append(table)
    return Group(*tables)


def _waterfall_rows(work: Mapping[str, Any], other: Mapping[str, float]) -> list[tuple[str, str, str, str]]:
    """Parts that print a share, of the design or of the baseline; the crumbs of both together are one row."""
    whole, rows, crumbs, old_crumbs = sum(other.values()), [], 0.0, 0.0
    for part in work["waterfall"]:
        share, old = f"{100 * part['share']:.1f} %", other.get(part["part"])
        seen = share != "0.0 %"
        if seen or (old is not None and f"{100 * old / whole if whole else 0.0:.1f}" != "0.0"):
            rows.append((part["part"], _digits(part["ms"]) if seen else "~0", share, _or_dash(old)))
        else:
            crumbs, old_crumbs = crumbs + part["ms"], old_crumbs + (old or 0.0)
    if crumbs or old_crumbs:
        rows.append(("other", _digits(crumbs), "0.0 %", _or_dash(old_crumbs if other else None)))
    return rows


def bill_table(best: Trial, reference: Trial | None) -> Table:
    """Cost per million tokens in items that sum, best beside baseline."""
    table = Table(title="cost of a million tokens", title_justify="left")
    columns = ("item", "USD/h per accelerator", "USD/Mtoken", "share", "baseline USD/Mtoken")[: 5 if reference else 4]
    for column in columns:
        table.add_column(column, justify="left" if column == "item" else "right")
    other, own = _token_items(reference), _token_items(best)
    per_h = sum(item["usd_per_h"] for item in best["bill"])
    for item in best["bill"]:
        share = 100 * item["usd_per_h"] / per_h if per_h else 0.0
        paid = (_digits(item["usd_per_h"]), _or_dash(own.get(item["item"])))
        old = _or_dash(other.get(item["item"]))
        table.add_row(*(item["item"], *paid, f"{share:.1f} %", old)[: len(columns)])
    whole = ("total", _digits(per_h), _total(own), "100 %", _total(other))
    table.add_row(*whole[: len(columns)])
    return table


def delivery_text(trial: Trial) -> RenderableType:
    """How tokens per second become the price, so that a reader can work it out again."""
    delivery = trial.get("delivery")
    if not delivery or not has_value("usd_per_mtok", trial["metrics"]["usd_per_mtok"]):  # stored before it was kept
        return Text("")
    several = len(delivery["mix"]) > 1
    terms = [
        f"{_digits(work['tokens_per_s'])} tokens/s x {work['goodput_frac']:.4g} availability"
        + (f" x {delivery['mix'][name]:.4g} of the mix ({name})" if several else "")
        for name, work in trial["workloads"].items()
    ]
    rate = f"({' + '.join(terms)})" if several else terms[0]
    usd_per_h = trial["metrics"]["usd_per_h"]
    return Text(
        f"{rate} x {delivery['utilisation_frac']:.4g} utilisation x 3600 s = {delivery['tokens_per_h'] / 1e6:.4g} "
        f"Mtoken/h delivered; {usd_per_h:.4g} USD/h / that = {shown('usd_per_mtok', trial['metrics']['usd_per_mtok'])}"
    )


def _token_items(trial: Trial | None) -> dict[str, float]:
    """What each item adds to a million tokens; nothing where no token is delivered."""
    bill = (trial or {}).get("bill", [])
    items = {item["item"]: item["usd_per_mtok"] for item in bill}
    return items if has_value("usd_per_mtok", sum(items.values()) * _ROUNDED) else {}


def _total(items: Mapping[str, float]) -> str:
    return _or_dash(sum(items.values()) if items else None)


def _or_dash(value: float | None) -> str:
    return "-" if value is None else _digits(value)


def binds_text(best: Trial) -> RenderableType:
    """What binds now and next, with what ten per cent more of each resource would buy."""
    binds = best["binds"]
    lines = [Text(f"binds now: {binds['now']}; next: {binds['next']}", style="yellow")]
    prices = binds.get("elasticities") or []
    if prices:
        table = Table(title="what 10 % more of a resource at no cost would change", title_justify="left")
        table.add_column("resource")
        table.add_column("USD/Mtoken", justify="right")
        for entry in prices:
            table.add_row(entry["resource"], f"{entry['change_pct']:+.2f} %")
        return Group(*lines, table)
    return Group(*lines)


def refusals_table(
    refusals: Mapping[str, int], title: str = "why candidates were refused (after repair)", what: str = "trials"
) -> RenderableType:
    """How often each rule refused a candidate, as a histogram; ``what`` is counted: trials, points, samples."""
    if not refusals:
        return Text(f"{title}: none")
    table = Table(title=title, title_justify="left")
    table.add_column("rule")
    table.add_column(what, justify="right")
    table.add_column("")
    most = max(refusals.values())
    for rule, count in sorted(refusals.items(), key=lambda item: -item[1]):
        table.add_row(rule, str(count), "#" * max(1, round(30 * count / most)))
    return table


def rows_table(title: str, rows: Sequence[Mapping[str, Any]], columns: Iterable[str] | None = None) -> Table:
    """A plain table of rows that share keys."""
    table = Table(title=title or None, title_justify="left")
    names = list(columns or (rows[0] if rows else []))
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(row[n] if isinstance(row[n], str) else shown(n, row[n]) for n in names))
    return table
