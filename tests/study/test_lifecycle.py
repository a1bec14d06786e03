"""A study's life: requests, copies, relatives, tombstones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codesign.errors import StudyError, UsageError
from codesign.store.repository import Store
from codesign.study import lifecycle
from codesign.study.executor import Finished, InlineExecutor
from codesign.study.lineage import lineage, parent_sweep
from codesign.study.progress import summarise
from codesign.study.run import run_study
from codesign.study.sweep import promoted, run_sweep
from tests.store.backends import sqlite_file
from tests.study import toy

TWO: Any = (("cost_usd", "minimize"), ("rate_gbps", "maximize"))


class Asks(InlineExecutor):
    """Somebody sends a request while the second batch is evaluated."""

    def __init__(self, url: str, verb: str) -> None:
        super().__init__()
        self._url, self._verb, self._calls = url, verb, 0

    def wait(self, timeout_s: float) -> list[Finished]:
        self._calls += 1
        if self._calls == 2:
            with Store(self._url) as store:
                said = lifecycle.request(store, "toy", self._verb, "lunch")
            assert said == f"asked the running driver to {self._verb}"
        return super().wait(timeout_s)


@pytest.mark.parametrize(("verb", "state"), [("pause", "paused"), ("stop", "stopped")])
def test_a_request_ends_a_run_after_the_batch_in_flight_and_run_goes_on(storage: str, verb: str, state: str) -> None:
    summary = run_study(toy.recipe(), storage, trials_total=160, executor=Asks(storage, verb))
    assert (summary.state, summary.trials_count) == (state, 32)

    again = run_study(toy.recipe(), storage, trials_total=160)

    assert (again.state, again.trials_count) == ("completed", 160)
    with Store(storage) as store:
        events = [(e.kind, e.data.get("to") or e.data.get("verb")) for e in store.events("toy")]
    assert events == [
        ("created", None),
        ("state", "running"),
        ("request", verb),
        ("state", state),
        ("state", "running"),
        ("state", "completed"),
    ]


def test_a_cancelled_study_gives_up_what_is_in_flight_and_stays_cancelled(storage: str) -> None:
    recipe = toy.recipe(sampler="random")
    summary = run_study(recipe, storage, trials_total=160, executor=Asks(storage, "cancel"))

    assert summary.state == "cancelled"
    with Store(storage) as store:
        states = store.columns(store.study("toy")).states
    assert (states == "COMPLETE").sum() == 32
    assert not (states == "RUNNING").any()
    with pytest.raises(StudyError, match="was cancelled; copy it"):
        run_study(recipe, storage, trials_total=320)


#: What becomes of a study that nobody works on; "" where it is refused and stays.
TABLE = {
    "draft": {"pause": "", "stop": "", "cancel": "cancelled"},
    "running": {"pause": "paused", "stop": "stopped", "cancel": "cancelled"},  # its driver died
    "paused": {"pause": "", "stop": "stopped", "cancel": "cancelled"},
    "stopped": {"pause": "", "stop": "", "cancel": "cancelled"},
    "failed": {"pause": "", "stop": "stopped", "cancel": "cancelled"},
    "completed": {"pause": "", "stop": "", "cancel": ""},
    "cancelled": {"pause": "", "stop": "", "cancel": ""},
}


@pytest.mark.parametrize(("state", "verb"), [(state, verb) for state, row in TABLE.items() for verb in row])
def test_a_request_without_a_driver_takes_effect_where_there_is_something_to_end(
    state: str, verb: str, tmp_path: Path
) -> None:
    with Store(sqlite_file(tmp_path, "s")) as store:
        lifecycle.create_study(store, toy.recipe()(), "toy", 16)
        store.transition("toy", state, "me", "test")

        if becomes := TABLE[state][verb]:
            assert lifecycle.request(store, "toy", verb) == becomes
            assert store.study("toy").state == becomes
        else:
            said = "already" if lifecycle.REQUESTS[verb] == state else f"there is nothing to {verb}"
            with pytest.raises(StudyError, match=f"study 'toy' is {state} .*{said}"):
                lifecycle.request(store, "toy", verb)
            assert store.study("toy").state == state
        with pytest.raises(UsageError, match="no request 'halt'"):
            lifecycle.request(store, "toy", "halt")


@pytest.mark.parametrize("state", [*TABLE, "completed"])
def test_any_study_but_a_cancelled_one_is_run_and_extended(state: str, tmp_path: Path) -> None:
    url, recipe = sqlite_file(tmp_path, "s"), toy.recipe(sampler="random")
    run_study(recipe, url, trials_total=16)
    with Store(url) as store:
        store.transition("toy", state, "me", "test")

    if state == "cancelled":
        for extend in (None, 16):
            with pytest.raises(StudyError, match="was cancelled; copy it to go on"):
                run_study(recipe, url, extend=extend)
        with Store(url) as store:
            assert store.study("toy").trials_total == 16
        return
    assert run_study(recipe, url).new_count == 0
    found = run_study(recipe, url, extend=16)
    assert (found.state, found.trials_count) == ("completed", 32)


class Extends(InlineExecutor):
    """Somebody runs the study with another total while the first batch is evaluated."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    def wait(self, timeout_s: float) -> list[Finished]:
        with pytest.raises(StudyError, match="is being run by process"):
            run_study(toy.recipe(sampler="random"), self._url, extend=100)
        with Store(self._url) as store:
            assert store.study("toy").trials_total == 16
        return super().wait(timeout_s)


def test_a_total_is_not_moved_under_a_running_driver(tmp_path: Path) -> None:
    url = sqlite_file(tmp_path, "s")

    found = run_study(toy.recipe(sampler="random"), url, trials_total=16, executor=Extends(url))

    assert (found.state, found.trials_count) == ("completed", 16)


