"""How groups of ranks lie on scale-up domains, for any order of the groups.

Ranks are numbered so that the group with the lowest position varies fastest. Members of a group then stand as far apart
as the product of all groups that vary faster, and consecutive ranks share a domain.
"""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.fabric.collectives import inner_count
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Sizes of the parallel groups and their positions in the rank order, 0 the fastest; positions differ."""

    tp_count: Numeric
    cp_count: Numeric
    ep_count: Numeric
    dp_count: Numeric
    pp_count: Numeric
    tp_position_count: Numeric
    cp_position_count: Numeric
    ep_position_count: Numeric
    dp_position_count: Numeric
    pp_position_count: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Distance of neighbouring members, members per domain, and the share of pipeline neighbours that leave it."""

    tp_stride_count: Numeric
    cp_stride_count: Numeric
    ep_stride_count: Numeric
    dp_stride_count: Numeric
    pp_stride_count: Numeric
    tp_inner_count: Numeric
    cp_inner_count: Numeric
    ep_inner_count: Numeric
    dp_inner_count: Numeric
    pp_inner_count: Numeric
    pp_crosses_frac: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def faster_count(size_count: Numeric, position_count: Numeric, own_position_count: Numeric) -> Numeric:
    """What a group contributes to the stride of another: its size if it varies faster, else one.

    Args:
        size_count: Size of the group. [count], >= 1
        position_count: Its position in the rank order. [count], >= 0
        own_position_count: Position of the group whose stride is wanted. [count], >= 0

    Returns:
        Factor of the stride. [count]

    Source:
        definition: mixed-radix numbering of ranks.

    >>> float(faster_count(8.0, 0.0, 1.0)), float(faster_count(8.0, 2.0, 1.0))
    (8.0, 1.0)
    """
    return np.where(position_count < own_position_count, size_count, 1.0)


def crosses_frac(group_count: Numeric, inner_count: Numeric) -> Numeric:
    """Share of neighbouring members of a chain that lie in different domains.

    Args:
        group_count: Members of the chain. [count], >= 1
        inner_count: Members in one domain. [count], >= 1

    Returns:
        Share of the chain's links. [1]

    Source:
        definition: one link in each domain leads out of it.

    >>> float(crosses_frac(group_count=9.0, inner_count=4.0))
    0.25
    """
    domains = np.ceil(group_count / inner_count)
    return np.where(group_count > 1.0, (domains - 1.0) / np.maximum(group_count - 1.0, 1.0), 0.0)


def placement(groups: Groups, domain_count: Numeric) -> Placement:
    """Strides and members per domain of every group.

    Args:
        groups: Sizes and order.
        domain_count: Accelerators of one scale-up domain. [count]

    Returns:
        Placement of every group. [count]
    """
    g = groups

    def stride(own: Numeric) -> Numeric:
        return (
            faster_count(g.tp_count, g.tp_position_count, own) * faster_count(g.cp_count, g.cp_position_count, own)
            * faster_count(g.ep_count, g.ep_position_count, own) * faster_count(g.dp_count, g.dp_position_count, own)
            * faster_count(g.pp_count, g.pp_position_count, own)
        )  # fmt: skip

    tp, cp, ep = stride(g.tp_position_count), stride(g.cp_position_count), stride(g.ep_position_count)
    dp, pp = stride(g.dp_position_count), stride(g.pp_position_count)
    pp_inner = inner_count(g.pp_count, pp, domain_count)
    return Placement(
        tp_stride_count=tp,
        cp_stride_count=cp,
        ep_stride_count=ep,
        dp_stride_count=dp,
        pp_stride_count=pp,
        tp_inner_count=inner_count(g.tp_count, tp, domain_count),
        cp_inner_count=inner_count(g.cp_count, cp, domain_count),
        ep_inner_count=inner_count(g.ep_count, ep, domain_count),
        dp_inner_count=inner_count(g.dp_count, dp, domain_count),
        pp_inner_count=pp_inner,
        pp_crosses_frac=crosses_frac(g.pp_count, pp_inner),
    )
