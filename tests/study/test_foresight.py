"""What a search knows before it evaluates: the same rules, the same machines, numbers that costs follow."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from codesign.candidates import assemble
from codesign.evaluation import physical_violations
from codesign.space import shipped_spaces
from codesign.study.coding import Coding
from codesign.study.foresight import Sight, settled
from codesign.study.fronts import excess
from codesign.study.gaussian import GaussianProcess
from codesign.study.policy import resolve
from codesign.study.problem import SpaceProblem, recipe_of
from codesign.study.problem_protocol import Foreseen
from codesign.study.samplers import Told, grid, grid_size
from codesign.study.search import suggester
from codesign.study.suggest import Search
from codesign.units import Array


def drawn(problem: SpaceProblem, count: int, seed: int = 0) -> tuple[Coding, Array]:
    coding = Coding(problem.parameters)
    return coding, coding.decode(np.random.default_rng(seed).random((count, len(coding.names))))


@pytest.mark.parametrize("space", sorted(shipped_spaces()))
def test_a_settled_row_is_the_design_that_was_evaluated(space: str) -> None:
    problem = recipe_of(space)()
    coding, asked = drawn(problem, 12)

    built = settled(coding, problem, asked)

    assert np.array_equal(settled(coding, problem, built), built, equal_nan=True)
    as_asked, as_built = problem.evaluate(coding.rows(asked)), problem.evaluate(coding.rows(built))
    assert np.array_equal(as_asked.values, as_built.values)
    assert np.array_equal(as_asked.constraints, as_built.constraints, equal_nan=True)


@pytest.mark.parametrize("space", sorted(shipped_spaces()))
def test_buildable_is_what_breaks_no_rule_of_physics(space: str) -> None:
    problem = recipe_of(space)()
    coding, asked = drawn(problem, 200)

    found = problem.foreseen(coding.columns(asked))

    candidates = assemble(coding.columns(asked), len(asked), problem.space)
    assert np.array_equal(found.buildable, physical_violations(candidates, problem.space, problem.catalog).feasible())
    assert np.isfinite(found.traits).all()


def test_what_is_foreseen_of_a_row_does_not_depend_on_its_batch() -> None:
    problem = recipe_of("serving_moe")()
    coding, asked = drawn(problem, 40)

    whole, part = problem.foreseen(coding.columns(asked)), problem.foreseen(coding.columns(asked[7:19]))

    assert np.array_equal(whole.traits[7:19], part.traits)
    assert np.array_equal(whole.buildable[7:19], part.buildable)


def test_a_cost_is_told_better_from_traits_than_from_parameters() -> None:
    problem = recipe_of("training_dense")()
    coding, asked = drawn(problem, 180)
    built = settled(coding, problem, asked)
    answer = problem.evaluate(coding.rows(built))
    kept = excess(answer.constraints) <= 0.0
    cost = np.log(answer.values[kept, 0])
    points = coding.filled_unit(built[kept])

    def error(sight: Sight) -> float:
        model = GaussianProcess(sight.coordinates[:100], cost[:100], sight.ordered)
        return float(np.abs(model.predict(sight.coordinates[100:])[0] - cost[100:]).mean())

    assert error(Sight(coding, problem, points)) < 0.7 * error(Sight(coding, None, points))


def test_the_search_suggests_what_can_be_built_and_no_design_twice() -> None:
    problem = recipe_of("training_dense")()
    coding = Coding(problem.parameters)
    spec = resolve("gp", coding, 1, 100, 8)
    search = Search(coding, suggester(spec, coding, 5, 8, problem.objectives, problem), 5, 8, np.empty((0, 26)))
    designs: list[bytes] = []
    for index in range(5):
        internal, _ = search.ask(index)
        built = settled(coding, problem, internal)
        for row in range(len(built)):
            np.testing.assert_allclose(built[row], internal[row], rtol=1e-12)
        designs += coding.keys(built)
        answer = problem.evaluate(coding.rows(internal))
        search.observe(Told(internal, answer.values, excess(answer.constraints)), None)
    assert len(set(designs)) == 40


def test_where_nothing_can_be_built_the_search_goes_on() -> None:
    problem = recipe_of("training_dense")()
    coding = Coding(problem.parameters)

    class Hopeless:
        settled = staticmethod(problem.settled)

        @staticmethod
        def foreseen(columns: Mapping[str, NDArray[Any]]) -> Foreseen:
            found = problem.foreseen(columns)
            return replace(found, buildable=np.zeros_like(found.buildable))

    spec = resolve("gp", coding, 1, 100, 8)
    search = Search(coding, suggester(spec, coding, 5, 8, problem.objectives, Hopeless()), 5, 8, np.empty((0, 26)))
    for index in range(4):
        internal, _ = search.ask(index)
        assert len(internal) == 8
        search.observe(Told(internal, np.full((8, 1), 1e6), np.linspace(0.1, 2.0, 8)), None)


def test_the_best_of_a_space_tried_whole_is_found_by_a_small_part_of_it() -> None:
    whole = recipe_of("training_dense")()
    kept = ("memory_kind", "memory_stacks_count", "compute_dies_count", "node", "nic_rate_gbps")
    vary = {name: options for name, options in whole.space.vary.items() if name in kept}
    problem = SpaceProblem(whole.space.model_copy(update={"vary": vary}), whole.space_text, whole.catalog)
    coding = Coding(problem.parameters)
    every = coding.decode(grid(coding, 0, 0, grid_size(coding)))
    answer = problem.evaluate(coding.rows(every))
    violation = excess(answer.constraints)
    table = {key: i for i, key in enumerate(coding.keys(every))}
    least = answer.values[violation <= 0.0, 0].min()
    assert len(table) == 1980
    assert (answer.values[:, 0] == least).sum() < 10

    for seed in range(3):
        spec = resolve("gp", coding, 1, 100, 8)
        search = Search(coding, suggester(spec, coding, seed, 8, problem.objectives, problem), seed, 8, every[:0])
        best = np.inf
        for index in range(9):
            internal, _ = search.ask(index)
            at = [table[key] for key in coding.keys(internal)]
            search.observe(Told(internal, answer.values[at], violation[at]), None)
            best = min(best, answer.values[at][violation[at] <= 0.0].min(initial=np.inf))
        assert best == least


@pytest.mark.parametrize("batch", [4, 8, 16])
def test_a_small_space_is_tried_to_its_last_design(batch: int) -> None:
    whole = recipe_of("training_dense")()
    vary = {name: whole.space.vary[name] for name in ("memory_kind", "memory_stacks_count")}
    problem = SpaceProblem(whole.space.model_copy(update={"vary": vary}), whole.space_text, whole.catalog)
    coding = Coding(problem.parameters)
    spec = resolve("gp", coding, 1, 100, batch)
    search = Search(coding, suggester(spec, coding, 0, batch, problem.objectives, problem), 0, batch, np.empty((0, 2)))
    tried: list[bytes] = []
    for index in range(-(-33 // batch) + 1):
        internal, _ = search.ask(index)
        tried += coding.keys(internal)
        answer = problem.evaluate(coding.rows(internal)) if len(internal) else None
        if answer is not None:
            search.observe(Told(internal, answer.values, excess(answer.constraints)), None)
    assert len(tried) == len(set(tried)) == 33
