"""The link as one chain: signal, code, protocol, retry, flow control, silicon and upkeep of one direction."""

from dataclasses import dataclass, fields

import numpy as np

from codesign.model.link.coding import Coding, coding
from codesign.model.link.framing import message_frac
from codesign.model.link.inputs import LinkInputs, ProtocolInputs
from codesign.model.link.signal import Signal, signal
from codesign.model.link.silicon import Silicon, silicon
from codesign.model.link.transfer import Transfer, transfer
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """All results of one link, per direction, with what is needed to ask it for other message sizes."""

    goodput_gbps: Numeric
    missing_db: Numeric  # > 0: below the limit of its code
    reach_excess_m: Numeric  # > 0: longer than the medium allows
    symbol_excess_ghz: Numeric  # > 0: faster than the lanes the noise budget was fitted to
    buffer_missing_bytes: Numeric  # > 0: less buffer than the line needs
    signal: Signal
    coding: Coding
    transfer: Transfer
    silicon: Silicon
    protocol: ProtocolInputs

    def columns(self) -> dict[str, Numeric]:
        """Every number by name, nested structs flattened."""
        parts = (self, self.signal, self.coding, self.transfer, self.silicon)
        flat = {f.name: getattr(part, f.name) for part in parts for f in fields(part)}
        return {k: v for k, v in flat.items() if not hasattr(v, "__dataclass_fields__")}


def link(inputs: LinkInputs) -> Link:
    """One link from its SerDes to its goodput, latency tail, watts, edge and dollars, per direction.

    Serves scale-up, scale-out and die-to-die alike. A link that cannot work gives finite numbers and says in
    `missing_db`, `reach_excess_m`, `symbol_excess_ghz` and `buffer_missing_bytes` by how much.

    Args:
        inputs: The link.

    Returns:
        All results of the link.

    Source:
        definition: composition of the laws of this package, in the order of its modules.

    >>> from codesign.model.link.example import example_inputs
    >>> result = link(example_inputs())
    >>> float(result.coding.raw_rate_gbps), bool(0.0 < result.goodput_gbps < 800.0)
    (800.0, True)
    """
    line = signal(inputs)
    code = coding(inputs, line)
    moved = transfer(inputs, code)
    cost = silicon(inputs, line, code)
    shares = moved.retry_frac * moved.replay_frac * moved.credit_frac * moved.contention_frac
    return Link(
        goodput_gbps=code.line_rate_gbps * moved.protocol_frac * shares * (1.0 - cost.degraded_loss_frac),
        missing_db=np.maximum(-line.margin_db, 0.0),
        reach_excess_m=np.maximum(inputs.medium.length_m - inputs.medium.reach_limit_m, 0.0),
        symbol_excess_ghz=np.maximum(2.0 * line.nyquist_ghz - inputs.fit.fastest_symbol_ghz, 0.0),
        buffer_missing_bytes=np.maximum(moved.buffer_need_bytes - inputs.flow.buffer_bytes, 0.0),
        signal=line,
        coding=code,
        transfer=moved,
        silicon=cost,
        protocol=inputs.protocol,
    )


def goodput_at_gbps(message_bytes: Numeric, result: Link) -> Numeric:
    """Goodput of a stream of messages of another size on the same link.

    Args:
        message_bytes: Message. [byte]
        result: The link.

    Returns:
        Goodput of one direction. [Gb/s]

    Source:
        definition: goodput with the share of the protocol exchanged.

    >>> from codesign.model.link.example import example_inputs
    >>> result = link(example_inputs())
    >>> bool(goodput_at_gbps(64.0, result) < goodput_at_gbps(65536.0, result) == result.goodput_gbps)
    True
    """
    return result.goodput_gbps * (message_frac(message_bytes, result.protocol) / result.transfer.protocol_frac)


def message_ns(message_bytes: Numeric, result: Link) -> Numeric:
    """Mean time of one message on an otherwise idle link, from the first byte sent to the last received.

    Args:
        message_bytes: Message. [byte]
        result: The link.

    Returns:
        Latency, transfer and mean cost of retries. [ns]

    Source:
        hockney-1994: latency plus size over rate.

    >>> from codesign.model.link.example import example_inputs
    >>> result = link(example_inputs())
    >>> bool(message_ns(1024.0, result) > result.coding.base_ns)
    True
    """
    return result.coding.base_ns + 8.0 * message_bytes / goodput_at_gbps(message_bytes, result)
