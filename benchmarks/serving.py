"""Speed of the serving search: distinct (candidate, layout) pairs that divide, per CPU-second of one core.

The denominator holds everything inside `best_serving`: blocks, the whole serving point, arg max, the points at the
chosen layouts. Run: ``python benchmarks/serving.py``.
"""

import time

import numpy as np

from codesign.catalog import load_catalog
from codesign.model.workload.serving_layout import serving_layouts
from codesign.model.workload.serving_search import best_serving
from codesign.serving_formats import serving_system

CASES = (
    ("Llama-3.1-70B", "fp8", False),
    ("DeepSeek-V3", "fp4", False),
    ("DeepSeek-V3", "fp4", True),
)


def rate(model: str, precision: str, disaggregated: bool, candidates: int = 128, repeats: int = 3) -> float:
    catalog = load_catalog()
    system = serving_system(catalog, model, ["gb200"] * candidates, "trtllm", precision, 1024.0, 1024.0, 5e9, 50e6)
    layouts = serving_layouts(system.transformer, 64, disaggregated)
    best = 0.0
    for _ in range(repeats):
        start = time.process_time()
        best_serving(system, layouts, candidates)
        best = max(best, candidates * np.size(layouts.users_count) / (time.process_time() - start))
    return best


if __name__ == "__main__":
    for model, precision, disaggregated in CASES:
        kind = "with and without a prefill pool" if disaggregated else "aggregated"
        print(f"{model} {precision} {kind}: {rate(model, precision, disaggregated):,.0f} evaluations per CPU-second")
