"""Textbook collectives step by step: what a link and an algorithm give before any software.

A *pass* is half an all-reduce: a reduce-scatter over a buffer, or an all-gather of a share. On links that store and
forward, a message pays its serialisation on each of the hops; with cut-through it pays once.
"""

import numpy as np

from codesign.units import Numeric

BITS_PER_BYTE = 8.0


def message_step_ns(
    message_bytes: Numeric, hops_count: Numeric, hop_ns: Numeric, rate_gbps: Numeric, forward_flag: Numeric
) -> Numeric:
    """One message over a path of equal links.

    Args:
        message_bytes: The message. [byte], >= 0
        hops_count: Links on the path. [count], >= 1
        hop_ns: Latency of one link. [ns], >= 0
        rate_gbps: Rate of each link. [Gb/s], > 0
        forward_flag: 1: every hop stores and forwards; 0: cut-through. [1], 0 or 1

    Returns:
        Time until the last byte has arrived. [ns]

    Source:
        definition: latency per hop plus serialisation once or per hop.

    >>> message_step_ns(message_bytes=1000.0, hops_count=2.0, hop_ns=5.0, rate_gbps=8.0, forward_flag=1.0)
    2010.0
    """
    sent = 1.0 + forward_flag * (hops_count - 1.0)
    return hops_count * hop_ns + sent * BITS_PER_BYTE * message_bytes / rate_gbps


def ring_pass_ns(message_ns: Numeric, step_ns: Numeric, group_count: Numeric) -> Numeric:
    """A pass around a ring: n - 1 steps, each a message to the next rank.

    Args:
        message_ns: One message, path included. [ns], >= 0
        step_ns: What an endpoint adds to each step. [ns], >= 0
        group_count: Ranks. [count], >= 1

    Returns:
        Time of the pass. [ns]

    Source:
        thakur-2005: ring reduce-scatter and all-gather.

    >>> ring_pass_ns(message_ns=10.0, step_ns=1.0, group_count=4.0)
    33.0
    """
    return (group_count - 1.0) * (message_ns + step_ns)


def ring_exchange_ns(message_ns: Numeric, step_ns: Numeric, group_count: Numeric) -> Numeric:
    """All-to-all on a ring, every message forwarded one rank at a time: n (n-1)/2 messages one after another.

    Args:
        message_ns: One message to the next rank. [ns], >= 0
        step_ns: What an endpoint adds per destination. [ns], >= 0
        group_count: Ranks. [count], >= 1

    Returns:
        Time of the exchange. [ns]

    Source:
        definition: distances 1 to n-1 in one direction add up to n (n-1)/2.

    >>> ring_exchange_ns(message_ns=10.0, step_ns=0.0, group_count=4.0)
    60.0
    """
    return 0.5 * group_count * (group_count - 1.0) * message_ns + (group_count - 1.0) * step_ns


def halving_pass_ns(half_message_ns: Numeric, start_ns: Numeric, group_count: Numeric) -> Numeric:
    """A pass by recursive halving (or doubling): log2 n steps that move n-1 shares of n in all.

    Args:
        half_message_ns: Serialisation of half the buffer, the largest step. [ns], >= 0
        start_ns: Latency and endpoint time of each step. [ns], >= 0
        group_count: Ranks, a power of two. [count], >= 1

    Returns:
        Time of the pass. [ns]

    Source:
        thakur-2005: recursive halving.

    >>> float(halving_pass_ns(half_message_ns=4.0, start_ns=1.0, group_count=8.0))
    10.0
    """
    moved = 2.0 * (group_count - 1.0) / group_count
    return moved * half_message_ns + np.log2(np.maximum(group_count, 1.0)) * start_ns


def nested_reduce_bytes(message_bytes: Numeric, group_count: Numeric, inner_count: Numeric) -> Numeric:
    """Bytes one rank sends in one dimension of a multi-dimensional all-reduce, inner dimensions reduced first.

    Args:
        message_bytes: The buffer each rank holds. [byte], >= 0
        group_count: Ranks along this dimension. [count], >= 1
        inner_count: Product of the ranks along the dimensions reduced before. [count], >= 1

    Returns:
        Bytes both ways, reduce-scatter and all-gather. [byte]

    Source:
        libra-2024: traffic of a dimension shrinks by the sizes of the inner ones.

    >>> nested_reduce_bytes(message_bytes=64.0, group_count=4.0, inner_count=2.0)
    48.0
    """
    return 2.0 * message_bytes * (group_count - 1.0) / (group_count * inner_count)


def nested_gather_bytes(share_bytes: Numeric, group_count: Numeric, outer_count: Numeric) -> Numeric:
    """Bytes one rank receives in one dimension of a multi-dimensional all-gather, outer dimensions gathered first.

    Args:
        share_bytes: What each rank gives. [byte], >= 0
        group_count: Ranks along this dimension. [count], >= 1
        outer_count: Product of the ranks along the dimensions gathered before. [count], >= 1

    Returns:
        Bytes received. [byte]

    Source:
        libra-2024: traffic of a dimension grows by the sizes of the outer ones.

    >>> nested_gather_bytes(share_bytes=10.0, group_count=4.0, outer_count=4.0)
    120.0
    """
    return share_bytes * (group_count - 1.0) * outer_count


def ring_load_count(group_count: Numeric) -> Numeric:
    """Messages over the busiest link of a two-way ring when every rank sends one to every other by the short way.

    Opposite ranks are equally far both ways; all such messages take the same one.

    Args:
        group_count: Ranks, even. [count], >= 2

    Returns:
        Messages on the busiest link. [count]

    Source:
        definition: distances 1 to n/2 in one direction.

    >>> float(ring_load_count(group_count=8.0))
    10.0
    """
    half = np.floor(0.5 * group_count)
    return 0.5 * half * (half + 1.0)


def pipelined_ns(before_ns: Numeric, load_ns: Numeric, after_ns: Numeric, rounds_count: Numeric) -> Numeric:
    """Several rounds through one dimension of a multi-dimensional collective: the dimension works without a pause.

    The collective takes the longest of these over its dimensions, and never less than one round through all of them.

    Args:
        before_ns: Stages before the dimension's first. [ns], >= 0
        load_ns: The dimension's own stages in one round. [ns], >= 0
        after_ns: Stages after the dimension's last. [ns], >= 0
        rounds_count: Rounds. [count], >= 1

    Returns:
        Time if this dimension is the bottleneck. [ns]

    Source:
        definition: fill, steady state, drain.

    >>> pipelined_ns(before_ns=5.0, load_ns=10.0, after_ns=5.0, rounds_count=3.0)
    40.0
    """
    return before_ns + rounds_count * load_ns + after_ns
