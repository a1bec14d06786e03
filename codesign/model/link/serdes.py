"""The SerDes: signal-to-noise budget at the slicer of one lane.

The budget adds noise-to-signal ratios in the spirit of the channel operating margin of IEEE 802.3: receiver noise and
crosstalk raised by the equaliser, transmitter noise, jitter, what is left of the intersymbol interference, and the
converter's quantisation. It stands for a design whose equaliser is as good as its class allows; its factors are fitted
to a public implementation of that method.
"""

import numpy as np

from codesign.units import Numeric

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


def relative_noise_ratio(level_db: Numeric) -> Numeric:
    """A noise-to-signal ratio from a signal-to-noise ratio in decibels.

    Args:
        level_db: Signal over noise. [dB]

    Returns:
        Noise over signal. [1]

    Source:
        definition: decibel.

    >>> round(float(relative_noise_ratio(level_db=20.0)), 9)
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
