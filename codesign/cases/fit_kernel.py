"""Fit of what a library adds to the laws in published kernel rates, and of architectures with few rows.

A library class has a time ratio (how much slower or faster than the library of the measured tables; a search over
shapes reports its best) and a dispatch time of its harness. An architecture without kernel tables borrows the constants
of the one it is like and gets one speed ratio. Both are held near one by a prior: few rows must not move them far.
"""

from dataclasses import replace

import numpy as np

from codesign.cases.fitting import Bound
from codesign.cases.published_kernels import PublishedKernels, flop_of, published_kernels
from codesign.cases.rows import read_rows
from codesign.catalog import Catalog
from codesign.catalog.architectures import lineage, load_architectures
from codesign.machines import (
    ACTIVATION_BYTES,
    WEIGHT_BYTES,
    gemm_engine,
    memory_rate_gbps,
    peak_gflops,
    without_quantisation,
)
from codesign.model.kernels.gemm import GemmEngine, gemm_ns
from codesign.resources import case_data
from codesign.units import Array

FILE = "gemm_published.csv"
BOUNDS = (
    Bound("time_ratio", "1", 1.0, 0.5, 2.0, "time over that of the library of the measured tables"),
    Bound("dispatch_ns", "ns", 500.0, 1.0, 6e4, "time the harness adds to every call"),
)
#: one standard deviation of the logarithm that a ratio may stray from one
_RATIO_SPREAD, _SPEED_SPREAD, _NOISE = 0.2, 0.4, 0.12


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Time ratio and dispatch time of every library class."""
    return _joint(catalog)[0]


def architecture_speeds(catalog: Catalog) -> dict[str, float]:
    """Speed of arithmetic of every architecture without kernel tables, over the one it is like."""
    return _joint(catalog)[1]


def borrowed_engine(catalog: Catalog, parts: list[str], words: list[str]) -> GemmEngine:
    """Engines with the constants of the measured architecture each part is like."""
    return gemm_engine(catalog, [stand_in(part) for part in parts], words)


def stand_in(part: str) -> str:
    """The part itself where its architecture was measured, else the first part of the architecture it is like."""
    line = lineage(part)
    return part if len(line) < 3 or is_measured(line[1]) else load_architectures()[line[-1]].accelerators[0]


def is_measured(architecture: str) -> bool:
    """Whether an architecture has constants of its own: it is like itself, or shares its generation's kernels."""
    like = load_architectures()[architecture].like
    return like == architecture or architecture.startswith(f"{like}-ultra")


def _joint(catalog: Catalog) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    from scipy.optimize import least_squares

    rows = next(part for part in read_rows(case_data() / FILE) if part.kind == "kernel")
    all_rows = published_kernels(rows, catalog)
    chosen = [i for i, kernel in enumerate(all_rows.kernels) if kernel == "gemm" and all_rows.refused[i] is None]
    picked = rows.pick(chosen)
    table = published_kernels(picked, catalog)
    rate = np.array([unit == "TFLOP/s" for unit in picked.text("unit")])
    measured = np.where(rate, flop_of(table) / (1e3 * picked.numbers("value")), 1e3 * picked.numbers("value"))
    libraries = sorted(set(table.libraries))
    families = {lineage(part)[1] for part in table.parts if len(lineage(part)) > 2}
    architectures = sorted(name for name in families if not is_measured(name))
    which = np.array([libraries.index(name) for name in table.libraries])
    where = np.array([architectures.index(a) if (a := lineage(p)[1]) in architectures else -1 for p in table.parts])
    sizes = len(libraries)

    def unpack(z: Array) -> tuple[Array, Array, Array]:
        return np.exp(z[:sizes]), np.exp(z[sizes : 2 * sizes]), np.append(np.exp(z[2 * sizes :]), 1.0)

    def residual(z: Array) -> Array:
        ratio, dispatch, speed = unpack(z)
        time_ns = ratio[which] * _plain_ns(table, catalog, speed[where]) + dispatch[which]
        prior = np.concatenate([z[:sizes] / _RATIO_SPREAD, z[2 * sizes :] / _SPEED_SPREAD])
        found: Array = np.concatenate([np.log(time_ns / measured) / _NOISE, prior])
        return found

    start = np.concatenate([np.zeros(sizes), np.full(sizes, np.log(500.0)), np.zeros(len(architectures))])
    low = np.concatenate([np.full(sizes, np.log(0.5)), np.full(sizes, 0.0), np.full(len(architectures), -1.5)])
    high = np.concatenate([np.full(sizes, np.log(2.0)), np.full(sizes, np.log(6e4)), np.full(len(architectures), 1.0)])
    answer = least_squares(residual, start, bounds=(low - 1e-9, high + 1e-9), loss="soft_l1", max_nfev=400)
    ratio, dispatch, speed = unpack(answer.x)
    found = {
        name: {"time_ratio": float(ratio[i]), "dispatch_ns": float(dispatch[i])} for i, name in enumerate(libraries)
    }
    return found, {name: float(speed[i]) for i, name in enumerate(architectures)}


def _plain_ns(table: PublishedKernels, catalog: Catalog, speed: Array) -> Array:
    weight, activation = (np.array([t[word] for word in table.words]) for t in (WEIGHT_BYTES, ACTIVATION_BYTES))
    engine = without_quantisation(_scaled(catalog, table, speed))
    return np.asarray(gemm_ns(table.m, table.n, table.k, weight, activation, engine))


def _scaled(catalog: Catalog, table: PublishedKernels, speed: Array) -> GemmEngine:
    """Engines of the rows: own peaks and rates, borrowed shares, one speed per architecture."""
    pairs = list(zip(table.parts, table.words, strict=True))
    peaks = np.array([peak_gflops(catalog, *pair) for pair in pairs]) * table.share_frac
    rates = np.array([memory_rate_gbps(catalog, part) for part in table.parts]) * table.share_frac
    engine = borrowed_engine(catalog, table.parts, table.words)
    return replace(
        engine, peak_gflops=peaks, memory_rate_gbps=rates, compute_frac=np.minimum(engine.compute_frac * speed, 1.0)
    )
