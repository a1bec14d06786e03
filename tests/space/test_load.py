"""The grammar: a good file loads, and each bad one names file, line, key, what it got and what it wanted."""

import pytest

from codesign.errors import SpaceError
from codesign.space import Choices, Range, parse_space

GOOD = """\
name: links
question: Which links feed this job best?
base: hgx_h100
workloads:
  pretrain: {kind: training, model: Llama-3.1-8B, accelerators_count: 1024, sequence_count: 8192, global_batch_count: 8}
vary:
  scale_up_lane_rate_gbps: {choices: [106.25, 212.5]}
  memory_stacks_count: {low: 4, high: 8, step: 1}
  second_tier_gb: {low: 16, high: 512, log: true}
fix:
  cooling: liquid
"""


def test_a_good_space_loads() -> None:
    space = parse_space(GOOD)

    assert space.vary["scale_up_lane_rate_gbps"] == Choices(choices=(106.25, 212.5))
    assert space.vary["second_tier_gb"] == Range(low=16, high=512, log=True)
    assert space.fix == {"cooling": "liquid"}
    assert space.objectives == {"usd_per_mtok": "minimize"}


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("question:", "qestion:", 2, "unknown key; did you mean 'question'?"),
        ("kind: training", "kind: trainin", 5, "did you mean 'training'?"),
        ("accelerators_count: 1024", "accelerators_count: -4", 5, "greater than or equal to 1; got -4"),
        ("accelerators_count: 1024", "accelerators_count: 1.5", 5, "got 1.5"),
        ("accelerators_count: 1024", "accelerators_cout: 8", 5, "did you mean 'accelerators_count'?"),
        ("choices: [106.25, 212.5]", "choices: []", 7, "at least one choice"),
        ("choices: [106.25, 212.5]", "choices: [a, 2]", 7, "mixes words and numbers"),
        ("choices: [106.25, 212.5]", "choices: [2, 2]", 7, "twice"),
        ("choices: [106.25, 212.5]", "choices: [.nan]", 7, "finite"),
        ("low: 4, high: 8", "low: 8, high: 4", 8, "needs low < high, got 8 and 4"),
        ("low: 4, high: 8", "low: .nan, high: 4", 8, "got nan"),
        ("low: 16, high: 512, log", "low: 0, high: 512, log", 9, "log range needs low > 0"),
        ("cooling: liquid", "cooling: [liquid]", 11, "finite number or a word"),
        ("cooling: liquid", "scale_up_lane_rate_gbps: 106.25", 1, "under vary and under fix"),
        ("  cooling: liquid", "  cooling: liquid\n  cooling: air", 12, "stands twice (first at line 11)"),
        ("name: links", "name: 'No Spaces'", 1, "pattern"),
        ("fix:", "search: {in_flight: 0}\nfix:", 10, "greater than or equal to 1; got 0"),
        ("fix:", "search: {in_flight: 1.5}\nfix:", 10, "valid integer; got 1.5"),
        ("fix:", "search: {in_fligt: 2}\nfix:", 10, "unknown key; did you mean 'in_flight'?"),
    ],
)
def test_a_bad_space_says_where_and_why(old: str, new: str, line: int, says: str) -> None:
    with pytest.raises(SpaceError) as caught:
        parse_space(GOOD.replace(old, new), "links.yaml")

    assert f"links.yaml:{line}:" in str(caught.value)
    assert says in str(caught.value)


def test_yaml_is_version_1_2() -> None:
    space = parse_space(GOOD.replace("log: true", "log: true, peak: 1e2").replace("liquid", "no"))

    assert space.vary["second_tier_gb"].peak == 100.0  # type: ignore[union-attr]
    assert space.fix == {"cooling": "no"}


@pytest.mark.parametrize("text", ["", "[]", "3", "a: &a [*a]", "- 1\n b: {", "\t", "a: !!python/object:os.system x"])
def test_what_is_not_a_space_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(SpaceError, match="space"):
        parse_space(text)


def test_a_condition_needs_a_parent_with_that_choice() -> None:
    conditional = GOOD.replace("log: true", "log: true, when: {cooling: [liquid]}")
    with pytest.raises(SpaceError, match="'cooling' is not a parameter with choices under vary"):
        parse_space(conditional)
