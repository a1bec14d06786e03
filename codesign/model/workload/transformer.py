"""A transformer as numbers: parameters, operations and cache bytes follow from its shape."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class Transformer:
    """Shape of a decoder: how many layers of each kind, and how wide each is. Zero means absent.

    A layer is a mixer (attention, or a recurrent state) and a feed-forward (dense or experts). Stacks that alternate
    single-part layers count each part as a layer, so mixers and feed-forwards need not come in equal numbers.
    """

    layers_count: Numeric  # entries of the stack, as pipelines cut it
    attention_layers_count: Numeric
    linear_layers_count: Numeric  # state-space or gated-delta mixers
    dense_layers_count: Numeric  # layers with a dense feed-forward
    moe_layers_count: Numeric  # layers with experts
    hidden_count: Numeric
    ffn_count: Numeric  # inner width of the dense feed-forward
    gated_flag: Numeric  # 1: three matrices (gate, up, down); 0: two
    vocab_count: Numeric
    tied_flag: Numeric  # 1: the head is the embedding
    positions_count: Numeric  # learned position embeddings
    heads_count: Numeric
    kv_heads_count: Numeric
    head_dim_count: Numeric
    attention_gate_flag: Numeric  # 1: a second query projection gates the output
    window_count: Numeric  # tokens a windowed layer sees; 0: full attention
    windowed_layers_frac: Numeric  # share of the attention layers that are windowed
    sparse_context_count: Numeric  # cached tokens that sparse attention selects; 0: all
    mla_flag: Numeric  # 1: latent attention; the next five describe it
    q_lora_count: Numeric
    kv_lora_count: Numeric
    qk_nope_count: Numeric
    qk_rope_count: Numeric
    v_head_dim_count: Numeric
    experts_count: Numeric  # 0: dense
    top_k_count: Numeric
    moe_ffn_count: Numeric  # inner width of one expert
    moe_hidden_count: Numeric  # width the experts work at: the hidden width, or a latent one
    shared_experts_count: Numeric
    shared_ffn_count: Numeric  # inner width of one shared expert
    linear_projection_count: Numeric  # matrix weights of one linear layer
    linear_other_count: Numeric  # its convolution, decay and norm weights
    state_bytes: Numeric  # recurrent state of one sequence in one linear layer
    mtp_layers_count: Numeric  # extra prediction layers; in no total

    def __post_init__(self) -> None:
        freeze(self)


def attention_parameters_count(transformer: Transformer) -> Numeric:
    """Matrix weights of one attention layer: grouped-query projections, or the latent ones.

    Args:
        transformer: The shape.

    Returns:
        Weights of one layer. [count]

    Source:
        vaswani-2017: query, key, value and output projections.
        deepseek-v2-2024: down- and up-projections of latent attention.

    >>> float(attention_parameters_count(LLAMA_3_8B))
    41943040.0
    """
    t = transformer
    heads_dim_count = t.heads_count * t.head_dim_count
    grouped_count = t.hidden_count * ((2.0 + t.attention_gate_flag) * heads_dim_count + kv_width_count(t))
    key_count = t.qk_nope_count + t.qk_rope_count
    has_lora_flag = np.minimum(t.q_lora_count, 1.0)
    query_count = t.q_lora_count * (t.hidden_count + t.heads_count * key_count) + (1.0 - has_lora_flag) * (
        t.hidden_count * t.heads_count * key_count
    )
    latent_count = t.hidden_count * (t.kv_lora_count + t.qk_rope_count)
    expand_count = t.kv_lora_count * t.heads_count * (t.qk_nope_count + t.v_head_dim_count)
    output_count = t.heads_count * t.v_head_dim_count * t.hidden_count
    latent_attention_count = query_count + latent_count + expand_count + output_count
    return t.mla_flag * latent_attention_count + (1.0 - t.mla_flag) * grouped_count


def kv_width_count(transformer: Transformer) -> Numeric:
    """Key and value entries that one token of one attention layer adds when heads are expanded.

    Args:
        transformer: The shape.

    Returns:
        Entries. [count]

    Source:
        shazeer-2019: one key and one value vector per key-value head.

    >>> kv_width_count(LLAMA_3_8B)
    2048.0
    """
    return 2.0 * transformer.kv_heads_count * transformer.head_dim_count


def dense_ffn_parameters_count(transformer: Transformer) -> Numeric:
    """Matrix weights of one dense feed-forward.

    Args:
        transformer: The shape.

    Returns:
        Weights of one layer. [count]

    Source:
        shazeer-2020: a gated feed-forward has three matrices, a plain one two.

    >>> dense_ffn_parameters_count(LLAMA_3_8B)
    176160768.0
    """
    return (2.0 + transformer.gated_flag) * transformer.hidden_count * transformer.ffn_count


def expert_parameters_count(transformer: Transformer) -> Numeric:
    """Matrix weights of one routed expert.

    Args:
        transformer: The shape.

    Returns:
        Weights of one expert. [count]

    Source:
        shazeer-2020: a gated feed-forward has three matrices, a plain one two.

    >>> expert_parameters_count(LLAMA_3_8B)
    0.0
    """
    return (2.0 + transformer.gated_flag) * transformer.moe_hidden_count * transformer.moe_ffn_count


def shared_parameters_count(transformer: Transformer) -> Numeric:
    """Weights of one expert layer that every token uses: router, shared experts, latent projections.

    Args:
        transformer: The shape.

    Returns:
        Weights of one layer. [count]

    Source:
        deepseek-v2-2024: shared experts beside the routed ones.

    >>> float(shared_parameters_count(LLAMA_3_8B))
    0.0
    """
    t = transformer
    router_count = t.hidden_count * t.experts_count
    shared_count = (2.0 + t.gated_flag) * t.hidden_count * t.shared_experts_count * t.shared_ffn_count
    latent_flag = np.minimum(np.abs(t.hidden_count - t.moe_hidden_count), 1.0) * np.minimum(t.experts_count, 1.0)
    return router_count + shared_count + latent_flag * 2.0 * t.hidden_count * t.moe_hidden_count


def embedding_parameters_count(transformer: Transformer) -> Numeric:
    """Token and position embeddings, and the head unless it is tied.

    Args:
        transformer: The shape.

    Returns:
        Weights. [count]

    Source:
        definition: one row per token of the vocabulary.

    >>> embedding_parameters_count(LLAMA_3_8B)
    1050673152.0
    """
    t = transformer
    return t.hidden_count * (t.vocab_count * (2.0 - t.tied_flag) + t.positions_count)


def _parameters_with_experts_count(transformer: Transformer, used_experts_count: Numeric) -> Numeric:
    t = transformer
    mixers_count = t.attention_layers_count * attention_parameters_count(t) + t.linear_layers_count * (
        t.linear_projection_count + t.linear_other_count
    )
    dense_count = t.dense_layers_count * dense_ffn_parameters_count(t)
    moe_count = t.moe_layers_count * (shared_parameters_count(t) + used_experts_count * expert_parameters_count(t))
    parts_count = t.attention_layers_count + t.linear_layers_count + t.dense_layers_count + t.moe_layers_count
    norms_count = (parts_count + 1.0) * t.hidden_count
    return mixers_count + dense_count + moe_count + norms_count + embedding_parameters_count(t)


def parameters_count(transformer: Transformer) -> Numeric:
    """All parameters: embeddings, mixers, feed-forwards, every expert, norms. Extra prediction layers are not counted.

    Biases and query-key norms (below 0.1 %) are left out.

    Args:
        transformer: The shape.

    Returns:
        Parameters. [count]

    Source:
        definition: the sum of its parts.

    >>> float(parameters_count(LLAMA_3_8B))  # published: 8.03 billion
    8030261248.0
    """
    return _parameters_with_experts_count(transformer, transformer.experts_count)


def active_parameters_count(transformer: Transformer) -> Numeric:
    """Parameters that one token uses: as `parameters_count` with its own experts only.

    Args:
        transformer: The shape.

    Returns:
        Parameters. [count]

    Source:
        definition: routed experts count top-k of all.

    >>> float(active_parameters_count(LLAMA_3_8B))
    8030261248.0
    """
    return _parameters_with_experts_count(transformer, transformer.top_k_count)


def kv_layer_bytes_per_token(transformer: Transformer, kv_bytes: Numeric) -> Numeric:
    """Cache bytes that one token adds in one attention layer, all heads together.

    Args:
        transformer: The shape.
        kv_bytes: Bytes of one cached value. [byte], > 0

    Returns:
        Bytes of one token and layer. [byte/token]

    Source:
        shazeer-2019: one key and one value vector per key-value head.
        deepseek-v2-2024: latent attention caches one latent and one rotary key.

    >>> kv_layer_bytes_per_token(LLAMA_3_8B, 2.0)
    4096.0
    """
    t = transformer
    latent_count = t.kv_lora_count + t.qk_rope_count
    return kv_bytes * (t.mla_flag * latent_count + (1.0 - t.mla_flag) * kv_width_count(t))


def kv_bytes_per_token(transformer: Transformer, kv_bytes: Numeric) -> Numeric:
    """Cache bytes that one token adds over all attention layers, before any window drops old ones.

    Args:
        transformer: The shape.
        kv_bytes: Bytes of one cached value. [byte], > 0

    Returns:
        Bytes of one token. [byte/token]

    Source:
        definition: attention layers x bytes of one layer.

    >>> kv_bytes_per_token(LLAMA_3_8B, 2.0)
    131072.0
    """
    return transformer.attention_layers_count * kv_layer_bytes_per_token(transformer, kv_bytes)


def kv_cache_bytes(transformer: Transformer, context_count: Numeric, kv_bytes: Numeric) -> Numeric:
    """Cache of one sequence: full layers keep every token, windowed layers the last ones, linear layers a state.

    Args:
        transformer: The shape.
        context_count: Tokens of the sequence. [count], >= 0
        kv_bytes: Bytes of one cached value. [byte], > 0

    Returns:
        Bytes of one sequence. [byte]

    Source:
        definition: tokens kept x bytes of one token, and the recurrent states.

    >>> kv_cache_bytes(LLAMA_3_8B, 1000.0, 2.0)
    131072000.0
    """
    t = transformer
    kept_count = (1.0 - t.windowed_layers_frac) * context_count + t.windowed_layers_frac * windowed_context_count(
        t, context_count
    )
    return kept_count * kv_bytes_per_token(t, kv_bytes) + t.linear_layers_count * t.state_bytes


def windowed_context_count(transformer: Transformer, context_count: Numeric) -> Numeric:
    """Tokens that a windowed layer sees of a context.

    Args:
        transformer: The shape.
        context_count: Tokens of the sequence. [count], >= 0

    Returns:
        Tokens. [count]

    Source:
        definition: the last ones, up to the window; all where there is no window.

    >>> windowed_context_count(LLAMA_3_8B, 1000.0)
    1000.0
    """
    reach_count = np.where(np.asarray(transformer.window_count) > 0.0, transformer.window_count, np.inf)
    seen_count = np.minimum(context_count, reach_count)
    return seen_count if seen_count.ndim else float(seen_count)


def matrix_flop_per_token(transformer: Transformer) -> Numeric:
    """Forward operations of one token in matrix products with weights, the head included, attention cores not.

    Args:
        transformer: The shape.

    Returns:
        Operations. [flop/token]

    Source:
        kaplan-2020: two operations per weight that a token meets.

    >>> float(matrix_flop_per_token(LLAMA_3_8B))
    15009316864.0
    """
    t = transformer
    mixers_count = t.attention_layers_count * attention_parameters_count(t) + (
        t.linear_layers_count * t.linear_projection_count
    )
    dense_count = t.dense_layers_count * dense_ffn_parameters_count(t)
    moe_count = t.moe_layers_count * (shared_parameters_count(t) + t.top_k_count * expert_parameters_count(t))
    return 2.0 * (mixers_count + dense_count + moe_count + t.hidden_count * t.vocab_count)


def attention_flop(transformer: Transformer, query_count: Numeric, context_count: Numeric) -> Numeric:
    """Forward operations of all causal attention cores for the last tokens of one sequence.

    Args:
        transformer: The shape.
        query_count: New tokens. [count], > 0
        context_count: Tokens the last of them sees. [count], >= query_count

    Returns:
        Operations. [flop]

    Source:
        dao-2022: two products of queries x keys x head dim; half of a causal square is masked.

    >>> float(attention_flop(LLAMA_3_8B, 1000.0, 1000.0))
    262144000000.0
    """
    t = transformer
    head_count = t.mla_flag * (t.qk_nope_count + t.qk_rope_count + t.v_head_dim_count) + (1.0 - t.mla_flag) * (
        2.0 * t.head_dim_count
    )
    full_count = context_count - 0.5 * query_count
    windowed_count = np.minimum(full_count, windowed_context_count(t, context_count))
    seen_count = (1.0 - t.windowed_layers_frac) * full_count + t.windowed_layers_frac * windowed_count
    return 2.0 * t.attention_layers_count * query_count * seen_count * t.heads_count * head_count


#: The example of the docstrings: Llama 3 8B.
LLAMA_3_8B = Transformer(
    layers_count=32.0, attention_layers_count=32.0, linear_layers_count=0.0, dense_layers_count=32.0,
    moe_layers_count=0.0, hidden_count=4096.0, ffn_count=14336.0, gated_flag=1.0, vocab_count=128256.0, tied_flag=0.0,
    positions_count=0.0, heads_count=32.0, kv_heads_count=8.0, head_dim_count=128.0, attention_gate_flag=0.0,
    window_count=0.0, windowed_layers_frac=0.0, sparse_context_count=0.0, mla_flag=0.0, q_lora_count=0.0,
    kv_lora_count=0.0, qk_nope_count=0.0, qk_rope_count=0.0, v_head_dim_count=0.0, experts_count=0.0, top_k_count=0.0,
    moe_ffn_count=0.0, moe_hidden_count=4096.0, shared_experts_count=0.0, shared_ffn_count=0.0,
    linear_projection_count=0.0, linear_other_count=0.0, state_bytes=0.0, mtp_layers_count=0.0,
)  # fmt: skip
