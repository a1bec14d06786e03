"""Channel, protocol, retry, buffers and queues against printed numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import poisson

from codesign.catalog import Catalog
from codesign.model.link.buffer import head_of_line_frac, in_flight_bytes, pause_response_bits, pfc_headroom_bytes
from codesign.model.link.channel import line_loss_db, twinax_loss_db_per_m
from codesign.model.link.interference import (
    dispersion_ratio,
    echo_ratio,
    line_echo_ratio,
    mismatch_ratio,
    package_echo_ratio,
)
from codesign.model.link.protocol import flits_count, packed_bytes, packets_count, wire_frac
from codesign.model.link.queueing import exponential_loss_prob, mean_wait_ns, spread_ns, tail_wait_ns, window_wait_ns
from codesign.model.link.retry import go_back_frac, loss_events, mean_losses_count, selective_delay_ns
from codesign.model.link.serdes import linear_enhancement_db, noise_enhancement_db
from codesign.model.link.transceiver import transceiver_pj_per_bit

LINES = {"package_class_a": 0.153, "package_class_b": 0.181}


@pytest.mark.published(
    source="ieee-802.3dj-d3.3", where="package lines at 53.125 GHz", says="0.153 and 0.181 dB per mm"
)
@pytest.mark.parametrize("name", LINES)
def test_a_package_loses_the_printed_decibels(catalog: Catalog, name: str) -> None:
    fact = {n: catalog.value("link_defaults", name, n) for n in
            ("attenuation_per_mm", "skin_sqrt_ns_per_mm", "dielectric_ns_per_mm")}  # fmt: skip

    assert line_loss_db(53.125, 1.0, **fact) == pytest.approx(LINES[name], abs=5e-4)


@pytest.mark.published(source="twinax-26awg-blog-028", where="26 AWG", says="18 to 22 dB and 26 to 32 dB in 5 m")
def test_a_cable_loses_what_was_measured_at_both_rates(catalog: Catalog) -> None:
    low_ghz, low, high_ghz, high = (catalog.value("link_defaults", "twinax_26", n) for n in
                                    ("low_ghz", "low_db_per_m", "high_ghz", "high_db_per_m"))  # fmt: skip

    assert 5.0 * twinax_loss_db_per_m(low_ghz, low_ghz, low, high_ghz, high, 1.0) == pytest.approx(20.0)
    assert 5.0 * twinax_loss_db_per_m(high_ghz, low_ghz, low, high_ghz, high, 1.0) == pytest.approx(29.0)
    assert 7.4 < twinax_loss_db_per_m(53.125, low_ghz, low, high_ghz, high, 1.0) < 9.0


@pytest.mark.published(source="ocp-sue-1.0", where="RM104 figure 22, 3 m of twinax", says="one way 477.6 ns")
def test_the_latency_of_scale_up_ethernet_adds_up(catalog: Catalog) -> None:
    flight = 3.0 * catalog.value("media", "passive_copper", "delay_ns_per_m")
    endpoints, switch = (catalog.value("protocols", "sue", n) for n in ("endpoint_ns", "switch_ns"))
    phy_and_code = 100.0  # printed: below 100 ns for transmitter and receiver with the code

    assert endpoints + phy_and_code + 2.0 * flight + switch == pytest.approx(477.6, abs=0.05)


@pytest.mark.published(source="ualink-1.0", where="640 B flit in a 680 B codeword", says="0.941")
def test_a_ualink_flit_fills_its_codeword(catalog: Catalog) -> None:
    flit = catalog.value("protocols", "ualink_200g", "flit_bytes")

    assert flit / 680.0 == pytest.approx(640.0 / 680.0)
    assert flit <= 514.0 * 10.0 / 8.0


@pytest.mark.published(source="pcisig-pcie6-flit", where="flit layout and retry", says="236 of 256 B; 5e-6 per flit")
def test_a_pcie_flit_carries_its_share_and_retries_rarely(catalog: Catalog) -> None:
    payload, flit = (catalog.value("protocols", "pcie6", n) for n in ("flit_payload_bytes", "flit_bytes"))

    assert wire_frac(payload, 1.0, flit, 1.0, 0.0) == pytest.approx(236.0 / 256.0)
    loss = catalog.value("protocols", "pcie6", "loss_target_prob")
    assert go_back_frac(loss, 50.0) == pytest.approx(0.99975, abs=5e-6)


@pytest.mark.parametrize(
    ("name", "size", "printed"),
    [("rocev2", 256.0, 0.7574), ("rocev2", 1024.0, 0.9259), ("rocev2", 4096.0, 0.9804), ("sue", 64.0, 0.6531),
     ("sue", 256.0, 0.8828), ("sue", 1024.0, 0.9679)],
)  # fmt: skip
@pytest.mark.published(source="uec-notes", where="headers by protocol", says="82 B of RoCEv2; 34 B of SUE")
def test_headers_take_the_derived_share(catalog: Catalog, name: str, size: float, printed: float) -> None:
    header = catalog.value("protocols", name, "header_bytes")

    assert size / packed_bytes(size, packets_count(size, 4096.0), header) == pytest.approx(printed, abs=5e-5)


def test_four_lanes_of_212_5_at_300_ns_have_31_kib_in_flight() -> None:
    assert in_flight_bytes(4.0 * 212.5, 300.0) / 1024.0 == pytest.approx(31.1, abs=0.05)


@pytest.mark.published(source="pfc-headroom-article", where="400GbE, 10 m, 4.2 KB, interface left out", says="71 kB")
def test_pfc_headroom_is_the_printed_sum(catalog: Catalog) -> None:
    fact = {n: catalog.value("link_defaults", "pfc", n) for n in catalog.technology("link_defaults", "pfc")}
    answer = pause_response_bits(400.0, fact["response_low_gbps"], fact["response_low_bits"],
                                 fact["response_high_gbps"], fact["response_high_bits"])  # fmt: skip

    headroom = pfc_headroom_bytes(4200.0, 400.0, 10.0, 5.0, fact["overhead_bits"], fact["pause_bits"], 0.0, answer)

    assert headroom / 1e3 == pytest.approx(71.0, abs=0.5)


@pytest.mark.published(source="karol-1987", where="table of saturation throughput", says="0.75 at 2, 0.586 at many")
@pytest.mark.parametrize(("ports", "printed"), [(2.0, 0.75), (4.0, 0.6553), (8.0, 0.6184), (1e7, 0.5858)])
def test_input_queues_saturate_where_karol_says(catalog: Catalog, ports: float, printed: float) -> None:
    fit = {n: c.value for n, c in catalog.constants["buffers"]["head_of_line"].items()}

    assert head_of_line_frac(ports, 1.0, **fit) == pytest.approx(printed, abs=0.005)


def test_the_tail_of_exponential_service_is_exact_and_the_spread_that_of_one_size() -> None:
    mean = mean_wait_ns(0.9, 1.0, 1.0)

    assert tail_wait_ns(mean, 0.9, 0.01) == pytest.approx(44.99809670330265)
    assert spread_ns(0.5, 1.0, 0.0, 1.0) ** 2 == pytest.approx(0.5833333333)


@given(load=st.floats(0.01, 0.95), more=st.floats(1.01, 1.04), places=st.integers(1, 64))
def test_more_load_never_waits_less_and_more_places_never_lose_more(load: float, more: float, places: int) -> None:
    assert mean_wait_ns(load * more, 1.0, 0.5) >= mean_wait_ns(load, 1.0, 0.5)
    assert exponential_loss_prob(load, places + 1.0) <= exponential_loss_prob(load, float(places))
    assert window_wait_ns(load, 10.0, places + 1.0) <= window_wait_ns(load, 10.0, float(places)) + 1e-12


@given(loss=st.floats(1e-12, 0.01), more=st.floats(1.0, 20.0), flits=st.integers(1, 500), links=st.integers(1, 64))
def test_more_loss_never_delays_less(loss: float, more: float, flits: int, links: int) -> None:
    few, many = (loss_events(mean_losses_count(p, flits), links, 0.001) for p in (loss, loss * more))

    assert many.quantile_count >= few.quantile_count
    assert many.mean_count >= few.mean_count * (1.0 - 1e-12)
    assert selective_delay_ns(loss * more, flits, 1.0, 50.0, links, 0.001) >= selective_delay_ns(
        loss, flits, 1.0, 50.0, links, 0.001
    )


def test_tiny_losses_keep_their_digits_in_the_mean_number_of_events() -> None:
    assert loss_events(1e-40, 8.0, 0.001).mean_count == pytest.approx(8e-40)


@given(events=st.floats(0.0, 400.0), links=st.integers(1, 100))
def test_the_quantile_of_losses_bounds_the_tail(events: float, links: int) -> None:
    quantile = float(loss_events(events, links, 0.001).quantile_count)
    exact = float(poisson.ppf(0.999 ** (1.0 / links), events)) if events > 0 else 0.0

    assert quantile == pytest.approx(exact, abs=max(1.0, 0.12 * exact))


@given(loss_db=st.floats(0.0, 60.0), more=st.floats(0.01, 10.0), share=st.floats(0.0, 1.0))
def test_feedback_enhances_noise_less_and_more_loss_more(loss_db: float, more: float, share: float) -> None:
    assert noise_enhancement_db(loss_db, share, 1.0) <= linear_enhancement_db(loss_db) + 1e-9
    assert noise_enhancement_db(loss_db + more, share, 1.0) >= noise_enhancement_db(loss_db, share, 1.0)


@given(taps=st.floats(0.0, 100.0), more=st.floats(0.0, 50.0))
def test_more_taps_leave_less_interference(taps: float, more: float) -> None:
    few, many = (dispersion_ratio(25.0, 15.0, n, 20.0, 0.02, 1e-3, 2.0, 6.0) for n in (taps, taps + more))
    assert many <= few
    short, long = (line_echo_ratio(2.0, 10.0, n, 3.0, 0.1, 0.5) for n in (taps, taps + more))
    assert long <= short
    short, long = (package_echo_ratio(4.0, 3.0, 20.0, n, 0.05, 0.3, 1.5) for n in (taps, taps + more))
    assert long <= short


@given(loss_db=st.floats(0.0, 50.0), more=st.floats(0.0, 50.0), delay_ui=st.floats(0.0, 200.0))
def test_an_echo_is_weaker_behind_more_loss_and_stronger_with_more_steps(
    loss_db: float, more: float, delay_ui: float
) -> None:
    assert line_echo_ratio(2.0, loss_db + more, 8.0, 3.0, 0.1, 0.5) <= line_echo_ratio(2.0, loss_db, 8.0, 3.0, 0.1, 0.5)
    near, far = (package_echo_ratio(4.0, x, delay_ui, 8.0, 0.05, 0.3, 1.5) for x in (loss_db, loss_db + more))
    assert far <= near
    early, late = (package_echo_ratio(4.0, loss_db, x, 8.0, 0.05, 0.3, 1.5) for x in (delay_ui, delay_ui + more))
    assert late >= early
    none, some = mismatch_ratio(0.0, 0.1, 2.0, 20.0), mismatch_ratio(1.0 + more, 0.1, 2.0, 20.0)
    assert none == 1.0 < some


@given(count=st.floats(0.0, 4.0), reflection=st.floats(0.0, 0.3), more=st.floats(1.0, 4.0))
def test_plugs_reflect_more_at_higher_frequency(count: float, reflection: float, more: float) -> None:
    assert mismatch_ratio(count, reflection, more, 20.0) >= mismatch_ratio(count, reflection, 1.0, 20.0)
    assert echo_ratio(more, 2.0, 1e-3, 0.9) >= echo_ratio(1.0, 2.0, 1e-3, 0.9)


def test_a_long_line_has_no_far_echo_and_a_package_without_length_none() -> None:
    assert line_echo_ratio(1.0, 300.0, 0.0, 3.0, 0.1, 0.5) == pytest.approx(1.0)
    assert package_echo_ratio(4.0, 0.0, 0.0, 8.0, 0.05, 0.3, 1.5) == 0.0
    assert package_echo_ratio(4.0, 0.0, 0.0, 0.0, 0.05, 0.3, 1.5) == 0.0


@given(loss_db=st.floats(0.0, 50.0), node=st.floats(2.0, 28.0), more=st.floats(1.0, 2.0))
def test_energy_grows_with_loss_and_node(loss_db: float, node: float, more: float) -> None:
    few = transceiver_pj_per_bit(loss_db, node, 0.0, 0.0, 0.2, 0.75, 0.5, 1.5, 0.7)

    assert transceiver_pj_per_bit(loss_db * more, node, 0.0, 0.0, 0.2, 0.75, 0.5, 1.5, 0.7) >= few
    assert transceiver_pj_per_bit(loss_db, node * more, 0.0, 0.0, 0.2, 0.75, 0.5, 1.5, 0.7) >= few
    assert transceiver_pj_per_bit(loss_db, node, 1.0, 0.0, 0.2, 0.75, 0.5, 1.5, 0.7) > few


def test_a_flit_is_padded() -> None:
    assert flits_count(1.0, 236.0) == 1.0
    assert np.all(np.diff(flits_count(np.arange(1.0, 1000.0), 236.0)) >= 0.0)
