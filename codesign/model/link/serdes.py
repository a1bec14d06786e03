"""The SerDes: signal-to-noise budget at the slicer, energy, area and edge of one lane.

The budget adds noise-to-signal ratios in the spirit of the channel operating margin of IEEE 802.3: receiver noise and
crosstalk raised by the equaliser, transmitter noise, jitter, what is left of the intersymbol interference, and the
converter's quantisation. It stands for a design whose equaliser is as good as its class allows; its factors are fitted
to a public implementation of that method.
"""

import numpy as np

from codesign.units import Numeric, empirical

_LN10 = float(np.log(10.0))


def linear_enhancement_db(loss_db: Numeric) -> Numeric:
    """Noise enhancement of a linear equaliser that flattens a channel whose loss grows in proportion to frequency.

    The mean of the inverse channel over the band, (e^c - 1) / c for a loss of c nepers of power at the band edge.

    Args:
        loss_db: Insertion loss at half the symbol rate. [dB], >= 0

    Returns:
        Noise power behind the equaliser over noise power before it. [dB]

    Source:
        gallager-salz-1973: zero-forcing equaliser, arithmetic mean of the inverse spectrum.

    >>> round(float(linear_enhancement_db(loss_db=20.0)), 2)
    13.32
    """
    nepers = loss_db * (_LN10 / 10.0) + 1e-9
    return 10.0 / _LN10 * np.log(np.expm1(nepers) / nepers)


def feedback_enhancement_db(loss_db: Numeric) -> Numeric:
    """Noise enhancement of an ideal decision-feedback equaliser on the same channel: the mean of the loss in dB.

    Args:
        loss_db: Insertion loss at half the symbol rate. [dB], >= 0

    Returns:
        Noise power behind the equaliser over noise power before it. [dB]

    Source:
        gallager-salz-1973: decision feedback, geometric mean of the inverse spectrum.

    >>> feedback_enhancement_db(loss_db=20.0)
    10.0
    """
    return loss_db / 2.0


def noise_enhancement_db(loss_db: Numeric, feedback_frac: Numeric, shape_ratio: Numeric) -> Numeric:
    """Noise enhancement of a real equaliser, between the linear and the ideal feedback one.

    Args:
        loss_db: Insertion loss at half the symbol rate. [dB], >= 0
        feedback_frac: How far feedback (or sequence detection) takes it to the ideal. [1], in [0, 1]
        shape_ratio: Correction for the curvature of the loss against frequency, fitted. [1]

    Returns:
        Noise power behind the equaliser over noise power before it. [dB]

    Source:
        gallager-salz-1973: the two limits; the mixture is fitted.

    >>> round(float(noise_enhancement_db(loss_db=20.0, feedback_frac=0.5, shape_ratio=1.0)), 2)
    11.66
    """
    linear = linear_enhancement_db(loss_db)
    return shape_ratio * (linear + feedback_frac * (feedback_enhancement_db(loss_db) - linear))


def receiver_noise_ratio(
    noise_v2_per_ghz: Numeric,
    symbol_rate_ghz: Numeric,
    amplitude_v: Numeric,
    level_variance_ratio: Numeric,
    enhancement_db: Numeric,
) -> Numeric:
    """Receiver noise over signal at the slicer: noise density times the signal band, raised by the equaliser.

    Args:
        noise_v2_per_ghz: One-sided noise density at the receiver input, eta_0. [V2/GHz]
        symbol_rate_ghz: Symbol rate; the band is half of it. [GHz]
        amplitude_v: Transmitted amplitude of the outermost level. [V], > 0
        level_variance_ratio: Mean over peak power of the levels. [1]
        enhancement_db: Noise enhancement of the equaliser. [dB]

    Returns:
        Noise over mean signal power. [1]

    Source:
        ieee-802.3-annex-93a: equation 93A-35, with the filter integral replaced by band and enhancement.

    >>> round(float(receiver_noise_ratio(1e-8, 100.0, 0.5, 0.5, 0.0)) * 1e6, 6)
    4.0
    """
    power = noise_v2_per_ghz * (0.5 * symbol_rate_ghz) / (amplitude_v * amplitude_v * level_variance_ratio)
    return power * np.exp(enhancement_db * (_LN10 / 10.0))


