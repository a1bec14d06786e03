"""The attention core and everything of a training step that only moves data, per average layer and micro-batch."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.kernels.attention import prefill_attention_ns
from codesign.model.kernels.mla import mla_prefill_ns
from codesign.model.workload.layout import Layout
from codesign.model.workload.machine import Machine
from codesign.model.workload.training_inputs import Software, TrainingConstants, TrainingEngines, TrainingJob
from codesign.model.workload.transformer import LLAMA_3_8B, Transformer  # noqa: F401  examples
from codesign.units import Numeric

BITS_PER_BYTE = 8.0
WIDE_BYTES = 2.0
BACKWARD_PRODUCTS_RATIO = 2.5  # five products backward (scores again, and four gradients) over two forward
SCORE_FORWARD_BYTES = 13.0  # scale, mask, softmax, dropout: each reads and writes the matrix in two bytes, mask in one
SCORE_BACKWARD_BYTES = 17.0
RESIDUAL_WIDTHS_COUNT = 5.0  # norm in and out, residual in twice and out, per mixer or feed-forward
MIXER_KERNELS_COUNT = 14.0  # kernels of one forward: norm, products, rotary, transposes, core, residual
FEED_KERNELS_COUNT = 10.0  # norm, products, activation, residual
EXPERT_KERNELS_COUNT = 14.0  # norm, router, sort, permute, weighting, residual
RECURRENT_KERNELS_COUNT = 12.0  # norm, products, convolution, chunk scans, gate, residual
LOGIT_BYTES = 12.0  # sixteen-bit logits, thirty-two-bit softmax, gradient
PERMUTE_WIDTHS_COUNT = 4.0  # copy out and in, each read and written


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Attention core and element-wise time of one micro-batch: per average layer, and of the head."""

    attention_forward_ns: Numeric
    attention_backward_ns: Numeric
    elementwise_forward_ns: Numeric
    permute_forward_ns: Numeric
    head_ns: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def _windowed_frac(t: Transformer, sequence: Numeric) -> Numeric:
    """Work of windowed layers over full ones: keys seen on average, window against half the sequence."""
    window = np.minimum(np.where(t.window_count > 0.0, t.window_count, sequence), sequence)
    seen = window - 0.5 * window * window / sequence
    return 1.0 - t.windowed_layers_frac * (1.0 - seen / (0.5 * sequence))


def _attention_ns(
    t: Transformer, job: TrainingJob, layout: Layout, engines: TrainingEngines, software: Software
) -> tuple[Numeric, Numeric]:
    """Core forward of one attention layer, and of it what a selective recompute repeats: the same."""
    heads = t.heads_count / layout.tp_count
    kv_heads = np.maximum(t.kv_heads_count / layout.tp_count, 1.0)
    sequence, batch = job.sequence_count, layout.micro_batch_count
    grouped = prefill_attention_ns(batch, sequence, sequence, heads, kv_heads, t.head_dim_count, engines.attention)
    key_dim = t.qk_nope_count + t.qk_rope_count
    latent = mla_prefill_ns(batch, sequence, sequence, heads, key_dim, t.v_head_dim_count, engines.latent)
    core = grouped + t.mla_flag * (latent - grouped)
    # causal work is balanced over the context ranks
    return core * _windowed_frac(t, sequence) / (layout.cp_count * software.attention_frac), heads


