"""How good samplers are per trial: best so far over seeds on shipped spaces. Run by hand, takes minutes.

    python benchmarks/search/quality.py training_dense --seeds 10 --trials 200 --samplers tpe nsga2 optuna:TPESampler

Prints, at 50, 100, 200, 400 and 1,000 trials, the quartiles and the worst of the best value found by search (baselines
are first trials of every run but do not count), and the sampler's CPU per trial. Of a space with several objectives it
prints the hypervolume instead, over that of the whole box between the best and the reference: the reference is the
ninth decile of each objective over 512 Sobol points after repair, the best is the best of all runs shown. Where
benchmarks/search/best_known/SPACE.json exists, it also counts the runs within 5 % of it.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from codesign.study.coding import Coding
from codesign.study.fronts import excess, hypervolume
from codesign.study.policy import resolve
from codesign.study.problem import recipe_of
from codesign.study.problem_protocol import Problem
from codesign.study.samplers import Told, sobol
from codesign.study.search import suggester
from codesign.study.suggest import Search
from codesign.units import Array

MARKS = (50, 100, 200, 400, 1000)


Course = tuple[Array, Array, int, float]  # costs (n, k), violation (n,), first trials, sampler's CPU seconds per trial


def course(problem: Problem, sampler: str, seed: int, trials: int, batch: int) -> Course:
    """What each trial of one run found, and the sampler's CPU seconds per trial."""
    coding = Coding(problem.parameters)
    spec = resolve(sampler, coding, len(problem.objectives), trials, batch)
    found = suggester(spec, coding, seed, batch, problem.objectives, problem)
    first = coding.encode([row for _, row in problem.baselines])
    search = Search(coding, found, seed, batch, first)
    costs, broken, spent = [], [], 0.0
    for index in range(-(-trials // batch)):
        started = time.process_time()
        internal, state = search.ask(index)
        spent += time.process_time() - started
        answer = problem.evaluate(coding.rows(internal))
        violation, turned = excess(answer.constraints), answer.values * signs(problem)
        costs.append(turned)
        broken.append(violation)
        started = time.process_time()
        search.observe(Told(internal, turned, violation), state)
        spent += time.process_time() - started
    return np.concatenate(costs)[:trials], np.concatenate(broken)[:trials], len(first), spent / trials


def signs(problem: Problem) -> Array:
    """One for what is minimised, minus one for what is maximised."""
    return np.array([1.0 if direction == "minimize" else -1.0 for _, direction in problem.objectives])


def reference_costs(problem: Problem) -> Array:
    """Ninth decile of each objective over Sobol points after repair, of those that break no rule."""
    coding = Coding(problem.parameters)
    answer = problem.evaluate(coding.rows(coding.decode(sobol(len(coding.names), 0, 0, 512))))
    kept = excess(answer.constraints) <= 0.0
    return np.asarray(np.quantile((answer.values * signs(problem))[kept], 0.9, axis=0))


def best_so_far(run: Course) -> Array:
    """Best first objective after each trial, baselines left out."""
    costs, violation, first, _ = run
    best = np.where(violation <= 0.0, costs[:, 0], np.inf)
    best[:first] = np.inf
    return np.minimum.accumulate(best)


def volumes(run: Course, ideal: Array, reference: Array) -> dict[int, float]:
    """Share of the box that the trials dominate, at each mark."""
    costs, violation, _, _ = run
    shares = {}
    for mark in (m for m in MARKS if m <= len(costs)):
        kept = (violation[:mark] <= 0.0) & (costs[:mark] < reference).all(axis=1)
        scaled = (costs[:mark][kept] - ideal) / (reference - ideal)
        shares[mark] = hypervolume(scaled, np.ones(len(ideal))) if kept.any() else 0.0
    return shares


def quartiles(values: Any, worst: float) -> list[float]:
    """Quartiles and worst, best first."""
    at = [25, 50, 75, 100] if worst > 0 else [75, 50, 25, 0]
    return [round(float(v), 4) for v in np.percentile(values, at)]


def single(space: str, runs: dict[str, list[Course]]) -> None:
    """Best so far of every sampler."""
    file = Path(__file__).parent / "best_known" / f"{space}.json"
    known = json.loads(file.read_text(encoding="utf-8"))["best"]["value"] if file.exists() else None
    for sampler, courses in runs.items():
        table = np.array([best_so_far(run) for run in courses])
        shown = {mark: quartiles(table[:, mark - 1], 1.0) for mark in MARKS if mark <= table.shape[1]}
        near = {} if known is None else {m: int((table[:, m - 1] <= 1.05 * known).sum()) for m in shown}
        cpu = 1e3 * float(np.mean([run[3] for run in courses]))
        words = "  ".join(f"@{m} {v}" + (f" {near[m]} within 5 %" if near else "") for m, v in shown.items())
        print(f"{sampler:22s} {cpu:7.2f} ms/trial  {words}", flush=True)


def several(problem: Problem, runs: dict[str, list[Course]]) -> None:
    """Hypervolume of every sampler."""
    reference = reference_costs(problem)
    feasible = [run[0][run[1] <= 0.0] for courses in runs.values() for run in courses]
    ideal = np.concatenate(feasible).min(axis=0)
    print(f"reference {np.round(reference, 4).tolist()}, best of each {np.round(ideal, 4).tolist()}")
    for sampler, courses in runs.items():
        found = [volumes(run, ideal, reference) for run in courses]
        words = "  ".join(f"@{m} {quartiles([v[m] for v in found], -1.0)}" for m in found[0])
        cpu = 1e3 * float(np.mean([run[3] for run in courses]))
        print(f"{sampler:22s} {cpu:7.2f} ms/trial  {words}", flush=True)


def main() -> None:
    """Every sampler on one space."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("space")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--batch", type=int, help="default: as the space says")
    parser.add_argument(
        "--samplers", nargs="+",
        default=["gp", "tpe", "nsga2", "sobol", "random", "optuna:TPESampler", "optuna:NSGAIISampler"],
    )  # fmt: skip
    options = parser.parse_args()
    problem = recipe_of(options.space)()
    baselines = [machine["values"][problem.objectives[0][0]] for machine in problem.machines()]
    print(f"{options.space}: baselines as they are {np.round(baselines, 4).tolist()}")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    runs = {}
    for sampler in options.samplers:
        batch = options.batch or problem.batch_count
        runs[sampler] = [course(problem, sampler, seed, options.trials, batch) for seed in seeds]
        if len(problem.objectives) == 1:
            single(options.space, {sampler: runs[sampler]})
    if len(problem.objectives) > 1:
        several(problem, runs)


if __name__ == "__main__":
    main()
