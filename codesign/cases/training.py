"""Replay of measured training jobs: the columns of a row become a job, a layout and a release of software."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from codesign.cases.rows import CaseRows, Predictions
from codesign.cases.training_counting import MEMORY, compare
from codesign.cases.training_words import family_of, format_of, recompute_of, release_year_of, sharding_of
from codesign.catalog import Catalog
from codesign.catalog.architectures import lineage, load_architectures
from codesign.fabrics import fabric_of
from codesign.machines import (
    ACTIVATION_BYTES,
    accelerator_refusal,
    attention_engine,
    gemm_engine,
    has_accelerator,
    memory_rate_gbps,
    mla_engine,
)
from codesign.model.fabric.collectives import Fabric
from codesign.model.kernels.attention import AttentionEngine
from codesign.model.kernels.gemm import GemmEngine
from codesign.model.kernels.mla import MlaEngine
from codesign.model.workload.layout import Layout, ranks_count
from codesign.model.workload.machine import Machine
from codesign.model.workload.training import TrainingStep, training_step
from codesign.model.workload.training_inputs import Software, TrainingConstants, TrainingEngines, TrainingJob
from codesign.model.workload.transformer import Transformer
from codesign.software import attention_generation, release_of, software_of, training_constants
from codesign.transformers import transformer_from_rows
from codesign.units import Array, bytes_from_gb, gbps_from_gbytes_per_s

ADAPTER_FRAC = 0.0005  # share of the weights that low-rank adapters of usual rank add
SECOND_TIER_GB = 480.0  # host memory of one accelerator of the class that offloads
SECOND_TIER_GBYTES_PER_S = 50.0  # PCIe 5 x16 or what a coherent link sustains
FILLER = "h100-sxm"  # stands in refused rows so that every number stays finite


@dataclass(frozen=True)
class Replay:
    """Everything `training_step` reads for each row, and why some rows are refused."""

    transformer: Transformer
    job: TrainingJob
    layout: Layout
    engines: TrainingEngines
    fabric: Fabric
    machine: Machine
    software: Software
    straggler: Array  # accelerators of the job: what the slowest of them costs depends on how many there are
    refused: list[str | None]


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Step time, tokens per second, TFLOP/s or memory, whichever a row reports."""
    replay = bind(rows, catalog)
    step = run(replay, training_constants(catalog), catalog)
    return compare(rows, step, replay.transformer, replay.job, replay.refused)


def run(replay: Replay, constants: TrainingConstants, catalog: Catalog) -> TrainingStep:
    """One step of every row."""
    loss = catalog.constant("training", "stated", "straggler_frac")
    return training_step(
        replay.transformer,
        replay.job,
        replay.layout,
        replay.engines,
        replay.fabric,
        replay.machine,
        replay.software,
        constants,
        1.0 + loss * np.log2(np.maximum(replay.straggler, 1.0)),
    )


def with_launch(replay: Replay, launch_ns: float) -> Replay:
    """The same jobs with another host time per launch."""
    gap = np.full(len(replay.refused), launch_ns)
    return replace(replay, machine=replace(replay.machine, launch_ns=gap))


def bind(rows: CaseRows, catalog: Catalog) -> Replay:
    """Columns of the file -> columns of the model, with the fill-in rules that hold for every row alike."""
    transformer, unknown = transformer_from_rows(rows)
    names = [name if has_accelerator(catalog, name) else FILLER for name in rows.text("accelerator")]
    formats = [format_of(words) for words in rows.text("precision")]
    releases = _releases(rows, catalog)
    degrees = _degrees(rows, transformer, lambda name: np.array([catalog.value("software", r, name) for r in releases]))
    software = _software(rows, catalog, names, formats, releases)
    layout = _layout(rows, degrees)
    split = np.minimum(degrees["n_accel"] / np.asarray(ranks_count(layout)), 1.0)
    fabric = _domains(fabric_of(catalog, names, exchange="nccl"), rows, split)
    return Replay(
        transformer=transformer,
        job=_job(rows, catalog, degrees, formats, releases, transformer),
        layout=layout,
        engines=_engines(catalog, names, formats, split),
        fabric=fabric,
        machine=_machine(catalog, names, degrees["n_accel"], split),
        software=software,
        straggler=degrees["n_accel"],
        refused=_refusals(rows, catalog, unknown, transformer),
    )


