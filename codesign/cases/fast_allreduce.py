"""Replay all-reduce as serving engines call it."""

import numpy as np

from codesign.cases.fit_fast_kernels import engine_of
from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.fabrics import fabric_of, fabric_refusal
from codesign.model.fabric.collectives import all_reduce_ns, inner_count

UNKNOWN_ENGINE = "vllm"  # the kernel most engines copied


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Latency of each row."""
    message, ranks = rows.numbers("message_bytes"), rows.numbers("num_gpus")
    refused = [
        fabric_refusal(catalog, name) or (None if m >= 0 and n >= 1 else "the message or the ranks are not stated")
        for name, m, n in zip(rows.text("accelerator"), message, ranks, strict=True)
    ]
    chosen = [i for i, reason in enumerate(refused) if reason is None]
    time = np.full(len(rows), np.nan)
    if chosen:
        mine = rows.pick(chosen)
        words = list(zip(mine.text("kernel_source"), mine.text("backend"), mine.text("fw"), strict=True))
        engines = [engine_of(f"{k} {fw}", b) or UNKNOWN_ENGINE for k, b, fw in words]
        eager = ["eager" in f"{k} {b}".lower() for k, b, _ in words]
        fabric = fabric_of(catalog, mine.text("accelerator"), engines, eager=eager)
        inner = inner_count(ranks[chosen], 1.0, fabric.scale_up.domain_count)
        time[chosen] = all_reduce_ns(message[chosen], ranks[chosen], inner, fabric)
    return Predictions({"latency_us": (time / 1e3, rows.numbers("latency_us"))}, refused)
