"""Time of the fused expert layer: routing, gather, two grouped products, activation and weighted sum."""

from dataclasses import dataclass, field

import numpy as np

from codesign.columns import freeze
from codesign.units import Numeric, empirical

#: bytes of one activation between the kernels of the layer
_ACTIVATION_BYTES = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class MoeEngine:
    """Matrix unit, memory path and grouped-product library of one accelerator at one number format."""

    peak_gflops: Numeric  # dense peak of the matrix unit in this number format
    compute_frac: Numeric  # share of the peak that large groups sustain
    memory_rate_gbps: Numeric  # peak rate of the memory
    memory_frac: Numeric  # share of that rate at which weights are read
    exposed_frac: Numeric  # share of the shorter of arithmetic and reading that the longer does not hide
    launch_ns: Numeric  # routing, sorting and the start of the grouped products
    expert_ns: Numeric  # bookkeeping per local expert
    touched_ns: Numeric  # start of the products of one expert with work
    step_ns: Numeric  # walk over one inner step of both products
    pair_passes_count: Numeric  # passes over the routed tokens (one row per token and expert) at the hidden width
    token_passes_count: Numeric  # passes over all tokens at the hidden width, whichever rank their experts are on
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


def power_law_skew_ratio(
    tokens_count: Numeric,
    top_k_count: Numeric,
    experts_count: Numeric,
    local_experts_count: Numeric,
    exponent_ratio: Numeric,
) -> Numeric:
    """Load of the busiest rank over the mean when the loads of experts follow a power law.

    Loads are drawn from a density ``x ** -exponent`` between one and four fifths of the tokens, as the benchmark that
    made the measured tables draws them. The busiest of many ranks lies sqrt(2 ln ranks) deviations above the mean, the
    deviation of a rank shrinks with the root of its experts, and no rank can exceed the largest possible load.

    Args:
        tokens_count: Tokens routed over all experts. [count], > 0
        top_k_count: Experts of one token. [count], > 0
        experts_count: Experts of the layer. [count], > 0
        local_experts_count: Experts on one rank. [count], > 0
        exponent_ratio: Exponent of the density; not 1, 2 or 3. [1], > 0

    Returns:
        Ratio of the largest to the mean load. [1], >= 1

    Source:
        aiconfigurator-2025: power-law distribution of expert loads in the expert benchmark.
        david-nagaraja-2003: expected maximum of n normal deviates grows as sqrt(2 ln n).

    >>> float(power_law_skew_ratio(1000.0, 8.0, 256.0, 256.0, 1.01))  # one rank holds all
    1.0
    """
    ranks_count = np.maximum(experts_count / local_experts_count, 1.0)
    top = np.maximum(0.8 * tokens_count, 1.5)
    a = exponent_ratio
    norm = (top ** (1.0 - a) - 1.0) / (1.0 - a)
    mean = (top ** (2.0 - a) - 1.0) / ((2.0 - a) * norm)
    square = (top ** (3.0 - a) - 1.0) / ((3.0 - a) * norm)
    spread = np.sqrt(np.maximum(square / mean**2 - 1.0, 0.0) / local_experts_count)
    largest = np.minimum(top / mean, np.minimum(top_k_count, local_experts_count) * ranks_count / top_k_count)
    skew_ratio: Numeric = np.minimum(1.0 + spread * np.sqrt(2.0 * np.log(ranks_count)), np.maximum(largest, 1.0))
    return skew_ratio


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
    even_flag: Numeric = 0.0,
) -> Numeric:
    """Time of the experts of one layer on one accelerator, from routed tokens to their weighted sum.

    Only experts with work are read. Padding of small groups to tiles is left out: such groups are bound by reading.
    Exchange between accelerators is not part of it.

    Args:
        tokens_count: Tokens routed over all experts of the layer (those of every rank that shares them). [count], > 0
        hidden_count: Width the experts work at. [count], > 0
        inner_count: Width of one expert on this accelerator (after tensor parallelism). [count], > 0
        top_k_count: Experts of one token. [count], > 0
        experts_count: Experts of the layer. [count], > 0
        local_experts_count: Experts held here. [count], > 0
        weight_bytes: Bytes of one weight. [byte], > 0
        activation_bytes: Bytes of one activation as the matrix unit reads it. [byte], > 0
        engine: Matrix unit, memory path and library.
        gated_flag: 1 where the expert has three matrices (gate, up, down), 0 where it has two. [1], 0 or 1
        skew_ratio: Load of this accelerator over the mean. [1], >= 1
        even_flag: 1 where tokens are dealt out evenly, 0 where they pick at random. [1], 0 or 1

    Returns:
        Time of one call. [ns]

    Source:
        williams-2009: attainable = min(peak, bandwidth x intensity), over the experts that have work.

    >>> engine = MoeEngine(1e6, 1.0, 8e3, 1.0, *[0.0] * 7)
    >>> round(float(moe_gemm_ns(1.0, 1000.0, 1000.0, 1.0, 1.0, 1.0, 1.0, 1.0, engine)))  # 3 MB of weights, some traffic
    3010
    """
    mean_count = tokens_count * top_k_count * (local_experts_count / experts_count)
    random_count = touched_experts_count(tokens_count, top_k_count, experts_count, local_experts_count)
    even_count = np.minimum(local_experts_count, mean_count)
    touched_count = random_count + even_flag * (even_count - random_count)
    pairs_count = mean_count * skew_ratio
    expert_count = (2.0 + gated_flag) * hidden_count * inner_count
    compute_ns = 2.0 * pairs_count * expert_count * engine.ns_per_flop
    weights_ns = touched_count * expert_count * weight_bytes * engine.ns_per_byte
    work_ns = np.maximum(compute_ns, weights_ns) + engine.exposed_frac * np.minimum(compute_ns, weights_ns)
    rows_count = engine.pair_passes_count * pairs_count + engine.token_passes_count * tokens_count
    inner_bytes = pairs_count * inner_count * ((2.0 + 2.0 * gated_flag) * _ACTIVATION_BYTES + 2.0 * activation_bytes)
    traffic_ns = (rows_count * hidden_count * _ACTIVATION_BYTES + inner_bytes) * engine.ns_per_byte
    walk_ns = engine.step_ns * (hidden_count + inner_count) + engine.touched_ns * touched_count
    time_ns: Numeric = engine.launch_ns + engine.expert_ns * local_experts_count + walk_ns + traffic_ns + work_ns
    return time_ns
