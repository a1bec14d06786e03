"""Replay of measured serving and inference rows: repairs, refusals, figures, slopes in the parallel sizes."""

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from codesign.cases import inference, serving
from codesign.cases.holdout_serving import Figures, held_out
from codesign.cases.rows import CaseRows, Predictions, read_rows
from codesign.cases.serving_rows import repair_engine, serving_rows
from codesign.catalog import Catalog
from codesign.resources import case_data


@pytest.fixture(scope="module")
def rows() -> CaseRows:
    return read_rows(case_data() / "serving.csv")[0]


@pytest.fixture(scope="module")
def predictions(rows: CaseRows, catalog: Catalog) -> Predictions:
    return serving.predict(rows, catalog)


def errors(rows: CaseRows, predictions: Predictions, metric: str, *classes: str) -> Any:
    predicted, measured = predictions.metrics[metric]
    graded = [grade in ("A", "B") for grade in rows.text("grade")]
    chosen = np.array([g and label in classes for g, label in zip(graded, predictions.labels["class"], strict=True)])
    found = np.abs(predicted / measured - 1.0)[chosen & np.isfinite(measured)]
    refused = np.isnan(found).mean()
    return found[np.isfinite(found)], refused


@pytest.mark.parametrize(
    ("label", "refused_at_most", "mape_at_most"),
    [("dense_agg", 0.05, 0.11), ("moe_agg", 0.08, 0.14), ("disagg", 0.1, 0.17)],
)
def test_time_per_token_is_as_right_as_asked(
    rows: CaseRows, predictions: Predictions, label: str, refused_at_most: float, mape_at_most: float
) -> None:
    found, refused = errors(rows, predictions, "tpot_ms", label)

    assert found.mean() <= mape_at_most
    assert refused <= refused_at_most


def test_time_to_the_first_token_is_as_right_as_asked(rows: CaseRows, predictions: Predictions) -> None:
    shared, _ = errors(rows, predictions, "ttft_ms", "dense_agg", "moe_agg")
    pooled, _ = errors(rows, predictions, "ttft_ms", "disagg")

    assert np.median(shared) <= 0.30
    assert (shared <= 0.5).mean() >= 0.75
    assert np.median(pooled) <= 0.55


def test_inference_tables_of_grade_a_are_as_right_as_asked(catalog: Catalog) -> None:
    rows = next(r for r in read_rows(case_data() / "inference.csv") if r.kind == "inference")
    predicted, measured = inference.predict(rows, catalog).metrics["value"]
    grades, ways = rows.text("grade"), inference.ways_of(rows)

    for way, mape, median in (("static", 0.12, 0.12), ("full", 0.20, 0.15)):
        chosen = [i for i in range(len(rows)) if grades[i] == "A" and ways[i] == way]
        found = np.abs(predicted[chosen] / measured[chosen] - 1.0)
        assert np.isfinite(found).mean() >= 0.92
        assert np.nanmean(found) <= mape
        assert np.nanmedian(found) <= median


def test_two_spellings_of_one_measurement_are_one_layout(rows: CaseRows) -> None:
    """Rows with the very same measured times are one run; whatever way it was written, the repair must agree."""
    repaired = serving_rows(rows)
    seen: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    times = zip(rows.numbers("tpot_ms"), rows.numbers("ttft_ms"), rows.text("accelerator"), strict=True)
    for i, (tpot, ttft, part) in enumerate(times):
        if repaired.refused[i] is None and rows.text("mode")[i] == "agg" and tpot > 0 and ttft > 0:
            seen[round(math.log(tpot), 3), round(math.log(ttft), 3), part].append(i)
    twins = [(a, b) for group in seen.values() for a in group for b in group if a < b]
    written = [name for name in ("tp", "attention_dp", "moe_tp", "moe_ep", "concurrency")]
    spelled = [(a, b) for a, b in twins if any(rows.text(n)[a] != rows.text(n)[b] for n in written)]

    assert len(spelled) >= 15, "the file has such pairs, or this test says nothing"
    agree = [
        all(getattr(repaired.decode, n)[a] == getattr(repaired.decode, n)[b] for n in ("tp", "dp", "ep"))
        and repaired.users[a] == repaired.users[b]
        for a, b in spelled
    ]
    assert np.mean(agree) == 1.0


