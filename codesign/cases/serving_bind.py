"""From measured rows to the structs of the serving model: number formats, engines, fabric, software."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from codesign.cases.rows import CaseRows
from codesign.cases.serving_rows import PoolRows, ServingRows
from codesign.catalog import Catalog
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
from codesign.model.workload.machine import Machine
from codesign.model.workload.serving_inputs import (
    Pool,
    QueueConstants,
    ServingJob,
    ServingKernels,
    ServingLayout,
    ServingSoftware,
)
from codesign.model.workload.transformer import Transformer
from codesign.transformers import transformer_from_rows
from codesign.units import Array, bytes_from_gb

S = TypeVar("S")
UNLIMITED_NS = 1e15
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


@dataclass(frozen=True)
class ServingBatch:
    """Everything `serving_point` reads, as columns of the same rows."""

    transformer: Transformer
    job: ServingJob
    layout: ServingLayout
    kernels: ServingKernels
    fabric: Fabric
    software: ServingSoftware
    queue: QueueConstants

    def pick(self, rows: Array) -> "ServingBatch":
        """Some of the rows."""
        return ServingBatch(*(pick(getattr(self, f.name), rows) for f in fields(self)))


def pick(struct: S, rows: Array) -> S:
    """Rows of a struct of columns, nested structs among them; scalars stay."""
    assert is_dataclass(struct)
    values = {f.name: getattr(struct, f.name) for f in fields(struct) if f.init}
    chosen: dict[str, Any] = {
        name: pick(value, rows) if is_dataclass(value) else value[rows] if np.ndim(value) else value
        for name, value in values.items()
    }
    return type(struct)(**chosen)


def formats_of(
    catalog: Catalog, model: str, accelerator: str, engine: str, precision: str, products: str, experts_count: float
) -> Formats:
    """Number formats by role, from the precision words of a row.

    8-bit checkpoints of expert models are scaled by block; 4-bit ones keep attention in 16 bits; without a 4-bit matrix
    unit 4-bit weights are widened before 16-bit products. The cache is 8 bit where weights are 8 or 4 bit and either
    the engine's recipes or a part with 4-bit matrix units bring the scales.
    """
    narrow = _narrow(catalog, accelerator)
    low = precision.lower()
    reduced = any(word in low for word in ("fp8", "fp4", "int4", "int8"))
    floating = any(word in low for word in ("fp8", "fp4"))
    native = model in catalog.facts.get("checkpoints", {})
    if "fp4" in low:
        expert = ("w4a8" if narrow else "mxfp4") if native else ("nvfp4" if narrow else "int4")
        rest = "bf16" if experts_count > 0 else expert
    elif "fp8" in low:
        expert = "fp8_block" if experts_count > 0 or "block" in products else "fp8"
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


def serving_kernels(
    catalog: Catalog, accelerators: Sequence[str], formats: Sequence[Formats], engines: Sequence[str]
) -> ServingKernels:
    """Kernel engines of rows."""
    latent_kernels = [
        "default" if engine == "trtllm" else "trtllm_mla" if _narrow(catalog, part) else "flash_attention"
        for part, engine in zip(accelerators, engines, strict=True)
    ]
    words = {role: [getattr(each, role) for each in formats] for role in ("projection", "dense", "expert", "core", "cache")}
    rates = np.array([memory_rate_gbps(catalog, name) for name in accelerators])
    capacity = [catalog.value("accelerators", name, "memory_capacity_gb") for name in accelerators]
    return ServingKernels(
        projection=gemm_engine(catalog, accelerators, words["projection"]),
        dense=gemm_engine(catalog, accelerators, words["dense"]),
        expert=moe_engine(catalog, accelerators, words["expert"]),
        head=gemm_engine(catalog, accelerators, ["bf16"] * len(accelerators)),
        attention=attention_engine(catalog, accelerators, words["core"], words["cache"]),
        latent_attention=mla_engine(catalog, accelerators, words["core"], words["cache"], latent_kernels),
        machine=Machine(
            accelerators_count=1.0,
            memory_bytes=np.array([bytes_from_gb(size) for size in capacity]),
            memory_rate_gbps=rates,
            memory_frac=STREAM_FRAC,
            reserved_bytes=0.0,
            second_tier_bytes=0.0,
            second_tier_rate_gbps=1.0,
            launch_ns=0.0,
            clock_frac=1.0,
        ),
    )


def serving_fabric(catalog: Catalog, accelerators: Sequence[str], engines: Sequence[str]) -> Fabric:
    """Collectives as the engines run them: their own low-latency kernels, or the library where they have none."""
    own = [engine if engine in LIBRARIES else "nccl" for engine in engines]
    exchange = ["deepep_ll" if engine != "trtllm" else "nvlinktwosided" for engine in engines]
    return fabric_of(catalog, accelerators, library=own, exchange=exchange)


def serving_layout(repaired: ServingRows) -> ServingLayout:
    """Layout columns of repaired rows."""
    return ServingLayout(_pool(repaired.prefill), _pool(repaired.decode), repaired.disaggregated, repaired.users)


def _pool(rows: PoolRows) -> Pool:
    return Pool(rows.workers, rows.tp, rows.dp, rows.pp, rows.ep)


def bind_rows(
    catalog: Catalog,
    rows: CaseRows,
    repaired: ServingRows,
    transformer: Transformer,
    engines: Sequence[str],
    speculation_ratio: Array,
) -> ServingBatch:
    """All structs of rows of known parts, models and engines."""
    accelerators = rows.text("accelerator")
    words = zip(
        rows.text("model"), accelerators, engines, rows.text("precision"), rows.text("gemm_quant_mode"),
        np.broadcast_to(transformer.experts_count, (len(rows),)), strict=True,
    )  # fmt: skip
    formats = [formats_of(catalog, *row) for row in words]
    return ServingBatch(
        transformer=transformer,
        job=serving_job(repaired.isl, repaired.osl, repaired.wave, formats, speculation_ratio),
        layout=serving_layout(repaired),
        kernels=serving_kernels(catalog, accelerators, formats, engines),
        fabric=serving_fabric(catalog, accelerators, engines),
        software=serving_software(catalog, engines),
        queue=queue_constants(catalog, engines),
    )


def bind_tables(catalog: Catalog, rows: CaseRows, engines: Sequence[str]) -> ServingBatch:
    """All structs of rows of the inference tables: fixed lengths, one engine, the formats the row prints."""
    accelerators, one = rows.text("accelerator"), np.ones(len(rows))
    transformer = transformer_from_rows(rows)[0]
    words = zip(
        rows.text("model"), accelerators, engines, rows.text("weight_prec"),
        np.broadcast_to(transformer.experts_count, (len(rows),)), strict=True,
    )  # fmt: skip
    formats = [
        replace(
            formats_of(catalog, model, part, engine, precision, "", experts),
            cache="fp8" if width == 1.0 else "bf16",
            kv_bytes=width,
        )
        for (model, part, engine, precision, experts), width in zip(words, _cache_bytes(rows), strict=True)
    ]
    tp, pp, dp, ep = (_filled(rows.numbers(name)) for name in ("tp", "pp", "dp_attn", "moe_ep"))
    # a tp printed beside attention replicas is that of one replica's attention
    pool = Pool(one, tp, dp, pp, np.where(dp > 1.0, tp * dp, np.minimum(ep, tp)))
    return ServingBatch(
        transformer=transformer,
        job=serving_job(rows.numbers("isl"), rows.numbers("osl"), one, formats, one),
        layout=ServingLayout(pool, pool, 0.0 * one, one),
        kernels=serving_kernels(catalog, accelerators, formats, engines),
        fabric=serving_fabric(catalog, accelerators, engines),
        software=serving_software(catalog, engines),
        queue=queue_constants(catalog, engines),
    )


def _filled(column: Array) -> Array:
    return np.where(column > 0.0, column, 1.0)


def _cache_bytes(rows: CaseRows) -> list[float]:
    """Bytes of a cached value as printed; as the weights where nothing is printed."""
    printed = zip(rows.text("kv_prec"), rows.text("weight_prec"), strict=True)
    return [1.0 if "8" in (cache or weights) or "FP4" in (cache or weights) else 2.0 for cache, weights in printed]
