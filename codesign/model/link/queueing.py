"""Waiting at a loaded port: means and tails for the service laws that packets follow."""

import numpy as np

from codesign.units import Numeric


def mean_wait_ns(
    load_frac: Numeric, service_ns: Numeric, variation_ratio: Numeric, batch_count: Numeric = 1.0
) -> Numeric:
    """Mean wait at a port with random arrivals and any service law (Pollaczek-Khinchine), packets in batches.

    Args:
        load_frac: Offered load. [1], in [0, 1)
        service_ns: Mean service time. [ns]
        variation_ratio: Variance of the service time over its mean squared; 0 for one size. [1]
        batch_count: Packets that arrive together, a fixed number. [count], >= 1

    Returns:
        Mean wait before service. [ns]

    Source:
        pollaczek-1930: rho (1 + c^2) / (2 (1 - rho)) service times; batches wait for themselves too.

    >>> mean_wait_ns(load_frac=0.5, service_ns=10.0, variation_ratio=1.0)
    10.0
    """
    batch = 0.5 * (batch_count - 1.0)
    burst = load_frac * (1.0 + variation_ratio) / 2.0 + batch
    return service_ns * burst / (1.0 - load_frac)


def spread_ns(load_frac: Numeric, service_ns: Numeric, variation_ratio: Numeric, third_ratio: Numeric) -> Numeric:
    """Standard deviation of the wait of a single queue (Takacs' second moment).

    Args:
        load_frac: Offered load. [1], in [0, 1)
        service_ns: Mean service time. [ns]
        variation_ratio: Variance of the service time over its mean squared. [1]
        third_ratio: Third moment of the service time over its mean cubed. [1]

    Returns:
        Standard deviation of the wait. [ns]

    Source:
        takacs-1962: E[W^2] = 2 E[W]^2 + lambda E[S^3] / (3 (1 - rho)).

    >>> round(float(spread_ns(load_frac=0.5, service_ns=1.0, variation_ratio=0.0, third_ratio=1.0) ** 2), 6)
    0.583333
    """
    mean = load_frac * (1.0 + variation_ratio) / (2.0 * (1.0 - load_frac))
    return service_ns * np.sqrt(mean * mean + load_frac * third_ratio / (3.0 * (1.0 - load_frac)))


def tail_wait_ns(mean_ns: Numeric, load_frac: Numeric, tail_prob: Numeric) -> Numeric:
    """Wait exceeded with a given probability: an exponential tail that starts with the probability of waiting.

    Exact for exponential service; for one packet size it is within 10 % from load 0.5 up.

    Args:
        mean_ns: Mean wait of all packets. [ns]
        load_frac: Offered load, the share of packets that wait. [1], in (0, 1)
        tail_prob: Probability that may exceed it. [1]

    Returns:
        Quantile of the wait. [ns]

    Source:
        kingman-1962: heavy-traffic limit.

    >>> round(float(tail_wait_ns(mean_ns=10.0, load_frac=0.5, tail_prob=0.001)), 2)
    124.29
    """
    load = np.clip(load_frac, 1e-9, 1.0)
    return mean_ns / load * np.maximum(np.log(load / tail_prob), 0.0)


def slotted_wait_ns(load_frac: Numeric, service_ns: Numeric, slots_count: Numeric) -> Numeric:
    """Mean wait at a port that starts only at slot boundaries, with at most one arrival per slot.

    Args:
        load_frac: Offered load. [1], in [0, 1)
        service_ns: Service time. [ns]
        slots_count: Slots a service takes. [count], >= 1

    Returns:
        Mean wait before service. [ns]

    Source:
        geo-d-1: rho / (2 (1 - rho)) (1 - 1 / m) service times.

    >>> slotted_wait_ns(load_frac=0.5, service_ns=4.0, slots_count=2)
    1.0
    """
    return service_ns * load_frac / (2.0 * (1.0 - load_frac)) * (1.0 - 1.0 / slots_count)


def window_wait_ns(load_frac: Numeric, service_ns: Numeric, windows_count: Numeric) -> Numeric:
    """Mean wait of messages for a window of credits that holds several of them.

    Each place of the window serves every n-th message for a credit round trip, so its arrivals are n times as regular
    as random ones (Kraemer and Langenbach-Belz). One place is the slotted queue.

    Args:
        load_frac: Share of the places in use. [1], in [0, 1)
        service_ns: Time a message holds its place. [ns]
        windows_count: Messages the window holds. [count], >= 1

    Returns:
        Mean wait. [ns]

    Source:
        kraemer-langenbach-belz-1976: GI/G/1 with constant service.

    >>> float(window_wait_ns(load_frac=0.5, service_ns=10.0, windows_count=1))
    5.0
    """
    regular = 1.0 - 1.0 / windows_count
    load = np.maximum(load_frac, 1e-9)
    damping = np.exp(-2.0 * (1.0 - load) * regular * regular * windows_count / (3.0 * load))
    return service_ns * load / (2.0 * (1.0 - load)) / windows_count * damping


def exponential_loss_prob(load_frac: Numeric, places_count: Numeric) -> Numeric:
    """Share of arrivals that find a finite buffer full: random arrivals, exponential service.

    Args:
        load_frac: Offered load. [1], >= 0
        places_count: Places, the one in service included. [count], >= 1

    Returns:
        Loss probability. [1]

    Source:
        erlang-1917: M/M/1/K.

    >>> round(float(exponential_loss_prob(load_frac=1.0, places_count=4)), 6)
    0.2
    """
    log_load = np.log(load_frac)
    even = np.abs(log_load) < 1e-9
    safe = np.where(even, 1.0, log_load)
    ratio = np.expm1(safe) / np.expm1((places_count + 1.0) * safe)
    return np.where(even, 1.0 / (places_count + 1.0), np.exp(places_count * safe) * ratio)
