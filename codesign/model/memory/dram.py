"""What the DRAM itself allows: peak, refresh, activations, banks and commands of one pseudo-channel.

A pseudo-channel is the smallest part of a memory that has a data bus of its own; several may share one command bus
and one controller queue. All times are of one pseudo-channel.
"""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class DramDevice:
    """Organisation and timing of one memory; row timings stay fixed in time when the pin rate changes."""

    burst_ns: Numeric
    clock_ns: Numeric
    read_latency_ns: Numeric
    write_latency_ns: Numeric
    row_to_read_ns: Numeric
    row_to_write_ns: Numeric
    precharge_ns: Numeric
    row_open_ns: Numeric
    row_cycle_ns: Numeric
    read_to_precharge_ns: Numeric
    write_recovery_ns: Numeric
    activate_gap_ns: Numeric
    activate_window_ns: Numeric
    read_to_write_ns: Numeric
    write_to_read_ns: Numeric
    refresh_ns: Numeric
    refresh_interval_ns: Numeric
    refresh_bank_interval_ns: Numeric
    banks_count: Numeric
    pseudo_channels_count: Numeric
    activate_command_ns: Numeric
    precharge_command_ns: Numeric
    column_command_ns: Numeric
    shared_command_flag: Numeric
    row_bursts_count: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def peak_rate_gbps(pin_rate_gbps: Numeric, data_pins_count: Numeric, payload_frac: Numeric) -> Numeric:
    """Payload rate of the data pins of one stack or package when every beat carries data.

    Reads and writes share the pins, so it is the sum of both directions. Stops being true where the device cannot
    fill its bus even on row hits, which no standard here allows.

    Args:
        pin_rate_gbps: Rate of one data pin. [Gb/s], > 0
        data_pins_count: Data pins of the device. [count], >= 1
        payload_frac: Share of the beats that is payload: 8/9 for LPDDR6, whose burst carries metadata. [1], 0 to 1

    Returns:
        Peak rate of one device. [Gb/s]

    Source:
        definition: pins times rate

    >>> peak_rate_gbps(pin_rate_gbps=6.4, data_pins_count=1000, payload_frac=1.0)
    6400.0
    """
    return pin_rate_gbps * data_pins_count * payload_frac


def burst_ns(burst_bytes: Numeric, channel_rate_gbps: Numeric) -> Numeric:
    """Time one burst holds the data bus of its pseudo-channel.

    Args:
        burst_bytes: Payload of one column command. [byte], > 0
        channel_rate_gbps: Peak payload rate of one pseudo-channel. [Gb/s], > 0

    Returns:
        Duration of a burst. [ns]

    Source:
        definition: size over rate

    >>> burst_ns(burst_bytes=32, channel_rate_gbps=128.0)
    2.0
    """
    return 8.0 * burst_bytes / channel_rate_gbps


def all_bank_refresh_frac(
    refresh_ns: Numeric, precharge_ns: Numeric, row_to_read_ns: Numeric, refresh_interval_ns: Numeric
) -> Numeric:
    """Share of time that all-bank refresh leaves to traffic: each refresh also costs one row closing and opening.

    Agrees with cycle simulation of eight standards to 2 % on streams; it holds for any traffic that keeps the
    channel busy.

    Args:
        refresh_ns: Duration of one all-bank refresh (tRFC). [ns], >= 0
        precharge_ns: Row precharge before it (tRP). [ns], >= 0
        row_to_read_ns: Activation after it (tRCD). [ns], >= 0
        refresh_interval_ns: Mean time between refreshes (tREFI). [ns], > 0

    Returns:
        Available share. [1], 0 to 1

    Source:
        ramulator-2: timing presets quoting the standards; form checked on the stream rows of memory_sim

    >>> float(all_bank_refresh_frac(refresh_ns=350, precharge_ns=15, row_to_read_ns=25, refresh_interval_ns=3900))
    0.9
    """
    return np.maximum(0.0, 1.0 - (refresh_ns + precharge_ns + row_to_read_ns) / refresh_interval_ns)


