"""Thousands of damaged space and design files: always a sentence that names a place, never a traceback."""

import random
import re
from collections.abc import Callable

import pytest

from codesign.catalog import Catalog
from codesign.errors import CodesignError
from codesign.resources import search_spaces
from codesign.space import parse_space
from codesign.study.problem import SpaceProblem

JUNK = (".nan", ".inf", "-1", "0", "1e400", "true", "null", "[]", "{}", "x", "''", "99999999999999999999", "[1, a]",
        "{low: 9, high: 1}", "{choices: []}", "!!python/name:os.system", "&a", "*a", "2026-01-01", "0x1F",
        "no")  # fmt: skip
MUTATIONS_COUNT = 2400
KEYS = "base|vary|fix|workloads|scenario|objectives|constraints|baselines|mapping"
PLACE = re.compile(rf"(fuzz\.yaml|: ({KEYS})\b)")


def dropped_line(rng: random.Random, lines: list[str]) -> list[str]:
    at = rng.randrange(len(lines))
    return lines[:at] + lines[at + 1 :]


def doubled_line(rng: random.Random, lines: list[str]) -> list[str]:
    at = rng.randrange(len(lines))
    return [*lines[: at + 1], *lines[at:]]


def misspelt_word(rng: random.Random, lines: list[str]) -> list[str]:
    at = rng.randrange(len(lines))
    words = re.findall(r"[A-Za-z_]{4,}", lines[at])
    if not words:
        return lines
    word = rng.choice(words)
    cut = rng.randrange(len(word))
    return [*lines[:at], lines[at].replace(word, word[:cut] + word[cut + 1 :], 1), *lines[at + 1 :]]


def junk_value(rng: random.Random, lines: list[str]) -> list[str]:
    at = rng.randrange(len(lines))
    parts = re.split(r"(: |\[|, )", lines[at])
    if len(parts) < 3:
        return lines
    parts[rng.randrange(2, len(parts), 2)] = rng.choice(JUNK)
    return [*lines[:at], "".join(parts), *lines[at + 1 :]]


def truncated(rng: random.Random, lines: list[str]) -> list[str]:
    text = "\n".join(lines)
    return text[: rng.randrange(len(text) + 1)].splitlines() or [""]


def odd_indent(rng: random.Random, lines: list[str]) -> list[str]:
    at = rng.randrange(len(lines))
    return [*lines[:at], " " * rng.randrange(1, 5) + lines[at], *lines[at + 1 :]]


def strange_character(rng: random.Random, lines: list[str]) -> list[str]:
    at = rng.randrange(len(lines))
    place = rng.randrange(len(lines[at]) + 1)
    return [
        *lines[:at],
        lines[at][:place] + rng.choice("\t\x00{}[]:&*!|>%@`\u2028é") + lines[at][place:],
        *lines[at + 1 :],
    ]


MUTATIONS: tuple[Callable[[random.Random, list[str]], list[str]], ...] = (
    dropped_line, doubled_line, misspelt_word, misspelt_word, junk_value, junk_value, junk_value, truncated, odd_indent,
    strange_character,
)  # fmt: skip


def texts() -> list[str]:
    spaces = [path.read_text(encoding="utf-8") for path in sorted(search_spaces().glob("*.yaml"))]
    designs = [re.sub(r"(?ms)^vary:.*?(?=^\w)", "fix:\n  cooling: liquid\n", text) for text in spaces]
    return spaces + designs


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_file_is_refused_in_a_sentence_that_names_the_place(seed: int, catalog: Catalog) -> None:
    rng, sources = random.Random(seed), texts()
    refused = 0
    for _ in range(MUTATIONS_COUNT // 8):
        lines = rng.choice(sources).splitlines()
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            lines = rng.choice(MUTATIONS)(rng, lines) or [""]
        text = "\n".join(lines)
        said = complaint(text, catalog)
        if said is not None:
            refused += 1
            assert PLACE.search(said), f"no place in: {said}\n{text}"
            assert "Traceback" not in said
            assert len(said.splitlines()) <= 10

    assert refused > MUTATIONS_COUNT // 8 // 3


def complaint(text: str, catalog: Catalog) -> str | None:
    try:
        SpaceProblem(parse_space(text, "fuzz.yaml"), text, catalog)
    except CodesignError as error:
        return str(error)
    return None
