"""From framework family and release to `Software`, and from the catalog to the constants of a training step."""

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np

from codesign.catalog import Catalog
from codesign.errors import CatalogError, nearest
from codesign.model.workload.training_inputs import Software, TrainingConstants


def release_of(catalog: Catalog, family: str, release_year: float) -> str:
    """The newest entry of ``software.yaml`` of a family that is not newer than a release; the oldest if none is.

    Raises:
        CatalogError: the family is unknown.
    """
    known = catalog.technologies("software")
    since = {name: known[name]["since_year"].value for name in known if name.split("@")[0] == family}
    if not since:
        raise CatalogError(f"catalog software.yaml: no family {family!r}{nearest(family, {n.split('@')[0] for n in known})}")
    old = [name for name, year in since.items() if year <= release_year]
    return max(old, key=since.__getitem__) if old else min(since, key=since.__getitem__)


def software_of(
    catalog: Catalog, releases: Sequence[str], asynchronous: Sequence[bool], narrow: Sequence[bool]
) -> Software:
    """Capabilities as columns.

    Args:
        catalog: Facts.
        releases: Entries of ``software.yaml``, see `release_of`.
        asynchronous: Whether the part has matrix units that only newer attention kernels keep busy (those that
            came with eight-bit floats).
        narrow: Whether products run in a format with block scales, which launches more kernels.
    """

    def column(name: str) -> np.ndarray:
        return np.array([catalog.value("software", release, name) for release in releases])

    plain = {f.name for f in fields(Software)} - {"attention_frac", "launch_ratio"}
    speed = np.where(asynchronous, column("asynchronous_attention_frac"), column("attention_frac"))
    launches = np.where(narrow, column("narrow_launch_ratio"), 1.0)
    return Software(attention_frac=speed, launch_ratio=launches, **{name: column(name) for name in plain})


def training_constants(catalog: Catalog, values: Mapping[str, float] | None = None) -> TrainingConstants:
    """The fitted and the stated factors of a training step; ``values`` stand in for the catalog's, as in a fit."""
    groups = catalog.constants["training"].values()
    values = values or {name: constant.value for group in groups for name, constant in group.items()}
    return TrainingConstants(**{f.name: values[f.name] for f in fields(TrainingConstants)})
