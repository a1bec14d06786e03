"""Error bursts and interleaved codewords.

A Reed-Solomon codeword of n symbols is lost when more than t of them are wrong. Errors arrive as bursts: a decision
feedback equaliser repeats a wrong symbol with probability `propagation_prob`, a differential precoder turns the run
into an error at its start and one behind its end, and interleaving deals neighbouring symbols to different codewords.
From the codeword's view each burst costs 1 symbol, then more with probability `first`, then more with probability
`next` each; the number of bursts is binomial, so the loss is a weighted binomial sum in which every term is positive
and nothing cancels. Without propagation it is the exact binomial tail.
"""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.link.fec import codeword_failure_prob
from codesign.units import Array, Numeric


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
        term *= odds * (symbols_count - index) / (index + 1.0)
        if np.count_nonzero(defeat):
            total = total + term * np.take(defeat, row)
    return np.minimum(total, 1.0)
