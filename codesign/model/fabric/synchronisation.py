"""The slowest of many: what barriers cost when ranks and links vary.

A rank's time is its mean plus a persistent part (clock and thermal spread of the device, the same in every barrier of a
step), a part drawn anew for each barrier (queueing, imbalance), and rare link events (retry, degraded lanes). Ranks are
independent. Every barrier waits for the slowest of its group; groups are nested.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, log_ndtr, ndtri_exp

from codesign.columns import freeze
from codesign.units import Numeric

# Trapezoid rule over the standard normal deviate: the integrands fall off like a Gaussian, so the rule converges
# faster than any power of the step.
_LOW, _HIGH, _STEP = -8.0, 10.0, 0.25
_NODES = tuple(float(z) for z in np.arange(_LOW, _HIGH + 0.5 * _STEP, _STEP))
_LOG_CDF = tuple(float(log_ndtr(z)) for z in _NODES)
_EULER = 0.5772156649015329


def normal_maximum_ratio(ranks_count: Numeric) -> Numeric:
    """Expected maximum of independent standard normal deviates, in standard deviations.

    Exact integration; the usual sqrt(2 ln N) is 10 to 30 % high at the sizes of clusters.

    Args:
        ranks_count: How many. [count], >= 1

    Returns:
        Mean of the largest. [1], >= 0

    Source:
        tippett-1925: mean of the largest of N from a normal population.

    >>> round(float(normal_maximum_ratio(ranks_count=100.0)), 4)
    2.5076
    """
    total: Numeric = 0.0 * ranks_count
    for node, log_cdf in zip(_NODES, _LOG_CDF, strict=True):
        below = np.exp(log_cdf * np.asarray(ranks_count, dtype=np.float64))
        total = total + (np.where(node >= 0.0, 1.0, 0.0) - below) * _STEP
    # the step function at zero is halved by the rule: its own node counts for half
    return np.maximum(total - 0.5 * _STEP, 0.0)


def normal_maximum_deviation_ratio(ranks_count: Numeric) -> Numeric:
    """Standard deviation of that maximum, in standard deviations of one deviate.

    Args:
        ranks_count: How many. [count], >= 1

    Returns:
        Spread of the largest. [1], 0 to 1

    Source:
        tippett-1925: spread of the largest of N from a normal population.

    >>> round(float(normal_maximum_deviation_ratio(ranks_count=100.0)), 4)
    0.4294
    """
    mean = normal_maximum_ratio(ranks_count)
    square: Numeric = 0.0 * ranks_count
    for node, log_cdf in zip(_NODES, _LOG_CDF, strict=True):
        below = np.exp(log_cdf * np.asarray(ranks_count, dtype=np.float64))
        square = square + 2.0 * node * (np.where(node >= 0.0, 1.0, 0.0) - below) * _STEP
    # the integrand's slope jumps by two at zero: the rule's first correction term
    return np.sqrt(np.maximum(square + _STEP * _STEP / 6.0 - mean * mean, 0.0))


def lognormal_maximum_ratio(ranks_count: Numeric, log_deviation_ratio: Numeric) -> Numeric:
    """Expected maximum of independent log-normal times with mean one.

    Args:
        ranks_count: How many. [count], >= 1
        log_deviation_ratio: Standard deviation of the logarithm. [1], 0 to 1.5

    Returns:
        Mean of the largest over the mean of one. [1], >= 1

    Source:
        david-2003: integral of 1 - F^N.

    >>> round(float(lognormal_maximum_ratio(ranks_count=100.0, log_deviation_ratio=0.5)), 4)
    3.1677
    """
    sigma = np.asarray(log_deviation_ratio, dtype=np.float64)
    total: Numeric = np.exp(sigma * _LOW - 0.5 * sigma * sigma) + 0.0 * ranks_count
    for index, (node, log_cdf) in enumerate(zip(_NODES, _LOG_CDF, strict=True)):
        above = -np.expm1(log_cdf * np.asarray(ranks_count, dtype=np.float64))
        weight = 0.5 if index in (0, len(_NODES) - 1) else 1.0
        total = total + weight * _STEP * above * sigma * np.exp(sigma * node - 0.5 * sigma * sigma)
    return np.maximum(total, 1.0)


def exponential_maximum_ratio(ranks_count: Numeric) -> Numeric:
    """Expected maximum of independent exponential times with mean one: the harmonic number.

    Args:
        ranks_count: How many. [count], >= 1

    Returns:
        Mean of the largest over the mean of one. [1], >= 1

    Source:
        david-2003: 1 + 1/2 + ... + 1/N.

    >>> round(float(exponential_maximum_ratio(ranks_count=2.0)), 12)
    1.5
    """
    result: Numeric = digamma(np.asarray(ranks_count, dtype=np.float64) + 1.0) + _EULER
    return result


def normal_maximum_quantile_ratio(ranks_count: Numeric, probability_frac: Numeric) -> Numeric:
    """Quantile of the maximum of independent standard normal deviates, in standard deviations.

    Args:
        ranks_count: How many. [count], >= 1
        probability_frac: Share of draws below the quantile. [1], 0 to 1

    Returns:
        Quantile of the largest. [1]

    Source:
        definition: F^N = q, so F = q^(1/N).

    >>> round(float(normal_maximum_quantile_ratio(ranks_count=1.0, probability_frac=0.5)), 12)
    0.0
    """
    result: Numeric = ndtri_exp(np.log(probability_frac) / np.asarray(ranks_count, dtype=np.float64))
    return result


def any_event_prob(event_prob: Numeric, events_count: Numeric) -> Numeric:
    """Chance that at least one of many independent events happens.

    Args:
        event_prob: Chance of one. [1], 0 to below 1
        events_count: How many. [count], >= 0

    Returns:
        Chance of at least one. [1]

    Source:
        definition: 1 - (1 - p)^N, computed without loss for small p.

    >>> float(any_event_prob(event_prob=0.5, events_count=2.0))
    0.75
    """
    result: Numeric = -np.expm1(events_count * np.log1p(-np.asarray(event_prob, dtype=np.float64)))
    return result


@dataclass(frozen=True, slots=True, eq=False)
class Barriers:
    """A step and its barriers."""

    compute_ns: Numeric  # mean compute time of a step
    communication_ns: Numeric  # mean exposed communication of a step
    barriers_count: Numeric  # barriers of the inner group per step
    inner_count: Numeric  # ranks that meet at every barrier
    outer_count: Numeric  # groups that meet at the end of the step
    persistent_frac: Numeric  # standard deviation of a device's speed
    jitter_frac: Numeric  # standard deviation of compute between two barriers
    retry_prob: Numeric  # chance that a rank's messages of one barrier need a retry
    retry_ns: Numeric  # what it costs
    degraded_prob: Numeric  # chance that a rank runs with lanes lost
    degraded_frac: Numeric  # share of its rate that such a rank has lost

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Synchronisation:
    """What variability adds to a step."""

    persistent_ns: Numeric  # the slowest device
    jitter_ns: Numeric  # the slowest between barriers, and the slowest group of all
    retry_ns: Numeric  # retries that somebody always has
    degraded_ns: Numeric  # links that run with lanes lost
    step_ns: Numeric  # mean step with all of it
    step_p99_ratio: Numeric  # 99th percentile over the mean step
    vanishing_frac: Numeric  # share of the step that goes if every rank and link stays at its mean

    def __post_init__(self) -> None:
        freeze(self)


def synchronisation(barriers: Barriers) -> Synchronisation:
    """Mean and tail of a step under nested barriers.

    Assumes a persistent part that is the same in all barriers (so it is paid once per step, by the slowest of all
    ranks), and a fresh part whose group maxima add up over the step and then compete among the groups.

    Args:
        barriers: The step, its groups and how much ranks vary.

    Returns:
        Parts that add up to the step [ns], its tail and the share that would vanish [1].
    """
    b = barriers
    ranks = b.inner_count * b.outer_count
    mean_ns = b.compute_ns + b.communication_ns
    persistent = b.compute_ns * b.persistent_frac * normal_maximum_ratio(ranks)
    pieces = np.maximum(b.barriers_count, 1.0)
    piece_ns = b.compute_ns * b.jitter_frac / pieces
    inner_spread = piece_ns * normal_maximum_deviation_ratio(b.inner_count) * np.sqrt(pieces)
    outer_max = normal_maximum_ratio(b.outer_count)
    jitter = pieces * piece_ns * normal_maximum_ratio(b.inner_count) + inner_spread * outer_max
    retry = pieces * any_event_prob(b.retry_prob, ranks) * b.retry_ns
    lost = b.degraded_frac / np.maximum(1.0 - b.degraded_frac, 1e-3)
    degraded = any_event_prob(b.degraded_prob, ranks) * lost * b.communication_ns
    step = mean_ns + persistent + jitter + retry + degraded
    # devices are the same in every step; what varies from step to step is the fresh part and a retry more or less
    spread = normal_maximum_quantile_ratio(b.outer_count, 0.99) - outer_max
    tail = step + inner_spread * np.maximum(spread, 0.0) + np.minimum(b.retry_prob * ranks * 1e2, 1.0) * b.retry_ns
    return Synchronisation(
        persistent_ns=persistent,
        jitter_ns=jitter,
        retry_ns=retry,
        degraded_ns=degraded,
        step_ns=step,
        step_p99_ratio=np.where(step > 0.0, tail / np.maximum(step, 1e-9), 1.0),
        vanishing_frac=np.where(step > 0.0, (step - mean_ns) / np.maximum(step, 1e-9), 0.0),
    )
