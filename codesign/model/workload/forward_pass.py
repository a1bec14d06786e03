"""One forward pass of a transformer on one engine: the parts of its time, layer kind by layer kind.

The pass is the same for decode and prompts; what differs is how many tokens it carries, how many of them reach the
head, and the attention core, which the callers (`decode`, `prefill`) work out.
"""

from dataclasses import dataclass, fields

import numpy as np

from codesign.columns import freeze
from codesign.model.fabric.collectives import (
    Fabric,
    all_reduce_ns,
    distinct_ranks_count,
    inner_count,
    moe_exchange_ns,
    point_to_point_ns,
)
from codesign.model.kernels.elementwise import elementwise_ns
from codesign.model.kernels.gemm import GemmEngine, gemm_ns
from codesign.model.kernels.moe import moe_gemm_ns
from codesign.model.workload.serving_inputs import Pool, ServingJob, ServingKernels, ServingSoftware
from codesign.model.workload.transformer import Transformer
from codesign.units import Numeric

RESIDUAL_BYTES = 2.0  # activations between kernels are 16 bit in every engine


@dataclass(frozen=True, slots=True, eq=False)
class ForwardPass:
    """Parts of the time of one pass; they add up to its length."""

    projection_ns: Numeric  # attention (and state-space) projections
    core_ns: Numeric  # attention over the cache, recurrent state
    dense_ns: Numeric  # dense and shared-expert feed-forward
    experts_ns: Numeric
    elementwise_ns: Numeric  # norms, residuals, rotary, activations
    tensor_parallel_ns: Numeric  # all-reduces
    expert_parallel_ns: Numeric  # dispatch and combine
    pipeline_ns: Numeric  # hand-over between stages
    head_ns: Numeric
    gap_ns: Numeric  # idle time between kernels

    def __post_init__(self) -> None:
        freeze(self)


def added(first: ForwardPass, second: ForwardPass, second_ratio: Numeric = 1.0) -> ForwardPass:
    """Part by part, the first pass plus a multiple of the second."""
    return ForwardPass(*(getattr(first, f.name) + second_ratio * getattr(second, f.name) for f in fields(ForwardPass)))


def pass_ns(parts: ForwardPass) -> Numeric:
    """Length of a pass, its parts added in a fixed order.

    Args:
        parts: The parts.

    Returns:
        Time of the pass. [ns]

    Source:
        definition: the sum of the parts.

    >>> pass_ns(ForwardPass(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0))
    55.0
    """
    compute = parts.projection_ns + parts.core_ns + parts.dense_ns + parts.experts_ns + parts.elementwise_ns
    network = parts.tensor_parallel_ns + parts.expert_parallel_ns + parts.pipeline_ns
    return compute + network + parts.head_ns + parts.gap_ns


def absent_flag(count: Numeric) -> bool:
    """True where no row has any, so that a whole branch of work can be left out; the result is the same.

    Args:
        count: How many there are. [count], >= 0

    Returns:
        Whether all are zero. [1]

    Source:
        definition: none at all.

    >>> absent_flag(np.array([0.0, 2.0])), absent_flag(0.0)
    (False, True)
    """
    return not np.any(count)


