"""Whole machines as sets of decisions: what a space does not decide comes from here, each value printed or default."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from codesign.catalog.load import Catalog
from codesign.catalog.parsed import parsed
from codesign.catalog.refused import refused
from codesign.errors import CatalogError, nearest
from codesign.resources import catalog_data


class Decision(BaseModel):
    """One parameter of a machine: what it is, and whether a vendor printed it or it is a class default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    value: int | float | str
    kind: Literal["printed", "default"]
    source: str
    where: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _argued(self) -> Self:
        if self.kind == "printed" and not self.where:
            raise ValueError("a printed value says where it stands")
        if self.kind == "default" and not self.note:
            raise ValueError("a default says how it was reached")
        return self


class Platform(BaseModel):
    """A machine somebody built or described, as far as the model needs it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(min_length=1)
    accelerator: str = Field(description="entry of accelerators.yaml whose printed rates and kernel constants it has")
    chip: str = Field(description="base chip whose dies it starts from: a name of chips.BASES")
    baseline: bool = False
    parameters: dict[str, Decision]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    defaults: dict[str, Decision]
    platforms: dict[str, Platform]


@cache
def load_platforms(data: Path | None = None) -> Mapping[str, Platform]:
    """Every platform, completed by the defaults.

    Raises:
        CatalogError: the file breaks its schema.
    """
    path = (data or catalog_data()) / "platforms.yaml"
    try:
        file = TypeAdapter(_File).validate_python(parsed(path.parent)[path.name])
    except ValidationError as error:
        raise refused(path, error) from error
    return {
        name: platform.model_copy(update={"parameters": {**file.defaults, **platform.parameters}})
        for name, platform in file.platforms.items()
    }


def load_platform(name: str, place: str = "base") -> Platform:
    """One platform.

    Raises:
        CatalogError: there is none of that name; the message names the nearest.
    """
    platforms = load_platforms()
    if name not in platforms:
        raise CatalogError(f"{place}: no platform {name!r}{nearest(name, platforms)}")
    return platforms[name]


def check_platforms(catalog: Catalog) -> None:
    """Refuse a platform that cites a source or starts from an accelerator the catalog does not have.

    Raises:
        CatalogError: names the platform and the nearest name there is.
    """
    for name, platform in load_platforms().items():
        place = f"platforms.yaml:{name}"
        accelerators = catalog.technologies("accelerators")
        if platform.accelerator not in accelerators:
            known = nearest(platform.accelerator, accelerators)
            raise CatalogError(f"{place}: no accelerator {platform.accelerator!r}{known}")
        for parameter, decision in platform.parameters.items():
            if decision.source not in catalog.sources:
                known = nearest(decision.source, catalog.sources)
                raise CatalogError(f"{place}.{parameter}: source {decision.source!r} is not in sources.yaml{known}")
