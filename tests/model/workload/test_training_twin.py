"""The training step once more, one job at a time in plain Python, against the arrays."""

import math
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from codesign.cases.rows import read_rows
from codesign.cases.training import bind, run
from codesign.catalog import Catalog
from codesign.model.fabric.collectives import all_gather_ns, all_reduce_ns, moe_exchange_ns, point_to_point_ns
from codesign.resources import case_data
from codesign.software import training_constants


def plain(struct: Any, row: int) -> Any:
    """One row of a struct as plain floats."""
    out = SimpleNamespace()
    for field in fields(struct):
        value = getattr(struct, field.name)
        if hasattr(value, "__dataclass_fields__"):
            setattr(out, field.name, plain(value, row))
        else:
            column = np.asarray(value, dtype=float).reshape(-1)
            setattr(out, field.name, float(column[row if len(column) > 1 else 0]))
    return out


# ---- collectives: the fabric's own laws, on plain floats; they have tests of their own


def members(group: float, stride: float, domain: float) -> float:
    return min(group, max(1.0, math.floor(domain / stride)))


def half(message: float, group: float, inner: float, fabric: Any) -> float:
    return float(all_gather_ns(message, group, inner, fabric))


def all_reduce(message: float, group: float, inner: float, fabric: Any) -> float:
    return float(all_reduce_ns(message, group, inner, fabric))


def point_to_point(message: float, crosses: bool, fabric: Any) -> float:
    return float(point_to_point_ns(message, float(crosses), fabric))


def moe_exchange(tokens: float, hidden: float, top_k: float, group: float, inner: float, fabric: Any) -> float:
    return float(moe_exchange_ns(tokens, hidden, top_k, group, inner, fabric))


# ---- kernels


def gemm(m: float, n: float, k: float, size: float, e: Any, quantise: float, started: bool) -> float:
    compute = (m * n + e.idle_area_count) * (k + e.half_depth_count) * 2.0 / (e.peak_gflops * e.compute_frac)
    per_byte = 8.0 / (e.memory_rate_gbps * e.memory_frac)
    memory = (n * k * size + m * k * size + 2.0 * m * n) * per_byte
    begin = e.launch_ns + e.step_ns * min(k, e.steps_count) if started else 0.0
    return begin + m * k * quantise * per_byte + max(compute, memory) + min(compute, memory) * e.exposed_frac


def attention_core(batch: float, s: float, heads: float, kv: float, width: float, e: Any) -> float:
    scale = 128.0 / (128.0 + e.head_offset_count)
    per_score = 4.0 * scale / (e.peak_gflops * e.compute_frac)
    scores = batch * heads * s * (0.5 * s + e.key_offset_count) * (width + e.head_offset_count) * per_score
    values = 4.0 * batch * (s * heads + s * kv) * width * 8.0 / (e.memory_rate_gbps * e.prefill_memory_frac)
    return e.prefill_launch_ns + scores + values + batch * heads * e.block_ns + s * e.key_step_ns


def latent_core(batch: float, s: float, heads: float, key: float, value: float, e: Any) -> float:
    keys = 0.5 * s + e.key_offset_count
    compute = 2.0 * batch * heads * s * keys * (key + value) / (e.peak_gflops * e.compute_frac)
    moved = 2.0 * batch * heads * (s + s) * (key + value) * 8.0 / (e.memory_rate_gbps * e.prefill_memory_frac)
    return e.prefill_launch_ns + compute + moved + batch * heads * e.block_ns + s * e.key_step_ns


# ---- the layer


