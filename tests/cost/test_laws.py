"""Limits, directions and conservation of the cost chains."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codesign.catalog import Catalog, load_catalog
from codesign.cost.bill import Bill, CostInputs, bill
from codesign.cost.energy import average_power_w, utility_w
from codesign.cost.ownership import (
    MixCosts,
    capital_recovery_frac,
    cvar_usd_per_mtok,
    shared_usd_per_mtok,
    token_usd_per_mtok,
)
from codesign.cost.package import attach_prob
from codesign.cost.silicon import (
    DieInputs,
    Programme,
    break_even_count,
    carriers_per_wafer_count,
    die,
    dies_per_wafer_count,
    escape_prob,
    perfect_die_prob,
    sellable_prob,
)
from codesign.cost.system import marked_up_usd
from codesign.prices import Scenario, cost_inputs
from tests.cost.platforms import B200, H100

AREA = st.floats(1.0, 900.0)
DENSITY = st.floats(1e-5, 5e-3)
SHAPE = st.floats(1.0, 50.0)
FRAC = st.floats(0.0, 1.0)
UP = st.floats(1.0, 3.0)


def one_die(area_mm2: float, density: float, shape: float, critical: float, spares: float) -> DieInputs:
    return DieInputs(area_mm2, 16_000.0, 145.0, 0.2, density, shape, critical, spares, 0.1, 0.99)


@given(AREA, DENSITY, SHAPE)
def test_without_spares_the_sellable_yield_is_the_whole_die(area: float, density: float, shape: float) -> None:
    """However the die is divided: the mixture is exact."""
    whole = perfect_die_prob(area, density, shape)

    for critical in (0.0, 0.3, 1.0):
        assert sellable_prob(one_die(area, density, shape, critical, 0.0)) == pytest.approx(float(whole), rel=1e-9)


@given(AREA, DENSITY, SHAPE, st.floats(0.0, 0.9))
def test_with_ever_more_spares_only_the_critical_part_counts(
    area: float, density: float, shape: float, critical: float
) -> None:
    limit = float(perfect_die_prob(area * critical, density, shape))

    assert sellable_prob(one_die(area, density, shape, critical, 1e4)) == pytest.approx(limit, rel=1e-6)


def test_harvesting_agrees_with_a_simulation_of_clustered_defects() -> None:
    generator = np.random.default_rng(1)
    count = 400_000
    density = generator.gamma(2.0, 1.0 / 2.0, count) * 0.004
    critical = generator.poisson(density * 700.0 * 0.3)
    spared = generator.poisson(density * 700.0 * 0.7)

    simulated = np.mean((critical == 0) & (spared <= 3))

    # three standard errors of the simulation
    assert sellable_prob(one_die(700.0, 0.004, 2.0, 0.3, 3.0)) == pytest.approx(float(simulated), abs=0.0024)


@given(AREA, DENSITY, SHAPE, FRAC, st.floats(0.0, 20.0), UP)
def test_a_larger_or_dirtier_die_never_costs_less(
    area: float, density: float, shape: float, critical: float, spares: float, up: float
) -> None:
    base = die(one_die(area, density, shape, critical, spares)).silicon_usd

    tolerance = 1.0 - 1e-12
    assert die(one_die(area * up, density, shape, critical, spares)).silicon_usd >= base * tolerance
    assert die(one_die(area, density * up, shape, critical, spares)).silicon_usd >= base * tolerance
    assert die(one_die(area, density, shape, critical, spares * up)).silicon_usd <= base / tolerance
    assert die(one_die(area, density, shape, critical / up, spares)).silicon_usd <= base / tolerance


@given(st.floats(0.0, 2e4), UP)
def test_a_wafer_never_holds_more_of_a_larger_die_and_always_one(area: float, up: float) -> None:
    for count in (dies_per_wafer_count, carriers_per_wafer_count):
        assert count(area * up, 145.0, 0.2) <= count(area, 145.0, 0.2)
        assert count(area, 145.0, 0.2) >= 1.0


def test_small_dies_and_small_carriers_are_counted_alike() -> None:
    """The exponential edge loss starts with the linear one; they differ by how much a corner sticks out."""
    ratio = carriers_per_wafer_count(1.0, 145.0, 0.2) / dies_per_wafer_count(1.0, 145.0, 0.2)

    assert ratio == pytest.approx(1.0, abs=0.01)


def test_a_perfect_test_lets_nothing_through_and_no_test_lets_all() -> None:
    assert escape_prob(0.6, 1.0) == 0.0
    assert escape_prob(0.6, 0.0) == pytest.approx(0.4)


@given(st.floats(0.5, 1.0), st.floats(0.0, 20.0), st.floats(0.0, 0.2), st.floats(0.0, 8.0))
def test_more_bonds_never_help(bond: float, bonds: float, escape: float, dies: float) -> None:
    assert attach_prob(bond, bonds + 1.0, escape, dies) <= attach_prob(bond, bonds, escape, dies)
    assert attach_prob(bond, bonds, escape, dies + 1.0) <= attach_prob(bond, bonds, escape, dies)


@given(st.floats(0.0, 0.5), st.floats(0.5, 30.0))
def test_the_annuity_pays_back_the_capital_with_interest(interest: float, life: float) -> None:
    paid = float(capital_recovery_frac(interest, life))

    assert paid >= 1.0 / life * (1 - 1e-9)
    if interest > 1e-6:
        worth = paid * (1.0 - (1.0 + interest) ** -life) / interest
        assert worth == pytest.approx(1.0, rel=1e-6)


def test_without_interest_the_annuity_is_one_over_the_life() -> None:
    assert capital_recovery_frac(0.0, 4.0) == 0.25
    assert capital_recovery_frac(1e-9, 4.0) == pytest.approx(0.25, rel=1e-6)


@given(st.floats(0.1, 50.0), st.floats(0.0, 1e5), FRAC, FRAC, UP)
def test_tokens_get_cheaper_with_throughput_and_sold_hours(
    hour: float, rate: float, used: float, good: float, up: float
) -> None:
    base = token_usd_per_mtok(hour, rate, used, good)

    assert np.isfinite(base)
    assert base > 0
    assert token_usd_per_mtok(hour, rate * up, used, good) <= base
    assert token_usd_per_mtok(hour, rate, min(1.0, used * up), good) <= base
    assert token_usd_per_mtok(hour * up, rate, used, good) >= base


@given(st.floats(0.1, 50.0), st.floats(0.01, 0.99), st.floats(1.0, 1e5), st.floats(1.0, 1e5))
def test_input_and_output_tokens_together_pay_for_the_machine(
    hour: float, prefill: float, tokens_in: float, tokens_out: float
) -> None:
    paid_in = shared_usd_per_mtok(hour, prefill, tokens_in, 0.7, 0.9) * tokens_in
    paid_out = shared_usd_per_mtok(hour, 1.0 - prefill, tokens_out, 0.7, 0.9) * tokens_out
    per_hour = (paid_in + paid_out) * 0.7 * 0.9 * 3600.0 / 1e6

    assert per_hour == pytest.approx(hour, rel=1e-9)


PARTS = st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(1e-3, 1e3)), min_size=1, max_size=12)


def tail_usd(parts: list[tuple[float, float]], tail_frac: float = 0.5) -> float:
    costs, weights = np.array(parts).T
    return float(np.asarray(cvar_usd_per_mtok(MixCosts(costs[:, None], weights[:, None]), tail_frac))[0])


@given(PARTS, st.floats(0.05, 1.0))
def test_the_mean_of_the_dearer_part_is_what_rockafellar_and_uryasev_minimise(
    parts: list[tuple[float, float]], tail_frac: float
) -> None:
    """Their theorem 1: the least over a of a + E[(cost - a)+]/(1 - level), found at one of the costs."""
    costs, weights = np.array(parts).T
    excess = np.maximum(costs - costs[:, None], 0.0)
    least = (costs + (excess * weights).sum(axis=1) / weights.sum() / tail_frac).min()

    assert tail_usd(parts, tail_frac) == pytest.approx(least, rel=1e-9)


@given(PARTS)
def test_the_mean_of_the_dearer_half_lies_between_the_mean_and_the_worst(parts: list[tuple[float, float]]) -> None:
    costs, weights = np.array(parts).T
    found = tail_usd(parts)

    assert np.average(costs, weights=weights) * (1.0 - 1e-9) <= found <= costs.max() * (1.0 + 1e-9)
    assert tail_usd(parts, 1.0) == pytest.approx(np.average(costs, weights=weights), rel=1e-9)
    assert tail_usd(parts, 1e-9) == pytest.approx(costs.max(), rel=1e-9)


@given(PARTS, st.integers(0, 11), UP)
def test_a_workload_that_gets_dearer_never_makes_the_dearer_half_cheaper(
    parts: list[tuple[float, float]], which: int, up: float
) -> None:
    at = which % len(parts)
    dearer = [(cost * up if i == at else cost, weight) for i, (cost, weight) in enumerate(parts)]

    assert tail_usd(dearer) >= tail_usd(parts) * (1.0 - 1e-9)


@given(PARTS, st.randoms(use_true_random=False), st.floats(1e-3, 1e3))
def test_neither_the_order_of_workloads_nor_the_scale_of_weights_counts(
    parts: list[tuple[float, float]], random: Any, scale: float
) -> None:
    moved = [(cost, weight * scale) for cost, weight in random.sample(parts, len(parts))]

    assert tail_usd(moved) == pytest.approx(tail_usd(parts), rel=1e-9)


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), st.floats(1e-3, 1e3))
def test_one_workload_is_its_own_half_and_of_two_alike_the_dearer_is(one: float, other: float, weight: float) -> None:
    assert tail_usd([(one, weight)]) == one
    assert tail_usd([(one, weight), (other, weight)]) == max(one, other)


def test_half_of_every_candidate_is_its_own_whatever_the_batch() -> None:
    generator = np.random.default_rng(1)
    costs, weights = generator.uniform(0.1, 9.0, (11, 64)), generator.uniform(0.1, 9.0, (11, 1))

    whole = np.asarray(cvar_usd_per_mtok(MixCosts(costs.copy(), weights)))

    for cut in (slice(0, 1), slice(5, 12), slice(63, 64)):
        assert np.array_equal(cvar_usd_per_mtok(MixCosts(costs[:, cut].copy(), weights)), whole[cut])


def test_a_margin_is_a_share_of_the_price() -> None:
    cost, margin = 3320.0, 0.88

    assert marked_up_usd(cost, margin) / (cost + marked_up_usd(cost, margin)) == pytest.approx(margin)
    assert marked_up_usd(cost, 0.0) == 0.0


def test_power_between_idle_and_busy_and_losses_upstream() -> None:
    assert average_power_w(1000.0, 200.0, 0.0) == 200.0
    assert average_power_w(1000.0, 200.0, 1.0) == 1000.0
    assert utility_w(1000.0, 1.0, 1.0) == 1000.0


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ((6e6, 130.0), (15e6, 100.0), 3e5),  # dearer to start, cheaper to build
        ((6e6, 100.0), (15e6, 130.0), 1e9),  # dearer in both: never
        ((15e6, 130.0), (6e6, 100.0), 0.0),  # cheaper in both: at once
        ((6e6, 100.0), (6e6, 100.0), 0.0),
    ],
)
def test_the_volume_at_which_a_newer_generation_pays(
    older: tuple[float, float], newer: tuple[float, float], expected: float
) -> None:
    assert break_even_count(Programme(*older), Programme(*newer)) == pytest.approx(expected)


def leaves(struct: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for field in fields(struct):
        value = getattr(struct, field.name)
        found += leaves(value, (*path, field.name)) if is_dataclass(value) else [(*path, field.name)]
    return found


def at(struct: Any, path: tuple[str, ...]) -> Any:
    return at(getattr(struct, path[0]), path[1:]) if path else struct


def with_leaf(struct: Any, path: tuple[str, ...], value: Any) -> Any:
    if len(path) == 1:
        return replace(struct, **{path[0]: value})
    return replace(struct, **{path[0]: with_leaf(getattr(struct, path[0]), path[1:], value)})


def rich(catalog: Catalog) -> CostInputs:
    """A machine that has some of everything, so that no knob is dead for want of a part."""
    network = replace(
        H100.scale_out, medium="pluggable_optics", switch="ethernet_800g", nic="connectx_8", switches_count=0.1
    )
    choice = replace(
        B200,
        package="soic",
        io_node="n7",
        io_count=2.0,
        io_area_mm2=300.0,
        compute_serdes_mm2=10.0,
        compute_buffer_mm2=4.0,
        io_serdes_mm2=30.0,
        io_buffer_mm2=8.0,
        bridge_mm2=50.0,
        second_tier_gb=480.0,
        scale_up=network,
        scale_out=network,
        front_end=network,
    )
    inputs = cost_inputs(catalog, choice, Scenario("market", 2025))
    inputs = with_leaf(inputs, ("package", "bridge_usd_per_mm2"), 0.05)
    inputs = with_leaf(inputs, ("io", "spare_cores_count"), 0.5)
    made: CostInputs = with_leaf(with_leaf(inputs, ("io", "critical_frac"), 0.7), ("compute", "spare_cores_count"), 0.5)
    return made


RICH = rich(load_catalog())
#: More of these makes an hour cheaper; more of every other knob makes it dearer. (Less clustering spreads the same
#: defects over more dies, which costs yield.)
CHEAPER = {
    "usable_radius_mm", "spare_cores_count", "coverage_frac", "carrier_radius_mm",
    "bond_yield_frac", "final_yield_frac", "psu_efficiency_frac", "accelerator_life_years",
    "network_life_years", "facility_life_years", "volume_count",
}  # fmt: skip
#: These only divide the die's bill among its items.
DIVIDE = {"compute_serdes_mm2", "compute_buffer_mm2", "io_serdes_mm2", "io_buffer_mm2"}


@pytest.mark.parametrize("path", leaves(RICH), ids=".".join)
def test_every_knob_moves_the_bill_and_in_the_right_direction(path: tuple[str, ...]) -> None:
    base = bill(RICH)
    value = at(RICH, path)
    more = bill(with_leaf(RICH, path, value * 1.001))

    before, after = float(base.hourly.total_usd_per_h), float(more.hourly.total_usd_per_h)
    if path[-1] in DIVIDE:
        assert after == pytest.approx(before, rel=1e-12)
        item = "serdes_usd" if "serdes" in path[-1] else "buffer_usd"
        assert getattr(more.capital, item) > getattr(base.capital, item)
        assert more.capital.die_usd < base.capital.die_usd
    elif path[-1] in CHEAPER:
        assert after < before
    else:
        assert after > before


def items(struct: Any) -> list[str]:
    return [field.name for field in fields(struct) if not field.name.startswith("total")]


@pytest.mark.parametrize("part", ["capital", "hourly"])
def test_the_items_add_up_to_the_total_exactly(part: str) -> None:
    made = getattr(bill(RICH), part)
    total = 0.0
    for name in items(made):
        assert getattr(made, name) >= 0.0
        total = total + getattr(made, name)

    assert total == (made.total_usd if part == "capital" else made.total_usd_per_h)


def test_the_parts_of_a_package_and_its_scrap_add_up() -> None:
    made = bill(RICH).package
    names = [field.name for field in fields(made) if field.name not in {"total_usd", "yield_prob"}]

    assert sum(float(getattr(made, name)) for name in names) == pytest.approx(float(made.total_usd), rel=1e-12)


def test_a_process_that_loses_nothing_scraps_nothing() -> None:
    inputs = RICH
    for path in [("package", "bond_yield_frac"), ("package", "final_yield_frac"), ("compute", "coverage_frac"),
                 ("io", "coverage_frac")]:  # fmt: skip
        inputs = with_leaf(inputs, path, 1.0)

    assert bill(inputs).package.scrap_usd == pytest.approx(0.0, abs=1e-9)


def batch(count: int) -> tuple[CostInputs, dict[tuple[str, ...], Any]]:
    generator = np.random.default_rng(3)
    columns = {path: at(RICH, path) * generator.uniform(0.9, 1.0, count) for path in leaves(RICH)}
    inputs = RICH
    for path, column in columns.items():
        inputs = with_leaf(inputs, path, column)
    return inputs, columns


def flat(made: Bill) -> dict[tuple[str, ...], Any]:
    return {path: np.asarray(at(made, path)) for path in leaves(made)}


@pytest.mark.parametrize("count", [1, 7, 64, 1000])
def test_a_bill_of_many_is_the_bills_of_each(count: int) -> None:
    inputs, columns = batch(count)
    together = flat(bill(inputs))

    for row in {0, count // 2, count - 1}:
        alone = RICH
        for path, column in columns.items():
            alone = with_leaf(alone, path, column[row : row + 1])
        for path, values in flat(bill(alone)).items():
            assert np.array_equal(values, together[path][row : row + 1]), path


@settings(max_examples=30)
@given(st.floats(0.0, 1e5), st.floats(0.0, 1e3), st.floats(0.0, 1e5))
def test_absurd_designs_give_finite_bills(area: float, stacks: float, watts: float) -> None:
    inputs = with_leaf(RICH, ("compute", "die_area_mm2"), area)
    inputs = with_leaf(inputs, ("package", "stacks_count"), stacks)
    inputs = with_leaf(inputs, ("energy", "peak_w"), watts)

    assert all(np.all(np.isfinite(values)) for values in flat(bill(inputs)).values())


def test_draws_make_a_grid_of_draws_by_candidates(catalog: Catalog) -> None:
    names = replace(H100, node=["n5", "n4", "n3"], memory=["hbm3", "hbm3e", "hbm3"])
    key = ("wafers", "n4", "wafer_usd")

    grid = bill(cost_inputs(catalog, names, Scenario(), {key: np.array([[13_000.0], [16_000.0]])}))
    rate = np.asarray(grid.hourly.total_usd_per_h)

    assert rate.shape == (2, 3)
    assert rate[0, 1] < rate[1, 1]
    assert np.array_equal(rate[0, [0, 2]], rate[1, [0, 2]])
