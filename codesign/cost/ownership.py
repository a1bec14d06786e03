"""Capital recovery, and from dollars per accelerator-hour to dollars per million tokens."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.units import Array, Numeric


@dataclass(frozen=True, slots=True, eq=False)
class FinanceInputs:
    """What money, sites and people cost, and the margins on the way."""

    interest_frac: Numeric
    accelerator_life_years: Numeric
    network_life_years: Numeric
    facility_interest_frac: Numeric
    facility_life_years: Numeric
    facility_usd_per_w: Numeric
    site_usd_per_w_year: Numeric
    maintenance_per_year: Numeric
    spares_frac: Numeric
    vendor_margin_frac: Numeric
    integrator_margin_frac: Numeric
    provider_margin_frac: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class MixCosts:
    """What tokens of every workload of a mix cost, and how much of the machine's time each has."""

    usd_per_mtok: Array  # (w, n)
    weight_ratio: Array  # (w, 1), share of accelerator-hours on any scale

    def __post_init__(self) -> None:
        freeze(self)


def capital_recovery_frac(interest_frac: Numeric, periods_count: Numeric) -> Numeric:
    """Share of a capital sum that each of equal payments must cover, interest included (annuity).

    Payments at the end of each period, nothing left at the end of life. Without interest it is one over the periods.

    Args:
        interest_frac: Interest per period. [1], >= 0
        periods_count: Number of payments, whole or not. [count], > 0

    Returns:
        Payment over capital. [1]

    Source:
        definition: i (1+i)^N / ((1+i)^N - 1).

    >>> round(float(capital_recovery_frac(0.10, 4.0)), 5)
    0.31547
    """
    log_growth = periods_count * np.log1p(interest_frac)
    free = log_growth < 1e-12  # the quotient below is 0/0 there
    paid = -np.expm1(-np.where(free, 1.0, log_growth))
    return np.where(free, 1.0 / periods_count, interest_frac / paid)


def capital_usd_per_h(capital_usd: Numeric, recovery_per_year: Numeric) -> Numeric:
    """What a capital sum costs in every hour of its life.

    Args:
        capital_usd: Price of the thing. [USD], >= 0
        recovery_per_year: Yearly payment over capital. [1/year], > 0

    Returns:
        Cost of owning it, used or not. [USD/h]

    Source:
        definition: a year has 8,760 hours.

    >>> capital_usd_per_h(43800.0, 0.2)
    1.0
    """
    return capital_usd * recovery_per_year / 8760.0


def token_usd_per_mtok(
    rate_usd_per_h: Numeric,
    throughput_tokens_per_s: Numeric,
    utilisation_frac: Numeric,
    goodput_frac: Numeric,
    least_tokens_per_s: Numeric = 1e-9,
) -> Numeric:
    """Price of a million tokens on a machine that costs so much an hour.

    Throughput is that of a busy, healthy machine; utilisation is the share of hours sold, goodput the share of the
    work that survives failures. Tokens that nobody pays for are in neither.

    Args:
        rate_usd_per_h: Cost of one accelerator-hour. [USD/h], >= 0
        throughput_tokens_per_s: Tokens per second and accelerator. [token/s], >= 0
        utilisation_frac: Share of hours sold. [1], above 0 to 1
        goodput_frac: Share of work that counts. [1], above 0 to 1
        least_tokens_per_s: Throughput below which a price says nothing; it keeps the price finite. [token/s], > 0

    Returns:
        Cost of tokens; finite, and absurd, where there is no throughput. [USD/Mtoken]

    Source:
        inferencex-2026: TCO per hour times a million over 3600 times tokens per second.

    >>> round(float(token_usd_per_mtok(2.65, 6000.0, 1.0, 1.0)), 3)
    0.123
    """
    sold = np.maximum(utilisation_frac * goodput_frac, 1e-9)
    return rate_usd_per_h * 1e6 / (3600.0 * sold) / np.maximum(throughput_tokens_per_s, least_tokens_per_s)


def shared_usd_per_mtok(
    rate_usd_per_h: Numeric,
    busy_share_frac: Numeric,
    throughput_tokens_per_s: Numeric,
    utilisation_frac: Numeric,
    goodput_frac: Numeric,
    least_tokens_per_s: Numeric = 1e-9,
) -> Numeric:
    """Price of a million tokens of one kind on a machine that also makes the other: cost split by busy time.

    For input tokens the share is that of prefill, for output tokens that of decode. Unsold hours and lost work are
    carried in proportion, so the two bills add up to the machine's.

    Args:
        rate_usd_per_h: Cost of one accelerator-hour. [USD/h], >= 0
        busy_share_frac: Share of busy time spent on these tokens. [1], 0 to 1
        throughput_tokens_per_s: These tokens over all busy time, per accelerator. [token/s], >= 0
        utilisation_frac: Share of hours sold. [1], above 0 to 1
        goodput_frac: Share of work that counts. [1], above 0 to 1
        least_tokens_per_s: Throughput below which a price says nothing; it keeps the price finite. [token/s], > 0

    Returns:
        Cost of these tokens. [USD/Mtoken]

    Source:
        definition: cost by busy time.

    >>> round(float(shared_usd_per_mtok(3.6, 0.25, 1000.0, 1.0, 1.0)), 3)
    0.25
    """
    share_usd_per_h = rate_usd_per_h * busy_share_frac
    return token_usd_per_mtok(
        share_usd_per_h, throughput_tokens_per_s, utilisation_frac, goodput_frac, least_tokens_per_s
    )


def cvar_usd_per_mtok(mix: MixCosts, tail_frac: Numeric = 0.5) -> Numeric:
    """Mean price of a million tokens over the dearest part of a mix: the conditional value at risk of its costs.

    Workloads count by their accelerator-hours, dearest first; the one at the boundary counts with the part of its hours
    inside. One workload is its own tail; over the whole mix it is the weighted mean, over next to nothing the worst.

    Args:
        mix: Costs and weights of the workloads.
        tail_frac: Share of the accelerator-hours looked at; one minus the level of the literature. [1], above 0 to 1

    Returns:
        Mean cost over that share, per candidate. [USD/Mtoken]

    Source:
        rockafellar-2000: conditional value at risk of a discrete loss, as the mean of its upper tail.

    >>> mix = MixCosts(np.array([[3.0], [1.0], [2.0]]), np.array([[0.25], [0.35], [0.4]]))
    >>> np.round(cvar_usd_per_mtok(mix), 6).tolist()  # (0.25 * 3 + 0.25 * 2) / 0.5
    [2.5]
    """
    order = np.argsort(-mix.usd_per_mtok, axis=0, kind="stable")
    usd = np.take_along_axis(mix.usd_per_mtok, order, axis=0)
    weight = np.take_along_axis(np.broadcast_to(mix.weight_ratio, usd.shape), order, axis=0)
    until = np.cumsum(weight, axis=0)  # sums row by row, whatever the batch
    counted = np.clip(tail_frac * until[-1] - (until - weight), 0.0, weight)
    share = counted / np.cumsum(counted, axis=0)[-1]
    return np.asarray(np.cumsum(share * usd, axis=0)[-1])