def layer_products(t: Any, job: Any, lay: Any, e: Any, soft: Any, c: Any) -> SimpleNamespace:
    learns = 0.0 if job.trainable_frac < 1.0 else 1.0
    tokens = lay.micro_batch_count * job.sequence_count / lay.cp_count
    tp = lay.tp_count

    def linear(rows: float, k: float, n: float, head: bool = False, started: bool = True) -> tuple[float, float]:
        engine, size = (e.head, 2.0) if head else (e.gemm, job.operand_bytes)
        q = engine.quantise_bytes * (1.0 if head else c.quantise_ratio)
        forward = gemm(rows, n, k, size, engine, q, started)
        backward = gemm(rows, k, n, size, engine, q, started)
        if learns:
            backward += gemm(n, k, rows, size, engine, 0.0 if not head else q, started)
        if head and engine.quantise_launch_ns:
            raise AssertionError("the head is not quantised")
        return forward, backward

    def total(*parts: tuple[float, float]) -> tuple[float, float]:
        return sum(p[0] for p in parts), sum(p[1] for p in parts)

    heads = t.heads_count / tp
    if t.mla_flag:
        key = t.qk_nope_count + t.qk_rope_count
        rank = t.q_lora_count or t.hidden_count
        mixer = total(
            linear(tokens, t.hidden_count, t.q_lora_count + t.kv_lora_count + t.qk_rope_count),
            linear(tokens, rank, heads * key),
            linear(tokens, t.kv_lora_count, heads * (t.qk_nope_count + t.v_head_dim_count)),
            linear(tokens, heads * t.v_head_dim_count, t.hidden_count),
        )
    else:
        width = (heads * (1.0 + t.attention_gate_flag) + 2.0 * max(t.kv_heads_count / tp, 1.0)) * t.head_dim_count
        mixer = total(linear(tokens, t.hidden_count, width), linear(tokens, heads * t.head_dim_count, t.hidden_count))

    def feed(rows: float, hidden: float, inner: float, started: bool = True) -> tuple[float, float]:
        return total(
            linear(rows, hidden, (1.0 + t.gated_flag) * inner, started=started),
            linear(rows, inner, hidden, started=started),
        )

    layer = [tuple(t.attention_layers_count * x for x in mixer)]
    if t.dense_layers_count:
        layer.append(tuple(t.dense_layers_count * x for x in feed(tokens, t.hidden_count, t.ffn_count / tp)))
    if t.moe_layers_count:
        layer.append(tuple(t.moe_layers_count * x for x in experts(t, job, lay, e, tokens, learns, linear, feed)))
    if t.linear_layers_count:
        width = t.linear_projection_count / (3.0 * t.hidden_count * tp)
        both = total(linear(tokens, t.hidden_count, 2.0 * width), linear(tokens, width, t.hidden_count))
        layer.append(tuple(t.linear_layers_count * x for x in both))
    slow = 1.0 if soft.compiled_flag else c.gemm_ratio
    last = 0.0
    if t.dense_layers_count:
        q = e.gemm.quantise_bytes * c.quantise_ratio
        last = t.dense_layers_count * gemm(tokens, t.hidden_count, t.ffn_count / tp, job.operand_bytes, e.gemm, q, True)
    head = linear(tokens, t.hidden_count, t.vocab_count / tp, head=True)
    return SimpleNamespace(
        forward=slow * sum(p[0] for p in layer) / t.layers_count,
        backward=slow * sum(p[1] for p in layer) / t.layers_count,
        last=slow * last / t.layers_count,
        head=slow * (head[0] + head[1]),
    )


def experts(
    t: Any, job: Any, lay: Any, e: Any, tokens: float, learns: float, linear: Any, feed: Any
) -> tuple[float, float]:
    tp = lay.tp_count
    cut = tp if lay.expert_tp_flag else 1.0
    local = max(t.experts_count / lay.ep_count, 1.0)
    rows = max(tokens * t.top_k_count * cut / tp * job.imbalance_ratio / local, 1.0)
    routed = feed(rows, t.moe_hidden_count, t.moe_ffn_count / cut, started=False)
    forward = local * routed[0] + 2.0 * e.gemm.launch_ns
    backward = local * routed[1] + (2.0 + 2.0 * learns) * e.gemm.launch_ns
    extra = [linear(tokens / tp, t.hidden_count, t.experts_count)]
    if t.shared_experts_count:
        extra.append(feed(tokens, t.hidden_count, t.shared_ffn_count * t.shared_experts_count / tp))
    if t.moe_hidden_count < t.hidden_count:
        extra.append(linear(tokens / tp, t.hidden_count, t.moe_hidden_count))
        extra.append(linear(tokens / tp, t.moe_hidden_count, t.hidden_count))
    return forward + sum(p[0] for p in extra), backward + sum(p[1] for p in extra)