def _or(column: Array, fallback: Array | float) -> Array:
    return np.where(np.isfinite(column) & (column > 0.0), column, fallback)


def _degrees(rows: CaseRows, t: Transformer, facts: Callable[[str], Array]) -> dict[str, Array]:
    """Layout columns with what is missing filled in.

    Context and expert degrees default to one; the data degree to what is left of the accelerators. A missing
    micro-batch is one sequence in a pipeline or beyond 8,192 tokens, else the largest power of two up to eight that
    keeps 8,192.
    Missing interleaving of a dense stack is one layer per virtual stage where the framework recommends it, else none.
    """
    out = {name: _or(rows.numbers(name), 1.0) for name in ("tp", "pp", "cp", "ep", "n_accel")}
    out["seq"] = _or(rows.numbers("seq"), 2048.0)
    out["dp"] = _or(rows.numbers("dp"), np.maximum(out["n_accel"] / (out["tp"] * out["pp"] * out["cp"]), 1.0))
    fits = 2.0 ** np.floor(np.log2(np.clip(8192.0 / out["seq"], 1.0, 8.0)))
    out["mbs"] = _or(rows.numbers("mbs"), np.where((out["pp"] > 1.0) | (out["seq"] > 8192.0), 1.0, fits))
    out["gbs"] = _or(rows.numbers("gbs"), out["mbs"] * out["dp"] * 4.0 * out["pp"])
    dense = np.asarray(t.experts_count) <= 0.0
    single = np.ceil(np.asarray(t.layers_count) / out["pp"])
    stages = np.where(dense & (facts("full_interleave_flag") > 0.0), single, 1.0)
    out["vp"] = np.where(out["pp"] > 1.0, _or(rows.numbers("vp"), stages), 1.0)
    out["etp"] = _or(rows.numbers("etp"), np.where(facts("expert_tp_flag") > 0.0, out["tp"], 1.0))
    out["ep"] = np.where(np.asarray(t.experts_count) > 0.0, out["ep"], 1.0)
    return out


def _releases(rows: CaseRows, catalog: Catalog) -> list[str]:
    versions, dates = rows.text("fw_version"), rows.text("date")
    words = zip(rows.text("framework"), versions, rows.text("accelerator"), strict=True)
    families = [family_of(*word) for word in words]
    return [
        release_of(catalog, family, release_year_of(version, date))
        for family, version, date in zip(families, versions, dates, strict=True)
    ]


def _software(rows: CaseRows, catalog: Catalog, names: list[str], formats: list[str], releases: list[str]) -> Software:
    generations = [attention_generation(catalog, name) for name in names]
    software = software_of(catalog, releases, generations, [name in ("mxfp8", "nvfp4") for name in formats])
    said = [recompute_of(words).sequence_parallel for words in _recompute_words(rows)]
    default = np.asarray(software.sequence_parallel_flag)
    early = np.array([catalog.value("software", r, "unfused_attention_flag") > 0.0 for r in releases])
    stated = np.array([np.nan if flag is None else float(flag) for flag in said])
    return replace(software, sequence_parallel_flag=np.where(early & np.isfinite(stated), stated, default))


def _flags(values: Iterable[float]) -> Array:
    return np.array([float(value) for value in values])


def _recompute_words(rows: CaseRows) -> list[str]:
    """The recompute column; a memory figure says in its metric what was recomputed."""
    cells, metrics = rows.text("recompute"), rows.text("metric")
    parallel = "selective + sequence parallel"
    return [cell or (parallel if "selective" in metric else "") for cell, metric in zip(cells, metrics, strict=True)]


