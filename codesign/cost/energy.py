"""From watts at the accelerator's board to the meter of the site, and to dollars per hour."""

from dataclasses import dataclass

from codesign.columns import freeze
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class EnergyInputs:
    """Power per accelerator with its share of host and network, and what stands between it and the meter."""

    busy_w: Numeric
    idle_w: Numeric
    peak_w: Numeric
    utilisation_frac: Numeric
    psu_efficiency_frac: Numeric
    pue_ratio: Numeric
    electricity_usd_per_kwh: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Energy:
    """Power at the meter: the peak that the site must be built for, and the average that is paid for."""

    provisioned_w: Numeric
    average_w: Numeric
    energy_usd_per_h: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def utility_w(it_w: Numeric, psu_efficiency_frac: Numeric, pue_ratio: Numeric) -> Numeric:
    """Power the site draws so that a board gets its own: power supply losses, then cooling and distribution.

    The watts are those after the power supply; losses of the regulators on the board are inside them.

    Args:
        it_w: Power at the board. [W], >= 0
        psu_efficiency_frac: Efficiency of the rack's power supplies. [1], 0 to 1
        pue_ratio: Site power over IT power. [1], >= 1

    Returns:
        Power at the meter. [W]

    Source:
        definition: P x PUE / efficiency.

    >>> utility_w(960.0, 0.96, 1.25)
    1250.0
    """
    return it_w / psu_efficiency_frac * pue_ratio


def average_power_w(busy_w: Numeric, idle_w: Numeric, utilisation_frac: Numeric) -> Numeric:
    """Mean power over all hours, sold and unsold.

    Args:
        busy_w: Power while working. [W], >= 0
        idle_w: Power while waiting for work. [W], >= 0
        utilisation_frac: Share of the hours that are sold. [1], 0 to 1

    Returns:
        Mean power. [W]

    Source:
        definition: weighted mean.

    >>> average_power_w(1000.0, 200.0, 0.5)
    600.0
    """
    return busy_w * utilisation_frac + idle_w * (1.0 - utilisation_frac)


def electricity_usd_per_h(meter_w: Numeric, electricity_usd_per_kwh: Numeric) -> Numeric:
    """Price of an hour of power.

    Args:
        meter_w: Mean power at the meter. [W], >= 0
        electricity_usd_per_kwh: Tariff. [USD/kWh], >= 0

    Returns:
        Energy bill. [USD/h]

    Source:
        definition: power by tariff.

    >>> electricity_usd_per_h(2000.0, 0.1)
    0.2
    """
    return meter_w / 1000.0 * electricity_usd_per_kwh


def energy(inputs: EnergyInputs) -> Energy:
    """What one accelerator's power asks of the site and of the purse.

    Args:
        inputs: Power, losses, tariff.

    Source:
        definition: the laws above in order.

    >>> round(float(energy(EnergyInputs(960.0, 0.0, 960.0, 1.0, 0.96, 1.25, 0.1)).energy_usd_per_h), 3)
    0.125
    """
    mean_w = average_power_w(inputs.busy_w, inputs.idle_w, inputs.utilisation_frac)
    meter_w = utility_w(mean_w, inputs.psu_efficiency_frac, inputs.pue_ratio)
    return Energy(
        provisioned_w=utility_w(inputs.peak_w, inputs.psu_efficiency_frac, inputs.pue_ratio),
        average_w=meter_w,
        energy_usd_per_h=electricity_usd_per_h(meter_w, inputs.electricity_usd_per_kwh),
    )
