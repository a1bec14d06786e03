"""Studies, runs, batches, evaluations and events: plain records in, plain records out, one transaction per call.

`Store` is what the rest of the program sees of the database. A batch of trials is one transaction: Optuna's rows and
ours together, with the lease of the run renewed in passing.
"""

import json
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from codesign.errors import StoreError, StudyError, nearest
from codesign.store import tables, trials
from codesign.store.database import Database, utc_now
from codesign.store.migrate import open_database
from codesign.store.names import check_name
from codesign.store.trials import ParameterColumn, TrialColumns
from codesign.units import Array

LEASE_S = 120.0
STRANGER_GRACE_S = 3600.0
FIDELITY = "model"  # of every value the shipped problems give


def strict_json(data: Any) -> str:
    """JSON without NaN, which neither PostgreSQL nor a browser reads."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class StudyRecord:
    """A study row: what is asked, how it is searched, where it stands."""

    study_id: int
    name: str
    state: str
    reason: str | None
    request: str | None
    mixed: bool
    parent: str | None
    created_at: datetime
    trials_total: int
    space_name: str
    space_digest: str
    space_text: str
    catalog_digest: str
    code_version: str
    parameters: Mapping[str, Any]
    objectives: tuple[tuple[str, str], ...]
    rules: tuple[str, ...]
    sampler: Mapping[str, Any]
    seed: int
    batch_count: int
    in_flight_count: int
    first_rows: tuple[tuple[str, Mapping[str, Any]], ...]
    reference: tuple[float, ...] | None
    fidelity: str


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """Rows asked together: where they stand and who evaluates them."""

    batch_index: int
    offset_count: int
    first_number: int
    rows_count: int
    state: str
    run_id: str
    sampler_state: str | None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A driver that works, or worked, on a study."""

    run_id: str
    state: str
    lease_until: datetime
    host: str
    pid: int
    pid_started: float


@dataclass(frozen=True, slots=True)
class EvaluationRecord:
    """What the problem answered to one trial; texts are JSON."""

    number: int
    batch_index: int
    design_hash: str
    fidelity: str
    asked: str
    repaired: str
    details: str
    tombstone: str | None


@dataclass(frozen=True, slots=True)
class EventRecord:
    """Something that happened to a study or sweep."""

    event_id: int
    at: datetime
    subject: str
    kind: str
    actor: str
    data: Mapping[str, Any]


_TEXTS = ("parameters", "objectives", "rules", "sampler", "first_rows", "reference")
_LEAN = ("study_id", "number", "batch_index", "design_hash", "fidelity", "asked", "repaired", "details")


