"""Sweeps and their chunks."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "codesign_sweep",
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=512), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("ended_at", sa.DateTime(), nullable=True),
        sa.Column("space_name", sa.String(length=512), nullable=False),
        sa.Column("space_digest", sa.String(length=128), nullable=False),
        sa.Column("space_text", sa.Text(), nullable=False),
        sa.Column("catalog_digest", sa.String(length=128), nullable=False),
        sa.Column("code_version", sa.String(length=256), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("objectives", sa.Text(), nullable=False),
        sa.Column("rules", sa.Text(), nullable=False),
        sa.Column("method", sa.String(length=16), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("points_count", sa.BigInteger(), nullable=False),
        sa.Column("chunk_count", sa.Integer(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sweep_id", name=op.f("pk_codesign_sweep")),
        sa.UniqueConstraint("name", name=op.f("uq_codesign_sweep_name")),
    )
    op.create_table(
        "codesign_chunk",
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("chunk_index", sa.Integer(), nullable=False),
        sa.Column("start_index", sa.BigInteger(), nullable=False),
        sa.Column("stop_index", sa.BigInteger(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("told_at", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(["sweep_id"], ["codesign_sweep.sweep_id"], name=op.f("fk_codesign_chunk_sweep_id")),
        sa.PrimaryKeyConstraint("sweep_id", "chunk_index", name=op.f("pk_codesign_chunk")),
    )


def downgrade() -> None:
    op.drop_table("codesign_chunk")
    op.drop_table("codesign_sweep")
