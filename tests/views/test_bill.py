"""The bill as rows and its tornado."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from codesign.catalog import Catalog
from codesign.cost.bill import bill
from codesign.prices import Draws, Scenario, cost_inputs, drawn, facts_read
from codesign.units import Numeric
from codesign.views.bill import (
    band,
    bill_rows,
    break_even_volume,
    chance_of_being_cheaper,
    tornado,
    tornado_svg,
)
from tests.cost.platforms import B200, H100


def test_the_rows_add_up_to_the_last(catalog: Catalog) -> None:
    *rows, total = bill_rows(bill(cost_inputs(catalog, H100, Scenario("market"))))

    assert sum(row.capital_usd for row in rows) == pytest.approx(total.capital_usd, rel=1e-12)
    assert sum(row.rate_usd_per_h for row in rows) == pytest.approx(total.rate_usd_per_h, rel=1e-12)
    assert sum(row.share_frac for row in rows) == pytest.approx(1.0, rel=1e-12)
    assert min(row.rate_usd_per_h for row in rows) >= 0.0


def test_a_row_of_many_is_the_bill_of_that_candidate(catalog: Catalog) -> None:
    many = bill(cost_inputs(catalog, replace(H100, node=["n5", "n3"]), Scenario()))
    alone = bill(cost_inputs(catalog, replace(H100, node=["n3"]), Scenario()))

    assert bill_rows(many, 1) == bill_rows(alone)


def test_the_tornado_is_what_moving_one_fact_alone_gives(catalog: Catalog) -> None:
    facts = facts_read(catalog, B200, Scenario())

    def hour(draws: Draws) -> Numeric:
        return bill(cost_inputs(catalog, B200, Scenario(), draws)).hourly.total_usd_per_h

    swings = tornado(hour, facts, 12)

    assert len(swings) == 12
    assert [swing.swing_usd for swing in swings] == sorted((swing.swing_usd for swing in swings), reverse=True)
    for swing in swings[:3]:
        assert swing.base_usd == float(hour({}))
        assert swing.at_low_usd == float(hour({swing.fact: swing.low}))
        assert swing.at_high_usd == float(hour({swing.fact: swing.high}))


def test_the_band_holds_every_draw(catalog: Catalog) -> None:
    facts = facts_read(catalog, H100, Scenario())

    def package(draws: Draws) -> Numeric:
        return bill(cost_inputs(catalog, H100, Scenario(), draws)).package.total_usd

    low, high = band(package, facts)
    usd = np.asarray(package(drawn(facts, 500, seed=1)))

    assert low <= usd.min() < usd.max() <= high


def test_more_memory_on_the_same_machine_is_never_the_cheaper_choice(catalog: Catalog) -> None:
    less, more = replace(B200, stack_gb=24.0), replace(B200, stack_gb=36.0)
    draws = drawn(facts_read(catalog, B200, Scenario()), 200, seed=2)
    usd = [bill(cost_inputs(catalog, choice, Scenario(), draws)).hourly.total_usd_per_h for choice in (less, more)]

    assert chance_of_being_cheaper(usd[0], usd[1]) == 1.0
    assert chance_of_being_cheaper(usd[0], usd[0]) == 0.5


def test_the_drawing_has_two_bars_for_each_fact(catalog: Catalog) -> None:
    facts = facts_read(catalog, H100, Scenario())
    swings = tornado(lambda draws: bill(cost_inputs(catalog, H100, Scenario(), draws)).capital.total_usd, facts, 5)
    drawing = ElementTree.fromstring(tornado_svg(swings))

    assert len(drawing.findall("{*}rect")) == 1 + 10  # the ground, and two bars for each of five
    assert len(drawing.findall("{*}line")) == 1


def test_a_dearer_licence_pays_once_enough_optics_are_saved(catalog: Catalog) -> None:
    """224G halves the modules; the licence step over what an accelerator saves is the volume, by hand."""
    older = cost_inputs(catalog, H100, Scenario())
    half = replace(H100.scale_out, transceivers_count=2.0)
    newer = cost_inputs(catalog, replace(H100, serdes="serdes_224g", scale_out=half), Scenario())
    spares = 1.0 + catalog.value("scenarios", "owner", "spares_frac")
    saved = 2.0 * catalog.value("prices", "pluggable_optics_400g", "transceiver_usd") * spares
    step = catalog.value("prices", "serdes_224g", "licence_usd") - catalog.value("prices", "serdes_112g", "licence_usd")

    assert break_even_volume(older, newer) == pytest.approx(step / saved, rel=1e-9)
    assert break_even_volume(older, replace(older, licences_usd=older.licences_usd + 1.0)) == pytest.approx(1e9)
