"""Power of a package by item, and the clock it leaves under a cap."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.chip.energy import arithmetic_w, board_w, clock_tree_w, transfer_w, voltage_frac
from codesign.units import Numeric

__all__ = ["Activity", "Power", "PowerInputs", "board_w", "package_w", "power", "throttled_clock_frac"]

#: Halvings of the clock interval: 2**-40 of the range is below any rounding that matters.
_BISECTIONS = 40


@dataclass(frozen=True, slots=True, eq=False)
class PowerInputs:
    """Coefficients of one package at its nominal clock and voltage."""

    logic_mm2: Numeric  # clocked logic of all dies
    sram_area_mm2: Numeric
    leakage_w_per_mm2: Numeric
    sram_leakage_w_per_mm2: Numeric
    clock_pj_per_mm2: Numeric  # clock tree and idle logic, of one mm2 and cycle
    clock_ghz: Numeric
    bf16_pj_per_flop: Numeric
    fp8_pj_per_flop: Numeric
    fp4_pj_per_flop: Numeric
    int8_pj_per_flop: Numeric
    sram_pj_per_bit: Numeric
    memory_pj_per_bit: Numeric  # in the DRAM and its interface
    memory_path_pj_per_bit: Numeric  # between DRAM interface and cores
    second_pj_per_bit: Numeric
    memory_idle_w: Numeric
    scale_up_pj_per_bit: Numeric
    scale_out_pj_per_bit: Numeric
    die_to_die_pj_per_bit: Numeric
    link_idle_w: Numeric
    voltage_floor_frac: Numeric  # lowest supply over nominal
    voltage_slope_frac: Numeric  # relative change of supply for a relative change of clock
    clock_floor_frac: Numeric  # lowest clock over nominal
    regulator_frac: Numeric  # die power over package supply power
    power_cap_w: Numeric
    cooling_cap_w: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Activity:
    """What a workload does each second at nominal clock; rates count bits in both directions."""

    bf16_gflops: Numeric
    fp8_gflops: Numeric
    fp4_gflops: Numeric
    int8_gflops: Numeric
    sram_rate_gbps: Numeric
    memory_rate_gbps: Numeric
    second_rate_gbps: Numeric
    scale_up_rate_gbps: Numeric
    scale_out_rate_gbps: Numeric
    die_to_die_rate_gbps: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Power:
    """Watts of one package by item; they sum to ``package_w``. Caps give a graded excess."""

    leakage_w: Numeric
    clock_w: Numeric
    compute_w: Numeric
    sram_w: Numeric
    memory_idle_w: Numeric
    memory_w: Numeric
    memory_path_w: Numeric
    second_w: Numeric
    link_idle_w: Numeric
    link_w: Numeric
    die_to_die_w: Numeric
    conversion_w: Numeric
    package_w: Numeric
    clock_frac: Numeric
    power_required_w: Numeric
    power_available_w: Numeric
    power_excess_ratio: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def _static_w(i: PowerInputs) -> Numeric:
    return i.logic_mm2 * i.leakage_w_per_mm2 + i.sram_area_mm2 * i.sram_leakage_w_per_mm2


def _compute_w(i: PowerInputs, a: Activity) -> Numeric:
    return (
        arithmetic_w(a.bf16_gflops, i.bf16_pj_per_flop)
        + arithmetic_w(a.fp8_gflops, i.fp8_pj_per_flop)
        + arithmetic_w(a.fp4_gflops, i.fp4_pj_per_flop)
        + arithmetic_w(a.int8_gflops, i.int8_pj_per_flop)
    )


def _link_w(i: PowerInputs, a: Activity) -> Numeric:
    return transfer_w(a.scale_up_rate_gbps, i.scale_up_pj_per_bit) + transfer_w(
        a.scale_out_rate_gbps, i.scale_out_pj_per_bit
    )


def _items(i: PowerInputs, a: Activity, clock_frac: Numeric) -> dict[str, Numeric]:
    """Watts by item at a clock; work and traffic slow down with it, supply follows, interfaces keep theirs."""
    supply = voltage_frac(clock_frac, i.voltage_slope_frac, i.voltage_floor_frac)
    core = clock_frac * supply**2
    return {
        "leakage_w": _static_w(i) * supply**2,
        "clock_w": clock_tree_w(i.logic_mm2, i.clock_pj_per_mm2, i.clock_ghz) * core,
        "compute_w": _compute_w(i, a) * core,
        "sram_w": transfer_w(a.sram_rate_gbps, i.sram_pj_per_bit) * core,
        "memory_idle_w": i.memory_idle_w + 0.0 * core,
        "memory_w": transfer_w(a.memory_rate_gbps, i.memory_pj_per_bit) * clock_frac,
        "memory_path_w": transfer_w(a.memory_rate_gbps, i.memory_path_pj_per_bit) * core,
        "second_w": transfer_w(a.second_rate_gbps, i.second_pj_per_bit) * clock_frac,
        "link_idle_w": i.link_idle_w + 0.0 * core,
        "link_w": _link_w(i, a) * clock_frac,
        "die_to_die_w": transfer_w(a.die_to_die_rate_gbps, i.die_to_die_pj_per_bit) * clock_frac,
    }


def _supply_w(i: PowerInputs, items: dict[str, Numeric]) -> Numeric:
    """Power that enters the package, regulator loss included, summed in a fixed order."""
    total = items["leakage_w"] + items["clock_w"] + items["compute_w"] + items["sram_w"]
    total = total + items["memory_idle_w"] + items["memory_w"] + items["memory_path_w"] + items["second_w"]
    total = total + items["link_idle_w"] + items["link_w"] + items["die_to_die_w"]
    return total / i.regulator_frac


def package_w(inputs: PowerInputs, activity: Activity, clock_frac: Numeric) -> Numeric:
    """Power of the package while a workload runs at a share of the nominal clock.

    Args:
        inputs: Coefficients of the package.
        activity: What the workload does at nominal clock; it slows down in proportion.
        clock_frac: Clock over nominal. [1], 0 to 1

    Returns:
        Power at the input of the package's regulators. [W]

    Source:
        definition: static power, plus energy of each operation and of each bit moved, times their rates

    >>> inputs = PowerInputs(**dict.fromkeys(PowerInputs.__slots__, 0.0) | {"regulator_frac": 0.5, "link_idle_w": 10.0})
    >>> idle = Activity(**dict.fromkeys(Activity.__slots__, 0.0))
    >>> float(package_w(inputs, idle, 1.0))
    20.0
    """
    return _supply_w(inputs, _items(inputs, activity, clock_frac))


def allowed_w(inputs: PowerInputs) -> Numeric:
    """Watts that power and cooling allow a package.

    Args:
        inputs: Coefficients of the package.

    Returns:
        The lower cap. [W]

    Source:
        definition: both caps hold

    >>> nothing = dict.fromkeys(PowerInputs.__slots__, 0.0)
    >>> float(allowed_w(PowerInputs(**nothing | {"power_cap_w": 700.0, "cooling_cap_w": 650.0})))
    650.0
    """
    return np.minimum(inputs.power_cap_w, inputs.cooling_cap_w)


def throttled_clock_frac(inputs: PowerInputs, activity: Activity) -> Numeric:
    """Highest clock, over nominal, at which a workload stays under the caps of power and cooling.

    Power rises with the clock, so bisection finds it; a fixed number of halvings keeps a batch equal to its rows.
    Where even the lowest clock exceeds the cap, the lowest clock is returned and `power` reports the excess.

    Args:
        inputs: Coefficients of the package, with its caps.
        activity: What the workload does at nominal clock.

    Returns:
        Clock over nominal. [1], clock_floor_frac to 1

    Source:
        definition: root of power equal to cap

    >>> inputs = PowerInputs(
    ...     **dict.fromkeys(PowerInputs.__slots__, 0.0)
    ...     | {"regulator_frac": 1.0, "power_cap_w": 5.0, "cooling_cap_w": 9.0, "memory_pj_per_bit": 10.0}
    ... )
    >>> busy = Activity(**dict.fromkeys(Activity.__slots__, 0.0) | {"memory_rate_gbps": 1000.0})
    >>> round(float(throttled_clock_frac(inputs, busy)), 6)
    0.5
    """
    cap_w = allowed_w(inputs)
    low = np.asarray(inputs.clock_floor_frac + 0.0 * package_w(inputs, activity, 1.0))
    high = np.ones_like(low)
    fits = package_w(inputs, activity, 1.0) <= cap_w
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        under = package_w(inputs, activity, middle) <= cap_w
        low = np.where(under, middle, low)
        high = np.where(under, high, middle)
    return np.where(fits, 1.0, low)


def power(inputs: PowerInputs, activity: Activity) -> Power:
    """Watts of one package by item at the clock that its caps leave.

    Args:
        inputs: Coefficients of the package.
        activity: What the workload does at nominal clock.

    Returns:
        Items, their sum, the clock and the excess over the caps.
    """
    clock = throttled_clock_frac(inputs, activity)
    items = _items(inputs, activity, clock)
    total_w = _supply_w(inputs, items)
    cap_w = allowed_w(inputs) + 0.0 * total_w
    return Power(
        **items,
        conversion_w=total_w * (1.0 - inputs.regulator_frac),
        package_w=total_w,
        clock_frac=clock,
        power_required_w=total_w,
        power_available_w=cap_w,
        # the root of a bisection may sit a rounding above the cap
        power_excess_ratio=np.maximum(0.0, total_w / cap_w * (1.0 - 1e-9) - 1.0),
    )
