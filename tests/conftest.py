"""Fixtures shared by all tests."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy loads: tests run side by side, threads would fight

import pytest
from hypothesis import settings

from codesign.catalog import Catalog, load_catalog

settings.register_profile("codesign", deadline=None)  # a busy machine is not a failed property
settings.load_profile("codesign")


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load_catalog()
