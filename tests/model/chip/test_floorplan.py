"""Edges: what memory, SerDes and die-to-die links ask for, and what a die offers."""

import numpy as np
import pytest

from codesign.catalog import Catalog
from codesign.chips import ChipChoice, chip_inputs
from codesign.model.chip.chain import Chip, chip
from codesign.model.chip.floorplan import die_height_mm, serdes_edge_mm, usable_edge_mm


def build(catalog: Catalog, **choice: object) -> Chip:
    wanted = {"base": ["h100"], "memory_kind": ["hbm3e"], "memory_stacks_count": 6.0} | choice
    return chip(chip_inputs(catalog, ChipChoice(**wanted)))  # type: ignore[arg-type]


@pytest.mark.published(
    source="opentallas-2026", where="25.6 x 31.8 mm die", says="114.8 mm of perimeter, corners of 2 to 3 mm"
)
def test_perimeter_of_a_reticle_die() -> None:
    area, height = 25.6 * 31.8, 31.8

    assert usable_edge_mm(area, height, 0.0) == pytest.approx(114.8)
    assert usable_edge_mm(area, height, 1.25) == pytest.approx(114.8 - 4 * 2.5)


def test_a_die_is_no_taller_than_the_field() -> None:
    assert float(die_height_mm(2000.0, 1.5, 33.0)) == 33.0


def test_rows_of_macros_share_the_edge() -> None:
    assert float(serdes_edge_mm(30.0, 3.0)) == 10.0
    assert float(serdes_edge_mm(30.0, 0.5)) == 30.0


def test_stacks_and_serdes_compete_for_the_same_edge(catalog: Catalog) -> None:
    tight = build(catalog, memory_stacks_count=8.0, link_edge_mm=20.0)
    fewer_stacks = build(catalog, memory_stacks_count=6.0, link_edge_mm=20.0)
    fewer_lanes = build(catalog, memory_stacks_count=8.0, link_edge_mm=0.0)

    assert np.all(np.asarray(tight.edge_excess_ratio) > 0)
    assert np.all(np.asarray(fewer_stacks.edge_excess_ratio) < tight.edge_excess_ratio)
    assert np.all(np.asarray(fewer_lanes.edge_excess_ratio) < tight.edge_excess_ratio)


def test_every_published_part_fits_its_edges(catalog: Catalog) -> None:
    dies = build(
        catalog,
        base=["a100", "h100", "b200", "mi300x"],
        memory_kind=["hbm2e", "hbm3", "hbm3e", "hbm3"],
        memory_stacks_count=np.array([6.0, 6.0, 8.0, 8.0]),
    )

    assert np.asarray(dies.edge_excess_ratio).tolist() == [0.0] * 4


def test_io_dies_take_the_phys_off_the_compute_die(catalog: Catalog) -> None:
    whole = build(catalog)
    split = build(catalog, io_dies_count=2.0, die_to_die_rate_gbps=60000.0)

    assert np.all(np.asarray(split.compute_die_mm2) < whole.compute_die_mm2)
    assert np.all(np.asarray(split.edge_required_mm) < whole.edge_required_mm)


def test_a_finer_die_to_die_class_needs_less_edge(catalog: Catalog) -> None:
    fine, plain = (build(catalog, base=["b200"], die_to_die=[name]) for name in ("ucie_advanced", "ucie_standard"))

    assert np.all(np.asarray(fine.die_to_die_edge_mm) < plain.die_to_die_edge_mm)
    assert np.all(np.asarray(fine.die_to_die_mm2) < plain.die_to_die_mm2)


def test_a_custom_base_die_frees_edge(catalog: Catalog) -> None:
    plain, custom = (build(catalog, memory_kind=[kind]) for kind in ("hbm4", "hbm4_custom_base"))

    assert np.all(np.asarray(custom.memory_edge_mm) < plain.memory_edge_mm)
