"""Replay of published kernel rates and latencies (gemm_published.csv)."""

from dataclasses import replace

import numpy as np

from codesign.cases.published_kernels import PublishedKernels, flop_of, in_unit, published_kernels
from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.machines import ACTIVATION_BYTES, WEIGHT_BYTES, attention_engine, gemm_engine, without_quantisation
from codesign.model.kernels.attention import decode_attention_ns, prefill_attention_ns
from codesign.model.kernels.gemm import gemm_ns
from codesign.units import Array


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Every row in its own unit: products, prompts and decode steps. Operands are in their format already."""
    table = published_kernels(rows, catalog)
    time_ns, flop = _time_ns(table, catalog), flop_of(table)
    peaks = np.nan_to_num(rows.numbers("peak_spec_tflops"), nan=1.0)
    refused, predicted = list(table.refused), np.full(len(rows), np.nan)
    for i, unit in enumerate(rows.text("unit")):
        value = in_unit(unit, float(time_ns[i]), float(flop[i]), float(peaks[i]))
        if refused[i] is None and value is None:
            refused[i] = f"unit {unit!r} is not one a kernel is measured in"
        if refused[i] is None and value is not None:
            predicted[i] = value
    return Predictions({"value": (predicted, rows.numbers("value"))}, refused)


def _time_ns(table: PublishedKernels, catalog: Catalog) -> Array:
    weight, activation = (np.array([t[word] for word in table.words]) for t in (WEIGHT_BYTES, ACTIVATION_BYTES))
    engine = without_quantisation(gemm_engine(catalog, table.parts, table.words))
    share = table.share_frac
    engine = replace(engine, peak_gflops=engine.peak_gflops * share, memory_rate_gbps=engine.memory_rate_gbps * share)
    product_ns = gemm_ns(table.m, table.n, table.k, weight, activation, engine)
    heads = attention_engine(catalog, table.parts, table.words)
    shape = (table.heads, table.kv_heads, table.head_dim)
    prompt_ns = prefill_attention_ns(table.batch, table.query, table.context, *shape, heads)
    token_ns = decode_attention_ns(table.batch, table.context, *shape, 2.0, heads)
    groups = catalog.constants.get("kernel", {})
    names = [name if name in groups else "plain" for name in table.libraries]
    ratio, dispatch = (
        np.array([catalog.constant("kernel", name, key) for name in names]) for key in ("time_ratio", "dispatch_ns")
    )
    kernel = np.array(table.kernels)
    return np.where(
        kernel == "prefill", prompt_ns, np.where(kernel == "decode", token_ns, ratio * product_ns + dispatch)
    )
