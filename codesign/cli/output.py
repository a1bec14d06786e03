"""How commands print: JSON on request, else tables; errors go through one place."""

from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Storage = Annotated[
    str | None, typer.Option("--storage", help="Database URL; default CODESIGN_STORAGE or sqlite:///codesign.db.")
]


def show(value: Any) -> None:
    """Print something rich can render, as wide as the terminal or 120 columns when piped."""
    import os
    import sys

    from rich.console import Console

    width = None if sys.stdout.isatty() else int(os.environ.get("COLUMNS", "120"))
    Console(width=width, highlight=False).print(value)


def print_json(value: Any) -> None:
    """Print strict JSON."""
    from codesign.jsons import dump

    print(dump(value))


def storage_url(given: str | None) -> str:
    """The database to use: the option, else the environment, else the default file."""
    from codesign.settings import Settings

    return given or Settings().storage
