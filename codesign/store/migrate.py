"""Which revision of our tables a database has, and how to bring it to ours."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from codesign import resources
from codesign.errors import StoreError
from codesign.store.database import Database, exclusive
from codesign.store.tables import PREFIX, VERSION_TABLE
from codesign.store.trials import OPTUNA_TABLES, creation_cut_short, ensure_optuna_tables, optuna_revision

#: The revision this version of the code reads and writes; a test compares it with the migrations.
HEAD = "0003"


@dataclass(frozen=True, slots=True)
class Revisions:
    """What a database has and what this code wants. None: not there yet."""

    ours: str | None
    ours_wanted: str
    optuna: str | None


def current(url: str) -> Revisions:
    """The revisions of a database, without changing it; where there is no file none is made.

    Raises:
        StoreError: there is no database.
    """
    database = Database(url)
    _refuse_absent(database)
    try:
        return _revisions(database)
    finally:
        database.close()


def upgrade(url: str) -> Revisions:
    """Create or upgrade Optuna's tables and ours; safe to call from many processes at once.

    Raises:
        StoreError: the database belongs to another application, or to a newer version of this one.
    """
    database = Database(url)
    try:
        with exclusive(database):
            _refuse_strangers(database, _table_names(database))
            ensure_optuna_tables(database)
            _run_migrations(database, "upgrade", "head")
        return _revisions(database)
    finally:
        database.close()


def downgrade(url: str, revision: str) -> None:
    """Take our tables back to an older revision; for tests and for emergencies."""
    database = Database(url)
    try:
        with exclusive(database):
            _run_migrations(database, "downgrade", revision)
    finally:
        database.close()


def has_database(url: str) -> bool:
    """Whether there is a database to read; asking makes none."""
    database = Database(url)
    try:
        return _is_there(database) and bool(_table_names(database))
    finally:
        database.close()


def open_database(url: str, create: bool = True) -> Database:
    """A database ready for use: created if empty and ``create`` is set, upgraded if old, refused if foreign or newer.

    Raises:
        StoreError: it is refused, or there is none and none may be made.
    """
    database = Database(url)
    try:
        if not create:
            _refuse_absent(database)
        found = _revisions(database)
        if not create and (found.ours, found.optuna) == (None, None):
            raise StoreError(_absent(database))
        if found.ours != HEAD or found.optuna is None:
            upgrade(url)
    except BaseException:
        database.close()
        raise
    return database


def _is_there(database: Database) -> bool:
    return database.path is None or database.path.exists()


def _refuse_absent(database: Database) -> None:
    if not _is_there(database):
        raise StoreError(_absent(database))


def _absent(database: Database) -> str:
    where = database.path or sa.make_url(database.url).render_as_string(hide_password=True)
    return (
        f"there is no database of studies at {where}, and reading makes none; `codesign study run SPACE` does, "
        "--storage names another"
    )


def script_directory() -> Any:
    """Alembic's view of the shipped migrations."""
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(resources.migrations()))


def _revisions(database: Database) -> Revisions:
    names = _table_names(database)
    if names:
        _refuse_strangers(database, names)
    return Revisions(
        ours=_version(database) if VERSION_TABLE in names else None,
        ours_wanted=HEAD,
        optuna=optuna_revision(database) if "alembic_version" in names else None,
    )


def _table_names(database: Database) -> set[str]:
    with database.read() as connection:
        return set(sa.inspect(connection).get_table_names())


def _version(database: Database) -> str | None:
    with database.read() as connection:
        found = database.one(connection, f"SELECT version_num FROM {VERSION_TABLE}")
    return None if found is None else str(found)


def _refuse_strangers(database: Database, names: set[str]) -> None:
    where = sa.make_url(database.url).render_as_string(hide_password=True)
    foreign = sorted(n for n in names - OPTUNA_TABLES if not n.startswith(PREFIX))
    if names and not {"version_info", "studies", "trials"} <= names and not creation_cut_short(database, names):
        shown = ", ".join(sorted(names)[:5])
        raise StoreError(f"{where} belongs to another application (it holds {shown}); give another file or database")
    if foreign and "alembic_version" in names and optuna_revision(database) is None:
        raise StoreError(f"{where} is shared with another application's migrations; give another file or database")
    if VERSION_TABLE in names:
        version = _version(database)
        if version is not None and version > HEAD:
            raise StoreError(
                f"{where} was written by a newer version of codesign (revision {version}, this one knows {HEAD}); "
                "upgrade codesign"
            )


def _run_migrations(database: Database, verb: str, revision: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(resources.migrations()).replace("%", "%%"))
    with database.write() as connection:
        config.attributes["connection"] = connection
        getattr(command, verb)(config, revision)
