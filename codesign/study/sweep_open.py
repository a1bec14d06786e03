"""What a sweep needs before anything is written: options that make sense, a name, a folder of its own."""

import math
import os
from pathlib import Path

from codesign.errors import StudyError, UsageError, nearest
from codesign.store.names import check_name
from codesign.store.repository import Store
from codesign.store.sweeps import SweepRecord, SweepStore
from codesign.study.coding import Coding
from codesign.study.lifecycle import question, what
from codesign.study.liveness import actor
from codesign.study.parameters import check_parameters, to_json
from codesign.study.problem_protocol import Problem
from codesign.study.samplers import grid_size
from codesign.study.screen import METHODS

MOST_POINTS = 10**9
MOST_CHUNK = 2**20
_CHUNK = 16_384  # points a file where nobody said
MOST_FILES = 10**5
_OWNER = "_database"  # readers of Parquet folders skip names that begin so


def check_options(
    name: str, points_count: float | None, method: str | None, chunk_count: int | None, folder: Path | None
) -> None:
    """Refuse options no sweep can have.

    Raises:
        UsageError: names the option, what it got and what it wanted.
    """
    if method is not None and method not in METHODS:
        raise UsageError(f"no sweep method {method!r}{nearest(method, METHODS)}")
    if points_count is not None and not (1 <= points_count <= MOST_POINTS and points_count == math.floor(points_count)):
        raise UsageError(f"points: wanted a whole number from 1 to {MOST_POINTS:,}; got {points_count:g}")
    chunk_count = _CHUNK if chunk_count is None else chunk_count
    if not 1 <= chunk_count <= MOST_CHUNK:
        raise UsageError(f"chunk: wanted a whole number from 1 to {MOST_CHUNK:,}; got {chunk_count:,}")
    files = math.ceil((points_count or 0) / chunk_count)
    if files > MOST_FILES:
        raise UsageError(f"chunk: {chunk_count:,} points a file would make {files:,} files, more than {MOST_FILES:,}")
    if folder is not None:
        home = (folder / name).absolute()
        there = next(place for place in (home, *home.parents) if place.exists())
        if not (there.is_dir() and os.access(there, os.W_OK)):
            raise UsageError(f"cannot write sweep files in {home}: {there} is no folder that can be written")


def open_sweep(
    store: Store,
    problem: Problem,
    name: str,
    points_count: int | None,
    method: str | None,
    chunk_count: int | None,
    folder: Path | None,
) -> SweepRecord:
    """The sweep of this name, taken up again, or a new one with a folder that no other has.

    Raises:
        StudyError: it was begun with another question or other options, or the folder is another's.
        UsageError: it is new and nobody said how many points, or its folder cannot be written.
    """
    sweeps = SweepStore(store)
    found = sweeps.find(name)
    if found is not None:
        return _continued(sweeps, problem, found, points_count, method, chunk_count, folder)
    check_name("sweep", name)
    if points_count is None:
        raise UsageError(f"sweep {name!r} is new: say how many points, at least one")
    check_parameters(problem.parameters)
    path = store.database.path
    home = (folder or (Path(f"{path}.sweeps") if path is not None else Path(".codesign/sweeps"))) / name
    _claim(home.absolute(), sweeps.place)
    return sweeps.create(
        what(problem)
        | {
            "name": name,
            "parameters": to_json(problem.parameters),
            "objectives": [list(o) for o in problem.objectives],
            "rules": list(problem.rules),
            "seed": problem.seed,
            "method": method or "sobol",
            "points_count": min(points_count, _most(problem, method or "sobol")),
            "chunk_count": chunk_count or _CHUNK,
            "folder": str(home.absolute()),
        },
        actor(),
    )


def _continued(
    sweeps: SweepStore,
    problem: Problem,
    found: SweepRecord,
    points_count: int | None,
    method: str | None,
    chunk_count: int | None,
    folder: Path | None,
) -> SweepRecord:
    name = found.name
    for word, old, new in question(found, problem):
        raise StudyError(f"sweep {name!r} was begun with another {word} ({old}, now {new}); give another name")
    if method is not None and method != found.method:
        raise StudyError(f"sweep {name!r} is by {found.method}, not {method}; give another name")
    if points_count is not None and min(points_count, _most(problem, found.method)) != found.points_count:
        raise StudyError(f"sweep {name!r} has {found.points_count} points, not {points_count}; give another name")
    if chunk_count is not None and chunk_count != found.chunk_count:
        raise StudyError(f"sweep {name!r} has {found.chunk_count} points a file, not {chunk_count}; give another name")
    if folder is not None and (folder / name).absolute() != Path(found.folder):
        raise StudyError(
            f"sweep {name!r} is in {found.folder}, not in {folder / name}; name no folder, or another sweep"
        )
    sweeps.set_state(found, "running", "resumed", actor())
    return sweeps.get(name)


def _claim(home: Path, place: str) -> None:
    """Make the folder of a new sweep and say in it whose it is; chunks that lie there already are another's."""
    owner = home / _OWNER
    try:
        home.mkdir(parents=True, exist_ok=True)
        filled = next(home.glob("chunk-*"), None) is not None
        if owner.exists() or filled:
            there = owner.read_text(encoding="utf-8") if owner.exists() else "a database nobody noted"
            if filled or there != place:  # an empty one of ours was begun from here and interrupted
                whose = f"a sweep of {there.strip()}, whose it may still be"
                raise StudyError(f"{home} holds {whose}; give another name or folder, or delete it")
            return
        with owner.open("x", encoding="utf-8") as file:  # of two that come at once the second fails
            file.write(place)
    except FileExistsError:
        raise StudyError(f"{home} was taken by another process just now; give another name or folder") from None
    except OSError as error:
        raise UsageError(f"cannot write sweep files in {home}: {error.strerror or error}") from None


def _most(problem: Problem, method: str) -> int:
    coding = Coding(problem.parameters)
    return grid_size(coding) if method == "grid" and (coding.levels > 0).all() else MOST_POINTS
