"""Buffers and flow control: the credit loop, virtual channels, head-of-line blocking, PFC headroom."""

import numpy as np

from codesign.units import Numeric, empirical


def credit_loop_ns(
    one_way_ns: Numeric, flit_ns: Numeric, credit_processing_ns: Numeric, credit_batch_ns: Numeric
) -> Numeric:
    """From sending a flit to holding its credit again: both ways, the flit itself, and handling the credit.

    Args:
        one_way_ns: Transmitter to receiver buffer, and back for the credit: PHY, code, line. [ns]
        flit_ns: Time of a flit on the line. [ns]
        credit_processing_ns: Freeing the buffer and using the credit. [ns]
        credit_batch_ns: Waiting until credits are returned together. [ns]

    Returns:
        Round trip of a credit. [ns]

    Source:
        kung-n23-1994: credit loop of a link.

    >>> credit_loop_ns(one_way_ns=40.0, flit_ns=5.0, credit_processing_ns=10.0, credit_batch_ns=5.0)
    100.0
    """
    return 2.0 * one_way_ns + flit_ns + credit_processing_ns + credit_batch_ns


def in_flight_bytes(rate_gbps: Numeric, round_trip_ns: Numeric) -> Numeric:
    """Bandwidth-delay product: what must be buffered so that the line never waits.

    Args:
        rate_gbps: Rate of the line. [Gb/s]
        round_trip_ns: Round trip. [ns]

    Returns:
        Bytes in flight. [byte]

    Source:
        little-1961: L = lambda W.

    >>> in_flight_bytes(rate_gbps=800, round_trip_ns=500)
    50000.0
    """
    return rate_gbps * round_trip_ns / 8.0


def credit_frac(buffer_bytes: Numeric, need_bytes: Numeric) -> Numeric:
    """Share of the line that a receiver buffer sustains; above the bandwidth-delay product it is all of it.

    Args:
        buffer_bytes: Buffer promised to the sender. [byte], >= 0
        need_bytes: Bandwidth-delay product. [byte], > 0

    Returns:
        Share of the line. [1]

    Source:
        little-1961: bytes in flight over the round trip.

    >>> float(credit_frac(buffer_bytes=20000, need_bytes=50000))
    0.4
    """
    return np.minimum(buffer_bytes / need_bytes, 1.0)


def channel_buffer_bytes(
    buffer_bytes: Numeric, channels_count: Numeric, shared_flag: Numeric, reserve_bytes: Numeric
) -> Numeric:
    """What one busy virtual channel can use: its private part, or a shared pool less the others' reserves.

    Args:
        buffer_bytes: All buffer of the receiver. [byte]
        channels_count: Virtual channels. [count], >= 1
        shared_flag: 1 if the channels share a pool. [1]
        reserve_bytes: Kept for each idle channel of a pool so that it can start. [byte]

    Returns:
        Buffer of one busy channel. [byte]

    Source:
        kung-n23-1994: private against shared credit buffers.

    >>> float(channel_buffer_bytes(buffer_bytes=4000, channels_count=4, shared_flag=0, reserve_bytes=100))
    1000.0
    """
    private = buffer_bytes / channels_count
    pool = np.maximum(buffer_bytes - (channels_count - 1.0) * reserve_bytes, private)
    return private + shared_flag * (pool - private)


def pool_need_bytes(
    need_bytes: Numeric, channels_count: Numeric, shared_flag: Numeric, reserve_bytes: Numeric
) -> Numeric:
    """Buffer at which every virtual channel alone can fill the line.

    Args:
        need_bytes: Bandwidth-delay product. [byte]
        channels_count: Virtual channels. [count], >= 1
        shared_flag: 1 if the channels share a pool. [1]
        reserve_bytes: Kept for each idle channel of a pool. [byte]

    Returns:
        Buffer needed. [byte]

    Source:
        kung-n23-1994: private against shared credit buffers.

    >>> float(pool_need_bytes(need_bytes=1000, channels_count=4, shared_flag=1, reserve_bytes=100))
    1300.0
    """
    private = need_bytes * channels_count
    pool = np.minimum(need_bytes + (channels_count - 1.0) * reserve_bytes, private)
    return private + shared_flag * (pool - private)


def pause_response_bits(
    rate_gbps: Numeric, low_gbps: Numeric, low_bits: Numeric, high_gbps: Numeric, high_bits: Numeric
) -> Numeric:
    """Bit times a sender takes to obey a pause, drawn through two published rates.

    Args:
        rate_gbps: Rate of the port. [Gb/s]
        low_gbps: Lower published rate. [Gb/s]
        low_bits: Bit times there. [bit]
        high_gbps: Higher published rate. [Gb/s], > low
        high_bits: Bit times there. [bit]

    Returns:
        Response time in bit times. [bit]

    Source:
        pfc-headroom-article: response at 100 and 400 Gb/s.

    >>> float(pause_response_bits(250.0, 100.0, 200000.0, 400.0, 400000.0))
    300000.0
    """
    span = np.where(np.equal(high_gbps, low_gbps), high_gbps, high_gbps - low_gbps)
    return np.maximum(low_bits + (high_bits - low_bits) * (rate_gbps - low_gbps) / span, 0.0 * low_bits)


