"""Fit of the constants of `prefill_attention_ns` and `decode_attention_ns`."""

from collections.abc import Mapping

import numpy as np

from codesign.cases.fitting import Bound, fit_ratio
from codesign.cases.formats import format_word
from codesign.cases.rows import CaseRows, read_rows
from codesign.catalog import Catalog
from codesign.catalog.architectures import lineage
from codesign.machines import memory_rate_gbps, peak_gflops
from codesign.model.kernels.attention import AttentionEngine, decode_attention_ns, prefill_attention_ns
from codesign.resources import case_data
from codesign.units import Numeric, ns_from_us

FILE = "kernels/attention.csv"
PREFILL = (
    Bound("compute_frac", "1", 0.5, 0.05, 1.0, "share of the peak long prompts sustain at 128 values per head"),
    Bound("head_offset_count", "count", 32.0, 0.1, 300.0, "values per head that cost as much as one softmax"),
    Bound("key_offset_count", "count", 64.0, 0.1, 5e3, "keys that cost as much as starting and finishing a query"),
    Bound("prefill_memory_frac", "1", 0.8, 0.2, 1.0, "share of the memory rate at which prefill moves its values"),
    Bound("block_ns", "ns", 10.0, 1e-3, 1e3, "cost of one (sequence, head)"),
    Bound("key_step_ns", "ns", 1.0, 1e-3, 100.0, "walk over one key by the last block"),
    Bound("prefill_launch_ns", "ns", 1e4, 100.0, 1e5, "prefill with nothing to do"),
)
DECODE = (
    Bound("memory_frac", "1", 0.8, 0.05, 1.0, "share of the memory rate at which the sharing kernel reads"),
    Bound("head_memory_ratio", "1", 2.0, 0.2, 20.0, "read rate of the per-head kernel over the memory rate"),
    Bound("pair_ns", "ns", 5.0, 1e-2, 1e3, "least cost of one (sequence, key head), sharing kernel"),
    Bound("head_pair_ns", "ns", 5.0, 1e-2, 1e3, "least cost of one (sequence, query head), per-head kernel"),
    Bound("query_ns", "ns", 1.0, 1e-3, 1e3, "cost of one (sequence, query head) at 128 values"),
    Bound("step_ns", "ns", 0.5, 1e-4, 100.0, "walk over one cached token"),
    Bound("steps_count", "count", 2e3, 64.0, 1e5, "cached tokens beyond which a sequence is split"),
    Bound("decode_launch_ns", "ns", 7e3, 100.0, 1e5, "decode with nothing to do, sharing kernel"),
    Bound("head_launch_ns", "ns", 7e3, 100.0, 1e5, "decode with nothing to do, per-head kernel"),
)
#: larger groups leave the sharing kernel in every measured library: latency jumps there, between groups of 32 and 48
GROUP_LIMIT = Bound("group_limit_count", "count", 32.0, 32.0, 47.0, "largest group the sharing kernel takes, read off")
BOUNDS = (*PREFILL, *DECODE, GROUP_LIMIT)
_NOTHING = {bound.name: bound.start for bound in BOUNDS}


def forms(rows: CaseRows) -> list[str]:
    """The format word of products and cache of every row, empty where one is unknown."""
    words = zip(rows.text("attn_dtype"), rows.text("kv_cache_dtype"), strict=True)
    pairs = [(format_word(a), format_word(b or a)) for a, b in words]
    return ["" if a is None or b is None else (f"{a}-kv8" if a != b else a) for a, b in pairs]


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Constants of every architecture and format: its parts share them within a point of fits of their own."""
    rows = next(part for part in read_rows(case_data() / FILE) if part.kind == "attention")
    parts, words = np.array(rows.text("accelerator")), np.array(forms(rows))
    prompt = np.array(rows.text("phase")) == "context"
    found: dict[str, dict[str, float]] = {}
    for level in sorted({name for part in set(parts) for name in lineage(part)[1:]}):
        mine = np.array([level in lineage(part)[1:] for part in parts])
        for word in sorted(set(words[mine & prompt])):
            cache = "bf16-kv8" if word == "fp8" else word  # decode is measured with sixteen-bit products only
            first = _fit(rows.pick(np.flatnonzero(mine & prompt & (words == word)).tolist()), word, catalog, True)
            second = _fit(rows.pick(np.flatnonzero(mine & ~prompt & (words == cache)).tolist()), cache, catalog, False)
            found[f"{level}.{word}"] = {**first, **second, GROUP_LIMIT.name: GROUP_LIMIT.start}
    return found


def _fit(rows: CaseRows, word: str, catalog: Catalog, prompt: bool) -> dict[str, float]:
    peaks = np.array([peak_gflops(catalog, name, word) for name in rows.text("accelerator")])
    rates = np.array([memory_rate_gbps(catalog, name) for name in rows.text("accelerator")])
    batch, heads, groups = (rows.numbers(name) for name in ("batch_size", "num_heads", "num_key_value_heads"))
    query, step, width = (rows.numbers(name) for name in ("isl", "step", "head_dim"))

    def predict(constants: Mapping[str, float]) -> Numeric:
        engine = AttentionEngine(peak_gflops=peaks, memory_rate_gbps=rates, **{**_NOTHING, **constants})
        if prompt:
            return prefill_attention_ns(batch, query, query + step, heads, groups, width, engine)
        kv_bytes = 1.0 if word == "bf16-kv8" else 2.0
        return decode_attention_ns(batch, step + 1.0, heads, groups, width, kv_bytes, engine)

    bounds: tuple[Bound, ...] = PREFILL if prompt else DECODE
    free = bounds
    if len(set(width.tolist())) == 1:  # one head size cannot tell the softmax from the products: keep the start
        free = tuple(bound for bound in bounds if bound.name != "head_offset_count")
    answer = fit_ratio(predict, np.asarray(ns_from_us(rows.numbers("latency_us"))), free, softness=0.1)
    return {bound.name: answer.get(bound.name, bound.start) for bound in bounds}