def test_repairs_say_what_they_cannot_repair() -> None:
    assert repair_engine(4.0, 1.0, 2.0, 2.0) == (4.0, 1.0, 2.0, 1.0)
    assert "72 accelerators" in str(repair_engine(72.0, 1.0, 72.0, 1.0))
    assert "missing" in str(repair_engine(8.0, 1.0, 0.0, 0.0))


def test_odd_cells_are_refused_with_a_reason_and_never_crash(rows: CaseRows, catalog: Catalog) -> None:
    three = rows.pick([0, 1, 2])
    odd = [
        ("accelerator", "tpu-v99", "tpu-v99"),
        ("model", "Nobody-7B", "Nobody-7B"),
        ("backend", "lmdeploy-9", "no engine"),
        ("concurrency", "", "concurrency missing"),
        ("isl", "many", "length missing"),
        ("tp", "0", "layout missing"),
        ("mode", "batch", "neither agg nor disagg"),
    ]
    agg = three.pick([i for i, mode in enumerate(three.text("mode")) if mode == "agg"]) or three
    for column, cell, reason in odd:
        broken = CaseRows(agg.file, agg.kind, {**agg.columns, column: [cell] * len(agg)})
        found = serving.predict(broken, catalog)
        assert all(reason in str(text) for text in found.refused), (column, found.refused)


def pairs(rows: CaseRows, repaired: Any, varied: str) -> Iterator[tuple[int, int]]:
    """Rows that differ in one parallel size and nothing else a user chooses."""
    groups: dict[tuple[Any, ...], dict[float, int]] = defaultdict(dict)
    names = ("model", "accelerator", "backend", "precision", "isl", "osl", "mode")
    for i in range(len(rows)):
        if repaired.refused[i] is None and rows.text("mode")[i] == "agg" and rows.text("grade")[i] == "A":
            pool = repaired.decode
            own = {"tp": pool.tp[i], "ep": pool.ep[i], "dp": pool.dp[i], "users": repaired.users[i]}
            size = own.pop(varied)
            groups[(*(rows.text(n)[i] for n in names), *own.values())].setdefault(size, i)
    for sizes in groups.values():
        ordered = [sizes[size] for size in sorted(sizes)]
        yield from pairwise(ordered)


def test_the_slope_in_tensor_parallel_size_at_fixed_load_is_that_of_the_measurements(
    rows: CaseRows, predictions: Predictions
) -> None:
    """A right time per token does not prove the network part; how it changes with the group does."""
    predicted, measured = predictions.metrics["tpot_ms"]
    # dense models: their expert layout does not change along
    found = [(a, b) for a, b in pairs(rows, serving_rows(rows), "tp") if rows.text("moe_ep")[a] in ("1.0", "")]

    slope = np.array([math.log(predicted[b] / predicted[a]) for a, b in found])
    truth = np.array([math.log(measured[b] / measured[a]) for a, b in found])

    assert len(found) >= 100
    assert np.corrcoef(slope, truth)[0, 1] >= 0.85
    # two measurements of one configuration differ by 6 per cent in the median
    assert np.median(np.abs(slope - truth)) <= 0.08
    assert abs(np.median(slope - truth)) <= 0.05


def test_the_slope_in_expert_parallel_size_at_fixed_load_is_that_of_the_measurements(
    rows: CaseRows, predictions: Predictions
) -> None:
    predicted, measured = predictions.metrics["tpot_ms"]
    found = list(pairs(rows, serving_rows(rows), "ep"))

    off = [math.log(predicted[b] / predicted[a]) - math.log(measured[b] / measured[a]) for a, b in found]

    assert len(found) >= 5
    assert np.median(np.abs(off)) <= 0.15


@pytest.mark.slow
def test_constants_hold_on_configurations_and_machines_they_were_not_fitted_to(catalog: Catalog) -> None:
    halves: Figures = held_out(catalog, "configuration", 2)
    groups: Figures = held_out(catalog, "machine", 5)

    assert halves["dense_agg"] <= 0.12
    assert halves["moe_agg"] <= 0.14
    assert halves["disagg"] <= 0.17
    assert groups["dense_agg"] <= 0.14
    assert groups["moe_agg"] <= 0.18
    assert groups["disagg"] <= 0.20
