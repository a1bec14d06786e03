"""The search over layouts: exact, stable under blocks, graded where nothing fits; the frontier; offline replay."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from codesign.catalog import Catalog
from codesign.columns import over_mappings, remade, rows_of
from codesign.model.workload import serving_search
from codesign.model.workload.offline import full_load, static_batch
from codesign.model.workload.serving import ServingPoint, in_step
from codesign.model.workload.serving_inputs import Pool, ServingLayout
from codesign.model.workload.serving_layout import serving_layouts
from codesign.model.workload.serving_pools import (
    Engine,
    answer_pool,
    pooled_ceiling,
    prompt_pool,
    prompt_supply,
    replica_users_count,
)
from codesign.model.workload.serving_search import (
    ServingSystem,
    at_layout,
    best_serving,
    serving_frontier_tokens_per_s,
)
from codesign.serving_formats import serving_system

PARTS = ["h100-sxm", "b200-sxm", "gb200", "h200-sxm", "b300-sxm"]


@pytest.fixture(scope="module")
def system(catalog: Catalog) -> ServingSystem:
    return serving_system(catalog, "Qwen3-235B-A22B", PARTS, "trtllm", "fp8", 2000.0, 500.0, 2e9, 40e6)


@pytest.fixture(scope="module")
def layouts(system: ServingSystem) -> ServingLayout:
    return serving_layouts(system.transformer, 16, disaggregated=True)


def row(layouts: Any, index: int) -> ServingLayout:
    def pool(pool: Pool) -> Pool:
        return Pool(*(float(getattr(pool, f.name)[index]) for f in fields(Pool)))

    flag, users = float(layouts.disaggregated_flag[index]), float(layouts.users_count[index])
    return ServingLayout(pool(layouts.prefill), pool(layouts.decode), flag, users)


def every_score(system: ServingSystem, layouts: ServingLayout) -> Any:
    """Scores one layout at a time, the whole grid of them, (m, n)."""
    scores = []
    for index in range(np.size(layouts.users_count)):
        point = at_layout(system, row(layouts, index))
        broken = point.memory_excess_frac + point.cache_excess_frac + point.ttft_excess_frac + point.tpot_excess_frac
        scores.append(np.broadcast_to(np.where(broken > 0, -broken, point.output_tokens_per_s), (len(PARTS),)))
    return np.array(scores)


@pytest.mark.parametrize(
    ("ttft_ns", "tpot_ns", "memory_ratio", "feasible"),
    [(2e9, 40e6, 1.0, 5), (2e8, 12e6, 1.0, 3), (1e7, 40e6, 1.0, 0), (2e9, 1e6, 1.0, 0), (2e9, 40e6, 0.05, 0)],
    ids=["met", "met by some", "first token too late", "tokens too slow", "no memory"],
)
def test_the_search_finds_what_trying_every_layout_finds(
    system: ServingSystem, layouts: ServingLayout, ttft_ns: float, tpot_ns: float, memory_ratio: float, feasible: int
) -> None:
    some, machine = rows_of(layouts, slice(0, None, 7)), system.kernels.machine
    smaller = replace(machine, memory_bytes=memory_ratio * machine.memory_bytes)
    tried = replace(
        system,
        job=replace(system.job, ttft_limit_ns=ttft_ns, tpot_limit_ns=tpot_ns),
        kernels=replace(system.kernels, machine=smaller),
    )

    best = best_serving(tried, some, len(PARTS))

    brute = every_score(tried, some)
    order = np.argsort(-brute, axis=0, kind="stable")
    assert np.array_equal(best.layout_index, order[0])
    assert np.array_equal(best.runner_up_index, order[1])
    won = np.take_along_axis(brute, order, axis=0)[0] > 0.0
    assert np.array_equal(best.feasible_flag, won)
    assert won.sum() == feasible
    for index, found in ((order[0], best.point.output_tokens_per_s), (order[1], best.runner_up_tokens_per_s)):
        assert np.array_equal(found, at_layout(tried, rows_of(some, index)).output_tokens_per_s)


@pytest.mark.parametrize("users_ratio", [0.1, 1.0, 50.0])
def test_no_point_beats_its_ceiling(system: ServingSystem, layouts: ServingLayout, users_ratio: float) -> None:
    pooled = rows_of(layouts, np.flatnonzero(layouts.disaggregated_flag))
    crowded = replace(pooled, users_count=pooled.users_count * users_ratio)
    layout = remade(crowded, lambda column: column[None, :])
    s = over_mappings(replace(system, fabric=in_step(system.fabric, system.software)))
    users = replica_users_count(layout)
    engine = Engine(s.transformer, s.job, layout.decode, s.kernels, s.fabric, s.software, users)
    prompts, answers = prompt_pool(replace(engine, pool=layout.prefill)), answer_pool(engine)

    ceiling = pooled_ceiling(s.job, layout, prompt_supply(layout, s.fabric, s.queue, prompts), prompts, answers)

    point = at_layout(over_mappings(system), layout)
    assert np.array_equal(ceiling.memory_excess_frac, point.memory_excess_frac)
    assert np.array_equal(ceiling.cache_excess_frac, point.cache_excess_frac)
    assert np.all(ceiling.ttft_excess_frac <= point.ttft_excess_frac)
    assert np.all(ceiling.output_tokens_per_s >= point.output_tokens_per_s)
    bound = ceiling.output_tokens_per_s <= (1.0 + 1e-6) * np.asarray(point.output_tokens_per_s)
    assert users_ratio < 50.0 or bound.any(), "where prompts are the bottleneck the ceiling is the point"


def test_blocks_do_not_change_the_answer(
    system: ServingSystem, layouts: ServingLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = best_serving(system, layouts, len(PARTS))
    alone = best_serving(rows_of(system, slice(2, 3)), layouts, 1)
    monkeypatch.setattr(serving_search, "CHUNK_COUNT", 333)
    monkeypatch.setattr(serving_search, "GRID_COUNT", 2 * np.size(layouts.users_count))
    cut = best_serving(system, layouts, len(PARTS))

    for f in fields(ServingPoint):
        assert np.array_equal(getattr(whole.point, f.name), getattr(cut.point, f.name)), f.name
        one = np.broadcast_to(getattr(whole.point, f.name), (len(PARTS),))[2]
        assert np.array_equal(np.broadcast_to(getattr(alone.point, f.name), (1,))[0], one), f.name
    assert np.array_equal(whole.layout_index, cut.layout_index)
    assert np.array_equal(whole.runner_up_index, cut.runner_up_index)


def test_ties_go_to_the_lowest_index(system: ServingSystem, layouts: ServingLayout) -> None:
    twice = rows_of(layouts, np.tile(np.arange(300), 2))

    best = best_serving(system, twice, len(PARTS))

    assert np.all(np.asarray(best.layout_index) < 300)
    assert np.array_equal(np.asarray(best.runner_up_index), np.asarray(best.layout_index) + 300)


def test_an_impossible_service_level_still_gets_the_least_violating_layout(
    system: ServingSystem, layouts: ServingLayout
) -> None:
    hopeless = replace(system, job=replace(system.job, tpot_limit_ns=1.0))

    best = best_serving(hopeless, layouts, len(PARTS))

    assert np.all(best.feasible_flag == 0.0)
    fastest = min(float(np.min(at_layout(hopeless, row(layouts, i)).tpot_excess_frac)) for i in (0, 60, 200))
    assert float(np.min(best.point.tpot_excess_frac)) < fastest
    assert np.isfinite(np.asarray(best.point.output_tokens_per_s)).all()


def test_every_layout_divides_the_model_and_the_machine(system: ServingSystem, layouts: ServingLayout) -> None:
    t, count = system.transformer, 16
    for pool in (layouts.prefill, layouts.decode):
        size = pool.tp_count * pool.dp_count * pool.pp_count
        assert np.all(np.asarray(t.heads_count) % pool.tp_count == 0)
        assert np.all(np.asarray(t.experts_count) % pool.ep_count == 0)
        assert np.all((pool.tp_count * pool.dp_count) % pool.ep_count == 0)
        assert np.all(size * pool.workers_count <= count)
    shared = np.asarray(layouts.disaggregated_flag) == 0
    used = layouts.decode.workers_count * layouts.decode.tp_count * layouts.decode.dp_count * layouts.decode.pp_count
    assert np.all(np.asarray(used)[shared] == count)
    assert {1.0, 2.0, 4.0, 8.0, 16.0} <= set(np.asarray(layouts.decode.tp_count))


def test_the_frontier_falls_with_speed_and_touches_the_unlimited_optimum(
    system: ServingSystem, layouts: ServingLayout
) -> None:
    speeds = np.array([1e-6, 10.0, 30.0, 60.0, 120.0, 1e6])
    loose = replace(system, job=replace(system.job, tpot_limit_ns=1e15))

    frontier = serving_frontier_tokens_per_s(loose, layouts, len(PARTS), speeds)

    assert np.all(np.diff(frontier, axis=1) <= 0.0)
    assert np.array_equal(frontier[:, 0], best_serving(loose, layouts, len(PARTS)).point.output_tokens_per_s)
    assert np.all(frontier[:, -1] == 0.0)


def test_a_looser_service_level_never_costs_throughput(system: ServingSystem, layouts: ServingLayout) -> None:
    rates = [
        best_serving(replace(system, job=replace(system.job, tpot_limit_ns=limit)), layouts, len(PARTS))
        for limit in (15e6, 40e6, 200e6)
    ]

    tight, middle, loose = (np.where(np.asarray(r.feasible_flag) > 0, r.point.output_tokens_per_s, 0.0) for r in rates)
    assert np.all(middle >= tight)
    assert np.all(loose >= middle)


@pytest.mark.parametrize("resource", ["memory", "memory rate", "arithmetic", "scale-up rate", "domain"])
def test_more_of_a_resource_never_makes_the_best_layout_worse(
    system: ServingSystem, layouts: ServingLayout, resource: str
) -> None:
    factors = np.array([1.0, 1.1, 1.5, 2.0, 4.0])
    one = rows_of(system, np.zeros(len(factors), dtype=np.intp))
    k, up = one.kernels, one.fabric.scale_up

    def more(engine: Any, name: str) -> Any:
        return replace(engine, **{name: getattr(engine, name) * factors})

    engines = ("projection", "dense", "expert", "head", "attention")
    changed = {
        "memory": lambda: replace(one, kernels=replace(k, machine=more(k.machine, "memory_bytes"))),
        "memory rate": lambda: replace(
            one, kernels=replace(k, **{e: more(getattr(k, e), "memory_rate_gbps") for e in engines})
        ),
        "arithmetic": lambda: replace(
            one, kernels=replace(k, **{e: more(getattr(k, e), "peak_gflops") for e in engines})
        ),
        "scale-up rate": lambda: replace(one, fabric=replace(one.fabric, scale_up=more(up, "rate_gbps"))),
        "domain": lambda: replace(one, fabric=replace(one.fabric, scale_up=more(up, "domain_count"))),
    }[resource]()

    point = best_serving(changed, layouts, len(factors)).point

    assert np.all(np.diff(np.asarray(point.output_tokens_per_s)) >= 0.0)


def test_a_static_batch_is_its_prompts_and_its_steps(catalog: Catalog) -> None:
    s = serving_system(catalog, "Llama-3.1-8B", ["h100-sxm"], "trtllm", "bf16", 128.0, 9.0)
    pool = Pool(1.0, 1.0, 1.0, 1.0, 1.0)

    point = static_batch(s.transformer, s.job, pool, s.kernels, s.fabric, s.software, 16.0)

    assert np.allclose(point.total_ns, point.prompt_ns + 8.0 * np.asarray(point.step_ns), rtol=1e-12)
    # 16 GB of weights over 3.35 TB/s is the floor of a step
    assert 16.06e9 / 3.35e12 * 1e9 < float(np.ravel(point.step_ns)[0]) < 2.5 * 16.06e9 / 3.35e12 * 1e9


def test_full_load_is_bounded_by_cache_limit_and_queue(catalog: Catalog) -> None:
    s = serving_system(catalog, "Llama-3.1-8B", ["h100-sxm"], "trtllm", "fp8", 1000.0, 1000.0)
    pool = Pool(1.0, 1.0, 1.0, 1.0, 1.0)

    def batch(requests: float, limit: float) -> float:
        point = full_load(s.transformer, s.job, pool, s.kernels, s.fabric, s.software, requests, limit)
        return float(np.ravel(point.batch_count)[0])

    assert batch(10.0, 2048.0) == 10.0
    assert batch(1000.0, 100.0) == 100.0
    # 64 KiB of 8-bit cache per token, 2000 tokens a sequence, 92 % of 80 GiB less 9 GB of weights
    assert batch(1e6, 1e6) == pytest.approx((0.92 * 80 * 2**30 - 9.1e9) / (65536 * 2000), rel=0.02)
