"""The dies of one package: area by block, edges, peaks."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.chip.compute import (
    base_die_mm2,
    fpu_transistors_count,
    logic_mm2,
    peak_gflops,
    sram_mm2,
)
from codesign.model.chip.floorplan import (
    die_height_mm,
    die_to_die_edge_mm,
    edge_excess_ratio,
    reticle_excess_ratio,
    serdes_edge_mm,
    usable_edge_mm,
)
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class ChipInputs:
    """Everything the chip chain reads. Memory, link and host entries are totals of the package."""

    # dies
    compute_dies_count: Numeric
    io_dies_count: Numeric  # 0: memory and links sit on the compute dies
    stacked_flag: Numeric  # compute dies stand on the I/O dies
    rest_frac: Numeric  # share of a die that belongs to no block named here
    # one core
    cores_count: Numeric  # of one compute die, spares included
    active_frac: Numeric
    sublanes_count: Numeric
    macs_count: Numeric
    fp8_ratio: Numeric
    fp4_ratio: Numeric
    int8_ratio: Numeric
    format_ratio: Numeric  # area of each narrower format that doubles the rate, over the 16-bit array
    integer_units_count: Numeric  # of one sublane, as the next two
    single_units_count: Numeric
    double_units_count: Numeric
    control_lanes_count: Numeric
    register_bytes: Numeric  # of one sublane
    local_bytes: Numeric  # SRAM of one core
    clock_ghz: Numeric
    # SRAM shared by the package
    shared_bytes: Numeric
    buffer_bytes: Numeric  # of links and switches on the package
    local_array_frac: Numeric
    shared_array_frac: Numeric
    buffer_array_frac: Numeric
    # nodes
    compute_density_mbtransistors_per_mm2: Numeric
    compute_cache_bitcell_um2: Numeric  # cell with its share of tags and network, for caches
    compute_bitcell_um2: Numeric  # bare cell, for plain buffers
    io_density_mbtransistors_per_mm2: Numeric
    io_cache_bitcell_um2: Numeric
    io_bitcell_um2: Numeric
    # transistors of building blocks
    double_transistors_count: Numeric
    integer_transistors_count: Numeric
    control_transistors_count: Numeric  # of one lane
    register_transistors_count: Numeric  # of one bit
    network_transistors_count: Numeric  # of one core
    # interfaces
    memory_phy_mm2: Numeric
    memory_edge_mm: Numeric
    memory_transistors_count: Numeric
    link_phy_mm2: Numeric
    link_edge_mm: Numeric  # all lanes side by side
    link_transistors_count: Numeric
    host_phy_mm2: Numeric
    host_transistors_count: Numeric
    host_edge_mm: Numeric
    die_to_die_rate_gbps: Numeric  # each die to its neighbours, both directions
    die_to_die_density_gbps_per_mm: Numeric
    die_to_die_depth_mm: Numeric
    # geometry
    serdes_rows_count: Numeric
    aspect_ratio: Numeric
    corner_mm: Numeric
    reticle_width_mm: Numeric
    reticle_height_mm: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Chip:
    """Areas of the whole package by block, of one die of each sort, edges of the die that carries the PHYs, peaks."""

    arrays_mm2: Numeric
    vector_mm2: Numeric
    control_mm2: Numeric
    registers_mm2: Numeric
    local_sram_mm2: Numeric
    network_mm2: Numeric
    shared_sram_mm2: Numeric
    buffer_mm2: Numeric
    memory_phy_mm2: Numeric
    memory_controller_mm2: Numeric
    link_phy_mm2: Numeric
    link_controller_mm2: Numeric
    host_mm2: Numeric
    die_to_die_mm2: Numeric
    rest_mm2: Numeric
    silicon_mm2: Numeric
    compute_die_mm2: Numeric
    io_die_mm2: Numeric
    cores_die_frac: Numeric  # share of a compute die that is cores: what harvesting can give up
    die_height_mm: Numeric
    die_width_mm: Numeric
    memory_edge_mm: Numeric
    link_edge_mm: Numeric
    host_edge_mm: Numeric
    die_to_die_edge_mm: Numeric
    edge_required_mm: Numeric
    edge_available_mm: Numeric
    edge_excess_ratio: Numeric
    reticle_required_mm2: Numeric
    reticle_available_mm2: Numeric
    reticle_excess_ratio: Numeric
    clock_ghz: Numeric
    bf16_peak_gflops: Numeric
    fp8_peak_gflops: Numeric
    fp4_peak_gflops: Numeric
    int8_peak_gflops: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def chip(inputs: ChipInputs) -> Chip:
    """Compose the dies of one package.

    Blocks are sized from transistor counts, SRAM and interface macros; PHYs do not shrink with the node. Without I/O
    dies the compute dies share memory and links evenly; with them the I/O dies do, and compute dies keep cores and
    their die-to-die link. Designs beyond edge or reticle get a graded excess.

    Args:
        inputs: Cores, SRAM, nodes, interfaces, geometry.

    Returns:
        Areas, edges and peaks.
    """
    core = _core_areas(inputs)
    shared = _shared_areas(inputs)
    dies = _die_areas(inputs, core, shared)
    edges = _edges(inputs, dies)
    sums = {**core, **shared}
    return Chip(
        **sums,
        **dies,
        **edges,
        reticle_required_mm2=np.maximum(dies["compute_die_mm2"], dies["io_die_mm2"]),
        reticle_available_mm2=inputs.reticle_width_mm * inputs.reticle_height_mm,
        reticle_excess_ratio=reticle_excess_ratio(
            np.maximum(dies["compute_die_mm2"], dies["io_die_mm2"]),
            inputs.reticle_width_mm * inputs.reticle_height_mm,
        ),
        clock_ghz=inputs.clock_ghz,
        bf16_peak_gflops=_peak_gflops(inputs, 1.0),
        fp8_peak_gflops=_peak_gflops(inputs, inputs.fp8_ratio),
        fp4_peak_gflops=_peak_gflops(inputs, inputs.fp4_ratio),
        int8_peak_gflops=_peak_gflops(inputs, inputs.int8_ratio),
    )


def _peak_gflops(i: ChipInputs, rate_ratio: Numeric) -> Numeric:
    cores = i.compute_dies_count * i.cores_count
    return peak_gflops(cores, i.active_frac, i.sublanes_count, i.macs_count, rate_ratio, i.clock_ghz)


def _core_areas(i: ChipInputs) -> dict[str, Numeric]:
    """Blocks of all cores on all compute dies."""
    density = i.compute_density_mbtransistors_per_mm2
    cores = i.compute_dies_count * i.cores_count
    half = fpu_transistors_count(i.double_transistors_count, 10.0)
    single = fpu_transistors_count(i.double_transistors_count, 23.0)
    doublings = np.log2(np.maximum(np.maximum(i.fp8_ratio, i.fp4_ratio), 1.0))
    array = i.macs_count * half * (1.0 + i.format_ratio * doublings)
    vector = (
        i.integer_units_count * i.integer_transistors_count
        + i.single_units_count * single
        + i.double_units_count * i.double_transistors_count
    )
    control = i.control_lanes_count * i.control_transistors_count
    register = 8.0 * i.register_bytes * i.register_transistors_count

    def of_cores(transistors: Numeric) -> Numeric:
        return cores * logic_mm2(i.sublanes_count * transistors, density)

    return {
        "arrays_mm2": of_cores(array),
        "vector_mm2": of_cores(vector),
        "control_mm2": of_cores(control),
        "registers_mm2": of_cores(register),
        "local_sram_mm2": cores * sram_mm2(8.0 * i.local_bytes, i.compute_cache_bitcell_um2, i.local_array_frac),
        "network_mm2": cores * logic_mm2(i.network_transistors_count, density),
    }


def _shared_areas(i: ChipInputs) -> dict[str, Numeric]:
    """Blocks shared by the package, on the node of the die that holds them."""
    apart = i.io_dies_count > 0.0
    density = np.where(apart, i.io_density_mbtransistors_per_mm2, i.compute_density_mbtransistors_per_mm2)
    cache_um2 = np.where(apart, i.io_cache_bitcell_um2, i.compute_cache_bitcell_um2)
    cell_um2 = np.where(apart, i.io_bitcell_um2, i.compute_bitcell_um2)
    dies = i.compute_dies_count + i.io_dies_count
    edge_mm = die_to_die_edge_mm(i.die_to_die_rate_gbps, i.die_to_die_density_gbps_per_mm)
    linked = np.where(dies > 1.0, dies, 0.0)
    return {
        "shared_sram_mm2": sram_mm2(8.0 * i.shared_bytes, cache_um2, i.shared_array_frac),
        "buffer_mm2": sram_mm2(8.0 * i.buffer_bytes, cell_um2, i.buffer_array_frac),
        "memory_phy_mm2": i.memory_phy_mm2 + 0.0 * density,
        "memory_controller_mm2": logic_mm2(i.memory_transistors_count, density),
        "link_phy_mm2": i.link_phy_mm2 + 0.0 * density,
        "link_controller_mm2": logic_mm2(i.link_transistors_count, density),
        "host_mm2": i.host_phy_mm2 + logic_mm2(i.host_transistors_count, density),
        "die_to_die_mm2": linked * edge_mm * i.die_to_die_depth_mm,
    }


def _die_areas(i: ChipInputs, core: dict[str, Numeric], shared: dict[str, Numeric]) -> dict[str, Numeric]:
    """Area of one compute die and one I/O die, and what they leave unnamed."""
    apart = i.io_dies_count > 0.0
    io_dies = np.maximum(i.io_dies_count, 1.0)
    dies = i.compute_dies_count + i.io_dies_count
    cores_mm2 = (
        core["arrays_mm2"]
        + core["vector_mm2"]
        + core["control_mm2"]
        + core["registers_mm2"]
        + core["local_sram_mm2"]
        + core["network_mm2"]
    )
    outside_mm2 = (
        shared["memory_phy_mm2"]
        + shared["memory_controller_mm2"]
        + shared["link_phy_mm2"]
        + shared["link_controller_mm2"]
        + shared["host_mm2"]
    )
    uncore_mm2 = shared["shared_sram_mm2"] + shared["buffer_mm2"] + outside_mm2
    joint_mm2 = shared["die_to_die_mm2"] / dies
    full = 1.0 - i.rest_frac
    own_mm2 = cores_mm2 + np.where(apart, 0.0, uncore_mm2)
    compute_mm2 = (own_mm2 / i.compute_dies_count + joint_mm2) / full
    carried_mm2 = compute_mm2 * i.compute_dies_count / io_dies
    content_mm2 = (uncore_mm2 / io_dies + joint_mm2) / full
    io_mm2 = np.where(apart, base_die_mm2(content_mm2, carried_mm2, i.die_to_die_depth_mm, i.stacked_flag), 0.0)
    silicon_mm2 = i.compute_dies_count * compute_mm2 + i.io_dies_count * io_mm2
    return {
        "compute_die_mm2": compute_mm2,
        "io_die_mm2": io_mm2,
        "silicon_mm2": silicon_mm2,
        "rest_mm2": silicon_mm2 - cores_mm2 - uncore_mm2 - shared["die_to_die_mm2"],
        "cores_die_frac": cores_mm2 / i.compute_dies_count / compute_mm2,
    }


def _edges(i: ChipInputs, dies: dict[str, Numeric]) -> dict[str, Numeric]:
    """Edge demand and supply of the die that carries the PHYs; demands are of one such die."""
    apart = i.io_dies_count > 0.0
    carriers = np.where(apart, i.io_dies_count, i.compute_dies_count)
    area_mm2 = np.where(apart, dies["io_die_mm2"], dies["compute_die_mm2"])
    height_mm = np.maximum(die_height_mm(area_mm2, i.aspect_ratio, i.reticle_height_mm), 1e-3)
    joint_mm = die_to_die_edge_mm(i.die_to_die_rate_gbps, i.die_to_die_density_gbps_per_mm)
    joint_mm = np.where(i.compute_dies_count + i.io_dies_count > 1.0, joint_mm, 0.0)
    memory_mm = i.memory_edge_mm / carriers
    link_mm = serdes_edge_mm(i.link_edge_mm, i.serdes_rows_count) / carriers
    host_mm = serdes_edge_mm(i.host_edge_mm, i.serdes_rows_count) / carriers
    required_mm = memory_mm + link_mm + host_mm + joint_mm
    # a die too small for any macro still gives a finite excess
    available_mm = np.maximum(usable_edge_mm(area_mm2, height_mm, i.corner_mm), 1e-3)
    return {
        "die_height_mm": height_mm,
        "die_width_mm": area_mm2 / height_mm,
        "memory_edge_mm": memory_mm,
        "link_edge_mm": link_mm,
        "host_edge_mm": host_mm,
        "die_to_die_edge_mm": joint_mm,
        "edge_required_mm": required_mm,
        "edge_available_mm": available_mm,
        "edge_excess_ratio": edge_excess_ratio(required_mm, available_mm),
    }
