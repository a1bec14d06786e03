"""Time of collectives on a fabric of two tiers: a scale-up domain and the scale-out network behind it.

Every flat collective costs a launch, its steps, its bytes over the line and a ramp that grows with the square root
of the bytes (pipelines fill slowly); where a library changes from its low-latency to its bulk protocol it pays once
more. A group that spans domains works inside each domain and across them at the same time: bytes overlap, message
starts add. For an all-reduce the fastest of ring, in-switch reduction, one-shot and two-shot kernels is taken within
the limits the library sets itself.
"""

import numpy as np

from codesign.model.fabric.exchange import (
    all_to_all_ns,
    distinct_ranks_count,
    moe_exchange_ns,
    point_to_point_ns,
    remote_ranks_count,
)
from codesign.model.fabric.tier import NEVER_NS, UNLIMITED_BYTES, Exchange, Fabric, Tier
from codesign.model.fabric.wire import (
    BITS_PER_BYTE,
    launched_ns,
    line_ns,
    network_ns,
    pair_flag,
    reach_frac,
    ring_steps_count,
    start_ns,
)
from codesign.units import Numeric, empirical

__all__ = [
    "NEVER_NS", "UNLIMITED_BYTES", "Exchange", "Fabric", "Tier", "all_gather_ns", "all_reduce_ns", "all_to_all_ns",
    "broadcast_ns", "distinct_ranks_count", "inner_count", "moe_exchange_ns", "outer_reduce_ratio",
    "point_to_point_ns", "reduce_scatter_ns", "remote_ranks_count", "ring_all_reduce_ns",
]  # fmt: skip


def inner_count(group_count: Numeric, stride_count: Numeric, domain_count: Numeric) -> Numeric:
    """Members of one group that share a scale-up domain, when ranks of the group stand `stride_count` apart.

    A domain holds ``domain_count / stride_count`` of them, at least the member itself, at most the whole group.

    Args:
        group_count: Ranks of the group. [count], >= 1
        stride_count: Distance of neighbouring members in the rank order. [count], >= 1
        domain_count: Accelerators in one scale-up domain. [count], >= 1

    Returns:
        Members per domain. [count], between 1 and group_count.

    Source:
        definition: ranks are numbered domain by domain.

    >>> float(inner_count(group_count=16, stride_count=2, domain_count=8))
    4.0
    """
    return np.minimum(group_count, np.maximum(1.0, np.floor(domain_count / stride_count)))


def outer_reduce_ratio(group_count: Numeric, inner_count: Numeric) -> Numeric:
    """Bytes through one domain's network ports in an all-reduce, over the bytes of the buffer.

    A ring over all ranks passes 2 (n-1)/n buffers through each domain; a double binary tree over N domains passes at
    most two, one and a half for three domains and one for two. The lesser is what a tuned library uses.

    Args:
        group_count: Ranks in the group. [count], >= 1
        inner_count: Ranks of the group in one domain. [count], 1 to group_count

    Returns:
        Buffers per domain and direction. [1]

    Source:
        definition: an interior node of one tree is a leaf of the other.

    >>> float(outer_reduce_ratio(group_count=32, inner_count=8)), float(outer_reduce_ratio(16, 8))
    (1.9375, 1.0)
    """
    ring = 2.0 * (group_count - 1.0) / group_count
    return np.minimum(ring, 0.5 * group_count / inner_count)


@empirical("kernels/nccl.csv, collectives.csv")
def ring_all_reduce_ns(message_bytes: Numeric, group_count: Numeric, inner_count: Numeric, fabric: Fabric) -> Numeric:
    """All-reduce by rings in each domain and rings or double trees across domains; no in-switch reduction.

    Args:
        message_bytes: The buffer each rank holds. [byte], >= 0
        group_count: Ranks in the group. [count], >= 1
        inner_count: Ranks of the group in one scale-up domain. [count], 1 to group_count
        fabric: The two tiers.

    Returns:
        Time of the collective. [ns]; meaningless for a group of one.

    Source:
        definition: a + w/B + c sqrt(w) per tier.

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, NEVER_NS, 0.0, 800.0, 8.0, 1.0)
    >>> float(ring_all_reduce_ns(8e6, 8.0, 8.0, Fabric(tier, tier)))
    151000.0
    """
    up, out = fabric.scale_up, fabric.scale_out
    outer = group_count / inner_count
    crosses, inside = pair_flag(outer), pair_flag(inner_count)
    wire_in = 2.0 * message_bytes * (inner_count - 1.0) / inner_count
    wire_out = crosses * outer_reduce_ratio(group_count, inner_count) * message_bytes / inner_count
    start_in = start_ns(message_bytes / inner_count, 2.0 * ring_steps_count(inner_count, up), wire_in, up)
    start_out = start_ns(message_bytes / inner_count, 2.0 * np.log2(np.maximum(outer, 1.0)), wire_out, out)
    lines = np.maximum(line_ns(wire_in, inner_count, 0.5 * up.pair_loss_frac, up), network_ns(wire_out, out))
    return inside * start_in + crosses * start_out + lines


