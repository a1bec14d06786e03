"""The cost chains against bills, dies and hourly costs that others printed."""

from dataclasses import replace

import numpy as np
import pytest

from codesign.catalog import Catalog
from codesign.cost.bill import bill
from codesign.cost.ownership import capital_recovery_frac, token_usd_per_mtok
from codesign.cost.silicon import (
    DieInputs,
    carriers_per_wafer_count,
    die,
    dies_per_wafer_count,
    perfect_die_prob,
    sellable_prob,
)
from codesign.cost.system import NetworkInputs, network
from codesign.prices import CostChoice, Draws, NetworkChoice, Scenario, cost_inputs, facts_read, purchased_inputs
from codesign.units import Numeric
from codesign.views.bill import band, gap_rows
from tests.cost.platforms import B200, H100, H200, MI300X


def big_die(defects_per_cm2: float, critical_frac: float, spare_cores_count: float = 12.0) -> DieInputs:
    return DieInputs(
        814.0, 13_400.0, 145.0, 0.2, defects_per_cm2 / 100, 10.0, critical_frac, spare_cores_count, 0.0, 1.0
    )


def package_usd(catalog: Catalog, choice: CostChoice, year: int, draws: Draws | None = None) -> Numeric:
    return bill(cost_inputs(catalog, choice, Scenario("owner", year), draws)).package.total_usd


@pytest.mark.published(
    source="chiplet-actuary-2022",
    where="dies per wafer with 0.2 mm scribe and 5 mm edge exclusion",
    says="814 mm2: 57.596 dies; 44.308 % Poisson, 45.723 % binomial at c = 10, 50.514 % at 2, 55.127 % Seeds",
)
def test_a_reticle_sized_die_has_the_counts_and_yields_of_the_published_forms() -> None:
    assert dies_per_wafer_count(814.0, 145.0, 0.2) == pytest.approx(57.596, abs=5e-4)
    for clustering_count, printed in [(1e9, 0.44308), (10.0, 0.45723), (2.0, 0.50514), (1.0, 0.55127)]:
        # printed to five digits; at c = 1e9 the binomial form itself loses a few
        assert perfect_die_prob(814.0, 0.001, clustering_count) == pytest.approx(printed, abs=1e-5)


@pytest.mark.published(
    source="chiplet-actuary-2022",
    where="negative binomial with 132 of 144 cores on half the die, rest perfect; 0.3 of the die repairable",
    says="sellable 0.81754, 0.67103, 0.55289 at 0.05, 0.10, 0.15 per cm2; 0.85088 with repair",
)
def test_harvesting_gives_the_worked_sellable_yields() -> None:
    for defects, printed in [(0.05, 0.81754), (0.10, 0.67103), (0.15, 0.55289)]:
        assert sellable_prob(big_die(defects, 0.5)) == pytest.approx(printed, abs=1e-4)
    assert sellable_prob(big_die(0.10, 0.2)) == pytest.approx(0.85088, abs=1e-4)


@pytest.mark.published(
    source="raymond-james-2023", where="logic line of the H100 cost estimate", says="300 USD for the die"
)
def test_the_h100_die_costs_three_hundred_dollars_with_harvesting(catalog: Catalog) -> None:
    quoted = die(replace(big_die(0.10, 0.2), wafer_usd=13_400.0)).silicon_usd
    ours = die(cost_inputs(catalog, H100, Scenario()).compute).silicon_usd
    without = die(big_die(0.10, 1.0, 0.0)).silicon_usd

    assert ours == pytest.approx(300, rel=0.15)  # the tolerance that is asked for a bill's nominal
    assert quoted < 300 < float(die(replace(big_die(0.10, 0.2), wafer_usd=20_000.0)).silicon_usd)
    assert without == pytest.approx(508.83, rel=1e-3)  # 13,400 / 57.596 / 0.45723


@pytest.mark.published(source="redplanx-2025", where="packages per CoWoS wafer", says="28 to 29 H100 or H200, 16 B200")
def test_an_interposer_wafer_holds_the_reported_packages(catalog: Catalog) -> None:
    h100 = cost_inputs(catalog, H100, Scenario()).package
    b200 = cost_inputs(catalog, B200, Scenario()).package

    assert carriers_per_wafer_count(h100.carrier_area_mm2, 145.0, 0.2) == pytest.approx(28.5, abs=1.0)
    assert carriers_per_wafer_count(b200.carrier_area_mm2, 145.0, 0.2) == pytest.approx(16.0, abs=0.5)


@pytest.mark.published(source="raymond-james-2023", where="H100 cost", says="3,320 USD")
def test_the_bill_of_an_h100(catalog: Catalog) -> None:
    facts = facts_read(catalog, H100, Scenario("owner", 2023))
    low, high = band(lambda draws: package_usd(catalog, H100, 2023, draws), facts)

    assert low < 3320 < high
    assert package_usd(catalog, H100, 2023) == pytest.approx(3320, rel=0.15)


