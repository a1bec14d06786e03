"""The one place that finds shipped files, in an installed wheel or in a checkout."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = PACKAGE.parent


def _shipped(inside: str, beside: str) -> Path:
    """``codesign/_shipped/NAME`` of a wheel, or the top-level folder of a checkout."""
    wheel = PACKAGE / "_shipped" / inside
    return wheel if wheel.exists() else _CHECKOUT / beside


def catalog_data() -> Path:
    """Folder of the catalog's YAML files."""
    return PACKAGE / "catalog" / "data"


def case_data() -> Path:
    """Folder of the published measurements and reference values shipped with the project."""
    return PACKAGE / "cases" / "data"


def search_spaces() -> Path:
    """Folder of the shipped search spaces."""
    return _shipped("search_spaces", "search_spaces")


def migrations() -> Path:
    """Folder of our Alembic migrations."""
    return _shipped("alembic", "alembic")
