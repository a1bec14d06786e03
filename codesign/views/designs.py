"""One design seen from every side: its evaluation, links, bill, chip and fabric, as rows that print and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from codesign.billing import activity_of, bill_of, cost_choice, scenario_of
from codesign.candidates import Candidates, assemble_rows
from codesign.catalog import Catalog, load_catalog
from codesign.columns import number_at
from codesign.cost.ownership import token_usd_per_mtok
from codesign.errors import UsageError, nearest
from codesign.evaluation import Evaluation, check_question, evaluate, mixed_watts
from codesign.hardware import chip_inputs_of
from codesign.metrics import has_value
from codesign.model.chip.power import power
from codesign.prices import Draws, facts_read
from codesign.shadow import explained, shadow
from codesign.space import Space, load_space
from codesign.units import Numeric, unit_of
from codesign.views.bill import ITEMS, bill_rows, tornado, tornado_svg
from codesign.views.curves import curves_svg, write_figure, write_text
from codesign.views.fabric import default_groups, fabric_figure, fabric_rows
from codesign.views.floorplan import floorplan_svg

Row = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """A design file, or the base design of a space, with the catalog it is read against."""

    space: Space
    catalog: Catalog

    @property
    def candidates(self) -> Candidates:
        """The one design: what the file fixes over its base platform."""
        return assemble_rows([{}], self.space)

    def evaluated(self) -> Evaluation:
        """The design at its best mapping."""
        return evaluate(self.candidates, self.space, self.catalog)


def question(design: str | Space) -> Question:
    """Load and check a design.

    Raises:
        SpaceError: the file breaks the grammar or names what does not exist.
    """
    space, catalog = load_space(design), load_catalog()
    check_question(space, catalog)
    return Question(space, catalog)


def evaluated(design: str | Space) -> Row:
    """One design as the documented trial JSON, with what more of each resource would change."""
    asked = question(design)
    found, prices = shadow(asked.candidates, asked.space, asked.catalog)
    details = explained(found.details(0), asked.space, prices[0])
    return {"number": None, "source": f"design {asked.space.name}", "repairs": [], **details}


# ----------------------------------------------------------------------------------------------------------- cost


def cost_report(design: str, scenarios: Sequence[str], swing: bool, plot: Path | None) -> Row:
    """The bill under one or more price scenarios, and what each price's range does to the cost of a token.

    Raises:
        UsageError: no such scenario.
    """
    asked = question(design)
    known = asked.catalog.technologies("scenarios")
    for name in scenarios:
        if name not in known:
            raise UsageError(f"--scenario: no scenario {name!r}{nearest(name, known)}")
    names = list(dict.fromkeys(scenarios)) or [asked.space.scenario.prices]
    bills = {name: _priced(asked, name) for name in names}
    rows: list[Row] = [{"item": item} for item in [*ITEMS, "total"]]
    for name, found in bills.items():
        factor = float(found.metrics.usd_per_mtok[0]) / max(number_at(found.bill.hourly.total_usd_per_h), 1e-12)
        for row, priced in zip(rows, bill_rows(found.bill), strict=True):
            row[f"{name}_capital_usd"] = priced.capital_usd
            row[f"{name}_usd_per_h"] = priced.rate_usd_per_h
            row[f"{name}_usd_per_mtok"] = priced.rate_usd_per_h * factor if _delivers(found) else None
    swings = _swings(bills[names[0]], asked.catalog) if swing or plot is not None else []
    if plot is not None:
        write_figure(plot, tornado_svg(swings), f"{asked.space.name}: what each price does to USD/Mtoken")
    listed = [
        {
            "fact": " ".join(one.fact),
            "low": one.low,
            "high": one.high,
            "unit": one.unit,
            "at_low_usd_per_mtok": one.at_low_usd,
            "at_high_usd_per_mtok": one.at_high_usd,
            "swing_usd_per_mtok": one.swing_usd,
        }
        for one in swings
    ]
    return {"scenarios": names, "bill": rows, "tornado": listed if swing else []}


def _delivers(found: Evaluation) -> bool:
    return has_value("usd_per_mtok", float(found.metrics.usd_per_mtok[0]))


def _priced(asked: Question, scenario: str) -> Evaluation:
    said = asked.space.scenario.model_copy(update={"prices": scenario})
    space = asked.space.model_copy(update={"scenario": said})
    check_question(space, asked.catalog)
    return evaluate(asked.candidates, space, asked.catalog)


def _swings(found: Evaluation, catalog: Catalog) -> list[Any]:
    """Each price at its low and at its high; the machine and its mapping stay. None where no token is delivered."""
    if not _delivers(found):
        return []
    scenario, watts = scenario_of(found.space.scenario), mixed_watts(found.watts, found.space)

    def usd_per_mtok(draws: Draws) -> Numeric:
        made, inputs = bill_of(found.hardware, found.networks, watts, scenario, catalog, draws)
        share = inputs.energy.utilisation_frac
        return token_usd_per_mtok(made.hourly.total_usd_per_h, found.totals.tokens_per_s, share, 1.0)

    facts = facts_read(catalog, cost_choice(found.hardware, found.networks, watts), scenario)
    return tornado(usd_per_mtok, facts)


# ----------------------------------------------------------------------------------------------------------- chip


def chip_rows(design: str, plot: Path | None) -> list[Row]:
    """Area by block, dies, edges, peaks, memory and power of one package."""
    asked = question(design)
    found = asked.evaluated()
    own = found.hardware.own
    chip = own.chip
    edges = ("memory_edge_mm", "link_edge_mm", "host_edge_mm", "die_to_die_edge_mm", "edge_required_mm",
             "edge_available_mm")  # fmt: skip
    dies = ("silicon_mm2", "compute_die_mm2", "io_die_mm2", "die_width_mm", "die_height_mm", "reticle_required_mm2",
            "reticle_available_mm2")  # fmt: skip
    blocks = [f.name for f in fields(chip) if f.name.endswith("_mm2") and f.name not in dies]
    peaks = [f.name for f in fields(chip) if f.name.endswith("_peak_gflops")]
    memory = ("peak_rate_gbps", "capacity_bytes", "weights_frac", "kv_frac", "optimizer_frac", "latency_ns")
    rows = [unit_row("area of the package", name, number_at(getattr(chip, name))) for name in blocks]
    rows += [unit_row("dies", name, number_at(getattr(chip, name))) for name in dies]
    rows += [unit_row("edge", name, number_at(getattr(chip, name))) for name in edges]
    rows += [unit_row("peak", name, number_at(getattr(chip, name))) for name in (*peaks, "clock_ghz")]
    rows += [unit_row("memory", name, number_at(getattr(own.memory, name))) for name in memory]
    rows.append(unit_row("power", "clock_frac of a long 16-bit product", number_at(own.clock_frac)))
    for result, work in zip(found.workloads, found.space.workloads.values(), strict=True):
        drawn = power(own.power, activity_of(result, found.hardware, work))
        watts = [f.name for f in fields(drawn) if f.name.endswith("_w")]
        rows += [unit_row(f"power in {result.name}", name, number_at(getattr(drawn, name))) for name in watts]
    if plot is not None:
        inputs = chip_inputs_of(asked.candidates, own, asked.catalog)
        write_figure(plot, floorplan_svg(chip, inputs, 0), f"{asked.space.name}: floor plan")
    return rows


# --------------------------------------------------------------------------------------------------------- fabric


def fabric_report(design: str, plot: Path | None) -> dict[str, list[Row]]:
    """Both networks: what they are made of, what they cost, and how collectives do against message size."""
    asked = question(design)
    found = asked.evaluated()
    rows = fabric_of_rows(found)
    if plot is not None:
        _plot_fabric(plot, rows["collectives"], f"{asked.space.name}: bus bandwidth of collectives")
    return rows


def fabric_of_rows(found: Evaluation) -> dict[str, list[Row]]:
    """The parts of the report from an evaluation: networks, counts, bill, curves."""
    fabric = found.hardware.fabric
    described = fabric_rows(fabric, found.networks.up, found.networks.out, default_groups(fabric))
    bill = [
        {"item": row.label, "capital_usd": row.capital_usd, "rate_usd_per_h": row.rate_usd_per_h}
        for row in bill_rows(found.bill)
        if row.item in ("links", "switches", "nics")
    ]
    return {"networks": _network_rows(found), "topology": described["topology"], "bill": bill,
            "collectives": described["collectives"]}  # fmt: skip


def _network_rows(found: Evaluation) -> list[Row]:
    machines, nets = found.hardware, found.networks
    c, own = machines.candidates, machines.own
    return [
        {
            "network": prefix,
            "topology": c.words(f"{prefix}_topology")[0],
            "medium": c.words(f"{prefix}_medium")[0],
            "switch": switch[0],
            "radix_count": number_at(radix),
            "ports_count": number_at(ports),
            "goodput_gbps": number_at(link.goodput_gbps),
            "length_m": number_at(machines.length_m(prefix)),
        }
        for prefix, switch, radix, ports, link in (
            ("scale_up", nets.up_switch, nets.up_radix_count, own.up_ports_count, own.up),
            ("scale_out", nets.out_switch, nets.out_radix_count, own.out_ports_count, own.out),
        )
    ]


def _plot_fabric(plot: Path, rows: Sequence[Row], title: str) -> None:
    """An SVG of bus bandwidth, or an interactive page that also tells what limits each point."""
    if plot.suffix == ".html":
        page = fabric_figure(rows).to_html(include_plotlyjs=True, full_html=True)
        write_text(plot, str(page))
        return
    curves = dict.fromkeys((row["operation"], row["group_count"]) for row in rows)
    lines = {
        f"{operation}, {group:g} ranks": [
            float(row["bus_gbytes_per_s"])
            for row in rows
            if (row["operation"], row["group_count"]) == (operation, group)
        ]
        for operation, group in curves
    }
    sizes = list(dict.fromkeys(float(row["message_bytes"]) for row in rows))
    write_figure(plot, curves_svg(sizes, lines, title, "message [byte]", "bus bandwidth [GB/s]"), title)


def unit_row(section: str, name: str, value: float) -> Row:
    """A quantity with the unit its name promises."""
    unit = unit_of(name) or ""
    return {"section": section, "quantity": name, "value": value, "unit": "" if unit == "1" else unit}
