"""How often a system stops, what a stop costs, and how much useful time is left.

Failures of components are independent and memoryless; a stop loses the work since the last checkpoint and a restart.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc

from codesign.columns import freeze
from codesign.units import Numeric

NS_PER_FIT_INTERVAL = 1e9 * 3600.0 * 1e9  # a part of one FIT fails once in a thousand million hours
_NEWTON_STEPS = 7
_MOST = 200.0  # exponents are cut here: beyond it nothing useful is left, and the numbers stay finite


@dataclass(frozen=True, slots=True, eq=False)
class FailureRates:
    """Failures of one part that stop a job."""

    accelerator_fit: Numeric
    memory_stack_fit: Numeric
    scale_up_link_fit: Numeric
    scale_out_link_fit: Numeric
    nic_fit: Numeric
    switch_fit: Numeric
    host_fit: Numeric  # host and software, per accelerator
    flap_fit: Numeric  # flaps of a scale-out link
    flap_stop_prob: Numeric  # chance that a flap outlasts the transport's patience
    routed_frac: Numeric  # trunk and switch failures that other paths absorb

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """What a job runs on, per accelerator, and how many accelerators go down with a shared part."""

    accelerators_count: Numeric
    memory_stacks_count: Numeric
    scale_up_links_count: Numeric  # beyond the spare ones
    scale_out_links_count: Numeric
    trunk_links_count: Numeric
    nics_count: Numeric
    scale_up_switches_count: Numeric
    scale_out_switches_count: Numeric
    host_accelerators_count: Numeric  # accelerators of one host
    leaf_accelerators_count: Numeric  # accelerators behind one leaf switch

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class StopRates:
    """Stops of the whole job by cause; they add up to the total."""

    accelerator_fit: Numeric
    memory_fit: Numeric
    scale_up_fit: Numeric
    scale_out_fit: Numeric
    switch_fit: Numeric
    host_fit: Numeric
    total_fit: Numeric
    lost_fit: Numeric  # accelerators taken out of service, blast radius counted

    def __post_init__(self) -> None:
        freeze(self)


def stop_rates(components: Components, rates: FailureRates) -> StopRates:
    """Stops of a job by cause.

    Every accelerator is needed: one failure stops the job. Trunk links and scale-out switches have alternatives, so
    only the share that routing does not absorb counts; a scale-up switch carries a plane of every accelerator.

    Args:
        components: What the job runs on.
        rates: Failures per part.

    Returns:
        Stops of the job and accelerators lost. [FIT]
    """
    c, r = components, rates
    n, lost = c.accelerators_count, 1.0 - r.routed_frac
    accelerator = n * r.accelerator_fit
    memory = n * c.memory_stacks_count * r.memory_stack_fit
    scale_up = n * c.scale_up_links_count * r.scale_up_link_fit
    exposed = c.scale_out_links_count + lost * c.trunk_links_count
    flaps = n * exposed * r.flap_fit * r.flap_stop_prob
    scale_out = n * (exposed * r.scale_out_link_fit + c.nics_count * r.nic_fit) + flaps
    switch = n * (c.scale_up_switches_count + lost * c.scale_out_switches_count) * r.switch_fit
    host = n * r.host_fit
    total = accelerator + memory + scale_up + scale_out + switch + host
    blast = host * c.host_accelerators_count + switch * c.leaf_accelerators_count
    return StopRates(
        accelerator_fit=accelerator,
        memory_fit=memory,
        scale_up_fit=scale_up,
        scale_out_fit=scale_out,
        switch_fit=switch,
        host_fit=host,
        total_fit=total,
        lost_fit=accelerator + memory + scale_up + scale_out + blast,
    )


def stop_rate_fit(
    accelerators_count: Numeric, accelerator_fit: Numeric, shared_fit: Numeric, exposed_frac: Numeric
) -> Numeric:
    """Stops of a job from the failures of one accelerator and of its share of links and switches.

    Args:
        accelerators_count: Accelerators of the job. [count], >= 0
        accelerator_fit: Accelerator, memory, host and card. [FIT], >= 0
        shared_fit: Its share of links and switches. [FIT], >= 0
        exposed_frac: Share of those that stop the job. [1], 0 to 1

    Returns:
        Stops of the job. [FIT]

    Source:
        definition: rates of independent parts add up.

    >>> stop_rate_fit(1000.0, 10000.0, 5000.0, 0.2)
    11000000.0
    """
    return accelerators_count * (accelerator_fit + shared_fit * exposed_frac)


def mtbf_ns(stop_fit: Numeric) -> Numeric:
    """Mean time between stops.

    Args:
        stop_fit: Stops of the job. [FIT], > 0

    Returns:
        Mean time between two. [ns]

    Source:
        definition: the inverse rate.

    >>> float(mtbf_ns(1e9)) / 3600e9
    1.0
    """
    return NS_PER_FIT_INTERVAL / stop_fit


def young_interval_ns(between_ns: Numeric, checkpoint_ns: Numeric) -> Numeric:
    """Work between two checkpoints by the first-order rule.

    Args:
        between_ns: Mean time between stops. [ns], > 0
        checkpoint_ns: Time the job waits for one checkpoint. [ns], >= 0

    Returns:
        Work between the end of a checkpoint and the start of the next. [ns]

    Source:
        young-1974: square root of twice cost times time between failures.

    >>> float(young_interval_ns(between_ns=200.0, checkpoint_ns=1.0))
    20.0
    """
    return np.sqrt(2.0 * checkpoint_ns * between_ns)


def daly_interval_ns(between_ns: Numeric, checkpoint_ns: Numeric, restart_ns: Numeric) -> Numeric:
    """Period of checkpoints, work and checkpoint together, that counts restarts among the time between stops.

    Args:
        between_ns: Mean time between stops. [ns], > 0
        checkpoint_ns: Time the job waits for one checkpoint. [ns], >= 0
        restart_ns: Time to come back after a stop. [ns], >= 0

    Returns:
        Period from one checkpoint to the next. [ns]

    Source:
        aupy-2013: sqrt(2 (M + R) C) + C.

    >>> float(daly_interval_ns(between_ns=190.0, checkpoint_ns=1.0, restart_ns=10.0))
    21.0
    """
    return np.sqrt(2.0 * (between_ns + restart_ns) * checkpoint_ns) + checkpoint_ns


def best_interval_ns(between_ns: Numeric, checkpoint_ns: Numeric) -> Numeric:
    """Work between two checkpoints that leaves the largest useful share.

    Args:
        between_ns: Mean time between stops. [ns], > 0
        checkpoint_ns: Time the job waits for one checkpoint. [ns], >= 0

    Returns:
        Work between the end of a checkpoint and the start of the next. [ns]

    Source:
        daly-2006: zero of the derivative of the exact share, x = 1 - exp(-(x + C/M)).

    >>> round(float(best_interval_ns(between_ns=200.0, checkpoint_ns=1.0)), 6)
    19.338963
    """
    cost = np.minimum(checkpoint_ns / between_ns, _MOST)
    share = np.minimum(np.sqrt(2.0 * cost), 1.0)  # right of the zero of a convex function: Newton falls onto it
    for _ in range(_NEWTON_STEPS):
        lost = np.exp(-(share + cost))
        share = share - (share - 1.0 + lost) / np.maximum(1.0 - lost, 1e-12)
    return between_ns * share


def useful_frac(
    between_ns: Numeric, checkpoint_ns: Numeric, restart_ns: Numeric, period_ns: Numeric, down_ns: Numeric = 0.0
) -> Numeric:
    """Share of wall-clock time that becomes lasting work, stops arriving at random.

    Stops may strike during checkpoints and restarts, not while the job is down.

    Args:
        between_ns: Mean time between stops. [ns], > 0
        checkpoint_ns: Time the job waits for one checkpoint. [ns], >= 0
        restart_ns: Time to load and warm up after a stop. [ns], >= 0
        period_ns: From one checkpoint to the next, the checkpoint included. [ns], > 0 and >= checkpoint_ns
        down_ns: Time until a restart can begin. [ns], >= 0

    Returns:
        Useful share. [1], 0 to 1

    Source:
        aupy-2013: (T - C) over (M + D) e^(R/M) (e^(T/M) - 1).

    >>> round(float(useful_frac(2000.0, 0.0, 0.0, 20.0)), 4)
    0.995
    """
    again = np.exp(np.minimum(restart_ns / between_ns, _MOST))
    expected = (between_ns + down_ns) * again * np.expm1(np.minimum(period_ns / between_ns, _MOST))
    work = np.maximum(period_ns - checkpoint_ns, 0.0)
    return np.minimum(1.0, work / expected)


def spares_exhausted_prob(spares_count: Numeric, down_count: Numeric) -> Numeric:
    """Chance that more units are in repair than there are spares.

    Args:
        spares_count: Spare units, fractions interpolate. [count], >= 0
        down_count: Mean number of units in repair. [count], >= 0

    Returns:
        Chance that the job has to wait for a repair. [1]

    Source:
        definition: Poisson number in repair, its tail as an incomplete gamma function.

    >>> round(float(spares_exhausted_prob(spares_count=0.0, down_count=1.0)), 6)
    0.632121
    """
    result: Numeric = gammainc(np.asarray(spares_count, dtype=np.float64) + 1.0, down_count)
    return result


def capacity_frac(lost_fit: Numeric, accelerators_count: Numeric, repair_ns: Numeric) -> Numeric:
    """Share of accelerators in service while failed ones wait for repair: what availability takes from serving.

    Args:
        lost_fit: Accelerators taken out of service, blast radius counted. [FIT], >= 0
        accelerators_count: Accelerators installed. [count], >= 1
        repair_ns: Time out of service after a failure. [ns], >= 0

    Returns:
        Capacity share. [1], 0 to 1

    Source:
        definition: up over up plus down of a renewal process.

    >>> float(capacity_frac(lost_fit=1.0, accelerators_count=1.0, repair_ns=NS_PER_FIT_INTERVAL))
    0.5
    """
    return 1.0 / (1.0 + lost_fit / accelerators_count * repair_ns / NS_PER_FIT_INTERVAL)


@dataclass(frozen=True, slots=True, eq=False)
class Repair:
    """How a job is protected and brought back."""

    checkpoint_ns: Numeric
    restart_ns: Numeric
    repair_ns: Numeric
    spares_frac: Numeric  # spare accelerators over those of the job

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Availability:
    """What failures leave."""

    between_ns: Numeric
    interval_ns: Numeric
    waiting_prob: Numeric  # chance that a stop finds no spare
    goodput_frac: Numeric  # useful share of a training job's time
    capacity_frac: Numeric  # share of serving capacity in service

    def __post_init__(self) -> None:
        freeze(self)


def availability(components: Components, rates: FailureRates, repair: Repair) -> Availability:
    """Goodput of a training job and capacity of a serving fleet.

    Args:
        components: What it runs on.
        rates: Failures per part.
        repair: Checkpoints, restart, repair and spares.

    Returns:
        Times [ns] and shares [1].
    """
    stops = stop_rates(components, rates)
    between = mtbf_ns(np.maximum(stops.total_fit, 1e-6))  # finite where nothing fails
    interval = np.maximum(best_interval_ns(between, repair.checkpoint_ns), 1.0)
    down = stops.lost_fit * repair.repair_ns / NS_PER_FIT_INTERVAL
    waiting = spares_exhausted_prob(repair.spares_frac * components.accelerators_count, down)
    period = interval + repair.checkpoint_ns
    goodput = useful_frac(between, repair.checkpoint_ns, repair.restart_ns, period, waiting * repair.repair_ns)
    capacity = capacity_frac(stops.lost_fit, components.accelerators_count, repair.repair_ns)
    return Availability(between, interval, waiting, goodput, capacity)
