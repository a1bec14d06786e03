"""The memory system of one accelerator: what it can hold, what each kind of access achieves, what it costs."""

from dataclasses import dataclass, fields, replace

import numpy as np

from codesign.columns import freeze
from codesign.model.memory.controller import (
    Access,
    Controller,
    ControllerConstants,
    achieved_frac,
    device_latency_ns,
    interleave_frac,
)
from codesign.model.memory.dram import DramDevice, burst_ns, peak_rate_gbps
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class MemoryInputs:
    """Everything the memory chain reads, as numbers."""

    # devices
    stacks_count: Numeric
    pin_rate_gbps: Numeric
    reference_pin_rate_gbps: Numeric  # rate at which the clock below was printed
    data_pins_count: Numeric
    payload_frac: Numeric
    height_count: Numeric
    die_bytes: Numeric
    pin_rate_limit_gbps: Numeric
    height_limit_count: Numeric
    # organisation and timing of one pseudo-channel
    channels_count: Numeric  # controller queues of one stack
    pseudo_channels_count: Numeric  # pseudo-channels of one queue
    banks_count: Numeric
    burst_bytes: Numeric
    row_bursts_count: Numeric
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
    activate_command_ns: Numeric
    precharge_command_ns: Numeric
    column_command_ns: Numeric
    shared_command_flag: Numeric
    # controller and the way across the chip
    read_queue_count: Numeric
    write_queue_count: Numeric  # entries of one controller queue, write-back cache included
    close_row_flag: Numeric
    per_bank_refresh_flag: Numeric
    outstanding_bytes: Numeric
    path_latency_ns: Numeric
    interleave_bytes: Numeric
    # protection
    ecc_capacity_frac: Numeric
    ecc_rate_frac: Numeric
    # access mixes of the workload
    kv_run_bytes: Numeric
    optimizer_read_frac: Numeric
    activation_read_frac: Numeric
    random_run_bytes: Numeric
    # cost
    device_pj_per_bit: Numeric
    path_pj_per_bit: Numeric
    idle_w: Numeric  # of one stack
    phy_mm2: Numeric  # of one stack
    edge_mm: Numeric  # of one stack
    # second tier
    second_bytes: Numeric
    second_rate_gbps: Numeric
    second_read_frac: Numeric  # achieved share of its rate
    second_latency_ns: Numeric
    second_pj_per_bit: Numeric
    second_idle_w: Numeric
    second_phy_mm2: Numeric
    second_edge_mm: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class MemorySystem:
    """What the memory of one accelerator offers; rates are payload, reads plus writes."""

    peak_rate_gbps: Numeric
    capacity_bytes: Numeric
    weights_frac: Numeric
    kv_frac: Numeric
    optimizer_frac: Numeric
    activation_frac: Numeric
    random_frac: Numeric
    latency_ns: Numeric
    second_bytes: Numeric
    second_rate_gbps: Numeric
    second_latency_ns: Numeric
    device_pj_per_bit: Numeric
    path_pj_per_bit: Numeric
    second_pj_per_bit: Numeric
    idle_w: Numeric
    phy_mm2: Numeric
    edge_mm: Numeric
    pin_rate_excess_ratio: Numeric
    height_excess_ratio: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def memory_system(inputs: MemoryInputs, constants: ControllerConstants) -> MemorySystem:
    """Compose the memory of one accelerator.

    Five access mixes: weights (a read stream), KV reads (runs of one KV block, cut at the interleave), optimizer
    (a stream that reads and writes), activations (likewise) and random (short runs). Designs beyond what a device
    class offers get a graded excess, not an error.

    Args:
        inputs: Devices, controller and mixes.
        constants: Fitted controller constants.

    Returns:
        Capacity, peak, achieved share by mix, energy, area, edge.
    """
    i = inputs
    stack_gbps = peak_rate_gbps(i.pin_rate_gbps, i.data_pins_count, i.payload_frac)
    peak_gbps = i.stacks_count * stack_gbps * (1.0 - i.ecc_rate_frac)
    one = 1.0
    return MemorySystem(
        peak_rate_gbps=peak_gbps,
        capacity_bytes=i.stacks_count * i.height_count * i.die_bytes * (1.0 - i.ecc_capacity_frac),
        weights_frac=_stream_frac(i, one, constants),
        kv_frac=_run_frac(i, one, i.kv_run_bytes, constants),
        optimizer_frac=_stream_frac(i, i.optimizer_read_frac, constants),
        activation_frac=_stream_frac(i, i.activation_read_frac, constants),
        random_frac=_run_frac(i, one, i.random_run_bytes, constants),
        latency_ns=_latency_ns(i, _access(i, one, i.interleave_bytes, 0.0), constants),
        second_bytes=i.second_bytes,
        second_rate_gbps=i.second_rate_gbps * i.second_read_frac,
        second_latency_ns=i.second_latency_ns,
        device_pj_per_bit=i.device_pj_per_bit,
        path_pj_per_bit=i.path_pj_per_bit,
        second_pj_per_bit=i.second_pj_per_bit,
        idle_w=i.stacks_count * i.idle_w + i.second_idle_w,
        phy_mm2=i.stacks_count * i.phy_mm2 + i.second_phy_mm2,
        edge_mm=i.stacks_count * i.edge_mm + i.second_edge_mm,
        pin_rate_excess_ratio=np.maximum(0.0, i.pin_rate_gbps / i.pin_rate_limit_gbps - 1.0),
        height_excess_ratio=np.maximum(0.0, i.height_count / i.height_limit_count - 1.0),
    )


