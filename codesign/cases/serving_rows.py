"""Measured serving rows as layouts, number formats and users: fill-in rules that read metadata only.

The exporter of the rows writes some layouts in ways no engine runs. The rules below turn them into the layout that was
run; each is backed by pairs of rows that carry the same measurement under two spellings. None of them reads a
measured column.
"""

from dataclasses import dataclass, field

import numpy as np

from codesign.cases.rows import CaseRows
from codesign.units import Array

#: a single engine of these rows sits in one machine of at most this many accelerators, or in two of them
LARGEST_ENGINE_COUNT = 16


@dataclass(frozen=True)
class PoolRows:
    """Layout columns of one pool."""

    workers: Array
    tp: Array
    dp: Array
    pp: Array
    ep: Array


@dataclass(frozen=True)
class ServingRows:
    """What the rows say, repaired; a refused row holds harmless numbers."""

    prefill: PoolRows
    decode: PoolRows
    users: Array
    disaggregated: Array
    isl: Array
    osl: Array
    wave: Array
    refused: list[str | None] = field(default_factory=list)


def serving_rows(rows: CaseRows) -> ServingRows:
    """Layouts, users and lengths of rows, with a reason where a row cannot be used."""
    refused: list[str | None] = [None] * len(rows)
    modes = rows.text("mode")
    disaggregated = np.array([mode == "disagg" for mode in modes], dtype=np.float64)
    shared, shared_users = _aggregated(rows, refused)
    entry, answers, pooled_users = _disaggregated(rows, refused)
    isl, osl, wave = _lengths(rows)
    for i, mode in enumerate(modes):
        if mode not in ("agg", "disagg"):
            refused[i] = f"mode {mode!r} is neither agg nor disagg"
        if not (isl[i] > 0 and osl[i] > 0) and refused[i] is None:
            refused[i] = "prompt or answer length missing"
    return ServingRows(
        prefill=_where(disaggregated, entry, shared),
        decode=_where(disaggregated, answers, shared),
        users=np.where(disaggregated > 0.0, pooled_users, shared_users),
        disaggregated=disaggregated,
        isl=np.where(isl > 0, isl, 1024.0),
        osl=np.where(osl > 0, osl, 1024.0),
        wave=wave,
        refused=refused,
    )


def _where(flag: Array, first: PoolRows, second: PoolRows) -> PoolRows:
    names = ("workers", "tp", "dp", "pp", "ep")
    return PoolRows(*(np.where(flag > 0.0, getattr(first, n), getattr(second, n)) for n in names))


def _lengths(rows: CaseRows) -> tuple[Array, Array, Array]:
    """Mean lengths, and whether users stay in step.

    Dated sweeps draw lengths evenly between 80 and 100 per cent of the nominal one. Rows without any date and without
    an attention_dp cell come from other benches with fixed lengths: one, with lengths in powers of two, starts all
    users at once and keeps them in step; the other, with lengths in thousands, replaces each request as it ends.
    """
    days = zip(rows.text("measured_first"), rows.text("measured_last"), strict=True)
    dated = np.array([bool(first or last) for first, last in days], dtype=np.bool_)
    fixed = ~dated & np.isnan(rows.numbers("attention_dp"))
    wave = fixed & (rows.numbers("isl") % 1000.0 != 0.0)
    scale = np.where(fixed, 1.0, 0.9)
    return rows.numbers("isl") * scale, rows.numbers("osl") * scale, wave.astype(np.float64)


def _aggregated(rows: CaseRows, refused: list[str | None]) -> tuple[PoolRows, Array]:
    tp, dp, pp = rows.numbers("tp"), rows.numbers("attention_dp"), rows.numbers("pp")
    expert_tp, ep = rows.numbers("moe_tp"), rows.numbers("moe_ep")
    users = rows.numbers("concurrency")
    out = np.ones((4, len(rows)))
    total = np.ones(len(rows))
    for i, mode in enumerate(rows.text("mode")):
        if mode != "agg":
            continue
        repaired = repair_engine(_or_one(tp[i], 0.0), _or_one(dp[i]), _or_one(expert_tp[i], 0.0), _or_one(ep[i], 0.0))
        if isinstance(repaired, str):
            refused[i] = repaired
        elif not users[i] > 0:
            refused[i] = "concurrency missing"
        else:
            out[:, i] = (repaired[0], repaired[1], _or_one(pp[i]), repaired[2])
            total[i] = users[i] * repaired[3]
    return PoolRows(np.ones(len(rows)), *out), total


