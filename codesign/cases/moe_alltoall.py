"""Replay exchange kernels of mixture-of-experts layers."""

import numpy as np

from codesign.cases.fit_alltoall import LATENCY_WORDS, Traffic, hidden_bytes, traffic_of
from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.fabrics import architecture_names, exchange_kernels, exchange_of, fabric_of, fabric_refusal
from codesign.model.fabric.collectives import inner_count, moe_exchange_ns
from codesign.units import Array


def _refusals(rows: CaseRows, traffic: Traffic, catalog: Catalog) -> list[str | None]:
    known = exchange_kernels(catalog)
    out: list[str | None] = []
    for i, name in enumerate(rows.text("accelerator")):
        reason = fabric_refusal(catalog, name)
        stated = (traffic.ranks_count[i], traffic.hidden_count[i], traffic.top_k_count[i], traffic.tokens_count[i])
        if reason is None and not np.all(np.isfinite(stated)):
            reason = "ranks, hidden size, experts per token or tokens are not stated"
        if reason is None and traffic.phase[i] not in {phase for _, phase in known}:
            reason = f"no law for the phase {traffic.phase[i]!r}"
        out.append(reason)
    return out


def nearest_kernel(kernel: str, phase: str, known: set[tuple[str, str]]) -> str:
    """The measured kernel a row's constants come from: its own, or the plain one of its class."""
    if (kernel, phase) in known:
        return kernel
    plain = "deepep_ll" if any(word in kernel for word in LATENCY_WORDS) else "deepep_ht"
    same = [name for name, p in sorted(known) if p == phase]
    return plain if (plain, phase) in known else same[0]


def _times_ns(rows: CaseRows, catalog: Catalog) -> Array:
    traffic, known = traffic_of(rows), exchange_kernels(catalog)
    kernels = [nearest_kernel(k, p, known) for k, p in zip(traffic.kernel, traffic.phase, strict=True)]
    parts = rows.text("accelerator")
    names = [architecture_names(catalog, part) for part in parts]
    exchange, narrow = exchange_of(catalog, names, kernels, traffic.phase)
    fabric = fabric_of(catalog, parts, "nccl_ring")
    fabric = type(fabric)(fabric.scale_up, fabric.scale_out, exchange, exchange)
    prepare = np.array([p == "prepare" for p in traffic.phase])
    experts = np.where(prepare, 1.0, traffic.top_k_count)
    nodes = np.maximum(np.nan_to_num(rows.numbers("node_num"), nan=1.0), 1.0)
    domain = np.where(nodes > 1.0, traffic.ranks_count / nodes, 1e9)
    ranks = traffic.ranks_count
    inner = inner_count(ranks, 1.0, np.minimum(domain, np.maximum(fabric.scale_up.domain_count, ranks / nodes)))
    sizes = traffic.tokens_count, hidden_bytes(traffic, narrow), experts, ranks, inner
    return np.asarray(moe_exchange_ns(*sizes, fabric))


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Latency of each row."""
    refused = _refusals(rows, traffic_of(rows), catalog)
    chosen = [i for i, reason in enumerate(refused) if reason is None]
    time = np.full(len(rows), np.nan)
    if chosen:
        time[chosen] = _times_ns(rows.pick(chosen), catalog) / 1e3
    return Predictions({"latency_us": (time, rows.numbers("latency_us"))}, refused)
