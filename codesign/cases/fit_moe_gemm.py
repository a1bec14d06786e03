"""Fit of the constants of `moe_gemm_ns`, per architecture, number format and library."""

import re
from collections.abc import Mapping

import numpy as np

from codesign.cases.fitting import Bound, fit_ratio
from codesign.cases.formats import format_word
from codesign.cases.rows import CaseRows, read_rows
from codesign.catalog import Catalog
from codesign.catalog.architectures import lineage
from codesign.machines import ACTIVATION_BYTES, WEIGHT_BYTES, memory_rate_gbps, peak_gflops
from codesign.model.kernels.moe import MoeEngine, moe_gemm_ns, power_law_skew_ratio
from codesign.resources import case_data
from codesign.units import Array, Numeric, ns_from_us

FILE = "kernels/moe_gemm.csv"
BOUNDS = (
    Bound("compute_frac", "1", 0.5, 0.05, 1.0, "share of the peak large groups sustain"),
    Bound("memory_frac", "1", 0.8, 0.2, 1.0, "share of the memory rate at which weights are read"),
    Bound("exposed_frac", "1", 0.3, 1e-3, 1.0, "share of the shorter of arithmetic and reading that is not hidden"),
    Bound("launch_ns", "ns", 2e4, 500.0, 2e5, "routing, sorting and the start of the grouped products"),
    Bound("expert_ns", "ns", 5.0, 0.1, 1e3, "bookkeeping per local expert"),
    Bound("touched_ns", "ns", 50.0, 0.1, 2e3, "start of the products of one expert with work"),
    Bound("step_ns", "ns", 1.0, 1e-3, 20.0, "walk over one inner step of both products"),
    Bound("pair_passes_count", "count", 4.0, 0.01, 50.0, "passes over the routed tokens at the hidden width"),
    Bound("token_passes_count", "count", 4.0, 0.01, 60.0, "passes over all tokens at the hidden width"),
)
#: kernels of a different kind: they stand for themselves and for no engine as a whole
_APART = ("nongated", "min-latency")
_CLASSES = (
    ("nongated", "nongated"),
    ("min_latency", "min-latency"),
    ("deepgemm", "deepgemm"),
    ("marlin", "marlin"),
    ("triton", "triton"),
    ("flashinfer_trtllm|trtllm_moe", "generated"),
    ("cutlass", "cutlass"),
    ("wide_?ep|deepep", "wide"),
)
_LEAST_ROWS = 15


def library(engine: str, kernel: str) -> str:
    """The library class of one row: serving engine and kind of grouped kernel.

    >>> library("vllm", "vllm_fp8moe_triton_tritonexperts"), library("trtllm", "moe_torch_flow")
    ('vllm-triton', 'trtllm-other')
    """
    kind = next((name for pattern, name in _CLASSES if re.search(pattern, kernel.lower())), "other")
    return f"{engine.lower()}-{kind}"


def skews(rows: CaseRows) -> tuple[Array, Array]:
    """Load of the busiest rank over the mean, and whether tokens are dealt evenly, from the distribution's name."""
    columns = (rows.numbers(name) for name in ("num_tokens", "topk", "num_experts", "moe_ep_size"))
    tokens, top_k, experts, ranks = (np.where(column > 0.0, column, 1.0) for column in columns)
    names = rows.text("distribution")
    exponents = [float(m[1]) if (m := re.search(r"power_law_([0-9.]+)", name)) else 0.0 for name in names]
    power = np.array([e if e not in (1.0, 2.0, 3.0) else e + 1e-3 for e in exponents])
    ratio = power_law_skew_ratio(tokens, top_k, experts, experts / ranks, np.where(power > 0.0, power, 1.01))
    even = np.array([name == "balanced" for name in names], dtype=np.float64)
    return np.where(power > 0.0, ratio, 1.0), even


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Constants of every architecture and format: per library, per engine, and over all (``default``)."""
    rows = next(part for part in read_rows(case_data() / FILE) if part.kind == "moe_gemm")
    words = np.array([format_word(cell) or "" for cell in rows.text("moe_dtype")])
    families = np.array([lineage(name)[-1] for name in rows.text("accelerator")])
    both = zip(rows.text("engine"), rows.text("kernel_source"), strict=True)
    libraries = np.array([library(engine, kernel) for engine, kernel in both])
    common = np.array([not name.endswith(_APART) for name in libraries])
    found: dict[str, dict[str, float]] = {}
    for family, word in sorted(set(zip(families, words, strict=True))):
        mine = (families == family) & (words == word)
        sets = {"default": mine & common}
        engines = sorted({name.split("-")[0] for name in libraries[mine & common]})
        sets |= {engine: mine & common & np.char.startswith(libraries, engine + "-") for engine in engines}
        sets |= {name: mine & (libraries == name) for name in sorted(set(libraries[mine]))}
        for name, chosen in sets.items():
            if chosen.sum() >= _LEAST_ROWS:
                found[f"{family}.{word}.{name}"] = _fit(rows.pick(np.flatnonzero(chosen).tolist()), word, catalog)
    return found


def _fit(rows: CaseRows, word: str, catalog: Catalog) -> dict[str, float]:
    peaks = np.array([peak_gflops(catalog, name, word) for name in rows.text("accelerator")])
    rates = np.array([memory_rate_gbps(catalog, name) for name in rows.text("accelerator")])
    shape = shape_of(rows)
    skew, even = skews(rows)
    gated = np.array(["nongated" not in name for name in rows.text("kernel_source")], dtype=np.float64)

    def predict(constants: Mapping[str, float]) -> Numeric:
        engine = MoeEngine(peak_gflops=peaks, memory_rate_gbps=rates, **constants)
        return moe_gemm_ns(*shape, WEIGHT_BYTES[word], ACTIVATION_BYTES[word], engine, gated, skew, even)

    return fit_ratio(predict, np.asarray(ns_from_us(rows.numbers("latency_us"))), BOUNDS, softness=0.1)


def shape_of(rows: CaseRows) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Tokens, hidden width, inner width here, top-k, experts, and experts here."""
    tokens, hidden, inner = (rows.numbers(name) for name in ("num_tokens", "hidden_size", "inter_size"))
    top_k, experts = rows.numbers("topk"), rows.numbers("num_experts")
    split, ranks = (rows.numbers(name) for name in ("moe_tp_size", "moe_ep_size"))
    split, ranks = np.where(split > 0.0, split, np.nan), np.where(ranks > 0.0, ranks, np.nan)
    return (tokens, hidden, inner / split, top_k, experts, experts / ranks)