def _layout(rows: CaseRows, d: dict[str, Array]) -> Layout:
    """Weights that are sharded stay gathered between the micro-batches of a pipeline: then only states are split."""
    again = [recompute_of(words) for words in _recompute_words(rows)]
    shards = [sharding_of(words) for words in rows.text("sharding")]
    ranks = np.array([s.ranks or np.inf for s in shards])
    data = d["dp"] * d["cp"]
    return Layout(
        tp_count=d["tp"],
        pp_count=d["pp"],
        vp_count=d["vp"],
        cp_count=d["cp"],
        ep_count=d["ep"],
        dp_count=d["dp"],
        micro_batch_count=d["mbs"],
        expert_tp_flag=np.where((d["tp"] > 1.0) & (d["etp"] == d["tp"]), 1.0, 0.0),
        full_recompute_frac=_flags(r.full for r in again),
        attention_recompute_flag=_flags(r.attention for r in again),
        elementwise_recompute_flag=_flags(r.elementwise for r in again),
        shard_count=np.where((_flags(s.fully for s in shards) > 0.0) & (d["pp"] <= 1.0), np.minimum(ranks, data), 1.0),
        optimizer_sharded_flag=_flags(s.optimizer for s in shards),
        gradients_sharded_flag=_flags(s.gradients for s in shards),
        activation_offload_frac=_flags(r.offload for r in again),
        state_offload_flag=np.zeros(len(rows)),
    )


def _job(
    rows: CaseRows,
    catalog: Catalog,
    d: dict[str, Array],
    formats: list[str],
    releases: list[str],
    t: Transformer,
) -> TrainingJob:
    wide = [sharding_of(words).wide_reduce for words in rows.text("sharding")]
    usual = np.array([catalog.value("software", r, "gradient_wire_bytes") for r in releases])
    said = np.array([np.nan if w is None else (4.0 if w else 2.0) for w in wide])
    adapters = np.array([task == "lora" for task in rows.text("task")])
    predicts = np.array([catalog.value("software", r, "prediction_layers_flag") for r in releases])
    return TrainingJob(
        sequence_count=d["seq"],
        global_batch_count=d["gbs"],
        operand_bytes=np.array([ACTIVATION_BYTES[name] for name in formats]),
        weight_bytes=np.full(len(rows), 2.0),
        gradient_bytes=np.full(len(rows), 4.0),
        optimizer_bytes=np.full(len(rows), 12.0),
        gradient_wire_bytes=np.where(np.isfinite(said), said, usual),
        weight_wire_bytes=np.where(["all-gather" in words for words in rows.text("precision")], 1.0, 2.0),
        trainable_frac=np.where(adapters, ADAPTER_FRAC, 1.0),
        imbalance_ratio=np.array([catalog.value("software", r, "expert_imbalance_ratio") for r in releases]),
        mtp_layers_count=predicts * np.asarray(t.mtp_layers_count),
    )


def _engines(catalog: Catalog, names: list[str], formats: list[str], split: Array) -> TrainingEngines:
    """Products in the row's format, head and attention in sixteen bits; parts that count as several ranks are split."""
    wide = ["bf16"] * len(names)
    gemm, head = gemm_engine(catalog, names, formats), gemm_engine(catalog, names, wide)
    heads, latent = attention_engine(catalog, names, wide), mla_engine(catalog, names, wide)
    return TrainingEngines(
        gemm=_share(gemm, split), head=_share(head, split), attention=_share(heads, split), latent=_share(latent, split)
    )


E_ = TypeVar("E_", GemmEngine, AttentionEngine, MlaEngine)


def _share(engine: E_, split: Array) -> E_:
    return replace(engine, peak_gflops=engine.peak_gflops * split, memory_rate_gbps=engine.memory_rate_gbps * split)


