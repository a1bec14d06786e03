"""Hardware of whole machines: what is sold can be built, and no network delivers more than what is paid for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codesign.candidates import assemble_rows, platform_candidates
from codesign.catalog import Catalog
from codesign.catalog.platforms import load_platforms
from codesign.evaluation import evaluate
from codesign.hardware import hardware, parts_of, up_ports_count
from codesign.rules import physical
from codesign.space import Value, load_space

NIC_GBPS = (25, 50, 100, 150, 200, 390, 400, 410, 700, 800, 1600)


@pytest.mark.parametrize("name", list(load_platforms()))
def test_a_machine_that_is_sold_can_be_built_as_it_is(catalog: Catalog, name: str) -> None:
    machine = hardware(platform_candidates([name]), catalog, 1024.0)
    found = physical(machine, machine.nets, catalog)
    broken = {
        rule.name: (float(found.required[i, 0]), float(found.available[i, 0]))
        for i, rule in enumerate(found.rules)
        if found.excess[i, 0] > 0.0
    }
    assert not broken


@settings(max_examples=100, deadline=None)
@given(nic=st.floats(25.0, 6400.0), lane=st.floats(16.0, 448.0))
def test_a_scale_out_port_runs_at_the_rate_of_its_card(catalog: Catalog, nic: float, lane: float) -> None:
    row = assemble_rows([{"nic_rate_gbps": nic, "scale_out_lane_rate_gbps": lane}], load_space("training_dense"))
    own = parts_of(row, catalog)
    raw = float(np.asarray(own.out.coding.raw_rate_gbps).flat[0])
    assert raw == pytest.approx(nic, rel=1e-12)
    assert float(np.asarray(own.out.goodput_gbps).flat[0]) <= nic
    assert 2.0 * float(np.asarray(own.out.signal.nyquist_ghz).flat[0]) <= lane * (1.0 + 1e-12)  # no faster than decided


@pytest.mark.parametrize("lane", [50, 100, 200, 400])
def test_a_faster_card_carries_more_costs_more_and_is_never_slower(catalog: Catalog, lane: int) -> None:
    """Up to where its lanes draw so much of the package's watts that the clock falls by more than the network gains."""
    asked = load_space("training_dense")
    rows: list[dict[str, Value]] = [{"nic_rate_gbps": nic, "scale_out_lane_rate_gbps": lane} for nic in NIC_GBPS]
    found = evaluate(assemble_rows(rows, asked), asked, catalog)
    assert np.all(np.diff(np.asarray(found.hardware.own.out.goodput_gbps)) > 0.0)
    bills = [{e["item"]: e["usd_per_h"] for e in found.details(i)["bill"]} for i in range(len(rows))]
    assert np.all(np.diff([bill["nics"] for bill in bills]) > 0.0)
    assert np.all(np.diff(found.metrics.step_s) <= 1e-12)


def test_lanes_of_a_scale_up_port_are_lanes_the_accelerator_has(catalog: Catalog) -> None:
    """Lanes that fill no port are neither built nor paid; a port wider than all lanes has all of them."""
    lanes = ((36, 2), (36, 8), (4, 8), (1, 16))
    rows: list[dict[str, Value]] = [
        {"scale_up_lanes_count": n, "scale_up_port_lanes_count": port, "scale_up_lane_rate_gbps": 100}
        for n, port in lanes
    ]
    asked = assemble_rows(rows, load_space("training_dense"))
    raw = np.asarray(parts_of(asked, catalog).up.coding.raw_rate_gbps) * up_ports_count(asked)
    assert raw.tolist() == [3600.0, 3200.0, 400.0, 100.0]
