"""Where a study comes from and what came of it: parents, children, and others that ask the same question."""

from typing import Any

from codesign.store.repository import Store, StudyRecord
from codesign.store.sweeps import SweepRecord, SweepStore

_SWEEP = "sweep "


def parent_sweep(name: str) -> str:
    """What a study keeps as its parent when its first designs come from a sweep."""
    return _SWEEP + name


def lineage(store: Store, name: str) -> dict[str, Any]:
    """Relatives of a study.

    ``ancestors`` from its parent upwards, ``children`` by age: each with its kind (study or sweep; null where it is not
    in this database) and whether its space is the same, by hash. ``same_space``: all other studies of that space.
    """
    study, every = store.study(name), store.studies()
    ancestors, seen = [], {name}
    parent = study.parent
    while parent is not None and parent not in seen:
        seen.add(parent)
        found = _find(store, parent, every)
        ancestors.append(_relative(parent, found, study))
        parent = found.parent if isinstance(found, StudyRecord) else None
    return {
        "ancestors": ancestors,
        "children": [_relative(other.name, other, study) for other in every if other.parent == name],
        "same_space": [o.name for o in every if o.space_digest == study.space_digest and o.name != name],
    }


def _find(store: Store, name: str, studies: list[StudyRecord]) -> StudyRecord | SweepRecord | None:
    if name.startswith(_SWEEP):
        return SweepStore(store).find(name.removeprefix(_SWEEP))
    return next((study for study in studies if study.name == name), None)


def _relative(name: str, found: StudyRecord | SweepRecord | None, study: StudyRecord) -> dict[str, Any]:
    kind = None if found is None else "study" if isinstance(found, StudyRecord) else "sweep"
    return {
        "name": name.removeprefix(_SWEEP),
        "kind": kind,
        "same_space": None if found is None else found.space_digest == study.space_digest,
    }
