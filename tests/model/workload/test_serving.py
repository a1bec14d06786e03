"""The serving point: parts, batches, directions, a plain-Python twin, limits."""

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codesign.cases.fit_serving import fit_rows
from codesign.cases.serving_bind import ServingBatch
from codesign.catalog import Catalog, load_catalog
from codesign.model.fabric.collectives import all_reduce_ns, distinct_ranks_count, inner_count, moe_exchange_ns
from codesign.model.kernels.attention import decode_attention_ns, prefill_attention_ns
from codesign.model.kernels.gemm import gemm_ns
from codesign.model.kernels.mla import mla_decode_ns, mla_prefill_ns
from codesign.model.kernels.moe import moe_gemm_ns
from codesign.model.workload.queueing_ttft import occupancy_frac, running_sequences_count
from codesign.model.workload.serving import ServingPoint
from codesign.model.workload.serving_inputs import Pool, ServingLayout
from codesign.model.workload.serving_memory import rank_cache_bytes, rank_weights_bytes
from codesign.model.workload.serving_search import ServingSystem, at_layout
from codesign.serving_formats import numbers_of, serving_system

TPOT_PARTS = [f.name for f in fields(ServingPoint) if f.name.startswith("tpot_") and f.name not in (
    "tpot_ns", "tpot_excess_frac")]  # fmt: skip
TTFT_PARTS = [f.name for f in fields(ServingPoint) if f.name.startswith("ttft_") and f.name not in (
    "ttft_ns", "ttft_excess_frac")]  # fmt: skip


@pytest.fixture(scope="module")
def replayed(catalog: Catalog) -> ServingBatch:
    return fit_rows(catalog).batch


def one_layout(
    users: float = 64.0, tp: float = 1.0, dp: float = 1.0, pp: float = 1.0, ep: float = 1.0
) -> ServingLayout:
    pool = Pool(1.0, tp, dp, pp, ep)
    return ServingLayout(pool, pool, 0.0, users)


def plain(struct: Any) -> Any:
    """Nested structs of one row as plain Python numbers."""
    values = {f.name: getattr(struct, f.name) for f in fields(struct) if f.init}
    return type(struct)(
        **{k: plain(v) if is_dataclass(v) else float(np.ravel(np.asarray(v))[0]) for k, v in values.items()}
    )


def test_the_parts_of_both_times_add_up(replayed: ServingBatch) -> None:
    point = at_layout(replayed.system, replayed.layout)

    for names, total in ((TPOT_PARTS, point.tpot_ns), (TTFT_PARTS, point.ttft_ns)):
        parts = sum(np.asarray(getattr(point, name)) for name in names)
        assert np.abs(parts / np.asarray(total) - 1.0).max() < 1e-12
        assert min(np.asarray(getattr(point, name)).min() for name in names) > -1e-6 * np.asarray(total).min()


@pytest.mark.parametrize("count", [1, 7, 64])
def test_a_batch_of_measured_rows_is_its_rows(replayed: ServingBatch, count: int) -> None:
    whole = at_layout(replayed.system, replayed.layout)

    for start in (0, 300, 700, 1000 - count):
        rows = np.arange(start, start + count)
        part = replayed.pick(rows)
        point = at_layout(part.system, part.layout)
        for f in fields(ServingPoint):
            expected = np.broadcast_to(getattr(whole, f.name), np.shape(replayed.layout.users_count))[rows]
            assert np.array_equal(np.broadcast_to(getattr(point, f.name), (count,)), expected), f.name


def test_everything_stays_finite_at_absurd_loads_and_sizes(catalog: Catalog) -> None:
    for model, precision in (("Llama-3.1-405B", "fp16"), ("DeepSeek-V3", "fp4"), ("Qwen3.5-397B-A17B", "fp8")):
        system = serving_system(catalog, model, ["rtx-pro-6000", "gb200"], "vllm", precision, 1e6, 1.0)
        for users in (1e-3, 1.0, 1e9):
            point = at_layout(system, one_layout(users))
            for f in fields(ServingPoint):
                value = np.asarray(getattr(point, f.name))
                assert np.isfinite(value).all(), (model, users, f.name)
                assert (value >= 0.0).all(), (model, users, f.name)


def test_a_model_that_does_not_fit_says_by_how_much(catalog: Catalog) -> None:
    system = serving_system(catalog, "Llama-3.1-70B", ["h100-sxm"], "vllm", "bf16")

    excess = [float(np.ravel(at_layout(system, one_layout(8.0, tp)).memory_excess_frac)[0]) for tp in (1.0, 2.0, 8.0)]

    assert excess[0] > excess[1] >= excess[2] == 0.0
    # 141 GB of weights on 86e9 bytes of which 92 % may be used
    assert excess[0] == pytest.approx(141.1e9 / (80 * 2**30) - 0.92, abs=0.02)


