"""From the package to the utility meter."""

from codesign.units import Numeric


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


def facility_w(rack_w: Numeric, usage_ratio: Numeric) -> Numeric:
    """Power that the utility delivers for a load in the racks.

    Args:
        rack_w: Power of the racks. [W], >= 0
        usage_ratio: Facility over IT power (PUE). [1], >= 1

    Returns:
        Power at the utility meter. [W]

    Source:
        definition: power usage effectiveness

    >>> facility_w(rack_w=1000.0, usage_ratio=1.25)
    1250.0
    """
    return rack_w * usage_ratio
