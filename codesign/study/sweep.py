"""Screens of millions of candidates without a sampler: ranges of indices out, Parquet chunks and a manifest back.

A chunk is a pure function of the space, the method, the seed and its range, so it may be computed anywhere, again, in
any order, and its file has the same bytes. The driver only hands out ranges and writes what comes back.
"""

import hashlib
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from codesign.errors import ExecutorError, StoreError, UsageError
from codesign.store.repository import Store
from codesign.store.sweeps import ChunkRecord, SweepRecord, SweepStore
from codesign.study.coding import Coding
from codesign.study.executor import InlinePool, Outcome
from codesign.study.liveness import INTERRUPTED, actor
from codesign.study.parameters import Choices, Value, from_json
from codesign.study.problem_protocol import Problem, ProblemRecipe
from codesign.study.samplers import grid_size
from codesign.study.screen import Range, Screened, merge, screen_range
from codesign.study.sweep_open import check_options, open_sweep

_KEEP = 32  # best rows kept per chunk
_FLOAT_LEVELS_MOST = 64


class Pool(Protocol):
    """Workers that run functions on the problem: `InlinePool` or `workers.RayPool`."""

    @property
    def workers_count(self) -> int: ...  # noqa: D102 - see the class
    @property
    def local(self) -> bool: ...  # noqa: D102 - see the class
    def start(self, recipe: ProblemRecipe) -> None: ...  # noqa: D102 - see the class
    def submit(self, key: Any, function: Callable[..., Any], *arguments: Any) -> None: ...  # noqa: D102 - see the class
    def poll(self, timeout_s: float) -> list[Outcome]: ...  # noqa: D102 - see the class
    def close(self) -> None: ...  # noqa: D102 - see the class


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """One line of a live display."""

    sweep: str
    done_count: int
    total_count: int
    feasible_count: int
    best_value: float | None
    points_per_s: float
    left_s: float | None


@dataclass(frozen=True, slots=True)
class SweepSummary:
    """A sweep in one object; ``top`` and ``front`` are points that keep every rule.

    A marginal is, per level of a parameter: its label, candidates, feasible candidates, mean and best of the first
    objective among the feasible.
    """

    sweep: str
    state: str
    reason: str | None
    method: str
    points_count: int
    done_count: int
    feasible_count: int
    failed: tuple[int, ...]
    top: tuple[Mapping[str, Any], ...]
    front: tuple[Mapping[str, Any], ...]
    marginals: Mapping[str, tuple[Mapping[str, Any], ...]]
    refusals: Mapping[str, int]
    folder: str
    elapsed_s: float = 0.0
    driver_s: float = 0.0  # time the driver itself worked, waiting not counted


def run_sweep(
    recipe: ProblemRecipe,
    storage_url: str,
    name: str,
    *,
    points_count: int | None = None,
    method: str | None = None,
    chunk_count: int | None = None,
    folder: Path | None = None,
    pool: Pool | None = None,
    on_progress: Callable[[SweepProgress], None] | None = None,
) -> SweepSummary:
    """Screen a space, or go on where a sweep of this name stopped.

    Args:
        recipe: Builds the problem; picklable. Problems with a ``screen`` method are asked by columns.
        storage_url: Where the manifest is kept.
        name: Name of the sweep.
        points_count: How many candidates, a billion at most; needed once. A grid that is smaller is done whole.
        method: ``grid``, ``random`` or ``sobol``; default: as begun, or sobol.
        chunk_count: Candidates per file and per piece of work; default: as begun, or 16,384.
        folder: Where sweeps go, each in a folder of its name; default: beside the SQLite file, or
            ``.codesign/sweeps``.
        pool: Workers; this process if not given. It is closed at the end.
        on_progress: Called after every chunk.
    """
    check_options(name, points_count, method, chunk_count, folder)
    problem = recipe()
    pool = pool or InlinePool()
    if not pool.local and storage_url.startswith("sqlite"):
        raise ExecutorError("workers on other machines and a SQLite file do not go together: give a PostgreSQL address")
    started = time.monotonic()
    with Store(storage_url) as store:
        sweep = open_sweep(store, problem, name, points_count, method, chunk_count, folder)
        driver = _SweepDriver(store, sweep, problem, pool, on_progress)
        state, reason = "failed", "ended by an error"
        try:
            state, reason = driver.run(recipe)
        except KeyboardInterrupt:
            state, reason = "paused", INTERRUPTED
        finally:
            pool.close()
            SweepStore(store).set_state(sweep, state, reason, actor())
        return sweep_summary(store, name, elapsed_s=time.monotonic() - started, driver_s=driver.busy_s)


