"""Fit the controller constants to the cycle simulations of Ramulator."""

from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from codesign.cases import memory
from codesign.cases.memory_sim import constants_from, setup
from codesign.cases.rows import CaseRows, read_rows
from codesign.catalog import Catalog
from codesign.memories import memory_constants
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


#: What a driver's copy reaches of a tuned kernel: start, low, high.
DRIVER_BOUNDS = (0.95, 0.7, 1.0)
#: Where a software-managed memory moves whole blocks in one direction, drains are longer than a cache's.
_QUEUE_PRIORS = {"scratchpad": 500.0}
#: Few machines stand for each class, so the priors hold the constants unless several machines agree.
_PRIOR_WEIGHTS = (0.3, 3.0, 0.05)
_GRADE_WEIGHTS = {"A": 1.0, "B": 0.5, "C": 0.25}
#: Of the machine classes: name: (start, low, high)
CLASS_BOUNDS: dict[str, tuple[float, float, float]] = {
    "write_queue_count": (200.0, 16.0, 4000.0),
    "path_frac": (1.0, 0.85, 1.06),
    "start_ns": (1500.0, 0.0, 10000.0),
}


def _queue_prior(name: str) -> float:
    return _QUEUE_PRIORS.get(name, CLASS_BOUNDS["write_queue_count"][0])


def fit_classes(rows: CaseRows, catalog: Catalog) -> dict[str, dict[str, float]]:
    """Write collection, path and start of each machine class from measured streams."""
    kinds, read_frac, classes, arrays, size_bytes = memory.setup(rows, catalog)
    peaks = memory.peaks_gbytes_per_s(rows, catalog)
    scale = np.array([memory.RATE_GBYTES_PER_S.get(unit.lower(), np.nan) for unit in rows.text("unit")])
    measured = rows.numbers("value") * scale
    trust = np.array([_GRADE_WEIGHTS.get(grade, 0.25) for grade in rows.text("grade")])
    driver = memory.by_driver(rows)
    out = {}
    for name in dict.fromkeys(classes):
        known = np.isfinite(measured) & np.isfinite(peaks)
        mine = np.logical_not(driver) & np.array([c == name for c in classes]) & known
        chosen = [k for k, m in zip(kinds, mine, strict=True) if m]

        def errors(
            values: Array, mine: Array = mine, chosen: list[str] = chosen, queue: float = _queue_prior(name)
        ) -> Array:
            drained, path, start = (np.full(len(chosen), v) for v in values)
            share = memory.stream_frac(chosen, read_frac[mine], drained, path, catalog, memory_constants(catalog))
            rate = memory.pass_rate(arrays[mine] * size_bytes[mine], share * peaks[mine], start)
            prior = [
                _PRIOR_WEIGHTS[0] * np.log(values[0] / queue),
                _PRIOR_WEIGHTS[1] * (values[1] - 1.0),
                _PRIOR_WEIGHTS[2] * (values[2] / 1500.0 - 1.0),
            ]
            return np.concatenate([trust[mine] * np.log(rate / measured[mine]), prior])

        start, low, high = (np.array([CLASS_BOUNDS[n][k] for n in CLASS_BOUNDS]) for k in range(3))
        found = least_squares(errors, start, bounds=(low, high), x_scale=start, loss="soft_l1", f_scale=_SOFT_FRAC)
        out[name] = dict(zip(CLASS_BOUNDS, (round(float(v), 4) for v in found.x), strict=True))
    tuned, held = memory.predict(rows, catalog).metrics["value"]
    reached = held[driver] / tuned[driver] * memory.driver_copy_frac(catalog)
    share = float(np.clip(np.median(reached), *DRIVER_BOUNDS[1:])) if driver.any() else DRIVER_BOUNDS[0]
    return out | {"driver_copy": {"path_frac": round(share, 4)}}


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Controller constants from all Ramulator rows, then the classes from measured streams."""
    data = Path(__file__).parent / "data"
    streams = next(part for part in read_rows(data / "memory.csv") if part.kind == "memory")
    return {"controller": fit_rows(ramulator_rows(data), catalog)} | fit_classes(streams, catalog)
