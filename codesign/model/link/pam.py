"""Pulse-amplitude modulation on a noisy line: error ratio against signal-to-noise, and back."""

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from codesign.units import Numeric

_LN10 = float(np.log(10.0))


def symbol_rate_ghz(lane_rate_gbps: Numeric, symbol_bits: Numeric) -> Numeric:
    """Symbols per second of one lane; the highest frequency that carries signal is half of it.

    ``symbol_bits`` is 1, 2, 2.5 and 3 for NRZ, PAM4, PAM6 and PAM8: PAM6 sends five bits in two symbols.

    Args:
        lane_rate_gbps: Line rate of the lane, code overhead included. [Gb/s], > 0
        symbol_bits: Bits a symbol carries. [bit], > 0

    Returns:
        Symbol rate. [GHz]

    Source:
        chen-2024-designcon-425g: table of symbol rates by modulation.

    >>> symbol_rate_ghz(lane_rate_gbps=212.5, symbol_bits=2)
    106.25
    """
    return lane_rate_gbps / symbol_bits


def level_variance_ratio(levels_count: Numeric) -> Numeric:
    """Mean power of equally likely, equally spaced levels over the power of the outermost level.

    Args:
        levels_count: Levels of the modulation. [count], >= 2

    Returns:
        Mean over peak power. [1]

    Source:
        ieee-802.3-annex-93a: sigma_X squared.

    >>> level_variance_ratio(levels_count=2)
    1.0
    """
    return (levels_count + 1.0) / (3.0 * (levels_count - 1.0))


def half_distance_ratio(snr_db: Numeric, levels_count: Numeric) -> Numeric:
    """Half the distance between neighbouring levels, in standard deviations of the noise.

    Args:
        snr_db: Mean signal power over noise power at the slicer. [dB]
        levels_count: Levels of the modulation. [count], >= 2

    Returns:
        Distance to the decision threshold over sigma. [1]

    Source:
        cho-yoon-2002: argument of the error function for M-PAM.

    >>> round(float(half_distance_ratio(snr_db=0.0, levels_count=2)), 9)
    1.0
    """
    return np.sqrt(3.0 * np.exp(snr_db * (_LN10 / 10.0)) / ((levels_count - 1.0) * (levels_count + 1.0)))


def symbol_error_log10_ratio(snr_db: Numeric, levels_count: Numeric) -> Numeric:
    """Logarithm of the probability that the slicer picks a wrong level; no underflow however good the line.

    Additive white Gaussian noise, thresholds midway between equally spaced levels.

    Args:
        snr_db: Mean signal power over noise power at the slicer. [dB]
        levels_count: Levels of the modulation. [count], >= 2

    Returns:
        log10 of the symbol error ratio. [1], <= 0

    Source:
        cho-yoon-2002: symbol error of M-PAM, 2 (M-1)/M Q(x).

    >>> round(float(symbol_error_log10_ratio(snr_db=20.0, levels_count=2)), 4)
    -23.1181
    """
    ways = 2.0 * (levels_count - 1.0) / levels_count
    logarithm: Numeric = np.log(ways) + log_ndtr(-half_distance_ratio(snr_db, levels_count))
    return logarithm / _LN10


def nearest_neighbour_ber(snr_db: Numeric, levels_count: Numeric, bits_per_symbol_count: Numeric) -> Numeric:
    """Bit error ratio when every symbol error is a slip to the next level and costs one bit.

    What Gray coding gives where errors are rare: below 1e-2 it is within 1e-5 of `gray_ber`. For PAM6, whose levels
    do not carry a whole number of bits, it is the customary definition.

    Args:
        snr_db: Mean signal power over noise power at the slicer. [dB]
        levels_count: Levels of the modulation. [count], >= 2
        bits_per_symbol_count: Bits a symbol carries. [count], > 0

    Returns:
        Bit error ratio. [1]

    Source:
        cho-yoon-2002: leading term.

    >>> round(float(nearest_neighbour_ber(snr_db=0.0, levels_count=2, bits_per_symbol_count=1)), 6)
    0.158655
    """
    return np.exp(_LN10 * symbol_error_log10_ratio(snr_db, levels_count)) / bits_per_symbol_count


def gray_ber(snr_db: Numeric, levels_count: Numeric) -> Numeric:
    """Exact bit error ratio of Gray-coded PAM with 2, 4 or 8 levels on a Gaussian line, slips of any size included.

    Cho and Yoon's sum written out: the weight of Q((2i+1)x) for each odd distance. Other level counts are given the
    nearest-neighbour weight, see `nearest_neighbour_ber`.

    Args:
        snr_db: Mean signal power over noise power at the slicer. [dB]
        levels_count: Levels of the modulation. [count], >= 2

    Returns:
        Bit error ratio. [1]

    Source:
        cho-yoon-2002: equations 9 and 10.

    >>> round(float(gray_ber(snr_db=0.0, levels_count=2)), 6)
    0.158655
    """
    step = half_distance_ratio(snr_db, levels_count)
    four, eight = np.equal(levels_count, 4), np.equal(levels_count, 8)
    first = 2.0 * (levels_count - 1.0) / (levels_count * np.log2(levels_count))
    weights = (
        (1.0, first),
        (3.0, np.where(four | eight, 0.5, 0.0)),
        (5.0, np.where(four, -0.25, np.where(eight, -1.0 / 12.0, 0.0))),
        (9.0, np.where(eight, 1.0 / 12.0, 0.0)),
        (13.0, np.where(eight, -1.0 / 12.0, 0.0)),
    )
    total: Numeric = 0.0
    for distance, weight in weights:
        total = total + weight * np.exp(log_ndtr(-distance * step))
    return total


def required_snr_db(target_ber: Numeric, levels_count: Numeric, bits_per_symbol_count: Numeric) -> Numeric:
    """Signal-to-noise ratio at which the nearest-neighbour bit error ratio is the target: the exact inverse.

    Against Gray coding's exact value it is right within 1e-6 for targets up to 1e-2.

    Args:
        target_ber: Wanted bit error ratio. [1], in (0, 0.5)
        levels_count: Levels of the modulation. [count], >= 2
        bits_per_symbol_count: Bits a symbol carries. [count], > 0

    Returns:
        Mean signal power over noise power. [dB]

    Source:
        chen-2024-designcon-425g: table of slicer SNR at 1e-4.

    >>> round(float(required_snr_db(target_ber=1e-6, levels_count=4, bits_per_symbol_count=2)), 2)
    20.42
    """
    tail = np.log(target_ber * bits_per_symbol_count * levels_count / (2.0 * (levels_count - 1.0)))
    step: Numeric = -ndtri_exp(np.minimum(tail, -_LN10 * 0.302))  # beyond Q = 1/2 no distance is left
    square = np.maximum(step * step, 1e-30) * (levels_count - 1.0) * (levels_count + 1.0) / 3.0
    return 10.0 * np.log10(square)
