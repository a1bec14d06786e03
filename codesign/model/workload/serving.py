"""One serving system at one load: time per token, time to the first token, throughput, memory.

`serving_point` is the whole calculation. Everything broadcasts: measured rows are `(n,)`, a search is candidates
`(n, 1)` against layouts `(1, m)`; a model is usually plain floats there.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from codesign.columns import freeze
from codesign.model.fabric.collectives import Fabric
from codesign.model.workload.forward_pass import ForwardPass
from codesign.model.workload.queueing_ttft import (
    first_token_ns,
    occupancy_frac,
    pooled_first_token_ns,
    starved_occupancy_frac,
)
from codesign.model.workload.serving_inputs import (
    QueueConstants,
    ServingJob,
    ServingKernels,
    ServingLayout,
    ServingSoftware,
)
from codesign.model.workload.serving_memory import rank_cache_bytes, rank_weights_bytes
from codesign.model.workload.serving_pools import (
    AnswerPool,
    Engine,
    PromptPool,
    answer_pool,
    cache_excess_frac,
    pool_accelerators_count,
    prompt_pool,
    prompt_supply,
    replica_users_count,
    system_accelerators_count,
)
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
    engine = Engine(transformer, job, layout.decode, kernels, fabric, software, replica_users_count(layout))
    if not np.any(layout.disaggregated_flag):
        return shared_point(engine, layout, queue)
    prompts, answers = prompt_pool(replace(engine, pool=layout.prefill)), answer_pool(engine)
    pooled = pooled_point(engine, layout, queue, prompts, answers)
    if np.all(layout.disaggregated_flag):
        return pooled
    shared = shared_point(engine, layout, queue)
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


def _chord(low: Numeric, low_ns: Numeric, high: Numeric, high_ns: Numeric) -> tuple[Numeric, Numeric]:
    """Start and slope of the step over occupancy, through two computed points; never falling, never from below zero."""
    apart = high - low > 1e-9
    slope = np.where(apart, np.maximum(high_ns - low_ns, 0.0) / np.where(apart, high - low, 1.0), 0.0)
    slope = np.minimum(slope, 0.99 * high_ns / np.maximum(high, 1e-9))  # a step that grows faster than its users
    return high_ns - slope * high, slope


def shared_point(engine: Engine, layout: ServingLayout, queue: QueueConstants) -> ServingPoint:
    """The point of engines that compute prompts and answers on the same accelerators, see `serving_point`.

    Args:
        engine: The engines and the users of a replica.
        layout: Engines and users of the system.
        queue: Constants of the first-token laws.

    Returns:
        The point.

    Source:
        definition: decode steps, prompts and waiting composed.
    """
    job, pool = engine.job, engine.pool
    others = np.maximum(engine.users_count - 1.0, 0.0)
    slots = engine.slots_count()
    full = engine.full_frac(slots)

    first = engine.parts(full)
    first_ns = engine.step_ns(full, first)
    prompt = engine.prompt_ns(1.0, engine.tokens(engine.running(full)), first)
    queue_frac = queue.burst_frac + job.wave_flag * (queue.wave_frac - queue.burst_frac)
    crowd = others * prompt / (job.osl_count * pool.pp_count) * (1.0 - job.wave_flag * queue.wave_frac)
    wait = prompt * (queue.prompt_ratio + queue_frac * others) + queue.start_ns

    guess = occupancy_frac(job.osl_count, first_ns, crowd, wait, queue.step_ratio, full)
    start_ns, slope_ns = _chord(guess, engine.step_ns(guess), full, first_ns)
    share = occupancy_frac(job.osl_count, start_ns, slope_ns + crowd, wait, queue.step_ratio, full)

    parts = engine.parts(share)
    interference = crowd * share
    tpot = engine.step_ns(share, parts) + interference
    slot_wait = (1.0 - full) / full * (job.osl_count * tpot + wait)
    own_ns = first_token_ns(prompt, others, tpot, queue.prompt_ratio, queue_frac, queue.step_ratio, queue.start_ns)
    return _point(
        engine, layout, parts, interference, tpot, own_ns + slot_wait, share, slots,
        prefill_busy=interference / tpot,
        waits=(
            prompt * queue.prompt_ratio, prompt * queue_frac * others, queue.step_ratio * tpot, slot_wait, 0.0,
            queue.start_ns,
        ),
        lacking=engine.memory_excess_frac(),
    )  # fmt: skip


def pooled_point(
    engine: Engine, layout: ServingLayout, queue: QueueConstants, prompts: PromptPool, answers: AnswerPool
) -> ServingPoint:
    """The point of a pool for prompts and a pool for answers with the cache handed over, see `serving_point`.

    A decode step has no prompts in it. Where prompts come too slowly, the decode pool runs partly empty.

    Args:
        engine: The engines that answer and the users of a replica.
        layout: Pools and users of the system.
        queue: Constants of the first-token laws.
        prompts: The pool for prompts by itself.
        answers: The pool for answers by itself.

    Returns:
        The point.

    Source:
        definition: decode steps, prompts and waiting composed.
    """
    job, supply = engine.job, prompt_supply(layout, engine.fabric, queue, prompts)
    wait, full, full_ns = supply.wait_ns, answers.full_frac, answers.full_ns

    def settled(start: Numeric, slope: Numeric) -> Numeric:
        served = occupancy_frac(job.osl_count, start, slope, wait, 0.0, full)
        starved = starved_occupancy_frac(job.osl_count, start, slope, supply.supply_ns)
        return np.minimum(np.minimum(served, starved), full)

    guess = settled(*_chord(0.0, full_ns - answers.grown_ns, full, full_ns))
    share = settled(*_chord(guess, engine.step_ns(guess), full, full_ns))

    parts = engine.parts(share)
    tpot = engine.step_ns(share, parts)
    busy = np.minimum(supply.supply_ns / (job.osl_count * tpot + wait), BUSIEST_FRAC)
    free_ns = pooled_first_token_ns(
        prompts.lone_ns, busy, supply.supply_ns, supply.transfer_ns,
        queue.prompt_ratio, queue.pool_burst_frac, queue.transfer_start_ns,
    )  # fmt: skip
    bound_ns = supply.supply_ns - job.osl_count * tpot + supply.burst_ns + supply.fixed_ns
    own_ns = np.maximum(free_ns, bound_ns)
    slot_wait = (1.0 - full) / full * (job.osl_count * tpot + wait)
    queued = own_ns - supply.prompt_ns - supply.fixed_ns
    return _point(
        engine, layout, parts, 0.0 * tpot, tpot, own_ns + slot_wait, share, answers.slots_count,
        prefill_busy=_share(pool_accelerators_count(layout.prefill), pool_accelerators_count(layout.decode)),
        waits=(supply.prompt_ns, queued, 0.0, slot_wait, supply.transfer_ns, queue.transfer_start_ns),
        lacking=np.maximum(answers.memory_excess_frac, prompts.memory_excess_frac),
    )  # fmt: skip


def _share(part: Numeric, rest: Numeric) -> Numeric:
    return part / (part + rest)


def _point(
    engine: Engine,
    layout: ServingLayout,
    parts: ForwardPass,
    interference: Numeric,
    tpot: Numeric,
    ttft: Numeric,
    share: Numeric,
    slots: Numeric,
    prefill_busy: Numeric,
    waits: tuple[Numeric, Numeric, Numeric, Numeric, Numeric, Numeric],
    lacking: Numeric,
) -> ServingPoint:
    job, ratio = engine.job, engine.job.speculation_ratio
    prompt, queued, stepped, slot_wait, transfer, start = waits
    accelerators = system_accelerators_count(layout)
    cycle_ns = job.osl_count * tpot + ttft
    running = engine.running(share)
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
        tpot_host_ns=engine.host_ns(share) / ratio,
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
        weights_bytes=rank_weights_bytes(engine.transformer, job, engine.pool),
        cache_bytes=running * rank_cache_bytes(engine.transformer, job, engine.pool, length),
        memory_excess_frac=lacking,
        cache_excess_frac=cache_excess_frac(engine.users_count, slots),
        ttft_excess_frac=np.maximum(ttft / job.ttft_limit_ns - 1.0, 0.0),
        tpot_excess_frac=np.maximum(tpot / job.tpot_limit_ns - 1.0, 0.0),
    )
