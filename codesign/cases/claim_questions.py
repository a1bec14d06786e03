"""Questions that published co-design claims ask of the evaluation: designs and workloads in, an answer in words out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codesign.candidates import assemble_rows
from codesign.catalog import Catalog
from codesign.evaluation import Evaluation, evaluate
from codesign.space import Scenario, Serving, Space, Training, Value
from codesign.units import Array

Design = Mapping[str, Value]
Work = Training | Serving
OPTICS: Design = {"scale_up_medium": "co_packaged_optics"}
NETWORK_ITEMS = ("links", "switches", "nics")
EXPOSED = ("tensor", "context", "expert", "transfer", "data")


@dataclass(frozen=True)
class Answer:
    """What the evaluation says, and whether the claim's sign, order or crossover is there."""

    found: str
    holds: bool


def asked(
    catalog: Catalog,
    base: str,
    work: Work | Mapping[str, Work],
    designs: Sequence[Design] = ({},),
    mapping: Mapping[str, Value] | None = None,
    prices: str = "owner",
) -> Evaluation:
    """Designs over a base platform at one workload (or a mix), each at its best mapping or at a pinned one."""
    works = {"work": work} if isinstance(work, Training | Serving) else dict(work)
    common = {key: value for key, value in designs[0].items() if all(d.get(key) == value for d in designs)}
    space = Space(
        name="claim",
        question="does a published claim come out?",
        base=base,
        workloads=works,
        scenario=Scenario(prices=prices),
        fix=common,
        mapping=None if mapping is None else {"work": dict(mapping)},
    )
    return evaluate(assemble_rows(list(designs), space), space, catalog)


def _trained(model: str, accelerators: int, sequence: int, batch: int, precision: str = "bf16") -> Training:
    return Training(
        kind="training", model=model, accelerators_count=accelerators, sequence_count=sequence,
        global_batch_count=batch, precision=precision,
    )  # fmt: skip


def _served(
    model: str, prompt: int, answer: int, tpot_ms: float, accelerators: int, mode: Any = "aggregated",
    precision: str = "fp8", ttft_ms: float = 10_000.0,
) -> Serving:  # fmt: skip
    return Serving(
        kind="serving", model=model, input_count=prompt, output_count=answer, tpot_ms=tpot_ms, ttft_ms=ttft_ms,
        precision=precision, accelerators_count=accelerators, mode=mode,
    )  # fmt: skip


def _rate(found: Evaluation) -> Array:
    return np.asarray(found.metrics.tokens_per_s)


def _network_usd(found: Evaluation, row: int) -> float:
    bill = {line["item"]: line["usd_per_accelerator"] for line in found.details(row)["bill"]}
    return float(sum(bill[item] for item in NETWORK_ITEMS))


def dense_domain(catalog: Catalog) -> Answer:
    """Dense training over a domain of 8 and of 64."""
    designs = [{**OPTICS, "scale_up_domain_count": count} for count in (8, 64)]
    small, large = _rate(asked(catalog, "hgx_h100", _trained("Megatron-GPT-1T (2021)", 4096, 2048, 4096), designs))
    gain = large / small
    return Answer(f"{gain:.3f} times at 450 GB/s from a domain of 8 to one of 64", bool(abs(gain - 1.0) < 0.03))


def wide_experts(catalog: Catalog) -> Answer:
    """Decode throughput of experts over 8 and over 32 accelerators of one rack."""
    rates = [
        float(_rate(asked(catalog, "nvl72_gb200", _served("DeepSeek-R1", 1024, 1024, 20.0, n, precision="nvfp4")))[0])
        for n in (8, 32)
    ]
    gain = rates[1] / rates[0]
    return Answer(f"{gain:.2f} times per accelerator at 50 tokens/s and user", bool(1.2 <= gain <= 2.7))


def _optical_domain(catalog: Catalog) -> Evaluation:
    designs = [{**OPTICS, "scale_up_domain_count": count} for count in (8, 64)]
    return asked(catalog, "hgx_h100", _trained("DeepSeek-V3", 2048, 4096, 15360, "fp8_block"), designs)


def time_to_train(catalog: Catalog) -> Answer:
    """Speed of MoE training over an optical domain of 8 and of 64."""
    small, large = _rate(_optical_domain(catalog))
    gain = large / small
    return Answer(f"{gain:.2f} times faster with a domain of 64 in place of 8", bool(1.05 < gain <= 2.7))


