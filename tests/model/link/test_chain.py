"""The link as a whole: directions, dead knobs, limits, batches."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codesign.catalog import Catalog
from codesign.links import link_inputs
from codesign.model.link.chain import goodput_at_gbps, link, message_ns
from codesign.model.link.example import example_inputs
from codesign.model.link.inputs import LinkInputs

_spec = importlib.util.spec_from_file_location("link_support", Path(__file__).parent / "support.py")
assert _spec is not None
assert _spec.loader is not None
support: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(support)
result, changed = support.result, support.changed

#: settings in which a number that sleeps in the plain example matters
AWAKE: dict[str, dict[str, float]] = {
    "fit.crest_db": {"serdes__converter_bits_count": 5.0},
    "fit.crest_slope_ratio": {"serdes__converter_bits_count": 5.0},
    "fec.inner_correctable_count": {"medium__own_ber": 1e-3},
    "retry.timeout_ns": {"retry__go_back_flag": 0.0, "medium__own_ber": 4e-4},
    "retry.detect_ns": {"medium__own_ber": 4e-4},
    "retry.selective_flag": {"medium__own_ber": 4e-4, "retry__go_back_flag": 1.0},
    "retry.go_back_flag": {"medium__own_ber": 4e-4},
    "flow.reserve_bytes": {"flow__shared_flag": 1.0, "flow__buffer_bytes": 20000.0},
    "flow.shared_flag": {"flow__buffer_bytes": 20000.0},
    "load.parallel_links_count": {"medium__own_ber": 4e-4},
    "crossing.pj_per_bit": {"crossing__chiplet_flag": 1.0},
    "crossing.latency_ns": {"crossing__chiplet_flag": 1.0},
    "crossing.edge_gbps_per_mm": {"crossing__chiplet_flag": 1.0},
    "crossing.area_mm2_per_tbps": {"crossing__chiplet_flag": 1.0},
    "flow.ports_count": {"flow__random_frac": 0.5}, "flow.few_ratio": {"flow__random_frac": 0.5},
    "flow.ports_exponent_ratio": {"flow__random_frac": 0.5}, "flow.channels_exponent_ratio": {"flow__random_frac": 0.5},
    "fec.aligned_flag": {"medium__own_ber": 4e-4},
    "fec.hits_ratio": {"medium__own_ber": 4e-4},
    "fec.burst_row_count": {"medium__own_ber": 4e-4},
    "fec.slices_count": {"medium__own_ber": 4e-4}, "fec.correctable_count": {"medium__own_ber": 4e-4},
    "fit.converter_ratio": {"serdes__converter_bits_count": 6.0},
    "fit.forwarded_clock_ratio": {"serdes__forwarded_clock_flag": 1.0},
    "medium.reach_limit_m": {"medium__length_m": 10.0}, "medium.own_snr_db": {"medium__own_snr_db": 25.0},
    "fit.fastest_symbol_ghz": {"serdes__lane_rate_gbps": 448.0, "serdes__symbol_bits": 1.0},
    "fit.node_exponent_ratio": {"serdes__node_nm": 7.0},
}  # fmt: skip
PFC = {"protocol__credit_flag": 0.0, "protocol__pfc_flag": 1.0, "flow__buffer_bytes": 30000.0}
for _name in ("frame_bytes", "overhead_bits", "pause_bits", "interface_bits", "response_low_gbps", "response_low_bits",
              "response_high_gbps", "response_high_bits"):  # fmt: skip
    AWAKE[f"flow.{_name}"] = PFC
FLAGS = {"framed_flag", "credit_flag", "pfc_flag", "aligned_flag", "go_back_flag", "selective_flag", "shared_flag",
         "chiplet_flag", "forwarded_clock_flag", "degradable_flag"}  # fmt: skip


@pytest.mark.parametrize(("part", "field"), support.number_fields())
def test_no_number_is_dead(part: str, field: str) -> None:
    """Each input moves some result in a setting in which it may."""
    base = AWAKE.get(f"{part}.{field}", {})
    inputs = changed(example_inputs(), **base)
    value = getattr(getattr(inputs, part), field)
    other = 1.0 - value if field in FLAGS else (value * 1.3 + (0.05 if field.endswith("_frac") else 0.3))
    if field in ("encoding_frac", "level_mismatch_ratio", "propagation_prob", "control_frac"):
        other = value * 0.8
    if field in ("own_ber", "limit_ber"):
        other = 1e-4
    if field == "burst_row_count":
        inputs = changed(inputs, fec__table=support.BurstTable(np.array([[0.0] * 15, [0.2] * 15])))
        other = 1.0
    if field == "levels_count":
        other = 6.0

    before, after = link(inputs).columns(), link(changed(inputs, **{f"{part}__{field}": other})).columns()

    assert any(not np.array_equal(before[name], after[name]) for name in before)


def columns_of(count: int) -> LinkInputs:
    """Random links as columns, from bad to good."""
    generator = np.random.default_rng(7)
    spans = {
        "serdes__lane_rate_gbps": (25.0, 448.0), "serdes__lanes_count": (1.0, 16.0), "medium__length_m": (0.0, 20.0),
        "channel__cable_m": (0.0, 8.0), "flow__buffer_bytes": (0.0, 3e5), "retry__replay_bytes": (0.0, 3e5),
        "load__message_bytes": (1.0, 1e6), "load__offered_frac": (0.0, 1.2), "flow__channels_count": (1.0, 8.0),
        "serdes__taps_count": (0.0, 80.0), "medium__own_ber": (0.0, 1e-3), "load__parallel_links_count": (1.0, 64.0),
        "flow__random_frac": (0.0, 1.0), "serdes__propagation_prob": (0.0, 0.8),
    }  # fmt: skip
    columns = {name: generator.uniform(*span, count) for name, span in spans.items()}
    inputs: LinkInputs = changed(example_inputs(), **columns)
    return inputs


@pytest.mark.parametrize("count", [1, 7, 64])
def test_a_batch_of_links_is_its_rows(count: int) -> None:
    inputs = columns_of(count)

    batch = link(inputs).columns()

    for row in range(0, count, max(1, count // 9)):
        alone = link(support.picked(inputs, slice(row, row + 1))).columns()
        for name, column in batch.items():
            wanted = np.broadcast_to(np.asarray(column, dtype=float), (count,))[row : row + 1]
            assert np.array_equal(wanted, np.broadcast_to(np.asarray(alone[name], dtype=float), (1,))), name


def test_every_result_of_good_and_of_hopeless_links_is_finite() -> None:
    found = link(columns_of(2000))

    for name, column in found.columns().items():
        assert np.all(np.isfinite(np.asarray(column, dtype=float))), name
        if name not in ("snr_db", "required_snr_db", "margin_db"):
            assert np.min(column) >= 0.0, name
    assert np.max(found.missing_db) > 0.0


def test_the_goodput_is_the_product_of_the_shares() -> None:
    found = link(columns_of(100))
    move, code = found.transfer, found.coding

    product = (
        np.asarray(code.raw_rate_gbps) * code.fec_frac * move.protocol_frac * move.retry_frac * move.replay_frac
        * move.credit_frac * move.contention_frac * (1.0 - np.asarray(found.silicon.degraded_loss_frac))
    )  # fmt: skip

    assert np.allclose(found.goodput_gbps, product, rtol=1e-12)


MORE = st.floats(1.0, 4.0)
RAISES = {
    "serdes__lanes_count": "goodput_gbps", "flow__buffer_bytes": "goodput_gbps", "retry__replay_bytes": "goodput_gbps",
    "serdes__taps_count": "snr_db", "channel__crosstalk_db": "snr_db", "serdes__transmitter_snr_db": "snr_db",
    "serdes__amplitude_v": "snr_db", "serdes__sequence_gain_db": "snr_db", "medium__own_snr_db": "snr_db",
    "medium__length_m": "base_ns", "channel__cable_m": "insertion_loss_db", "channel__board_mm": "insertion_loss_db",
    "channel__package_mm": "insertion_loss_db", "fec__processing_ns": "base_ns", "fec__interleave_count": "fec_ns",
    "serdes__phy_ns": "base_ns", "protocol__endpoint_ns": "base_ns", "protocol__switch_ns": "base_ns",
    "protocol__hops_count": "base_ns", "medium__added_ns": "credit_loop_ns", "load__offered_frac": "queue_mean_ns",
    "load__batch_count": "queue_p999_ns", "load__variation_ratio": "queue_mean_ns", "load__message_bytes": "p999_ns",
    "load__parallel_links_count": "p999_ns", "medium__common_fit": "failure_fit", "medium__lane_fit": "failure_fit",
    "medium__own_usd_per_gbps": "medium_usd", "medium__lane_usd_per_m": "medium_usd", "load__repair_h":
    "degraded_loss_frac", "load__flap_ms": "degraded_loss_frac", "serdes__area_mm2": "edge_mm",
    "flow__sram_mm2_per_mb": "buffer_area_mm2", "flow__sram_w_per_mm2": "power_w", "flow__sram_pj_per_byte": "power_w",
    "medium__own_pj_per_bit": "power_w", "serdes__node_nm": "serdes_pj_per_bit",
    "flow__credit_processing_ns": "buffer_need_bytes", "flow__credit_batch_ns": "buffer_need_bytes",
    "flow__channels_count": "buffer_need_bytes", "serdes__rows_count": "goodput_gbps",
}  # fmt: skip
LOWERS = {
    "channel__cable_m": "snr_db", "channel__connectors_count": "snr_db", "serdes__noise_v2_per_ghz": "snr_db",
    "serdes__random_ui": "snr_db", "serdes__bounded_ui": "snr_db", "serdes__implementation_db": "snr_db",
    "serdes__levels_count": "snr_db", "medium__own_ber": "goodput_gbps", "protocol__header_bytes": "goodput_gbps",
    "protocol__control_frac": "goodput_gbps", "retry__detect_ns": "goodput_gbps",
    "flow__channels_count": "goodput_gbps",
    "flow__random_frac": "goodput_gbps", "medium__lane_fit": "goodput_gbps", "serdes__macro_depth_mm": "edge_mm",
    "serdes__rows_count": "edge_mm", "channel__conductor_ratio": "insertion_loss_db",
    "serdes__spare_lanes_count": "failure_fit", "fec__symbols_count": "goodput_gbps",
    "fec__data_symbols_count": "fec_ns",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(RAISES))
@settings(max_examples=25)
@given(factor=MORE)
def test_more_of_this_never_lowers_that(name: str, factor: float) -> None:
    _moves(name, RAISES[name], factor, 1.0)


@pytest.mark.parametrize("name", sorted(LOWERS))
@settings(max_examples=25)
@given(factor=MORE)
def test_more_of_this_never_raises_that(name: str, factor: float) -> None:
    _moves(name, LOWERS[name], factor, -1.0)


def _moves(name: str, output: str, factor: float, sign: float) -> None:
    part, _, field = name.partition("__")
    start = {"medium__own_ber": 3.3e-4, "flow__buffer_bytes": 9000.0, "retry__replay_bytes": 9000.0}
    start |= {"medium__own_ber": 0.0} if "snr" in output else {}
    inputs = changed(example_inputs(), **start)
    value = float(getattr(getattr(inputs, part), field)) + (0.3 if field == "random_frac" else 0.0)
    value = value + (1.0 if field in ("spare_lanes_count", "added_ns", "own_pj_per_bit", "sequence_gain_db") else 0.0)
    more = min(value * factor, 0.98) if field.endswith("_frac") else value * factor
    more = float(np.ceil(more)) if field == "spare_lanes_count" else more

    low = float(link(changed(inputs, **{name: value})).columns()[output])
    high = float(link(changed(inputs, **{name: more})).columns()[output])

    assert sign * (high - low) >= -1e-9 * abs(low)


def test_buffer_below_the_bandwidth_delay_product_costs_in_proportion_and_above_it_nothing() -> None:
    need = float(result(flow__channels_count=1.0).transfer.buffer_need_bytes)

    full, half, twice = (
        float(result(flow__channels_count=1.0, flow__buffer_bytes=share * need).transfer.credit_frac)
        for share in (1.0, 0.5, 2.0)
    )

    assert (full, twice) == pytest.approx((1.0, 1.0))
    assert half == pytest.approx(0.5)


def test_small_messages_get_less_of_the_line_and_take_less_time() -> None:
    found = result()

    assert goodput_at_gbps(64.0, found) < goodput_at_gbps(4096.0, found) <= found.goodput_gbps * 1.01
    assert message_ns(64.0, found) < message_ns(1e6, found)


def test_copper_stops_reaching_at_some_domain_size(catalog: Catalog) -> None:
    from codesign.links import rack_cable_m

    domains = np.array([8.0, 72.0, 144.0, 288.0, 576.0])
    lengths = rack_cable_m(catalog, domains)
    found = link(link_inputs(catalog, {
        "lane_rate_gbps": 212.5, "lanes_count": 4.0, "length_m": lengths, "protocol": "ualink_200g",
    }))  # fmt: skip
    reaches = (np.asarray(found.missing_db) <= 0.0) & (np.asarray(found.reach_excess_m) <= 0.0)

    assert list(reaches[:2]) == [True, True]
    assert not reaches[-1]
    assert np.all(np.diff(reaches.astype(int)) <= 0)
