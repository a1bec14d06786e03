"""Studies, runs, batches, evaluations and events."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "codesign_event",
        sa.Column("event_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.Column("subject", sa.String(length=512), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("actor", sa.String(length=256), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_codesign_event")),
    )
    op.create_index(op.f("ix_codesign_event_subject_event_id"), "codesign_event", ["subject", "event_id"], unique=False)
    op.create_table(
        "codesign_study",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=512), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("request", sa.String(length=16), nullable=True),
        sa.Column("mixed", sa.Boolean(), nullable=False),
        sa.Column("parent", sa.String(length=512), nullable=True),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("trials_total", sa.Integer(), nullable=False),
        sa.Column("space_name", sa.String(length=512), nullable=False),
        sa.Column("space_digest", sa.String(length=128), nullable=False),
        sa.Column("space_text", sa.Text(), nullable=False),
        sa.Column("catalog_digest", sa.String(length=128), nullable=False),
        sa.Column("code_version", sa.String(length=256), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("objectives", sa.Text(), nullable=False),
        sa.Column("rules", sa.Text(), nullable=False),
        sa.Column("sampler", sa.Text(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("batch_count", sa.Integer(), nullable=False),
        sa.Column("in_flight_count", sa.Integer(), nullable=False),
        sa.Column("first_rows", sa.Text(), nullable=False),
        sa.Column("reference", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("study_id", name=op.f("pk_codesign_study")),
        sa.UniqueConstraint("name", name=op.f("uq_codesign_study_name")),
    )
    op.create_table(
        "codesign_batch",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("batch_index", sa.Integer(), nullable=False),
        sa.Column("offset_count", sa.Integer(), nullable=False),
        sa.Column("first_number", sa.Integer(), nullable=False),
        sa.Column("rows_count", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("run_id", sa.String(length=32), nullable=False),
        sa.Column("asked_at", sa.DateTime(), nullable=False),
        sa.Column("told_at", sa.DateTime(), nullable=True),
        sa.Column("sampler_state", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["study_id"], ["codesign_study.study_id"], name=op.f("fk_codesign_batch_study_id")),
        sa.PrimaryKeyConstraint("study_id", "batch_index", "offset_count", name=op.f("pk_codesign_batch")),
    )
    op.create_table(
        "codesign_evaluation",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("batch_index", sa.Integer(), nullable=False),
        sa.Column("design_hash", sa.String(length=32), nullable=False),
        sa.Column("fidelity", sa.String(length=32), nullable=False),
        sa.Column("asked", sa.Text(), nullable=False),
        sa.Column("repaired", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("tombstone", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["study_id"], ["codesign_study.study_id"], name=op.f("fk_codesign_evaluation_study_id")
        ),
        sa.PrimaryKeyConstraint("study_id", "number", name=op.f("pk_codesign_evaluation")),
    )
    op.create_table(
        "codesign_run",
        sa.Column("run_id", sa.String(length=32), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("started_at", sa.DateTime(), nullable=False),
        sa.Column("ended_at", sa.DateTime(), nullable=True),
        sa.Column("lease_until", sa.DateTime(), nullable=False),
        sa.Column("host", sa.String(length=256), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("pid_started", sa.Float(precision=53), nullable=False),
        sa.Column("executor", sa.String(length=64), nullable=False),
        sa.Column("workers_count", sa.Integer(), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["codesign_study.study_id"], name=op.f("fk_codesign_run_study_id")),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_codesign_run")),
    )
    op.create_index(op.f("ix_codesign_run_study_id"), "codesign_run", ["study_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_codesign_run_study_id"), table_name="codesign_run")
    op.drop_table("codesign_run")
    op.drop_table("codesign_evaluation")
    op.drop_table("codesign_batch")
    op.drop_table("codesign_study")
    op.drop_index(op.f("ix_codesign_event_subject_event_id"), table_name="codesign_event")
    op.drop_table("codesign_event")