@settings(max_examples=40, deadline=None)
@given(
    users=st.floats(2.0, 512.0), tp=st.sampled_from([1.0, 2.0, 4.0, 8.0]), factor=st.floats(1.05, 3.0),
    model=st.sampled_from(["Llama-3.1-70B", "Qwen3-30B-A3B"]),
)  # fmt: skip
def test_more_of_a_resource_never_slows_a_pinned_layout(users: float, tp: float, factor: float, model: str) -> None:
    system = serving_system(load_catalog(), model, ["h200-sxm"], "vllm", "fp8")
    before = at_layout(system, one_layout(users, tp))

    def better(change: Callable[[ServingSystem], ServingSystem]) -> ServingPoint:
        return at_layout(change(system), one_layout(users, tp))

    def network(s: ServingSystem) -> ServingSystem:
        up = s.fabric.scale_up
        faster = replace(up, rate_gbps=up.rate_gbps * factor, fast_rate_gbps=up.fast_rate_gbps * factor)
        return replace(s, fabric=replace(s.fabric, scale_up=faster))

    def arithmetic(s: ServingSystem) -> ServingSystem:
        def more(engine: Any) -> Any:
            return replace(engine, peak_gflops=engine.peak_gflops * factor)

        k = s.kernels
        return replace(s, kernels=replace(k, projection=more(k.projection), dense=more(k.dense), expert=more(k.expert)))

    for change in (network, arithmetic):
        after = better(change)
        assert np.all(after.output_tokens_per_s >= before.output_tokens_per_s * (1.0 - 1e-9)), change.__name__


def test_more_users_wait_longer_and_never_receive_faster(catalog: Catalog) -> None:
    system = serving_system(catalog, "Qwen3-32B", ["h100-sxm"], "vllm", "fp8")
    users = np.array([1.0, 4.0, 16.0, 64.0, 128.0, 512.0])

    point = at_layout(system, one_layout(users, 4.0))  # type: ignore[arg-type]

    assert (np.diff(point.tpot_ns) >= 0).all()
    assert (np.diff(point.ttft_ns) > 0).all()
    assert (np.diff(point.output_tokens_per_s) > 0).all()


@settings(max_examples=200, deadline=None)
@given(
    osl=st.floats(1.0, 1e4), step=st.floats(1.0, 1e8), grows=st.floats(0.0, 1e9), wait=st.floats(0.0, 1e11),
    steps=st.floats(0.0, 20.0), slots=st.floats(1e-4, 1.0),
)  # fmt: skip
def test_the_occupancy_balances_waiting_and_receiving(
    osl: float, step: float, grows: float, wait: float, steps: float, slots: float
) -> None:
    share = float(np.asarray(occupancy_frac(osl, step, grows, wait, steps, slots)))

    assert 0.0 < share <= slots * (1.0 + 1e-12)
    token = step + share * grows
    assert share * ((osl + steps) * token + wait) == pytest.approx(slots * osl * token, rel=1e-9)


def test_a_step_holds_at_least_the_one_who_looks() -> None:
    assert np.array_equal(running_sequences_count(np.array([0.1, 1.0, 9.0]), 0.5), [1.0, 1.0, 5.0])


