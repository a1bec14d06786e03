"""Replay of simulated and measured memory rows."""

from pathlib import Path

import numpy as np
import pytest

from codesign.cases import fit_memory, memory, memory_sim
from codesign.cases.rows import CaseRows, read_rows
from codesign.catalog import Catalog
from codesign.model.memory.controller import achieved_frac

DATA = Path(memory.__file__).parent / "data"


def part(file: str, kind: str) -> CaseRows:
    return next(rows for rows in read_rows(DATA / file) if rows.kind == kind)


def points(rows: CaseRows, catalog: Catalog) -> tuple[np.ndarray, np.ndarray]:
    """Error of each row in points of peak, and which rows Ramulator made."""
    predictions = memory_sim.predict(rows, catalog)
    predicted, measured = predictions.metrics["fraction"]
    return 100.0 * (predicted - measured), np.array([c == "ramulator" for c in predictions.labels["class"]])


@pytest.mark.published(source="ramulator-2", where="memory_sim.csv", says="223 rows of eight standards")
def test_ramulator_rows_within_three_points_on_average_and_ten_at_worst(catalog: Catalog) -> None:
    error, ramulator = points(part("reference/memory_sim.csv", "memory_sim"), catalog)

    assert ramulator.sum() == 223
    assert np.abs(error[ramulator]).mean() < 3.0
    assert np.abs(error[ramulator]).max() < 10.0


def test_the_other_simulator_is_reported_beside_it(catalog: Catalog) -> None:
    error, ramulator = points(part("reference/memory_sim.csv", "memory_sim"), catalog)

    # its write batching and address maps differ: 10 points is what the two differ by on writes alone
    assert np.abs(error[~ramulator]).mean() < 10.0


def test_refitting_finds_nothing_better_than_what_the_catalog_holds(catalog: Catalog) -> None:
    rows = fit_memory.ramulator_rows(DATA)
    access, controller, device, balance = memory_sim.setup(rows, [s.lower() for s in rows.text("standard")], catalog)
    found = memory_sim.constants_from(fit_memory.fit_rows(rows, catalog))

    refitted = np.asarray(achieved_frac(access, controller, device, found)) * balance - rows.numbers("fraction")
    held = points(rows, catalog)[0] / 100.0

    # some constants trade off against each other, so that errors repeat and constants need not
    assert np.abs(held).mean() == pytest.approx(np.abs(refitted).mean(), rel=0.01)


@pytest.mark.slow
def test_a_standard_held_out_of_the_fit_is_still_met(catalog: Catalog) -> None:
    rows = fit_memory.ramulator_rows(DATA)
    standards = rows.text("standard")

    errors = []
    for left_out in dict.fromkeys(standards):
        rest = rows.pick([i for i, s in enumerate(standards) if s != left_out])
        own = rows.pick([i for i, s in enumerate(standards) if s == left_out])
        constants = memory_sim.constants_from(fit_memory.fit_rows(rest, catalog))
        access, controller, device, balance = memory_sim.setup(own, [left_out.lower()] * len(own), catalog)
        predicted = np.asarray(achieved_frac(access, controller, device, constants)) * balance
        errors.append(100.0 * np.abs(predicted - own.numbers("fraction")))

    assert np.concatenate(errors).mean() < 3.0


def test_measured_streams_of_grade_a_within_six_percent(catalog: Catalog) -> None:
    rows = part("memory.csv", "memory")
    predictions = memory.predict(rows, catalog)
    predicted, measured = predictions.metrics["value"]
    clean = np.array(rows.text("grade")) == "A"

    assert all(reason is None for reason in predictions.refused)
    assert np.abs(predicted[clean] / measured[clean] - 1.0).mean() < 0.06


def row(**cells: str) -> CaseRows:
    plain = {
        "case": "one", "kind": "memory", "accelerator": "h100-sxm", "memory": "HBM3", "peak_TBs_spec": "3.35",
        "kernel": "copy", "bytes": "", "metric": "bandwidth", "unit": "TB/s", "value": "3.0", "scope": "1 GPU",
    }  # fmt: skip
    return CaseRows("x.csv", "memory", {name: [text] for name, text in (plain | cells).items()})


def one(catalog: Catalog, **cells: str) -> tuple[float, str | None]:
    predictions = memory.predict(row(**cells), catalog)
    return float(predictions.metrics["value"][0][0]), predictions.refused[0]


def test_a_part_that_no_sheet_knows_runs_on_the_peak_of_its_row(catalog: Catalog) -> None:
    value, refused = one(catalog, accelerator="new-chip-9", memory="HBM5x", peak_TBs_spec="10")

    assert refused is None
    assert 7 < value < 10


def test_an_absent_peak_comes_from_the_sheet(catalog: Catalog) -> None:
    assert one(catalog, peak_TBs_spec="")[0] == pytest.approx(one(catalog)[0])


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({"accelerator": "new-chip-9", "peak_TBs_spec": ""}, "no memory rate known"),
        ({"kernel": "host to device"}, "crosses a link"),
        ({"kernel": "frobnicate", "metric": ""}, "shares unknown"),
        ({"unit": "furlongs"}, "unit 'furlongs' unknown"),
        ({"unit": "ms"}, "a time without bytes"),
    ],
)
def test_a_row_that_cannot_be_known_is_refused_with_its_reason(
    cells: dict[str, str], why: str, catalog: Catalog
) -> None:
    assert why in str(one(catalog, **cells)[1])


def test_units_agree(catalog: Catalog) -> None:
    tera, giga = one(catalog)[0], one(catalog, unit="GB/s")[0]

    assert giga == pytest.approx(1e3 * tera)


def test_a_time_is_bytes_over_rate(catalog: Catalog) -> None:
    rate = one(catalog, bytes="1e9")[0]  # TB/s
    time_us = one(catalog, bytes="1e9", unit="us")[0]

    assert time_us == pytest.approx(2e9 / (rate * 1e12) * 1e6)


def test_small_arrays_reach_less(catalog: Catalog) -> None:
    values = [one(catalog, bytes=size)[0] for size in ("1e6", "1e8", "1e10", "")]

    assert values == sorted(values)


def test_an_unknown_simulated_standard_names_the_nearest(catalog: Catalog) -> None:
    rows = part("reference/memory_sim.csv", "memory_sim").pick([0])
    rows.columns["standard"] = ["HBM33"]

    assert "did you mean 'hbm3'" in str(memory_sim.predict(rows, catalog).refused[0])
