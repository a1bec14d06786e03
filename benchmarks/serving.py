"""Speed of the serving search: distinct (candidate, layout) pairs decided, per CPU-second of one core.

A pair is decided when it is priced, or when its ceiling shows that it can be neither the best nor the runner-up of its
candidate. The denominator holds everything inside `best_serving`: the pools by themselves, the ceilings, the whole
serving point where it is priced, arg max, the points at the chosen layouts. One candidate alone is what `codesign
evaluate` waits for. Run: ``python benchmarks/serving.py``.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

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
        many, alone = rate(model, precision, disaggregated), rate(model, precision, disaggregated, candidates=1)
        print(f"{model} {precision} {kind}: {many:,.0f} pairs per CPU-second, {alone:,.0f} with one candidate")
