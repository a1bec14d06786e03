"""Matrix products of one layer in training: forward, backward to the inputs, backward to the weights."""

from dataclasses import dataclass, replace

import numpy as np

from codesign.columns import freeze
from codesign.model.kernels.gemm import GemmEngine, gemm_ns
from codesign.model.workload.layout import Layout
from codesign.model.workload.training_inputs import Software, TrainingConstants, TrainingEngines, TrainingJob
from codesign.model.workload.transformer import Transformer
from codesign.units import Numeric

WIDE_BYTES = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Time of the matrix products of one micro-batch, averaged over the layers of the stack, and of the head."""

    forward_ns: Numeric
    backward_ns: Numeric
    last_forward_ns: Numeric  # of the forward, the products whose result no backward needs
    head_forward_ns: Numeric
    head_backward_ns: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class _Pass:
    """Engine and formats of one kind of product: quantised where data enters, plain where it is already there."""

    engine: GemmEngine
    plain: GemmEngine
    operand_bytes: Numeric
    learns: Numeric


def _linear_ns(tokens: Numeric, inputs: Numeric, outputs: Numeric, work: _Pass) -> tuple[Numeric, Numeric]:
    """Forward and backward of one weight matrix; frozen weights need no gradient of their own."""
    forward = gemm_ns(tokens, outputs, inputs, work.operand_bytes, work.operand_bytes, work.engine)
    to_input = gemm_ns(tokens, inputs, outputs, work.operand_bytes, work.operand_bytes, work.engine)
    to_weight = gemm_ns(outputs, inputs, tokens, work.operand_bytes, work.operand_bytes, work.plain)
    return forward, to_input + work.learns * to_weight


def _add(*parts: tuple[Numeric, Numeric]) -> tuple[Numeric, Numeric]:
    forward, backward = parts[0]
    for more_forward, more_backward in parts[1:]:
        forward, backward = forward + more_forward, backward + more_backward
    return forward, backward


def _times(count: Numeric, part: tuple[Numeric, Numeric]) -> tuple[Numeric, Numeric]:
    return count * part[0], count * part[1]


def _attention(t: Transformer, tokens: Numeric, tp: Numeric, work: _Pass) -> tuple[Numeric, Numeric]:
    kv_heads = np.maximum(t.kv_heads_count / tp, 1.0)
    heads = t.heads_count / tp
    queries = heads * (1.0 + t.attention_gate_flag)
    fused = _linear_ns(tokens, t.hidden_count, (queries + 2.0 * kv_heads) * t.head_dim_count, work)
    latent = _latent_attention(t, tokens, heads, work)
    value_dim = t.head_dim_count + t.mla_flag * (t.v_head_dim_count - t.head_dim_count)
    out = _linear_ns(tokens, heads * value_dim, t.hidden_count, work)
    return _add(_times(1.0 - t.mla_flag, fused), _times(t.mla_flag, latent), out)


def _latent_attention(t: Transformer, tokens: Numeric, heads: Numeric, work: _Pass) -> tuple[Numeric, Numeric]:
    """Down and up projections of latent attention; the query may come straight from the hidden state."""
    key_dim = t.qk_nope_count + t.qk_rope_count
    compressed = np.minimum(t.q_lora_count, 1.0)
    rank = t.q_lora_count + (1.0 - compressed) * t.hidden_count
    down = _linear_ns(tokens, t.hidden_count, t.q_lora_count + t.kv_lora_count + t.qk_rope_count, work)
    query = _linear_ns(tokens, rank, heads * key_dim, work)
    up = _linear_ns(tokens, np.maximum(t.kv_lora_count, 1.0), heads * (t.qk_nope_count + t.v_head_dim_count), work)
    return _add(down, query, up)


def _feed_forward(
    t: Transformer, tokens: Numeric, hidden: Numeric, inner: Numeric, work: _Pass
) -> tuple[Numeric, Numeric]:
    up = _linear_ns(tokens, hidden, (1.0 + t.gated_flag) * inner, work)
    down = _linear_ns(tokens, inner, hidden, work)
    return _add(up, down)


def _experts(t: Transformer, job: TrainingJob, layout: Layout, tokens: Numeric, work: _Pass) -> tuple[Numeric, Numeric]:
    """Routed experts as one grouped product each way: one start, one product per local expert."""
    tp_cut = 1.0 + layout.expert_tp_flag * (layout.tp_count - 1.0)
    experts = np.maximum(t.experts_count, 1.0)
    local = np.maximum(experts / layout.ep_count, 1.0)
    pairs = tokens * t.top_k_count * tp_cut / layout.tp_count * job.imbalance_ratio
    rows = np.maximum(pairs / local, 1.0)
    grouped = replace(work, engine=_without_start(work.engine), plain=_without_start(work.plain))
    products = _feed_forward(t, rows, t.moe_hidden_count, t.moe_ffn_count / tp_cut, grouped)
    starts = (2.0 * work.engine.launch_ns, (2.0 + 2.0 * work.learns) * work.engine.launch_ns)
    return _add(_times(local, products), starts)


def _down_ns(t: Transformer, tokens: Numeric, inner: Numeric, work: _Pass) -> Numeric:
    return gemm_ns(tokens, t.hidden_count, inner, work.operand_bytes, work.operand_bytes, work.engine)


def _without_start(engine: GemmEngine) -> GemmEngine:
    """Products that run side by side in one grouped call do not pay a start each."""
    return replace(engine, launch_ns=0.0, quantise_launch_ns=0.0, step_ns=0.0)


def _expert_layer(
    t: Transformer, job: TrainingJob, layout: Layout, tokens: Numeric, work: _Pass
) -> tuple[Numeric, Numeric]:
    tp = layout.tp_count
    shared_inner = np.maximum(t.shared_ffn_count * t.shared_experts_count / tp, 1.0)
    shared = _feed_forward(t, tokens, t.hidden_count, shared_inner, work)
    latent_flag = np.where(t.moe_hidden_count < t.hidden_count, 1.0, 0.0)
    latent = _add(
        _linear_ns(tokens / tp, t.hidden_count, np.maximum(t.moe_hidden_count, 1.0), work),
        _linear_ns(tokens / tp, np.maximum(t.moe_hidden_count, 1.0), t.hidden_count, work),
    )
    router = _linear_ns(tokens / tp, t.hidden_count, np.maximum(t.experts_count, 1.0), work)
    return _add(
        _experts(t, job, layout, tokens, work),
        _times(np.minimum(t.shared_experts_count, 1.0), shared),
        _times(latent_flag, latent),
        router,
    )


def _recurrent(t: Transformer, tokens: Numeric, tp: Numeric, work: _Pass) -> tuple[Numeric, Numeric]:
    """Input and output projections of a recurrent layer; two thirds of its matrix weights stand before the state."""
    width = np.maximum(t.linear_projection_count / (3.0 * t.hidden_count * tp), 1.0)
    return _add(_linear_ns(tokens, t.hidden_count, 2.0 * width, work), _linear_ns(tokens, width, t.hidden_count, work))


def products(
    transformer: Transformer,
    job: TrainingJob,
    layout: Layout,
    engines: TrainingEngines,
    software: Software,
    constants: TrainingConstants,
) -> Products:
    """Matrix products of one micro-batch on one rank, per average layer, and of the head.

    In a step products find cold caches and a shared memory; a whole-program compiler stages its operands itself and
    keeps what the product reaches alone.

    Args:
        transformer: Shape of the model.
        job: Sequence, formats, what learns.
        layout: Micro-batch and degrees.
        engines: Matrix units.
        software: Whether a whole-program compiler stages the operands.
        constants: Factors of a real step.

    Returns:
        Forward and backward time of an average layer and of the head.

    Source:
        definition: every weight matrix is used once forward and twice backward.
    """
    t, tp = transformer, layout.tp_count
    tokens = layout.micro_batch_count * job.sequence_count / layout.cp_count
    quantised = engines.gemm.quantise_bytes * constants.quantise_ratio
    engine = replace(engines.gemm, quantise_bytes=quantised, quantise_launch_ns=0.0)
    plain = replace(engines.gemm, quantise_bytes=0.0, quantise_launch_ns=0.0)
    learns = np.where(job.trainable_frac < 1.0, 0.0, 1.0)
    work = _Pass(engine, plain, job.operand_bytes, learns)
    layer = _add(
        _times(t.attention_layers_count, _attention(t, tokens, tp, work)),
        _times(t.dense_layers_count, _feed_forward(t, tokens, t.hidden_count, np.maximum(t.ffn_count, 1.0) / tp, work)),
        _times(t.moe_layers_count, _expert_layer(t, job, layout, tokens, work)),
        _times(t.linear_layers_count, _recurrent(t, tokens, tp, work)),
    )
    last = t.dense_layers_count * _down_ns(t, tokens, np.maximum(t.ffn_count, 1.0) / tp, work)
    head_work = _Pass(engines.head, engines.head, WIDE_BYTES, learns)
    head = _linear_ns(tokens, t.hidden_count, t.vocab_count / tp, head_work)
    slow = 1.0 + (constants.gemm_ratio - 1.0) * (1.0 - software.compiled_flag)
    return Products(
        forward_ns=slow * layer[0] / t.layers_count,
        backward_ns=slow * layer[1] / t.layers_count,
        last_forward_ns=slow * last / t.layers_count,
        head_forward_ns=slow * head[0],
        head_backward_ns=slow * head[1],
    )
