"""Time of collectives on a fabric of two tiers: a scale-up domain and the scale-out network behind it.

Every flat collective costs a launch, its steps, its bytes over the line and a ramp that grows with the square root
of the bytes (pipelines fill slowly); where a library changes from its low-latency to its bulk protocol it pays once
more. A group that spans domains works inside each domain and across them at the same time: bytes overlap, message
starts add. For an all-reduce the fastest of ring, in-switch reduction, one-shot and two-shot kernels is taken within
the limits the library sets itself.
"""

import numpy as np

from codesign.model.fabric.tier import NEVER_NS, UNLIMITED_BYTES, Exchange, Fabric, Tier, over_mappings
from codesign.units import Numeric, empirical

__all__ = [
    "NEVER_NS", "UNLIMITED_BYTES", "Exchange", "Fabric", "Tier", "all_gather_ns", "all_reduce_ns", "all_to_all_ns",
    "broadcast_ns", "distinct_ranks_count", "inner_count", "moe_exchange_ns", "outer_reduce_ratio", "over_mappings",
    "point_to_point_ns", "reduce_scatter_ns", "remote_ranks_count", "ring_all_reduce_ns",
]  # fmt: skip

BITS_PER_BYTE = 8.0


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


def _reach_frac(group_count: Numeric, tier: Tier) -> Numeric:
    """Share of a rank's links that lead to the group: all of a switch, (n-1)/(N-1) of a full mesh."""
    peers_frac = (group_count - 1.0) / np.maximum(tier.domain_count - 1.0, 1.0)
    return 1.0 - tier.mesh_flag * (1.0 - np.minimum(1.0, np.maximum(peers_frac, 1e-9)))


def _line_ns(wire_bytes: Numeric, group_count: Numeric, loss_frac: Numeric, tier: Tier) -> Numeric:
    """Bytes over the line; local copies take a share that matters less the more peers there are."""
    kept = (1.0 - loss_frac / np.maximum(group_count, 2.0)) * _reach_frac(group_count, tier)
    return BITS_PER_BYTE * wire_bytes * tier.contention_ratio / (tier.rate_gbps * kept)


def _network_ns(wire_bytes: Numeric, tier: Tier) -> Numeric:
    return BITS_PER_BYTE * wire_bytes * tier.contention_ratio / tier.rate_gbps


def _flag(count: Numeric) -> Numeric:
    """1 for two members or more, 0 for one."""
    return np.minimum(1.0, np.maximum(0.0, count - 1.0))


def _handover_ns(chunk_bytes: Numeric, steps_count: Numeric, tier: Tier) -> Numeric:
    x = chunk_bytes / tier.handover_bytes
    x = x * x
    return (tier.handover_ns + tier.handover_hop_ns * steps_count) * (x / (1.0 + x))


def _start_ns(chunk_bytes: Numeric, steps_count: Numeric, wire_bytes: Numeric, tier: Tier) -> Numeric:
    """Launch, steps, change of protocol and ramp: everything but the bytes over the line."""
    return (
        tier.launch_ns
        + tier.hop_ns * steps_count
        + _handover_ns(chunk_bytes, steps_count, tier)
        + tier.ramp_ns_per_sqrt_byte * np.sqrt(wire_bytes)
    )


def _launched_ns(device_ns: Numeric, tier: Tier) -> Numeric:
    """Launch from the host beside the work on the device: mostly hidden by the longer of the two."""
    joined: Numeric = np.sqrt(device_ns * device_ns + tier.host_library_ns * tier.host_library_ns)
    return joined


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
    crosses, inside = _flag(outer), _flag(inner_count)
    wire_in = 2.0 * message_bytes * (inner_count - 1.0) / inner_count
    wire_out = crosses * outer_reduce_ratio(group_count, inner_count) * message_bytes / inner_count
    start_in = _start_ns(message_bytes / inner_count, 2.0 * (inner_count - 1.0), wire_in, up)
    start_out = _start_ns(message_bytes / inner_count, 2.0 * np.log2(np.maximum(outer, 1.0)), wire_out, out)
    lines = np.maximum(_line_ns(wire_in, inner_count, 0.5 * up.pair_loss_frac, up), _network_ns(wire_out, out))
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
    rate_gbps = tier.fast_rate_gbps * _reach_frac(group_count, tier)
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
    library_ns = _launched_ns(np.minimum(ring, switched), up)
    best = np.minimum(library_ns, np.maximum(fast, up.host_fast_ns))
    return np.where(group_count > 1.0, best, 0.0)


