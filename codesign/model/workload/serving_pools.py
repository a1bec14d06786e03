"""What one pool costs by itself, and what a layout can at best reach before any balance of its loop is solved.

`serving` composes whole points from this; `serving_search` works it out once for every distinct pool of a search, and
prices only the layouts whose ceiling is high enough.
"""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.fabric.collectives import Fabric
from codesign.model.workload.decode import decode_pass
from codesign.model.workload.forward_pass import ForwardPass, pass_ns
from codesign.model.workload.prefill import prompt_pass
from codesign.model.workload.queueing_ttft import running_sequences_count
from codesign.model.workload.serving_inputs import (
    Pool,
    QueueConstants,
    ServingJob,
    ServingKernels,
    ServingLayout,
    ServingSoftware,
)
from codesign.model.workload.serving_memory import rank_cache_bytes, rank_weights_bytes
from codesign.model.workload.transformer import Transformer
from codesign.units import Numeric

#: a ceiling is higher by this than its formula says, so that no rounding puts a point above it
CEILING_MARGIN_FRAC = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """One engine of a pool and the users of each of its attention replicas: what a pass needs besides its tokens."""

    transformer: Transformer
    job: ServingJob
    pool: Pool
    kernels: ServingKernels
    fabric: Fabric  # as a step meets it, see `serving.in_step`
    software: ServingSoftware
    users_count: Numeric  # of one attention replica; prompts and memory do not read it

    def running(self, occupancy: Numeric) -> Numeric:
        """Sequences in a decode step of one replica."""
        return running_sequences_count(self.users_count, occupancy)

    def tokens(self, running: Numeric) -> Numeric:
        """Tokens of the slowest replica in one pipeline slot."""
        slowest = np.where(self.pool.dp_count > 1.0, self.software.straggler_ratio, 1.0)
        return np.maximum(running * slowest / self.pool.pp_count, 1.0)

    def parts(self, occupancy: Numeric) -> ForwardPass:
        """A decode step without its host work."""
        tokens = self.tokens(self.running(occupancy))
        return decode_pass(tokens, self.transformer, self.job, self.pool, self.kernels, self.fabric, self.software)

    def host_ns(self, occupancy: Numeric) -> Numeric:
        """Host work of a decode step."""
        return self.software.step_host_ns + self.software.sequence_host_ns * self.running(occupancy)

    def step_ns(self, occupancy: Numeric, parts: ForwardPass | None = None) -> Numeric:
        """A decode step per token of one answer, of parts already worked out where there are any."""
        parts = self.parts(occupancy) if parts is None else parts
        return (pass_ns(parts) + self.host_ns(occupancy)) / self.job.speculation_ratio

    def grown_ns(self, parts: ForwardPass, occupancy: Numeric) -> Numeric:
        """What of a step grows with its sequences, roughly: enough for a first guess of where the loop settles."""
        others = 1.0 - 1.0 / self.running(occupancy)
        host = self.software.sequence_host_ns * self.running(occupancy)
        work = parts.core_ns + parts.experts_ns + parts.elementwise_ns + parts.expert_parallel_ns + host
        return others * work / self.job.speculation_ratio

    def prompt_ns(self, prompts_count: Numeric, decode_tokens: Numeric, decode_parts: ForwardPass | None) -> Numeric:
        """Time of prompts in one replica: alone, riding in decode batches, or the mixture the engine makes."""
        s, software = self, self.software
        mixed = 0.0 if decode_parts is None else software.mixed_frac
        time_ns: Numeric = 0.0
        if not np.all(mixed == 1.0):
            alone = prompt_pass(prompts_count, 0.0, s.transformer, s.job, s.pool, s.kernels, s.fabric, software)
            time_ns = (1.0 - mixed) * (pass_ns(alone) + software.step_host_ns)
        if decode_parts is not None and np.any(mixed):
            joint = prompt_pass(
                prompts_count, decode_tokens, s.transformer, s.job, s.pool, s.kernels, s.fabric, software
            )
            saved = pass_ns(decode_parts) - decode_parts.core_ns
            time_ns = time_ns + mixed * np.maximum(pass_ns(joint) - saved, 0.0)
        return software.prefill_work_ratio * time_ns

    def slots_count(self) -> Numeric:
        """Sequences whose caches fit beside the weights of one rank; at least one, so that every number is finite."""
        s, software = self, self.software
        weights = rank_weights_bytes(s.transformer, s.job, s.pool)
        room = software.kv_memory_frac * s.kernels.machine.memory_bytes - weights
        length = s.job.isl_count + software.kv_reserve_frac * s.job.osl_count
        return np.maximum(room / rank_cache_bytes(s.transformer, s.job, s.pool, length), 1.0)

    def full_frac(self, slots_count: Numeric) -> Numeric:
        """Slots of the cache over users, at most one."""
        return np.minimum(slots_count / np.maximum(self.users_count, 1.0), 1.0)

    def memory_excess_frac(self) -> Numeric:
        """What a rank lacks for its weights and one sequence, over its memory."""
        one = rank_cache_bytes(self.transformer, self.job, self.pool, self.job.isl_count + self.job.osl_count)
        needed = rank_weights_bytes(self.transformer, self.job, self.pool) + one
        return np.maximum(needed / self.kernels.machine.memory_bytes - self.software.kv_memory_frac, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class PromptPool:
    """A pool for prompts by itself: what no pool for answers changes."""

    lone_ns: Numeric  # one prompt alone
    each_ns: Numeric  # between two prompts of the whole pool when requests wait, and it never idles
    cache_bytes: Numeric  # of one prompt, from one rank of every stage
    memory_excess_frac: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class AnswerPool:
    """A pool for answers by itself, as many of its users running as have room: what no pool for prompts changes."""

    slots_count: Numeric  # sequences whose cache fits one replica
    full_frac: Numeric  # slots over users, at most one
    full_ns: Numeric  # a step with all of them
    grown_ns: Numeric  # what of that step grows with its sequences, roughly
    memory_excess_frac: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Supply:
    """How the prompts of all users reach the pool for answers, and the wait for a first token but its queue."""

    supply_ns: Numeric  # time in which the prompts of all users are computed
    prompt_ns: Numeric  # the own prompt
    burst_ns: Numeric  # prompts of others that come at the same time
    fixed_ns: Numeric  # hand-over of the cache and request handling
    transfer_ns: Numeric  # the hand-over alone
    wait_ns: Numeric  # own prompt, burst, hand-over and handling


@dataclass(frozen=True, slots=True, eq=False)
class Ceiling:
    """The least that a layout breaks and the most that it delivers, before any step of it is priced."""

    memory_excess_frac: Numeric  # as the point has it
    cache_excess_frac: Numeric  # as the point has it
    ttft_excess_frac: Numeric  # at most what the point has
    tpot_excess_frac: Numeric  # at most what the point has
    output_tokens_per_s: Numeric  # at least what the point has; infinite where nothing is known


def replica_users_count(layout: ServingLayout) -> Numeric:
    """Users of one attention replica of the engines that answer.

    Args:
        layout: Pools and users.

    Returns:
        Users. [count]

    Source:
        definition: users over replicas.

    >>> from codesign.model.workload.serving_inputs import TP_8
    >>> replica_users_count(ServingLayout(TP_8, TP_8, 0.0, 32.0))
    32.0
    """
    return layout.users_count / (layout.decode.workers_count * layout.decode.dp_count)


def pool_accelerators_count(pool: Pool) -> Numeric:
    """Accelerators of a pool.

    Args:
        pool: Its engines.

    Returns:
        Accelerators. [count]

    Source:
        definition: engines times the ranks of one.

    >>> from codesign.model.workload.serving_inputs import TP_8
    >>> pool_accelerators_count(TP_8)
    8.0
    """
    return pool.workers_count * pool.tp_count * pool.dp_count * pool.pp_count


def system_accelerators_count(layout: ServingLayout) -> Numeric:
    """Accelerators of the whole system.

    Args:
        layout: Pools and users.

    Returns:
        Accelerators. [count]

    Source:
        definition: both pools where there are two.

    >>> from codesign.model.workload.serving_inputs import TP_8
    >>> system_accelerators_count(ServingLayout(TP_8, TP_8, 1.0, 32.0))
    16.0
    """
    prompts = layout.disaggregated_flag * pool_accelerators_count(layout.prefill)
    return pool_accelerators_count(layout.decode) + prompts


def cache_excess_frac(users_count: Numeric, slots_count: Numeric) -> Numeric:
    """Users of a replica beyond the sequences whose cache fits, over those.

    Args:
        users_count: Users of one replica. [count], > 0
        slots_count: Sequences whose cache fits. [count], >= 1

    Returns:
        Excess. [1]; 0 where nobody queues.

    Source:
        definition: users over slots, less one.

    >>> float(cache_excess_frac(users_count=6.0, slots_count=4.0))
    0.5
    """
    return np.maximum(users_count / slots_count - 1.0, 0.0)


def prompt_pool(engine: Engine) -> PromptPool:
    """A pool that computes nothing but prompts, as many in a pass as the pass takes.

    Args:
        engine: Its engines.

    Returns:
        Its times and memory.

    Source:
        definition: prompt passes.
    """
    job, pool = engine.job, engine.pool
    batch = np.maximum(np.floor(engine.software.chunk_count / job.isl_count), 1.0)
    replicas = pool.dp_count * pool.workers_count * pool.pp_count
    return PromptPool(
        lone_ns=engine.prompt_ns(1.0, 0.0, None),
        each_ns=engine.prompt_ns(batch, 0.0, None) / (batch * replicas),
        cache_bytes=rank_cache_bytes(engine.transformer, job, pool, job.isl_count) * pool.pp_count,
        memory_excess_frac=engine.memory_excess_frac(),
    )


def answer_pool(engine: Engine) -> AnswerPool:
    """A pool that computes nothing but answers, all slots taken.

    Args:
        engine: Its engines and their users.

    Returns:
        Its step and memory.

    Source:
        definition: a decode step.
    """
    slots = engine.slots_count()
    full = engine.full_frac(slots)
    most = engine.parts(full)
    return AnswerPool(slots, full, engine.step_ns(full, most), engine.grown_ns(most, full), engine.memory_excess_frac())


def prompt_supply(layout: ServingLayout, fabric: Fabric, queue: QueueConstants, prompts: PromptPool) -> Supply:
    """How the prompts of all users reach the pool for answers.

    The cache of a prompt leaves the ranks that computed it over one domain's links where both pools share it.

    Args:
        layout: Pools and users.
        fabric: The network.
        queue: Constants of the first-token laws.
        prompts: The pool for prompts.

    Returns:
        Times.

    Source:
        definition: prompts, hand-over and handling composed.
    """
    both = pool_accelerators_count(layout.prefill) + pool_accelerators_count(layout.decode)
    rate = np.where(both <= fabric.scale_up.domain_count, fabric.scale_up.rate_gbps, fabric.scale_out.rate_gbps)
    transfer = 8.0 * prompts.cache_bytes / (rate * queue.transfer_rate_frac)
    supply = layout.users_count * prompts.each_ns / queue.pool_efficiency_frac
    own, burst = queue.prompt_ratio * prompts.lone_ns, queue.pool_burst_frac * supply
    return Supply(
        supply_ns=supply,
        prompt_ns=own,
        burst_ns=burst,
        fixed_ns=transfer + queue.transfer_start_ns,
        transfer_ns=transfer,
        wait_ns=own + burst + transfer + queue.transfer_start_ns,
    )


def pooled_ceiling(
    job: ServingJob, layout: ServingLayout, supply: Supply, prompts: PromptPool, answers: AnswerPool
) -> Ceiling:
    """What a layout with two pools can at best reach.

    Nobody waits less for a first token than where the pool for prompts is idle, and the cycle of a user is not shorter
    than that wait, nor than the supply takes to serve all users once.

    Args:
        job: Lengths and service levels.
        layout: Pools and users.
        supply: How the prompts of all users reach the pool for answers.
        prompts: The pool for prompts.
        answers: The pool for answers.

    Returns:
        Least excesses, most tokens.

    Source:
        definition: terms of the point that are never negative left out.
    """
    wait_ns = (1.0 - CEILING_MARGIN_FRAC) * supply.wait_ns
    cycle_ns = (1.0 - CEILING_MARGIN_FRAC) * (supply.supply_ns + supply.burst_ns + supply.fixed_ns)
    accelerators = system_accelerators_count(layout)
    return Ceiling(
        memory_excess_frac=np.maximum(answers.memory_excess_frac, prompts.memory_excess_frac),
        cache_excess_frac=cache_excess_frac(replica_users_count(layout), answers.slots_count),
        ttft_excess_frac=np.maximum(wait_ns / job.ttft_limit_ns - 1.0, 0.0),
        tpot_excess_frac=0.0,
        output_tokens_per_s=1e9 * layout.users_count * job.osl_count / (np.maximum(wait_ns, cycle_ns) * accelerators),
    )


def shared_ceiling(engine: Engine) -> Ceiling:
    """What engines that compute prompts and answers can at best reach: only their memory is known beforehand.

    Args:
        engine: The engines and their users.

    Returns:
        Least excesses, most tokens.

    Source:
        definition: memory and cache of the point.
    """
    return Ceiling(
        memory_excess_frac=engine.memory_excess_frac(),
        cache_excess_frac=cache_excess_frac(engine.users_count, engine.slots_count()),
        ttft_excess_frac=0.0,
        tpot_excess_frac=0.0,
        output_tokens_per_s=np.inf,
    )
