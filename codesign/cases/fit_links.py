"""Fit what endpoints reach of a link, and the start of a library's messages, to measured copies."""

from collections.abc import Mapping

import numpy as np

from codesign.cases.fitting import Bound, fit_ratio
from codesign.cases.link import CLASSES, Case, case_of, group_of, message_us, wire_frac
from codesign.cases.rows import read_rows
from codesign.catalog import Catalog
from codesign.resources import case_data
from codesign.units import Array

LARGE_BYTES = 2.0**28


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Groups that have rows; stated constants stay as they are."""
    rows = next(kind for kind in read_rows(case_data() / "links.csv") if kind.kind == "link")
    found: dict[str, list[tuple[Case, float, float]]] = {}
    for i in range(len(rows)):
        case = case_of(rows, i, catalog)
        scale = 0.125 if rows.text("unit")[i] == "Gb/s" else 1.0
        if isinstance(case, Case) and case.kind in CLASSES:
            size = float(rows.numbers("bytes")[i])
            found.setdefault(group_of(case), []).append((case, size, scale * float(rows.numbers("value")[i])))
    return {group: _fit_group(catalog, group, members) for group, members in found.items()}


def _fit_group(catalog: Catalog, group: str, members: list[tuple[Case, float, float]]) -> dict[str, float]:
    stored = catalog.constants["links"][group]
    timed = group.endswith("_library")
    names = [n for n in stored if not stored[n].rows.startswith("stated")]
    bounds = [Bound(n, stored[n].unit, stored[n].prior or stored[n].value, stored[n].low, stored[n].high, "")
              for n in names]  # fmt: skip
    fixed = {name: constant.value for name, constant in stored.items()}
    lines = [(c.rate_gbytes_per_s * wire_frac(c, size if size > 0 else LARGE_BYTES, catalog), size)
             for c, size, _ in members]  # fmt: skip

    def predict(values: Mapping[str, float]) -> Array:
        all_values = {**fixed, **values}
        share = all_values["endpoint_frac"]
        return np.array([message_us(size, rate * share, all_values) if timed else rate * share for rate, size in lines])

    return fit_ratio(predict, np.array([value for _, _, value in members]), bounds)
