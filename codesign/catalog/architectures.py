"""The architecture of each accelerator, and which measured architecture an unmeasured one borrows constants from."""

from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from codesign.catalog.refused import refused
from codesign.errors import CatalogError
from codesign.resources import catalog_data
from codesign.yaml12 import read_yaml


class Architecture(BaseModel):
    """One generation of accelerators."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    like: str
    accelerators: tuple[str, ...]


@cache
def load_architectures(data: Path | None = None) -> dict[str, Architecture]:
    """Every record of ``architectures.yaml``.

    Raises:
        CatalogError: a record breaks the schema, or borrows from an architecture that is not listed.
    """
    path = (data or catalog_data()) / "architectures.yaml"
    try:
        records = TypeAdapter(dict[str, Architecture]).validate_python(read_yaml(path))
    except ValidationError as error:
        raise refused(path, error) from error
    unknown = sorted({r.like for r in records.values()} - set(records))
    if unknown:
        raise CatalogError(f"{path.name}: borrows from unlisted {', '.join(unknown)}")
    return records


@cache
def lineage(accelerator: str) -> tuple[str, ...]:
    """Names whose constants an accelerator may use, nearest first: itself, its architecture, the one it is like.

    >>> lineage("b300-sxm")
    ('b300-sxm', 'blackwell-ultra', 'blackwell')
    >>> lineage("cdna3")  # an architecture stands for a part of it
    ('cdna3', 'hopper')
    """
    for name, record in load_architectures().items():
        if accelerator == name:
            return tuple(dict.fromkeys((name, record.like)))
        if accelerator in record.accelerators:
            return tuple(dict.fromkeys((accelerator, name, record.like)))
    return (accelerator,)
