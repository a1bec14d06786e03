"""One serving system at one load: time per token, time to the first token, throughput, memory.

`serving_point` is the whole calculation. Everything broadcasts: measured rows are `(n,)`, a search is candidates
`(n, 1)` against layouts `(1, m)`; a model is usually plain floats there.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from codesign.columns import freeze
from codesign.model.fabric.collectives import Fabric
from codesign.model.workload.decode import decode_pass
from codesign.model.workload.forward_pass import ForwardPass, pass_ns
from codesign.model.workload.prefill import prompt_pass
from codesign.model.workload.queueing_ttft import (
    first_token_ns,
    occupancy_frac,
    pooled_first_token_ns,
    running_sequences_count,
    starved_occupancy_frac,
)
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

#: a pool that works more of its time than this is priced by its capacity, not by its queue
BUSIEST_FRAC = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class ServingPoint:
    """Results at one load. The `tpot_` parts add up to `tpot_ns`, the `ttft_` parts to `ttft_ns`."""

    tpot_ns: Numeric  # mean time between two tokens of one answer
    tpot_projection_ns: Numeric
    tpot_core_ns: Numeric
    tpot_dense_ns: Numeric
    tpot_experts_ns: Numeric
    tpot_elementwise_ns: Numeric
    tpot_tensor_parallel_ns: Numeric
    tpot_expert_parallel_ns: Numeric
    tpot_pipeline_ns: Numeric
    tpot_head_ns: Numeric
    tpot_gap_ns: Numeric
    tpot_host_ns: Numeric  # host work that steps and sequences add
    tpot_interference_ns: Numeric  # prompts of others computed between two tokens
    ttft_ns: Numeric  # mean time to the first token
    ttft_prompt_ns: Numeric  # the own prompt and what shares its passes
    ttft_queue_ns: Numeric  # prompts of others, and a pool that is the bottleneck
    ttft_step_ns: Numeric  # decode steps under way
    ttft_slot_ns: Numeric  # waiting for room in the cache
    ttft_transfer_ns: Numeric  # cache hand-over between pools
    ttft_start_ns: Numeric  # request handling
    occupancy_frac: Numeric  # share of its time that a user receives tokens
    running_count: Numeric  # sequences in a decode step of one attention replica
    slots_count: Numeric  # sequences whose cache fits one replica
    output_tokens_per_s: Numeric  # per accelerator of the whole system
    prefill_busy_frac: Numeric  # share of the accelerators' working time that prompts take
    accelerators_count: Numeric  # of the whole system
    weights_bytes: Numeric  # on one rank of the decode pool
    cache_bytes: Numeric  # of the running sequences on one rank of the decode pool
    memory_excess_frac: Numeric  # what the fullest rank lacks for weights and one sequence, over its memory; 0: fits
    cache_excess_frac: Numeric  # users of a replica beyond the sequences whose cache fits, over those; 0: nobody queues
    ttft_excess_frac: Numeric  # beyond the service level, over the service level; 0: met
    tpot_excess_frac: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def serving_point(
    transformer: Transformer,
    job: ServingJob,
    layout: ServingLayout,
    kernels: ServingKernels,
    fabric: Fabric,
    software: ServingSoftware,
    queue: QueueConstants,
) -> ServingPoint:
    """Serve a closed loop of users, each sending its next request when its answer is complete.

    The step of a decode batch depends on how many users run, and that on the step: the balance is solved on a chord
    through steps computed at two occupancies (three where prompts have a pool of their own) and the step is computed
    again there. A layout that does not fit gets finite times and a graded excess.

    Args:
        transformer: The model.
        job: Lengths, number formats, service levels.
        layout: Pools and users.
        kernels: Kernel engines and accelerator.
        fabric: The network.
        software: The serving engine.
        queue: Constants of the first-token laws.

    Returns:
        The point.

    Source:
        definition: decode steps, prompts and waiting composed.
    """
    fabric = in_step(fabric, software)
    if not np.any(layout.disaggregated_flag):
        return _aggregated_point(transformer, job, layout, kernels, fabric, software, queue)
    pooled = _disaggregated_point(transformer, job, layout, kernels, fabric, software, queue)
    if np.all(layout.disaggregated_flag):
        return pooled
    shared = _aggregated_point(transformer, job, layout, kernels, fabric, software, queue)
    chosen = layout.disaggregated_flag > 0.0
    return ServingPoint(
        *(np.where(chosen, getattr(pooled, f.name), getattr(shared, f.name)) for f in fields(ServingPoint))
    )


def in_step(fabric: Fabric, software: ServingSoftware) -> Fabric:
    """The fabric as a captured step meets it: part of an exchange kernel's floor hides behind its neighbours.

    Args:
        fabric: The network, its exchange kernels as measured alone.
        software: Share of the floor that a step waits for.

    Returns:
        The same network with lower floors.

    Source:
        definition: floor times share.

    >>> in_step.__annotations__["return"].__name__
    'Fabric'
    """
    waited = software.exchange_start_frac
    return replace(
        fabric,
        dispatch=replace(fabric.dispatch, floor_ns=waited * fabric.dispatch.floor_ns),
        combine=replace(fabric.combine, floor_ns=waited * fabric.combine.floor_ns),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """What a decode step needs besides the occupancy."""

    transformer: Transformer
    job: ServingJob
    pool: Pool
    kernels: ServingKernels
    fabric: Fabric
    software: ServingSoftware
    users_count: Numeric  # of one attention replica

    def running(self, occupancy: Numeric) -> Numeric:
        return running_sequences_count(self.users_count, occupancy)

    def tokens(self, running: Numeric) -> Numeric:
        """Tokens of the slowest replica in one pipeline slot."""
        slowest = np.where(self.pool.dp_count > 1.0, self.software.straggler_ratio, 1.0)
        return np.maximum(running * slowest / self.pool.pp_count, 1.0)

    def parts(self, occupancy: Numeric) -> ForwardPass:
        tokens = self.tokens(self.running(occupancy))
        return decode_pass(tokens, self.transformer, self.job, self.pool, self.kernels, self.fabric, self.software)

    def host_ns(self, occupancy: Numeric) -> Numeric:
        return self.software.step_host_ns + self.software.sequence_host_ns * self.running(occupancy)

    def step_ns(self, occupancy: Numeric) -> Numeric:
        return (pass_ns(self.parts(occupancy)) + self.host_ns(occupancy)) / self.job.speculation_ratio


def _chord(low: Numeric, low_ns: Numeric, high: Numeric, high_ns: Numeric) -> tuple[Numeric, Numeric]:
    """Start and slope of the step over occupancy, through two computed points; never falling, never from below zero."""
    apart = high - low > 1e-9
    slope = np.where(apart, np.maximum(high_ns - low_ns, 0.0) / np.where(apart, high - low, 1.0), 0.0)
    slope = np.minimum(slope, 0.99 * high_ns / np.maximum(high, 1e-9))  # a step that grows faster than its users
    return high_ns - slope * high, slope


def _grown_ns(steps: _Steps, parts: ForwardPass, occupancy: Numeric) -> Numeric:
    """What of a step grows with its sequences, roughly: enough for a first guess of where the loop settles."""
    others = 1.0 - 1.0 / steps.running(occupancy)
    host = steps.software.sequence_host_ns * steps.running(occupancy)
    work = parts.core_ns + parts.experts_ns + parts.elementwise_ns + parts.expert_parallel_ns + host
    return others * work / steps.job.speculation_ratio


def _prompt_ns(
    prompts_count: Numeric, steps: _Steps, pool: Pool, decode_tokens: Numeric, decode_parts: ForwardPass | None
) -> Numeric:
    """Time of prompts in one replica: alone, riding in decode batches, or the mixture the engine makes."""
    s, software = steps, steps.software
    mixed = 0.0 if decode_parts is None else software.mixed_frac
    time_ns: Numeric = 0.0
    if not np.all(mixed == 1.0):
        alone = prompt_pass(prompts_count, 0.0, s.transformer, s.job, pool, s.kernels, s.fabric, software)
        time_ns = (1.0 - mixed) * (pass_ns(alone) + software.step_host_ns)
    if decode_parts is not None and np.any(mixed):
        joint = prompt_pass(prompts_count, decode_tokens, s.transformer, s.job, pool, s.kernels, s.fabric, software)
        saved = pass_ns(decode_parts) - decode_parts.core_ns
        time_ns = time_ns + mixed * np.maximum(pass_ns(joint) - saved, 0.0)
    return software.prefill_work_ratio * time_ns


def _slots_count(steps: _Steps) -> Numeric:
    """Sequences whose caches fit beside the weights of one rank; at least one, so that every number stays finite."""
    s = steps
    room = s.software.kv_memory_frac * s.kernels.machine.memory_bytes - rank_weights_bytes(s.transformer, s.job, s.pool)
    length = s.job.isl_count + s.software.kv_reserve_frac * s.job.osl_count
    return np.maximum(room / rank_cache_bytes(s.transformer, s.job, s.pool, length), 1.0)


def _aggregated_point(
    transformer: Transformer,
    job: ServingJob,
    layout: ServingLayout,
    kernels: ServingKernels,
    fabric: Fabric,
    software: ServingSoftware,
    queue: QueueConstants,
) -> ServingPoint:
    """The point of engines that compute prompts and answers on the same accelerators, see `serving_point`."""
    pool = layout.decode
    users = layout.users_count / (pool.workers_count * pool.dp_count)
    steps = _Steps(transformer, job, pool, kernels, fabric, software, users)
    others = np.maximum(users - 1.0, 0.0)
    slots = _slots_count(steps)
    full = np.minimum(slots / np.maximum(users, 1.0), 1.0)

    first = steps.parts(full)
    first_ns = (pass_ns(first) + steps.host_ns(full)) / job.speculation_ratio
    prompt = _prompt_ns(1.0, steps, pool, steps.tokens(steps.running(full)), first)
    queue_frac = queue.burst_frac + job.wave_flag * (queue.wave_frac - queue.burst_frac)
    crowd = others * prompt / (job.osl_count * pool.pp_count) * (1.0 - job.wave_flag * queue.wave_frac)
    wait = prompt * (queue.prompt_ratio + queue_frac * others) + queue.start_ns

    guess = occupancy_frac(job.osl_count, first_ns, crowd, wait, queue.step_ratio, full)
    start_ns, slope_ns = _chord(guess, steps.step_ns(guess), full, first_ns)
    share = occupancy_frac(job.osl_count, start_ns, slope_ns + crowd, wait, queue.step_ratio, full)

    parts, host = steps.parts(share), steps.host_ns(share)
    interference = crowd * share
    tpot = (pass_ns(parts) + host) / job.speculation_ratio + interference
    slot_wait = (1.0 - full) / full * (job.osl_count * tpot + wait)
    own_ns = first_token_ns(prompt, others, tpot, queue.prompt_ratio, queue_frac, queue.step_ratio, queue.start_ns)
    ttft = own_ns + slot_wait
    return _point(
        steps, layout, parts, host, interference, tpot, ttft, share, slots,
        prefill_busy=interference / tpot,
        waits=(
            prompt * queue.prompt_ratio, prompt * queue_frac * others, queue.step_ratio * tpot, slot_wait, 0.0,
            queue.start_ns,
        ),
        lacking=_lacking_frac(steps, pool),
    )  # fmt: skip


def _disaggregated_point(
    transformer: Transformer,
    job: ServingJob,
    layout: ServingLayout,
    kernels: ServingKernels,
    fabric: Fabric,
    software: ServingSoftware,
    queue: QueueConstants,
) -> ServingPoint:
    """The point of a pool for prompts and a pool for answers with the cache handed over, see `serving_point`.

    A decode step has no prompts in it. Where prompts come too slowly, the decode pool runs partly empty.
    """
    pool, entry = layout.decode, layout.prefill
    users = layout.users_count / (pool.workers_count * pool.dp_count)
    steps = _Steps(transformer, job, pool, kernels, fabric, software, users)
    slots = _slots_count(steps)
    full = np.minimum(slots / np.maximum(users, 1.0), 1.0)

    batch = np.maximum(np.floor(software.chunk_count / job.isl_count), 1.0)
    lone_ns = _prompt_ns(1.0, steps, entry, 0.0, None)
    replicas = entry.dp_count * entry.workers_count * entry.pp_count
    each_ns = _prompt_ns(batch, steps, entry, 0.0, None) / (batch * replicas)
    supply = layout.users_count * each_ns / queue.pool_efficiency_frac
    transfer = _transfer_ns(transformer, job, layout, fabric, queue)
    wait = queue.prompt_ratio * lone_ns + queue.pool_burst_frac * supply + transfer + queue.transfer_start_ns

    def settled(start: Numeric, slope: Numeric) -> Numeric:
        served = occupancy_frac(job.osl_count, start, slope, wait, 0.0, full)
        return np.minimum(np.minimum(served, starved_occupancy_frac(job.osl_count, start, slope, supply)), full)

    most = steps.parts(full)
    full_ns = (pass_ns(most) + steps.host_ns(full)) / job.speculation_ratio
    guess = settled(*_chord(0.0, full_ns - _grown_ns(steps, most, full), full, full_ns))
    share = settled(*_chord(guess, steps.step_ns(guess), full, full_ns))

    parts, host = steps.parts(share), steps.host_ns(share)
    tpot = (pass_ns(parts) + host) / job.speculation_ratio
    busy = np.minimum(supply / (job.osl_count * tpot + wait), BUSIEST_FRAC)
    burst = queue.pool_burst_frac * supply
    fixed = transfer + queue.transfer_start_ns
    free_ns = pooled_first_token_ns(
        lone_ns, busy, supply, transfer, queue.prompt_ratio, queue.pool_burst_frac, queue.transfer_start_ns
    )
    bound_ns = supply - job.osl_count * tpot + burst + fixed
    own_ns = np.maximum(free_ns, bound_ns)
    slot_wait = (1.0 - full) / full * (job.osl_count * tpot + wait)
    prompt_part = queue.prompt_ratio * lone_ns
    return _point(
        steps, layout, parts, host, 0.0 * tpot, tpot, own_ns + slot_wait, share, slots,
        prefill_busy=_share(_pool_accelerators_count(entry), _pool_accelerators_count(pool)),
        waits=(prompt_part, own_ns - prompt_part - fixed, 0.0, slot_wait, transfer, queue.transfer_start_ns),
        lacking=np.maximum(_lacking_frac(steps, pool), _lacking_frac(steps, entry)),
    )  # fmt: skip


def _transfer_ns(
    transformer: Transformer, job: ServingJob, layout: ServingLayout, fabric: Fabric, queue: QueueConstants
) -> Numeric:
    """The cache of one prompt from the ranks that computed it; one domain's links where both pools share it."""
    cache = rank_cache_bytes(transformer, job, layout.prefill, job.isl_count) * layout.prefill.pp_count
    both = _pool_accelerators_count(layout.prefill) + _pool_accelerators_count(layout.decode)
    rate = np.where(both <= fabric.scale_up.domain_count, fabric.scale_up.rate_gbps, fabric.scale_out.rate_gbps)
    return 8.0 * cache / (rate * queue.transfer_rate_frac)


