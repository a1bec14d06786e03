"""Rates and times of the reference message: protocol, retry, windows and queue put together."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.link.buffer import contention_frac, head_of_line_frac
from codesign.model.link.buffering import buffering
from codesign.model.link.coding import Coding
from codesign.model.link.framing import message_flits_count
from codesign.model.link.inputs import LinkInputs
from codesign.model.link.protocol import wire_frac
from codesign.model.link.queueing import mean_wait_ns, tail_wait_ns
from codesign.model.link.recovery import recovery
from codesign.model.link.retry import no_retry_prob, replay_buffer_frac
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class Transfer:
    """Rates and times of messages on the line."""

    protocol_frac: Numeric
    retry_frac: Numeric
    replay_frac: Numeric
    credit_frac: Numeric
    contention_frac: Numeric
    credit_loop_ns: Numeric
    buffer_need_bytes: Numeric
    pfc_headroom_bytes: Numeric
    head_of_line_frac: Numeric
    message_flits_count: Numeric
    serial_ns: Numeric
    retry_delay_ns: Numeric  # of one loss
    retry_mean_ns: Numeric
    retry_sd_ns: Numeric
    retry_p999_ns: Numeric  # at the tail probability asked for
    no_retry_prob: Numeric
    queue_mean_ns: Numeric
    queue_p999_ns: Numeric
    p999_ns: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def windowed_ns(flits_count: Numeric, flit_ns: Numeric, window_count: Numeric, round_trip_ns: Numeric) -> Numeric:
    """Time to put a message on the line when no more than a window of flits may be unanswered.

    Args:
        flits_count: Flits of the message. [count]
        flit_ns: Time of a flit. [ns]
        window_count: Flits the window holds. [count], > 0
        round_trip_ns: Round trip of an answer. [ns]

    Returns:
        From the first to the end of the last flit. [ns]

    Source:
        kung-n23-1994: a window a round trip.

    >>> float(windowed_ns(flits_count=10, flit_ns=1.0, window_count=4, round_trip_ns=20.0))
    42.0
    """
    window = np.maximum(np.floor(window_count + 1e-9), np.minimum(window_count, 1.0))
    rounds = np.floor(np.maximum(flits_count - 1.0, 0.0) / window)
    return rounds * np.maximum(round_trip_ns, window * flit_ns) + (flits_count - rounds * window) * flit_ns


def transfer(inputs: LinkInputs, line: Coding) -> Transfer:
    """Rates and times of the reference message: protocol, retry, windows, queue.

    The tail adds the spread of retry and queue as independent parts beyond their means.

    Args:
        inputs: The link.
        line: Rates, losses and fixed times.

    Returns:
        Shares of the line, times of the message.

    Source:
        kurose-ross: pipelined transfer; little-1961 is the source of the windows.

    >>> from codesign.model.link.example import example_inputs
    >>> from codesign.model.link.chain import link
    >>> line = link(example_inputs()).coding
    >>> 0.8 < float(transfer(example_inputs(), line).protocol_frac) < 1.0
    True
    """
    protocol, load, flow = inputs.protocol, inputs.load, inputs.flow
    round_trip = 2.0 * line.one_way_ns + line.flit_ns + inputs.retry.detect_ns
    flits = message_flits_count(load.message_bytes, protocol)
    buffers = buffering(inputs, line)
    replay = replay_buffer_frac(inputs.retry.replay_bytes, round_trip, line.line_rate_gbps)
    retries = np.maximum(inputs.retry.go_back_flag, inputs.retry.selective_flag)
    replay = 1.0 - retries * (1.0 - np.maximum(replay, 1e-9))
    credit = np.maximum(buffers.useful_frac, 1e-9)
    window = np.minimum(credit, replay)
    losses = recovery(inputs, line, flits, round_trip, window)
    head = head_of_line_frac(
        flow.ports_count, flow.channels_count, flow.few_ratio, flow.ports_exponent_ratio, flow.channels_exponent_ratio
    )
    serial = windowed_ns(flits, line.flit_ns, window * buffers.loop_ns / line.flit_ns, buffers.loop_ns)
    serial = np.where(window < 1.0, serial, flits * line.flit_ns)
    packet = load.batch_count * np.minimum(flits * line.flit_ns, line.flit_ns)
    wait = mean_wait_ns(np.minimum(load.offered_frac, 0.999), packet, load.variation_ratio)
    wait_tail = tail_wait_ns(wait, load.offered_frac, load.tail_prob)
    late, queued = losses.tail_ns - losses.mean_ns, wait_tail - wait
    beyond = np.sqrt(late * late + queued * queued)
    base = line.base_ns + serial
    return Transfer(
        protocol_frac=wire_frac(
            load.message_bytes, flits, line.flit_bytes, protocol.encoding_frac, protocol.control_frac
        ),
        retry_frac=losses.useful_frac,
        replay_frac=window / credit,
        credit_frac=credit,
        contention_frac=contention_frac(head, flow.random_frac, np.minimum(protocol.hops_count, 1.0)),
        credit_loop_ns=buffers.loop_ns,
        buffer_need_bytes=buffers.need_bytes,
        pfc_headroom_bytes=buffers.headroom_bytes,
        head_of_line_frac=head,
        message_flits_count=flits,
        serial_ns=serial,
        retry_delay_ns=losses.delay_ns,
        retry_mean_ns=losses.mean_ns,
        retry_sd_ns=losses.sd_ns,
        retry_p999_ns=losses.tail_ns,
        no_retry_prob=no_retry_prob(line.flit_loss_prob, flits, load.parallel_links_count),
        queue_mean_ns=wait,
        queue_p999_ns=wait_tail,
        p999_ns=base + losses.mean_ns + wait + beyond,
    )