def sweep_summary(store: Store, name: str, *, keep: int = _KEEP, **extra: Any) -> SweepSummary:
    """What a sweep found so far."""
    sweeps = SweepStore(store)
    sweep = sweeps.get(name)
    chunks = sweeps.chunks(sweep)
    merged = merge([c.summary for c in chunks], sweep.objectives, keep)
    return SweepSummary(
        sweep=name,
        state=sweep.state,
        reason=sweep.reason,
        method=sweep.method,
        points_count=sweep.points_count,
        done_count=sum(c.stop_index - c.start_index for c in chunks),
        feasible_count=merged["feasible"],
        failed=tuple(merged["failed"]),
        top=tuple(entry for entry in merged["top"] if entry["excess"] <= 0.0),
        front=tuple(merged["front"]),
        marginals=_labelled(sweep, merged["marginals"]),
        refusals=merged["refusals"],
        folder=sweep.folder,
        **extra,
    )


def promoted(store: Store, name: str, count: int = 64) -> list[tuple[str, Mapping[str, Value]]]:
    """First rows for a study: the Pareto set of a sweep, then its best, each design once."""
    summary = sweep_summary(store, name, keep=count)
    chosen: dict[int, Mapping[str, Value]] = {}
    for entry in [*summary.front, *summary.top]:
        chosen.setdefault(entry["index"], entry["row"])
    return [("", row) for row in list(chosen.values())[:count]]


