"""Replay published sweeps of collectives: one domain, racks, several nodes, expert exchange."""

import re
from collections.abc import Sequence

import numpy as np

from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.fabrics import HOST_COUNT, architecture_names, fabric_of, fabric_refusal, wire_bytes_per_value
from codesign.model.fabric.collectives import (
    Fabric,
    all_gather_ns,
    all_reduce_ns,
    all_to_all_ns,
    broadcast_ns,
    distinct_ranks_count,
    inner_count,
    moe_exchange_ns,
    point_to_point_ns,
    reduce_scatter_ns,
)  # fmt: skip
from codesign.units import Array

#: first words of the collective column -> law
LAWS = {
    "all_reduce": all_reduce_ns,
    "all_gather": all_gather_ns,
    "reduce_scatter": reduce_scatter_ns,
    "alltoall": all_to_all_ns,
    "all_to_all": all_to_all_ns,
    "broadcast": broadcast_ns,
}
EXCHANGES = ("dispatch", "combine")
VALUE_BYTES = {"fp8": 1.03125, "bf16": 2.0, "bfloat16": 2.0, "fp16": 2.0, "nvfp4": 0.5625, "fp4": 0.5625, "": 2.0}
#: links of one direction along one axis of a torus, over all links of the accelerator
AXIS_FRAC = {"2D torus": 1.0 / 4.0, "3D torus": 1.0 / 6.0}


def _word(collective: str) -> str:
    return collective.split(" ")[0].split("(")[0]


def _refusals(rows: CaseRows, catalog: Catalog) -> list[str | None]:
    out: list[str | None] = []
    sizes, tokens, ranks = rows.numbers("msg_bytes"), rows.numbers("tokens"), rows.numbers("n_accel")
    for i in range(len(rows)):
        word = _word(rows.text("collective")[i])
        reason = fabric_refusal(catalog, rows.text("accelerator")[i])
        if reason is None and word not in (*LAWS, *EXCHANGES, "sendrecv"):
            reason = f"no law for the collective {rows.text('collective')[i]!r}"
        if reason is None and not ranks[i] >= 1:
            reason = "the number of accelerators is not stated"
        if reason is None and not np.isfinite(tokens[i] if word in EXCHANGES else sizes[i]):
            reason = "the size of the message is not stated"
        out.append(reason or _network_refusal(rows, i, catalog))
    return out


def _network_refusal(rows: CaseRows, i: int, catalog: Catalog) -> str | None:
    nodes = rows.numbers("n_nodes")[i]
    if not nodes > 1 or rows.text("scale_out")[i]:
        return None
    facts = catalog.technologies("accelerators")[rows.text("accelerator")[i]]
    domain = facts["scale_up_domain_count"].value if "scale_up_domain_count" in facts else 1.0
    if domain > HOST_COUNT and domain >= rows.numbers("n_accel")[i]:
        return None
    return "several nodes, and neither the network between them nor its rate is stated"


def _library(library: str, algorithm: str) -> str:
    low = library.lower()
    if "vllm" in low:
        return "vllm_tuned" if "tuned" in low else "vllm"
    if "sglang" in low or "trtllm" in low or "tensorrt" in low:
        return "sglang" if "sglang" in low else "trtllm"
    plain = ("ring" in algorithm.lower() or "tree" in algorithm.lower()) and "nvlstree" not in algorithm.lower()
    return "nccl_ring" if plain else "nccl"


def _network(scale_out: str) -> str:
    low = scale_out.lower()
    return "efa" if "efa" in low else "tcpxo" if "tcpx" in low else "infiniband"


def _nic_gbps(scale_out: str, per_node: float) -> float:
    """Rate per accelerator printed in the network column, or NaN: '8x400Gb per node', '400Gb per GPU'."""
    found = re.search(r"(?:(\d+)\s*x\s*)?(\d+(?:\.\d+)?)\s*Gb", scale_out)
    if not found:
        return np.nan
    count = float(found[1] or 1.0)
    shared = "per node" in scale_out
    return count * float(found[2]) / (per_node if shared else 1.0)


def _domains(rows: CaseRows) -> Array:
    """Accelerators per scale-up domain: a node where a network is named, else the part's own domain (NaN)."""
    ranks, nodes = rows.numbers("n_accel"), np.maximum(np.nan_to_num(rows.numbers("n_nodes"), nan=1.0), 1.0)
    named = np.array([bool(word) for word in rows.text("scale_out")])
    return np.where(named & (nodes > 1.0), ranks / nodes, np.nan)


def _exchange_word(library: str, version: str, collective: str) -> str:
    if "low latency" in collective:
        return "deepep_ll"
    return "deepep_v2_context" if version.upper().startswith("V2") and "deepep" in library.lower() else "deepep_ht"


def fabric_rows(rows: CaseRows, catalog: Catalog) -> Fabric:
    """Fabric columns of the rows."""
    per_node = np.nan_to_num(rows.numbers("accel_per_node"), nan=8.0)
    texts = [rows.text(n) for n in ("library", "algorithm", "scale_out", "lib_version", "collective")]
    libraries = [_library(library, algorithm) for library, algorithm, *_ in zip(*texts, strict=True)]
    networks = [_network(word) for word in texts[2]]
    kernels = [_exchange_word(library, a or v, c) for library, a, _, v, c in zip(*texts, strict=True)]
    nics = [_nic_gbps(word, n) for word, n in zip(texts[2], per_node, strict=True)]
    # serving engines time captured graphs, libraries their own launches
    eager = [not word.startswith("vllm") for word in libraries]
    return fabric_of(
        catalog, rows.text("accelerator"), libraries, networks, kernels, eager, _domains(rows).tolist(), nics
    )


