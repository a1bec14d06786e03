"""What every batch shares: columns of one length that nobody edits afterwards."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from codesign.errors import ShapeError
from codesign.units import Array, Numeric

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

S = TypeVar("S", bound="DataclassInstance")


def seal(batch: "DataclassInstance") -> None:
    """Copy every array column, check that all share one last axis, and make them read-only.

    Called from ``__post_init__`` of a frozen dataclass. A column is ``(n,)``, ``(s, n)`` or ``(w, n)``, a tuple of n
    names, or a plain float that holds for every row; nested sealed structs are left alone.

    Raises:
        ShapeError: columns differ in length. A bug in the caller, never a bad candidate.
    """
    lengths: dict[str, int] = {}
    for field in fields(batch):
        column = getattr(batch, field.name)
        if isinstance(column, np.ndarray) and column.ndim:
            copy = np.array(column)
            copy.setflags(write=False)
            object.__setattr__(batch, field.name, copy)
            lengths[field.name] = copy.shape[-1]
        elif isinstance(column, tuple):
            lengths[field.name] = len(column)
    if len(set(lengths.values())) > 1:
        raise ShapeError(f"{type(batch).__name__}: columns differ in length: {lengths}")


def freeze(grid: "DataclassInstance") -> None:
    """Mark every array field read-only and check that all broadcast together. No copy: for the (n, m) grid.

    Raises:
        ShapeError: fields do not broadcast together. A bug in the caller.
    """
    arrays = {f.name: a for f in fields(grid) if isinstance(a := getattr(grid, f.name), np.ndarray)}
    for array in arrays.values():
        array.setflags(write=False)
    try:
        np.broadcast_shapes(*{array.shape for array in arrays.values()})
    except ValueError:
        shapes = {name: array.shape for name, array in arrays.items()}
        raise ShapeError(f"{type(grid).__name__}: fields do not broadcast: {shapes}") from None


def remade(struct: S, change: Callable[[Any], Any]) -> S:
    """The struct with every value changed, those of nested structs among them; derived fields follow.

    >>> from dataclasses import dataclass
    >>> pair = dataclass(type("Pair", (), {"__annotations__": {"left": float, "right": float}}))
    >>> remade(pair(1.0, 2.0), lambda value: 10.0 * value).right
    20.0
    """
    values = {f.name: getattr(struct, f.name) for f in fields(struct) if f.init}
    for name, value in values.items():
        nested = is_dataclass(value) and not isinstance(value, type)
        values[name] = remade(value, change) if nested else change(value)
    return replace(struct, **values)


def rows_of(struct: S, rows: Any) -> S:
    """Rows of a struct of columns; plain numbers stay."""
    return remade(struct, lambda value: value[rows] if np.ndim(value) else value)


def where_needed(needed: Any, law: Callable[..., Numeric], otherwise: Numeric, *columns: Numeric) -> Numeric:
    """A law worked out only in the rows that need it, with the given number in the others.

    For laws that cost much and that most rows can do without; the answer is that of `np.where`.

    >>> where_needed(np.array([True, False]), lambda value: value / 2.0, 0.0, np.array([3.0, 5.0])).tolist()
    [1.5, 0.0]
    """
    if not np.count_nonzero(needed):
        return otherwise
    shape = np.broadcast_shapes(*{np.shape(column) for column in (needed, otherwise, *columns)})

    def spread(column: Any) -> Any:
        return (column if np.shape(column) == shape else np.broadcast_to(column, shape)).reshape(-1)

    found = np.array(np.broadcast_to(otherwise, shape), dtype=np.float64, order="C")
    rows = np.flatnonzero(spread(np.asarray(needed)))
    found.reshape(-1)[rows] = law(*(spread(column)[rows] if np.ndim(column) else column for column in columns))
    return found


def over_mappings(struct: S) -> S:
    """The struct with every (n,) column as (n, 1), ready for the (n, m) grid of mappings."""
    return remade(struct, lambda value: value[:, None] if np.ndim(value) == 1 else value)


def distinct_rows(*columns: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each distinct row of some (n,) columns first stands, in rising order of the rows, and which each row is.

    >>> [places.tolist() for places in distinct_rows(np.array([2.0, 1.0, 2.0]), np.array([5.0, 7.0, 5.0]))]
    [[1, 0], [1, 0, 1]]
    """
    place = np.zeros(len(columns[0]), dtype=np.intp)
    for column in columns:
        values, at = np.unique(column, return_inverse=True)
        place = np.unique(place * len(values) + at, return_inverse=True)[1]
    return np.unique(place, return_index=True)[1], place


def number_at(value: Numeric, row: int = 0) -> float:
    """One row's number of a column, or of what holds for every row."""
    flat = np.asarray(value, dtype=np.float64).reshape(-1)
    return float(flat[row if flat.size > 1 else 0])
