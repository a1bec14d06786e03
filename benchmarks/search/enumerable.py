"""Whether the default search finds the very best of a space small enough to try whole. By hand, two minutes.

    python benchmarks/search/enumerable.py

Keeps six parameters of training_dense, fixes the others at the base machine, evaluates all designs, then searches with
a small part of that many trials from each seed and tells after how many the best was met.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from codesign.study.coding import Coding
from codesign.study.fronts import excess
from codesign.study.policy import resolve
from codesign.study.problem import SpaceProblem, recipe_of
from codesign.study.samplers import Told, grid, grid_size
from codesign.study.search import suggester
from codesign.study.suggest import Search
from codesign.units import Array

KEPT = ("memory_kind", "memory_stacks_count", "compute_dies_count", "node", "nic_rate_gbps", "scale_up_topology")
BATCH = 8


def small_problem() -> SpaceProblem:
    """The question of training_dense about a few of its parameters."""
    whole = recipe_of("training_dense")()
    vary = {name: options for name, options in whole.space.vary.items() if name in KEPT}
    return SpaceProblem(whole.space.model_copy(update={"vary": vary}), whole.space_text, whole.catalog)


def every(problem: SpaceProblem) -> tuple[Coding, dict[bytes, tuple[float, float]]]:
    """Cost and violation of every design."""
    coding = Coding(problem.parameters)
    internal = coding.decode(grid(coding, 0, 0, grid_size(coding)))
    answer = problem.evaluate(coding.rows(internal))
    numbers = zip(answer.values[:, 0].tolist(), excess(answer.constraints).tolist(), strict=True)
    return coding, dict(zip(coding.keys(internal), numbers, strict=True))


def bests(problem: SpaceProblem, coding: Coding, table: dict[bytes, tuple[float, float]], seed: int) -> Iterator[float]:
    """Best cost after each batch of one search, evaluations looked up."""
    spec: dict[str, Any] = resolve("gp", coding, 1, len(table) - 1, BATCH)
    found = suggester(spec, coding, seed, BATCH, problem.objectives, problem)
    search = Search(coding, found, seed, BATCH, np.empty((0, len(coding.names))))
    best, index = np.inf, 0
    while True:
        internal, _ = search.ask(index)
        numbers: Array = np.array([table[key] for key in coding.keys(internal)])
        costs, violation = numbers[:, :1], numbers[:, 1]
        search.observe(Told(internal, costs, violation), None)
        best, index = min(best, costs[violation <= 0.0].min(initial=np.inf)), index + 1
        yield best


def main() -> None:
    """Every seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=96)
    options = parser.parse_args()
    problem = small_problem()
    coding, table = every(problem)
    costs = sorted(cost for cost, violation in table.values() if violation <= 0.0)
    shared, median = costs.count(costs[0]), float(np.median(costs))
    print(f"{len(table)} designs, {len(costs)} keep every rule")
    print(f"best {costs[0]:.6g} (shared by {shared}), median {median:.6g}")
    met = []
    for seed in range(options.seeds):
        run = bests(problem, coding, table, seed)
        after = next((b for b in range(1, options.trials // BATCH + 1) if next(run) <= costs[0]), None)
        met.append(after)
        print(f"seed {seed}: " + (f"best met within {after * BATCH} trials" if after else "not met"), flush=True)
    print(f"best met in {sum(after is not None for after in met)} of {len(met)}")


if __name__ == "__main__":
    main()
