"""Fit two numbers of the chip model to published dies and power limits."""

from dataclasses import replace

import numpy as np
from scipy.optimize import least_squares

from codesign.cases.published_parts import PUBLISHED, published_parts
from codesign.catalog import Catalog
from codesign.chips import chip_inputs, gemm_activity, power_inputs
from codesign.memories import column, memory_constants, memory_inputs
from codesign.model.chip.chain import chip
from codesign.model.chip.power import package_w
from codesign.model.memory.chain import memory_system
from codesign.units import Array

#: One part for each die whose size is printed.
AREA_PARTS = ("a100-sxm-80gb", "h100-sxm", "b200-sxm", "mi300x")
#: Parts whose limit is set by the package at full clock; MI parts are sold to throttle under a full GEMM.
POWER_PARTS = ("a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "gb200")
_ESTIMATE_WEIGHT = 0.5  # for die sizes that no page we hold prints
_PRIOR_WEIGHT = 0.02


def area_error(catalog: Catalog, format_ratio: float | None = None) -> Array:
    """Relative error of the compute die of each part of `AREA_PARTS`."""
    choice, _ = published_parts(catalog, AREA_PARTS)
    inputs = chip_inputs(catalog, choice)
    if format_ratio is not None:
        inputs = replace(inputs, format_ratio=format_ratio)
    printed = column(catalog, "packages_geometry", [PUBLISHED[p][0] for p in AREA_PARTS], "published_die_mm2")
    return np.asarray(chip(inputs).compute_die_mm2) / printed - 1.0


def power_error(catalog: Catalog, clock_pj_per_mm2: float | None = None) -> Array:
    """Relative error of the GEMM load at full clock against the printed limit of each part of `POWER_PARTS`."""
    choice, memory_choice = published_parts(catalog, POWER_PARTS)
    dies = chip(chip_inputs(catalog, choice))
    memory = memory_system(memory_inputs(catalog, memory_choice), memory_constants(catalog))
    coefficients = power_inputs(catalog, choice, dies, memory)
    if clock_pj_per_mm2 is not None:
        coefficients = replace(coefficients, clock_pj_per_mm2=clock_pj_per_mm2)
    links_gbps = 16.0 * column(catalog, "accelerators", POWER_PARTS, "scale_up_rate_gbytes_per_s")
    load = gemm_activity(catalog, dies, memory, links_gbps)
    printed = column(catalog, "accelerators", POWER_PARTS, "board_power_w")
    return np.asarray(package_w(coefficients, load, 1.0)) / printed - 1.0


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Array area of narrow formats, then the clock energy."""
    bounds = catalog.constants["chip"]
    area = bounds["area"]["format_ratio"]
    clock = bounds["power"]["clock_pj_per_mm2"]

    facts = [catalog.fact("packages_geometry", PUBLISHED[p][0], "published_die_mm2") for p in AREA_PARTS]
    trust = np.array([1.0 if fact.kind == "published" else _ESTIMATE_WEIGHT for fact in facts])

    def of_area(values: Array) -> Array:
        prior = _PRIOR_WEIGHT * (values - (area.prior or 1.0))
        return np.concatenate([trust * area_error(catalog, float(values[0])), prior])

    def of_power(values: Array) -> Array:
        prior = _PRIOR_WEIGHT * np.log(values / (clock.prior or 1.0))
        return np.concatenate([power_error(catalog, float(values[0])), prior])

    ratio = least_squares(of_area, [1.0], bounds=([area.low], [area.high])).x[0]
    energy = least_squares(of_power, [60.0], bounds=([clock.low], [clock.high]), x_scale=[50.0]).x[0]
    return {"area": {"format_ratio": round(float(ratio), 3)}, "power": {"clock_pj_per_mm2": round(float(energy), 1)}}
