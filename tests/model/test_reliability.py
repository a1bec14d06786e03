"""Failures: published clusters, closed forms, limits and directions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesign.catalog import Catalog
from codesign.model.reliability import (
    Components,
    FailureRates,
    Repair,
    availability,
    best_interval_ns,
    capacity_frac,
    daly_interval_ns,
    mtbf_ns,
    spares_exhausted_prob,
    stop_rate_fit,
    stop_rates,
    useful_frac,
    young_interval_ns,
)
from codesign.units import ns_from_s

HOUR_NS = 3600e9
NODE = 8.0


def rates_of(catalog: Catalog) -> FailureRates:
    def fit(part: str) -> float:
        return catalog.value("failures", part, "stop_fit")

    return FailureRates(
        accelerator_fit=fit("accelerator"), memory_stack_fit=fit("stack"), scale_up_link_fit=0.0,
        scale_out_link_fit=780.0, nic_fit=fit("nic"), switch_fit=fit("switch"), host_fit=fit("host"), flap_fit=0.0,
        flap_stop_prob=0.0, routed_frac=catalog.value("failures", "job", "routed_frac"),
    )  # fmt: skip


def cluster(accelerators: float, stacks: float = 5.0) -> Components:
    """A cluster of eight-way nodes, a leaf for every sixteen accelerators, one card and link each."""
    return Components(
        accelerators_count=accelerators, memory_stacks_count=stacks, scale_up_links_count=0.0,
        scale_out_links_count=1.0, trunk_links_count=2.0, nics_count=1.0, scale_up_switches_count=0.0,
        scale_out_switches_count=1.0 / 16.0, host_accelerators_count=NODE, leaf_accelerators_count=16.0,
    )  # fmt: skip


def repair_of(catalog: Catalog) -> Repair:
    return Repair(
        checkpoint_ns=ns_from_s(catalog.value("failures", "job", "checkpoint_s")),
        restart_ns=ns_from_s(catalog.value("failures", "job", "restart_s")),
        repair_ns=3600e9 * catalog.value("failures", "job", "repair_h"),
        spares_frac=0.02,
    )


@pytest.mark.published(
    source="llama-3-herd-2024", where="section 3.3.4, table 5", says="419 stops in 54 days, 32 of them maintenance"
)
def test_rates_taken_from_a_cluster_give_its_count_back(catalog: Catalog) -> None:
    """A regression pin: the rates came from this table; links and leaves are priced by part rates instead."""
    stops = stop_rates(cluster(16384.0), rates_of(catalog))

    assert float(stops.total_fit) * 1e-9 * 54 * 24 == pytest.approx(419 - 32, rel=0.1)


@pytest.mark.published(
    source="kokolis-2024", where="abstract and section on failures", says="6.5 failures per thousand node-days on RSC-1"
)
def test_the_rates_predict_another_cluster_within_a_factor_of_two(catalog: Catalog) -> None:
    stops = stop_rates(cluster(16000.0), rates_of(catalog))

    per_thousand_node_days = float(stops.total_fit) * 1e-9 * 24 * 1000 * NODE / 16000

    assert 0.5 < per_thousand_node_days / 6.5 < 2.0


@pytest.mark.published(
    source="ft-hsdp-2026", where="interruptions of 32k H100", says="HBM3 22.9 %, network 5.3 % of 678 interruptions"
)
def test_shares_of_causes_on_a_third_cluster_within_five_points(catalog: Catalog) -> None:
    stops = stop_rates(cluster(32768.0), rates_of(catalog))
    total = float(stops.total_fit)

    assert 100 * float(stops.memory_fit) / total == pytest.approx(22.9, abs=5.0)
    assert 100 * float(stops.switch_fit + stops.scale_out_fit) / total == pytest.approx(5.3, abs=5.0)


@pytest.mark.published(
    source="llama-3-herd-2024", where="sections 3.3.1, 3.3.4", says="over 90 % effective time; storage sustains 2 TB/s"
)
def test_goodput_of_the_largest_published_job(catalog: Catalog) -> None:
    state_bytes = 405e9 * 14.0  # bfloat16 weights and three float32 copies of the optimizer
    pause_ns = ns_from_s(state_bytes / 2e12)

    found = availability(cluster(16384.0), rates_of(catalog), replace(repair_of(catalog), checkpoint_ns=pause_ns))

    assert float(found.goodput_frac) > 0.90
    assert float(found.between_ns) / HOUR_NS == pytest.approx(54 * 24 / 387, rel=0.1)


def test_causes_add_up(catalog: Catalog) -> None:
    s = stop_rates(cluster(1024.0), rates_of(catalog))
    causes = s.accelerator_fit + s.memory_fit + s.scale_up_fit + s.scale_out_fit + s.switch_fit + s.host_fit

    assert float(causes) == pytest.approx(float(s.total_fit))


@pytest.mark.parametrize(
    "name",
    [
        "accelerators_count",
        "memory_stacks_count",
        "scale_up_links_count",
        "nics_count",
        "scale_out_links_count",
        "trunk_links_count",
        "scale_out_switches_count",
    ],
)
def test_more_parts_stop_a_job_more_often(catalog: Catalog, name: str) -> None:
    rates = replace(rates_of(catalog), scale_up_link_fit=100.0)
    parts = replace(cluster(1024.0), scale_up_links_count=18.0)
    more = replace(parts, **{name: 2.0 * float(getattr(parts, name))})

    assert float(stop_rates(more, rates).total_fit) > float(stop_rates(parts, rates).total_fit)
    few, many = (float(availability(c, rates, repair_of(catalog)).goodput_frac) for c in (parts, more))
    assert many < few


@pytest.mark.published(source="aupy-2013", where="worked example", says="0.97067 at 49.49 h, 60 s, R 600 s, D 60 s")
@pytest.mark.parametrize(
    ("mtbf_h", "checkpoint_s", "period_s", "share"),
    [
        (49.49, 60.0, 4684.0, 0.97067),
        (49.49, 300.0, 10639.0, 0.93959),
        (6.19, 60.0, 1695.0, 0.90125),
        (3.09, 300.0, 2885.0, 0.73978),
    ],
)
def test_useful_share_of_worked_examples(mtbf_h: float, checkpoint_s: float, period_s: float, share: float) -> None:
    found = useful_frac(mtbf_h * HOUR_NS, checkpoint_s * 1e9, 600e9, period_s * 1e9, 60e9)

    assert float(found) == pytest.approx(share, abs=2e-3)  # times between stops are printed with two decimals


@pytest.mark.published(source="young-1974", where="the rule", says="root of twice cost times time")
def test_rules_agree_where_failures_are_rare() -> None:
    between, cost = 1e6, 1.0

    young, best = float(young_interval_ns(between, cost)), float(best_interval_ns(between, cost))

    assert best == pytest.approx(young, rel=1e-3)
    assert float(daly_interval_ns(between, cost, 0.0)) == pytest.approx(young + cost, rel=1e-9)


@given(between=st.floats(1e2, 1e9), cost=st.floats(1e-3, 1e4), off=st.floats(0.2, 5.0))
def test_no_other_interval_leaves_more(between: float, cost: float, off: float) -> None:
    best = float(best_interval_ns(between, cost))

    found = float(useful_frac(between, cost, 0.0, best + cost))

    assert found >= float(useful_frac(between, cost, 0.0, off * best + cost)) * (1 - 1e-9)
    assert 0.0 <= found <= 1.0


def test_hopeless_systems_stay_finite() -> None:
    for between in (1e-3, 1.0, 1e30):
        best = best_interval_ns(between, 10.0)
        assert np.isfinite(float(useful_frac(between, 10.0, 1e6, float(best) + 10.0)))


def test_spares_and_repair() -> None:
    assert float(spares_exhausted_prob(10.0, 0.1)) < 1e-9
    assert float(spares_exhausted_prob(0.0, 50.0)) == pytest.approx(1.0)
    assert float(capacity_frac(0.0, 8.0, HOUR_NS)) == 1.0
    few, many = (float(spares_exhausted_prob(n, 5.0)) for n in (5.0, 10.0))
    assert many < few


def test_the_inverse_of_a_rate() -> None:
    assert float(mtbf_ns(stop_rate_fit(1e6, 1000.0, 0.0, 1.0))) == pytest.approx(HOUR_NS)
