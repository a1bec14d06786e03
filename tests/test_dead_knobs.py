"""A knob that changes nothing anywhere is a defect: every parameter moves a number that a reader sees."""

import json
from functools import cache
from typing import Any

import pytest

from codesign.candidates import assemble_rows
from codesign.catalog import Catalog, load_catalog
from codesign.catalog.platforms import load_platform
from codesign.evaluation import evaluate
from codesign.parameters import BY_NAME, PARAMETERS, Parameter
from codesign.space import Space, Value, parse_space

TRAINING = """
name: knobs
question: Which knob moves what?
base: nvl72_gb200
workloads:
  pretrain: {kind: training, model: Llama-3.1-70B, accelerators_count: 1024, sequence_count: 8192,
             global_batch_count: 1024, precision: fp8}
  documents: {kind: serving, model: Llama-3.1-405B, accelerators_count: 8, input_count: 32768, output_count: 64,
              tpot_ms: 90.0, ttft_ms: 90000.0, precision: bf16}
  chat: {kind: serving, model: DeepSeek-V3, accelerators_count: 16, input_count: 4096, output_count: 512,
         tpot_ms: 60.0, ttft_ms: 20000.0, precision: fp8}
"""
#: What a knob needs around it to have an effect, where the base platform has it idle.
AROUND: dict[str, dict[str, Value]] = {
    "second_tier_gb": {"second_tier_kind": "lpddr5x"},
    "second_tier_kind": {"second_tier_gb": 512},
    "scale_up_virtual_channels_count": {"scale_up_topology": "torus_3d"},
    "scale_up_retry": {"scale_up_medium": "active_copper", "scale_up_fec": "none"},
    "scale_out_retry": {"scale_out_medium": "linear_optics", "scale_out_fec": "kr4"},
    "scale_up_replay_buffer_bytes": {"scale_up_medium": "active_copper"},
}


@cache
def asked() -> Space:
    return parse_space(TRAINING, "knobs.yaml")


@cache
def catalog() -> Catalog:
    return load_catalog()


def values(one: Parameter) -> list[Value]:
    """Values around the base platform's: every word, or far steps to both sides."""
    if one.is_word:
        return list(one.options(catalog()))
    base = float(load_platform("nvl72_gb200").parameters[one.name].value)
    steps = [base * factor for factor in (0.02, 0.25, 0.5, 2.0, 4.0, 16.0)] + [one.low, one.high]
    inside = [min(max(step, one.low), one.high) for step in steps]
    return list(dict.fromkeys([*(round(x) if one.whole else x for x in inside), round(base) if one.whole else base]))


@cache
def outputs(name: str) -> list[dict[str, Any]]:
    """What each value of a parameter makes of the machine, without the decisions that it repeats."""
    rows = [{**AROUND.get(name, {}), name: value} for value in values(BY_NAME[name])]
    found = evaluate(assemble_rows(rows, asked()), asked(), catalog())
    details = [found.details(row) for row in range(len(rows))]
    return [{name: value for name, value in one.items() if name != "design"} for one in details]


@pytest.mark.parametrize("name", [one.name for one in PARAMETERS])
def test_every_parameter_moves_a_result(name: str) -> None:
    texts = {json.dumps(one, allow_nan=False) for one in outputs(name)}
    assert len(texts) > 1, f"{name} changes nothing"


@pytest.mark.parametrize("name", [one.name for one in PARAMETERS])
def test_every_parameter_moves_the_cost_of_a_token_or_whether_it_can_be_built(name: str) -> None:
    moved = {(one["metrics"]["usd_per_mtok"], json.dumps(one["violations"])) for one in outputs(name)}
    assert len(moved) > 1, f"{name} moves neither cost nor feasibility"
