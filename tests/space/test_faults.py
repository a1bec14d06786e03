"""What a space names that is not there: file, line, key, what was got and the nearest, all of it at once."""

import pytest

from codesign.catalog import Catalog
from codesign.errors import SpaceError
from codesign.evaluation import check_question
from codesign.space import parse_space
from codesign.study.problem import SpaceProblem

WRONG = """\
name: links
question: Which links feed this job best?
base: hgx_h10
workloads:
  pretrain: {kind: training, model: Llama-3.1-8, accelerators_count: 1024, sequence_count: 8192, global_batch_count: 8}
  chat: {kind: serving, model: Llama-3.1-8B, input_count: 1024, output_count: 256, tpot_ms: 15.0, ttft_ms: 500.0,
         precision: fp9}
vary:
  scale_up_lane_rate_gbps: {choices: [106.25, 900]}
  scale_up_medium: {low: 1, high: 2}
  memory_stacks_count: {low: 4, high: 8, step: 0.5}
  memory_pin_rate_gbps: {low: 0.5, high: 80}
fix:
  colling: liquid
  host: hgx
objectives: {usd_per_mtok: maximize}
constraints:
  die_mm: {at_most: 800}
scenario:
  prices: ownr
search: {sampler: nsga4}
baselines: [torus_tup]
mapping:
  chat: {tp_count: 2.5}
"""
SAID = [
    "links.yaml:3: base: no platform 'hgx_h10'; did you mean 'hgx_h100'?",
    "links.yaml:14: fix.colling: no parameter 'colling'; did you mean 'cooling'?",
    "links.yaml:15: fix.host: host cannot be 'hgx'; did you mean 'hgx_8'?",
    "links.yaml:9: vary.scale_up_lane_rate_gbps.choices.1: scale_up_lane_rate_gbps lies between 16 and 448; got 900",
    "links.yaml:10: vary.scale_up_medium: scale_up_medium is chosen by name, so it needs choices, not a range; valid: ",
    "links.yaml:11: vary.memory_stacks_count.step: memory_stacks_count is a whole number, and so are its steps; got ",
    "links.yaml:12: vary.memory_pin_rate_gbps.low: memory_pin_rate_gbps lies between 1 and 64; got 0.5",
    "links.yaml:12: vary.memory_pin_rate_gbps.high: memory_pin_rate_gbps lies between 1 and 64; got 80",
    "links.yaml:5: workloads.pretrain.model: no model 'Llama-3.1-8'; did you mean 'Llama-3.1-8B'?",
    "links.yaml:7: workloads.chat.precision: no precision 'fp9'; did you mean 'fp8'?",
    "links.yaml:18: constraints.die_mm: no metric 'die_mm'; did you mean 'die_mm2'?",
    "links.yaml:16: objectives.usd_per_mtok: better when minimized; wanted minimize, got maximize",
    "links.yaml:20: scenario.prices: no scenario 'ownr'; did you mean 'owner'?",
    "links.yaml:22: baselines.0: no platform 'torus_tup'; did you mean 'torus_tpu'?",
    "links.yaml:21: search.sampler: no sampler 'nsga4'; did you mean 'nsga3'?",
    "links.yaml:24: mapping.chat.tp_count: tp_count must be a whole number, 1 or more; got 2.5",
]
#: What is wrong -> what is right, one entry per fault or pair of faults.
RIGHT = {
    "base: hgx_h10\n": "base: hgx_h100\n", "model: Llama-3.1-8,": "model: Llama-3.1-8B,", "fp9": "fp8", "900": "212.5",
    "{low: 1, high: 2}": "{choices: [passive_copper]}", "step: 0.5": "step: 1",
    "low: 0.5, high: 80": "low: 5, high: 9", "colling": "cooling", "host: hgx\n": "host: hgx_8\n",
    "die_mm:": "die_mm2:", "maximize": "minimize", "ownr": "owner", "nsga4": "nsga2", "torus_tup": "torus_tpu",
    "tp_count: 2.5": "tp_count: 2",
}  # fmt: skip


def mended(*but: str) -> str:
    text = WRONG
    for old, new in RIGHT.items():
        assert text.count(old) == 1
        text = text if old in but else text.replace(old, new)
    return text


def said(text: str, catalog: Catalog) -> list[str]:
    try:
        SpaceProblem(parse_space(text, "links.yaml"), text, catalog)
    except SpaceError as error:
        return str(error).splitlines()
    return []


def test_the_faults_of_a_space_come_at_once_each_at_its_line(catalog: Catalog) -> None:
    lines = said(WRONG, catalog)

    assert len(lines) == 10
    assert lines[-1].startswith("links.yaml: and ")
    for got, wanted in zip(lines[:-1], SAID, strict=False):
        assert got.startswith(wanted)


def test_each_fault_is_said_alone_too(catalog: Catalog) -> None:
    assert said(mended(), catalog) == []

    heard = [line for old in RIGHT for line in said(mended(old), catalog)]

    assert len(heard) == len(SAID)
    assert [wanted for wanted in SAID if not any(line.startswith(wanted) for line in heard)] == []


@pytest.mark.parametrize(
    ("degrees", "says"),
    [
        ("{tp_cout: 2, users_count: x}", [".tp_cout: no degree 'tp_cout'; did you mean 'tp_count'?",
                                          ".users_count: users_count must be a whole number, 1 or more; got 'x'"]),
        ("{tp_count: 16, ep_count: 64}", [": workers x tp x dp x pp must fit accelerators_count 8; got 16",
                                          ".ep_count: ep_count must be at most tp x dp = 16; got 64"]),
    ],
)  # fmt: skip
def test_a_pinned_mapping_is_refused_where_it_stands(catalog: Catalog, degrees: str, says: list[str]) -> None:
    lines = said(mended().replace("{tp_count: 2}", degrees), catalog)

    assert lines == [f"links.yaml:24: mapping.chat{wanted}" for wanted in says]


def test_a_space_made_in_python_is_named(catalog: Catalog) -> None:
    asked = parse_space(mended().replace("cooling", "colling"), "links.yaml")
    space = type(asked).model_validate(asked.model_dump())

    with pytest.raises(SpaceError, match=r"^links: fix\.colling: no parameter 'colling'"):
        check_question(space, catalog)
