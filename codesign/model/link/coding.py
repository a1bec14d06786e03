"""The block code in the chain: rates, lost codewords and flits, and the fixed times of one hop and of the path."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.link.bursts import burst_failure_prob, burst_start_prob
from codesign.model.link.channel import flight_ns
from codesign.model.link.fec import (
    block_ns,
    code_rate_frac,
    codewords_touched_count,
    flit_loss_prob,
    inner_code_ber,
    symbol_error_prob,
)
from codesign.model.link.inputs import LinkInputs
from codesign.model.link.signal import Signal
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """What the block code leaves and loses."""

    raw_rate_gbps: Numeric
    fec_frac: Numeric
    line_rate_gbps: Numeric  # behind the code
    codeword_failure_prob: Numeric
    flit_bytes: Numeric
    flit_ns: Numeric
    flit_loss_prob: Numeric
    fec_ns: Numeric
    one_way_ns: Numeric  # one hop: PHY, code, medium
    base_ns: Numeric  # the whole path, first byte in to first byte out

    def __post_init__(self) -> None:
        freeze(self)


def coding(inputs: LinkInputs, line: Signal) -> Coding:
    """From the error ratio at the slicer to lost flits, and from the rate of the lanes to what the code leaves.

    Args:
        inputs: The link.
        line: What arrives at the slicer.

    Returns:
        Rates, losses and fixed times.

    Source:
        etc-ll-fec-1.0: Annex A for the losses; times are sums of parts.

    >>> from codesign.model.link.example import example_inputs
    >>> from codesign.model.link.signal import signal
    >>> float(coding(example_inputs(), signal(example_inputs())).raw_rate_gbps)
    800.0
    """
    serdes, fec, medium, protocol = inputs.serdes, inputs.fec, inputs.medium, inputs.protocol
    raw = serdes.lane_rate_gbps * serdes.lanes_count
    rate = code_rate_frac(fec.symbols_count, fec.data_symbols_count) * code_rate_frac(
        fec.inner_block_count, fec.inner_data_count
    )
    inner = inner_code_ber(line.pre_fec_ber, fec.inner_block_count, fec.inner_correctable_count)
    wrong = np.minimum(line.slicer_error_prob * (inner / np.maximum(line.pre_fec_ber, 1e-300)), 0.999)
    start = symbol_error_prob(burst_start_prob(wrong, serdes.propagation_prob), fec.slices_count)
    failure = burst_failure_prob(
        start * fec.hits_ratio, fec.symbols_count, fec.correctable_count, fec.burst_row_count, fec.table
    )
    framed = np.minimum(protocol.payload_bytes, inputs.load.message_bytes) + protocol.header_bytes
    flit = np.where(protocol.framed_flag > 0.5, framed, protocol.flit_bytes)
    payload = fec.data_symbols_count * fec.symbol_size_bits / 8.0
    touched = codewords_touched_count(flit, payload, fec.interleave_count, fec.aligned_flag)
    code_ns = block_ns(fec.symbols_count * fec.symbol_size_bits, fec.interleave_count, raw) + fec.processing_ns
    flight = flight_ns(medium.length_m, medium.delay_ns_per_m)
    chiplets = inputs.crossing.chiplet_flag * 2.0 * inputs.crossing.latency_ns
    one_way = serdes.phy_ns + code_ns + flight + medium.added_ns + chiplets
    path = protocol.hops_count * (protocol.switch_ns + flight + medium.added_ns)
    return Coding(
        raw_rate_gbps=raw,
        fec_frac=rate,
        line_rate_gbps=raw * rate,
        codeword_failure_prob=failure,
        flit_bytes=flit,
        flit_ns=8.0 * flit / (raw * rate * protocol.encoding_frac),
        flit_loss_prob=flit_loss_prob(failure, touched),
        fec_ns=code_ns,
        one_way_ns=one_way,
        base_ns=protocol.endpoint_ns + one_way + path,
    )
