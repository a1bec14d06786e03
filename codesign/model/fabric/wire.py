"""What every collective is made of: bytes over a tier's links, message starts, the change of protocol, the launch."""

import numpy as np

from codesign.model.fabric.tier import Tier
from codesign.units import Numeric

BITS_PER_BYTE = 8.0


def reach_frac(group_count: Numeric, tier: Tier) -> Numeric:
    """Share of a rank's links that lead to its group: all of a switch's, (n-1)/(N-1) of a full mesh's.

    Args:
        group_count: Ranks of the group in the domain. [count], >= 1
        tier: The tier; its mesh flag and domain size are read.

    Returns:
        Share of the rate. [1], above 0 to 1

    Source:
        definition: one link per pair in a mesh.

    >>> tier = Tier(800.0, 0.0, 0.0, 0.0, 0.0, 1e15, 0.0, 800.0, 9.0, 1.0, mesh_flag=1.0)
    >>> float(reach_frac(group_count=5.0, tier=tier))
    0.5
    """
    peers_frac = (group_count - 1.0) / np.maximum(tier.domain_count - 1.0, 1.0)
    return 1.0 - tier.mesh_flag * (1.0 - np.minimum(1.0, np.maximum(peers_frac, 1e-9)))


def line_ns(wire_bytes: Numeric, group_count: Numeric, pair_loss_frac: Numeric, tier: Tier) -> Numeric:
    """Bytes over the links of a domain; local copies take a share that matters less the more peers there are.

    Args:
        wire_bytes: Bytes one rank sends. [byte], >= 0
        group_count: Ranks of the group in the domain. [count], >= 1
        pair_loss_frac: Share lost to local copies, over the group size. [1], 0 to 1.3
        tier: The scale-up tier.

    Returns:
        Time on the links. [ns]

    Source:
        definition: bytes over rate.

    >>> tier = Tier(800.0, 0.0, 0.0, 0.0, 0.0, 1e15, 0.0, 800.0, 8.0, 1.0)
    >>> float(line_ns(wire_bytes=1000.0, group_count=8.0, pair_loss_frac=0.0, tier=tier))
    10.0
    """
    kept = (1.0 - pair_loss_frac / np.maximum(group_count, 2.0)) * reach_frac(group_count, tier)
    return BITS_PER_BYTE * wire_bytes * tier.contention_ratio / (tier.rate_gbps * kept)


def network_ns(wire_bytes: Numeric, tier: Tier) -> Numeric:
    """Bytes over the ports into the scale-out network.

    Args:
        wire_bytes: Bytes one rank sends. [byte], >= 0
        tier: The scale-out tier.

    Returns:
        Time on the ports. [ns]

    Source:
        definition: bytes over rate, longer by the contention behind the leaf.

    >>> tier = Tier(800.0, 0.0, 0.0, 0.0, 0.0, 1e15, 0.0, 800.0, 1e9, 2.0)
    >>> network_ns(wire_bytes=1000.0, tier=tier)
    20.0
    """
    return BITS_PER_BYTE * wire_bytes * tier.contention_ratio / tier.rate_gbps


def handover_ns(chunk_bytes: Numeric, steps_count: Numeric, tier: Tier) -> Numeric:
    """What the change from a library's low-latency to its bulk protocol adds, once and per step.

    Args:
        chunk_bytes: Share of the message per rank. [byte], >= 0
        steps_count: Steps of the algorithm. [count], >= 0
        tier: The tier; its handover numbers are read.

    Returns:
        Extra time. [ns]

    Source:
        definition: half of it is paid at the handover size.

    >>> tier = Tier(1.0, 0.0, 0.0, 0.0, 0.0, 1e15, 0.0, 1.0, 8.0, 1.0, handover_ns=8.0, handover_bytes=100.0)
    >>> handover_ns(chunk_bytes=100.0, steps_count=2.0, tier=tier)
    4.0
    """
    x = chunk_bytes / tier.handover_bytes
    x = x * x
    x = x * x  # a tuner switches at a size, so the change is steep
    return (tier.handover_ns + tier.handover_hop_ns * steps_count) * (x / (1.0 + x))


