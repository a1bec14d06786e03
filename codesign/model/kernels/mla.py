"""Time of multi-head latent attention: prompts over expanded heads, decode over the shared latent."""

from dataclasses import dataclass, field

import numpy as np

from codesign.columns import freeze
from codesign.units import Numeric, empirical


@dataclass(frozen=True, slots=True, eq=False)
class MlaEngine:
    """Matrix unit, memory path and library of one accelerator for latent attention with one cache format."""

    peak_gflops: Numeric  # dense peak in the number format of the products
    compute_frac: Numeric  # share of the peak that long prompts sustain
    key_offset_count: Numeric  # keys that cost as much as starting and finishing one query
    prefill_memory_frac: Numeric  # share of the memory rate at which expanded heads move
    block_ns: Numeric  # cost of one (sequence, head), all units of the chip together
    key_step_ns: Numeric  # walk over one key by the last block to finish
    prefill_launch_ns: Numeric  # prefill with nothing to do
    memory_rate_gbps: Numeric  # peak rate of the memory
    memory_frac: Numeric  # share of that rate at which decode reads the latent cache
    decode_compute_frac: Numeric  # share of the peak that decode with many heads sustains
    exposed_frac: Numeric  # share of the shorter of reading and arithmetic that the longer does not hide
    sequence_ns: Numeric  # least cost of one sequence, all units together
    query_ns: Numeric  # cost of one (sequence, head)
    step_ns: Numeric  # walk over one cached token by one block
    steps_count: Numeric  # cached tokens beyond which one sequence is split over more blocks
    decode_launch_ns: Numeric  # decode with nothing to do
    ns_per_flop: Numeric = field(init=False)
    decode_ns_per_flop: Numeric = field(init=False)
    ns_per_byte: Numeric = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ns_per_flop", 1.0 / (self.peak_gflops * self.compute_frac))
        object.__setattr__(self, "decode_ns_per_flop", 1.0 / (self.peak_gflops * self.decode_compute_frac))
        object.__setattr__(self, "ns_per_byte", 8.0 / (self.memory_rate_gbps * self.memory_frac))
        freeze(self)


@empirical("kernels/mla.csv, op_name mla_context")
def mla_prefill_ns(
    sequences_count: Numeric,
    query_count: Numeric,
    context_count: Numeric,
    heads_count: Numeric,
    key_dim_count: Numeric,
    value_dim_count: Numeric,
    engine: MlaEngine,
) -> Numeric:
    """Time of causal latent attention over prompts with expanded keys and values, one layer, forward.

    Args:
        sequences_count: Prompts in the batch. [count], > 0
        query_count: New tokens of each prompt. [count], > 0
        context_count: Keys the last query sees, the new tokens among them. [count], >= query_count
        heads_count: Query heads on this accelerator. [count], > 0
        key_dim_count: Values of one query or key head. [count], > 0
        value_dim_count: Values of one value head. [count], > 0
        engine: Matrix unit, memory path and library.

    Returns:
        Time of one call. [ns]

    Source:
        deepseek-v2-2024: every head has keys of the content and rotary parts, and narrower values.

    >>> engine = MlaEngine(1e6, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 8e9, 1.0, 1.0, *[0.0] * 6)
    >>> round(float(mla_prefill_ns(1.0, 1000.0, 1000.0, 1.0, 192.0, 128.0, engine)), 2)
    320.0
    """
    blocks_count = sequences_count * heads_count
    width_count = key_dim_count + value_dim_count
    keys_count = context_count - 0.5 * query_count + engine.key_offset_count
    compute_ns = 2.0 * blocks_count * query_count * keys_count * width_count * engine.ns_per_flop
    moved_bytes = 2.0 * blocks_count * (query_count + context_count) * width_count
    memory_ns = moved_bytes * (8.0 / (engine.memory_rate_gbps * engine.prefill_memory_frac))
    walk_ns = blocks_count * engine.block_ns + context_count * engine.key_step_ns
    time_ns: Numeric = engine.prefill_launch_ns + compute_ns + memory_ns + walk_ns
    return time_ns


@empirical("kernels/mla.csv, op_name mla_generation")
def mla_decode_ns(
    sequences_count: Numeric,
    context_count: Numeric,
    heads_count: Numeric,
    latent_count: Numeric,
    rope_count: Numeric,
    kv_bytes: Numeric,
    engine: MlaEngine,
) -> Numeric:
    """Time of latent attention of one new token per sequence: all heads share one latent row per cached token.

    Args:
        sequences_count: Sequences in the batch. [count], > 0
        context_count: Tokens in the cache of each. [count], > 0
        heads_count: Query heads on this accelerator. [count], > 0
        latent_count: Values of the latent (kv_lora_rank). [count], > 0
        rope_count: Values of the rotary key. [count], >= 0
        kv_bytes: Bytes of one cached value. [byte], > 0
        engine: Matrix unit, memory path and library.

    Returns:
        Time of one call. [ns]

    Source:
        deepseek-v2-2024: absorbed projections; 2 x keys x heads x (2 latent + rope) operations, one row per token read.

    >>> engine = MlaEngine(1e9, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 8e3, 1.0, 1.0, *[0.0] * 6)
    >>> round(float(mla_decode_ns(1.0, 1000.0, 16.0, 512.0, 64.0, 2.0, engine)))  # 1.152 MB at 1000 byte/ns
    1152
    """
    rows_count = sequences_count * context_count
    read_ns = rows_count * ((latent_count + rope_count) * kv_bytes) * engine.ns_per_byte
    compute_ns = rows_count * heads_count * (4.0 * latent_count + 2.0 * rope_count) * engine.decode_ns_per_flop
    work_ns = np.maximum(read_ns, compute_ns) + engine.exposed_frac * np.minimum(read_ns, compute_ns)
    walk_ns = engine.step_ns * np.minimum(context_count, engine.steps_count)
    query_ns = sequences_count * heads_count * engine.query_ns
    time_ns: Numeric = (
        engine.decode_launch_ns + np.maximum(work_ns, sequences_count * engine.sequence_ns) + query_ns + walk_ns
    )
    return time_ns
