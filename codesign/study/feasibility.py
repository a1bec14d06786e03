"""How much of a space can be built: what `codesign space check` tells."""

from typing import Any

import numpy as np

from codesign.candidates import assemble_rows
from codesign.evaluation import evaluate, physical_violations
from codesign.metrics import Violations
from codesign.study.coding import Coding
from codesign.study.foresight import settled
from codesign.study.problem import recipe_of


def sample_feasibility(name_or_path: str, samples: int, seed: int = 0) -> dict[str, Any]:
    """Check a space; what share of uniform samples can be built, as asked and after repair, and which rules bind."""
    problem = recipe_of(name_or_path)()
    coding = Coding(problem.parameters)
    unit = np.random.default_rng(seed).random((samples, len(coding.names)))
    internal = coding.decode(unit)
    rows, repaired = coding.rows(internal), coding.rows(settled(coding, problem, internal))
    asked = physical_violations(assemble_rows(rows, problem.space), problem.space, problem.catalog)
    found = evaluate(assemble_rows(repaired, problem.space), problem.space, problem.catalog).violations
    return {
        "space": problem.name,
        "parameters": len(problem.parameters),
        "samples": samples,
        "feasible_as_asked_frac": float(asked.feasible().mean()),
        "feasible_frac": float(found.feasible().mean()),
        "refusals_as_asked": _broken(asked),
        "refusals": _broken(found),
    }


def _broken(found: Violations) -> dict[str, int]:
    """How many rows break each rule, rules that none breaks left out."""
    counts = (found.excess > 0.0).sum(axis=1)
    return {rule.name: int(n) for rule, n in zip(found.rules, counts, strict=True) if n}
