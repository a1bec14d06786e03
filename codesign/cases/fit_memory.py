"""Fit the controller constants to the cycle simulations of Ramulator."""

from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from codesign.cases.memory_sim import constants_from, setup
from codesign.cases.rows import CaseRows, read_rows
from codesign.catalog import Catalog
from codesign.model.memory.controller import achieved_frac
from codesign.units import Array

#: name: (start, low, high)
BOUNDS: dict[str, tuple[float, float, float]] = {
    "extra_cycles_count": (2.2, 0.0, 6.0),
    "drain_offset_count": (8.0, 0.0, 20.0),
    "drain_frac": (0.6, 0.3, 1.0),
    "block_frac": (1.0, 0.0, 3.0),
    "reopen_ratio": (1.0, 0.0, 5.0),
    "conflict_ratio": (0.8, 0.1, 3.0),
    "window_bursts_count": (6.0, 0.5, 30.0),
    "window_sharing_ratio": (1.0, 0.0, 2.0),
    "direction_frac": (0.8, 0.0, 1.2),
    "bank_slack_ratio": (1.1, 0.8, 2.0),
    "row_power_ratio": (4.0, 1.0, 10.0),
    "mix_power_ratio": (4.0, 1.0, 10.0),
}
#: Held fixed: they matter for a handful of rows only.
FIXED = {"first_cycles_count": 2.0, "latency_power_ratio": 6.0}
_SOFT_FRAC = 0.03  # errors beyond three points of peak weigh linearly


def ramulator_rows(folder: Path) -> CaseRows:
    """The rows of the file that the constants are fitted to."""
    rows = next(part for part in read_rows(folder / "reference" / "memory_sim.csv") if part.kind == "memory_sim")
    return rows.pick([i for i, name in enumerate(rows.text("sim")) if "ramulator" in name.lower()])


def fit_rows(rows: CaseRows, catalog: Catalog) -> dict[str, float]:
    """Constants that fit some rows best."""
    kinds = [name.split(" ")[0].lower() for name in rows.text("standard")]
    access, controller, device, balance = setup(rows, kinds, catalog)
    measured = rows.numbers("fraction")
    names = list(BOUNDS)

    def errors(values: Array) -> Array:
        constants = constants_from(dict(zip(names, map(float, values), strict=True)) | FIXED)
        return np.asarray(achieved_frac(access, controller, device, constants)) * balance - measured

    start, low, high = (np.array([BOUNDS[name][k] for name in names]) for k in range(3))
    found = least_squares(errors, start, bounds=(low, high), loss="soft_l1", f_scale=_SOFT_FRAC)
    return dict(zip(names, (round(float(v), 4) for v in found.x), strict=True)) | FIXED


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Controller constants from all Ramulator rows."""
    return {"controller": fit_rows(ramulator_rows(Path(__file__).parent / "data"), catalog)}
