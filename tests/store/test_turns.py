"""Writers of one file take turns, and a turn that never comes stops nobody."""

import threading
import time
from pathlib import Path

import pytest

from codesign.errors import StoreError
from codesign.store import database
from codesign.store.database import Database
from codesign.store.turns import turn
from tests.store.backends import sqlite_file


def test_one_at_a_time(tmp_path: Path) -> None:
    log, inside, most = tmp_path / "log", [0], [0]
    log.touch()

    def work() -> None:
        for _ in range(20):
            with turn(log, 10.0):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.001)
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == [1]


def test_who_waits_in_vain_goes_on_and_leaves_nothing_locked(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()

    with turn(log, 10.0):
        started = time.monotonic()
        with turn(log, 0.2):
            assert 0.2 <= time.monotonic() - started < 5.0

    with turn(log, 10.0):
        assert time.monotonic() - started < 5.0


def test_no_log_no_waiting(tmp_path: Path) -> None:
    with turn(tmp_path / "none", 10.0), turn(tmp_path / "none", 10.0):
        pass


def test_a_writer_waits_its_turn_and_is_told_when_it_never_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = sqlite_file(tmp_path, "s")
    one, two = Database(url), Database(url)

    def late() -> None:
        with two.write() as connection:
            connection.exec_driver_sql("UPDATE codesign_study SET seed = 2")

    with one.write() as connection:
        connection.exec_driver_sql("UPDATE codesign_study SET seed = 1")
        waiting = threading.Thread(target=late)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join()

    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.2)
    three = Database(url)
    with one.write(), pytest.raises(StoreError, match="kept the file locked"), three.write():
        pass
    for opened in (one, two, three):
        opened.close()
