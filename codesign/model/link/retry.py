"""Link-level retry: what a lost flit costs in rate and in time, on average and in the tail."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from codesign.columns import freeze, where_needed
from codesign.units import Numeric

_ROUNDS = 8  #: loss events counted one by one in the tail; beyond, the normal limit of the Poisson count


def window_count(round_trip_ns: Numeric, flit_ns: Numeric) -> Numeric:
    """Flits sent while one round trip passes.

    Args:
        round_trip_ns: From sending a flit to learning its fate. [ns]
        flit_ns: Time of a flit on the line. [ns], > 0

    Returns:
        Flits in flight, at least one. [count]

    Source:
        kurose-ross: pipelined reliable transfer.

    >>> float(window_count(round_trip_ns=100.0, flit_ns=2.5))
    40.0
    """
    return np.maximum(round_trip_ns / flit_ns, 1.0)


def go_back_frac(loss_prob: Numeric, window_count: Numeric) -> Numeric:
    """Useful share of the line when a loss throws away the window behind it: go-back-N.

    Losses independent from flit to flit. A window of one is stop-and-wait's 1 - p.

    Args:
        loss_prob: Probability that a flit is lost. [1]
        window_count: Flits sent before the loss is known. [count], >= 1

    Returns:
        Useful share. [1]

    Source:
        kurose-ross: go-back-N, (1 - p) / (1 + (W - 1) p).

    >>> round(go_back_frac(loss_prob=5e-6, window_count=50), 5)
    0.99975
    """
    return (1.0 - loss_prob) / (1.0 + (window_count - 1.0) * loss_prob)


def selective_frac(loss_prob: Numeric) -> Numeric:
    """Useful share of the line when only the lost flit is sent again.

    Args:
        loss_prob: Probability that a flit is lost. [1]

    Returns:
        Useful share. [1]

    Source:
        kurose-ross: selective repeat, 1 - p.

    >>> selective_frac(loss_prob=0.001)
    0.999
    """
    return 1.0 - loss_prob


def replay_buffer_frac(replay_bytes: Numeric, round_trip_ns: Numeric, rate_gbps: Numeric) -> Numeric:
    """Share of the line a replay buffer sustains: unacknowledged bytes must stay in it for a round trip.

    Args:
        replay_bytes: Replay buffer. [byte], >= 0
        round_trip_ns: Until the acknowledgement is back. [ns], > 0
        rate_gbps: Rate of the line. [Gb/s], > 0

    Returns:
        Share of the line, at most 1. [1]

    Source:
        little-1961: bytes in flight over the round trip.

    >>> float(replay_buffer_frac(replay_bytes=5000, round_trip_ns=100.0, rate_gbps=800.0))
    0.5
    """
    return np.minimum(8.0 * replay_bytes / (round_trip_ns * rate_gbps), 1.0)


def mean_losses_count(loss_prob: Numeric, flits_count: Numeric) -> Numeric:
    """Mean number of losses a message meets on one link, those of its retransmissions included.

    Args:
        loss_prob: Probability that a flit is lost. [1]
        flits_count: Flits of the message on one link. [count]

    Returns:
        Expected losses. [count]

    Source:
        definition: geometric number of attempts per flit.

    >>> float(mean_losses_count(loss_prob=0.5, flits_count=3))
    3.0
    """
    return flits_count * loss_prob / (1.0 - np.minimum(loss_prob, 0.999999))


def no_retry_prob(loss_prob: Numeric, flits_count: Numeric, links_count: Numeric) -> Numeric:
    """Probability that a message on several links sees no retry at all.

    Args:
        loss_prob: Probability that a flit is lost. [1]
        flits_count: Flits of the message on one link. [count]
        links_count: Links it is spread over. [count]

    Returns:
        Probability of a clean passage. [1]

    Source:
        definition: (1 - p) to the number of flits.

    >>> float(no_retry_prob(loss_prob=0.5, flits_count=1, links_count=2))
    0.25
    """
    return np.exp(flits_count * links_count * np.log1p(-np.minimum(loss_prob, 0.999999)))


@dataclass(frozen=True, slots=True, eq=False)
class LossEvents:
    """Loss events on the worst of the links a message is spread over."""

    mean_count: Numeric
    sd_count: Numeric
    quantile_count: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def loss_events(events_count: Numeric, links_count: Numeric, tail_prob: Numeric) -> LossEvents:
    """How many loss events the worst of several links meets: mean, spread, and the number exceeded only rarely.

    The count on one link is Poisson. Counted exactly up to eight events, beyond that not below the normal limit.

    Args:
        events_count: Mean number of events on one link. [count], >= 0
        links_count: Links that all must finish. [count], >= 1
        tail_prob: Probability with which the quantile may be exceeded. [1]

    Returns:
        Moments and quantile of the largest count.

    Source:
        definition: Poisson distribution; the largest of L is below x if all are.

    >>> float(loss_events(events_count=0.01, links_count=1, tail_prob=0.001).quantile_count)
    1.0
    """
    mean = np.minimum(np.asarray(events_count, dtype=float), 600.0)
    term = np.exp(-mean)
    above, bound = -np.expm1(-mean), 1.0 * mean
    several = np.not_equal(links_count, 1.0)
    first = second = np.zeros(())
    quantile = np.zeros((), dtype=np.int8)
    for event in range(_ROUNDS):
        one = np.maximum(np.minimum(above, bound), 0.0)
        exceeds = where_needed(several, _some_prob, one, one, links_count)
        first = first + exceeds
        second = second + (2.0 * event + 1.0) * exceeds
        quantile = quantile + (exceeds > tail_prob)
        term *= mean
        term /= event + 1.0
        above -= term
        bound *= mean
        bound /= event + 2.0
    first = np.maximum(first, mean)
    counted = np.asarray(quantile, dtype=np.float64)
    return LossEvents(
        mean_count=first,
        sd_count=np.sqrt(np.maximum(second - first * first, 0.0)),
        quantile_count=where_needed(quantile >= _ROUNDS, _many_count, counted, mean, tail_prob / links_count),
    )


def _some_prob(one_prob: Numeric, links_count: Numeric) -> Numeric:
    """Probability that at least one of several links sees what one sees with the given probability."""
    some: Numeric = -np.expm1(links_count * np.log1p(-np.minimum(one_prob, 1.0 - 1e-16)))
    return some


def _many_count(mean_count: Numeric, tail_prob: Numeric) -> Numeric:
    """Quantile of a large Poisson count: normal, with the skew of Cornish and Fisher."""
    sigmas: Numeric = -ndtri(tail_prob)
    many: Numeric = np.ceil(mean_count + sigmas * np.sqrt(mean_count) + (sigmas * sigmas - 1.0) / 6.0)
    return np.maximum(_ROUNDS, many)


def selective_delay_ns(
    loss_prob: Numeric,
    flits_count: Numeric,
    flit_ns: Numeric,
    round_trip_ns: Numeric,
    links_count: Numeric,
    tail_prob: Numeric,
) -> Numeric:
    """Delay that selective retry adds to a message, exceeded with no more than a given probability.

    A lost flit comes back a round trip later; that is late only if it was among the last flits, so a long message
    hides most of its losses. Up to three losses of the same flit are looked at.

    Args:
        loss_prob: Probability that a flit is lost. [1]
        flits_count: Flits of the message on one link. [count]
        flit_ns: Time of a flit on the line. [ns]
        round_trip_ns: From sending a flit to sending it again. [ns]
        links_count: Links that all must finish. [count]
        tail_prob: Probability that may exceed it. [1]

    Returns:
        Added delay at that probability. [ns]

    Source:
        definition: the smallest tail of the message that holds a loss with the given probability.

    >>> float(selective_delay_ns(0.001, 10, 1.0, 100.0, 1, 0.001))
    99.0
    """
    sure = np.log1p(-tail_prob) / links_count
    worst = 0.0 * round_trip_ns
    for attempts in (1, 2, 3):
        lost = np.clip(loss_prob**attempts, 1e-300, 1.0 - 1e-12)
        last = sure / np.log1p(-lost)
        late = attempts * round_trip_ns - np.maximum(last, 1.0) * flit_ns
        worst = np.maximum(worst, np.where(last <= flits_count, late, 0.0 * round_trip_ns))
    return worst


def selective_mean_ns(
    loss_prob: Numeric, flits_count: Numeric, flit_ns: Numeric, round_trip_ns: Numeric, links_count: Numeric
) -> Numeric:
    """Delay that selective retry adds to a message on average: losses among the flits of its last round trip.

    Args:
        loss_prob: Probability that a flit is lost. [1]
        flits_count: Flits of the message on one link. [count]
        flit_ns: Time of a flit on the line. [ns], > 0
        round_trip_ns: From sending a flit to sending it again. [ns]
        links_count: Links that all must finish. [count]

    Returns:
        Mean added delay. [ns]

    Source:
        definition: sum over the flits of loss probability times lateness.

    >>> float(selective_mean_ns(0.001, 100, 1.0, 100.0, 1))
    5.0
    """
    window = round_trip_ns / flit_ns
    exposed = np.minimum(flits_count, window)
    return loss_prob * links_count * flit_ns * (window * exposed - 0.5 * exposed * exposed)


def selective_spread_ns(
    loss_prob: Numeric, flits_count: Numeric, flit_ns: Numeric, round_trip_ns: Numeric, links_count: Numeric
) -> Numeric:
    """Standard deviation of the delay that selective retry adds to a message.

    Args:
        loss_prob: Probability that a flit is lost. [1]
        flits_count: Flits of the message on one link. [count]
        flit_ns: Time of a flit on the line. [ns], > 0
        round_trip_ns: From sending a flit to sending it again. [ns]
        links_count: Links that all must finish. [count]

    Returns:
        Standard deviation. [ns]

    Source:
        definition: sum over the flits of loss probability times lateness squared.

    >>> round(float(selective_spread_ns(0.003, 10, 1.0, 10.0, 1)), 9)
    1.0
    """
    window = round_trip_ns / flit_ns
    rest = window - np.minimum(flits_count, window)
    cubes = window * window * window - rest * rest * rest
    return flit_ns * np.sqrt(loss_prob * links_count * cubes / 3.0)
