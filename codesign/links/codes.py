"""A block code as a link sees it: its bursts as a table, and the error ratio at which it just meets the loss target."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from codesign.columns import distinct_rows
from codesign.links.columns import Columns
from codesign.model.link.bursts import BurstTable, burst_defeat_probs, burst_failure_prob, burst_start_prob, bursts
from codesign.model.link.fec import codewords_touched_count, flit_loss_prob, inner_code_ber, symbol_error_prob
from codesign.model.link.inputs import FecInputs, ProtocolInputs, SerdesInputs
from codesign.units import Array, Numeric


@lru_cache(maxsize=4096)
def _burst_row(first: float, following: float, correctable: float) -> tuple[float, ...]:
    return tuple(burst_defeat_probs(first, following, int(correctable)).defeat_prob[0].tolist())


def _distinct(*numbers: Numeric) -> tuple[Array, NDArray[np.intp]]:
    """The distinct rows of some columns, as columns, and which of them each row is."""
    columns = np.stack(np.broadcast_arrays(*numbers))
    flat = columns.reshape(len(columns), -1)
    first, place = distinct_rows(*flat)
    return flat[:, first], place.reshape(columns.shape[1:])


def _burst_table(first: Array, following: Array, correctable: Array) -> tuple[BurstTable, Array]:
    """One row for each distinct kind of burst, and the row of each link."""
    kinds, place = _distinct(first, following, correctable)
    rows = [_burst_row(*kind) for kind in kinds.T.tolist()]
    width = max(len(row) for row in rows)
    table = BurstTable(np.array([[*row, *[0.0] * (width - len(row))] for row in rows]).reshape(len(rows), width))
    return table, place.astype(np.float64)


_LIMITS: dict[tuple[float, ...], float] = {}  # solved rows; a space offers few different ones
_LIMITS_MOST = 100_000


def _limit_ber(fec: FecInputs, propagation: Array, bits: Array, touched: Array, target: Array) -> Array:
    """Bit error ratio before the code at which a flit is lost with the target probability; bisection in decades.

    Solved once for each distinct row, and remembered: a small batch would spend half its time here.
    """
    numbers = (
        fec.symbols_count, fec.correctable_count, fec.slices_count, fec.hits_ratio, fec.burst_row_count,
        fec.inner_block_count, fec.inner_correctable_count, propagation, bits, touched, target,
    )  # fmt: skip
    distinct, place = _distinct(*numbers)
    table = [tuple(row) for row in fec.table.defeat_prob.tolist()]
    keys = [(*row, *table[int(row[4])]) for row in distinct.T.tolist()]
    fresh = [i for i, key in enumerate(keys) if key not in _LIMITS]
    if fresh:
        if len(_LIMITS) > _LIMITS_MOST:
            _LIMITS.clear()
            fresh = list(range(len(keys)))
        solved = _solved_ber(distinct[:, fresh], fec.table)
        _LIMITS.update(zip([keys[i] for i in fresh], solved.tolist(), strict=True))
    return np.asarray(np.array([_LIMITS[key] for key in keys])[place])


def _solved_ber(rows: Array, table: BurstTable) -> Array:
    symbols, correctable, slices, hits, row, block, inner, chain, per_symbol, touch, aim = rows
    low, high = np.full(len(aim), -18.0), np.full(len(aim), float(np.log10(0.4)))
    for _ in range(50):
        middle = 0.5 * (low + high)
        wrong = np.minimum(inner_code_ber(10.0**middle, block, inner) * per_symbol, 0.999)
        start = symbol_error_prob(burst_start_prob(wrong, chain), slices) * hits
        lost = flit_loss_prob(burst_failure_prob(start, symbols, correctable, row, table), touch)
        low, high = np.where(lost < aim, middle, low), np.where(lost < aim, high, middle)
    limit: Array = 10.0**low
    return limit


def flit_bytes(protocol: ProtocolInputs) -> Array:
    """A flit, or a full frame."""
    frame = np.asarray(protocol.payload_bytes) + np.asarray(protocol.header_bytes)
    return np.where(np.asarray(protocol.framed_flag) > 0.5, frame, np.asarray(protocol.flit_bytes))


def fec_inputs(
    columns: Columns, serdes: SerdesInputs, protocol: ProtocolInputs, aligned: Array, target: Array
) -> FecInputs:
    """The code of each row."""
    code = columns.facts("fec", "fec")
    bits, propagation = np.asarray(serdes.symbol_bits), np.asarray(serdes.propagation_prob)
    correctable, interleave = code("correctable_count"), code("interleave_count")
    slices = code("symbol_size_bits") / bits
    burst = bursts(propagation, slices, interleave, columns.numbers("precoding_flag"))
    table, place = _burst_table(np.asarray(burst.first_prob), np.asarray(burst.next_prob), correctable)
    fec = FecInputs(
        symbols_count=code("symbols_count"),
        data_symbols_count=code("data_symbols_count"),
        correctable_count=correctable,
        symbol_size_bits=code("symbol_size_bits"),
        slices_count=slices,
        interleave_count=interleave,
        inner_block_count=code("inner_block_count"),
        inner_data_count=code("inner_data_count"),
        inner_correctable_count=code("inner_correctable_count"),
        processing_ns=code("processing_ns"),
        aligned_flag=aligned,
        hits_ratio=burst.hits_ratio,
        burst_row_count=place,
        limit_ber=0.0,
        table=table,
    )
    payload = code("data_symbols_count") * code("symbol_size_bits") / 8.0
    touched = codewords_touched_count(flit_bytes(protocol), payload, interleave, aligned)
    return replace(fec, limit_ber=_limit_ber(fec, propagation, bits, np.asarray(touched), target))
