"""The accuracy page says what was found: figures, worst cases with reasons, refusals, claims, constants, plots."""

import json
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from codesign.cases.gate import figures, worse
from codesign.cases.rows import read_rows
from codesign.cases.validate import shipped_files, validate
from codesign.catalog import load_catalog
from codesign.cli import app
from codesign.views.accuracy import WORST_COUNT, accuracy_page, worst_cases
from codesign.views.accuracy_files import WORST, explained, plots_of, write_accuracy
from codesign.views.scatter import scatter_svg

SMALL = ("training.csv", "serving.csv", "inference.csv", "collectives.csv", "links.csv", "memory.csv")


def _files() -> list[Path]:
    return [path for path in shipped_files() if path.name in SMALL]


@cache
def report() -> dict[str, Any]:
    return validate(_files())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("docs") / "accuracy.md"
    write_accuracy(report(), _files(), path, load_catalog())
    return path


def test_the_page_has_every_part(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for part in ("Figures", "Predicted against measured", "Refused, by reason", "Published claims", "Fitted constants"):
        assert f"\n## {part}" in text
    assert "## What the model does not claim" in text
    assert "\n| above 106.25 GBd | " in text
    for law in load_catalog().constants:
        assert f"| {law} |" in text


def test_every_plot_the_page_shows_is_a_picture(page: Path) -> None:
    shown = [line.split("](")[1].rstrip(")") for line in page.read_text().splitlines() if line.startswith("![")]
    assert len(shown) == len(plots_of(report()["cases"])) >= len(SMALL)
    for name in shown:
        assert ET.parse(page.parent / name).getroot().tag.endswith("svg")


@pytest.mark.parametrize("title", WORST)
def test_each_of_the_worst_cases_has_a_sentence_from_its_row(title: str) -> None:
    kind, metric = WORST[title]
    sources = {(rows.file, rows.kind): rows for path in _files() for rows in read_rows(path)}
    worst = explained(report()["cases"], kind, metric, sources, load_catalog())
    assert len(worst) == WORST_COUNT
    assert all(case["kind"] == kind and metric in ("", case["metric"]) for case in worst)
    assert all(case["why"].endswith(".") for case in worst)
    # the reasons are worked out: not one sentence for all
    assert len({case["why"] for case in worst}) > 3


def test_the_worst_cases_are_the_farthest_off_either_way() -> None:
    cases = [
        {"kind": "x", "metric": "m", "grade": grade, "error_pct": error, "log10_error": log, "case": name}
        for name, grade, error, log in (
            ("twice", "A", 100.0, 0.301),
            ("third", "A", -66.7, -0.477),
            ("near", "A", 1.0, 0.004),
            ("odd", "C", 900.0, 1.0),
        )
    ]
    assert [case["case"] for case in worst_cases(cases, "x")] == ["third", "twice", "near"]


def test_a_claim_that_fails_is_shown_as_one() -> None:
    rows = [
        {"id": "a", "claim": "c", "source": "s", "found": "f", "verdict": "pass"},
        {"id": "b", "claim": "c", "source": "s", "found": "f", "verdict": "fail"},
    ]
    text = accuracy_page({"groups": [], "cases": []}, [], [], {}, claims=rows)
    assert "1 of 2 hold" in text
    assert "| b | c | s | f | fail |" in text


def test_dots_of_a_plot_lie_where_their_numbers_say() -> None:
    root = ET.fromstring(scatter_svg([(10.0, 10.0), (100.0, 10.0), (0.0, 5.0)], "a & b", "ms"))
    dots = [(float(c.get("cx", "")), float(c.get("cy", ""))) for c in root.iter() if c.tag.endswith("circle")]
    assert len(dots) == 2
    assert dots[0][1] == dots[1][1]
    assert dots[1][0] > dots[0][0]


def test_a_wide_range_keeps_few_grid_lines() -> None:
    svg = scatter_svg([(1e-300, 1e-300), (1.0, 1.0)], "tails", "1")
    assert svg.count('stroke="#ddd"') <= 9


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    rows, out = tmp_path / "links.csv", tmp_path / "docs" / "accuracy.md"
    source = next(path for path in shipped_files() if path.name == "links.csv")
    rows.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    out.parent.mkdir()
    result = CliRunner().invoke(app, ["validate", str(rows), "--page", str(out)])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "docs" / "accuracy" / "link.svg").exists()
    assert out.read_text(encoding="utf-8").startswith("# Accuracy")


def test_the_gate_names_what_got_worse_and_what_is_gone() -> None:
    held = figures(report())
    assert worse(held, held) == []
    key = next(name for name in held if name.startswith("training/step_time_s/"))
    bad = json.loads(json.dumps(held))
    bad[key]["mape_pct"] *= 1.5
    del bad["memory/value/"]
    complaints = worse(bad, held)
    assert any(line.startswith(f"{key}: mape_pct") for line in complaints)
    assert "memory/value/: no longer there" in complaints
    assert len(complaints) == 2
