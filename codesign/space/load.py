"""Read one search space or design file, and say where it breaks the grammar."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from codesign.errors import SpaceError, nearest
from codesign.resources import search_spaces
from codesign.space.schema import Choices, Limit, Range, Scenario, SearchPlan, Serving, Space, Training
from codesign.yaml12 import Document, parse_document, read_document


def shipped_spaces() -> dict[str, Path]:
    """Name -> file of every shipped search space."""
    return {path.stem: path for path in sorted(search_spaces().glob("*.yaml"))}


def load_space(name_or_path: str | Path | Space) -> Space:
    """Load a space by the name of a shipped one, or by its path; a space that is already loaded is handed back.

    Raises:
        SpaceError: no such file, or it breaks the grammar; the message names file, line, key, what it got and wanted.
    """
    if isinstance(name_or_path, Space):
        return name_or_path
    text = str(name_or_path)
    shipped = shipped_spaces()
    if text in shipped:
        return _validate(read_document(shipped[text], SpaceError))
    path = Path(text)
    if path.suffix not in (".yaml", ".yml") and not _is_there(path):
        raise SpaceError(f"no space or design {text!r}: neither a shipped space nor a file{nearest(text, shipped)}")
    return _validate(read_document(path, SpaceError))


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name no file system takes
        return False


def parse_space(text: str, name: str = "space.yaml") -> Space:
    """Load a space from text, as the database and the HTTP service keep it.

    Raises:
        SpaceError: it breaks the grammar.
    """
    return _validate(parse_document(text, name, SpaceError))


def _validate(document: Document) -> Space:
    if not isinstance(document.data, dict):
        raise SpaceError(f"{document.name}:1: wanted keys such as name, base, workloads; got {_shown(document.data)}")
    try:
        return Space.model_validate(document.data)
    except ValidationError as error:
        complaints = _complaints(error.errors(), document)
        raise SpaceError("\n".join(complaints)) from None


def _complaints(errors: list[ErrorDetails], document: Document) -> list[str]:
    """One line per wrong key."""
    out: dict[str, None] = {}
    for error in errors[:40]:
        path = _path(error["loc"], document)
        where = ".".join(map(str, path)) or "file"
        out[f"{document.name}:{document.line(path)}: {where}: {_said(error, path)}"] = None
    return list(out)[:10] or [f"{document.name}:1: does not follow the grammar of a space"]


_WRITTEN = {"int", "float", "str"}
_MEMBERS = {"Choices", "Range", "training", "serving", "int", "float", "str"}


def _path(loc: tuple[int | str, ...], document: Document) -> tuple[int | str, ...]:
    """The part of a pydantic location that is keys of the file: names of union members are left out."""
    path: tuple[int | str, ...] = ()
    here: Any = document.data
    for step in loc:
        known: Any = here if isinstance(here, dict) else range(len(here)) if isinstance(here, list) else ()
        if step in known:
            path = (*path, step)
            here = here[step]
        elif step not in _MEMBERS and not str(step).startswith(("constrained", "function", "tagged", "dict", "tuple")):
            path = (*path, step)
            here = None
    return path


def _said(error: ErrorDetails, path: tuple[int | str, ...]) -> str:
    kind, got = error["type"], _shown(error["input"])
    if error["loc"] and error["loc"][-1] in _WRITTEN:
        return f"should be a finite number or a word; got {got}"
    if kind == "extra_forbidden":
        return f"unknown key{nearest(str(path[-1]), _keys_at(path))}"
    if kind == "missing":
        return "is missing"
    if kind == "union_tag_invalid":
        got = str((error.get("ctx") or {}).get("tag"))
        return f"kind is {got!r}; wanted training or serving{nearest(got, ['training', 'serving'])}"
    if kind == "union_tag_not_found":
        return "needs a kind: training or serving"
    message = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return message if kind == "value_error" else f"{message}; got {got}"


def _keys_at(path: tuple[int | str, ...]) -> list[str]:
    """Valid keys beside the wrong one, for the hint."""
    at = path[0] if len(path) > 1 else None
    models: dict[Any, list[type[BaseModel]]] = {
        None: [Space],
        "vary": [Choices, Range],
        "workloads": [Training, Serving],
        "scenario": [Scenario],
        "search": [SearchPlan],
        "constraints": [Limit],
    }
    return sorted({key for model in models.get(at, []) for key in model.model_fields})


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
