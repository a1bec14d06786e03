"""Links by name: what the catalog gives, what is refused."""

from typing import Any

import numpy as np
import pytest

from codesign.cases.fit_channel import left_out, number, points
from codesign.catalog import Catalog
from codesign.errors import CatalogError
from codesign.links import MODULATIONS, RETRIES, die_to_die_inputs, link_inputs
from codesign.model.link.chain import Link, link
from codesign.model.link.retry import loss_events
from codesign.model.link.signal import link_reach_m

Columns = dict[str, np.ndarray[Any, np.dtype[np.float64]]]
NEEDED: dict[str, float] = {"lane_rate_gbps": 106.25, "lanes_count": 4.0, "length_m": 1.0}


def columns(found: Link) -> Columns:
    """Results as arrays."""
    return {name: np.atleast_1d(np.asarray(column, dtype=float)) for name, column in found.columns().items()}


def test_every_code_medium_protocol_equaliser_and_modulation_makes_a_finite_link(catalog: Catalog) -> None:
    for word, kind in (("fec", "fec"), ("medium", "media"), ("protocol", "protocols"), ("equaliser", "serdes"),
                       ("die_to_die", "die_to_die")):  # fmt: skip
        names = list(catalog.technologies(kind))
        found = link(link_inputs(catalog, {**NEEDED, word: names}))
        assert all(np.all(np.isfinite(np.asarray(column))) for column in found.columns().values()), word
    for word, names in (("modulation", list(MODULATIONS)), ("retry", list(RETRIES))):
        assert np.all(np.isfinite(np.asarray(link(link_inputs(catalog, {**NEEDED, word: names})).goodput_gbps)))


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"fec": "kp5"}, "did you mean 'kp4'"),
        ({"medium": "coper"}, "no entry 'coper'"),
        ({"modulation": "pam3"}, "modulation cannot be 'pam3'"),
        ({"lane_rate": 100.0}, "no choice 'lane_rate'; did you mean 'lane_rate_gbps'?"),
        ({"node": "tsmc"}, "node 'tsmc'"),
    ],
)
def test_a_wrong_name_is_refused_with_the_nearest_right_one(
    catalog: Catalog, choices: dict[str, str | float], said: str
) -> None:
    with pytest.raises(CatalogError, match=said.replace("?", r"\?")):
        link_inputs(catalog, {**NEEDED, **choices})


def test_a_link_without_its_rate_is_refused(catalog: Catalog) -> None:
    with pytest.raises(CatalogError, match="length_m must be given"):
        link_inputs(catalog, {"lane_rate_gbps": 100.0, "lanes_count": 4.0})


def test_optics_reach_farther_cost_more_power_and_more_dollars(catalog: Catalog) -> None:
    media = ["passive_copper", "active_copper", "pluggable_optics", "linear_optics", "co_packaged_optics"]
    inputs = link_inputs(catalog, {**NEEDED, "medium": media})
    found, reach = columns(link(inputs)), np.asarray(link_reach_m(inputs))

    assert reach[0] < reach[1] < reach[2]
    assert np.argmax(found["power_w"]) == 2
    assert np.argmin(found["medium_pj_per_bit"]) == 0
    assert found["medium_pj_per_bit"][2] > found["medium_pj_per_bit"][3] > found["medium_pj_per_bit"][4]
    assert found["medium_usd"][2] > found["medium_usd"][1] > found["medium_usd"][0]
    assert np.argmin(found["failure_fit"]) == 0


@pytest.mark.parametrize("medium", ["board", "backplane", "passive_copper", "cabled_backplane", "active_copper",
                                    "pluggable_optics", "linear_optics", "co_packaged_optics"])  # fmt: skip
def test_a_link_that_closes_at_no_length_reaches_nowhere(catalog: Catalog, medium: str) -> None:
    asked: dict[str, Any] = {
        "lane_rate_gbps": [106.25, 425.0, 448.0], "modulation": ["pam4", "pam8", "nrz"], "fec": ["kp4", "none", "kp4"],
        "equaliser": ["adc_dsp", "ctle", "adc_dsp"], "lanes_count": 4.0, "length_m": 0.1, "medium": medium,
    }  # fmt: skip
    inputs = link_inputs(catalog, asked)

    found, reach = columns(link(inputs)), np.asarray(link_reach_m(inputs))

    assert found["missing_db"][0] == 0.0 < found["missing_db"][1]
    assert found["symbol_excess_ghz"][2] > 0.0
    assert 0.1 < reach[0] <= catalog.value("media", medium, "reach_limit_m")
    assert reach[1:].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("medium", ["board", "backplane", "passive_copper"])
def test_a_link_closes_up_to_its_reach_and_not_beyond(catalog: Catalog, medium: str) -> None:
    asked: dict[str, Any] = {**NEEDED, "lane_rate_gbps": 212.5, "medium": medium}
    reach = float(np.asarray(link_reach_m(link_inputs(catalog, asked))))
    assert 0.0 < reach < catalog.value("media", medium, "reach_limit_m")

    found = link(link_inputs(catalog, {**asked, "length_m": [0.99 * reach, 1.01 * reach]}))

    assert (np.asarray(found.missing_db) > 0.0).tolist() == [False, True]


def test_a_weak_code_and_a_simple_equaliser_miss_decibels_on_a_long_cable(catalog: Catalog) -> None:
    hard = {**NEEDED, "lane_rate_gbps": 212.5, "length_m": 2.0}
    weak = columns(link(link_inputs(catalog, {**hard, "fec": "none"})))
    simple = columns(link(link_inputs(catalog, {**hard, "equaliser": "ctle"})))
    strong = columns(link(link_inputs(catalog, hard)))

    assert weak["missing_db"][0] > strong["missing_db"][0]
    assert simple["missing_db"][0] > 5.0