def times_ns(rows: CaseRows, catalog: Catalog) -> tuple[Array, list[str | None]]:
    """Model time of each row and the reasons for those refused (NaN)."""
    refused = _refusals(rows, catalog)
    time = np.full(len(rows), np.nan)
    chosen = [i for i, reason in enumerate(refused) if reason is None]
    if chosen:
        time[chosen] = _chosen_ns(rows.pick(chosen), catalog)
    return time, refused


def _chosen_ns(rows: CaseRows, catalog: Catalog) -> Array:
    fabric = fabric_rows(rows, catalog)
    ranks, message = rows.numbers("n_accel"), np.nan_to_num(rows.numbers("msg_bytes"))
    inner = inner_count(ranks, 1.0, fabric.scale_up.domain_count)
    words = np.array([_word(c) for c in rows.text("collective")])
    out = np.full(len(rows), np.nan)
    for word, law in LAWS.items():
        out = np.where(words == word, law(message, ranks, inner, fabric), out)
    out = np.where(words == "sendrecv", point_to_point_ns(message, 0.0, fabric), out)
    exchange = moe_exchange_ns(*_exchange_sizes(rows, catalog), ranks, inner, fabric, 1.0 * (words == "combine"))
    out = np.where(np.isin(words, EXCHANGES), exchange, out)
    return _along_an_axis(rows, out, fabric)


def _exchange_sizes(rows: CaseRows, catalog: Catalog) -> tuple[Array, Array, Array]:
    kernel = [
        _exchange_word(library, a or v, c)
        for c, library, v, a in zip(
            rows.text("collective"), rows.text("library"), rows.text("lib_version"), rows.text("algorithm"), strict=True
        )
    ]
    width = [
        wire_bytes_per_value(catalog, a, k, _word(c), VALUE_BYTES.get(d, 2.0)) if _word(c) in EXCHANGES else 2.0
        for a, k, c, d in zip(
            rows.text("accelerator"), kernel, rows.text("collective"), rows.text("dispatch_prec"), strict=True
        )
    ]
    hidden = np.nan_to_num(rows.numbers("hidden"), nan=7168.0) * np.array(width)
    return np.nan_to_num(rows.numbers("tokens")), hidden, np.nan_to_num(rows.numbers("topk"), nan=8.0)


def _along_an_axis(rows: CaseRows, time_ns: Array, fabric: Fabric) -> Array:
    """A torus gathers along one axis: one link each way, and the message column counts both ways."""
    axis = np.array([_axis_frac(word) for word in rows.text("scale_up")])
    link = np.asarray(fabric.scale_up.rate_gbps) * np.where(axis > 0.0, axis, 1.0)
    wire = 0.5 * np.nan_to_num(rows.numbers("msg_bytes"))
    up = fabric.scale_up
    steps = np.nan_to_num(rows.numbers("accel_per_node"), nan=4.0) - 1.0
    gathered = up.launch_ns + up.hop_ns * steps + 8.0 * wire / link
    return np.where(axis > 0.0, gathered, time_ns)


def _axis_frac(scale_up: str) -> float:
    return next((frac for word, frac in AXIS_FRAC.items() if word in scale_up), 0.0)


def bus_factor(words: Sequence[str], ranks: Array) -> Array:
    """Bus bandwidth over algorithm bandwidth, as nccl-tests defines it."""
    twice = np.array([2.0 if _word(w) == "all_reduce" else 1.0 for w in words])
    alone = np.isin([_word(w) for w in words], ("sendrecv", "broadcast"))
    return np.asarray(np.where(alone, 1.0, twice * (ranks - 1.0) / ranks))


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Times, else bus bandwidths, else the printed value."""
    time, refused = times_ns(rows, catalog)
    ranks, message, collective = rows.numbers("n_accel"), rows.numbers("msg_bytes"), rows.text("collective")
    gbytes_per_s = message / time
    busbw = bus_factor(collective, ranks) * gbytes_per_s
    logical = _logical_bytes(rows) / time
    has_time = np.isfinite(rows.numbers("time_us"))
    has_bus = np.isfinite(rows.numbers("busbw_GBs")) & ~has_time
    is_bus = np.array(["busbw" in word for word in rows.text("metric")])
    exchange = np.isin([_word(c) for c in collective], EXCHANGES)
    value = np.where(exchange, logical, np.where(is_bus, busbw, gbytes_per_s))
    nan = np.full(len(rows), np.nan)
    return Predictions(
        {
            "time_us": (time / 1e3, rows.numbers("time_us")),
            "busbw_GBs": (busbw, np.where(has_bus, rows.numbers("busbw_GBs"), nan)),
            "value": (value, np.where(has_time | has_bus, nan, rows.numbers("value"))),
        },
        refused,
    )


def _logical_bytes(rows: CaseRows) -> Array:
    """What an expert exchange counts: a token once per rank (one domain) or once per domain, its own included."""
    nodes = np.maximum(np.nan_to_num(rows.numbers("n_nodes"), nan=1.0), 1.0)
    groups = np.where(nodes > 1.0, nodes, rows.numbers("n_accel"))
    width = np.array([VALUE_BYTES.get(word, 2.0) for word in rows.text("dispatch_prec")])
    copies = distinct_ranks_count(np.nan_to_num(rows.numbers("topk"), nan=8.0), groups)
    return np.asarray(rows.numbers("tokens") * rows.numbers("hidden") * width * copies)


__all__ = ["architecture_names", "bus_factor", "fabric_rows", "predict", "times_ns"]