def forward_pass(
    tokens_count: Numeric,
    head_rows_count: Numeric,
    core_ns: Numeric,
    transformer: Transformer,
    job: ServingJob,
    pool: Pool,
    kernels: ServingKernels,
    fabric: Fabric,
    software: ServingSoftware,
) -> ForwardPass:
    """Time of one pass of all layers over the tokens of one attention replica, in parts.

    Every rank does the same work (the slowest is priced through the straggler and skew ratios); nothing overlaps
    except inside a kernel. With pipeline stages the pass visits them one after another.

    Args:
        tokens_count: Tokens of one attention replica in the pass. [count], > 0
        head_rows_count: Tokens of one replica whose next token is computed. [count], > 0
        core_ns: Attention cores of all layers. [ns]
        transformer: The model.
        job: Number formats.
        pool: Parallel layout of the engine.
        kernels: Kernel engines.
        fabric: The network.
        software: Gaps and ratios.

    Returns:
        The parts.

    Source:
        definition: layers times their kernels.
    """
    t = transformer
    projection = t.attention_layers_count * _attention_projections_ns(tokens_count, t, job, pool, kernels)
    if not absent_flag(t.linear_layers_count):
        projection = projection + t.linear_layers_count * _linear_projection_ns(tokens_count, t, job, pool, kernels)
    dense = 0.0 * projection
    if not absent_flag(t.dense_layers_count):
        dense = t.dense_layers_count * _feed_forward_ns(tokens_count, t.ffn_count, t, job, pool, kernels)
    experts, exchange = 0.0 * dense, 0.0 * dense
    if not absent_flag(t.moe_layers_count):
        experts = t.moe_layers_count * _experts_ns(tokens_count, t, job, pool, kernels, software)
        exchange = t.moe_layers_count * _exchange_ns(tokens_count, t, job, pool, fabric)
        if not absent_flag(t.shared_experts_count):
            width = t.shared_experts_count * t.shared_ffn_count
            shared = _feed_forward_ns(tokens_count, np.maximum(width, 1.0), t, job, pool, kernels)
            dense = dense + np.where(width > 0.0, t.moe_layers_count * shared, 0.0)
    return ForwardPass(
        projection_ns=projection,
        core_ns=core_ns,
        dense_ns=dense,
        experts_ns=experts,
        elementwise_ns=_stream_ns(tokens_count, t, pool, kernels),
        tensor_parallel_ns=_reductions_ns(tokens_count, t, pool, fabric),
        expert_parallel_ns=exchange,
        pipeline_ns=(pool.pp_count - 1.0) * _stage_transfer_ns(tokens_count, t, pool, fabric),
        head_ns=_head_ns(head_rows_count, t, job, pool, kernels),
        gap_ns=software.kernel_gap_ns * kernels_count(t),
    )


def _attention_projections_ns(
    tokens_count: Numeric, transformer: Transformer, job: ServingJob, pool: Pool, kernels: ServingKernels
) -> Numeric:
    """Query, key, value and output projections of one attention layer on one rank.

    Heads are split over the attention group; a rank never holds less than one key-value head, and the down
    projections of latent attention are held by every rank.
    """
    t, heads = transformer, transformer.heads_count / pool.tp_count
    if np.all(t.mla_flag):
        return _latent_projections_ns(tokens_count, heads, t, job, kernels.projection)
    weight, activation, engine = job.projection_weight_bytes, job.projection_activation_bytes, kernels.projection
    kv_heads = np.maximum(t.kv_heads_count / pool.tp_count, 1.0)
    head_dim = np.maximum(t.head_dim_count, 1.0)
    width = (heads * (1.0 + t.attention_gate_flag) + 2.0 * kv_heads) * head_dim
    grouped = gemm_ns(tokens_count, width, t.hidden_count, weight, activation, engine)
    grouped = grouped + gemm_ns(tokens_count, t.hidden_count, heads * head_dim, weight, activation, engine)
    if absent_flag(t.mla_flag):
        return grouped
    return np.where(t.mla_flag > 0.0, _latent_projections_ns(tokens_count, heads, t, job, engine), grouped)


def _latent_projections_ns(
    tokens_count: Numeric, heads_count: Numeric, t: Transformer, job: ServingJob, engine: GemmEngine
) -> Numeric:
    """Down projections (held by every rank), query up, key-value up (or absorbed: the same work), output."""
    weight, activation = job.projection_weight_bytes, job.projection_activation_bytes
    query_rank, latent = np.maximum(t.q_lora_count, 1.0), np.maximum(t.kv_lora_count, 1.0)
    value_dim = np.maximum(t.v_head_dim_count, 1.0)
    query_width = heads_count * np.maximum(t.qk_nope_count + t.qk_rope_count, 1.0)
    down = gemm_ns(tokens_count, query_rank + latent + t.qk_rope_count, t.hidden_count, weight, activation, engine)
    query_up = gemm_ns(tokens_count, query_width, query_rank, weight, activation, engine)
    value_up = gemm_ns(tokens_count, heads_count * (t.qk_nope_count + value_dim), latent, weight, activation, engine)
    output = gemm_ns(tokens_count, t.hidden_count, heads_count * value_dim, weight, activation, engine)
    return down + query_up + value_up + output


