"""Sweeps: any cut into chunks and any interruption gives the same files; the summary is what the files say."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from codesign.errors import StudyError, UsageError
from codesign.store.repository import Store
from codesign.study.coding import Coding
from codesign.study.executor import InlinePool, Outcome
from codesign.study.problem_protocol import Evaluated, Problem
from codesign.study.run import run_study
from codesign.study.screen import METHODS, Range, points
from codesign.study.sweep import promoted, run_sweep, sweep_summary
from tests.store.backends import sqlite_file
from tests.study import toy

TWO: Any = (("cost_usd", "minimize"), ("rate_gbps", "maximize"))


def table(summary: Any) -> Any:
    return pq.read_table(summary.folder).to_pydict()


@pytest.mark.parametrize("method", METHODS)
def test_candidates_are_the_same_however_the_range_is_cut(method: str) -> None:
    coding = Coding(toy.PARAMETERS)
    whole = points(coding, Range(method, 7, 0, 1000, 3))

    parts = [points(coding, Range(method, 7, a, b, 3)) for a, b in ((0, 1), (1, 300), (300, 1000))]

    assert_array_equal(whole, np.concatenate(parts))
    assert len(np.unique(np.nan_to_num(whole, nan=-1.0), axis=0)) > 500


@pytest.mark.parametrize("method", METHODS)
def test_a_sweep_in_pieces_writes_the_same_bytes(method: str, storage: str, tmp_path: Path) -> None:
    class Stops(InlinePool):
        left = 2

        def poll(self, timeout_s: float) -> list[Outcome]:
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            return super().poll(timeout_s)

    def sweep(name: str, **more: Any) -> Any:
        return run_sweep(
            toy.recipe(),
            storage,
            name,
            points_count=500,
            method=method,
            chunk_count=128,
            folder=tmp_path,
            **more,
        )

    torn = sweep("torn", pool=Stops())
    assert (torn.state, torn.done_count) == ("paused", 256)
    torn = sweep("torn")
    whole = sweep("whole")

    assert torn.done_count == whole.done_count == 500
    files = sorted(p.name for p in (tmp_path / "whole").glob("chunk-*"))
    assert files == [f"chunk-{i:07d}.parquet" for i in range(4)]
    for name in files:
        assert (tmp_path / "torn" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert torn.top == whole.top
    assert torn.marginals == whole.marginals


def test_a_damaged_chunk_is_made_again(tmp_path: Path) -> None:
    url = sqlite_file(tmp_path, "s")
    first = run_sweep(toy.recipe(), url, "s", points_count=300, chunk_count=100)
    good = Path(first.folder, "chunk-0000001.parquet").read_bytes()
    Path(first.folder, "chunk-0000001.parquet").write_bytes(good[:50])
    Path(first.folder, "chunk-0000002.parquet").unlink()

    again = run_sweep(toy.recipe(), url, "s")

    assert Path(first.folder, "chunk-0000001.parquet").read_bytes() == good
    assert again.done_count == 300
    assert len(table(again)["index"]) == 300


def test_the_summary_is_what_the_files_say(tmp_path: Path) -> None:
    summary = run_sweep(toy.recipe(objectives=TWO), sqlite_file(tmp_path, "s"), "s", points_count=2000, chunk_count=300)

    data = table(summary)
    cost, rate = np.array(data["value:cost_usd"]), np.array(data["value:rate_gbps"])
    kept = (np.array(data["excess:power"]) <= 0.0) & (np.array(data["excess:area"]) <= 0.0)
    assert summary.feasible_count == kept.sum()
    assert summary.refusals == {
        "power": int((np.array(data["excess:power"]) > 0.0).sum()),
        "area": int((np.array(data["excess:area"]) > 0.0).sum()),
    }
    best = np.flatnonzero(kept)[np.argsort(cost[kept], kind="stable")][:32]
    assert [entry["index"] for entry in summary.top] == best.tolist()
    beaten = np.array(
        [kept & (cost <= c) & (rate >= r) & ((cost < c) | (rate > r)) for c, r in zip(cost, rate, strict=True)]
    ).any(axis=1)
    assert {e["index"] for e in summary.front} == set(np.flatnonzero(kept & ~beaten).tolist())
    by_medium = {m["level"]: m for m in summary.marginals["medium"]}
    for word, marginal in by_medium.items():
        here = np.array(data["medium"]) == word
        assert marginal["count"] == here.sum()
        assert marginal["best"] == cost[here & kept].min()
        assert marginal["mean"] == pytest.approx(cost[here & kept].mean(), rel=1e-12)
    reach = summary.marginals["reach_m"]
    assert sum(m["count"] for m in reach) == (np.array(data["medium"]) == "optics").sum()


def test_columns_and_rows_give_the_same_numbers(tmp_path: Path) -> None:
    url = sqlite_file(tmp_path, "s")
    columns = run_sweep(toy.recipe(), url, "columns", points_count=200, chunk_count=200)
    rows = run_sweep(RowsOnly(), url, "rows", points_count=200, chunk_count=200)

    assert table(columns) == table(rows)


@dataclass(frozen=True)
class RowsOnly:
    """The toy without its columns."""

    def __call__(self) -> Problem:
        whole = toy.Toy()

        class Narrow:
            def __getattr__(self, name: str) -> Any:
                if name == "screen":
                    raise AttributeError(name)
                return getattr(whole, name)

            def evaluate(self, rows: Any) -> Evaluated:
                return whole.evaluate(rows)

        return cast(Problem, Narrow())


def test_the_whole_of_a_small_grid_is_done_and_no_more(tmp_path: Path) -> None:
    summary = run_sweep(
        toy.recipe(parameters=toy.SMALL), sqlite_file(tmp_path, "s"), "s", points_count=10**9, method="grid"
    )

    data = table(summary)
    rows = set(zip(data["medium"], data["lanes_count"], data["stacks_count"], data["reach_m"], strict=True))
    assert summary.points_count == 2 * 4 * 4 * 3
    assert len(rows) == 4 * 4 + 4 * 4 * 3


def test_the_best_of_a_sweep_become_a_studys_first_trials(tmp_path: Path) -> None:
    url = sqlite_file(tmp_path, "s")
    summary = run_sweep(toy.recipe(), url, "screen", points_count=1000)
    with Store(url) as store:
        rows = promoted(store, "screen", 8)

    study = run_study(toy.recipe(), url, trials_total=48, first_rows=rows, parent="screen")

    assert study.best is not None
    assert study.best.values["cost_usd"] <= summary.top[0]["values"][0]
    with Store(url) as store:
        assert store.study("toy").parent == "screen"
        first = store.columns(store.study("toy")).values[0, 0]
    assert first == summary.top[0]["values"][0]


class Dying(InlinePool):
    """Loses the worker whenever a range holds one of the culprits."""

    def __init__(self, culprits: set[int]) -> None:
        super().__init__()
        self._culprits = culprits

    def poll(self, timeout_s: float) -> list[Outcome]:
        key, _, (span, *_) = self._queue[0]
        hit = self._culprits & (set(range(span.start, span.stop)) - set(span.skip))
        if hit:
            self._queue.pop(0)
            return [Outcome(key, None, "killed")]
        return super().poll(timeout_s)


def test_candidates_that_kill_workers_are_found_and_left_out(tmp_path: Path) -> None:
    summary = run_sweep(
        toy.recipe(), sqlite_file(tmp_path, "s"), "s", points_count=600, chunk_count=200, pool=Dying({250, 251, 399})
    )

    assert summary.failed == (250, 251, 399)
    assert summary.done_count == 600
    assert np.isnan(table(summary)["value:cost_usd"][250])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"recipe": toy.recipe(catalog_digest="x")}, StudyError, "another catalog"),
        ({"points_count": 99}, StudyError, "has 100 points, not 99"),
        ({"name": "new", "points_count": None}, UsageError, "how many points"),
        ({"name": "new", "method": "sobel"}, UsageError, "did you mean 'sobol'"),
    ],
)
def test_what_cannot_be_done_is_explained(
    change: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    url = sqlite_file(tmp_path, "s")
    run_sweep(toy.recipe(), url, "s", points_count=100)
    asked: dict[str, Any] = {"recipe": toy.recipe(), "name": "s", "points_count": 100, "method": "sobol"} | change
    run: Callable[..., Any] = run_sweep

    with pytest.raises(error, match=words):
        run(asked.pop("recipe"), url, asked.pop("name"), **asked)

    with Store(url) as store:
        assert sweep_summary(store, "s").done_count == 100
