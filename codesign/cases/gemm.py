"""Replay of measured matrix products (kernels/gemm.csv)."""

import numpy as np

from codesign.cases.kernel_rows import latency, usable, whole
from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.machines import ACTIVATION_BYTES, WEIGHT_BYTES, gemm_engine
from codesign.model.kernels.gemm import gemm_ns


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Latency of every row."""
    sizes = {name: rows.numbers(name) for name in ("m", "n", "k")}
    parts, words, refused = usable(rows, catalog, rows.text("gemm_dtype"), sizes)
    m, n, k = (whole(column, refused) for column in sizes.values())
    weight, activation = (np.array([table[word] for word in words]) for table in (WEIGHT_BYTES, ACTIVATION_BYTES))
    time_ns = gemm_ns(m, n, k, weight, activation, gemm_engine(catalog, parts, words))
    return latency(rows, time_ns, refused)