def repair_engine(tp: float, dp: float, expert_tp: float, ep: float) -> tuple[float, float, float, float] | str:
    """The layout one engine ran: attention tp, attention dp, expert groups, and users per stated user; or a refusal.

    * ``tp`` written as ``moe_tp x moe_ep`` with both equal is the square of the real size: experts are whole.
    * ``attention_dp`` above one makes the stated concurrency one of each replica as written. The engine has ``moe_ep``
      accelerators where dp is ``moe_tp x moe_ep``, and ``tp`` where tp equals dp; it holds one replica on each.
    * Zero means missing.

    >>> repair_engine(tp=64.0, dp=1.0, expert_tp=8.0, ep=8.0)
    (8.0, 1.0, 8.0, 1.0)
    >>> repair_engine(tp=1.0, dp=64.0, expert_tp=8.0, ep=8.0)
    (1.0, 8.0, 8.0, 64.0)
    """
    if tp <= 0 or expert_tp <= 0 or ep <= 0:
        return "layout missing (zero or empty tp, moe_tp or moe_ep)"
    if dp > 1:
        if dp == expert_tp * ep and tp == 1:
            size = ep if expert_tp == ep else dp
        elif tp == dp and ep == tp * dp:
            size = tp
        elif ep in (1.0, tp * dp) and expert_tp in (1.0, tp * dp):
            return (tp, dp, tp * dp, dp) if tp * dp <= LARGEST_ENGINE_COUNT else _too_large(tp * dp)
        else:
            return f"attention_dp {dp:g} fits neither tp {tp:g} nor moe_tp {expert_tp:g} x moe_ep {ep:g}"
        return (1.0, size, size, dp) if size <= LARGEST_ENGINE_COUNT else _too_large(size)
    if expert_tp == ep > 1 and tp == expert_tp * ep and tp > 4:
        return (ep, 1.0, ep, 1.0)
    if tp > LARGEST_ENGINE_COUNT or np.log2(tp) % 1:
        return _too_large(tp)
    return (tp, 1.0, min(ep, tp), 1.0)


def _too_large(size: float) -> str:
    return f"{size:g} accelerators written as one engine: a deployment, not a layout"


def _or_one(value: float, otherwise: float = 1.0) -> float:
    return float(value) if np.isfinite(value) else otherwise


def _disaggregated(rows: CaseRows, refused: list[str | None]) -> tuple[PoolRows, PoolRows, Array]:
    """Both pools; the decode batch is one replica's, and attention replicas imply experts over the whole engine."""
    pools = [_pool(rows, refused, side) for side in ("prefill", "decode")]
    batch = rows.numbers("decode_batch")
    total = np.ones(len(rows))
    for i, mode in enumerate(rows.text("mode")):
        if mode != "disagg":
            continue
        if not batch[i] > 0:
            refused[i] = refused[i] or "decode batch missing"
            continue
        total[i] = batch[i] * pools[1].dp[i] * pools[1].workers[i]
    return pools[0], pools[1], total


def _pool(rows: CaseRows, refused: list[str | None], side: str) -> PoolRows:
    names = ("num_workers", "tp", "attention_dp", "pp", "moe_ep", "moe_tp")
    cells = {name: rows.numbers(f"{side}_{name}") for name in names}
    out = np.ones((5, len(rows)))
    for i, mode in enumerate(rows.text("mode")):
        if mode != "disagg":
            continue
        workers, tp = cells["num_workers"][i], cells["tp"][i]
        if not workers > 0 or not tp > 0:
            refused[i] = refused[i] or f"{side} workers or tp missing"
            continue
        dp, pp = max(_or_one(cells["attention_dp"][i]), 1.0), max(_or_one(cells["pp"][i]), 1.0)
        ep = max(_or_one(cells["moe_ep"][i]), 1.0)
        out[:, i] = (workers, tp, dp, pp, tp * dp if dp > 1 else min(ep, tp))
    return PoolRows(*out)
