"""Replay flow completion times of a packet simulator: incast, permutations, shifts and all-to-all on fat trees."""

import re
from collections.abc import Mapping

import numpy as np

from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.model.fabric.traffic import random_cross_frac, shift_cross_frac, spine_stretch_ratio
from codesign.units import Array

NODES = 128.0
POD_COUNT = 16.0  # endpoints under a leaf of the two-tier trees and in a pod of the three-tier ones
WORKLOADS = ("incast", "perm", "shift", "a2a")
BALANCING = ("mixed", "bitmap", "reps", "oblivious")


def _refusal(rows: CaseRows, i: int) -> str | None:
    if rows.text("workload")[i] not in WORKLOADS:
        return f"no flows for the workload {rows.text('workload')[i]!r}"
    needed = [rows.numbers(name)[i] for name in ("link_gbps", "flow_bytes", "flows", "base_rtt_us")]
    return None if np.all(np.isfinite(needed)) else "rate, flows, size or round trip is not stated"


def _leaf_count(topology: str) -> float:
    found = re.search(r"(\d+)d\d+u", topology)
    return float(found[1]) if found else POD_COUNT


def completion_us(rows: CaseRows, values: Mapping[str, float]) -> tuple[Array, Array]:
    """Mean and slowest completion time of each row's flows."""
    workload = np.array(rows.text("workload"))
    leaf = np.array([_leaf_count(name) for name in rows.text("topology")])
    nodes = np.array([_nodes(name) for name in rows.text("topology")])
    flows, parameter = rows.numbers("flows"), np.nan_to_num(rows.numbers("workload_param"))
    over = np.nan_to_num(rows.numbers("oversubscription"), nan=1.0)
    one_us = values["header_ratio"] * 8e-3 * rows.numbers("flow_bytes") / rows.numbers("link_gbps")
    ranks = np.maximum(parameter, 2.0)
    per_port = np.where(workload == "incast", flows, np.where(workload == "a2a", ranks - 1.0, 1.0))
    cross = np.where(workload == "shift", shift_cross_frac(parameter, leaf), random_cross_frac(nodes, leaf))
    cross = np.where(workload == "a2a", random_cross_frac(ranks, leaf), np.where(workload == "incast", 0.0, cross))
    stretch = np.asarray(spine_stretch_ratio(cross, over))
    balance = np.array([values[f"{_balancing(word)}_ratio"] for word in rows.text("load_balancing")])
    spread = np.where((workload == "incast") & (np.array(rows.text("cc")) == "nscc"), values["unfair_frac"], 0.0)
    start_us = values["start_frac"] * rows.numbers("base_rtt_us")
    crossing = cross * stretch * balance + (1.0 - cross)
    mean = start_us + one_us * per_port * crossing * (1.0 - spread * (1.0 - 1.0 / per_port))
    busy = np.where(cross > 0.0, stretch * np.where(over > 1.0, values["uneven_ratio"], balance), 1.0)
    slowest = values["slowest_frac"] * rows.numbers("base_rtt_us") + one_us * per_port * busy
    return mean, np.maximum(slowest, mean)


def _balancing(word: str) -> str:
    return word if word in BALANCING else "oblivious"


def _nodes(topology: str) -> float:
    found = re.match(r"[a-z]+(\d+)_", topology)
    return float(found[1]) if found else NODES


def constants_of(catalog: Catalog) -> dict[str, float]:
    """Constants of the simulated transport."""
    return {name: constant.value for name, constant in catalog.constants["network_sim"]["transport"].items()}


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Mean and slowest flow completion times."""
    refused = [_refusal(rows, i) for i in range(len(rows))]
    mean, slowest = completion_us(rows, constants_of(catalog))
    return Predictions(
        {
            "fct_mean_us": (mean, rows.numbers("fct_mean_us")),
            "fct_max_us": (slowest, rows.numbers("fct_max_us")),
        },
        refused,
    )
