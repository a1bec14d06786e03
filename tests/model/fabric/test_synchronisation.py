"""The slowest of many: published order statistics, limits, directions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesign.model.fabric.interference import exposed_ns, shared_link_ns, stolen_compute_ns
from codesign.model.fabric.synchronisation import (
    Barriers,
    any_event_prob,
    exponential_maximum_ratio,
    lognormal_maximum_ratio,
    normal_maximum_deviation_ratio,
    normal_maximum_quantile_ratio,
    normal_maximum_ratio,
    synchronisation,
)

STEADY = Barriers(1e9, 1e8, 100.0, 8.0, 128.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
REAL = replace(STEADY, persistent_frac=0.01, jitter_frac=0.05, retry_prob=1e-4, retry_ns=5e3, degraded_prob=1e-3,
               degraded_frac=0.25)  # fmt: skip


@pytest.mark.published(
    source="tippett-1925", where="tables of the largest of n", says="1.53875 for 10, 2.50759 for 100, 3.24144 for 1000"
)
@pytest.mark.parametrize(("ranks", "mean"), [(2.0, 0.56419), (10.0, 1.53875), (100.0, 2.50759), (1000.0, 3.24144)])
def test_the_largest_of_normal_deviates(ranks: float, mean: float) -> None:
    assert float(normal_maximum_ratio(ranks)) == pytest.approx(mean, abs=2e-5)  # five decimals printed


@pytest.mark.published(source="david-2003", where="two normal deviates", says="variance of the larger is 1 - 1/pi")
def test_the_spread_of_the_larger_of_two() -> None:
    assert float(normal_maximum_deviation_ratio(2.0)) == pytest.approx(np.sqrt(1.0 - 1.0 / np.pi), abs=1e-4)
    assert float(normal_maximum_deviation_ratio(1.0)) == pytest.approx(1.0, abs=1e-4)


def test_one_rank_waits_for_nobody() -> None:
    assert float(normal_maximum_ratio(1.0)) == pytest.approx(0.0, abs=1e-9)
    assert float(lognormal_maximum_ratio(1.0, 0.3)) == pytest.approx(1.0, abs=1e-4)
    assert float(exponential_maximum_ratio(1.0)) == pytest.approx(1.0)
    assert float(any_event_prob(0.1, 1.0)) == pytest.approx(0.1)


def test_the_median_of_the_slowest_is_a_far_quantile_of_each() -> None:
    assert float(normal_maximum_quantile_ratio(5000.0, 0.5)) == pytest.approx(3.634, abs=5e-3)  # 99.986 % quantile


@given(ranks=st.floats(1, 1e6), more=st.floats(1, 10), sigma=st.floats(0.01, 1.0))
def test_more_ranks_wait_longer(ranks: float, more: float, sigma: float) -> None:
    assert float(normal_maximum_ratio(more * ranks)) >= float(normal_maximum_ratio(ranks)) - 1e-9
    assert float(lognormal_maximum_ratio(more * ranks, sigma)) >= float(lognormal_maximum_ratio(ranks, sigma)) - 1e-9


def test_a_batch_of_counts_equals_its_rows() -> None:
    for count in (1, 7, 64):
        ranks = np.geomspace(1, 1e6, count)
        rows = np.array([float(normal_maximum_ratio(ranks[i : i + 1])[0]) for i in range(count)])  # type: ignore[index]
        assert np.array_equal(np.asarray(normal_maximum_ratio(ranks)), rows)


def test_steady_ranks_cost_nothing() -> None:
    found = synchronisation(STEADY)

    assert float(found.step_ns) == pytest.approx(1.1e9)
    assert float(found.vanishing_frac) == 0.0
    assert float(found.step_p99_ratio) == 1.0


def test_parts_add_up_and_the_share_that_would_vanish_is_theirs() -> None:
    found = synchronisation(REAL)
    extra = float(found.persistent_ns) + float(found.jitter_ns) + float(found.retry_ns) + float(found.degraded_ns)

    assert float(found.step_ns) == pytest.approx(1.1e9 + extra)
    assert float(found.vanishing_frac) == pytest.approx(extra / float(found.step_ns))
    assert float(found.step_p99_ratio) > 1.0


@pytest.mark.parametrize(
    "knob", ["persistent_frac", "jitter_frac", "retry_prob", "retry_ns", "degraded_prob", "degraded_frac"]
)
def test_every_knob_of_variability_makes_the_step_longer(knob: str) -> None:
    worse = replace(REAL, **{knob: 2.0 * float(getattr(REAL, knob))})

    assert float(synchronisation(worse).step_ns) > float(synchronisation(REAL).step_ns)


def test_nested_barriers_cost_more_than_one_at_the_end() -> None:
    jitter = replace(STEADY, jitter_frac=0.05)

    nested = float(synchronisation(jitter).jitter_ns)
    flat = float(synchronisation(replace(jitter, inner_count=1.0, outer_count=1024.0)).jitter_ns)

    assert nested > flat


def test_nested_barriers_match_a_drawn_step() -> None:
    jitter = replace(STEADY, jitter_frac=0.2, barriers_count=20.0, inner_count=4.0, outer_count=16.0)
    draws = np.random.default_rng(5).normal(1e9 / 20, 0.2 * 1e9 / 20, size=(2000, 16, 20, 4))

    drawn = draws.max(axis=3).sum(axis=2).max(axis=1).mean()

    assert 1e9 + float(synchronisation(jitter).jitter_ns) == pytest.approx(drawn, rel=2e-3)  # 2000 draws: 0.05 %


def test_two_transfers_share_a_link_and_hidden_ones_take_compute() -> None:
    assert float(shared_link_ns(10.0, 0.0)) == 10.0
    assert float(shared_link_ns(10.0, 10.0)) == 20.0
    assert float(exposed_ns(3.0, 4.0)) == 0.0
    assert stolen_compute_ns(90.0, 0.0) == 0.0
