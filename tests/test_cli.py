"""The command line: documented exit codes, strict JSON, sentences instead of tracebacks."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from codesign.cli import run


def called(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(words)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'studies.db'}"


def test_a_study_runs_continues_and_answers(capsys: pytest.CaptureFixture[str], storage: str, tmp_path: Path) -> None:
    space = ("quickstart", "--executor", "inline", "--storage", storage)

    code, out, _ = called(capsys, "study", "run", *space, "--trials", "8", "--json")
    first = json.loads(out)
    _, out, _ = called(capsys, "study", "run", *space, "--trials", "12", "--json")
    second = json.loads(out)
    exported = tmp_path / "trials.csv"
    called(capsys, "study", "export", "quickstart", str(exported), "--storage", storage)

    assert code == 0
    assert (first["trials"], second["trials"]) == (8, 12)
    assert second["best"]["values"]["usd_per_mtok"] <= first["best"]["values"]["usd_per_mtok"]
    assert sum(item["usd_per_mtok"] for item in second["best"]["bill"]) == pytest.approx(
        second["best"]["metrics"]["usd_per_mtok"], rel=1e-9
    )
    for work in second["best"]["workloads"].values():
        assert sum(part["ms"] for part in work["waterfall"]) == pytest.approx(work["time_ms"], rel=1e-9)
    assert len(second["baselines"]) >= 2
    assert len(second["next"]) == 3
    assert len(exported.read_text().splitlines()) == 13


def test_a_study_stops_at_a_limit_says_why_and_goes_on(capsys: pytest.CaptureFixture[str], storage: str) -> None:
    space = ("study", "run", "quickstart", "--executor", "inline", "--storage", storage)

    _, out, _ = called(capsys, *space, "--trials", "24", "--worker-hours", "1e-9", "--json")
    dear = json.loads(out)
    _, out, _ = called(capsys, *space, "--patience", "5", "--time-limit-s", "0")
    best = called(capsys, "study", "best", "quickstart", "--storage", storage)[1]
    _, more, _ = called(capsys, *space, "--patience", "50", "--time-limit-s", "3600", "--json")

    assert (dear["state"], dear["trials"], dear["total"]) == ("stopped", 16, 24)
    assert dear["reason"].endswith("worker-hours spent, 1e-09 allowed")
    assert dear["next"][1] == f"codesign study run quickstart --storage {storage}"
    assert "stopped: time limit reached" in out
    assert "stopped: time limit reached" in best
    assert (json.loads(more)["trials"], json.loads(more)["reason"]) == (24, "all trials done")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["study", "run", "quickstrat", "--executor", "inline"], 3, "did you mean 'quickstart'?"),
        (["study", "best", "nothing"], 6, "there is no database of studies at "),
        (["study", "run", "quickstart", "--executor", "slurm"], 2, "no executor 'slurm'"),
        (["study", "run", "quickstart", "--executor", "inline", "--patience", "0"], 2, "1 or more; got 0"),
        (["study", "run", "quickstart", "--executor", "inline", "--worker-hours", "-2"], 2, "above 0; got -2"),
        (["study", "run", "quickstart", "--executor", "inline", "--time-limit-s", "nan"], 2, "wanted seconds"),
        (["space", "check", "missing.yaml"], 3, "cannot read"),
        (["catalog", "show", "hbm33"], 4, "did you mean"),
        (["validate", "missing.csv"], 5, "cannot read"),
        (["evaluate", "nowhere"], 3, "nowhere"),
        (["calibrate", "gem"], 2, "did you mean 'gemm'?"),
        (["calibrate", "gemm", "--list", "--write"], 2, "give one of them"),
    ],
)
def test_a_wrong_command_ends_with_its_code_and_a_sentence(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    storage: str,
    words: list[str],
    code: int,
    says: str,
) -> None:
    monkeypatch.setenv("CODESIGN_STORAGE", storage)

    got, out, err = called(capsys, *words)

    assert got == code
    assert says in err
    assert "Traceback" not in out + err


def test_an_error_can_be_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "catalog", "show", "hbm33", "--json")

    assert json.loads(out)["error"]["exit_code"] == code == 4


def test_a_database_of_another_application_is_left_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table invoices (id integer)")
        connection.execute("create table alembic_version (version_num text)")
        connection.execute("insert into alembic_version values ('abc')")
    before = path.read_bytes()

    code, _, err = called(
        capsys, "study", "run", "quickstart", "--trials", "4", "--executor", "inline", "--storage", f"sqlite:///{path}"
    )

    assert code == 6
    assert "Traceback" not in err
    assert path.read_bytes() == before


def test_help_and_import_stay_light() -> None:
    names = "'numpy', 'pydantic', 'optuna', 'ray', 'sqlalchemy'"
    heavy = f"import sys, codesign.cli; print([m for m in ({names}) if m in sys.modules])"

    found = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"
