"""The package: dies and memory stacks on a carrier, on a substrate, tested; a failure scraps all it holds."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.cost.silicon import Die, carriers_per_wafer_count, perfect_die_prob
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class PackageInputs:
    """One accelerator package: what goes in and what each step costs and loses."""

    compute_count: Numeric
    io_count: Numeric
    stacks_count: Numeric
    stack_usd: Numeric
    carrier_area_mm2: Numeric
    carrier_wafer_usd: Numeric
    carrier_radius_mm: Numeric
    carrier_scribe_mm: Numeric
    carrier_defects_per_mm2: Numeric
    carrier_clustering_count: Numeric
    bridge_area_mm2: Numeric
    bridge_usd_per_mm2: Numeric
    substrate_area_mm2: Numeric
    substrate_usd_per_mm2: Numeric
    attach_usd: Numeric
    assembly_usd: Numeric
    test_usd: Numeric
    bond_yield_frac: Numeric
    final_yield_frac: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Package:
    """One good package, by what it is made of; the parts and the scrap add up to its cost."""

    compute_usd: Numeric
    io_usd: Numeric
    stacks_usd: Numeric
    carrier_usd: Numeric
    substrate_usd: Numeric
    assembly_usd: Numeric
    test_usd: Numeric
    scrap_usd: Numeric
    total_usd: Numeric
    yield_prob: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def carrier_area_mm2(dies_area_mm2: Numeric, stacks_area_mm2: Numeric, area_ratio: Numeric) -> Numeric:
    """Area of the carrier that holds all dies and stacks side by side.

    Args:
        dies_area_mm2: All dies together. [mm2], >= 0
        stacks_area_mm2: Footprints of all memory stacks. [mm2], >= 0
        area_ratio: Carrier over what stands on it: gaps, keep-out, edge. [1], >= 1

    Returns:
        Area of the interposer, or of the redistribution layer in its place. [mm2]

    Source:
        chiplet-actuary-2022: area factor of the interposer.

    >>> round(carrier_area_mm2(814.0, 6 * 121.0, 1.1), 3)
    1694.0
    """
    return (dies_area_mm2 + stacks_area_mm2) * area_ratio


def carrier_usd(inputs: PackageInputs) -> Numeric:
    """One good interposer, or the redistribution layer and the bridges in its place.

    Without a carrier wafer (wafer price zero) only the bridges are paid; without bridges only the wafer.

    Args:
        inputs: Carrier area, wafer and defects, bridge area and price.

    Returns:
        Price of the carrier under the dies of one package. [USD]

    Source:
        chiplet-actuary-2022: cost of a 2.5D interposer, wafer over count and yield.

    >>> round(float(carrier_usd(_example())))
    450
    """
    per_wafer_count = carriers_per_wafer_count(
        inputs.carrier_area_mm2, inputs.carrier_radius_mm, inputs.carrier_scribe_mm
    )
    good = perfect_die_prob(inputs.carrier_area_mm2, inputs.carrier_defects_per_mm2, inputs.carrier_clustering_count)
    return inputs.carrier_wafer_usd / per_wafer_count / good + inputs.bridge_area_mm2 * inputs.bridge_usd_per_mm2


def attach_prob(bond_yield_frac: Numeric, bonds_count: Numeric, escape_prob: Numeric, dies_count: Numeric) -> Numeric:
    """Chance that every die and stack of a package is placed well and that every tested die is good.

    Bonds fail independently of each other.

    Args:
        bond_yield_frac: Yield of placing one die or stack. [1], 0 to 1
        bonds_count: Dies and stacks placed. [count], >= 0
        escape_prob: Chance that a tested die is bad. [1], 0 to 1
        dies_count: Dies to which that applies. [count], >= 0

    Returns:
        Yield of the filled carrier. [1]

    Source:
        chiplet-actuary-2022: y_bond to the number of dies.

    >>> attach_prob(0.5, 2.0, 0.0, 2.0)
    0.25
    """
    return bond_yield_frac**bonds_count * (1.0 - escape_prob) ** dies_count


def package(compute: Die, io: Die, inputs: PackageInputs) -> Package:
    """A package built chip-last: tested dies and stacks on a tested carrier, then substrate, assembly and final test.

    A bad bond is found at the carrier and takes the dies and stacks with it; a bad assembly takes everything. Scrap
    is what that costs beyond the parts of the one good package. No rework, and a stack that fails later is a repair.

    Args:
        compute: Tested compute die.
        io: Tested I/O die; its count may be zero.
        inputs: Counts, carrier, substrate, process and yields.

    Source:
        chiplet-actuary-2022: chip-last 2.5D cost, scrap at sunk cost.

    >>> from codesign.cost.silicon import Die
    >>> tested = Die(57.6, 0.85, 300.0, 30.0, 0.0)
    >>> round(float(package(tested, tested, _example()).total_usd))
    3081
    """
    compute_usd = inputs.compute_count * (compute.silicon_usd + compute.test_usd)
    io_usd = inputs.io_count * (io.silicon_usd + io.test_usd)
    stacks_usd = inputs.stacks_count * inputs.stack_usd
    base_usd = carrier_usd(inputs)
    bonds_count = inputs.compute_count + inputs.io_count + inputs.stacks_count
    placed = attach_prob(inputs.bond_yield_frac, bonds_count, compute.escape_prob, inputs.compute_count)
    placed = placed * (1.0 - io.escape_prob) ** inputs.io_count
    substrate_usd = inputs.substrate_area_mm2 * inputs.substrate_usd_per_mm2
    assembly_usd = inputs.assembly_usd + bonds_count * inputs.attach_usd
    on_carrier_usd = compute_usd + io_usd + stacks_usd + base_usd
    after_usd = substrate_usd + assembly_usd + inputs.test_usd
    floor = 1e-6  # a process that never works costs a fortune, not infinity
    placed = np.maximum(placed, floor)
    finished = np.maximum(inputs.final_yield_frac, floor)
    scrap_usd = on_carrier_usd * (1.0 / (placed * finished) - 1.0) + after_usd * (1.0 / finished - 1.0)
    return Package(
        compute_usd=compute_usd,
        io_usd=io_usd,
        stacks_usd=stacks_usd,
        carrier_usd=base_usd,
        substrate_usd=substrate_usd,
        assembly_usd=assembly_usd,
        test_usd=inputs.test_usd,
        scrap_usd=scrap_usd,
        total_usd=on_carrier_usd + after_usd + scrap_usd,
        yield_prob=placed * finished,
    )


def _example() -> PackageInputs:
    """A package of one die and five stacks on an interposer of two reticles, for the examples above."""
    return PackageInputs(
        compute_count=1.0, io_count=0.0, stacks_count=5.0, stack_usd=240.0,
        carrier_area_mm2=1694.0, carrier_wafer_usd=12000.0, carrier_radius_mm=145.0, carrier_scribe_mm=0.2,
        carrier_defects_per_mm2=5e-5, carrier_clustering_count=6.0, bridge_area_mm2=0.0, bridge_usd_per_mm2=0.0,
        substrate_area_mm2=6776.0, substrate_usd_per_mm2=0.005, attach_usd=0.0, assembly_usd=314.0, test_usd=600.0,
        bond_yield_frac=0.99, final_yield_frac=0.99,
    )  # fmt: skip
