"""Fit of the constants of `mla_prefill_ns` and `mla_decode_ns`, per architecture, cache format and kernel library."""

from collections.abc import Mapping

import numpy as np

from codesign.cases.fitting import Bound, fit_ratio
from codesign.cases.formats import format_word
from codesign.cases.rows import CaseRows, read_rows
from codesign.catalog import Catalog
from codesign.catalog.architectures import lineage
from codesign.machines import memory_rate_gbps, peak_gflops
from codesign.model.kernels.mla import MlaEngine, mla_decode_ns, mla_prefill_ns
from codesign.resources import case_data
from codesign.units import Numeric, ns_from_us

FILE = "kernels/mla.csv"
#: the measured model: key parts, value width, latent and rotary widths of DeepSeek-V3
KEY_DIM_COUNT, VALUE_DIM_COUNT, LATENT_COUNT, ROPE_COUNT = 192.0, 128.0, 512.0, 64.0
PREFILL = (
    Bound("compute_frac", "1", 0.6, 0.05, 1.0, "share of the peak long prompts sustain"),
    Bound("key_offset_count", "count", 64.0, 0.1, 5e3, "keys that cost as much as starting and finishing a query"),
    Bound("prefill_memory_frac", "1", 0.8, 0.1, 1.0, "share of the memory rate at which expanded heads move"),
    Bound("block_ns", "ns", 10.0, 1e-3, 1e3, "cost of one (sequence, head)"),
    Bound("key_step_ns", "ns", 1.0, 1e-3, 100.0, "walk over one key by the last block"),
    Bound("prefill_launch_ns", "ns", 1e4, 100.0, 1e5, "prefill with nothing to do"),
)
DECODE = (
    Bound("memory_frac", "1", 0.8, 0.05, 1.0, "share of the memory rate at which the latent cache is read"),
    Bound("decode_compute_frac", "1", 0.6, 0.02, 1.0, "share of the peak decode with many heads sustains"),
    Bound("exposed_frac", "1", 0.1, 1e-3, 1.0, "share of the shorter of reading and arithmetic that is not hidden"),
    Bound("sequence_ns", "ns", 30.0, 1e-2, 1e3, "least cost of one sequence"),
    Bound("query_ns", "ns", 0.5, 1e-3, 1e3, "cost of one (sequence, head)"),
    Bound("step_ns", "ns", 1.0, 1e-4, 100.0, "walk over one cached token"),
    Bound("steps_count", "count", 2e3, 64.0, 1e5, "cached tokens beyond which a sequence is split"),
    Bound("decode_launch_ns", "ns", 1e4, 100.0, 1e5, "decode with nothing to do"),
)
BOUNDS = (*PREFILL, *DECODE)
_NOTHING = {bound.name: bound.start for bound in BOUNDS}


def forms(rows: CaseRows) -> list[str]:
    """The format word of products and cache of every row."""
    caches = [format_word(cell) for cell in rows.text("kv_cache_dtype")]
    words = [format_word(cell) or "bf16" for cell in rows.text("mla_dtype")]
    pairs = zip(words, caches, strict=True)
    return [f"{a}-kv8" if b not in (None, a) and a in ("bf16", "fp16") else a for a, b in pairs]


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Constants of every architecture, format and library: its parts share them within a point of their own."""
    rows = next(part for part in read_rows(case_data() / FILE) if part.kind == "mla")
    parts, words, kernels = (np.array(c) for c in (rows.text("accelerator"), forms(rows), rows.text("kernel_source")))
    prompt = np.array([name.endswith("context") for name in rows.text("op_name")])
    found: dict[str, dict[str, float]] = {}
    for level in sorted({name for part in set(parts) for name in lineage(part)[1:]}):
        mine = np.array([level in lineage(part)[1:] for part in parts])
        for word, kernel in sorted(set(zip(words[mine], kernels[mine], strict=True))):
            group = mine & (words == word) & (kernels == kernel)
            halves = [rows.pick(np.flatnonzero(group & half).tolist()) for half in (prompt, ~prompt)]
            found[f"{level}.{word}.{kernel}"] = {
                **_fit(halves[0], word, catalog, True),
                **_fit(halves[1], word, catalog, False),
            }
    return found


def _fit(rows: CaseRows, word: str, catalog: Catalog, prompt: bool) -> dict[str, float]:
    peaks = np.array([peak_gflops(catalog, name, word) for name in rows.text("accelerator")])
    rates = np.array([memory_rate_gbps(catalog, name) for name in rows.text("accelerator")])
    batch, query, step, heads = (rows.numbers(name) for name in ("batch_size", "isl", "step", "num_heads"))

    def predict(constants: Mapping[str, float]) -> Numeric:
        engine = MlaEngine(peak_gflops=peaks, memory_rate_gbps=rates, **{**_NOTHING, **constants})
        if prompt:
            return mla_prefill_ns(batch, query, query + step, heads, KEY_DIM_COUNT, VALUE_DIM_COUNT, engine)
        kv_bytes = 1.0 if word.endswith("-kv8") else 2.0
        return mla_decode_ns(batch, step + 1.0, heads, LATENT_COUNT, ROPE_COUNT, kv_bytes, engine)

    measured = np.asarray(ns_from_us(rows.numbers("latency_us")))
    return fit_ratio(predict, measured, PREFILL if prompt else DECODE, softness=0.1)
