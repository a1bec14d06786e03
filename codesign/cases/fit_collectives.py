"""Fit ring and all-to-all constants of the library, one set per accelerator architecture and one over all of them."""

from collections.abc import Iterable, Mapping

import numpy as np
from scipy.optimize import least_squares

from codesign.cases.rows import CaseRows, read_rows
from codesign.catalog import Catalog
from codesign.catalog.architectures import lineage
from codesign.model.fabric.collectives import (
    NEVER_NS,
    Fabric,
    Tier,
    all_gather_ns,
    all_reduce_ns,
    all_to_all_ns,
    reduce_scatter_ns,
)  # fmt: skip
from codesign.resources import case_data
from codesign.units import Array, gbps_from_gbytes_per_s

LAWS = {
    "all_reduce": all_reduce_ns,
    "all_gather": all_gather_ns,
    "reduce_scatter": reduce_scatter_ns,
    "alltoall": all_to_all_ns,
}
#: constant -> (start, lower bound, upper bound)
PARAMETERS: dict[str, tuple[float, float, float]] = {
    "launch_ns": (6000.0, 500.0, 20000.0),
    "hop_ns": (900.0, 50.0, 4000.0),
    "rate_frac": (0.9, 0.3, 1.0),
    "ramp_ns_per_sqrt_byte": (3.0, 0.0, 30.0),
    "pair_loss_frac": (0.6, 0.0, 1.2),
    "handover_ns": (3000.0, 0.0, 60000.0),
    "handover_hop_ns": (500.0, 0.0, 12000.0),
    "handover_bytes": (1.0e6, 1.0e5, 2.0e7),
    "exchange_launch_ns": (2000.0, 0.0, 12000.0),
    "exchange_rate_ratio": (0.9, 0.4, 1.3),
    "exchange_pair_loss_frac": (0.4, 0.0, 1.3),
    "exchange_handover_ns": (5000.0, 0.0, 20000.0),
    "exchange_handover_bytes": (5.0e4, 5.0e3, 5.0e6),
}
POOL = "generic"


def tier_of(values: Mapping[str, float], line_gbps: Array | float, domain_count: Array | float = 8.0) -> Tier:
    """A scale-up tier from fitted constants and the line rate; no in-switch and no low-latency kernels."""
    rest = {name: value for name, value in values.items() if name in PARAMETERS and name != "rate_frac"}
    return Tier(
        rate_gbps=line_gbps * values["rate_frac"],
        reduction_flag=0.0,
        fast_launch_ns=NEVER_NS,
        fast_hop_ns=0.0,
        fast_rate_gbps=line_gbps,
        domain_count=domain_count,
        contention_ratio=1.0,
        **rest,
    )


def times_ns(rows: CaseRows, tier: Tier) -> Array:
    """Model times of the sweep's rows on one scale-up tier."""
    message, ranks = rows.numbers("message_bytes"), rows.numbers("num_gpus")
    fabric = Fabric(tier, tier)
    operation = np.array(rows.text("op_name"))
    out = np.full(len(rows), np.nan)
    for name, law in LAWS.items():
        chosen = operation == name
        out[chosen] = np.broadcast_to(law(message, ranks, ranks, fabric), out.shape)[chosen]
    return out


def line_rates_gbps(rows: CaseRows, catalog: Catalog) -> Array:
    """Printed scale-up rate of each row's accelerator and direction."""
    names = rows.text("accelerator")
    known = {n: catalog.value("accelerators", n, "scale_up_rate_gbytes_per_s") for n in set(names)}
    return np.array([float(gbps_from_gbytes_per_s(known[n])) for n in names])


def fit_one(rows: CaseRows, catalog: Catalog) -> dict[str, float]:
    """Constants that describe these rows best: soft absolute error of the logarithm."""
    line, measured = line_rates_gbps(rows, catalog), 1e3 * rows.numbers("latency_us")
    names = list(PARAMETERS)
    low, high = (np.array([PARAMETERS[n][i] for n in names]) for i in (1, 2))

    def residual(point: Array) -> Array:
        tier = tier_of(dict(zip(names, point, strict=True)), line)
        return np.asarray(np.log(times_ns(rows, tier) / measured))

    best = None
    for handover_bytes in (3e5, 1e6, 4e6):
        start = np.array([PARAMETERS[n][0] for n in names])
        start[names.index("handover_bytes")] = handover_bytes
        found = least_squares(
            residual, start, bounds=(low, high), x_scale=start, loss="soft_l1", f_scale=0.05, max_nfev=300
        )
        best = found if best is None or found.cost < best.cost else best
    assert best is not None
    return {name: float(value) for name, value in zip(names, best.x, strict=True)}


def sweep_rows(leave_out: Iterable[str] = ()) -> CaseRows:
    """The library sweep, without some accelerators."""
    (rows,) = read_rows(case_data() / "kernels" / "nccl.csv")
    dropped = set(leave_out)
    return rows.pick([i for i, name in enumerate(rows.text("accelerator")) if name not in dropped])


def fit(catalog: Catalog, leave_out: Iterable[str] = ()) -> dict[str, dict[str, float]]:
    """Constants per architecture, and one pooled set for architectures nobody measured."""
    rows = sweep_rows(leave_out)
    group = [lineage(name)[-1] for name in rows.text("accelerator")]
    out = {
        name: fit_one(rows.pick([i for i, g in enumerate(group) if g == name]), catalog) for name in sorted(set(group))
    }
    out[POOL] = fit_one(rows, catalog)
    return out
