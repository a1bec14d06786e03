"""How often an access finds its row open, from the queue's contents and the row timings."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.memory.dram import DramDevice
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

    >>> device = DramDevice(**dict.fromkeys(DramDevice.__slots__, 1.0))
    >>> constants = ControllerConstants(**dict.fromkeys(ControllerConstants.__slots__, 1.0))
    >>> float(pair_hit_prob(1.0, 1.0, device, constants))
    0.0
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

    >>> device = DramDevice(**dict.fromkeys(DramDevice.__slots__, 1.0))
    >>> constants = ControllerConstants(**dict.fromkeys(ControllerConstants.__slots__, 1.0))
    >>> controller = Controller(64.0, 64.0, 0.0, 1.0, 0.0)
    >>> access = Access(1.0, 1.0, 1.0, 8.0, 1.0, 1.0)
    >>> float(activations_ratio(access, controller, device, constants))
    1.0
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
