"""Topologies: counts printed in text books and data sheets, limits, directions."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesign.cases.network_flows import flows
from codesign.catalog import Catalog
from codesign.model.fabric.topology import Topology, TopologyInputs, topology
from codesign.model.fabric.traffic import (
    dragonfly_global_load_ratio,
    mesh_load_ratio,
    mesh_transpose_load_ratio,
    random_cross_frac,
    shift_cross_frac,
    spine_stretch_ratio,
    torus_load_ratio,
    torus_transpose_load_ratio,
)


def made(**changes: float) -> Topology:
    plain = dict(
        endpoints_count=1024.0, ports_count=1.0, radix_count=64.0, tiers_count=2.0, oversubscription_ratio=1.0,
        mesh_flag=0.0, torus_dimensions_count=0.0, dragonfly_flag=0.0, rail_only_flag=0.0, spray_frac=1.0,
    )  # fmt: skip
    return topology(TopologyInputs(**(plain | changes)))


@pytest.mark.published(
    source="dally-towles-2004", where="folded Clos", says="R^2/2 endpoints need 3R/2 switches, R^3/4 need 5R^2/4"
)
@pytest.mark.parametrize(("tiers", "endpoints", "switches"), [(2.0, 2048.0, 96.0), (3.0, 65536.0, 5120.0)])
def test_a_full_fat_tree_has_the_textbook_counts(tiers: float, endpoints: float, switches: float) -> None:
    found = made(endpoints_count=endpoints, tiers_count=tiers)

    assert float(found.capacity_count) == endpoints
    assert float(found.radix_excess_ratio) == 0.0
    assert endpoints * float(found.switches_count) == pytest.approx(switches)
    # every tier has as many links as there are endpoints
    assert float(found.access_cables_count + found.trunk_cables_count) == tiers
    assert float(found.worst_hops_count) == 2.0 * tiers - 1.0


@pytest.mark.published(
    source="ml-engineering-2026", where="network chapter, NVSwitch", says="GB200 NVL72: 72 GPUs, 18 links each"
)
def test_planes_of_single_switches_join_a_rack() -> None:
    found = made(endpoints_count=72.0, ports_count=18.0, radix_count=72.0, tiers_count=1.0)

    assert 72.0 * float(found.switches_count) == pytest.approx(18.0)
    assert 72.0 * float(found.access_cables_count) == 1296.0
    assert float(found.hops_count) == 1.0
    assert float(found.radix_excess_ratio) == 0.0


def test_a_full_mesh_has_half_of_n_times_n_minus_one_wires_and_no_switch() -> None:
    found = made(endpoints_count=8.0, ports_count=7.0, mesh_flag=1.0)

    assert 8.0 * float(found.access_cables_count) == 28.0
    assert float(found.switches_count) == 0.0
    assert float(found.radix_excess_ratio) == 0.0
    assert float(made(endpoints_count=9.0, ports_count=7.0, mesh_flag=1.0).radix_excess_ratio) > 0.0


def test_a_torus_has_n_wires_per_endpoint_and_n_k_over_4_hops() -> None:
    found = made(endpoints_count=4096.0, ports_count=6.0, torus_dimensions_count=3.0)

    assert float(found.access_cables_count) == 3.0
    assert float(found.hops_count) == pytest.approx(12.0)
    assert float(found.all_to_all_ratio) == pytest.approx(12.0)


@pytest.mark.published(source="kim-2008", where="section 3", says="balanced a = 2p = 2h; N = a p (a h + 1)")
def test_a_balanced_dragonfly_reaches_the_published_size() -> None:
    found = made(radix_count=63.0, dragonfly_flag=1.0)

    assert float(found.capacity_count) == 32 * 16 * (32 * 16 + 1)
    assert float(found.switches_count) == 1.0 / 16.0
    assert float(found.permutation_ratio) == 2.0


def test_oversubscription_saves_switches_and_costs_bisection() -> None:
    full, thin = made(), made(oversubscription_ratio=4.0)

    assert float(thin.switches_count) < float(full.switches_count)
    assert float(thin.bisection_frac) == 0.25
    assert float(thin.all_to_all_ratio) == 4.0
    assert float(thin.neighbour_ratio) == 1.0


def test_rails_without_a_spine_need_no_trunks() -> None:
    assert float(made(rail_only_flag=1.0).trunk_cables_count) == 0.0


@given(endpoints=st.floats(2, 1e6), radix=st.sampled_from([16.0, 64.0, 512.0]), tiers=st.sampled_from([1.0, 2.0, 3.0]))
def test_more_endpoints_never_violate_less_and_all_is_finite(endpoints: float, radix: float, tiers: float) -> None:
    few = made(endpoints_count=endpoints, radix_count=radix, tiers_count=tiers)
    many = made(endpoints_count=2.0 * endpoints, radix_count=radix, tiers_count=tiers)

    assert float(many.radix_excess_ratio) >= float(few.radix_excess_ratio) >= 0.0
    assert all(np.isfinite(float(getattr(many, f.name))) for f in fields(many))


def test_kinds_mix_in_one_batch_and_a_batch_equals_its_rows(catalog: Catalog) -> None:
    names = ("mesh_flag", "torus_dimensions_count", "dragonfly_flag", "rail_only_flag", "spray_frac")
    kinds = [kind for kind in catalog.technologies("topologies") if kind != "default_nic"]
    facts = {n: np.array([catalog.value("topologies", kind, n) for kind in kinds]) for n in names}

    batch = made(**facts)  # type: ignore[arg-type]

    for i in range(len(kinds)):
        row = made(**{n: facts[n][i] for n in names})
        for f in fields(batch):
            assert np.broadcast_to(getattr(batch, f.name), (len(kinds),))[i] == getattr(row, f.name), (kinds[i], f.name)


@pytest.mark.parametrize("side", [4, 8])
def test_channel_loads_agree_with_an_enumeration_of_all_packets(side: int) -> None:
    def busiest(kind: str, traffic: str) -> float:
        return flows(kind, side, 2, 1, side * side, traffic).busiest

    assert mesh_load_ratio(float(side)) == pytest.approx(busiest("mesh", "uniform"))
    assert torus_load_ratio(float(side)) == pytest.approx(busiest("torus", "uniform"))
    assert mesh_transpose_load_ratio(float(side)) == pytest.approx(busiest("mesh", "transpose"))
    assert torus_transpose_load_ratio(float(side)) == pytest.approx(busiest("torus", "transpose"))


def test_a_dragonfly_s_worst_pattern_leaves_one_channel_to_a_group() -> None:
    found = flows("dragonflynew", 2, 1, 1, 72, "bad_dragon").busiest

    assert float(dragonfly_global_load_ratio(8.0, 9.0, 0.0)) == pytest.approx(found)
    assert float(dragonfly_global_load_ratio(8.0, 9.0, 1.0)) < 1.0


def test_crossing_shares_of_patterns() -> None:
    assert float(shift_cross_frac(0.0, 16.0)) == 0.0
    assert float(shift_cross_frac(64.0, 16.0)) == 1.0
    assert float(random_cross_frac(16.0, 16.0)) == 0.0
    assert float(spine_stretch_ratio(0.1, 4.0)) == 1.0
