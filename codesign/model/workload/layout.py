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
