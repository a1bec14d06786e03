"""Interfaces between dies of one package: edge, bumps and the rate they carry. As links they use the same chain."""

import numpy as np

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


def wires_count(rate_gbps: Numeric, wire_rate_gbps: Numeric) -> Numeric:
    """Data wires of one direction.

    Args:
        rate_gbps: Rate of one direction. [Gb/s]
        wire_rate_gbps: Rate of one wire. [Gb/s], > 0

    Returns:
        Wires, a whole number. [count]

    Source:
        definition: rounded up.

    >>> float(wires_count(rate_gbps=1000.0, wire_rate_gbps=32.0))
    32.0
    """
    return np.ceil(rate_gbps / wire_rate_gbps)


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


def retry_free_hours_h(rate_gbps: Numeric, wire_ber: Numeric) -> Numeric:
    """Time between two bit errors of an interface that has no code, hence between two retries.

    Args:
        rate_gbps: Rate of one direction. [Gb/s], > 0
        wire_ber: Bit error ratio of its wires. [1], > 0

    Returns:
        Mean time between errors. [h]

    Source:
        definition: one over rate times error ratio.

    >>> round(retry_free_hours_h(rate_gbps=1000.0, wire_ber=1e-15) * 3600.0)
    1000
    """
    return 1.0 / (rate_gbps * wire_ber * 1e9 * 3600.0)
