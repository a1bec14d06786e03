"""Time of multi-head latent attention: prompts over expanded heads, decode over the shared latent."""

import numpy as np

from codesign.model.kernels.attention import AttentionEngine
from codesign.units import Numeric, empirical


@empirical("kernels/mla.csv, op_name mla_context")
def mla_prefill_ns(
    sequences_count: Numeric,
    query_count: Numeric,
    context_count: Numeric,
    heads_count: Numeric,
    key_dim_count: Numeric,
    value_dim_count: Numeric,
    engine: AttentionEngine,
) -> Numeric:
    """Time of causal latent attention over prompts with expanded keys and values, one layer, forward.

    Args:
        sequences_count: Prompts in the batch. [count], > 0
        query_count: New tokens of each prompt. [count], > 0
        context_count: Keys the last query sees, the new tokens among them. [count], >= query_count
        heads_count: Query heads on this accelerator. [count], > 0
        key_dim_count: Values of one query or key head. [count], > 0
        value_dim_count: Values of one value head. [count], > 0
        engine: Matrix unit, memory path and library, fitted to latent attention.

    Returns:
        Time of one call. [ns]

    Source:
        definition: 2 x queries x keys x heads x (key dim + value dim) operations, halved where the mask is causal.

    >>> engine = AttentionEngine(1e6, 1.0, 0.0, 0.0, 8e9, 1.0, 0.0, 0.0)
    >>> float(mla_prefill_ns(1.0, 1000.0, 1000.0, 1.0, 192.0, 128.0, engine))
    320.0
    """
    seen_count = context_count - 0.5 * query_count
    flop = 2.0 * sequences_count * query_count * seen_count * heads_count * (key_dim_count + value_dim_count)
    compute_ns = flop * (1.0 + engine.half_context_count / seen_count) * engine.ns_per_flop
    moved_count = sequences_count * heads_count * (query_count + context_count) * (key_dim_count + value_dim_count)
    time_ns: Numeric = engine.prefill_launch_ns + np.maximum(compute_ns, 2.0 * moved_count * engine.ns_per_byte)
    return time_ns


@empirical("kernels/mla.csv, op_name mla_generation")
def mla_decode_ns(
    sequences_count: Numeric,
    context_count: Numeric,
    heads_count: Numeric,
    latent_count: Numeric,
    rope_count: Numeric,
    kv_bytes: Numeric,
    engine: AttentionEngine,
) -> Numeric:
    """Time of latent attention of one new token per sequence: all heads share one latent row per cached token.

    Args:
        sequences_count: Sequences in the batch. [count], > 0
        context_count: Tokens in the cache of each. [count], > 0
        heads_count: Query heads on this accelerator. [count], > 0
        latent_count: Values of the latent (kv_lora_rank). [count], > 0
        rope_count: Values of the rotary key. [count], >= 0
        kv_bytes: Bytes of one cached value. [byte], > 0
        engine: Matrix unit, memory path and library, fitted to latent attention.

    Returns:
        Time of one call. [ns]

    Source:
        definition: 2 x keys x heads x (2 latent + rope) operations; every cached row is read once.

    >>> engine = AttentionEngine(1e9, 1.0, 0.0, 0.0, 8e3, 1.0, 0.0, 0.0)
    >>> round(mla_decode_ns(1.0, 1000.0, 16.0, 512.0, 64.0, 2.0, engine))  # 1.152 MB at 1000 byte/ns
    1152
    """
    rows_count = sequences_count * context_count
    read_ns = (rows_count * (latent_count + rope_count) * kv_bytes + engine.ramp_bytes) * engine.ns_per_byte
    compute_ns = 2.0 * rows_count * heads_count * (2.0 * latent_count + rope_count) * engine.ns_per_flop
    time_ns: Numeric = engine.decode_launch_ns + np.maximum(read_ns, compute_ns)
    return time_ns
