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


def exposed_ns(
    collective_ns: Numeric, window_ns: Numeric, overlap_flag: Numeric = 1.0, cost_frac: Numeric = 0.0
) -> Numeric:
    """What a collective adds to a step when it may run under computation.

    What does not fit under the window is exposed; what fits still costs a share, because it takes memory rate and
    processors from the computation above it.

    Args:
        collective_ns: Time of the collective alone. [ns], >= 0
        window_ns: Computation it may run under. [ns], >= 0
        overlap_flag: 1 where the software overlaps. [1], 0 or 1
        cost_frac: Share of a hidden collective that still costs. [1], 0 to 1

    Returns:
        Time added to the step. [ns], between 0 and collective_ns

    Source:
        definition: the larger of what is left over and the cost of hiding.

    >>> float(exposed_ns(100.0, 80.0, 1.0, 0.1)), float(exposed_ns(100.0, 500.0, 1.0, 0.1))
    (20.0, 10.0)
    """
    hidden = np.maximum(collective_ns - window_ns, cost_frac * collective_ns)
    return collective_ns + overlap_flag * (hidden - collective_ns)


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
