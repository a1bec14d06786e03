"""A protocol's flits or frames, for any message size."""

import numpy as np

from codesign.model.link.inputs import ProtocolInputs
from codesign.model.link.protocol import flits_count, packed_bytes, packets_count, wire_frac
from codesign.units import Numeric


def message_flits_count(message_bytes: Numeric, protocol: ProtocolInputs) -> Numeric:
    """Flits a message takes, in units of the flit (for frames: of a full frame).

    Args:
        message_bytes: Message. [byte]
        protocol: Flits and headers.

    Returns:
        Flits. [count]

    Source:
        definition: packets with headers, packed into flits.

    >>> from codesign.model.link.example import example_inputs
    >>> float(message_flits_count(608.0, example_inputs().protocol))
    2.0
    """
    packets = packets_count(message_bytes, protocol.payload_bytes)
    packed = packed_bytes(message_bytes, packets, protocol.header_bytes)
    flits = flits_count(packed, protocol.flit_payload_bytes)
    frames = packed / (np.minimum(protocol.payload_bytes, message_bytes) + protocol.header_bytes)
    return np.where(protocol.framed_flag > 0.5, frames, flits)


def message_frac(message_bytes: Numeric, protocol: ProtocolInputs) -> Numeric:
    """Share of the line behind the code that a stream of messages of one size gets.

    Args:
        message_bytes: Message. [byte]
        protocol: Flits and headers.

    Returns:
        Messages over line. [1]

    Source:
        pcisig-pcie6-flit: flit efficiency, headers added.

    >>> from codesign.model.link.example import example_inputs
    >>> round(float(message_frac(608.0, example_inputs().protocol)), 4)
    0.4655
    """
    framed = np.minimum(protocol.payload_bytes, message_bytes) + protocol.header_bytes
    flit = np.where(protocol.framed_flag > 0.5, framed, protocol.flit_bytes)
    flits = message_flits_count(message_bytes, protocol)
    return wire_frac(message_bytes, flits, flit, protocol.encoding_frac, protocol.control_frac)
