"""Number formats of a checkpoint by role, and the kernels, job and fabric that follow from them for serving."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from codesign.catalog import Catalog
from codesign.columns import S, number_at, remade
from codesign.engines import queue_constants, serving_software
from codesign.fabrics import LIBRARIES, fabric_of
from codesign.machines import (
    ACTIVATION_BYTES,
    WEIGHT_BYTES,
    attention_engine,
    gemm_engine,
    memory_rate_gbps,
    mla_engine,
    moe_engine,
)
from codesign.model.fabric.tier import Fabric
from codesign.model.kernels.gemm import GemmEngine
from codesign.model.workload.machine import Machine
from codesign.model.workload.serving_inputs import ServingJob, ServingKernels
from codesign.model.workload.serving_search import ServingSystem
from codesign.transformers import transformer_of
from codesign.units import Array

UNLIMITED_NS = 1e15
#: memory is printed in GB and built in powers of two: 80 GB are five stacks of 16 GiB
BINARY_GB_BYTES = 1024.0**3
#: share of the memory rate that element-wise streams sustain, as the attention tables show for long reads
STREAM_FRAC = 0.8


@dataclass(frozen=True)
class Formats:
    """Number formats of one row by role, in the words of the kernel engines."""

    projection: str
    dense: str
    expert: str
    core: str
    cache: str
    kv_bytes: float


def formats_of(
    catalog: Catalog, model: str, accelerator: str, engine: str, precision: str, products: str, experts_count: float
) -> Formats:
    """Number formats by role, from the precision words of a row.

    8-bit checkpoints of expert models, and of those published so, are scaled by block; 4-bit ones keep attention in 16
    bits; without a 4-bit matrix unit 4-bit weights are widened before 16-bit products. The cache is 8 bit where weights
    are 8 or 4 bit and either the engine's recipes or a part with 4-bit matrix units bring the scales.
    """
    narrow = _narrow(catalog, accelerator)
    low = precision.lower()
    reduced = any(word in low for word in ("fp8", "fp4", "int4", "int8"))
    floating = any(word in low for word in ("fp8", "fp4"))
    published = catalog.technologies("checkpoints").get(model, {})
    native, block = "expert_weight_bits" in published, "scale_block_count" in published
    if "fp4" in low:
        expert = ("w4a8" if native else "nvfp4") if narrow else "int4"
        rest = "bf16" if experts_count > 0 else expert
    elif "fp8" in low:
        expert = "fp8_block" if experts_count > 0 or block or "block" in products else "fp8"
        rest = expert
    elif "int4" in low:
        expert, rest = "int4", "bf16" if experts_count > 0 else "int4"
    elif "int8" in low:
        expert = rest = "int8"
    else:
        expert = rest = "bf16"
    short = reduced and floating and (narrow or catalog.value("engines", engine, "fp8_cache_flag") > 0.0)
    return Formats(rest, rest, expert, "bf16", "fp8" if short else "bf16", 1.0 if short else 2.0)


def _narrow(catalog: Catalog, accelerator: str) -> bool:
    """Whether a part has a 4-bit matrix unit."""
    return "fp4_peak_tflops" in catalog.technology("accelerators", accelerator)


def serving_job(
    isl: Array, osl: Array, wave: Array, formats: Sequence[Formats], speculation_ratio: Array
) -> ServingJob:
    """Job columns without service levels."""
    column = _column(formats)
    return ServingJob(
        isl_count=isl,
        osl_count=osl,
        wave_flag=wave,
        projection_weight_bytes=column(lambda f: WEIGHT_BYTES[f.projection]),
        projection_activation_bytes=column(lambda f: ACTIVATION_BYTES[f.projection]),
        dense_weight_bytes=column(lambda f: WEIGHT_BYTES[f.dense]),
        dense_activation_bytes=column(lambda f: ACTIVATION_BYTES[f.dense]),
        expert_weight_bytes=column(lambda f: WEIGHT_BYTES[f.expert]),
        expert_activation_bytes=column(lambda f: ACTIVATION_BYTES[f.expert]),
        head_weight_bytes=2.0,
        kv_bytes=column(lambda f: f.kv_bytes),
        speculation_ratio=speculation_ratio,
        ttft_limit_ns=UNLIMITED_NS,
        tpot_limit_ns=UNLIMITED_NS,
    )


def _column(formats: Sequence[Formats]) -> Callable[[Callable[[Formats], float]], Array]:
    def column(read: Callable[[Formats], float]) -> Array:
        return np.array([read(each) for each in formats], dtype=np.float64)

    return column


def serving_kernels(catalog: Catalog, accelerators: Sequence[str], formats: Sequence[Formats]) -> ServingKernels:
    """Kernel engines of rows.

    Expert and latent kernels are those pooled over libraries: the tables were taken with later releases of the engines
    than the rows, and the choice an engine made between its kernels is not recorded.
    """
    roles = ("projection", "dense", "expert", "core", "cache")
    words = {role: [getattr(each, role) for each in formats] for role in roles}
    rates = np.array([memory_rate_gbps(catalog, name) for name in accelerators])
    capacity = [catalog.value("accelerators", name, "memory_capacity_gb") for name in accelerators]
    return ServingKernels(
        projection=_fused(gemm_engine(catalog, accelerators, words["projection"]), words["projection"]),
        dense=_fused(gemm_engine(catalog, accelerators, words["dense"]), words["dense"]),
        expert=moe_engine(catalog, accelerators, words["expert"]),
        head=gemm_engine(catalog, accelerators, ["bf16"] * len(accelerators)),
        attention=attention_engine(catalog, accelerators, words["core"], words["cache"]),
        latent_attention=mla_engine(catalog, accelerators, words["core"], words["cache"]),
        machine=Machine(
            accelerators_count=1.0,
            memory_bytes=np.array([size * BINARY_GB_BYTES for size in capacity]),
            memory_rate_gbps=rates,
            memory_frac=STREAM_FRAC,
            reserved_bytes=0.0,
            second_tier_bytes=0.0,
            second_tier_rate_gbps=1.0,
            launch_ns=0.0,
            clock_frac=1.0,
        ),
    )


def _fused(engine: GemmEngine, words: Sequence[str]) -> GemmEngine:
    """One scale per tensor is known beforehand, so the kernel before the product quantises for it."""
    left = np.array([0.0 if word == "fp8" else 1.0 for word in words])
    return replace(
        engine, quantise_launch_ns=left * engine.quantise_launch_ns, quantise_bytes=left * engine.quantise_bytes
    )


def serving_fabric(catalog: Catalog, accelerators: Sequence[str], engines: Sequence[str]) -> Fabric:
    """Collectives as the engines run them: their own low-latency kernels, or the library where they have none."""
    own = [engine if engine in LIBRARIES else "nccl" for engine in engines]
    exchange = ["deepep_ll" if engine != "trtllm" else "nvlinktwosided" for engine in engines]
    return fabric_of(catalog, accelerators, library=own, exchange=exchange)


def serving_system(
    catalog: Catalog,
    model: str,
    accelerators: Sequence[str],
    engine: str = "trtllm",
    precision: str = "fp8",
    isl_count: float = 1024.0,
    osl_count: float = 1024.0,
    ttft_limit_ns: float = UNLIMITED_NS,
    tpot_limit_ns: float = UNLIMITED_NS,
) -> ServingSystem:
    """One model and one kind of request on measured parts: plain numbers but for kernels and fabric, `(n,)` columns.

    Raises:
        CatalogError: a model, part or engine is unknown.
    """
    transformer = numbers_of(transformer_of([model]))
    experts = float(np.asarray(transformer.experts_count))
    formats = [formats_of(catalog, model, part, engine, precision, "", experts) for part in accelerators]
    one = np.ones(1)
    job = serving_job(isl_count * one, osl_count * one, 0.0 * one, formats[:1], one)
    return ServingSystem(
        transformer=transformer,
        job=replace(numbers_of(job), ttft_limit_ns=ttft_limit_ns, tpot_limit_ns=tpot_limit_ns),
        kernels=serving_kernels(catalog, accelerators, formats),
        fabric=serving_fabric(catalog, accelerators, [engine] * len(accelerators)),
        software=numbers_of(serving_software(catalog, [engine])),
        queue=numbers_of(queue_constants(catalog, [engine])),
    )


def numbers_of(struct: S) -> S:
    """A struct of columns of one row as a struct of plain numbers."""
    return remade(struct, number_at)
