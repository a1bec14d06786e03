"""Every fitted constant can be listed, refitted and written back without touching what people wrote around it."""

from importlib import import_module
from pathlib import Path

import pytest

from codesign.cases.calibrate import constant_rows, fits, is_stated, refit, rewritten
from codesign.catalog import Catalog, load_catalog
from codesign.errors import UsageError
from codesign.resources import catalog_data
from codesign.yaml12 import parse_document

LAWS = sorted(load_catalog().constants)
QUICK = ("serdes", "buffers", "chip", "kernel", "memory", "attention", "mla", "transfer")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def _text(law: str) -> str:
    return (catalog_data() / "calibration" / f"{law}.yaml").read_text(encoding="utf-8")


def _stored(catalog: Catalog, law: str) -> dict[str, dict[str, float]]:
    return {g: {n: c.value for n, c in names.items()} for g, names in catalog.constants[law].items()}


@pytest.mark.parametrize("law", LAWS)
def test_writing_what_is_stored_changes_no_byte(law: str, catalog: Catalog) -> None:
    assert rewritten(_text(law), _stored(catalog, law), catalog.constants[law]) == _text(law)


@pytest.mark.parametrize("law", LAWS)
def test_writing_new_values_changes_values_only(law: str, catalog: Catalog) -> None:
    constants = catalog.constants[law]
    wanted = {
        g: {n: c.low + 0.61803 * (c.high - c.low) if c.high > c.low else c.value for n, c in names.items()}
        for g, names in constants.items()
    }
    before, text = parse_document(_text(law), "calibration").data, rewritten(_text(law), wanted, constants)
    after = parse_document(text, "calibration").data
    for group, names in wanted.items():
        for name, value in names.items():
            assert after[group][name].pop("value") == pytest.approx(value, rel=1e-5, abs=1e-300)
            before[group][name].pop("value")
    assert after == before
    assert len(text.splitlines()) == len(_text(law).splitlines())


def test_a_value_never_leaves_the_bounds_it_was_fitted_within(catalog: Catalog) -> None:
    text = 'one:\n  share_frac: {value: 0.5, unit: "1", low: 0, high: 0.333333333, meaning: "m", rows: "r", fit: f}\n'
    one = next(iter(catalog.constants["serdes"]["energy"].values()))
    bounded = one.model_copy(update={"low": 0.0, "high": 0.333333333})
    new = rewritten(text, {"one": {"share_frac": 0.33333333333}}, {"one": {"share_frac": bounded}})
    assert "value: 0.333333," in new


def test_both_layouts_dotted_groups_and_words_that_look_like_values_are_understood(catalog: Catalog) -> None:
    text = (
        "# head\n"
        "a.b-1.c:  # dotted\n"
        '  x_ns:\n    value: 1.0\n    meaning: "the value: 7 of it"\n'
        '  y_ns: {value: 2, meaning: "{value: 9, as text}"}\n'
        '  z_ns:\n    {value: 3,\n     meaning: "value: 5"}\n'
    )
    one = next(iter(catalog.constants["serdes"]["energy"].values())).model_copy(update={"low": 0.0, "high": 100.0})
    names = dict.fromkeys(("x_ns", "y_ns", "z_ns"), one)
    found = {"a.b-1.c": {"x_ns": 11.0, "y_ns": 12.0, "z_ns": 13.0}}
    new = rewritten(text, found, {"a.b-1.c": names})
    wanted = (
        text.replace("value: 1.0", "value: 11").replace("{value: 2", "{value: 12").replace("{value: 3", "{value: 13")
    )
    assert new == wanted


def test_every_law_with_fitted_constants_names_a_fit_that_exists(catalog: Catalog) -> None:
    known = fits(catalog)
    fitted = {
        law
        for law, groups in catalog.constants.items()
        if any(not is_stated(one) for names in groups.values() for one in names.values())
    }
    assert set(known) == fitted
    for law, module in known.items():
        assert callable(import_module(f"codesign.cases.{module}").fit), law


def test_the_list_names_every_constant_with_its_rows(catalog: Catalog) -> None:
    rows = constant_rows(catalog)
    assert len(rows) == sum(len(names) for groups in catalog.constants.values() for names in groups.values())
    assert all(row["rows"] and row["meaning"] for row in rows)
    assert {row["law"] for row in constant_rows(catalog, ["gemm"])} == {"gemm"}


@pytest.mark.parametrize("law", QUICK)
def test_a_refit_lands_where_the_file_says(law: str, catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / f"{law}.yaml").write_text(_text(law), encoding="utf-8")
    rows = refit([law], write=True, catalog=catalog, folder=tmp_path)
    assert rows
    assert all(row["change"] != "new" for row in rows)
    written = parse_document((tmp_path / f"{law}.yaml").read_text(encoding="utf-8"), "calibration").data
    for group, names in catalog.constants[law].items():
        for name, one in names.items():
            # laws build on each other's constants and are fitted in turn: the last one moves the earlier ones a little
            assert written[group][name]["value"] == pytest.approx(one.value, rel=0.1, abs=1e-9), f"{group}.{name}"


def test_an_unknown_law_is_refused_with_the_nearest(catalog: Catalog) -> None:
    with pytest.raises(UsageError, match=r"no law 'gem'.*gemm"):
        refit(["gem"], catalog=catalog)
    with pytest.raises(UsageError, match="no law 'gem'"):
        constant_rows(catalog, ["gem"])
