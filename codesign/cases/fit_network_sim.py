"""Fit what a flit simulator's routers make of their channels: allocation, long packets, waiting."""

import numpy as np
from scipy.optimize import least_squares

from codesign.cases.booksim_topology import SATURATED_RATIO, replay
from codesign.cases.htsim import completion_us
from codesign.cases.rows import CaseRows, read_rows
from codesign.catalog import Catalog
from codesign.resources import case_data
from codesign.units import Array

#: constant -> (start, lower bound, upper bound)
PARAMETERS: dict[str, tuple[float, float, float]] = {
    "network_frac": (0.75, 0.4, 1.0),
    "ejection_frac": (0.8, 0.4, 1.0),
    "long_packet_frac": (0.95, 0.6, 1.0),
    "wait_ratio": (1.0, 0.1, 3.0),
    "burst_ratio": (0.8, 0.1, 3.0),
    "adaptive_frac": (1.0, 0.3, 1.3),
}


TRANSPORT: dict[str, tuple[float, float, float]] = {
    "header_ratio": (1.03, 1.0, 1.1),
    "start_frac": (0.9, 0.3, 1.5),
    "slowest_frac": (1.2, 0.5, 4.0),
    "unfair_frac": (0.1, 0.0, 0.3),
    "uneven_ratio": (1.1, 1.0, 1.6),
    "mixed_ratio": (1.03, 1.0, 1.3),
    "bitmap_ratio": (1.03, 1.0, 1.3),
    "reps_ratio": (1.05, 1.0, 1.3),
    "oblivious_ratio": (1.08, 1.0, 1.3),
}


def fit_transport(rows: CaseRows) -> dict[str, float]:
    """Constants of the packet simulator's transport from mean and slowest completion times."""
    names = list(TRANSPORT)
    start, low, high = (np.array([TRANSPORT[n][i] for n in names]) for i in range(3))
    measured = rows.numbers("fct_mean_us"), rows.numbers("fct_max_us")

    def residual(x: Array) -> Array:
        mean, slowest = completion_us(rows, dict(zip(names, x, strict=True)))
        return np.concatenate([np.log(mean / measured[0]), 0.5 * np.log(slowest / measured[1])])

    found = least_squares(residual, start, bounds=(low, high), loss="soft_l1", f_scale=0.05)
    return dict(zip(names, map(float, found.x), strict=True))


def fit_one(rows: CaseRows) -> dict[str, float]:
    """Constants of one topology from its accepted rates and steady latencies."""
    names = list(PARAMETERS)
    start, low, high = (np.array([PARAMETERS[n][i] for n in names]) for i in range(3))
    accepted, latency = rows.numbers("accepted_flit_rate"), rows.numbers("plat_avg")

    def residual(x: Array) -> Array:
        values = dict(zip(names, x, strict=True))
        out = []
        for i in range(len(rows)):
            rate, time, zero, _ = replay(rows, i, values)
            out.append(np.log(rate / accepted[i]))
            out.append(np.log(time / latency[i]) if latency[i] <= SATURATED_RATIO * zero else 0.0)
        return np.array(out)

    found = least_squares(
        residual, start, bounds=(low, high), x_scale=start, loss="soft_l1", f_scale=0.03, diff_step=1e-3, max_nfev=40
    )
    return dict(zip(names, map(float, found.x), strict=True))


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:  # noqa: ARG001 - every fit has the same form
    """Constants per topology, and of the transport."""
    (flows,) = read_rows(case_data() / "reference" / "htsim.csv")
    (rows,) = read_rows(case_data() / "reference" / "booksim_topology.csv")
    words = rows.text("topology")
    out = {t: fit_one(rows.pick([i for i, w in enumerate(words) if w == t])) for t in sorted(set(words))}
    return out | {"transport": fit_transport(flows)}