def ramp_ns(wire_bytes: Numeric, tier: Tier) -> Numeric:
    """Slow filling of a pipeline: grows with the square root of the bytes.

    Args:
        wire_bytes: Bytes one rank sends. [byte], >= 0
        tier: The tier.

    Returns:
        Extra time. [ns]

    Source:
        definition: chunks and their number both grow with the square root.

    >>> tier = Tier(1.0, 0.0, 0.0, 2.0, 0.0, 1e15, 0.0, 1.0, 8.0, 1.0)
    >>> float(ramp_ns(wire_bytes=100.0, tier=tier))
    20.0
    """
    return tier.ramp_ns_per_sqrt_byte * np.sqrt(wire_bytes)


def ring_steps_count(group_count: Numeric, tier: Tier) -> Numeric:
    """Steps of one pass over the ranks of a domain: a ring, and rings nested in rings where it would grow too long.

    Nested rings move the same bytes: what an outer ring adds, the inner one has already cut.

    Args:
        group_count: Ranks of the group in the domain. [count], >= 1
        tier: The tier; the longest ring and the steps of a doubling are read.

    Returns:
        Steps of a reduce-scatter or an all-gather. [count]

    Source:
        thakur-2005: n - 1 steps of a ring, log2 n of recursive doubling.

    >>> tier = Tier(1.0, 0.0, 0.0, 0.0, 0.0, 1e15, 0.0, 1.0, 8.0, 1.0, ring_most_count=16.0, nest_hops_count=2.0)
    >>> float(ring_steps_count(8.0, tier)), float(ring_steps_count(64.0, tier))
    (7.0, 19.0)
    """
    ring = np.minimum(group_count, tier.ring_most_count)
    return ring - 1.0 + tier.nest_hops_count * np.log2(group_count / ring)


def start_ns(chunk_bytes: Numeric, steps_count: Numeric, wire_bytes: Numeric, tier: Tier) -> Numeric:
    """Launch, steps, change of protocol and ramp: everything but the bytes over the line.

    Args:
        chunk_bytes: Share of the message per rank. [byte], >= 0
        steps_count: Steps of the algorithm. [count], >= 0
        wire_bytes: Bytes one rank sends. [byte], >= 0
        tier: The tier.

    Returns:
        Time that is not serialisation. [ns]

    Source:
        definition: sum of the parts.

    >>> tier = Tier(1.0, 5.0, 100.0, 0.0, 0.0, 1e15, 0.0, 1.0, 8.0, 1.0)
    >>> float(start_ns(chunk_bytes=0.0, steps_count=4.0, wire_bytes=0.0, tier=tier))
    120.0
    """
    steps = tier.launch_ns + tier.hop_ns * steps_count
    return steps + handover_ns(chunk_bytes, steps_count, tier) + ramp_ns(wire_bytes, tier)


def launched_ns(device_ns: Numeric, tier: Tier) -> Numeric:
    """Launch from the host beside the work on the device: mostly hidden by the longer of the two.

    Args:
        device_ns: Time of the collective on the device. [ns], >= 0
        tier: The tier; its host launch is read, zero under a captured graph.

    Returns:
        Time seen by the caller. [ns]

    Source:
        definition: root of the sum of squares, within 41 % of the longer.

    >>> tier = Tier(1.0, 0.0, 0.0, 0.0, 0.0, 1e15, 0.0, 1.0, 8.0, 1.0, host_library_ns=3.0)
    >>> float(launched_ns(device_ns=4.0, tier=tier))
    5.0
    """
    joined: Numeric = np.sqrt(device_ns * device_ns + tier.host_library_ns * tier.host_library_ns)
    return joined


def pair_flag(members_count: Numeric) -> Numeric:
    """1 for two members or more, 0 for one; between them it grades.

    Args:
        members_count: Members. [count], >= 1

    Returns:
        Whether anything has to move. [1], 0 to 1

    Source:
        definition: members beyond the first.

    >>> float(pair_flag(1.0)), float(pair_flag(8.0))
    (0.0, 1.0)
    """
    return np.minimum(1.0, np.maximum(0.0, members_count - 1.0))
