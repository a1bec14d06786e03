"""The whole evaluation on samples of every shipped space: batches, sums, bounds, and more of a resource at no cost."""

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codesign.candidates import Candidates, assemble_rows, platform_candidates
from codesign.catalog import Catalog, load_catalog
from codesign.catalog.platforms import load_platforms
from codesign.errors import SpaceError
from codesign.evaluation import Evaluation, check_question, evaluate, evaluate_machines, largest_job
from codesign.hardware import hardware
from codesign.metrics import METRICS
from codesign.shadow import RESOURCES, perturbed, shadow
from codesign.space import Space, Value, load_space, shipped_spaces
from codesign.study.coding import Coding
from codesign.study.problem import recipe_of

SPACES = sorted(shipped_spaces())
#: The grid of layouts of this one is large; its big batch is in the slow run.
LARGE_GRID = {"serving_moe"}


@cache
def catalog() -> Catalog:
    return load_catalog()


@cache
def space(name: str) -> Space:
    return load_space(name)


@cache
def samples(name: str, count: int) -> Candidates:
    """Uniform samples as asked, so that many of them cannot be built."""
    problem = recipe_of(name)()
    coding = Coding(problem.parameters)
    unit = np.random.default_rng(7).random((count, len(coding.names)))
    return assemble_rows([dict(row) for row in coding.rows(coding.decode(unit))], problem.space)


@cache
def buildable(name: str, count: int) -> Candidates:
    """Uniform samples after repair."""
    problem = recipe_of(name)()
    coding = Coding(problem.parameters)
    unit = np.random.default_rng(7).random((count, len(coding.names)))
    repaired, _ = problem._repair([dict(row) for row in coding.rows(coding.decode(unit))])
    return assemble_rows(repaired, problem.space)


@cache
def sampled(name: str, count: int) -> Evaluation:
    return evaluate(samples(name, count), space(name), catalog())


def text(found: Evaluation, row: int) -> str:
    """Everything one row says, every number to its last digit."""
    return json.dumps(found.details(row), allow_nan=False)


def same_in_parts(name: str, count: int, cuts: list[slice]) -> None:
    whole = sampled(name, count)
    for cut in cuts:
        part = evaluate(samples(name, count).part(cut), space(name), catalog())
        for at, row in enumerate(range(count)[cut]):
            assert text(part, at) == text(whole, row), f"{name}: row {row} differs in {cut}"


@pytest.mark.parametrize("name", SPACES)
def test_a_batch_equals_its_rows_and_any_split_of_it(name: str) -> None:
    count = 7 if name in LARGE_GRID else 64
    cuts = [slice(0, 1), slice(count - 1, count), slice(0, 7), slice(count // 3, count), slice(count // 2, None, -3)]
    same_in_parts(name, count, cuts[:3] if name in LARGE_GRID else cuts)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LARGE_GRID))
def test_a_large_grid_equals_its_rows_too(name: str) -> None:
    same_in_parts(name, 64, [slice(5, 6), slice(10, 17), slice(20, 64)])


@pytest.mark.parametrize("name", SPACES)
def test_platforms_side_by_side_equal_each_alone(name: str) -> None:
    names = list(load_platforms())
    together = evaluate(platform_candidates(names), space(name), catalog())
    for row in (0, len(names) - 1):
        alone = evaluate(platform_candidates([names[row]]), space(name), catalog())
        assert text(alone, 0) == text(together, row)


@pytest.mark.parametrize("name", SPACES)
def test_parts_sum_to_totals(name: str) -> None:
    found = sampled(name, 7 if name in LARGE_GRID else 64)
    for result in found.workloads:
        total = np.zeros(len(result))
        for part in result.parts_ns.values():
            total = total + part
        assert total == pytest.approx(result.time_ns, rel=1e-9)
    for row in range(len(found.metrics)):
        details = found.details(row)
        bill = sum(item["usd_per_mtok"] for item in details["bill"])
        assert bill == pytest.approx(details["metrics"]["usd_per_mtok"], rel=1e-9)
        hourly = sum(item["usd_per_h"] for item in details["bill"])
        assert hourly == pytest.approx(details["metrics"]["usd_per_h"], rel=1e-9)
        capital = sum(item["usd_per_accelerator"] for item in details["bill"])
        assert capital == pytest.approx(details["metrics"]["capex_usd"], rel=1e-9)


