"""A study's life: created, opened again as it was, paused, stopped, cancelled, copied; who did it and why is kept.

    draft -> running <-> paused
             running  -> completed | stopped | cancelled | failed

``run`` takes up any state but cancelled. A request to a study that no driver works on takes effect at once where there
is something to end: a driver that died, a pause, a failure; not where all is done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codesign.errors import StudyError, UsageError
from codesign.store.database import utc_now
from codesign.store.repository import RunRecord, Store, StudyRecord
from codesign.store.sweeps import SweepRecord
from codesign.study.coding import Coding
from codesign.study.fronts import excess
from codesign.study.liveness import actor, dead
from codesign.study.parameters import Value, check_parameters, from_json, to_json
from codesign.study.policy import BLIND, resolve
from codesign.study.problem_protocol import Problem, fidelity_of
from codesign.study.progress import counting
from codesign.study.samplers import Told, best_first

REQUESTS = {"pause": "paused", "stop": "stopped", "cancel": "cancelled"}
#: States in which a request means something though no driver is at work; running is what a driver that died leaves.
_OPEN_TO = {
    "pause": ("running",),
    "stop": ("running", "paused", "failed"),
    "cancel": ("draft", "running", "paused", "stopped", "failed"),
}
#: States nobody is at work in; a study imported keeps them.
SETTLED = ("paused", "stopped", "completed", "failed", "cancelled")
_BLIND_IN_FLIGHT = 4


def open_study(
    store: Store,
    problem: Problem,
    name: str,
    *,
    trials_total: int | None,
    extend: int | None,
    parent: str | None = None,
    first_rows: Sequence[tuple[str, Mapping[str, Value]]] = (),
    join: bool = False,
) -> StudyRecord:
    """The study of this name, created or taken up again, with its total set.

    Raises:
        StudyError: it exists with another space, catalog or code, was cancelled, or is being run by another driver.
        UsageError: no total to aim at, or one below what is done.
    """
    if trials_total is not None and extend is not None:
        raise UsageError("give a total or an extension, not both")
    if not store.has_study(name):
        if trials_total is None:
            raise UsageError(f"study {name!r} is new: say how many trials in total")
        return create_study(store, problem, name, trials_total, parent=parent, first_rows=first_rows)
    study = store.study(name)
    check_same(study, problem)
    if study.state == "cancelled":
        raise StudyError(f"study {name!r} was cancelled; copy it to go on")
    total = study.trials_total + (extend or 0) if trials_total is None else trials_total
    if total < study.trials_total and total < (done := len(store.columns(study))):
        raise UsageError(f"study {name!r} has {done} trials already; a total of {total} would drop some: use --extend")
    if total != study.trials_total:
        if not join and (other := at_work(store, study)) is not None:  # before its total is moved under its feet
            raise StudyError(
                f"study {name!r} is being run by process {other.pid} on {other.host}; wait for it or stop it"
            )
        store.set_study(name, trials_total=total)
    return store.study(name)


def create_study(
    store: Store,
    problem: Problem,
    name: str,
    trials_total: int,
    *,
    parent: str | None = None,
    first_rows: Sequence[tuple[str, Mapping[str, Value]]] = (),
) -> StudyRecord:
    """A new study in state draft: everything that decides its trials is fixed here."""
    check_parameters(problem.parameters)
    if trials_total < 1:
        raise UsageError(f"a study needs at least one trial, not {trials_total}")
    if not 1 <= len(problem.objectives) <= 3:
        raise UsageError(f"a study has one to three objectives, not {len(problem.objectives)}")
    coding = Coding(problem.parameters)
    rows = [*problem.baselines, *first_rows]
    coding.encode([row for _, row in rows])
    spec = resolve(problem.sampler, coding, len(problem.objectives), trials_total, problem.batch_count)
    in_flight = int(spec.get("in_flight", _BLIND_IN_FLIGHT if spec["name"] in BLIND else 1))
    record = what(problem) | {
        "name": name,
        "parent": parent,
        "trials_total": trials_total,
        "parameters": to_json(problem.parameters),
        "objectives": [list(o) for o in problem.objectives],
        "rules": list(problem.rules),
        "sampler": spec,
        "seed": problem.seed,
        "batch_count": problem.batch_count,
        "in_flight_count": in_flight,
        "first_rows": [[n, dict(r)] for n, r in rows],
    }
    return store.create_study(record, actor())


def check_same(study: StudyRecord, problem: Problem) -> None:
    """Refuse to mix answers of different questions, facts or code in one study."""
    changed = question(study, problem)
    if study.batch_count != problem.batch_count:
        changed.append(("batch size", str(study.batch_count), str(problem.batch_count)))
    if changed:
        words = " and ".join(word for word, _, _ in changed)
        shown = "; ".join(f"{word} was {old}, is {new}" for word, old, new in changed)
        raise StudyError(
            f"study {study.name!r} was begun with another {words} ({shown}); its trials would not "
            f"compare. Take its best designs into a new study: codesign study copy {study.name} NEW --rebase"
        )


def question(record: StudyRecord | SweepRecord, problem: Problem) -> list[tuple[str, str, str]]:
    """What of a problem differs from what a study or sweep was begun with: word, then, now."""
    pairs: list[tuple[str, object, object]] = [
        ("space", record.space_digest, problem.space_digest),
        ("catalog", record.catalog_digest, problem.catalog_digest),
        ("code", record.code_version, problem.code_version),
        ("seed", record.seed, problem.seed),
        ("parameters", dict(record.parameters), to_json(problem.parameters)),
        ("objectives", record.objectives, tuple((n, d) for n, d in problem.objectives)),
        ("rules", record.rules, tuple(problem.rules)),
        ("fidelity", record.fidelity, fidelity_of(problem)),
    ]
    return [(word, _short(old), _short(new)) for word, old, new in pairs if old != new]


def at_work(store: Store, study: StudyRecord) -> RunRecord | None:
    """The run of a driver that is alive, as far as can be told; None where nobody works on a study."""
    runs = store.runs(study)
    gone, now = set(dead(runs)), utc_now()
    return next((r for r in runs if r.state == "running" and r.run_id not in gone and r.lease_until > now), None)


def request(store: Store, name: str, verb: str, reason: str = "") -> str:
    """Pause, stop or cancel; returns what happened.

    Pause: no new batch, those in flight finish. Stop: the same, for good unless run again. Cancel: those in flight
    are given up, and the study cannot be run again.

    Raises:
        UsageError: another verb.
        StudyError: the study is in a state that has nothing to pause, stop or cancel.
    """
    if verb not in REQUESTS:
        raise UsageError(f"no request {verb!r}; valid: {', '.join(REQUESTS)}")
    study = store.study(name)
    if at_work(store, study) is not None:
        store.set_study(name, request=verb)
        store.note(name, "request", actor(), {"verb": verb, "reason": reason})
        return f"asked the running driver to {verb}"
    if study.state not in _OPEN_TO[verb]:
        why = "already" if study.state == REQUESTS[verb] else f"and nobody works on it: there is nothing to {verb}"
        raise StudyError(f"study {name!r} is {study.state} {why}")
    for batch in store.batches(study) if verb == "cancel" else []:
        if batch.state == "asked":
            store.drop_batch(study, batch)
    store.transition(name, REQUESTS[verb], actor(), reason or f"{verb} requested")
    return REQUESTS[verb]


def copy_study(
    store: Store, name: str, new_name: str, *, problem: Problem | None = None, rebase: bool = False, keep: int = 256
) -> StudyRecord:
    """A child of a study.

    With ``rebase`` the child asks the problem as it is now (its space may have the same parameters only), and the
    parent's ``keep`` best designs become its first trials, to be evaluated anew. Without, the child has the parent's
    question and its best designs as first trials, and another seed would be another study: give ``problem`` for that.

    Raises:
        StudyError: no problem given for a rebase, or the parent's designs do not fit the new space.
    """
    parent = store.study(name)
    if rebase and problem is None:
        raise StudyError("a rebase needs the problem as it is now")
    rows = best_rows(store, parent, keep)
    if problem is None:
        record = {key: getattr(parent, key) for key in _COPIED}
        first = [*parent.first_rows, *(("", row) for row in rows)]
        record |= {"name": new_name, "parent": name, "first_rows": [[n, dict(r)] for n, r in first]}
        record["objectives"] = [list(o) for o in parent.objectives]
        return store.create_study(record, actor())
    if not rebase:
        check_same(parent, problem)
    first_rows = [("", row) for row in rows]
    return create_study(store, problem, new_name, parent.trials_total, parent=name, first_rows=first_rows)


def best_rows(store: Store, study: StudyRecord, keep: int) -> list[dict[str, Value]]:
    """What was asked for the best trials, best first."""
    columns, counts = counting(store, study)
    if not counts.any():
        return []
    signs = np.array([1.0 if d == "minimize" else -1.0 for _, d in study.objectives])
    told = Told(columns.internal[counts], columns.values[counts] * signs, excess(columns.constraints[counts]))
    order = best_first(told)[:keep]
    return Coding(from_json(study.parameters)).rows(told.internal[order])


@dataclass(frozen=True, slots=True)
class StudyLine:
    """One line of a list of studies."""

    name: str
    state: str
    reason: str | None
    space_name: str
    trials_count: int
    total_count: int
    mixed: bool
    parent: str | None
    sampler: str


def list_studies(store: Store) -> list[StudyLine]:
    """Every study with how far it is."""
    lines = []
    for study in store.studies():
        told = sum(b.rows_count for b in store.batches(study) if b.state == "told")
        lines.append(
            StudyLine(
                name=study.name,
                state=study.state,
                reason=study.reason,
                space_name=study.space_name,
                trials_count=told,
                total_count=study.trials_total,
                mixed=study.mixed,
                parent=study.parent,
                sampler=str(study.sampler["name"]),
            )
        )
    return lines


_COPIED = (
    *("trials_total", "space_name", "space_digest", "space_text", "catalog_digest", "code_version", "parameters"),
    *("rules", "sampler", "seed", "batch_count", "in_flight_count", "fidelity"),
)


def what(problem: Problem) -> dict[str, Any]:
    """What a study or sweep keeps of the question it was begun with."""
    return {
        "space_name": problem.name,
        "space_digest": problem.space_digest,
        "space_text": problem.space_text,
        "catalog_digest": problem.catalog_digest,
        "code_version": problem.code_version,
        "fidelity": fidelity_of(problem),
    }


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
