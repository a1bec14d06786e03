"""One database, two kinds: SQLite tuned for one writer and many readers, or PostgreSQL. Errors in plain words."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine

from codesign.errors import StoreError
from codesign.store.turns import turn

BUSY_TIMEOUT_S = 30.0


def utc_now() -> datetime:
    """Now, as the tables keep it: naive UTC."""
    return datetime.now(UTC).replace(tzinfo=None)


#: What the SQL library raises; for callers outside this package, which do not know SQL.
DriverError = sa.exc.SQLAlchemyError


class TunedConnection(sqlite3.Connection):
    """A SQLite connection with our settings, whoever opens it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")
        try:
            if self.execute("PRAGMA journal_mode").fetchone()[0] != "wal" and self._is_ours():
                self.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "readonly" not in str(error) and "locked" not in str(error):  # both show again at the first write
                raise
        self.execute("PRAGMA synchronous = NORMAL")

    def _is_ours(self) -> bool:
        """Empty, Optuna's or ours: a file of another application is not even switched to another journal."""
        names = [name for (name,) in self.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return not names or "version_info" in names or any(name.startswith("codesign_") for name in names)


class Database:
    """A storage address opened: how to read, how to write under the lock Optuna uses, how to insert many rows."""

    def __init__(self, url: str, engine: Engine | None = None) -> None:
        self.url = normal_url(url)
        self.kind = sa.make_url(self.url).get_backend_name()
        with translated_errors(self.url):
            self.engine = engine or sa.create_engine(self.url, **engine_options(self.url))

    @property
    def is_sqlite(self) -> bool:
        """Whether this is a file of one machine."""
        return self.kind == "sqlite"

    @property
    def path(self) -> Path | None:
        """The file of a SQLite database."""
        return Path(sa.make_url(self.url).database or "") if self.is_sqlite else None

    def close(self) -> None:
        """Give every connection back."""
        self.engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one consistent state."""
        with translated_errors(self.url), self.engine.connect() as connection:
            begin = "BEGIN" if self.is_sqlite else "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
            connection.exec_driver_sql(begin)
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction: all of it or nothing. On SQLite it holds the only write lock from its first moment."""
        with translated_errors(self.url), self.engine.connect() as connection, self._turn():
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.commit()
            except BaseException:
                with suppress(sa.exc.DBAPIError):  # of a connection that is gone; what ended it is what matters
                    connection.rollback()
                raise

    def _turn(self) -> AbstractContextManager[None]:
        """Among the writers of a file, a turn of one's own; a server queues its writers itself."""
        return nullcontext() if self.path is None else turn(Path(f"{self.path}-wal"), BUSY_TIMEOUT_S)

    def sql(self, text: str) -> str:
        """Driver text with question marks as this driver writes its parameters."""
        return text if self.is_sqlite else text.replace("?", "%s")

    def rows(self, connection: Connection, text: str, *parameters: Any) -> list[Any]:
        """All rows of one driver-level query."""
        return list(connection.exec_driver_sql(self.sql(text), parameters).fetchall())

    def one(self, connection: Connection, text: str, *parameters: Any) -> Any:
        """First column of the first row, or None."""
        row = connection.exec_driver_sql(self.sql(text), parameters).fetchone()
        return None if row is None else row[0]

    def execute(self, connection: Connection, text: str, *parameters: Any) -> int:
        """One statement; how many rows it touched."""
        return connection.exec_driver_sql(self.sql(text), parameters).rowcount

    def insert(self, connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Many rows in one go: executemany on SQLite, COPY on PostgreSQL."""
        if not rows:
            return
        names = ", ".join(f'"{c}"' for c in columns)
        if self.is_sqlite:
            marks = ", ".join("?" * len(columns))
            connection.exec_driver_sql(f"INSERT INTO {table} ({names}) VALUES ({marks})", [tuple(r) for r in rows])
            return
        driver: Any = connection.connection.dbapi_connection
        dialect: Any = self.engine.dialect
        try:
            with driver.cursor() as cursor, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        except dialect.dbapi.Error as error:  # past SQLAlchemy, which would have said it in its own words
            raise sa.exc.DBAPIError(f"COPY {table}", None, error) from error

    def time(self, moment: datetime) -> Any:
        """A moment as the driver stores it."""
        return moment.strftime("%Y-%m-%d %H:%M:%S.%f") if self.is_sqlite else moment


SQLITE_ENDINGS = (".db", ".sqlite", ".sqlite3")


def normal_url(url: str) -> str:
    """The address with the drivers we use; a bare file name that ends as SQLite files do is one.

    Raises:
        StoreError: no address, neither SQLite nor PostgreSQL, or a database that would vanish with the process.
    """
    if "://" not in url:
        if not url.endswith(SQLITE_ENDINGS):
            wanted = "wanted sqlite:///studies.db, postgresql://USER@HOST/NAME, or a file that ends in .db"
            raise StoreError(f"storage {url!r} is not an address; {wanted}")
        url = f"sqlite:///{url}"
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        raise StoreError(f"storage {url!r} is not an address; wanted sqlite:///FILE or postgresql://...") from None
    if parsed.get_backend_name() == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise StoreError("a database in memory would lose every trial with the process; wanted sqlite:///FILE")
        return parsed.render_as_string(hide_password=False)
    if parsed.get_backend_name() == "postgresql":
        return parsed.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    raise StoreError(f"storage kind {parsed.get_backend_name()!r} is not supported; wanted sqlite or postgresql")


def engine_options(url: str) -> dict[str, Any]:
    """Options every engine of ours needs, Optuna's included."""
    if url.startswith("sqlite"):
        return {"connect_args": {"timeout": BUSY_TIMEOUT_S, "factory": TunedConnection, "isolation_level": None}}
    return {"pool_pre_ping": True, "connect_args": {"connect_timeout": 15}}


@contextmanager
def translated_errors(url: str) -> Iterator[None]:
    """Turn what drivers say into a `StoreError` that says what to do."""
    try:
        yield
    except ImportError as error:
        raise StoreError(f"no driver for {_shown(url)}: {error}; install codesign[postgres]") from error
    except (sa.exc.DBAPIError, sqlite3.Error, OSError) as error:
        said = str(getattr(error, "orig", None) or error).strip().splitlines()[0:1]
        advice = _advice(said[0] if said else type(error).__name__, url)
        if advice is None:
            raise
        raise StoreError(advice) from error


def _advice(said: str, url: str) -> str | None:
    where = _shown(url)
    for words, advice in _ADVICE:
        if any(word in said for word in words):
            return f"{where}: {advice} ({said})"
    return None


_ADVICE: list[tuple[tuple[str, ...], str]] = [
    (
        ("database is locked", "database table is locked"),
        f"another process kept the file locked for over {BUSY_TIMEOUT_S:.0f} s; finished trials are safe, try again",
    ),
    (
        ("readonly database", "read-only", "Permission denied", "permission denied"),
        "the database cannot be written; check the rights of the file and of its folder",
    ),
    (
        ("disk is full", "No space left", "disk I/O error", "could not extend file", "Disk quota"),
        "no space left on the disk; finished trials are safe, free some space and run the same command again",
    ),
    (("file is not a database", "file is encrypted"), "this file is not a SQLite database; give another file name"),
    (("disk image is malformed",), "the file is damaged; restore it from a backup or export what can still be read"),
    (("unable to open database file",), "the file cannot be opened; does its folder exist?"),
    (
        (
            "connection failed",
            "could not connect",
            "Connection refused",
            "connection is bad",
            "connection is lost",
            "connection is closed",
            "consuming input failed",
            "starting up",
            "not yet accepting",
            "server closed",
            "terminat",
        ),
        "the database server does not answer; finished trials are safe, run the same command again when it is back",
    ),
    (("password authentication", "no password supplied"), "the database server refused the login"),
    (("does not exist",), "the database server has no such database, role or table"),
]


def _shown(url: str) -> str:
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return str(parsed.database)
    return parsed.render_as_string(hide_password=True)


@contextmanager
def exclusive(database: Database) -> Iterator[None]:
    """Only one process at a time creates or upgrades tables here."""
    if database.is_sqlite:
        import fcntl

        assert database.path is not None
        folder = os.open(database.path.absolute().parent, os.O_RDONLY)  # not the file: SQLite keeps its own locks there
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)
        return
    with database.engine.connect() as connection:
        connection.exec_driver_sql("SELECT pg_advisory_lock(713015)")
        try:
            yield
        finally:
            connection.exec_driver_sql("SELECT pg_advisory_unlock(713015)")
            connection.commit()
