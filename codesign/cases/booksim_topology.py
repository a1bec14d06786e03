"""Replay a flit simulator's networks: accepted rate and latency under traffic patterns."""

from collections.abc import Mapping

import numpy as np

from codesign.cases.network_flows import Flows, accepted_rate, flows, paths
from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.model.fabric.traffic import queue_wait_ns
from codesign.units import Array

PATTERNS = ("uniform", "neighbor", "transpose", "bad_dragon")
ROUTER_CYCLES, END_CYCLES = 2.0, 3.0  # per router; injection and ejection
FAR_CYCLES = 50.0  # channels whose credit loop is longer than a buffer
SATURATED_RATIO = 3.0  # latency over zero load above which a run has no steady state
CALM_FRAC = 0.7
LARGEST_COUNT = 1024
Constants = Mapping[str, float]


def _flows_of(rows: CaseRows, i: int) -> Flows:
    k, n, c, nodes = (int(rows.numbers(name)[i]) for name in ("k", "n", "c", "nodes"))
    return flows(rows.text("topology")[i], k, n, c, nodes, rows.text("traffic")[i] or "uniform")


def _refusal(rows: CaseRows, i: int) -> str | None:
    topology, traffic = rows.text("topology")[i], rows.text("traffic")[i] or "uniform"
    if traffic not in PATTERNS:
        return f"no flows for the traffic {traffic!r}"
    try:
        paths(topology, 2, 1, 1)
    except KeyError:
        return f"no flows for the topology {topology!r}"
    needed = [rows.numbers(name)[i] for name in ("k", "n", "c", "nodes", "injection_rate")]
    if not np.all(np.isfinite(needed)):
        return "the size of the network or its load is not stated"
    return size_refusal(*needed[:4])


def size_refusal(k: float, n: float, c: float, nodes: float) -> str | None:
    """Why the flows of a network cannot be listed path by path, or None."""
    sizes = {"k": k, "n": n, "c": c, "nodes": nodes}
    odd = [f"{name} is {size:g}" for name, size in sizes.items() if size < 1.0 or size % 1.0]
    if odd:
        return f"{', '.join(odd)}: sizes of a network are whole numbers above zero"
    if nodes > LARGEST_COUNT or k > LARGEST_COUNT or n > np.log2(LARGEST_COUNT):
        return f"flows are listed path by path up to {LARGEST_COUNT} nodes; got {nodes:g}, k {k:g}, n {n:g}"
    return None


def capacities(found: Flows, values: Constants, packet: float, buffer: float, adaptive: bool) -> Array:
    """Flits per cycle of each channel: what the allocator finds under random arrivals, what the credit loop lets by."""
    long = values["long_packet_frac"] if packet > 1 else 1.0
    inside = values["network_frac"] * (values["adaptive_frac"] if adaptive else 1.0)
    shared = np.where(found.ejects, values["ejection_frac"], inside) * long
    allocated = shared if found.random else np.ones(len(shared))
    loop = np.where(found.reach_cycles >= FAR_CYCLES, buffer / (2.0 * found.reach_cycles + 3.0), 1.0)
    return np.asarray(np.minimum(allocated, loop))


def waits(found: Flows, rate: Array, capacity: Array, values: Constants, packet: float) -> float:
    """Mean queueing of a packet: each channel waits for packets of other sources, the source for its own."""
    used = rate[:, None] * found.load
    total = used.sum(axis=0)
    rho = np.minimum(total / capacity, 0.98)
    others = 1.0 - (used * used).sum(axis=0) / np.maximum(total, 1e-12) ** 2
    length = 1.0 if packet <= 1 else packet * values["burst_ratio"]
    each = queue_wait_ns(rho, values["wait_ratio"] * length) * others
    behind = float(np.mean(queue_wait_ns(np.minimum(rate, 0.98), packet - 1.0)))
    return float((total * each).sum() / max(float(rate.sum()), 1e-12)) + behind


def replay(rows: CaseRows, i: int, values: Constants) -> tuple[float, float, float, float]:
    """Accepted rate, latency, zero-load latency and saturation of one row."""
    found = _flows_of(rows, i)
    packet = float(np.nan_to_num(rows.numbers("packet_size")[i], nan=1.0))
    buffer = float(np.nan_to_num(rows.numbers("vc_buf_size")[i], nan=8.0))
    injection = float(rows.numbers("injection_rate")[i])
    capacity = capacities(found, values, packet, buffer, rows.text("routing_function")[i] == "ugal")
    rate = accepted_rate(found.load, capacity, injection)
    zero = END_CYCLES + ROUTER_CYCLES * found.routers + found.wire_cycles + packet - 1.0
    saturation = float(accepted_rate(found.load, capacity, 1.0).min())
    latency = zero + waits(found, rate, capacity, values, packet)
    return float(rate.mean()), latency, zero, saturation


def constants_of(catalog: Catalog, topology: str) -> dict[str, float]:
    """Allocation and queueing constants of a topology's routers."""
    return {name: constant.value for name, constant in catalog.constants["network_sim"][topology].items()}


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Accepted rate of every row; latency where the measured run had a steady state."""
    refused = [_refusal(rows, i) for i in range(len(rows))]
    accepted, latency, zero = (np.full(len(rows), np.nan) for _ in range(3))
    label = [""] * len(rows)
    for i, reason in enumerate(refused):
        if reason is None:
            values = constants_of(catalog, rows.text("topology")[i])
            accepted[i], latency[i], zero[i], saturation = replay(rows, i, values)
            calm = rows.numbers("injection_rate")[i] <= CALM_FRAC * saturation
            label[i] = "below 70 % of saturation" if calm else "above"
    measured = rows.numbers("plat_avg")
    steady = measured <= SATURATED_RATIO * zero
    return Predictions(
        {
            "accepted_flit_rate": (accepted, rows.numbers("accepted_flit_rate")),
            "plat_avg": (latency, np.where(steady, measured, np.nan)),
        },
        refused,
        {"class": label},
    )
