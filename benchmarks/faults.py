"""Kill drivers, workers and PostgreSQL at random moments, fill the disk, resume; then count what it cost.

    python benchmarks/faults.py driver worker postgres disk --times 20

Every case ends with trials equal bit for bit to those of an undisturbed run, none left RUNNING, nothing finished
changed or lost, and at most the batches in flight evaluated again; or the run ends with 1 and says what was not so.
The moments are random but the same for the same --seed. Disk needs the right to mount a small file system.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from codesign.study.progress import Progress
from codesign.study.run import run_study
from codesign.study.workers import RayExecutor, RayPool
from tests.faults.strikes import Drivers, Server, finished, killable_postgres, small_disk, trials
from tests.store.backends import plain_rows, sqlite_file
from tests.study import toy

CHANGES: dict[str, Any] = {"batch_count": 8, "sampler": "tpe"}  # learns, so that any trial lost changes later ones
IN_FLIGHT = 1
CODESIGN = str(Path(sys.executable).parent / "codesign")


class Broken(Exception):
    """A promise that was not kept."""


def demand(kept: bool, promise: str) -> None:
    """Stop unless a promise was kept."""
    if not kept:
        raise Broken(promise)


def undisturbed(folder: Path, total: int, **changes: Any) -> Any:
    """The trials there should be."""
    folder.mkdir(exist_ok=True)
    url = sqlite_file(folder, "undisturbed")
    run_study(toy.recipe(**CHANGES | changes), url, trials_total=total)
    return trials(url)


def equal(url: str, whole: Any) -> None:
    """The same trials, finished, each written once."""
    found = trials(url)
    demand(found.numbers.tolist() == list(range(len(whole))), "trials numbered 0, 1, 2, ... without gap")
    demand(set(found.states) == {"COMPLETE"}, "nothing left RUNNING or failed")
    for part in ("internal", "values", "constraints"):
        demand(np.array_equal(getattr(found, part), getattr(whole, part), equal_nan=True), f"the same {part}")
    numbers = [n for (n,) in plain_rows(url, "SELECT number FROM codesign_evaluation ORDER BY number")]
    demand(numbers == list(range(len(whole))), "one evaluation per trial")
    demand(not plain_rows(url, "SELECT 1 FROM codesign_batch WHERE state = 'asked'"), "no batch left unfinished")


def driver(times: int, rng: np.random.Generator, folder: Path) -> None:
    """SIGKILL to the driver, on both back ends."""
    with killable_postgres(folder / "pg") as (postgres, _):
        for kind, url in (("sqlite", f"sqlite:///{folder}/driver.db"), ("postgresql", postgres)):
            total = 96 * (times + 2)
            whole = undisturbed(folder / kind, total)
            drivers = Drivers(url, total, folder / f"{kind}.log", **CHANGES, sleep_s=0.02)
            hits = 0
            while hits < times:
                before = finished(url)
                process = drivers.start()
                if hits % 3:  # two in three at work, one wherever it is: while tables are made, while it reads
                    drivers.await_work(process)
                process.join(float(rng.random()) * 0.3)
                demand(process.is_alive(), "a study long enough for all kills")
                process.kill()
                process.join()
                hits += 1
                demand(before <= finished(url), "what was finished stays as it was")
            again = ended(drivers, whole, hits)
            say(f"driver, {kind}: {hits} kills, {again} of {total // 8} batches evaluated again, {total} trials equal")


def worker(times: int, rng: np.random.Generator, folder: Path) -> None:
    """SIGKILL to Ray workers, whichever and whenever."""
    total, batch = 72 * times, 24
    whole = undisturbed(folder, total, batch_count=batch)
    url, over = sqlite_file(folder, "worker"), threading.Event()
    kills: list[int] = []
    told = 0

    def advance(_: Progress) -> None:
        nonlocal told
        told += 1

    def strike() -> None:
        while len(kills) < times:
            seen = told
            while told == seen:  # workers that never get to work are a cluster that cannot work, and called so
                if over.wait(0.05):
                    return
            over.wait(float(rng.random()))
            alive = [p for p in psutil.Process().children(recursive=True) if _is_worker(p)]
            victim = alive[int(rng.integers(len(alive)))]
            victim.kill()
            kills.append(victim.pid)

    striker = threading.Thread(target=strike)
    executor = RayExecutor(RayPool(3, folder=folder))
    striker.start()
    try:
        recipe = toy.recipe(**CHANGES | {"batch_count": batch, "sleep_s": 0.7})
        run_study(recipe, url, trials_total=total, executor=executor, on_progress=advance)
    finally:
        over.set()
        striker.join()
    equal(url, whole)
    demand(len(kills) == times, f"{times} workers killed while the study ran, not {len(kills)}")
    say(f"worker: {len(kills)} kills of Ray workers within one run, {total} trials equal")


def _is_worker(process: psutil.Process) -> bool:
    try:
        return process.name().startswith("ray::_Actor") or "ray::_Actor" in " ".join(process.cmdline()[:1])
    except psutil.Error:
        return False


def postgres(times: int, rng: np.random.Generator, folder: Path) -> None:
    """SIGKILL to PostgreSQL and all its processes while a driver works; started again, the study goes on."""
    total = 48 * (times + 1)
    whole = undisturbed(folder, total)
    said: Counter[str] = Counter()
    with killable_postgres(folder / "pg") as (url, server):
        drivers = Drivers(url, total, folder / "postgres.log", **CHANGES, sleep_s=0.05)
        for _ in range(times):
            before = _struck(drivers, server, float(rng.random()) * 0.5)
            said[drivers.said.split(":")[-1].strip()[:60]] += 1
            server.start(url)
            demand(before <= finished(url), "what was finished before the server died is there after it")
        again = ended(drivers, whole, times)
    say(f"postgres: {times} kills of the server, {again} batches evaluated again, {total} trials equal")


def _struck(drivers: Drivers, server: Server, after_s: float) -> set[tuple[Any, ...]]:
    """Kill the server under a driver that works; what was finished just before."""
    url, process = drivers.url, drivers.start()
    drivers.await_work(process)
    process.join(after_s)
    before = finished(url)
    demand(process.is_alive(), "a study long enough for all kills")
    server.kill()
    process.join(60.0)
    demand(process.exitcode == 6, f"a driver that loses its server ends with a StoreError, not {process.exitcode}")
    demand("finished trials are safe" in drivers.said, f"advice, not {drivers.said!r}")
    return before


def disk(times: int, rng: np.random.Generator, folder: Path) -> None:
    """A disk that fills up at random moments: a study of the tests, then the command line's study and sweep."""
    with small_disk(folder / "disk", "32m") as full:
        if full is None:
            say("disk: SKIPPED, a small file system cannot be mounted here")
            return
        url, total, hits = f"sqlite:///{full}/s.db", 4800, 0
        whole = undisturbed(folder, total, sampler="random")
        drivers = Drivers(url, total, folder / "disk.log", **CHANGES | {"sampler": "random"})
        while True:
            before = finished(url)
            with ballast(full, leave_bytes=int(rng.integers(20_000, 400_000)) if hits < times else None):
                process = drivers.start()
                process.join()
            demand(before <= finished(url), "what was finished stays as it was")
            if process.exitcode == 0:
                break
            demand(process.exitcode == 6, f"a full disk ends a driver with a StoreError, not {process.exitcode}")
            demand("no space left on the disk" in drivers.said, f"advice, not {drivers.said!r}")
            hits += 1
        equal(url, whole)
        again = repeated(drivers)
        demand(again <= hits * 4, "at most the four batches in flight evaluated again")
        say(f"disk, study: full {hits} times, {again} of {total // 8} batches evaluated again, {total} trials equal")
    study = ["study", "run", "quickstart", "--trials", "96", "--executor", "inline", "--json"]
    command_line(folder, "study", study, rng)
    sweep = ["sweep", "run", "link_cost", "--points", "16000", "--chunk", "1024", "--executor", "inline", "--json"]
    command_line(folder, "sweep", sweep, rng)


