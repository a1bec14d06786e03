"""Replay collectives of an analytical network simulator: rings, switches, full meshes, in one and two dimensions."""

from dataclasses import dataclass

import numpy as np

from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.model.fabric.algorithms import (
    halving_pass_ns,
    message_step_ns,
    pipelined_ns,
    ring_exchange_ns,
    ring_load_count,
    ring_pass_ns,
)  # fmt: skip
from codesign.units import Array, Numeric

GBPS_PER_GIB_PER_S = 8.0 * 2.0**30 / 1e9
#: links between two neighbours of the algorithm
HOPS = {"Ring": 1.0, "FullyConnected": 1.0, "Switch": 2.0}
ALGORITHMS = ("ring", "direct", "halvingDoubling")
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
COPIES_PER_REDUCTION = 3.0  # two reads and a write of local memory
HALVING_COPIES = 1.5  # the halves that are kept
NO_MEMORY_LIMIT_GBPS = 1e9


@dataclass(frozen=True)
class Dimension:
    """One dimension of the network and the algorithm on it."""

    topology: str
    algorithm: str
    ranks: float
    rate_gbps: float
    hop_ns: float
    endpoint_ns: float
    memory_gbps: float
    congested: bool

    def step(self, message_bytes: float, hops: float | None = None) -> Numeric:
        """One message of the algorithm."""
        path = HOPS[self.topology] if hops is None else hops
        return message_step_ns(message_bytes, path, self.hop_ns, self.rate_gbps, float(self.congested))

    def reduce_ns(self, message_bytes: float, copies: float = COPIES_PER_REDUCTION) -> float:
        """Local memory time of adding one message."""
        return 0.0 if self.memory_gbps > NO_MEMORY_LIMIT_GBPS else copies * 8.0 * message_bytes / self.memory_gbps

    def pass_ns(self, share_bytes: float, reduces: bool) -> Numeric:
        """Reduce-scatter or all-gather; the share is what one rank keeps or gives."""
        added = self.reduce_ns(share_bytes) if reduces else 0.0
        if self.algorithm == "ring":
            return ring_pass_ns(self.step(share_bytes), self.endpoint_ns + added, self.ranks)
        if self.algorithm == "halvingDoubling":
            half = 0.5 * share_bytes * self.ranks
            added = self.reduce_ns(half, HALVING_COPIES) if reduces else 0.0
            start = HOPS[self.topology] * self.hop_ns
            return halving_pass_ns(self.step(half) - start + added, start + self.endpoint_ns, self.ranks)
        return self.direct_ns(share_bytes) + self.endpoint_ns + added

    def direct_ns(self, message_bytes: float) -> Numeric:
        """Every rank sends one message to every other at once."""
        bits, far = 8.0 * message_bytes, 0.5 * self.ranks
        if self.topology == "FullyConnected":
            return self.step(message_bytes)
        if not self.congested:
            return self.step(message_bytes, far if self.topology == "Ring" else None)
        busiest = ring_load_count(self.ranks) if self.topology == "Ring" else self.ranks
        return busiest * bits / self.rate_gbps + 2.0 * self.hop_ns

    def collective_ns(self, collective: str, size_bytes: float) -> float:
        """A whole collective on this dimension; the size is the buffer, for an all-gather the rank's own part."""
        share = size_bytes / self.ranks
        if collective == "reduce_scatter":
            return float(self.pass_ns(share, True))
        if collective == "all_gather":
            return float(self.pass_ns(size_bytes, False))
        if collective == "all_reduce":
            return float(self.pass_ns(share, True) + self.pass_ns(share, False))
        if self.algorithm == "ring":
            return float(ring_exchange_ns(self.step(share), self.endpoint_ns, self.ranks))
        return float(self.pass_ns(share, False))


Stage = tuple[int, float]