@pytest.mark.parametrize("name", ["quickstart", "factory_mix"])
def test_the_price_can_be_worked_out_again_from_the_details(name: str) -> None:
    found = evaluate(assemble_rows([{}], space(name)), space(name), catalog())
    details = found.details(0)
    delivery, works = details["delivery"], details["workloads"]
    tokens_per_s = sum(delivery["mix"][n] * w["tokens_per_s"] * w["goodput_frac"] for n, w in works.items())
    assert tokens_per_s == pytest.approx(details["metrics"]["tokens_per_s"], rel=1e-9)
    tokens_per_h = 3600.0 * tokens_per_s * delivery["utilisation_frac"]
    assert tokens_per_h == pytest.approx(delivery["tokens_per_h"], rel=1e-9)
    price = details["metrics"]["usd_per_h"] / tokens_per_h * 1e6
    assert price == pytest.approx(details["metrics"]["usd_per_mtok"], rel=1e-9)


@pytest.mark.parametrize("name", SPACES)
def test_nothing_is_negative_infinite_or_beyond_its_worst_value(name: str) -> None:
    found = sampled(name, 7 if name in LARGE_GRID else 64)
    for metric, kind in METRICS.items():
        column = getattr(found.metrics, metric)
        assert np.isfinite(column).all(), metric
        assert (column >= 0.0).all(), metric
        assert (column <= kind.worst).all() if kind.better == "minimize" else (column >= kind.worst).all(), metric
    for result in found.workloads:
        for part, column in result.parts_ns.items():
            assert (column >= 0.0).all(), part
        for number in (result.time_ns, result.tokens_per_s, result.runner_up_ratio):
            assert (number > 0.0).all()
    for row in range(len(found.metrics)):
        details = found.details(row)
        assert all(item["usd_per_h"] >= 0.0 for item in details["bill"])


@pytest.mark.parametrize("name", SPACES)
def test_the_dearer_half_of_a_mix_costs_more_than_all_and_less_than_the_worst(name: str) -> None:
    metrics = sampled(name, 7 if name in LARGE_GRID else 64).metrics
    if len(space(name).workloads) == 1:
        assert np.array_equal(metrics.cvar_usd_per_mtok, metrics.worst_usd_per_mtok)
    assert (metrics.cvar_usd_per_mtok >= metrics.usd_per_mtok * (1.0 - 1e-9)).all()
    assert (metrics.cvar_usd_per_mtok <= metrics.worst_usd_per_mtok * (1.0 + 1e-9)).all()


def test_the_dearer_half_of_a_mix_follows_the_weights() -> None:
    """Of three workloads with 0.4, 0.35 and 0.25 of the hours: the dearest whole, then the next as far as half."""
    mix = sampled("factory_mix", 64)
    weights = np.array([work.weight for work in mix.space.workloads.values()])
    costs = np.array(mix.totals.workload_usd)
    for row in range(costs.shape[1]):
        first, second, third = np.argsort(-costs[:, row], kind="stable")
        left = 0.5 - weights[first]
        next_share = min(left, weights[second])
        parts = ((first, weights[first]), (second, next_share), (third, left - next_share))
        wanted = sum(costs[at, row] * share for at, share in parts) / 0.5
        assert mix.metrics.cvar_usd_per_mtok[row] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("name", SPACES)
def test_what_cannot_be_built_says_by_how_much(name: str) -> None:
    found = sampled(name, 7 if name in LARGE_GRID else 64)
    v = found.violations
    assert np.isfinite(v.excess).all()
    assert (v.excess >= -1.0).all()
    broken = v.excess > 0.0
    assert (v.required[broken] > v.available[broken]).all()
    ok = ~broken & (v.excess < 0.0)
    assert (v.required[ok] < v.available[ok]).all()
    assert found.details(0)["feasible"] == bool(v.feasible()[0])


def test_excess_is_graded_not_a_flag() -> None:
    """Twice the reach of a medium is a larger excess than a tenth beyond it."""
    asked = load_space("training_dense")
    rows = [{"scale_up_medium": "passive_copper", "scale_up_domain_count": d} for d in (8, 512, 2048)]
    rules = evaluate(assemble_rows(rows, asked), asked, catalog()).violations
    reach = rules.excess[[rule.name for rule in rules.rules].index("scale_up_reach")]
    assert reach[0] <= 0.0 < reach[1] < reach[2]


@pytest.mark.parametrize("network", ["scale_up", "scale_out"])
def test_a_lane_faster_than_the_fitted_range_cannot_be_built(network: str) -> None:
    """Nothing says what such a lane does, however short its way: the further beyond, the larger the excess."""
    asked = load_space("training_dense")
    lanes: tuple[tuple[float, Value], ...] = ((448.0, "pam4"), (300.0, "nrz"), (448.0, "nrz"))
    rows: list[dict[str, Value]] = [
        {f"{network}_lane_rate_gbps": rate, f"{network}_modulation": code, f"{network}_medium": "co_packaged_optics",
         "nic_rate_gbps": 4.0 * rate}
        for rate, code in lanes
    ]  # fmt: skip
    found = evaluate(assemble_rows(rows, asked), asked, catalog())
    excess = found.violations.excess[[r.name for r in found.violations.rules].index(f"{network}_symbol_rate")]
    assert excess[0] <= 0.0 < excess[1] < excess[2]
    said = next(v for v in found.details(2)["violations"] if v["rule"] == f"{network}_symbol_rate")
    assert (said["required"], said["unit"]) == (448.0, "GBd")
    assert said["available"] == catalog().constant("channel", "surrogate", "fastest_symbol_ghz")


