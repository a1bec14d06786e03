"""``codesign db ...``, ``codesign validate``, ``codesign calibrate``, ``codesign dashboard``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from codesign.cli.output import Json, Storage, print_json, show, storage_url
from codesign.errors import UsageError

app = typer.Typer(no_args_is_help=True)


@app.command()
def upgrade(storage: Storage = None, as_json: Json = False) -> None:
    """Bring the database to this version; safe to repeat."""
    from codesign.store.migrate import upgrade as migrate

    _print_revisions(migrate(storage_url(storage)), as_json)


@app.command()
def current(storage: Storage = None, as_json: Json = False) -> None:
    """The revision the database is at, and the one this version wants."""
    from codesign.store.migrate import current as revisions

    _print_revisions(revisions(storage_url(storage)), as_json)


def _print_revisions(found: Any, as_json: bool) -> None:
    from dataclasses import asdict

    if as_json:
        print_json(asdict(found))
        return
    show(", ".join(f"{name} {value or 'none'}" for name, value in asdict(found).items()))


def register(app: typer.Typer) -> None:
    """Add the top-level commands of this file."""
    app.command()(validate)
    app.command()(calibrate)
    app.command()(dashboard)


def dashboard(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8080,
    storage: Storage = None,
) -> None:
    """Review studies in optuna-dashboard: notes on the best designs, front, time and cost side by side."""
    from codesign.study.study import list_studies
    from codesign.views.dashboard import publish_review, serve

    url = storage_url(storage)
    for line in list_studies(url):
        if line["trials_count"]:
            show(f"{publish_review(url, line['name'])}: up to date")
    show(f"http://{host}:{port} until interrupted")
    try:
        serve(url, host, port)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


def validate(
    files: Annotated[list[Path] | None, typer.Argument(help="Case files; default: every file shipped.")] = None,
    json_out: Annotated[Path | None, typer.Option("--json", help="Write cases and groups to this file.")] = None,
    by: Annotated[list[str] | None, typer.Option(help="Group by this column too; repeatable.")] = None,
    page: Annotated[
        Path | None, typer.Option(help="Write the accuracy page (Markdown) here, its plots in a folder beside it.")
    ] = None,
) -> None:
    """Replay measured and reference cases through the model and print the accuracy figures."""
    from codesign.cases.validate import shipped_files
    from codesign.cases.validate import validate as replay

    chosen = files or shipped_files()
    report = replay(chosen, by=by or [])
    if json_out is not None:
        from codesign.cases.validate import write_report

        write_report(report, json_out)
    if page is not None:
        from codesign.catalog import load_catalog
        from codesign.views.accuracy_files import write_accuracy

        written = write_accuracy(report, chosen, page, load_catalog())
        show(f"wrote {page} and {len(written) - 1} plots")
    from codesign.views.accuracy import group_table

    show(group_table(report["groups"]))


def calibrate(
    laws: Annotated[list[str] | None, typer.Argument(help="Fits to run; default: all.")] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the constants into the catalog's calibration files.")
    ] = False,
    as_list: Annotated[bool, typer.Option("--list", help="Only list the stored constants; refit nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Refit the model's constants from their rows, and show them beside the stored ones."""
    from codesign.cases.calibrate import constant_rows, refit
    from codesign.catalog import load_catalog

    if as_list and write:
        raise UsageError("calibrate: --list refits nothing, so that there is nothing to --write; give one of them")
    rows = constant_rows(load_catalog(), laws or []) if as_list else refit(laws or [], write=write)
    if as_json:
        print_json(rows)
        return
    from codesign.views.explain import rows_table

    show(rows_table("fitted constants", rows))
