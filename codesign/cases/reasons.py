"""One sentence for a case that the model misses: what its predicted time consists of, and what the row does not say.

Sentences come from the row and from the model's own parts by the same rules for every case; none is written by hand.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from codesign.cases import collective, inference, serving, training
from codesign.cases.rows import CaseRows
from codesign.cases.serving_bind import bind_tables
from codesign.catalog import Catalog
from codesign.model.workload.offline import full_load, static_batch
from codesign.model.workload.serving_search import at_layout
from codesign.software import training_constants
from codesign.units import Array

Shares = dict[str, float]

#: cells an adapter fills in by a rule where they are empty
FILLED: Mapping[str, tuple[str, ...]] = {
    "training": ("mbs", "vp", "recompute", "sharding", "fw_version", "dp"),
    "serving": ("measured_first",),
    "inference": ("num_requests", "kv_prec", "engine_version"),
    "collective": ("lib_version", "algorithm"),
}
WORDS = {
    "gemm": "matrix products", "attention": "the attention core", "head": "embedding and head",
    "recompute": "recomputation", "elementwise": "element-wise passes", "tensor": "exposed tensor collectives",
    "context": "exposed context exchange", "expert": "exposed expert exchange", "launch": "kernel launches",
    "bubble": "the pipeline bubble", "transfer": "stage hand-over", "data": "exposed data collectives",
    "optimizer": "the optimizer step", "offload": "offloading", "fixed": "fixed work of a step",
    "straggler": "the slowest rank", "projection": "projections", "core": "the attention core",
    "dense": "dense layers", "experts": "experts", "tensor_parallel": "tensor collectives",
    "expert_parallel": "expert exchange", "pipeline": "pipeline hand-over", "gap": "gaps between kernels",
    "host": "host work", "interference": "prompts of other users", "prompt": "the own prompt",
    "queue": "waiting for other prompts", "step": "decode steps under way", "slot": "waiting for room in the cache",
    "start": "request handling",
}  # fmt: skip


def reasons(rows: CaseRows, metrics: Sequence[str], catalog: Catalog) -> list[str]:
    """A sentence per row; ``metrics`` names the compared column of each."""
    shares = _SHARES[rows.kind](rows, metrics, catalog) if rows.kind in _SHARES and len(rows) else [{}] * len(rows)
    return [_sentence(rows, i, metric, shares[i]) for i, metric in enumerate(metrics)]


def _sentence(rows: CaseRows, i: int, metric: str, shares: Shares) -> str:
    said = []
    if shares:
        most = [name for name in sorted(shares, key=lambda part: -shares[part])[:2] if shares[name] > 0.1]
        what = "time" if metric == "value" else metric.rsplit("_", 1)[0].replace("_", " ")
        said.append(f"predicted {what} is " + " and ".join(f"{100 * shares[n]:.0f} % {_word(n)}" for n in most))
    missing = [name for name in FILLED.get(rows.kind, ()) if not rows.text(name)[i].strip()]
    missing = [name for name in missing if not (name == "vp" and rows.numbers("pp")[i] <= 1.0)]
    if missing:
        said.append(f"the row does not say {', '.join(missing)}")
    if rows.numbers("repeats")[i] == 1.0:
        said.append("measured once")
    if graded := re.search(r"graded [BC]: ([^;]+)", rows.text("notes")[i]):
        said.append(graded[1].strip().rstrip("."))
    text = "; ".join(said) or "the row states every input"
    return f"{text[0].upper()}{text[1:]}."


def _word(part: str) -> str:
    return WORDS.get(part, part.replace("_", " "))


def _per_row(parts: Mapping[str, Array | float], count: int) -> list[Shares]:
    columns = {name: np.broadcast_to(np.asarray(part, dtype=float), (count,)) for name, part in parts.items()}
    totals = sum((columns[name] for name in columns), np.zeros(count))
    return [{name: float(c[i] / totals[i]) for name, c in columns.items() if totals[i] > 0} for i in range(count)]


def _fields_of(struct: Any, prefix: str = "") -> dict[str, Any]:
    names = [f.name for f in fields(struct) if f.name.startswith(prefix) and f.name.endswith("_ns")]
    return {n.removeprefix(prefix).removesuffix("_ns"): getattr(struct, n) for n in names if n != f"{prefix}ns"}


def _training(rows: CaseRows, metrics: Sequence[str], catalog: Catalog) -> list[Shares]:
    del metrics
    step = training.run(training.bind(rows, catalog), training_constants(catalog), catalog)
    memory = ["memory" in metric for metric in rows.text("metric")]
    shares = _per_row(_fields_of(step.parts), len(rows))
    return [{} if stored else share for stored, share in zip(memory, shares, strict=True)]


def _serving(rows: CaseRows, metrics: Sequence[str], catalog: Catalog) -> list[Shares]:
    usable, batch, *_ = serving.bound(rows, catalog)
    out: list[Shares] = [{}] * len(rows)
    if batch is None:
        return out
    point = at_layout(batch.system, batch.layout)
    each = {name: _per_row(_fields_of(point, f"{name}_"), len(usable)) for name in ("tpot", "ttft")}
    for at, i in enumerate(usable):
        out[i] = each[metrics[i].removesuffix("_ms")][at]
    return out


def _inference(rows: CaseRows, metrics: Sequence[str], catalog: Catalog) -> list[Shares]:
    """Prompts against steps of answers; a closed loop is left to its serving twin."""
    del metrics
    out: list[Shares] = [{}] * len(rows)
    ways = inference.ways_of(rows)
    for way in ("static", "full"):
        mine = [i for i, name in enumerate(ways) if name == way]
        if mine:
            for i, share in zip(mine, _offline(rows.pick(mine), way, catalog), strict=True):
                out[i] = share
    return out


def _offline(rows: CaseRows, way: str, catalog: Catalog) -> list[Shares]:
    batch = bind_tables(catalog, rows, inference.engines_of(rows, catalog))
    s, pool = batch.system, batch.layout.decode
    shared = (s.transformer, s.job, pool, s.kernels, s.fabric, s.software)
    if way == "static":
        point = static_batch(*shared, rows.numbers("batch"))
        prompts = np.asarray(point.prompt_ns)
    else:
        limit = s.software.batch_limit_count
        asked = rows.numbers("num_requests")
        point = full_load(*shared, np.where(asked > 0, asked, 16.0 * limit * pool.dp_count), limit)
        prompts = np.asarray(point.prompt_ns * point.batch_count / pool.dp_count)
    steps = np.asarray(point.step_ns) * rows.numbers("osl")
    return _per_row({"prompts": prompts, "decode steps": steps}, len(rows))


def _collective(rows: CaseRows, metrics: Sequence[str], catalog: Catalog) -> list[Shares]:
    """Start-up is the predicted time of the smallest message on the same machine."""
    del metrics
    small = {n: ["1"] * len(rows) if n in ("msg_bytes", "tokens") else cells for n, cells in rows.columns.items()}
    start = collective.times_ns(CaseRows(rows.file, rows.kind, small), catalog)[0]
    whole = collective.times_ns(rows, catalog)[0]
    return _per_row({"start-up": np.minimum(start, whole), "moving bytes": np.maximum(whole - start, 0.0)}, len(rows))


_SHARES: dict[str, Callable[[CaseRows, Sequence[str], Catalog], list[Shares]]] = {
    "training": _training,
    "serving": _serving,
    "inference": _inference,
    "collective": _collective,
}
