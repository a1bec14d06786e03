"""What holds for every kind of case: cells that cannot be sizes, answers that are none, rows that break a replay.

A case file comes from anywhere. One odd cell must cost its own row and no other, and never a traceback.
"""

from collections.abc import Callable, Iterable

import numpy as np

from codesign.cases.rows import CaseRows, Predictions
from codesign.units import Array

Replay = Callable[[CaseRows], Predictions]

#: sizes that are counted: zero may mean "none", anything between zero and one is a typing error
COUNTS = frozenset((
    "n_accel", "n_nodes", "accel_per_node", "scale_up_domain", "layers", "hidden", "ffn", "heads", "kv_heads",
    "head_dim", "vocab", "experts", "topk", "moe_ffn", "shared_experts", "seq", "gbs", "mbs", "ga", "tp", "pp",
    "vp", "cp", "ep", "etp", "dp", "isl", "osl", "batch", "concurrency", "num_requests", "replicas", "dp_attn",
    "moe_tp", "moe_ep", "attention_dp", "prefill_batch", "prefill_num_workers", "prefill_tp", "prefill_pp",
    "prefill_attention_dp", "prefill_moe_tp", "prefill_moe_ep", "decode_batch", "decode_num_workers",
    "decode_tp", "decode_pp", "decode_attention_dp", "decode_moe_tp", "decode_moe_ep", "m", "n", "k", "groups",
    "seq_q", "seq_kv", "batch_size", "num_heads", "num_key_value_heads", "num_tokens", "hidden_size",
    "inter_size", "num_experts", "moe_tp_size", "moe_ep_size", "tp_size", "ep_size", "num_gpus", "node_num",
    "npus", "dims", "dataset_splits", "active_chunks_per_dim", "nodes", "c", "num_vcs", "vc_buf_size",
    "packet_size", "flows", "channels", "outstanding", "outstanding_per_channel", "run_len", "n_gpus",
    "n_links_or_lanes", "tokens",
))  # fmt: skip
#: sizes that are measured: never below zero
AMOUNTS = frozenset((
    "msg_bytes", "message_bytes", "bytes", "flow_bytes", "comm_size_bytes", "params_b", "peak_spec_tflops",
    "peak_TBs_spec", "spec_GBs", "capacity_GB", "bandwidth_GBps_2p30", "latency_ns", "local_mem_bw_GBps",
    "endpoint_delay_ns", "link_gbps", "oversubscription", "peak_GBps", "bytes_per_req", "injection_rate",
    "offered_load_rho", "service_cv2", "pre_fec_ber", "target_BER", "checkpoint_s", "restart_s",
    "system_mtbf_s", "interval_tau_s", "step", "routing_delay", "credit_delay", "speculative",
    "channel_latency", "queue_pkts", "base_rtt_us", "read_buf", "write_buf", "rw_block",
))  # fmt: skip


def screened(rows: CaseRows, replay: Replay) -> Predictions:
    """The predictions of a replay, with every row it cannot answer refused by a reason.

    Rows with impossible sizes never reach the replay; a row that breaks it is found by halving and refused alone; an
    answer that is not finite, or below zero where a positive value was measured, is no answer.
    """
    reasons = _impossible(rows)
    kept = [i for i, reason in enumerate(reasons) if reason is None]
    with np.errstate(all="ignore"):
        if len(kept) == len(rows):
            return _answered(_isolated(rows, replay))
        found = _isolated(rows.pick(kept), replay) if kept else Predictions({}, [])
    return _answered(_spread(found, kept, reasons))


def _impossible(rows: CaseRows) -> list[str | None]:
    reasons: list[str | None] = [None] * len(rows)
    for name in rows.columns:
        if name in COUNTS or name in AMOUNTS:
            sizes = rows.numbers(name)
            wrong = (sizes < 0.0) | np.isinf(sizes) | ((name in COUNTS) & (sizes > 0.0) & (sizes < 1.0))
            for i in np.flatnonzero(wrong):
                reasons[i] = reasons[i] or f"{name} is {sizes[i]:g}, which is no size"
    return reasons


def _isolated(rows: CaseRows, replay: Replay) -> Predictions:
    """The replay of rows; where it fails, of halves, down to the row that breaks it."""
    try:
        return replay(rows)
    except (ArithmeticError, LookupError, ValueError, RuntimeError, StopIteration, MemoryError) as problem:
        if len(rows) == 1:
            words = str(problem).splitlines()[0] if str(problem) else "no value fits"
            return Predictions({}, [f"cannot be replayed: {type(problem).__name__}: {words}"])
    half = len(rows) // 2
    parts = (range(half), range(half, len(rows)))
    return _joined([(list(part), _isolated(rows.pick(part), replay)) for part in parts], len(rows))


def _spread(found: Predictions, at: list[int], reasons: list[str | None]) -> Predictions:
    """Predictions of some rows among all of them; the others keep their reasons."""
    joined = _joined([(at, found)], len(reasons))
    return Predictions(joined.metrics, [r or j for r, j in zip(reasons, joined.refused, strict=True)], joined.labels)


def _joined(parts: Iterable[tuple[list[int], Predictions]], count: int) -> Predictions:
    metrics: dict[str, tuple[Array, Array]] = {}
    refused: list[str | None] = [None] * count
    labels: dict[str, list[str]] = {}
    for at, part in parts:
        for name, pair in part.metrics.items():
            whole = metrics.setdefault(name, (np.full(count, np.nan), np.full(count, np.nan)))
            for column, values in zip(whole, pair, strict=True):
                column[at] = values
        for i, reason in zip(at, part.refused, strict=True):
            refused[i] = reason
        for name, words in part.labels.items():
            column_of = labels.setdefault(name, [""] * count)
            for i, word in zip(at, words, strict=True):
                column_of[i] = word
    return Predictions(metrics, refused, labels)


def _answered(found: Predictions) -> Predictions:
    refused = list(found.refused)
    for name, (predicted, measured) in found.metrics.items():
        asked = np.isfinite(measured)
        for wrong, reason in (
            (asked & ~np.isfinite(predicted), f"the model has no finite {name} for this row"),
            (asked & (measured > 0.0) & (predicted < 0.0), f"the model's {name} for this row is below zero"),
        ):
            for i in np.flatnonzero(wrong):
                refused[i] = refused[i] or reason
    return Predictions(found.metrics, refused, found.labels)
