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
        raise CatalogError(
            f"catalog software.yaml: no family {family!r}{nearest(family, {n.split('@')[0] for n in known})}"
        )
    old = [name for name, year in since.items() if year <= release_year]
    return max(old, key=since.__getitem__) if old else min(since, key=since.__getitem__)


def attention_generation(catalog: Catalog, accelerator: str) -> str:
    """The fact of ``software.yaml`` that says how well attention kernels of a release keep a part's matrix units busy.

    Units that came with eight-bit floats run apart from the threads that feed them, and those that came with four-bit
    floats work from a memory of their own: each needed new kernels, and older ones run at a fraction.
    """
    facts = catalog.technology("accelerators", accelerator)
    if "fp4_peak_tflops" in facts:
        return "tensor_memory_attention_frac"
    return "asynchronous_attention_frac" if "fp8_peak_tflops" in facts else "attention_frac"


def software_of(
    catalog: Catalog, releases: Sequence[str], generations: Sequence[str], narrow: Sequence[bool]
) -> Software:
    """Capabilities as columns.

    Args:
        catalog: Facts.
        releases: Entries of ``software.yaml``, see `release_of`.
        generations: Fact that holds the attention speed on each part, see `attention_generation`.
        narrow: Whether products run in a format with block scales, which launches more kernels.
    """

    def column(name: str) -> np.ndarray:
        return np.array([catalog.value("software", release, name) for release in releases])

    plain = {f.name for f in fields(Software)} - {"attention_frac", "launch_ratio"}
    speed = np.array([catalog.value("software", r, g) for r, g in zip(releases, generations, strict=True)])
    launches = np.where(narrow, column("narrow_launch_ratio"), 1.0)
    return Software(attention_frac=speed, launch_ratio=launches, **{name: column(name) for name in plain})


def training_constants(catalog: Catalog, values: Mapping[str, float] | None = None) -> TrainingConstants:
    """The fitted and the stated factors of a training step; ``values`` stand in for the catalog's, as in a fit."""
    groups = catalog.constants["training"].values()
    values = values or {name: constant.value for group in groups for name, constant in group.items()}
    values = {"data_cost_frac": values["overlap_cost_frac"], **values}  # one number was fitted for both
    return TrainingConstants(**{f.name: values[f.name] for f in fields(TrainingConstants)})
