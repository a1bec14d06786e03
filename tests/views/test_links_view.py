"""A link of a design: its sheet says its length and what it breaks, a sweep walks anything, a figure shows it."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from codesign.cli import run
from codesign.errors import UsageError
from codesign.views.curves import Panel, curves_svg, panels_svg
from codesign.views.links import PANELS, link_rows, link_sweep
from tests.views import small

DESIGN = small.DESIGN.replace("6}", "6, scale_up_medium: passive_copper}")


@pytest.fixture
def design(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(DESIGN, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("which", ["scale_up", "scale_out", "die_to_die"])
def test_a_link_is_a_data_sheet(design: str, which: str) -> None:
    rows = link_rows(design, which)
    assert len(rows) > 10
    wanted = ("section", "quantity", "value", "unit") + (() if which == "die_to_die" else ("source",))
    assert {tuple(row) for row in rows} == {wanted}
    assert all(row.get("source", "asked") for row in rows)
    sheet = {row["quantity"]: row["value"] for row in rows}
    if which != "die_to_die":
        assert 0.0 < sheet["goodput_gbps"] < sheet["line_rate_gbps"] < sheet["raw_rate_gbps"]


def test_the_sheet_says_the_length_it_holds_for(design: str) -> None:
    own, longer = ({r["quantity"]: r["value"] for r in link_rows(design, "scale_up", m)} for m in (None, 3.0))
    assert own["length_m"] == 0.4  # eight accelerators on one board
    assert longer["length_m"] == 3.0
    assert longer["insertion_loss_db"] > own["insertion_loss_db"]
    assert longer["reach_margin_m"] == pytest.approx(longer["reach_m"] - 3.0)
    assert longer["reach_m"] == own["reach_m"] < own["reach_limit_m"]


def test_what_a_link_breaks_stands_first_with_what_it_has(design: str) -> None:
    assert [row for row in link_rows(design, "scale_up") if row["section"] == "refused"] == []
    path = Path(design)
    path.write_text(DESIGN.replace("fix: {", "fix: {scale_up_lane_rate_gbps: 448, scale_up_modulation: nrz, "))
    rows = link_rows(design, "scale_up", 6.0)
    refused = [row for row in rows if row["section"] == "refused"]
    assert rows[: len(refused)] == refused
    assert [row["quantity"] for row in refused] == ["scale_up_reach", "scale_up_channel", "scale_up_symbol_rate"]
    assert (refused[2]["value"], refused[2]["unit"]) == (448.0, "GBd")
    assert refused[2]["source"].startswith("available 224 GBd: symbol rate against the fastest")
    assert refused[0]["source"].startswith("available 5 m: ")


def test_a_sweep_walks_the_parameter_and_more_lane_rate_is_more_goodput(design: str, tmp_path: Path) -> None:
    figure = tmp_path / "sweep.svg"
    rows = link_sweep("quickstart", "scale_up", "lane_rate_gbps", figure)
    assert [row["scale_up_lane_rate_gbps"] for row in rows] == [50, 100, 200]
    goodput = [row["goodput_gbps"] for row in rows]
    assert goodput == sorted(goodput)
    assert len(link_sweep(design, "scale_out", "scale_out_fec")) > 5
    assert len(link_sweep(design, "scale_up", "receive_buffer_bytes")) == 17
    codes = {r["scale_up_modulation"]: r for r in link_sweep(design, "scale_up", "modulation", length_m=2.0)}
    assert {row["length_m"] for row in codes.values()} == {2.0}


def test_a_sweep_of_the_length_ends_beyond_the_reach(design: str) -> None:
    rows = link_sweep(design, "scale_up", "length_m")
    lengths = [row["length_m"] for row in rows]
    assert lengths == sorted(lengths)
    assert 0.4 in lengths
    margins = [row["margin_db"] for row in rows if row["length_m"] >= 1.0]
    assert margins == sorted(margins, reverse=True)
    for row in rows:
        assert ("channel" in row["refused"]) == (row["margin_db"] < 0.0)
        assert (row["refused"] == "") == (row["length_m"] <= row["reach_m"])
    assert rows[0]["refused"] == ""
    assert "reach" in rows[-1]["refused"]


@pytest.mark.parametrize("parameter", ["medium", "length_m", "lane_rate_gbps"])
def test_the_figure_of_a_sweep_shows_every_quantity_that_matters(design: str, tmp_path: Path, parameter: str) -> None:
    figure = tmp_path / "sweep.svg"
    rows = link_sweep(design, "scale_up", parameter, figure)
    drawing = ElementTree.fromstring(figure.read_text(encoding="utf-8"))
    texts = ["".join(node.itertext()) for node in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert set(PANELS) <= set(texts)
    rings = [node.get("fill") == "white" for node in drawing.iter("{http://www.w3.org/2000/svg}circle")]
    lines = sum(len(columns) for columns in PANELS.values())
    assert len(rings) == lines * len(rows)
    assert rings.count(True) == lines * sum(bool(row["refused"]) for row in rows)


def test_long_words_stand_aslant_and_do_not_overprint() -> None:
    words = 2 * ["passive_copper", "cabled_backplane", "co_packaged_optics", "pluggable_optics", "linear_optics"]
    line = {"one": [float(i) for i in range(len(words))]}
    for svg in (
        curves_svg(words, line, "t", "x", "y"),
        panels_svg(words, [Panel("y", line)], "t", "x", [False] * len(words)),
    ):
        assert svg.count("rotate(-35") == len(words)
    assert "rotate(-35" not in curves_svg(["a", "b"], {"one": [1.0, 2.0]}, "t", "x", "y")


def test_curves_show_words_and_decades() -> None:
    for svg in (
        curves_svg(["a", "b"], {"one": [1.0, 2.0], "two": [0.0, 1.0]}, "words & more", "x", "y"),
        curves_svg([1.0, 1e6], {"one": [1e-9, 1.0]}, "decades", "x", "y"),
        curves_svg([1.0, 2.0], {"flat": [0.0, 0.0]}, "flat", "x", "y"),
        panels_svg([1.0], [Panel("p", {"one": [1.0]})], "one point", "x", [True]),
        panels_svg([1.0, 2.0], [Panel("p", {"one": [1e-14, 900.0]}, straight=True)], "straight", "x", [True, False]),
    ):
        assert "nan" not in svg
        assert "1e-14" not in svg
        ElementTree.fromstring(svg)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--which", "scaleup"], "did you mean 'scale_up'"),
        (["--sweep", "lane_rate"], "scale_up_lane_rate_gbps"),
        (["--sweep", "lenght_m"], "did you mean 'length_m'"),
        (["--which", "die_to_die", "--sweep", "lane_rate_gbps"], "scale_up and scale_out"),
        (["--which", "die_to_die", "--length-m", "1"], "scale_up and scale_out"),
        (["--plot", "a.svg"], "--plot draws a sweep; say what varies, for example --sweep length_m"),
        (["--sweep", "length_m", "--length-m", "1"], "give one of them"),
        (["--length-m", "0"], "longer than 0"),
        (["--length-m", "nan"], "longer than 0"),
        (["--sweep", "fec", "--plot", "a.png"], ".svg or .html"),
        (["--sweep", ""], "no parameter ''"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    design: str, capsys: pytest.CaptureFixture[str], options: list[str], says: str
) -> None:
    assert run(["link", design, *options]) == UsageError.exit_code
    assert re.search(re.escape(says), capsys.readouterr().err)
