"""One decode step: every running sequence gets one token."""

import numpy as np

from codesign.model.fabric.collectives import Fabric
from codesign.model.kernels.attention import decode_attention_ns
from codesign.model.kernels.mla import mla_decode_ns
from codesign.model.workload.forward_pass import ForwardPass, absent_flag, forward_pass
from codesign.model.workload.serving_inputs import Pool, ServingJob, ServingKernels, ServingSoftware
from codesign.model.workload.transformer import Transformer
from codesign.units import Numeric


def decode_pass(
    sequences_count: Numeric,
    transformer: Transformer,
    job: ServingJob,
    pool: Pool,
    kernels: ServingKernels,
    fabric: Fabric,
    software: ServingSoftware,
) -> ForwardPass:
    """Parts of one decode step over the sequences of one attention replica and pipeline slot, host work excluded.

    The cache of a sequence is taken at its mean length, the prompt and half the answer.

    Args:
        sequences_count: Sequences of one replica in the step. [count], > 0
        transformer: The model.
        job: Lengths and number formats.
        pool: Parallel layout.
        kernels: Kernel engines.
        fabric: The network.
        software: Gaps and ratios.

    Returns:
        The parts.

    Source:
        definition: see `forward_pass`.
    """
    context = job.isl_count + 0.5 * job.osl_count
    core = _decode_core_ns(sequences_count, context, transformer, job, pool, kernels)
    return forward_pass(sequences_count, sequences_count, core, transformer, job, pool, kernels, fabric, software)


def _decode_core_ns(
    sequences_count: Numeric,
    context_count: Numeric,
    transformer: Transformer,
    job: ServingJob,
    pool: Pool,
    kernels: ServingKernels,
) -> Numeric:
    """Attention of all layers in one decode step on one rank: cache reads, or the recurrent state.

    Windowed layers read at most their window, sparse attention what it selects; a recurrent layer reads and writes
    its state.
    """
    t = transformer
    if np.all(t.mla_flag):
        core = _latent_core_ns(sequences_count, context_count, t, job, pool, kernels)
    else:
        core = _grouped_core_ns(sequences_count, context_count, t, job, pool, kernels)
        if not absent_flag(t.mla_flag):
            latent = _latent_core_ns(sequences_count, context_count, t, job, pool, kernels)
            core = np.where(t.mla_flag > 0.0, latent, core)
    if absent_flag(t.linear_layers_count):
        return core
    traffic = 2.0 * sequences_count * t.state_bytes / pool.tp_count
    one_ns = kernels.attention.decode_launch_ns + traffic * kernels.attention.ns_per_byte
    return core + t.linear_layers_count * one_ns


def _latent_core_ns(
    sequences: Numeric, context: Numeric, t: Transformer, job: ServingJob, pool: Pool, kernels: ServingKernels
) -> Numeric:
    heads, latent = t.heads_count / pool.tp_count, np.maximum(t.kv_lora_count, 1.0)
    seen = _selected(context, t)
    one_ns = mla_decode_ns(sequences, seen, heads, latent, t.qk_rope_count, job.kv_bytes, kernels.latent_attention)
    return t.attention_layers_count * one_ns


def _grouped_core_ns(
    sequences: Numeric, context: Numeric, t: Transformer, job: ServingJob, pool: Pool, kernels: ServingKernels
) -> Numeric:
    tp, engine = pool.tp_count, kernels.attention
    heads, kv_heads = t.heads_count / tp, np.maximum(t.kv_heads_count / tp, 1.0)
    head_dim = np.maximum(t.head_dim_count, 1.0)
    seen = _selected(context, t)
    if absent_flag(t.windowed_layers_frac):
        one_ns = decode_attention_ns(sequences, seen, heads, kv_heads, head_dim, job.kv_bytes, engine)
        return t.attention_layers_count * one_ns
    near = np.where(t.windowed_layers_frac > 0.0, np.minimum(context, t.window_count), seen)
    full_ns = decode_attention_ns(sequences, seen, heads, kv_heads, head_dim, job.kv_bytes, engine)
    near_ns = decode_attention_ns(sequences, near, heads, kv_heads, head_dim, job.kv_bytes, engine)
    return t.attention_layers_count * (full_ns + t.windowed_layers_frac * (near_ns - full_ns))


def _selected(context: Numeric, t: Transformer) -> Numeric:
    """Tokens attention reads: all, or what sparse attention selects."""
    if absent_flag(t.sparse_context_count):
        return context
    return np.where(t.sparse_context_count > 0.0, np.minimum(context, t.sparse_context_count), context)
