"""A driver killed at any moment, a full disk, a locked file, a database that goes away: nothing finished is lost."""

import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from codesign.errors import StoreError
from codesign.store import database
from codesign.store.repository import Store
from codesign.study.executor import Finished, InlineExecutor
from codesign.study.run import run_study
from codesign.study.sweep import run_sweep
from tests.faults.strikes import Drivers, count, killable_postgres, small_disk, trials
from tests.store.backends import fresh_database, migrated_template, plain_rows, sqlite_file
from tests.study import toy


def killed_again_and_again(drivers: Drivers, kills: int) -> int:
    """Kill drivers at work, each at a random moment, then let one finish; how many kills hit a living driver."""
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(kills):
        driver = drivers.start()
        drivers.await_work(driver)
        driver.join(float(rng.random()) * 0.15)
        hits += driver.is_alive()
        driver.kill()
        driver.join()
    last = drivers.start()
    last.join()
    assert last.exitcode == 0, drivers.said
    return hits


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_driver_killed_at_random_moments_loses_and_repeats_nothing(storage: str, tmp_path: Path, kills: int) -> None:
    total, changes = 32 * (kills + 2), {"batch_count": 8, "sampler": "tpe"}
    drivers = Drivers(storage, total, tmp_path / "driver.log", **changes, sleep_s=0.02)
    hits = killed_again_and_again(drivers, kills)
    whole = sqlite_file(tmp_path, "whole")
    run_study(toy.recipe(**changes), whole, trials_total=total)

    one, two = trials(storage), trials(whole)
    assert hits >= kills - 1
    assert len(drivers.evaluated) <= total // 8 + hits
    assert set(drivers.evaluated) == set(range(0, total, 8))
    assert_array_equal(one.numbers, np.arange(total))
    assert set(one.states) == {"COMPLETE"}
    assert_array_equal(one.internal, two.internal)
    assert_array_equal(one.values, two.values)
    assert len(plain_rows(storage, "SELECT * FROM codesign_evaluation")) == total
    assert plain_rows(storage, "SELECT * FROM codesign_batch WHERE state = 'asked'") == []


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "1m") as folder:
        if folder is None:
            pytest.skip("a small file system cannot be mounted here")
        yield folder


def test_a_full_disk_stops_with_advice_and_goes_on_where_there_is_room(full: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{full}/s.db"
    with pytest.raises(StoreError, match="no space left on the disk; finished trials are safe"):
        run_study(toy.recipe(sampler="random"), url, trials_total=20_000)
    done = int((trials(url).states == "COMPLETE").sum())
    assert done > 0

    roomy = tmp_path / "roomy"
    shutil.copytree(full, roomy)
    moved = f"sqlite:///{roomy}/s.db"
    total = done + 64
    run_study(toy.recipe(sampler="random"), moved, trials_total=total)

    whole = sqlite_file(tmp_path, "whole")
    run_study(toy.recipe(sampler="random"), whole, trials_total=total)
    assert_array_equal(trials(moved).values, trials(whole).values)


def test_a_sweep_on_a_full_disk_stops_with_advice_and_goes_on_with_the_same_bytes(full: Path, tmp_path: Path) -> None:
    def sweep(folder: Path) -> Any:
        url = sqlite_file(tmp_path, "s")
        return run_sweep(toy.recipe(), url, folder.name, points_count=2000, chunk_count=200, folder=folder)

    weight = full / "weight"
    weight.write_bytes(b"x" * 970_000)
    with pytest.raises(StoreError, match=r"cannot be written: No space left on device; finished chunks are safe"):
        sweep(full)
    assert 1 <= len(list((full / full.name).glob("*.parquet"))) < 10
    assert not list((full / full.name).glob("*.part"))

    weight.unlink()
    assert sweep(full).done_count == 2000
    sweep(tmp_path / "roomy")
    for name in (f"chunk-{i:07d}.parquet" for i in range(10)):
        assert (full / full.name / name).read_bytes() == (tmp_path / "roomy" / "roomy" / name).read_bytes()


def test_a_locked_file_is_waited_for_and_then_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = sqlite_file(tmp_path, "s")
    run_study(toy.recipe(), url, trials_total=16)
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.3)
    holder = sqlite3.connect(tmp_path / "s.db", isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreError, match="another process kept the file locked"):
            run_study(toy.recipe(), url, trials_total=32)
    finally:
        holder.execute("ROLLBACK")
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 20.0)

    holder.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.5, holder.execute, ["ROLLBACK"])
    release.start()
    assert run_study(toy.recipe(), url, trials_total=32).trials_count == 32
    release.join()
    holder.close()


def test_a_read_only_file_is_explained(tmp_path: Path) -> None:
    url = sqlite_file(tmp_path, "s")
    run_study(toy.recipe(), url, trials_total=16)
    with Store(url) as store:
        with store.database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA query_only = 1")  # stays on the one pooled connection
        with pytest.raises(StoreError, match="cannot be written"):
            store.transition("toy", "paused", "me", "because")


def test_a_driver_that_lost_its_lease_writes_nothing_more(tmp_path: Path) -> None:
    url = sqlite_file(tmp_path, "s")

    class Sleeps(InlineExecutor):
        def wait(self, timeout_s: float) -> list[Finished]:
            with Store(url) as store, store.database.write() as connection:
                connection.exec_driver_sql("UPDATE codesign_run SET state = 'lost'")
            return super().wait(timeout_s)

    from codesign.errors import StudyError

    with pytest.raises(StudyError, match="took this study over"):
        run_study(toy.recipe(), url, trials_total=32, executor=Sleeps())

    assert run_study(toy.recipe(), url, trials_total=32).trials_count == 32
    assert set(trials(url).states) == {"COMPLETE"}


@pytest.mark.parametrize("rows", [1, 200_000])
def test_a_connection_cut_before_or_while_rows_are_copied_is_explained(postgres: str, rows: int) -> None:
    url = fresh_database(postgres, migrated_template(postgres))
    columns = ["study_id", "key", "value_json"]

    def write(store: Store) -> None:
        with store.database.write() as connection:
            victim = int(store.database.one(connection, "SELECT pg_backend_pid()"))
            plain_rows(url, f"SELECT pg_terminate_backend({victim})")
            store.database.insert(connection, "study_user_attributes", columns, [(None, "k", "x" * 100)] * rows)

    with Store(url) as store, pytest.raises(StoreError, match="does not answer; finished trials are safe"):
        write(store)


@pytest.mark.slow
def test_postgresql_killed_and_restarted_loses_nothing() -> None:
    with tempfile.TemporaryDirectory(prefix="cs", dir="/tmp", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        with killable_postgres(folder / "pg") as (url, server):

            class Kills(InlineExecutor):
                """Kills the server while the third batch is evaluated."""

                calls = 0

                def wait(self, timeout_s: float) -> list[Finished]:
                    self.calls += 1
                    if self.calls == 3:
                        server.kill()
                    return super().wait(timeout_s)

            recipe = toy.recipe(sampler="tpe")
            with pytest.raises(StoreError, match="does not answer; finished trials are safe"):
                run_study(recipe, url, trials_total=64, executor=Kills())
            server.start(url)
            assert count(url) == 48
            assert run_study(recipe, url, trials_total=64).trials_count == 64
            whole = sqlite_file(folder, "whole")
            run_study(recipe, whole, trials_total=64)
            assert_array_equal(trials(url).values, trials(whole).values)
