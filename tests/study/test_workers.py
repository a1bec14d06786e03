"""Ray: the same trials as in one process, whoever dies on the way. One cluster for all of these tests."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_array_equal

from codesign.errors import ExecutorError, StudyError
from codesign.store.repository import Store
from codesign.study import workers
from codesign.study.run import run_study
from codesign.study.workers import RayExecutor, RayPool
from tests.store.backends import sqlite_file
from tests.study import toy

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture(scope="module")
def pool() -> Iterator[RayPool]:
    started = RayPool(2, keep=True, task_limit_s=8.0)
    try:
        yield started
    finally:
        started.shutdown()


def trials(url: str) -> Any:
    with Store(url) as store:
        return store.columns(store.study("toy"))


def test_workers_give_the_same_trials_as_one_process_though_one_is_killed(
    pool: RayPool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    inline, spread = sqlite_file(tmp_path, "inline"), sqlite_file(tmp_path, "ray")
    mine = tmp_path / "kill"
    mine.touch()
    run_study(toy.recipe(), inline, trials_total=64)

    run_study(toy.recipe(kill_file=str(mine)), spread, trials_total=64, executor=RayExecutor(pool))

    one, two = trials(inline), trials(spread)
    assert_array_equal(one.internal, two.internal)
    assert_array_equal(one.values, two.values)
    assert_array_equal(one.constraints, two.constraints)
    assert set(two.states) == {"COMPLETE"}
    assert not mine.exists()
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err == ""


def test_a_row_that_kills_workers_is_found_and_recorded(pool: RayPool, tmp_path: Path) -> None:
    url = sqlite_file(tmp_path, "s")
    depth = next(int(row["depth_count"]) for row in [asked(tmp_path, 5)])
    summary = run_study(toy.recipe(poison=depth), url, trials_total=16, executor=RayExecutor(pool))

    assert summary.trials_count == 16
    assert summary.failed_count >= 1
    assert trials(url).states[5] == "FAIL"
    with Store(url) as store:
        record = next(iter(store.evaluations(store.study("toy"), [5])))
    assert "lost its worker twice" in json.loads(record.details)["error"]


def asked(tmp_path: Path, number: int) -> Any:
    """What row ``number`` of the first batch asks."""
    url = sqlite_file(tmp_path, "dry")
    run_study(toy.recipe(), url, trials_total=16)
    with Store(url) as store:
        return json.loads(next(iter(store.evaluations(store.study("toy"), [number]))).asked)


def test_a_row_that_never_ends_is_cut_off(pool: RayPool, tmp_path: Path) -> None:
    url = sqlite_file(tmp_path, "s")
    depth = int(asked(tmp_path, 2)["depth_count"])
    pool._task_limit_s = 1.5
    try:
        summary = run_study(toy.recipe(hang=depth), url, trials_total=16, executor=RayExecutor(pool))
    finally:
        pool._task_limit_s = 8.0

    assert summary.failed_count >= 1
    with Store(url) as store:
        record = next(iter(store.evaluations(store.study("toy"), [2])))
    assert "took longer than 1.5 s" in json.loads(record.details)["error"]


def test_a_bug_in_the_model_comes_straight_up(pool: RayPool, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        run_study(Broken(), sqlite_file(tmp_path, "s"), trials_total=16, executor=RayExecutor(pool))


class Broken(toy.ToyRecipe):
    """A problem that divides by zero."""

    def __call__(self) -> toy.Toy:
        class Divides(toy.Toy):
            def evaluate(self, rows: Any) -> Any:
                return len(rows) / 0

        return Divides()


@pytest.mark.usefixtures("pool")
def test_two_clusters_in_one_process_are_refused() -> None:
    with pytest.raises(ExecutorError, match="already uses a Ray cluster"):
        RayPool(1).start(toy.recipe())


@pytest.mark.usefixtures("pool")
def test_the_environment_is_as_before_and_nothing_is_left_in_the_home() -> None:
    assert not (Path.home() / ".ray" / "auth_token").exists() or "RAY_AUTH_TOKEN_PATH" in os.environ


def test_no_memory_is_said_before_ray_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "free_memory_mb", lambda: 900.0)

    with pytest.raises(ExecutorError, match="no memory for Ray: 4 workers need about 1700 MB and 900 MB are free"):
        RayPool(4).start(toy.recipe())


def test_a_file_and_workers_elsewhere_do_not_go_together(tmp_path: Path) -> None:
    executor = RayExecutor(RayPool(address="10.0.0.1:6379"))

    with pytest.raises(ExecutorError, match="give a PostgreSQL address"):
        run_study(toy.recipe(), sqlite_file(tmp_path, "s"), trials_total=16, executor=executor)


def test_a_refused_study_starts_no_workers(tmp_path: Path) -> None:
    url = sqlite_file(tmp_path, "s")
    run_study(toy.recipe(), url, trials_total=16)

    with pytest.raises(StudyError, match="catalog"):
        run_study(toy.recipe(catalog_digest="x"), url, trials_total=32, executor=RayExecutor(RayPool(4000)))
