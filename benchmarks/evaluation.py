"""Speed of the whole evaluation, from names to dollars: distinct (candidate, mapping) pairs per CPU-second of one core.

The denominator holds bind, every chain, the mapping search with its argmin, power and the bill. Run on a quiet machine.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time

import numpy as np

from codesign.candidates import assemble_rows
from codesign.catalog import load_catalog
from codesign.evaluation import evaluate
from codesign.space import load_space
from codesign.study.coding import Coding
from codesign.study.problem import recipe_of


def measure(name: str, count: int) -> None:
    space, catalog = load_space(name), load_catalog()
    coding = Coding(recipe_of(name)().parameters)
    unit = np.random.default_rng(7).random((count, len(coding.names)))
    candidates = assemble_rows([dict(row) for row in coding.rows(coding.decode(unit))], space)
    evaluate(candidates.part(slice(0, 2)), space, catalog)
    start = time.process_time()
    found = evaluate(candidates, space, catalog)
    spent = time.process_time() - start
    pairs = count * sum(result.mappings_count for result in found.workloads)
    print(f"{name}: {count} candidates, {pairs:,} pairs, {spent:.2f} s CPU, {pairs / spent:,.0f} pairs per CPU-second")


if __name__ == "__main__":
    for space_name in sys.argv[1:] or ["training_dense", "training_moe", "serving_dense", "serving_moe", "factory_mix"]:
        measure(space_name, 64 if space_name == "serving_moe" else 512)
