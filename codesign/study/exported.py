"""What a file of an exported study must hold: checked key by key before anything of it is believed."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from codesign.complaints import keys_in_file, refusal, shown
from codesign.errors import SpaceError, StudyError
from codesign.store.repository import FIDELITY
from codesign.study import parameters as study_parameters
from codesign.study.parameters import check_parameters, from_json
from codesign.study.policy import sampler_fault

FORMAT = "codesign-study-1"
_KINDS = ("choices", "float", "int")
_WIDTHS = {"internal": "parameters", "values": "objectives", "constraints": "rules"}  # list of a trial -> of the study
Count = Annotated[int, Field(ge=0)]
Some = Annotated[int, Field(ge=1)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Written = int | Number | str
Pair = Annotated[list[str], Field(min_length=2, max_length=2)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _When(_Part):
    parent: str
    values: list[Written]


class _Parameter(_Part):
    model_config = ConfigDict(strict=True, extra="forbid")
    when: _When | None = None


class _Choices(_Parameter):
    kind: Literal["choices"]
    values: list[Written]
    weights: list[Number] = []


class _Float(_Parameter):
    kind: Literal["float"]
    low: Number
    high: Number
    step: Number | None = None
    log: bool = False
    peak: Number | None = None
    weight: Number = 0.5


class _Int(_Parameter):
    kind: Literal["int"]
    low: int
    high: int
    step: int = 1
    log: bool = False
    peak: Number | None = None
    weight: Number = 0.5


class _Sampler(_Part):
    name: str


class _Study(_Part):
    name: str
    state: str = "paused"  # older files do not say
    fidelity: str = FIDELITY
    parent: str | None
    trials_total: Some
    space_name: str
    space_digest: str
    space_text: str
    catalog_digest: str
    code_version: str
    parameters: dict[str, Annotated[_Choices | _Float | _Int, Field(discriminator="kind")]]
    objectives: Annotated[list[Pair], Field(min_length=1, max_length=3)]
    rules: list[str]
    sampler: _Sampler
    seed: Count
    batch_count: Some
    in_flight_count: Some
    first_rows: list[Annotated[list[str | dict[str, Written]], Field(min_length=2, max_length=2)]]
    reference: list[Number] | None
    mixed: bool


class _Batch(_Part):
    batch_index: Count
    offset_count: Count
    first_number: Count
    rows_count: Count
    sampler_state: str | None
    state: str = "told"


class _Trial(_Part):
    number: Count
    state: Literal["COMPLETE", "FAIL", "PRUNED"]
    batch_index: Count | None
    internal: list[Number | None]
    values: list[Number | None]
    constraints: list[Number | None]
    design_hash: str | None
    fidelity: str | None
    asked: str | None
    repaired: str | None
    details: str | None
    tombstone: str | None


class _Header(_Part):
    format: Literal["codesign-study-1"]
    study: _Study
    batches: list[_Batch]


class _Rows(_Part):
    trials: list[_Trial]


def check_header(path: Path, header: Any) -> None:
    """Refuse a header that no export of ours has: the study and its batches.

    Raises:
        StudyError: names the file, the key, what it got and what it wanted.
    """
    _check(path, _Header, header)
    study = header["study"]
    for i, (_, direction) in enumerate(study["objectives"]):
        if direction not in ("minimize", "maximize"):
            raise _refused(path, f"study.objectives.{i}: wanted minimize or maximize; got {shown(direction)}")
    for i, row in enumerate(study["first_rows"]):
        if not (isinstance(row[0], str) and isinstance(row[1], dict)):
            raise _refused(path, f"study.first_rows.{i}: wanted a name and a design; got {shown(row)}")
    if fault := sampler_fault(study["sampler"]["name"]):
        raise _refused(path, f"study.sampler.name: {fault}")
    try:
        check_parameters(from_json(study["parameters"]))
    except SpaceError as error:
        raise _refused(path, f"study.parameters: {error}") from None


def check_trials(path: Path, header: Mapping[str, Any], rows: Any) -> None:
    """Refuse trials that do not belong to the header.

    Raises:
        StudyError: names the file, the key, what it got and what it wanted.
    """
    _check(path, _Rows, {"trials": rows})
    study, count = header["study"], len(rows)
    widths = {part: len(study[key]) for part, key in _WIDTHS.items()}
    described = list(from_json(study["parameters"]).values())
    for i, row in enumerate(rows):
        if row["number"] != i:
            raise _refused(path, f"trials.{i}.number: wanted {i}, numbers rise from 0 by 1; got {row['number']}")
        for part, width in widths.items():
            if len(row[part]) != width:
                raise _refused(path, f"trials.{i}.{part}: wanted {width} numbers; got {len(row[part])}")
        of, own = row["fidelity"], study.get("fidelity", FIDELITY)
        if of is not None and of != own:
            raise _refused(
                path, f"trials.{i}.fidelity: values of fidelity {of!r} cannot stand beside values of {own!r}"
            )
        for said in _row_faults(row, described):
            raise _refused(path, f"trials.{i}.{said}")
    seen: set[tuple[int, int]] = set()
    for i, batch in enumerate(header["batches"]):
        if batch["first_number"] + batch["rows_count"] > count:
            raise _refused(path, f"batches.{i}: reaches beyond the {count} trials of the file")
        key = (batch["batch_index"], batch["offset_count"])
        if key in seen:
            raise _refused(path, f"batches.{i}: batch {key[0]} from row {key[1]} stands there twice")
        seen.add(key)


def _row_faults(row: Mapping[str, Any], described: Sequence[study_parameters.Parameter]) -> Iterator[str]:
    for value, parameter in zip(row["internal"], described, strict=True):
        if value is None:
            if parameter.when is None:
                yield f"internal: wanted a number for every parameter; got {shown(None)}"
            continue
        choices = parameter.values if isinstance(parameter, study_parameters.Choices) else None
        if choices is not None and not (value == math.floor(value) and 0 <= value < len(choices)):
            yield f"internal: wanted a place among {len(choices)} choices; got {value:g}"
    finished = [key for key in ("values", "constraints") if None in row[key]]
    if row["state"] == "COMPLETE" and finished:
        yield f"{finished[0]}: wanted numbers in a finished trial; got {shown(None)}"
    told = row["asked"] is not None
    for key in ("asked", "repaired", "details"):
        if told and not _is_mapping(row[key]):
            yield f"{key}: wanted keys with values as JSON text; got {shown(row[key])}"
    for key in ("design_hash", "fidelity", "batch_index"):
        if told and row[key] is None:
            yield f"{key}: is missing"


def _is_mapping(text: str | None) -> bool:
    try:
        return text is not None and isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _check(path: Path, schema: type[BaseModel], data: Any) -> None:
    try:
        schema.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        kinds = first["loc"][:2] == ("study", "parameters")  # the fourth step is then a kind, which is no key
        loc = [step for i, step in enumerate(first["loc"]) if not (kinds and i == 3 and step in _KINDS)]
        keys = ".".join(map(str, keys_in_file(loc, data))) or "file"
        wanted = f"wanted a kind: {', '.join(_KINDS)}; got {shown(first['input'])}"
        said = wanted if first["type"].startswith("union_tag") else refusal(first)
        raise _refused(path, f"{keys}: {said}") from None


def _refused(path: Path, said: str) -> StudyError:
    return StudyError(f"{path} is not a study written by codesign: {said}")