def _device(i: MemoryInputs) -> DramDevice:
    """Timing at the chosen pin rate: commands and bursts follow the clock, rows do not."""
    channel_gbps = peak_rate_gbps(i.pin_rate_gbps, i.data_pins_count, i.payload_frac) / (
        i.channels_count * i.pseudo_channels_count
    )
    clock_ratio = i.reference_pin_rate_gbps / i.pin_rate_gbps
    timing = {f.name: getattr(i, f.name) for f in fields(DramDevice) if f.name != "burst_ns"}
    for name in ("clock_ns", "activate_command_ns", "precharge_command_ns", "column_command_ns"):
        timing[name] = timing[name] * clock_ratio
    return DramDevice(burst_ns=burst_ns(i.burst_bytes, channel_gbps), **timing)


def _controller(i: MemoryInputs) -> Controller:
    return Controller(
        read_queue_count=i.read_queue_count,
        write_queue_count=i.write_queue_count,
        close_row_flag=i.close_row_flag,
        refresh_flag=1.0,
        per_bank_refresh_flag=i.per_bank_refresh_flag,
    )


def _access(i: MemoryInputs, read_frac: Numeric, run_bytes: Numeric, sequential_flag: Numeric) -> Access:
    """One controller's share of the traffic: the queue is full when the chip keeps enough in flight."""
    piece_bytes = np.minimum(run_bytes, i.interleave_bytes)
    share_count = i.outstanding_bytes / (_channels_count(i) * i.burst_bytes)
    run_count = np.maximum(piece_bytes / i.burst_bytes, 1.0)
    return Access(
        read_frac=read_frac,
        run_count=run_count,
        runs_count=np.maximum(i.read_queue_count / run_count, 1.0),  # as many as a full queue holds
        outstanding_count=share_count,
        block_count=1.0,
        sequential_flag=sequential_flag,
    )


def _channels_count(i: MemoryInputs) -> Numeric:
    """Controller queues of the chip; a design without memory counts as one stack that offers no rate."""
    return np.maximum(i.stacks_count, 1.0) * i.channels_count


def _latency_ns(i: MemoryInputs, access: Access, constants: ControllerConstants) -> Numeric:
    many = replace(access, outstanding_count=1e9)  # extra cycles of a lone request do not matter here
    return i.path_latency_ns + device_latency_ns(many, _controller(i), _device(i), constants)


def _limited_frac(i: MemoryInputs, access: Access, balance_frac: Numeric, constants: ControllerConstants) -> Numeric:
    """Controller share, channel balance, and Little's law over the whole way from core to DRAM."""
    stack_gbps = peak_rate_gbps(i.pin_rate_gbps, i.data_pins_count, i.payload_frac)
    flight_gbps = 8.0 * i.outstanding_bytes / _latency_ns(i, access, constants)
    served = achieved_frac(access, _controller(i), _device(i), constants) * balance_frac
    return np.minimum(served, flight_gbps / (np.maximum(i.stacks_count, 1.0) * stack_gbps))


def _stream_frac(i: MemoryInputs, read_frac: Numeric, constants: ControllerConstants) -> Numeric:
    access = _access(i, read_frac, i.interleave_bytes, 1.0)
    channels = _channels_count(i)
    balance = interleave_frac(i.outstanding_bytes, i.interleave_bytes, channels, 1.0)
    return _limited_frac(i, access, balance, constants)


def _run_frac(i: MemoryInputs, read_frac: Numeric, run_bytes: Numeric, constants: ControllerConstants) -> Numeric:
    access = _access(i, read_frac, run_bytes, 0.0)
    channels = _channels_count(i)
    piece_bytes = np.minimum(run_bytes, i.interleave_bytes)
    balance = interleave_frac(i.outstanding_bytes, piece_bytes, channels, 0.0)
    return _limited_frac(i, access, balance, constants)