@pytest.mark.published(
    source="epoch-b200-2025",
    where="B200 cost and split",
    says="6,400 USD (5,700 to 7,300): logic 720 to 1,200, memory 2,800 to 3,100, packaging 1,000 to 1,200",
)
def test_the_bill_of_a_b200(catalog: Catalog) -> None:
    facts = facts_read(catalog, B200, Scenario("owner", 2025))
    low, high = band(lambda draws: package_usd(catalog, B200, 2025, draws), facts)
    made = bill(cost_inputs(catalog, B200, Scenario("owner", 2025))).package

    assert low < 5700 < 7300 < high
    assert 5700 <= float(made.total_usd) <= 7300
    assert made.total_usd == pytest.approx(6400, rel=0.15)
    assert 2800 <= float(made.stacks_usd) <= 3100
    assert 1000 <= float(made.carrier_usd + made.substrate_usd + made.assembly_usd) <= 1200


@pytest.mark.published(
    source="silicon-analysts-2026", where="accelerator cost table, GB200 superchip", says="13,200 to 13,500 USD"
)
def test_the_bill_of_a_gb200_superchip(catalog: Catalog) -> None:
    """Two B200 packages and a Grace CPU, whose area nobody prints: a half-reticle die on organic substrate."""
    grace = replace(
        B200, package="organic", compute_count=1.0, compute_area_mm2=430.0, stacks_count=0.0, carrier_mm2=430.0
    )

    def both(draws: Draws | None = None) -> Numeric:
        return 2.0 * package_usd(catalog, B200, 2025, draws) + package_usd(catalog, grace, 2025, draws)

    facts = facts_read(catalog, B200, Scenario("owner", 2025)) | facts_read(catalog, grace, Scenario("owner", 2025))
    low, high = band(both, facts)

    assert low < 13_200 < 13_500 < high
    assert both() == pytest.approx(13_350, rel=0.15)


@pytest.mark.published(
    source="silicon-analysts-2026",
    where="accelerator cost table: H200 and MI300X",
    says="H200 4,500 USD (4,250 to 4,800); MI300X 5,300: logic 600, HBM 2,900, packaging 1,200, test 600",
)
def test_two_bills_that_no_range_was_chosen_for(catalog: Catalog) -> None:
    h200 = bill(cost_inputs(catalog, H200, Scenario("owner", 2025))).package
    mi300x = bill(cost_inputs(catalog, MI300X, Scenario("owner", 2023))).package

    assert h200.total_usd == pytest.approx(4500, rel=0.15)
    # the lines of the MI300X estimate leave no room for scrap
    assert mi300x.total_usd - mi300x.scrap_usd == pytest.approx(5300, rel=0.15)
    assert mi300x.stacks_usd == pytest.approx(2900, rel=0.05)
    assert mi300x.compute_usd + mi300x.io_usd == pytest.approx(600, rel=0.3)  # no price of N6 is public


@pytest.mark.published(
    source="inferencex-2026",
    where="cost per million tokens from TCO per GPU-hour",
    says="2.65 USD/h at 6,000 tokens/s is 0.12 USD, 1.41 at 90 is 4.20 (which needs 93 tokens/s: rounding)",
)
def test_dollars_per_token_follow_the_published_formula_to_three_digits() -> None:
    assert token_usd_per_mtok(2.65, 6000.0, 1.0, 1.0) == pytest.approx(0.123, abs=5e-4)
    assert token_usd_per_mtok(1.41, 90.0, 1.0, 1.0) == pytest.approx(4.35, abs=5e-3)
    assert token_usd_per_mtok(1.41, 93.0, 1.0, 1.0) == pytest.approx(4.20, rel=0.01)


def plain(**changed: float) -> Scenario:
    zero = {
        name: 0.0
        for name in (
            "maintenance_per_year",
            "site_usd_per_w_year",
            "spares_frac",
            "vendor_margin_frac",
            "integrator_margin_frac",
            "provider_margin_frac",
        )
    }
    one = {name: 1.0 for name in ("utilisation_frac", "psu_efficiency_frac", "pue_ratio")}
    return Scenario("market", overrides=zero | one | changed)


@pytest.mark.published(
    source="h100-cluster-sheet-2024",
    where="43,000 USD of IT capital at 10 % over 4 years, 1.73 kW at 9.77 cents, 10.7 USD/W at 8 % over 15 years",
    says="1.9644 USD per hour (1.548 + 0.169 + 0.247), 1.7107 over 5 years, 1.6763 at 35,000 USD",
)
def test_an_h100_hour_from_the_bottom_up(catalog: Catalog) -> None:
    four = bill(purchased_inputs(catalog, 43_000.0, 1730.0, plain(accelerator_life_years=4.0))).hourly
    five = bill(purchased_inputs(catalog, 43_000.0, 1730.0, plain(accelerator_life_years=5.0))).hourly
    cheap = bill(purchased_inputs(catalog, 35_000.0, 1730.0, plain(accelerator_life_years=4.0))).hourly

    assert four.total_usd_per_h == pytest.approx(1.9644, rel=0.002)
    assert four.host_usd_per_h == pytest.approx(1.548, abs=2e-3)
    assert four.energy_usd_per_h == pytest.approx(0.169, abs=1e-3)
    assert four.facility_usd_per_h == pytest.approx(0.247, abs=1e-3)
    assert five.total_usd_per_h == pytest.approx(1.7107, rel=0.002)
    assert cheap.total_usd_per_h == pytest.approx(1.6763, rel=0.002)