def flat_network(catalog: Catalog) -> Answer:
    """Throughput and cost of MoE training over the same two."""
    found = _optical_domain(catalog)
    usd = np.asarray(found.metrics.usd_per_mtok)
    rate = _rate(found)
    words = f"throughput {rate[1] / rate[0]:.2f} times, cost per token {100 * (usd[1] / usd[0] - 1):+.0f} %"
    return Answer(words, bool(rate[1] > rate[0] and -0.4 < usd[1] / usd[0] - 1.0 < -0.05))


def utilisation(catalog: Catalog) -> Answer:
    """Throughput of MoE training against the domain."""
    designs = [{**OPTICS, "scale_up_domain_count": count} for count in (8, 16, 64)]
    rates = _rate(asked(catalog, "hgx_h100", _trained("DeepSeek-V3", 2048, 4096, 15360, "fp8_block"), designs))
    words = " / ".join(f"{value / rates[0]:.2f}" for value in rates)
    return Answer(f"utilisation over that of 8 at 8 / 16 / 64: {words}", bool(np.all(np.diff(rates) > 0)))


def rail_only_cost(catalog: Catalog) -> Answer:
    """Network bill and step of dense training with and without a spine."""
    work = _trained("Megatron-GPT-1T (2021)", 4096, 2048, 4096)
    found = asked(catalog, "hgx_h100", work, [{"scale_out_topology": t} for t in ("rail_optimised", "rail_only")])
    saved = 1.0 - _network_usd(found, 1) / _network_usd(found, 0)
    slower = 1.0 - _rate(found)[1] / _rate(found)[0]
    words = f"network cost {-100 * saved:+.0f} %, step {100 * slower:+.1f} %"
    return Answer(words, bool(0.3 <= saved <= 0.8 and slower < 0.02))


def rail_only_exchange(catalog: Catalog) -> Answer:
    """Expert exchange of one layout with and without a spine."""
    pinned = {"pp_count": 8, "ep_count": 32, "dp_count": 128}
    work = _trained("DeepSeek-V3", 1024, 4096, 15360, "fp8_block")
    designs = [{"scale_out_topology": t} for t in ("fat_tree", "rail_only")]
    found = asked(catalog, "hgx_h100", work, designs, mapping=pinned)
    tree, rail = found.workloads[0].parts_ns["expert_ns"]
    more = rail / tree - 1.0
    return Answer(f"exposed expert exchange {100 * more:+.0f} %", bool(0.0 < more < 0.2))


def optical_switch_share(catalog: Catalog) -> Answer:
    """Share of the switches in the capital of a torus machine."""
    found = asked(catalog, "torus_tpu", _trained("Llama-3.1-405B", 4096, 8192, 2048))
    bill = {line["item"]: line["usd_per_accelerator"] for line in found.details(0)["bill"]}
    share = bill["switches"] / float(np.asarray(found.metrics.capex_usd)[0])
    return Answer(f"switches of a torus machine are {100 * share:.1f} % of its capital", bool(0.0 < share < 0.05))


def spare_lanes(catalog: Catalog) -> Answer:
    """Availability with and without spare lanes."""
    work = _trained("Llama-3.1-405B", 16384, 8192, 2048, "fp8")
    found = asked(catalog, "hgx_h100", work, [{"scale_up_spare_lanes_count": count} for count in (0, 18)])
    none, some = np.asarray(found.metrics.availability_frac)
    return Answer(f"availability {none:.4f} without and {some:.4f} with a spare lane per port", bool(some > none))


def credit_loop(catalog: Catalog) -> Answer:
    """Goodput against the receive buffer."""
    sizes = (131072, 32768, 8192, 4096)
    designs: list[Design] = [
        {"scale_up_protocol": "ualink_200g", "scale_up_receive_buffer_bytes": size} for size in sizes
    ]
    found = asked(catalog, "hgx_b200", _served("Llama-3.1-70B", 1024, 1024, 50.0, 8), designs)
    large, enough, half, quarter = np.asarray(found.hardware.own.up.goodput_gbps)
    words = f"goodput {large:.0f}, {enough:.0f}, {half:.0f}, {quarter:.0f} Gb/s at 128, 32, 8 and 4 KiB per port"
    return Answer(words, bool(large == enough > half and np.isclose(half, 2.0 * quarter, rtol=1e-6)))


def headers(catalog: Catalog) -> Answer:
    """Efficiency of flits and of frames at two payloads."""
    names = ("sue", "ualink_200g")
    designs: list[Design] = [
        {"scale_up_protocol": name, "scale_up_payload_bytes": size} for name in names for size in (64, 4096)
    ]
    up = asked(catalog, "hgx_b200", _served("Llama-3.1-70B", 1024, 1024, 50.0, 8), designs).hardware.own.up
    share = np.asarray(up.goodput_gbps) / np.asarray(up.coding.raw_rate_gbps)
    small, large = share[2] / share[0], share[3] / share[1]
    words = f"flits over frames: {small:.2f} times at 64 B, {large:.2f} times at 4 KiB"
    return Answer(words, bool(small > 1.1 and large < 1.05))