def pfc_headroom_bytes(
    frame_bytes: Numeric,
    rate_gbps: Numeric,
    length_m: Numeric,
    delay_ns_per_m: Numeric,
    overhead_bits: Numeric,
    pause_bits: Numeric,
    interface_bits: Numeric,
    response_bits: Numeric,
) -> Numeric:
    """Buffer that must stay free behind a PFC pause: all that arrives until the sender has really stopped.

    The pause waits for a frame to leave, flies, is decoded and obeyed, and what is on the line still comes. For one
    lossless class of one port.

    Args:
        frame_bytes: Largest frame. [byte]
        rate_gbps: Rate of the port. [Gb/s]
        length_m: Length of the cable. [m]
        delay_ns_per_m: Delay of the cable. [ns/m]
        overhead_bits: Preamble and gap of a frame. [bit]
        pause_bits: The pause frame with its preamble and gap. [bit]
        interface_bits: Delay of one end's interface in bit times. [bit]
        response_bits: Time to obey a pause in bit times. [bit]

    Returns:
        Headroom. [byte]

    Source:
        pfc-headroom-article: sum of worst-case components.

    >>> round(pfc_headroom_bytes(4200, 400.0, 10, 5.0, 160, 672, 0, 463360) / 1e3)
    71
    """
    frames = 2.0 * (8.0 * frame_bytes + overhead_bits) + pause_bits + 2.0 * interface_bits
    return (frames + 2.0 * length_m * delay_ns_per_m * rate_gbps + response_bits) / 8.0


def head_of_line_frac(
    ports_count: Numeric,
    channels_count: Numeric,
    few_ratio: Numeric,
    ports_exponent_ratio: Numeric,
    channels_exponent_ratio: Numeric,
) -> Numeric:
    """Throughput of a switch with input queues under uniform traffic: Karol's limit, lifted by virtual channels.

    One queue per input saturates at 2 - sqrt(2) for many ports and higher for few (within 0.003 of Karol's table);
    each doubling of the channels takes a fixed part off the loss. Permutation traffic has no such loss.

    Args:
        ports_count: Ports of the switch. [count], >= 1
        channels_count: Virtual channels. [count], >= 1
        few_ratio: Half-way constant of the approach to many ports, fitted. [1]
        ports_exponent_ratio: Its exponent, fitted. [1]
        channels_exponent_ratio: Loss falls with the channels to this power, fitted. [1]

    Returns:
        Share of the line in use at saturation. [1]

    Source:
        karol-1987: table of saturation throughput by switch size.

    >>> round(float(head_of_line_frac(1e9, 1, 0.75, 1.1, 0.2)), 4)
    0.5858
    """
    most = np.sqrt(2.0) - 1.0
    loss = most * (1.0 - few_ratio / (few_ratio + np.maximum(ports_count, 1.0) ** ports_exponent_ratio - 1.0))
    left: Numeric = 1.0 - loss * np.maximum(channels_count, 1.0) ** -channels_exponent_ratio
    return left


@empirical("booksim_credit.csv, sweep a2_xbar, uniform traffic; worst error 5 %")
def uniform_credit_frac(credit_frac: Numeric, head_of_line_frac: Numeric, buffer_count: Numeric) -> Numeric:
    """Throughput of a switch under uniform traffic when credits bind too: random demand leaves some credits unused.

    The loss is that of head-of-line blocking over the root of the buffer: fluctuations of a queue of that size.

    Args:
        credit_frac: Share of the line that the credit loop sustains. [1]
        head_of_line_frac: Share at saturation with deep buffers. [1]
        buffer_count: Flits of the buffer. [count], >= 1

    Returns:
        Share of the line. [1]

    Source:
        booksim2-2013: simulated eight-port star.

    >>> float(uniform_credit_frac(credit_frac=0.4, head_of_line_frac=0.5, buffer_count=4))
    0.3
    """
    used = credit_frac * (1.0 - (1.0 - head_of_line_frac) / np.sqrt(buffer_count))
    return np.minimum(head_of_line_frac, used)


def contention_frac(head_of_line_frac: Numeric, random_frac: Numeric, switched_flag: Numeric) -> Numeric:
    """Share of the line left when only part of the traffic is random enough to collide at the switch.

    Args:
        head_of_line_frac: Share at saturation when all traffic is random. [1]
        random_frac: Share of the traffic that is. [1]
        switched_flag: 1 if an input-queued switch is on the way. [1]

    Returns:
        Share of the line. [1]

    Source:
        definition: time-weighted mean of the two.

    >>> contention_frac(head_of_line_frac=0.5, random_frac=0.5, switched_flag=1.0)
    0.6666666666666666
    """
    share = random_frac * switched_flag
    return 1.0 / (1.0 - share + share / head_of_line_frac)


def packet_bubble_frac(packet_count: Numeric, bubble_count: Numeric) -> Numeric:
    """Share of the line when each packet leaves a gap of some flits: allocation that cannot look ahead.

    Args:
        packet_count: Flits of a packet. [count], > 0
        bubble_count: Flits lost per packet. [count]

    Returns:
        Share of the line. [1]

    Source:
        booksim2-2013: non-speculative router, P / (P + 1).

    >>> packet_bubble_frac(packet_count=3, bubble_count=1)
    0.75
    """
    return packet_count / (packet_count + bubble_count)