def _linear_projection_ns(
    tokens_count: Numeric, t: Transformer, job: ServingJob, pool: Pool, kernels: ServingKernels
) -> Numeric:
    """Projections of a recurrent layer, all its matrices as one product."""
    width = np.maximum(t.linear_projection_count / t.hidden_count / pool.tp_count, 1.0)
    weight, activation = job.projection_weight_bytes, job.projection_activation_bytes
    return gemm_ns(tokens_count, width, t.hidden_count, weight, activation, kernels.projection)


def _feed_forward_ns(
    tokens_count: Numeric,
    inner_count: Numeric,
    transformer: Transformer,
    job: ServingJob,
    pool: Pool,
    kernels: ServingKernels,
) -> Numeric:
    """One dense feed-forward on one rank, its width split over the attention group."""
    t, inner = transformer, np.maximum(inner_count / pool.tp_count, 1.0)
    weight, activation, engine = job.dense_weight_bytes, job.dense_activation_bytes, kernels.dense
    up = gemm_ns(tokens_count, (1.0 + t.gated_flag) * inner, t.hidden_count, weight, activation, engine)
    return up + gemm_ns(tokens_count, t.hidden_count, inner, weight, activation, engine)


def _experts_ns(
    tokens_count: Numeric,
    transformer: Transformer,
    job: ServingJob,
    pool: Pool,
    kernels: ServingKernels,
    software: ServingSoftware,
) -> Numeric:
    """Experts of one layer on one rank: only those that tokens of the whole engine touch are read.

    Where attention is replicated a rank sees the tokens that were sent to it, each with all its local experts: fewer
    tokens with more experts each. Otherwise every rank holds every token.
    """
    t = transformer
    experts, top_k = np.maximum(t.experts_count, 1.0), np.maximum(t.top_k_count, 1.0)
    ranks = pool.tp_count * pool.dp_count
    sent = np.where(pool.dp_count > 1.0, distinct_ranks_count(top_k, ranks) / ranks, 1.0)
    time_ns = moe_gemm_ns(
        tokens_count * pool.dp_count * sent,
        np.maximum(t.moe_hidden_count, 1.0),
        np.maximum(t.moe_ffn_count * pool.ep_count / ranks, 1.0),
        top_k / sent,
        experts,
        experts / pool.ep_count,
        job.expert_weight_bytes,
        job.expert_activation_bytes,
        kernels.expert,
        t.gated_flag,
        software.expert_skew_ratio,
    )
    return np.where(t.experts_count > 0.0, time_ns, 0.0)


def _exchange_ns(
    tokens_count: Numeric, transformer: Transformer, job: ServingJob, pool: Pool, fabric: Fabric
) -> Numeric:
    """Dispatch (in the format of the experts) and combine (in 16 bits) of one expert layer.

    None where all ranks of the engine hold the same tokens.
    """
    if np.all(pool.dp_count <= 1.0):
        return 0.0 * tokens_count
    ranks = pool.tp_count * pool.dp_count
    width = np.maximum(transformer.moe_hidden_count, 1.0)
    inner = inner_count(ranks, 1.0, fabric.scale_up.domain_count)
    top_k = np.maximum(transformer.top_k_count, 1.0)
    share = tokens_count / pool.tp_count
    there = moe_exchange_ns(share, job.expert_activation_bytes * width, top_k, ranks, inner, fabric, 0.0)
    back = moe_exchange_ns(share, RESIDUAL_BYTES * width, top_k, ranks, inner, fabric, 1.0)
    return np.where(pool.dp_count > 1.0, there + back, 0.0)


