"""A link in round numbers for the examples of this package; no technology."""

import numpy as np

from codesign.model.link.bursts import BurstTable
from codesign.model.link.inputs import (
    ChannelInputs,
    CrossingInputs,
    FecInputs,
    FlowInputs,
    LinkInputs,
    LoadInputs,
    MediumInputs,
    ProtocolInputs,
    RetryInputs,
    SerdesFit,
    SerdesInputs,
)


def example_inputs() -> LinkInputs:
    """Eight lanes of 100 Gb/s over a metre of copper and one switch, in numbers one can work with by hand.

    Returns:
        The inputs of one link.

    Source:
        definition: round numbers, no technology.

    >>> example_inputs().serdes.lanes_count
    8.0
    """
    return LinkInputs(
        channel=ChannelInputs(20.0, 5e-4, 9e-4, 2e-4, 4.0, 2.0, 6e-3, 100.0, 0.0, 6e-4, 2.5e-5, 2.0, 1.0, 25.0, 0.1,
                              1.0, 12.5, 4.0, 25.0, 6.0, 1.0, 60.0),
        medium=MediumInputs(1.0, 5.0, 3.0, 1.0, 0.0, 200.0, 0.0, 0.0, 0.25, 5.0, 20.0, 1.0, 100.0),
        serdes=SerdesInputs(100.0, 4.0, 2.0, 8.0, 0.0, 5.0, 16.0, 0.5, 0.0, 0.05, 8.0, 0.005, 0.0, 0.5, 0.4,
                            0.95, 33.0, 8e-9, 0.01, 0.02, 3.0, 20.0, 0.4, 1.6, 1.0, 0.1, 0.0, 0.0, 0.0),
        fit=SerdesFit(1.0, 2.0, 1.25, 0.4, 1.0, 0.2, 20.0, 5e-4, 2.0, 0.3, 1.0, 0.5, 0.8, 50.0, 1.0, 20.0, 2.0, 0.1,
                      0.5, 0.05, 0.2, 1.5, 200.0, 0.2, 0.75, 0.5, 1.5, 0.7),
        crossing=CrossingInputs(0.0, 0.5, 4.0, 5000.0, 0.2),
        fec=FecInputs(544.0, 514.0, 15.0, 10.0, 5.0, 1.0, 128.0, 120.0, 0.0, 30.0, 1.0, 1.0, 0.0, 2e-4,
                      BurstTable(np.zeros((1, 15)))),
        protocol=ProtocolInputs(256.0, 16.0, 640.0, 624.0, 0.0, 1.0, 0.02, 100.0, 250.0, 1.0, 1.0, 0.0),
        retry=RetryInputs(1.0, 0.0, 65536.0, 20.0, 1e5),
        flow=FlowInputs(65536.0, 2.0, 0.0, 640.0, 10.0, 0.0, 4096.0, 160.0, 672.0, 0.0, 100.0, 2e5, 400.0, 4e5, 64.0,
                        0.0, 0.75, 1.1, 0.2, 0.25, 0.005, 2.5),
        load=LoadInputs(65536.0, 1.0, 0.5, 0.0, 1.0, 0.001, 24.0, 100.0, 0.0),
    )  # fmt: skip
