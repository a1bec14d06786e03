"""All-to-all, point to point, and the exchange of tokens between the ranks of a mixture-of-experts layer."""

import numpy as np

from codesign.model.fabric.tier import Fabric, Tier
from codesign.model.fabric.wire import BITS_PER_BYTE, launched_ns, line_ns, network_ns, pair_flag
from codesign.units import Numeric, empirical


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
    slower = tier.exchange_contention_ratio / tier.exchange_rate_ratio
    return line_ns(wire_bytes, group_count, tier.exchange_pair_loss_frac, tier) * slower


def _exchange_network_ns(wire_bytes: Numeric, tier: Tier) -> Numeric:
    return network_ns(wire_bytes, tier) * tier.exchange_contention_ratio / tier.exchange_rate_ratio


def _exchange_ns(wire_in: Numeric, wire_out: Numeric, inner: Numeric, domains: Numeric, fabric: Fabric) -> Numeric:
    """Bytes inside and across at the same time; the starts of both add."""
    up, out = fabric.scale_up, fabric.scale_out
    crosses, inside = pair_flag(domains), pair_flag(inner)
    lines = np.maximum(_exchange_line_ns(wire_in, inner, up), _exchange_network_ns(wire_out, out))
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

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, 1e15, 0.0, 800.0, 8.0, 1.0)
    >>> float(all_to_all_ns(8e6, 8.0, 8.0, Fabric(tier, tier)))
    74000.0
    """
    wire_in = message_bytes * (inner_count - 1.0) / group_count
    wire_out = message_bytes * (group_count - inner_count) / group_count
    total = _exchange_ns(wire_in, wire_out, inner_count, group_count / inner_count, fabric)
    total = launched_ns(total, fabric.scale_up)
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
    inside = _exchange_start_ns(message_bytes, up) + up.hop_ns + _exchange_line_ns(message_bytes, 2.0, up)
    outside = _exchange_start_ns(message_bytes, out) + out.hop_ns + network_ns(message_bytes, out)
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

    >>> tier = Tier(800.0, 500.0, 4000.0, 0.0, 0.0, 1e15, 0.0, 800.0, 8.0, 1.0)
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
    inside_ns = BITS_PER_BYTE * wire_in * up.exchange_contention_ratio / rate_gbps + ramp * np.sqrt(wire_in)
    across_ns = network_ns(wire_out, out) * out.exchange_contention_ratio
    busy_ns = np.maximum(inside_ns, across_ns)
    total: Numeric = np.sqrt(floor_ns * floor_ns + busy_ns * busy_ns) + np.where(wire_out > 0.0, out.hop_ns, 0.0)
    return total
