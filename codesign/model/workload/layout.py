"""How a training job is laid out over accelerators, and what follows from the degrees alone."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Degrees of parallelism, micro-batch, what is recomputed, what is sharded, what is offloaded.

    Ranks are numbered tensor, context, data, pipeline, innermost first; the experts are spread over the tensor,
    context and data ranks, tensor first (``expert_tp_flag`` 0) or each cut by tensor parallelism (1).
    """

    tp_count: Numeric
    pp_count: Numeric
    vp_count: Numeric  # virtual stages per rank; 1: no interleaving
    cp_count: Numeric
    ep_count: Numeric
    dp_count: Numeric
    micro_batch_count: Numeric  # sequences in one micro-batch
    expert_tp_flag: Numeric  # 1: experts are cut by tensor parallelism; 0: whole experts per rank
    full_recompute_frac: Numeric  # share of the layers whose forward runs again
    attention_recompute_flag: Numeric  # 1: the attention core alone runs again
    elementwise_recompute_flag: Numeric  # 1: norms and activations alone run again
    shard_count: Numeric  # ranks that share one copy of the weights (fully sharded data parallel); 1: none
    optimizer_sharded_flag: Numeric  # 1: optimizer state and master weights are split over the data ranks
    gradients_sharded_flag: Numeric  # 1: gradients too
    activation_offload_frac: Numeric  # share of the stored activations that live in the second tier
    state_offload_flag: Numeric  # 1: weights, gradients and optimizer live in the second tier

    def __post_init__(self) -> None:
        freeze(self)


def ranks_count(layout: Layout) -> Numeric:
    """Accelerators a layout uses.

    Args:
        layout: The degrees.

    Returns:
        Tensor x context x data x pipeline. [count]

    Source:
        definition: expert parallelism reuses the tensor, context and data ranks.

    >>> float(ranks_count(Layout(8, 4, 1, 1, 1, 2, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0)))
    64.0
    """
    return layout.tp_count * layout.cp_count * layout.dp_count * layout.pp_count


def micro_batches_count(global_batch_count: Numeric, layout: Layout) -> Numeric:
    """Micro-batches every data-parallel rank works through in one step.

    Args:
        global_batch_count: Sequences in one step over all ranks. [count], > 0
        layout: Gives the micro-batch and the data-parallel degree.

    Returns:
        Sequences of one rank over sequences of one micro-batch, at least one. [count]

    Source:
        definition: gradient accumulation.

    >>> float(micro_batches_count(64.0, Layout(8, 4, 1, 1, 1, 2, 4, 0, 0, 0, 0, 1, 1, 0, 0, 0)))
    8.0
    """
    return np.maximum(global_batch_count / (layout.micro_batch_count * layout.dp_count), 1.0)


def stage_layers_count(layers_count: Numeric, layout: Layout) -> Numeric:
    """Layers of the fullest pipeline rank: every virtual stage holds the same number, rounded up.

    Args:
        layers_count: Layers of the stack. [count], > 0
        layout: Gives pipeline and virtual stages.

    Returns:
        Layers on that rank, all its virtual stages together. [count]

    Source:
        definition: uneven stacks leave places empty at the two ends, where embedding and head sit.

    >>> layout = Layout(8, 16, 8, 1, 1, 2, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0)
    >>> float(stage_layers_count(126.0, layout)), float(last_stage_layers_count(126.0, layout))
    (8.0, 7.0)
    """
    return np.ceil(layers_count / (layout.pp_count * layout.vp_count)) * layout.vp_count


def last_stage_layers_count(layers_count: Numeric, layout: Layout) -> Numeric:
    """Layers on the pipeline rank that also computes the head: it takes the larger half of the empty places.

    Args:
        layers_count: Layers of the stack. [count], > 0
        layout: Gives pipeline and virtual stages.

    Returns:
        Layers on the last rank. [count]

    Source:
        definition: 126 layers over 128 places leave one place for the embedding and one for the head.

    >>> layout = Layout(8, 16, 1, 1, 1, 2, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0)
    >>> float(last_stage_layers_count(61.0, layout))
    2.0
    """
    stage_count = stage_layers_count(layers_count, layout)
    empty_count = stage_count * layout.pp_count - layers_count
    single = layout.pp_count <= 1.0
    return np.where(single, layers_count, np.maximum(stage_count - np.ceil(0.5 * empty_count), 0.0))


