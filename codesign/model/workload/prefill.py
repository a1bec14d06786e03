"""Prompts: alone in a pass of their own, or riding in a decode batch."""

import numpy as np

from codesign.model.fabric.collectives import Fabric
from codesign.model.kernels.attention import prefill_attention_ns
from codesign.model.kernels.mla import mla_prefill_ns
from codesign.model.workload.forward_pass import ForwardPass, absent_flag, forward_pass
from codesign.model.workload.serving_inputs import Pool, ServingJob, ServingKernels, ServingSoftware
from codesign.model.workload.transformer import Transformer
from codesign.units import Numeric


def prompt_pass(
    prompts_count: Numeric,
    riders_count: Numeric,
    transformer: Transformer,
    job: ServingJob,
    pool: Pool,
    kernels: ServingKernels,
    fabric: Fabric,
    software: ServingSoftware,
) -> ForwardPass:
    """Parts of the passes that take prompts of one attention replica, host work excluded.

    Prompts longer than one pass takes are cut; the pieces are priced at equal length.

    Args:
        prompts_count: Prompts of one replica taken together. [count], > 0
        riders_count: Decode tokens in the same pass, their attention core not counted. [count], >= 0
        transformer: The model.
        job: Lengths and number formats.
        pool: Parallel layout.
        kernels: Kernel engines.
        fabric: The network.
        software: Gaps, ratios and the length of a pass.

    Returns:
        The parts, over all passes.

    Source:
        definition: see `forward_pass`.
    """
    tokens = prompts_count * job.isl_count
    passes = np.maximum(np.ceil(tokens / software.chunk_count), 1.0)
    core = _prompt_core_ns(prompts_count, transformer, job, pool, kernels)
    one = forward_pass(
        tokens / passes + riders_count,
        prompts_count / passes + riders_count,
        core / passes,
        transformer,
        job,
        pool,
        kernels,
        fabric,
        software,
    )
    return one if np.all(passes == 1.0) else _times(one, passes)


def _times(parts: ForwardPass, count: Numeric) -> ForwardPass:
    return ForwardPass(*(getattr(parts, name) * count for name in ForwardPass.__slots__))


def _prompt_core_ns(
    prompts_count: Numeric, transformer: Transformer, job: ServingJob, pool: Pool, kernels: ServingKernels
) -> Numeric:
    """Causal attention of all layers over prompts on one rank, and the recurrent layers' scan.

    Windowed layers compute at most a window per query. A recurrent layer streams its projected values twice.
    """
    t = transformer
    if np.all(t.mla_flag):
        core = _latent_core_ns(prompts_count, t, job, pool, kernels)
    else:
        core = _grouped_core_ns(prompts_count, t, job, pool, kernels)
        if not absent_flag(t.mla_flag):
            core = np.where(t.mla_flag > 0.0, _latent_core_ns(prompts_count, t, job, pool, kernels), core)
    if absent_flag(t.linear_layers_count):
        return core
    streamed = 4.0 * t.linear_projection_count / t.hidden_count / pool.tp_count * prompts_count * job.isl_count
    one_ns = kernels.attention.prefill_launch_ns + streamed * kernels.attention.ns_per_byte
    return core + t.linear_layers_count * one_ns


def _latent_core_ns(prompts: Numeric, t: Transformer, job: ServingJob, pool: Pool, kernels: ServingKernels) -> Numeric:
    heads, length = t.heads_count / pool.tp_count, job.isl_count
    key_dim = np.maximum(t.qk_nope_count + t.qk_rope_count, 1.0)
    value_dim = np.maximum(t.v_head_dim_count, 1.0)
    one_ns = mla_prefill_ns(prompts, length, length, heads, key_dim, value_dim, kernels.latent_attention)
    return t.attention_layers_count * one_ns


def _grouped_core_ns(prompts: Numeric, t: Transformer, job: ServingJob, pool: Pool, kernels: ServingKernels) -> Numeric:
    tp, length, engine = pool.tp_count, job.isl_count, kernels.attention
    heads, kv_heads = t.heads_count / tp, np.maximum(t.kv_heads_count / tp, 1.0)
    head_dim = np.maximum(t.head_dim_count, 1.0)
    if absent_flag(t.windowed_layers_frac):
        one_ns = prefill_attention_ns(prompts, length, length, heads, kv_heads, head_dim, engine)
        return t.attention_layers_count * one_ns
    window = np.where(t.windowed_layers_frac > 0.0, np.minimum(length, t.window_count), length)
    seen = np.minimum(1.5 * window, length)
    full_ns = prefill_attention_ns(prompts, length, length, heads, kv_heads, head_dim, engine)
    near_ns = prefill_attention_ns(prompts * length / window, window, seen, heads, kv_heads, head_dim, engine)
    return t.attention_layers_count * (full_ns + t.windowed_layers_frac * (near_ns - full_ns))
