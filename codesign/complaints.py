"""What a schema refuses, in plain words: what was wanted and what was got, nothing of the library that checks it."""

from collections.abc import Mapping, Sequence
from typing import Any

#: Kind of a schema error -> what was wanted; words in braces come from the error.
WANTED: Mapping[str, str] = {
    "string_type": "a word",
    "string_too_short": "a word of {min_length} or more letters",
    "string_too_long": "a word of {max_length} letters at most",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number of fewer digits",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "none_required": "nothing",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "less than {lt}",
    "less_than_equal": "{le} or less",
    "literal_error": "{expected}",
    "dict_type": "keys with values",
    "mapping_type": "keys with values",
    "model_type": "keys with values",
    "model_attributes_type": "keys with values",
    "path_type": "the name of a file",
    "tuple_type": "a list",
    "list_type": "a list",
    "too_short": "{min_length} or more entries",
    "too_long": "{max_length} entries at most",
}
#: Names by which schemas call the members of a union; none of them is a key.
_NUMBER_OR_WORD = frozenset({"int", "float", "str"})
_MEMBERS = frozenset({"Choices", "Range", "training", "serving", "bool"}) | _NUMBER_OR_WORD
_LIMITS = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})


def refusal(error: Mapping[str, Any]) -> str:
    """One entry of a schema's list of errors as a clause behind the key it is about.

    Every member of a number or a word says the same. The library's own sentence is used only where one of our checks
    wrote it.

    >>> refusal({"type": "greater_than_equal", "loc": ("trials",), "input": -4, "ctx": {"ge": 1}, "msg": "..."})
    'wanted 1 or more; got -4'
    """
    kind, got, message = str(error["type"]), error["input"], str(error["msg"])
    if error["loc"] and error["loc"][-1] in _NUMBER_OR_WORD:
        return f"wanted a finite number or a word; got {shown(got)}"
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "unknown key"
    if kind in ("value_error", "assertion_error"):
        return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    kind = "finite_number" if kind in _LIMITS and str(got).lower() == "nan" else kind
    wanted = WANTED.get(kind, "something else").format_map(_Quoted(error.get("ctx") or {}))
    return f"wanted {wanted}; got {shown(got)}"


def shown(value: object) -> str:
    """A value as a file says it, cut where it is long."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def keys_in_file(loc: Sequence[int | str], data: Any) -> tuple[int | str, ...]:
    """The part of a schema error's location that is keys of the file: names of union members are left out.

    >>> keys_in_file(("vary", "node", "Range", "low"), {"vary": {"node": {"high": 3}}})
    ('vary', 'node', 'low')
    """
    keys: tuple[int | str, ...] = ()
    here = data
    for step in loc:
        known: Any = here if isinstance(here, dict) else range(len(here)) if isinstance(here, list) else ()
        if step in known:
            keys = (*keys, step)
            here = here[step]
        elif step not in _MEMBERS and not str(step).startswith(("constrained", "function", "tagged", "dict", "tuple")):
            keys = (*keys, step)
            here = None
    return keys


def line_of(lines: Mapping[tuple[int | str, ...], int], keys: tuple[int | str, ...]) -> int:
    """Line of a key, or of the nearest enclosing key that a file has; 1 where it has none."""
    while keys and keys not in lines:
        keys = keys[:-1]
    return lines.get(keys, 1)


def placed(name: str, line: int | None, keys: Sequence[int | str], says: str) -> str:
    """A complaint with its place: ``file:line: key: complaint``."""
    return f"{name}{'' if line is None else f':{line}'}: {'.'.join(map(str, keys)) or 'the file'}: {says}"


class _Quoted(dict[str, Any]):
    """Bounds as short numbers; one that an error does not quote is an ellipsis."""

    def __getitem__(self, name: str) -> Any:
        value = super().get(name, "...")
        if isinstance(value, float):
            return f"{value:.0f}" if value.is_integer() else f"{value:g}"
        return value
