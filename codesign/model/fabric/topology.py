"""What a topology needs and gives, per endpoint: switches, cables, hops, and how much it slows each traffic pattern.

A topology enters as properties, not as a name: how many tiers of switches stand above the endpoints, or how many
dimensions of a torus they form, or that they are wired to each other. So a whole batch of different topologies is one
calculation. Counts are per endpoint of one plane-bundle; several planes (rails) multiply switches and cables alike.
"""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class TopologyInputs:
    """One network of a batch of candidates. Flags exclude each other; none set means a switched network."""

    endpoints_count: Numeric
    ports_count: Numeric  # links of one endpoint into this network
    radix_count: Numeric  # ports of one switch, at the rate of the endpoints' links
    tiers_count: Numeric  # switch tiers of a switched network
    oversubscription_ratio: Numeric  # endpoint-side over spine-side capacity of a leaf
    mesh_flag: Numeric  # every endpoint is wired to every other
    torus_dimensions_count: Numeric  # 0: no torus
    dragonfly_flag: Numeric
    rail_only_flag: Numeric  # no spine: rails meet only inside the scale-up domain
    spray_frac: Numeric  # share of the ideal that load balancing reaches across equal paths

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """Counts per endpoint, hops, and the factor by which a pattern falls short of the endpoint's own rate."""

    switches_count: Numeric
    access_cables_count: Numeric  # endpoint to first switch, or to the neighbour
    trunk_cables_count: Numeric  # between switches
    hops_count: Numeric  # switches on an average path
    worst_hops_count: Numeric
    bisection_frac: Numeric  # of the endpoints' rate that crosses the middle
    all_to_all_ratio: Numeric  # >= 1
    permutation_ratio: Numeric
    neighbour_ratio: Numeric
    capacity_count: Numeric  # endpoints the radix allows
    radix_excess_ratio: Numeric  # > 0: more endpoints than the radix allows

    def __post_init__(self) -> None:
        freeze(self)


def fat_tree_endpoints_count(radix_count: Numeric, tiers_count: Numeric) -> Numeric:
    """Endpoints a non-blocking folded Clos of some tiers can have: R, R^2/2, R^3/4, ...

    Args:
        radix_count: Ports of one switch. [count], >= 2
        tiers_count: Tiers of switches. [count], >= 1

    Returns:
        Most endpoints. [count]

    Source:
        definition: half of the ports of every tier but the last go down.

    >>> float(fat_tree_endpoints_count(64.0, 2.0)), float(fat_tree_endpoints_count(64.0, 3.0))
    (2048.0, 65536.0)
    """
    return 2.0 * (radix_count / 2.0) ** tiers_count


def fat_tree_switches_count(radix_count: Numeric, tiers_count: Numeric, oversubscription_ratio: Numeric) -> Numeric:
    """Switches per endpoint of a folded Clos: one in R for the last tier, two in R for every tier below it.

    Tiers above an oversubscribed leaf shrink with the ratio, and its downlinks grow from 1/2 to r/(1+r) of the ports.

    Args:
        radix_count: Ports of one switch. [count], >= 2
        tiers_count: Tiers of switches. [count], >= 1
        oversubscription_ratio: Downlinks over uplinks of a leaf. [1], >= 1

    Returns:
        Switches over endpoints. [count]

    Source:
        definition: ports counted from both sides.

    >>> round(1000 * float(fat_tree_switches_count(64.0, 2.0, 1.0)), 3)  # 3R/2 switches for R^2/2 endpoints
    46.875
    """
    single = 1.0 / radix_count
    leaf = (1.0 + oversubscription_ratio) / (oversubscription_ratio * radix_count)
    upper = (2.0 * tiers_count - 3.0) / (oversubscription_ratio * radix_count)
    return np.where(tiers_count > 1.0, leaf + upper, single)


