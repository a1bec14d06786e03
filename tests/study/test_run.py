"""The study loop: same trials whatever happens to the driver, on both back ends."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from codesign.errors import StudyError, UsageError
from codesign.store.repository import Store
from codesign.study.executor import Finished, InlineExecutor
from codesign.study.run import run_study
from tests.store.backends import sqlite_file
from tests.study import toy

LEARNING = [
    "gp",
    "tpe",
    "nsga2",
    "cma-es",
    "sobol",
    "random",
    "optuna:TPESampler",
    "optuna:NSGAIISampler",
    "optuna:CmaEsSampler",
]


class Dies(Exception):
    """What a test throws to end a driver."""


class MortalExecutor(InlineExecutor):
    """Evaluates so many batches, then dies with the next one in flight."""

    def __init__(self, batches: int) -> None:
        super().__init__()
        self._left = batches

    def wait(self, timeout_s: float) -> list[Finished]:
        if not self._left:
            raise Dies
        self._left -= 1
        return super().wait(timeout_s)


def trials(url: str, name: str = "toy") -> Any:
    with Store(url) as store:
        return store.columns(store.study(name))


def same(one: Any, other: Any) -> None:
    assert_array_equal(one.numbers, other.numbers)
    assert_array_equal(one.internal, other.internal)
    assert_array_equal(one.values, other.values)
    assert_array_equal(one.constraints, other.constraints)
    assert set(one.states) == set(other.states) == {"COMPLETE"}


def test_a_study_finds_better_designs_than_its_baselines(storage: str) -> None:
    summary = run_study(toy.recipe(baselines=toy.BASELINES), storage, trials_total=160)

    assert summary.state == "completed"
    assert summary.trials_count == 160
    assert [b.name for b in summary.baselines] == ["eight-way", "rack"]
    assert [b.number for b in summary.baselines] == [0, 1]
    assert summary.best is not None
    assert summary.best.feasible
    assert summary.best.values["cost_usd"] < min(b.values["cost_usd"] for b in summary.baselines)


def test_sqlite_and_postgresql_hold_the_same_trials(storage: str, tmp_path: Path) -> None:
    run_study(toy.recipe(), storage, trials_total=64)
    run_study(toy.recipe(), sqlite_file(tmp_path, "other"), trials_total=64)

    same(trials(storage), trials(sqlite_file(tmp_path, "other")))


@pytest.mark.parametrize("sampler", LEARNING)
def test_a_driver_that_dies_and_a_total_in_two_parts_change_no_trial(sampler: str, tmp_path: Path) -> None:
    recipe = toy.recipe(sampler=sampler, baselines=toy.BASELINES, batch_count=8)
    whole, torn = sqlite_file(tmp_path, "whole"), sqlite_file(tmp_path, "torn")

    run_study(recipe, whole, trials_total=56)
    with pytest.raises(Dies):
        run_study(recipe, torn, trials_total=43, executor=MortalExecutor(3))
    for batches in (1, 0):
        with pytest.raises(Dies):
            run_study(recipe, torn, trials_total=43, executor=MortalExecutor(batches))
    run_study(recipe, torn, trials_total=43)
    run_study(recipe, torn, extend=2)
    run_study(recipe, torn, trials_total=56)

    same(trials(whole), trials(torn))


@pytest.mark.parametrize("objectives", [2, 3])
def test_several_objectives_repeat_too(objectives: int, tmp_path: Path) -> None:
    metrics = (("cost_usd", "minimize"), ("latency_ns", "minimize"), ("rate_gbps", "maximize"))[:objectives]
    for sampler in ("gp", "tpe", "nsga2", "nsga3", "optuna:TPESampler"):
        recipe = toy.recipe(sampler=sampler, objectives=metrics)
        one, two = sqlite_file(tmp_path, f"{sampler}-1"), sqlite_file(tmp_path, f"{sampler}-2")
        summary = run_study(recipe, one, trials_total=48)
        with pytest.raises(Dies):
            run_study(recipe, two, trials_total=48, executor=MortalExecutor(1))
        run_study(recipe, two, trials_total=48)

        same(trials(one), trials(two))
        assert len(summary.front_numbers) > 1
        assert summary.hypervolume is not None
        assert summary.hypervolume > 0.0


def test_batches_in_flight_are_part_of_the_question_and_repeat(tmp_path: Path) -> None:
    recipe = toy.recipe(sampler={"name": "tpe", "in_flight": 3}, batch_count=8)
    one, two = sqlite_file(tmp_path, "one"), sqlite_file(tmp_path, "two")

    run_study(recipe, one, trials_total=64)
    with pytest.raises(Dies):
        run_study(recipe, two, trials_total=64, executor=MortalExecutor(4))
    run_study(recipe, two, trials_total=64)

    same(trials(one), trials(two))


def test_no_design_is_asked_twice_and_a_small_space_is_used_up(tmp_path: Path) -> None:
    for sampler in ("gp", "tpe", "nsga2", "exhaustive", "auto"):
        url = sqlite_file(tmp_path, sampler)
        summary = run_study(toy.recipe(parameters=toy.SMALL, sampler=sampler), url, trials_total=500)

        found = trials(url)
        keys = {row.tobytes() for row in np.where(np.isnan(found.internal), -1.0, found.internal)}
        assert summary.reason == "every design of the space was tried"
        assert summary.trials_count == len(keys) == 4 * 4 + 4 * 4 * 3


def test_a_total_that_is_reached_asks_nothing(storage: str) -> None:
    run_study(toy.recipe(), storage, trials_total=32)
    summary = run_study(toy.recipe(), storage, trials_total=32)

    assert summary.new_count == 0
    assert summary.trials_count == 32


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"catalog_digest": "facts-2"}, "catalog was facts-1, is facts-2"),
        ({"code_version": "1.1"}, "code was 1.0, is 1.1"),
        ({"seed": 8}, "seed was 7, is 8"),
        ({"parameters": toy.SMALL}, "space"),
        ({"batch_count": 4}, "batch size was 16, is 4"),
    ],
)
def test_a_changed_question_is_refused_by_name(change: dict[str, Any], word: str, tmp_path: Path) -> None:
    url = sqlite_file(tmp_path, "s")
    run_study(toy.recipe(), url, trials_total=16)

    with pytest.raises(StudyError, match=word) as refused:
        run_study(toy.recipe(**change), url, trials_total=32)

    assert "study copy toy NEW --rebase" in str(refused.value)
    assert len(trials(url)) == 16


def test_a_new_study_needs_a_total(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="how many trials in total"):
        run_study(toy.recipe(), sqlite_file(tmp_path, "s"))


def test_progress_counts_and_names_what_binds(tmp_path: Path) -> None:
    seen: list[Any] = []
    run_study(toy.recipe(), sqlite_file(tmp_path, "s"), trials_total=48, on_progress=seen.append)

    assert [p.done_count for p in seen] == [16, 32, 48]
    assert all(p.total_count == 48 for p in seen)
    assert seen[-1].binds in ("power", "area")
    assert seen[-1].best_values[0] == min(
        trials(sqlite_file(tmp_path, "s")).values[:, 0][kept(sqlite_file(tmp_path, "s"))]
    )


def kept(url: str) -> Any:
    return (trials(url).constraints <= 0.0).all(axis=1)


def test_patience_and_time_end_a_study_with_the_reason(tmp_path: Path) -> None:
    url = sqlite_file(tmp_path, "s")
    patient = run_study(toy.recipe(sampler="random"), url, trials_total=5000, patience_batches=4)
    late = run_study(toy.recipe(sampler="random"), url, trials_total=5000, time_limit_s=0.0)

    assert patient.state == "stopped"
    assert patient.reason is not None
    assert patient.reason.startswith("no gain in ")
    assert patient.trials_count < 5000
    assert late.reason == "time limit reached"
    assert late.new_count == 0


class Hoards(InlineExecutor):
    """Gives every batch in flight back at once, as fast workers might."""

    def wait(self, timeout_s: float) -> list[Finished]:
        return [finished for _ in range(len(self._queue)) for finished in super(Hoards, self).wait(timeout_s)]


@pytest.mark.parametrize("objectives", [1, 2])
@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_patience_ends_a_study_at_the_same_trial_whatever_happens_and_it_goes_on_as_if_never_stopped(
    sampler: str, objectives: int, tmp_path: Path
) -> None:
    metrics = (("cost_usd", "minimize"), ("latency_ns", "minimize"))[:objectives]
    recipe = toy.recipe(sampler=sampler, batch_count=4, objectives=metrics)
    names = ("whole", "torn", "grouped", "unlimited")
    whole, torn, grouped, unlimited = (sqlite_file(tmp_path, name) for name in names)

    stopped = run_study(recipe, whole, trials_total=400, patience_batches=3)
    with pytest.raises(Dies):
        run_study(recipe, torn, trials_total=10, executor=MortalExecutor(1))
    run_study(recipe, torn, trials_total=10)  # ends inside a batch
    again = run_study(recipe, torn, trials_total=400, patience_batches=3)
    run_study(recipe, grouped, trials_total=400, patience_batches=3, executor=Hoards())

    assert stopped.state == again.state == "stopped"
    assert stopped.reason == again.reason == "no gain in 3 batches"
    assert 12 <= stopped.trials_count < 400
    same(trials(whole), trials(torn))
    same(trials(whole), trials(grouped))
    assert run_study(recipe, whole, patience_batches=3).new_count == 0
    total = stopped.trials_count + 20
    assert run_study(recipe, whole, trials_total=total).state == "completed"
    run_study(recipe, unlimited, trials_total=total)
    same(trials(whole), trials(unlimited))


class Four(InlineExecutor):
    """Says that it is four."""

    workers_count = 4


def test_a_cost_in_worker_hours_counts_every_run_of_a_study(storage: str) -> None:
    """A batch takes 20 ms on what counts as four workers: four batches spend 0.3 worker-seconds, fewer may."""
    recipe, limit = toy.recipe(sampler="tpe", sleep_s=0.02), 0.3 / 3600.0
    first = run_study(recipe, storage, trials_total=32, executor=Four(), worker_hours=limit)
    summary = run_study(recipe, storage, trials_total=800, executor=Four(), worker_hours=limit)
    again = run_study(recipe, storage, executor=Four(), worker_hours=limit)

    assert first.trials_count <= 32
    assert (summary.state, again.state) == ("stopped", "stopped")
    assert summary.trials_count <= 64
    assert again.new_count <= 16  # none, unless the clock of the database is a hair behind the driver's
    assert again.reason is not None
    assert again.reason.endswith(f" worker-hours spent, {limit:g} allowed")
    with Store(storage) as store:
        assert store.worker_hours(store.study("toy")) >= limit
        assert store.study("toy").reason == again.reason


def test_batches_in_flight_together_are_paid_once_and_the_time_between_runs_never(tmp_path: Path) -> None:
    recipe, url = toy.recipe(sampler="random", sleep_s=0.01), sqlite_file(tmp_path, "s")
    began = time.monotonic()
    with pytest.raises(Dies):
        run_study(recipe, url, trials_total=160, executor=MortalExecutor(3))
    dead_s = time.monotonic() - began
    time.sleep(1.0)
    one = run_study(recipe, url, trials_total=160)

    with Store(url) as store:
        spent_s = 3600.0 * store.worker_hours(store.study("toy"))
    assert 0.01 * 10 <= spent_s <= dead_s + one.elapsed_s


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ({"time_limit_s": -1.0}, "time limit: wanted seconds, 0 or more; got -1.0"),
        ({"time_limit_s": float("nan")}, "got nan"),
        ({"patience_batches": 0}, "patience: wanted a whole number of batches, 1 or more; got 0"),
        ({"patience_batches": 2.5}, "got 2.5"),
        ({"worker_hours": 0.0}, "worker-hours: wanted a number above 0; got 0.0"),
        ({"worker_hours": float("nan")}, "got nan"),
    ],
)
def test_a_limit_that_is_none_is_refused_before_anything_is_stored(
    limit: dict[str, Any], says: str, tmp_path: Path
) -> None:
    url = sqlite_file(tmp_path, "s")

    with pytest.raises(UsageError, match=says):
        run_study(toy.recipe(), url, trials_total=16, **limit)

    with Store(url) as store:
        assert not store.has_study("toy")


def test_ctrl_c_leaves_a_study_that_goes_on(tmp_path: Path) -> None:
    class Interrupted(InlineExecutor):
        def wait(self, timeout_s: float) -> list[Finished]:
            raise KeyboardInterrupt(timeout_s)

    url = sqlite_file(tmp_path, "s")
    summary = run_study(toy.recipe(), url, trials_total=32, executor=Interrupted())
    again = run_study(toy.recipe(), url, trials_total=32)

    assert (summary.state, summary.reason) == ("paused", "interrupted")
    assert again.trials_count == 32
    assert set(trials(url).states) == {"COMPLETE"}


def test_details_and_both_forms_of_a_design_are_kept_as_strict_json(storage: str) -> None:
    run_study(toy.recipe(), storage, trials_total=16)

    with Store(storage) as store:
        records = list(store.evaluations(store.study("toy")))
    assert [r.number for r in records] == list(range(16))
    for record in records:
        assert json.loads(record.asked) == json.loads(record.repaired)
        assert json.loads(record.details)["bill"]["link_usd"] > 0.0
        assert record.fidelity == "model"


def test_a_lost_row_is_recorded_with_its_reason_and_the_rest_stays(tmp_path: Path) -> None:
    class Loses(InlineExecutor):
        def wait(self, timeout_s: float) -> list[Finished]:
            return [replace(f, failed={3: "killed its worker"}) for f in super().wait(timeout_s)]

    url = sqlite_file(tmp_path, "s")
    summary = run_study(toy.recipe(), url, trials_total=16, executor=Loses())

    assert summary.failed_count == 1
    assert trials(url).states[3] == "FAIL"
    with Store(url) as store:
        record = next(iter(store.evaluations(store.study("toy"), [3])))
    assert json.loads(record.details) == {"error": "killed its worker"}


def test_another_driver_is_refused_while_one_works(tmp_path: Path) -> None:
    url = sqlite_file(tmp_path, "s")

    class Intrudes(InlineExecutor):
        def wait(self, timeout_s: float) -> list[Finished]:
            with pytest.raises(StudyError, match="is being run by process"):
                run_study(toy.recipe(), url, trials_total=16)
            return super().wait(timeout_s)

    assert run_study(toy.recipe(), url, trials_total=16, executor=Intrudes()).trials_count == 16