def capacity(catalog: Catalog) -> Answer:
    """Serving on stacks of 8 and of 12 dies at one memory rate."""
    work = _served("Llama-3.1-405B", 8192, 8192, 100.0, 8, ttft_ms=60_000.0)
    found = asked(catalog, "hgx_h100", work, [{"memory_height_count": count} for count in (8, 12)])
    rate, usd = _rate(found), np.asarray(found.metrics.usd_per_mtok)
    words = f"{rate[1] / rate[0]:.2f} times the throughput, {100 * (usd[1] / usd[0] - 1):+.0f} % cost per token"
    return Answer(words, bool(rate[1] > 1.2 * rate[0] and usd[1] < usd[0]))


def offload(catalog: Catalog) -> Answer:
    """Whether a job fits with and without a second tier."""
    work = _trained("Megatron-GPT-1T (2021)", 512, 2048, 4096)
    small = {"memory_stacks_count": 2}
    alone = asked(catalog, "hgx_h100", work, [small])
    helped = asked(catalog, "hgx_h100", work, [{**small, "second_tier_kind": "ddr5", "second_tier_gb": 512.0}])
    lacks = [bool(found.violations.feasible()[0]) for found in (alone, helped)]
    words = f"1T on 512 parts with 32 GB: feasible {lacks[0]} alone, {lacks[1]} with 512 GB behind"
    return Answer(words, lacks == [False, True])


def shared_memory(catalog: Catalog) -> Answer:
    """Decode throughput with a large second tier."""
    work = _served("Llama-3.1-405B", 8192, 8192, 100.0, 8, ttft_ms=60_000.0)
    designs: list[Design] = [{}, {"second_tier_kind": "ddr5", "second_tier_gb": 1024.0}]
    alone, helped = _rate(asked(catalog, "hgx_h100", work, designs))
    return Answer(f"{helped / alone:.2f} times: the serving model keeps its cache in the first tier", helped > alone)


def fast_users(catalog: Catalog) -> Answer:
    """Fastest single user of a rack, against 2,000 tokens/s."""
    fastest = _fastest_tokens_per_s(catalog)
    return Answer(f"at most {fastest:.0f} tokens/s and user on a rack of 72", fastest >= 2000.0)


def ten_thousand(catalog: Catalog) -> Answer:
    """Fastest single user of a rack, against 10,000 tokens/s."""
    fastest = _fastest_tokens_per_s(catalog)
    return Answer(f"at most {fastest:.0f} tokens/s and user, whatever the layout", fastest < 10_000.0)


def _fastest_tokens_per_s(catalog: Catalog) -> float:
    found = [
        asked(catalog, "nvl72_gb200", _served(model, 1024, 1024, 0.01, 64, precision=precision, ttft_ms=100_000.0))
        for model, precision in (("Llama-3.1-405B", "fp8"), ("Llama-3.1-70B", "fp8"), ("DeepSeek-R1", "nvfp4"))
    ]
    return max(1e3 / float(np.asarray(one.metrics.tpot_ms)[0]) for one in found)


def synchronisation(catalog: Catalog) -> Answer:
    """What twice the memory rate gives a single user."""
    work = _served("Llama-3.1-405B", 1024, 1024, 0.01, 64, ttft_ms=100_000.0)
    designs = [{"memory_stacks_count": count} for count in (8, 16)]
    one, two = np.asarray(asked(catalog, "nvl72_gb200", work, designs).metrics.tpot_ms)
    return Answer(f"twice the memory rate: {one / two:.2f} times the speed of one user over 32 parts", one / two < 1.5)


def exposed(catalog: Catalog) -> Answer:
    """Share of exposed communication in MoE training."""
    parts = asked(catalog, "hgx_h100", _trained("DeepSeek-V3", 2048, 4096, 15360, "fp8_block")).details(0)
    waterfall = {line["part"]: line["share"] for line in parts["workloads"]["work"]["waterfall"]}
    share = sum(waterfall[name] for name in EXPOSED)
    return Answer(f"{100 * share:.0f} % of a step at the best mapping", bool(0.14 <= share <= 0.32))


