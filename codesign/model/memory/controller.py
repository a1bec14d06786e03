"""What the controller makes of the DRAM: row hits, read/write turnaround, outstanding requests, interleave."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.memory.dram import (
    DramDevice,
    activation_frac,
    all_bank_refresh_frac,
    bank_cycle_ns,
    busy_banks_count,
    command_frac,
    per_bank_refresh_frac,
)
from codesign.units import Numeric, empirical


@dataclass(frozen=True, slots=True, eq=False)
class Controller:
    """One scheduler with its queues; it may serve several pseudo-channels."""

    read_queue_count: Numeric
    write_queue_count: Numeric
    close_row_flag: Numeric
    refresh_flag: Numeric
    per_bank_refresh_flag: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """What arrives at one controller queue; counts are bursts."""

    read_frac: Numeric
    run_count: Numeric  # bursts of one contiguous run
    runs_count: Numeric  # runs that progress at the same time
    outstanding_count: Numeric
    block_count: Numeric  # bursts in one direction that arrive together, beyond what the queue collects
    sequential_flag: Numeric  # 1: one linear stream over all banks; 0: runs at random addresses

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class ControllerConstants:
    """Fitted constants of a first-ready, first-come scheduler."""

    extra_cycles_count: Numeric
    first_cycles_count: Numeric
    drain_offset_count: Numeric
    drain_frac: Numeric
    block_frac: Numeric
    reopen_ratio: Numeric
    conflict_ratio: Numeric
    window_bursts_count: Numeric
    window_sharing_ratio: Numeric
    direction_frac: Numeric
    bank_slack_ratio: Numeric
    row_power_ratio: Numeric
    mix_power_ratio: Numeric
    latency_power_ratio: Numeric

    def __post_init__(self) -> None:
        freeze(self)


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


@empirical("memory_sim: Ramulator rows with random runs, all standards")
def pair_hit_prob(
    read_frac: Numeric, close_row_flag: Numeric, device: DramDevice, constants: ControllerConstants
) -> Numeric:
    """Chance that the next burst of a run, already in the queue, still finds its row open.

    An open row must stay open for tRAS and tRTP; a neighbour that waits for another row closes it after that. The
    longer this window is in units of what a burst needs (data bus or command bus), the likelier the second burst
    gets in. Reads and writes of one run are drained apart.

    Args:
        read_frac: Share of accesses that read. [1], 0 to 1
        close_row_flag: 1 where rows close after each access. [1], 0 or 1
        device: Timing of the memory.
        constants: Fitted constants.

    Returns:
        Probability of a row hit. [1], 0 to 1

    Source:
        ramulator-2: form fitted to row runs of eight standards
    """
    commands_ns = device.shared_command_flag * (
        0.5 * (device.activate_command_ns + device.precharge_command_ns * (1.0 - close_row_flag))
        + device.column_command_ns
    )
    service_ns = np.maximum(device.burst_ns, commands_ns)
    window_ns = np.maximum(device.row_open_ns - device.row_to_read_ns, 0.0) + device.read_to_precharge_ns
    shared = device.pseudo_channels_count**constants.window_sharing_ratio
    bursts = window_ns * shared / (service_ns * constants.window_bursts_count)
    same = read_frac**2 + (1.0 - read_frac) ** 2
    return (1.0 - np.exp(-(bursts**2))) * (1.0 - constants.direction_frac * (1.0 - same)) * (1.0 - close_row_flag)


def activations_ratio(
    access: Access, controller: Controller, device: DramDevice, constants: ControllerConstants
) -> Numeric:
    """Row activations for each burst.

    A run of k bursts opens a row once at least. Bursts of a run that wait in the queue together share the opening
    unless `pair_hit_prob` fails; between such groups another run may take the bank, the likelier the more runs
    there are for each bank. A linear stream opens each row once.

    Args:
        access: What arrives.
        controller: Queues and page policy.
        device: Organisation and timing.
        constants: Fitted constants.

    Returns:
        Activations over bursts. [1], 0 to 1

    Source:
        ramulator-2: row hit rates of the random-run rows of memory_sim
    """
    run = np.minimum(np.maximum(access.run_count, 1.0), device.row_bursts_count)
    waiting = np.minimum(access.outstanding_count, controller.read_queue_count + controller.write_queue_count)
    together = np.minimum(np.maximum(waiting / np.maximum(access.runs_count, 1.0), 1.0), run)
    banks = device.banks_count * device.pseudo_channels_count
    lost = 1.0 - np.exp(-constants.conflict_ratio * np.maximum(access.runs_count - 1.0, 0.0) / banks)
    hit = pair_hit_prob(access.read_frac, controller.close_row_flag, device, constants)
    runs = 1.0 / run + (1.0 - 1.0 / together) * (1.0 - hit) + (1.0 / together - 1.0 / run) * lost
    opened = np.where(access.sequential_flag > 0.5, 1.0 / device.row_bursts_count, np.minimum(runs, 1.0))
    return np.where(controller.close_row_flag > 0.5, 1.0, opened)


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
    random = softmin_frac(
        softmin_frac(data, rows, constants.mix_power_ratio), flight, constants.latency_power_ratio
    )
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
    pieces = outstanding_bytes / interleave_bytes
    channels = np.maximum(channels_count, 1.0 + 1e-9)
    in_turn = np.minimum(1.0, pieces / channels)
    by_chance = 1.0 - (1.0 - 1.0 / channels) ** pieces
    return np.where(sequential_flag > 0.5, in_turn, by_chance)
