"""Parameters as matrices: the same suggestion as a row of values, as stored numbers, and as a point of a unit cube.

Three forms, all (n, d) with one column per parameter in the space's order:

* unit: a point of [0, 1], what samplers compute with;
* internal: what Optuna's tables store, a choice as its index, a number as itself;
* rows: plain dictionaries, what the problem evaluates.

A parameter whose condition does not hold is NaN in both matrices and absent from the row.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from codesign.errors import SpaceError
from codesign.study.parameters import Choices, FloatRange, IntRange, Parameter, Parameters, Value, parents_first
from codesign.units import Array

Row: TypeAlias = Mapping[str, Value]

_BELIEF_SPREAD = 0.15  # of the range: how closely draws of a prior keep to its peak


class Coding:
    """The one place that knows how a parameter becomes a number and back."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = dict(parameters)
        self.names = tuple(parameters)
        self.levels = np.array([_levels(p) for p in parameters.values()], dtype=np.int64)  # 0: a continuum
        self.ordered = np.array([not isinstance(p, Choices) or p.ordered for p in parameters.values()])
        self._order = [self.names.index(name) for name in parents_first(parameters)]
        self._conditions = {
            i: (self.names.index(p.when.parent), self._allowed(p))
            for i, p in enumerate(parameters.values())
            if p.when is not None
        }

    @property
    def names_parents_first(self) -> list[str]:
        """Names in an order in which every parent comes before its children."""
        return [self.names[i] for i in self._order]

    @property
    def conditional(self) -> bool:
        """Whether some parameter exists only under a condition."""
        return bool(self._conditions)

    @property
    def size(self) -> int | None:
        """Number of different suggestions; None where a range is continuous."""
        if (self.levels == 0).any():
            return None
        children: dict[int, list[int]] = {}
        for child, (parent, _) in self._conditions.items():
            children.setdefault(parent, []).append(child)

        def count(i: int) -> int:
            if i not in children:
                return int(self.levels[i])
            internals = self.column(i, (np.arange(self.levels[i]) + 0.5) / self.levels[i])
            return sum(
                math.prod(count(c) for c in children[i] if value in self._conditions[c][1]) for value in internals
            )

        return math.prod(count(i) for i in range(len(self.names)) if i not in self._conditions)

    def column(self, i: int, unit: Array) -> Array:
        """Internal values of parameter ``i`` at places of the unit interval."""
        return _internal(self.parameters[self.names[i]], np.clip(unit, 0.0, 1.0))

    def decode(self, unit: Array) -> Array:
        """Internal matrix of unit points; parameters whose condition fails become NaN."""
        internal = np.stack([self.column(i, unit[:, i]) for i in range(len(self.names))], axis=1)
        for i in self._order:
            if i in self._conditions:
                parent, allowed = self._conditions[i]
                internal[~np.isin(internal[:, parent], allowed), i] = np.nan
        return internal

    def unit(self, internal: Array) -> Array:
        """Unit points of an internal matrix: the middle of its cell where a parameter has steps."""
        return np.stack([self.unit_column(i, internal[:, i]) for i in range(len(self.names))], axis=1)

    def filled_unit(self, internal: Array) -> Array:
        """The same with a parameter whose condition fails in the middle of its range."""
        return np.nan_to_num(self.unit(internal), nan=0.5)

    def unit_column(self, i: int, internal: Array) -> Array:
        """Places in the unit interval of internal values of parameter ``i``."""
        return _unit(self.parameters[self.names[i]], internal)

    def rows(self, internal: Array) -> list[dict[str, Value]]:
        """The suggestion as the problem reads it."""
        columns = [self._external(i, internal[:, i]) for i in range(len(self.names))]
        if not self._conditions:
            return [dict(zip(self.names, values, strict=True)) for values in zip(*columns, strict=True)]
        return [
            {name: value for name, value in zip(self.names, values, strict=True) if value is not None}
            for values in zip(*columns, strict=True)
        ]

    def columns(self, internal: Array) -> dict[str, NDArray[Any]]:
        """One column per parameter: numbers with NaN, or words with "", where it is absent."""
        return {name: self._column(i, internal[:, i]) for i, name in enumerate(self.names)}

    def encode(self, rows: Sequence[Row]) -> Array:
        """Internal matrix of rows somebody wrote: baselines, imports, first trials.

        Raises:
            SpaceError: a value the space does not offer, a missing or an unknown parameter.
        """
        internal = np.full((len(rows), len(self.names)), np.nan)
        for r, row in enumerate(rows):
            for i in self._order:
                name = self.names[i]
                if i in self._conditions:
                    parent, allowed = self._conditions[i]
                    if internal[r, parent] not in allowed:
                        continue
                if name not in row:
                    raise SpaceError(f"a first trial lacks the parameter {name!r}")
                internal[r, i] = _stored(name, self.parameters[name], row[name])
        return internal

    def warp(self, unit: Array) -> Array:
        """Bend uniform points so that they follow the priors of the space."""
        return np.stack([_warp(p, unit[:, i]) for i, p in enumerate(self.parameters.values())], axis=1)

    def keys(self, internal: Array) -> list[bytes]:
        """One hashable key per row: equal for equal suggestions, for nothing else."""
        cells = np.ascontiguousarray(np.where(np.isnan(internal), np.inf, internal + 0.0))
        return [row.tobytes() for row in cells]

    def _external(self, i: int, column: Array) -> list[Value | None]:
        parameter = self.parameters[self.names[i]]
        values: list[float] = column.tolist()
        if isinstance(parameter, Choices):
            return [None if v != v else parameter.values[int(v)] for v in values]
        if isinstance(parameter, IntRange):
            return [None if v != v else int(v) for v in values]
        return [None if v != v else v for v in values]

    def _column(self, i: int, internal: Array) -> NDArray[Any]:
        parameter = self.parameters[self.names[i]]
        if not isinstance(parameter, Choices):
            return internal
        absent = np.isnan(internal)
        place = np.where(absent, 0, internal).astype(np.int64)
        if all(not isinstance(v, str) for v in parameter.values):
            return np.where(absent, np.nan, np.array([float(v) for v in parameter.values])[place])
        return np.where(absent, "", np.array([str(v) for v in parameter.values])[place])

    def _allowed(self, parameter: Parameter) -> tuple[float, ...]:
        assert parameter.when is not None
        parent = self.parameters[parameter.when.parent]
        return tuple(_stored(parameter.when.parent, parent, value) for value in parameter.when.values)


