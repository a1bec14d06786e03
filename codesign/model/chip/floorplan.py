"""Edges of a die: what memory, die-to-die links and SerDes ask for, and what the perimeter offers."""

import numpy as np

from codesign.units import Numeric


def die_height_mm(area_mm2: Numeric, aspect_ratio: Numeric, reticle_height_mm: Numeric) -> Numeric:
    """Long side of a die of given area, no longer than the reticle's.

    Args:
        area_mm2: Die area. [mm2], >= 0
        aspect_ratio: Long over short side where the reticle leaves the choice. [1], >= 1
        reticle_height_mm: Long side of the exposure field. [mm], > 0

    Returns:
        Long side. [mm]

    Source:
        definition

    >>> float(die_height_mm(area_mm2=400.0, aspect_ratio=1.0, reticle_height_mm=33.0))
    20.0
    """
    return np.minimum(np.sqrt(area_mm2 * aspect_ratio), reticle_height_mm)


def usable_edge_mm(area_mm2: Numeric, height_mm: Numeric, corner_mm: Numeric) -> Numeric:
    """Perimeter on which PHY macros can stand: all four sides less the corners.

    Args:
        area_mm2: Die area. [mm2], >= 0
        height_mm: Long side. [mm], > 0
        corner_mm: Lost on a side at each of its two corners. [mm], >= 0

    Returns:
        Usable perimeter. [mm], >= 0

    Source:
        opentallas-2026: edge budget of a reticle die

    >>> float(usable_edge_mm(area_mm2=600.0, height_mm=30.0, corner_mm=2.5))
    80.0
    """
    width_mm = area_mm2 / np.maximum(height_mm, 1e-9)
    return 2.0 * (np.maximum(height_mm - 2.0 * corner_mm, 0.0) + np.maximum(width_mm - 2.0 * corner_mm, 0.0))


def die_to_die_edge_mm(rate_gbps: Numeric, density_gbps_per_mm: Numeric) -> Numeric:
    """Edge that a die-to-die link takes on each of the two dies.

    Args:
        rate_gbps: Rate across the cut, both directions together. [Gb/s], >= 0
        density_gbps_per_mm: What a millimetre of edge carries, both directions. [Gb/s/mm], > 0

    Returns:
        Edge. [mm]

    Source:
        catch-2024: UCIe module sizes and rates

    >>> die_to_die_edge_mm(rate_gbps=80000.0, density_gbps_per_mm=10000.0)
    8.0
    """
    return rate_gbps / density_gbps_per_mm


def serdes_edge_mm(lane_edge_mm: Numeric, rows_count: Numeric) -> Numeric:
    """Edge that SerDes lanes take when macros stand in rows behind each other.

    Rows behind the first need routing channels through it; the gain per row stops near three.

    Args:
        lane_edge_mm: Edge of all lanes side by side. [mm], >= 0
        rows_count: Rows of macros. [count], >= 1

    Returns:
        Edge. [mm]

    Source:
        opentallas-2026: rows of macros at the die edge

    >>> float(serdes_edge_mm(lane_edge_mm=30.0, rows_count=3))
    10.0
    """
    return lane_edge_mm / np.maximum(rows_count, 1.0)


def excess_ratio(required_mm: Numeric, available_mm: Numeric) -> Numeric:
    """By how much a demand exceeds what there is; zero when it fits.

    Args:
        required_mm: Demand. [mm], >= 0
        available_mm: Supply in the same unit. [mm], > 0

    Returns:
        Graded excess. [1], >= 0

    Source:
        definition

    >>> float(excess_ratio(required_mm=12.0, available_mm=10.0).round(6))
    0.2
    """
    return np.maximum(0.0, required_mm / np.maximum(available_mm, 1e-9) - 1.0)
