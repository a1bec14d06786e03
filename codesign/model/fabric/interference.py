"""What two collectives on one link take from each other, and what a hidden collective takes from compute."""

import numpy as np

from codesign.units import Numeric


def shared_link_ns(own_ns: Numeric, other_ns: Numeric) -> Numeric:
    """Finish of one transfer that starts together with another on the same link, both served evenly.

    Args:
        own_ns: Time it would take alone. [ns], >= 0
        other_ns: Time the other would take alone. [ns], >= 0

    Returns:
        Time with the other beside it. [ns]

    Source:
        definition: processor sharing; the shorter takes twice its time, the longer ends when both are done.

    >>> float(shared_link_ns(own_ns=10.0, other_ns=4.0)), float(shared_link_ns(own_ns=4.0, other_ns=10.0))
    (14.0, 8.0)
    """
    return own_ns + np.minimum(own_ns, other_ns)


def exposed_ns(communication_ns: Numeric, window_ns: Numeric) -> Numeric:
    """What remains visible of a communication that may run beside compute.

    Args:
        communication_ns: Time of the communication. [ns], >= 0
        window_ns: Compute it may hide under. [ns], >= 0

    Returns:
        Exposed time. [ns]

    Source:
        definition: what does not fit the window.

    >>> float(exposed_ns(communication_ns=10.0, window_ns=4.0))
    6.0
    """
    return np.maximum(communication_ns - window_ns, 0.0)


def stolen_compute_ns(hidden_ns: Numeric, processor_frac: Numeric) -> Numeric:
    """What a hidden communication takes from compute: the processors that move and add its data.

    Args:
        hidden_ns: Communication that runs beside compute. [ns], >= 0
        processor_frac: Share of the processors it occupies. [1], 0 to below 1

    Returns:
        Time by which compute becomes longer. [ns]

    Source:
        definition: the work of the missing share is done by the others.

    >>> stolen_compute_ns(hidden_ns=90.0, processor_frac=0.1)
    10.0
    """
    return hidden_ns * processor_frac / (1.0 - processor_frac)
