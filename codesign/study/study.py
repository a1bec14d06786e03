"""Studies as users hold them: create or open one, run it, ask it for its best design, its trials, its front."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from codesign.errors import InfeasibleError, StudyError, UsageError
from codesign.space import shipped_spaces
from codesign.store.migrate import has_database
from codesign.store.names import check_name
from codesign.store.repository import Store
from codesign.study.coding import Coding
from codesign.study.edges import edges
from codesign.study.lifecycle import copy_study, request
from codesign.study.lifecycle import list_studies as listed
from codesign.study.lineage import lineage
from codesign.study.liveness import INTERRUPTED, actor
from codesign.study.placing import executor_of
from codesign.study.problem import SpaceRecipe, recipe_of
from codesign.study.progress import Progress, TrialView, counting, summarise, views
from codesign.study.run import EXHAUSTED, run_study
from codesign.study.transfer import export_study, import_study, read_export

DEFAULT_STORAGE = "sqlite:///codesign.db"


class Study:
    """One study of a database.

    >>> study = Study.create("quickstart", storage="sqlite://", name="example")  # doctest: +SKIP
    >>> study.run(trials=32, executor="inline").best["values"]  # doctest: +SKIP
    {'usd_per_mtok': ...}
    """

    def __init__(self, recipe: SpaceRecipe, name: str, storage: str) -> None:
        self._recipe = recipe
        self.name = name
        self.storage = storage

    @classmethod
    def create(
        cls, space: str | Path, storage: str = DEFAULT_STORAGE, name: str | None = None, exist_ok: bool = False
    ) -> "Study":
        """A study of a space file or of a shipped space; it enters the database with its first run.

        Raises:
            SpaceError: the space is wrong.
            UsageError: the name is empty.
            StudyError: a study of that name exists and ``exist_ok`` is not set.
        """
        recipe = recipe_of(str(space))
        if name == "":
            check_name("study", name)
        study = cls(recipe, name or recipe().name, storage)
        if not exist_ok and _has_study(storage, study.name):
            raise StudyError(f"study {study.name!r} exists; open it, or give another name")
        return study

    @classmethod
    def continued(cls, name: str, storage: str = DEFAULT_STORAGE) -> "Study":
        """The study of that name if the database has one, else a new study of the space file or shipped space.

        Raises:
            SpaceError: it is none of the three.
        """
        if not Path(name).exists() and name not in shipped_spaces() and _has_study(storage, name):
            return cls.open(name, storage)
        return cls.create(name, storage, exist_ok=True)

    @classmethod
    def open(cls, name: str, storage: str = DEFAULT_STORAGE) -> "Study":
        """A study that is in the database.

        Raises:
            StudyError: there is none of that name; the message names the nearest.
        """
        with Store(storage, create=False) as store:
            record = store.study(name)
        return cls(SpaceRecipe(record.space_text, f"{record.space_name}.yaml"), name, storage)

    @property
    def objective_names(self) -> tuple[str, ...]:
        """Metrics it optimises, the first one first."""
        return tuple(name for name, _ in self._recipe().objectives)

    def run(
        self,
        trials: int | None = None,
        *,
        extend: int | None = None,
        executor: str = "inline",
        workers: int = 0,
        address: str = "local",
        time_limit_s: float | None = None,
        patience: int | None = None,
        worker_hours: float | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> "Study":
        """Search towards a total, or ``extend`` by so many; returns itself.

        It stops before the total when this run has lasted ``time_limit_s``, when ``patience`` batches of the study in a
        row brought no gain, or when all its runs together have spent ``worker_hours``; a later run goes on.

        Raises:
            UsageError: a limit that is none.
            StudyError, StoreError, ExecutorError: see their messages. Finished trials stay.
            KeyboardInterrupt: after the place of the search was written down.
        """
        workforce, total, known = executor_of(executor, workers, address), trials, _has_study(self.storage, self.name)
        if not known:
            check_name("study", self.name)
        if trials is None and extend is None and not known:
            total = self._recipe().space.search.trials
        found = run_study(
            self._recipe,
            self.storage,
            self.name,
            trials_total=total,
            extend=extend,
            executor=workforce,
            on_progress=on_progress,
            time_limit_s=time_limit_s,
            patience_batches=patience,
            worker_hours=worker_hours,
        )
        if found.reason == INTERRUPTED:
            raise KeyboardInterrupt
        return self

    @property
    def best(self) -> dict[str, Any] | None:
        """The best feasible trial, explained; None while there is none."""
        found: dict[str, Any] | None = self.summary()["best"]
        return found

    @property
    def baselines(self) -> list[dict[str, Any]]:
        """The human baselines as they are, whole machines under this space's workloads and prices."""
        return self._recipe().machines()

    def summary(self) -> dict[str, Any]:
        """The documented JSON of ``study run`` and ``study best`` (docs/cli.md)."""
        problem = self._recipe()
        with Store(self.storage, create=False) as store:
            found = summarise(store, self.name)
        leader = None if found.best is None else _trial(found.best)
        size = Coding(problem.parameters).size
        exhausted = found.reason == EXHAUSTED or (size is not None and found.trials_count >= size)
        best = problem.explained(leader) if leader is not None and leader["feasible"] else None
        return {
            "study": self.name,
            "question": problem.space.question,
            "objectives": dict(problem.objectives),
            "sampler": str(found.sampler["name"]),
            "seed": found.seed,
            "state": found.state,
            "reason": found.reason,
            "trials": found.trials_count,
            "finished": found.finished_count,
            "total": found.total_count,
            "feasible_frac": found.feasible_count / max(found.trials_count, 1),
            "best": best,
            "best_of": {m: {"number": v.number, "values": dict(v.values)} for m, v in found.best_of.items()},
            "closest": leader if best is None else None,
            "baselines": problem.machines(),
            "refusals": {rule: count for rule, count in found.refusals.items() if count},
            "front": list(found.front_numbers),
            "hypervolume": found.hypervolume,
            "mixed": found.mixed,
            "edges": [] if best is None else edges(problem.parameters, {n: best["design"][n] for n in best["asked"]}),
            "exhausted": exhausted,
            "next": self._next(best, leader, found.state, exhausted),
        }

    def _next(
        self, best: Mapping[str, Any] | None, leader: Mapping[str, Any] | None, state: str, exhausted: bool
    ) -> list[str]:
        where = "" if self.storage == DEFAULT_STORAGE else f" --storage {self.storage}"
        further = "" if state in ("stopped", "paused") else " --extend 100"  # to the total, or beyond it
        more = [] if exhausted else [f"codesign study run {self.name}{further}{where}"]
        shown = [] if leader is None else [f"codesign study show {self.name} --trial {leader['number']}{where}"]
        if best is None:
            return more or shown
        several = len(best["values"]) > 1
        return [
            *([f"codesign study pareto {self.name}{where}"] if several else []),
            *shown,
            *more,
            f"codesign study export {self.name} {self.name}.csv{where}",
        ]

    def require_best(self) -> dict[str, Any]:
        """The best feasible trial.

        Raises:
            InfeasibleError: nothing feasible was found; the message names the rules that refuse most.
        """
        summary = self.summary()
        if summary["best"] is not None:
            found: dict[str, Any] = summary["best"]
            return found
        refusals = sorted(summary["refusals"].items(), key=lambda item: -item[1])
        shown = ", ".join(f"{rule} ({count} of {summary['trials']})" for rule, count in refusals[:3])
        raise InfeasibleError(
            f"study {self.name!r}: nothing feasible in {summary['trials']} trials; refused by {shown}"
        )

    def trial(self, number: int) -> dict[str, Any]:
        """One trial in full.

        Raises:
            UsageError: there is no such trial.
        """
        with Store(self.storage, create=False) as store:
            found = views(store, store.study(self.name), [number])
        if not found:
            raise UsageError(f"study {self.name!r} has no finished trial {number}")
        trial = _trial(found[0])
        if "error" in trial:
            raise UsageError(f"study {self.name!r}: trial {number} could not be evaluated: {trial['error']}")
        return self._recipe().explained(trial)

    def record(self) -> dict[str, Any]:
        """What the database says of the study itself, and of its relatives."""
        with Store(self.storage, create=False) as store:
            record = asdict(store.study(self.name)) | {"lineage": lineage(store, self.name)}
        hidden = ("space_text", "parameters", "first_rows", "study_id")
        return {key: value for key, value in record.items() if key not in hidden}

    def pareto(self) -> list[dict[str, Any]]:
        """Trials that no other beats in every objective: number, values, design."""
        with Store(self.storage, create=False) as store:
            found = summarise(store, self.name)
            shown = views(store, store.study(self.name), found.front_numbers)
        return [{"number": view.number, **view.values, **view.repaired} for view in shown]

    def trials(self) -> dict[str, Any]:
        """Every finished trial as columns: number, asked and repaired parameters, values, constraints, feasible."""
        with Store(self.storage, create=False) as store:
            study = store.study(self.name)
            columns, counts = counting(store, study)
            found = views(store, study, columns.numbers[counts].tolist())
        rows = [_flat(view) for view in found]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: np.array([row.get(name) for row in rows], dtype=_dtype(rows, name)) for name in names}

    def export(self, path: Path) -> int:
        """Write every finished trial to .csv, .json or .parquet; the last two read back exactly; returns how many.

        Raises:
            UsageError: another ending, or the file cannot be written.
        """
        with Store(self.storage, create=False) as store:
            return export_study(store, self.name, path)

    def copy(self, new_name: str, rebase: bool = False) -> int:
        """A child of this study with its best designs as first trials; returns how many."""
        with Store(self.storage, create=False) as store:
            problem = self._recipe() if rebase else None
            return len(copy_study(store, self.name, new_name, problem=problem, rebase=rebase).first_rows)

    def tombstone(self, number: int, reason: str) -> None:
        """Take a finished trial out of every answer, for a reason; it stays readable.

        Raises:
            StudyError: there is no such trial.
        """
        with Store(self.storage, create=False) as store:
            store.tombstone(store.study(self.name), number, reason, actor())

    def request(self, verb: str) -> str:
        """Pause, stop or cancel a running study; returns what happened."""
        with Store(self.storage, create=False) as store:
            return request(store, self.name, verb)


