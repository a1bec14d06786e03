"""Interfaces between dies of one package: edge and bumps. As links they use the same chain."""

from codesign.units import Numeric


def edge_for_rate_mm(rate_gbps: Numeric, density_gbps_per_mm: Numeric) -> Numeric:
    """Die edge that a rate takes at the density of the interface.

    Args:
        rate_gbps: Rate of one direction. [Gb/s]
        density_gbps_per_mm: Rate of one direction per die edge. [Gb/s/mm], > 0

    Returns:
        Edge. [mm]

    Source:
        ucie-2.0: shoreline density as the key metric of the interface.

    >>> edge_for_rate_mm(rate_gbps=8000.0, density_gbps_per_mm=1000.0)
    8.0
    """
    return rate_gbps / density_gbps_per_mm


def bump_field_mm2(bumps_count: Numeric, bump_um: Numeric) -> Numeric:
    """Area of a square field of bumps.

    Args:
        bumps_count: Bumps, those of power and ground included. [count]
        bump_um: Pitch of the bumps. [um]

    Returns:
        Area. [mm2]

    Source:
        definition: pitch squared for each bump.

    >>> round(bump_field_mm2(bumps_count=100, bump_um=100.0), 6)
    1.0
    """
    return bumps_count * bump_um * bump_um * 1e-6
