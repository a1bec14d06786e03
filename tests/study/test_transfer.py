"""Files of studies: what is exported comes back exactly, and what is no export is refused with its key."""

import csv
import json
import resource
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from codesign.errors import StudyError, UsageError
from codesign.store.repository import Store
from codesign.study.executor import Finished
from codesign.study.run import run_study
from codesign.study.study import import_trials
from codesign.study.transfer import export_study, import_study, read_export
from tests.store.backends import sqlite_file
from tests.study import toy
from tests.study.test_lifecycle import TWO, Asks


def everything(url: str, name: str) -> Any:
    with Store(url) as store:
        study = store.study(name)
        return store.columns(study), list(store.evaluations(study)), store.batches(study), study


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_an_exported_study_comes_back_exactly_and_goes_on_the_same(kind: str, storage: str, tmp_path: Path) -> None:
    recipe = toy.recipe(baselines=toy.BASELINES, sampler="tpe")
    run_study(recipe, storage, trials_total=40)
    path, other = tmp_path / f"toy.{kind}", sqlite_file(tmp_path, "other")

    with Store(storage) as store:
        store.tombstone(store.study("toy"), 3, "wrong price", "me")
        assert export_study(store, "toy", path) == 40
    with Store(other) as store:
        import_study(store, read_export(path))
        with pytest.raises(StudyError, match="already exists"):
            import_study(store, read_export(path))
    one, two = everything(storage, "toy"), everything(other, "toy")

    for key in ("numbers", "states", "internal", "values", "constraints"):
        assert_array_equal(getattr(one[0], key), getattr(two[0], key))
    assert one[1] == two[1]
    assert [(b.batch_index, b.offset_count, b.first_number) for b in one[2]] == [
        (b.batch_index, b.offset_count, b.first_number) for b in two[2]
    ]
    run_study(recipe, storage, trials_total=64)
    run_study(recipe, other, trials_total=64)
    assert_array_equal(everything(storage, "toy")[0].values, everything(other, "toy")[0].values)


def test_a_csv_reads_as_a_table(tmp_path: Path) -> None:
    url, path = sqlite_file(tmp_path, "s"), tmp_path / "toy.csv"
    run_study(toy.recipe(), url, trials_total=16)
    with Store(url) as store:
        export_study(store, "toy", path)
        columns = store.columns(store.study("toy"))
        with pytest.raises(UsageError, match="no export format 'xls'"):
            export_study(store, "toy", tmp_path / "toy.xls")

    with path.open() as file:
        rows = list(csv.DictReader(file))

    assert [float(r["cost_usd"]) for r in rows] == columns.values[:, 0].tolist()
    assert [r["feasible"] == "true" for r in rows] == (columns.constraints <= 0.0).all(axis=1).tolist()
    assert {r["medium"] for r in rows} <= {"copper", "optics", "backplane"}
    assert all(r["reach_m"] == "" for r in rows if r["medium"] != "optics")


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_a_file_written_from_an_import_is_the_file_it_came_from(kind: str, storage: str, tmp_path: Path) -> None:
    """Nothing is lost on the way: rows given up, rows that failed, a tombstone, batches in parts, the state."""

    class Loses(Asks):
        def wait(self, timeout_s: float) -> list[Finished]:
            return [replace(f, failed={3: "killed its worker"}) for f in super().wait(timeout_s)]

    recipe = toy.recipe(sampler="optuna:NSGAIISampler", baselines=toy.BASELINES, objectives=TWO)
    run_study(recipe, storage, trials_total=24)
    run_study(recipe, storage, trials_total=160, executor=Loses(storage, "cancel"))
    one, two, other = tmp_path / f"one.{kind}", tmp_path / f"two.{kind}", sqlite_file(tmp_path, "other")

    with Store(storage) as store:
        store.tombstone(store.study("toy"), 2, "wrong price", "me")
        assert export_study(store, "toy", one) > 24
    with Store(other) as store:
        assert import_study(store, read_export(one)).state == "cancelled"
        export_study(store, "toy", two)

    assert one.read_bytes() == two.read_bytes()
    assert sorted(p.name for p in tmp_path.glob(f"*.{kind}*")) == [one.name, two.name]
    with pytest.raises(StudyError, match="was cancelled; copy it"):
        run_study(recipe, other, trials_total=320)