def _reductions_ns(tokens_count: Numeric, transformer: Transformer, pool: Pool, fabric: Fabric) -> Numeric:
    """All-reduces of a pass: after every attention, and after every feed-forward that the attention group shares."""
    t = transformer
    if np.all(pool.tp_count <= 1.0):
        return 0.0 * tokens_count
    inner = inner_count(pool.tp_count, 1.0, fabric.scale_up.domain_count)
    one_ns = all_reduce_ns(RESIDUAL_BYTES * t.hidden_count * tokens_count, pool.tp_count, inner, fabric)
    mixers = t.attention_layers_count + t.linear_layers_count
    feeds = t.dense_layers_count + np.where(pool.dp_count > 1.0, 0.0, t.moe_layers_count)
    return (mixers + feeds) * one_ns


def _stream_ns(tokens_count: Numeric, transformer: Transformer, pool: Pool, kernels: ServingKernels) -> Numeric:
    """Element-wise traffic of a pass: two norms with residual, rotary and cache write, activation."""
    t, tp = transformer, pool.tp_count
    norms = (
        4.0
        * t.hidden_count
        * (t.attention_layers_count + t.linear_layers_count + t.dense_layers_count + t.moe_layers_count)
    )
    rotary = 2.0 * t.attention_layers_count * (t.heads_count + 2.0 * t.kv_heads_count) * t.head_dim_count / tp
    shared = t.moe_layers_count * t.shared_experts_count * t.shared_ffn_count
    activation = (2.0 + t.gated_flag) * (t.dense_layers_count * t.ffn_count + shared) / tp
    traffic = RESIDUAL_BYTES * tokens_count * (norms + rotary + activation)
    return elementwise_ns(traffic, kernels.machine.memory_rate_gbps, kernels.machine.memory_frac, 0.0)


def _head_ns(rows_count: Numeric, t: Transformer, job: ServingJob, pool: Pool, kernels: ServingKernels) -> Numeric:
    vocab = t.vocab_count / pool.tp_count
    return gemm_ns(rows_count, vocab, t.hidden_count, job.head_weight_bytes, RESIDUAL_BYTES, kernels.head)


def _stage_transfer_ns(tokens_count: Numeric, t: Transformer, pool: Pool, fabric: Fabric) -> Numeric:
    """One hand-over between stages; stages lie apart by the ranks of one stage."""
    if np.all(pool.pp_count <= 1.0):
        return 0.0 * tokens_count
    ranks = pool.tp_count * pool.dp_count
    crosses = np.where(ranks * pool.pp_count > fabric.scale_up.domain_count, 1.0 / pool.pp_count, 0.0)
    share_bytes = RESIDUAL_BYTES * t.hidden_count * tokens_count / pool.tp_count
    return point_to_point_ns(share_bytes, np.minimum(crosses, 1.0), fabric)


def kernels_count(transformer: Transformer) -> Numeric:
    """Kernels of one pass that the device starts one after another.

    Eight per layer with a dense feed-forward (two norms, two projections, rotary and cache write, core, gate and down
    products), four more for latent attention (query norm and up, absorb in, absorb out), four more where there are
    experts (router, choice, gather, sum) and two more for shared experts.

    Args:
        transformer: The model.

    Returns:
        Kernels. [count]

    Source:
        definition: counted from the layer.

    >>> from codesign.model.workload.transformer import LLAMA_3_8B
    >>> float(kernels_count(LLAMA_3_8B))
    256.0
    """
    t = transformer
    mixers = t.attention_layers_count + t.linear_layers_count
    shared = np.where(t.shared_experts_count > 0.0, 2.0, 0.0)
    return (5.0 + 4.0 * t.mla_flag) * mixers + 3.0 * t.dense_layers_count + (7.0 + shared) * t.moe_layers_count
