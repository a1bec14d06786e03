"""Read the catalog from YAML. Every complaint names the file and the fact.

Layout of ``data/``: ``sources.yaml`` is the one bibliography; ``calibration/NAME.yaml`` holds fitted constants
(group -> name -> Constant); ``models.yaml`` and ``platforms.yaml`` describe whole transformers and machines; every
other ``KIND.yaml`` holds facts (technology -> name -> Fact).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from codesign.catalog.parsed import Data, digest_of, parsed
from codesign.catalog.refused import refused
from codesign.catalog.schema import Constant, Fact, Source
from codesign.errors import CatalogError, nearest
from codesign.resources import catalog_data
from codesign.units import unit_of

T = TypeVar("T")
Facts = Mapping[str, Fact]


@dataclass(frozen=True)
class Catalog:
    """Facts by kind, technology and name: ``catalog.fact("memory", "hbm3", "pin_rate_gbps").value``."""

    facts: Mapping[str, Mapping[str, Facts]]
    constants: Mapping[str, Mapping[str, Mapping[str, Constant]]]
    sources: Mapping[str, Source]
    digest: str

    def technologies(self, kind: str) -> Mapping[str, Facts]:
        """All technologies of one kind.

        Raises:
            CatalogError: there is no such kind.
        """
        if kind not in self.facts:
            raise CatalogError(f"catalog: no kind {kind!r}{nearest(kind, self.facts)}")
        return self.facts[kind]

    def technology(self, kind: str, name: str) -> Facts:
        """The facts of one technology.

        Raises:
            CatalogError: there is no such technology; the message names the nearest.
        """
        known = self.technologies(kind)
        if name not in known:
            raise CatalogError(f"catalog {kind}.yaml: no entry {name!r}{nearest(name, known)}")
        return known[name]

    def fact(self, kind: str, technology: str, name: str) -> Fact:
        """One fact.

        Raises:
            CatalogError: the technology has no such fact.
        """
        facts = self.technology(kind, technology)
        if name not in facts:
            raise CatalogError(f"catalog {kind}.yaml: {technology}: no fact {name!r}{nearest(name, facts)}")
        return facts[name]

    def value(self, kind: str, technology: str, name: str) -> float:
        """The number of one fact."""
        return self.fact(kind, technology, name).value

    def constant(self, law: str, group: str, name: str) -> float:
        """The number of one fitted constant of ``calibration/LAW.yaml``.

        Raises:
            CatalogError: no such law, group or constant.
        """
        place: Any = self.constants
        for key in (law, group, name):
            if key not in place:
                raise CatalogError(f"catalog calibration/{law}.yaml: no {key!r}{nearest(key, place)}")
            place = place[key]
        found: Constant = place
        return found.value


@cache
def load_catalog(data: Path | None = None) -> Catalog:
    """Load every fact file and check it against the schema, the sources and its own names.

    Raises:
        CatalogError: a fact breaks the schema, cites a source we do not list, or is named after another unit
            than the one it declares.
    """
    folder = data or catalog_data()
    data_of = parsed(folder)
    sources = _read(folder, data_of, "sources.yaml", TypeAdapter(dict[str, Source]))
    shape = TypeAdapter(dict[str, dict[str, Fact]])
    facts = {name.removesuffix(".yaml"): _read(folder, data_of, name, shape) for name in _fact_files(data_of)}
    for kind, technologies in facts.items():
        for technology, entries in technologies.items():
            for name, fact in entries.items():
                _check(f"{kind}.yaml:{technology}.{name}", name, fact, sources)
    fits = TypeAdapter(dict[str, dict[str, Constant]])
    constants = {
        Path(name).stem: _read(folder, data_of, name, fits) for name in data_of if name.startswith("calibration/")
    }
    return Catalog(facts=facts, constants=constants, sources=sources, digest=digest_of(folder))


def _fact_files(data: Data) -> list[str]:
    special = {"sources.yaml", "models.yaml", "architectures.yaml", "platforms.yaml", "baselines.yaml"}
    return [name for name in data if "/" not in name and name not in special]


def _read(folder: Path, data: Data, file: str, shape: TypeAdapter[T]) -> T:
    if file not in data:
        raise CatalogError(f"catalog: no file {file}")
    try:
        return shape.validate_python(data[file])
    except ValidationError as error:
        raise refused(folder / file, error) from error


def _check(place: str, name: str, fact: Fact, sources: Mapping[str, Source]) -> None:
    if fact.source not in sources:
        raise CatalogError(f"{place}: source {fact.source!r} is not in sources.yaml{nearest(fact.source, sources)}")
    if unit_of(name) != fact.unit:
        raise CatalogError(f"{place}: its name promises {unit_of(name)!r}, its unit field says {fact.unit!r}")
