"""Compute arrays of a chip: what they peak at, and how much silicon each block takes."""

import numpy as np

from codesign.units import Numeric


def peak_gflops(
    cores_count: Numeric,
    active_frac: Numeric,
    sublanes_count: Numeric,
    macs_count: Numeric,
    rate_ratio: Numeric,
    clock_ghz: Numeric,
) -> Numeric:
    """Dense peak of all matrix arrays: every multiply-accumulate unit busy in every cycle.

    Args:
        cores_count: Cores on all dies, harvested ones included. [count], >= 0
        active_frac: Share of cores that are sold as working. [1], 0 to 1
        sublanes_count: Matrix units of a core. [count], >= 1
        macs_count: 16-bit multiply-accumulates a unit starts per cycle. [count], >= 1
        rate_ratio: Rate of the precision over the 16-bit rate. [1], >= 0
        clock_ghz: Clock of the arrays. [GHz], > 0

    Returns:
        Peak. [Gflop/s]

    Source:
        definition: two operations for each multiply-accumulate

    >>> peak_gflops(100, 1.0, 4, 250, 1.0, 1.0)
    200000.0
    """
    return 2.0 * cores_count * active_frac * sublanes_count * macs_count * rate_ratio * clock_ghz


def logic_mm2(transistors_count: Numeric, density_mbtransistors_per_mm2: Numeric) -> Numeric:
    """Area of synthesised logic at the density its node reaches.

    Args:
        transistors_count: Transistors. [count], >= 0
        density_mbtransistors_per_mm2: Reached logic density of the node. [Mtransistor/mm2], > 0

    Returns:
        Area. [mm2]

    Source:
        llmcompass-2024: cost model, logic from transistor counts

    >>> logic_mm2(transistors_count=1e8, density_mbtransistors_per_mm2=100.0)
    1.0
    """
    return transistors_count / 1e6 / density_mbtransistors_per_mm2


def fpu_transistors_count(double_transistors_count: Numeric, mantissa_count: Numeric) -> Numeric:
    """Transistors of a floating-point unit, from those of a 64-bit one: multipliers grow with the mantissa squared.

    Args:
        double_transistors_count: Transistors of a 64-bit unit. [count], > 0
        mantissa_count: Mantissa bits of the narrower format: 10 for fp16, 23 for fp32, 52 for fp64. [count], > 0

    Returns:
        Transistors of the unit. [count]

    Source:
        llmcompass-2024: cost model, units scaled from an open 64-bit design

    >>> round(fpu_transistors_count(double_transistors_count=2704.0, mantissa_count=10))
    100
    """
    return double_transistors_count * (mantissa_count / 52.0) ** 2


def sram_mm2(cells_count: Numeric, bitcell_um2: Numeric, array_frac: Numeric) -> Numeric:
    """Area of SRAM: bit cells over the share of the array that is cells.

    Args:
        cells_count: Bits held, check bits included. [count], >= 0
        bitcell_um2: Area of one cell with what the source counts to it. [um2], > 0
        array_frac: Cells over array: decoders, sense amplifiers and tags are the rest. [1], 0 to 1

    Returns:
        Area. [mm2]

    Source:
        llmcompass-2024: cost model, cache area

    >>> sram_mm2(cells_count=8e6, bitcell_um2=0.05, array_frac=0.5)
    0.8
    """
    return cells_count * bitcell_um2 * 1e-6 / array_frac


def base_die_mm2(content_mm2: Numeric, carried_mm2: Numeric, ring_mm: Numeric, stacked_flag: Numeric) -> Numeric:
    """Area of an I/O die; one that carries compute dies must hold their shadow and a ring of PHYs around it.

    PHYs need a die edge and bumps of their own, so they cannot stand under a compute die; the shadow is taken as
    square.

    Args:
        content_mm2: Area of its own blocks. [mm2], >= 0
        carried_mm2: Area of the compute dies stacked on it. [mm2], >= 0
        ring_mm: Depth of the PHY macros. [mm], >= 0
        stacked_flag: 1 where compute dies are stacked on it, 0 where they lie beside it. [1], 0 or 1

    Returns:
        Area of the die. [mm2]

    Source:
        amd-mi300-2023: compute dies stacked on active I/O dies that hold cache, PHYs and links

    >>> float(base_die_mm2(content_mm2=200.0, carried_mm2=225.0, ring_mm=2.0, stacked_flag=1.0))
    361.0
    """
    return np.maximum(content_mm2, stacked_flag * (np.sqrt(carried_mm2) + 2.0 * ring_mm) ** 2)
