"""``codesign catalog check|list|show``."""

from typing import Annotated

import typer

from codesign.cli.output import Json, print_json, show

app = typer.Typer(no_args_is_help=True)


@app.command()
def check(as_json: Json = False) -> None:
    """Load every fact and check schema, units, sources and ranges."""
    from codesign.views.catalog import census

    counts = census()
    if as_json:
        print_json(counts)
        return
    from codesign.views.explain import rows_table

    show(
        rows_table(
            "catalog is sound", [{"kind": k, "entries": str(e), "facts": str(f)} for k, (e, f) in counts.items()]
        )
    )


@app.command("list")
def list_entries(
    kind: Annotated[str | None, typer.Argument(help="One kind of entry.")] = None, as_json: Json = False
) -> None:
    """Kinds, or the entries of one kind."""
    from codesign.views.catalog import entries

    found = entries(kind)
    if as_json:
        print_json(found)
        return
    for name, names in found.items():
        show(f"{name}: {', '.join(names)}")


@app.command("show")
def show_entry(
    name: Annotated[str, typer.Argument(help="A technology, platform, model or scenario.")], as_json: Json = False
) -> None:
    """Every number of one entry: value, range, printed or default, and its source."""
    from codesign.views.catalog import entry

    rows = entry(name)
    if as_json:
        print_json(rows)
        return
    from codesign.views.explain import rows_table

    show(rows_table(name, rows))
