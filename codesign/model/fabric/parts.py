"""Where the time of a collective goes: parts that add up to it, and which tier or algorithm sets them."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.fabric.collectives import all_reduce_ns, outer_reduce_ratio, ring_all_reduce_ns
from codesign.model.fabric.exchange import all_to_all_ns
from codesign.model.fabric.tier import Fabric
from codesign.model.fabric.wire import line_ns, network_ns, pair_flag, ring_steps_count
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveParts:
    """Parts of one collective; they add up to the total."""

    launch_ns: Numeric  # software start in both tiers
    steps_ns: Numeric  # message starts: links, switches, flags
    protocol_ns: Numeric  # change of protocol and filling of pipelines
    scale_up_ns: Numeric  # bytes over the scale-up links
    scale_out_ns: Numeric  # what the network takes beyond that
    saved_ns: Numeric  # what another algorithm (in-switch, one-shot, two-shot) saves; negative where one was taken
    total_ns: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def all_reduce_parts(
    message_bytes: Numeric, group_count: Numeric, inner_count: Numeric, fabric: Fabric
) -> CollectiveParts:
    """Parts of an all-reduce: those of the ring, then what a faster algorithm saves on them.

    Args:
        message_bytes: The buffer each rank holds. [byte]
        group_count: Ranks in the group. [count]
        inner_count: Ranks of the group in one scale-up domain. [count]
        fabric: The two tiers.

    Returns:
        Parts. [ns]
    """
    up, out = fabric.scale_up, fabric.scale_out
    outer = group_count / inner_count
    crosses, inside = pair_flag(outer), pair_flag(inner_count)
    wire_in = 2.0 * message_bytes * (inner_count - 1.0) / inner_count
    wire_out = crosses * outer_reduce_ratio(group_count, inner_count) * message_bytes / inner_count
    ring = ring_all_reduce_ns(message_bytes, group_count, inner_count, fabric)
    launch = inside * up.launch_ns + crosses * out.launch_ns
    levels = np.log2(np.maximum(outer, 1.0))
    steps = 2.0 * (inside * up.hop_ns * ring_steps_count(inner_count, up) + crosses * out.hop_ns * levels)
    lines = line_ns(wire_in, inner_count, 0.5 * up.pair_loss_frac, up)
    beyond = np.maximum(network_ns(wire_out, out) - lines, 0.0)
    total = all_reduce_ns(message_bytes, group_count, inner_count, fabric)
    return CollectiveParts(launch, steps, ring - launch - steps - lines - beyond, lines, beyond, total - ring, total)


def all_to_all_parts(
    message_bytes: Numeric, group_count: Numeric, inner_count: Numeric, fabric: Fabric
) -> CollectiveParts:
    """Parts of an all-to-all.

    Args:
        message_bytes: What one rank sends in all. [byte]
        group_count: Ranks in the group. [count]
        inner_count: Ranks of the group in one scale-up domain. [count]
        fabric: The two tiers.

    Returns:
        Parts. [ns]
    """
    up, out = fabric.scale_up, fabric.scale_out
    crosses, inside = pair_flag(group_count / inner_count), pair_flag(inner_count)
    wire_in = message_bytes * (inner_count - 1.0) / group_count
    wire_out = message_bytes * (group_count - inner_count) / group_count
    launch = inside * (up.launch_ns + up.exchange_launch_ns) + crosses * (out.launch_ns + out.exchange_launch_ns)
    steps = crosses * out.hop_ns
    slower = up.exchange_contention_ratio / up.exchange_rate_ratio
    lines = line_ns(wire_in, inner_count, up.exchange_pair_loss_frac, up) * slower
    network = network_ns(wire_out, out) * out.exchange_contention_ratio / out.exchange_rate_ratio
    beyond = np.maximum(network - lines, 0.0)
    total = all_to_all_ns(message_bytes, group_count, inner_count, fabric)
    return CollectiveParts(
        launch_ns=launch,
        steps_ns=steps,
        protocol_ns=total - launch - steps - lines - beyond,
        scale_up_ns=lines,
        scale_out_ns=beyond,
        saved_ns=0.0 * total,
        total_ns=total,
    )