def list_studies(storage: str = DEFAULT_STORAGE) -> list[dict[str, Any]]:
    """Every study of a database with how far it is."""
    with Store(storage, create=False) as store:
        return [asdict(line) for line in listed(store)]


def import_trials(path: Path, storage: str = DEFAULT_STORAGE, name: str | None = None) -> str:
    """Bring an exported study (.json or .parquet) into a database; returns its name.

    Raises:
        StudyError: the file is not an export, or a study of that name exists.
    """
    found = read_export(path)
    if name is not None:
        check_name("study", name)
    with Store(storage) as store:
        return import_study(store, found, name).name


def holds(storage: str, asked: Callable[[Store], bool]) -> bool:
    """Whether there is a database and it answers yes; asking makes none."""
    if not has_database(storage):
        return False
    with Store(storage) as store:
        return asked(store)


def _has_study(storage: str, name: str) -> bool:
    return holds(storage, lambda store: store.has_study(name))


def _trial(view: TrialView) -> dict[str, Any]:
    """The documented TRIAL JSON."""
    return {"number": view.number, "name": view.name, "asked": dict(view.asked), **view.details}


def _flat(view: TrialView) -> dict[str, Any]:
    asked = {f"asked_{name}": value for name, value in view.asked.items()}
    rules = {f"rule_{name}": value for name, value in view.constraints.items()}
    head = {"number": view.number, "source": view.details.get("source"), "feasible": view.feasible}
    return {**head, **view.values, **asked, **view.repaired, **rules}


def _dtype(rows: list[dict[str, Any]], name: str) -> type:
    values = [row.get(name) for row in rows]
    if all(isinstance(value, bool) for value in values):
        return bool
    if all(isinstance(value, int) for value in values):
        return np.int64
    return np.float64 if all(isinstance(value, int | float) for value in values) else object
