"""What the controller makes of the DRAM: read/write turnaround, outstanding requests, interleave, and all together."""

import numpy as np

from codesign.model.memory.dram import (
    DramDevice,
    activation_frac,
    all_bank_refresh_frac,
    bank_cycle_ns,
    busy_banks_count,
    command_frac,
    per_bank_refresh_frac,
)
from codesign.model.memory.rows import Access, Controller, ControllerConstants, activations_ratio
from codesign.units import Numeric, empirical

__all__ = [
    "Access",
    "Controller",
    "ControllerConstants",
    "achieved_frac",
    "device_latency_ns",
    "drain_count",
    "interleave_frac",
    "outstanding_frac",
    "refresh_frac",
    "softmin_frac",
    "turnaround_frac",
]


def softmin_frac(a_frac: Numeric, b_frac: Numeric, power_ratio: Numeric) -> Numeric:
    """Smooth minimum of two ceilings: neither is quite reached where both bind, as in any queue.

    Args:
        a_frac: First ceiling. [1], > 0
        b_frac: Second ceiling. [1], > 0
        power_ratio: Sharpness; large is the hard minimum. [1], >= 1

    Returns:
        What both together allow. [1]

    Source:
        definition: (a^-n + b^-n)^(-1/n)

    >>> round(float(softmin_frac(0.5, 1e9, 4.0)), 6)
    0.5
    """
    low = np.minimum(a_frac, b_frac)
    high = np.maximum(np.maximum(a_frac, b_frac), 1e-300)
    return low * (1.0 + (low / high) ** power_ratio) ** (-1.0 / power_ratio)


@empirical("memory_sim: Ramulator rows with writes; queues of 8 to 256")
def drain_count(
    write_queue_count: Numeric, block_count: Numeric, pseudo_channels_count: Numeric, constants: ControllerConstants
) -> Numeric:
    """Writes that one drain sends to a pseudo-channel before the bus turns round again.

    A drain empties the queue between its watermarks, plus what arrives meanwhile; traffic that already comes in
    blocks of one direction adds its block.

    Args:
        write_queue_count: Entries of the write queue. [count], >= 0
        block_count: Length of same-direction blocks at arrival, 1 when mixed. [count], >= 1
        pseudo_channels_count: Pseudo-channels that share the queue. [count], >= 1
        constants: Fitted constants.

    Returns:
        Bursts of one drain. [count]

    Source:
        ramulator-2: watermarks 0.8 and 0.2; the offset is fitted

    >>> constants = ControllerConstants(**dict.fromkeys(ControllerConstants.__slots__, 1.0))
    >>> float(drain_count(write_queue_count=19, block_count=1, pseudo_channels_count=2, constants=constants))
    10.0
    """
    queue = constants.drain_frac * write_queue_count + constants.drain_offset_count
    return (queue + constants.block_frac * np.maximum(block_count - 1.0, 0.0)) / pseudo_channels_count


def turnaround_frac(
    read_frac: Numeric,
    drain_count: Numeric,
    activations_ratio: Numeric,
    device: DramDevice,
    constants: ControllerConstants,
) -> Numeric:
    """Share of bus time left when reads and writes alternate in drains.

    Each drain idles the bus twice: reads to writes (the strobe turns) and writes to reads (tWTR and the read
    latency). Where rows must be opened for the new direction, part of that opening is exposed as well.

    Args:
        read_frac: Share of accesses that read. [1], 0 to 1
        drain_count: Writes of one drain. [count], > 0
        activations_ratio: Activations for each burst of random runs, 0 for a stream. [1], 0 to 1
        device: Timing of the memory.
        constants: Fitted constants.

    Returns:
        Busy share of the data bus. [1], 0 to 1

    Source:
        ramulator-2: turnaround constraints of the standards; mixed rows of memory_sim

    >>> device = DramDevice(**dict.fromkeys(DramDevice.__slots__, 1.0))
    >>> constants = ControllerConstants(**dict.fromkeys(ControllerConstants.__slots__, 1.0))
    >>> float(turnaround_frac(0.5, 1.0, 0.0, device, constants))
    0.5
    """
    to_write_ns = np.maximum(
        0.0, device.read_to_write_ns + device.write_latency_ns - device.read_latency_ns - device.burst_ns
    )
    to_read_ns = device.write_to_read_ns + device.read_latency_ns
    reopen_ns = constants.reopen_ratio * activations_ratio * (device.precharge_ns + device.row_to_read_ns)
    write_frac = 1.0 - read_frac
    mixed = (read_frac > 0.0) & (write_frac > 0.0)
    idle_ns = np.where(mixed, to_write_ns + to_read_ns + reopen_ns, 0.0)
    return 1.0 / (1.0 + idle_ns * write_frac / (drain_count * device.burst_ns))


