"""The catalog for people: what there is, and every number of one entry with its source."""

from typing import Any

from codesign.catalog import Catalog, load_catalog
from codesign.errors import CatalogError, nearest


def census(catalog: Catalog | None = None) -> dict[str, tuple[int, int]]:
    """Entries and facts per kind; loading has checked them all."""
    facts = catalog or load_catalog()
    counts = {kind: (len(entries), sum(map(len, entries.values()))) for kind, entries in facts.facts.items()}
    for law, groups in facts.constants.items():
        counts[f"calibration/{law}"] = (len(groups), sum(map(len, groups.values())))
    return counts


def entries(kind: str | None, catalog: Catalog | None = None) -> dict[str, list[str]]:
    """Names of the entries, by kind.

    Raises:
        CatalogError: there is no such kind.
    """
    facts = catalog or load_catalog()
    if kind is None:
        return {name: list(found) for name, found in facts.facts.items()}
    return {kind: list(facts.technologies(kind))}


def entry(name: str, catalog: Catalog | None = None) -> list[dict[str, Any]]:
    """Every number of every entry of that name: value, range, printed or estimated, source and place.

    Raises:
        CatalogError: nothing has that name; the message names the nearest.
    """
    facts = catalog or load_catalog()
    rows = [
        {
            "kind": kind,
            "fact": fact_name,
            "value": f"{fact.value:g} {fact.unit}",
            "range": f"{fact.low:g} to {fact.high:g}" if fact.low < fact.high else "not stated",
            "how": "printed" if fact.kind == "published" else "default" if "defaults" in kind else "estimate",
            "source": f"{facts.sources[fact.source].title} ({fact.source}), {fact.where}, {fact.year}",
            "note": fact.note,
        }
        for kind, found in facts.facts.items()
        if name in found
        for fact_name, fact in found[name].items()
    ]
    if not rows:
        known = {entry for found in facts.facts.values() for entry in found}
        raise CatalogError(f"catalog: no entry {name!r}{nearest(name, known)}")
    return rows