@pytest.mark.published(
    source="inferencex-2026",
    where="GPU_SPECS, TCO per GPU-hour",
    says="H100 1.30 and 1.69, B200 1.95 and 2.34, GB200 2.21 and 2.75 (hyperscaler, neocloud)",
)
@pytest.mark.parametrize(
    ("part", "who", "printed"),
    [
        ("h100", "hyperscaler", 1.30),
        ("h100", "neocloud", 1.69),
        ("b200", "hyperscaler", 1.95),
        ("b200", "neocloud", 2.34),
        ("gb200", "hyperscaler", 2.21),
        ("gb200", "neocloud", 2.75),
    ],
)
def test_capital_cost_life_and_price_explain_the_distance_to_published_hours(
    catalog: Catalog, part: str, who: str, printed: float
) -> None:
    rows = gap_rows(catalog, part, who)
    start, steps, rest, end = rows[0], rows[1:-1], rows[-2], rows[-1]

    assert end.rate_usd_per_h == printed
    assert start.rate_usd_per_h + sum(row.rate_usd_per_h for row in steps) == pytest.approx(printed, abs=1e-12)
    # within a tenth: what operations, financing and volume terms of one buyer may add or save beyond printed prices
    assert abs(rest.rate_usd_per_h) < 0.1 * printed


def gb300_networks(layers: int) -> tuple[NetworkChoice, NetworkChoice]:
    """Fat trees of one 800G port per accelerator, and of one 400G front-end port per tray of four in three layers."""
    back = NetworkChoice(
        switch="infiniband_800g",
        medium="pluggable_optics_1600g",
        switches_count=(2 * layers - 1) / 144,
        switch_gbps=115_200.0,
        link_gbps=1600.0,
        transceivers_count=(2 * layers - 1) / 2,
    )
    front = NetworkChoice(
        switch="infiniband_400g",
        medium="pluggable_optics_400g",
        switches_count=5 / 64 / 4,
        switch_gbps=25_600.0,
        link_gbps=400.0,
        transceivers_count=6 / 4,
    )
    return back, front


@pytest.mark.published(
    source="transurfing-cpo-2025",
    where="per-rack cost of a GB300 NVL72",
    says="networking 11.3, 15.3 and 18.0 % of 5,216,624, 5,464,039 and 5,643,054 USD at 2, 3 and 4 layers",
)
@pytest.mark.parametrize(("layers", "printed_pct"), [(2, 11.3), (3, 15.3), (4, 18.0)])
def test_the_network_share_of_a_gb300_rack(catalog: Catalog, layers: int, printed_pct: float) -> None:
    """The price of a layer comes from that table; the front end, the host ends and the fourth layer do not."""
    back, front = gb300_networks(layers)
    host_end = NetworkChoice(medium="pluggable_optics", link_gbps=800.0, transceivers_count=1.0)

    def cost(choice: NetworkChoice) -> NetworkInputs:
        return cost_inputs(catalog, replace(B200, scale_out=choice), Scenario()).scale_out

    networking_usd = 72.0 * sum(float(network(cost(choice)).total_usd) for choice in (back, front, host_end))
    rest_usd = 5_464_039.0 - 836_944.0  # the same at every number of layers

    assert 100.0 * networking_usd / (networking_usd + rest_usd) == pytest.approx(printed_pct, abs=1.5)


@pytest.mark.published(
    source="rental-2026-03", where="H100 one-year rental", says="2.35 USD in March 2026, 1.70 in October 2025"
)
def test_the_market_scenario_asks_what_an_h100_rents_for(catalog: Catalog) -> None:
    hour = bill(cost_inputs(catalog, H100, Scenario("market", 2023))).hourly.total_usd_per_h

    assert 1.70 <= float(hour) <= 2.95  # 2.95 is the median on demand


def test_the_annuity_of_the_worked_sum() -> None:
    assert capital_recovery_frac(0.10, 4.0) == pytest.approx(0.31547, abs=5e-6)


def test_every_worked_yield_is_between_zero_and_one() -> None:
    areas = np.linspace(1.0, 858.0, 50)

    assert np.all((perfect_die_prob(areas, 0.002, 2.0) > 0) & (perfect_die_prob(areas, 0.002, 2.0) < 1))
