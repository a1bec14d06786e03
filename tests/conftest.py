"""Fixtures shared by all tests."""

import pytest

from codesign.catalog import Catalog, load_catalog


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load_catalog()