def stages(dimensions: list[Dimension], collective: str, size: float, nested: bool) -> list[Stage]:
    """Dimension and time of each stage of one round; nested: reduce-scatter down, all-gather back up."""
    out: list[Stage] = []
    order = range(len(dimensions))
    if collective == "all_gather":
        for d in reversed(order):
            out.append((d, dimensions[d].collective_ns(collective, size)))
            size *= dimensions[d].ranks
    elif collective == "reduce_scatter":
        for d in order:
            out.append((d, dimensions[d].collective_ns(collective, size)))
            size /= dimensions[d].ranks
    elif collective == "all_reduce" and nested:
        for d in order[:-1]:
            out.append((d, dimensions[d].collective_ns("reduce_scatter", size)))
            size /= dimensions[d].ranks
        out.append((order[-1], dimensions[-1].collective_ns("all_reduce", size)))
        for d in reversed(order[:-1]):
            out.append((d, dimensions[d].collective_ns("all_gather", size)))
            size *= dimensions[d].ranks
    else:
        out = [(d, dimensions[d].collective_ns(collective, size)) for d in order]
    return out


def rounds_ns(todo: list[Stage], rounds: float) -> float:
    """Time of several rounds: the busiest dimension works without a pause, the others fill and drain."""
    times = [t for _, t in todo]
    longest = sum(times)
    for d in {d for d, _ in todo}:
        mine = [i for i, (dimension, _) in enumerate(todo) if dimension == d]
        before, after = sum(times[: mine[0]]), sum(times[mine[-1] + 1 :])
        longest = max(longest, float(pipelined_ns(before, sum(times[i] for i in mine), after, rounds)))
    return longest


def _dimensions(rows: CaseRows, i: int) -> list[Dimension]:
    def split(name: str, mark: str) -> list[str]:
        return rows.text(name)[i].split(mark)

    topologies, algorithms = split("topology", "x"), split("algorithm", "|")
    ranks, rates, latencies = split("npus_per_dim", "x"), split("bandwidth_GBps_2p30", "|"), split("latency_ns", "|")
    return [
        Dimension(
            t, a, float(n), float(b) * GBPS_PER_GIB_PER_S, float(h), float(rows.text("endpoint_delay_ns")[i] or 0.0),
            8.0 * float(rows.text("local_mem_bw_GBps")[i] or 1e9), rows.text("backend")[i] == "congestion_aware",
        )
        for t, a, n, b, h in zip(topologies, algorithms, ranks, rates, latencies, strict=True)
    ]  # fmt: skip


def _refusal(rows: CaseRows, i: int) -> str | None:
    try:
        dimensions = _dimensions(rows, i)
    except ValueError:
        return "the dimensions, rates, latencies and algorithms do not match"
    if rows.text("collective")[i] not in COLLECTIVES:
        return f"no law for the collective {rows.text('collective')[i]!r}"
    unknown = [d.topology for d in dimensions if d.topology not in HOPS] or [
        d.algorithm for d in dimensions if d.algorithm not in ALGORITHMS
    ]
    if unknown:
        return f"no law for {unknown[0]!r}"
    sizes = rows.numbers("comm_size_bytes")[i], rows.numbers("dataset_splits")[i]
    return None if np.all(np.isfinite(sizes)) else "the size or the number of chunks is not stated"


def _time_ns(rows: CaseRows, i: int) -> float:
    chunks = rows.numbers("dataset_splits")[i]
    active = np.nan_to_num(rows.numbers("active_chunks_per_dim")[i], nan=1.0)
    nested = rows.text("collective_optimization")[i] == "localBWAware"
    size = float(rows.numbers("comm_size_bytes")[i]) / chunks
    return rounds_ns(stages(_dimensions(rows, i), rows.text("collective")[i], size, nested), np.ceil(chunks / active))


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:  # noqa: ARG001 - every adapter has the same form
    """Time of the slowest rank."""
    refused = [_refusal(rows, i) for i in range(len(rows))]
    time: Array = np.full(len(rows), np.nan)
    for i, reason in enumerate(refused):
        if reason is None:
            time[i] = _time_ns(rows, i)
    return Predictions({"time_ns_max": (time, rows.numbers("time_ns_max"))}, refused)
