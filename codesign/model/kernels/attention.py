"""Time of the attention core: prompts (prefill, training) and single new tokens (decode)."""

from dataclasses import dataclass, field

import numpy as np

from codesign.columns import freeze
from codesign.units import Numeric, empirical


@dataclass(frozen=True, slots=True, eq=False)
class AttentionEngine:
    """Matrix unit, memory path and attention library of one accelerator."""

    peak_gflops: Numeric  # dense peak in the number format of the products
    compute_frac: Numeric  # share of the peak that long prompts sustain at 128 values per head
    half_context_count: Numeric  # keys at which a query block runs at half the sustained rate
    prefill_launch_ns: Numeric  # prefill with nothing to do
    memory_rate_gbps: Numeric  # peak rate of the memory
    memory_frac: Numeric  # share of that rate that long contexts sustain
    ramp_bytes: Numeric  # bytes read at which decode runs at half the sustained rate
    decode_launch_ns: Numeric  # decode with nothing to do
    ns_per_flop: Numeric = field(init=False)
    ns_per_byte: Numeric = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ns_per_flop", 1.0 / (self.peak_gflops * self.compute_frac))
        object.__setattr__(self, "ns_per_byte", 8.0 / (self.memory_rate_gbps * self.memory_frac))
        freeze(self)


@empirical("kernels/attention.csv, phase context")
def prefill_attention_ns(
    sequences_count: Numeric,
    query_count: Numeric,
    context_count: Numeric,
    heads_count: Numeric,
    kv_heads_count: Numeric,
    head_dim_count: Numeric,
    engine: AttentionEngine,
) -> Numeric:
    """Time of causal attention over prompts, one layer, forward, fused (no score matrix in memory).

    Args:
        sequences_count: Prompts in the batch. [count], > 0
        query_count: New tokens of each prompt. [count], > 0
        context_count: Keys the last query sees, the new tokens among them. [count], >= query_count
        heads_count: Query heads on this accelerator. [count], > 0
        kv_heads_count: Key and value heads on this accelerator. [count], > 0
        head_dim_count: Values per head. [count], > 0
        engine: Matrix unit, memory path and library.

    Returns:
        Time of one call. [ns]

    Source:
        definition: 4 x queries x keys x heads x head dim operations, halved where the mask is causal.

    >>> engine = AttentionEngine(1e6, 1.0, 0.0, 0.0, 8e9, 1.0, 0.0, 0.0)
    >>> float(prefill_attention_ns(1.0, 1000.0, 1000.0, 1.0, 1.0, 128.0, engine))
    256.0
    """
    seen_count = context_count - 0.5 * query_count
    flop = 4.0 * sequences_count * query_count * seen_count * heads_count * head_dim_count
    compute_ns = flop * (1.0 + engine.half_context_count / seen_count) * engine.ns_per_flop
    tokens_count = sequences_count * (2.0 * query_count * heads_count + 2.0 * context_count * kv_heads_count)
    memory_ns = 2.0 * tokens_count * head_dim_count * engine.ns_per_byte
    time_ns: Numeric = engine.prefill_launch_ns + np.maximum(compute_ns, memory_ns)
    return time_ns


@empirical("kernels/attention.csv, phase generation")
def decode_attention_ns(
    sequences_count: Numeric,
    context_count: Numeric,
    heads_count: Numeric,
    kv_heads_count: Numeric,
    head_dim_count: Numeric,
    kv_bytes: Numeric,
    engine: AttentionEngine,
) -> Numeric:
    """Time of attention of one new token per sequence over its cache, one layer.

    Args:
        sequences_count: Sequences in the batch. [count], > 0
        context_count: Tokens in the cache of each. [count], > 0
        heads_count: Query heads on this accelerator. [count], > 0
        kv_heads_count: Key and value heads on this accelerator. [count], > 0
        head_dim_count: Values per head. [count], > 0
        kv_bytes: Bytes of one cached value. [byte], > 0
        engine: Matrix unit, memory path and library.

    Returns:
        Time of one call. [ns]

    Source:
        definition: every cached key and value of the layer is read once.

    >>> engine = AttentionEngine(1e9, 1.0, 0.0, 0.0, 8e3, 1.0, 0.0, 5000.0)
    >>> float(decode_attention_ns(1.0, 1000.0, 8.0, 8.0, 125.0, 2.0, engine))  # 4 MB at 1000 byte/ns, start 5 us
    9000.0
    """
    read_bytes = 2.0 * sequences_count * context_count * kv_heads_count * head_dim_count * kv_bytes
    time_ns: Numeric = engine.decode_launch_ns + (read_bytes + engine.ramp_bytes) * engine.ns_per_byte
    return time_ns + 0.0 * heads_count
