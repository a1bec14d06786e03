"""Every layout of a training job that divides, as one grid of columns."""

import numpy as np

from codesign.columns import number_at
from codesign.model.workload.layout import Layout
from codesign.model.workload.training_inputs import TrainingJob
from codesign.model.workload.transformer import Transformer
from codesign.units import Array

FULL, WITH_ELEMENTWISE, ATTENTION = 3.0, 2.0, 1.0  # what is recomputed; 0: nothing
VIRTUAL_LIMIT_COUNT = 16.0
MICRO_BATCH_LIMIT_COUNT = 16.0
CONTEXT_TOKENS_COUNT = 4096.0  # fewest tokens of one sequence that are worth a context rank


def training_layouts(
    transformer: Transformer,
    job: TrainingJob,
    accelerators_count: int,
    offload: bool = False,
    tp_limit_count: int = 64,
) -> Layout:
    """Every layout of a job that divides: degrees, interleaving, micro-batch, recompute, sharding, offload.

    Tensor ranks divide the heads; expert ranks divide the experts and the ranks they are spread over; pipeline ranks
    hold at least one layer; interleaving divides the layers of a rank and needs micro-batches in multiples of the
    pipeline; the batch divides over data ranks and micro-batches. Weights are fully sharded only without a pipeline.

    Args:
        transformer: One model, plain numbers.
        job: One job, plain numbers.
        accelerators_count: Accelerators, all of them used. [count], >= 1
        offload: Whether states and activations may live in a second tier.
        tp_limit_count: Most tensor ranks tried. [count], >= 1

    Returns:
        ``(m,)`` columns, in a fixed order; none only when nothing divides.

    Source:
        narayanan-2021: which degrees divide what.
    """
    degrees = _degrees(transformer, job, accelerators_count, tp_limit_count)
    choices = _choices(transformer, job, offload)
    pairs = degrees[:, :, None] + np.zeros((1, 1, choices.shape[1]))
    picks = choices[:, None, :] + np.zeros((1, degrees.shape[1], 1))
    tp, pp, cp, ep, dp = (row.reshape(-1) for row in pairs)
    vp, mbs, recompute, sharded, moved = (row.reshape(-1) for row in picks)
    layers = number_at(transformer.layers_count)
    stage = np.ceil(layers / pp)
    passes = number_at(job.global_batch_count) / (dp * mbs)
    keep = (passes >= 1.0) & (passes == np.floor(passes))
    keep &= np.where(vp > 1.0, (pp > 1.0) & (stage % vp == 0.0) & (passes % pp == 0.0), True)
    keep &= np.where(sharded > 0.0, (pp <= 1.0) & (dp * cp > 1.0), True)
    zeros, ones = np.zeros(int(keep.sum())), np.ones(int(keep.sum()))
    recompute = recompute[keep]
    return Layout(
        tp_count=tp[keep],
        pp_count=pp[keep],
        vp_count=vp[keep],
        cp_count=cp[keep],
        ep_count=ep[keep],
        dp_count=dp[keep],
        micro_batch_count=mbs[keep],
        expert_tp_flag=zeros,
        full_recompute_frac=np.where(recompute == FULL, 1.0, 0.0),
        attention_recompute_flag=np.where((recompute == ATTENTION) | (recompute == WITH_ELEMENTWISE), 1.0, 0.0),
        elementwise_recompute_flag=np.where(recompute == WITH_ELEMENTWISE, 1.0, 0.0),
        shard_count=np.where(sharded[keep] > 0.0, dp[keep] * cp[keep], 1.0),
        optimizer_sharded_flag=ones,
        gradients_sharded_flag=np.where(sharded[keep] > 0.0, 1.0, 0.0),
        activation_offload_frac=moved[keep],
        state_offload_flag=moved[keep],
    )


def _powers(limit: float) -> Array:
    exponents = np.arange(0, int(np.floor(np.log2(max(limit, 1.0)))) + 1, dtype=np.float64)
    return np.asarray(2.0**exponents, dtype=np.float64)


def _divisors(count: int) -> Array:
    numbers = np.arange(1, count + 1)
    return np.asarray(numbers[count % numbers == 0], dtype=np.float64)


def _degrees(t: Transformer, job: TrainingJob, count: int, tp_limit: int) -> Array:
    """Tensor, pipeline, context, expert and data degrees whose product is the number of accelerators."""
    heads, layers, experts = number_at(t.heads_count), number_at(t.layers_count), number_at(t.experts_count)
    tps = _powers(min(tp_limit, count))
    tps = tps[(heads % tps == 0.0) & (count % tps == 0.0)]
    pps = _divisors(count)
    pps = pps[pps <= layers]
    cps = _powers(min(max(number_at(job.sequence_count) / CONTEXT_TOKENS_COUNT, 1.0), count))
    eps = _powers(min(experts, count)) if experts > 0.0 else np.ones(1)
    eps = eps[experts % eps == 0.0]
    tp, pp, cp, ep = (a.reshape(-1) for a in np.meshgrid(tps, pps, cps, eps, indexing="ij"))
    dp = count / (tp * pp * cp)
    spread = tp * cp * dp / ep
    keep = (dp >= 1.0) & (dp == np.floor(dp)) & (spread >= 1.0) & (spread == np.floor(spread))
    return np.stack([tp[keep], pp[keep], cp[keep], ep[keep], dp[keep]])


def _choices(t: Transformer, job: TrainingJob, offload: bool) -> Array:
    """Interleaving, micro-batch, recompute, sharding, offload."""
    layers, batch = number_at(t.layers_count), number_at(job.global_batch_count)
    divisors = _divisors(int(layers))
    small = divisors[divisors <= VIRTUAL_LIMIT_COUNT]
    vps = np.unique(np.concatenate([_powers(min(layers, VIRTUAL_LIMIT_COUNT)), small]))
    sizes = _powers(min(batch, MICRO_BATCH_LIMIT_COUNT))
    moved = np.arange(2.0 if offload else 1.0)
    grids = np.meshgrid(vps, sizes, np.arange(4.0), np.arange(2.0), moved, indexing="ij")
    return np.stack([grid.reshape(-1) for grid in grids])
