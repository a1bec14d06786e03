"""What headers, flits and control traffic leave of a line, by message size."""

import numpy as np

from codesign.units import Numeric


def packets_count(message_bytes: Numeric, payload_bytes: Numeric) -> Numeric:
    """Packets a message is cut into.

    Args:
        message_bytes: Message. [byte], > 0
        payload_bytes: Payload of a full packet. [byte], > 0

    Returns:
        Packets, at least one. [count]

    Source:
        definition: rounded up.

    >>> float(packets_count(message_bytes=1000, payload_bytes=256))
    4.0
    """
    return np.maximum(np.ceil(message_bytes / payload_bytes), 1.0)


def packed_bytes(message_bytes: Numeric, packets_count: Numeric, header_bytes: Numeric) -> Numeric:
    """A message with the headers of its packets, before flits or framing.

    Args:
        message_bytes: Message. [byte]
        packets_count: Packets it is cut into. [count]
        header_bytes: Header, check and gap of one packet. [byte]

    Returns:
        Bytes to carry. [byte]

    Source:
        definition: sum.

    >>> packed_bytes(message_bytes=1000, packets_count=4, header_bytes=25)
    1100
    """
    return message_bytes + packets_count * header_bytes


def flits_count(packed_bytes: Numeric, flit_payload_bytes: Numeric) -> Numeric:
    """Flits that carry a message; the last one is padded.

    Args:
        packed_bytes: Message with its headers. [byte]
        flit_payload_bytes: What a flit carries. [byte], > 0

    Returns:
        Flits, at least one. [count]

    Source:
        definition: rounded up.

    >>> float(flits_count(packed_bytes=1100, flit_payload_bytes=236))
    5.0
    """
    return np.maximum(np.ceil(packed_bytes / flit_payload_bytes), 1.0)


def wire_frac(
    message_bytes: Numeric,
    flits_count: Numeric,
    flit_bytes: Numeric,
    encoding_frac: Numeric,
    control_frac: Numeric,
) -> Numeric:
    """Share of the line (behind the block code) that a stream of such messages leaves for the messages.

    Args:
        message_bytes: Message. [byte]
        flits_count: Flits or frames it takes. [count]
        flit_bytes: Flit on the line. [byte]
        encoding_frac: Share a line code leaves (128b/130b, 256b/257b). [1]
        control_frac: Share taken by acknowledgements, credits and idle marks. [1]

    Returns:
        Messages over line. [1]

    Source:
        pcisig-pcie6-flit: 236 of 256 bytes carry packets.

    >>> wire_frac(message_bytes=236, flits_count=1, flit_bytes=256, encoding_frac=1.0, control_frac=0.0)
    0.921875
    """
    return message_bytes / (flits_count * flit_bytes) * encoding_frac * (1.0 - control_frac)
