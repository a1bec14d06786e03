"""Time of the fused expert layer: routing, gather, two grouped products, activation and weighted sum."""

from dataclasses import dataclass, field

import numpy as np

from codesign.columns import freeze
from codesign.units import Numeric, empirical


@dataclass(frozen=True, slots=True, eq=False)
class MoeEngine:
    """Matrix unit, memory path and grouped-product library of one accelerator at one number format."""

    peak_gflops: Numeric  # dense peak of the matrix unit in this number format
    compute_frac: Numeric  # share of the peak a large group sustains
    tile_count: Numeric  # rows to which the tokens of one expert are padded
    launch_ns: Numeric  # routing, sorting and the start of the grouped products
    expert_ns: Numeric  # bookkeeping per local expert
    memory_rate_gbps: Numeric  # peak rate of the memory
    memory_frac: Numeric  # share of that rate that reading many experts sustains
    permute_passes_count: Numeric  # passes over the routed activations that gather, activate and sum them
    ns_per_flop: Numeric = field(init=False)
    ns_per_byte: Numeric = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ns_per_flop", 1.0 / (self.peak_gflops * self.compute_frac))
        object.__setattr__(self, "ns_per_byte", 8.0 / (self.memory_rate_gbps * self.memory_frac))
        freeze(self)


def touched_experts_count(
    tokens_count: Numeric, top_k_count: Numeric, experts_count: Numeric, local_experts_count: Numeric
) -> Numeric:
    """Local experts that receive at least one token when every token picks its experts at random.

    Args:
        tokens_count: Tokens routed over all experts. [count], >= 0
        top_k_count: Experts of one token. [count], > 0
        experts_count: Experts of the layer. [count], >= top_k_count
        local_experts_count: Experts held here. [count], > 0

    Returns:
        Expected number of experts with work. [count]

    Source:
        definition: each expert is missed by one token with probability 1 - k/E.

    >>> float(touched_experts_count(1.0, 8.0, 256.0, 256.0))
    8.0
    """
    missed_frac = np.maximum(1.0 - top_k_count / experts_count, 0.0)
    touched_count: Numeric = local_experts_count * (1.0 - missed_frac**tokens_count)
    return touched_count


@empirical("kernels/moe_gemm.csv")
def moe_gemm_ns(
    tokens_count: Numeric,
    hidden_count: Numeric,
    inner_count: Numeric,
    top_k_count: Numeric,
    experts_count: Numeric,
    local_experts_count: Numeric,
    weight_bytes: Numeric,
    activation_bytes: Numeric,
    engine: MoeEngine,
    gated_flag: Numeric = 1.0,
    skew_ratio: Numeric = 1.0,
) -> Numeric:
    """Time of the experts of one layer on one accelerator.

    Args:
        tokens_count: Tokens routed over all experts of the layer (those of every rank that shares them). [count], > 0
        hidden_count: Width of the model. [count], > 0
        inner_count: Width of one expert on this accelerator (after tensor parallelism). [count], > 0
        top_k_count: Experts of one token. [count], > 0
        experts_count: Experts of the layer. [count], > 0
        local_experts_count: Experts held here. [count], > 0
        weight_bytes: Bytes of one weight. [byte], > 0
        activation_bytes: Bytes of one activation as the matrix unit reads it. [byte], > 0
        engine: Matrix unit, memory path and library.
        gated_flag: 1 where the expert has three matrices (gate, up, down), 0 where it has two. [1], 0 or 1
        skew_ratio: Load of this accelerator over the mean. [1], >= 1

    Returns:
        Time of one call. [ns]

    Source:
        williams-2009: attainable = min(peak, bandwidth x intensity), over the experts that have work.

    >>> engine = MoeEngine(1e6, 1.0, 1.0, 0.0, 0.0, 8e3, 1.0, 0.0)
    >>> float(moe_gemm_ns(1.0, 1000.0, 1000.0, 1.0, 1.0, 1.0, 1.0, 1.0, engine))  # 3 MB of weights at 1000 byte/ns
    3000.0
    """
    touched_count = touched_experts_count(tokens_count, top_k_count, experts_count, local_experts_count)
    pairs_count = tokens_count * top_k_count * (local_experts_count / experts_count) * skew_ratio
    rows_count = np.maximum(pairs_count, touched_count * engine.tile_count)
    expert_count = (2.0 + gated_flag) * hidden_count * inner_count
    compute_ns = 2.0 * rows_count * expert_count * engine.ns_per_flop
    memory_ns = touched_count * expert_count * weight_bytes * engine.ns_per_byte
    permute_ns = engine.permute_passes_count * pairs_count * hidden_count * activation_bytes * engine.ns_per_byte
    floor_ns = engine.launch_ns + engine.expert_ns * local_experts_count
    time_ns: Numeric = floor_ns + permute_ns + np.maximum(compute_ns, memory_ns)
    return time_ns
