"""``codesign calibrate``: refit every constant from the rows it names, and compare with what is stored."""

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from codesign.catalog import Catalog, load_catalog
from codesign.errors import UsageError, nearest
from codesign.resources import catalog_data


def fits(catalog: Catalog) -> dict[str, str]:
    """Law -> name of the fit module, from the ``fit`` fields of its constants; 'stated' ones have none."""
    return {
        law: constant.fit
        for law, groups in catalog.constants.items()
        for constants in groups.values()
        for constant in constants.values()
        if constant.fit.startswith("fit_")
    }


def refit(laws: Sequence[str], write: bool = False, catalog: Catalog | None = None) -> list[dict[str, Any]]:
    """Run the fits and return a row per constant: stored, refitted, and how far apart.

    Raises:
        UsageError: a law is unknown.
    """
    facts = catalog or load_catalog()
    known = fits(facts)
    for law in laws:
        if law not in known:
            raise UsageError(f"calibrate: no fit for {law!r}{nearest(law, known)}")
    rows = []
    for law in laws or list(known):
        found: dict[str, dict[str, float]] = import_module(f"codesign.cases.{known[law]}").fit(facts)
        for group, constants in found.items():
            for name, value in constants.items():
                stored = facts.constants.get(law, {}).get(group, {}).get(name)
                if stored is None:
                    continue
                change = 100.0 * (value / stored.value - 1.0) if stored.value else 0.0
                rows.append({"law": law, "constant": f"{group}.{name}", "stored": f"{stored.value:g}",
                             "refitted": f"{value:g}", "change": f"{change:+.2f} %"})  # fmt: skip
        if write:
            _write(law, found)
    return rows


def _write(law: str, found: dict[str, dict[str, float]]) -> None:
    """Replace the values in place, so that meanings, rows and comments stay as written."""
    path = catalog_data() / "calibration" / f"{law}.yaml"
    lines, group, name = path.read_text(encoding="utf-8").splitlines(), "", ""
    for number, line in enumerate(lines):
        if match := re.match(r"([\w.+-]+):\s*$", line):
            group = match[1]
        elif match := re.match(r"  ([\w.+-]+):", line):
            name = match[1]
        value = found.get(group, {}).get(name)
        if value is not None:
            lines[number] = re.sub(r"(\bvalue:\s*)[^,}\s]+", rf"\g<1>{value:.6g}", line)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
