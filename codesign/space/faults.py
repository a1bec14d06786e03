"""What is wrong with a space, and where: every complaint names file, line and key, and all of a stage come at once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from codesign.complaints import line_of, placed

Keys = tuple[str | int, ...]
MOST = 10  # complaints shown at once


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong: the keys that lead to it, and what it got and wanted."""

    keys: Keys
    says: str


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The file a space was read from, and the line of every key; a space made in Python has a name alone."""

    name: str
    lines: Mapping[Keys, int]

    def __eq__(self, other: object) -> bool:
        """Always: where a space was read does not make it another space."""
        return isinstance(other, Places)

    def __hash__(self) -> int:
        return 0

    def said(self, fault: Fault) -> str:
        """``file:line: key: complaint``; the line is that of the nearest enclosing key that the file has."""
        line = line_of(self.lines, fault.keys) if self.lines else None
        return placed(self.name, line, fault.keys, fault.says)


def complaint(faults: Iterable[Fault], places: Places) -> str:
    """One line per fault, each once; after `MOST` of them only how many more there are."""
    lines = list(dict.fromkeys(places.said(fault) for fault in faults))
    if len(lines) > MOST:
        lines = [*lines[: MOST - 1], f"{places.name}: and {len(lines) - MOST + 1} more"]
    return "\n".join(lines)
