"""The way from die to die (or to the optical module): loss at the highest signal frequency, delay, cable length."""

import numpy as np

from codesign.units import Numeric, empirical

_DB_PER_NEPER = 20.0 / float(np.log(10.0))


def line_loss_db(
    frequency_ghz: Numeric,
    length_mm: Numeric,
    attenuation_per_mm: Numeric,
    skin_sqrt_ns_per_mm: Numeric,
    dielectric_ns_per_mm: Numeric,
) -> Numeric:
    """Loss of a uniform trace: a constant part, the skin effect growing with the root of frequency, the dielectric
    with frequency.

    Compact form of the low-loss line; no via stubs, no reflections.

    Args:
        frequency_ghz: Frequency. [GHz], >= 0
        length_mm: Length of the trace. [mm], >= 0
        attenuation_per_mm: Part that does not depend on frequency, in nepers. [1/mm]
        skin_sqrt_ns_per_mm: Skin effect, nepers per root of GHz. [ns^0.5/mm]
        dielectric_ns_per_mm: Dielectric loss, nepers per GHz. [ns/mm]

    Returns:
        Insertion loss. [dB]

    Source:
        ieee-802.3dj-d3.3: package and board transmission-line model.

    >>> round(float(line_loss_db(53.125, 83, 0, 5.95e-4, 2.6e-5)), 1)
    4.1
    """
    per_mm = attenuation_per_mm + skin_sqrt_ns_per_mm * np.sqrt(frequency_ghz) + dielectric_ns_per_mm * frequency_ghz
    return _DB_PER_NEPER * length_mm * per_mm


def twinax_loss_db_per_m(
    frequency_ghz: Numeric,
    low_ghz: Numeric,
    low_db_per_m: Numeric,
    high_ghz: Numeric,
    high_db_per_m: Numeric,
    conductor_ratio: Numeric,
) -> Numeric:
    """Loss of a shielded pair, drawn through two measured frequencies as skin effect plus dielectric.

    A thinner conductor raises the skin part in proportion; the dielectric part is that of the insulation.

    Args:
        frequency_ghz: Frequency. [GHz], > 0
        low_ghz: Lower measured frequency. [GHz], > 0
        low_db_per_m: Loss there. [dB/m]
        high_ghz: Higher measured frequency. [GHz], > low
        high_db_per_m: Loss there. [dB/m]
        conductor_ratio: Diameter of the conductor over that of the measured cable. [1], > 0

    Returns:
        Loss per length. [dB/m]

    Source:
        twinax-26awg-blog-028: loss of 5 m of 26 AWG at two symbol rates.

    >>> round(float(twinax_loss_db_per_m(16.0, 4.0, 2.0, 16.0, 4.0, 1.0)), 6)
    4.0
    """
    low_root, high_root, root = np.sqrt(low_ghz), np.sqrt(high_ghz), np.sqrt(frequency_ghz)
    spread = np.where(np.equal(low_ghz, high_ghz), high_root, high_root - low_root)
    dielectric = (high_db_per_m / high_root - low_db_per_m / low_root) / spread
    skin = low_db_per_m / low_root - dielectric * low_root
    return skin * root / conductor_ratio + dielectric * frequency_ghz


@empirical("the definition of the gauge, a number of millimetres per step")
def conductor_mm(gauge_count: Numeric) -> Numeric:
    """Diameter of a wire of an American gauge.

    Args:
        gauge_count: Gauge number, AWG. [count]

    Returns:
        Diameter. [mm]

    Source:
        definition: 0.127 mm at AWG 36, a factor 92 in 39 steps.

    >>> conductor_mm(gauge_count=36)
    0.127
    """
    return 0.127 * 92.0 ** ((36.0 - gauge_count) / 39.0)


def connector_loss_db(
    frequency_ghz: Numeric, connectors_count: Numeric, rated_db: Numeric, rated_ghz: Numeric
) -> Numeric:
    """Loss of the connectors on the way, growing with frequency from the rated point.

    Args:
        frequency_ghz: Frequency. [GHz]
        connectors_count: Mated connectors. [count]
        rated_db: Loss of one at its rated frequency. [dB]
        rated_ghz: That frequency. [GHz], > 0

    Returns:
        Loss of all of them. [dB]

    Source:
        definition: loss in proportion to frequency, as a short dielectric path.

    >>> connector_loss_db(frequency_ghz=50, connectors_count=2, rated_db=1.5, rated_ghz=25)
    6.0
    """
    return connectors_count * rated_db * (frequency_ghz / rated_ghz)


def reach_m(budget_db: Numeric, fixed_db: Numeric, loss_db_per_m: Numeric) -> Numeric:
    """Longest cable a loss budget allows once packages, boards and connectors have taken their share.

    Args:
        budget_db: Loss allowed from die to die. [dB]
        fixed_db: Loss without the cable. [dB]
        loss_db_per_m: Loss of the cable. [dB/m], > 0

    Returns:
        Length; 0 where the rest alone is over the budget. [m]

    Source:
        definition: the loss budget solved for the cable.

    >>> float(reach_m(budget_db=40, fixed_db=20, loss_db_per_m=8))
    2.5
    """
    return np.maximum(budget_db - fixed_db, 0.0) / loss_db_per_m


def flight_ns(length_m: Numeric, delay_ns_per_m: Numeric) -> Numeric:
    """Time of flight.

    Args:
        length_m: Length of the line. [m]
        delay_ns_per_m: Delay per length (twinax 4.6, fibre 5). [ns/m]

    Returns:
        One-way delay. [ns]

    Source:
        ocp-sue-1.0: 13.8 ns for 3 m of twinax.

    >>> flight_ns(length_m=2, delay_ns_per_m=4.5)
    9.0
    """
    return length_m * delay_ns_per_m


def domain_cable_m(
    domain_count: Numeric, rack_count: Numeric, in_rack_m: Numeric, rack_pitch_m: Numeric, drop_m: Numeric
) -> Numeric:
    """Cable from an accelerator to the switches of its domain when the racks of the domain stand in one row.

    Inside one rack a fixed length. Over several racks the switches stand in the middle: half the row along the racks,
    and up and down at both ends.

    Args:
        domain_count: Accelerators of the domain. [count], > 0
        rack_count: Accelerators a rack holds. [count], > 0
        in_rack_m: Cable inside a rack. [m]
        rack_pitch_m: Distance from rack to rack. [m]
        drop_m: Vertical run between rack and tray, both ends. [m]

    Returns:
        Longest cable of the domain. [m]

    Source:
        definition: half the length of the row of racks.

    >>> float(domain_cable_m(domain_count=144, rack_count=72, in_rack_m=1.5, rack_pitch_m=0.6, drop_m=2.0))
    4.1
    """
    racks = np.ceil(domain_count / rack_count)
    return in_rack_m + np.where(racks > 1.0, drop_m + rack_pitch_m * racks / 2.0, 0.0 * rack_pitch_m)