def test_a_request_that_comes_with_the_last_batch_finds_a_completed_study(tmp_path: Path) -> None:
    url = sqlite_file(tmp_path, "s")

    assert run_study(toy.recipe(), url, trials_total=32, executor=Asks(url, "pause")).state == "completed"


def test_a_rebased_copy_tries_the_parents_best_first_and_evaluates_them_anew(storage: str) -> None:
    run_study(toy.recipe(), storage, trials_total=64)
    changed = toy.recipe(catalog_digest="facts-2")
    with Store(storage) as store:
        child = lifecycle.copy_study(store, "toy", "child", problem=changed(), rebase=True, keep=5)
        best = summarise(store, "toy").best
        with pytest.raises(StudyError, match="needs the problem"):
            lifecycle.copy_study(store, "toy", "other", rebase=True)
        with pytest.raises(StudyError, match="another catalog"):
            lifecycle.copy_study(store, "toy", "other", problem=changed())

    summary = run_study(changed, storage, "child", trials_total=32)

    assert child.parent == "toy"
    assert len(child.first_rows) == 5
    with Store(storage) as store:
        columns = store.columns(store.study("child"))
    assert best is not None
    assert columns.values[0, 0] == best.values["cost_usd"]
    assert summary.best is not None
    assert summary.best.values["cost_usd"] <= best.values["cost_usd"]


def test_a_study_knows_its_relatives_and_which_share_its_space(storage: str, tmp_path: Path) -> None:
    run_sweep(toy.recipe(), storage, "screen", points_count=64, folder=tmp_path)
    with Store(storage) as store:
        rows = promoted(store, "screen", 4)
    run_study(toy.recipe(), storage, trials_total=16, first_rows=rows, parent=parent_sweep("screen"))
    small = toy.recipe(parameters={name: p for name, p in toy.PARAMETERS.items() if name != "reach_m"})
    run_study(small, storage, "other", trials_total=16)
    with Store(storage) as store:
        lifecycle.copy_study(store, "toy", "child")
        lifecycle.copy_study(store, "child", "grandchild", problem=toy.recipe(catalog_digest="facts-2")(), rebase=True)
        store.set_study("other", parent="child")
        store.set_study("grandchild", trials_total=8)

        assert lineage(store, "child") == {
            "ancestors": [
                {"name": "toy", "kind": "study", "same_space": True},
                {"name": "screen", "kind": "sweep", "same_space": True},
            ],
            "children": [
                {"name": "other", "kind": "study", "same_space": False},
                {"name": "grandchild", "kind": "study", "same_space": True},
            ],
            "same_space": ["toy", "grandchild"],
        }
        store.set_study("child", parent="elsewhere")
        assert lineage(store, "child")["ancestors"] == [{"name": "elsewhere", "kind": None, "same_space": None}]


def test_a_copy_asks_the_same_question_and_tries_the_parents_best_first(storage: str) -> None:
    recipe = toy.recipe(baselines=toy.BASELINES)
    first = run_study(recipe, storage, trials_total=48)
    with Store(storage) as store:
        child = lifecycle.copy_study(store, "toy", "child", keep=4)
        parent = store.study("toy")
    assert (child.state, child.parent, child.reference) == ("draft", "toy", None)
    for part in ("space_digest", "catalog_digest", "code_version", "sampler", "seed", "objectives", "fidelity"):
        assert getattr(child, part) == getattr(parent, part)

    second = run_study(recipe, storage, "child", trials_total=16)

    assert [b.name for b in second.baselines] == ["eight-way", "rack"]
    assert first.best is not None
    assert second.best is not None
    assert second.best.values["cost_usd"] <= first.best.values["cost_usd"]


def test_a_run_that_fails_says_so_in_the_state_and_the_next_goes_on(storage: str) -> None:
    class Fails(InlineExecutor):
        def wait(self, timeout_s: float) -> list[Finished]:
            raise StudyError(f"no luck within {timeout_s:g} s")

    with pytest.raises(StudyError, match="no luck"):
        run_study(toy.recipe(), storage, trials_total=32, executor=Fails())
    with Store(storage) as store:
        assert store.study("toy").state == "failed"
        assert "no luck" in str(store.study("toy").reason)

    assert run_study(toy.recipe(), storage, trials_total=32).state == "completed"


def test_a_tombstone_takes_a_trial_out_of_every_answer(storage: str) -> None:
    first = run_study(toy.recipe(), storage, trials_total=32)
    assert first.best is not None
    with Store(storage) as store:
        store.tombstone(store.study("toy"), first.best.number, "wrong price", "me")
        second = summarise(store, "toy")
        with pytest.raises(StudyError, match="no finished trial 999"):
            store.tombstone(store.study("toy"), 999, "x", "me")

    assert second.best is not None
    assert second.best.number != first.best.number
    assert second.best.values["cost_usd"] > first.best.values["cost_usd"]


def test_lists_show_how_far_each_study_is(storage: str) -> None:
    run_study(toy.recipe(), storage, "one", trials_total=32)
    run_study(toy.recipe(), storage, "two", trials_total=64, time_limit_s=0.0)

    with Store(storage) as store:
        lines = lifecycle.list_studies(store)
        with pytest.raises(StudyError, match="did you mean 'two'"):
            store.study("tow")

    assert [(x.name, x.state, x.trials_count, x.total_count) for x in lines] == [
        ("one", "completed", 32, 32),
        ("two", "stopped", 0, 64),
    ]


def test_summaries_hold_plain_numbers(storage: str) -> None:
    summary = run_study(toy.recipe(), storage, trials_total=16)

    assert sum(summary.refusals.values()) >= 16 - summary.feasible_count
    assert summary.best is not None
    assert not isinstance(summary.best.values["cost_usd"], np.generic)
