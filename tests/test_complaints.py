"""No complaint speaks the language of a library: every kind of error our schemas can raise, and every command."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from codesign.catalog import load_catalog
from codesign.catalog.architectures import load_architectures
from codesign.catalog.models import ModelRecord, load_models
from codesign.catalog.platforms import Platform, load_platforms
from codesign.catalog.schema import Constant, Fact, Source
from codesign.cli import run
from codesign.complaints import WANTED, refusal
from codesign.errors import CatalogError, SpaceError, UsageError
from codesign.resources import catalog_data
from codesign.settings import Settings
from codesign.space import Space, load_space, parse_space

LIBRARY = re.compile(
    r"Traceback|this is a bug|pydantic|Input should|valid (dictionary|list|integer|string|number|boolean)|pattern '|"
    r"instance of|NoneType|None\b|<class|JSONDecodeError|KeyError|TypeError|ValueError|codec|Field required|"
    r"Extra inputs|something else|type="
)
JUNK: tuple[Any, ...] = (
    None, True, "", "x", "9" * 30, -1, 0, 10**30, 1.5, -0.5, float("nan"), float("inf"), [], ["x"], [[]], {}, {"x": 1},
    [1, "a"], {"kind": "x"}, "A B",
)  # fmt: skip


def models_of(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A schema and every schema inside it."""
    seen: list[type[BaseModel]] = []
    pending: list[Any] = [kind]
    while pending:
        one = pending.pop()
        if isinstance(one, type) and issubclass(one, BaseModel):
            if one not in seen:
                seen.append(one)
                pending += [field.annotation for field in one.model_fields.values()]
                pending += [part for field in one.model_fields.values() for part in field.metadata]
        else:
            pending += getattr(one, "__args__", ())
    yield from seen


SCHEMAS = [one for kind in (Space, Fact, Constant, Source, Platform, ModelRecord) for one in models_of(kind)]


def test_every_schema_is_looked_at() -> None:
    names = {one.__name__ for one in SCHEMAS}
    assert {"Space", "Choices", "Range", "Limit", "Training", "Serving", "Scenario", "SearchPlan"} <= names
    assert {"Fact", "Constant", "Source", "Platform", "Decision", "ModelRecord", "Mla", "Experts"} <= names


def errors_of(adapter: TypeAdapter[BaseModel], tried: object) -> list[dict[str, Any]]:
    """What a schema has against a value; nothing where it takes it."""
    try:
        adapter.validate_python(tried)
    except ValidationError as refused:
        return [dict(error) for error in refused.errors()]
    return []


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda s: s.__name__)
def test_whatever_a_schema_refuses_is_said_in_plain_words(schema: type[BaseModel]) -> None:
    adapter = TypeAdapter(schema)
    own = {"missing", "extra_forbidden", "value_error", "union_tag_invalid", "union_tag_not_found", "parts_disagree"}
    tries: list[Any] = [*JUNK, *({name: junk} for name in [*schema.model_fields, "unknown"] for junk in JUNK)]
    errors = [error for tried in tries for error in errors_of(adapter, tried)]
    assert {error["type"] for error in errors} <= own | set(WANTED), "a kind of error without words"
    for error in errors:
        if error["type"] not in ("union_tag_invalid", "union_tag_not_found"):  # said by the loader of spaces
            assert not LIBRARY.search(refusal(error)), error


