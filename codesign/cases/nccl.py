"""Replay sweeps of the collective library inside one domain."""

import numpy as np

from codesign.cases.fit_collectives import LAWS
from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.fabrics import fabric_of, fabric_refusal
from codesign.model.fabric.collectives import inner_count
from codesign.units import Array

NAMES = {**LAWS, "all_to_all": LAWS["alltoall"], "allreduce": LAWS["all_reduce"], "allgather": LAWS["all_gather"]}


def _refusals(rows: CaseRows, catalog: Catalog) -> list[str | None]:
    sizes, ranks = rows.numbers("message_bytes"), rows.numbers("num_gpus")
    out: list[str | None] = []
    for name, operation, size, rank in zip(rows.text("accelerator"), rows.text("op_name"), sizes, ranks, strict=True):
        reason = fabric_refusal(catalog, name)
        if reason is None and operation not in NAMES:
            reason = f"no law for the operation {operation!r}"
        if reason is None and not (size >= 0 and rank >= 1):
            reason = "the message or the number of ranks is not stated"
        out.append(reason)
    return out


def _times_ns(rows: CaseRows, catalog: Catalog) -> Array:
    # the sweeps run rings: their large all-reduces stay below what in-switch reduction reaches
    fabric = fabric_of(catalog, rows.text("accelerator"), "nccl_ring")
    message, ranks = rows.numbers("message_bytes"), rows.numbers("num_gpus")
    inner = inner_count(ranks, 1.0, fabric.scale_up.domain_count)
    operation, out = np.array(rows.text("op_name")), np.full(len(rows), np.nan)
    for name, law in NAMES.items():
        out = np.where(operation == name, law(message, ranks, inner, fabric), out)
    return out


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Latency of each row."""
    refused = _refusals(rows, catalog)
    chosen = [i for i, reason in enumerate(refused) if reason is None]
    time = np.full(len(rows), np.nan)
    if chosen:
        time[chosen] = _times_ns(rows.pick(chosen), catalog) / 1e3
    return Predictions({"latency_us": (time, rows.numbers("latency_us"))}, refused)
