"""The grammar: a good file loads, and each bad one names file, line, key, what it got and what it wanted."""

import pytest

from codesign.errors import SpaceError
from codesign.space import Choices, Range, Space, parse_space

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


def test_a_space_is_its_content_wherever_it_was_read() -> None:
    space = parse_space(GOOD)

    assert space == Space.model_validate(space.model_dump()) == parse_space("\n" + GOOD)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("question:", "qestion:", 2, "unknown key; did you mean 'question'?"),
        ("kind: training", "kind: trainin", 5, "did you mean 'training'?"),
        ("accelerators_count: 1024", "accelerators_count: -4", 5, "wanted 1 or more; got -4"),
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
        ("cooling: liquid", "scale_up_lane_rate_gbps: 106.25", 11, "under vary and under fix"),
        ("  cooling: liquid", "  cooling: liquid\n  cooling: air", 12, "stands twice (first at line 11)"),
        ("name: links", "name: 'No Spaces'", 1, "wanted a lower-case letter, then"),
        ("fix:", "search: {in_flight: 0}\nfix:", 10, "wanted 1 or more; got 0"),
        ("fix:", "search: {in_flight: 1.5}\nfix:", 10, "wanted a whole number; got 1.5"),
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


def test_where_a_space_was_read_does_not_make_it_another() -> None:
    assert parse_space(GOOD, "a.yaml") == parse_space("\n" + GOOD, "b.yaml")


def test_faults_between_keys_come_at_once_each_at_its_own() -> None:
    text = GOOD.replace("cooling: liquid", "memory_stacks_count: 6\n  second_tier_gb: 32").replace(
        "log: true", "log: true, when: {scale_up_lane_rate_gbps: [106.25, 53.125]}"
    )
    text += "objectives: {}\nmapping: {pretrian: {tp_count: 8}}\n"

    with pytest.raises(SpaceError) as caught:
        parse_space(text, "links.yaml")

    assert str(caught.value).splitlines() == [
        "links.yaml:11: fix.memory_stacks_count: stands under vary and under fix; decide it once",
        "links.yaml:12: fix.second_tier_gb: stands under vary and under fix; decide it once",
        "links.yaml:9: vary.second_tier_gb.when.scale_up_lane_rate_gbps.1: 53.125 is not a choice of "
        "scale_up_lane_rate_gbps; valid: 106.25, 212.5",
        "links.yaml:14: mapping.pretrian: no workload 'pretrian'; did you mean 'pretrain'?",
        "links.yaml:13: objectives: wanted one to three metrics; got 0",
    ]


def test_more_faults_than_a_page_holds_are_counted() -> None:
    text = GOOD.replace("cooling: liquid", "\n  ".join(f"knob_{i}: []" for i in range(14)))

    with pytest.raises(SpaceError) as caught:
        parse_space(text, "links.yaml")

    lines = str(caught.value).splitlines()
    assert len(lines) == 10
    assert lines[-1] == "links.yaml: and 5 more"


def test_an_empty_file_is_called_empty() -> None:
    for text in ("", "# only a comment\n", "~"):
        with pytest.raises(SpaceError, match="wanted keys such as name, base, workloads; the file is empty"):
            parse_space(text, "links.yaml")
