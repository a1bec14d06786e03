"""Where the best design stands at the end of what the space allows; whether it would gain beyond, nobody asked."""

import math
from collections.abc import Mapping
from typing import Any

from codesign.parameters import BY_NAME
from codesign.study.parameters import Choices, FloatRange, IntRange, Parameter, Parameters, Value

_NEAR = 0.01  # of the range, on its own scale: a sampler of real numbers rarely hits the very end


def edges(parameters: Parameters, design: Mapping[str, Value]) -> list[dict[str, Any]]:
    """Numeric and ordered parameters that a design has at an end of its range, where a wider one could be asked.

    >>> lanes = {"scale_up_lanes_count": IntRange(16, 72, step=4)}
    >>> edges(lanes, {"scale_up_lanes_count": 16})
    [{'parameter': 'scale_up_lanes_count', 'value': 16, 'edge': 'lowest'}]
    >>> edges(lanes, {"scale_up_lanes_count": 20})
    []
    """
    found = []
    for name, parameter in parameters.items():
        value = design.get(name)
        if isinstance(value, str) or value is None or (ends := _ends(parameter)) is None:
            continue
        low, high, log = ends
        place = _place(float(value), low, high, log)
        known = BY_NAME.get(name)
        if place <= _NEAR and (known is None or known.low < low):
            found.append({"parameter": name, "value": value, "edge": "lowest"})
        elif place >= 1.0 - _NEAR and (known is None or known.high > high):
            found.append({"parameter": name, "value": value, "edge": "highest"})
    return found


def _ends(parameter: Parameter) -> tuple[float, float, bool] | None:
    """Lowest and highest value asked for, and whether the scale is logarithmic; None where there is no order."""
    if isinstance(parameter, Choices):
        numbers = [value for value in parameter.values if not isinstance(value, str)]
        return (float(numbers[0]), float(numbers[-1]), False) if parameter.ordered else None
    assert isinstance(parameter, (FloatRange, IntRange))
    low, high = float(parameter.low), float(parameter.high)
    if parameter.step is not None and not parameter.log:
        high = low + math.floor((high - low) / parameter.step + 1e-9) * parameter.step
    return (low, high, parameter.log) if high > low else None


def _place(value: float, low: float, high: float, log: bool) -> float:
    if log:
        value, low, high = math.log(max(value, low / 2.0)), math.log(low), math.log(high)
    return (value - low) / (high - low)