def layer_traffic(t: Any, job: Any, lay: Any, e: Any, mach: Any, soft: Any, c: Any) -> SimpleNamespace:
    tp, s, b = lay.tp_count, job.sequence_count, lay.micro_batch_count
    tokens, heads = b * s / lay.cp_count, t.heads_count / tp
    per_byte = 8.0 / (mach.memory_rate_gbps * mach.memory_frac)
    if t.mla_flag:
        core = latent_core(b, s, heads, t.qk_nope_count + t.qk_rope_count, t.v_head_dim_count, e.latent)
    else:
        core = attention_core(b, s, heads, max(t.kv_heads_count / tp, 1.0), t.head_dim_count, e.attention)
    window = min(t.window_count or s, s)
    seen = (window - 0.5 * window * window / s) / (0.5 * s)
    core *= (1.0 - t.windowed_layers_frac * (1.0 - seen)) / (lay.cp_count * soft.attention_frac) * c.attention_ratio
    unfused = soft.unfused_attention_flag
    if 0.0 < t.window_count < s:
        unfused = max(unfused, soft.window_unfused_flag)
    score = unfused * c.score_ratio * b * heads * s * s / lay.cp_count * per_byte
    share = t.attention_layers_count / t.layers_count
    hybrid = min(t.linear_layers_count, 1.0)
    plain_part = 1.0 - (soft.hybrid_fused_frac if hybrid else soft.expert_fused_frac)
    split = tp if soft.sequence_parallel_flag else 1.0
    parts = t.attention_layers_count + t.linear_layers_count + t.dense_layers_count + t.moe_layers_count
    values = 5.0 * t.hidden_count / split * parts
    values += t.attention_layers_count * 2.0 * (t.heads_count + 2.0 * t.kv_heads_count) * t.head_dim_count / tp
    values += t.dense_layers_count * (2.0 + t.gated_flag) * t.ffn_count / tp
    inner = t.top_k_count * t.moe_ffn_count * plain_part + t.shared_experts_count * t.shared_ffn_count
    values += t.moe_layers_count * (2.0 + t.gated_flag) * inner / tp
    chain = c.elementwise_ratio * (c.compiled_ratio if soft.compiled_flag else 1.0)
    kernels = 14.0 * t.attention_layers_count + 10.0 * t.dense_layers_count
    kernels += 14.0 * t.moe_layers_count + 12.0 * t.linear_layers_count
    state = 4.0 * tokens * t.linear_projection_count / t.hidden_count / tp * t.linear_layers_count / t.layers_count
    moved = chain * 2.0 * tokens * values / t.layers_count + c.state_ratio * state
    copies = t.top_k_count * t.moe_hidden_count / tp
    permute = 2.0 * tokens * 4.0 * plain_part * copies * t.moe_layers_count / t.layers_count
    return SimpleNamespace(
        attention_forward=share * (core + 13.0 * score),
        attention_backward=share * (2.5 * core / c.attention_backward_frac + 17.0 * score),
        elementwise=c.kernel_ns * soft.launch_ratio * kernels / t.layers_count + moved * per_byte,
        permute=c.permute_ratio * permute * per_byte,
        head=12.0 * chain * tokens * t.vocab_count / tp * per_byte,
    )


