"""Optuna reads what we write, we read what Optuna writes, and numbers never clash."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

from codesign.errors import StoreError, StudyError
from codesign.store import trials
from codesign.store.database import normal_url
from codesign.store.repository import Store
from codesign.study.executor import Finished, InlineExecutor
from codesign.study.run import run_study
from tests.store.backends import closed_later, optuna_storage, plain_rows
from tests.study import toy

STORM = Path(__file__).parents[2] / "benchmarks" / "storm.py"
THREE: Any = (("cost_usd", "minimize"), ("latency_ns", "minimize"), ("rate_gbps", "maximize"))


def plain(url: str) -> optuna.Study:
    """The study as Optuna alone opens it."""
    return optuna.load_study(study_name="toy", storage=optuna_storage(url))


def test_plain_optuna_reads_every_trial(storage: str) -> None:
    run_study(toy.recipe(objectives=THREE, baselines=toy.BASELINES), storage, trials_total=32)

    study = plain(storage)
    assert [t.number for t in study.trials] == list(range(32))
    assert [d.name for d in study.directions] == ["MINIMIZE", "MINIMIZE", "MAXIMIZE"]
    assert study.metric_names == ["cost_usd", "latency_ns", "rate_gbps"]
    assert study.user_attrs["codesign:rules"] == ["power", "area"]
    first = study.trials[0]
    assert first.params == dict(toy.BASELINES[0][1])
    assert first.user_attrs == {"baseline": "eight-way"}
    assert list(study.trials[1].params) == list(toy.PARAMETERS)
    for trial in study.trials:
        trial._validate()
        assert list(trial.constraints.values()) == trial.system_attrs["constraints"]
    with Store(storage) as store:
        columns = store.columns(store.study("toy"))
    assert [t.values for t in study.trials] == columns.values.tolist()


def test_both_loaders_give_equal_trials(storage: str) -> None:
    run_study(toy.recipe(objectives=THREE), storage, trials_total=24)
    study = plain(storage)
    mine = study.ask()
    mine.suggest_float("rate_gbps", 25.0, 224.0)
    mine.set_user_attr("note", {"a": [1, 2.5, None]})
    study.tell(mine, [1.0, float("inf"), 2.0])
    running = study.ask()
    single = optuna.create_study(storage=optuna_storage(storage), study_name="single")
    other = single.ask()
    other.report(0.5, 1)
    other.report(float("nan"), 2)
    single.tell(other, state=optuna.trial.TrialState.PRUNED)

    for name in ("toy", "single"):
        stock = optuna_storage(storage)
        fast = closed_later(trials.fast_storage(normal_url(storage)))
        study_id = stock.get_study_id_from_name(name)
        expected, found = stock.get_all_trials(study_id), fast.get_all_trials(study_id)
        assert len(found) == len(expected) > 0
        for one, two in zip(expected, found, strict=True):
            assert repr(one.__dict__) == repr(two.__dict__)
        last = expected[-3:][0]._trial_id
        some = stock._get_trials(study_id, None, {expected[0]._trial_id}, last)
        assert repr(some) == repr(fast._get_trials(study_id, None, {expected[0]._trial_id}, last))
        done = (optuna.trial.TrialState.COMPLETE,)
        assert repr(stock._get_trials(study_id, done, set(), -1)) == repr(fast._get_trials(study_id, done, set(), -1))
    assert running.number == 25


def test_optuna_works_on_through_the_cached_fast_storage(storage: str) -> None:
    run_study(toy.recipe(), storage, trials_total=16)

    cached = trials.cached_storage(normal_url(storage))
    closed_later(cached._backend)
    study = optuna.load_study(study_name="toy", storage=cached)
    assert len(study.trials) == 16
    plain(storage).add_trial(study.trials[3])
    assert len(study.trials) == 17


def test_trials_that_others_add_are_counted_and_the_study_is_called_mixed(storage: str) -> None:
    run_study(toy.recipe(), storage, trials_total=16)
    study = plain(storage)
    study.add_trial(study.trials[0])

    summary = run_study(toy.recipe(), storage, trials_total=32)

    assert summary.mixed
    assert [t.number for t in plain(storage).trials] == list(range(33))
    assert sum(s == "COMPLETE" for (s,) in plain_rows(storage, "SELECT state FROM trials")) == 33


def test_stale_running_trials_of_others_are_failed_and_fresh_ones_left(storage: str) -> None:
    run_study(toy.recipe(), storage, trials_total=16)
    study = plain(storage)
    study.ask()
    with Store(storage) as store:
        record = store.study("toy")
        assert store.fail_strangers(record, grace_s=3600.0) == 0
        assert store.fail_strangers(record, grace_s=-1.0) == 1

    assert [t.state.name for t in plain(storage).trials][-1] == "FAIL"


def test_what_is_stored_is_strict_json(storage: str) -> None:
    run_study(toy.recipe(), storage, trials_total=16)

    def refuse(word: str) -> None:
        raise AssertionError(word)

    for table, column in (
        ("trial_system_attributes", "value_json"),
        ("codesign_evaluation", "details"),
        ("codesign_evaluation", "repaired"),
        ("codesign_study", "parameters"),
        ("codesign_event", "data"),
    ):
        texts = plain_rows(storage, f"SELECT {column} FROM {table}")
        assert texts
        for (text,) in texts:
            json.loads(text, parse_constant=refuse)


def test_a_finished_batch_is_never_finished_twice(storage: str) -> None:
    run_study(toy.recipe(), storage, trials_total=16)
    with Store(storage) as store:
        study = store.study("toy")
        batch = replace(store.batches(study)[0], run_id="somebody else")
        with pytest.raises(StudyError, match="took this study over"):
            store.close_batch(study, batch, np.zeros((16, 1)), np.zeros((16, 2)), [("", "{}", "{}", "{}")] * 16)
        with store.database.write() as connection:
            optuna_id = trials.optuna_study_id(store.database, connection, "toy")
            assert optuna_id is not None
            with pytest.raises(StoreError, match="finished or deleted by somebody else"):
                trials.finish(store.database, connection, optuna_id, 0, np.zeros((16, 1)), np.zeros((16, 2)))
        assert (store.columns(study).values != 0.0).all()


def test_a_deleted_study_leaves_nothing_behind(storage: str) -> None:
    run_study(toy.recipe(baselines=toy.BASELINES), storage, trials_total=16)
    with Store(storage) as store:
        store.delete_study("toy")

    for table in ("trials", "trial_params", "trial_values", "codesign_study", "codesign_batch", "codesign_evaluation"):
        assert plain_rows(storage, f"SELECT * FROM {table}") == []


@pytest.mark.slow
def test_many_drivers_on_one_study_lose_repeat_and_change_nothing(storage: str) -> None:
    command = [sys.executable, str(STORM), "--processes", "6", "--seconds", "2", "--storage", storage]

    storm = subprocess.run(command, capture_output=True, text=True)

    assert storm.returncode == 0, storm.stdout + storm.stderr
    assert "errors met: 0\nfaults found: 0\n" in storm.stdout
    with Store(storage) as store:
        study = store.study("toy")
        assert study.mixed
        assert len(store.columns(study)) >= 6 * 8


def test_drivers_that_share_a_study_end_at_its_total_together(storage: str) -> None:
    """A second driver begins while the first has a batch in flight, and neither goes beyond the total."""
    recipe = toy.recipe(sampler="random", batch_count=8)

    class Invites(InlineExecutor):
        joined = False

        def wait(self, timeout_s: float) -> list[Finished]:
            if not self.joined:
                self.joined = True
                run_study(recipe, storage, trials_total=100, join=True)
            return super().wait(timeout_s)

    run_study(recipe, storage, trials_total=100, executor=Invites(), join=True)

    rows = plain_rows(storage, "SELECT number, state FROM trials ORDER BY trial_id")
    assert [tuple(row) for row in rows] == [(n, "COMPLETE") for n in range(100)]
