"""Two designs of LLMCompass against its GA100 (R8, R9), with its machine descriptions as inputs of our laws.

Peaks come from our chip chain, memory rates from its pins, kernels from the constants of the architecture it models,
and the layout is its own: tensor parallel over four devices for latency, twelve layers on one device for throughput,
batches that fill its memory by its own count. It has neither embedding nor head, and no host between kernels.

Tolerance of a ratio: the source states 4.1 % for whole inference against measurements; two such times in a ratio give
5.8 %. Tolerance of a rate: its 10.9 % for operators, because our kernels are fitted to a newer library than its own.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from codesign.catalog import load_catalog
from codesign.chips import ChipChoice, chip_inputs
from codesign.engines import serving_software
from codesign.fabrics import fabric_of
from codesign.jobs import one_transformer
from codesign.machines import attention_engine, gemm_engine, mla_engine, moe_engine
from codesign.model.chip.chain import chip
from codesign.model.workload.machine import Machine
from codesign.model.workload.offline import OfflinePoint, static_batch
from codesign.model.workload.serving_inputs import Pool, ServingJob, ServingKernels
from codesign.resources import case_data

FIXTURE = json.loads((case_data() / "reproductions" / "llmcompass.json").read_text(encoding="utf-8"))
RATIO_ERROR = 0.041 * 2.0**0.5
RATE_ERROR = 0.109
PART, FORMAT = ["a100-sxm-80gb"], ["bf16"]
WIDTH, BLOCKS, STAGE_BLOCKS = 12288, 96, 12
#: its memory counts eight values a block beside weights and caches
VALUES_PER_TOKEN = STAGE_BLOCKS * 4 + 8


@dataclass(frozen=True)
class Design:
    """One of its configuration files."""

    cores_count: float
    macs_count: float  # of one of four sublanes
    pins_count: float
    pin_rate_gbps: float
    memory_bytes: float

    @property
    def memory_rate_gbps(self) -> float:
        return self.pins_count * self.pin_rate_gbps


GA100 = Design(128.0, 256.0, 5 * 1024.0, 3.2, 80e9)
LATENCY = Design(64.0, 256.0, 5 * 1024.0, 3.2, 80e9)
THROUGHPUT = Design(64.0, 1024.0, 256.0, 32.0, 512e9)


def peak_gflops(design: Design) -> float:
    plain = chip_inputs(
        load_catalog(), ChipChoice(base=["a100"], memory_kind=["hbm2e"], memory_stacks_count=6.0, clock_ghz=1.41)
    )
    inputs = replace(plain, cores_count=design.cores_count, macs_count=design.macs_count, active_frac=1.0)
    return float(np.asarray(chip(inputs).bf16_peak_gflops).reshape(-1)[0])


@cache
def kernels(design: Design) -> ServingKernels:
    catalog = load_catalog()
    peak, rate = peak_gflops(design), design.memory_rate_gbps

    gemm = replace(gemm_engine(catalog, PART, FORMAT), peak_gflops=peak, memory_rate_gbps=rate)
    latent = replace(mla_engine(catalog, PART, FORMAT), peak_gflops=peak, memory_rate_gbps=rate)
    machine = Machine(
        accelerators_count=1.0,
        memory_bytes=design.memory_bytes,
        memory_rate_gbps=rate,
        memory_frac=catalog.constant("training", "stated", "stream_frac"),
        reserved_bytes=0.0,
        second_tier_bytes=0.0,
        second_tier_rate_gbps=1.0,
        launch_ns=0.0,
        clock_frac=1.0,
    )
    return ServingKernels(
        projection=gemm,
        dense=gemm,
        expert=replace(moe_engine(catalog, PART, FORMAT), peak_gflops=peak, memory_rate_gbps=rate),
        head=gemm,
        attention=replace(attention_engine(catalog, PART, FORMAT), peak_gflops=peak, memory_rate_gbps=rate),
        latent_attention=latent,
        machine=machine,
    )


def run(design: Design, prompt: int, answer: int, batch: float, devices: float, blocks: int) -> OfflinePoint:
    catalog = load_catalog()
    whole = one_transformer("GPT-3-175B")
    part = replace(
        whole,
        layers_count=float(blocks),
        attention_layers_count=float(blocks),
        dense_layers_count=float(blocks),
        vocab_count=1.0,
    )
    engine = serving_software(catalog, ["trtllm"])
    software = replace(engine, kernel_gap_ns=0.0, step_host_ns=0.0, sequence_host_ns=0.0, prefill_work_ratio=1.0)
    job = ServingJob(
        isl_count=float(prompt),
        osl_count=float(answer),
        wave_flag=1.0,
        projection_weight_bytes=2.0,
        projection_activation_bytes=2.0,
        dense_weight_bytes=2.0,
        dense_activation_bytes=2.0,
        expert_weight_bytes=2.0,
        expert_activation_bytes=2.0,
        head_weight_bytes=2.0,
        kv_bytes=2.0,
        speculation_ratio=1.0,
        ttft_limit_ns=1e15,
        tpot_limit_ns=1e15,
    )
    pool = Pool(workers_count=1.0, tp_count=devices, dp_count=1.0, pp_count=1.0, ep_count=1.0)
    return static_batch(part, job, pool, kernels(design), fabric_of(catalog, PART), software, batch)


def seconds(point: OfflinePoint) -> float:
    return float(np.asarray(point.total_ns).reshape(-1)[0]) / 1e9


def batch_of(design: Design, tokens: int) -> int:
    weights = 2 * 12 * WIDTH**2 * STAGE_BLOCKS
    return int((design.memory_bytes - weights) // (VALUES_PER_TOKEN * tokens * WIDTH))


@cache
def stage_rate(design: Design, prompt: int, answer: int) -> float:
    """Tokens per second of one device that holds twelve blocks."""
    batch = batch_of(design, prompt + answer)
    return batch * answer / seconds(run(design, prompt, answer, float(batch), 1.0, STAGE_BLOCKS))


@cache
def speed(prompt: int, answer: int) -> float:
    """Speed of the latency design over that of GA100: sixteen requests on four devices."""
    times = [seconds(run(design, prompt, answer, 16.0, 4.0, BLOCKS)) for design in (GA100, LATENCY)]
    return times[0] / times[1]


def cells(name: str) -> Iterator[tuple[int, int, float]]:
    for prompt, row in zip(FIXTURE["input_lengths"], FIXTURE[name], strict=True):
        for answer, value in zip(FIXTURE["output_lengths"], row, strict=True):
            if value is not None:
                yield prompt, answer, value


def _ratio_cells() -> Iterator[object]:
    reason = "predicted 1.40: the design's own rate agrees within 3 %, its GA100 serves 103 short requests 16 % faster"
    for prompt, answer, value in cells("fig12b_throughput_vs_GA100"):
        short = prompt == answer == 256
        marks = pytest.mark.xfail(strict=True, reason=reason) if short else ()
        yield pytest.param(prompt, answer, value, marks=marks, id=f"{prompt}-{answer}")


def test_peaks_of_the_three_designs_follow_from_their_arrays() -> None:
    peaks = [peak_gflops(design) for design in (GA100, LATENCY, THROUGHPUT)]
    # four sublanes of 16 x 16 (32 x 32) multiply-adds at 1.41 GHz on each core
    assert peaks == pytest.approx([369.6e3, 184.8e3, 739.2e3], rel=1e-3)


@pytest.mark.published(source="llmcompass-2024", where="artifact, figure 12b", says="1.23 to 1.62 times GA100")
@pytest.mark.parametrize(("prompt", "answer", "says"), list(_ratio_cells()))
def test_the_throughput_design_beats_ga100_by_what_the_artifact_says(prompt: int, answer: int, says: float) -> None:
    ours = stage_rate(THROUGHPUT, prompt, answer) / stage_rate(GA100, prompt, answer)
    assert ours == pytest.approx(says, rel=RATIO_ERROR)


@pytest.mark.published(source="llmcompass-2024", where="artifact, figure 12b", says="1.417 in the mean")
def test_the_mean_gain_of_the_throughput_design() -> None:
    table = list(cells("fig12b_throughput_vs_GA100"))
    ours = [stage_rate(THROUGHPUT, p, a) / stage_rate(GA100, p, a) for p, a, _ in table]
    assert np.mean(ours) == pytest.approx(np.mean([says for *_, says in table]), rel=0.041)


@pytest.mark.published(source="llmcompass-2024", where="artifact, figure 12a", says="453 to 2,453 tokens/s")
@pytest.mark.parametrize(("prompt", "answer", "says"), list(cells("fig12a_throughput_tokens_per_s")))
def test_the_rate_of_the_throughput_design(prompt: int, answer: int, says: float) -> None:
    assert stage_rate(THROUGHPUT, prompt, answer) == pytest.approx(says, rel=RATE_ERROR)


@pytest.mark.published(
    source="llmcompass-2024", where="artifact, figure 12b", says="rises from 512 to 2,048 in every row"
)
@pytest.mark.parametrize("prompt", FIXTURE["input_lengths"])
def test_longer_answers_favour_memory_over_rate(prompt: int) -> None:
    gains = [stage_rate(THROUGHPUT, prompt, n) / stage_rate(GA100, prompt, n) for n in (512, 2048)]
    assert gains[0] < gains[1]


@pytest.mark.published(source="llmcompass-2024", where="artifact, figure 10", says="0.80 to 0.99 of GA100")
@pytest.mark.parametrize(("prompt", "answer", "says"), list(cells("fig10_latency_design_perf_vs_GA100")))
def test_half_the_cores_keep_the_speed_the_artifact_says(prompt: int, answer: int, says: float) -> None:
    assert speed(prompt, answer) == pytest.approx(says, rel=RATIO_ERROR)


@pytest.mark.published(source="llmcompass-2024", where="artifact, figure 10", says="0.953 in the mean")
def test_the_mean_speed_of_the_latency_design() -> None:
    table = list(cells("fig10_latency_design_perf_vs_GA100"))
    assert np.mean([speed(p, a) for p, a, _ in table]) == pytest.approx(
        np.mean([says for *_, says in table]), rel=0.041
    )


@pytest.mark.published(source="llmcompass-2024", where="figure 8b", says="3.35 to 0.75 ms as memory goes 400 to 3,200")
def test_decoding_of_a_layer_follows_the_memory_rate() -> None:
    slow, fast = (replace(GA100, pin_rate_gbps=rate * 8.0 / GA100.pins_count) for rate in (400.0, 3200.0))
    steps = [float(np.asarray(run(d, 2048, 1024, 8.0, 4.0, BLOCKS).step_ns).reshape(-1)[0]) for d in (slow, fast)]
    # read off a chart, batch and lengths not stated: the ratio must lie well above half of the eight times of the rate
    assert 4.0 < steps[0] / steps[1] < 8.0