def layer_links(t: Any, job: Any, lay: Any, fabric: Any, soft: Any) -> SimpleNamespace:
    tp, domain = lay.tp_count, fabric.scale_up.domain_count
    tokens = lay.micro_batch_count * job.sequence_count / lay.cp_count
    hidden = 2.0 * tokens * t.hidden_count
    inner = members(tp, 1.0, domain)
    gather = half(hidden, tp, inner, fabric)
    part = 2.0 * gather if soft.sequence_parallel_flag else all_reduce(hidden, tp, inner, fabric)
    cut = lay.expert_tp_flag * t.top_k_count + min(t.shared_experts_count, 1.0)
    parts = t.attention_layers_count + t.linear_layers_count + t.dense_layers_count + cut * t.moe_layers_count
    width = t.qk_nope_count + t.qk_rope_count if t.mla_flag else t.head_dim_count
    kv = 4.0 * lay.micro_batch_count * job.sequence_count * width * max(t.kv_heads_count / tp, 1.0)
    context = half(kv, lay.cp_count, members(lay.cp_count, tp, domain), fabric)
    stride = tp if lay.expert_tp_flag else 1.0
    sent = moe_exchange(
        tokens / tp,
        2.0 * t.moe_hidden_count,
        max(t.top_k_count, 1.0),
        lay.ep_count,
        members(lay.ep_count, stride, domain),
        fabric,
    )
    again = 0.0 if soft.sequence_parallel_flag else gather
    return SimpleNamespace(
        tensor=part * parts / t.layers_count,
        context=context * t.attention_layers_count / t.layers_count,
        expert=job.imbalance_ratio * 2.0 * sent * t.moe_layers_count / t.layers_count,
        inside=point_to_point(hidden / tp, False, fabric) + again,
        outside=point_to_point(hidden / tp, True, fabric) + again,
    )


def exposed(collective: float, window: float, overlaps: float, cost: float) -> float:
    return max(collective - window, cost * collective) if overlaps else collective


def joined(busy: float, host: float, sharp: float) -> float:
    lead = max(busy, host)
    return lead * (1.0 + (min(busy, host) / lead) ** sharp) ** (1.0 / sharp)


def layer(t: Any, job: Any, lay: Any, e: Any, fabric: Any, mach: Any, soft: Any, c: Any) -> SimpleNamespace:
    work, moved = layer_products(t, job, lay, e, soft, c), layer_traffic(t, job, lay, e, mach, soft, c)
    links = layer_links(t, job, lay, fabric, soft)
    hybrid = min(t.linear_layers_count, 1.0)
    hides, cost = soft.expert_overlap_flag * (1.0 - hybrid), c.overlap_cost_frac
    passes = []
    for product, core, element, round_trips in (
        (work.forward, moved.attention_forward, moved.elementwise + moved.permute, 1.0),
        (work.backward, moved.attention_backward, 2.0 * moved.elementwise + moved.permute, 2.0),
    ):
        product, core = product / mach.clock_frac, core / mach.clock_frac
        tensor = exposed(links.tensor, product, soft.tp_overlap_flag, cost)
        context = exposed(round_trips * links.context, core, 1.0, cost)
        expert = exposed(links.expert, product, hides, cost)
        total = product + core + element + tensor + context + expert
        passes.append(SimpleNamespace(core=core, element=element, total=total))
    forward, backward = passes
    dropped = soft.compiled_flag * work.last / mach.clock_frac
    some = lay.attention_recompute_flag * forward.core + lay.elementwise_recompute_flag * forward.element
    again = lay.full_recompute_frac * (forward.total - dropped) + (1.0 - lay.full_recompute_frac) * some
    local = min(t.experts_count, max(t.experts_count / lay.ep_count, 1.0))
    kernels = 14.0 * t.attention_layers_count + 10.0 * t.dense_layers_count + 12.0 * t.linear_layers_count
    kernels = kernels * (1.0 - soft.graph_frac) + 14.0 * t.moe_layers_count * (1.0 - soft.router_graph_frac)
    looped = soft.expert_loop_flag * c.expert_launches_count * local * t.moe_layers_count
    kernels += looped * (1.0 - soft.expert_graph_frac * (1.0 - hybrid))
    host = mach.launch_ns * soft.launch_ratio * kernels / t.layers_count
    first = joined(forward.total, host, c.host_sharpness_count)
    second = joined(backward.total + again, host * (2.0 + lay.full_recompute_frac), c.host_sharpness_count)
    return SimpleNamespace(
        layer=first + second,
        forward=first,
        head=work.head / mach.clock_frac + moved.head,
        inside=links.inside,
        outside=links.outside,
    )


