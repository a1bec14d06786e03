"""Time of the attention core: prompts (prefill, training) and single new tokens (decode)."""

from dataclasses import dataclass, field

import numpy as np

from codesign.columns import freeze
from codesign.units import Numeric, empirical

#: head size at which `AttentionEngine.compute_frac` is stated
_STATED_HEAD_DIM_COUNT = 128.0


@dataclass(frozen=True, slots=True, eq=False)
class AttentionEngine:
    """Matrix unit, memory path and attention library of one accelerator.

    Decode has two kernels: one that shares each cached key among the query heads of its group, and one that walks the
    cache for every query head by itself (no groups to share among, or groups larger than the sharing kernel takes).
    """

    peak_gflops: Numeric  # dense peak in the number format of the products
    compute_frac: Numeric  # share of the peak that long prompts sustain at 128 values per head
    head_offset_count: Numeric  # values per head that cost as much as the softmax of one score
    key_offset_count: Numeric  # keys that cost as much as starting and finishing one query
    prefill_memory_frac: Numeric  # share of the memory rate at which queries, keys, values and results move
    block_ns: Numeric  # cost of one (sequence, head), all units of the chip together
    key_step_ns: Numeric  # walk over one key by the last block to finish
    prefill_launch_ns: Numeric  # prefill with nothing to do
    memory_rate_gbps: Numeric  # peak rate of the memory
    memory_frac: Numeric  # share of that rate at which the sharing kernel reads a long cache
    head_memory_ratio: Numeric  # rate at which the per-head kernel reads, over the memory rate (it hits caches)
    pair_ns: Numeric  # least cost of one (sequence, key head), all units together: sharing kernel
    head_pair_ns: Numeric  # the same for one (sequence, query head): per-head kernel
    query_ns: Numeric  # cost of one (sequence, query head) at 128 values per head
    step_ns: Numeric  # walk over one cached token by one block
    steps_count: Numeric  # cached tokens beyond which one sequence is split over more blocks
    decode_launch_ns: Numeric  # decode with nothing to do: sharing kernel
    head_launch_ns: Numeric  # the same: per-head kernel
    group_limit_count: Numeric  # largest group of query heads that the sharing kernel takes
    ns_per_score: Numeric = field(init=False)
    ns_per_byte: Numeric = field(init=False)
    head_ns_per_byte: Numeric = field(init=False)

    def __post_init__(self) -> None:
        scale_count = _STATED_HEAD_DIM_COUNT / (_STATED_HEAD_DIM_COUNT + self.head_offset_count)
        object.__setattr__(self, "ns_per_score", 4.0 * scale_count / (self.peak_gflops * self.compute_frac))
        object.__setattr__(self, "ns_per_byte", 8.0 / (self.memory_rate_gbps * self.memory_frac))
        object.__setattr__(self, "head_ns_per_byte", 8.0 / (self.memory_rate_gbps * self.head_memory_ratio))
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

    Each score costs two products of the head size and a softmax, whose price does not depend on the head size. The
    last block to finish walks all keys alone. Beyond one sequence per batch entry (packed, ragged prompts) this is an
    upper bound.

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
        dao-2022: 4 x queries x keys x heads x head dim operations, halved where the mask is causal; fused in tiles.

    >>> engine = AttentionEngine(1e6, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 8e9, 1.0, 1.0, *[0.0] * 7, 32.0)
    >>> round(float(prefill_attention_ns(1.0, 1000.0, 1000.0, 1.0, 1.0, 128.0, engine)), 2)
    256.0
    """
    blocks_count = sequences_count * heads_count
    keys_count = context_count - 0.5 * query_count + engine.key_offset_count
    scores_ns = blocks_count * query_count * keys_count * (head_dim_count + engine.head_offset_count)
    values_count = sequences_count * (query_count * heads_count + context_count * kv_heads_count) * head_dim_count
    memory_ns = 4.0 * values_count * (8.0 / (engine.memory_rate_gbps * engine.prefill_memory_frac))
    walk_ns = blocks_count * engine.block_ns + context_count * engine.key_step_ns
    time_ns: Numeric = engine.prefill_launch_ns + scores_ns * engine.ns_per_score + memory_ns + walk_ns
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

    Every cached key and value is read once per key head, or once per query head where the group is too large to share.
    A short cache is bound by the number of blocks, a small batch by the walk of one block over its part of the cache.

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
        shazeer-2019: decode is bound by reading the keys and values; groups of query heads share them.

    >>> engine = AttentionEngine(1e9, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 8e3, 1.0, 1.0, *[0.0] * 5, 5e3, 5e3, 32.0)
    >>> float(decode_attention_ns(1.0, 1000.0, 8.0, 8.0, 125.0, 2.0, engine))  # 4 MB at 1000 byte/ns, start 5 us
    9000.0
    """
    group_count = heads_count / kv_heads_count
    alone = group_count > engine.group_limit_count
    per_head = alone | np.equal(group_count, 1.0)
    pairs_count = sequences_count * np.where(alone, heads_count, kv_heads_count)
    read_ns = pairs_count * context_count * (2.0 * head_dim_count * kv_bytes)
    read_ns = read_ns * np.where(alone, engine.head_ns_per_byte, engine.ns_per_byte)
    least_ns = pairs_count * np.where(per_head, engine.head_pair_ns, engine.pair_ns)
    query_ns = sequences_count * heads_count * head_dim_count * (engine.query_ns / _STATED_HEAD_DIM_COUNT)
    walk_ns = engine.step_ns * np.minimum(context_count, engine.steps_count)
    launch_ns = np.where(per_head, engine.head_launch_ns, engine.decode_launch_ns)
    time_ns: Numeric = launch_ns + np.maximum(read_ns, least_ns) + query_ns + walk_ns
    return time_ns