def _switch_all_reduce_ns(message_bytes: Numeric, group_count: Numeric, tier: Tier) -> Numeric:
    """In-switch reduction inside one domain: (n+1)/n of the buffer each way, the sum comes back by multicast."""
    wire_bytes = (group_count + 1.0) / group_count * message_bytes
    time_ns = tier.switch_launch_ns + BITS_PER_BYTE * wire_bytes * tier.contention_ratio / (
        tier.rate_gbps * tier.switch_rate_ratio
    )
    usable = (tier.reduction_flag > 0.0) & (message_bytes >= tier.switch_start_bytes)
    return np.where(usable, time_ns, NEVER_NS)


def _fast_all_reduce_ns(message_bytes: Numeric, group_count: Numeric, tier: Tier) -> Numeric:
    """One-shot (everybody reads everything) or two-shot (reduce-scatter, all-gather) kernel within its size limit."""
    rate_gbps = tier.fast_rate_gbps * reach_frac(group_count, tier)
    peer_ns = BITS_PER_BYTE * (group_count - 1.0) * message_bytes / rate_gbps
    start_ns = tier.fast_launch_ns + tier.fast_hop_ns * np.maximum(group_count - 2.0, 0.0)
    limit_bytes = tier.fast_one_shot_bytes * (2.0 / group_count) ** tier.fast_one_shot_power_ratio
    one_shot = np.where(message_bytes <= limit_bytes, start_ns + peer_ns, NEVER_NS)
    two_shot = start_ns + tier.fast_barrier_ns + 2.0 / group_count * peer_ns
    return np.minimum(one_shot, np.where(message_bytes <= tier.fast_two_shot_bytes, two_shot, NEVER_NS))


@empirical("kernels/nccl.csv, kernels/fast_allreduce.csv, collectives.csv")
def all_reduce_ns(message_bytes: Numeric, group_count: Numeric, inner_count: Numeric, fabric: Fabric) -> Numeric:
    """All-reduce of a buffer that every rank holds, by the fastest algorithm the library may use.

    In-switch and low-latency kernels are taken only by groups inside one scale-up domain.

    Args:
        message_bytes: The buffer each rank holds. [byte], >= 0
        group_count: Ranks in the group. [count], >= 1
        inner_count: Ranks of the group in one scale-up domain. [count], 1 to group_count
        fabric: The two tiers.

    Returns:
        Time from the last rank's start to the last rank's end. [ns]; 0 for a group of one.

    Source:
        definition: a + w/B + c sqrt(w) per tier.

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, NEVER_NS, 0.0, 800.0, 8.0, 1.0)
    >>> float(all_reduce_ns(8e6, 8.0, 8.0, Fabric(tier, tier))), float(all_reduce_ns(8e6, 1.0, 1.0, Fabric(tier, tier)))
    (151000.0, 0.0)
    """
    up = fabric.scale_up
    ring = ring_all_reduce_ns(message_bytes, group_count, inner_count, fabric)
    inside = group_count <= inner_count
    switched = np.where(inside, _switch_all_reduce_ns(message_bytes, group_count, up), NEVER_NS)
    mapped = inside & (group_count <= up.fast_domain_count)
    fast = np.where(mapped, _fast_all_reduce_ns(message_bytes, group_count, up), NEVER_NS)
    library_ns = launched_ns(np.minimum(ring, switched), up)
    best = np.minimum(library_ns, np.maximum(fast, up.host_fast_ns))
    return np.where(group_count > 1.0, best, 0.0)


