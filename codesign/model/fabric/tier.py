"""The structs that collectives read: one tier, the exchange kernels of expert layers, and the two tiers together."""

from dataclasses import dataclass, field

from codesign.columns import freeze
from codesign.units import Numeric

NEVER_NS = 1e15  # a path that does not exist takes this long: finite, and never the fastest
UNLIMITED_BYTES = 1e18
UNLIMITED_RATE_GBPS = 1e12


@dataclass(frozen=True, slots=True, eq=False)
class Tier:
    """One tier as a collective sees it; all numbers are per accelerator and direction.

    The first ten fields describe any tier. The others refine it for a software library; their defaults are neutral.
    """

    rate_gbps: Numeric  # what a ring collective draws from the link with many ranks
    hop_ns: Numeric  # one step: link, switch, flag
    launch_ns: Numeric  # software start of one collective
    ramp_ns_per_sqrt_byte: Numeric  # c of a + w/B + c sqrt(w)
    reduction_flag: Numeric  # 1: the switch reduces
    fast_launch_ns: Numeric  # low-latency kernel, start; NEVER_NS: there is none
    fast_hop_ns: Numeric  # low-latency kernel, each peer beyond the first
    fast_rate_gbps: Numeric  # what the low-latency kernel draws from the link
    domain_count: Numeric  # accelerators one domain reaches
    contention_ratio: Numeric  # 1: non-blocking; 4: four-to-one oversubscribed beyond the leaf
    ring_most_count: Numeric = 1e9  # ranks of one ring; beyond it rings nest
    nest_hops_count: Numeric = 1.0  # steps that each further doubling adds to a pass
    mesh_flag: Numeric = 0.0  # 1: full mesh, a group of n reaches (n-1)/(domain-1) of its links
    pair_loss_frac: Numeric = 0.0  # share of the rate lost to local copies, divided by the group size
    handover_ns: Numeric = 0.0  # what the change from the low-latency to the bulk protocol adds
    handover_hop_ns: Numeric = 0.0  # and what it adds to each step
    handover_bytes: Numeric = 1e6  # share of the message per rank at which half of it is paid
    exchange_launch_ns: Numeric = 0.0  # added to the start of an all-to-all
    exchange_contention_ratio: Numeric = 1.0  # further contention of all-to-all over that of neighbours
    exchange_rate_ratio: Numeric = 1.0  # rate of an all-to-all over that of a ring
    exchange_pair_loss_frac: Numeric = 0.0  # as pair_loss_frac, for an all-to-all
    exchange_handover_ns: Numeric = 0.0  # as handover_ns, for an all-to-all
    exchange_handover_bytes: Numeric = 1e6  # bytes sent per rank at which half of it is paid
    fast_barrier_ns: Numeric = 0.0  # second phase of a two-shot kernel
    fast_one_shot_bytes: Numeric = UNLIMITED_BYTES  # largest message of the one-shot kernel between two ranks
    fast_one_shot_power_ratio: Numeric = 0.0  # the limit falls with (2/n) to this power
    fast_two_shot_bytes: Numeric = UNLIMITED_BYTES  # largest message of the two-shot kernel
    fast_domain_count: Numeric = 1e9  # ranks that map each other's memory, as the low-latency kernels need
    switch_launch_ns: Numeric = 0.0  # in-switch reduction, start
    switch_rate_ratio: Numeric = 1.0  # its rate over that of a ring
    switch_start_bytes: Numeric = 0.0  # smallest message the library gives to the switch
    host_fast_ns: Numeric = 0.0  # launch from the host without a graph, low-latency kernel: a floor
    host_library_ns: Numeric = 0.0  # the same for the library

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """One phase (dispatch or combine) of an expert exchange kernel; neutral defaults leave the tier's all-to-all."""

    floor_ns: Numeric = 0.0  # time of an empty exchange between two ranks
    floor_growth_ratio: Numeric = 0.0  # the floor grows by this share per doubling of the group
    rate_gbps: Numeric = UNLIMITED_RATE_GBPS  # what its copy engines move; the line limits it too
    ramp_ns_per_sqrt_byte: Numeric = 0.0
    copies_flag: Numeric = 0.0  # 1: one copy per expert; 0: one copy per rank
    known_flag: Numeric = 0.0  # 1: the numbers above describe a kernel; 0: use the tier's all-to-all

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Fabric:
    """Scale-up and scale-out as one system."""

    scale_up: Tier
    scale_out: Tier
    dispatch: Exchange = field(default_factory=Exchange)
    combine: Exchange = field(default_factory=Exchange)
