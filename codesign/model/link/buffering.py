"""Flow control in the chain: what the receiver's buffer allows, and what the line asks for."""

from dataclasses import dataclass

from codesign.columns import freeze
from codesign.model.link.buffer import (
    channel_buffer_bytes,
    credit_frac,
    credit_loop_ns,
    in_flight_bytes,
    pause_response_bits,
    pfc_headroom_bytes,
    pool_need_bytes,
)
from codesign.model.link.coding import Coding
from codesign.model.link.inputs import LinkInputs
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class Buffering:
    """What the receiver's buffer allows and asks for."""

    loop_ns: Numeric
    useful_frac: Numeric
    channel_bytes: Numeric
    need_bytes: Numeric
    headroom_bytes: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def buffering(inputs: LinkInputs, line: Coding) -> Buffering:
    """Credits, PFC or neither: the share of the line the buffer sustains, and the buffer that sustains all of it.

    PFC needs its headroom for each lossless class before the first byte of useful buffer, and a round trip above it.

    Args:
        inputs: The link.
        line: Rates and times.

    Returns:
        Credit loop, share of the line, buffer of one channel, buffer needed, PFC headroom.

    Source:
        kung-n23-1994: credit loop; pfc-headroom-article is the source of the headroom's parts.

    >>> from codesign.model.link.example import example_inputs
    >>> from codesign.model.link.chain import link
    >>> line = link(example_inputs()).coding
    >>> float(buffering(example_inputs(), line).useful_frac) <= 1.0
    True
    """
    flow, protocol, medium = inputs.flow, inputs.protocol, inputs.medium
    rate = line.line_rate_gbps
    loop = credit_loop_ns(line.one_way_ns, line.flit_ns, flow.credit_processing_ns, flow.credit_batch_ns)
    flight_bytes = in_flight_bytes(rate, loop)
    answer = pause_response_bits(
        rate, flow.response_low_gbps, flow.response_low_bits, flow.response_high_gbps, flow.response_high_bits
    )
    headroom = pfc_headroom_bytes(
        flow.frame_bytes, rate, medium.length_m, medium.delay_ns_per_m, flow.overhead_bits, flow.pause_bits,
        flow.interface_bits, answer,
    )  # fmt: skip
    credit_need = pool_need_bytes(flight_bytes, flow.channels_count, flow.shared_flag, flow.reserve_bytes)
    pfc_need = flow.channels_count * (headroom + flight_bytes)
    channel = channel_buffer_bytes(flow.buffer_bytes, flow.channels_count, flow.shared_flag, flow.reserve_bytes)
    by_credit = credit_frac(channel, flight_bytes)
    by_pfc = credit_frac(flow.buffer_bytes, pfc_need)
    lossy = (1.0 - protocol.credit_flag) * (1.0 - protocol.pfc_flag)
    return Buffering(
        loop_ns=loop,
        useful_frac=protocol.credit_flag * by_credit + protocol.pfc_flag * by_pfc + lossy,
        channel_bytes=channel,
        need_bytes=protocol.credit_flag * credit_need + protocol.pfc_flag * pfc_need,
        headroom_bytes=protocol.pfc_flag * headroom * flow.channels_count,
    )
