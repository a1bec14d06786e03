"""The noise budget at the slicer: each part over the signal, and their sum."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.link.channel import connector_loss_db, line_loss_db
from codesign.model.link.inputs import ChannelInputs, SerdesFit, SerdesInputs
from codesign.model.link.interference import (
    dispersion_ratio,
    echo_ratio,
    line_echo_ratio,
    mismatch_ratio,
    package_echo_ratio,
)
from codesign.model.link.pam import level_variance_ratio, symbol_rate_ghz
from codesign.model.link.serdes import (
    jitter_ratio,
    noise_enhancement_db,
    quantisation_ratio,
    receiver_noise_ratio,
    relative_noise_ratio,
)
from codesign.units import Numeric, mm_from_m

_HOPELESS_DB = 300.0  #: a longer line is not worse, so that every number stays finite


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """Noise at the slicer over mean signal power, by origin, without that of an optical part."""

    receiver_ratio: Numeric
    crosstalk_ratio: Numeric
    transmitter_ratio: Numeric
    interference_ratio: Numeric  # smearing and echoes that the equaliser leaves
    jitter_ratio: Numeric
    quantiser_ratio: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Loss of one electrical segment at half the symbol rate, without its cable."""

    package_db: Numeric
    board_db: Numeric
    plugs_db: Numeric

    def __post_init__(self) -> None:
        freeze(self)

    @property
    def total_db(self) -> Numeric:
        """All of it."""
        return self.package_db + self.board_db + self.plugs_db


def segment(channel: ChannelInputs, frequency_ghz: Numeric) -> Segment:
    """Loss of the packages, the boards and the plugs of one electrical segment.

    Args:
        channel: The way of the signal.
        frequency_ghz: Frequency. [GHz]

    Returns:
        Loss by part.

    Source:
        ieee-802.3dj-d3.3: loss budget as the sum of its parts, each line by its transmission-line model.

    >>> from codesign.model.link.example import example_inputs
    >>> bool(segment(example_inputs().channel, 26.56).package_db > 1.0)
    True
    """
    return Segment(
        package_db=line_loss_db(
            frequency_ghz, channel.package_mm, channel.package_per_mm, channel.package_sqrt_ns_per_mm,
            channel.package_ns_per_mm,
        ),
        board_db=line_loss_db(
            frequency_ghz, channel.board_mm + mm_from_m(channel.trace_m), 0.0, channel.board_sqrt_ns_per_mm,
            channel.board_ns_per_mm,
        ),
        plugs_db=connector_loss_db(
            frequency_ghz, channel.connectors_count, channel.connector_db, channel.connector_ghz
        ),
    )  # fmt: skip


def noise_ratio(
    loss_db: Numeric,
    own_snr_db: Numeric,
    fixed: Segment,
    channel: ChannelInputs,
    serdes: SerdesInputs,
    fit: SerdesFit,
) -> Numeric:
    """All noise over mean signal power at the slicer.

    Args:
        loss_db: Insertion loss at half the symbol rate. [dB]
        own_snr_db: Signal over noise of a linear optical part. [dB]
        fixed: Loss of its parts other than the cable.
        channel: The way of the signal.
        serdes: The lane.
        fit: Fitted factors.

    Returns:
        Noise over signal. [1]

    Source:
        ieee-802.3-annex-93a: sum of variances, equations 93A-29 to 93A-36.

    >>> from codesign.model.link.example import example_inputs
    >>> inputs = example_inputs()
    >>> fixed = segment(inputs.channel, 25.0)
    >>> bool(noise_ratio(30.0, 200.0, fixed, inputs.channel, inputs.serdes, inputs.fit) > 0.0)
    True
    """
    parts = noise(loss_db, fixed, channel, serdes, fit)
    total = parts.receiver_ratio + parts.crosstalk_ratio + parts.transmitter_ratio + parts.interference_ratio
    return total + parts.jitter_ratio + parts.quantiser_ratio + relative_noise_ratio(own_snr_db)


