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
        definition: area and aspect of a rectangle

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
    width_mm = area_mm2 / height_mm
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


def edge_excess_ratio(required_mm: Numeric, available_mm: Numeric) -> Numeric:
    """By how much the demand for edge exceeds what there is; zero when it fits.

    Args:
        required_mm: Demand. [mm], >= 0
        available_mm: Usable edge. [mm], > 0

    Returns:
        Graded excess. [1], >= 0

    Source:
        definition: share by which demand exceeds supply

    >>> float(edge_excess_ratio(required_mm=12.0, available_mm=10.0).round(6))
    0.2
    """
    return np.maximum(0.0, required_mm / available_mm - 1.0)


def reticle_excess_ratio(die_mm2: Numeric, field_mm2: Numeric) -> Numeric:
    """By how much a die exceeds the exposure field; zero when it fits.

    Args:
        die_mm2: Area of the largest die. [mm2], >= 0
        field_mm2: Area of the exposure field. [mm2], > 0

    Returns:
        Graded excess. [1], >= 0

    Source:
        definition: share by which demand exceeds supply

    >>> float(reticle_excess_ratio(die_mm2=900.0, field_mm2=600.0))
    0.5
    """
    return np.maximum(0.0, die_mm2 / field_mm2 - 1.0)