def outstanding_frac(
    outstanding_count: Numeric, latency_ns: Numeric, burst_ns: Numeric, pseudo_channels_count: Numeric
) -> Numeric:
    """Share of peak that the requests in flight sustain: Little's law on one controller queue.

    Args:
        outstanding_count: Bursts in flight. [count], > 0
        latency_ns: From request to data. [ns], > 0
        burst_ns: Bus time of one burst. [ns], > 0
        pseudo_channels_count: Pseudo-channels they spread over. [count], >= 1

    Returns:
        Ceiling in units of peak; above 1 it does not bind. [1]

    Source:
        little-1961: L = lambda W

    >>> outstanding_frac(outstanding_count=8, latency_ns=32.0, burst_ns=2.0, pseudo_channels_count=1)
    0.5
    """
    return outstanding_count * burst_ns / (pseudo_channels_count * latency_ns)


def device_latency_ns(
    access: Access, controller: Controller, device: DramDevice, constants: ControllerConstants
) -> Numeric:
    """Unloaded latency of the DRAM and its controller, from the request to the end of the data.

    Args:
        access: What arrives; a stream finds its row open.
        controller: Page policy.
        device: Timing of the memory.
        constants: Fitted constants.

    Returns:
        Latency without queueing and without the way across the chip. [ns]

    Source:
        ramulator-2: read latency plus row opening; controller cycles fitted

    >>> device = DramDevice(**dict.fromkeys(DramDevice.__slots__, 1.0))
    >>> constants = ControllerConstants(**dict.fromkeys(ControllerConstants.__slots__, 1.0))
    >>> controller = Controller(64.0, 64.0, 0.0, 1.0, 0.0)
    >>> access = Access(1.0, 1.0, 1.0, 8.0, 1.0, 1.0)
    >>> float(device_latency_ns(access, controller, device, constants))
    3.125
    """
    cycles = constants.extra_cycles_count + constants.first_cycles_count / np.maximum(access.outstanding_count, 1.0)
    row_ns = device.row_to_read_ns + device.precharge_ns * (1.0 - controller.close_row_flag)
    opening_ns = np.where(access.sequential_flag > 0.5, 0.0, row_ns)
    return device.read_latency_ns + device.burst_ns + cycles * device.clock_ns + opening_ns


def refresh_frac(controller: Controller, device: DramDevice) -> Numeric:
    """Share of time left by the refresh scheme in use.

    Args:
        controller: Whether refresh runs, and for all banks or one at a time.
        device: Timing of the memory.

    Returns:
        Available share. [1], 0 to 1

    Source:
        definition: choice between the two refresh laws

    >>> times = {"refresh_ns": 350.0, "precharge_ns": 15.0, "row_to_read_ns": 25.0, "refresh_interval_ns": 3900.0}
    >>> device = DramDevice(**dict.fromkeys(DramDevice.__slots__, 1.0) | times)
    >>> float(refresh_frac(Controller(64.0, 64.0, 0.0, 1.0, 0.0), device))
    0.9
    """
    all_banks = all_bank_refresh_frac(
        device.refresh_ns, device.precharge_ns, device.row_to_read_ns, device.refresh_interval_ns
    )
    one_bank = per_bank_refresh_frac(device.precharge_ns, device.row_to_read_ns, device.refresh_bank_interval_ns)
    scheme = np.where(controller.per_bank_refresh_flag > 0.5, one_bank, all_banks)
    return np.where(controller.refresh_flag > 0.5, scheme, 1.0)


