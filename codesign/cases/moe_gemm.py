"""Replay of measured fused expert layers (kernels/moe_gemm.csv)."""

import numpy as np

from codesign.cases.fit_moe_gemm import library, shape_of, skews
from codesign.cases.kernel_rows import latency, usable, whole
from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.machines import ACTIVATION_BYTES, WEIGHT_BYTES, moe_engine
from codesign.model.kernels.moe import moe_gemm_ns


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Latency of every row."""
    names = ("num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size")
    sizes = {name: rows.numbers(name) for name in names}
    parts, words, refused = usable(rows, catalog, rows.text("moe_dtype"), sizes)
    both = zip(rows.text("engine"), rows.text("kernel_source"), strict=True)
    libraries = [library(engine, kernel) for engine, kernel in both]
    tokens, hidden, inner, top_k, experts, local = (whole(column, refused) for column in shape_of(rows))
    skew, even = skews(rows)
    gated = np.array(["nongated" not in name for name in rows.text("kernel_source")], dtype=np.float64)
    weight, activation = (np.array([table[word] for word in words]) for table in (WEIGHT_BYTES, ACTIVATION_BYTES))
    engine = moe_engine(catalog, parts, words, libraries)
    skew = whole(skew, refused)
    time_ns = moe_gemm_ns(tokens, hidden, inner, top_k, experts, local, weight, activation, engine, gated, skew, even)
    return latency(rows, time_ns, refused)