def disaggregated(catalog: Catalog) -> Answer:
    """What separate prefill gives two workloads at one service level."""

    def gain(model: str, prompt: int, answer: int, accelerators: int) -> float:
        rates = [
            float(_rate(asked(catalog, "nvl72_gb200", _served(model, prompt, answer, 25.0, accelerators, mode)))[0])
            for mode in ("aggregated", "disaggregated")
        ]
        return rates[1] / rates[0]

    large, small = gain("Llama-3.1-405B", 8192, 512, 32), gain("Llama-3.1-8B", 512, 4096, 8)
    words = f"{large:.2f} times for a large model with long prompts, {small:.2f} for a small one with long answers"
    return Answer(words, large > 1.1 and small < 1.05 and large > small)


def scale(catalog: Catalog) -> Answer:
    """Throughput and energy of one job on more accelerators."""
    found = [
        asked(catalog, "hgx_h100", _trained("Llama-2-70B", count, 4096, 512)).metrics for count in (128, 512, 2048)
    ]
    rates = [float(np.asarray(one.tokens_per_s)[0]) for one in found]
    joules = [float(np.asarray(one.energy_j_per_token)[0]) for one in found]
    words = (
        f"{rates[0]:.0f}, {rates[1]:.0f}, {rates[2]:.0f} tokens/s per part and "
        f"{1 / joules[0]:.2f}, {1 / joules[1]:.2f}, {1 / joules[2]:.2f} tokens/J on 128, 512 and 2,048"
    )
    return Answer(words, rates[0] > rates[1] > rates[2] and joules[0] < joules[1] < joules[2])


def model_parallel(catalog: Catalog) -> Answer:
    """Best layout against fully sharded data parallel."""
    ratios = []
    for count in (128, 2048):
        work = _trained("Llama-2-70B", count, 4096, 512)
        data = min(count, 512)
        sharded = {"dp_count": data, "shard_count": data, "cp_count": count // data, "full_recompute_frac": 1.0}
        best, only = asked(catalog, "hgx_h100", work), asked(catalog, "hgx_h100", work, mapping=sharded)
        ratios.append(float(_rate(best)[0] / _rate(only)[0]))
    words = f"{ratios[0]:.2f} times fully sharded data parallel on 128 parts, {ratios[1]:.2f} times on 2,048"
    return Answer(words, 1.0 < ratios[0] < ratios[1])


def _grid() -> list[Design]:
    return [
        {"memory_stacks_count": stacks, "compute_scale_frac": scale, "scale_up_lanes_count": lanes}
        for stacks in (4, 5, 6)
        for scale in (0.5, 0.75, 1.0)
        for lanes in (8, 18, 36)
    ]


def _mix() -> dict[str, Work]:
    return {
        "train": _trained("Llama-3.1-405B", 1024, 8192, 512),
        "serve": _served("Llama-3.1-70B", 8192, 1024, 40.0, 8),
    }


def regret(catalog: Catalog) -> Answer:
    """Best designs of two workloads of a small enumerable space."""
    found = asked(catalog, "hgx_h100", _mix(), _grid())
    usd = [np.where(found.violations.feasible(), column, np.inf) for column in found.totals.workload_usd]
    regrets = np.stack([column / column.min() - 1.0 for column in usd])
    least = float(regrets.max(axis=0).min())
    own = [int(column.argmin()) for column in usd]
    words = f"{'different' if own[0] != own[1] else 'the same'} designs are best; the least regretted pays {least:.1%}"
    return Answer(words, own[0] != own[1] and least > 0.0)


def joint(catalog: Catalog) -> Answer:
    """Best of a small enumerable space against the best along each of its axes."""
    grid = _grid()
    found = asked(catalog, "hgx_h100", _mix(), grid)
    usd = np.where(found.violations.feasible(), np.asarray(found.metrics.usd_per_mtok), np.inf)
    start = {"memory_stacks_count": 5, "compute_scale_frac": 0.75, "scale_up_lanes_count": 18}
    single = {
        name: min(u for u, d in zip(usd, grid, strict=True) if all(d[k] == v for k, v in start.items() if k != name))
        for name in start
    }
    words = ", ".join(f"{name.split('_')[0]} {float(value / usd.min()):.2f}" for name, value in single.items())
    return Answer(f"best of one layer over best of all: {words}", all(value > usd.min() for value in single.values()))


def rented(catalog: Catalog) -> Answer:
    """Cost per token at prices of owners and of renters."""
    work = _served("Llama-3.1-70B", 1024, 1024, 50.0, 8)
    owned, market = (
        float(np.asarray(asked(catalog, "hgx_h100", work, prices=prices).metrics.usd_per_mtok)[0])
        for prices in ("owner", "market")
    )
    return Answer(f"the same machine: {market / owned:.1f} times as dear per token when rented", market > owned)