def test_a_metric_does_not_depend_on_other_trials() -> None:
    """The least feasible sample alone has the values it has among others."""
    whole = sampled("training_moe", 64)
    worst = int(np.argmax(whole.violations.excess.sum(axis=0)))
    alone = evaluate(samples("training_moe", 64).part([worst]), space("training_moe"), catalog())
    assert alone.metrics.usd_per_mtok[0] == whole.metrics.usd_per_mtok[worst]


# ------------------------------------------------------------------------------ more of a resource at no cost (law 1)

CHEAP = ("quickstart", "training_dense", "training_moe")
ratio = st.floats(min_value=1.0, max_value=1.9)


@pytest.mark.parametrize("name", CHEAP)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_more_of_any_resource_at_no_cost_never_makes_the_remapped_optimum_slower(
    name: str, data: st.DataObject
) -> None:
    count = 8
    paid = hardware(buildable(name, count), catalog(), largest_job(space(name)))
    chosen = data.draw(st.dictionaries(st.sampled_from(sorted(RESOURCES)), ratio, min_size=1, max_size=3))
    better = perturbed(paid, {resource: np.full(count, by) for resource, by in chosen.items()})
    before = evaluate_machines(paid, space(name), catalog(), billed=paid)
    after = evaluate_machines(better, space(name), catalog(), billed=paid)
    for was, now in zip(before.workloads, after.workloads, strict=True):
        fits = was.memory_required_bytes <= was.memory_available_bytes
        free = fits & (now.parts_ns["throttle_ns"] == 0.0)
        assert (now.tokens_per_s[free] >= was.tokens_per_s[free] * (1.0 - 1e-9)).all(), chosen
        # under a power cap the mapping is still the fastest before throttling, which may cost more energy per token
        assert (now.tokens_per_s[fits] >= was.tokens_per_s[fits] * 0.95).all(), chosen


def test_shadow_prices_are_rows_of_one_batch_and_leave_the_design_as_it_is() -> None:
    asked = load_space("training_dense")
    one = assemble_rows([{}], asked)
    found, prices = shadow(one, asked, catalog())
    assert text(found, 0) == text(evaluate(one, asked, catalog()), 0)
    assert {entry["resource"] for entry in prices[0]} == set(RESOURCES)
    assert all(entry["change_pct"] <= 1e-9 for entry in prices[0])
    assert prices[0][0]["resource"] == "compute peak"  # dense training on H100 is bound by arithmetic
    assert -10.0 < prices[0][0]["change_pct"] < -3.0  # ten per cent of peak cannot give more than ten per cent


def test_more_watts_are_worth_what_the_design_gains_under_a_higher_cap_at_its_own_price() -> None:
    """What is built for the watts stays that of the design; they are drawn, so the electricity is that of more."""
    asked = load_space("training_dense")
    tight: list[dict[str, Value]] = [
        {"cooling": "liquid", "power_cap_w": 500.0},
        {"cooling": "liquid", "power_cap_w": 800.0, "compute_scale_frac": 2.0, "compute_dies_count": 2},
    ]
    one = assemble_rows(tight, asked)
    raised = assemble_rows([row | {"power_cap_w": float(row["power_cap_w"]) * 1.1} for row in tight], asked)
    found, prices = shadow(one, asked, catalog())
    assert text(found, 0) == text(evaluate(one, asked, catalog()), 0)
    more = evaluate(raised, asked, catalog())
    for i in range(len(tight)):
        assert found.hardware.own.clock_frac[i] < 1.0  # throttled by its cap
        before, after = found.details(i), more.details(i)
        energy = [next(e["usd_per_h"] for e in d["bill"] if e["item"] == "energy") for d in (before, after)]
        per_h = before["metrics"]["usd_per_h"]
        tokens = after["metrics"]["tokens_per_s"] / before["metrics"]["tokens_per_s"]
        expected = 100.0 * ((per_h + energy[1] - energy[0]) / per_h / tokens - 1.0)
        told = {entry["resource"]: entry["change_pct"] for entry in prices[i]}
        assert told["power"] < -2.0
        assert told["power"] == pytest.approx(expected, abs=0.1)  # of points: people and spares follow the electricity
        assert prices[i][1]["resource"] == "power"  # the second resource, after arithmetic


