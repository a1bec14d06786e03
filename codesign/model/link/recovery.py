"""Retry in the chain: what losses cost the reference message in rate and in time."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze, where_needed
from codesign.model.link.coding import Coding
from codesign.model.link.inputs import LinkInputs
from codesign.model.link.retry import (
    go_back_frac,
    loss_events,
    mean_losses_count,
    selective_delay_ns,
    selective_frac,
    selective_mean_ns,
    selective_spread_ns,
    window_count,
)
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class Recovery:
    """What losses cost in rate and in time."""

    useful_frac: Numeric
    delay_ns: Numeric
    mean_ns: Numeric
    sd_ns: Numeric
    tail_ns: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def recovery(inputs: LinkInputs, line: Coding, flits: Numeric, round_trip_ns: Numeric, paced_frac: Numeric) -> Recovery:
    """Go-back-N, selective retry, or none (then the transport's timeout repairs a loss).

    Args:
        inputs: The link.
        line: Losses and times of flits.
        flits: Flits of the reference message. [count]
        round_trip_ns: From sending a flit to sending it again. [ns]
        paced_frac: Share of the line that credits and replay buffer let flits use; a slower line loses fewer. [1]

    Returns:
        Useful share, delay of one loss, mean, spread and tail of the delay a message meets.

    Source:
        kurose-ross: go-back-N and selective repeat.

    >>> from codesign.model.link.example import example_inputs
    >>> from codesign.model.link.chain import link
    >>> line = link(example_inputs()).coding
    >>> float(recovery(example_inputs(), line, 10.0, 200.0, 1.0).delay_ns)
    200.0
    """
    retry, load = inputs.retry, inputs.load
    loss, links, tail = line.flit_loss_prob, load.parallel_links_count, load.tail_prob
    selective = retry.selective_flag
    local = np.maximum(retry.go_back_flag, selective)
    delay = local * round_trip_ns + (1.0 - local) * (retry.timeout_ns + round_trip_ns)
    # a retransmission starts with all credits back, so half a window of the waiting it would have done is saved
    fresh = 0.5 * (1.0 - paced_frac) * np.maximum(paced_frac * round_trip_ns - line.flit_ns, 0.0)
    back = go_back_frac(loss, window_count(delay * paced_frac - fresh, line.flit_ns))
    events = loss_events(mean_losses_count(loss, flits), links, tail)
    mean, spread = events.mean_count * delay, events.sd_count * delay
    worst = events.quantile_count * delay
    asked, message = selective > 0.0, (loss, flits, line.flit_ns, delay, links)
    picked = (
        where_needed(asked, selective_mean_ns, mean, *message),
        where_needed(asked, selective_spread_ns, spread, *message),
        where_needed(asked, selective_delay_ns, worst, *message, tail),
    )
    return Recovery(
        useful_frac=back + selective * (selective_frac(loss) - back),
        delay_ns=delay,
        mean_ns=mean + selective * (picked[0] - mean),
        sd_ns=spread + selective * (picked[1] - spread),
        tail_ns=worst + selective * (picked[2] - worst),
    )
