"""Time of collectives on a fabric of two tiers: a scale-up domain and the scale-out network behind it.

Every flat collective costs a launch, one message start per step, its bytes over the line rate, and a ramp that grows
with the square root of the bytes (pipelines fill slowly). A group that spans domains reduces inside first, crosses the
network with its share, and gathers inside again; the two tiers move bytes at the same time, their message starts add.
Below a few hundred kilobytes a low-latency kernel (one-shot or two-shot) beats the library; the faster one is taken.
"""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.units import Numeric, empirical

BITS_PER_BYTE = 8.0


@dataclass(frozen=True, slots=True, eq=False)
class Tier:
    """One tier as a collective sees it; all numbers are per accelerator and direction."""

    rate_gbps: Numeric  # usable line rate
    hop_ns: Numeric  # one message start: link, switch, flag
    launch_ns: Numeric  # software start of one collective
    ramp_ns_per_sqrt_byte: Numeric  # c of a + w/B + c sqrt(w)
    reduction_flag: Numeric  # 1: the switch reduces
    fast_launch_ns: Numeric  # low-latency kernel, start
    fast_hop_ns: Numeric  # low-latency kernel, each further peer or barrier
    fast_rate_gbps: Numeric  # what the low-latency kernel draws from the link
    domain_count: Numeric  # accelerators one domain reaches
    contention_ratio: Numeric  # 1: non-blocking; 4: four-to-one oversubscribed beyond the leaf

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Fabric:
    """Scale-up and scale-out as one system."""

    scale_up: Tier
    scale_out: Tier


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


def _line_ns(wire_bytes: Numeric, tier: Tier) -> Numeric:
    return BITS_PER_BYTE * wire_bytes * tier.contention_ratio / tier.rate_gbps


def _ramp_ns(wire_bytes: Numeric, tier: Tier) -> Numeric:
    return tier.ramp_ns_per_sqrt_byte * np.sqrt(wire_bytes)


def _log2(count: Numeric) -> Numeric:
    return np.log2(np.maximum(count, 1.0))


def _reduce_wire_bytes(message_bytes: Numeric, group_count: Numeric, tier: Tier) -> Numeric:
    """Bytes per direction of an all-reduce: 2 (n-1)/n, or (n+1)/n when the switch reduces, whichever is less."""
    ring = 2.0 * (group_count - 1.0) / group_count
    in_switch = np.minimum(ring, (group_count + 1.0) / group_count)
    return message_bytes * (ring + tier.reduction_flag * (in_switch - ring))


@empirical("kernels/nccl.csv, kernels/fast_allreduce.csv, collectives.csv")
def all_reduce_ns(message_bytes: Numeric, group_count: Numeric, inner_count: Numeric, fabric: Fabric) -> Numeric:
    """All-reduce of a buffer that every rank holds, by the fastest of the library and the low-latency kernels.

    Args:
        message_bytes: The buffer each rank holds. [byte], >= 0
        group_count: Ranks in the group. [count], >= 1
        inner_count: Ranks of the group in one scale-up domain. [count], 1 to group_count
        fabric: The two tiers.

    Returns:
        Time from the last rank's start to the last rank's end. [ns]; 0 for a group of one.

    Source:
        definition: a + w/B + c sqrt(w) per tier.

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, 1e15, 0.0, 800.0, 8.0, 1.0)
    >>> float(all_reduce_ns(8e6, 8.0, 8.0, Fabric(tier, tier)))
    146000.0
    """
    up, out = fabric.scale_up, fabric.scale_out
    outer = group_count / inner_count
    wire_in = _reduce_wire_bytes(message_bytes, inner_count, up)
    wire_out = _reduce_wire_bytes(message_bytes / inner_count, outer, out)
    library = (
        _flag(inner_count) * (up.launch_ns + up.hop_ns * np.minimum(inner_count - 1.0, 1.0 + _log2(inner_count)))
        + _flag(outer) * (out.launch_ns + 2.0 * out.hop_ns * _log2(outer))
        + np.maximum(_line_ns(wire_in, up), _line_ns(wire_out, out))
        + _ramp_ns(wire_in, up)
        + _ramp_ns(wire_out, out)
    )
    fast = np.where(outer > 1.0, np.inf, _fast_all_reduce_ns(message_bytes, inner_count, up))
    return np.where(group_count > 1.0, np.minimum(library, fast), 0.0)


def _flag(count: Numeric) -> Numeric:
    return np.minimum(1.0, np.maximum(0.0, count - 1.0))


def _fast_all_reduce_ns(message_bytes: Numeric, group_count: Numeric, tier: Tier) -> Numeric:
    bits = BITS_PER_BYTE * message_bytes
    one_shot = tier.fast_launch_ns + (group_count - 1.0) * bits / tier.fast_rate_gbps
    two_shot = tier.fast_launch_ns + tier.fast_hop_ns + 2.0 * (group_count - 1.0) / group_count * bits / tier.fast_rate_gbps
    return np.minimum(one_shot, two_shot)


