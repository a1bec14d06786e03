"""Case files come from anywhere: every row is predicted or refused with a reason, alone as in its file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from codesign.cases.rows import CaseRows, Predictions, read_rows
from codesign.cases.score import cases_of, groups_of
from codesign.cases.screen import COUNTS, screened
from codesign.cases.validate import ADAPTERS, predict, shipped_files, validate
from codesign.catalog import Catalog, load_catalog
from codesign.errors import CaseError

ODD_CELLS = ("", "zzz-unknown", "0", "-1", "1e30", "1e-30", "0.5", "nan", "inf", "7", "100000")
KINDS = sorted(ADAPTERS)


def _shipped() -> dict[str, CaseRows]:
    return {rows.kind: rows for path in shipped_files() for rows in read_rows(path)}


SHIPPED = _shipped()


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def _spread(rows: CaseRows, count: int) -> CaseRows:
    return rows.pick([int(i) for i in np.unique(np.linspace(0, len(rows) - 1, count).astype(int))])


def _copies(rows: CaseRows, changes: Sequence[tuple[int, str, str]]) -> CaseRows:
    """One copy of a row per change, with one cell replaced."""
    columns = {
        name: [cell if name == changed else values[i] for i, changed, cell in changes]
        for name, values in rows.columns.items()
    }
    return CaseRows(rows.file, rows.kind, columns)


def _sound(found: Predictions, count: int) -> list[str]:
    """What breaks the promise of `Predictions`."""
    broken = [] if len(found.refused) == count else [f"{len(found.refused)} refusals for {count} rows"]
    for name, (predicted, measured) in found.metrics.items():
        if predicted.shape != (count,) or measured.shape != (count,):
            broken.append(f"{name}: shapes {predicted.shape} and {measured.shape}")
            continue
        broken += [
            f"row {i}: {name} is {predicted[i]}"
            for i in range(count)
            if found.refused[i] is None and np.isfinite(measured[i]) and not np.isfinite(predicted[i])
        ]
    return broken + [f"row {i}: refused without a reason" for i, why in enumerate(found.refused) if why == ""]


def _same(one: Predictions, at: Sequence[int], other: Predictions, other_at: Sequence[int]) -> bool:
    """Whether rows of two predictions are equal bit for bit."""
    if [one.refused[i] for i in at] != [other.refused[i] for i in other_at]:
        return False
    for i, j in zip(at, other_at, strict=True):
        if one.refused[i] is None:
            for name, (predicted, measured) in one.metrics.items():
                again, asked = other.metrics[name]
                if not np.array_equal([predicted[i], measured[i]], [again[j], asked[j]], equal_nan=True):
                    return False
    return True


def test_every_kind_that_is_replayed_comes_with_rows() -> None:
    assert sorted(SHIPPED) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_any_cell_of_any_column_may_be_odd(kind: str, catalog: Catalog) -> None:
    rows = _spread(SHIPPED[kind], 2)
    changes = [
        (i, name, cell) for i in range(len(rows)) for name in rows.columns if name != "kind" for cell in ODD_CELLS
    ]
    odd = _copies(rows, changes)
    assert not _sound(predict(odd, catalog), len(odd))


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_column_is_refused_or_filled_in(kind: str, catalog: Catalog) -> None:
    rows = _spread(SHIPPED[kind], 3)
    for name in set(rows.columns) - {"case", "kind"}:
        fewer = CaseRows(rows.file, rows.kind, {n: cells for n, cells in rows.columns.items() if n != name})
        assert not _sound(predict(fewer, catalog), len(fewer)), name
    bare = CaseRows(rows.file, rows.kind, {n: rows.columns[n] for n in ("case", "kind")})
    assert not _sound(predict(bare, catalog), len(bare))


@pytest.mark.parametrize("kind", KINDS)
def test_an_extra_column_changes_nothing(kind: str, catalog: Catalog) -> None:
    rows = _spread(SHIPPED[kind], 5)
    more = CaseRows(rows.file, rows.kind, {"remark": ["-1"] * len(rows), **rows.columns, "colour": ["nan"] * len(rows)})
    every = range(len(rows))
    assert _same(predict(rows, catalog), every, predict(more, catalog), every)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_worth_the_same_alone_twice_and_in_any_order(kind: str, catalog: Catalog) -> None:
    rows = _spread(SHIPPED[kind], 9)
    whole = predict(rows, catalog)
    order = np.random.default_rng(7).permutation([*range(len(rows)), *range(len(rows))])
    assert _same(predict(rows.pick([int(i) for i in order]), catalog), range(len(order)), whole, order.tolist())
    for i in range(len(rows)):
        assert _same(predict(rows.pick([i]), catalog), [0], whole, [i]), rows.text("case")[i]


@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_row_does_not_move_its_neighbours(kind: str, catalog: Catalog) -> None:
    rows = _spread(SHIPPED[kind], 4)
    junk = [(0, name, cell) for name in rows.columns if name != "kind" for cell in ("-1", "1e30", "zzz-unknown")]
    mixed_columns = {n: cells + _copies(rows, junk).columns[n] for n, cells in rows.columns.items()}
    mixed = predict(CaseRows(rows.file, rows.kind, mixed_columns), catalog)
    every = range(len(rows))
    assert _same(mixed, every, predict(rows, catalog), every)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, name) for kind in ("training", "serving", "inference") for name in ("accelerator", "model")),
        ("collective", "accelerator"),
    ],
)
def test_an_unknown_name_is_refused_by_itself(kind: str, name: str, catalog: Catalog) -> None:
    rows = _spread(SHIPPED[kind], 3)
    shapes = {"layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "vocab", "experts", "topk", "moe_ffn"}
    columns = {n: [""] * len(rows) if n in shapes else list(cells) for n, cells in rows.columns.items()}
    columns[name] = ["zzz-unknown"] * len(rows)
    refused = predict(CaseRows(rows.file, rows.kind, columns), catalog).refused
    assert all(refused)
    assert any("zzz-unknown" in str(why) for why in refused)


def test_a_model_nobody_listed_is_predicted_from_its_columns(catalog: Catalog) -> None:
    rows = SHIPPED["training"]
    dense = [
        i
        for i, (experts, layers, metric) in enumerate(
            zip(rows.numbers("experts"), rows.numbers("layers"), rows.text("metric"), strict=True)
        )
        if not experts > 0 and layers > 0 and rows.text("model")[i].startswith("Megatron-GPT") and metric
    ][:3]
    chosen = rows.pick(dense)
    columns = {**chosen.columns, "model": ["somebody's new model"] * len(chosen)}
    assert predict(CaseRows(rows.file, rows.kind, columns), catalog).refused == [None] * len(chosen)


def test_a_kind_nobody_replays_is_named_with_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("case,kind\na,trainng\n", encoding="utf-8")
    with pytest.raises(CaseError, match=r"rows\.csv: no model replays kind 'trainng'.*training"):
        validate([path])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no column 'case'"),
        ("case,metric\na,b\n", "no column 'kind'"),
        ("case,kind\na\n", ":2: 1 cells where the header has 2"),
        ('case,kind\n"a,training\n', "not a CSV file"),
    ],
)
def test_a_broken_file_is_refused_by_name(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CaseError, match=says):
        validate([path])


def test_a_header_without_rows_gives_no_cases(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("case,kind,metric\n", encoding="utf-8")
    assert validate([path]) == {"groups": [], "cases": []}


def test_a_row_that_breaks_its_replay_is_refused_alone() -> None:
    rows = CaseRows("rows.csv", "any", {"case": list("abcde"), "kind": ["any"] * 5, "x": ["1", "2", "0", "4", "5"]})

    def replay(some: CaseRows) -> Predictions:
        values = [1 // int(cell) for cell in some.text("x")]
        return Predictions({"x": (np.array(values, dtype=float), some.numbers("x"))}, [None] * len(some))

    found = screened(rows, replay)
    assert found.refused[2] == "cannot be replayed: ZeroDivisionError: integer division or modulo by zero"
    assert [why for i, why in enumerate(found.refused) if i != 2] == [None] * 4
    assert found.metrics["x"][0].tolist()[:2] == [1.0, 0.0]


def test_sizes_that_cannot_be_are_named() -> None:
    rows = CaseRows("rows.csv", "any", {"case": ["a", "b", "c"], "kind": ["any"] * 3, "tp": ["-1", "0.5", "2"]})

    def replay(some: CaseRows) -> Predictions:
        return Predictions({"tp": (some.numbers("tp"), some.numbers("tp"))}, [None] * len(some))

    assert "tp" in COUNTS
    assert screened(rows, replay).refused == ["tp is -1, which is no size", "tp is 0.5, which is no size", None]


def test_refused_rows_stay_in_the_count_of_their_kind(catalog: Catalog) -> None:
    rows = _spread(SHIPPED["gemm"], 4)
    columns = {**rows.columns, "m": ["-1", *rows.text("m")[1:]]}
    odd = CaseRows(rows.file, rows.kind, columns)
    whole = next(group for group in groups_of(cases_of(odd, predict(odd, catalog))) if not group["where"])
    assert (whole["n"], whole["refused"]) == (4, 1)
