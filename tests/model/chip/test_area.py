"""Area by block against an independent cost model and published dies."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesign.cases.fit_chip import AREA_PARTS, area_error
from codesign.cases.published_parts import published_parts
from codesign.catalog import Catalog, load_catalog
from codesign.chips import ChipChoice, chip_inputs
from codesign.model.chip.chain import Chip, ChipInputs, chip
from codesign.model.chip.compute import base_die_mm2, peak_gflops

KIB, MIB = 1024.0, 1024.0**2
SCALING = ("compute_scale_frac", "shared_bytes", "buffer_bytes")


def artifact(catalog: Catalog, **changes: float) -> ChipInputs:
    """The GA100 configuration of the artifact, which has no host port, no rest and no narrow formats."""
    plain = chip_inputs(catalog, ChipChoice(base=["a100"], memory_kind=["hbm2e"], memory_stacks_count=6.0))
    bare = {
        "cores_count": 128.0,
        "shared_bytes": 48 * MIB,
        "host_phy_mm2": 0.0,
        "host_transistors_count": 0.0,
        "rest_frac": 0.0,
    }
    return replace(plain, **(bare | changes))


@pytest.mark.published(source="llmcompass-2024", where="ae/expected_results figure 6, GA100", says="826.8 mm2")
def test_the_ga100_like_die_of_the_artifact(catalog: Catalog) -> None:
    # register file and array efficiency are rounded to three digits in the catalog
    assert chip(artifact(catalog)).compute_die_mm2 == pytest.approx(826.8, rel=1e-3)


@pytest.mark.published(source="llmcompass-2024", where="ae/expected_results figure 10, latency", says="477.9 mm2")
def test_the_latency_design_of_the_artifact(catalog: Catalog) -> None:
    inputs = artifact(catalog, cores_count=64.0, shared_bytes=24 * MIB)

    assert chip(inputs).compute_die_mm2 == pytest.approx(477.9, rel=1e-3)


@pytest.mark.published(source="llmcompass-2024", where="ae/expected_results figure 12, throughput design", says="786.6")
def test_the_throughput_design_of_the_artifact(catalog: Catalog) -> None:
    lanes = 256.0
    inputs = artifact(
        catalog,
        cores_count=64.0,
        macs_count=1024.0,
        local_bytes=1024 * KIB,  # its 768 KiB are built of two whole units of 512 KiB
        local_array_frac=0.602,
        memory_phy_mm2=lanes * catalog.value("blocks", "pcie5", "phy_mm2"),
        memory_transistors_count=lanes * catalog.value("blocks", "pcie5", "link_transistors_count"),
    )

    assert chip(inputs).compute_die_mm2 == pytest.approx(786.6, rel=1e-3)


@pytest.mark.published(source="llmcompass-2024", where="ae/expected_results figure 6, Aldebaran", says="666.2 mm2")
def test_the_mi210_of_the_artifact(catalog: Catalog) -> None:
    n6 = catalog.technology("nodes", "n6")
    inputs = artifact(
        catalog,
        cores_count=112.0,
        single_units_count=0.0,
        double_units_count=16.0,
        control_lanes_count=16.0,
        register_transistors_count=catalog.fact("blocks", "transistors", "register_transistors_count").high,
        local_bytes=80 * KIB,
        local_array_frac=0.704,
        shared_bytes=8 * MIB,
        compute_density_mbtransistors_per_mm2=n6["density_mbtransistors_per_mm2"].value,
        compute_cache_bitcell_um2=n6["cache_bitcell_um2"].value,
        memory_phy_mm2=8 * 10.45,
        memory_transistors_count=8 * 552743000.0,
        link_phy_mm2=8 * catalog.value("blocks", "infinity_fabric", "phy_mm2"),
        link_transistors_count=8 * catalog.value("blocks", "infinity_fabric", "link_transistors_count"),
    )

    assert chip(inputs).compute_die_mm2 == pytest.approx(666.2, rel=2e-3)


@pytest.mark.published(source="ga100-die-2020", where="GA100 826 mm2, GH100 814 mm2", says="826 and 814 mm2")
def test_published_dies_are_met_within_ten_percent(catalog: Catalog) -> None:
    assert np.abs(area_error(catalog)) == pytest.approx(0.0, abs=0.10), AREA_PARTS


@pytest.mark.published(source="amd-mi300-2023", where="eight compute dies on four I/O dies", says="370 mm2 an I/O die")
def test_the_mi300x_base_die_is_met_within_ten_percent(catalog: Catalog) -> None:
    choice, _ = published_parts(catalog, ["mi300x"])
    printed = catalog.value("packages_geometry", "mi300x", "published_io_die_mm2")

    assert chip(chip_inputs(catalog, choice)).io_die_mm2 == pytest.approx(printed, rel=0.10)


@pytest.mark.published(source="ml-engineering-2026", where="compute/accelerator/README.md", says="312 Tflop/s")
def test_peak_of_an_a100() -> None:
    assert peak_gflops(108, 1.0, 4, 256, 1.0, 1.41) == pytest.approx(312e3, rel=1e-3)


def build(catalog: Catalog, **choice: object) -> Chip:
    wanted = {"base": ["h100"], "memory_kind": ["hbm3"], "memory_stacks_count": 6.0} | choice
    return chip(chip_inputs(catalog, ChipChoice(**wanted)))  # type: ignore[arg-type]


def test_blocks_sum_to_the_silicon(catalog: Catalog) -> None:
    for bases in (["h100"], ["b200"], ["mi300x"]):
        dies = build(catalog, base=bases)
        blocks = sum(np.asarray(getattr(dies, f.name)) for f in fields(dies) if f.name in BLOCKS)
        assert blocks == pytest.approx(np.asarray(dies.silicon_mm2), rel=1e-12)
        assert np.all(np.asarray(dies.rest_mm2) >= 0)


BLOCKS = {
    "arrays_mm2", "vector_mm2", "control_mm2", "registers_mm2", "local_sram_mm2", "network_mm2", "shared_sram_mm2",
    "buffer_mm2", "memory_phy_mm2", "memory_controller_mm2", "link_phy_mm2", "link_controller_mm2", "host_mm2",
    "die_to_die_mm2", "rest_mm2",
}  # fmt: skip


@given(name=st.sampled_from(SCALING), low=st.floats(0.2, 1.0), factor=st.floats(1.0, 3.0))
def test_more_on_the_die_never_makes_it_smaller(name: str, low: float, factor: float) -> None:
    catalog = load_catalog()
    scale = {"compute_scale_frac": 1.0, "shared_bytes": 60 * MIB, "buffer_bytes": 10 * MIB}[name]

    less, more = (build(catalog, **{name: low * f * scale}) for f in (1.0, factor))

    assert np.all(np.asarray(more.silicon_mm2) >= less.silicon_mm2)
    assert np.all(np.asarray(more.bf16_peak_gflops) >= less.bf16_peak_gflops)


def test_a_denser_node_shrinks_logic_but_not_phys(catalog: Catalog) -> None:
    old, new = build(catalog, node=["n5"], io_node=["n5"]), build(catalog, node=["n3"], io_node=["n3"])

    assert np.all(np.asarray(new.control_mm2) < old.control_mm2)
    assert np.array_equal(np.asarray(new.memory_phy_mm2), np.asarray(old.memory_phy_mm2))


def test_the_reticle_binds_with_a_grade(catalog: Catalog) -> None:
    grades = [float(np.squeeze(build(catalog, compute_scale_frac=f).reticle_excess_ratio)) for f in (0.8, 1.2, 1.6)]

    assert grades[0] == 0.0 < grades[1] < grades[2]


def test_splitting_a_chip_keeps_its_peak_and_relieves_the_reticle(catalog: Catalog) -> None:
    one = build(catalog, compute_scale_frac=1.6)
    two = build(catalog, compute_scale_frac=1.6, compute_dies_count=2.0, die_to_die_rate_gbps=80000.0)

    assert two.bf16_peak_gflops == pytest.approx(np.asarray(one.bf16_peak_gflops))
    assert np.all(np.asarray(two.compute_die_mm2) < one.compute_die_mm2)
    assert np.all(np.asarray(two.die_to_die_mm2) > 0)


def test_a_stacked_base_die_holds_shadow_and_ring() -> None:
    assert float(base_die_mm2(100.0, 225.0, 2.0, 1.0)) == pytest.approx(19.0**2)
    assert float(base_die_mm2(100.0, 225.0, 2.0, 0.0)) == 100.0


@pytest.mark.parametrize("count", [1, 7, 64])
def test_a_batch_of_chips_is_its_rows(count: int, catalog: Catalog) -> None:
    generator = np.random.default_rng(2)
    bases = list(generator.choice(["a100", "h100", "b200", "mi300x"], count))
    kinds = list(generator.choice(["hbm3", "hbm4"], count))
    scale, stacks = generator.uniform(0.3, 1.5, count), generator.integers(1, 12, count).astype(float)

    def of(rows: slice) -> Chip:
        return build(
            catalog,
            base=bases[rows],
            memory_kind=kinds[rows],
            memory_stacks_count=stacks[rows],
            compute_scale_frac=scale[rows],
        )

    batch = of(slice(None))
    for row in range(count):
        alone = of(slice(row, row + 1))
        for field in fields(batch):
            whole = np.broadcast_to(np.atleast_1d(getattr(batch, field.name)), (count,))
            assert np.array_equal(whole[row : row + 1], np.atleast_1d(getattr(alone, field.name))), field.name
            assert np.all(np.isfinite(whole)), field.name
