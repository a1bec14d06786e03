"""``codesign sweep run``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from codesign.cli.output import Json, Storage, print_json, show, storage_url
from codesign.errors import InfeasibleError

app = typer.Typer(no_args_is_help=True)


@app.command()
def run(
    space: Annotated[str, typer.Argument(help="A space file, or the name of a shipped one.")],
    points: Annotated[
        float | None, typer.Option(help="How many candidates, for example 1e6; default: as begun, or 1e5.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="grid, random or sobol; default: as begun, or sobol.")] = None,
    name: Annotated[str | None, typer.Option("--sweep", help="Name of the sweep; default: the space's name.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the Parquet chunks; default: as begun, or sweeps.")
    ] = None,
    chunk: Annotated[int | None, typer.Option(help="Candidates per chunk; default: as begun, or 16384.")] = None,
    executor: Annotated[str, typer.Option(help="ray or inline.")] = "ray",
    workers: Annotated[int, typer.Option(help="Ray actors; 0: one per core.", min=0)] = 0,
    address: Annotated[str, typer.Option(help="Ray cluster: local, auto or HOST:PORT.")] = "local",
    promote: Annotated[int, typer.Option(help="Make this many of the best the first trials of a study.", min=0)] = 0,
    storage: Storage = None,
    as_json: Json = False,
) -> int:
    """Screen candidates on an index range into Parquet chunks; a second call finishes what is missing."""
    from codesign.cli.progress import sweep_progress
    from codesign.study.sweeping import sweep

    with sweep_progress(quiet=as_json) as report:
        summary = sweep(
            space,
            points=points,
            method=method,
            name=name,
            folder=out,
            chunk=chunk,
            executor=executor,
            workers=workers,
            address=address,
            promote=promote,
            storage=storage_url(storage),
            on_progress=report,
        )
    if as_json:
        print_json(summary)
    else:
        _print(summary)
    return 0 if summary["feasible_count"] else InfeasibleError.exit_code


def _print(summary: dict[str, Any]) -> None:
    from codesign.views.explain import refusals_table, rows_table, shown

    done, feasible = summary["done_count"], summary["feasible_count"]
    show(f"{done:,} of {summary['points_count']:,} points, {feasible:,} feasible: {summary['folder']}")
    rows = [
        {"point": str(entry["index"]), **dict(zip(summary["objectives"], entry["values"], strict=True))}
        for entry in summary["top"][:10]
    ]
    if rows:
        show(rows_table("best points", rows))
        best = [{"parameter": n, "value": shown(n, v)} for n, v in summary["top"][0]["row"].items()]
        show(rows_table(f"design of point {rows[0]['point']}", best))
    else:
        show("nothing feasible was found and nothing is promoted; the table says which rules refused")
    broken = {rule: count for rule, count in summary["refusals"].items() if count}
    show(refusals_table(broken, "why points were refused (as asked)", "points"))
    if summary["promoted_to"]:
        show(f"the best are the first trials of study {summary['promoted_to']}")