def canonical(row: Row) -> str:
    """The one JSON text of a row: sorted keys, no spaces, no NaN."""
    return json.dumps(row, sort_keys=True, separators=(",", ":"), allow_nan=False)


def design_hash(row: Row) -> str:
    """Thirty-two hex digits that two rows share only if they are the same design."""
    return hashlib.blake2b(canonical(row).encode(), digest_size=16).hexdigest()


def _levels(parameter: Parameter) -> int:
    if isinstance(parameter, Choices):
        return len(parameter.values)
    if isinstance(parameter, IntRange):
        return (parameter.high - parameter.low) // parameter.step + 1
    if parameter.low == parameter.high:
        return 1
    return 0 if parameter.step is None else int((parameter.high - parameter.low) / parameter.step + 1e-9) + 1


def _log_ends(parameter: FloatRange | IntRange) -> tuple[float, float]:
    half = 0.5 if isinstance(parameter, IntRange) else 0.0  # each whole number owns the interval that rounds to it
    return math.log(parameter.low - half), math.log(parameter.high + half)


def _internal(parameter: Parameter, unit: Array) -> Array:
    count = _levels(parameter)
    if count == 1:
        return np.full_like(unit, 0.0 if isinstance(parameter, Choices) else parameter.low)
    cell = np.minimum(np.floor(unit * count), count - 1.0)
    if isinstance(parameter, Choices):
        return cell
    if parameter.log:
        low, high = _log_ends(parameter)
        value = np.exp(low + unit * (high - low))
        value = np.rint(value) if isinstance(parameter, IntRange) else value
        return np.clip(value, parameter.low, parameter.high)
    if count:
        assert parameter.step is not None
        return np.minimum(parameter.low + cell * parameter.step, parameter.high)
    return np.clip(parameter.low + unit * (parameter.high - parameter.low), parameter.low, parameter.high)


def _unit(parameter: Parameter, internal: Array) -> Array:
    count = _levels(parameter)
    if count == 1:
        return np.where(np.isnan(internal), np.nan, 0.5)
    if isinstance(parameter, Choices):
        return (internal + 0.5) / count
    if parameter.log:
        low, high = _log_ends(parameter)
        return (np.log(internal) - low) / (high - low)
    if count:
        assert parameter.step is not None
        return (np.rint((internal - parameter.low) / parameter.step) + 0.5) / count
    return (internal - parameter.low) / (parameter.high - parameter.low)


def _stored(name: str, parameter: Parameter, value: Value) -> float:
    if isinstance(parameter, Choices):
        if value in parameter.values:
            return float(parameter.values.index(value))
        raise SpaceError(f"parameter {name!r} has no choice {value!r}; valid: {', '.join(map(str, parameter.values))}")
    if isinstance(value, str) or not parameter.low <= value <= parameter.high:
        raise SpaceError(f"parameter {name!r} must lie between {parameter.low} and {parameter.high}, not {value!r}")
    if isinstance(parameter, IntRange) and (value != int(value) or (int(value) - parameter.low) % parameter.step):
        raise SpaceError(f"parameter {name!r} goes in steps of {parameter.step} from {parameter.low}, not {value!r}")
    if parameter.step is not None and not isinstance(parameter, IntRange):
        place = (value - parameter.low) / parameter.step
        if abs(place - round(place)) > 1e-6:
            raise SpaceError(f"parameter {name!r} goes in steps of {parameter.step} from {parameter.low}")
        return min(parameter.low + round(place) * parameter.step, parameter.high)
    return float(value)


def _warp(parameter: Parameter, unit: Array) -> Array:
    if isinstance(parameter, Choices):
        return unit if not parameter.weights else _weighted(np.array(parameter.weights), unit)
    if parameter.peak is None or parameter.weight == 0.0 or _levels(parameter) == 1:
        return unit
    peak = float(_unit(parameter, np.array([float(parameter.peak)]))[0])
    low, high = ndtr((0.0 - peak) / _BELIEF_SPREAD), ndtr((1.0 - peak) / _BELIEF_SPREAD)
    share = parameter.weight
    believed = peak + _BELIEF_SPREAD * ndtri(low + np.minimum(unit / share, 1.0 - 1e-12) * (high - low))
    free = (unit - share) / max(1.0 - share, 1e-12)
    return np.clip(np.where(unit < share, believed, free), 0.0, 1.0)


def _weighted(weights: Array, unit: Array) -> Array:
    edges: NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
    cell = np.clip(np.searchsorted(edges, unit, side="right") - 1, 0, len(weights) - 1)
    cell = np.where(weights[cell] > 0.0, cell, int(np.argmax(weights)))
    return (cell + 0.5) / len(weights)
