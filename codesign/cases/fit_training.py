"""Fit the end-to-end factors of a training step, and report how well they hold on groups that were left out."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.optimize import least_squares

from codesign.cases.rows import CaseRows, read_rows
from codesign.cases.training import Replay, bind, run, with_launch
from codesign.cases.training_counting import MEMORY, compare
from codesign.catalog import Catalog, Constant
from codesign.model.workload.training_inputs import TrainingConstants
from codesign.resources import case_data
from codesign.software import training_constants
from codesign.units import Array

PRIOR_WEIGHT = 2.0  # residuals that a departure from the prior by its whole bound range costs
SOFT_ERROR = 0.1  # log error beyond which a row counts linearly, not squared


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """The fitted factors, by group and name, from every row of grades A and B that reports a speed."""
    rows, replay = _load(catalog)
    chosen = usable(rows, replay)
    values = fit_rows(rows, replay, catalog, chosen)
    return {"fitted": values}


def _load(catalog: Catalog) -> tuple[CaseRows, Replay]:
    rows = read_rows(case_data() / "training.csv")[0]
    return rows, bind(rows, catalog)


def usable(rows: CaseRows, replay: Replay) -> Array:
    """Rows that count: predicted, grade A or B, and a speed rather than a memory size."""
    graded = np.array([grade in ("A", "B") for grade in rows.text("grade")])
    speed = np.array([not MEMORY.search(metric) for metric in rows.text("metric")])
    known = np.array([reason is None for reason in replay.refused])
    return np.asarray(graded & speed & known)


def log_errors(values: dict[str, float], rows: CaseRows, replay: Replay, catalog: Catalog) -> Array:
    """Logarithm of predicted over measured time of every row; NaN where nothing is compared."""
    step = run(with_launch(replay, values["launch_ns"]), _constants(values, catalog), catalog)
    compared = compare(rows, step, replay.transformer, replay.job, replay.refused)
    out = np.full(len(rows), np.nan)
    for name, (predicted, measured) in compared.metrics.items():
        sign = 1.0 if name == "step_time_s" else -1.0
        here = np.isfinite(measured)
        out[here] = sign * np.log(predicted[here] / measured[here])
    return out


def _constants(values: dict[str, float], catalog: Catalog) -> TrainingConstants:
    stated = {name: c.value for name, c in catalog.constants["training"]["stated"].items()}
    return training_constants(catalog, {**stated, **values})


def fit_rows(rows: CaseRows, replay: Replay, catalog: Catalog, chosen: Array) -> dict[str, float]:
    """Least squares of log errors over some rows, with a soft loss and a pull to each prior."""
    group = catalog.constants["training"]["fitted"]
    names = list(group)
    low, high = (np.array([getattr(group[n], side) for n in names]) for side in ("low", "high"))
    prior = np.array([_prior(group[n]) for n in names])

    weight = np.sqrt(_weights(rows)[chosen])

    def residuals(x: Array) -> Array:
        errors = log_errors(dict(zip(names, x * prior, strict=True)), rows, replay, catalog)[chosen]
        soft = weight * np.sign(errors) * np.sqrt(2.0 * (np.sqrt(1.0 + (errors / SOFT_ERROR) ** 2) - 1.0))
        pull = PRIOR_WEIGHT * np.log(x) / np.log(high / low) * 3.0
        return np.concatenate([soft, pull])

    found = least_squares(residuals, np.ones(len(names)), bounds=(low / prior, high / prior), diff_step=1e-4)
    return dict(zip(names, (found.x * prior).tolist(), strict=True))


def _weights(rows: CaseRows) -> Array:
    """Rows that repeat a part and model count less: n of them weigh as much together as the fourth root of n."""
    cells = list(zip(rows.text("accelerator"), rows.text("model"), strict=True))
    number = Counter(cells)
    weight = np.array([number[cell] ** -0.75 for cell in cells])
    return np.asarray(weight / weight.mean())


def _prior(constant: Constant) -> float:
    return constant.prior if constant.prior is not None else constant.value


def held_out(rows: CaseRows, replay: Replay, catalog: Catalog, groups: Sequence[str], folds: int = 0) -> Array:
    """Log errors of every row, each predicted with factors fitted without its group (or its fold of groups)."""
    names = sorted(set(groups))
    fold_of = {name: (i % folds if folds else i) for i, name in enumerate(names)}
    fold = np.array([fold_of[name] for name in groups])
    every = usable(rows, replay)
    out = np.full(len(rows), np.nan)
    for left in sorted(set(fold)):
        values = fit_rows(rows, replay, catalog, every & (fold != left))
        here = every & (fold == left)
        out[here] = log_errors(values, rows, replay, catalog)[here]
    return out