def _machine(catalog: Catalog, names: list[str], count: Array, split: Array) -> Machine:
    capacity = np.array([catalog.value("accelerators", name, "memory_capacity_gb") for name in names])
    each = np.ones(len(names))
    return Machine(
        accelerators_count=count,
        memory_bytes=bytes_from_gb(capacity) * split,
        memory_rate_gbps=np.array([memory_rate_gbps(catalog, name) for name in names]) * split,
        memory_frac=catalog.constant("training", "stated", "stream_frac") * each,
        reserved_bytes=bytes_from_gb(catalog.constant("training", "stated", "reserved_gb")) * each,
        second_tier_bytes=bytes_from_gb(SECOND_TIER_GB) * each,
        second_tier_rate_gbps=gbps_from_gbytes_per_s(SECOND_TIER_GBYTES_PER_S) * each,
        launch_ns=catalog.constant("training", "fitted", "launch_ns") * each,
        clock_frac=np.array([_clock_frac(catalog, name) for name in names]),
    )


def _clock_frac(catalog: Catalog, name: str) -> float:
    """Sustained clock over that of the part whose kernels were measured: power per operation, to a power.

    Dynamic power grows with about the 2.5th power of the clock where voltage follows it.
    """
    measured = _measured_like(catalog, name)
    watts = [_per_operation(catalog, part) for part in (name, measured)]
    if name == measured or not all(watts):
        return 1.0
    return float(min((watts[0] / watts[1]) ** catalog.constant("training", "stated", "power_exponent_ratio"), 1.1))


def _measured_like(catalog: Catalog, name: str) -> str:
    """The measured part whose constants an unmeasured one borrows; itself where it was measured or none was."""
    parts = {group.rsplit(".", 1)[0] for group in catalog.constants["gemm"]}
    kin = [key for key in lineage(name)[1:] if key.split("-")[0] == lineage(name)[1].split("-")[0]]
    records = load_architectures()
    same = [a for key in kin for a in records[key].accelerators if a in parts]
    return name if name in parts or not same else same[0]


def _per_operation(catalog: Catalog, name: str) -> float:
    facts = catalog.technology("accelerators", name)
    power = facts["board_power_w"].value if "board_power_w" in facts else 0.0
    return power / facts["bf16_peak_tflops"].value


def _domains(fabric: Fabric, rows: CaseRows, split: Array) -> Fabric:
    """The row says how many accelerators share a scale-up domain; a part's own number stands where it does not."""
    said = rows.numbers("scale_up_domain")
    up = fabric.scale_up
    domain = np.where(np.isfinite(said), said, up.domain_count) / split
    return replace(
        fabric,
        scale_up=replace(up, domain_count=domain, rate_gbps=up.rate_gbps * split),
        scale_out=replace(fabric.scale_out, rate_gbps=fabric.scale_out.rate_gbps * split),
    )


def _refusals(rows: CaseRows, catalog: Catalog, unknown: list[str | None], t: Transformer) -> list[str | None]:
    batch, tp, pp = rows.numbers("gbs"), rows.numbers("tp"), rows.numbers("pp")
    sparse = np.asarray(t.sparse_context_count) > 0.0
    out: list[str | None] = []
    for i, (name, metric, unit) in enumerate(
        zip(rows.text("accelerator"), rows.text("metric"), rows.text("unit"), strict=True)
    ):
        memory = bool(MEMORY.search(metric))
        checks = (
            (accelerator_refusal(catalog, name) is not None, accelerator_refusal(catalog, name) or ""),
            (unknown[i] is not None, unknown[i] or ""),
            (bool(sparse[i]), "sparse or compressed attention is not modelled in training"),
            (not np.isfinite(batch[i]) and not memory, "no global batch"),
            (not (np.isfinite(tp[i]) and np.isfinite(pp[i])), "no tensor or pipeline degree"),
            (unit.startswith("%"), f"{metric}: a share of peak, counted differently by every source"),
        )
        out.append(next((reason for failed, reason in checks if failed), None))
    return out
