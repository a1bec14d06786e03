"""How migrations of our own tables run: beside Optuna's, under our own version table, blind to everything else."""

from typing import Any

import sqlalchemy as sa
from alembic import context

from codesign.store.database import engine_options, normal_url
from codesign.store.tables import PREFIX, VERSION_TABLE, metadata


def ours(name: str | None, kind: str, _parents: Any) -> bool:
    """Only tables of our prefix exist for us; Optuna's must never look like something to drop."""
    return kind != "table" or (name or "").startswith(PREFIX)


def options(dialect: str) -> dict[str, Any]:
    """Settings of every run, online and offline."""
    return {
        "target_metadata": metadata,
        "version_table": VERSION_TABLE,
        "include_name": ours,
        "render_as_batch": dialect == "sqlite",
        "compare_type": True,
    }


def migrate(connection: sa.Connection) -> None:
    """Run on a connection somebody opened."""
    context.configure(connection=connection, **options(connection.dialect.name))
    with context.begin_transaction():
        context.run_migrations()


def url() -> str:
    """Where to, as given on the command line or by the caller."""
    return normal_url(context.get_x_argument(as_dictionary=True).get("url") or "codesign.db")


given = context.config.attributes.get("connection")
if context.is_offline_mode():
    address = url()
    context.configure(url=address, literal_binds=True, **options(sa.make_url(address).get_backend_name()))
    with context.begin_transaction():
        context.run_migrations()
elif isinstance(given, sa.Connection):
    migrate(given)
else:
    engine = given if isinstance(given, sa.Engine) else sa.create_engine(url(), **engine_options(url()))
    with engine.connect() as opened:
        migrate(opened)
        opened.commit()
