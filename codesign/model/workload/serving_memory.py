"""What serving keeps in the memory of one rank: weights and the caches of running sequences."""

import numpy as np

from codesign.model.workload.serving_inputs import Pool, ServingJob
from codesign.model.workload.transformer import (
    Transformer,
    attention_parameters_count,
    dense_ffn_parameters_count,
    embedding_parameters_count,
    expert_parameters_count,
    shared_parameters_count,
    windowed_context_count,
)
from codesign.units import Numeric


def rank_weights_bytes(transformer: Transformer, job: ServingJob, pool: Pool) -> Numeric:
    """Weights one rank holds: attention and dense parts split over its attention group, experts over all ranks.

    Latent down projections, which every rank holds whole, and norms are below one percent and counted as split.

    Args:
        transformer: The model.
        job: Number formats.
        pool: Parallel layout.

    Returns:
        Bytes of weights on one rank. [byte]

    Source:
        definition: parameters times bytes, over the ranks that share them.

    >>> from codesign.model.workload.serving_inputs import BF16_CHAT, TP_8
    >>> from codesign.model.workload.transformer import LLAMA_3_8B
    >>> float(rank_weights_bytes(LLAMA_3_8B, BF16_CHAT, TP_8))  # 8.03 billion parameters in two bytes, over eight
    2007498752.0
    """
    t = transformer
    mixers = t.attention_layers_count * attention_parameters_count(t)
    mixers = mixers + t.linear_layers_count * (t.linear_projection_count + t.linear_other_count)
    dense = t.dense_layers_count * dense_ffn_parameters_count(t) + t.moe_layers_count * shared_parameters_count(t)
    experts = t.moe_layers_count * t.experts_count * expert_parameters_count(t)
    split_bytes = (
        mixers * job.projection_weight_bytes
        + dense * job.dense_weight_bytes
        + embedding_parameters_count(t) * job.head_weight_bytes
    )
    return (split_bytes / pool.tp_count + experts * job.expert_weight_bytes / (pool.tp_count * pool.dp_count)) / (
        pool.pp_count
    )


def rank_cache_bytes(transformer: Transformer, job: ServingJob, pool: Pool, tokens_count: Numeric) -> Numeric:
    """Cache of one sequence on one rank of its attention group; a rank holds at least one key-value head.

    Windowed layers keep the last tokens only; every rank holds latent caches whole; recurrent layers keep a state.

    Args:
        transformer: The model.
        job: Bytes of one cached value.
        pool: Parallel layout.
        tokens_count: Tokens of the sequence. [count], >= 0

    Returns:
        Bytes of one sequence on one rank. [byte]

    Source:
        definition: tokens kept times bytes of one token.

    >>> from codesign.model.workload.serving_inputs import BF16_CHAT, TP_8
    >>> from codesign.model.workload.transformer import LLAMA_3_8B
    >>> float(rank_cache_bytes(LLAMA_3_8B, BF16_CHAT, TP_8, 1000.0))
    16384000.0
    """
    t = transformer
    heads = np.maximum(t.kv_heads_count / pool.tp_count, 1.0)
    latent = t.kv_lora_count + t.qk_rope_count
    row_bytes = job.kv_bytes * (t.mla_flag * latent + (1.0 - t.mla_flag) * 2.0 * heads * t.head_dim_count)
    near = windowed_context_count(t, tokens_count)
    kept = tokens_count + t.windowed_layers_frac * (near - tokens_count)
    state_bytes = t.linear_layers_count * t.state_bytes / pool.tp_count
    return (t.attention_layers_count * kept * row_bytes + state_bytes) / pool.pp_count