def _half_ns(message_bytes: Numeric, group_count: Numeric, inner_count: Numeric, fabric: Fabric) -> Numeric:
    """All-gather or reduce-scatter: one pass of the ring that an all-reduce takes twice."""
    up, out = fabric.scale_up, fabric.scale_out
    outer = group_count / inner_count
    crosses, inside = pair_flag(outer), pair_flag(inner_count)
    wire_in = message_bytes * (inner_count - 1.0) / inner_count
    wire_out = crosses * message_bytes * (group_count - 1.0) / (group_count * inner_count)
    start_in = start_ns(message_bytes / inner_count, ring_steps_count(inner_count, up), wire_in, up)
    start_out = start_ns(message_bytes / inner_count, np.log2(np.maximum(outer, 1.0)), wire_out, out)
    lines = np.maximum(line_ns(wire_in, inner_count, up.pair_loss_frac, up), network_ns(wire_out, out))
    total = launched_ns(inside * start_in + crosses * start_out + lines, up)
    return np.where(group_count > 1.0, total, 0.0)


@empirical("kernels/nccl.csv")
def all_gather_ns(message_bytes: Numeric, group_count: Numeric, inner_count: Numeric, fabric: Fabric) -> Numeric:
    """All-gather: every rank ends with the full buffer.

    Args:
        message_bytes: The full gathered buffer. [byte], >= 0
        group_count: Ranks in the group. [count], >= 1
        inner_count: Ranks of the group in one scale-up domain. [count], 1 to group_count
        fabric: The two tiers.

    Returns:
        Time of the collective. [ns]; 0 for a group of one.

    Source:
        definition: each rank receives (n-1)/n of the buffer.

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, NEVER_NS, 0.0, 800.0, 8.0, 1.0)
    >>> float(all_gather_ns(8e6, 8.0, 8.0, Fabric(tier, tier)))
    77500.0
    """
    return _half_ns(message_bytes, group_count, inner_count, fabric)


@empirical("kernels/nccl.csv")
def reduce_scatter_ns(message_bytes: Numeric, group_count: Numeric, inner_count: Numeric, fabric: Fabric) -> Numeric:
    """Reduce-scatter: every rank ends with its share of the sum.

    Args:
        message_bytes: The full buffer before the reduction. [byte], >= 0
        group_count: Ranks in the group. [count], >= 1
        inner_count: Ranks of the group in one scale-up domain. [count], 1 to group_count
        fabric: The two tiers.

    Returns:
        Time of the collective. [ns]; 0 for a group of one.

    Source:
        definition: each rank sends (n-1)/n of the buffer.

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, NEVER_NS, 0.0, 800.0, 8.0, 1.0)
    >>> float(reduce_scatter_ns(8e6, 8.0, 8.0, Fabric(tier, tier)))
    77500.0
    """
    return _half_ns(message_bytes, group_count, inner_count, fabric)


@empirical("kernels/nccl.csv")
def broadcast_ns(message_bytes: Numeric, group_count: Numeric, inner_count: Numeric, fabric: Fabric) -> Numeric:
    """Broadcast: one rank's buffer to all, by a pipelined chain through each domain.

    Args:
        message_bytes: The buffer. [byte], >= 0
        group_count: Ranks in the group. [count], >= 1
        inner_count: Ranks of the group in one scale-up domain. [count], 1 to group_count
        fabric: The two tiers.

    Returns:
        Time of the collective. [ns]; 0 for a group of one.

    Source:
        definition: every rank receives the whole buffer once.

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, NEVER_NS, 0.0, 800.0, 8.0, 1.0)
    >>> float(broadcast_ns(8e6, 8.0, 8.0, Fabric(tier, tier)))
    87500.0
    """
    up, out = fabric.scale_up, fabric.scale_out
    outer = group_count / inner_count
    crosses, inside = pair_flag(outer), pair_flag(inner_count)
    start_in = start_ns(message_bytes / inner_count, ring_steps_count(inner_count, up), message_bytes, up)
    share = message_bytes / inner_count
    start_out = start_ns(share, np.log2(np.maximum(outer, 1.0)), share, out)
    inside_ns = inside * line_ns(message_bytes, inner_count, up.pair_loss_frac, up)
    lines = np.maximum(inside_ns, crosses * network_ns(share, out))
    total = launched_ns(inside * start_in + crosses * start_out + lines, up)
    return np.where(group_count > 1.0, total, 0.0)
