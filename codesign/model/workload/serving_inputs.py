"""What a serving model reads: the job, the layout of its accelerators, the software and the kernels."""

from dataclasses import dataclass

from codesign.columns import freeze
from codesign.model.kernels.attention import AttentionEngine
from codesign.model.kernels.gemm import GemmEngine
from codesign.model.kernels.mla import MlaEngine
from codesign.model.kernels.moe import MoeEngine
from codesign.model.workload.machine import Machine
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class ServingJob:
    """Requests of one kind and the number formats they are served in; lengths are means."""

    isl_count: Numeric  # prompt tokens of a request
    osl_count: Numeric  # generated tokens of a request
    wave_flag: Numeric  # 1: users start together and stay in step (fixed lengths); 0: they are spread out
    projection_weight_bytes: Numeric  # attention projections
    projection_activation_bytes: Numeric
    dense_weight_bytes: Numeric  # dense and shared-expert feed-forward
    dense_activation_bytes: Numeric
    expert_weight_bytes: Numeric
    expert_activation_bytes: Numeric
    head_weight_bytes: Numeric  # embedding and head
    kv_bytes: Numeric  # one cached value
    speculation_ratio: Numeric  # decode steps saved by speculative decoding: tokens per step over step cost; 1: off
    ttft_limit_ns: Numeric  # service level; a very large number where there is none
    tpot_limit_ns: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Equal engines, each ``tp x dp x pp`` accelerators.

    Experts spread over ``ep`` of the ``tp x dp`` ranks of a stage; the rest of those ranks splits each expert's width.
    """

    workers_count: Numeric  # engines
    tp_count: Numeric  # ranks that share one attention
    dp_count: Numeric  # attention replicas in one engine
    pp_count: Numeric  # pipeline stages
    ep_count: Numeric  # groups that hold different experts, 1 to tp x dp

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class ServingLayout:
    """Where prompts and answers are computed. Aggregated: `prefill` is `decode` and `disaggregated_flag` is 0."""

    prefill: Pool
    decode: Pool
    disaggregated_flag: Numeric
    users_count: Numeric  # requests in flight in the whole system (closed loop)

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class ServingKernels:
    """Kernel engines by what they work on, and the accelerator they run on."""

    projection: GemmEngine
    dense: GemmEngine
    expert: MoeEngine
    head: GemmEngine
    attention: AttentionEngine
    latent_attention: MlaEngine
    machine: Machine

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class ServingSoftware:
    """Engine software as numbers: idle gaps, host work, how prompts are scheduled, what memory it keeps."""

    kernel_gap_ns: Numeric  # idle time between two kernels of a step
    step_host_ns: Numeric  # host work of one step that kernels do not hide
    sequence_host_ns: Numeric  # host work of one step and sequence (sampling, detokenising, bookkeeping)
    mixed_frac: Numeric  # share of prompt work that rides in decode batches instead of a pass of its own
    kv_memory_frac: Numeric  # share of the memory that weights and cache may take
    kv_reserve_frac: Numeric  # share of its answer that a running sequence occupies on average
    chunk_count: Numeric  # prompt tokens of one pass
    batch_limit_count: Numeric  # sequences one attention replica accepts
    straggler_ratio: Numeric  # slowest over mean attention replica of a step
    expert_skew_ratio: Numeric  # load of the busiest expert rank over the mean
    exchange_start_frac: Numeric  # share of the expert exchange's start-up that a step waits for
    prefill_work_ratio: Numeric  # prompt work over what its kernels take back to back

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class QueueConstants:
    """How requests wait: the numbers of the first-token laws."""

    prompt_ratio: Numeric  # time to the first token of a lone user, over the time of its prompt
    step_ratio: Numeric  # decode steps a new request waits for
    burst_frac: Numeric  # share of the other users' prompts a request waits for, users spread out
    wave_frac: Numeric  # the same, users in step
    start_ns: Numeric  # request handling before and after the prompt
    transfer_start_ns: Numeric  # disaggregated: request handling and hand-over between pools
    transfer_rate_frac: Numeric  # disaggregated: share of the network rate the cache moves at
    pool_efficiency_frac: Numeric  # disaggregated: share of the time prefill engines work when requests wait
    pool_burst_frac: Numeric  # disaggregated: share of all users' prompts a request waits for

    def __post_init__(self) -> None:
        freeze(self)


#: a chat on 16-bit weights and an engine of eight ranks, for examples
BF16_CHAT = ServingJob(1024.0, 1024.0, 0.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1e15, 1e15)
TP_8 = Pool(1.0, 8.0, 1.0, 1.0, 1.0)
