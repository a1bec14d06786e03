"""YAML as version 1.2 means it, with the line of every key.

The parser is libyaml; the scalar rules are YAML 1.2's core schema: ``1e-6`` is a number, ``no`` is a word. Duplicate
keys, anchors that expand without end, and keys that are not words are refused.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from codesign.complaints import line_of
from codesign.errors import CodesignError

_INT = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_WORDS: dict[str, object] = {
    **dict.fromkeys(["", "~", "null", "Null", "NULL"], None),
    **dict.fromkeys(["true", "True", "TRUE"], True),
    **dict.fromkeys(["false", "False", "FALSE"], False),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf"], math.inf),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], -math.inf),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
}
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MOST_BYTES = 4_000_000


class YamlError(CodesignError, ValueError):
    """A file is not YAML 1.2 as this project reads it."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says, and where: ``lines[("vary", "memory_kind")]`` is the line of that key, from 1."""

    name: str
    data: Any
    lines: Mapping[tuple[str | int, ...], int] = field(repr=False)

    def line(self, path: tuple[str | int, ...]) -> int:
        """Line of a key, or of the nearest enclosing key that exists."""
        return line_of(self.lines, path)


def read_document(path: Path, error: type[CodesignError] = YamlError) -> Document:
    """Read one file with the line of every key.

    Raises:
        error: the file is missing, unreadable, too large, not UTF-8 or not YAML; the message names file and line.
    """
    try:
        raw = path.read_bytes()
    except OSError as problem:
        raise error(f"{path}: cannot read: {problem.strerror or problem}") from None
    if len(raw) > _MOST_BYTES:
        raise error(f"{path}: {len(raw)} bytes; a file of this kind holds at most {_MOST_BYTES}")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = raw[: problem.start].count(b"\n") + 1
        raise error(f"{path}:{line}: not UTF-8 text (byte {raw[problem.start]:#04x})") from None
    return parse_document(text, path.name, error)


def parse_document(text: str, name: str, error: type[CodesignError] = YamlError) -> Document:
    """Parse text; see `read_document`.

    >>> parse_document("price_usd: 1e-6\\nnorway: no", "x.yaml").data
    {'price_usd': 1e-06, 'norway': 'no'}
    """
    lines: dict[tuple[str | int, ...], int] = {}
    try:
        loader = _LOADER(text)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
        data = None if node is None else _build(node, (), lines, name, error, 0)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        where = f":{mark.line + 1}" if mark else ""
        raise error(f"{name}{where}: not valid YAML: {problem.problem or problem.context}") from None
    except yaml.YAMLError as problem:
        raise error(f"{name}: not valid YAML: {' '.join(str(problem).split())}") from None
    except (ValueError, RecursionError) as problem:
        if isinstance(problem, CodesignError):
            raise
        raise error(f"{name}: not valid YAML: {problem}") from None
    return Document(name, data, lines)


def read_yaml(path: Path) -> Any:
    """Only the data of a file."""
    return read_document(path).data


def _build(
    node: Any,
    path: tuple[str | int, ...],
    lines: dict[tuple[str | int, ...], int],
    name: str,
    error: type[CodesignError],
    depth: int,
) -> Any:
    if depth > 40 or len(lines) > 200_000:
        raise error(f"{name}:{node.start_mark.line + 1}: nested or repeated too deeply for a file of this kind")
    if isinstance(node, yaml.ScalarNode):
        return node.value if node.style else _scalar(node.value)
    if isinstance(node, yaml.SequenceNode):
        items = []
        for index, child in enumerate(node.value):
            lines[*path, index] = child.start_mark.line + 1
            items.append(_build(child, (*path, index), lines, name, error, depth + 1))
        return items
    built: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise error(f"{name}:{line}: a key must be a word")
        key = key_node.value
        if key in built:
            first = lines[*path, key]
            raise error(f"{name}:{line}: key {key!r} stands twice (first at line {first})")
        lines[*path, key] = line
        built[key] = _build(value_node, (*path, key), lines, name, error, depth + 1)
    return built


def _scalar(text: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if _INT.match(text):
        return int(text) if len(text) < 4000 else text
    if _FLOAT.match(text):
        return float(text)
    return text