def _half(message_bytes: Numeric, group_count: Numeric, inner: Numeric, fabric: Fabric) -> Numeric:
    up, out = fabric.scale_up, fabric.scale_out
    outer = group_count / inner
    wire_in = message_bytes * (inner - 1.0) / inner
    wire_out = message_bytes / inner * (outer - 1.0) / outer
    total = (
        _flag(inner) * (up.launch_ns + up.hop_ns * _log2(inner))
        + _flag(outer) * (out.launch_ns + out.hop_ns * _log2(outer))
        + np.maximum(_line_ns(wire_in, up), _line_ns(wire_out, out))
        + _ramp_ns(wire_in, up)
        + _ramp_ns(wire_out, out)
    )
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

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, 1e15, 0.0, 800.0, 8.0, 1.0)
    >>> float(all_gather_ns(8e6, 8.0, 8.0, Fabric(tier, tier)))
    75500.0
    """
    return _half(message_bytes, group_count, inner_count, fabric)


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

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, 1e15, 0.0, 800.0, 8.0, 1.0)
    >>> float(reduce_scatter_ns(8e6, 8.0, 8.0, Fabric(tier, tier)))
    75500.0
    """
    return _half(message_bytes, group_count, inner_count, fabric)


@empirical("kernels/nccl.csv, kernels/moe_alltoall.csv")
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

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, 1e15, 0.0, 800.0, 8.0, 1.0)
    >>> float(all_to_all_ns(8e6, 8.0, 8.0, Fabric(tier, tier)))
    74500.0
    """
    up, out = fabric.scale_up, fabric.scale_out
    wire_in = message_bytes * (inner_count - 1.0) / group_count
    wire_out = message_bytes * (group_count - inner_count) / group_count
    outer = group_count / inner_count
    total = (
        _flag(inner_count) * (up.launch_ns + up.hop_ns)
        + _flag(outer) * (out.launch_ns + out.hop_ns)
        + np.maximum(_line_ns(wire_in, up), _line_ns(wire_out, out))
        + _ramp_ns(wire_in, up)
        + _ramp_ns(wire_out, out)
    )
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

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, 1e15, 0.0, 800.0, 8.0, 1.0)
    >>> float(point_to_point_ns(8e6, 0.0, Fabric(tier, tier)))
    84500.0
    """
    up, out = fabric.scale_up, fabric.scale_out
    inside = up.launch_ns + up.hop_ns + _line_ns(message_bytes, up) + _ramp_ns(message_bytes, up)
    outside = out.launch_ns + out.hop_ns + _line_ns(message_bytes, out) + _ramp_ns(message_bytes, out)
    return (1.0 - crosses_frac) * inside + crosses_frac * outside


def remote_ranks_count(top_k_count: Numeric, group_count: Numeric) -> Numeric:
    """Distinct other ranks that one token goes to, when its experts lie on ranks at random.

    Args:
        top_k_count: Experts per token. [count], >= 1
        group_count: Ranks that hold experts. [count], >= 1

    Returns:
        Expected number of distinct remote ranks. [count]

    Source:
        definition: R (1 - (1 - 1/R)^k) distinct ranks, of which (R-1)/R are remote.

    >>> remote_ranks_count(top_k_count=1, group_count=4)
    0.75
    """
    distinct = group_count * (1.0 - (1.0 - 1.0 / group_count) ** top_k_count)
    return distinct * (group_count - 1.0) / group_count


@empirical("kernels/moe_alltoall.csv")
def moe_exchange_ns(
    tokens_count: Numeric,
    hidden_bytes: Numeric,
    top_k_count: Numeric,
    group_count: Numeric,
    inner_count: Numeric,
    fabric: Fabric,
) -> Numeric:
    """Dispatch, or combine, of the tokens of a mixture-of-experts layer; each remote rank gets a token once.

    Across domains a token crosses once per remote domain and fans out inside it.

    Args:
        tokens_count: Tokens on each rank. [count], >= 0
        hidden_bytes: Bytes of one token. [byte], >= 0
        top_k_count: Experts per token. [count], >= 1
        group_count: Ranks that hold experts. [count], >= 1
        inner_count: Ranks of the group in one scale-up domain. [count], 1 to group_count
        fabric: The two tiers.

    Returns:
        Time of one exchange. [ns]; 0 for a group of one.

    Source:
        definition: all-to-all of de-duplicated copies.

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, 1e15, 0.0, 800.0, 8.0, 1.0)
    >>> float(moe_exchange_ns(1000.0, 8000.0, 1.0, 8.0, 8.0, Fabric(tier, tier)))
    74500.0
    """
    up, out = fabric.scale_up, fabric.scale_out
    domains = group_count / inner_count
    copies_in = remote_ranks_count(top_k_count, group_count) * _flag(inner_count)
    copies_out = remote_ranks_count(top_k_count, domains)
    wire_in = tokens_count * hidden_bytes * np.where(inner_count > 1.0, copies_in, 0.0)
    wire_out = tokens_count * hidden_bytes * copies_out
    total = (
        _flag(inner_count) * (up.launch_ns + up.hop_ns)
        + _flag(domains) * (out.launch_ns + out.hop_ns)
        + np.maximum(_line_ns(wire_in, up), _line_ns(wire_out, out))
        + _ramp_ns(wire_in, up)
        + _ramp_ns(wire_out, out)
    )
    return np.where(group_count > 1.0, total, 0.0)