def _half_ns(message_bytes: Numeric, group_count: Numeric, inner_count: Numeric, fabric: Fabric) -> Numeric:
    """All-gather or reduce-scatter: one pass of the ring that an all-reduce takes twice."""
    up, out = fabric.scale_up, fabric.scale_out
    outer = group_count / inner_count
    crosses, inside = _flag(outer), _flag(inner_count)
    wire_in = message_bytes * (inner_count - 1.0) / inner_count
    wire_out = crosses * message_bytes * (group_count - 1.0) / (group_count * inner_count)
    start_in = _start_ns(message_bytes / inner_count, inner_count - 1.0, wire_in, up)
    start_out = _start_ns(message_bytes / inner_count, np.log2(np.maximum(outer, 1.0)), wire_out, out)
    lines = np.maximum(_line_ns(wire_in, inner_count, up.pair_loss_frac, up), _network_ns(wire_out, out))
    total = _launched_ns(inside * start_in + crosses * start_out + lines, up)
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
    crosses, inside = _flag(outer), _flag(inner_count)
    start_in = _start_ns(message_bytes / inner_count, inner_count - 1.0, message_bytes, up)
    share = message_bytes / inner_count
    start_out = _start_ns(share, np.log2(np.maximum(outer, 1.0)), share, out)
    inside_ns = inside * _line_ns(message_bytes, inner_count, up.pair_loss_frac, up)
    lines = np.maximum(inside_ns, crosses * _network_ns(share, out))
    total = _launched_ns(inside * start_in + crosses * start_out + lines, up)
    return np.where(group_count > 1.0, total, 0.0)


def _exchange_start_ns(wire_bytes: Numeric, tier: Tier) -> Numeric:
    x = wire_bytes / tier.exchange_handover_bytes
    x = x * x
    return (
        tier.launch_ns
        + tier.exchange_launch_ns
        + tier.exchange_handover_ns * (x / (1.0 + x))
        + tier.ramp_ns_per_sqrt_byte * np.sqrt(wire_bytes)
    )


def _exchange_line_ns(wire_bytes: Numeric, group_count: Numeric, tier: Tier) -> Numeric:
    return _line_ns(wire_bytes, group_count, tier.exchange_pair_loss_frac, tier) / tier.exchange_rate_ratio


def _exchange_ns(wire_in: Numeric, wire_out: Numeric, inner: Numeric, domains: Numeric, fabric: Fabric) -> Numeric:
    """Bytes inside and across at the same time; the starts of both add."""
    up, out = fabric.scale_up, fabric.scale_out
    crosses, inside = _flag(domains), _flag(inner)
    lines = np.maximum(_exchange_line_ns(wire_in, inner, up), _network_ns(wire_out, out) / out.exchange_rate_ratio)
    start_out = _exchange_start_ns(wire_out, out) + out.hop_ns
    return inside * _exchange_start_ns(wire_in, up) + crosses * start_out + lines


@empirical("kernels/nccl.csv")
def all_to_all_ns(message_bytes: Numeric, group_count: Numeric, inner_count: Numeric, fabric: Fabric) -> Numeric:
    """All-to-all: every rank sends a different part to every other.

    Args:
        message_bytes: What one rank sends in all, its own part included. [byte], >= 0
        group_count: Ranks in the group. [count], >= 1
        inner_count: Ranks of the group in one scale-up domain. [count], 1 to group_count
        fabric: The two tiers.

    Returns:
        Time of the collective. [ns]; 0 for a group of one.

    Source:
        definition: (g-1)/n of the bytes stay in the domain, (n-g)/n leave it.

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, NEVER_NS, 0.0, 800.0, 8.0, 1.0)
    >>> float(all_to_all_ns(8e6, 8.0, 8.0, Fabric(tier, tier)))
    74000.0
    """
    wire_in = message_bytes * (inner_count - 1.0) / group_count
    wire_out = message_bytes * (group_count - inner_count) / group_count
    total = _exchange_ns(wire_in, wire_out, inner_count, group_count / inner_count, fabric)
    total = _launched_ns(total, fabric.scale_up)
    return np.where(group_count > 1.0, total, 0.0)


@empirical("collectives.csv")
def point_to_point_ns(message_bytes: Numeric, crosses_frac: Numeric, fabric: Fabric) -> Numeric:
    """Send and receive of one message, averaged over pairs of which a share lies in different domains.

    Args:
        message_bytes: The message. [byte], >= 0
        crosses_frac: Share of pairs that leave the scale-up domain. [1], 0 to 1
        fabric: The two tiers.

    Returns:
        Mean time of one transfer. [ns]

    Source:
        definition: launch, one message start and the bytes over the line.

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, NEVER_NS, 0.0, 800.0, 8.0, 1.0)
    >>> float(point_to_point_ns(8e6, 0.0, Fabric(tier, tier)))
    84500.0
    """
    up, out = fabric.scale_up, fabric.scale_out
    inside = _exchange_start_ns(message_bytes, up) + up.hop_ns + _exchange_line_ns(message_bytes, 2.0, up)
    outside = _exchange_start_ns(message_bytes, out) + out.hop_ns + _network_ns(message_bytes, out)
    return (1.0 - crosses_frac) * inside + crosses_frac * outside


def distinct_ranks_count(top_k_count: Numeric, group_count: Numeric) -> Numeric:
    """Distinct ranks that one token goes to, its own included, when its experts lie on ranks at random.

    Args:
        top_k_count: Experts per token. [count], >= 1
        group_count: Ranks that hold experts. [count], >= 1

    Returns:
        Expected number of distinct ranks. [count]

    Source:
        definition: R (1 - (1 - 1/R)^k).

    >>> distinct_ranks_count(top_k_count=2, group_count=2)
    1.5
    """
    return group_count * (1.0 - (1.0 - 1.0 / group_count) ** top_k_count)


