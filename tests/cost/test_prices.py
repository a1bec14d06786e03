"""Names, years, scenarios and draws on their way into a bill."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from codesign.catalog import Catalog, Fact
from codesign.cost.bill import bill
from codesign.errors import CatalogError
from codesign.prices import FactKey, Scenario, cost_inputs, drawn, facts_read
from tests.cost.platforms import B200, H100

KINDS = ("wafers", "packages", "prices", "switches", "nics", "systems", "facilities", "scenarios")


def test_both_scenarios_name_the_same_facts(catalog: Catalog) -> None:
    assert set(catalog.technology("scenarios", "owner")) == set(catalog.technology("scenarios", "market"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_price_is_dated_sourced_and_ranged(catalog: Catalog, kind: str) -> None:
    for technology, facts in catalog.technologies(kind).items():
        for name, fact in facts.items():
            where = f"{kind}.{technology}.{name}"
            assert fact.source in catalog.sources, where
            assert 1980 <= fact.year <= 2030, where
            assert fact.low <= fact.value <= fact.high, where
            assert fact.kind == "published" or fact.note, where


@pytest.mark.parametrize(("kind", "fact"), [("nodes", "wafer_usd"), ("memory", "")])
def test_whatever_can_be_built_has_a_price(catalog: Catalog, kind: str, fact: str) -> None:
    for name in catalog.technologies(kind):
        if fact:
            assert catalog.value("wafers", name, fact) > 0
        else:
            choice = replace(H100, memory=name)
            assert np.all(cost_inputs(catalog, choice, Scenario()).package.stack_usd > 0), name


def _named(field: str, name: str) -> dict[str, Any]:
    return {field: name}


def test_every_fact_of_the_price_files_is_read_by_some_choice(catalog: Catalog) -> None:
    read = {key for scenario in ("owner", "market") for key in facts_read(catalog, H100, Scenario(scenario))}
    for field, kind in [("node", "wafers"), ("package", "packages"), ("host", "systems"), ("cooling", "facilities")]:
        for name in catalog.technologies(kind):
            if name not in {"line_300mm", "hbm_stack"} and not name.startswith("reference"):
                read |= set(facts_read(catalog, replace(H100, carrier_mm2=None, **_named(field, name)), Scenario()))
    for field, kind in [("switch", "switches"), ("nic", "nics"), ("medium", "prices")]:
        for name, facts in catalog.technologies(kind).items():
            if kind != "prices" or "cable_usd" in facts:
                network = replace(H100.scale_out, **_named(field, name))
                read |= set(facts_read(catalog, replace(H100, scale_out=network), Scenario()))
    for name, facts in catalog.technologies("prices").items():
        for fact in facts:
            if fact.endswith("_usd_per_gb"):
                read |= set(facts_read(catalog, replace(H100, memory=name), Scenario("owner", int(fact[1:5]))))
            elif name.startswith("serdes"):
                read |= set(facts_read(catalog, replace(H100, serdes=name), Scenario()))

    written = {
        (kind, name, fact) for kind in KINDS for name, facts in catalog.technologies(kind).items() for fact in facts
    }
    assert {key for key in written - read if not key[1].startswith("reference")} == set()


def test_the_market_asks_more_than_an_owner_pays(catalog: Catalog) -> None:
    for choice in (H100, B200):
        owner = bill(cost_inputs(catalog, choice, Scenario("owner"))).hourly.total_usd_per_h
        market = bill(cost_inputs(catalog, choice, Scenario("market"))).hourly.total_usd_per_h

        assert market > owner


@pytest.mark.parametrize(
    ("year", "name"),
    [(2020, "y2024_usd_per_gb"), (2024, "y2024_usd_per_gb"), (2025, "y2025_usd_per_gb"), (2031, "y2026_usd_per_gb")],
)
def test_a_year_takes_the_newest_price_that_is_not_after_it(catalog: Catalog, year: int, name: str) -> None:
    read = facts_read(catalog, B200, Scenario("owner", year))

    assert [key[2] for key in read if key[:2] == ("prices", "hbm3e")] == [name]


def test_an_override_takes_the_place_of_a_scenario_fact(catalog: Catalog) -> None:
    dear = Scenario("owner", overrides={"electricity_usd_per_kwh": 0.5, "accelerator_life_years": 3.0})
    inputs = cost_inputs(catalog, H100, dear)

    assert inputs.energy.electricity_usd_per_kwh == 0.5
    assert inputs.finance.accelerator_life_years == 3.0
    assert ("scenarios", "owner", "electricity_usd_per_kwh") not in facts_read(catalog, H100, dear)


def test_a_misspelt_name_is_answered_with_the_nearest(catalog: Catalog) -> None:
    with pytest.raises(CatalogError, match="electricity_usd_per_kwh"):
        cost_inputs(catalog, H100, Scenario("owner", overrides={"electricty_usd_per_kwh": 0.5}))
    with pytest.raises(CatalogError, match="cowos_s"):
        cost_inputs(catalog, replace(H100, package="cowos"), Scenario())
    with pytest.raises(CatalogError, match="not a memory"):
        cost_inputs(catalog, replace(H100, memory="serdes_112g"), Scenario())


def test_names_of_many_rows_give_each_row_its_own_price(catalog: Catalog) -> None:
    nodes = ["n5", "n3", "n5", "n7"]
    together = cost_inputs(catalog, replace(H100, node=nodes), Scenario()).compute.wafer_usd
    alone = [catalog.value("wafers", node, "wafer_usd") for node in nodes]

    assert np.array_equal(together, alone)


def test_two_designs_see_the_same_draw_of_a_fact_that_they_share(catalog: Catalog) -> None:
    first = drawn(facts_read(catalog, H100, Scenario()), 64, seed=5)
    second = drawn(facts_read(catalog, B200, Scenario()), 64, seed=5)
    shared = set(first) & set(second)

    assert ("wafers", "n4", "wafer_usd") in shared
    assert all(np.array_equal(first[key], second[key]) for key in shared)
    assert not np.array_equal(first["wafers", "n4", "wafer_usd"], drawn(_only(catalog), 64, seed=6)[_KEY])


_KEY: FactKey = ("wafers", "n4", "wafer_usd")


def _only(catalog: Catalog) -> dict[FactKey, Fact]:
    return {_KEY: catalog.fact(*_KEY)}


def test_draws_stay_between_low_and_high(catalog: Catalog) -> None:
    facts = facts_read(catalog, B200, Scenario())
    for key, column in drawn(facts, 256, seed=0).items():
        assert np.shape(column) == (256, 1)
        assert np.all((column >= facts[key].low) & (column <= facts[key].high))
