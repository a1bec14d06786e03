"""One design from every side: rows agree with the evaluation they come from, figures are written, errors are clear."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from codesign.errors import SpaceError, UsageError
from codesign.jsons import dump
from codesign.views import designs
from codesign.views.explain import single
from tests.views.small import DESIGN


@pytest.fixture
def design(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(DESIGN, encoding="utf-8")
    return str(path)


def printed(renderable: object) -> str:
    console = Console(width=140, record=True, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - closed below
    console.print(renderable)
    console.file.close()
    return console.export_text()


def test_an_evaluated_design_is_a_documented_trial(design: str) -> None:
    trial = json.loads(dump(designs.evaluated(design)))
    documented = {"number", "source", "feasible", "values", "design", "repairs", "metrics", "workloads", "bill",
                  "binds", "violations"}  # fmt: skip
    assert documented <= set(trial)
    assert {"now", "next", "elasticities"} <= set(trial["binds"])
    assert trial["design"]["memory_stacks_count"] == 6
    work = trial["workloads"]["chat"]
    assert sum(part["ms"] for part in work["waterfall"]) == pytest.approx(work["time_ms"], rel=1e-9)
    assert sum(item["usd_per_mtok"] for item in trial["bill"]) == pytest.approx(
        trial["values"]["usd_per_mtok"], rel=1e-9
    )
    changes = [entry["change_pct"] for entry in trial["binds"]["elasticities"]]
    assert changes == sorted(changes)
    assert changes[0] < -0.5


def test_a_space_stands_for_its_base_design() -> None:
    trial = designs.evaluated("quickstart")
    assert trial["design"]["memory_stacks_count"] == 5  # of hgx_h100, although the space varies it


def test_the_table_names_cost_mapping_and_what_binds(design: str) -> None:
    text = printed(single(designs.evaluated(design)))
    for word in (
        "usd_per_mtok",
        "workloads at their best mapping",
        "cost of a million tokens",
        "binds now",
        "USD/Mtoken",
    ):
        assert word in text


def test_a_design_that_cannot_be_built_says_why(design: str) -> None:
    path = Path(design)
    path.write_text(DESIGN.replace("memory_stacks_count: 6", "power_cap_w: 1800"), encoding="utf-8")
    trial = designs.evaluated(str(path))
    assert not trial["feasible"]
    text = printed(single(trial))
    assert "cannot be built" in text
    assert "cooling" in text


def test_scenarios_stand_side_by_side_and_the_market_asks_more(design: str, tmp_path: Path) -> None:
    figure = tmp_path / "tornado.svg"
    report = designs.cost_report(design, ["owner", "market"], True, figure)
    total = report["bill"][-1]
    assert total["item"] == "total"
    assert total["market_usd_per_h"] > total["owner_usd_per_h"]
    for name in ("owner", "market"):
        items = [row[f"{name}_usd_per_mtok"] for row in report["bill"][:-1]]
        assert sum(items) == pytest.approx(total[f"{name}_usd_per_mtok"], rel=1e-9)
    swings = [row["swing_usd_per_mtok"] for row in report["tornado"]]
    assert swings == sorted(swings, reverse=True)
    assert swings[0] > 0.0
    ElementTree.fromstring(figure.read_text(encoding="utf-8"))


def test_the_tornado_swings_around_the_evaluated_cost(design: str) -> None:
    report = designs.cost_report(design, [], True, None)
    usd = designs.evaluated(design)["values"]["usd_per_mtok"]
    for row in report["tornado"]:
        ends = sorted((row["at_low_usd_per_mtok"], row["at_high_usd_per_mtok"]))
        assert ends[0] <= usd * 1.02
        assert ends[1] >= usd * 0.98


def test_chip_rows_sum_to_the_silicon_and_the_floor_plan_is_drawn(design: str, tmp_path: Path) -> None:
    figure = tmp_path / "chip.html"
    rows = designs.chip_rows(design, figure)
    area = sum(row["value"] for row in rows if row["section"] == "area of the package")
    silicon = next(row["value"] for row in rows if row["quantity"] == "silicon_mm2")
    assert area == pytest.approx(silicon, rel=1e-9)
    assert "<svg" in figure.read_text(encoding="utf-8")
    assert any(row["section"] == "power in chat" and row["quantity"] == "package_w" for row in rows)


def test_the_fabric_report_has_networks_counts_bill_and_curves(design: str, tmp_path: Path) -> None:
    figure = tmp_path / "fabric.svg"
    report = designs.fabric_report(design, figure)
    assert set(report) == {"networks", "topology", "bill", "collectives"}
    for rows in report.values():
        assert rows
        assert len({tuple(row) for row in rows}) == 1
    ElementTree.fromstring(figure.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            lambda d: designs.cost_report(d, ["ownr"], False, None),
            UsageError,
            "--scenario: no scenario 'ownr'; did you mean 'owner'",
        ),
        (lambda d: designs.chip_rows(d, Path("plan.png")), UsageError, ".svg or .html"),
        (lambda d: designs.chip_rows(d, Path("/nowhere/at/all/plan.svg")), UsageError, "cannot write"),
        (lambda _: designs.evaluated("no_such_design"), SpaceError, "neither a shipped space nor a file"),
    ],
)
def test_mistakes_are_named(design: str, call, kind: type[Exception], words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(kind, match=words.replace(".", r"\.")):
        call(design)


def test_a_cold_evaluation_loads_nothing_it_does_not_use(design: str) -> None:
    """Searching, storing and plotting libraries would be most of a cold start."""
    code = (
        "import sys; from codesign.views.designs import evaluated; evaluated(sys.argv[1]); "
        "print([m for m in ('ray', 'optuna', 'sqlalchemy', 'plotly', 'pandas', 'scipy.stats', 'scipy.optimize') "
        "if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code, design], capture_output=True, text=True, timeout=120, check=True)
    assert run.stdout.strip() == "[]"
