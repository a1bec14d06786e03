"""The fidelity of a study's and of a sweep's values: all that was written so far is the model's."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLES = ("codesign_study", "codesign_sweep")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("fidelity", sa.String(length=32), nullable=False, server_default="model"))


def downgrade() -> None:
    for table in TABLES:
        op.drop_column(table, "fidelity")
