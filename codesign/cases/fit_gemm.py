"""Fit of the constants of `gemm_ns`, per part and number format, and per architecture for parts never measured."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from codesign.cases.fit_kernel import architecture_speeds, stand_in
from codesign.cases.fitting import Bound, fit_ratio
from codesign.cases.formats import format_word
from codesign.cases.rows import CaseRows, read_rows
from codesign.catalog import Catalog
from codesign.catalog.architectures import lineage, load_architectures
from codesign.catalog.schema import Constant
from codesign.machines import ACTIVATION_BYTES, WEIGHT_BYTES, memory_rate_gbps, peak_gflops
from codesign.model.kernels.gemm import GemmEngine, gemm_ns
from codesign.resources import case_data
from codesign.units import Numeric, ns_from_us

FILE = "kernels/gemm.csv"
BOUNDS = (
    Bound("compute_frac", "1", 0.75, 0.05, 1.0, "share of the peak a large product sustains"),
    Bound("half_depth_count", "count", 100.0, 1.0, 3e3, "inner dimension at which fill and drain equal the product"),
    Bound("idle_area_count", "count", 1e5, 1.0, 1e7, "outputs that tile padding and the last wave add"),
    Bound("memory_frac", "1", 0.75, 0.1, 1.0, "share of the memory rate a large product sustains"),
    Bound("exposed_frac", "1", 0.2, 1e-3, 1.0, "share of the shorter of arithmetic and memory that is not hidden"),
    Bound("launch_ns", "ns", 3e3, 500.0, 3e4, "product with nothing to do"),
    Bound("step_ns", "ns", 0.5, 1e-3, 20.0, "latency of one inner step"),
    Bound("steps_count", "count", 4096.0, 256.0, 7e4, "inner dimension beyond which it is split over more tiles"),
    Bound("quantise_launch_ns", "ns", 3e3, 1.0, 3e4, "start of the kernels that quantise activations"),
    Bound("quantise_bytes", "byte", 4.0, 0.01, 30.0, "traffic of those kernels per activation"),
)
#: formats whose activations arrive in bf16 and are quantised in the measured call
_QUANTISED = ("fp8", "fp8_block", "nvfp4", "int8")


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Constants of every measured part and format, and of every architecture and format (its parts together)."""
    rows = next(part for part in read_rows(case_data() / FILE) if part.kind == "gemm")
    words = np.array([format_word(cell) or "" for cell in rows.text("gemm_dtype")])
    parts = np.array(rows.text("accelerator"))
    found: dict[str, dict[str, float]] = {}
    for part in sorted(set(parts)):
        for level in lineage(part)[:2]:
            members = [p for p in sorted(set(parts)) if level in lineage(p)[:2]]
            for word in sorted(set(words[parts == part])):
                group = f"{level}.{word}"
                if group not in found:
                    chosen = np.flatnonzero(np.isin(parts, members) & (words == word))
                    start = found.get(f"{level}.bf16", {})
                    found[group] = _fit_group(rows.pick(chosen.tolist()), word, catalog, start)
    return found | _borrowed(found, catalog)


def _borrowed(found: dict[str, dict[str, float]], catalog: Catalog) -> dict[str, dict[str, float]]:
    """Groups of architectures with a few published rates: those of the part they are like, at their own speed."""
    stored = {
        group: {name: Constant.model_construct(value=value) for name, value in constants.items()}
        for group, constants in found.items()
    }
    fresh = replace(catalog, constants={**catalog.constants, "gemm": stored})
    known, out = load_architectures(), {}
    for architecture, speed in architecture_speeds(fresh).items():
        base = stand_in(known[architecture].accelerators[0])
        for group in [name for name in found if name.startswith(f"{base}.")]:
            share = min(found[group]["compute_frac"] * speed, 1.0)
            out[f"{architecture}.{group.split('.')[1]}"] = {**found[group], "compute_frac": share}
    return out


def _fit_group(rows: CaseRows, word: str, catalog: Catalog, bf16: Mapping[str, float]) -> dict[str, float]:
    """One group. The start of a product is that of bf16; what a quantised call adds to it is quantisation."""
    quantised = word in _QUANTISED
    held = {} if quantised else {"quantise_launch_ns": 0.0, "quantise_bytes": 0.0}
    if quantised and bf16:
        held["launch_ns"] = bf16["launch_ns"]
    peaks = np.array([peak_gflops(catalog, name, word) for name in rows.text("accelerator")])
    rates = np.array([memory_rate_gbps(catalog, name) for name in rows.text("accelerator")])
    m, n, k = rows.numbers("m"), rows.numbers("n"), rows.numbers("k")

    def predict(constants: Mapping[str, float]) -> Numeric:
        engine = GemmEngine(peak_gflops=peaks, memory_rate_gbps=rates, **{**constants, **held})
        return gemm_ns(m, n, k, WEIGHT_BYTES[word], ACTIVATION_BYTES[word], engine)

    free = [bound for bound in BOUNDS if bound.name not in held]
    answer = fit_ratio(predict, np.asarray(ns_from_us(rows.numbers("latency_us"))), free)
    return {bound.name: {**answer, **held}[bound.name] for bound in BOUNDS}
