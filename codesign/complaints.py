"""What a schema refuses, in plain words: what was wanted and what was got, nothing of the library that checks it."""

from collections.abc import Mapping
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
    "tuple_type": "a list",
    "list_type": "a list",
    "too_short": "{min_length} or more entries",
    "too_long": "{max_length} entries at most",
}


def in_words(kind: str, got: object, context: Mapping[str, Any], message: str) -> str:
    """A schema error as a clause behind the key it is about.

    Args:
        kind: The library's name of the error.
        got: What stands there.
        context: The bounds the error quotes.
        message: The library's sentence; used only where one of our own checks wrote it.

    >>> in_words("greater_than_equal", -4, {"ge": 1}, "Input should be greater than or equal to 1")
    'wanted 1 or more; got -4'
    """
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "unknown key"
    if kind in ("value_error", "assertion_error"):
        return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    wanted = WANTED.get(kind, "something else").format_map(_Bounds(context))
    return f"wanted {wanted}; got {shown(got)}"


def shown(value: object) -> str:
    """A value as a file says it, cut where it is long."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class _Bounds(dict[str, Any]):
    """Bounds as short numbers; one that an error does not quote is an ellipsis."""

    def __getitem__(self, name: str) -> Any:
        value = super().get(name, "...")
        return f"{value:g}" if isinstance(value, float) else value
