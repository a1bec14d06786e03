"""Replay the useful share of a job under failures against its checkpoint interval."""

import numpy as np

from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.model.reliability import best_interval_ns, useful_frac, young_interval_ns
from codesign.units import Array, ns_from_s


def _interval_s(rows: CaseRows) -> Array:
    """The stated interval, else the one its rule gives."""
    between, cost = rows.numbers("system_mtbf_s"), rows.numbers("checkpoint_s")
    rule = np.array(rows.text("interval_rule"))
    best = np.asarray(best_interval_ns(between, cost))
    by_rule = np.where(rule == "young", young_interval_ns(between, cost), best)
    factor = np.array([float(word[1:]) if word.startswith("x") and word[1:] else 1.0 for word in rule])
    stated = rows.numbers("interval_tau_s")
    return np.asarray(np.where(np.isfinite(stated), stated, factor * by_rule))


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:  # noqa: ARG001 - every adapter has the same form
    """Useful share with stops arriving at random."""
    stated = [rows.numbers(name) for name in ("system_mtbf_s", "checkpoint_s", "restart_s")]
    refused = [None if np.all(np.isfinite(row)) else "times are not stated" for row in zip(*stated, strict=True)]
    between, cost, restart = (ns_from_s(column) for column in stated)
    share = useful_frac(between, cost, restart, ns_from_s(_interval_s(rows)) + cost)
    return Predictions(
        {"efficiency_exact_exponential": (np.asarray(share), rows.numbers("efficiency_exact_exponential"))}, refused
    )