# ---- the step


def weights(t: Any, lay: Any, stage: float, last: float) -> tuple[float, float]:
    heads_dim = t.heads_count * t.head_dim_count
    if t.mla_flag:
        key = t.qk_nope_count + t.qk_rope_count
        query = (
            t.q_lora_count * (t.hidden_count + t.heads_count * key)
            if t.q_lora_count
            else t.hidden_count * t.heads_count * key
        )
        mixer = query + t.hidden_count * (t.kv_lora_count + t.qk_rope_count)
        mixer += t.kv_lora_count * t.heads_count * (t.qk_nope_count + t.v_head_dim_count)
        mixer += t.heads_count * t.v_head_dim_count * t.hidden_count
    else:
        kv = 2.0 * t.kv_heads_count * t.head_dim_count
        mixer = t.hidden_count * ((2.0 + t.attention_gate_flag) * heads_dim + kv)
    matrices = 2.0 + t.gated_flag
    shared = t.hidden_count * t.experts_count
    shared += matrices * t.hidden_count * t.shared_experts_count * t.shared_ffn_count
    if t.experts_count and t.moe_hidden_count != t.hidden_count:
        shared += 2.0 * t.hidden_count * t.moe_hidden_count
    dense_layer = (
        t.attention_layers_count * mixer
        + t.linear_layers_count * (t.linear_projection_count + t.linear_other_count)
        + t.dense_layers_count * matrices * t.hidden_count * t.ffn_count
        + t.moe_layers_count * shared
    ) / t.layers_count
    table = t.vocab_count * t.hidden_count
    alone = 1.0 - t.tied_flag if lay.pp_count <= 1.0 else 0.0
    dense = max(stage * dense_layer + table, last * dense_layer + table * (1.0 + alone)) / lay.tp_count
    cut = lay.ep_count * (lay.tp_count if lay.expert_tp_flag else 1.0)
    layers = max(stage, last) * t.moe_layers_count / t.layers_count
    return dense, layers * t.experts_count * matrices * t.moe_hidden_count * t.moe_ffn_count / cut


def twin_step(t: Any, job: Any, lay: Any, e: Any, fabric: Any, mach: Any, soft: Any, c: Any, straggler: float) -> float:
    block = layer(t, job, lay, e, fabric, mach, soft, c)
    domain = fabric.scale_up.domain_count
    passes = max(job.global_batch_count / (lay.micro_batch_count * lay.dp_count), 1.0)
    stage = math.ceil(t.layers_count / (lay.pp_count * lay.vp_count)) * lay.vp_count
    empty = stage * lay.pp_count - t.layers_count
    last = t.layers_count if lay.pp_count <= 1.0 else max(stage - math.ceil(0.5 * empty), 0.0)
    last += job.mtp_layers_count
    head = (1.0 + job.mtp_layers_count) * block.head
    rank = max(stage * block.layer, last * block.layer + head)
    mean = ((t.layers_count + job.mtp_layers_count) * block.layer + head) / lay.pp_count
    left = passes % lay.pp_count
    ragged = (lay.pp_count - left if left else 0.0) * (lay.vp_count - 1.0) / lay.vp_count
    fill = (lay.pp_count - 1.0) / lay.vp_count
    total = passes * rank + fill * mean + ragged * rank
    if lay.pp_count > 1.0:
        stride = lay.tp_count * lay.cp_count * lay.dp_count
        crossing = 0.0 if lay.pp_count * stride <= domain else min(stride / domain, 1.0)
        transfer = block.inside + crossing * (block.outside - block.inside)
        shown = c.overlap_cost_frac if lay.vp_count > 1.0 and soft.pp_overlap_flag else 1.0
        total += 2.0 * lay.vp_count * (passes * shown + fill) * transfer
    dense, expert = weights(t, lay, stage, last)
    total += data_time(job, lay, fabric, soft, c, dense, expert, stage, passes, stage * block.forward, rank)
    group = lay.dp_count * lay.cp_count
    cut = lay.tp_count if lay.expert_tp_flag else 1.0
    owners = group if lay.optimizer_sharded_flag else 1.0
    expert_group = max(group * lay.tp_count / (lay.ep_count * cut), 1.0)
    shard = max(min(lay.shard_count, group), 1.0)
    owned = dense / max(owners, shard)
    owned += expert / max(expert_group if lay.optimizer_sharded_flag else 1.0, min(shard, expert_group))
    each = 2.0 * job.optimizer_bytes + job.gradient_bytes + job.weight_bytes
    total += job.trainable_frac * owned * each * 8.0 / (mach.memory_rate_gbps * mach.memory_frac)
    assert lay.activation_offload_frac == lay.state_offload_flag == 0.0
    return (total + c.step_ns) * straggler


