"""The dashboard: a review study of bounded size, notes and figures, reading only."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest

from codesign.errors import StudyError
from codesign.store.repository import Store
from codesign.study.run import run_study
from codesign.views.dashboard import application, feasible_front, publish_review
from tests.store.backends import close_storages, optuna_storage, sqlite_file
from tests.study import toy
from tests.views.browser import get

TWO: Any = (("cost_usd", "minimize"), ("rate_gbps", "maximize"))


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    address = sqlite_file(tmp_path, "s")
    run_study(toy.recipe(objectives=TWO, sampler="nsga2", baselines=toy.BASELINES), address, trials_total=400)
    yield address
    close_storages()


def test_the_review_shows_baselines_front_and_best_and_no_more_than_asked(url: str) -> None:
    name = publish_review(url, "toy", most=100)

    review = optuna.load_study(study_name=name, storage=optuna_storage(url))
    whole = optuna.load_study(study_name="toy", storage=optuna_storage(url))
    shown = {t.user_attrs["trial"]: t for t in review.trials}
    assert len(review.trials) <= 100
    assert {t.user_attrs.get("baseline") for t in review.trials} >= {"eight-way", "rack"}
    for trial in feasible_front(whole.trials, whole.directions)[:50]:
        assert shown[trial.number].values == trial.values
        assert shown[trial.number].params == trial.params
        assert shown[trial.number].constraints == trial.constraints


def test_a_review_is_refreshed_in_place_and_never_replaces_a_study(url: str) -> None:
    publish_review(url, "toy", most=50)
    publish_review(url, "toy", most=60)

    names = optuna.get_all_study_names(optuna_storage(url))
    assert sorted(names) == ["toy", "toy (review)"]
    run_study(toy.recipe(), url, "older", trials_total=16)
    with Store(url) as store, store.transaction() as connection:  # a name from before names were plain words
        renamed = "UPDATE codesign_study SET name = 'other (review)' WHERE name = ?"
        assert store.database.execute(connection, renamed, "older") == 1
    run_study(toy.recipe(), url, "other", trials_total=16)
    with pytest.raises(StudyError, match="is a study, not a copy"):
        publish_review(url, "other")


def test_notes_tell_the_design_and_figures_are_there(url: str) -> None:
    name = publish_review(url, "toy")
    storage = optuna_storage(url)
    study_id = storage.get_study_id_from_name(name)
    attributes = storage.get_study_system_attrs(study_id)

    notes = [v for k, v in attributes.items() if ":note_str:" in k]
    assert any("400 trials" in note and "Rules, in the order of the constraints: power, area" in note for note in notes)
    assert any("eight-way" in note and "| medium | copper |" in note for note in notes)
    assert any(k.startswith("dashboard:plot_data:front") for k in attributes)


def test_pages_come_through_our_loader_and_nothing_can_be_changed(url: str) -> None:
    name = publish_review(url, "toy", most=100)
    app = application(url)

    status, body = get(app, "/api/studies")
    studies = {s["study_name"]: s["study_id"] for s in json.loads(body)["study_summaries"]}
    assert status.startswith("200")
    status, body = get(app, f"/api/studies/{studies[name]}?after=0")
    detail = json.loads(body)
    assert status.startswith("200")
    assert len(detail["trials"]) <= 100
    assert detail["trials"][0]["constraints"] != []
    with Store(url) as store:
        front = {v["number"] for v in detail["best_trials"]}
        columns = store.columns(store.study("toy"))
    assert front
    for trial in detail["best_trials"]:
        assert all(c <= 0.0 for c in trial["constraints"])
    assert len(columns) == 400
    assert get(app, f"/api/studies/{studies[name]}", "DELETE")[0].startswith("403")
    assert get(app, "/api/studies", "POST")[0].startswith("403")