def twin(s: Any, layout: Any) -> tuple[float, float]:
    """Time per token and to the first token of an aggregated engine, one candidate, one layout, plain Python."""
    t, j, k, f, w, q, p = s.transformer, s.job, s.kernels, s.fabric, s.software, s.queue, layout.decode
    floor = dict(dispatch=replace(f.dispatch, floor_ns=w.exchange_start_frac * f.dispatch.floor_ns),
                 combine=replace(f.combine, floor_ns=w.exchange_start_frac * f.combine.floor_ns))  # fmt: skip
    f = replace(f, **floor)
    users = layout.users_count / (p.workers_count * p.dp_count)
    context, ranks = j.isl_count + 0.5 * j.osl_count, p.tp_count * p.dp_count
    heads, kv = t.heads_count / p.tp_count, max(t.kv_heads_count / p.tp_count, 1.0)

    def product(m: float, n: float, depth: float, weight: float, activation: float, engine: Any) -> Any:
        return float(gemm_ns(m, n, depth, weight, activation, engine))

    def body(tokens: float, head_rows: float) -> Any:
        weight, act = j.projection_weight_bytes, j.projection_activation_bytes
        if t.mla_flag:
            shapes = [
                (t.q_lora_count + t.kv_lora_count + t.qk_rope_count, t.hidden_count),
                (heads * (t.qk_nope_count + t.qk_rope_count), t.q_lora_count),
                (heads * (t.qk_nope_count + t.v_head_dim_count), t.kv_lora_count),
                (t.hidden_count, heads * t.v_head_dim_count),
            ]
        else:
            shapes = [((heads + 2 * kv) * t.head_dim_count, t.hidden_count), (t.hidden_count, heads * t.head_dim_count)]
        total = t.attention_layers_count * math.fsum(
            product(tokens, n, d, weight, act, k.projection) for n, d in shapes
        )

        def feed(width: float) -> Any:
            inner = width / p.tp_count
            weight, act = j.dense_weight_bytes, j.dense_activation_bytes
            up = product(tokens, (1 + t.gated_flag) * inner, t.hidden_count, weight, act, k.dense)
            return up + product(tokens, t.hidden_count, inner, weight, act, k.dense)

        shared = t.shared_experts_count * t.shared_ffn_count
        if t.dense_layers_count:
            total += t.dense_layers_count * feed(t.ffn_count)
        if shared:
            total += t.moe_layers_count * feed(shared)
        inner = float(inner_count(ranks, 1.0, f.scale_up.domain_count))
        if t.experts_count:
            sent = float(distinct_ranks_count(t.top_k_count, ranks)) / ranks if p.dp_count > 1 else 1.0
            total += t.moe_layers_count * float(moe_gemm_ns(
                tokens * p.dp_count * sent, t.moe_hidden_count, t.moe_ffn_count * p.ep_count / ranks,
                t.top_k_count / sent, t.experts_count, t.experts_count / p.ep_count, j.expert_weight_bytes,
                j.expert_activation_bytes, k.expert, t.gated_flag, w.expert_skew_ratio))  # fmt: skip
            if p.dp_count > 1:
                share = tokens / p.tp_count
                for width, back in ((j.expert_activation_bytes, 0.0), (2.0, 1.0)):
                    token_bytes = width * t.moe_hidden_count
                    one = moe_exchange_ns(share, token_bytes, t.top_k_count, ranks, inner, f, back)
                    total += t.moe_layers_count * float(one)
        mixers = t.attention_layers_count + t.linear_layers_count
        group = float(inner_count(p.tp_count, 1.0, f.scale_up.domain_count))
        sums = mixers + t.dense_layers_count + (0.0 if p.dp_count > 1 else t.moe_layers_count)
        total += sums * float(all_reduce_ns(2.0 * t.hidden_count * tokens, p.tp_count, group, f))
        norms = 4.0 * t.hidden_count * (mixers + t.dense_layers_count + t.moe_layers_count)
        rotary = 2.0 * t.attention_layers_count * (t.heads_count + 2 * t.kv_heads_count) * t.head_dim_count / p.tp_count
        act_width = (2 + t.gated_flag) * (t.dense_layers_count * t.ffn_count + t.moe_layers_count * shared) / p.tp_count
        machine = k.machine
        total += 8.0 * 2.0 * tokens * (norms + rotary + act_width) / (machine.memory_rate_gbps * machine.memory_frac)
        total += product(head_rows, t.vocab_count / p.tp_count, t.hidden_count, j.head_weight_bytes, 2.0, k.head)
        kernels = (5 + 4 * t.mla_flag) * mixers + 3 * t.dense_layers_count
        kernels += (7 + (2 if t.shared_experts_count else 0)) * t.moe_layers_count
        return total + w.kernel_gap_ns * kernels

    def decode_core(tokens: float) -> Any:
        if t.mla_flag:
            one = mla_decode_ns(
                tokens, context, heads, t.kv_lora_count, t.qk_rope_count, j.kv_bytes, k.latent_attention
            )
        else:
            one = decode_attention_ns(tokens, context, heads, kv, t.head_dim_count, j.kv_bytes, k.attention)
        return t.attention_layers_count * float(one)

    def prompt_core() -> Any:
        n = j.isl_count
        if t.mla_flag:
            key = t.qk_nope_count + t.qk_rope_count
            one = mla_prefill_ns(1.0, n, n, heads, key, t.v_head_dim_count, k.latent_attention)
        else:
            one = prefill_attention_ns(1.0, n, n, heads, kv, t.head_dim_count, k.attention)
        return t.attention_layers_count * float(one)

    def running(share: float) -> Any:
        return 1.0 + share * max(users - 1.0, 0.0)

    def tokens_of(share: float) -> Any:
        return max(running(share) * (w.straggler_ratio if p.dp_count > 1 else 1.0), 1.0)

    def step(share: float) -> Any:
        tokens = tokens_of(share)
        host = w.step_host_ns + w.sequence_host_ns * running(share)
        return (body(tokens, tokens) + decode_core(tokens) + host) / j.speculation_ratio

    room = w.kv_memory_frac * k.machine.memory_bytes - float(rank_weights_bytes(t, j, p))
    slots = max(room / float(rank_cache_bytes(t, j, p, j.isl_count + w.kv_reserve_frac * j.osl_count)), 1.0)
    full = min(slots / max(users, 1.0), 1.0)
    assert j.isl_count <= w.chunk_count
    riders = tokens_of(full)
    alone = body(j.isl_count, 1.0) + prompt_core() + w.step_host_ns
    joint = max(body(j.isl_count + riders, 1.0 + riders) + prompt_core() - body(riders, riders), 0.0)
    prompt = w.prefill_work_ratio * ((1.0 - w.mixed_frac) * alone + w.mixed_frac * joint)
    others = max(users - 1.0, 0.0)
    crowd = others * prompt / j.osl_count
    wait = prompt * (q.prompt_ratio + q.burst_frac * others) + q.start_ns

    def balance(start: float, slope: float) -> Any:
        a = (j.osl_count + q.step_ratio) * slope
        b = (j.osl_count + q.step_ratio) * start + wait - full * j.osl_count * slope
        c = full * j.osl_count * start
        root = math.sqrt(b * b + 4.0 * a * c)
        return 2.0 * c / (b + root) if b > 0 else (root - b) / (2.0 * a)

    first = step(full)
    guess = balance(first, crowd)
    slope = max(first - step(guess), 0.0) / (full - guess) if full - guess > 1e-9 else 0.0
    share = balance(first - slope * full, slope + crowd)
    tpot = step(share) + crowd * share
    ttft = wait + q.step_ratio * tpot + (1.0 - full) / full * (j.osl_count * tpot + wait)
    return tpot, ttft