class _SweepDriver:
    """Hands out ranges, writes chunks, hunts down candidates that kill workers."""

    def __init__(
        self,
        store: Store,
        sweep: SweepRecord,
        problem: Problem,
        pool: Pool,
        on_progress: Callable[[SweepProgress], None] | None,
    ) -> None:
        self._sweeps, self._sweep, self._problem, self._pool = SweepStore(store), sweep, problem, pool
        self._on_progress = on_progress
        self._folder = Path(sweep.folder)
        self._levels = float_levels(Coding(problem.parameters), sweep.method, sweep.points_count)
        self._hunts: dict[int, _Hunt] = {}
        self._losses: dict[int, int] = {}
        self._sign = 1.0 if sweep.objectives[0][1] == "minimize" else -1.0
        self._best: float | None = None
        self._done_count = self._feasible_count = self._new_count = 0
        self._started = time.monotonic()
        self.busy_s = 0.0

    def run(self, recipe: ProblemRecipe) -> tuple[str, str]:
        """Until every chunk is written."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write sweep files in {self._folder}: {error.strerror or error}") from None
        waiting = deque(self._missing())
        if waiting:
            self._pool.start(recipe)
        flying = 0
        self._started = time.monotonic()
        while waiting or flying:
            begun = time.monotonic()
            while waiting and flying < 2 * self._pool.workers_count:
                self._send(waiting.popleft())
                flying += 1
            self.busy_s += time.monotonic() - begun
            outcomes = self._pool.poll(5.0)
            begun = time.monotonic()
            for outcome in outcomes:
                flying -= self._settle(outcome)
            self.busy_s += time.monotonic() - begun
        return "completed", "all points done"

    def _missing(self) -> list[int]:
        """Chunks not in the manifest, or whose file is not what the manifest says."""
        found = {c.chunk_index: c for c in self._sweeps.chunks(self._sweep)}
        count = -(-self._sweep.points_count // self._sweep.chunk_count)
        missing = []
        for index in range(count):
            chunk = found.get(index)
            if chunk is None or not _intact(self._folder / chunk.file, chunk.sha256):
                missing.append(index)
            else:
                self._count(chunk.summary)
        return missing

    def _span(self, chunk: int, skip: tuple[int, ...] = ()) -> Range:
        start = chunk * self._sweep.chunk_count
        stop = min(start + self._sweep.chunk_count, self._sweep.points_count)
        return Range(self._sweep.method, self._sweep.seed, start, stop, self._levels, skip)

    def _send(self, chunk: int, skip: tuple[int, ...] = ()) -> None:
        self._pool.submit(("chunk", chunk), screen_range, self._span(chunk, skip), _KEEP)

    def _settle(self, outcome: Outcome) -> int:
        """Deal with an outcome; 1 if the chunk is finished."""
        kind, chunk = outcome.key
        if kind == "chunk" and outcome.lost is None:
            self._write(chunk, outcome.result)
            return 1
        if kind == "chunk":
            self._losses[chunk] = self._losses.get(chunk, 0) + 1
            if self._losses[chunk] < 2:
                self._send(chunk)
                return 0
            self._hunts[chunk] = _Hunt(self._span(chunk))
        else:
            self._hunts[chunk].note(outcome.lost is not None)
        hunt = self._hunts[chunk]
        part = hunt.next_part()
        if part is not None:
            self._pool.submit(("hunt", chunk), _dry_run, part)
        else:
            self._send(chunk, tuple(sorted(hunt.culprits)))
            del self._hunts[chunk]
            self._losses[chunk] = 0
        return 0

    def _write(self, chunk: int, screened: Screened) -> None:
        """File first, complete under its name at once, then the manifest."""
        name = f"chunk-{chunk:07d}.parquet"
        draft = self._folder / f"{name}.part"
        try:
            with draft.open("wb") as file:
                file.write(screened.data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._folder / name)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise StoreError(
                f"{draft.parent}: a chunk cannot be written: {error.strerror or error}; finished chunks are safe, "
                "free some space and run the same command again"
            ) from None
        span = self._span(chunk)
        self._sweeps.add_chunk(
            self._sweep, ChunkRecord(chunk, span.start, span.stop, name, screened.sha256, screened.summary)
        )
        self._count(screened.summary)
        self._new_count += span.stop - span.start
        self._report()

    def _count(self, summary: Mapping[str, Any]) -> None:
        self._done_count += summary["count"] + len(summary["failed"])
        self._feasible_count += summary["feasible"]
        for entry in summary["top"][:1]:
            if entry["excess"] <= 0.0:
                value = entry["values"][0]
                self._best = (
                    value if self._best is None else self._sign * min(self._sign * self._best, self._sign * value)
                )

    def _report(self) -> None:
        if self._on_progress is None:
            return
        rate = self._new_count / max(time.monotonic() - self._started, 1e-9)
        self._on_progress(
            SweepProgress(
                sweep=self._sweep.name,
                done_count=self._done_count,
                total_count=self._sweep.points_count,
                feasible_count=self._feasible_count,
                best_value=self._best,
                points_per_s=rate,
                left_s=(self._sweep.points_count - self._done_count) / rate,
            )
        )


class _Hunt:
    """Halving of a range that kills workers, until every culprit stands alone."""

    def __init__(self, span: Range) -> None:
        self._open = [span]
        self._trying: Range | None = None
        self.culprits: set[int] = set()

    def next_part(self) -> Range | None:
        """The next part to try."""
        self._trying = self._open.pop() if self._open else None
        return self._trying

    def note(self, lost: bool) -> None:
        """Whether the part last given out cost a worker."""
        span = self._trying
        if not lost or span is None:
            return
        if span.stop - span.start == 1:
            self.culprits.add(span.start)
            return
        middle = (span.start + span.stop) // 2
        for start, stop in ((middle, span.stop), (span.start, middle)):
            self._open.append(Range(span.method, span.seed, start, stop, span.float_levels))


def _dry_run(problem: Problem, span: Range) -> None:
    """See whether a part can be computed at all."""
    screen_range(problem, span, 1)


def float_levels(coding: Coding, method: str, points_count: int) -> int:
    """Levels of a continuous range in a grid: the fewest that make the grid as large as the sweep."""
    if method != "grid" or (coding.levels > 0).all():
        return 1
    levels = 2
    while grid_size(coding, levels) < points_count and levels < _FLOAT_LEVELS_MOST:
        levels += 1
    return levels


def _intact(path: Path, sha256: str) -> bool:
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def _labelled(
    sweep: SweepRecord, marginals: Mapping[str, Sequence[Sequence[float]]]
) -> dict[str, tuple[Mapping[str, Any], ...]]:
    parameters = from_json(sweep.parameters)
    coding = Coding(parameters)
    sign = 1.0 if sweep.objectives[0][1] == "minimize" else -1.0
    labelled: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for i, (name, levels) in enumerate(marginals.items()):
        parameter = parameters[name]
        middles = coding.column(i, (np.arange(len(levels)) + 0.5) / len(levels))
        labels = [parameter.values[int(m)] if isinstance(parameter, Choices) else float(m) for m in middles]
        labelled[name] = tuple(
            {
                "level": label,
                "count": int(count),
                "feasible": int(feasible),
                "mean": sign * total / feasible if feasible else None,
                "best": sign * best if feasible else None,
            }
            for label, (count, feasible, total, best) in zip(labels, levels, strict=True)
        )
    return labelled
