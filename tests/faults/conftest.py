"""Storage addresses for tests: every test that takes ``storage`` runs on SQLite and on PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.backends import close_storages, fresh_database, migrated_template, postgres_server, sqlite_file


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield sqlite_file(tmp_path, "studies")
    else:
        server = request.getfixturevalue("postgres")
        yield fresh_database(server, migrated_template(server))
    close_storages()
