"""Fit of the time-per-token constants of serving."""

import numpy as np

from codesign.cases.fit_serving import (
    FitRows,
    Key,
    Residuals,
    fit_rows,
    fitted,
    grouped,
    log_ratio,
    predicted,
    table_residuals,
)
from codesign.catalog import Catalog
from codesign.units import Array

LAW = "serving_tpot"
KEYS: tuple[Key, ...] = (
    ("all", "kernel_gap_ns"),
    ("all", "eager_gap_ns"),
    ("all", "step_host_ns"),
    ("trtllm", "sequence_host_ns"),
    ("vllm", "sequence_host_ns"),
    ("sglang", "sequence_host_ns"),
    ("all", "prefill_work_ratio"),
    ("all", "expert_skew_ratio"),
    ("all", "exchange_start_frac"),
    ("all", "speculation_ratio"),
)


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Constants by group and name, from every graded serving row and the inference tables of grade A."""
    return grouped(fit_to(catalog, fit_rows(catalog), table_residuals(catalog)))


def fit_to(catalog: Catalog, data: FitRows, tables: Residuals | None = None) -> dict[Key, float]:
    """Constants from some serving rows, and the tables where given."""
    measured = data.rows.numbers("tpot_ms")

    def residuals(constants: Catalog) -> Array:
        miss = log_ratio(predicted(data, constants).tpot_ns, measured)
        return miss if tables is None else np.concatenate([miss, tables(constants)])

    return fitted(catalog, LAW, KEYS, residuals)