@empirical("memory_sim: all Ramulator rows")
def achieved_frac(
    access: Access, controller: Controller, device: DramDevice, constants: ControllerConstants
) -> Numeric:
    """Share of peak that one controller achieves for one access pattern.

    The ceilings of activations, commands, banks, turnaround and outstanding requests combine as smooth minima;
    refresh scales what remains. Channels are taken to be balanced (see `interleave_frac`).

    Args:
        access: What arrives.
        controller: Queues and policies.
        device: Organisation and timing.
        constants: Fitted constants.

    Returns:
        Achieved over peak payload rate. [1], 0 to 1

    Source:
        ramulator-2: memory_sim rows, mean absolute error in tests

    >>> device = DramDevice(**dict.fromkeys(DramDevice.__slots__, 1.0))
    >>> constants = ControllerConstants(**dict.fromkeys(ControllerConstants.__slots__, 1.0))
    >>> access = Access(1.0, 1.0, 1.0, 8.0, 1.0, 1.0)
    >>> never = Controller(64.0, 64.0, 0.0, 0.0, 0.0)
    >>> float(achieved_frac(access, never, device, constants))
    1.0
    """
    activations = activations_ratio(access, controller, device, constants)
    waiting = np.minimum(access.outstanding_count, controller.read_queue_count + controller.write_queue_count)
    banks = busy_banks_count(device.banks_count, waiting / device.pseudo_channels_count)
    bank_ns = activations * bank_cycle_ns(access.read_frac, device) * constants.bank_slack_ratio
    rows = np.minimum(
        activation_frac(activations, device), command_frac(activations, controller.close_row_flag, device)
    )
    rows = softmin_frac(rows, banks * device.burst_ns / bank_ns, constants.row_power_ratio)
    drain = drain_count(controller.write_queue_count, access.block_count, device.pseudo_channels_count, constants)
    stream = access.sequential_flag > 0.5
    data = turnaround_frac(access.read_frac, drain, np.where(stream, 0.0, activations), device, constants)
    latency_ns = device_latency_ns(access, controller, device, constants)
    flight = outstanding_frac(waiting, latency_ns, device.burst_ns, device.pseudo_channels_count)
    random = softmin_frac(softmin_frac(data, rows, constants.mix_power_ratio), flight, constants.latency_power_ratio)
    return refresh_frac(controller, device) * np.where(stream, np.minimum(data, flight), random)


def interleave_frac(
    outstanding_bytes: Numeric, interleave_bytes: Numeric, channels_count: Numeric, sequential_flag: Numeric
) -> Numeric:
    """Share of the channels that traffic in flight keeps busy, for a given interleave granularity.

    The bytes in flight cover ``outstanding / interleave`` pieces. A stream deals them to the channels in turn; random
    pieces fall on channels by chance. Coarse pieces leave channels idle; fine pieces cost row hits elsewhere.

    Args:
        outstanding_bytes: Bytes in flight over all channels. [byte], > 0
        interleave_bytes: Contiguous bytes on one channel. [byte], > 0
        channels_count: Channels. [count], >= 1
        sequential_flag: 1 for a stream, 0 for random pieces. [1], 0 or 1

    Returns:
        Mean busy share. [1], 0 to 1

    Source:
        definition: occupancy of random pieces, or round robin

    >>> float(interleave_frac(outstanding_bytes=4096, interleave_bytes=512, channels_count=16, sequential_flag=1.0))
    0.5
    """
    pieces = np.maximum(outstanding_bytes / interleave_bytes, 1.0)  # one piece keeps one channel busy
    channels = np.maximum(channels_count, 1.0 + 1e-9)
    in_turn = np.minimum(1.0, pieces / channels)
    by_chance = 1.0 - (1.0 - 1.0 / channels) ** pieces
    return np.where(sequential_flag > 0.5, in_turn, by_chance)
