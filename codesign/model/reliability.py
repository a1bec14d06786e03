"""How often a system stops, what a stop costs, and how much useful time is left.

Failures of components are independent and memoryless; a stop loses the work since the last checkpoint and a restart.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc, lambertw

from codesign.columns import freeze
from codesign.units import Numeric

NS_PER_YEAR = 365.0 * 86400.0 * 1e9
_MOST = 500.0  # exponents are cut here: beyond it nothing useful is left, and the numbers stay finite


@dataclass(frozen=True, slots=True, eq=False)
class FailureRates:
    """Failures of one component that stop a job, per year."""

    accelerator_per_year: Numeric
    memory_stack_per_year: Numeric
    scale_up_link_per_year: Numeric
    scale_out_link_per_year: Numeric
    nic_per_year: Numeric
    switch_per_year: Numeric
    host_per_year: Numeric
    software_per_year: Numeric  # per accelerator
    flap_per_year: Numeric  # per scale-out link
    flap_stop_prob: Numeric  # chance that a flap outlasts the transport's patience

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """How many of each a job runs on, and how many accelerators go down with one."""

    accelerators_count: Numeric
    memory_stacks_count: Numeric  # per accelerator
    scale_up_links_count: Numeric  # per accelerator, beyond the spare ones
    scale_out_links_count: Numeric  # per accelerator
    nics_count: Numeric  # per accelerator
    switches_count: Numeric  # in the whole system, without an alternative path
    host_accelerators_count: Numeric  # accelerators of one host
    switch_accelerators_count: Numeric  # accelerators that lose their path with one switch

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class StopRates:
    """Stops of the whole job per year, by cause; they add up to the total."""

    accelerator_per_year: Numeric
    memory_per_year: Numeric
    scale_up_per_year: Numeric
    scale_out_per_year: Numeric
    switch_per_year: Numeric
    host_per_year: Numeric
    software_per_year: Numeric
    total_per_year: Numeric
    lost_accelerators_per_year: Numeric  # accelerators taken down, blast radius counted

    def __post_init__(self) -> None:
        freeze(self)


def stop_rates(components: Components, rates: FailureRates) -> StopRates:
    """Stops of a job by cause.

    Every component is needed: one failure stops the job. Links count with their network ports and flaps.

    Args:
        components: What the job runs on.
        rates: Failures per component and year.

    Returns:
        Stops and accelerators lost per year. [1/year]
    """
    c, r = components, rates
    n = c.accelerators_count
    accelerator = n * r.accelerator_per_year
    memory = n * c.memory_stacks_count * r.memory_stack_per_year
    scale_up = n * c.scale_up_links_count * r.scale_up_link_per_year
    flaps = n * c.scale_out_links_count * r.flap_per_year * r.flap_stop_prob
    scale_out = n * (c.scale_out_links_count * r.scale_out_link_per_year + c.nics_count * r.nic_per_year) + flaps
    switch = c.switches_count * r.switch_per_year
    host = n / c.host_accelerators_count * r.host_per_year
    software = n * r.software_per_year
    total = accelerator + memory + scale_up + scale_out + switch + host + software
    lost = (
        accelerator + memory + scale_up + scale_out + host * c.host_accelerators_count
        + switch * c.switch_accelerators_count
    )  # fmt: skip
    return StopRates(accelerator, memory, scale_up, scale_out, switch, host, software, total, lost)


def time_between_stops_ns(stops_per_year: Numeric) -> Numeric:
    """Mean time between stops.

    Args:
        stops_per_year: Stops of the job. [1/year], >= 0

    Returns:
        Mean time between two. [ns]; a million years where nothing fails

    Source:
        definition: the inverse rate.

    >>> float(time_between_stops_ns(stops_per_year=1.0)) / NS_PER_YEAR
    1.0
    """
    return NS_PER_YEAR / np.maximum(stops_per_year, 1e-6)


def young_interval_ns(between_stops_ns: Numeric, checkpoint_ns: Numeric) -> Numeric:
    """Work between two checkpoints by the first-order rule.

    Args:
        between_stops_ns: Mean time between stops. [ns], > 0
        checkpoint_ns: Time the job waits for one checkpoint. [ns], >= 0

    Returns:
        Work between the end of a checkpoint and the start of the next. [ns]

    Source:
        young-1974: square root of twice cost times time between failures.

    >>> float(young_interval_ns(between_stops_ns=200.0, checkpoint_ns=1.0))
    20.0
    """
    return np.sqrt(2.0 * checkpoint_ns * between_stops_ns)


def daly_interval_ns(between_stops_ns: Numeric, checkpoint_ns: Numeric) -> Numeric:
    """Work between two checkpoints by the higher-order rule.

    Args:
        between_stops_ns: Mean time between stops. [ns], > 0
        checkpoint_ns: Time the job waits for one checkpoint. [ns], >= 0

    Returns:
        Work between two checkpoints; the time between stops itself where a checkpoint takes twice that or more. [ns]

    Source:
        daly-2006: sqrt(2 C M) (1 + sqrt(C / 18 M) + C / 18 M) - C.

    >>> round(float(daly_interval_ns(between_stops_ns=200.0, checkpoint_ns=1.0)), 6)
    19.338889
    """
    ratio = checkpoint_ns / (2.0 * between_stops_ns)
    higher = young_interval_ns(between_stops_ns, checkpoint_ns) * (1.0 + np.sqrt(ratio) / 3.0 + ratio / 9.0)
    return np.where(ratio < 1.0, higher - checkpoint_ns, between_stops_ns)


def best_interval_ns(between_stops_ns: Numeric, checkpoint_ns: Numeric) -> Numeric:
    """Work between two checkpoints that leaves the largest useful share.

    Args:
        between_stops_ns: Mean time between stops. [ns], > 0
        checkpoint_ns: Time the job waits for one checkpoint. [ns], >= 0

    Returns:
        Work between two checkpoints. [ns]

    Source:
        daly-2006: zero of the derivative of the exact share, by Lambert's function.

    >>> round(float(best_interval_ns(between_stops_ns=200.0, checkpoint_ns=1.0)), 6)
    19.338963
    """
    inside = -np.exp(-np.minimum(checkpoint_ns / between_stops_ns, _MOST) - 1.0)
    branch = np.real(lambertw(inside))
    return between_stops_ns * (1.0 + branch)


def useful_frac(
    interval_ns: Numeric, between_stops_ns: Numeric, checkpoint_ns: Numeric, restart_ns: Numeric, down_ns: Numeric
) -> Numeric:
    """Share of wall-clock time that becomes lasting work, stops arriving at random.

    Stops may strike during checkpoints and restarts, not while the job is down.

    Args:
        interval_ns: Work between two checkpoints. [ns], > 0
        between_stops_ns: Mean time between stops. [ns], > 0
        checkpoint_ns: Time the job waits for one checkpoint. [ns], >= 0
        restart_ns: Time to load and warm up after a stop. [ns], >= 0
        down_ns: Time until a restart can begin. [ns], >= 0

    Returns:
        Useful share. [1], 0 to 1

    Source:
        aupy-2013: work over (M + D) e^(R/M) (e^((T+C)/M) - 1).

    >>> round(float(useful_frac(20.0, 2000.0, 0.0, 0.0, 0.0)), 4)
    0.995
    """
    again = np.exp(np.minimum(restart_ns / between_stops_ns, _MOST))
    expected = (between_stops_ns + down_ns) * again * np.expm1(
        np.minimum((interval_ns + checkpoint_ns) / between_stops_ns, _MOST)
    )
    return np.minimum(1.0, interval_ns / np.maximum(expected, 1e-300))


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


def capacity_frac(lost_per_year: Numeric, accelerators_count: Numeric, repair_ns: Numeric) -> Numeric:
    """Share of accelerators in service while failed ones wait for repair: what availability takes from serving.

    Args:
        lost_per_year: Accelerators taken down per year, blast radius counted. [1/year], >= 0
        accelerators_count: Accelerators installed. [count], >= 1
        repair_ns: Time out of service after a failure. [ns], >= 0

    Returns:
        Capacity share. [1], 0 to 1

    Source:
        definition: up over up plus down of a renewal process.

    >>> float(capacity_frac(lost_per_year=1.0, accelerators_count=1.0, repair_ns=NS_PER_YEAR))
    0.5
    """
    return 1.0 / (1.0 + lost_per_year / accelerators_count * repair_ns / NS_PER_YEAR)


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

    between_stops_ns: Numeric
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
        rates: Failures per component and year.
        repair: Checkpoints, restart, repair and spares.

    Returns:
        Times [ns] and shares [1].
    """
    stops = stop_rates(components, rates)
    between = time_between_stops_ns(stops.total_per_year)
    interval = np.maximum(best_interval_ns(between, repair.checkpoint_ns), 1.0)
    down = stops.lost_accelerators_per_year * repair.repair_ns / NS_PER_YEAR
    waiting = spares_exhausted_prob(repair.spares_frac * components.accelerators_count, down)
    goodput = useful_frac(interval, between, repair.checkpoint_ns, repair.restart_ns, waiting * repair.repair_ns)
    capacity = capacity_frac(stops.lost_accelerators_per_year, components.accelerators_count, repair.repair_ns)
    return Availability(between, interval, waiting, goodput, capacity)