def torus_hops_count(endpoints_count: Numeric, torus_dimensions_count: Numeric) -> Numeric:
    """Mean hops of uniform traffic on a torus of equal sides: a quarter of the side in every dimension.

    Args:
        endpoints_count: Endpoints. [count], >= 1
        torus_dimensions_count: Dimensions. [count], >= 1

    Returns:
        Mean distance. [count]

    Source:
        dally-towles-2004: n k / 4 for even k.

    >>> float(torus_hops_count(4096.0, 3.0))
    12.0
    """
    side = np.round(endpoints_count ** (1.0 / torus_dimensions_count) * 1e6) / 1e6
    return torus_dimensions_count * side / 4.0


def topology(inputs: TopologyInputs) -> Topology:
    """Compose one network: switched, torus, mesh or dragonfly, chosen by its flags.

    Args:
        inputs: Size, ports, radix and kind.

    Returns:
        Counts per endpoint and contention by pattern.

    Source:
        dally-towles-2004: channel load of a pattern over bisection, for switched networks and tori.
    """
    i = inputs
    torus = i.torus_dimensions_count > 0.0
    mesh, dragonfly = i.mesh_flag > 0.0, i.dragonfly_flag > 0.0
    switched = ~np.asarray(torus | mesh | dragonfly)
    planes = i.ports_count

    # folded Clos; a rail-only network is its leaves
    tiers = np.where(i.rail_only_flag > 0.0, 1.0, i.tiers_count)
    ratio = np.where(tiers > 1.0, i.oversubscription_ratio, 1.0)
    capacity = fat_tree_endpoints_count(i.radix_count, tiers) * ratio
    trunks = np.where(tiers > 1.0, (tiers - 1.0) / ratio, 0.0)
    deep = 2.0 * tiers - 1.0
    inside = np.minimum(i.radix_count / 2.0 / np.maximum(i.endpoints_count, 1.0), 1.0)
    clos_hops = np.where(tiers > 1.0, deep - (deep - 1.0) * inside, 1.0)
    balance = np.where(tiers > 1.0, 1.0 / i.spray_frac, 1.0)

    # torus: endpoints forward for each other
    dims = np.maximum(i.torus_dimensions_count, 1.0)
    hops = torus_hops_count(i.endpoints_count, dims)
    share = np.maximum(hops, 1.0)  # uniform traffic crosses that many links, and all links of a router share it

    # mesh of n endpoints: a pair has 1/(n-1) of the ports
    others = np.maximum(i.endpoints_count - 1.0, 1.0)

    # balanced dragonfly a = 2p = 2h: p endpoints, 2p - 1 local and p global ports of a router
    pi = np.maximum(np.floor((i.radix_count + 1.0) / 4.0), 1.0)
    fly_capacity = 2.0 * pi * pi * (2.0 * pi * pi + 1.0)

    # uniform traffic loads local and global channels of a balanced dragonfly alike; an adversarial permutation
    # has to be sent by way of a third group, which doubles the global load
    balance_fly = 1.0 / i.spray_frac

    most = np.where(torus, 1e9, np.where(mesh, i.ports_count + 1.0, np.where(dragonfly, fly_capacity, capacity)))
    return Topology(
        switches_count=np.where(switched, planes * fat_tree_switches_count(i.radix_count, tiers, ratio), 0.0)
        + np.where(dragonfly, planes / pi, 0.0),
        access_cables_count=np.where(torus | mesh, planes / 2.0, planes),
        trunk_cables_count=np.where(switched, planes * trunks, 0.0) + np.where(dragonfly, planes * 1.5, 0.0),
        hops_count=np.where(torus, hops, np.where(mesh, 0.0, np.where(dragonfly, 3.0, clos_hops))),
        worst_hops_count=np.where(torus, 2.0 * hops, np.where(mesh, 0.0, np.where(dragonfly, 3.0, deep))),
        bisection_frac=np.where(torus, 1.0 / share, np.where(switched, 1.0 / ratio, 0.5)),
        all_to_all_ratio=np.where(
            torus, share, np.where(switched, ratio * balance, np.where(dragonfly, balance_fly, 1.0))
        ),
        permutation_ratio=np.where(torus, share, np.where(mesh, others, np.where(dragonfly, 2.0, ratio * balance))),
        neighbour_ratio=np.where(mesh, others, 1.0),
        capacity_count=most,
        radix_excess_ratio=np.maximum(i.endpoints_count / most - 1.0, 0.0),
    )
