"""What a search may vary: choices, real ranges and whole-number ranges, each perhaps only under a condition."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from codesign.errors import SpaceError, nearest

Value: TypeAlias = float | int | str


@dataclass(frozen=True, slots=True)
class When:
    """A parameter exists only where its parent has one of these values."""

    parent: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Choices:
    """One of a list of words or numbers. Numbers in rising order are searched as neighbours, words as equals.

    ``weights`` is a prior: how often each choice should be drawn before anything is known.
    """

    values: tuple[Value, ...]
    weights: tuple[float, ...] = ()
    when: When | None = None

    @property
    def ordered(self) -> bool:
        """Whether neighbours in the list resemble each other."""
        numbers = [v for v in self.values if isinstance(v, (int, float))]
        return len(numbers) == len(self.values) > 2 and numbers == sorted(numbers)


@dataclass(frozen=True, slots=True)
class FloatRange:
    """A real number between two ends, perhaps in steps, perhaps drawn by its logarithm.

    ``peak`` is a prior: the place believed best; ``weight`` is the share of first draws that follow the belief.
    """

    low: float
    high: float
    step: float | None = None
    log: bool = False
    peak: float | None = None
    weight: float = 0.5
    when: When | None = None


@dataclass(frozen=True, slots=True)
class IntRange:
    """A whole number between two ends, both included."""

    low: int
    high: int
    step: int = 1
    log: bool = False
    peak: float | None = None
    weight: float = 0.5
    when: When | None = None


Parameter: TypeAlias = Choices | FloatRange | IntRange
Parameters: TypeAlias = Mapping[str, Parameter]


def check_parameters(parameters: Parameters) -> None:
    """Refuse a space that cannot be searched.

    Raises:
        SpaceError: names the parameter, what it says and what would do.
    """
    if not parameters:
        raise SpaceError("nothing to vary: the space has no parameter")
    for name, parameter in parameters.items():
        for problem in _problems(parameter):
            raise SpaceError(f"parameter {name!r}: {problem}")
        if parameter.when is not None:
            _check_condition(name, parameter.when, parameters)
    parents_first(parameters)


def parents_first(parameters: Parameters) -> list[str]:
    """Names in an order in which every parent comes before its children.

    Raises:
        SpaceError: the conditions form a circle.
    """
    order: list[str] = []
    waiting = list(parameters)
    while waiting:
        ready = [n for n in waiting if (when := parameters[n].when) is None or when.parent in order]
        if not ready:
            raise SpaceError(f"parameters {', '.join(waiting)} depend on each other in a circle")
        order += ready
        waiting = [n for n in waiting if n not in ready]
    return order


def to_json(parameters: Parameters) -> dict[str, Any]:
    """Plain data that `from_json` turns back into the same parameters."""
    return {name: {"kind": _KIND[type(p)], **_fields(p)} for name, p in parameters.items()}


def from_json(data: Mapping[str, Mapping[str, Any]]) -> dict[str, Parameter]:
    """The parameters `to_json` wrote down."""
    return {name: _parameter(dict(record)) for name, record in data.items()}


_KIND: dict[type, str] = {Choices: "choices", FloatRange: "float", IntRange: "int"}


def _fields(parameter: Parameter) -> dict[str, Any]:
    record: dict[str, Any] = {
        key: list(value) if isinstance(value, tuple) else value
        for key in parameter.__slots__
        if key != "when" and (value := getattr(parameter, key)) is not None
    }
    if parameter.when is not None:
        record["when"] = {"parent": parameter.when.parent, "values": list(parameter.when.values)}
    return record


def _parameter(record: dict[str, Any]) -> Parameter:
    kind = {word: cls for cls, word in _KIND.items()}[record.pop("kind")]
    when = record.pop("when", None)
    condition = None if when is None else When(when["parent"], tuple(when["values"]))
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
    built: Parameter = kind(**fields, when=condition)
    return built


def _problems(parameter: Parameter) -> Iterator[str]:
    if isinstance(parameter, Choices):
        if not parameter.values:
            yield "no choices"
        if any(isinstance(v, bool) or not isinstance(v, (int, float, str)) for v in parameter.values):
            yield "a choice must be a word or a number"
        if any(isinstance(v, float) and not math.isfinite(v) for v in parameter.values):
            yield "a choice must be finite"
        if len(set(parameter.values)) != len(parameter.values):
            yield "the same choice twice"
        if parameter.weights and (
            len(parameter.weights) != len(parameter.values)
            or any(not w >= 0.0 for w in parameter.weights)
            or not 0.0 < sum(parameter.weights) < math.inf
        ):
            yield "weights must be one number >= 0 per choice, not all zero"
        return
    ends = (parameter.low, parameter.high)
    if not all(math.isfinite(end) for end in ends) or parameter.low > parameter.high:
        yield f"low {parameter.low} and high {parameter.high} must be finite and in this order"
    if parameter.log and parameter.low <= 0:
        yield f"a logarithmic range must start above zero, not at {parameter.low}"
    if parameter.step is not None and not 0 < parameter.step < math.inf:
        yield f"step must be above zero, not {parameter.step}"
    if parameter.log and parameter.step not in (None, 1):
        yield "a logarithmic range takes no step"
    if parameter.peak is not None and not parameter.low <= parameter.peak <= parameter.high:
        yield f"peak {parameter.peak} lies outside {parameter.low} to {parameter.high}"
    if not 0.0 <= parameter.weight <= 1.0:
        yield f"weight must lie between 0 and 1, not {parameter.weight}"
    if isinstance(parameter, IntRange) and max(abs(parameter.low), abs(parameter.high)) > 2**53:
        yield "whole numbers beyond 2^53 cannot be stored exactly"


def _check_condition(name: str, when: When, parameters: Parameters) -> None:
    parent = parameters.get(when.parent)
    if parent is None:
        raise SpaceError(f"parameter {name!r}: unknown parent {when.parent!r}{nearest(when.parent, parameters)}")
    if not when.values:
        raise SpaceError(f"parameter {name!r}: its condition on {when.parent!r} allows no value")
    for value in when.values:
        if isinstance(parent, Choices) and value not in parent.values:
            valid = nearest(str(value), map(str, parent.values))
            raise SpaceError(f"parameter {name!r}: {when.parent!r} never is {value!r}{valid}")
