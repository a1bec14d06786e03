"""Memory that buffers are made of: area and power."""

from codesign.units import Numeric


def sram_mm2(buffer_bytes: Numeric, density_mm2_per_mb: Numeric) -> Numeric:
    """Die area of a buffer.

    Args:
        buffer_bytes: Buffer. [byte]
        density_mm2_per_mb: Area per megabyte at this node, periphery included. [mm2/MB]

    Returns:
        Area. [mm2]

    Source:
        definition: size times density, 1 MB = 1e6 bytes.

    >>> sram_mm2(buffer_bytes=2e6, density_mm2_per_mb=0.25)
    0.5
    """
    return buffer_bytes / 1e6 * density_mm2_per_mb


def sram_power_w(
    area_mm2: Numeric, leakage_w_per_mm2: Numeric, rate_gbps: Numeric, access_pj_per_byte: Numeric
) -> Numeric:
    """Power of a buffer: leakage of its area, and every byte written once and read once.

    Args:
        area_mm2: Area of the buffer. [mm2]
        leakage_w_per_mm2: Leakage. [W/mm2]
        rate_gbps: Rate that passes through. [Gb/s]
        access_pj_per_byte: Energy of one access. [pJ/byte]

    Returns:
        Power. [W]

    Source:
        definition: leakage plus two accesses per byte.

    >>> sram_power_w(area_mm2=10, leakage_w_per_mm2=0.01, rate_gbps=800.0, access_pj_per_byte=2.5)
    0.6
    """
    return area_mm2 * leakage_w_per_mm2 + 2.0 * rate_gbps / 8.0 * access_pj_per_byte * 1e-3
