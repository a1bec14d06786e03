"""From catalog names to the numbers of the chip and power models. Looks up and converts; computes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from codesign.catalog import Catalog
from codesign.errors import CatalogError, nearest
from codesign.memories import chosen_or, column
from codesign.model.chip.chain import Chip, ChipInputs
from codesign.model.chip.energy import array_pj_per_flop
from codesign.model.chip.power import Activity, PowerInputs
from codesign.model.memory.chain import MemorySystem
from codesign.units import Array, Numeric

#: Words of a base chip: core, compute node, I/O node, links, die-to-die class. The numbers are in the catalog.
BASES: dict[str, tuple[str, str, str, str, str]] = {
    "a100": ("core_ampere", "n7", "n7", "nvlink3", "ucie_advanced"),
    "h100": ("core_hopper", "n5", "n5", "nvlink4", "ucie_advanced"),
    "b200": ("core_blackwell", "n4", "n4", "nvlink4", "ucie_advanced"),
    "gb200": ("core_blackwell", "n4", "n4", "nvlink4", "ucie_advanced"),
    "mi300x": ("core_cdna3", "n5", "n6", "infinity_fabric", "ucie_advanced"),
    "mi355x": ("core_cdna4", "n3", "n6", "infinity_fabric", "ucie_advanced"),
    "ironwood": ("core_systolic", "n3", "n3", "nvlink4", "ucie_advanced"),
}
_STACKED_BASES = ("mi300x", "mi355x")
#: facts of a core, and of the blocks every chip shares (blocks.yaml)
_CORE = (
    "sublanes_count", "macs_count", "fp8_ratio", "fp4_ratio", "int8_ratio", "integer_units_count",
    "single_units_count", "double_units_count", "control_lanes_count", "register_bytes", "local_bytes",
    "network_transistors_count",
)  # fmt: skip
_BLOCKS = (
    "double_transistors_count", "integer_transistors_count", "control_transistors_count",
    "register_transistors_count", "local_array_frac", "shared_array_frac", "buffer_array_frac",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChipChoice:
    """What a search decides about the dies; an empty name or zero means what the base chip has.

    Link area, edge and power come from the link model as plain numbers; left at zero they are those of the base.
    """

    base: Sequence[str]
    memory_kind: Sequence[str]
    memory_stacks_count: Numeric
    node: Sequence[str] = ()
    io_node: Sequence[str] = ()
    core: Sequence[str] = ()
    die_to_die: Sequence[str] = ()
    cooling: Sequence[str] = ()
    compute_scale_frac: Numeric = 1.0
    compute_dies_count: Numeric = 0.0
    io_dies_count: Numeric = -1.0  # negative: as the base
    shared_bytes: Numeric = 0.0
    buffer_bytes: Numeric = 0.0
    clock_ghz: Numeric = 0.0
    die_to_die_rate_gbps: Numeric = 0.0
    serdes_rows_count: Numeric = 0.0
    link_mm2: Numeric = -1.0  # negative: as the base
    link_edge_mm: Numeric = -1.0
    link_idle_w: Numeric = 0.0
    scale_up_pj_per_bit: Numeric = 0.0
    scale_out_pj_per_bit: Numeric = 0.0
    power_cap_w: Numeric = 0.0
    second_phy_mm2: Numeric = 0.0
    second_edge_mm: Numeric = 0.0


@dataclass(frozen=True, slots=True)
class _Words:
    """Names of one batch after defaults."""

    base: list[str]
    node: list[str]
    io_node: list[str]
    core: list[str]
    links: list[str]
    die_to_die: list[str]
    memory: list[str]


def _words(choice: ChipChoice) -> _Words:
    bases = [name.lower() for name in choice.base]
    unknown = next((name for name in bases if name not in BASES), None)
    if unknown is not None:
        raise CatalogError(f"chips: no base chip {unknown!r}{nearest(unknown, BASES)}")

    def pick(chosen: Sequence[str], place: int) -> list[str]:
        named = list(chosen) or [""] * len(bases)
        return [name or BASES[base][place] for name, base in zip(named, bases, strict=True)]

    return _Words(
        base=bases,
        core=pick(choice.core, 0),
        node=pick(choice.node, 1),
        io_node=pick(choice.io_node, 2),
        links=pick((), 3),
        die_to_die=pick(choice.die_to_die, 4),
        memory=list(choice.memory_kind),
    )


def chip_inputs(catalog: Catalog, choice: ChipChoice) -> ChipInputs:
    """Numbers of the chip model for some candidates.

    Raises:
        CatalogError: a base chip, node, core or memory kind is not in the catalog.
    """
    words = _words(choice)

    def base(fact: str) -> Array:
        return column(catalog, "packages_geometry", words.base, fact)

    io_dies = np.where(np.asarray(choice.io_dies_count) < 0.0, base("io_dies_count"), choice.io_dies_count)
    stacked = np.array([name in _STACKED_BASES for name in words.base], dtype=np.float64)
    compute_dies = chosen_or(choice.compute_dies_count, base("compute_dies_count"))
    # scaling is of the package; spreading the same cores over more dies keeps their number
    cores = base("cores_count") * base("compute_dies_count") / compute_dies * choice.compute_scale_frac
    stacks = np.asarray(choice.memory_stacks_count, dtype=np.float64)
    return ChipInputs(
        compute_dies_count=compute_dies,
        io_dies_count=io_dies,
        stacked_flag=stacked,
        format_ratio=catalog.constant("chip", "area", "format_ratio"),
        cores_count=cores,
        active_frac=base("active_frac"),
        clock_ghz=chosen_or(choice.clock_ghz, base("clock_ghz")),
        shared_bytes=chosen_or(choice.shared_bytes, base("shared_bytes")),
        buffer_bytes=choice.buffer_bytes,
        memory_phy_mm2=stacks * column(catalog, "memory", words.memory, "phy_mm2") + choice.second_phy_mm2,
        memory_edge_mm=stacks * column(catalog, "memory", words.memory, "edge_mm") + choice.second_edge_mm,
        memory_transistors_count=stacks * column(catalog, "memory", words.memory, "controller_transistors_count"),
        die_to_die_rate_gbps=chosen_or(choice.die_to_die_rate_gbps, base("die_to_die_rate_gbps")),
        **_die_to_die(catalog, words.die_to_die),
        **{name: column(catalog, "blocks", words.core, name) for name in _CORE},
        **{name: catalog.value("blocks", "transistors", name) for name in _BLOCKS},
        **_node_columns(catalog, words),
        **_link_columns(catalog, choice, words),
        **_geometry(catalog, choice),
    )


def _die_to_die(catalog: Catalog, names: Sequence[str]) -> dict[str, Array]:
    """Density of an interface along the die edge, and how far its modules reach inwards."""
    density = column(catalog, "die_to_die", names, "edge_gbps_per_mm")
    modules_mm2 = column(catalog, "die_to_die", names, "module_mm2")
    module_mm = column(catalog, "die_to_die", names, "module_gbps") / density
    return {"die_to_die_density_gbps_per_mm": density, "die_to_die_depth_mm": modules_mm2 / module_mm}


def _node_columns(catalog: Catalog, words: _Words) -> dict[str, Array]:
    out = {}
    for part, names in (("compute", words.node), ("io", words.io_node)):
        density = column(catalog, "nodes", names, "density_mbtransistors_per_mm2")
        out[f"{part}_density_mbtransistors_per_mm2"] = density
        out[f"{part}_cache_bitcell_um2"] = column(catalog, "nodes", names, "cache_bitcell_um2")
        out[f"{part}_bitcell_um2"] = column(catalog, "nodes", names, "bitcell_um2")
    return out


def _link_columns(catalog: Catalog, choice: ChipChoice, words: _Words) -> dict[str, Numeric]:
    """SerDes of the link model where given, else the links of the base chip; the host port is always PCIe."""
    count = column(catalog, "packages_geometry", words.base, "links_count")
    phy_mm2 = count * column(catalog, "blocks", words.links, "phy_mm2")
    transistors = count * column(catalog, "blocks", words.links, "link_transistors_count")
    depth_mm = catalog.value("blocks", "pcie5", "phy_mm2") / catalog.value("blocks", "pcie5", "edge_mm")
    given = np.asarray(choice.link_mm2, dtype=np.float64) >= 0.0
    edge_given = np.asarray(choice.link_edge_mm, dtype=np.float64) >= 0.0
    lanes = catalog.value("blocks", "pcie5", "lanes_count")
    return {
        "link_phy_mm2": np.where(given, choice.link_mm2, phy_mm2),
        "link_transistors_count": np.where(given, 0.0, transistors),
        "link_edge_mm": np.where(edge_given, choice.link_edge_mm, phy_mm2 / depth_mm),
        "host_phy_mm2": lanes * catalog.value("blocks", "pcie5", "phy_mm2"),
        "host_transistors_count": lanes * catalog.value("blocks", "pcie5", "link_transistors_count"),
        "host_edge_mm": lanes * catalog.value("blocks", "pcie5", "edge_mm"),
    }


def _geometry(catalog: Catalog, choice: ChipChoice) -> dict[str, Numeric]:
    die = {name: catalog.value("packages_geometry", "die", name) for name in ("corner_mm", "aspect_ratio", "rest_frac")}
    return {
        **die,
        "serdes_rows_count": chosen_or(
            choice.serdes_rows_count, catalog.value("packages_geometry", "die", "serdes_rows_count")
        ),
        "reticle_width_mm": catalog.value("packages_geometry", "reticle", "width_mm"),
        "reticle_height_mm": catalog.value("packages_geometry", "reticle", "height_mm"),
    }


def power_inputs(catalog: Catalog, choice: ChipChoice, dies: Chip, memory: MemorySystem) -> PowerInputs:
    """Coefficients of the power model for the chips and memories of some candidates."""
    words = _words(choice)
    ratio = column(catalog, "nodes", words.node, "energy_ratio")
    energy = {name: catalog.value("blocks", "energy", name) for name in catalog.technology("blocks", "energy")}
    supply = {name: catalog.value("blocks", "supply", name) for name in catalog.technology("blocks", "supply")}
    cooled = [f"cooling_{name or 'liquid'}" for name in (list(choice.cooling) or ["liquid"] * len(words.base))]
    bf16 = _array_pj_per_flop(energy, column(catalog, "blocks", words.core, "macs_count"), ratio)
    return PowerInputs(
        logic_mm2=dies.silicon_mm2 - dies.local_sram_mm2 - dies.shared_sram_mm2 - dies.buffer_mm2,
        sram_area_mm2=dies.local_sram_mm2 + dies.shared_sram_mm2 + dies.buffer_mm2,
        leakage_w_per_mm2=column(catalog, "nodes", words.node, "leakage_w_per_mm2"),
        sram_leakage_w_per_mm2=column(catalog, "nodes", words.node, "sram_leakage_w_per_mm2"),
        clock_pj_per_mm2=catalog.constant("chip", "power", "clock_pj_per_mm2"),
        clock_ghz=dies.clock_ghz,
        bf16_pj_per_flop=bf16,
        fp8_pj_per_flop=bf16 * energy["fp8_energy_ratio"],
        fp4_pj_per_flop=bf16 * energy["fp4_energy_ratio"],
        int8_pj_per_flop=bf16 * energy["int8_energy_ratio"],
        sram_pj_per_bit=energy["sram_pj_per_bit"] * ratio,
        memory_pj_per_bit=memory.device_pj_per_bit,
        memory_path_pj_per_bit=memory.path_pj_per_bit,
        second_pj_per_bit=memory.second_pj_per_bit,
        memory_idle_w=memory.idle_w,
        scale_up_pj_per_bit=chosen_or(
            choice.scale_up_pj_per_bit, column(catalog, "blocks", words.links, "energy_pj_per_bit")
        ),
        scale_out_pj_per_bit=chosen_or(
            choice.scale_out_pj_per_bit, catalog.value("blocks", "pcie5", "energy_pj_per_bit")
        ),
        die_to_die_pj_per_bit=column(catalog, "die_to_die", words.die_to_die, "energy_pj_per_bit"),
        link_idle_w=choice.link_idle_w,
        voltage_floor_frac=supply["voltage_floor_frac"],
        voltage_slope_frac=supply["voltage_slope_frac"],
        clock_floor_frac=supply["clock_floor_frac"],
        regulator_frac=supply["regulator_frac"],
        power_cap_w=chosen_or(choice.power_cap_w, column(catalog, "packages_geometry", words.base, "power_cap_w")),
        cooling_cap_w=column(catalog, "blocks", cooled, "cap_w"),
    )


def _array_pj_per_flop(energy: Mapping[str, float], macs_count: Array, node_ratio: Array) -> Numeric:
    """Energy of a 16-bit operation in the matrix units of some cores."""
    data, control = energy["array_data_pj_per_flop"], energy["array_control_pj_per_flop"]
    return array_pj_per_flop(data, control, energy["array_control_macs_count"], macs_count, node_ratio)


def gemm_activity(catalog: Catalog, dies: Chip, memory: MemorySystem, link_rate_gbps: Numeric) -> Activity:
    """The load that power limits are set on: a large 16-bit GEMM with links half busy."""
    load = {n: catalog.value("blocks", "tdp_activity", n) for n in catalog.technology("blocks", "tdp_activity")}
    flops = load["compute_frac"] * dies.bf16_peak_gflops
    return Activity(
        bf16_gflops=flops,
        fp8_gflops=0.0,
        fp4_gflops=0.0,
        int8_gflops=0.0,
        sram_rate_gbps=load["sram_bits_per_flop_ratio"] * flops,
        memory_rate_gbps=load["memory_frac"] * memory.peak_rate_gbps,
        second_rate_gbps=0.0,
        scale_up_rate_gbps=load["link_frac"] * np.asarray(link_rate_gbps),
        scale_out_rate_gbps=0.0,
        die_to_die_rate_gbps=np.where(
            np.asarray(dies.die_to_die_edge_mm) > 0.0, load["memory_frac"] * memory.peak_rate_gbps, 0.0
        ),
    )
