"""Replay a flit simulator's link and crossbar: accepted rate against buffers, latency against load.

Times are cycles, one flit each, so a rate of 1 is a flit per cycle. Laws come from the link model: the credit loop, the
bubble of an allocator that cannot look ahead, the window of a packet longer than the buffer, the queue at the source.
"""

import numpy as np
from numpy.typing import NDArray

from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.model.link.buffer import credit_frac, head_of_line_frac, packet_bubble_frac, uniform_credit_frac
from codesign.model.link.queueing import slotted_wait_ns, window_wait_ns
from codesign.model.link.transfer import windowed_ns
from codesign.units import Array

ROUTER_LOOP_CYCLES = 3.0  # credit handling of this simulator's router
PATH_CYCLES = 7.0  # two routers, injection and ejection
SAMPLE_CYCLES, ABORT_CYCLES = 50000.0, 3000.0  # sampling window and latency at which a run is given up


def credit_loop_cycles(rows: CaseRows) -> Array:
    """Round trip of a credit on one channel."""
    return 2.0 * rows.numbers("channel_latency") + ROUTER_LOOP_CYCLES + np.nan_to_num(rows.numbers("credit_delay"))


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Rows of kind ``booksim_credit`` (accepted rate) and ``booksim_link_latency`` (that and mean latency)."""
    needed = [rows.numbers(name) for name in ("channel_latency", "vc_buf_size", "injection_rate", "packet_size")]
    usable = np.all(np.isfinite(needed), axis=0)
    latency, buffer, injection, packet = (np.where(usable, column, 1.0) for column in needed)
    speculative = np.nan_to_num(rows.numbers("speculative"), nan=1.0)
    stages = 1.0 - speculative + np.nan_to_num(rows.numbers("routing_delay"))
    loop = np.where(usable, credit_loop_cycles(rows), 5.0)
    shared = loop + stages * np.minimum(1.0, buffer / packet)
    by_credit = np.asarray(credit_frac(buffer, shared))
    limit = np.minimum(packet_bubble_frac(packet, stages), by_credit)
    limit = np.where(_contended(rows), _crossbar(rows, catalog, buffer, by_credit), limit)
    accepted = np.minimum(injection, limit)
    refused = [None if ok else "channel, buffer, load or packet size is not stated" for ok in usable]
    metrics = {"accepted_flit_rate": (accepted, rows.numbers("accepted_flit_rate"))}
    if rows.kind == "booksim_link_latency":
        mean = _latency(latency, buffer, injection, packet, loop, limit)
        metrics = {"plat_avg": (mean, rows.numbers("plat_avg"))} | metrics
    return Predictions(metrics, refused)


def _contended(rows: CaseRows) -> NDArray[np.bool_]:
    """Random traffic over more than two nodes meets at a switch."""
    random = np.array([word == "uniform" for word in rows.text("traffic")])
    contended: NDArray[np.bool_] = random & (np.nan_to_num(rows.numbers("nodes")) > 2.0)
    return contended


def _crossbar(rows: CaseRows, catalog: Catalog, buffer: Array, by_credit: Array) -> Array:
    """Uniform traffic through a star of network cards: a node's traffic to itself never enters the switch."""
    fit = {name: constant.value for name, constant in catalog.constants["buffers"]["head_of_line"].items()}
    nodes = np.maximum(np.nan_to_num(rows.numbers("nodes"), nan=2.0), 2.0)
    head = np.asarray(head_of_line_frac(nodes - 1.0, 1.0, **fit)) * nodes / (nodes - 1.0)
    return np.asarray(uniform_credit_frac(by_credit, np.minimum(head, 1.0), buffer))


def _latency(latency: Array, buffer: Array, injection: Array, packet: Array, loop: Array, limit: Array) -> Array:
    """Zero-load time of the path, the packet itself, and its wait; beyond saturation the backlog of the run."""
    zero = latency + PATH_CYCLES - 1.0 + np.asarray(windowed_ns(packet, 1.0, buffer, loop))
    load = injection / limit
    calm = np.minimum(load, 0.999)
    line = np.asarray(slotted_wait_ns(np.minimum(injection, 0.999), packet, packet))
    windows = np.maximum(buffer / packet, 1.0)
    service = np.maximum(loop * np.maximum(packet / buffer, 1.0), packet)
    window = np.asarray(window_wait_ns(calm * np.minimum(service / (windows * packet / limit), 1.0), service, windows))
    growth = np.maximum(1.0 - 1.0 / np.maximum(load, 1e-9), 0.0)
    samples = np.ceil(ABORT_CYCLES / np.maximum(growth * SAMPLE_CYCLES, 1e-9) + 0.5)
    backlog = growth * SAMPLE_CYCLES * (samples - 0.5)
    mean: Array = zero + np.where(load < 1.0, np.maximum(line, window), backlog)
    return mean