GOOD = """\
name: links
question: Which links feed this job best?
base: hgx_h100
workloads:
  pretrain: {kind: training, model: Llama-3.1-8B, accelerators_count: 8, sequence_count: 8192, global_batch_count: 8}
  chat: {kind: serving, model: Llama-3.1-8B, input_count: 9, output_count: 9, tpot_ms: 15.0, ttft_ms: 500,
         mode: aggregated}
vary:
  scale_up_lane_rate_gbps: {choices: [106.25, 212.5], weights: [1, 2]}
  second_tier_gb: {low: 16, high: 512, log: true}
fix: {cooling: liquid}
constraints: {die_mm2: {at_most: 800}}
scenario: {year: 2026, pue_ratio: 1.2}
search: {trials: 10, seed: 1}
baselines: [hgx_h100]
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("name: links", "name: 7", "1: name: wanted a word; got 7"),
        ("name: links", "name: [a]", "1: name: wanted a word; got ['a']"),
        ("name: links", "name: Links", "1: name: wanted a lower-case letter, then lower-case letters, digits and _"),
        ("question: Which links feed this job best?", "question: ''", "question: wanted a word of 1 or more letters"),
        ("base: hgx_h100\n", "", "1: base: is missing"),
        ("base: hgx_h100", "base:", "3: base: wanted a word; got nothing"),
        ("accelerators_count: 8", "accelerators_count: 0", "wanted 1 or more; got 0"),
        ("accelerators_count: 8", "accelerators_count: 99999999", "wanted 10000000 or less; got 99999999"),
        ("accelerators_count: 8", "accelerators_count: eight", "wanted a whole number; got 'eight'"),
        ("accelerators_count: 8", "accelerators_count: 8.5", "wanted a whole number; got 8.5"),
        ("tpot_ms: 15.0", "tpot_ms: 0", "wanted more than 0; got 0"),
        ("tpot_ms: 15.0", "tpot_ms: .inf", "wanted a finite number; got inf"),
        ("tpot_ms: 15.0", "tpot_ms: fast", "wanted a number; got 'fast'"),
        ("mode: aggregated", "mode: mixed", "wanted 'aggregated' or 'disaggregated'; got 'mixed'"),
        ("kind: serving", "kind: serve", "kind is 'serve'; wanted training or serving"),
        ("kind: serving, ", "", "6: workloads.chat: needs a kind: training or serving"),
        ("choices: [106.25, 212.5]", "choices: 106.25", "wanted a list; got 106.25"),
        ("choices: [106.25, 212.5]", "choices: [106.25, ~]", "wanted a finite number or a word; got nothing"),
        ("weights: [1, 2]", "weights: [1]", "1 weights for 2 choices"),
        ("weights: [1, 2]", "weights: [1, 0]", "wanted more than 0; got 0"),
        ("log: true", "log: maybe", "wanted true or false; got 'maybe'"),
        ("low: 16", "low: a", "wanted a number; got 'a'"),
        ("{low: 16, high: 512, log: true}", "512", "10: vary.second_tier_gb: wanted keys with values; got 512"),
        ("{low: 16, high: 512, log: true}", "{lo: 16, high: 512}", "unknown key; did you mean 'low'?"),
        ("fix: {cooling: liquid}", "fix: [cooling]", "11: fix: wanted keys with values; got ['cooling']"),
        ("cooling: liquid", "cooling: .nan", "wanted a finite number or a word; got nan"),
        ("cooling: liquid", "cooling: {a: 1}", "wanted a finite number or a word; got {'a': 1}"),
        ("{at_most: 800}", "{at_most: 800, at_least: 1}", "needs exactly one of at_most and at_least"),
        ("{at_most: 800}", "800", "wanted keys with values; got 800"),
        ("year: 2026", "year: 1999", "wanted 2020 or more; got 1999"),
        ("year: 2026", "year: 2099", "wanted 2035 or less; got 2099"),
        ("pue_ratio: 1.2", "capital_cost_frac: 1.0", "wanted less than 1; got 1.0"),
        ("seed: 1", "seed: -1", "wanted 0 or more; got -1"),
        ("baselines: [hgx_h100]", "baselines: hgx_h100", "wanted a list; got 'hgx_h100'"),
        ("baselines: [hgx_h100]", "objectives: {usd_per_mtok: min}", "wanted 'minimize' or 'maximize'; got 'min'"),
        ("baselines: [hgx_h100]", "mapping: {chat: 4}", "wanted keys with values; got 4"),
    ],
)  # fmt: skip
def test_a_bad_space_is_told_in_plain_words(old: str, new: str, says: str) -> None:
    assert GOOD.count(old) == 1
    parse_space(GOOD)

    with pytest.raises(SpaceError) as caught:
        parse_space(GOOD.replace(old, new), "links.yaml")

    assert says in str(caught.value)
    assert not LIBRARY.search(str(caught.value))


def test_workloads_are_needed() -> None:
    text = re.sub(r"(?m)^  (pretrain|chat):.*\n( {9}.*\n)?", "", GOOD)
    with pytest.raises(SpaceError, match="4: workloads: wanted keys with values; got nothing"):
        parse_space(text, "links.yaml")
    with pytest.raises(SpaceError, match=r"4: workloads: wanted 1 or more entries; got \{\}"):
        parse_space(text.replace("workloads:", "workloads: {}"), "links.yaml")


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("memory.yaml", 'unit: "Gb/s"', "unit: [a]", r"memory\.yaml:\d+: [\w.-]+\.unit: wanted a word; got \['a'\]"),
        ("memory.yaml", "kind: published", "kind: printed", r"wanted 'published' or 'estimate'; got 'printed'"),
        ("memory.yaml", "year: 20", "year: 10", r"\.year: wanted 1980 or more; got 1"),
        ("sources.yaml", "title:", "titel:", r"sources\.yaml:\d+: [\w-]+\.title: is missing"),
        ("calibration/chip.yaml", "fit: ", "fits: ", r"chip\.yaml:\d+: \w+\.\w+\.fit: is missing"),
    ],
)
def test_a_bad_catalog_file_says_line_and_key(tmp_path: Path, file: str, old: str, new: str, says: str) -> None:
    for path in catalog_data().rglob("*.yaml"):
        copy = tmp_path / path.relative_to(catalog_data())
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    text = (tmp_path / file).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new, 1), encoding="utf-8")

    with pytest.raises(CatalogError) as caught:
        load_catalog(tmp_path)

    assert re.search(says, str(caught.value))
    assert not LIBRARY.search(str(caught.value))


@pytest.mark.parametrize(
    ("load", "file"),
    [(load_models, "models.yaml"), (load_platforms, "platforms.yaml"), (load_architectures, "architectures.yaml"),
     (load_catalog, "sources.yaml")],
)  # fmt: skip
@pytest.mark.parametrize("text", ["", "3\n", "[]\n", "a: 1\n", "a: {b: {c: []}}\n"])
def test_a_catalog_file_of_another_shape_is_refused_in_plain_words(
    tmp_path: Path, load: Any, file: str, text: str
) -> None:
    (tmp_path / file).write_text(text, encoding="utf-8")

    with pytest.raises(CatalogError, match=rf"^{re.escape(file)}:1: ") as caught:
        load(tmp_path)

    assert not LIBRARY.search(str(caught.value))


@pytest.mark.parametrize(
    ("value", "says"), [("many", "wanted a whole number; got 'many'"), ("-2", "wanted 0 or more; got '-2'")]
)
def test_a_wrong_variable_of_the_environment_is_named(monkeypatch: pytest.MonkeyPatch, value: str, says: str) -> None:
    monkeypatch.setenv("CODESIGN_WORKERS", value)
    with pytest.raises(UsageError, match=f"^CODESIGN_WORKERS: {re.escape(says)}$"):
        Settings()


COMMANDS = [
    ("sweep run quickstart --points nan", 2, "wanted"),
    ("sweep run quickstart --points many", 2, "wanted a number; got 'many'"),
    ("sweep run empty.yaml", 3, "empty.yaml:1: wanted keys such as name, base, workloads; the file is empty"),
    ("study run empty.yaml", 3, "the file is empty"),
    ("study run quickstart --trials 1e3", 2, "wanted a whole number; got '1e3'"),
    ("study import empty.json", 7, "empty.json is not a study written by codesign: "),
    ("study import list.json", 7, "list.json is not a study written by codesign: "),
    ("study import other.json", 7, "other.json is not a study written by codesign: "),
    ("study import trials.json", 7, "trials.json is not a study written by codesign: "),
    ("study import empty.parquet", 7, "empty.parquet is not a study written by codesign: "),
    ("study run design.yaml", 3, "nothing under vary; a design file is for `codesign evaluate`"),
    ("space check empty.yaml", 3, "the file is empty"),
    ("space check folder.yaml", 3, "cannot read: Is a directory"),
    ("space check binary.yaml", 3, "binary.yaml:1: not UTF-8 text (byte 0xff)"),
    ("space check quickstart --samples few", 2, "wanted a whole number; got 'few'"),
    ("evaluate empty.yaml", 3, "the file is empty"),
    ("evaluate ''", 3, "no space or design ''"),
    ("link empty.yaml", 3, "the file is empty"),
    ("link quickstart --length-m long", 2, "'--length-m': wanted a number; got 'long'"),
    ("cost quickstart --scenario ownr", 2, "--scenario: no scenario 'ownr'; did you mean 'owner'?"),
    ("chip empty.yaml", 3, "the file is empty"),
    ("fabric empty.yaml", 3, "the file is empty"),
    ("validate empty.csv", 5, "empty.csv: no column 'case'; got an empty file"),
    ("validate binary.yaml", 5, "not a CSV file in UTF-8 (byte 0xff)"),
    ("validate one.csv --by claas", 2, "--by: no column 'claas' in these files; did you mean 'class'?"),
    ("calibrate gem", 2, "did you mean 'gemm'?"),
    ("catalog list memry", 4, "did you mean 'memory'?"),
    ("dashboard --port high", 2, "'--port': wanted a whole number; got 'high'"),
    ("study list --storage mysql://a/b", 6, "'mysql' is not supported"),
]


@pytest.mark.parametrize(("words", "code", "says"), COMMANDS, ids=[words for words, _, _ in COMMANDS])
def test_no_command_speaks_the_language_of_a_library(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    code: int,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CODESIGN_STORAGE", "sqlite:///own.db")
    for name in ("empty.yaml", "empty.json", "empty.parquet", "empty.csv"):
        (tmp_path / name).write_text("")
    (tmp_path / "design.yaml").write_text(re.sub(r"(?m)^vary:\n(  .*\n)+", "", GOOD))
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "other.json").write_text('{"a": 1}')
    (tmp_path / "trials.json").write_text('{"trials": []}')
    (tmp_path / "one.csv").write_text("case,kind,metric\na,link,rate\n")

    got = run(["" if word == "''" else word for word in words.split()])

    said = capsys.readouterr()
    assert got == code, said.err
    assert says in said.err
    assert not LIBRARY.search(said.out + said.err)


def test_a_wrong_command_line_is_json_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["link", "quickstart", "--length-m", "long", "--json"]) == 2
    said = capsys.readouterr()
    assert json.loads(said.out)["error"] == {
        "kind": "UsageError",
        "message": "Invalid value for '--length-m': wanted a number; got 'long'",
        "exit_code": 2,
    }
    assert said.err == ""


def test_a_loaded_space_is_handed_back() -> None:
    space = load_space("quickstart")
    assert load_space(space) is space


def test_a_design_is_checked_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file without vary is sound or not like any other; of one design there is no share that can be built."""
    text = re.sub(r"(?m)^vary:\n(  .*\n)+", "", GOOD).replace("800", "8000")
    path = tmp_path / "one.yaml"
    for fix, says in (
        ("{cooling: liquid}", "keeps every rule"),
        ("{scale_up_modulation: nrz, scale_up_lane_rate_gbps: 448}", "scale_up_symbol_rate"),
    ):
        path.write_text(text.replace("{cooling: liquid}", fix))
        assert run(["space", "check", str(path)]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "links: sound. Nothing varies" in said
        assert says in said
    assert run(["space", "check", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["feasible"] is False
    path.write_text(text.replace("cooling", "colling"))
    assert run(["space", "check", str(path)]) == 3
    assert "fix.colling: no parameter 'colling'; did you mean 'cooling'?" in capsys.readouterr().err
