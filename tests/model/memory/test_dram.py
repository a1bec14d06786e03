"""What the DRAM itself allows."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesign.catalog import Catalog
from codesign.memories import column, dram_device
from codesign.model.memory.dram import (
    DramDevice,
    activation_frac,
    all_bank_refresh_frac,
    busy_banks_count,
    command_frac,
    peak_rate_gbps,
    per_bank_refresh_frac,
)
from codesign.units import gbytes_per_s


@pytest.mark.published(source="ml-engineering-2026", where="compute/accelerator/README.md, HBM table", says="819 GB/s")
def test_hbm3_stack_peak(catalog: Catalog) -> None:
    hbm3 = catalog.technology("memory", "hbm3")

    peak = peak_rate_gbps(hbm3["pin_rate_gbps"].value, hbm3["data_pins_count"].value, 1.0)

    assert gbytes_per_s(peak) == pytest.approx(819, abs=0.5)  # the source prints whole GB/s


@pytest.mark.published(source="ml-engineering-2026", where="compute/accelerator/README.md, HBM table", says="2048 GB/s")
def test_hbm4_stack_peak(catalog: Catalog) -> None:
    hbm4 = catalog.technology("memory", "hbm4")

    peak = peak_rate_gbps(hbm4["pin_rate_gbps"].value, hbm4["data_pins_count"].value, 1.0)

    assert gbytes_per_s(peak) == pytest.approx(2048, abs=0.5)


@pytest.mark.published(source="ramulator-2", where="lpddr6.py: 32 of 36 bytes are payload", says="14.22 GB/s a channel")
def test_lpddr6_payload_rate_of_a_channel(catalog: Catalog) -> None:
    facts = catalog.technology("memory", "lpddr6")

    package = peak_rate_gbps(facts["pin_rate_gbps"].value, facts["data_pins_count"].value, facts["payload_frac"].value)

    assert gbytes_per_s(package) / facts["channels_count"].value == pytest.approx(14.22, abs=0.01)


def test_refresh_costs_nothing_when_it_never_comes_and_everything_when_it_always_does() -> None:
    assert float(all_bank_refresh_frac(350, 14, 14, 1e12)) == pytest.approx(1.0)
    assert float(all_bank_refresh_frac(350, 14, 14, 100)) == 0.0
    assert float(per_bank_refresh_frac(14, 14, 1e12)) == pytest.approx(1.0)


@given(refresh=st.floats(0, 1000), interval=st.floats(1000, 8000), more=st.floats(0, 500))
def test_a_longer_refresh_never_leaves_more(refresh: float, interval: float, more: float) -> None:
    shorter = all_bank_refresh_frac(refresh, 15, 20, interval)

    assert all_bank_refresh_frac(refresh + more, 15, 20, interval) <= shorter


def test_many_requests_reach_every_bank_and_one_reaches_one() -> None:
    assert float(busy_banks_count(32, 1e6)) == pytest.approx(32)
    assert float(busy_banks_count(32, 1)) == pytest.approx(1)


@given(banks=st.integers(1, 128), requests=st.floats(0, 500))
def test_busy_banks_never_exceed_banks_or_requests(banks: int, requests: float) -> None:
    busy = float(busy_banks_count(banks, requests))

    assert 0 <= busy <= banks + 1e-9
    assert requests < 1 or busy <= requests + 1e-9


@pytest.mark.published(
    source="ramulator-2",
    where="hbm2.py: ACT takes two row slots, PRE one, for both pseudo-channels",
    says="two bursts of two cycles for six slots: 0.333",
)
def test_hbm2_random_access_is_bound_by_its_row_command_bus(catalog: Catalog) -> None:
    device = dram_device(catalog, ["hbm2"], np.array([2.4 * 64]))

    # 2 clocks of data over (2 + 1) x 2 row slots; the clock is printed to three digits
    assert command_frac(1.0, 0.0, device) == pytest.approx(1 / 3, rel=2e-3)


def test_auto_precharge_frees_a_slot(catalog: Catalog) -> None:
    device = dram_device(catalog, ["hbm2"], np.array([2.4 * 64]))

    assert np.all(np.asarray(command_frac(1.0, 1.0, device)) > command_frac(1.0, 0.0, device))


def test_fewer_activations_lift_their_ceiling_in_proportion(catalog: Catalog) -> None:
    device = dram_device(catalog, ["hbm3"], np.array([6.4 * 32]))

    assert activation_frac(0.25, device) == pytest.approx(4 * np.asarray(activation_frac(1.0, device)))


def test_every_kind_has_every_timing(catalog: Catalog) -> None:
    kinds = list(catalog.technologies("memory"))

    device = dram_device(catalog, kinds, np.full(len(kinds), 100.0))

    for field in fields(DramDevice):
        values = np.asarray(getattr(device, field.name))
        assert np.all(np.isfinite(values)), field.name
        assert np.all(values >= 0), field.name


def test_columns_follow_the_order_of_names(catalog: Catalog) -> None:
    pins = column(catalog, "memory", ["hbm4", "hbm3", "hbm4"], "data_pins_count")

    assert pins.tolist() == [2048, 1024, 2048]
