"""Platforms: complete, argued, known to the catalog, and the chains give back what their makers print."""

from pathlib import Path

import numpy as np
import pytest

from codesign.candidates import platform_candidates
from codesign.catalog import Catalog
from codesign.catalog.platforms import check_platforms, load_platform, load_platforms
from codesign.chips import BASES, ChipChoice, chip_inputs
from codesign.errors import CatalogError
from codesign.memories import MemoryChoice, column, memory_constants, memory_inputs
from codesign.model.chip.chain import Chip, chip
from codesign.model.memory.chain import MemorySystem, memory_system
from codesign.parameters import BY_NAME, PARAMETERS
from codesign.resources import catalog_data

NAMES = list(load_platforms())
#: the makers round their figures to two or three digits, and memory clocks are quoted for the class
PRINTED = 0.03


def composed(catalog: Catalog, name: str) -> tuple[Chip, MemorySystem]:
    """The chains on one platform exactly as it decides."""
    row = platform_candidates([name])
    base, kinds, stacks = list(row.chip), row.words("memory_kind"), row.numbers("memory_stacks_count")
    dies = ChipChoice(
        base=base,
        memory_kind=kinds,
        memory_stacks_count=stacks,
        node=row.words("node"),
        die_to_die=row.words("die_to_die"),
        compute_scale_frac=row.numbers("compute_scale_frac"),
        compute_dies_count=row.numbers("compute_dies_count"),
        io_dies_count=row.numbers("io_dies_count"),
        shared_bytes=row.numbers("sram_mb") * 1e6,
    )
    memory = MemoryChoice(
        kind=kinds,
        stacks_count=stacks,
        pin_rate_gbps=row.numbers("memory_pin_rate_gbps"),
        height_count=row.numbers("memory_height_count"),
        write_queue_count=row.numbers("memory_write_queue_count"),
        outstanding_bytes=row.numbers("memory_outstanding_bytes"),
        reserved_frac=column(catalog, "packages_geometry", base, "memory_reserved_frac"),
    )
    return chip(chip_inputs(catalog, dies)), memory_system(memory_inputs(catalog, memory), memory_constants(catalog))


def printed(catalog: Catalog, name: str, fact: str) -> float:
    return catalog.value("accelerators", load_platform(name).accelerator, fact)


def test_the_human_baselines_of_a_study_are_a_server_a_rack_and_a_torus() -> None:
    assert [name for name, one in load_platforms().items() if one.baseline] == ["hgx_h100", "nvl72_gb200", "torus_tpu"]


@pytest.mark.parametrize("name", NAMES)
def test_a_platform_decides_every_parameter_and_no_other(name: str) -> None:
    assert set(load_platform(name).parameters) == set(BY_NAME)


@pytest.mark.parametrize("name", NAMES)
def test_every_decision_is_one_its_parameter_allows(name: str, catalog: Catalog) -> None:
    for parameter in PARAMETERS:
        assert parameter.wrong(load_platform(name).parameters[parameter.name].value, catalog) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_platform_names_an_accelerator_a_base_chip_and_sources_that_exist(name: str, catalog: Catalog) -> None:
    platform = load_platform(name)

    assert platform.accelerator in catalog.technologies("accelerators")
    assert platform.chip in BASES
    assert {one.source for one in platform.parameters.values()} <= set(catalog.sources)


@pytest.mark.parametrize("name", NAMES)
def test_printed_values_say_where_and_defaults_say_how(name: str) -> None:
    for parameter, one in load_platform(name).parameters.items():
        assert one.where if one.kind == "printed" else one.note, parameter


@pytest.mark.parametrize("name", NAMES)
def test_the_dies_of_a_platform_reach_the_printed_peaks(name: str, catalog: Catalog) -> None:
    dies, _ = composed(catalog, name)
    bf16_tflops, fp8_tflops = (printed(catalog, name, f"{dtype}_peak_tflops") for dtype in ("bf16", "fp8"))

    assert np.asarray(dies.bf16_peak_gflops) / 1e3 == pytest.approx(bf16_tflops, rel=PRINTED)
    assert np.asarray(dies.fp8_peak_gflops) / 1e3 == pytest.approx(fp8_tflops, rel=PRINTED)


