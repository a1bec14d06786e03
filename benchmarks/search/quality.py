"""How good samplers are per trial: best so far over seeds on shipped spaces. Run by hand, takes minutes.

    python benchmarks/search/quality.py training_dense --seeds 10 --trials 200 --samplers tpe nsga2 optuna:TPESampler

Prints, at 50, 100, 200, 400 and 1,000 trials, the quartiles and the worst of the best value found by search (baselines
are first trials of every run but do not count), and the sampler's CPU per trial.
"""

import argparse
import time
from typing import Any

import numpy as np

from codesign.study.coding import Coding
from codesign.study.fronts import excess
from codesign.study.policy import resolve
from codesign.study.problem import recipe_of
from codesign.study.problem_protocol import Problem
from codesign.study.samplers import Told
from codesign.study.search import suggester
from codesign.study.suggest import Search
from codesign.units import Array

MARKS = (50, 100, 200, 400, 1000)


def course(problem: Problem, sampler: str, seed: int, trials: int, batch: int) -> tuple[Array, float]:
    """Best feasible first objective after each trial, baselines left out, and the sampler's CPU seconds."""
    coding = Coding(problem.parameters)
    spec = resolve(sampler, coding, len(problem.objectives), trials, batch)
    sign = 1.0 if problem.objectives[0][1] == "minimize" else -1.0
    found = suggester(spec, coding, seed, batch, problem.objectives)
    first = coding.encode([row for _, row in problem.baselines])
    search = Search(coding, found, seed, batch, first)
    costs: list[Any] = []
    spent = 0.0
    for index in range(-(-trials // batch)):
        started = time.process_time()
        internal, state = search.ask(index)
        spent += time.process_time() - started
        answer = problem.evaluate(coding.rows(internal))
        violation = excess(answer.constraints)
        costs += np.where(violation <= 0.0, sign * answer.values[:, 0], np.inf).tolist()
        started = time.process_time()
        search.observe(Told(internal, answer.values * sign, violation), state)
        spent += time.process_time() - started
    best = np.array(costs)
    best[: len(first)] = np.inf
    return np.minimum.accumulate(best)[:trials], spent / trials


def main() -> None:
    """Every sampler on one space."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("space")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--samplers", nargs="+", default=["tpe", "nsga2", "sobol", "random", "optuna:TPESampler"])
    options = parser.parse_args()
    problem = recipe_of(options.space)()
    answer = problem.evaluate([row for _, row in problem.baselines])
    print(f"{options.space}: baselines {np.round(answer.values[:, 0], 4).tolist()}")
    for sampler in options.samplers:
        runs = [course(problem, sampler, s, options.trials, options.batch) for s in range(options.seeds)]
        table = np.array([r for r, _ in runs])
        shown = {
            mark: np.round(np.percentile(table[:, mark - 1], [25, 50, 75, 100]), 4).tolist()
            for mark in MARKS
            if mark <= options.trials
        }
        cpu = 1e3 * float(np.mean([c for _, c in runs]))
        print(f"{sampler:20s} {cpu:7.2f} ms/trial  " + "  ".join(f"@{m} {v}" for m, v in shown.items()), flush=True)


if __name__ == "__main__":
    main()