def remote_ranks_count(top_k_count: Numeric, group_count: Numeric) -> Numeric:
    """Distinct other ranks that one token goes to, when its experts lie on ranks at random.

    Args:
        top_k_count: Experts per token. [count], >= 1
        group_count: Ranks that hold experts. [count], >= 1

    Returns:
        Expected number of distinct remote ranks. [count]

    Source:
        definition: of R (1 - (1 - 1/R)^k) distinct ranks (R-1)/R are remote.

    >>> remote_ranks_count(top_k_count=1, group_count=4)
    0.75
    """
    return distinct_ranks_count(top_k_count, group_count) * (group_count - 1.0) / group_count


def _mixed(first: Numeric, second: Numeric, second_flag: Numeric) -> Numeric:
    return first + second_flag * (second - first)


@empirical("kernels/moe_alltoall.csv, collectives.csv")
def moe_exchange_ns(
    tokens_count: Numeric,
    hidden_bytes: Numeric,
    top_k_count: Numeric,
    group_count: Numeric,
    inner_count: Numeric,
    fabric: Fabric,
    combine_flag: Numeric = 0.0,
) -> Numeric:
    """Dispatch, or combine, of the tokens of a mixture-of-experts layer.

    A kernel sends a token once to each rank that needs it, or once per expert; across domains once per remote domain
    or once per expert. Its floor (launch, signalling) hides under the bytes: the two are joined as a root of squares.

    Args:
        tokens_count: Tokens on each rank. [count], >= 0
        hidden_bytes: Bytes of one token on the wire. [byte], >= 0
        top_k_count: Experts per token. [count], >= 1
        group_count: Ranks that hold experts. [count], >= 1
        inner_count: Ranks of the group in one scale-up domain. [count], 1 to group_count
        fabric: The two tiers and the exchange kernels.
        combine_flag: 1 for the way back. [1], 0 or 1

    Returns:
        Time of one exchange. [ns]; 0 for a group of one.

    Source:
        definition: all-to-all of de-duplicated copies.

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, NEVER_NS, 0.0, 800.0, 8.0, 1.0)
    >>> float(moe_exchange_ns(1000.0, 8000.0, 1.0, 8.0, 8.0, Fabric(tier, tier)))
    74000.0
    """
    first, second = fabric.dispatch, fabric.combine
    copies_flag = _mixed(first.copies_flag, second.copies_flag, combine_flag)
    domains = group_count / inner_count
    once_per_rank = remote_ranks_count(top_k_count, group_count)
    per_expert = top_k_count * (group_count - 1.0) / group_count
    copies = _mixed(once_per_rank, per_expert, copies_flag)
    once_per_domain = remote_ranks_count(top_k_count, domains)
    copies_out = _mixed(once_per_domain, top_k_count * (domains - 1.0) / domains, copies_flag)
    # per-rank copies fan out inside the domain they arrive in; per-expert copies across domains never touch the inside
    copies_in = np.where(inner_count > 1.0, copies - copies_flag * copies_out, 0.0)
    wire_in = tokens_count * hidden_bytes * copies_in
    wire_out = tokens_count * hidden_bytes * copies_out
    generic = _exchange_ns(wire_in, wire_out, inner_count, domains, fabric)
    kernel = _kernel_exchange_ns(wire_in, wire_out, group_count, fabric, combine_flag)
    known = _mixed(first.known_flag, second.known_flag, combine_flag)
    return np.where(group_count > 1.0, np.where(known > 0.0, kernel, generic), 0.0)


def _kernel_exchange_ns(
    wire_in: Numeric, wire_out: Numeric, group_count: Numeric, fabric: Fabric, combine_flag: Numeric
) -> Numeric:
    """A measured exchange kernel: its floor, then the slower of its two tiers."""
    first, second = fabric.dispatch, fabric.combine
    up, out = fabric.scale_up, fabric.scale_out
    growth = _mixed(first.floor_growth_ratio, second.floor_growth_ratio, combine_flag)
    floor_ns = _mixed(first.floor_ns, second.floor_ns, combine_flag) * (1.0 + growth * np.log2(group_count))
    rate_gbps = np.minimum(up.rate_gbps, _mixed(first.rate_gbps, second.rate_gbps, combine_flag))
    ramp = _mixed(first.ramp_ns_per_sqrt_byte, second.ramp_ns_per_sqrt_byte, combine_flag)
    inside_ns = BITS_PER_BYTE * wire_in / rate_gbps + ramp * np.sqrt(wire_in)
    across_ns = BITS_PER_BYTE * wire_out * out.contention_ratio / out.rate_gbps
    busy_ns = np.maximum(inside_ns, across_ns)
    total: Numeric = np.sqrt(floor_ns * floor_ns + busy_ns * busy_ns) + np.where(wire_out > 0.0, out.hop_ns, 0.0)
    return total