def test_an_export_that_finds_no_room_leaves_the_older_file_whole(tmp_path: Path) -> None:
    url, path = sqlite_file(tmp_path, "s"), tmp_path / "toy.json"
    run_study(toy.recipe(), url, trials_total=16)
    with Store(url) as store:
        export_study(store, "toy", path)
        before = path.read_bytes()
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
        try:
            with pytest.raises(UsageError, match="cannot write"):
                export_study(store, "toy", path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            signal.signal(signal.SIGXFSZ, handler)

    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"{}", "format: is missing"),
        (b"[1]", "file: wanted keys with values"),
        (b"not json", "not JSON from line 1"),
        (b"\xff\xfe{}", "wanted text in UTF-8; byte 0 is none"),
        (b'{"format": "x", "study": {}, "trials": []}', "format: wanted 'codesign-study-1'; got 'x'"),
    ],
)
def test_a_file_of_something_else_is_refused(text: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text)

    with pytest.raises(StudyError) as refused:
        import_trials(path, f"sqlite:///{tmp_path / 's.db'}")

    assert str(refused.value) == f"{path} is not a study written by codesign: {says}" or says in str(refused.value)
    assert list(tmp_path.iterdir()) == [path]  # and no database is made for it


def test_a_parquet_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path, other = tmp_path / "x.parquet", tmp_path / "y.parquet"
    path.write_bytes(b"PAR1 and nothing more")
    pq.write_table(pa.table({"number": [1]}), other)

    for file, says in ((path, "not a Parquet file, or a damaged one"), (other, "format: is missing")):
        with pytest.raises(StudyError, match="not a study written by codesign") as refused:
            import_trials(file, sqlite_file(tmp_path, "s"))
        assert says in str(refused.value)


def keys_of(data: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every key of a file, of lists the first entry only."""
    parts = data.items() if isinstance(data, dict) else list(enumerate(data))[:1] if isinstance(data, list) else ()
    return [found for key, value in parts for found in ((*at, key), *keys_of(value, (*at, key)))]


def test_whatever_is_wrong_with_a_file_is_said_with_its_key(tmp_path: Path) -> None:
    url, path = sqlite_file(tmp_path, "s"), tmp_path / "toy.json"
    run_study(toy.recipe(sampler="random", baselines=toy.BASELINES), url, trials_total=16)
    refused: dict[Any, str] = {}
    wrongs: list[Any] = [None, [], {}, "x", -1.5]
    with Store(url) as store:
        export_study(store, "toy", path)
        whole = path.read_text()
        for at in keys_of(json.loads(whole)):
            for wrong in wrongs:
                data = json.loads(whole)
                here = data
                for key in at[:-1]:
                    here = here[key]
                if wrong is None:
                    del here[at[-1]]
                else:
                    here[at[-1]] = wrong
                path.write_text(json.dumps(data))
                try:
                    import_study(store, read_export(path), "again")
                    store.delete_study("again")
                except StudyError as error:
                    refused[at, repr(wrong)] = str(error)

    assert len(refused) > 300
    assert all(said.startswith(f"{path} is not a study written by codesign: ") for said in refused.values())
    assert "study.seed: is missing" in refused[("study", "seed"), "None"]
    assert "study.seed: wanted a whole number; got 'x'" in refused[("study", "seed"), "'x'"]
    kind = refused[("study", "parameters", "medium", "kind"), "'x'"]
    assert "study.parameters.medium: wanted a kind: choices, float, int" in kind
    assert "study.sampler.name: no sampler 'x'" in refused[("study", "sampler", "name"), "'x'"]
    assert "trials.0.values: wanted 1 numbers; got 0" in refused[("trials", 0, "values"), "[]"]