def data_time(
    job: Any,
    lay: Any,
    fabric: Any,
    soft: Any,
    c: Any,
    dense: float,
    expert: float,
    layers: float,
    passes: float,
    forward: float,
    rank: float,
) -> float:
    domain, group = fabric.scale_up.domain_count, lay.dp_count * lay.cp_count
    fully = lay.shard_count > 1.0
    ranks = min(lay.shard_count, group) if fully else group
    cut = lay.tp_count if lay.expert_tp_flag else 1.0
    expert_group = max(group * lay.tp_count / (lay.ep_count * cut), 1.0)
    dense_inner = members(ranks, lay.tp_count, domain)
    expert_inner = members(expert_group, lay.ep_count * cut, domain)
    gathered = (1.0 if fully else job.trainable_frac) * job.weight_wire_bytes
    learned = job.trainable_frac * job.gradient_wire_bytes
    dense, expert = dense / layers, expert / layers
    gather = half(dense * gathered, ranks, dense_inner, fabric)
    gather += half(expert * gathered, expert_group, expert_inner, fabric)
    reduce = half(dense * learned, ranks, dense_inner, fabric)
    reduce += half(expert * learned, expert_group, expert_inner, fabric)
    replicas = group / ranks
    reduce += all_reduce(dense * learned / ranks, replicas, members(replicas, lay.tp_count * ranks, domain), fabric)
    gather, reduce = layers * gather, layers * reduce
    wide = 1.0 if fully else min((1.0 + lay.pp_count * (lay.vp_count - 1.0)) / lay.vp_count, passes)
    forward, rank = wide * forward, wide * rank
    before = exposed(gather, forward, soft.dp_overlap_flag, c.data_cost_frac)
    after = exposed(reduce + (gather if fully else 0.0), rank - forward, soft.dp_overlap_flag, c.data_cost_frac)
    return (passes if fully else 1.0) * (before + after)


def test_every_measured_job_agrees_with_a_plain_python_step(catalog: Catalog) -> None:
    rows = read_rows(case_data() / "training.csv")[0]
    replay = bind(rows, catalog)
    constants = training_constants(catalog)
    loss = catalog.constant("training", "stated", "straggler_frac")
    steps = np.broadcast_to(np.asarray(run(replay, constants, catalog).step_ns), (len(rows),))

    for i in range(len(rows)):
        straggler = 1.0 + loss * math.log2(max(float(replay.straggler[i]), 1.0))
        alone = twin_step(
            plain(replay.transformer, i),
            plain(replay.job, i),
            plain(replay.layout, i),
            plain(replay.engines, i),
            plain(replay.fabric, i),
            plain(replay.machine, i),
            plain(replay.software, i),
            plain(constants, i),
            straggler,
        )
        assert alone == pytest.approx(float(steps[i]), rel=1e-12), rows.text("case")[i]
