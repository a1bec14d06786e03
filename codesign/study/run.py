"""The study loop: ask a batch, evaluate it, write it in one transaction, tell it, in this order and no other.

What a study's trials are depends on the space, the catalog, the code, the seed and the batch size, never on how many
workers there are or how often the driver was killed: batches are asked and told in order, each drawn from (seed, batch
index) and what was told ``in_flight`` batches before it, and a batch cut short by a total is completed later.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codesign.errors import CodesignError, ExecutorError, UsageError
from codesign.store.database import DriverError
from codesign.store.repository import LEASE_S, BatchRecord, Store, StudyRecord, strict_json
from codesign.store.trials import ParameterColumn
from codesign.study.coding import Coding, Row, canonical, design_hash
from codesign.study.executor import Executor, Finished, InlineExecutor
from codesign.study.fronts import excess
from codesign.study.lifecycle import REQUESTS, open_study
from codesign.study.liveness import INTERRUPTED, abandon, actor, dead, description
from codesign.study.parameters import Value
from codesign.study.problem_protocol import Explainer, Problem, ProblemRecipe
from codesign.study.progress import Ledger, Progress, StudySummary, summarise
from codesign.study.samplers import Told
from codesign.study.search import distribution_json, suggester
from codesign.study.suggest import Search
from codesign.units import Array

EXHAUSTED = "every design of the space was tried"  # the reason stored with a study that ended before its total


def run_study(
    recipe: ProblemRecipe,
    storage_url: str,
    study_name: str | None = None,
    *,
    trials_total: int | None = None,
    extend: int | None = None,
    executor: Executor | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    time_limit_s: float | None = None,
    patience_batches: int | None = None,
    worker_hours: float | None = None,
    first_rows: Sequence[tuple[str, Mapping[str, Value]]] = (),
    parent: str | None = None,
    join: bool = False,
) -> StudySummary:
    """Run a study to its total, or take it up where it was left.

    Args:
        recipe: Builds the problem; picklable, so that workers can build it too.
        storage_url: SQLite file or PostgreSQL address.
        study_name: Default: the name of the space.
        trials_total: Trials in all, those already done included. Needed once, when the study is new.
        extend: Instead, so many more than the stored total.
        executor: Where to evaluate; in this process if not given. It is closed at the end.
        on_progress: Called after every batch.
        time_limit_s: Ask no new batch when this run has lasted so long.
        patience_batches: Stop when so many batches in a row brought no better best, or with several objectives no
            larger hypervolume; counted over the whole study, so a run that is killed stops where it would have.
        worker_hours: Ask no new batch once all runs of the study together have spent this: workers times the hours from
            asking a batch to writing it, downtime between runs left out.
        first_rows: Designs to try right after the baselines of a new study.
        parent: Name of the study these came from.
        join: Work on a study beside other drivers; its trials then depend on who was faster.

    Raises:
        UsageError: no total, or a limit that is none.
        StudyError, StoreError, ExecutorError: see their messages. Finished trials stay.
    """
    limits = _Limits(time_limit_s, patience_batches, worker_hours)
    problem = recipe()
    executor = executor or InlineExecutor()
    if executor.remote and storage_url.startswith("sqlite"):
        raise ExecutorError("workers on other machines and a SQLite file do not go together: give a PostgreSQL address")
    name = study_name or problem.name
    with Store(storage_url) as store:
        study = open_study(
            *(store, problem, name),
            trials_total=trials_total,
            extend=extend,
            parent=parent,
            first_rows=first_rows,
            join=join,
        )
        driver = _Driver(store, study, problem, executor, on_progress, limits, join=join)
        started, cpu = time.monotonic(), time.process_time()
        try:
            driver.prepare(recipe)
            state, reason = driver.run()
        except KeyboardInterrupt:
            state, reason = "paused", INTERRUPTED
        except BaseException as error:
            driver.give_up(error)
            raise
        finally:
            executor.close()
        driver.finish(state, reason)
        return summarise(
            store,
            name,
            elapsed_s=time.monotonic() - started,
            new_count=driver.new_count,
            driver_cpu_s=time.process_time() - cpu,
        )


class _Limits:
    """When to stop before the total: after a time, after batches without a gain, or at a cost in worker-hours."""

    def __init__(self, time_limit_s: float | None, patience_batches: int | None, worker_hours: float | None) -> None:
        if time_limit_s is not None and not time_limit_s >= 0.0:
            raise UsageError(f"time limit: wanted seconds, 0 or more; got {time_limit_s}")
        if patience_batches is not None and not (isinstance(patience_batches, int) and patience_batches >= 1):
            raise UsageError(f"patience: wanted a whole number of batches, 1 or more; got {patience_batches}")
        if worker_hours is not None and not worker_hours > 0.0:
            raise UsageError(f"worker-hours: wanted a number above 0; got {worker_hours}")
        self._until = None if time_limit_s is None else time.monotonic() + time_limit_s
        self._patience = patience_batches
        self._worker_hours = worker_hours
        self._reach = -np.inf
        self._slot = -1
        self._idle_batches = 0
        self._idle_at: dict[int, int] = {}  # by slot; a sampler is asked for one knowing those in_flight before it

    @property
    def patient(self) -> bool:
        """Whether gains matter."""
        return self._patience is not None

    @property
    def thrifty(self) -> bool:
        """Whether worker-hours matter."""
        return self._worker_hours is not None

    def note(self, slot: int, reach: float) -> None:
        """Called after every batch, in order, with how far the study has come; a slot in two parts counts once."""
        gained = reach > self._reach + 1e-9 * abs(reach)
        self._idle_batches = 0 if gained else self._idle_batches + (slot != self._slot)
        self._idle_at[slot] = self._idle_batches
        self._slot, self._reach = slot, max(self._reach, reach)

    def reason(self, known_slot: int, spent_hours: float) -> str | None:
        """Why to ask no more, or None.

        Args:
            known_slot: The last slot a sampler asked now would know: what was told since changes nothing, so that a
                study runs out of patience at the same trial whoever was faster.
            spent_hours: Worker-hours of the study so far.
        """
        if self._until is not None and time.monotonic() > self._until:
            return "time limit reached"
        if self._patience is not None and (idle := self._idle_at.get(known_slot, 0)) >= self._patience:
            return f"no gain in {idle} batches"
        if self._worker_hours is not None and spent_hours >= self._worker_hours:
            return f"{spent_hours:.3g} worker-hours spent, {self._worker_hours:g} allowed"
        return None


@dataclass(frozen=True, slots=True, eq=False)
class _Flight:
    """A batch being evaluated."""

    slot: int
    batch: BatchRecord
    rows: list[dict[str, Value]]
    internal: Array


class _Slots:
    """Batches in the order the sampler learns of them: by batch index, or by arrival where drivers share a study."""

    def __init__(self) -> None:
        self.next = 0
        self.partial: int | None = None  # the last batch, if a former total cut it short
        self._rows: dict[int, int] = {}
        self._told: dict[int, list[tuple[Told, int, str | None]]] = {}
        self._observed = 0
        self._kept: list[tuple[int, Array]] = []

    @property
    def upcoming(self) -> int:
        """The slot to ask for next."""
        return self.next if self.partial is None else self.partial

    def add(self, slot: int | None, rows_count: int) -> int:
        """Count rows asked in a slot; without one the next."""
        slot = self.next if slot is None else slot
        self.next = max(self.next, slot + 1)
        self._rows[slot] = self.rows_count(slot) + rows_count
        return slot

    def rows_count(self, slot: int) -> int:
        """Rows asked so far in a slot."""
        return self._rows.get(slot, 0)

    def keep(self, slot: int, internal: Array) -> None:
        """Remember rows until `kept` is asked for."""
        self._kept.append((slot, internal))

    def kept(self) -> list[tuple[int, Array]]:
        """Rows kept, once."""
        kept, self._kept = self._kept, []
        return kept

    def tell(self, slot: int, told: Told, rows_count: int, state: str | None) -> None:
        """Answers to rows of a slot."""
        self._told.setdefault(slot, []).append((told, rows_count, state))

    def ready(self, last: int, observe: Callable[[Told, str | None], None]) -> bool:
        """Hand slots on in order, up to and including ``last``; False while answers are missing."""
        while self._observed <= last:
            pieces = self._told.get(self._observed, [])
            if sum(count for _, count, _ in pieces) < self.rows_count(self._observed) or not pieces:
                return False
            first, *later = (told for told, _, _ in pieces)
            observe(first.joined(*later), next((state for _, _, state in pieces if state is not None), None))
            del self._told[self._observed]
            self._observed += 1
        return True


class _Driver:
    """One process at work on one study."""

    def __init__(
        self,
        store: Store,
        study: StudyRecord,
        problem: Problem,
        executor: Executor,
        on_progress: Callable[[Progress], None] | None,
        limits: _Limits,
        *,
        join: bool,
    ) -> None:
        self._store, self._study, self._problem = store, study, problem
        self._executor, self._on_progress, self._limits, self._join = executor, on_progress, limits, join
        self._coding = Coding(problem.parameters)
        self._columns = [ParameterColumn(n, distribution_json(p)) for n, p in problem.parameters.items()]
        self._shared = join
        self._search: Search | None = None
        self._ledger = Ledger(study.objectives)
        self._slots = _Slots()
        self._flying: dict[int, _Flight] = {}  # by number of the first trial
        self._arrived: dict[int, Finished] = {}
        self._asked_count = 0
        self._exhausted = False
        self._wish: str | None = None
        self._run_id = ""
        self._started = time.monotonic()
        self._busy_since, self._busy_s = 0.0, 0.0  # with a batch in flight
        self._spent_before_hours = 0.0
        self._resumed_count = 0
        self._best_binds: tuple[int, Any] | None = None
        self.new_count = 0

    # ----------------------------------------------------------------------------------------------- beginning

    def prepare(self, recipe: ProblemRecipe) -> None:
        """Claim the study, read its history, take over what a former driver left unfinished, start the workers."""
        store, study = self._store, self._study
        record = description(self._executor.name, self._executor.workers_count)
        self._run_id = store.start_run(study, record, dead(store.runs(study)), join=self._shared)
        store.transition(study.name, "running", actor(), "started")
        store.fail_strangers(study)
        self._study = store.study(study.name)
        if self._limits.thrifty:
            self._spent_before_hours = store.worker_hours(self._study)
        self._executor.start(recipe, self._problem)
        self._recall()
        self._started = time.monotonic()
        self._resumed_count = self._ledger.done_count

    def _recall(self) -> None:
        """Rebuild everything from the database: history in batch order, batches in flight under their numbers."""
        study = self._study
        seed = study.seed if not self._shared else int(self._run_id[:8], 16)
        first = self._coding.encode([row for _, row in study.first_rows])
        spec = suggester(study.sampler, self._coding, seed, study.batch_count, study.objectives, self._problem)
        self._search = Search(self._coding, spec, seed, study.batch_count, first)
        batches = self._store.batches(study)  # before the trials: drivers that share the study go on writing
        columns = self._store.columns(study)
        place = {int(n): i for i, n in enumerate(columns.numbers)}
        owned = 0
        for batch in batches:
            rows = [place[n] for n in range(batch.first_number, batch.first_number + batch.rows_count)]
            internal = columns.internal[rows]
            owned += len(rows)
            self._asked_count += len(rows)
            if batch.state == "asked" and batch.run_id != self._run_id:
                continue  # of a driver we share the study with
            slot = self._slots.add(None if self._shared else batch.batch_index, len(rows))
            if not self._shared and self._slots.rows_count(slot) < study.batch_count:
                self._slots.partial = slot
            if batch.state == "asked":
                self._launch(slot, batch, internal)
            else:
                failed = columns.states[rows] != "COMPLETE"
                self._enter(slot, batch, internal, columns.values[rows], columns.constraints[rows], failed)
                self._note(slot)
            self._slots.keep(slot, internal)
        for slot, internal in self._slots.kept():
            if slot != self._slots.partial:
                self._search.remember(internal)
        if owned < len(columns) and not study.mixed:
            self._store.set_study(study.name, mixed=True)

    # -------------------------------------------------------------------------------------------------- the loop

    def run(self) -> tuple[str, str]:
        """Ask, wait, write, tell until there is a reason to stop; the state to end in and why."""
        while True:
            while (why := self._enough()) is None and self._wish is None and self._ask():
                pass
            if not self._flying:
                return self._verdict(why)
            if self._wish == "cancel":
                for flight in self._flying.values():
                    self._store.drop_batch(self._study, flight.batch)
                return "cancelled", "cancel requested"
            for finished in self._executor.wait(LEASE_S / 4.0):
                self._arrived[finished.key] = finished
            if min(self._flying) not in self._arrived:
                self._store.renew(self._run_id)
            while (key := min(self._flying, default=-1)) in self._arrived:
                self._tell(key)

    def _enough(self) -> str | None:
        """Why the limits allow no further batch, or None."""
        busy_s = self._busy_s + (time.monotonic() - self._busy_since if self._flying else 0.0)
        spent_hours = self._spent_before_hours + busy_s / 3600.0 * self._executor.workers_count
        return self._limits.reason(self._slots.upcoming - self._study.in_flight_count, spent_hours)

    def _note(self, slot: int) -> None:
        if self._limits.patient:
            self._limits.note(slot, self._reach())

    def _verdict(self, why: str | None) -> tuple[str, str]:
        if self._asked_count >= self._study.trials_total:
            return "completed", "all trials done"
        if self._exhausted:
            return "completed", EXHAUSTED
        if self._wish is not None:  # a request that came with the last batch finds nothing left to end
            return REQUESTS[self._wish], f"{self._wish} requested"
        return "stopped", why or "nothing left to ask"

    def _ask(self) -> bool:
        """Put one more batch in flight, if the order of things allows it."""
        assert self._search is not None
        study, slots = self._study, self._slots
        left = study.trials_total - self._asked_count
        if left <= 0 or self._exhausted or len(self._flying) >= study.in_flight_count:
            return False
        slot = slots.upcoming
        if not slots.ready(slot - study.in_flight_count, self._search.observe):
            return False
        internal, kept = self._search.ask(slot)
        done = 0 if slots.partial is None else slots.rows_count(slot)
        slots.partial = None
        self._exhausted = len(internal) < study.batch_count
        internal = internal[done : done + left]
        if not len(internal):
            return False
        batch = self._store.open_batch(
            *(study, self._run_id, self._columns, internal),
            batch_index=None if self._shared else slot,
            offset_count=done,
            sampler_state=kept,
            trials_total=study.trials_total if self._shared else None,
        )
        self._asked_count = batch.first_number + batch.rows_count if self._shared else self._asked_count + len(internal)
        if batch.rows_count:
            self._launch(slots.add(slot, batch.rows_count), batch, internal[: batch.rows_count])
        return bool(batch.rows_count)

    def _launch(self, slot: int, batch: BatchRecord, internal: Array) -> None:
        rows = self._coding.rows(internal)
        if not self._flying:
            self._busy_since = time.monotonic()
        self._flying[batch.first_number] = _Flight(slot, batch, rows, internal)
        self._executor.submit(batch.first_number, rows)

    def _tell(self, key: int) -> None:
        """Write the oldest batch and let the ledger and, in its turn, the sampler know."""
        flight, finished = self._flying.pop(key), self._arrived.pop(key)
        answer, failed = finished.evaluated, finished.failed
        values, constraints = answer.values + 0.0, answer.constraints + 0.0  # no minus zero: SQLite drops its sign
        texts = [_texts(row, answer.repaired[i], answer.details[i], failed.get(i)) for i, row in enumerate(flight.rows)]
        self._wish = self._store.close_batch(
            *(self._study, flight.batch, values, constraints, texts),
            failed=list(failed),
            user_attributes=self._names(flight),
        )
        lost = np.isin(np.arange(len(flight.rows)), list(failed))
        self._enter(flight.slot, flight.batch, flight.internal, values, constraints, lost)
        self.new_count += len(flight.rows)
        self._fix_reference(values, constraints, lost)
        self._note(flight.slot)
        if not self._flying:
            self._busy_s += time.monotonic() - self._busy_since
        self._report(flight, answer.details)

    def _enter(
        self,
        slot: int,
        batch: BatchRecord,
        internal: Array,
        values: Array,
        constraints: Array,
        failed: NDArray[np.bool_],
    ) -> None:
        numbers = np.arange(batch.first_number, batch.first_number + batch.rows_count)
        self._ledger.add(numbers, values, constraints, failed)
        good = ~failed
        told = Told(internal[good], values[good] * self._ledger.signs, excess(constraints[good]))
        self._slots.tell(slot, told, batch.rows_count, batch.sampler_state)

    # ---------------------------------------------------------------------------------------------------- ending

    def finish(self, state: str, reason: str) -> None:
        """Say where the study stands and give the lease back."""
        self._store.transition(self._study.name, state, actor(), reason)
        self._store.end_run(self._run_id, "interrupted" if reason == "interrupted" else "finished")

    def give_up(self, error: BaseException) -> None:
        """Note a failure where that is still possible; batches in flight stay, to be adopted by the next run."""
        if not self._run_id:
            return
        said = str(error) if isinstance(error, CodesignError) else f"{type(error).__name__}: {error}"
        try:
            self._store.transition(self._study.name, "failed", actor(), said[:2000])
            self._store.end_run(self._run_id, "failed")
        except (CodesignError, OSError, DriverError):
            abandon(self._run_id)

    # --------------------------------------------------------------------------------------------------- details

    def _names(self, flight: _Flight) -> dict[int, dict[str, str]]:
        """A user attribute that names baselines, for Optuna's tools."""
        named = [(n, r) for n, r in self._study.first_rows if n]
        if not named or flight.slot * self._study.batch_count > len(self._study.first_rows):
            return {}
        keys = dict(zip(self._coding.keys(self._coding.encode([r for _, r in named])), named, strict=True))
        found = enumerate(self._coding.keys(flight.internal))
        return {i: {"baseline": strict_json(keys[key][0])} for i, key in found if key in keys}

    def _fix_reference(self, values: Array, constraints: Array, lost: NDArray[np.bool_]) -> None:
        """The point hypervolumes are measured from: a little worse than the worst of the first batch, for good."""
        if self._study.reference is not None or lost.all():
            return
        good, kept = values[~lost], (constraints[~lost] <= 0.0).all(axis=1)
        costs = (good[kept] if kept.any() else good) * self._ledger.signs
        worst, best = costs.max(axis=0), costs.min(axis=0)
        reference = (worst + 0.1 * np.maximum(worst - best, 0.1 * np.abs(worst) + 1e-12)) * self._ledger.signs
        self._store.set_study(self._study.name, reference=reference.tolist())
        self._study = self._store.study(self._study.name)

    def _reach(self) -> float:
        reference = self._study.reference
        return -np.inf if reference is None else self._ledger.reach(np.array(reference))

    def _report(self, flight: _Flight, details: Sequence[str]) -> None:
        if self._on_progress is None:
            return
        ledger, elapsed = self._ledger, time.monotonic() - self._started
        rate = self.new_count / elapsed if elapsed > 0.0 else 0.0
        best = None if ledger.best is None else ledger.best[2]
        binds = None if best is None or ledger.best_values is None else self._binds(best, flight, details)
        self._on_progress(
            Progress(
                study=self._study.name,
                done_count=ledger.done_count,
                total_count=self._study.trials_total,
                feasible_count=ledger.feasible_count,
                failed_count=ledger.failed_count,
                best_number=best,
                best_values=ledger.best_values,
                best_each=ledger.best_each,
                front_count=ledger.front_count,
                binds=binds,
                trials_per_s=rate,
                left_s=max(self._study.trials_total - ledger.done_count, 0) / rate if rate > 0.0 else None,
                batch_index=flight.batch.batch_index,
                resumed_count=self._resumed_count,
            )
        )

    def _binds(self, best: int, flight: _Flight, details: Sequence[str]) -> Any:
        """What binds the best trial when it is new, as the answer will tell it where the problem can explain."""
        if self._best_binds is None or self._best_binds[0] != best:
            place = best - flight.batch.first_number
            if 0 <= place < len(details):
                text = details[place]
            else:
                text = next((e.details for e in self._store.evaluations(self._study, [best])), "{}")
            trial = json.loads(text)
            if isinstance(self._problem, Explainer) and "binds" in trial:
                trial = self._problem.explained(trial)
            self._best_binds = (best, trial.get("binds"))
        return self._best_binds[1]


def _texts(row: Row, built: Row, details: str, failure: str | None) -> tuple[str, str, str, str]:
    """Design hash, asked, repaired and details of one row."""
    if failure is not None:
        return design_hash(row), canonical(row), canonical(row), strict_json({"error": failure})
    return design_hash(built), canonical(row), canonical(built), details
