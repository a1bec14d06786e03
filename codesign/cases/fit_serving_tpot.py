"""Fit of the time-per-token constants of serving."""

from codesign.cases.fit_serving import FitRows, Key, fit_rows, fitted, grouped, log_ratio
from codesign.catalog import Catalog
from codesign.model.workload.serving import ServingPoint
from codesign.units import Array

LAW = "serving_tpot"
KEYS: tuple[Key, ...] = (
    ("all", "kernel_gap_ns"),
    ("all", "step_host_ns"),
    ("trtllm", "sequence_host_ns"),
    ("vllm", "sequence_host_ns"),
    ("sglang", "sequence_host_ns"),
    ("all", "prefill_work_ratio"),
    ("all", "exchange_start_frac"),
    ("all", "speculation_ratio"),
)


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Constants by group and name, from every graded row."""
    return grouped(fit_to(catalog, fit_rows(catalog)))


def fit_to(catalog: Catalog, data: FitRows) -> dict[Key, float]:
    """Constants from some rows."""
    measured = data.rows.numbers("tpot_ms")

    def residuals(point: ServingPoint) -> Array:
        return log_ratio(point.tpot_ns, measured)

    return fitted(catalog, LAW, KEYS, residuals, data)