def _pool_accelerators_count(pool: Pool) -> Numeric:
    return pool.workers_count * pool.tp_count * pool.dp_count * pool.pp_count


def _share(part: Numeric, rest: Numeric) -> Numeric:
    return part / (part + rest)


def _lacking_frac(steps: _Steps, pool: Pool) -> Numeric:
    """What a rank lacks for its weights and one sequence, over its memory."""
    one = rank_cache_bytes(steps.transformer, steps.job, pool, steps.job.isl_count + steps.job.osl_count)
    needed = rank_weights_bytes(steps.transformer, steps.job, pool) + one
    memory = steps.kernels.machine.memory_bytes
    return np.maximum(needed / memory - steps.software.kv_memory_frac, 0.0)


def _point(
    steps: _Steps,
    layout: ServingLayout,
    parts: ForwardPass,
    host: Numeric,
    interference: Numeric,
    tpot: Numeric,
    ttft: Numeric,
    share: Numeric,
    slots: Numeric,
    prefill_busy: Numeric,
    waits: tuple[Numeric, Numeric, Numeric, Numeric, Numeric, Numeric],
    lacking: Numeric,
) -> ServingPoint:
    job, ratio = steps.job, steps.job.speculation_ratio
    prompt, queued, stepped, slot_wait, transfer, start = waits
    accelerators = _pool_accelerators_count(layout.decode) + layout.disaggregated_flag * _pool_accelerators_count(
        layout.prefill
    )
    cycle_ns = job.osl_count * tpot + ttft
    running = steps.running(share)
    length = job.isl_count + 0.5 * job.osl_count
    return ServingPoint(
        tpot_ns=tpot,
        tpot_projection_ns=parts.projection_ns / ratio,
        tpot_core_ns=parts.core_ns / ratio,
        tpot_dense_ns=parts.dense_ns / ratio,
        tpot_experts_ns=parts.experts_ns / ratio,
        tpot_elementwise_ns=parts.elementwise_ns / ratio,
        tpot_tensor_parallel_ns=parts.tensor_parallel_ns / ratio,
        tpot_expert_parallel_ns=parts.expert_parallel_ns / ratio,
        tpot_pipeline_ns=parts.pipeline_ns / ratio,
        tpot_head_ns=parts.head_ns / ratio,
        tpot_gap_ns=parts.gap_ns / ratio,
        tpot_host_ns=host / ratio,
        tpot_interference_ns=interference,
        ttft_ns=ttft,
        ttft_prompt_ns=prompt,
        ttft_queue_ns=queued,
        ttft_step_ns=stepped,
        ttft_slot_ns=slot_wait,
        ttft_transfer_ns=transfer,
        ttft_start_ns=start,
        occupancy_frac=share,
        running_count=running,
        slots_count=slots,
        output_tokens_per_s=1e9 * layout.users_count * job.osl_count / (cycle_ns * accelerators),
        prefill_busy_frac=prefill_busy,
        accelerators_count=accelerators,
        weights_bytes=rank_weights_bytes(steps.transformer, job, steps.pool),
        cache_bytes=running * rank_cache_bytes(steps.transformer, job, steps.pool, length),
        memory_excess_frac=lacking,
        cache_excess_frac=np.maximum(steps.users_count / slots - 1.0, 0.0),
        ttft_excess_frac=np.maximum(ttft / job.ttft_limit_ns - 1.0, 0.0),
        tpot_excess_frac=np.maximum(tpot / job.tpot_limit_ns - 1.0, 0.0),
    )
