"""Codes against the limits that standards print, an independent chain of states, and directions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from codesign.model.link.bursts import (
    burst_defeat_probs,
    burst_failure_prob,
    burst_start_prob,
    bursts,
    propagated_error_prob,
)
from codesign.model.link.fec import (
    block_ns,
    codeword_failure_prob,
    codewords_touched_count,
    flit_loss_prob,
    inner_code_ber,
    symbol_error_prob,
)


def loss_of(ber: float, propagation: float, n: int, t: int, interleave: int = 1, precoding: int = 0) -> float:
    """Codeword failure of PAM4 on 10-bit symbols."""
    burst = bursts(propagation, 5.0, interleave, precoding)
    table = burst_defeat_probs(float(burst.first_prob), float(burst.next_prob), t)
    start = symbol_error_prob(burst_start_prob(2.0 * ber, propagation), 5.0)
    return float(burst_failure_prob(start * burst.hits_ratio, n, t, 0, table))


def chain_of_states(ber: float, propagation: float, n: int, t: int) -> float:
    """The same by brute force: symbols one by one, slices one by one, an error repeats with the propagation."""
    wrong = 2.0 * ber
    start = wrong * (1.0 - propagation) / (1.0 - wrong)
    good, bad = np.zeros(t + 2), np.zeros(t + 2)
    good[0], bad[0] = 1.0 - wrong, wrong
    for _ in range(n):
        none = np.zeros(t + 2)
        state = {(0, 0): good, (1, 0): bad, (0, 1): none, (1, 1): none}  # (last slice wrong, symbol spoiled)
        for _ in range(5):
            ok = state[0, 0] * (1.0 - start) + state[1, 0] * (1.0 - propagation)
            hit = state[0, 0] * start + state[1, 0] * propagation
            ok_spoiled = state[0, 1] * (1.0 - start) + state[1, 1] * (1.0 - propagation)
            hit_spoiled = state[0, 1] * start + state[1, 1] * propagation
            state = {(0, 0): ok, (1, 0): np.zeros(t + 2), (0, 1): ok_spoiled, (1, 1): hit + hit_spoiled}
        up_good = np.concatenate([[0.0], state[0, 1][:-1]])
        up_bad = np.concatenate([[0.0], state[1, 1][:-1]])
        up_good[-1] += state[0, 1][-1]
        up_bad[-1] += state[1, 1][-1]
        good, bad = state[0, 0] + up_good, state[1, 0] + up_bad
    return float(good[-1] + bad[-1])


@pytest.mark.published(
    source="etc-ll-fec-1.0",
    where="Annex A, table 1: limit before FEC for a frame loss ratio of 6.2e-10",
    says="RS(544,514) 3.7677e-4 random, 5.7878e-5 burst; RS(272,258) 9.9248e-5 and 8.8834e-9",
)
@pytest.mark.parametrize(
    ("n", "t", "frames", "propagation", "printed", "within"),
    [
        (544, 15, 8, 0.0, 3.7677e-4, 0.01),
        (544, 15, 8, 0.75, 5.7878e-5, 0.05),
        (272, 7, 4, 0.0, 9.9248e-5, 0.01),
        (272, 7, 4, 0.75, 8.8834e-9, 0.05),
    ],
)
def test_the_limit_before_the_code_is_the_printed_one(
    n: int, t: int, frames: int, propagation: float, printed: float, within: float
) -> None:
    def excess(decade: float) -> float:
        touched = codewords_touched_count(1.0, float(frames), 1, 0)
        return float(np.log(flit_loss_prob(loss_of(10.0**decade, propagation, n, t), touched) / 6.2e-10))

    assert 10.0 ** brentq(excess, -11.0, -2.0) == pytest.approx(printed, rel=within)


@pytest.mark.parametrize(("n", "t"), [(272, 7), (544, 15)])
@pytest.mark.parametrize("ber", [1e-5, 1e-4, 3e-4])
@pytest.mark.parametrize("propagation", [0.3, 0.75])
def test_the_compound_binomial_agrees_with_a_chain_of_states(n: int, t: int, ber: float, propagation: float) -> None:
    """Within 25 % of a probability of any size: two bursts in one symbol are counted twice, which is small."""
    assert loss_of(ber, propagation, n, t) == pytest.approx(chain_of_states(ber, propagation, n, t), rel=0.25)


def test_without_propagation_the_burst_law_is_the_exact_binomial() -> None:
    for ber in (1e-7, 1e-5, 1e-3):
        exact = float(codeword_failure_prob(symbol_error_prob(2.0 * ber, 5.0), 544, 15))

        assert loss_of(ber, 0.0, 544, 15) == pytest.approx(exact, rel=1e-12)


@pytest.mark.published(
    source="gustlin-3ck-2018", where="RS(544,514) at 100G", says="51 ns block, 102 ns with two codewords interleaved"
)
def test_the_block_time_is_the_printed_one() -> None:
    assert block_ns(5440.0, 1.0, 106.25) == pytest.approx(51.0, abs=0.5)
    assert block_ns(5440.0, 2.0, 106.25) == pytest.approx(102.0, abs=0.5)


def test_a_block_error_ratio_of_1e_50_is_a_number() -> None:
    wrong = symbol_error_prob(2e-6, 5.0)

    assert 0.0 < codeword_failure_prob(wrong, 544.0, 15.0) < 1e-48


@given(ber=st.floats(1e-7, 1e-3), a=st.floats(0.0, 0.85), w=st.sampled_from([1, 2, 4]))
def test_interleaving_never_loses_more_codewords(ber: float, a: float, w: int) -> None:
    assert loss_of(ber, a, 544, 15, 2 * w) <= loss_of(ber, a, 544, 15, w) * (1.0 + 1e-6)


@given(ber=st.floats(1e-7, 1e-4))
def test_precoding_pays_where_bursts_are_long(ber: float) -> None:
    assert loss_of(ber, 0.75, 272, 7, precoding=1) < loss_of(ber, 0.75, 272, 7)


@given(ber=st.floats(1e-9, 1e-2), more=st.floats(1.0, 3.0), a=st.floats(0.0, 0.8))
def test_more_errors_before_the_code_never_give_fewer_behind_it(ber: float, more: float, a: float) -> None:
    assert loss_of(ber * more, a, 272, 7) >= loss_of(ber, a, 272, 7) * (1.0 - 1e-12)
    assert inner_code_ber(ber * more, 128, 2) >= inner_code_ber(ber, 128, 2) * (1.0 - 1e-12)
    assert propagated_error_prob(ber, a) >= ber


def test_an_inner_code_that_corrects_two_bits_turns_a_poor_line_into_a_good_one() -> None:
    assert inner_code_ber(1e-3, 128, 2) < 1e-3 / 50.0
    assert inner_code_ber(1e-3, 128, 0) == 1e-3


@given(t=st.integers(0, 20), n=st.integers(25, 600), p=st.floats(0.0, 1.0))
def test_a_stronger_code_never_fails_more_often(t: int, n: int, p: float) -> None:
    assert codeword_failure_prob(p, n, t + 1) <= codeword_failure_prob(p, n, t)
