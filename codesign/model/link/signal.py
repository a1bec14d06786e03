"""From the channel and the SerDes to the bit error ratio at the slicer: the first part of the chain."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.link.bursts import propagated_error_prob
from codesign.model.link.channel import line_loss_db, reach_m, twinax_loss_db_per_m
from codesign.model.link.inputs import LinkInputs
from codesign.model.link.noise import noise_ratio, segment
from codesign.model.link.pam import required_snr_db, symbol_error_log10_ratio, symbol_rate_ghz
from codesign.model.link.serdes import slicer_snr_db
from codesign.units import Numeric, mm_from_m

_LN10 = float(np.log(10.0))


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """What arrives at the slicer of a lane."""

    nyquist_ghz: Numeric
    fixed_loss_db: Numeric  # without the cable
    cable_db_per_m: Numeric
    insertion_loss_db: Numeric
    snr_db: Numeric  # after the margin the design must keep
    required_snr_db: Numeric
    margin_db: Numeric
    slicer_error_prob: Numeric  # line symbols wrong, propagation included
    pre_fec_ber: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def signal(inputs: LinkInputs) -> Signal:
    """From the channel to the bit error ratio before the code, over all electrical segments.

    Args:
        inputs: The link.

    Returns:
        Loss, signal-to-noise ratio, margin against the code's limit, error ratio.

    Source:
        ieee-802.3-annex-93a: the budget; the margin is asked for as the operating margin is.

    >>> from codesign.model.link.example import example_inputs
    >>> 10.0 < float(signal(example_inputs()).snr_db) < 40.0
    True
    """
    channel, medium, serdes, fec = inputs.channel, inputs.medium, inputs.serdes, inputs.fec
    bits = serdes.symbol_bits
    nyquist = 0.5 * symbol_rate_ghz(serdes.lane_rate_gbps, bits)
    per_m = twinax_loss_db_per_m(
        nyquist, channel.cable_low_ghz, channel.cable_low_db_per_m, channel.cable_high_ghz,
        channel.cable_high_db_per_m, channel.conductor_ratio,
    )  # fmt: skip
    parts = segment(channel, nyquist)
    fixed = parts.total_db
    loss = fixed + per_m * channel.cable_m
    noise = noise_ratio(loss, medium.own_snr_db, parts, channel, serdes, inputs.fit)
    snr = slicer_snr_db(noise, serdes.level_mismatch_ratio, serdes.sequence_gain_db) - serdes.implementation_db
    first = np.exp(_LN10 * symbol_error_log10_ratio(snr, serdes.levels_count))
    wrong = propagated_error_prob(first, serdes.propagation_prob)
    share = bits * (1.0 - serdes.propagation_prob) / medium.segments_count  # line symbols wrong per bit allowed
    allowed = np.clip((fec.limit_ber - medium.own_ber) * share, 1e-18, 0.4)
    required = required_snr_db(allowed, serdes.levels_count, 1.0)
    ber = np.minimum(medium.segments_count * wrong / bits + medium.own_ber, 0.5)
    return Signal(
        nyquist_ghz=nyquist,
        fixed_loss_db=fixed,
        cable_db_per_m=per_m,
        insertion_loss_db=loss,
        snr_db=snr,
        required_snr_db=required,
        margin_db=snr - required,
        slicer_error_prob=np.minimum(ber * bits, 0.999),
        pre_fec_ber=ber,
    )


def loss_budget_db(inputs: LinkInputs, required_db: Numeric) -> Numeric:
    """Largest insertion loss at which the slicer still sees a wanted signal-to-noise ratio; bisection.

    Args:
        inputs: The link.
        required_db: Wanted ratio, after the margin the design must keep. [dB]

    Returns:
        Loss from die to die; 0 where even no loss is too much. [dB]

    Source:
        ieee-802.3-annex-93a: the budget, solved for the loss.

    >>> from codesign.model.link.example import example_inputs
    >>> 5.0 < float(loss_budget_db(example_inputs(), 15.0)) < 60.0
    True
    """
    serdes, own = inputs.serdes, inputs.medium.own_snr_db
    parts = segment(inputs.channel, 0.5 * symbol_rate_ghz(serdes.lane_rate_gbps, serdes.symbol_bits))
    low = 0.0 * np.asarray(required_db, dtype=float)
    high = low + 120.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        noise = noise_ratio(middle, own, parts, inputs.channel, serdes, inputs.fit)
        snr = slicer_snr_db(noise, serdes.level_mismatch_ratio, serdes.sequence_gain_db) - serdes.implementation_db
        enough = snr >= required_db
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return low


def link_reach_m(inputs: LinkInputs) -> Numeric:
    """Longest link that still meets the limit of the code, and not beyond what the medium is made for.

    A cable or a trace takes what its packages, boards and plugs leave of the budget. Glass, and what lies behind a
    retimer, goes as far as the medium where the electrical part closes, and nowhere where it does not. Of a lane faster
    than the budget was fitted to no length is known.

    Args:
        inputs: The link.

    Returns:
        Length. [m]

    Source:
        ieee-802.3-annex-93a: the budget, solved for the length.

    >>> from codesign.model.link.example import example_inputs
    >>> 0.0 < float(link_reach_m(example_inputs())) <= 3.0
    True
    """
    line, channel = signal(inputs), inputs.channel
    budget = loss_budget_db(inputs, line.required_snr_db)
    trace_db_per_m = line_loss_db(
        line.nyquist_ghz, mm_from_m(1.0), 0.0, channel.board_sqrt_ns_per_mm, channel.board_ns_per_mm
    )
    without_trace_db = line.fixed_loss_db - trace_db_per_m * channel.trace_m
    limit = inputs.medium.reach_limit_m
    reach = np.where(np.greater_equal(line.margin_db, 0.0), limit, 0.0)
    trace = np.minimum(reach_m(budget, without_trace_db, trace_db_per_m), limit)
    reach = np.where(np.greater(channel.trace_m, 0.0), trace, reach)
    cable = np.minimum(reach_m(budget, line.fixed_loss_db, line.cable_db_per_m), limit)
    reach = np.where(np.greater(channel.cable_m, 0.0), cable, reach)
    return np.where(np.less_equal(2.0 * line.nyquist_ghz, inputs.fit.fastest_symbol_ghz), reach, 0.0)