def command_line(folder: Path, kind: str, arguments: list[str], rng: np.random.Generator) -> None:
    """A command on a disk that fills up, run again with more room until it ends; the same as with room enough."""
    roomy = folder / f"{kind}-roomy"
    roomy.mkdir()
    whole, _ = _ran(arguments, roomy)
    demand(whole == 0, "the command ends well where there is room")
    hits, code = 0, 6
    with small_disk(folder / f"{kind}-full", "64m") as full:
        assert full is not None
        while code == 6:
            with ballast(full, leave_bytes=int(rng.integers(200_000, 900_000)) if hits < 5 else None):
                code, said = _ran(arguments, full)
            if code == 6:
                hits += 1
                demand("no space left" in said.lower() and "Traceback" not in said, f"advice, not {said[-300:]!r}")
        demand(code == 0, f"exit 6 while the disk is full and 0 afterwards, not {code}: {said[-300:]}")
        demand(hits > 0, "a disk that filled up")
        if kind == "sweep":
            demand(_files(roomy) == _files(full), "the same bytes in every chunk, none half written")
        else:
            one, two = (trials(f"sqlite:///{f}/codesign.db", "quickstart") for f in (roomy, full))
            demand(np.array_equal(one.values, two.values), "the same values")
            demand(set(two.states) == {"COMPLETE"}, "nothing left RUNNING or failed")
        say(f"disk, codesign {kind} run: full {hits} times, each time advice and exit 6; in the end the same")


