"""``codesign evaluate|link|cost|chip|fabric DESIGN.yaml``."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from codesign.cli.output import Json, print_json, show
from codesign.errors import UsageError

Design = Annotated[str, typer.Argument(help="A design file (a space without vary), or a space: its base design.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Write the figure to this file (.svg or .html).")]


def register(app: typer.Typer) -> None:
    """Add the top-level commands of this file."""
    for command in (evaluate, link, cost, chip, fabric):
        app.command()(command)


def evaluate(design: Design, as_json: Json = False) -> None:
    """Evaluate one design at its best mapping: cost per token, bill, waterfall, what binds."""
    from codesign.views.designs import evaluated

    trial = evaluated(design)
    if as_json:
        print_json(trial)
        return
    from codesign.views.explain import single

    show(single(trial))


def link(
    design: Design,
    which: Annotated[str, typer.Option(help="scale_up, scale_out or die_to_die.")] = "scale_up",
    sweep: Annotated[
        str | None, typer.Option(help="Vary this parameter of the link, or length_m, and tabulate the link.")
    ] = None,
    length_m: Annotated[
        float | None, typer.Option("--length-m", help="Length of the link; default: what the design's racks need.")
    ] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """One link as a data sheet: loss, SNR, BER, FEC, retry, efficiency, buffers, latency, energy, area, dollars."""
    from codesign.views.links import MAIN, link_rows, link_sweep

    if sweep is None and plot is not None:
        raise UsageError("link: --plot draws a sweep; say what varies, for example --sweep length_m")
    if sweep is None:
        _print(link_rows(design, which, length_m), f"{which} link", as_json)
        return
    rows = link_sweep(design, which, sweep, plot, length_m)
    _print(rows, f"{which} link, --json has more columns", as_json, dict.fromkeys([next(iter(rows[0])), *MAIN]))


def cost(
    design: Design,
    scenario: Annotated[
        list[str] | None, typer.Option(help="owner or market; repeat to see them side by side.")
    ] = None,
    tornado: Annotated[bool, typer.Option(help="Also swing every price over its range.")] = True,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """The itemised bill of a design and which prices move it most."""
    from codesign.views.designs import cost_report

    report = cost_report(design, scenario or [], tornado, plot)
    if as_json:
        print_json(report)
        return
    from codesign.views.explain import rows_table

    show(rows_table("bill", report["bill"]))
    if report["tornado"]:
        show(rows_table("what each price's range does to USD/Mtoken", report["tornado"]))


def chip(design: Design, plot: Plot = None, as_json: Json = False) -> None:
    """Area by block, edge budget, power; ``--plot FILE.svg`` draws the floor plan."""
    from codesign.views.designs import chip_rows

    _print(chip_rows(design, plot), "chip", as_json)


def fabric(design: Design, plot: Plot = None, as_json: Json = False) -> None:
    """Topology, counts, bill, and how collectives do against message size."""
    from codesign.views.designs import fabric_report

    report = fabric_report(design, plot)
    if as_json:
        print_json(report)
        return
    from codesign.views.explain import rows_table

    shown = {"collectives": ("operation", "group_count", "message_bytes", "time_us", "bus_gbytes_per_s", "limit")}
    for title, rows in report.items():
        show(rows_table(title, rows, shown.get(title)))


def _print(rows: list[dict[str, object]], title: str, as_json: bool, columns: Iterable[str] | None = None) -> None:
    if as_json:
        print_json(rows)
        return
    from codesign.views.explain import rows_table

    show(rows_table(title, rows, columns))
