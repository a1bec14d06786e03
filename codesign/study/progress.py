"""Where a study stands: a running ledger for the driver, progress for a display, a summary at the end."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codesign.store.repository import EvaluationRecord, Store, StudyRecord
from codesign.store.trials import TrialColumns
from codesign.study.coding import Coding
from codesign.study.fronts import excess, front, hypervolume
from codesign.study.parameters import Value, from_json
from codesign.units import Array


@dataclass(frozen=True, slots=True)
class Progress:
    """One line of a live display."""

    study: str
    done_count: int
    total_count: int
    feasible_count: int
    failed_count: int
    best_number: int | None
    best_values: tuple[float, ...] | None  # of that trial, once it keeps every rule
    best_each: tuple[float, ...] | None  # the best of every objective, each perhaps of another trial
    front_count: int  # trials that no other beats, with several objectives
    binds: Any
    trials_per_s: float
    left_s: float | None
    batch_index: int
    resumed_count: int


@dataclass(frozen=True, slots=True)
class TrialView:
    """One trial as a reader wants it."""

    number: int
    name: str | None
    asked: Mapping[str, Value]
    repaired: Mapping[str, Value]
    values: Mapping[str, float]
    constraints: Mapping[str, float]
    feasible: bool
    design_hash: str
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StudySummary:
    """A study in one object: totals, best, baselines, front, why candidates were refused."""

    study: str
    state: str
    reason: str | None
    trials_count: int
    total_count: int
    feasible_count: int
    failed_count: int
    best: TrialView | None
    best_of: Mapping[str, TrialView]  # by objective, of those that keep every rule
    baselines: tuple[TrialView, ...]
    front_numbers: tuple[int, ...]
    hypervolume: float | None
    refusals: Mapping[str, int]
    sampler: Mapping[str, Any]
    seed: int
    mixed: bool
    elapsed_s: float = 0.0
    new_count: int = 0
    finished_count: int = 0  # with values, not under a tombstone
    driver_cpu_s: float = field(default=0.0, compare=False)


class Ledger:
    """Objectives and rules of a study as it grows; knows the best at any moment."""

    def __init__(self, objectives: Sequence[tuple[str, str]]) -> None:
        self.signs = np.array([1.0 if direction == "minimize" else -1.0 for _, direction in objectives])
        self.done_count = 0
        self.feasible_count = 0
        self.failed_count = 0
        self.best: tuple[float, float, int] | None = None  # excess, first cost, number: the smallest is best
        self.best_values: tuple[float, ...] | None = None  # of the best, once it keeps every rule
        self._lowest = np.full(len(self.signs), np.inf)
        self._front = np.empty((0, len(self.signs)))

    def add(self, numbers: NDArray[np.int64], values: Array, constraints: Array, failed: NDArray[np.bool_]) -> None:
        """Enter finished trials."""
        good = ~failed
        self.done_count += len(numbers)
        self.failed_count += int(failed.sum())
        if not good.any():
            return
        costs, violation = values[good] * self.signs, excess(constraints[good])
        kept = violation <= 0.0
        self.feasible_count += int(kept.sum())
        first = int(np.lexsort((numbers[good], costs[:, 0], violation))[0])
        here = (float(violation[first]), float(costs[first, 0]), int(numbers[good][first]))
        if self.best is None or here < self.best:
            self.best = here
            self.best_values = tuple(values[good][first].tolist()) if here[0] <= 0.0 else None
        if not kept.any():
            return
        self._lowest = np.minimum(self._lowest, costs[kept].min(axis=0))
        if len(self.signs) > 1:
            both = np.concatenate([self._front, costs[kept]])
            self._front = both[front(both)]

    @property
    def best_each(self) -> tuple[float, ...] | None:
        """The best of every objective among the trials that keep every rule."""
        return tuple((self._lowest * self.signs).tolist()) if self.feasible_count else None

    @property
    def front_count(self) -> int:
        """Trials that no other beats; with one objective nobody counts them."""
        return len(self._front)

    def reach(self, reference: Array) -> float:
        """How far the study has come: lower best cost or larger hypervolume, larger is better."""
        if len(self.signs) == 1:
            return -np.inf if self.best is None or self.best[0] > 0.0 else -self.best[1]
        return hypervolume(self._front, reference * self.signs) if len(self._front) else -np.inf


def counting(store: Store, study: StudyRecord) -> tuple[TrialColumns, NDArray[np.bool_]]:
    """Trials of a study and which of them count: finished, with values, not under a tombstone."""
    columns = store.columns(study)
    finite = np.isfinite(columns.values).all(axis=1) & np.isfinite(columns.constraints).all(axis=1)
    dead = np.isin(columns.numbers, list(store.tombstones(study)))
    return columns, (columns.states == "COMPLETE") & finite & ~dead


def views(store: Store, study: StudyRecord, numbers: Sequence[int]) -> list[TrialView]:
    """Trials by number, in the order given."""
    columns = store.columns(study)
    place = {int(n): i for i, n in enumerate(columns.numbers)}
    found = {e.number: e for e in store.evaluations(study, numbers)}
    names = baseline_numbers(study, columns)
    return [_view(study, columns, place[n], found[n], names.get(n)) for n in map(int, numbers) if n in found]


def summarise(store: Store, name: str, **extra: Any) -> StudySummary:
    """The summary of a study as it stands in the database."""
    study = store.study(name)
    columns, counts = counting(store, study)
    signs = np.array([1.0 if d == "minimize" else -1.0 for _, d in study.objectives])
    numbers = columns.numbers[counts]
    costs, violation = columns.values[counts] * signs, excess(columns.constraints[counts])
    kept = violation <= 0.0
    leaders = [_leader(numbers, costs, violation, k) for k in range(len(signs))] if len(numbers) else []
    best = leaders[0] if leaders else None
    first = sorted(baseline_numbers(study, columns))
    shown = {v.number: v for v in views(store, study, [*first, *leaders])}
    on_front = numbers[kept][front(costs[kept])] if kept.any() else np.empty(0, dtype=np.int64)
    volume = None
    if len(signs) > 1 and study.reference is not None:
        volume = hypervolume(costs[kept], np.array(study.reference) * signs)
    broken = (columns.constraints[counts] > 0.0).sum(axis=0)
    return StudySummary(
        study=study.name,
        state=study.state,
        reason=study.reason,
        trials_count=len(columns),
        total_count=study.trials_total,
        feasible_count=int(kept.sum()),
        failed_count=int((columns.states == "FAIL").sum()),
        finished_count=len(numbers),
        best=None if best is None else shown.get(best),
        best_of={
            name: shown[number]
            for (name, _), number in zip(study.objectives, leaders, strict=False)
            if number in shown and shown[number].feasible
        },
        baselines=tuple(shown[n] for n in first if n in shown),
        front_numbers=tuple(int(n) for n in on_front),
        hypervolume=volume,
        refusals={rule: int(n) for rule, n in zip(study.rules, broken, strict=True)},
        sampler=study.sampler,
        seed=study.seed,
        mixed=study.mixed,
        **extra,
    )


def _leader(numbers: NDArray[np.int64], costs: Array, violation: Array, objective: int) -> int:
    """The best trial by one objective; among equals the one that is better in the others, in their order."""
    others = [costs[:, k] for k in reversed(range(costs.shape[1])) if k != objective]
    return int(numbers[int(np.lexsort((numbers, *others, costs[:, objective], violation))[0])])


def baseline_numbers(study: StudyRecord, columns: TrialColumns) -> dict[int, str]:
    """Numbers of the named first trials, found by what was asked."""
    coding = Coding(from_json(study.parameters))
    named = [(name, row) for name, row in study.first_rows if name]
    if not named or not len(columns):
        return {}
    keys = dict(zip(coding.keys(coding.encode([row for _, row in named])), [name for name, _ in named], strict=True))
    found: dict[int, str] = {}
    limit = len(study.first_rows) + study.batch_count
    for number, key in zip(columns.numbers[:limit].tolist(), coding.keys(columns.internal[:limit]), strict=True):
        if key in keys:
            found.setdefault(number, keys[key])
    return found


def _view(study: StudyRecord, columns: TrialColumns, i: int, record: EvaluationRecord, name: str | None) -> TrialView:
    metrics = [metric for metric, _ in study.objectives]
    limits = columns.constraints[i]
    return TrialView(
        number=record.number,
        name=name,
        asked=json.loads(record.asked),
        repaired=json.loads(record.repaired),
        values=dict(zip(metrics, columns.values[i].tolist(), strict=True)),
        constraints=dict(zip(study.rules, limits.tolist(), strict=True)),
        feasible=bool((limits <= 0.0).all()),
        design_hash=record.design_hash,
        details=json.loads(record.details),
    )
