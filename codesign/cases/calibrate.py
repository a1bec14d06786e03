"""``codesign calibrate``: refit every constant from the rows it names, and compare with what is stored."""

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from codesign.catalog import Catalog, load_catalog
from codesign.catalog.schema import Constant
from codesign.errors import UsageError, nearest
from codesign.resources import catalog_data

Found = Mapping[str, Mapping[str, float]]
Row = dict[str, Any]
PACKAGE = "codesign.cases"


def constant_rows(catalog: Catalog, laws: Sequence[str] = ()) -> list[Row]:
    """Every constant as stored: value, bounds, what it means and the rows it was fitted to.

    Raises:
        UsageError: a law is unknown.
    """
    _check_laws(laws, catalog.constants)
    return [
        {
            "law": law, "constant": f"{group}.{name}", "value": f"{one.value:g}", "unit": one.unit,
            "low": f"{one.low:g}", "high": f"{one.high:g}", "meaning": one.meaning, "rows": one.rows,
        }
        for law, group, name, one in _constants(catalog)
        if not laws or law in laws
    ]  # fmt: skip


def fits(catalog: Catalog) -> dict[str, str]:
    """Law -> module that fits it: ``fit_LAW``, else the one its constants name; laws that only state have none."""
    out: dict[str, str] = {}
    for law, _, _, one in _constants(catalog):
        if not is_stated(one) and law not in out:
            named = one.fit.rsplit(".", 1)[-1]
            out[law] = f"fit_{law}" if find_spec(f"{PACKAGE}.fit_{law}") else named
    return out


def is_stated(constant: Constant) -> bool:
    """Whether a constant was stated with a reason instead of fitted."""
    return constant.fit == "stated" or constant.rows.startswith("stated")


def refit(
    laws: Sequence[str], write: bool = False, catalog: Catalog | None = None, folder: Path | None = None
) -> list[Row]:
    """Run the fits and return a row per constant: stored, refitted, and how far apart.

    ``folder`` holds the calibration files that ``write`` changes; those of the catalog unless said.

    Raises:
        UsageError: a law is unknown, or none of its constants is fitted.
    """
    facts = catalog or load_catalog()
    _check_laws(laws, facts.constants)
    known = fits(facts)
    for law in laws:
        if law not in known:
            raise UsageError(f"calibrate: {law}: every constant is stated, none is fitted")
    rows: list[Row] = []
    for law in laws or list(known):
        found: Found = import_module(f"{PACKAGE}.{known[law]}").fit(facts)
        rows += _changes(law, found, facts)
        if write:
            path = (folder or catalog_data() / "calibration") / f"{law}.yaml"
            stored = facts.constants.get(law, {})
            path.write_text(rewritten(path.read_text(encoding="utf-8"), found, stored), encoding="utf-8")
    return rows


def _check_laws(laws: Sequence[str], known: Mapping[str, Any]) -> None:
    for law in laws:
        if law not in known:
            raise UsageError(f"calibrate: no law {law!r}{nearest(law, known)}")


def _constants(catalog: Catalog) -> Iterator[tuple[str, str, str, Constant]]:
    for law, groups in catalog.constants.items():
        for group, constants in groups.items():
            for name, one in constants.items():
                yield law, group, name, one


def _changes(law: str, found: Found, catalog: Catalog) -> Iterator[Row]:
    for group, constants in found.items():
        for name, value in constants.items():
            stored = catalog.constants.get(law, {}).get(group, {}).get(name)
            row = {"law": law, "constant": f"{group}.{name}", "stored": "-", "refitted": f"{value:g}", "change": "new"}
            if stored is not None:
                row["stored"] = f"{stored.value:g}"
                row["change"] = f"{100.0 * (value / stored.value - 1.0):+.2f} %" if stored.value else f"{value:+g}"
            yield row


def rewritten(text: str, found: Found, stored: Mapping[str, Mapping[str, Constant]]) -> str:
    """A calibration file with new values in place; layout, meanings and comments stay as written.

    A constant is a block (``value:`` on a line of its own) or inline (``{value: ..., ...}``). A value that already is
    the new one at the digits it is written with stays as written; a new one is kept within its bounds.
    """
    lines, group, name, done = text.splitlines(), "", "", False
    for number, line in enumerate(lines):
        if match := re.match(r"[\"']?([^\s\"'#:][^\"':]*)[\"']?:\s*(#.*)?$", line):
            group = match[1]
        elif match := re.match(r"  ([\w.+-]+):", line):
            name, done = match[1], False
        value = found.get(group, {}).get(name)
        at = re.search(r"(?:^\s{4,}|\{\s*)value:\s*([^,}\s#]+)", line)
        if value is not None and at and not done:
            lines[number] = line[: at.start(1)] + _written(value, at[1], stored[group][name]) + line[at.end(1) :]
            done = True
    return "\n".join(lines) + "\n"


def _written(value: float, old: str, constant: Constant) -> str:
    digits = max(len(re.sub(r"[eE].*|[^0-9]", "", old).lstrip("0")), 4)
    if float(f"{value:.{digits}g}") == float(old):
        return old
    return f"{min(max(float(f'{value:.6g}'), constant.low), constant.high):.10g}"
