"""Every value says which fidelity it is of; values of two never meet, in a study, a sweep, a file or a front."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from codesign.errors import StudyError
from codesign.store.repository import Store
from codesign.study import lifecycle
from codesign.study.progress import summarise
from codesign.study.run import run_study
from codesign.study.sweep import promoted, run_sweep
from codesign.study.transfer import export_study, import_study, read_export
from tests.store.backends import plain_rows, sqlite_file
from tests.study import toy

TWO: Any = (("cost_usd", "minimize"), ("rate_gbps", "maximize"))
ROUGH = toy.recipe(objectives=TWO, sampler="random")
FINE = toy.recipe(objectives=TWO, sampler="random", fidelity="simulator")


def fidelities(url: str, name: str) -> set[str]:
    with Store(url) as store:
        return {e.fidelity for e in store.evaluations(store.study(name))}


def test_each_value_is_kept_with_its_fidelity(storage: str) -> None:
    run_study(ROUGH, storage, "rough", trials_total=16)
    run_study(FINE, storage, "fine", trials_total=16)

    assert fidelities(storage, "rough") == {"model"}
    assert fidelities(storage, "fine") == {"simulator"}
    with Store(storage) as store:
        assert store.study("fine").fidelity == "simulator"


@pytest.mark.parametrize("join", [False, True])
def test_a_study_takes_no_value_of_another_fidelity(join: bool, storage: str) -> None:
    run_study(ROUGH, storage, trials_total=16)

    with pytest.raises(StudyError, match="fidelity was model, is simulator"):
        run_study(FINE, storage, trials_total=32, join=join)

    assert fidelities(storage, "toy") == {"model"}


def test_a_copy_hands_designs_to_another_fidelity_and_no_value(storage: str) -> None:
    """The child's front, its reference point and what its sampler is told are of values it evaluated itself."""
    run_study(ROUGH, storage, trials_total=64)
    with Store(storage) as store:
        with pytest.raises(StudyError, match="another fidelity"):
            lifecycle.copy_study(store, "toy", "fine", problem=FINE())
        lifecycle.copy_study(store, "toy", "fine", problem=FINE(), rebase=True, keep=8)
        assert len(store.columns(store.study("fine"))) == 0
        assert store.study("fine").reference is None
        assert lifecycle.copy_study(store, "toy", "same").fidelity == "model"

    run_study(FINE, storage, "fine", trials_total=16)

    assert fidelities(storage, "fine") == {"simulator"}
    with Store(storage) as store:
        front = summarise(store, "fine").front_numbers
        assert front
        assert {e.fidelity for e in store.evaluations(store.study("fine"), front)} == {"simulator"}


def test_a_sweep_has_one_fidelity_and_promotes_designs_only(storage: str, tmp_path: Path) -> None:
    summary = run_sweep(ROUGH, storage, "screen", points_count=256, chunk_count=64, folder=tmp_path)

    with pytest.raises(StudyError, match=r"another fidelity \(model, now simulator\)"):
        run_sweep(FINE, storage, "screen", points_count=256, chunk_count=64, folder=tmp_path)
    for file in Path(summary.folder).glob("*.parquet"):
        assert pq.read_schema(file).metadata[b"fidelity"] == b"model"
    with Store(storage) as store:
        rows = promoted(store, "screen", 8)
    run_study(FINE, storage, "fine", trials_total=16, first_rows=rows)
    assert fidelities(storage, "fine") == {"simulator"}


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_files_carry_it_there_and_back(kind: str, tmp_path: Path) -> None:
    one, two, path = sqlite_file(tmp_path, "one"), sqlite_file(tmp_path, "two"), tmp_path / f"toy.{kind}"
    run_study(FINE, one, trials_total=16)
    with Store(one) as store:
        export_study(store, "toy", path)
        export_study(store, "toy", tmp_path / "toy.csv")
    with Store(two) as store:
        assert import_study(store, read_export(path)).fidelity == "simulator"

    assert fidelities(two, "toy") == {"simulator"}
    with pytest.raises(StudyError, match="fidelity was simulator, is model"):
        run_study(ROUGH, two, trials_total=32)
    with (tmp_path / "toy.csv").open() as file:
        assert {row["fidelity"] for row in csv.DictReader(file)} == {"simulator"}


def test_a_file_that_mixes_is_refused_whole_and_one_from_before_is_of_the_model(tmp_path: Path) -> None:
    one, two, path = sqlite_file(tmp_path, "one"), sqlite_file(tmp_path, "two"), tmp_path / "toy.json"
    run_study(ROUGH, one, trials_total=16)
    with Store(one) as store:
        export_study(store, "toy", path)
    data = json.loads(path.read_text())
    del data["study"]["fidelity"], data["study"]["state"]
    path.write_text(json.dumps(data))
    with Store(two) as store:
        assert import_study(store, read_export(path), "old").fidelity == "model"
        data["trials"][3]["fidelity"] = "simulator"
        path.write_text(json.dumps(data))
        with pytest.raises(StudyError, match="'simulator' cannot stand beside values of 'model'"):
            import_study(store, read_export(path))
        assert not store.has_study("toy")
    assert plain_rows(two, "SELECT * FROM codesign_evaluation WHERE fidelity <> 'model'") == []


def test_a_fidelity_is_a_word(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="a word of at most 32 letters"):
        run_study(toy.recipe(fidelity="x" * 33), sqlite_file(tmp_path, "s"), trials_total=16)
