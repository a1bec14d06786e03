"""What a training step reads beside the transformer, the layout, the engines and the fabric."""

from dataclasses import dataclass

from codesign.columns import freeze
from codesign.model.kernels.attention import AttentionEngine
from codesign.model.kernels.gemm import GemmEngine
from codesign.model.kernels.mla import MlaEngine
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class TrainingJob:
    """What is trained: batch, number formats, and which part of the weights learns."""

    sequence_count: Numeric  # tokens in one sequence
    global_batch_count: Numeric  # sequences in one step
    operand_bytes: Numeric  # bytes of one value in the matrix products
    weight_bytes: Numeric  # bytes of one stored weight
    gradient_bytes: Numeric  # bytes of one stored gradient
    optimizer_bytes: Numeric  # bytes of optimizer state and master weight of one weight
    gradient_wire_bytes: Numeric  # bytes of one gradient as it is reduced
    weight_wire_bytes: Numeric  # bytes of one weight as it is gathered
    trainable_frac: Numeric  # share of the weights that learn; 1 but for adapters
    imbalance_ratio: Numeric  # expert load of the busiest rank over the mean
    mtp_layers_count: Numeric  # multi-token prediction layers in the run

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Software:
    """What the software of a release can do; every field is a fact about the framework."""

    unfused_attention_flag: Numeric  # 1: the score matrix goes through memory
    window_unfused_flag: Numeric  # 1: the same in stacks with windowed layers and attention sinks
    attention_frac: Numeric  # speed of its attention kernel over the best kernel measured on the part
    dropout_flag: Numeric  # 1: dropout masks are kept
    sequence_parallel_flag: Numeric  # 1: norms and residuals are split over the tensor ranks
    compiled_flag: Numeric  # 1: element-wise chains are fused by a whole-program compiler
    graph_frac: Numeric  # share of the launches that a captured graph saves
    router_graph_frac: Numeric  # the same of routing, dispatch and combine
    expert_graph_frac: Numeric  # the same of the loop over local experts, in stacks without recurrent layers
    launch_ratio: Numeric  # launches over those of sixteen-bit training (quantisation kernels)
    tp_overlap_flag: Numeric  # 1: tensor collectives run under the products beside them
    pp_overlap_flag: Numeric  # 1: transfers between interleaved stages run under the passes
    dp_overlap_flag: Numeric  # 1: gradient and weight collectives run under the passes
    expert_overlap_flag: Numeric  # 1: dispatch and combine run under other products, in stacks without recurrent layers
    expert_fused_frac: Numeric  # share of the permutation and activation passes of experts fused into other kernels
    hybrid_fused_frac: Numeric  # the same in stacks with recurrent layers
    expert_loop_flag: Numeric  # 1: local experts are launched one by one; 0: as one grouped call

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingEngines:
    """Engines of one accelerator: products in the job's format, the head in sixteen bits, attention cores."""

    gemm: GemmEngine
    head: GemmEngine
    attention: AttentionEngine
    latent: MlaEngine


@dataclass(frozen=True, slots=True, eq=False)
class TrainingConstants:
    """Fitted factors of a training step; meaning, prior and bounds of each stand in calibration/training.yaml."""

    gemm_ratio: Numeric  # products in a real step over the same products alone
    quantise_ratio: Numeric  # quantisation passes in a step over those of one product
    attention_ratio: Numeric  # attention core in a step over the kernel alone
    attention_backward_frac: Numeric  # efficiency backward over forward
    score_ratio: Numeric  # traffic of an unfused score matrix over counting every pass
    elementwise_ratio: Numeric  # element-wise traffic over counting each tensor once
    compiled_ratio: Numeric  # the same, extra under a whole-program compiler
    kernel_ns: Numeric  # gap between two dependent kernels on the accelerator: drain, start, fill
    permute_ratio: Numeric  # traffic of the token permutation over counting each copy once
    state_ratio: Numeric  # traffic of a recurrent layer over its projections
    expert_launches_count: Numeric  # launches per local expert and pass
    overlap_cost_frac: Numeric  # share of a hidden collective that still costs
    data_cost_frac: Numeric  # the same of collectives over the data ranks
    step_ns: Numeric  # data, loss, clipping, logging: once a step
    host_sharpness_count: Numeric  # exponent that joins host and accelerator time

    def __post_init__(self) -> None:
        freeze(self)
