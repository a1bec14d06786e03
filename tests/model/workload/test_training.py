"""The training step: parts, memory, directions, batches and the search over layouts."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codesign.catalog import Catalog, load_catalog
from codesign.fabrics import fabric_of
from codesign.machines import attention_engine, gemm_engine, mla_engine
from codesign.model.workload.layout import Layout, layout_faults, ranks_count
from codesign.model.workload.machine import Machine
from codesign.model.workload.training import TrainingStep, training_step
from codesign.model.workload.training_inputs import Software, TrainingConstants, TrainingEngines, TrainingJob
from codesign.model.workload.training_memory import training_memory
from codesign.model.workload.training_search import best_training, columns_of, training_layouts
from codesign.model.workload.transformer import Transformer
from codesign.software import attention_generation, release_of, software_of, training_constants
from codesign.transformers import transformer_of

GIB = 1024.0**3
SEQUENCE = 2048.0


def first(struct: Any) -> Any:
    """The first row of a struct as plain numbers."""
    values = {f.name: getattr(struct, f.name) for f in fields(struct) if f.init}
    return type(struct)(
        **{
            name: first(value) if hasattr(value, "__dataclass_fields__") else float(np.asarray(value).reshape(-1)[0])
            for name, value in values.items()
        }
    )


def transformer(name: str) -> Transformer:
    return first(transformer_of([name]))


def system(catalog: Catalog, count: int, part: str = "h100-sxm", precision: str = "fp8") -> dict[str, Any]:
    """Hardware of `count` candidates that differ in rates, domain and capacity."""
    names, spread = [part] * count, np.random.default_rng(1)
    fabric = fabric_of(catalog, names, exchange="nccl")
    up = replace(
        fabric.scale_up,
        rate_gbps=fabric.scale_up.rate_gbps * spread.uniform(0.5, 2.0, count),
        domain_count=np.exp2(spread.integers(3, 8, count)).astype(np.float64),
    )
    return {
        "engines": TrainingEngines(
            gemm_engine(catalog, names, [precision] * count),
            gemm_engine(catalog, names, ["bf16"] * count),
            attention_engine(catalog, names, ["bf16"] * count),
            mla_engine(catalog, names, ["bf16"] * count),
        ),
        "fabric": replace(fabric, scale_up=up),
        "machine": Machine(
            np.full(count, 512.0),
            80e9 * spread.uniform(0.8, 3.0, count),
            26800.0 * spread.uniform(0.7, 2.0, count),
            np.full(count, 0.85),
            np.full(count, 6e9),
            np.full(count, 480e9),
            np.full(count, 400.0),
            np.full(count, 6000.0),
            np.full(count, 1.0),
        ),
        "software": modern(catalog, part),
        "constants": training_constants(catalog),
    }


def modern(catalog: Catalog, part: str = "h100-sxm", year: float = 2025.0) -> Software:
    release = release_of(catalog, "megatron", year)
    return first(software_of(catalog, [release], [attention_generation(catalog, part)], [False]))


def job(sequence: float = 8192.0, batch: float = 256.0) -> TrainingJob:
    return TrainingJob(sequence, batch, 1.0, 2.0, 4.0, 12.0, 2.0, 2.0, 1.0, 1.0, 0.0)


def layout(**degrees: float) -> Layout:
    values = {f.name: 1.0 if f.name.endswith("_count") else 0.0 for f in fields(Layout)}
    return Layout(**{**values, "optimizer_sharded_flag": 1.0, **degrees})


def total(step: TrainingStep) -> Any:
    out: Any = 0.0
    for part in fields(step.parts):
        out = out + getattr(step.parts, part.name)
    return out


MODELS = ["Llama-3.1-405B", "Qwen3-235B-A22B", "DeepSeek-V3", "Nemotron-3-Nano-30B-A3B", "GPT-OSS-120B"]


@pytest.mark.parametrize("model", MODELS)
def test_the_parts_of_a_step_sum_to_it_and_none_is_negative(catalog: Catalog, model: str) -> None:
    grid = training_layouts(transformer(model), job(), 256, offload=True)
    some = columns_of(grid, np.arange(0, np.size(grid.tp_count), max(np.size(grid.tp_count) // 300, 1)))
    hardware = {k: first(v) for k, v in system(catalog, 1).items()}

    step = training_step(transformer(model), job(), some, **hardware, straggler_ratio=1.03)

    assert np.allclose(total(step), step.step_ns, rtol=1e-12, atol=0.0)
    for part in fields(step.parts):
        value = np.asarray(getattr(step.parts, part.name))
        assert np.all(np.isfinite(value)), part.name
        assert np.all(value >= 0.0), part.name
    for part in fields(step.memory):
        assert np.all(np.asarray(getattr(step.memory, part.name)) >= 0.0), part.name


@pytest.mark.parametrize("count", [1, 7, 64])
def test_a_batch_of_candidates_is_its_rows(catalog: Catalog, count: int) -> None:
    model, hardware = transformer("DeepSeek-V3"), system(catalog, count)
    grid = training_layouts(model, job(4096.0, 1024.0), 256)
    mapped = columns_of(grid, np.arange(count) * 37 % np.size(grid.tp_count))

    batch = training_step(model, job(4096.0, 1024.0), mapped, **hardware)

    for row in range(0, count, max(count // 5, 1)):
        alone = training_step(
            model,
            job(4096.0, 1024.0),
            columns_of(mapped, np.array([row])),
            **{k: rows(v, row) for k, v in hardware.items()},
        )
        assert np.array_equal(np.asarray(batch.step_ns)[row : row + 1], np.asarray(alone.step_ns))
        assert np.array_equal(np.asarray(batch.memory.total_bytes)[row : row + 1], np.asarray(alone.memory.total_bytes))


def rows(struct: Any, row: int) -> Any:
    values = {f.name: getattr(struct, f.name) for f in fields(struct) if f.init}
    return type(struct)(
        **{
            name: rows(value, row)
            if hasattr(value, "__dataclass_fields__")
            else value[row : row + 1]
            if isinstance(value, np.ndarray) and value.size > 1
            else value
            for name, value in values.items()
        }
    )


# ---- memory


PUBLISHED = [
    ("Megatron-GPT-22B (2022)", 8.0, 1.0, 1.0, 4.0, 45.56, 59.25, 9.56),
    ("GPT-3-175B", 8.0, 8.0, 3.0, 1.0, 45.56, 66.84, 12.35),
    ("Megatron-GPT-530B (2021)", 8.0, 35.0, 3.0, 1.0, 31.64, 114.02, 23.08),
]


@pytest.mark.published(
    source="korthikanti-2022",
    where="figures 1 and 7, as coded in the validation file of calculon-2024",
    says="GiB of the first stage: parameters and optimizer; activations, plain; selective and sequence parallel",
)
@pytest.mark.parametrize(("model", "tp", "pp", "vp", "batch", "state", "plain", "selective"), PUBLISHED)
def test_memory_of_the_first_stage_is_within_ten_percent_of_the_published(
    catalog: Catalog,
    model: str,
    tp: float,
    pp: float,
    vp: float,
    batch: float,
    state: float,
    plain: float,
    selective: float,
) -> None:
    early = modern(catalog, "a100-sxm-80gb", 2022.4)
    parallel = replace(early, sequence_parallel_flag=1.0)
    work = TrainingJob(SEQUENCE, 4096.0, 2.0, 2.0, 4.0, 12.0, 2.0, 2.0, 1.0, 1.0, 0.0)
    machine = Machine(1.0, 80e9, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0)
    mapped = layout(tp_count=tp, pp_count=pp, vp_count=vp, micro_batch_count=batch, optimizer_sharded_flag=0.0)
    shape = transformer(model)

    kept = training_memory(shape, work, mapped, machine, early)
    fewer = training_memory(shape, work, replace(mapped, attention_recompute_flag=1.0), machine, parallel)

    weights = kept.weights_bytes + kept.gradients_bytes + kept.optimizer_bytes
    # the figures were read by eye from bars, and leave out the embedding: 7 % of a 530B stage
    assert float(weights) / GIB == pytest.approx(state, rel=0.10)
    assert float(kept.activations_bytes) / GIB == pytest.approx(plain, rel=0.10)
    assert float(fewer.activations_bytes) / GIB == pytest.approx(selective, rel=0.10)


def test_every_way_to_shard_saves_memory_and_full_recompute_saves_most(catalog: Catalog) -> None:
    shape, soft = transformer("Llama-3.1-70B"), modern(catalog)
    machine = Machine(1.0, 80e9, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0)

    def bytes_of(**degrees: float) -> float:
        return float(training_memory(shape, job(), layout(dp_count=64.0, **degrees), machine, soft).total_bytes)

    plain = bytes_of(optimizer_sharded_flag=0.0)
    split = bytes_of()
    gradients = bytes_of(gradients_sharded_flag=1.0)
    everything = bytes_of(gradients_sharded_flag=1.0, shard_count=64.0)

    assert plain > split > gradients > everything
    assert bytes_of() > bytes_of(elementwise_recompute_flag=1.0) > bytes_of(full_recompute_frac=1.0)
    assert bytes_of(activation_offload_frac=1.0) < bytes_of()
    assert bytes_of(state_offload_flag=1.0) < bytes_of()


# ---- directions


def one(catalog: Catalog, mapped: Layout, model: str = "Llama-3.1-70B", **changes: Any) -> float:
    hardware = {k: first(v) for k, v in system(catalog, 1).items()}
    straggler = changes.pop("straggler_ratio", 1.0)
    work = changes.pop("work", job())
    for name, values in changes.items():
        hardware[name] = replace(hardware[name], **values)
    return float(training_step(transformer(model), work, mapped, **hardware, straggler_ratio=straggler).step_ns)


SPREAD = layout(tp_count=4.0, pp_count=4.0, vp_count=4.0, cp_count=2.0, dp_count=8.0)
BETTER: list[tuple[str, str, float]] = [
    ("machine", "memory_rate_gbps", 2.0),
    ("machine", "clock_frac", 1.2),
    ("software", "attention_frac", 1.5),
]


@pytest.mark.parametrize(("struct", "name", "factor"), BETTER)
def test_more_of_a_resource_makes_the_step_shorter(catalog: Catalog, struct: str, name: str, factor: float) -> None:
    usual = getattr(first(system(catalog, 1)[struct]), name)

    better: dict[str, Any] = {struct: {name: usual * factor}}

    assert one(catalog, SPREAD, **better) < one(catalog, SPREAD)


@given(
    up=st.floats(0.25, 4.0),
    out=st.floats(0.25, 4.0),
    hop=st.floats(0.0, 5000.0),
    gain=st.floats(1.0, 3.0),
)
@settings(max_examples=40, deadline=None)
def test_a_faster_fabric_never_makes_a_step_longer(up: float, out: float, hop: float, gain: float) -> None:
    catalog = load_catalog()
    fabric = first(system(catalog, 1)["fabric"])

    def step(factor: float, less: float) -> float:
        tiers = {
            "scale_up": replace(fabric.scale_up, rate_gbps=fabric.scale_up.rate_gbps * up * factor),
            "scale_out": replace(
                fabric.scale_out, rate_gbps=fabric.scale_out.rate_gbps * out * factor, hop_ns=hop * less
            ),
        }
        return one(catalog, SPREAD, fabric=tiers)

    assert step(gain, 1.0 / gain) <= step(1.0, 1.0)


def test_recompute_costs_time_and_overlap_saves_it(catalog: Catalog) -> None:
    full = one(catalog, replace(SPREAD, full_recompute_frac=1.0))
    half = one(catalog, replace(SPREAD, full_recompute_frac=0.5))
    core = one(catalog, replace(SPREAD, attention_recompute_flag=1.0))
    plain = one(catalog, SPREAD)

    assert full > half > plain
    assert full > core > plain
    # a recomputed forward is at most half a forward and backward, which is all that it repeats
    assert full < 1.5 * plain
    assert one(catalog, SPREAD, software={"dp_overlap_flag": 0.0}) > plain
    assert one(catalog, SPREAD, software={"tp_overlap_flag": 0.0}) > plain


def test_interleaving_shrinks_the_bubble_and_a_straggler_stretches_everything(catalog: Catalog) -> None:
    flat = one(catalog, replace(SPREAD, vp_count=1.0), work=job(batch=64.0))
    woven = one(catalog, SPREAD, work=job(batch=64.0))

    assert woven < flat
    assert one(catalog, SPREAD, straggler_ratio=1.1) == pytest.approx(1.1 * one(catalog, SPREAD), rel=1e-12)


def test_adapters_skip_the_gradients_of_frozen_weights(catalog: Catalog) -> None:
    alone = layout(tp_count=8.0, dp_count=1.0)
    full = one(catalog, alone)
    adapters = one(catalog, alone, work=replace(job(), trainable_frac=0.0005))

    # two thirds of the products, and the optimizer is gone; attention and traffic stay
    assert 0.6 < adapters / full < 0.85


def test_experts_that_wait_for_the_busiest_rank_cost_time(catalog: Catalog) -> None:
    spread = layout(ep_count=32.0, dp_count=32.0)
    even = one(catalog, spread, "Qwen3-30B-A3B")

    assert one(catalog, spread, "Qwen3-30B-A3B", work=replace(job(), imbalance_ratio=1.5)) > 1.1 * even


def test_dense_training_does_not_care_about_the_domain_beyond_its_tensor_ranks(catalog: Catalog) -> None:
    fabric = first(system(catalog, 1)["fabric"])

    def step(domain: float) -> float:
        up = replace(fabric.scale_up, domain_count=domain)
        return one(catalog, replace(SPREAD, cp_count=1.0, dp_count=16.0), fabric={"scale_up": up})

    assert step(8.0) == pytest.approx(step(4.0), rel=0.05)
    assert step(64.0) == pytest.approx(step(8.0), rel=0.05)


# ---- search


@pytest.mark.parametrize(("model", "accelerators"), [("Llama-3.1-70B", 64), ("Qwen3-30B-A3B", 32)])
def test_the_search_finds_what_brute_force_finds(catalog: Catalog, model: str, accelerators: int) -> None:
    shape, hardware, work = transformer(model), system(catalog, 9), job(4096.0, 128.0)
    grid = training_layouts(shape, work, accelerators, offload=True)

    best = best_training(shape, work, grid, **hardware, straggler_ratio=1.02)

    for row in range(9):
        alone = {k: first(rows(v, row)) for k, v in hardware.items()}
        steps = training_step(shape, work, grid, **alone, straggler_ratio=1.02)
        missing = steps.memory_excess_bytes / alone["machine"].memory_bytes
        missing = missing + steps.second_tier_excess_bytes / alone["machine"].second_tier_bytes
        keys = np.where(np.asarray(missing) > 0.0, 1e30 * (1.0 + missing), steps.step_ns)
        order = np.argsort(keys, kind="stable")
        assert best.best_index_count[row] == order[0]
        assert best.next_index_count[row] == order[1]
        assert np.asarray(best.step.step_ns)[row] == np.asarray(steps.step_ns)[order[0]]
        assert best.next_step_ns[row] == keys[order[1]]


@pytest.mark.parametrize("model", ["Llama-3.1-70B", "Qwen3-30B-A3B", "DeepSeek-V3"])
def test_every_proposed_layout_divides_and_none_is_proposed_twice(model: str) -> None:
    shape, work = transformer(model), job(8192.0, 512.0)
    grid = training_layouts(shape, work, 128, offload=True)

    faults = layout_faults(
        grid, 128.0, shape.heads_count, shape.layers_count, shape.experts_count, work.global_batch_count
    )

    for rule in fields(faults):
        assert np.all(np.asarray(getattr(faults, rule.name)) == 0.0), rule.name
    assert np.all(ranks_count(grid) == 128.0)
    table = np.stack([np.asarray(getattr(grid, f.name)) for f in fields(grid)])
    assert np.unique(table, axis=1).shape == table.shape
    assert table.shape[1] > 500


def test_a_layout_that_does_not_divide_says_which_rule_and_by_how_much() -> None:
    faults = layout_faults(layout(tp_count=8.0, pp_count=4.0, ep_count=3.0), 64.0, 12.0, 2.0, 128.0, 63.5)

    assert float(faults.ranks_ratio) == 0.5
    assert float(faults.heads_ratio) == 0.5
    assert float(faults.layers_ratio) == 1.0
    assert float(faults.experts_ratio) == pytest.approx(2.0 / 3.0)
    assert float(faults.batch_ratio) == 0.5
    assert float(faults.interleave_ratio) == 0.0


def test_nothing_fits_gives_the_layout_that_misses_by_least(catalog: Catalog) -> None:
    shape, work = transformer("Llama-3.1-405B"), job(8192.0, 64.0)
    hardware = system(catalog, 3)
    small = replace(hardware["machine"], memory_bytes=np.full(3, 8e9))
    grid = training_layouts(shape, work, 16)

    best = best_training(shape, work, grid, **{**hardware, "machine": small})

    assert np.all(best.fits_flag == 0.0)
    assert np.all(np.isfinite(np.asarray(best.step.step_ns)))
    every = training_memory(shape, work, grid, first(small), hardware["software"])
    assert np.asarray(best.step.memory.total_bytes)[0] == np.min(np.asarray(every.total_bytes))
    assert np.all(np.asarray(best.step.memory_excess_bytes) > 0.0)


def test_more_memory_or_bandwidth_never_makes_the_best_layout_slower(catalog: Catalog) -> None:
    shape, work, hardware = transformer("Llama-3.1-70B"), job(4096.0, 128.0), system(catalog, 1)
    grid = training_layouts(shape, work, 64, offload=True)
    ramp = np.linspace(20e9, 200e9, 12)

    def best(**machine: Any) -> Any:
        changed = replace(first(hardware["machine"]), **machine)
        found = best_training(shape, work, grid, **{**hardware, "machine": changed})
        return np.where(found.fits_flag > 0.0, np.asarray(found.step.step_ns), np.inf)

    by_memory = best(memory_bytes=ramp)
    by_tier = best(memory_bytes=30e9, second_tier_rate_gbps=np.linspace(50.0, 4000.0, 12))

    assert np.all(by_memory[1:] <= by_memory[:-1])
    assert by_memory[-1] < by_memory[1]
    assert np.all(by_tier[1:] <= by_tier[:-1])


def test_any_split_of_the_candidates_gives_the_same_answer(catalog: Catalog) -> None:
    shape, work, hardware = transformer("Qwen3-30B-A3B"), job(4096.0, 128.0), system(catalog, 40)
    grid = training_layouts(shape, work, 32)

    whole = best_training(shape, work, grid, **hardware)

    for row in (0, 13, 39):
        part = best_training(shape, work, grid, **{k: rows(v, row) for k, v in hardware.items()})
        assert part.best_index_count[0] == whole.best_index_count[row]
        assert np.asarray(part.step.step_ns)[0] == np.asarray(whole.step.step_ns)[row]


def constants_are_few() -> list[str]:
    return [f.name for f in fields(TrainingConstants)]


def test_at_most_fourteen_numbers_are_fitted_to_whole_steps(catalog: Catalog) -> None:
    fitted = catalog.constants["training"]["fitted"]

    assert len(fitted) <= 14
    assert all(constant.prior is not None for constant in fitted.values())
    named = set(fitted) | set(catalog.constants["training"]["stated"]) | {"data_cost_frac"}  # tied to the other cost
    assert named >= set(constants_are_few())
