"""Accuracy is held: no figure of the cases that ship with the project is worse than the stored one beyond noise."""

import json
import time
from pathlib import Path

import pytest

from codesign.cases.gate import figures, main, worse
from codesign.cases.validate import shipped_files, validate
from codesign.resources import case_data


@pytest.fixture(scope="module")
def now() -> dict[str, dict[str, float]]:
    start = time.process_time()
    found = figures(validate(shipped_files()))
    # 50,000 comparisons; the limit is ten times what one core of 2024 needs
    assert time.process_time() - start < 60.0
    return found


def test_no_figure_is_worse_than_the_stored_one(now: dict[str, dict[str, float]]) -> None:
    assert worse(now, json.loads((case_data() / "figures.json").read_text(encoding="utf-8"))) == []


def test_the_gate_compares_and_stores_a_named_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    group = {
        "kind": "link", "metric": "value", "where": {"grade": "A"}, "n": 10, "refused": 1, "mape_pct": 5.0,
        "median_ape_pct": 4.0,
    }  # fmt: skip
    report = tmp_path / "report.json"
    monkeypatch.setattr("codesign.cases.gate.case_data", lambda: tmp_path)
    report.write_text(json.dumps({"groups": [group]}))
    assert main(["--store", str(report)]) == 0
    assert main([str(report)]) == 0
    report.write_text(json.dumps({"groups": [group | {"mape_pct": 5.5}]}))
    assert main([str(report)]) == 1
    assert "link/value/grade=A: mape_pct is 5.5, was 5" in capsys.readouterr().out


@pytest.mark.parametrize(("change", "bad"), [(1.01, False), (1.5, True)])
def test_noise_passes_and_loss_does_not(change: float, bad: bool) -> None:
    held = {"x": {"mape_pct": 10.0, "median_ape_pct": 8.0, "refused_frac": 0.02}}
    changed = {"x": {name: value * change for name, value in held["x"].items()}}
    assert bool(worse(changed, held)) is bad
