"""Cycle simulations of one memory channel: achieved share of peak against pattern, mix, queue and refresh."""

from dataclasses import replace

import numpy as np

from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.errors import nearest
from codesign.memories import dram_device, memory_constants
from codesign.model.memory.controller import (
    Access,
    Controller,
    ControllerConstants,
    achieved_frac,
    interleave_frac,
)
from codesign.model.memory.dram import DramDevice
from codesign.units import Array, gbps_from_gbytes_per_s

#: Contiguous bytes on one channel by the address map named in the configuration. Column-low maps keep a stream on one
#: channel; maps that put bank groups or channels lowest change bank with every request; the shipped HBM2 file keeps
#: one row of 1 KiB together. Configurations of one channel have no interleave.
_INTERLEAVE_BYTES = {"colow": np.inf, "bgmap": 1.0, "_pc": 1.0, ".ini": 1024.0}
#: A write queue of a simulator that lets each bank queue hold eight transactions.
_BANK_QUEUE_COUNT = 8.0


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Achieved share of peak of every row; standards that the catalog does not know are refused."""
    kinds = [_kind(name) for name in rows.text("standard")]
    known = catalog.technologies("memory")
    refused = [_reason(kind, known, peak) for kind, peak in zip(kinds, rows.numbers("peak_GBps"), strict=True)]
    usable = [kind if reason is None else "hbm3" for kind, reason in zip(kinds, refused, strict=True)]
    access, controller, device, balance = setup(rows, usable, catalog)
    fraction = np.asarray(achieved_frac(access, controller, device, memory_constants(catalog))) * balance
    labels = {"class": ["ramulator" if "ramulator" in s.lower() else s.lower() for s in rows.text("sim")]}
    return Predictions({"fraction": (fraction, rows.numbers("fraction"))}, refused, labels)


def setup(rows: CaseRows, kinds: list[str], catalog: Catalog) -> tuple[Access, Controller, DramDevice, Array]:
    """The rows as inputs of the controller model, and the share of channels they keep busy."""
    channels = _filled(rows.numbers("channels"), 1.0)
    request_bytes = _filled(rows.numbers("bytes_per_req"), 32.0)
    queues = _queues(rows)
    device = _device(rows, kinds, catalog, channels)
    read = np.clip(_filled(rows.numbers("read_pct"), 100.0) / 100.0, 0.0, 1.0)
    outstanding = _filled(rows.numbers("outstanding"), 128.0 * channels)
    stream = np.array([word == "stream" for word in rows.text("pattern")], dtype=np.float64)
    pieces = np.maximum(_interleave_bytes(rows) / request_bytes, 1.0)
    run = _filled(rows.numbers("run_len"), 1.0)
    piece_bytes = np.minimum(np.where(stream > 0.5, pieces, 1.0), outstanding) * request_bytes
    busy = np.asarray(interleave_frac(outstanding * request_bytes, piece_bytes, channels, 1.0))
    busy = np.where((stream > 0.5) & (pieces > 1.0), busy, 1.0)
    access = Access(
        read_frac=read,
        run_count=np.minimum(run, pieces),
        runs_count=_filled(rows.numbers("concurrent_runs"), 1.0) / channels,
        outstanding_count=outstanding / (channels * busy),
        block_count=_filled(rows.numbers("rw_block"), 1.0),
        sequential_flag=stream,
    )
    controller = Controller(
        read_queue_count=queues[0],
        write_queue_count=queues[1],
        close_row_flag=np.array([policy == "AutoPre" for policy in rows.text("page_policy")], dtype=np.float64),
        refresh_flag=np.array([word != "NoRefresh" for word in rows.text("refresh")], dtype=np.float64),
        per_bank_refresh_flag=np.array([word == "PerBank" for word in rows.text("refresh")], dtype=np.float64),
    )
    return access, controller, device, busy


def _interleave_bytes(rows: CaseRows) -> Array:
    one = rows.numbers("channels")
    found = [
        next((size for word, size in _INTERLEAVE_BYTES.items() if word in cfg.lower()), np.inf)
        for cfg in rows.text("org_or_cfg")
    ]
    return np.where(one > 1.0, np.array(found), 1e12)


def constants_from(values: dict[str, float]) -> ControllerConstants:
    """Constants under trial by a fit."""
    return ControllerConstants(**values)


def _device(rows: CaseRows, kinds: list[str], catalog: Catalog, channels: Array) -> DramDevice:
    channel_gbps = gbps_from_gbytes_per_s(_filled(rows.numbers("peak_GBps"), 1.0)) / channels
    alone = np.array(["legacy" in name or "pseudo-channel" in name for name in rows.text("standard")])
    pseudo = np.array([catalog.value("memory", kind, "pseudo_channels_count") for kind in kinds])
    pseudo = np.where(alone, 1.0, pseudo)  # simulated as channels of their own
    device = dram_device(catalog, kinds, np.asarray(channel_gbps) / pseudo)
    burst_ns = 8.0 * _filled(rows.numbers("bytes_per_req"), 32.0) * pseudo / np.asarray(channel_gbps)
    return replace(device, pseudo_channels_count=pseudo, burst_ns=burst_ns)


def _queues(rows: CaseRows) -> tuple[Array, Array]:
    read = rows.numbers("read_buf")
    write = np.array([_leading(text) for text in rows.text("write_buf")])
    return _filled(read, 64.0 * _BANK_QUEUE_COUNT / 4.0), _filled(write, 32.0)


def _kind(standard: str) -> str:
    plain = standard.split(" ")[0].split("(")[0].strip().lower()
    return f"{plain}_legacy" if "legacy" in standard else plain


def _reason(kind: str, known: object, peak: float) -> str | None:
    names = list(known) if hasattr(known, "__iter__") else []
    if kind not in names:
        return f"no memory kind {kind!r} in the catalog{nearest(kind, names)}"
    return None if np.isfinite(peak) and peak > 0 else "peak_GBps is not a positive number"


def _filled(values: Array, default: float | Array) -> Array:
    return np.where(np.isfinite(values) & (values >= 0), values, default)


def _leading(text: str) -> float:
    head = text.split(" ")[0].split("/")[0]
    return float(head) if head.replace(".", "", 1).isdigit() else np.nan