def crossing_frac(group_count: Numeric, stride_count: Numeric, domain_count: Numeric) -> Numeric:
    """Share of neighbouring pairs of a group that lie in different scale-up domains.

    Args:
        group_count: Members of the group. [count], >= 1
        stride_count: Distance of neighbours in the rank order. [count], >= 1
        domain_count: Accelerators in one domain. [count], >= 1

    Returns:
        0 when the whole group fits in one domain, 1 when each member has its own. [1]

    Source:
        definition: of the pairs `stride` apart, `stride / domain` straddle a border.

    >>> float(crossing_frac(4.0, 2.0, 8.0)), float(crossing_frac(8.0, 2.0, 8.0)), float(crossing_frac(8.0, 16.0, 8.0))
    (0.0, 0.25, 1.0)
    """
    fits = group_count * stride_count <= domain_count
    return np.where(fits, 0.0, np.minimum(stride_count / domain_count, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class LayoutFaults:
    """By how much each rule of a layout is broken: 0 where it holds, else the share that is left over or missing."""

    ranks_ratio: Numeric  # product of the degrees away from the accelerators there are
    heads_ratio: Numeric  # heads left over when tensor ranks share them
    layers_ratio: Numeric  # pipeline ranks beyond the layers
    experts_ratio: Numeric  # experts, or ranks that hold them, left over
    batch_ratio: Numeric  # sequences left over when data ranks and micro-batches share the batch
    interleave_ratio: Numeric  # micro-batches left over when interleaving needs them in multiples of the pipeline

    def __post_init__(self) -> None:
        freeze(self)


def layout_faults(
    layout: Layout,
    accelerators_count: Numeric,
    heads_count: Numeric,
    layers_count: Numeric,
    experts_count: Numeric,
    global_batch_count: Numeric,
) -> LayoutFaults:
    """What does not divide in a layout, graded; `training_layouts` proposes only layouts without a fault.

    Args:
        layout: The degrees.
        accelerators_count: Accelerators of the job. [count], >= 1
        heads_count: Query heads of the model. [count], >= 1
        layers_count: Layers of the stack. [count], >= 1
        experts_count: Experts of a layer; 0 where it has none. [count], >= 0
        global_batch_count: Sequences of one step. [count], > 0

    Returns:
        One share per rule, 0 where it holds.

    Source:
        narayanan-2021: which degrees divide what.

    >>> layout = Layout(8, 4, 1, 1, 1, 2, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0)
    >>> faults = layout_faults(layout, 64.0, 12.0, 2.0, 0.0, 64.0)
    >>> float(faults.ranks_ratio), float(faults.heads_ratio), float(faults.layers_ratio)
    (0.0, 0.5, 1.0)
    """
    spread = layout.tp_count * layout.cp_count * layout.dp_count
    has_experts = np.minimum(experts_count, 1.0)
    share = layout.micro_batch_count * layout.dp_count
    passes = global_batch_count / share
    piped = np.where((layout.vp_count > 1.0) & (layout.pp_count > 1.0), layout.pp_count, 1.0)
    return LayoutFaults(
        ranks_ratio=np.abs(ranks_count(layout) / accelerators_count - 1.0),
        heads_ratio=_left_ratio(heads_count, layout.tp_count),
        layers_ratio=np.maximum(layout.pp_count / layers_count - 1.0, 0.0),
        experts_ratio=np.maximum(
            has_experts * _left_ratio(np.maximum(experts_count, 1.0), layout.ep_count),
            _left_ratio(spread, layout.ep_count),
        ),
        batch_ratio=_left_ratio(global_batch_count, share),
        interleave_ratio=_left_ratio(np.maximum(np.ceil(passes), 1.0), piped),
    )


def _left_ratio(whole_count: Numeric, parts_count: Numeric) -> Numeric:
    """What is left over when parts share a whole, over one part's share of parts: 0 where it divides."""
    return (whole_count - np.floor(whole_count / parts_count) * parts_count) / parts_count
