"""One workload on a batch of hardware: the best mapping of every candidate, or the pinned one, and what it delivers."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from codesign.catalog import Catalog
from codesign.catalog.platforms import load_platform
from codesign.columns import remade
from codesign.engines import queue_constants, serving_software
from codesign.hardware import Hardware
from codesign.machines import ACTIVATION_BYTES
from codesign.metrics import WorkloadResult
from codesign.model.workload.layout import Layout
from codesign.model.workload.serving import ServingPoint
from codesign.model.workload.serving_inputs import Pool, ServingKernels, ServingLayout, ServingSoftware
from codesign.model.workload.serving_layout import serving_layouts
from codesign.model.workload.serving_search import BestServing, ServingSystem, best_serving
from codesign.model.workload.training_inputs import TrainingEngines, TrainingJob
from codesign.model.workload.training_search import BestTraining, best_training, training_layouts
from codesign.model.workload.transformer import Transformer, attention_flop, matrix_flop_per_token
from codesign.pinned import pinned_layout, pinned_serving
from codesign.serving_formats import formats_of, numbers_of, serving_job
from codesign.software import attention_generation, release_of, software_of, training_constants
from codesign.space import Choices, Serving, Space, Training, Value
from codesign.transformers import transformer_of
from codesign.units import Array, Numeric, ns_from_ms

#: Software of the design year: what a release of that time can do (software.yaml, engines.yaml).
FRAMEWORK, ENGINE = "megatron", "trtllm"


def one_transformer(model: str) -> Transformer:
    """A model as plain numbers.

    Raises:
        CatalogError: it is not in models.yaml.
    """
    return numbers_of(transformer_of([model]))


def columned(value: Any, count: int) -> Array:
    """A number or column as an (n,) column of its own."""
    return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (count,)))


# ------------------------------------------------------------------------------------------------------- training


def training_job(work: Training, transformer: Transformer) -> TrainingJob:
    """Mixed-precision Adam as Megatron-LM has it: weights in two bytes, gradients in four, optimizer in twelve."""
    operand = ACTIVATION_BYTES[work.precision]
    return TrainingJob(
        sequence_count=float(work.sequence_count),
        global_batch_count=float(work.global_batch_count),
        operand_bytes=operand,
        weight_bytes=2.0,
        gradient_bytes=4.0,
        optimizer_bytes=12.0,
        gradient_wire_bytes=4.0,
        weight_wire_bytes=2.0,
        trainable_frac=1.0,
        imbalance_ratio=1.0,
        mtp_layers_count=transformer.mtp_layers_count,
    )


def may_offload(space: Space) -> bool:
    """Whether a design of this space can have a second tier: one answer for every batch, so a batch equals its rows."""
    name = "second_tier_kind"
    if name in space.vary:
        options = space.vary[name]
        return isinstance(options, Choices) and any(word != "none" for word in options.choices)
    return bool(space.fix.get(name, load_platform(space.base).parameters[name].value) != "none")


def has_layout(work: Training) -> bool:
    """Whether any layout divides a training job."""
    transformer = one_transformer(work.model)
    layouts = training_layouts(transformer, training_job(work, transformer), work.accelerators_count)
    return len(np.asarray(layouts.tp_count)) > 0


def training_result(
    name: str,
    work: Training,
    hardware: Hardware,
    pinned: Mapping[str, Value] | None,
    catalog: Catalog,
    offload: bool = False,
) -> WorkloadResult:
    """The best layout of a training job on every candidate."""
    count = len(hardware)
    transformer = one_transformer(work.model)
    job = training_job(work, transformer)
    layouts = (
        pinned_layout(pinned, work)
        if pinned
        else training_layouts(transformer, job, work.accelerators_count, offload=offload)
    )
    software = software_of(
        catalog,
        [release_of(catalog, FRAMEWORK, 2100.0)] * count,
        [attention_generation(catalog, name) for name in hardware.candidates.accelerator],
        [work.precision in ("mxfp8", "nvfp4")] * count,
    )
    best = best_training(
        transformer,
        job,
        layouts,
        TrainingEngines(
            gemm=hardware.gemm(work.precision),
            head=hardware.gemm("bf16"),
            attention=hardware.attention("bf16"),
            latent=hardware.latent_attention("bf16"),
        ),
        hardware.fabric,
        hardware.machine(
            float(work.accelerators_count), catalog.constant("training", "fitted", "launch_ns") * hardware.host_ratio
        ),
        software,
        training_constants(catalog),
        hardware.straggler_ratio(float(work.accelerators_count)),
    )
    return _training_columns(name, work, best, layouts, count)


def _training_columns(name: str, work: Training, best: BestTraining, layouts: Layout, count: int) -> WorkloadResult:
    step_ns = columned(best.step.step_ns, count)
    tokens = float(work.sequence_count) * float(work.global_batch_count)
    memory = best.step.memory
    parts = {f.name: columned(getattr(best.step.parts, f.name), count) for f in fields(best.step.parts)}
    excess = columned(best.step.memory_excess_bytes, count)
    mapping = {f.name: np.asarray(getattr(best.layout, f.name)) for f in fields(Layout)}
    next_mapping = {f.name: np.asarray(getattr(layouts, f.name))[best.next_index_count] for f in fields(Layout)}
    return WorkloadResult(
        name=name,
        kind="training",
        time_name="step_ns",
        time_ns=step_ns,
        parts_ns=parts,
        mapping=mapping,
        runner_up=next_mapping,
        runner_up_ratio=best.next_step_ns / step_ns,
        tokens_per_s=1e9 * tokens / step_ns / work.accelerators_count,
        input_tokens_per_s=np.zeros(count),
        prefill_share_frac=np.zeros(count),
        ttft_ns=np.zeros(count),
        layers_count=float(one_transformer(work.model).layers_count),
        passes_count=np.maximum(work.global_batch_count / (mapping["micro_batch_count"] * mapping["dp_count"]), 1.0),
        memory_bytes={
            f.name: columned(getattr(memory, f.name), count) for f in fields(memory) if f.name.endswith("_bytes")
        },
        mappings_count=len(np.asarray(layouts.tp_count)),
        memory_required_bytes=columned(memory.total_bytes, count) + columned(best.step.second_tier_excess_bytes, count),
        memory_available_bytes=columned(memory.total_bytes, count) - excess,
    )


# -------------------------------------------------------------------------------------------------------- serving


def serving_result(
    name: str, work: Serving, hardware: Hardware, pinned: Mapping[str, Value] | None, catalog: Catalog
) -> WorkloadResult:
    """The best layout of a serving system on every candidate, under its service levels."""
    transformer = one_transformer(work.model)
    names, experts = hardware.candidates.accelerator, float(transformer.experts_count)
    known = {part: formats_of(catalog, work.model, part, ENGINE, work.precision, "", experts) for part in set(names)}
    formats = [known[part] for part in names]
    one = np.ones(len(hardware))
    job = serving_job(
        work.input_count * one, work.output_count * one, 0.0 * one, formats, work.speculative_tokens_count * one
    )
    system = ServingSystem(
        transformer=transformer,
        job=replace(
            job,
            ttft_limit_ns=float(ns_from_ms(work.ttft_ms)),
            tpot_limit_ns=float(ns_from_ms(work.tpot_ms)),
        ),
        kernels=_at_clock(hardware.serving_kernels(formats)),
        fabric=hardware.serving_fabric,
        software=_hosted(serving_software(catalog, [ENGINE] * len(hardware)), hardware.host_ratio),
        queue=queue_constants(catalog, [ENGINE] * len(hardware)),
    )
    layouts = (
        pinned_serving(pinned, work)
        if pinned
        else serving_layouts(transformer, work.accelerators_count, disaggregated=work.mode == "disaggregated")
    )
    best = best_serving(system, layouts, len(hardware))
    return _serving_columns(name, work, best, layouts, hardware)


def _at_clock(kernels: ServingKernels) -> ServingKernels:
    """Kernels at the clock that the power budget leaves: arithmetic slows down with it, memory does not."""
    names = ("projection", "dense", "expert", "head", "attention", "latent_attention")
    clock = kernels.machine.clock_frac
    engines = {name: getattr(kernels, name) for name in names}
    slowed = {name: replace(engine, peak_gflops=engine.peak_gflops * clock) for name, engine in engines.items()}
    return replace(kernels, **slowed)


def _hosted(software: ServingSoftware, host_ratio: Numeric) -> ServingSoftware:
    """An engine on a host that is slower or faster than those it was measured on."""
    names = ("kernel_gap_ns", "step_host_ns", "sequence_host_ns")
    return replace(software, **{name: getattr(software, name) * host_ratio for name in names})


def _serving_columns(
    name: str, work: Serving, best: BestServing, layouts: ServingLayout, hardware: Hardware
) -> WorkloadResult:
    count, point = len(hardware), best.point
    tpot_ns = columned(point.tpot_ns, count)
    output = columned(point.output_tokens_per_s, count)
    prefixed = [f.name for f in fields(ServingPoint) if f.name.startswith("tpot_") and f.name.endswith("_ns")]
    parts = {n.removeprefix("tpot_"): columned(getattr(point, n), count) for n in prefixed if n != "tpot_ns"}
    ratio = columned(best.runner_up_tokens_per_s, count)
    memory = {n: columned(getattr(point, n), count) for n in ("weights_bytes", "cache_bytes")}
    lack = columned(point.memory_excess_frac, count)
    capacity = columned(hardware.machine(1.0, 0.0).memory_bytes, count)
    return WorkloadResult(
        name=name,
        kind="serving",
        time_name="tpot_ns",
        time_ns=tpot_ns,
        parts_ns=parts,
        mapping=_serving_mapping(best.layout),
        runner_up=_serving_mapping(_rows(layouts, np.asarray(best.runner_up_index, dtype=np.intp))),
        runner_up_ratio=np.where(ratio > 0.0, output / np.maximum(ratio, 1e-12), 1.0),
        tokens_per_s=output,
        input_tokens_per_s=output * (work.input_count / work.output_count),
        prefill_share_frac=columned(point.prefill_busy_frac, count),
        ttft_ns=columned(point.ttft_ns, count),
        layers_count=float(one_transformer(work.model).layers_count),
        passes_count=np.ones(count),
        memory_bytes=memory,
        mappings_count=len(np.asarray(layouts.users_count)),
        memory_required_bytes=capacity * (1.0 + lack),
        memory_available_bytes=capacity,
    )


def _rows(layouts: ServingLayout, at: Any) -> ServingLayout:
    return remade(layouts, lambda value: np.asarray(value)[at])


def _serving_mapping(layout: ServingLayout) -> dict[str, Array]:
    names = [f.name for f in fields(Pool)]
    decode = {n: np.asarray(getattr(layout.decode, n)) for n in names}
    prefill = {f"prefill_{n}": np.asarray(getattr(layout.prefill, n)) for n in names}
    apart = np.asarray(layout.disaggregated_flag)
    return {
        **decode,
        "users_count": np.asarray(layout.users_count),
        "disaggregated_flag": apart,
        **{n: np.where(apart > 0.0, column, 0.0) for n, column in prefill.items()},
    }


def flop_per_token(work: Training | Serving) -> tuple[float, float]:
    """Operations of one token in products and in attention cores at mean context; three times forward in training."""
    transformer = one_transformer(work.model)
    matrix = float(np.asarray(matrix_flop_per_token(transformer)))
    if isinstance(work, Training):
        core = float(np.asarray(attention_flop(transformer, float(work.sequence_count), float(work.sequence_count))))
        return 3.0 * matrix, 3.0 * core / work.sequence_count
    context = float(work.input_count) + 0.5 * work.output_count
    return matrix, float(np.asarray(attention_flop(transformer, 1.0, context)))
