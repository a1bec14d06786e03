"""Samplers, fronts and the policy: what they promise on small problems whose answers are known."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info, threadpool_limits

from codesign.errors import StudyError
from codesign.study import policy
from codesign.study.coding import Coding
from codesign.study.fronts import excess, front, hypervolume, ranks
from codesign.study.gaussian import GaussianProcess
from codesign.study.parameters import Choices, FloatRange, IntRange
from codesign.study.parzen import Mixture
from codesign.study.samplers import Told, batch_generator
from codesign.study.screen import numbers
from codesign.study.search import OptunaSuggester, suggester
from codesign.study.suggest import Search
from tests.study import toy

FRONTS = arrays(np.float64, st.tuples(st.integers(1, 40), st.integers(1, 3)), elements=st.integers(0, 6).map(float))


def beaten(costs: Any) -> Any:
    """Whether some row beats each row, by comparing every pair."""
    return np.array([any((o <= row).all() and (o < row).any() for o in costs) for row in costs])


@given(FRONTS)
@settings(max_examples=80, deadline=None)
def test_the_front_is_what_nobody_beats(costs: Any) -> None:
    assert_array_equal(front(costs), ~beaten(costs))


@given(FRONTS)
@settings(max_examples=40, deadline=None)
def test_ranks_peel_one_front_after_another(costs: Any) -> None:
    rank = ranks(costs, np.zeros(len(costs)))
    left = np.arange(len(costs))
    for level in range(int(rank.max()) + 1):
        assert_array_equal(left[rank[left] == level], left[~beaten(costs[left])])
        left = left[rank[left] != level]


def test_rules_come_before_costs() -> None:
    rank = ranks(np.array([[9.0], [1.0], [5.0], [2.0]]), np.array([0.0, 0.3, 0.0, 0.1]))

    assert_array_equal(np.argsort(rank), [2, 0, 3, 1])


@given(arrays(np.float64, (12, 3), elements=st.floats(0.0, 1.0)))
@settings(max_examples=25, deadline=None)
def test_hypervolume_agrees_with_counting_points(costs: Any) -> None:
    reference = np.ones(3)
    cells = np.stack(np.meshgrid(*[np.arange(20) / 20 + 0.025] * 3), axis=-1).reshape(-1, 3)
    inside = (costs[:, None, :] <= cells[None, :, :]).all(axis=2).any(axis=0).mean()

    assert hypervolume(costs, reference) == pytest.approx(inside, abs=0.16)  # a surface cuts at most 3/20 of the cells
    assert hypervolume(np.vstack([costs, costs * 0.9]), reference) >= hypervolume(costs, reference) - 1e-12


def test_the_policy_is_as_written() -> None:
    small, large = Coding(toy.SMALL), Coding(toy.PARAMETERS)

    assert policy.choose(small, 1, 64)[0] == "exhaustive"
    assert policy.choose(small, 1, 63)[0] == "gp"
    assert policy.choose(large, 1, 2000)[0] == policy.choose(large, 2, 200)[0] == "gp"
    assert policy.choose(large, 1, 10_000)[0] == "nsga2"
    assert policy.choose(large, 2, 10_000)[0] == policy.choose(large, 3, 200)[0] == "nsga3"
    assert policy.resolve("auto", large, 2, 10_000, 16)["gp_count"] == 512
    assert "gp_count" not in policy.resolve("auto", large, 3, 10_000, 16)
    assert "gp_count" not in policy.resolve("nsga2", large, 1, 10_000, 16)
    resolved = policy.resolve("auto", large, 1, 1000, 16)
    assert resolved["policy"].startswith("1000 trials, at most 2000")
    assert policy.resolve("NSGAIISampler", large, 1, 1000, 16)["name"] == "nsga2"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("tpee", "did you mean 'tpe'"),
        ({"name": "tpe", "windw_count": 3}, "windw_count"),
        ("optuna:TPESamplr", "did you mean 'optuna:TPESampler'"),
        ("optuna:no.such.module:Sampler", "No module"),
        ({"name": "optuna:TPESampler", "gama": 1}, "gama"),
    ],
)
def test_a_sampler_that_does_not_exist_is_refused(spec: Any, words: str) -> None:
    coding = Coding(toy.PARAMETERS)

    with pytest.raises(StudyError, match=words):
        suggester(policy.resolve(spec, coding, 1, 100, 16), coding, 0, 16, (("a", "minimize"),))


def search(spec: Any, parameters: Any, batch: int = 16, seed: int = 3, **more: Any) -> tuple[Search, Coding]:
    coding = Coding(parameters)
    resolved = policy.resolve(spec, coding, more.get("objectives", 1), 1000, batch)
    found = suggester(resolved, coding, seed, batch, [("x", "minimize")] * more.get("objectives", 1))
    first = coding.encode(more["first"]) if more.get("first") else np.empty((0, len(parameters)))
    return Search(coding, found, seed, batch, first), coding


def minimise(spec: Any, problem: Any, trials: int, seed: int = 3) -> float:
    first = [row for _, row in getattr(problem, "baselines", ())]
    found, coding = search(spec, problem.parameters, seed=seed, first=first)
    best = np.inf
    for batch in range(-(-trials // 16)):
        internal, _ = found.ask(batch)
        values, constraints = numbers(problem, coding, internal)
        violation = excess(constraints)
        best = min(best, values[violation <= 0.0, 0].min(initial=np.inf))
        found.observe(Told(internal, values, violation), None)
    return best


def test_learning_beats_drawing() -> None:
    problem = toy.Toy()
    seeds = range(8)
    by_chance = np.median([minimise("sobol", problem, 208, s) for s in seeds])
    learned = np.median([minimise("tpe", problem, 208, s) for s in seeds])
    modelled = np.median([minimise("gp", problem, 208, s) for s in seeds])
    evolved = np.median([minimise("nsga2", problem, 400, s) for s in seeds])

    assert by_chance - learned > 0.5 * (by_chance - 3.0)  # the best there is lies just above 3
    assert modelled - 3.0 < 0.5 * (learned - 3.0)
    assert evolved < by_chance


@pytest.mark.parametrize("sampler", ["gp", "tpe"])
def test_from_good_baselines_the_best_is_found_by_nearly_every_seed(sampler: str) -> None:
    problem = toy.Toy(baselines=toy.BASELINES)

    found = sorted(minimise(sampler, problem, 208, seed) for seed in range(10))

    assert found[8] < 3.0 * 1.05
    assert found[9] < 0.9 * 5.1139  # the better baseline


def test_cma_goes_down_a_valley() -> None:
    class Valley:
        parameters = {f"x{i}": FloatRange(-5.0, 5.0) for i in range(6)}  # noqa: RUF012 - nobody changes it
        objectives = (("f", "minimize"),)

        def screen(self, columns: Any) -> Any:
            x = np.stack(list(columns.values()), axis=1) - 1.3
            cost = (x[:, 0] ** 2 + 30.0 * (x[:, 1] - x[:, 0]) ** 2 + (x[:, 2:] ** 2).sum(axis=1))[:, None]
            return cost, np.zeros((len(cost), 1))

    assert minimise("cma-es", Valley(), 1600) < 1e-3


def test_evolution_of_a_large_budget_breeds_from_what_the_model_found() -> None:
    problem = toy.Toy()
    asked: dict[str, list[Any]] = {}
    kinds: dict[str, Any] = {"gp": "gp", "led": {"name": "nsga2", "gp_count": 96}, "nsga2": "nsga2"}
    for kind, spec in kinds.items():
        found, coding = search(spec, toy.PARAMETERS)
        asked[kind] = []
        for batch in range(8):
            internal, _ = found.ask(batch)
            values, constraints = numbers(problem, coding, internal)
            found.observe(Told(internal, values, excess(constraints)), None)
            asked[kind].append(internal)
    same = [np.array_equal(a, b, equal_nan=True) for a, b in zip(asked["gp"], asked["led"], strict=True)]
    assert same == [True] * 6 + [False] * 2

    seeds = range(6)
    alone = np.median([minimise("nsga2", problem, 208, s) for s in seeds])
    led = np.median([minimise(kinds["led"], problem, 208, s) for s in seeds])
    assert led - 3.0 < 0.7 * (alone - 3.0)


def test_a_model_is_fitted_on_one_thread_so_that_cores_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    class Watched(GaussianProcess):
        def __init__(self, *given: Any) -> None:
            threads.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
            super().__init__(*given)

    monkeypatch.setattr("codesign.study.gp.GaussianProcess", Watched)
    found, coding = search("gp", toy.PARAMETERS)
    internal = coding.decode(np.random.default_rng(7).random((32, len(coding.names))))
    found.observe(Told(internal, internal[:, :1] ** 2, np.zeros(32)), None)
    with threadpool_limits(2, user_api="blas"):
        found.ask(2)
    assert set(threads) == {1}


def test_a_batch_is_the_same_whenever_it_is_asked() -> None:
    for spec in ("gp", "tpe", "nsga2", "nsga3", "cma-es", "random", "sobol"):
        one, coding = search(spec, toy.PARAMETERS)
        internal, _ = one.ask(0)
        values, constraints = numbers(toy.Toy(), coding, internal)
        told = Told(internal, values, excess(constraints))
        one.observe(told, None)
        two, _ = search(spec, toy.PARAMETERS)
        two.remember(internal)
        two.observe(told, None)

        assert_array_equal(one.ask(1)[0], two.ask(1)[0])
        assert batch_generator(1, 2).random() != batch_generator(1, 3).random()


def test_a_kernel_density_sums_to_one_and_draws_what_it_says() -> None:
    parameters: Any = {"word": Choices(("a", "b", "c")), "n": IntRange(1, 6), "x": FloatRange(0.0, 1.0)}
    coding = Coding(parameters)
    points = coding.unit(coding.decode(np.random.default_rng(0).random((5, 3))))
    mixture = Mixture(coding, points)
    grid = np.stack(
        np.meshgrid((np.arange(3) + 0.5) / 3, (np.arange(6) + 0.5) / 6, (np.arange(400) + 0.5) / 400, indexing="ij"),
        axis=-1,
    ).reshape(-1, 3)

    density = np.exp(mixture.log_density(grid))
    drawn = coding.decode(mixture.draw(np.random.default_rng(1), 60_000))

    assert density.mean() == pytest.approx(1.0, abs=1e-3)
    cells = density.reshape(3, 6, 400).mean(axis=2) / 18.0
    found = np.zeros((3, 6))
    np.add.at(found, (drawn[:, 0].astype(int), drawn[:, 1].astype(int) - 1), 1.0 / 60_000)
    np.testing.assert_allclose(found, cells, atol=0.006)  # three standard errors of a share near 0.2


def test_optunas_samplers_by_name_see_rules_and_conditions() -> None:
    found, coding = search("optuna:TPESampler", toy.PARAMETERS, batch=8)
    for batch in range(3):
        internal, state = found.ask(batch)
        values, constraints = numbers(toy.Toy(), coding, internal)
        found.observe(Told(internal, values, excess(constraints)), state)

    assert len(internal) == 8
    for row in coding.rows(internal):
        assert ("reach_m" in row) == (row["medium"] == "optics")


@pytest.mark.parametrize("objectives", [2, 3])
def test_several_objectives_spread_over_the_front(objectives: int) -> None:
    class Simplex:
        """The front is where the parameters beyond the first ones are at one half."""

        parameters = {f"x{i}": FloatRange(0.0, 1.0) for i in range(6)}  # noqa: RUF012 - nobody changes it

        def screen(self, columns: Any) -> Any:
            x = np.stack(list(columns.values()), axis=1)
            far = 1.0 + ((x[:, objectives - 1 :] - 0.5) ** 2).sum(axis=1)
            shares = [np.ones(len(x))]
            for i in range(objectives - 1):
                shares = [shares[0] * x[:, i], *shares[1:], shares[0] * (1.0 - x[:, i])]
            return np.stack([far * s for s in shares], axis=1), np.zeros((len(x), 1))

    volumes = {}
    for spec, batches in [("nsga2", 50), ("nsga3", 50), ("tpe", 50), ("random", 50), ("gp", 12), ("random", 12)]:
        found, coding = search(spec, Simplex.parameters, objectives=objectives)
        every = []
        for batch in range(batches):
            internal, _ = found.ask(batch)
            values, constraints = numbers(Simplex(), coding, internal)  # type: ignore[arg-type]
            found.observe(Told(internal, values, excess(constraints)), None)
            every.append(values)
        volumes[spec, batches] = hypervolume(np.concatenate(every), np.full(objectives, 1.5))

    if objectives == 2:  # what the policy gives neither of the two with three
        assert volumes["gp", 12] > volumes["random", 12], volumes
        assert volumes["tpe", 50] > volumes["random", 50], volumes
    for spec in ("nsga2", "nsga3"):
        assert volumes[spec, 50] > volumes["random", 50], volumes


def test_a_library_that_a_sampler_misses_while_it_thinks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> None:
        raise ImportError("No module named 'torch'")

    asked = OptunaSuggester(Coding(toy.PARAMETERS), {"name": "optuna:RandomSampler"}, 0, 1)
    monkeypatch.setattr(asked, "_suggest", missing)
    with pytest.raises(StudyError, match=r"RandomSampler needs a library.*codesign\[gp\]"):
        asked.suggest(0, 0, 1)
