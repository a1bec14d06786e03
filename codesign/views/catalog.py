"""The catalog for people: what there is, and every number of one entry with its source."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from codesign.catalog import Catalog, load_catalog
from codesign.catalog.models import load_models
from codesign.catalog.platforms import Platform, check_platforms, load_platforms
from codesign.errors import CatalogError, nearest
from codesign.parameters import PARAMETERS
from codesign.views.explain import shown

Row = dict[str, Any]


def census(catalog: Catalog | None = None) -> dict[str, tuple[int, int]]:
    """Entries and facts per kind; loading has checked them all.

    Raises:
        CatalogError: a platform cites what the catalog does not have.
    """
    facts = catalog or load_catalog()
    check_platforms(facts)
    counts = {kind: (len(entries), sum(map(len, entries.values()))) for kind, entries in facts.facts.items()}
    for law, groups in facts.constants.items():
        counts[f"calibration/{law}"] = (len(groups), sum(map(len, groups.values())))
    platforms, models = load_platforms(), load_models()
    counts["platforms"] = (len(platforms), sum(len(platform.parameters) for platform in platforms.values()))
    counts["models"] = (len(models), sum(len(list(_numbers(record))) for record in models.values()))
    return counts


def entries(kind: str | None, catalog: Catalog | None = None) -> dict[str, list[str]]:
    """Names of the entries, by kind.

    Raises:
        CatalogError: there is no such kind.
    """
    names = _names(catalog or load_catalog())
    if kind is None:
        return names
    if kind not in names:
        raise CatalogError(f"catalog: no kind {kind!r}{nearest(kind, names)}")
    return {kind: names[kind]}


def _names(facts: Catalog) -> dict[str, list[str]]:
    found = {kind: list(entries) for kind, entries in facts.facts.items()}
    return found | {"platforms": list(load_platforms()), "models": list(load_models())}


def entry(name: str, catalog: Catalog | None = None) -> list[Row]:
    """Everything every entry of that name says: value, range, printed, default or estimated, source and place.

    Raises:
        CatalogError: nothing has that name; the message names the nearest.
    """
    facts = catalog or load_catalog()
    rows = [*_fact_rows(name, facts), *_platform_rows(name, facts), *_model_rows(name, facts)]
    if not rows:
        known = {entry for found in _names(facts).values() for entry in found}
        raise CatalogError(f"catalog: no entry {name!r}{nearest(name, known)}")
    return rows


def _row(kind: str, fact: str, value: str, how: str, source: str, *, span: str = "not stated", note: str = "") -> Row:
    return {"kind": kind, "fact": fact, "value": value, "range": span, "how": how, "source": source, "note": note}


def _cited(facts: Catalog, key: str, *where: str) -> str:
    title = facts.sources[key].title if key in facts.sources else key
    return ", ".join([f"{title} ({key})", *(place for place in where if place)])


def _fact_rows(name: str, facts: Catalog) -> Iterator[Row]:
    for kind, found in facts.facts.items():
        for fact_name, fact in found.get(name, {}).items():
            yield _row(
                kind,
                fact_name,
                f"{fact.value:g} {fact.unit}",
                "printed" if fact.kind == "published" else "estimate",
                _cited(facts, fact.source, fact.where, str(fact.year)),
                span=f"{fact.low:g} to {fact.high:g}" if fact.low < fact.high else "not stated",
                note=fact.note,
            )


def _platform_rows(name: str, facts: Catalog) -> Iterator[Row]:
    """What a machine starts from, then its decisions in the order of the one list of parameters."""
    platforms: Mapping[str, Platform] = load_platforms()
    if name not in platforms:
        return
    platform = platforms[name]
    yield _row("platforms", "accelerator", platform.accelerator, "name", "entry of accelerators", note=platform.title)
    yield _row("platforms", "chip", platform.chip, "name", "entry of packages_geometry")
    for parameter in PARAMETERS:
        decision = platform.parameters[parameter.name]
        yield _row(
            "platforms",
            parameter.name,
            shown(parameter.name, decision.value),
            decision.kind,
            _cited(facts, decision.source, decision.where),
            note=decision.note,
        )


def _model_rows(name: str, facts: Catalog) -> Iterator[Row]:
    record = load_models().get(name)
    if record is None:
        return
    source = _cited(facts, record.source, record.where)
    for fact, value in _numbers(record):
        yield _row("models", fact, str(value), "printed", source, note=record.note)


def _numbers(record: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """What a record says, nested parts with their name in front; what it leaves to defaults is left out."""
    for name in type(record).model_fields:
        value = getattr(record, name) if name in record.model_fields_set else None
        if isinstance(value, BaseModel):
            yield from _numbers(value, f"{prefix}{name}.")
        elif value is not None and name not in ("source", "where", "note"):
            yield f"{prefix}{name}", value