def _ran(arguments: list[str], folder: Path) -> tuple[int, str]:
    done = subprocess.run([CODESIGN, *arguments], cwd=folder, capture_output=True, text=True, env=dict(os.environ))
    return done.returncode, done.stdout + done.stderr


def _files(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in (folder / "sweeps" / "link_cost").glob("chunk-*")}


@contextmanager
def ballast(folder: Path, leave_bytes: int | None) -> Iterator[None]:
    """Fill a disk but for so many bytes, and take that away again; nothing for None."""
    weight = folder / "ballast"
    if leave_bytes is not None:
        space = os.statvfs(folder)
        weight.write_bytes(b"\0" * max(space.f_bavail * space.f_frsize - leave_bytes, 0))
    try:
        yield
    finally:
        weight.unlink(missing_ok=True)


def ended(drivers: Drivers, whole: Any, hits: int) -> int:
    """Let a last driver end the study after so many hits; how many batches were evaluated again."""
    last = drivers.start()
    last.join()
    demand(last.exitcode == 0, "the last driver ends well")
    equal(drivers.url, whole)
    again = repeated(drivers)
    demand(again <= hits * IN_FLIGHT, "at most the batches in flight evaluated again")
    return again


def repeated(drivers: Drivers) -> int:
    """Batches evaluated more than once, each time beyond the first counted."""
    return sum(n - 1 for n in Counter(drivers.evaluated).values())


def say(text: str) -> None:
    """One line of the answer."""
    print(text, flush=True)


def main() -> None:
    """Strike what was asked for."""
    cases = {case.__name__: case for case in (driver, worker, postgres, disk)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=list(cases), default=list(cases))
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    broken = 0
    for name in options.cases:
        with tempfile.TemporaryDirectory(prefix="cs", dir="/tmp", ignore_cleanup_errors=True) as folder:
            Path(folder).chmod(0o755)
            started = time.monotonic()
            try:
                cases[name](options.times, np.random.default_rng(options.seed), Path(folder))
            except Broken as error:
                broken += 1
                say(f"{name}: NOT KEPT: {error}")
            say(f"{name}: {time.monotonic() - started:.0f} s")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
