"""The best design known of a shipped space: the best of a long sweep, each of its best rows refined. Run by hand, long.

    codesign sweep run training_dense --points 5e6 --storage sqlite:///best.db --out best
    python benchmarks/search/best_known.py training_dense --storage sqlite:///best.db

Refinement looks at every value of every parameter of a row, and at the gains taken together; where none gains alone, at
many changes of two to four at once. It takes the best and goes on until nothing better is found twice. The file
benchmarks/search/best_known/SPACE.json gets the date, the versions of code and catalog, and all values; `quality.py`
compares with it.
"""

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np

from codesign.store.repository import Store
from codesign.study.coding import Coding
from codesign.study.fronts import excess
from codesign.study.problem import SpaceProblem, recipe_of
from codesign.study.screen import numbers
from codesign.study.sweep import sweep_summary
from codesign.units import Array

HOME = Path(__file__).parent / "best_known"
TOGETHER = 3000  # changes of several parameters at once, looked at where none gains alone
FRUITLESS = 2  # rounds without a gain before a row is given up
PLACES = np.linspace(0.0, 1.0, 33)  # looked at in a range without steps, or with more


def costs(problem: SpaceProblem, coding: Coding, internal: Array) -> Array:
    """First objective of rows as they are, unrepaired; infinite where a rule is broken."""
    values, constraints = numbers(problem, coding, internal)
    sign = 1.0 if problem.objectives[0][1] == "minimize" else -1.0
    return np.where(excess(constraints) <= 0.0, sign * values[:, 0], np.inf)


def singles(coding: Coding, unit: Array) -> tuple[Array, Array]:
    """Every single change of a point, and which parameter each changes."""
    parts, which = [], []
    for i in range(len(unit)):
        levels = int(coding.levels[i])
        places = (np.arange(levels) + 0.5) / levels if 0 < levels <= len(PLACES) else PLACES
        one = np.repeat(unit[None, :], len(places), axis=0)
        one[:, i] = places
        parts.append(one)
        which += [i] * len(places)
    return np.concatenate(parts), np.array(which)


def together(coding: Coding, unit: Array, rng: np.random.Generator) -> Array:
    """Many changes of two to four parameters."""
    many = np.repeat(unit[None, :], TOGETHER, axis=0)
    for k in range(TOGETHER):
        moved = rng.choice(len(unit), rng.integers(2, 5), replace=False)
        near = np.clip(unit[moved] + rng.normal(0.0, 0.15, len(moved)), 0.0, 1.0)
        small = (rng.random(len(moved)) < 0.6) & coding.ordered[moved]
        many[k, moved] = np.where(small, near, rng.random(len(moved)))
    return many


def combined(unit: Array, changed: Array, which: Array, found: Array, now: float) -> Array:
    """The best change of each parameter that gains, added one after another, the largest gain first."""
    gains = {}
    for i in np.unique(which):
        at = np.flatnonzero(which == i)[int(found[which == i].argmin())]
        if found[at] < now:
            gains[int(i)] = at
    rows, row = [], unit
    for i, at in sorted(gains.items(), key=lambda item: found[item[1]]):
        row = row.copy()
        row[i] = changed[at, i]
        rows.append(row)
    return np.array(rows).reshape(len(rows), len(unit))


def refined(problem: SpaceProblem, coding: Coding, row: Array, seed: int) -> tuple[Array, float, int]:
    """The row a local search ends at, its cost, and the rounds it took."""
    rng = np.random.default_rng(seed)
    best, rounds, fruitless = float(costs(problem, coding, row[None, :])[0]), 0, 0
    while fruitless < FRUITLESS:
        rounds += 1
        unit = coding.filled_unit(row[None, :])[0]
        changed, which = singles(coding, unit)
        found = costs(problem, coding, coding.decode(changed))
        tries = coding.decode(np.concatenate([changed, combined(unit, changed, which, found, best)]))
        if found.min() >= best:  # nothing gains alone
            tries = coding.decode(np.concatenate([changed, together(coding, unit, rng)]))
        found = np.concatenate([found, costs(problem, coding, tries[len(changed) :])])
        at = int(found.argmin())
        if found[at] < best:
            row, best, fruitless = tries[at], float(found[at]), 0
        else:
            fruitless += 1
    return row, best, rounds


def main() -> None:
    """Refine the best rows of a sweep and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("space")
    parser.add_argument("--storage", required=True, help="database of the sweep")
    parser.add_argument("--sweep", help="its name; default: the space's")
    parser.add_argument("--rows", type=int, default=8, help="best rows to refine")
    options = parser.parse_args()
    problem = recipe_of(options.space)()
    coding = Coding(problem.parameters)
    with Store(options.storage) as store:
        swept = sweep_summary(store, options.sweep or options.space)
    record: dict[str, Any] = {
        "space": options.space,
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "code_version": problem.code_version,
        "space_digest": problem.space_digest,
        "catalog_digest": problem.catalog_digest,
        "objective": problem.objectives[0][0],
        "sweep": {
            "method": swept.method,
            "points": swept.done_count,
            "feasible": swept.feasible_count,
            "best": swept.top[0]["values"][0],
        },
        "refined": [],
    }
    best: tuple[float, Array | None] = (np.inf, None)
    for seed, entry in enumerate(swept.top[: options.rows]):
        row, cost, rounds = refined(problem, coding, coding.encode([entry["row"]])[0], seed)
        record["refined"].append({"from": entry["values"][0], "to": abs(cost), "rounds": rounds})
        print(f"{entry['values'][0]:.4f} -> {abs(cost):.4f} in {rounds} rounds", flush=True)
        if cost < best[0]:
            best = (cost, row)
            record["best"] = {"value": abs(cost), "design": coding.rows(row[None, :])[0]}
        HOME.mkdir(exist_ok=True)
        (HOME / f"{options.space}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
