"""Fit of the first-token constants of serving."""

from codesign.cases.fit_serving import FitRows, Key, fit_rows, fitted, grouped, log_ratio, predicted
from codesign.catalog import Catalog
from codesign.units import Array

LAW = "serving_ttft"
KEYS: tuple[Key, ...] = (
    ("all", "prompt_ratio"),
    ("trtllm", "step_ratio"),
    ("mixing", "burst_frac"),
    ("separate", "burst_frac"),
    ("mixing", "wave_frac"),
    ("separate", "wave_frac"),
    ("trtllm", "start_ns"),
    ("vllm", "start_ns"),
    ("sglang", "start_ns"),
    ("all", "transfer_start_ns"),
    ("all", "pool_burst_frac"),
)


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Constants by group and name, from every graded row."""
    return grouped(fit_to(catalog, fit_rows(catalog)))


def fit_to(catalog: Catalog, data: FitRows) -> dict[Key, float]:
    """Constants from some rows."""
    measured = data.rows.numbers("ttft_ms")

    def residuals(constants: Catalog) -> Array:
        return log_ratio(predicted(data, constants).ttft_ns, measured)

    return fitted(catalog, LAW, KEYS, residuals)