@pytest.mark.parametrize("name", NAMES)
def test_the_memory_of_a_platform_reaches_the_printed_rate_and_capacity(name: str, catalog: Catalog) -> None:
    _, memory = composed(catalog, name)
    rate_tbytes_per_s = np.asarray(memory.peak_rate_gbps) / 8e3
    capacity_gb = np.asarray(memory.capacity_bytes) / 1e9

    assert rate_tbytes_per_s == pytest.approx(printed(catalog, name, "memory_rate_tbytes_per_s"), rel=PRINTED)
    assert capacity_gb == pytest.approx(printed(catalog, name, "memory_capacity_gb"), rel=PRINTED)
    assert np.all(np.asarray(memory.pin_rate_excess_ratio) == 0.0)
    assert np.all(np.asarray(memory.height_excess_ratio) == 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_a_platform_can_be_built_on_its_dies(name: str, catalog: Catalog) -> None:
    dies, _ = composed(catalog, name)

    assert np.all(np.asarray(dies.edge_excess_ratio) == 0.0)
    assert np.all(np.asarray(dies.reticle_excess_ratio) == 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_lanes_times_their_rate_is_the_printed_scale_up_rate(name: str, catalog: Catalog) -> None:
    row = platform_candidates([name]).row(0)
    rate_gbps = float(row["scale_up_lanes_count"]) * float(row["scale_up_lane_rate_gbps"])

    assert rate_gbps / 8.0 == pytest.approx(printed(catalog, name, "scale_up_rate_gbytes_per_s"))
    assert int(row["scale_up_lanes_count"]) % int(row["scale_up_port_lanes_count"]) == 0


@pytest.mark.parametrize("name", NAMES)
def test_domain_card_and_power_are_those_of_the_accelerator(name: str, catalog: Catalog) -> None:
    row = platform_candidates([name]).row(0)
    facts = catalog.technology("accelerators", load_platform(name).accelerator)

    assert row["scale_up_domain_count"] == facts["scale_up_domain_count"].value
    assert "board_power_w" not in facts or row["power_cap_w"] == facts["board_power_w"].value
    assert "nic_rate_gbps" not in facts or row["nic_rate_gbps"] == facts["nic_rate_gbps"].value


@pytest.mark.parametrize("name", NAMES)
def test_on_chip_memory_and_dies_are_those_of_the_base_chip(name: str, catalog: Catalog) -> None:
    row = platform_candidates([name]).row(0)
    base = catalog.technology("packages_geometry", load_platform(name).chip)

    assert float(row["sram_mb"]) * 1e6 == pytest.approx(base["shared_bytes"].value)
    assert row["compute_dies_count"] == base["compute_dies_count"].value
    assert row["io_dies_count"] == base["io_dies_count"].value
    assert row["power_cap_w"] == base["power_cap_w"].value


def test_wider_interfaces_between_dies_take_less_edge(catalog: Catalog) -> None:
    def edge_mm(interface: str) -> float:
        choice = ChipChoice(base=["b200"], memory_kind=["hbm3e"], memory_stacks_count=8.0, die_to_die=[interface])
        return float(np.asarray(chip(chip_inputs(catalog, choice)).die_to_die_edge_mm)[0])

    assert edge_mm("ucie_advanced") < edge_mm("ucie_standard")
    assert edge_mm("none") == pytest.approx(0.0, abs=1e-3)
    assert all(np.isfinite(edge_mm(name)) for name in catalog.technologies("die_to_die"))


def test_an_unknown_platform_is_named_with_the_nearest() -> None:
    with pytest.raises(CatalogError, match="did you mean 'hgx_h100'"):
        load_platform("hgx_h10")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (', where: "Dual-chiplet architecture"', "", "says where"),
        (', note: "no second tier"', "", "how it was reached"),
        ("    chip: h100\n", "", r"platforms.yaml:\d+: platforms.hgx_h100.chip: is missing"),
    ],
)
def test_a_decision_without_its_argument_is_refused(old: str, new: str, says: str, tmp_path: Path) -> None:
    text = (catalog_data() / "platforms.yaml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "platforms.yaml").write_text(text.replace(old, new), encoding="utf-8")

    with pytest.raises(CatalogError, match=says):
        load_platforms(tmp_path)


def test_a_platform_that_cites_an_unlisted_source_is_refused(catalog: Catalog) -> None:
    sources = {key: source for key, source in catalog.sources.items() if key != "google-tpu7x-2026"}
    check_platforms(catalog)

    with pytest.raises(CatalogError, match=r"torus_tpu.*google-tpu7x-2026"):
        check_platforms(Catalog(catalog.facts, catalog.constants, sources, catalog.digest))
