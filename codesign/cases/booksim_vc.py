"""Replay a flit simulator's virtual channels: links, crossbars with head-of-line blocking, small networks."""

import numpy as np

from codesign.cases import booksim_topology
from codesign.cases.booksim_link import ROUTER_LOOP_CYCLES
from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.model.link.buffer import credit_frac, head_of_line_frac
from codesign.units import Array

FLY_LOOP_CYCLES = 4.0  # credit loop of the one-stage switch's channels
HANDOVER_CYCLES = 4.0  # from the last flit of a packet to the first of the next on another channel
MATCHING_LOSS_FRAC = 0.04  # one allocation pass a cycle, for each doubling of the ports
NETWORKS = ("mesh", "torus", "fattree")


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Rows of kind ``booksim_vc``: accepted rate of all; latency of the latency runs."""
    kinds = rows.text("topology")
    accepted, latency = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    refused: list[str | None] = [
        None if kind in ("anynet", "fly", *NETWORKS) else f"no law for the topology {kind!r}" for kind in kinds
    ]
    for names, law in ((("anynet",), _links), (("fly",), _crossbars)):
        chosen = [i for i, kind in enumerate(kinds) if kind in names]
        if chosen:
            accepted[chosen] = law(rows.pick(chosen), catalog)
    chosen = [i for i, kind in enumerate(kinds) if kind in NETWORKS]
    if chosen:
        part = _with_concentration(rows.pick(chosen))
        found = booksim_topology.predict(part, catalog)
        accepted[chosen] = found.metrics["accepted_flit_rate"][0]
        latency[chosen] = found.metrics["plat_avg"][0]
        for place, reason in zip(chosen, found.refused, strict=True):
            refused[place] = reason
    runs = np.array([word == "latency" for word in rows.text("sim_type")])
    steady = runs & (rows.numbers("stable") == 1.0) & np.isfinite(latency)
    return Predictions(
        {
            "accepted_flit_rate": (accepted, rows.numbers("accepted_flit_rate")),
            "plat_avg": (latency, np.where(steady, rows.numbers("plat_avg"), np.nan)),
        },
        refused,
    )


def _with_concentration(rows: CaseRows) -> CaseRows:
    """These sweeps have one node at each router and do not say so."""
    return CaseRows(rows.file, rows.kind, rows.columns | {"c": ["1"] * len(rows)})


def _sizes(rows: CaseRows) -> tuple[Array, Array, Array, Array]:
    return (
        np.nan_to_num(rows.numbers("num_vcs"), nan=1.0),
        np.nan_to_num(rows.numbers("vc_buf_size"), nan=8.0),
        np.nan_to_num(rows.numbers("packet_size"), nan=1.0),
        np.minimum(np.nan_to_num(rows.numbers("injection_rate"), nan=1.0), 1.0),
    )


def _channel_latency(rows: CaseRows) -> Array:
    """Channel latency, which these rows carry in their case name as link_L16."""
    words = [name.rpartition("_L")[2] for name in rows.text("case_name")]
    return np.array([float(word) if word.isdigit() else 1.0 for word in words])


def _links(rows: CaseRows, catalog: Catalog) -> Array:
    """A credit loop over all channels; a packet longer than its channel's buffer waits for that channel's own credits.

    The source sends one packet at a time: its last rounds lie in two buffers and overlap with the next packet. Not
    modelled: rounds that meet two packets later, and a channel handed to a packet before its credits are back.
    """
    del catalog
    channels, buffer, packet, injection = _sizes(rows)
    loop = 2.0 * _channel_latency(rows) + ROUTER_LOOP_CYCLES
    pooled = np.asarray(credit_frac(channels * buffer, loop))
    whole = np.maximum(np.ceil(packet / buffer) - 2.0, 0.0)  # rounds over when the last flit but a buffer leaves
    cycles = loop * whole + packet - buffer * (1.0 + whole) + _shared_cycles(buffer, loop) + HANDOVER_CYCLES
    alone = np.minimum(1.0, buffer / loop)
    several = packet / np.maximum(cycles, packet + 1.0)
    limit = np.where((packet > buffer) & (channels > 1.0), np.minimum(pooled, np.maximum(several, alone)), pooled)
    return np.asarray(np.minimum(injection, limit))


def _shared_cycles(buffer: Array, loop: Array) -> Array:
    """Cycles that the last round of a packet takes from the first round of the next where the two meet on the line.

    Both rounds of b flits take turns, so each is drawn out to b + s cycles. The last round ends T - h cycles behind the
    start of the next packet (T the credit loop, h the handover), and of its b flits the part (T - h) / (b + s) is still
    to come: s (b + s) = b (T - h), s no more than b. They meet if the first round is not over when the last begins,
    T < 2 b + h.
    """
    shared = np.sqrt(0.25 * buffer * buffer + buffer * np.maximum(loop - HANDOVER_CYCLES, 0.0)) - 0.5 * buffer
    return np.where(loop < 2.0 * buffer + HANDOVER_CYCLES, np.minimum(shared, buffer), 0.0)


def _crossbars(rows: CaseRows, catalog: Catalog) -> Array:
    """Head-of-line blocking lifted by virtual channels; a long packet in a short buffer is held by its credits."""
    channels, buffer, packet, injection = _sizes(rows)
    fit = {name: constant.value for name, constant in catalog.constants["buffers"]["head_of_line"].items()}
    ports = np.maximum(np.nan_to_num(rows.numbers("k"), nan=2.0), 1.0)
    head = np.asarray(head_of_line_frac(ports, channels, **fit))
    queues = (rows.numbers("noq") == 1.0) & (channels >= ports)  # one queue for each output: no blocking but matching
    head = np.where(queues, 1.0 - MATCHING_LOSS_FRAC * np.log2(np.maximum(ports, 1.0)), head)
    own = np.where((packet > buffer) & (channels > 1.0), credit_frac(buffer, FLY_LOOP_CYCLES), 1.0)
    return np.asarray(np.minimum(injection, np.minimum(head, own)))
