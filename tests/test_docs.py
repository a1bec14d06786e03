"""Documents do not rot: links resolve, every parameter, metric, command and exit code is described."""

import re
from pathlib import Path
from typing import Any

import pytest

from codesign import errors
from codesign.metrics import METRICS
from codesign.parameters import PARAMETERS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())

    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_path_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`((?:codesign|docs|tests|search_spaces|deploy|benchmarks|alembic)/[\w./-]+)`", page.read_text())

    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_readme_fits_on_three_screens() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_every_parameter_and_metric_is_in_the_nomenclature() -> None:
    page = (ROOT / "docs" / "nomenclature.md").read_text()

    missing = [p.name for p in PARAMETERS if f"| `{p.name}` | {p.meaning}" not in page]
    missing += [name for name, kind in METRICS.items() if f"| `{name}` | {kind.meaning}" not in page]
    assert missing == []


def commands(app: Any, prefix: str = "codesign") -> list[str]:
    found = [f"{prefix} {c.name or c.callback.__name__}" for c in app.registered_commands]
    for group in app.registered_groups:
        found += commands(group.typer_instance, f"{prefix} {group.name}")
    return found


def test_every_command_is_documented() -> None:
    from codesign.cli import app

    page = (ROOT / "docs" / "cli.md").read_text()
    assert [command for command in commands(app) if f"`{command}" not in page] == []


def test_every_exit_code_is_documented() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    codes = {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.CodesignError) and kind.exit_code != 1
    }

    assert [code for code in codes if f"| {code} |" not in page] == []