def test_pam6_loses_less_at_its_lower_frequency_and_asks_for_more(catalog: Catalog) -> None:
    codes = ["pam4", "pam6", "pam8"]
    found = link(link_inputs(catalog, {**NEEDED, "lane_rate_gbps": 425.0, "modulation": codes})).signal

    assert np.all(np.diff(np.asarray(found.insertion_loss_db)) < 0.0)
    assert np.all(np.diff(np.asarray(found.required_snr_db)) > 0.0)


def test_a_lane_faster_than_the_budget_was_fitted_to_says_by_how_much(catalog: Catalog) -> None:
    """448 Gb/s by four levels end the fitted range; by two levels they are twice as fast as anything compared."""
    fastest_ghz = catalog.constant("channel", "surrogate", "fastest_symbol_ghz")
    columns_of_points = points()
    fitted = number(columns_of_points, "symbol_rate_gbd")[~left_out(columns_of_points)]
    assert fastest_ghz == np.max(fitted)

    found = link(link_inputs(catalog, {**NEEDED, "lane_rate_gbps": 448.0, "modulation": ["pam6", "pam4", "nrz"]}))

    assert np.asarray(found.symbol_excess_ghz).tolist() == [0.0, 0.0, 448.0 - fastest_ghz]


def test_an_io_chiplet_frees_edge_and_costs_energy_and_time(catalog: Catalog) -> None:
    found = columns(link(link_inputs(catalog, {**NEEDED, "die_to_die": ["none", "ucie_advanced"]})))

    assert found["edge_mm"][1] < 0.2 * found["edge_mm"][0]
    assert found["energy_pj_per_bit"][1] > found["energy_pj_per_bit"][0]
    assert found["base_ns"][1] > found["base_ns"][0]
    assert found["die_area_mm2"][1] < found["die_area_mm2"][0]


def test_a_choice_per_row_is_the_same_as_one_link_at_a_time(catalog: Catalog) -> None:
    codes = ["kp4", "none", "rs272_258", "kp4x2"]
    batch = columns(link(link_inputs(catalog, {**NEEDED, "fec": codes, "payload_bytes": [64.0, 256.0, 128.0, 4096.0]})))

    for place, (code, payload) in enumerate(zip(codes, [64.0, 256.0, 128.0, 4096.0], strict=True)):
        alone = columns(link(link_inputs(catalog, {**NEEDED, "fec": code, "payload_bytes": payload})))
        assert alone["goodput_gbps"][0] == pytest.approx(batch["goodput_gbps"][place], rel=1e-12)
        assert alone["missing_db"][0] == pytest.approx(batch["missing_db"][place], abs=1e-9)


def test_what_every_row_shares_is_one_number_and_gives_what_its_column_gives(catalog: Catalog) -> None:
    shared: dict[str, Any] = {
        **NEEDED, "length_m": [0.5, 1.5, 3.0], "fec": ["kp4", "none", "hamming_kp4"], "parallel_links_count": 1.0,
        "spare_lanes_count": 2.0, "retry": "selective", "offered_frac": 0.7,
    }  # fmt: skip
    spelled = {name: value if isinstance(value, list) else [value] * 3 for name, value in shared.items()}
    inputs = link_inputs(catalog, shared)

    once, each = columns(link(inputs)), columns(link(link_inputs(catalog, spelled)))

    assert (
        np.ndim(inputs.load.offered_frac) == np.ndim(inputs.serdes.lanes_count) == np.ndim(inputs.serdes.node_nm) == 0
    )
    for name, column in each.items():
        assert np.allclose(once[name], column, rtol=1e-12, atol=0.0), name


@pytest.mark.parametrize("links", [np.ones(4), np.array([1.0, 8.0, 1.0, 2.0]), 8.0])
def test_a_law_is_worked_out_where_it_is_needed_and_gives_what_it_gives_everywhere(links: Any) -> None:
    events = np.array([1e-30, 1e-3, 2.0, 50.0])

    batch = loss_events(events, links, 0.001)

    for row, count in enumerate(np.broadcast_to(links, (4,)).tolist()):
        alone = loss_events(float(events[row]), count, 0.001)
        for name in ("mean_count", "sd_count", "quantile_count"):
            assert np.broadcast_to(getattr(batch, name), (4,))[row] == getattr(alone, name), name


@pytest.mark.published(
    source="ucie-2.0",
    where="key metrics at 32 GT/s",
    says="0.6 and 0.3 pJ/b, 1792 and 10536 Gb/s per mm, below 2 ns, 25 and 2 mm",
)
def test_die_to_die_interfaces_are_links_with_the_printed_metrics(catalog: Catalog) -> None:
    names = ["ucie_standard", "ucie_advanced"]
    inputs = die_to_die_inputs(catalog, names, 32.0, 64.0, [0.025, 0.002])
    found = columns(link(inputs))

    assert found["energy_pj_per_bit"].tolist() == [0.6, 0.3]
    assert found["edge_mm"].tolist() == pytest.approx([2048.0 / 1792.0, 2048.0 / 10536.0])
    assert np.all(np.asarray(inputs.serdes.phy_ns) <= 2.0)
    assert found["missing_db"].tolist() == [0.0, 0.0]
    assert found["reach_excess_m"].tolist() == [0.0, 0.0]
    assert np.all(found["retry_frac"] > 0.999999)


def test_a_die_to_die_wire_that_is_too_long_says_by_how_much(catalog: Catalog) -> None:
    found = columns(link(die_to_die_inputs(catalog, ["ucie_advanced"], 32.0, 64.0, 0.005)))

    assert found["reach_excess_m"][0] == pytest.approx(0.003)
