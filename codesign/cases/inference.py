"""Replay of published inference tables: static batches, full load, closed loops."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from codesign.cases.rows import CaseRows, Predictions
from codesign.cases.serving_bind import ServingBatch, bind_tables
from codesign.catalog import Catalog
from codesign.engines import engine_of
from codesign.errors import CatalogError
from codesign.machines import accelerator_refusal
from codesign.model.workload.offline import OfflinePoint, full_load, static_batch
from codesign.model.workload.serving_search import at_layout
from codesign.transformers import transformer_from_rows
from codesign.units import Array, ms_from_ns, s_from_ns

#: what a mode is replayed as, by a word in it, first one found wins
_MODES = {"static batch": "static", "low latency": "static", "single stream": "static", "offline": "full",
          "aggregated serving": "loop"}  # fmt: skip
#: metrics that are not the output of one engine at one load
_FOREIGN = ("mfu", "input tok")


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """The value of every row in its own unit, or why not."""
    out = np.full(len(rows), np.nan)
    refused = refusals(rows, catalog)
    for way in _REPLAYS:
        mine = [i for i, reason in enumerate(refused) if reason is None and _way(rows, i) == way]
        if mine:
            chosen = rows.pick(mine)
            values, lacking = replayed(chosen, bind_tables(catalog, chosen, engines_of(chosen, catalog)), way)
            out[mine] = values
            for i, excess in zip(mine, np.broadcast_to(lacking, (len(mine),)), strict=True):
                if excess > 0:
                    refused[i] = f"the model and one sequence need {100 * excess:.0f} % more memory than a rank has"
    return Predictions(metrics={"value": (out, rows.numbers("value"))}, refused=refused)


def refusals(rows: CaseRows, catalog: Catalog) -> list[str | None]:
    """Why rows cannot be replayed, None where they can."""
    own = [_refusal(rows, i, catalog) for i in range(len(rows))]
    return [first or second for first, second in zip(own, transformer_from_rows(rows)[1], strict=True)]


def engines_of(rows: CaseRows, catalog: Catalog) -> list[str]:
    """Entries of engines.yaml of rows whose engines are known."""
    return [engine_of(catalog, name) for name in rows.text("engine")]


def ways_of(rows: CaseRows) -> list[str | None]:
    """How each row is replayed: static, full or loop."""
    return [_way(rows, i) for i in range(len(rows))]


def replayed(rows: CaseRows, batch: ServingBatch, way: str) -> tuple[Array, Array]:
    """Values of rows of one way in their own units, and what a rank lacks of memory, over its memory."""
    return _REPLAYS[way](rows, batch)


def _way(rows: CaseRows, i: int) -> str | None:
    mode = rows.text("mode")[i].lower()
    return next((way for word, way in _MODES.items() if word in mode), None)


def _refusal(rows: CaseRows, i: int, catalog: Catalog) -> str | None:
    way, unit = _way(rows, i), rows.text("unit")[i]
    metric = rows.text("metric")[i].lower()
    numbers = {name: rows.numbers(name)[i] for name in ("isl", "osl", "tp", "batch", "concurrency", "num_requests")}
    if way is None or any(word in metric for word in _FOREIGN) or unit not in _UNITS:
        return f"{rows.text('mode')[i]!r} of {rows.text('metric')[i]!r} is not replayed"
    reason = accelerator_refusal(catalog, rows.text("accelerator")[i])
    if reason:
        return reason
    try:
        engine_of(catalog, rows.text("engine")[i])
    except CatalogError as problem:
        return str(problem)
    needed = ["isl", "osl", "tp"] + {"static": ["batch"], "full": [], "loop": ["concurrency"]}[way]
    missing = [name for name in needed if not numbers[name] > 0]
    return f"missing: {', '.join(missing)}" if missing else None


def _static(rows: CaseRows, batch: ServingBatch) -> tuple[Array, Array]:
    s = batch.system
    point = static_batch(
        s.transformer, s.job, batch.layout.decode, s.kernels, s.fabric, s.software, rows.numbers("batch")
    )
    return _values(rows, point.total_ns, point), np.asarray(point.memory_excess_frac)


def _full(rows: CaseRows, batch: ServingBatch) -> tuple[Array, Array]:
    """Requests not stated: enough that the number of waves does not matter."""
    s = batch.system
    asked, limit = rows.numbers("num_requests"), s.software.batch_limit_count
    requests = np.where(asked > 0, asked, 16.0 * limit * batch.layout.decode.dp_count)
    point = full_load(s.transformer, s.job, batch.layout.decode, s.kernels, s.fabric, s.software, requests, limit)
    return _values(rows, point.total_ns, point), np.asarray(point.memory_excess_frac)


def _loop(rows: CaseRows, batch: ServingBatch) -> tuple[Array, Array]:
    layout = replace(batch.layout, users_count=rows.numbers("concurrency"))
    point = at_layout(batch.system, layout)
    rate = np.asarray(point.output_tokens_per_s * point.accelerators_count)
    return _in_units(rows, np.asarray(point.tpot_ns), rate), np.asarray(point.memory_excess_frac)


def _values(rows: CaseRows, total_ns: object, point: OfflinePoint) -> Array:
    per_token = np.array(["per token" in m or "per output token" in m for m in rows.text("metric")])
    time_ns = np.where(per_token, point.step_ns, np.asarray(total_ns))
    return _in_units(rows, time_ns, np.asarray(point.output_tokens_per_s))


def _in_units(rows: CaseRows, time_ns: Array, tokens_per_s: Array) -> Array:
    copies = np.where(rows.numbers("replicas") > 1, rows.numbers("replicas"), 1.0)
    accelerators = np.where(rows.numbers("n_accel") > 0, rows.numbers("n_accel"), 1.0)
    shape = (len(rows),)
    rate = np.broadcast_to(tokens_per_s, shape) * copies
    columns = (np.broadcast_to(time_ns, shape), rate, rate / accelerators)
    which = [_UNITS[unit] for unit in rows.text("unit")]
    return np.array([float(write(columns[kind][i])) for i, (kind, write) in enumerate(which)])


#: unit of a row -> which of (time, rate of the system, rate of one accelerator) it is, and how it is written
_UNITS: dict[str, tuple[int, Callable[[float], Any]]] = {
    "ms": (0, ms_from_ns),
    "s": (0, s_from_ns),
    "tok/s": (1, float),
    "tok/s/GPU": (2, float),
}
_REPLAYS: dict[str, Callable[[CaseRows, ServingBatch], tuple[Array, Array]]] = {
    "static": _static,
    "full": _full,
    "loop": _loop,
}