@pytest.mark.parametrize(
    ("model", "part", "precision", "engine", "layout"),
    [
        ("Llama-3.1-70B", "h100-sxm", "fp8", "vllm", one_layout(32.0, 4.0)),
        ("Qwen3-235B-A22B", "h200-sxm", "fp8", "sglang", one_layout(64.0, 8.0, ep=8.0)),
        ("DeepSeek-V3", "gb200", "fp4", "trtllm", one_layout(700.0, 1.0, dp=32.0, ep=32.0)),
        ("Kimi-K2", "b200-sxm", "fp4", "trtllm", one_layout(9.0, 8.0)),
    ],
)
def test_a_plain_python_twin_agrees(
    catalog: Catalog, model: str, part: str, precision: str, engine: str, layout: ServingLayout
) -> None:
    system = serving_system(catalog, model, [part], engine, precision, 2000.0, 500.0)

    point = at_layout(system, layout)

    tpot, ttft = twin(plain(system), layout)
    assert float(np.ravel(point.tpot_ns)[0]) == pytest.approx(tpot, rel=1e-12)
    assert float(np.ravel(point.ttft_ns)[0]) == pytest.approx(ttft, rel=1e-12)


def test_a_pool_for_prompts_takes_them_out_of_the_decode_step(catalog: Catalog) -> None:
    system = serving_system(catalog, "Llama-3.1-70B", ["h100-sxm"], "vllm", "fp8", 8000.0, 500.0)
    decode, entry = Pool(1.0, 4.0, 1.0, 1.0, 1.0), Pool(3.0, 4.0, 1.0, 1.0, 1.0)

    shared = at_layout(system, ServingLayout(decode, decode, 0.0, 32.0))
    apart = at_layout(system, ServingLayout(entry, decode, 1.0, 32.0))
    starved = at_layout(system, ServingLayout(replace(entry, workers_count=0.2), decode, 1.0, 32.0))

    assert np.all(apart.tpot_interference_ns == 0.0)
    assert np.all(apart.tpot_ns < shared.tpot_ns)
    assert np.all(starved.occupancy_frac < apart.occupancy_frac)
    assert np.all(starved.tpot_ns < apart.tpot_ns)  # a starved pool runs small batches
    assert np.all(starved.ttft_ns > apart.ttft_ns)


def test_speculation_shortens_the_step_and_nothing_else(catalog: Catalog) -> None:
    system = serving_system(catalog, "DeepSeek-V3", ["b200-sxm"], "trtllm", "fp4")
    faster = replace(system, job=replace(system.job, speculation_ratio=2.0))

    one, two = (at_layout(s, one_layout(1.0, 8.0)) for s in (system, faster))

    assert np.all(one.tpot_interference_ns == 0.0)
    assert np.allclose(one.tpot_ns, 2.0 * np.asarray(two.tpot_ns), rtol=1e-12)


def test_numbers_of_a_column_struct_are_plain() -> None:
    assert numbers_of(Pool(*np.ones((5, 1)))).tp_count == 1.0
