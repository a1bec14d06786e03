"""What traffic patterns ask of a topology: load of the busiest channel, hops, and waiting."""

import numpy as np

from codesign.units import Numeric


def queue_wait_ns(load_frac: Numeric, service_ns: Numeric) -> Numeric:
    """Mean wait of random arrivals at a server of fixed service time.

    Args:
        load_frac: Busy share of the server. [1], 0 to below 1
        service_ns: Time to serve one. [ns], >= 0

    Returns:
        Mean time in the queue, service excluded. [ns]

    Source:
        pollaczek-1930: M/D/1, rho / (2 (1 - rho)) services.

    >>> queue_wait_ns(load_frac=0.5, service_ns=10.0)
    5.0
    """
    return 0.5 * load_frac / (1.0 - load_frac) * service_ns


def mesh_load_ratio(radix_count: Numeric) -> Numeric:
    """Busiest channel of a mesh with dimension-order routing under uniform traffic, per unit of injection.

    Args:
        radix_count: Nodes along each dimension, even. [count], >= 2

    Returns:
        Load of the middle channels. [1]

    Source:
        dally-towles-2004: bisection bound k/4, met by dimension order.

    >>> mesh_load_ratio(radix_count=8.0)
    2.0
    """
    return 0.25 * radix_count


def torus_load_ratio(radix_count: Numeric) -> Numeric:
    """Every channel of a torus under uniform traffic by shortest ways, per unit of injection.

    Args:
        radix_count: Nodes along each dimension, even. [count], >= 2

    Returns:
        Load of each channel. [1]

    Source:
        dally-towles-2004: mean distance k/4 over two directions.

    >>> torus_load_ratio(radix_count=8.0)
    1.0
    """
    return 0.125 * radix_count


def mesh_transpose_load_ratio(radix_count: Numeric) -> Numeric:
    """Busiest channel of a two-dimensional mesh under transpose traffic in dimension order.

    All nodes of a row turn at one column: the last channel before it carries all but one of them.

    Args:
        radix_count: Nodes along each dimension. [count], >= 2

    Returns:
        Load of the busiest channel. [1]

    Source:
        definition: k - 1 flows share one channel.

    >>> mesh_transpose_load_ratio(radix_count=8.0)
    7.0
    """
    return radix_count - 1.0


def torus_transpose_load_ratio(radix_count: Numeric) -> Numeric:
    """Busiest channel of a two-dimensional torus under transpose traffic in dimension order, ties split.

    Args:
        radix_count: Nodes along each dimension, even. [count], >= 2

    Returns:
        Load of the busiest channel. [1]

    Source:
        definition: half of the k - 1 flows come from each side.

    >>> torus_transpose_load_ratio(radix_count=8.0)
    3.5
    """
    return 0.5 * (radix_count - 1.0)


def dragonfly_global_load_ratio(group_nodes_count: Numeric, groups_count: Numeric, spread_flag: Numeric) -> Numeric:
    """Global channels of a dragonfly with minimal routing, one channel between each two groups.

    Args:
        group_nodes_count: Nodes of a group. [count], >= 1
        groups_count: Groups. [count], >= 2
        spread_flag: 1: uniform traffic; 0: all nodes of a group send to one other group. [1], 0 or 1

    Returns:
        Load of the busiest global channel per unit of injection. [1]

    Source:
        kim-2008: minimal routing on adversarial traffic leaves one channel to a whole group.

    >>> dragonfly_global_load_ratio(group_nodes_count=8.0, groups_count=9.0, spread_flag=0.0)
    8.0
    """
    uniform = group_nodes_count / groups_count
    return group_nodes_count + spread_flag * (uniform - group_nodes_count)


def incast_wait_ns(senders_count: Numeric, burst_bytes: Numeric, rate_gbps: Numeric) -> Numeric:
    """Time to drain one burst of each sender through one port: the last byte waits for all the others.

    Args:
        senders_count: Sources of the burst. [count], >= 1
        burst_bytes: What each sends. [byte], >= 0
        rate_gbps: Rate of the port. [Gb/s], > 0

    Returns:
        Wait of the last burst. [ns]

    Source:
        definition: (k - 1) bursts ahead of it.

    >>> float(incast_wait_ns(senders_count=5.0, burst_bytes=1000.0, rate_gbps=8.0))
    4000.0
    """
    return np.maximum(senders_count - 1.0, 0.0) * 8.0 * burst_bytes / rate_gbps


def shift_cross_frac(shift_count: Numeric, leaf_count: Numeric) -> Numeric:
    """Share of flows that leave their leaf when every endpoint sends to the one `shift_count` further on.

    Args:
        shift_count: Distance of source and destination. [count], >= 0
        leaf_count: Endpoints under one leaf. [count], >= 1

    Returns:
        Share of flows over the spine. [1]

    Source:
        definition: endpoints within the shift of the leaf's end.

    >>> float(shift_cross_frac(shift_count=4.0, leaf_count=16.0))
    0.25
    """
    return np.minimum(1.0, shift_count / leaf_count)


def random_cross_frac(group_count: Numeric, leaf_count: Numeric) -> Numeric:
    """Share of pairs of a group that lie under different leaves, ranks placed leaf by leaf.

    Args:
        group_count: Endpoints of the group. [count], >= 2
        leaf_count: Endpoints under one leaf. [count], >= 1

    Returns:
        Share of pairs over the spine. [1]

    Source:
        definition: all but the leaf's own of the others.

    >>> float(random_cross_frac(group_count=33.0, leaf_count=17.0))
    0.5
    """
    return np.maximum(0.0, group_count - leaf_count) / np.maximum(group_count - 1.0, 1.0)


def spine_stretch_ratio(cross_frac: Numeric, oversubscription_ratio: Numeric) -> Numeric:
    """How much longer a flow over an oversubscribed spine takes than one at line rate.

    Args:
        cross_frac: Share of the leaf's traffic that crosses. [1], 0 to 1
        oversubscription_ratio: Leaf capacity towards endpoints over that towards the spine. [1], >= 1

    Returns:
        Time over that at line rate. [1], >= 1

    Source:
        definition: the spine is the bottleneck once share times oversubscription exceeds one.

    >>> float(spine_stretch_ratio(cross_frac=0.5, oversubscription_ratio=4.0))
    2.0
    """
    return np.maximum(1.0, cross_frac * oversubscription_ratio)
