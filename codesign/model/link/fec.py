"""Forward error correction: from the bit error ratio before it to lost codewords and flits, with error bursts.

A Reed-Solomon codeword of n symbols is lost when more than t of them are wrong. Errors arrive as bursts: a decision
feedback equaliser repeats a wrong symbol with probability `propagation_prob`, a differential precoder turns the run
into an error at its start and one behind its end, and interleaving deals neighbouring symbols to different codewords.
From the codeword's view each burst costs 1 symbol, then more with probability `first`, then more with probability
`next` each; the number of bursts is binomial, so the loss is a weighted binomial sum in which every term is positive
and nothing cancels. Without propagation it is the exact binomial tail.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

from codesign.columns import freeze
from codesign.units import Array, Numeric

_LN10 = float(np.log(10.0))
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
    active = np.greater(inner_correctable_count, 0.0)
    order = np.where(active, inner_correctable_count, 1.0)
    rest = np.maximum(block_bits_count - order, 1e-9)
    return np.where(active, raw_ber * betainc(order, rest, np.clip(raw_ber, 0.0, 1.0)), raw_ber) * 1.0


def burst_start_prob(slicer_error_prob: Numeric, propagation_prob: Numeric) -> Numeric:
    """Probability that a burst starts at a given line symbol: errors divided by the mean length of a burst.

    Args:
        slicer_error_prob: Share of line symbols that are wrong, propagated ones included. [1]
        propagation_prob: Probability that an error is followed by another. [1], in [0, 1)

    Returns:
        Probability of a start. [1]

    Source:
        etc-ll-fec-1.0: Annex A, error propagation factor a.

    >>> burst_start_prob(slicer_error_prob=0.04, propagation_prob=0.75)
    0.01
    """
    return slicer_error_prob * (1.0 - propagation_prob)


def propagated_error_prob(slicer_error_prob: Numeric, propagation_prob: Numeric) -> Numeric:
    """Share of wrong line symbols when each error drags others behind it: the stationary state of a two-state chain.

    Args:
        slicer_error_prob: Probability of an error behind a right decision. [1]
        propagation_prob: Probability that an error is followed by another. [1], in [0, 1)

    Returns:
        Share of wrong line symbols. [1]

    Source:
        designcon-2025-burst: error propagation factor 0 and 0.75.

    >>> propagated_error_prob(slicer_error_prob=0.2, propagation_prob=0.75)
    0.5
    """
    return slicer_error_prob / (slicer_error_prob + (1.0 - propagation_prob) * (1.0 - slicer_error_prob))


@dataclass(frozen=True, slots=True, eq=False)
class Bursts:
    """What one burst does to one codeword: how often it hits, and how it goes on."""

    hits_ratio: Numeric  # codewords' own symbols hit per burst start, over the share of a codeword
    first_prob: Numeric  # a second symbol of the same codeword is hit too
    next_prob: Numeric  # each further one


def bursts(
    propagation_prob: Numeric, slices_count: Numeric, interleave_count: Numeric, precoding_flag: Numeric
) -> Bursts:
    """What a burst looks like to one of the interleaved codewords.

    A burst of geometric length starts anywhere in a code symbol. With precoding only its start and the symbol behind
    its end are wrong. Interleaving deals successive code symbols to `interleave_count` codewords in turn.

    Args:
        propagation_prob: Probability that an error is followed by another. [1], in [0, 1)
        slices_count: Line symbols in a code symbol. [count], > 0
        interleave_count: Codewords dealt in turn. [count], >= 1
        precoding_flag: 1 if a 1/(1+D) precoder is on. [1]

    Returns:
        Hits and continuation of a burst in one codeword.

    Source:
        etc-ll-fec-1.0: Annex A, the Markov chain of burst errors; interleaving and precoding are counted out here.

    >>> float(bursts(propagation_prob=0.0, slices_count=5, interleave_count=1, precoding_flag=0).first_prob)
    0.0
    """
    cross = (1.0 - propagation_prob**slices_count) / (slices_count * (1.0 - propagation_prob))
    step = propagation_prob**slices_count
    run_first = propagation_prob * cross  # a run reaches the next code symbol
    others = np.where(step > 0.0, run_first * (1.0 - step ** (interleave_count - 1.0)) / (1.0 - step), 0.0)
    others = np.where(np.equal(interleave_count, 1.0), 0.0, np.where(step > 0.0, others, 0.0))
    run_hits = 1.0 + others
    run_next = step**interleave_count
    own = run_first * step ** (interleave_count - 1.0)
    run_first = (own + others * run_next) / run_hits
    same = cross * step ** (interleave_count - 1.0) * (1.0 - step) / (1.0 - run_next)  # both ends in one codeword
    pair_hits = 1.0 + cross - same
    on = np.greater(precoding_flag, 0.5)
    return Bursts(
        hits_ratio=np.where(on, pair_hits, run_hits),
        first_prob=np.where(on, same / pair_hits, run_first),
        next_prob=np.where(on, 0.0, run_next),
    )


def burst_defeat_probs(first_prob: float, next_prob: float, correctable_count: int) -> "BurstTable":
    """Probability that i bursts in a codeword spoil more than t symbols, for i = 1..t: one row of a `BurstTable`.

    Exact for independent bursts: the distribution of symbols per burst convolved i times, upper tail summed.

    Args:
        first_prob: A burst spoils a second symbol. [1]
        next_prob: Each further one. [1]
        correctable_count: Symbols the code corrects, t. [count], a whole number

    Returns:
        A table with one row.

    Source:
        definition: i-fold convolution of 1 + Bernoulli(first) (1 + Geometric(next)).

    >>> burst_defeat_probs(first_prob=0.5, next_prob=0.0, correctable_count=1).defeat_prob.tolist()
    [[0.5]]
    """
    length = correctable_count + 600
    one = np.zeros(length)
    one[1] = 1.0 - first_prob
    one[2:] = first_prob * (1.0 - next_prob) * next_prob ** np.arange(length - 2)
    total, row = one.copy(), []
    for _ in range(correctable_count):
        row.append(float(total[correctable_count + 1 :].sum()))
        total = np.convolve(total, one)[:length]
    return BurstTable(np.array([row]).reshape(1, correctable_count))


@dataclass(frozen=True, slots=True, eq=False)
class BurstTable:
    """How likely i bursts defeat the code, one row per code and kind of burst, columns i = 1..t (0 beyond t)."""

    defeat_prob: Array  # (rows, largest t)

    def __post_init__(self) -> None:
        freeze(self)


def burst_failure_prob(
    start_prob: Numeric,
    symbols_count: Numeric,
    correctable_count: Numeric,
    table_row_count: Numeric,
    table: BurstTable,
) -> Numeric:
    """Probability that bursts defeat the decoder: binomial number of bursts, each worth the symbols it spoils.

    Exact for independent bursts; with an empty table row it is `codeword_failure_prob`. Two bursts in one code symbol
    are counted once each, which overstates the loss by about their number over n.

    Args:
        start_prob: Probability that a burst first hits a given symbol of the codeword. [1]
        symbols_count: Symbols of a codeword, n. [count], > t
        correctable_count: Symbols it corrects, t. [count]
        table_row_count: Row of the table that belongs to this code and burst. [count]
        table: Probability that i bursts defeat the code.

    Returns:
        Probability of an uncorrectable codeword. [1]

    Source:
        etc-ll-fec-1.0: Annex A, burst errors; the chain of states is replaced by a compound binomial.

    >>> round(float(burst_failure_prob(0.5, 3, 1, 0, BurstTable(np.array([[1.0]])))), 6)
    0.875
    """
    start = np.clip(start_prob, 0.0, 1.0 - 1e-12)
    total = codeword_failure_prob(start, symbols_count, correctable_count)
    row = np.asarray(table_row_count, dtype=np.intp)
    odds = start / (1.0 - start)
    term = np.exp(symbols_count * np.log1p(-start))
    for index, defeat in enumerate(table.defeat_prob.T):
        term = term * (odds * np.maximum(symbols_count - index, 0.0) / (index + 1.0))
        total = total + term * np.take(defeat, row)
    return np.minimum(total, 1.0)


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