def per_bank_refresh_frac(precharge_ns: Numeric, row_to_read_ns: Numeric, refresh_bank_interval_ns: Numeric) -> Numeric:
    """Share of time that per-bank refresh leaves to a stream that must come back to the refreshed bank.

    The refresh itself hides behind the other banks; what remains visible is closing and re-opening the row. A
    controller that steers traffic away from the bank loses less, so this is the linear stream's figure.

    Args:
        precharge_ns: Row precharge (tRP). [ns], >= 0
        row_to_read_ns: Activation (tRCD). [ns], >= 0
        refresh_bank_interval_ns: Mean time between two refreshes of any bank. [ns], > 0

    Returns:
        Available share. [1], 0 to 1

    Source:
        ramulator-2: per-bank rows of memory_sim, within 4 points

    >>> float(per_bank_refresh_frac(precharge_ns=20, row_to_read_ns=30, refresh_bank_interval_ns=500))
    0.9
    """
    return np.maximum(0.0, 1.0 - (precharge_ns + row_to_read_ns) / refresh_bank_interval_ns)


def activation_frac(activations_ratio: Numeric, device: DramDevice) -> Numeric:
    """Share of peak the activation rules sustain: spacing of two (tRRD) and of four activations (tFAW).

    Args:
        activations_ratio: Activations for each burst; 1 is a row miss every time. [1], > 0
        device: Timing of the memory.

    Returns:
        Ceiling in units of peak; above 1 it does not bind. [1]

    Source:
        oconnor-2017: activation limits as bandwidth; ramulator-2 for the values

    >>> device = DramDevice(**dict.fromkeys(DramDevice.__slots__, 1.0) | {"burst_ns": 2.0, "activate_gap_ns": 4.0})
    >>> float(activation_frac(1.0, device))
    0.5
    """
    spacing_ns = np.maximum(device.activate_gap_ns, device.activate_window_ns / 4.0)
    return device.burst_ns / (activations_ratio * spacing_ns)


def command_frac(activations_ratio: Numeric, close_row_flag: Numeric, device: DramDevice) -> Numeric:
    """Share of peak the command bus sustains.

    Pseudo-channels of one channel share the bus. HBM and GDDR7 have a bus for row commands alone; LPDDR, DDR5 and
    GDDR6 send column commands on the same one.

    Args:
        activations_ratio: Activations for each burst. [1], > 0
        close_row_flag: 1 where rows close by themselves, which frees the precharge slot. [1], 0 or 1
        device: Timing of the memory.

    Returns:
        Ceiling in units of peak; above 1 it does not bind. [1]

    Source:
        ramulator-2: command cycles of the standards

    >>> device = DramDevice(**dict.fromkeys(DramDevice.__slots__, 1.0) | {"burst_ns": 2.0, "activate_command_ns": 2.0})
    >>> float(command_frac(1.0, 0.0, device))
    0.5
    """
    row_ns = device.activate_command_ns + device.precharge_command_ns * (1.0 - close_row_flag)
    column_ns = device.column_command_ns * device.shared_command_flag
    slots_ns = activations_ratio * row_ns * device.pseudo_channels_count + column_ns
    return device.burst_ns / np.maximum(slots_ns, 1e-9)


def busy_banks_count(banks_count: Numeric, outstanding_count: Numeric) -> Numeric:
    """Expected number of different banks that requests to random banks occupy.

    Args:
        banks_count: Banks of a pseudo-channel. [count], >= 1
        outstanding_count: Requests in flight to it. [count], >= 0

    Returns:
        Distinct banks in use. [count], up to banks_count

    Source:
        definition: each request misses a given bank with probability 1 - 1/banks

    >>> float(busy_banks_count(banks_count=16, outstanding_count=1))
    1.0
    """
    return banks_count * (1.0 - (1.0 - 1.0 / np.maximum(banks_count, 1.0 + 1e-9)) ** outstanding_count)


def bank_cycle_ns(read_frac: Numeric, device: DramDevice) -> Numeric:
    """Mean time a row miss holds its bank; a write holds it longer, until its data are restored.

    Args:
        read_frac: Share of accesses that read. [1], 0 to 1
        device: Timing of the memory.

    Returns:
        Mean bank occupation. [ns]

    Source:
        ramulator-2: tRC, and tRCD + WL + burst + tWR + tRP for writes

    >>> times = {"row_cycle_ns": 45.0, "write_recovery_ns": 16.0}
    >>> device = DramDevice(**dict.fromkeys(DramDevice.__slots__, 1.0) | times)
    >>> float(bank_cycle_ns(1.0, device))
    45.0
    """
    write_ns = (
        device.row_to_write_ns
        + device.write_latency_ns
        + device.burst_ns
        + device.write_recovery_ns
        + device.precharge_ns
    )
    return device.row_cycle_ns * read_frac + np.maximum(device.row_cycle_ns, write_ns) * (1.0 - read_frac)
