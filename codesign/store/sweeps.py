"""Sweeps and the manifest of their chunks."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from codesign.errors import StudyError, nearest
from codesign.store import tables
from codesign.store.database import utc_now
from codesign.store.names import check_name
from codesign.store.repository import Store, strict_json


@dataclass(frozen=True, slots=True)
class SweepRecord:
    """A sweep row: what is screened, how, and where the results lie."""

    sweep_id: int
    name: str
    state: str
    reason: str | None
    created_at: datetime
    ended_at: datetime | None
    space_name: str
    space_digest: str
    space_text: str
    catalog_digest: str
    code_version: str
    parameters: Mapping[str, Any]
    objectives: tuple[tuple[str, str], ...]
    rules: tuple[str, ...]
    method: str
    seed: int
    points_count: int
    chunk_count: int
    folder: str
    fidelity: str


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """One finished range of indices: its file and what is in it at a glance."""

    chunk_index: int
    start_index: int
    stop_index: int
    file: str
    sha256: str
    summary: Mapping[str, Any]


class SweepStore:
    """Sweeps of one database."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._database = store.database

    @property
    def place(self) -> str:
        """The database as a folder of chunks names it: a file by its path, a server without its password."""
        path = self._database.path
        shown = sa.make_url(self._database.url).render_as_string(hide_password=True)
        return shown if path is None else str(path.absolute())

    def create(self, record: Mapping[str, Any], actor: str) -> SweepRecord:
        """A new sweep.

        Raises:
            UsageError: the name is no plain word.
            StudyError: the name is taken.
        """
        check_name("sweep", record["name"])
        texts = {key: strict_json(record[key]) for key in ("parameters", "objectives", "rules")}
        row = {**record, **texts, "state": "running", "created_at": utc_now()}
        try:
            with self._database.write() as connection:
                connection.execute(tables.sweep.insert().values(**row))
        except sa.exc.IntegrityError:
            raise StudyError(f"a sweep {record['name']!r} already exists in this database") from None
        self._store.note(record["name"], "sweep", actor, {"points": record["points_count"]})
        return self.get(record["name"])

    def get(self, name: str) -> SweepRecord:
        """One sweep.

        Raises:
            StudyError: no such sweep; the message names the nearest.
        """
        found = self.find(name)
        if found is None:
            names = [s.name for s in self.all()]
            raise StudyError(f"no sweep {name!r}{nearest(name, names) or '; there is none yet'}")
        return found

    def find(self, name: str) -> SweepRecord | None:
        """One sweep, or None."""
        return next((s for s in self.all() if s.name == name), None)

    def all(self) -> list[SweepRecord]:
        """Every sweep, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(tables.sweep).order_by(tables.sweep.c.sweep_id)).mappings().all()
        return [_sweep(dict(row)) for row in rows]

    def set_state(self, sweep: SweepRecord, state: str, reason: str, actor: str) -> None:
        """Where a sweep stands."""
        ended = utc_now() if state != "running" else None
        table = tables.sweep
        with self._database.write() as connection:
            connection.execute(
                table.update()
                .where(table.c.sweep_id == sweep.sweep_id)
                .values(state=state, reason=reason, ended_at=ended)
            )
        self._store.note(sweep.name, "state", actor, {"to": state, "reason": reason})

    def add_chunk(self, sweep: SweepRecord, chunk: ChunkRecord) -> None:
        """Enter a finished chunk; entering it again replaces it."""
        table = tables.chunk
        mine = (table.c.sweep_id == sweep.sweep_id) & (table.c.chunk_index == chunk.chunk_index)
        with self._database.write() as connection:
            connection.execute(table.delete().where(mine))
            connection.execute(
                table.insert().values(
                    sweep_id=sweep.sweep_id,
                    chunk_index=chunk.chunk_index,
                    start_index=chunk.start_index,
                    stop_index=chunk.stop_index,
                    file=chunk.file,
                    sha256=chunk.sha256,
                    summary=strict_json(chunk.summary),
                    told_at=utc_now(),
                )
            )

    def chunks(self, sweep: SweepRecord) -> list[ChunkRecord]:
        """Finished chunks in the order of their ranges."""
        table = tables.chunk
        query = sa.select(table).where(table.c.sweep_id == sweep.sweep_id).order_by(table.c.chunk_index)
        with self._database.read() as connection:
            return [
                ChunkRecord(r.chunk_index, r.start_index, r.stop_index, r.file, r.sha256, json.loads(r.summary))
                for r in connection.execute(query)
            ]


def _sweep(row: dict[str, Any]) -> SweepRecord:
    row |= {key: json.loads(row[key]) for key in ("parameters", "objectives", "rules")}
    row["objectives"] = tuple((str(n), str(d)) for n, d in row["objectives"])
    row["rules"] = tuple(row["rules"])
    return SweepRecord(**row)
