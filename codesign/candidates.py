"""A batch of candidates: what the search decided, completed by the base platform, as one column per parameter.

`codesign.hardware` turns it into the numbers the model reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codesign.catalog import Catalog
from codesign.catalog.platforms import Platform, load_platform, load_platforms
from codesign.errors import ShapeError, nearest
from codesign.parameters import BY_NAME, PARAMETERS, Parameter, parameter
from codesign.space import Choices, Fault, Range, Space, Value
from codesign.units import Array

Column = NDArray[np.float64] | NDArray[np.str_]


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """One row per candidate, one column per parameter: words as an array of words, numbers as floats; read-only."""

    columns: Mapping[str, NDArray[Any]]
    platform: tuple[str, ...]

    def __post_init__(self) -> None:
        wanted, got = set(BY_NAME), set(self.columns)
        if wanted != got:
            raise ShapeError(f"Candidates: missing {sorted(wanted - got)}, unknown {sorted(got - wanted)}")
        lengths = {len(self.platform), *(len(column) for column in self.columns.values())}
        if len(lengths) > 1:
            raise ShapeError(f"Candidates: columns differ in length: {sorted(lengths)}")
        copies = {name: np.array(column) for name, column in self.columns.items()}
        for copy in copies.values():
            copy.setflags(write=False)
        object.__setattr__(self, "columns", MappingProxyType(copies))

    def __len__(self) -> int:
        return len(self.platform)

    @property
    def accelerator(self) -> list[str]:
        """Entry of accelerators.yaml whose peaks and kernel constants each row starts from."""
        return [load_platform(name).accelerator for name in self.platform]

    @property
    def chip(self) -> list[str]:
        """Base chip each row's dies are scaled from."""
        return [load_platform(name).chip for name in self.platform]

    def words(self, name: str) -> list[str]:
        """A column of names."""
        words: list[str] = self.columns[name].tolist()
        return words

    def numbers(self, name: str) -> Array:
        """A column of numbers."""
        column: Array = self.columns[name]
        return column

    def row(self, index: int) -> dict[str, Value]:
        """One candidate as plain values, whole numbers as such."""
        return {p.name: _plain(p, self.columns[p.name][index]) for p in PARAMETERS}

    def part(self, rows: slice | Sequence[int]) -> "Candidates":
        """Some rows of the batch."""
        keep = range(len(self))[rows] if isinstance(rows, slice) else list(rows)
        at = np.asarray(keep, dtype=np.intp)
        columns = {name: column[at] for name, column in self.columns.items()}
        return Candidates(columns, tuple(self.platform[i] for i in at))


def _plain(of: Parameter, value: Any) -> Value:
    if of.is_word:
        return str(value)
    number = float(value)
    return int(number) if number.is_integer() else number


def assemble(columns: Mapping[str, Sequence[Value | None] | NDArray[Any]], count: int, space: Space) -> Candidates:
    """Complete decided columns by what the space fixes and by its base platform.

    Args:
        columns: Parameter -> its value on each row. A value of None, NaN or "" (a conditional parameter that does not
            apply) is taken from the platform.
        count: Number of rows.
        space: Fixes and names the base platform.

    Raises:
        SpaceError: a column is not a parameter.
    """
    platform = load_platform(space.base, f"{space.name}: base")
    built: dict[str, NDArray[Any]] = {}
    for one in PARAMETERS:
        default = space.fix.get(one.name, platform.parameters[one.name].value)
        built[one.name] = _column(one, columns.get(one.name), default, count)
    unknown = set(columns) - set(BY_NAME)
    if unknown:
        parameter(min(unknown), space.name)
    return Candidates(built, (space.base,) * count)


def _column(
    one: Parameter, given: Sequence[Value | None] | NDArray[Any] | None, default: Value, count: int
) -> NDArray[Any]:
    if given is None:
        return np.full(count, default) if one.is_word else np.full(count, float(default))
    if one.is_word:
        words = np.array([value or "" for value in given] if isinstance(given, Sequence) else given, dtype=np.str_)
        return np.where(words == "", str(default), words)
    if isinstance(given, Sequence):
        given = [np.nan if value is None or value == "" else value for value in given]
    numbers = np.array(given, dtype=np.float64)
    return np.where(np.isnan(numbers), float(default), numbers)


def assemble_rows(rows: Sequence[Mapping[str, Value]], space: Space) -> Candidates:
    """The same from rows, as a sampler gives them."""
    names = dict.fromkeys(name for row in rows for name in row)
    return assemble({name: [row.get(name) for row in rows] for name in names}, len(rows), space)


def platform_candidates(names: Sequence[str]) -> Candidates:
    """Platforms as they are, one row each.

    Raises:
        CatalogError: a platform does not exist.
    """
    platforms = [load_platform(name, "baselines") for name in names]
    columns = {one.name: _platform_column(one, platforms) for one in PARAMETERS}
    return Candidates(columns, tuple(names))


def _platform_column(one: Parameter, platforms: Sequence[Platform]) -> NDArray[Any]:
    values = [platform.parameters[one.name].value for platform in platforms]
    return np.array(values, dtype=np.str_ if one.is_word else np.float64)


def space_faults(space: Space, catalog: Catalog) -> list[Fault]:
    """What a space names or decides that the catalog or the model does not have."""
    faults = []
    if space.base not in load_platforms():
        faults.append(Fault(("base",), f"no platform {space.base!r}{nearest(space.base, load_platforms())}"))
    for name, value in space.fix.items():
        faults += _value_faults(("fix", name), name, {(): value}, catalog)
    for name, options in space.vary.items():
        faults += _option_faults(name, options, catalog)
    return faults


def _option_faults(name: str, options: Choices | Range, catalog: Catalog) -> list[Fault]:
    at: tuple[str, ...] = ("vary", name)
    if isinstance(options, Choices):
        return _value_faults(at, name, {("choices", i): value for i, value in enumerate(options.choices)}, catalog)
    one = BY_NAME.get(name)
    if one is not None and one.is_word:
        wanted = nearest("", one.options(catalog))
        return [Fault(at, f"{name} is chosen by name, so it needs choices, not a range{wanted}")]
    if one is not None and one.whole and options.step is not None and options.step != int(options.step):
        return [Fault((*at, "step"), f"{name} is a whole number, and so are its steps; got {options.step:g}")]
    return _value_faults(at, name, {("low",): options.low, ("high",): options.high}, catalog)


def _value_faults(
    at: tuple[str, ...], name: str, values: Mapping[tuple[str | int, ...], Value], catalog: Catalog
) -> list[Fault]:
    """Faults of the values of one parameter, by where each stands below its key."""
    if name not in BY_NAME:
        return [Fault(at, f"no parameter {name!r}{nearest(name, BY_NAME)}")]
    said = {keys: BY_NAME[name].wrong(value, catalog) for keys, value in values.items()}
    return [Fault((*at, *keys), wrong) for keys, wrong in said.items() if wrong is not None]