def noise(loss_db: Numeric, fixed: Segment, channel: ChannelInputs, serdes: SerdesInputs, fit: SerdesFit) -> Noise:
    """The parts of the noise of one electrical segment.

    Packages bend less against frequency than cables, so that their loss enhances noise less; crosstalk between plugs
    crosses them as the signal does, so that it is not enhanced by them.

    Args:
        loss_db: Insertion loss at half the symbol rate. [dB]
        fixed: Loss of its parts other than the cable.
        channel: The way of the signal.
        serdes: The lane.
        fit: Fitted factors.

    Returns:
        Each part over mean signal power.

    Source:
        ieee-802.3-annex-93a: equations 93A-29 to 93A-36, each by its law in `serdes`.

    >>> from codesign.model.link.example import example_inputs
    >>> inputs = example_inputs()
    >>> fixed = segment(inputs.channel, 25.0)
    >>> bool(noise(30.0, fixed, inputs.channel, inputs.serdes, inputs.fit).receiver_ratio > 0.0)
    True
    """
    loss = np.minimum(loss_db, _HOPELESS_DB)
    variance = level_variance_ratio(serdes.levels_count)
    symbol_ghz = symbol_rate_ghz(serdes.lane_rate_gbps, serdes.symbol_bits)
    package, plugs = np.minimum(fixed.package_db, loss), fixed.plugs_db
    bent = loss - fit.package_relief_ratio * package
    enhancement = noise_enhancement_db(bent, serdes.feedback_frac, fit.shape_ratio)
    receiver = receiver_noise_ratio(serdes.noise_v2_per_ghz, symbol_ghz, serdes.amplitude_v, variance, enhancement)
    smear = loss + fit.package_weight_ratio * package + fit.plug_weight_ratio * plugs
    line = np.maximum(loss - package - plugs, 0.0)
    dispersion = dispersion_ratio(
        smear, line, serdes.taps_count, fit.reference_loss_db, serdes.uncorrected_ratio, fit.tail_ratio,
        fit.dispersion_exponent_ratio, serdes.memory_count,
    )  # fmt: skip
    steps = _steps_ratio(package, line, symbol_ghz, channel, serdes.taps_count, fit)
    echo = echo_ratio(
        symbol_ghz * (0.5 / fit.reference_ghz), steps, serdes.reference_echo_ratio, fit.echo_exponent_ratio
    )
    crosstalk_db = channel.crosstalk_db + fit.crosstalk_relief_ratio * package - enhancement
    crest = fit.crest_db + fit.crest_slope_ratio * loss
    return Noise(
        receiver_ratio=fit.band_ratio * receiver,
        crosstalk_ratio=relative_noise_ratio(crosstalk_db),
        transmitter_ratio=fit.transmitter_ratio * relative_noise_ratio(serdes.transmitter_snr_db) / variance,
        interference_ratio=dispersion + echo,
        jitter_ratio=jitter_ratio(serdes.random_ui, serdes.bounded_ui, fit.slope_ratio),
        quantiser_ratio=quantisation_ratio(serdes.converter_bits_count, crest),
    )


def _steps_ratio(
    package_db: Numeric, line_db: Numeric, symbol_ghz: Numeric, channel: ChannelInputs, taps: Numeric, fit: SerdesFit
) -> Numeric:
    """Echoes over the near echo of a lane without plugs and taps."""
    ends = np.maximum(channel.package_ends_count, 1.0)  # where there is none, there are no sections either
    delay_ui = 2.0 * channel.package_mm / ends * channel.package_delay_ns_per_mm * symbol_ghz
    mismatch = mismatch_ratio(
        channel.connectors_count, channel.connector_reflection_ratio, 0.5 * symbol_ghz / channel.connector_ghz,
        fit.connector_weight_ratio,
    )  # fmt: skip
    line = line_echo_ratio(mismatch, line_db, taps, fit.near_memory_count, fit.far_weight_ratio, fit.far_loss_ratio)
    inside = package_echo_ratio(
        channel.sections_count, package_db / ends, delay_ui, taps, fit.section_weight_ratio, fit.section_loss_ratio,
        fit.section_reach_ratio,
    )  # fmt: skip
    return line + inside
