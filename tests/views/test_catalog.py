"""What `catalog check`, `list` and `show` say."""

import pytest

from codesign.catalog.models import load_models
from codesign.catalog.platforms import load_platforms
from codesign.errors import CatalogError
from codesign.parameters import PARAMETERS
from codesign.views.catalog import census, entries, entry


def test_a_platform_shows_what_it_starts_from_and_every_decision_in_order() -> None:
    rows = entry("nvl72_gb200")

    assert [row["fact"] for row in rows] == ["accelerator", "chip", *(one.name for one in PARAMETERS)]
    assert [row["value"] for row in rows[:2]] == ["gb200", "gb200"]
    assert all(row["source"] for row in rows)


def test_a_decision_shows_value_with_unit_and_whether_it_is_printed() -> None:
    rows = {row["fact"]: row for row in entry("nvl72_gb200")}

    assert rows["scale_up_lane_rate_gbps"]["value"] == "200 Gb/s"
    assert rows["scale_up_lane_rate_gbps"]["how"] == "printed"
    assert "network/README.md" in rows["scale_up_lane_rate_gbps"]["source"]
    assert rows["scale_up_fec"]["how"] == "default"
    assert rows["scale_up_fec"]["note"] == load_platforms()["nvl72_gb200"].parameters["scale_up_fec"].note


def test_a_name_of_an_accelerator_and_its_base_chip_shows_both() -> None:
    assert {row["kind"] for row in entry("mi300x")} == {"accelerators", "packages_geometry", "parts"}


def test_a_model_shows_what_its_record_says_and_no_default() -> None:
    rows = {row["fact"]: row for row in entry("DeepSeek-V3")}

    assert rows["layers"]["value"] == "61"
    assert rows["mla.kv_lora"]["value"] == "512"
    assert rows["experts.experts"]["value"] == "256"
    assert "window" not in rows
    assert "maxtext-2025" in rows["layers"]["source"]


def test_a_scenario_shows_range_and_how_it_was_reached() -> None:
    rows = {row["fact"]: row for row in entry("owner")}

    assert rows["interest_frac"]["kind"] == "scenarios"
    assert rows["interest_frac"]["range"] == "0.05 to 0.1"
    assert rows["interest_frac"]["how"] == "estimate"


def test_lists_hold_platforms_models_and_scenarios() -> None:
    found = entries(None)

    assert found["platforms"] == list(load_platforms())
    assert found["models"] == list(load_models())
    assert {"owner", "market"} <= set(found["scenarios"])
    assert entries("platforms") == {"platforms": found["platforms"]}


def test_the_census_counts_every_decision() -> None:
    assert census()["platforms"] == (len(load_platforms()), len(load_platforms()) * len(PARAMETERS))


@pytest.mark.parametrize(
    ("wrong", "right"), [("nvl27_gb200", "nvl72_gb200"), ("DeepSeek-V4", "DeepSeek-V"), ("hbm5", "hbm")]
)
def test_an_unknown_entry_is_named_with_the_nearest(wrong: str, right: str) -> None:
    with pytest.raises(CatalogError, match=right):
        entry(wrong)


def test_an_unknown_kind_is_named_with_the_nearest() -> None:
    with pytest.raises(CatalogError, match="platforms"):
        entries("platfroms")
