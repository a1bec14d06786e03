"""What the commands say when the answer is no: nothing feasible, interrupted, unwritable, pinned wrongly."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codesign.cli import run

SPACE = """
name: mine
question: Which links?
base: hgx_h100
workloads:
  chat: {kind: serving, model: Llama-3.1-70B, input_count: 256, output_count: 64, tpot_ms: %s, ttft_ms: 5000.0}
vary:
  scale_up_lanes_count: {low: 16, high: 72, step: 4}
search: {trials: 6, sampler: random, batch: 2}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def space(folder: Path, tpot_ms: float = 60.0, more: str = "") -> str:
    path = folder / "mine.yaml"
    path.write_text(SPACE % tpot_ms + more, encoding="utf-8")
    return str(path)


def test_a_sweep_prints_its_progress_and_its_best(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", "run", space(here), "--points", "40", "--chunk", "20", "--executor", "inline"]) == 0
    said = capsys.readouterr()
    assert "40/40" in said.err
    assert "best" in said.out


def test_nothing_feasible_says_what_the_closest_lacks(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["study", "run", space(here, tpot_ms=0.01), "--executor", "inline"]

    assert run([*words, "--json"]) == 8
    summary = json.loads(capsys.readouterr().out)
    assert summary["best"] is None
    assert [v["rule"] for v in summary["closest"]["violations"]] == ["chat:tpot"]
    assert run(["study", "best", "mine"]) == 8
    assert "the closest" in capsys.readouterr().out
    assert run(["study", "pareto", "mine"]) == 8


def test_a_sweep_without_anything_feasible_says_so_and_promotes_nothing(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sweep", "run", space(here, tpot_ms=0.01), "--points", "40", "--executor", "inline", "--promote", "4"]

    assert run(words) == 8
    said = capsys.readouterr().out
    assert run([*words, "--json"]) == 8
    summary = json.loads(capsys.readouterr().out)
    assert run(["study", "list", "--json"]) == 0

    assert "nothing feasible was found" in said
    assert "1,000,000" not in said
    assert "why points were refused" in said
    assert "trials" not in said
    assert "after repair" not in said
    assert (summary["top"], summary["front"], summary["promoted_to"]) == ([], [], None)
    assert summary["refusals"]["chat:tpot"] > 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--points", "1e30"], "points: wanted a whole number from 1 to 1,000,000,000; got 1e+30"),
        (["--points", "nan"], "points: wanted a whole number"),
        (["--points", "2.5"], "points: wanted a whole number"),
        (["--points", "1e9", "--chunk", "1"], "would make 1,000,000,000 files"),
        (["--chunk", "0"], "chunk: wanted a whole number"),
        (["--method", "sobel"], "did you mean 'sobol'?"),
        (["--out", "mine.yaml"], "cannot write sweep files in"),
        (["--executor", "slurm"], "no executor 'slurm'"),
        (["--sweep", "../../x"], "a sweep cannot be named '../../x'; wanted up to 100 letters"),
        (["--sweep", ".."], "cannot be named '..'"),
        (["--sweep", "a/b"], "cannot be named 'a/b'"),
    ],
)
def test_options_of_a_sweep_are_checked_before_anything_is_written(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    path = space(here)

    assert run(["sweep", "run", path, "--executor", "inline", *words]) == 2
    assert says in capsys.readouterr().err
    assert list(here.iterdir()) == [Path(path)]


def test_a_sweep_goes_on_as_begun_and_keeps_its_folder_to_itself(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sweep", "run", space(here), "--executor", "inline"]
    assert run([*words, "--points", "8", "--method", "random"]) == 0
    before = {path: path.read_bytes() for path in (here / "sweeps" / "mine").iterdir()}
    assert run(words) == 0
    capsys.readouterr()

    for more, says in (
        (["--method", "sobol"], "is by random, not sobol"),
        (["--out", "elsewhere"], "is in "),
        (["--points", "9"], "has 8 points, not 9"),
        (["--chunk", "4"], "points a file, not 4"),
        (["--storage", "sqlite:///other.db"], "mine holds a sweep of "),
    ):
        assert run([*words, *more]) == 7
        assert says in capsys.readouterr().err
    assert run([*words, "--storage", "sqlite:///other.db", "--out", "elsewhere", "--points", "8"]) == 0
    assert {path: path.read_bytes() for path in (here / "sweeps" / "mine").iterdir()} == before


def test_a_sweep_goes_on_from_a_folder_that_takes_none(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["sweep", "run", space(here), "--executor", "inline", "--storage", f"sqlite:///{here}/kept.db"]
    assert run([*words, "--points", "8"]) == 0
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "sweeps").write_text("a file where the default folder would be")
    monkeypatch.chdir(elsewhere)

    assert run(words) == 0
    assert list(elsewhere.iterdir()) == [elsewhere / "sweeps"]


@pytest.mark.parametrize(
    "words",
    ["study list", "study show x", "study best x", "study pareto x", "study export x x.csv", "study copy x y",
     "study stop x", "db current", "dashboard"],
)  # fmt: skip
def test_who_only_reads_makes_no_database(here: Path, capsys: pytest.CaptureFixture[str], words: str) -> None:
    assert run(words.split()) == 6
    assert "there is no database of studies at codesign.db, and reading makes none" in capsys.readouterr().err
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("words", ["quikstart", "quickstart --executor slurm", "quickstart --patience 0"])
def test_a_study_that_is_refused_makes_no_database(here: Path, words: str) -> None:
    assert run(["study", "run", *words.split()]) in (2, 3)
    assert list(here.iterdir()) == []


def test_a_study_has_a_name_that_is_a_plain_word(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = space(here)
    assert run(["study", "run", path, "--executor", "inline", "--study", "../x"]) == 2
    assert list(here.iterdir()) == [Path(path)]
    assert "a study cannot be named '../x'" in capsys.readouterr().err
    assert run(["study", "run", path, "--executor", "inline"]) == 0
    assert run(["study", "copy", "mine", "a b"]) == 2
    assert run(["study", "export", "mine", "mine.json"]) == 0
    assert run(["study", "import", "mine.json", "--study", "../x"]) == 2
    assert capsys.readouterr().err.count("cannot be named") == 2


def test_what_delivers_nothing_has_no_price(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = here / "huge.yaml"
    path.write_text(
        """
name: huge
question: Does a job run that fails before its first checkpoint?
base: hgx_h100
workloads:
  pretrain: {kind: training, model: Llama-3.1-405B, accelerators_count: 8388608, sequence_count: 8192,
             global_batch_count: 2097152}
mapping: {pretrain: {tp_count: 8}}
""",
        encoding="utf-8",
    )

    for words in (["evaluate"], ["cost"]):
        run([*words, str(path)])
        assert "1,000,000" not in capsys.readouterr().out
    run(["evaluate", str(path)])
    assert "usd_per_mtok: none: it delivers nothing" in capsys.readouterr().out
    run(["cost", str(path), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["bill"][-1]["owner_usd_per_mtok"] is None
    assert report["tornado"] == []


def test_several_objectives_have_a_best_each_and_a_front(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = space(here, more="objectives: {usd_per_mtok: minimize, tokens_per_s: maximize, die_mm2: minimize}\n")

    assert run(["study", "run", path, "--executor", "inline"]) == 0
    said = capsys.readouterr()
    assert run(["study", "best", "mine", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert run(["study", "pareto", "mine", "--json"]) == 0
    front = json.loads(capsys.readouterr().out)

    words = " ".join(said.out.split())
    for name, sign in (("usd_per_mtok", 1.0), ("tokens_per_s", -1.0), ("die_mm2", 1.0)):
        best = summary["best_of"][name]
        assert f"best {name}: " in words
        assert f"(trial {best['number']}; " in words
        assert sign * best["values"][name] == min(sign * row[name] for row in front)
    assert f"front: {len(front)} trial" in words
    assert summary["next"][0] == "codesign study pareto mine"
    assert summary["next"][0] in words
    assert re.search(r"best usd_per_mtok \S+ USD/Mtoken, tokens_per_s .*, die_mm2 .*; \d+ on the front", said.err)


def test_a_space_tried_whole_is_not_searched_longer_and_an_edge_is_named(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = space(here)
    assert run(["study", "run", path, "--trials", "6", "--executor", "inline"]) == 0
    part = capsys.readouterr().out
    assert run(["study", "run", path, "--trials", "100", "--executor", "inline"]) == 0
    whole = " ".join(capsys.readouterr().out.split())
    assert run(["study", "best", "mine", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)

    assert "study run mine" in part
    assert summary["exhausted"]
    assert "search longer" not in whole
    assert "every design of the space was tried" in whole
    assert not any(" run " in line for line in summary["next"])
    assert [(e["parameter"], e["edge"]) for e in summary["edges"]] == [("scale_up_lanes_count", "lowest")]
    assert "whether it gains beyond was not asked: scale_up_lanes_count 16 (lowest)" in whole


def test_progress_answer_and_trial_agree_on_what_binds(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["study", "run", space(here), "--executor", "inline"]) == 0
    said = capsys.readouterr()
    bound = re.findall(r"bound by ([^)]+)\)", said.err)[-1]
    assert run(["study", "best", "mine", "--json"]) == 0
    best = json.loads(capsys.readouterr().out)["best"]
    assert run(["study", "show", "mine", "--trial", str(best["number"]), "--json"]) == 0
    trial = json.loads(capsys.readouterr().out)

    assert f"binds now: {bound}; next: " in said.out
    assert best["binds"] == trial["binds"]
    assert best["binds"]["now"] == bound


@pytest.mark.parametrize(("mode", "says"), [("disaggregated", True), ("aggregated", False)])
def test_a_shared_pool_that_wins_over_two_is_told(
    here: Path, capsys: pytest.CaptureFixture[str], mode: str, says: bool
) -> None:
    path = Path(space(here))
    path.write_text(path.read_text().replace("kind: serving", f"kind: serving, mode: {mode}"), encoding="utf-8")

    assert run(["evaluate", str(path), "--json"]) == 0
    work = json.loads(capsys.readouterr().out)["workloads"]["chat"]
    assert run(["evaluate", str(path)]) == 0
    page = capsys.readouterr().out

    assert (work["mode"], work["mapping"]["disaggregated_flag"]) == (mode, 0)
    assert ("one shared pool beat every split into two" in page) == says


def test_a_study_of_a_file_goes_on_by_its_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["study", "run", space(here), "--executor", "inline", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    (here / "mine.yaml").unlink()
    for line in first["next"]:
        assert run([*line.split()[1:], *(["--executor", "inline"] if " run " in line else [])]) == 0
    capsys.readouterr()
    assert run(["study", "best", "mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trials"] == 15  # all the points there are


def test_a_total_below_what_is_done_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["study", "run", space(here), "--executor", "inline"]
    assert run(words) == 0
    assert run([*words, "--trials", "2"]) == 2
    assert "6 trials already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("mapping: {chat: {tp_count: 64}}", "must fit accelerators_count 8; got 64"),
        ("mapping: {chat: {tp_count: 2, ep_count: 4}}", "ep_count must be at most tp x dp = 2"),
        ("mapping: {chat: {tp_cuont: 2}}", "tp_count"),
    ],
)
def test_a_pinned_mapping_must_fit(here: Path, capsys: pytest.CaptureFixture[str], more: str, says: str) -> None:
    assert run(["evaluate", space(here, more=more).replace("vary", "vary")]) == 3
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pinned", "says"),
    [
        ("{tp_count: 7}", "tp_count must divide the heads"),
        ("{tp_count: 8, dp_count: 3}", "must be the accelerators_count"),
        ("{pp_count: 1024}", "pp_count must not exceed the layers"),
    ],
)
def test_a_pinned_training_layout_must_divide(
    here: Path, capsys: pytest.CaptureFixture[str], pinned: str, says: str
) -> None:
    path = here / "job.yaml"
    path.write_text(
        f"""
name: job
question: How long does a step take?
base: hgx_h100
workloads:
  pretrain: {{kind: training, model: Llama-3.1-70B, accelerators_count: {1008 if "7" in pinned else 1024},
             sequence_count: 4096, global_batch_count: 1024}}
mapping: {{pretrain: {pinned}}}
""",
        encoding="utf-8",
    )
    assert run(["evaluate", str(path)]) == 3
    assert says in capsys.readouterr().err


def test_data_parallelism_fills_a_pinned_job(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = here / "job.yaml"
    path.write_text(
        """
name: job
question: How long does a step take?
base: hgx_h100
workloads:
  pretrain: {kind: training, model: Llama-3.1-70B, accelerators_count: 1024, sequence_count: 4096,
             global_batch_count: 1024}
mapping: {pretrain: {tp_count: 8, pp_count: 4}}
""",
        encoding="utf-8",
    )
    assert run(["evaluate", str(path), "--json"]) in (0, 8)
    assert json.loads(capsys.readouterr().out)["workloads"]["pretrain"]["mapping"]["dp_count"] == 32


@pytest.mark.parametrize(
    ("sampler", "says"),
    [
        ("nsga4", "no sampler 'nsga4'; did you mean 'nsga"),
        ("optuna:TPESamplr", "no sampler 'optuna:TPESamplr'; did you mean 'optuna:TPESampler'?"),
        ("optuna:BaseSampler2", "did you mean 'optuna:BaseSampler'?"),
        ("optuna:nowhere.at_all:Sampler", "no sampler 'optuna:nowhere.at_all:Sampler': No module"),
    ],
)
def test_an_unknown_sampler_is_refused_before_the_study(
    here: Path, capsys: pytest.CaptureFixture[str], sampler: str, says: str
) -> None:
    path = Path(space(here))
    path.write_text(path.read_text().replace("sampler: random", f'sampler: "{sampler}"'), encoding="utf-8")
    for words in (["space", "check", str(path)], ["study", "run", str(path), "--executor", "inline"]):
        assert run(words) == 3
        said = capsys.readouterr().err
        assert "mine.yaml:9: search.sampler: " in said
        assert says in said
    assert list(here.iterdir()) == [path]


def test_files_that_cannot_be_written_are_a_sentence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["study", "run", space(here), "--executor", "inline"]) == 0
    for ending in ("csv", "json", "parquet"):
        assert run(["study", "export", "mine", f"nowhere/trials.{ending}"]) == 2
        assert "cannot write nowhere" in capsys.readouterr().err
    (here / "taken").write_text("a file", encoding="utf-8")
    assert run(["sweep", "run", "mine.yaml", "--points", "8", "--out", "taken", "--executor", "inline"]) == 2
    assert "cannot write sweep files" in capsys.readouterr().err


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_is_done_and_says_so(here: Path, sent: signal.Signals) -> None:
    path = Path(space(here))
    path.write_text(path.read_text().replace("trials: 6", "trials: 4000"), encoding="utf-8")
    words = [sys.executable, "-m", "codesign", "study", "run", str(path), "--executor", "inline"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=here) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        os.kill(process.pid, sent)
        said = first + process.stderr.read()
    assert process.returncode == 130, said
    assert "interrupted; finished trials are kept" in said


def test_the_dashboard_publishes_reviews_and_serves(here: Path) -> None:
    import urllib.request

    assert run(["study", "run", space(here), "--executor", "inline"]) == 0
    words = [sys.executable, "-m", "codesign", "dashboard", "--port", "18431"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=here) as process:
        page = ""
        for _ in range(100):
            try:
                with urllib.request.urlopen("http://127.0.0.1:18431/api/studies", timeout=5) as answer:
                    page = answer.read().decode()
                break
            except OSError:
                time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert "mine (review)" in page
    assert process.returncode == 130


@pytest.mark.parametrize("storage", ["nonsense", "nonsense.txt"])
def test_a_storage_that_is_no_address_is_refused_and_makes_no_file(
    here: Path, capsys: pytest.CaptureFixture[str], storage: str
) -> None:
    words = ["study", "run", space(here), "--executor", "inline", "--storage", storage]
    assert run(words) == 6
    assert "sqlite:///studies.db" in " ".join(capsys.readouterr().err.split())
    assert not (here / storage).exists()
    assert run([*words[:-1], "mine.db", "--trials", "2", "--json"]) == 0  # a file of SQLite by its ending
    assert (here / "mine.db").exists()


def test_a_study_without_a_name_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["study", "run", space(here), "--executor", "inline", "--study", ""]) == 2
    assert "cannot be named ''" in capsys.readouterr().err
    assert not (here / "codesign.db").exists()


def test_extend_counts_from_the_total_that_a_study_aims_at(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["study", "run", space(here), "--executor", "inline", "--json"]
    assert run([*words, "--time-limit-s", "0.000001"]) in (0, 8)
    assert json.loads(capsys.readouterr().out)["total"] == 6
    assert run([*words, "--extend", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["total"], found["finished"]) == (8, 8)


def test_a_sampler_whose_library_is_missing_is_refused_before_a_study_is_written(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "torch" else found(name, *more)
    )
    asked = Path(space(here))
    asked.write_text(asked.read_text(encoding="utf-8").replace("sampler: random", "sampler: optuna:GPSampler"), "utf-8")
    assert run(["study", "run", str(asked), "--executor", "inline"]) == 7
    assert "codesign[gp]" in capsys.readouterr().err
    assert run(["study", "best", "mine"]) in (6, 7)  # no study was written