def traffic(
    transformer: Transformer,
    job: TrainingJob,
    layout: Layout,
    engines: TrainingEngines,
    machine: Machine,
    software: Software,
    constants: TrainingConstants,
) -> Traffic:
    """Attention core and element-wise time of one micro-batch on one rank.

    Args:
        transformer: Shape of the model.
        job: Sequence and what learns.
        layout: Micro-batch and degrees.
        engines: Attention engine.
        machine: Memory rate.
        software: Fusion and attention generation.
        constants: Factors of a real step.

    Returns:
        Times of an average layer and of the head.

    Source:
        korthikanti-2022: tensors of a layer; bytes over memory rate.
    """
    t, tp = transformer, layout.tp_count
    tokens = layout.micro_batch_count * job.sequence_count / layout.cp_count
    ns_per_byte = BITS_PER_BYTE / (machine.memory_rate_gbps * machine.memory_frac)
    core, heads = _attention_ns(t, job, layout, engines, software)
    core = core * constants.attention_ratio
    scores = layout.micro_batch_count * heads * job.sequence_count * job.sequence_count / layout.cp_count
    sinks = np.where((t.window_count > 0.0) & (t.window_count < job.sequence_count), software.window_unfused_flag, 0.0)
    score = np.maximum(software.unfused_attention_flag, sinks) * constants.score_ratio * scores * ns_per_byte
    attention = t.attention_layers_count / t.layers_count
    chain = constants.elementwise_ratio * (1.0 + software.compiled_flag * (constants.compiled_ratio - 1.0))
    gaps = constants.kernel_ns * software.launch_ratio * kernels_count(t)
    streamed = chain * _elementwise_bytes(t, layout, tokens, software)
    streamed = streamed + constants.state_ratio * _state_bytes(t, tp, tokens)
    return Traffic(
        attention_forward_ns=attention * (core + SCORE_FORWARD_BYTES * score),
        attention_backward_ns=attention
        * (BACKWARD_PRODUCTS_RATIO * core / constants.attention_backward_frac + SCORE_BACKWARD_BYTES * score),
        elementwise_forward_ns=gaps + streamed * ns_per_byte,
        permute_forward_ns=constants.permute_ratio * _permute_bytes(t, layout, tokens, software) * ns_per_byte,
        head_ns=LOGIT_BYTES * chain * tokens * t.vocab_count / tp * ns_per_byte,
    )


def kernels_count(transformer: Transformer) -> Numeric:
    """Kernels of an average layer in one forward pass, the loop over local experts not counted.

    Args:
        transformer: Layers of each kind.

    Returns:
        Kernels of one average layer. [count]

    Source:
        nemo-2025: profiles of a mixer with rotary embedding, a gated feed-forward, a router with permutation.

    >>> kernels_count(LLAMA_3_8B)
    24.0
    """
    t = transformer
    kernels = (
        MIXER_KERNELS_COUNT * t.attention_layers_count
        + FEED_KERNELS_COUNT * t.dense_layers_count
        + EXPERT_KERNELS_COUNT * t.moe_layers_count
        + RECURRENT_KERNELS_COUNT * t.linear_layers_count
    )
    return kernels / t.layers_count


def _elementwise_bytes(t: Transformer, layout: Layout, tokens: Numeric, software: Software) -> Numeric:
    """Norms, residuals, rotary, activation: forward bytes of an average layer."""
    tp = layout.tp_count
    residual_tp = 1.0 + software.sequence_parallel_flag * (tp - 1.0)
    mixers = t.attention_layers_count + t.linear_layers_count
    feeds = t.dense_layers_count + t.moe_layers_count
    residual = RESIDUAL_WIDTHS_COUNT * t.hidden_count / residual_tp * (mixers + feeds)
    qkv = t.attention_layers_count * 2.0 * (t.heads_count + 2.0 * t.kv_heads_count) * t.head_dim_count / tp
    dense = t.dense_layers_count * (2.0 + t.gated_flag) * t.ffn_count / tp
    inner = t.top_k_count * t.moe_ffn_count * _unfused_frac(t, software) + t.shared_experts_count * t.shared_ffn_count
    experts = t.moe_layers_count * (2.0 + t.gated_flag) * inner / tp
    return WIDE_BYTES * tokens * (residual + qkv + dense + experts) / t.layers_count


def _unfused_frac(t: Transformer, software: Software) -> Numeric:
    hybrid = np.minimum(t.linear_layers_count, 1.0)
    return 1.0 - software.expert_fused_frac - hybrid * (software.hybrid_fused_frac - software.expert_fused_frac)


def _permute_bytes(t: Transformer, layout: Layout, tokens: Numeric, software: Software) -> Numeric:
    copies = t.top_k_count * t.moe_hidden_count / layout.tp_count
    passes = PERMUTE_WIDTHS_COUNT * _unfused_frac(t, software)
    return WIDE_BYTES * tokens * passes * copies * t.moe_layers_count / t.layers_count


def _state_bytes(t: Transformer, tp: Numeric, tokens: Numeric) -> Numeric:
    width = t.linear_projection_count / t.hidden_count / tp
    return 2.0 * WIDE_BYTES * tokens * width * t.linear_layers_count / t.layers_count
