"""What every batch shares: columns of one length that nobody edits afterwards."""

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from codesign.errors import ShapeError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


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
        np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = {name: array.shape for name, array in arrays.items()}
        raise ShapeError(f"{type(grid).__name__}: fields do not broadcast: {shapes}") from None
