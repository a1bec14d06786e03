"""Read one search space or design file, and say where it breaks the grammar."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from codesign.complaints import keys_in_file, refusal, shown
from codesign.errors import SpaceError, nearest
from codesign.resources import search_spaces
from codesign.space.faults import Fault, Places, complaint
from codesign.space.schema import PARTS_DISAGREE, Choices, Limit, Range, Scenario, SearchPlan, Serving, Space, Training
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
    if not text or (path.suffix not in (".yaml", ".yml") and not _is_there(path)):
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
    places = Places(document.name, document.lines)
    if not isinstance(document.data, dict):
        got = "the file is empty" if document.data is None else f"got {shown(document.data)}"
        raise SpaceError(f"{document.name}:1: wanted keys such as name, base, workloads; {got}")
    try:
        return Space.model_validate(document.data).read_from(places)
    except ValidationError as error:
        faults = [fault for one in error.errors() for fault in _faults(one, document)]
        raise SpaceError(complaint(faults, places)) from None


def refuse(space: Space, faults: Sequence[Fault]) -> None:
    """Refuse a space that has faults.

    Raises:
        SpaceError: file, line, key, what it got and what it wanted, of all of them.
    """
    if faults:
        raise SpaceError(complaint(faults, space.places))


def _faults(error: ErrorDetails, document: Document) -> list[Fault]:
    """What one error of the schema says; one between keys carries a fault per key."""
    context = error.get("ctx") or {}
    if error["type"] == PARTS_DISAGREE:
        return list(context["faults"])
    path = keys_in_file(error["loc"], document.data)
    return [Fault(path, _said(error, context, path))]


def _said(error: ErrorDetails, context: Mapping[str, Any], path: tuple[int | str, ...]) -> str:
    kind = error["type"]
    if kind == "union_tag_invalid":
        tag = str(context.get("tag"))
        return f"kind is {tag!r}; wanted training or serving{nearest(tag, ['training', 'serving'])}"
    if kind == "union_tag_not_found":
        return "needs a kind: training or serving"
    hint = nearest(str(path[-1]), _keys_at(path)) if kind == "extra_forbidden" else ""
    return refusal(error) + hint


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