def test_watts_that_nothing_draws_are_worth_nothing() -> None:
    asked = load_space("training_dense")
    _, prices = shadow(assemble_rows([{"cooling": "liquid", "power_cap_w": 1800.0}], asked), asked, catalog())
    assert next(e["change_pct"] for e in prices[0] if e["resource"] == "power") == pytest.approx(0.0, abs=1e-9)


# ------------------------------------------------------------------------------------ scale-up domain size (law 4)


def test_dense_training_does_not_care_about_the_domain_beyond_its_tensor_group() -> None:
    asked = load_space("training_dense")
    rows = [{"scale_up_domain_count": d, "scale_up_medium": "co_packaged_optics"} for d in (2, 8, 16, 32, 72, 128)]
    step = evaluate(assemble_rows(rows, asked), asked, catalog()).metrics.step_s
    assert step[0] > 1.1 * step[1]  # a domain smaller than the tensor group hurts
    assert step[1] / step[-1] < 1.08  # sixteen times the domain buys less than eight per cent


def test_expert_decode_cares_about_the_domain_in_a_middle_band_of_interactivity() -> None:
    """Loose levels hide the exchange behind batch, the fastest token has no batch to exchange: between, it counts."""
    gains, fastest_ms = {}, {}
    for tpot_ms in (3.0, 12.0, 20.0, 400.0):
        asked = load_space("serving_moe")
        work = asked.workloads["long_context"].model_copy(
            update={"mode": "aggregated", "input_count": 1024, "tpot_ms": tpot_ms, "ttft_ms": 60000.0}
        )
        level = asked.model_copy(update={"workloads": {"long_context": work}})
        rows = [{"scale_up_domain_count": d, "scale_up_medium": "co_packaged_optics"} for d in (8, 72)]
        metrics = evaluate(assemble_rows(rows, level), level, catalog()).metrics
        gains[tpot_ms] = float(metrics.tokens_per_s[1] / metrics.tokens_per_s[0])
        fastest_ms[tpot_ms] = metrics.tpot_ms
    assert gains[12.0] > 1.3
    assert gains[20.0] > 1.2
    assert abs(gains[400.0] - 1.0) < 0.02
    assert fastest_ms[3.0][0] / fastest_ms[3.0][1] == pytest.approx(1.0, abs=0.05)  # nothing reaches 3 ms


def test_a_torus_pays_for_exchanges_and_a_faster_link_moves_them() -> None:
    """Uniform traffic of a torus shares its links with everybody it passes; ring traffic does not."""
    asked = load_space("training_moe")
    base: dict[str, Value] = {"scale_up_domain_count": 64, "scale_up_medium": "co_packaged_optics"}
    rows = [{**base, "scale_up_topology": kind, "scale_up_lanes_count": lanes}
            for kind, lanes in (("switched", 36), ("torus_3d", 36), ("switched", 72))]  # fmt: skip
    found = evaluate(assemble_rows(rows, asked), asked, catalog())
    contention = np.asarray(found.hardware.fabric.scale_up.exchange_contention_ratio)
    copies_gbps = np.asarray(found.hardware.fabric.dispatch.rate_gbps)
    assert contention[1] == pytest.approx(3.0 * contention[0])  # 4 x 4 x 4 wrapped: three hops on average
    assert copies_gbps[2] == pytest.approx(2.0 * copies_gbps[0])
    step = found.metrics.step_s
    assert step[1] > step[0] > step[2]


@pytest.mark.parametrize("count", [1009, 3000])
def test_a_job_that_no_layout_divides_is_refused_by_name(count: int) -> None:
    asked = load_space("training_dense")
    work = asked.workloads["pretrain"].model_copy(update={"accelerators_count": count, "global_batch_count": 7})
    with pytest.raises(SpaceError, match="no layout divides"):
        check_question(asked.model_copy(update={"workloads": {"pretrain": work}}), catalog())


def test_a_power_cap_below_what_the_work_draws_slows_it_and_shows_as_a_part_of_its_time() -> None:
    asked = load_space("quickstart")
    rows: list[dict[str, Value]] = [{"power_cap_w": watts} for watts in (110, 140, 700)]
    found = evaluate(assemble_rows(rows, asked), asked, catalog())
    result = found.workloads[0]
    assert result.parts_ns["throttle_ns"][0] > result.parts_ns["throttle_ns"][1] > 0.0
    assert result.parts_ns["throttle_ns"][2] == 0.0
    assert result.tokens_per_s[0] < result.tokens_per_s[1] < result.tokens_per_s[2]
    assert (found.watts[0].package_w[:2] < np.array([115, 145])).all()  # link buffers stand outside the cap
