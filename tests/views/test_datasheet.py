"""The data sheet of a link: complete, sourced, and swept."""

import numpy as np
import pytest

from codesign.catalog import Catalog
from codesign.errors import CatalogError
from codesign.links import link_inputs
from codesign.model.link.chain import link
from codesign.units import unit_of
from codesign.views.datasheet import datasheet, fact_rows, sweep

DESIGN: dict[str, str | float] = {
    "lane_rate_gbps": 212.5, "lanes_count": 4.0, "length_m": 1.5, "protocol": "ualink_200g",
}  # fmt: skip


def test_every_row_has_a_unit_a_number_and_a_source(catalog: Catalog) -> None:
    inputs = link_inputs(catalog, DESIGN)
    rows = datasheet(link(inputs), inputs, catalog)

    assert len(rows) > 40
    assert all(np.isfinite(row.value) and row.unit == unit_of(row.name) and row.source for row in rows)
    by_name = {row.name: row.value for row in rows}
    assert by_name["serdes_high_pj_per_bit"] / by_name["serdes_low_pj_per_bit"] <= 3.0
    assert by_name["raw_rate_gbps"] == 850.0


def test_the_facts_behind_the_words_carry_their_sources(catalog: Catalog) -> None:
    rows = fact_rows(catalog, DESIGN)

    assert {row.group.split()[0] for row in rows} == {"fec", "medium", "protocol", "equaliser", "die_to_die"}
    assert all(row.source.split(":")[0] in catalog.sources for row in rows)


def test_a_sweep_of_the_buffer_shows_the_bandwidth_delay_product(catalog: Catalog) -> None:
    found = sweep(catalog, DESIGN, "receive_buffer_bytes", [4096.0, 16384.0, 262144.0, 1e6], ["credit_frac"])

    low, middle, high, higher = found["credit_frac"]
    assert middle == pytest.approx(4.0 * low)
    assert high == higher == 1.0


def test_a_sweep_over_names_works_and_a_wrong_one_is_refused(catalog: Catalog) -> None:
    media = ["passive_copper", "pluggable_optics"]
    assert sweep(catalog, DESIGN, "medium", media, ["power_w"])["power_w"][1] > 10.0
    with pytest.raises(CatalogError, match="no choice"):
        sweep(catalog, DESIGN, "colour", [1.0], ["power_w"])
