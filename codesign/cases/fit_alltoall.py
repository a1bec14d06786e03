"""Fit the exchange kernels of expert layers: one set per architecture, kernel and phase, shared by sizes and models."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from codesign.cases.fit_fast_kernels import architecture_of
from codesign.cases.rows import CaseRows, read_rows
from codesign.catalog import Catalog
from codesign.fabrics import scale_up_values
from codesign.model.fabric.collectives import NEVER_NS, Exchange, Fabric, Tier, moe_exchange_ns
from codesign.resources import case_data
from codesign.units import Array, Numeric

#: constant -> (start, lower bound, upper bound)
PARAMETERS: dict[str, tuple[float, float, float]] = {
    "floor_ns": (40000.0, 1000.0, 400000.0),
    "floor_growth_ratio": (0.1, 0.0, 1.0),
    "rate_gbps": (1500.0, 1.0, 20000.0),
    "ramp_ns_per_sqrt_byte": (2.0, 0.0, 60.0),
}
#: bytes of one value on the wire with its scales
WIRE_BYTES: dict[str, float] = {
    "bfloat16": 2.0,
    "default": 2.0,
    "": 2.0,
    "fp8": 1.03125,
    "nvfp4": 0.5625,
    "fp4": 0.5625,
}
LATENCY_WORDS = ("_ll", "generation")  # kernels that send one copy per expert
RECORD_BYTES = 4.0  # what the prepare phase counts per token


@dataclass(frozen=True)
class Traffic:
    """What one exchange moves, per row."""

    kernel: list[str]
    phase: list[str]
    ranks_count: Array
    width_bytes: Array
    hidden_count: Array
    top_k_count: Array
    tokens_count: Array


def traffic_of(rows: CaseRows) -> Traffic:
    """Kernel, phase and sizes of each row, whichever of the two column layouts it uses."""
    kernel = [
        (backend or source).lower()
        for backend, source in zip(rows.text("comm_backend"), rows.text("kernel_source"), strict=True)
    ]
    phase = [_phase(p, op) for p, op in zip(rows.text("phase"), rows.text("op_name"), strict=True)]
    ranks = rows.numbers("ep_size")
    ranks = np.where(np.isfinite(ranks), ranks, rows.numbers("moe_ep_size"))
    width = np.array(
        [_width(c or m, p) for c, m, p in zip(rows.text("comm_dtype"), rows.text("moe_dtype"), phase, strict=True)]
    )
    return Traffic(
        kernel, phase, ranks, width, rows.numbers("hidden_size"), rows.numbers("topk"), rows.numbers("num_tokens")
    )


def _phase(phase: str, operation: str) -> str:
    word = phase or operation
    return word.removeprefix("alltoall_")


def _width(dtype: str, phase: str) -> float:
    """Bytes per value of the number format; results come back as bfloat16."""
    return WIRE_BYTES["bfloat16"] if phase.startswith("combine") else WIRE_BYTES.get(dtype, 2.0)


def hidden_bytes(traffic: Traffic, narrow_frac: Numeric) -> Array:
    """Bytes of a token: a kernel narrows a share of its traffic, the rest stays bfloat16.

    The prepare phase counts one record per token, whatever the group: the factor undoes the remote share.
    """
    wide = WIRE_BYTES["bfloat16"]
    token = traffic.hidden_count * (wide + narrow_frac * (traffic.width_bytes - wide))
    ranks = np.maximum(traffic.ranks_count, 2.0)
    record = RECORD_BYTES * ranks / (ranks - 1.0)
    return np.asarray(np.where([p == "prepare" for p in traffic.phase], record, token))


def times_ns(traffic: Traffic, values: Mapping[str, float], line_gbps: Array) -> Array:
    """Model times of the rows with one kernel's constants."""
    tier = Tier(line_gbps, 0.0, 0.0, 0.0, 0.0, NEVER_NS, 0.0, line_gbps, 1e9, 1.0)
    kernel = Exchange(**{n: v for n, v in values.items() if n != "narrow_frac"}, known_flag=1.0)
    token_bytes = hidden_bytes(traffic, values["narrow_frac"])
    experts = np.where([p == "prepare" for p in traffic.phase], 1.0, traffic.top_k_count)
    sizes = traffic.tokens_count, token_bytes, experts, traffic.ranks_count, traffic.ranks_count
    return np.asarray(moe_exchange_ns(*sizes, Fabric(tier, tier, kernel, kernel)))


def fit_one(traffic: Traffic, line_gbps: Array, measured_ns: Array, latency: bool) -> dict[str, float]:
    """Constants of one kernel and phase; whether it de-duplicates and how much it narrows are tried in turn."""
    names = list(PARAMETERS)
    start, low, high = (np.array([PARAMETERS[n][i] for n in names]) for i in range(3))
    best_cost, best = np.inf, dict[str, float]()
    for copies_flag, narrow_frac in itertools.product((1.0,) if latency else (0.0, 1.0), (1.0, 0.5, 0.25, 0.0)):
        fixed = {"copies_flag": copies_flag, "narrow_frac": narrow_frac}

        def residual(x: Array, fixed: dict[str, float] = fixed) -> Array:
            values = dict(zip(names, x, strict=True)) | fixed
            return np.asarray(np.log(times_ns(traffic, values, line_gbps) / measured_ns))

        found = least_squares(residual, start, bounds=(low, high), x_scale=start, loss="soft_l1", f_scale=0.1)
        if found.cost < 0.98 * best_cost:
            best_cost, best = found.cost, dict(zip(names, map(float, found.x), strict=True)) | fixed
    return best


def ring_rates_gbps(rows: CaseRows, catalog: Catalog) -> Array:
    """What a ring draws from each row's links: the line that limits an exchange kernel too."""
    names = rows.text("accelerator")
    known = {name: scale_up_values(catalog, name, "nccl_ring")["rate_gbps"] for name in set(names)}
    return np.array([known[name] for name in names])


def group_of(architecture: str, kernel: str, phase: str) -> str:
    """Name of a set of constants."""
    return f"{architecture}.{kernel}.{phase}"


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Constants per architecture, kernel and phase."""
    (rows,) = read_rows(case_data() / "kernels" / "moe_alltoall.csv")
    traffic, line, measured = traffic_of(rows), ring_rates_gbps(rows, catalog), 1e3 * rows.numbers("latency_us")
    parts = [architecture_of(catalog, name) for name in rows.text("accelerator")]
    keys = list(zip(parts, traffic.kernel, traffic.phase, strict=True))
    out = {}
    for key in sorted(set(keys)):
        chosen = [i for i, k in enumerate(keys) if k == key]
        latency = any(word in key[1] for word in LATENCY_WORDS)
        mine = traffic_of(rows.pick(chosen))
        out[group_of(*key)] = fit_one(mine, line[chosen], measured[chosen], latency)
    return out