class Store:
    """One database of studies. Trials are appended, never edited.

    Who only reads says ``create=False``: a database that is not there is then an error and stays away.
    """

    def __init__(self, url: str, create: bool = True) -> None:
        self.database: Database = open_database(url, create)

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give every connection back."""
        self.database.close()

    # ------------------------------------------------------------------------------------------------- studies

    def create_study(self, record: Mapping[str, Any], actor: str) -> StudyRecord:
        """A new study, Optuna's rows and ours.

        Raises:
            UsageError: the name is no plain word.
            StudyError: the name is taken, by us or by a plain Optuna study.
        """
        name = record["name"]
        check_name("study", name)
        row = {k: strict_json(v) if k in _TEXTS and v is not None else v for k, v in record.items()}
        with self.database.write() as connection:
            if trials.optuna_study_id(self.database, connection, name) is not None:
                raise StudyError(f"a study {name!r} already exists in this database; give another name")
            trials.create_optuna_study(self.database, connection, name, record["objectives"], record["rules"])
            fresh = {"state": "draft", "mixed": False, "created_at": utc_now(), "fidelity": FIDELITY}
            connection.execute(tables.study.insert().values(**fresh | row))
            self._note(connection, name, "created", actor, {"parent": record.get("parent")})
        return self.study(name)

    def study(self, name: str) -> StudyRecord:
        """One study.

        Raises:
            StudyError: no such study; the message names the nearest.
        """
        with self.database.read() as connection:
            row = connection.execute(sa.select(tables.study).where(tables.study.c.name == name)).mappings().first()
            if row is None:
                names = [n for (n,) in connection.execute(sa.select(tables.study.c.name))]
                raise StudyError(f"no study {name!r}{nearest(name, names) or '; there is none yet'}")
        return _study(dict(row))

    def has_study(self, name: str) -> bool:
        """Whether we have a study of this name."""
        with self.database.read() as connection:
            return (
                connection.execute(sa.select(tables.study.c.study_id).where(tables.study.c.name == name)).first()
                is not None
            )

    def studies(self) -> list[StudyRecord]:
        """Every study, oldest first."""
        with self.database.read() as connection:
            rows = connection.execute(sa.select(tables.study).order_by(tables.study.c.study_id)).mappings().all()
        return [_study(dict(row)) for row in rows]

    def set_study(self, name: str, **columns: Any) -> None:
        """Change columns of a study."""
        row = {k: strict_json(v) if k in _TEXTS and v is not None else v for k, v in columns.items()}
        with self.database.write() as connection:
            connection.execute(tables.study.update().where(tables.study.c.name == name).values(**row))

    def transition(self, name: str, state: str, actor: str, reason: str) -> None:
        """Move a study to another state and note who and why."""
        with self.database.write() as connection:
            self._transition(connection, name, state, actor, reason)

    def delete_study(self, name: str) -> None:
        """Remove a study with all its trials, Optuna's rows and ours."""
        study = self.study(name)
        with self.database.write() as connection:
            optuna_id = trials.optuna_study_id(self.database, connection, name)
            if optuna_id is not None:
                trials.delete_optuna_study(self.database, connection, optuna_id)
            for table in (tables.evaluation, tables.batch, tables.run, tables.study):
                connection.execute(table.delete().where(table.c.study_id == study.study_id))

    # ---------------------------------------------------------------------------------------------------- runs

    def runs(self, study: StudyRecord) -> list[RunRecord]:
        """Drivers of a study, oldest first."""
        table = tables.run
        columns = [table.c[name] for name in RunRecord.__slots__]
        query = sa.select(*columns).where(table.c.study_id == study.study_id).order_by(table.c.started_at)
        with self.database.read() as connection:
            return [RunRecord(*row) for row in connection.execute(query)]

    def start_run(self, study: StudyRecord, record: Mapping[str, Any], dead: Collection[str], *, join: bool) -> str:
        """Claim a study for a new driver; batches of drivers known to be dead become ours.

        Raises:
            StudyError: another driver holds a lease that has not run out.
        """
        run_id, now = uuid.uuid4().hex, utc_now()
        with self.database.write() as connection:
            self._lock(connection, study.name)
            table = tables.run
            alive = sa.select(table.c.run_id, table.c.host, table.c.pid, table.c.lease_until).where(
                table.c.study_id == study.study_id, table.c.state == "running", table.c.run_id.not_in(list(dead))
            )
            others = [row for row in connection.execute(alive) if row.lease_until > now]
            if others and not join:
                raise StudyError(
                    f"study {study.name!r} is being run by process {others[0].pid} on {others[0].host}; wait for it, "
                    f"stop it, or join it"
                )
            if join:
                connection.execute(
                    tables.study.update().where(tables.study.c.study_id == study.study_id).values(mixed=True)
                )
            gone = table.update().where(table.c.study_id == study.study_id, table.c.state == "running")
            keep = [row.run_id for row in others]
            connection.execute(gone.where(table.c.run_id.not_in(keep)).values(state="lost", ended_at=now))
            adopt = tables.batch.update().where(
                tables.batch.c.study_id == study.study_id, tables.batch.c.state == "asked"
            )
            connection.execute(adopt.where(tables.batch.c.run_id.not_in(keep)).values(run_id=run_id))
            connection.execute(
                table.insert().values(
                    run_id=run_id,
                    study_id=study.study_id,
                    state="running",
                    started_at=now,
                    lease_until=now + timedelta(seconds=LEASE_S),
                    **record,
                )
            )
        return run_id

    def renew(self, run_id: str) -> None:
        """Keep a lease alive while a long batch is evaluated."""
        with self.database.write() as connection:
            self._renew(connection, run_id)

    def end_run(self, run_id: str, state: str) -> None:
        """A driver stops working."""
        with self.database.write() as connection:
            connection.execute(
                tables.run.update().where(tables.run.c.run_id == run_id).values(state=state, ended_at=utc_now())
            )

    def worker_hours(self, study: StudyRecord) -> float:
        """What a study has cost: workers of each run times the hours in which it had a batch in flight.

        A batch taken over from a dead driver counts from the start of the run that finished it.
        """
        run, batch = tables.run.c, tables.batch.c
        query = sa.select(run.run_id, run.started_at, run.workers_count, batch.asked_at, batch.told_at)
        query = query.join_from(tables.run, tables.batch, run.run_id == batch.run_id)
        query = query.where(batch.study_id == study.study_id, batch.told_at.is_not(None)).order_by(batch.asked_at)
        seconds, until = 0.0, dict[str, datetime]()
        with self.database.read() as connection:
            for run_id, started_at, workers, asked_at, told_at in connection.execute(query):
                since = max(asked_at, until.get(run_id, started_at))
                seconds += workers * max((told_at - since).total_seconds(), 0.0)
                until[run_id] = max(told_at, since)
        return seconds / 3600.0

    # ------------------------------------------------------------------------------------------------- batches

    def batches(self, study: StudyRecord) -> list[BatchRecord]:
        """Batches in the order of asking."""
        table = tables.batch
        columns = [table.c[name] for name in BatchRecord.__slots__]
        query = sa.select(*columns).where(table.c.study_id == study.study_id)
        with self.database.read() as connection:
            found = connection.execute(query.order_by(table.c.batch_index, table.c.offset_count)).all()
        return [BatchRecord(*row) for row in found]

    def open_batch(
        self,
        study: StudyRecord,
        run_id: str,
        columns: Sequence[ParameterColumn],
        internal: Array,
        *,
        batch_index: int | None,
        offset_count: int = 0,
        sampler_state: str | None = None,
        trials_total: int | None = None,
    ) -> BatchRecord:
        """RUNNING trials of a new batch.

        Drivers that share a study give no index, the next free one is taken, and give the total instead: rows beyond
        it are left out, all of them perhaps, for only here is it known how many trials there are.

        Raises:
            StudyError: this index is taken: another driver writes to the study.
        """
        with self.database.write() as connection:
            optuna_id = self._lock(connection, study.name)
            self._renew(connection, run_id)
            if batch_index is None:
                top = "SELECT COALESCE(MAX(batch_index), -1) FROM codesign_batch WHERE study_id = ?"
                batch_index = int(self.database.one(connection, top, study.study_id)) + 1
            if trials_total is not None:
                there = int(self.database.one(connection, "SELECT COUNT(*) FROM trials WHERE study_id = ?", optuna_id))
                internal = internal[: max(trials_total - there, 0)]
            first = trials.insert_running(self.database, connection, optuna_id, columns, internal)
            record = BatchRecord(batch_index, offset_count, first, len(internal), "asked", run_id, sampler_state)
            try:
                connection.execute(
                    tables.batch.insert().values(
                        study_id=study.study_id,
                        asked_at=utc_now(),
                        **{name: getattr(record, name) for name in BatchRecord.__slots__},
                    )
                )
            except sa.exc.IntegrityError:
                raise StudyError(f"another driver wrote batch {batch_index} of study {study.name!r}") from None
        return record

    def close_batch(
        self,
        study: StudyRecord,
        batch: BatchRecord,
        values: Array,
        constraints: Array,
        evaluations: Sequence[tuple[str, str, str, str]],
        failed: Collection[int] = (),
        user_attributes: Mapping[int, Mapping[str, str]] | None = None,
    ) -> str | None:
        """Answers to a batch, in one transaction; what somebody asked of the driver meanwhile is returned.

        Args:
            study: The study.
            batch: The batch `open_batch` gave, or an adopted one.
            values: (n, k) objectives.
            constraints: (n, r) graded excess per rule.
            evaluations: Per row its design hash and the texts asked, repaired and details.
            failed: Rows without an answer; their values are ignored.
            user_attributes: Short JSON texts to show beside some rows in Optuna's tools.
        """
        database = self.database
        with database.write() as connection:
            optuna_id = self._lock(connection, study.name)
            self._renew(connection, batch.run_id)
            key = (study.study_id, batch.batch_index, batch.offset_count)
            told = database.execute(
                connection,
                "UPDATE codesign_batch SET state = 'told', told_at = ? WHERE study_id = ? AND batch_index = ? "
                "AND offset_count = ? AND state = 'asked' AND run_id = ?",
                *(database.time(utc_now()), *key, batch.run_id),
            )
            if told != 1:
                raise StudyError(f"batch {batch.batch_index} of study {study.name!r} was taken over by another driver")
            trials.finish(
                *(database, connection, optuna_id, batch.first_number, values, constraints, failed, user_attributes)
            )
            rows = [
                (study.study_id, batch.first_number + i, batch.batch_index, text[0], study.fidelity, *text[1:])
                for i, text in enumerate(evaluations)
            ]
            database.insert(connection, "codesign_evaluation", _LEAN, rows)
            wish = database.one(connection, "SELECT request FROM codesign_study WHERE study_id = ?", study.study_id)
        return None if wish is None else str(wish)

    def drop_batch(self, study: StudyRecord, batch: BatchRecord) -> None:
        """Give up a batch in flight: its trials end as FAIL."""
        with self.database.write() as connection:
            optuna_id = self._lock(connection, study.name)
            numbers = range(batch.first_number, batch.first_number + batch.rows_count)
            trials.fail_running(self.database, connection, optuna_id, numbers)
            table = tables.batch
            connection.execute(
                table.update()
                .where(table.c.study_id == study.study_id, table.c.batch_index == batch.batch_index)
                .where(table.c.offset_count == batch.offset_count, table.c.state == "asked")
                .values(state="dropped", told_at=utc_now())
            )

    def fail_strangers(self, study: StudyRecord, grace_s: float = STRANGER_GRACE_S) -> int:
        """End RUNNING trials that none of us owns and that went stale; how many there were."""
        ours = {
            number
            for b in self.batches(study)
            if b.state == "asked"
            for number in range(b.first_number, b.first_number + b.rows_count)
        }
        with self.database.write() as connection:
            optuna_id = self._lock(connection, study.name)
            stale = trials.stale_strangers(self.database, connection, optuna_id, ours, grace_s)
            trials.fail_running(self.database, connection, optuna_id, stale)
        return len(stale)

    # ------------------------------------------------------------------------------------------------- reading

    def columns(self, study: StudyRecord) -> TrialColumns:
        """Every trial of a study as arrays, Optuna users' trials included."""
        with self.database.read() as connection:
            optuna_id = trials.optuna_study_id(self.database, connection, study.name)
            if optuna_id is None:
                raise StudyError(f"the trials of study {study.name!r} were deleted outside codesign")
            names = list(study.parameters)
            return trials.load_columns(
                self.database, connection, optuna_id, names, len(study.objectives), len(study.rules)
            )

    def evaluations(self, study: StudyRecord, numbers: Collection[int] | None = None) -> Iterator[EvaluationRecord]:
        """What the problem answered, by rising trial number; all of it or some numbers."""
        table = tables.evaluation
        query = sa.select(*(table.c[name] for name in EvaluationRecord.__slots__))
        query = query.where(table.c.study_id == study.study_id).order_by(table.c.number)
        if numbers is not None:
            query = query.where(table.c.number.in_([int(n) for n in numbers]))
        with self.database.read() as connection:
            for row in connection.execution_options(stream_results=True).execute(query):
                yield EvaluationRecord(*row)

    def tombstone(self, study: StudyRecord, number: int, reason: str, actor: str) -> None:
        """Mark a finished trial as not counting; it stays readable."""
        table = tables.evaluation
        with self.database.write() as connection:
            marked = connection.execute(
                table.update()
                .where(table.c.study_id == study.study_id, table.c.number == number)
                .values(tombstone=reason)
            ).rowcount
            if not marked:
                raise StudyError(f"study {study.name!r} has no finished trial {number}")
            self._note(connection, study.name, "tombstone", actor, {"number": number, "reason": reason})

    def tombstones(self, study: StudyRecord) -> dict[int, str]:
        """Numbers of the trials that do not count, with the reason."""
        table = tables.evaluation
        query = sa.select(table.c.number, table.c.tombstone).where(table.c.study_id == study.study_id)
        with self.database.read() as connection:
            return {int(n): str(t) for n, t in connection.execute(query.where(table.c.tombstone.is_not(None)))}

    def note(self, subject: str, kind: str, actor: str, data: Mapping[str, Any]) -> None:
        """Add an event."""
        with self.database.write() as connection:
            self._note(connection, subject, kind, actor, data)

    def events(self, subject: str, after: int = 0) -> list[EventRecord]:
        """Events of a study or sweep above an id, in order."""
        table = tables.event
        query = sa.select(table).where(table.c.subject == subject, table.c.event_id > after).order_by(table.c.event_id)
        with self.database.read() as connection:
            return [
                EventRecord(r.event_id, r.at, r.subject, r.kind, r.actor, json.loads(r.data))
                for r in connection.execute(query)
            ]

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction for the other repositories of this package."""
        with self.database.write() as connection:
            yield connection

    # ------------------------------------------------------------------------------------------------- private

    def _lock(self, connection: Connection, name: str) -> int:
        optuna_id = trials.optuna_study_id(self.database, connection, name)
        if optuna_id is None:
            raise StoreError(f"the study {name!r} was deleted while it ran")
        trials.lock_study(self.database, connection, optuna_id)
        return optuna_id

    def _renew(self, connection: Connection, run_id: str) -> None:
        until = self.database.time(utc_now() + timedelta(seconds=LEASE_S))
        renewed = "UPDATE codesign_run SET lease_until = ? WHERE run_id = ? AND state = 'running'"
        if self.database.execute(connection, renewed, until, run_id) != 1:
            raise StudyError("another driver took this study over while this one was silent; finished trials are safe")

    def _transition(self, connection: Connection, name: str, state: str, actor: str, reason: str) -> None:
        table = tables.study
        before = connection.execute(sa.select(table.c.state).where(table.c.name == name)).scalar_one()
        connection.execute(table.update().where(table.c.name == name).values(state=state, reason=reason, request=None))
        self._note(connection, name, "state", actor, {"from": before, "to": state, "reason": reason})

    def _note(self, connection: Connection, subject: str, kind: str, actor: str, data: Mapping[str, Any]) -> None:
        text = strict_json(dict(data))
        connection.execute(
            tables.event.insert().values(at=utc_now(), subject=subject, kind=kind, actor=actor, data=text)
        )


def _study(row: Mapping[str, Any]) -> StudyRecord:
    data = {k: json.loads(v) if k in _TEXTS and v is not None else v for k, v in row.items()}
    data["objectives"] = tuple((str(n), str(d)) for n, d in data["objectives"])
    data["rules"] = tuple(data["rules"])
    data["first_rows"] = tuple((str(n), dict(r)) for n, r in data["first_rows"])
    data["reference"] = None if data["reference"] is None else tuple(data["reference"])
    return StudyRecord(**data)