def interference_ratio(
    loss_db: Numeric,
    taps_count: Numeric,
    reference_loss_db: Numeric,
    uncorrected_ratio: Numeric,
    memory_count: Numeric,
    floor_ratio: Numeric,
) -> Numeric:
    """Intersymbol interference left at the slicer: grows with the square of the loss, falls with the taps.

    A lossier channel smears a symbol over more of its followers; each tap removes one, and reflections beyond the taps
    are a floor that no near tap reaches.

    Args:
        loss_db: Insertion loss at half the symbol rate. [dB], >= 0
        taps_count: Taps of the receiver's equaliser. [count], >= 0
        reference_loss_db: Loss at which the uncorrected ratio holds. [dB], > 0
        uncorrected_ratio: Interference over signal without taps at that loss. [1]
        memory_count: Taps that cut the interference by e. [count], > 0
        floor_ratio: What reflections leave. [1]

    Returns:
        Interference over mean signal power. [1]

    Source:
        ieee-802.3-annex-93a: sigma_ISI; the dependence on loss and taps is our surrogate, fitted.

    >>> round(float(interference_ratio(20.0, 0.0, 20.0, 0.01, 4.0, 0.001)), 6)
    0.011
    """
    share = loss_db / reference_loss_db
    return floor_ratio + uncorrected_ratio * share * share * np.exp(-taps_count / memory_count)


def jitter_ratio(random_ui: Numeric, bounded_ui: Numeric, slope_ratio: Numeric) -> Numeric:
    """Jitter over signal: timing error squared times the mean squared slope of the equalised pulse.

    Args:
        random_ui: Standard deviation of random jitter. [UI]
        bounded_ui: Half the distance of the two peaks of bounded jitter. [UI]
        slope_ratio: Energy of the slope in signal powers per UI squared; pi^2/3 for a band-limited pulse. [1]

    Returns:
        Jitter noise over mean signal power. [1]

    Source:
        ieee-802.3-annex-93a: sigma_J.

    >>> round(jitter_ratio(random_ui=0.01, bounded_ui=0.02, slope_ratio=2.0), 6)
    0.001
    """
    return (random_ui * random_ui + bounded_ui * bounded_ui) * slope_ratio


def quantisation_ratio(bits_count: Numeric, crest_db: Numeric) -> Numeric:
    """Quantisation noise over signal of a converter; no converter (0 bits) adds none.

    Args:
        bits_count: Effective bits of the converter. [count]
        crest_db: Peak over mean power of the unequalised signal, the converter's head room included. [dB]

    Returns:
        Quantisation noise over mean signal power. [1]

    Source:
        definition: 6.02 dB per bit plus 1.76 dB for a full-scale sine.

    >>> float(quantisation_ratio(bits_count=0, crest_db=10.0))
    0.0
    """
    ratio_db = 6.0206 * bits_count + 1.7609 - crest_db
    return np.where(np.greater(bits_count, 0.0), np.exp(-ratio_db * (_LN10 / 10.0)), 0.0)


def ratio_from_db(level_db: Numeric) -> Numeric:
    """A noise-to-signal ratio from a signal-to-noise ratio in decibels.

    Args:
        level_db: Signal over noise. [dB]

    Returns:
        Noise over signal. [1]

    Source:
        definition: decibel.

    >>> round(float(ratio_from_db(level_db=20.0)), 9)
    0.01
    """
    return np.exp(level_db * (-_LN10 / 10.0))


