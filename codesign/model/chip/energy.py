"""What operations, bits and cycles cost in watts, the supply a clock needs, and what the board adds."""

import numpy as np

from codesign.units import Numeric


def transfer_w(rate_gbps: Numeric, energy_pj_per_bit: Numeric) -> Numeric:
    """Power of moving bits.

    Args:
        rate_gbps: Rate. [Gb/s], >= 0
        energy_pj_per_bit: Energy of a bit. [pJ/bit], >= 0

    Returns:
        Power. [W]

    Source:
        definition: rate times energy

    >>> transfer_w(rate_gbps=1000.0, energy_pj_per_bit=5.0)
    5.0
    """
    return rate_gbps * energy_pj_per_bit * 1e-3


def arithmetic_w(rate_gflops: Numeric, energy_pj_per_flop: Numeric) -> Numeric:
    """Power of arithmetic.

    Args:
        rate_gflops: Operations per second. [Gflop/s], >= 0
        energy_pj_per_flop: Energy of an operation with its operand delivery. [pJ/flop], >= 0

    Returns:
        Power. [W]

    Source:
        definition: rate times energy

    >>> arithmetic_w(rate_gflops=1e6, energy_pj_per_flop=0.5)
    500.0
    """
    return rate_gflops * energy_pj_per_flop * 1e-3


def array_pj_per_flop(
    data_pj_per_flop: Numeric,
    control_pj_per_flop: Numeric,
    control_macs_count: Numeric,
    macs_count: Numeric,
    node_ratio: Numeric,
) -> Numeric:
    """Energy of one operation of a matrix unit: the data path, and control shared by all units that one order drives.

    A larger unit spreads instruction issue and operand delivery over more operations. Both parts scale with the node.

    Args:
        data_pj_per_flop: Data path at the reference node. [pJ/flop], >= 0
        control_pj_per_flop: Control and delivery of the measured unit. [pJ/flop], >= 0
        control_macs_count: Size of the measured unit. [count], > 0
        macs_count: Size of this unit. [count], > 0
        node_ratio: Energy of the node over the reference node. [1], > 0

    Returns:
        Energy of an operation. [pJ/flop]

    Source:
        antepara-2025: control and data-path energy of A100 tensor operations

    >>> array_pj_per_flop(0.3, 0.4, 256, 512, 0.5)
    0.25
    """
    return node_ratio * (data_pj_per_flop + control_pj_per_flop * control_macs_count / macs_count)


def clock_tree_w(area_mm2: Numeric, clock_pj_per_mm2: Numeric, clock_ghz: Numeric) -> Numeric:
    """Power of the clock tree and of logic that toggles with it whatever the work.

    Args:
        area_mm2: Clocked area. [mm2], >= 0
        clock_pj_per_mm2: Energy of one mm2 in one cycle. [pJ/mm2], >= 0
        clock_ghz: Clock. [GHz], >= 0

    Returns:
        Power. [W]

    Source:
        opentallas-2026: clock power per area and cycle

    >>> clock_tree_w(area_mm2=1000.0, clock_pj_per_mm2=50.0, clock_ghz=2.0)
    100.0
    """
    return area_mm2 * clock_pj_per_mm2 * clock_ghz * 1e-3


def voltage_frac(clock_frac: Numeric, voltage_slope_frac: Numeric, voltage_floor_frac: Numeric) -> Numeric:
    """Supply voltage a clock needs, both over nominal: linear, down to the lowest supply that works.

    Above nominal clock the same line holds for a few percent only.

    Args:
        clock_frac: Clock over nominal. [1], > 0
        voltage_slope_frac: Relative change of supply for a relative change of clock. [1], 0 to 1
        voltage_floor_frac: Lowest supply over nominal. [1], 0 to 1

    Returns:
        Supply over nominal. [1]

    Source:
        sakurai-1990: near-linear clock against supply well above threshold

    >>> float(voltage_frac(clock_frac=0.8, voltage_slope_frac=0.5, voltage_floor_frac=0.7))
    0.9
    """
    return np.maximum(voltage_floor_frac, 1.0 - voltage_slope_frac * (1.0 - clock_frac))


def board_w(package_w: Numeric, accessory_w: Numeric, supply_frac: Numeric) -> Numeric:
    """Power that one accelerator draws from its rack: package, its share of the host, NIC and fans, supply loss.

    Args:
        package_w: Power of the package. [W], >= 0
        accessory_w: Its share of host, NICs, switches in the chassis and fans. [W], >= 0
        supply_frac: Efficiency of the power supply. [1], 0 to 1

    Returns:
        Power at the plug of the rack. [W]

    Source:
        definition: sum over the efficiency of the supply

    >>> board_w(package_w=700.0, accessory_w=250.0, supply_frac=0.95)
    1000.0
    """
    return (package_w + accessory_w) / supply_frac
