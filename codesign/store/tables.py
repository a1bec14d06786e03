"""Our tables. They stand beside Optuna's in one database and reference them by value only, never by foreign key.

Texts that hold data are strict JSON (no NaN), kept as text so that what was written is what is read. Times are naive
UTC, as Optuna's are. Words stored in ``state`` and ``kind`` are never renamed.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

PREFIX = "codesign_"
VERSION_TABLE = "codesign_alembic_version"

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: Everything needed to run a study again, and where it stands.
study = Table(
    "codesign_study",
    metadata,
    Column("study_id", Integer, primary_key=True),
    Column("name", String(512), nullable=False, unique=True),  # the name of Optuna's study
    Column("state", String(16), nullable=False),
    Column("reason", Text),  # why it stands where it stands, in words
    Column("request", String(16)),  # what somebody asked the running driver to do: pause, stop, cancel
    Column("mixed", Boolean, nullable=False),  # others added trials: the promise of repeatability ended
    Column("parent", String(512)),
    Column("created_at", DateTime, nullable=False),
    Column("trials_total", Integer, nullable=False),
    Column("space_name", String(512), nullable=False),
    Column("space_digest", String(128), nullable=False),
    Column("space_text", Text, nullable=False),
    Column("catalog_digest", String(128), nullable=False),
    Column("code_version", String(256), nullable=False),
    Column("parameters", Text, nullable=False),
    Column("objectives", Text, nullable=False),
    Column("rules", Text, nullable=False),
    Column("sampler", Text, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("batch_count", Integer, nullable=False),
    Column("in_flight_count", Integer, nullable=False),
    Column("first_rows", Text, nullable=False),  # baselines, then promoted or inherited designs: [[name, row], ...]
    Column("reference", Text),  # fixed point that hypervolumes are measured from
    Column("fidelity", String(32), nullable=False),  # of all its values: those of others never share its front
)

#: One driver at work on a study; its lease says until when to believe in it.
run = Table(
    "codesign_run",
    metadata,
    Column("run_id", String(32), primary_key=True),
    Column("study_id", Integer, ForeignKey("codesign_study.study_id"), nullable=False, index=True),
    Column("state", String(16), nullable=False),
    Column("started_at", DateTime, nullable=False),
    Column("ended_at", DateTime),
    Column("lease_until", DateTime, nullable=False),
    Column("host", String(256), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("pid_started", Float(53), nullable=False),
    Column("executor", String(64), nullable=False),
    Column("workers_count", Integer, nullable=False),
    Column("platform", Text, nullable=False),
)

#: Rows asked together. A batch cut short by a total is completed later by a second row with an offset.
batch = Table(
    "codesign_batch",
    metadata,
    Column("study_id", Integer, ForeignKey("codesign_study.study_id"), primary_key=True),
    Column("batch_index", Integer, primary_key=True),
    Column("offset_count", Integer, primary_key=True),
    Column("first_number", Integer, nullable=False),
    Column("rows_count", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("run_id", String(32), nullable=False),
    Column("asked_at", DateTime, nullable=False),
    Column("told_at", DateTime),
    Column("sampler_state", Text),  # what a sampler of Optuna keeps on trials and study, if it keeps anything
)

#: What the problem answered, by study and trial number.
evaluation = Table(
    "codesign_evaluation",
    metadata,
    Column("study_id", Integer, ForeignKey("codesign_study.study_id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("batch_index", Integer, nullable=False),
    Column("design_hash", String(32), nullable=False),
    Column("fidelity", String(32), nullable=False),
    Column("asked", Text, nullable=False),
    Column("repaired", Text, nullable=False),
    Column("details", Text, nullable=False),
    Column("tombstone", Text),  # why this trial no longer counts
)

#: A screen of many candidates without a sampler; results lie in Parquet files.
sweep = Table(
    "codesign_sweep",
    metadata,
    Column("sweep_id", Integer, primary_key=True),
    Column("name", String(512), nullable=False, unique=True),
    Column("state", String(16), nullable=False),
    Column("reason", Text),
    Column("created_at", DateTime, nullable=False),
    Column("ended_at", DateTime),
    Column("space_name", String(512), nullable=False),
    Column("space_digest", String(128), nullable=False),
    Column("space_text", Text, nullable=False),
    Column("catalog_digest", String(128), nullable=False),
    Column("code_version", String(256), nullable=False),
    Column("parameters", Text, nullable=False),
    Column("objectives", Text, nullable=False),
    Column("rules", Text, nullable=False),
    Column("method", String(16), nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("points_count", BigInteger, nullable=False),
    Column("chunk_count", Integer, nullable=False),
    Column("folder", Text, nullable=False),
    Column("fidelity", String(32), nullable=False),
)

#: The manifest of a sweep: one Parquet file per range of indices.
chunk = Table(
    "codesign_chunk",
    metadata,
    Column("sweep_id", Integer, ForeignKey("codesign_sweep.sweep_id"), primary_key=True),
    Column("chunk_index", Integer, primary_key=True),
    Column("start_index", BigInteger, nullable=False),
    Column("stop_index", BigInteger, nullable=False),
    Column("file", Text, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("summary", Text, nullable=False),
    Column("told_at", DateTime, nullable=False),
)

#: What happened, in order: state changes with who and why, and whatever a watcher wants to follow.
event = Table(
    "codesign_event",
    metadata,
    Column("event_id", Integer, primary_key=True),
    Column("at", DateTime, nullable=False),
    Column("subject", String(512), nullable=False),  # name of the study or sweep
    Column("kind", String(32), nullable=False),
    Column("actor", String(256), nullable=False),
    Column("data", Text, nullable=False),
    Index(None, "subject", "event_id"),
)

__all__ = [
    "PREFIX",
    "VERSION_TABLE",
    "batch",
    "chunk",
    "evaluation",
    "event",
    "metadata",
    "run",
    "study",
    "sweep",
]
