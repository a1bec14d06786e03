"""Documents do not rot: links resolve, every parameter, metric, command and exit code is described."""

import re
from pathlib import Path
from typing import Any

import pytest

from codesign import errors
from codesign.views.nomenclature import page

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_every_link_of_a_page_leads_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())

    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_every_path_a_page_names_exists(path: Path) -> None:
    named = re.findall(
        r"`((?:codesign|docs|tests|search_spaces|deploy|benchmarks|alembic)/[\w./-]+)`", path.read_text()
    )

    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_readme_fits_on_three_screens() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_the_nomenclature_is_what_the_code_says() -> None:
    assert (ROOT / "docs" / "nomenclature.md").read_text() == page()


def commands(app: Any, prefix: str = "codesign") -> list[str]:
    found = [f"{prefix} {c.name or c.callback.__name__}" for c in app.registered_commands]
    for group in app.registered_groups:
        found += commands(group.typer_instance, f"{prefix} {group.name}")
    return found


def test_every_command_is_documented() -> None:
    from codesign.cli import app

    text = (ROOT / "docs" / "cli.md").read_text()
    assert [command for command in commands(app) if f"`{command}" not in text] == []


def test_every_exit_code_is_documented() -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    codes = {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.CodesignError) and kind.exit_code != 1
    }

    assert [code for code in codes if f"| {code} |" not in text] == []
