"""Replay of measured serving points: time per output token and time to the first token."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from codesign.cases.rows import CaseRows, Predictions, read_rows
from codesign.cases.serving_bind import ServingBatch, bind_rows
from codesign.cases.serving_rows import serving_rows
from codesign.catalog import Catalog
from codesign.engines import engine_of
from codesign.errors import CatalogError
from codesign.machines import accelerator_refusal
from codesign.model.workload.serving_search import at_layout
from codesign.resources import case_data
from codesign.transformers import transformer_from_rows
from codesign.units import Array, ms_from_ns

#: first day on which sweeps of the engine may use the model's extra prediction layer
FIRST_SPECULATION = "2026-01-14"
#: exporter names of one architecture: without, and with or without, the extra prediction layer
PLAIN_NAME, EITHER_NAME = "DeepSeek-V3", "DeepSeek-R1"
#: effect left where rows of both kinds were averaged
AVERAGED_FRAC = 0.4


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Time per output token and time to the first token of every row, or why not."""
    usable, batch, labels, refused = bound(rows, catalog)
    tpot, ttft = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    if batch is not None:
        point = at_layout(batch.system, batch.layout)
        tpot[usable], ttft[usable] = ms_from_ns(point.tpot_ns), ms_from_ns(point.ttft_ns)
    return Predictions(
        metrics={"tpot_ms": (tpot, rows.numbers("tpot_ms")), "ttft_ms": (ttft, rows.numbers("ttft_ms"))},
        refused=refused,
        labels={"class": labels},
    )


def bound(rows: CaseRows, catalog: Catalog) -> tuple[list[int], ServingBatch | None, list[str], list[str | None]]:
    """Indices of the rows that can be modelled, their structs, the class of every row, and the refusals."""
    repaired = serving_rows(rows)
    transformer, unknown = transformer_from_rows(rows)
    refused: list[str | None] = [
        first or second or third or fourth
        for first, second, third, fourth in zip(
            [accelerator_refusal(catalog, name) for name in rows.text("accelerator")],
            unknown,
            [_engine_refusal(catalog, name) for name in rows.text("backend")],
            repaired.refused,
            strict=True,
        )
    ]
    experts = np.broadcast_to(transformer.experts_count, (len(rows),))
    labels = [
        "disagg" if pooled else ("moe_agg" if count > 0 else "dense_agg")
        for pooled, count in zip(repaired.disaggregated > 0, experts, strict=True)
    ]
    usable = [i for i, reason in enumerate(refused) if reason is None]
    if not usable:
        return usable, None, labels, refused
    chosen = rows.pick(usable)
    repaired = serving_rows(chosen)
    engines = [engine_of(catalog, name) for name in chosen.text("backend")]
    gain = catalog.constant("serving_tpot", "all", "speculation_ratio") - 1.0
    ratio = 1.0 + speculation_share(chosen, engines) * gain
    shapes = transformer_from_rows(chosen)[0]
    return usable, bind_rows(catalog, chosen, repaired, shapes, engines, ratio), labels, refused


def _engine_refusal(catalog: Catalog, name: str) -> str | None:
    try:
        engine_of(catalog, name)
    except CatalogError as problem:
        return str(problem)
    return None


def speculation_share(rows: CaseRows, engines: Sequence[str]) -> Array:
    """How much of the effect of the extra prediction layer a row has, as its name and dates tell.

    The exporter writes one architecture under two names: one for runs without the extra layer, one for either. A row of
    the second name, of the engine that offers it in aggregated sweeps, from the first day on and of no day on which the
    first name appears, used it. Two days of both kinds were averaged. Only names and dates are read.
    """
    plain = plain_days()
    share = np.zeros(len(rows))
    cells = zip(
        rows.text("model"), engines, rows.text("mode"),
        rows.text("measured_first"), rows.text("measured_last"), strict=True,
    )  # fmt: skip
    for i, (model, engine, mode, first, last) in enumerate(cells):
        if model != EITHER_NAME or engine != "trtllm" or mode != "agg":
            continue
        used = [day >= FIRST_SPECULATION and day not in plain for day in (first or last, last or first)]
        share[i] = 1.0 if all(used) else AVERAGED_FRAC if any(used) else 0.0
    return share


@cache
def plain_days() -> frozenset[str]:
    """Days on which the packaged rows of the plain name were measured with the engine that offers the extra layer."""
    days: set[str] = set()
    for rows in read_rows(case_data() / "serving.csv"):
        cells = zip(rows.text("model"), rows.text("backend"), rows.text("mode"), strict=True)
        for i, (model, backend, mode) in enumerate(cells):
            if model == PLAIN_NAME and backend == "trtllm" and mode == "agg":
                days |= {rows.text("measured_first")[i], rows.text("measured_last")[i]}
    return frozenset(days - {""})
