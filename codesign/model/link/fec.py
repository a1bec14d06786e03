"""Forward error correction: from the bit error ratio before it to lost codewords and flits; rate and delay of a code.

Errors here are independent; bursts are in `codesign.model.link.bursts`.
"""

import numpy as np
from scipy.special import betainc

from codesign.columns import where_needed
from codesign.units import Numeric

_TINY = 1e-300  #: below this a probability is reported as this, so that its logarithm stays finite


def symbol_error_prob(slicer_error_prob: Numeric, slices_count: Numeric) -> Numeric:
    """Probability that a code symbol is wrong when each of the line symbols it is made of errs independently.

    Args:
        slicer_error_prob: Probability that one line symbol is wrong. [1]
        slices_count: Line symbols in a code symbol (10-bit symbols on PAM4: 5). [count], > 0

    Returns:
        Probability that the code symbol is wrong. [1]

    Source:
        etc-ll-fec-1.0: Annex A, random errors.

    >>> round(float(symbol_error_prob(slicer_error_prob=0.5, slices_count=2)), 6)
    0.75
    """
    return -np.expm1(slices_count * np.log1p(-slicer_error_prob))


def codeword_failure_prob(wrong_symbol_prob: Numeric, symbols_count: Numeric, correctable_count: Numeric) -> Numeric:
    """Probability that independent symbol errors defeat the decoder: more than t of n symbols wrong.

    The exact binomial tail as an incomplete beta function: right to 1e-300. Miscorrection is not counted apart.

    Args:
        wrong_symbol_prob: Probability that one code symbol is wrong. [1]
        symbols_count: Symbols of a codeword, n. [count], > t
        correctable_count: Symbols it can correct, t; need not be whole. [count], >= 0

    Returns:
        Probability of an uncorrectable codeword. [1]

    Source:
        reed-solomon-1960: minimum distance n - k + 1 corrects (n - k) / 2 symbols.

    >>> round(float(codeword_failure_prob(wrong_symbol_prob=0.5, symbols_count=3, correctable_count=1)), 6)
    0.5
    """
    rest = np.maximum(symbols_count - correctable_count, 1e-9)
    tail: Numeric = betainc(correctable_count + 1.0, rest, np.clip(wrong_symbol_prob, 0.0, 1.0))
    return tail


def inner_code_ber(raw_ber: Numeric, block_bits_count: Numeric, inner_correctable_count: Numeric) -> Numeric:
    """Bit error ratio behind a short inner block code that corrects a few bits; 0 bits leaves the ratio as it is.

    A block that fails keeps its errors (a soft decoder adds none on average), so the ratio behind it is the ratio
    of bits in failed blocks: p P(Binomial(n-1, p) >= t). Right where an interleaver spreads the failed block
    over outer codewords, as Ethernet's does.

    Args:
        raw_ber: Bit error ratio of the line. [1]
        block_bits_count: Bits of a block (128 for the extended Hamming code). [count], > 1
        inner_correctable_count: Bits the decoder corrects, soft decisions counted. [count], >= 0

    Returns:
        Bit error ratio that the outer code sees. [1]

    Source:
        definition: expected bits in blocks with more errors than can be corrected.

    >>> round(float(inner_code_ber(raw_ber=0.01, block_bits_count=128, inner_correctable_count=0)), 6)
    0.01
    """

    def failing(ber: Numeric, size: Numeric, order: Numeric) -> Numeric:
        blocks: Numeric = betainc(order, np.maximum(size - order, 1e-9), np.clip(ber, 0.0, 1.0))
        return ber * blocks

    active = np.greater(inner_correctable_count, 0.0)
    return where_needed(active, failing, raw_ber, raw_ber, block_bits_count, inner_correctable_count)


def flit_loss_prob(codeword_failure_prob: Numeric, codewords_count: Numeric) -> Numeric:
    """Probability that a flit is lost: any of the codewords it touches fails.

    Args:
        codeword_failure_prob: Probability that one codeword fails. [1]
        codewords_count: Codewords a flit touches on average, see `codewords_touched_count`. [count], > 0

    Returns:
        Probability that the flit is lost. [1]

    Source:
        uec-1.0.3: section 6.3, frame loss ratio = codeword loss ratio times codewords a frame touches.

    >>> round(float(flit_loss_prob(codeword_failure_prob=0.5, codewords_count=2)), 6)
    0.75
    """
    return -np.expm1(codewords_count * np.log1p(-np.minimum(codeword_failure_prob, 1.0 - 1e-15)))


def codewords_touched_count(
    flit_bytes: Numeric, payload_bytes: Numeric, interleave_count: Numeric, aligned_flag: Numeric
) -> Numeric:
    """Codewords a flit touches: its own where flits and codewords are aligned, its length plus one (times the
    interleave) where a frame starts anywhere.

    Args:
        flit_bytes: Flit or frame on the wire before coding. [byte], > 0
        payload_bytes: Payload of one codeword. [byte], > 0
        interleave_count: Codewords dealt in turn. [count], >= 1
        aligned_flag: 1 if flits start on codewords. [1]

    Returns:
        Mean number of codewords touched. [count]

    Source:
        uec-1.0.3: section 6.3, CIR + 1 / FPC.

    >>> float(codewords_touched_count(flit_bytes=64, payload_bytes=512, interleave_count=1, aligned_flag=0))
    1.125
    """
    share = flit_bytes / payload_bytes
    aligned = np.maximum(share, 1.0)
    return aligned_flag * aligned + (1.0 - aligned_flag) * (interleave_count + share)


def block_ns(codeword_bits: Numeric, interleave_count: Numeric, port_rate_gbps: Numeric) -> Numeric:
    """Time to collect the interleaved codewords before the first can be decoded.

    Args:
        codeword_bits: Bits of one codeword. [bit]
        interleave_count: Codewords dealt in turn. [count], >= 1
        port_rate_gbps: Rate of the port that shares the code, all lanes. [Gb/s], > 0

    Returns:
        Accumulation time. [ns]

    Source:
        gustlin-3ck-2018: 51 ns for RS(544,514) at 100G, 102 ns for two interleaved codewords.

    >>> block_ns(codeword_bits=5440, interleave_count=1, port_rate_gbps=106.25)
    51.2
    """
    return codeword_bits * interleave_count / port_rate_gbps


def code_rate_frac(symbols_count: Numeric, data_symbols_count: Numeric) -> Numeric:
    """Share of the line that a block code leaves for data.

    Args:
        symbols_count: Symbols of a codeword. [count]
        data_symbols_count: Data symbols among them. [count]

    Returns:
        Data over line. [1]

    Source:
        definition: k / n.

    >>> code_rate_frac(symbols_count=544, data_symbols_count=510)
    0.9375
    """
    return data_symbols_count / symbols_count


def finite_log10_ratio(loss_prob: Numeric) -> Numeric:
    """Logarithm of a probability, held at -300 where it vanishes.

    Args:
        loss_prob: A probability. [1]

    Returns:
        log10 of it. [1]

    Source:
        definition: logarithm.

    >>> float(finite_log10_ratio(loss_prob=0.01))
    -2.0
    """
    return np.log10(np.maximum(loss_prob, _TINY))
