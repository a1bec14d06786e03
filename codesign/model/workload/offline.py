"""Serving without waiting users: one static batch, or a queue that never empties."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.fabric.collectives import Fabric
from codesign.model.workload.decode import decode_pass
from codesign.model.workload.forward_pass import pass_ns
from codesign.model.workload.prefill import prompt_pass
from codesign.model.workload.serving import in_step
from codesign.model.workload.serving_inputs import Pool, ServingJob, ServingKernels, ServingSoftware
from codesign.model.workload.serving_memory import rank_cache_bytes, rank_weights_bytes
from codesign.model.workload.serving_pools import Engine
from codesign.model.workload.transformer import Transformer
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class OfflinePoint:
    """One engine at full load."""

    batch_count: Numeric  # sequences running in the whole engine
    step_ns: Numeric  # one decode step with its host work
    prompt_ns: Numeric  # one prompt: alone in a static batch, as part of a full one otherwise
    total_ns: Numeric  # from the first prompt to the last token
    output_tokens_per_s: Numeric  # of the engine
    memory_excess_frac: Numeric  # what a rank lacks for weights and the batch, over its memory

    def __post_init__(self) -> None:
        freeze(self)


def static_batch(
    transformer: Transformer,
    job: ServingJob,
    pool: Pool,
    kernels: ServingKernels,
    fabric: Fabric,
    software: ServingSoftware,
    batch_count: Numeric,
) -> OfflinePoint:
    """One batch from its prompts to its last token; nothing joins and nothing leaves.

    The first token comes out of the prompt pass, every other one of a decode step. Pipeline stages take the batch in
    as many parts.

    Args:
        transformer: The model.
        job: Lengths and number formats.
        pool: Parallel layout; one engine.
        kernels: Kernel engines and accelerator.
        fabric: The network.
        software: The engine.
        batch_count: Sequences of the whole engine. [count], >= 1

    Returns:
        The point.

    Source:
        definition: prompts, then steps.

    >>> OfflinePoint.__slots__[3]
    'total_ns'
    """
    fabric = in_step(fabric, software)
    share = np.maximum(batch_count / (pool.dp_count * pool.pp_count), 1.0)
    prompts = prompt_pass(share, 0.0, transformer, job, pool, kernels, fabric, software)
    prompt_ns = software.prefill_work_ratio * pass_ns(prompts) + software.step_host_ns
    host_ns = software.step_host_ns + software.sequence_host_ns * batch_count / pool.dp_count
    step_ns = pass_ns(decode_pass(share, transformer, job, pool, kernels, fabric, software)) + host_ns
    total_ns = prompt_ns + np.maximum(job.osl_count - 1.0, 0.0) * step_ns / job.speculation_ratio
    needed = rank_weights_bytes(transformer, job, pool) + batch_count / pool.dp_count * rank_cache_bytes(
        transformer, job, pool, job.isl_count + job.osl_count
    )
    return OfflinePoint(
        batch_count=batch_count,
        step_ns=step_ns,
        prompt_ns=prompt_ns,
        total_ns=total_ns,
        output_tokens_per_s=1e9 * batch_count * job.osl_count / total_ns,
        memory_excess_frac=np.maximum(needed / kernels.machine.memory_bytes - 1.0, 0.0),
    )


def full_load(
    transformer: Transformer,
    job: ServingJob,
    pool: Pool,
    kernels: ServingKernels,
    fabric: Fabric,
    software: ServingSoftware,
    requests_count: Numeric,
    batch_limit_count: Numeric,
) -> OfflinePoint:
    """All requests queued at once, the running batch as large as cache, engine limit and queue allow.

    The cache is reserved for the whole answer of every running sequence. Prompts of equal length keep the batch in
    step, so the work comes in whole waves; a slot that empties is filled at once, and prompts ride in decode batches
    where the engine mixes them.

    Args:
        transformer: The model.
        job: Lengths and number formats.
        pool: Parallel layout; one engine.
        kernels: Kernel engines and accelerator.
        fabric: The network.
        software: The engine.
        requests_count: Requests in all. [count], >= 1
        batch_limit_count: Largest batch of one attention replica that the engine accepts. [count], >= 1

    Returns:
        The point.

    Source:
        definition: waves of prompts and steps.

    >>> OfflinePoint.__slots__[4]
    'output_tokens_per_s'
    """
    fabric = in_step(fabric, software)
    weights = rank_weights_bytes(transformer, job, pool)
    room = software.kv_memory_frac * kernels.machine.memory_bytes - weights
    slots = room / rank_cache_bytes(transformer, job, pool, job.isl_count + job.osl_count)
    most = requests_count / pool.dp_count
    replica = np.maximum(np.minimum(np.minimum(slots, batch_limit_count), most), 1.0)
    waves = np.ceil(most / replica - 1e-9)
    replica = np.maximum(most / waves, 1.0)

    running = np.maximum(replica / pool.pp_count, 1.0)
    tokens = running * np.where(pool.dp_count > 1.0, software.straggler_ratio, 1.0)
    parts = decode_pass(tokens, transformer, job, pool, kernels, fabric, software)
    step_ns = (pass_ns(parts) + software.step_host_ns + software.sequence_host_ns * replica) / job.speculation_ratio
    batch = np.maximum(np.floor(software.chunk_count / job.isl_count), 1.0)
    engine = Engine(transformer, job, pool, kernels, fabric, software, replica)
    prompt_ns = engine.prompt_ns(batch, tokens, parts) / batch
    total_ns = waves * (job.osl_count * step_ns + replica * prompt_ns / pool.pp_count)
    return OfflinePoint(
        batch_count=replica * pool.dp_count,
        step_ns=step_ns,
        prompt_ns=prompt_ns,
        total_ns=total_ns,
        output_tokens_per_s=1e9 * requests_count * job.osl_count / total_ns,
        memory_excess_frac=engine.memory_excess_frac(),
    )
