"""Case files as columns, and what an adapter says about them."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from codesign.errors import CaseError
from codesign.units import Array


@dataclass(frozen=True)
class CaseRows:
    """The rows of one kind in one file, as text columns."""

    file: str
    kind: str
    columns: dict[str, list[str]]

    def __len__(self) -> int:
        return len(self.columns["case"])

    def text(self, name: str) -> list[str]:
        """A column as words; empty words where the file has no such column."""
        return self.columns.get(name) or [""] * len(self)

    def numbers(self, name: str) -> Array:
        """A column as numbers; NaN where a cell is empty, absent or not a number."""
        return np.array([_number(cell) for cell in self.text(name)], dtype=np.float64)

    def pick(self, rows: Sequence[int]) -> "CaseRows":
        """Some of the rows."""
        return CaseRows(self.file, self.kind, {k: [v[i] for i in rows] for k, v in self.columns.items()})


@dataclass(frozen=True)
class Predictions:
    """What the model says about every row of a `CaseRows`.

    ``metrics`` maps a compared column to ``(predicted, measured)``, both ``(n,)`` in the unit of that column; NaN in
    ``measured`` means that the row is not compared on it. ``refused`` holds a reason or None for each row; a row that
    is not refused must have a finite prediction wherever it has a measured value. ``labels`` are columns that only the
    model can tell, such as the ``class`` of a serving row; cases carry them and groups are given by ``class``.
    """

    metrics: dict[str, tuple[Array, Array]]
    refused: list[str | None]
    labels: dict[str, list[str]] = field(default_factory=dict)


def read_rows(path: Path) -> list[CaseRows]:
    """Read a case file and split it by its ``kind`` column, order kept.

    Raises:
        CaseError: the file is missing, not CSV, or has no ``case`` and ``kind`` columns.
    """
    try:
        with path.open(newline="", encoding="utf-8") as handle:
            reader = csv.reader(handle, strict=True)
            header = next(reader, [])
            body = [row for row in reader if row]
    except OSError as problem:
        raise CaseError(f"{path}: cannot read: {problem.strerror or problem}") from None
    except UnicodeDecodeError as problem:
        raise CaseError(f"{path}: not a CSV file in UTF-8 (byte {problem.object[problem.start]:#04x})") from None
    except csv.Error as problem:
        raise CaseError(f"{path}: not a CSV file: {problem}") from None
    for wanted in ("case", "kind"):
        if wanted not in header:
            raise CaseError(f"{path}: no column {wanted!r}; got {', '.join(header[:8]) or 'an empty file'}")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise CaseError(f"{path}: column {twice[0]!r} appears twice")
    for number, row in enumerate(body, start=2):
        if len(row) != len(header):
            raise CaseError(f"{path}:{number}: {len(row)} cells where the header has {len(header)}")
    at = header.index("kind")
    kinds = list(dict.fromkeys(row[at] for row in body))
    return [
        CaseRows(path.name, kind, {n: [r[i] for r in body if r[at] == kind] for i, n in enumerate(header)})
        for kind in kinds
    ]


def is_number(cell: str) -> bool:
    """Whether a cell that is not empty reads as a finite number."""
    return bool(np.isfinite(_number(cell)))


def _number(cell: str) -> float:
    try:
        return float(cell) if cell else np.nan
    except ValueError:
        return np.nan