def slicer_snr_db(noise_ratio: Numeric, level_mismatch_ratio: Numeric, gain_db: Numeric) -> Numeric:
    """Signal-to-noise ratio at the slicer from the sum of all noise-to-signal ratios.

    Args:
        noise_ratio: All noise over mean signal power. [1], > 0
        level_mismatch_ratio: Smallest eye over the mean eye, R_LM. [1]
        gain_db: What sequence detection adds. [dB]

    Returns:
        Mean signal power over noise power. [dB]

    Source:
        ieee-802.3-annex-93a: figure of merit, with mean instead of eye power.

    >>> round(float(slicer_snr_db(noise_ratio=0.01, level_mismatch_ratio=1.0, gain_db=0.0)), 6)
    20.0
    """
    return gain_db + (10.0 / _LN10) * (2.0 * np.log(level_mismatch_ratio) - np.log(noise_ratio))


@empirical("serdes_designs.csv, usable = yes")
def transceiver_pj_per_bit(
    loss_db: Numeric,
    node_nm: Numeric,
    converter_flag: Numeric,
    forwarded_clock_flag: Numeric,
    base_pj_per_bit: Numeric,
    loss_exponent_ratio: Numeric,
    node_exponent_ratio: Numeric,
    converter_ratio: Numeric,
    forwarded_clock_ratio: Numeric,
) -> Numeric:
    """Energy of a whole transceiver, transmitter and receiver, per bit.

    A power law in the loss it bridges and in the node; a converter with a DSP costs a factor, a forwarded clock
    saves one. From 10 to 224 Gb/s no further dependence on the rate shows in the published designs.

    Args:
        loss_db: Insertion loss bridged. [dB], >= 0
        node_nm: Process node by its name. [nm]
        converter_flag: 1 for an ADC with DSP. [1]
        forwarded_clock_flag: 1 for parallel links that forward their clock. [1]
        base_pj_per_bit: Analog transceiver at 5 nm and no loss. [pJ/bit]
        loss_exponent_ratio: Exponent of 1 + loss. [1]
        node_exponent_ratio: Exponent of node over 5 nm. [1]
        converter_ratio: Factor of ADC and DSP. [1]
        forwarded_clock_ratio: Factor of a forwarded clock. [1]

    Returns:
        Energy per bit, transmit and receive. [pJ/bit]

    Source:
        definition: log-linear fit over published designs, each cited in serdes_designs.csv.

    >>> round(transceiver_pj_per_bit(9.0, 5.0, 0.0, 0.0, 0.2, 1.0, 0.5, 1.5, 0.7), 6)
    2.0
    """
    scale = (1.0 + loss_db) ** loss_exponent_ratio * (node_nm / 5.0) ** node_exponent_ratio
    return base_pj_per_bit * scale * converter_ratio**converter_flag * forwarded_clock_ratio**forwarded_clock_flag


@empirical("facts of equalisers.yaml at 5 nm, scaled like the energy")
def lane_mm2(area_mm2: Numeric, node_nm: Numeric, node_exponent_ratio: Numeric) -> Numeric:
    """Area of one lane; most of it is analog and shrinks far less than logic.

    Args:
        area_mm2: Area of a lane of this class at 5 nm. [mm2]
        node_nm: Process node by its name. [nm]
        node_exponent_ratio: Exponent of node over 5 nm. [1]

    Returns:
        Area of the lane. [mm2]

    Source:
        definition: power law in the node.

    >>> lane_mm2(area_mm2=0.4, node_nm=5.0, node_exponent_ratio=0.5)
    0.4
    """
    return area_mm2 * (node_nm / 5.0) ** node_exponent_ratio


def lane_edge_mm(lane_mm2: Numeric, macro_depth_mm: Numeric, rows_count: Numeric) -> Numeric:
    """Die edge one lane takes when its macro reaches `macro_depth_mm` into the die and rows stand behind each other.

    Args:
        lane_mm2: Area of the lane. [mm2]
        macro_depth_mm: Depth of a macro. [mm], > 0
        rows_count: Rows of macros behind each other. [count], >= 1

    Returns:
        Edge per lane. [mm]

    Source:
        definition: area over depth.

    >>> lane_edge_mm(lane_mm2=0.45, macro_depth_mm=1.5, rows_count=1)
    0.3
    """
    return lane_mm2 / (macro_depth_mm * rows_count)
