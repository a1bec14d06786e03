"""From catalog names to the numbers of the memory, chip and power models. Looks up and converts; computes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from codesign.catalog import Catalog
from codesign.errors import CatalogError, nearest
from codesign.model.chip.chain import Chip, ChipInputs
from codesign.model.chip.power import Activity, PowerInputs, array_pj_per_flop
from codesign.model.memory.chain import MemoryInputs, MemorySystem
from codesign.model.memory.controller import ControllerConstants
from codesign.model.memory.dram import DramDevice, burst_ns, peak_rate_gbps
from codesign.units import Array, Numeric, bytes_from_gb

#: Fields of the memory model that the catalog prints as clock cycles.
_CYCLES = (
    "read_latency",
    "write_latency",
    "row_to_read",
    "row_to_write",
    "precharge",
    "row_open",
    "row_cycle",
    "read_to_precharge",
    "write_recovery",
    "activate_gap",
    "activate_window",
    "read_to_write",
    "write_to_read",
    "refresh",
    "refresh_interval",
    "activate_command",
    "precharge_command",
    "column_command",
)


def column(catalog: Catalog, kind: str, names: Sequence[str], fact: str) -> Array:
    """One fact of many technologies as a column; each distinct name is looked up once."""
    known = {name: catalog.value(kind, name, fact) for name in dict.fromkeys(names)}
    return np.array([known[name] for name in names], dtype=np.float64)


def timing_columns(catalog: Catalog, kinds: Sequence[str]) -> dict[str, Array]:
    """Timings in ns of some memory kinds, keyed by the field names of the memory model."""
    clock_ns = column(catalog, "memory", kinds, "clock_ns")
    out = {f"{name}_ns": column(catalog, "memory", kinds, f"{name}_cycles_count") * clock_ns for name in _CYCLES}
    out["clock_ns"] = clock_ns
    out["refresh_bank_interval_ns"] = out["refresh_interval_ns"] / column(
        catalog, "memory", kinds, "refresh_groups_count"
    )
    for name in ("banks_count", "pseudo_channels_count", "row_bursts_count", "shared_command_flag"):
        out[name] = column(catalog, "memory", kinds, name)
    return out


def dram_device(catalog: Catalog, kinds: Sequence[str], channel_rate_gbps: Array) -> DramDevice:
    """Devices of some kinds with a given payload rate of one pseudo-channel."""
    timing = timing_columns(catalog, kinds)
    nominal_gbps = peak_rate_gbps(
        column(catalog, "memory", kinds, "reference_pin_rate_gbps"),
        column(catalog, "memory", kinds, "data_pins_count"),
        column(catalog, "memory", kinds, "payload_frac"),
    ) / (column(catalog, "memory", kinds, "channels_count") * timing["pseudo_channels_count"])
    ratio = nominal_gbps / channel_rate_gbps
    for name in ("clock_ns", "activate_command_ns", "precharge_command_ns", "column_command_ns"):
        timing[name] = timing[name] * ratio
    timing["burst_ns"] = np.asarray(burst_ns(column(catalog, "memory", kinds, "burst_bytes"), channel_rate_gbps))
    return DramDevice(**{field.name: timing[field.name] for field in fields(DramDevice)})


def memory_constants(catalog: Catalog) -> ControllerConstants:
    """Fitted controller constants of this catalog."""
    names = [field.name for field in fields(ControllerConstants)]
    return ControllerConstants(**{name: catalog.constant("memory", "controller", name) for name in names})


@dataclass(frozen=True, slots=True)
class MemoryChoice:
    """What a search decides about memory, one entry or value per candidate; zero means the default of the class."""

    kind: Sequence[str]
    stacks_count: Numeric
    pin_rate_gbps: Numeric = 0.0
    height_count: Numeric = 0.0
    write_queue_count: Numeric = 0.0
    outstanding_bytes: Numeric = 0.0
    interleave_bytes: Numeric = 0.0
    path_latency_ns: Numeric = 0.0
    path_pj_per_bit: Numeric = 0.0
    per_bank_refresh_flag: Numeric = 0.0
    ecc_flag: Numeric = 1.0
    second_kind: Sequence[str] = ()
    second_modules_count: Numeric = 0.0
    second_pin_rate_gbps: Numeric = 0.0
    kv_run_bytes: Numeric = 0.0
    optimizer_read_frac: Numeric = 0.0
    activation_read_frac: Numeric = 0.0


def memory_inputs(catalog: Catalog, choice: MemoryChoice) -> MemoryInputs:
    """Numbers of the memory model for some candidates.

    Raises:
        CatalogError: a memory kind is not in the catalog.
    """
    kinds = list(choice.kind)
    timing = timing_columns(catalog, kinds)
    ecc = np.asarray(choice.ecc_flag, dtype=np.float64)
    own = {
        name: column(catalog, "memory", kinds, name)
        for name in (
            "reference_pin_rate_gbps",
            "data_pins_count",
            "payload_frac",
            "pin_rate_limit_gbps",
            "height_limit_count",
            "channels_count",
            "burst_bytes",
            "device_pj_per_bit",
            "idle_w",
            "phy_mm2",
            "edge_mm",
        )
    }
    path = {name: catalog.value("blocks", "memory_path", name) for name in ("read_queue_count", "random_run_bytes")}
    return MemoryInputs(
        stacks_count=choice.stacks_count,
        pin_rate_gbps=_or(choice.pin_rate_gbps, column(catalog, "memory", kinds, "pin_rate_gbps")),
        height_count=_or(choice.height_count, column(catalog, "memory", kinds, "height_count")),
        die_bytes=bytes_from_gb(column(catalog, "memory", kinds, "die_gb")),
        close_row_flag=0.0,
        per_bank_refresh_flag=choice.per_bank_refresh_flag,
        ecc_capacity_frac=ecc * column(catalog, "memory", kinds, "ecc_capacity_frac"),
        ecc_rate_frac=ecc * column(catalog, "memory", kinds, "ecc_rate_frac"),
        path_latency_ns=_or(choice.path_latency_ns, catalog.value("blocks", "memory_path", "path_latency_ns"))
        + column(catalog, "memory", kinds, "link_latency_ns"),
        path_pj_per_bit=_or(choice.path_pj_per_bit, catalog.value("nodes", "n4", "memory_path_pj_per_bit")),
        **_defaulted(catalog, choice),
        **{name: timing[name] for name in timing if name != "refresh_groups_count"},
        **own,
        **path,
        **_second_tier(catalog, choice),
    )


def _defaulted(catalog: Catalog, choice: MemoryChoice) -> dict[str, Numeric]:
    names = (
        "write_queue_count",
        "outstanding_bytes",
        "interleave_bytes",
        "kv_run_bytes",
        "optimizer_read_frac",
        "activation_read_frac",
    )
    return {name: _or(getattr(choice, name), catalog.value("blocks", "memory_path", name)) for name in names}


def _or(chosen: Numeric, default: Numeric) -> Array:
    """The choice where there is one, the default where it is zero."""
    value = np.asarray(chosen, dtype=np.float64)
    return np.where(value > 0.0, value, default)


def _second_tier(catalog: Catalog, choice: MemoryChoice) -> dict[str, Numeric]:
    """The second tier; without a kind it has no bytes, and a rate of zero."""
    named = list(choice.second_kind) or ["none"]
    kinds = [name if name not in ("", "none") else "ddr5" for name in named]
    there = np.array([name not in ("", "none") for name in named], dtype=np.float64)
    modules = np.asarray(choice.second_modules_count, dtype=np.float64) * there
    facts = {
        name: column(catalog, "memory", kinds, name)
        for name in ("data_pins_count", "payload_frac", "stream_frac", "device_pj_per_bit", "idle_w", "phy_mm2")
    }
    pin_gbps = _or(choice.second_pin_rate_gbps, column(catalog, "memory", kinds, "pin_rate_gbps"))
    bytes_each = bytes_from_gb(column(catalog, "memory", kinds, "die_gb")) * column(
        catalog, "memory", kinds, "height_count"
    )
    path_ns = catalog.value("blocks", "memory_path", "path_latency_ns")
    device_ns = catalog.value("blocks", "memory_path", "device_latency_ns")
    return {
        "second_bytes": modules * bytes_each * (1.0 - column(catalog, "memory", kinds, "ecc_capacity_frac")),
        "second_rate_gbps": modules * peak_rate_gbps(pin_gbps, facts["data_pins_count"], facts["payload_frac"]),
        "second_read_frac": facts["stream_frac"],
        "second_latency_ns": path_ns + device_ns + column(catalog, "memory", kinds, "link_latency_ns"),
        "second_pj_per_bit": facts["device_pj_per_bit"],
        "second_idle_w": modules * facts["idle_w"],
        "second_phy_mm2": modules * facts["phy_mm2"],
        "second_edge_mm": modules * column(catalog, "memory", kinds, "edge_mm"),
    }


#: Words of a base chip: core, compute node, I/O node, links, die-to-die class. The numbers are in the catalog.
BASES: dict[str, tuple[str, str, str, str, str]] = {
    "a100": ("core_ampere", "n7", "n7", "nvlink3", "ucie_advanced"),
    "h100": ("core_hopper", "n5", "n5", "nvlink4", "ucie_advanced"),
    "b200": ("core_blackwell", "n4", "n4", "nvlink4", "ucie_advanced"),
    "mi300x": ("core_cdna3", "n5", "n6", "infinity_fabric", "ucie_advanced"),
    "mi355x": ("core_cdna4", "n3", "n6", "infinity_fabric", "ucie_advanced"),
}
_STACKED_BASES = ("mi300x", "mi355x")


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

    def block(names: Sequence[str], fact: str) -> Array:
        return column(catalog, "blocks", names, fact)

    io_dies = np.where(np.asarray(choice.io_dies_count) < 0.0, base("io_dies_count"), choice.io_dies_count)
    stacked = np.array([name in _STACKED_BASES for name in words.base], dtype=np.float64)
    compute_dies = _or(choice.compute_dies_count, base("compute_dies_count"))
    # scaling is of the package; spreading the same cores over more dies keeps their number
    cores = base("cores_count") * base("compute_dies_count") / compute_dies * choice.compute_scale_frac
    stacks = np.asarray(choice.memory_stacks_count, dtype=np.float64)
    core_facts = {
        name: block(words.core, name)
        for name in (
            "sublanes_count",
            "macs_count",
            "fp8_ratio",
            "fp4_ratio",
            "int8_ratio",
            "integer_units_count",
            "single_units_count",
            "double_units_count",
            "control_lanes_count",
            "register_bytes",
            "local_bytes",
        )
    }
    shared_blocks = {
        name: catalog.value("blocks", "transistors", name)
        for name in (
            "double_transistors_count",
            "integer_transistors_count",
            "control_transistors_count",
            "register_transistors_count",
            "network_transistors_count",
            "local_array_frac",
            "shared_array_frac",
            "buffer_array_frac",
        )
    }
    return ChipInputs(
        compute_dies_count=compute_dies,
        io_dies_count=io_dies,
        stacked_flag=stacked,
        cores_count=cores,
        active_frac=base("active_frac"),
        clock_ghz=_or(choice.clock_ghz, base("clock_ghz")),
        shared_bytes=_or(choice.shared_bytes, base("shared_bytes")),
        buffer_bytes=choice.buffer_bytes,
        memory_phy_mm2=stacks * column(catalog, "memory", words.memory, "phy_mm2") + choice.second_phy_mm2,
        memory_edge_mm=stacks * column(catalog, "memory", words.memory, "edge_mm") + choice.second_edge_mm,
        memory_transistors_count=stacks * column(catalog, "memory", words.memory, "controller_transistors_count"),
        die_to_die_rate_gbps=_or(
            choice.die_to_die_rate_gbps, base("die_to_die_rate_gbps")
        ),
        die_to_die_density_gbps_per_mm=block(words.die_to_die, "density_gbps_per_mm"),
        die_to_die_depth_mm=block(words.die_to_die, "depth_mm"),
        **core_facts,
        **shared_blocks,
        **_node_columns(catalog, words),
        **_link_columns(catalog, choice, words),
        **_geometry(catalog, choice),
    )


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
        "serdes_rows_count": _or(
            choice.serdes_rows_count, catalog.value("packages_geometry", "die", "serdes_rows_count")
        ),
        "reticle_width_mm": catalog.value("packages_geometry", "reticle", "width_mm"),
        "reticle_height_mm": catalog.value("packages_geometry", "reticle", "height_mm"),
    }


def power_inputs(catalog: Catalog, choice: ChipChoice, chip: Chip, memory: MemorySystem) -> PowerInputs:
    """Coefficients of the power model for the chips and memories of some candidates."""
    words = _words(choice)
    macs = column(catalog, "blocks", words.core, "macs_count")
    ratio = column(catalog, "nodes", words.node, "energy_ratio")
    energy = {name: catalog.value("blocks", "energy", name) for name in catalog.technology("blocks", "energy")}
    supply = {name: catalog.value("blocks", "supply", name) for name in catalog.technology("blocks", "supply")}
    cooled = [f"cooling_{name or 'liquid'}" for name in (list(choice.cooling) or ["liquid"] * len(words.base))]
    bf16 = array_pj_per_flop(
        energy["array_data_pj_per_flop"],
        energy["array_control_pj_per_flop"],
        energy["array_control_macs_count"],
        macs,
        ratio,
    )
    return PowerInputs(
        logic_mm2=chip.silicon_mm2 - chip.local_sram_mm2 - chip.shared_sram_mm2 - chip.buffer_mm2,
        sram_area_mm2=chip.local_sram_mm2 + chip.shared_sram_mm2 + chip.buffer_mm2,
        leakage_w_per_mm2=column(catalog, "nodes", words.node, "leakage_w_per_mm2"),
        sram_leakage_w_per_mm2=column(catalog, "nodes", words.node, "sram_leakage_w_per_mm2"),
        clock_pj_per_mm2=catalog.constant("chip", "power", "clock_pj_per_mm2"),
        clock_ghz=chip.clock_ghz,
        bf16_pj_per_flop=bf16,
        fp8_pj_per_flop=bf16 * energy["fp8_energy_ratio"],
        fp4_pj_per_flop=bf16 * energy["fp4_energy_ratio"],
        int8_pj_per_flop=bf16 * energy["int8_energy_ratio"],
        sram_pj_per_bit=energy["sram_pj_per_bit"] * ratio,
        memory_pj_per_bit=memory.device_pj_per_bit,
        memory_path_pj_per_bit=memory.path_pj_per_bit,
        second_pj_per_bit=memory.second_pj_per_bit,
        memory_idle_w=memory.idle_w,
        scale_up_pj_per_bit=_or(choice.scale_up_pj_per_bit, column(catalog, "blocks", words.links, "energy_pj_per_bit")),
        scale_out_pj_per_bit=_or(choice.scale_out_pj_per_bit, catalog.value("blocks", "pcie5", "energy_pj_per_bit")),
        die_to_die_pj_per_bit=column(catalog, "blocks", words.die_to_die, "energy_pj_per_bit"),
        link_idle_w=choice.link_idle_w,
        voltage_floor_frac=supply["voltage_floor_frac"],
        voltage_slope_frac=supply["voltage_slope_frac"],
        clock_floor_frac=supply["clock_floor_frac"],
        regulator_frac=supply["regulator_frac"],
        power_cap_w=_or(choice.power_cap_w, column(catalog, "packages_geometry", words.base, "power_cap_w")),
        cooling_cap_w=column(catalog, "blocks", cooled, "cap_w"),
    )


def gemm_activity(catalog: Catalog, chip: Chip, memory: MemorySystem, link_rate_gbps: Numeric) -> Activity:
    """The load that power limits are set on: a large 16-bit GEMM with links half busy."""
    load = {n: catalog.value("blocks", "tdp_activity", n) for n in catalog.technology("blocks", "tdp_activity")}
    flops = load["compute_frac"] * chip.bf16_peak_gflops
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
            np.asarray(chip.die_to_die_edge_mm) > 0.0, load["memory_frac"] * memory.peak_rate_gbps, 0.0
        ),
    )
