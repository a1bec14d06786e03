"""One accelerator and its host as a workload sees them: memory, second tier, launch gap, clock."""

from dataclasses import dataclass

from codesign.columns import freeze
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """Numbers of one accelerator that training and serving share; engines and fabric stand beside it."""

    accelerators_count: Numeric  # accelerators the job may use
    memory_bytes: Numeric  # capacity of the first tier
    memory_rate_gbps: Numeric  # its peak rate
    memory_frac: Numeric  # share of that rate a long stream sustains
    reserved_bytes: Numeric  # context, library workspaces, allocator slack
    second_tier_bytes: Numeric  # capacity of the second tier; 0: none
    second_tier_rate_gbps: Numeric  # its rate per direction
    launch_ns: Numeric  # host time between two kernel launches
    clock_frac: Numeric  # clock the power budget leaves, over the clock the engines were measured at

    def __post_init__(self) -> None:
        freeze(self)
