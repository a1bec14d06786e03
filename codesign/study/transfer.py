"""Studies as files: CSV for spreadsheets, JSON and Parquet that come back exactly as they went."""

import csv
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from codesign.errors import StudyError, UsageError
from codesign.metrics import has_value
from codesign.store.repository import FIDELITY, EvaluationRecord, Store, StudyRecord, strict_json
from codesign.store.restore import restore
from codesign.store.trials import ParameterColumn, TrialColumns
from codesign.study.coding import Coding
from codesign.study.exported import FORMAT, check_header, check_trials
from codesign.study.lifecycle import SETTLED
from codesign.study.liveness import actor
from codesign.study.parameters import from_json
from codesign.study.search import distribution_json

FORMATS = ("csv", "json", "parquet")
_KEPT = (
    *("parent", "trials_total", "space_name", "space_digest", "space_text", "catalog_digest", "code_version"),
    *("parameters", "objectives", "rules", "sampler", "seed", "batch_count", "in_flight_count", "first_rows"),
    *("reference", "mixed", "fidelity"),
)
_OF_BATCH = ("batch_index", "offset_count", "first_number", "rows_count", "state", "sampler_state")
_TEXTS = ("design_hash", "fidelity", "asked", "repaired", "details", "tombstone")


def export_study(store: Store, name: str, path: Path, kind: str | None = None) -> int:
    """Write a study's finished trials to a file; how many there were.

    Args:
        store: Where the study is.
        name: Name of the study.
        path: The file; its ending says the format unless ``kind`` does.
        kind: csv, json or parquet.

    Raises:
        UsageError: another format, or the file cannot be written.
    """
    kind = kind or path.suffix.lstrip(".").lower()
    draft = path.with_name(f"{path.name}.part") if path.is_file() or not path.exists() else path  # a pipe, say
    if kind not in FORMATS:
        raise UsageError(f"no export format {kind!r}; valid: {', '.join(FORMATS)}")
    study = store.study(name)
    header, columns = _header(store, study), _finished(store.columns(study))
    evaluations = {e.number: e for e in store.evaluations(study)}
    writers = {"csv": _write_csv, "json": _write_json, "parquet": _write_parquet}
    try:
        writers[kind](draft, study, header, columns, evaluations)
        if draft != path:
            draft.replace(path)  # an older file stays whole until this one is
    except OSError as error:
        if draft != path:
            draft.unlink(missing_ok=True)
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
    return len(columns)


@dataclass(frozen=True, slots=True, eq=False)
class Export:
    """A file of an exported study, checked."""

    header: Mapping[str, Any]
    columns: TrialColumns
    evaluations: list[EvaluationRecord]


def read_export(path: Path) -> Export:
    """A JSON or Parquet file that `export_study` wrote.

    Raises:
        StudyError: the file is not one of ours; the message names the key, what it got and what it wanted.
    """
    try:
        header, rows = _read_parquet(path) if path.suffix == ".parquet" else _read_json(path)
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror or error}") from None
    except json.JSONDecodeError as error:
        raise StudyError(f"{path} is not a study written by codesign: not JSON from line {error.lineno}") from None
    except UnicodeDecodeError as error:
        said = f"wanted text in UTF-8; byte {error.start} is none"
        raise StudyError(f"{path} is not a study written by codesign: {said}") from None
    except pa.ArrowException:
        raise StudyError(f"{path} is not a study written by codesign: not a Parquet file, or a damaged one") from None
    check_trials(path, header, rows)
    return Export(header, *_restored(header, rows))


def import_study(store: Store, read: Export, new_name: str | None = None) -> StudyRecord:
    """A study from a file that `export_study` wrote and `read_export` checked.

    Raises:
        StudyError: the name is taken.
    """
    known = {"fidelity": FIDELITY, "state": "paused", **read.header["study"]}  # older files do not say
    record = {key: known[key] for key in _KEPT} | {"name": new_name or known["name"]}
    described = [ParameterColumn(n, distribution_json(p)) for n, p in from_json(record["parameters"]).items()]
    state = known["state"] if known["state"] in SETTLED else "paused"
    return restore(store, record, described, read.columns, read.header["batches"], read.evaluations, actor(), state)


def _header(store: Store, study: StudyRecord) -> dict[str, Any]:
    record = asdict(study)
    batches = [{k: getattr(b, k) for k in _OF_BATCH} for b in store.batches(study) if b.state != "asked"]
    return {"format": FORMAT, "study": {k: record[k] for k in ("name", "state", *_KEPT)}, "batches": batches}


def _finished(columns: TrialColumns) -> TrialColumns:
    """Without the unfinished trials at the end, which a driver may still be working on."""
    done = np.isin(columns.states, ["COMPLETE", "FAIL", "PRUNED"])
    count = int(np.flatnonzero(done)[-1]) + 1 if done.any() else 0
    return TrialColumns(
        *(columns.numbers[:count], np.where(done, columns.states, "FAIL")[:count], columns.internal[:count]),
        *(columns.values[:count], columns.constraints[:count]),
    )


def _rows(columns: TrialColumns, evaluations: Mapping[int, EvaluationRecord]) -> list[dict[str, Any]]:
    rows = []
    for i, number in enumerate(columns.numbers.tolist()):
        found = evaluations.get(number)
        texts = {key: None if found is None else getattr(found, key) for key in _TEXTS}
        rows.append(
            {
                "number": number,
                "state": str(columns.states[i]),
                "batch_index": None if found is None else found.batch_index,
                "internal": _numbers(columns.internal[i]),
                "values": _numbers(columns.values[i]),
                "constraints": _numbers(columns.constraints[i]),
                **texts,
            }
        )
    return rows


def _numbers(row: Any) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in row.tolist()]


def _write_json(
    path: Path,
    study: StudyRecord,  # noqa: ARG001 - every writer has the same form
    header: Mapping[str, Any],
    columns: TrialColumns,
    evaluations: Mapping[int, EvaluationRecord],
) -> None:
    path.write_text(strict_json({**header, "trials": _rows(columns, evaluations)}))


def _write_parquet(
    path: Path,
    study: StudyRecord,
    header: Mapping[str, Any],
    columns: TrialColumns,
    evaluations: Mapping[int, EvaluationRecord],
) -> None:
    rows = _rows(columns, evaluations)
    arrays: dict[str, Any] = {key: pa.array([row[key] for row in rows]) for key in ("number", "state")}
    arrays["batch_index"] = pa.array([row["batch_index"] for row in rows], pa.int64())
    for part, names in _wide(study).items():
        for j, name in enumerate(names):
            arrays[f"{part}:{name}"] = pa.array([row[part][j] for row in rows], pa.float64())
    for key in _TEXTS:
        arrays[key] = pa.array([row[key] for row in rows], pa.string())
    table = pa.table(arrays).replace_schema_metadata({"codesign": strict_json(header)})
    pq.write_table(table, path, compression="zstd")


def _write_csv(
    path: Path,
    study: StudyRecord,
    header: Mapping[str, Any],  # noqa: ARG001 - every writer has the same form
    columns: TrialColumns,
    evaluations: Mapping[int, EvaluationRecord],
) -> None:
    coding = Coding(from_json(study.parameters))
    metrics = [metric for metric, _ in study.objectives]
    asked = coding.rows(columns.internal)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            [
                *("number", "state", "feasible", "design_hash", "fidelity", "tombstone", *metrics, *coding.names),
                *(f"excess:{rule}" for rule in study.rules),
                *(f"built:{name}" for name in coding.names),
            ]
        )
        for i, number in enumerate(columns.numbers.tolist()):
            found = evaluations.get(number)
            built = json.loads(found.repaired) if found is not None else {}
            limits, values = _numbers(columns.constraints[i]), _numbers(columns.values[i])
            priced = [v if v is not None and has_value(m, v) else None for m, v in zip(metrics, values, strict=True)]
            feasible = columns.states[i] == "COMPLETE" and all(c is not None and c <= 0.0 for c in limits)
            writer.writerow(
                [
                    *(number, columns.states[i], str(bool(feasible)).lower()),
                    *(("", "", "") if found is None else (found.design_hash, found.fidelity, found.tombstone)),
                    *(priced + [asked[i].get(name) for name in coding.names] + limits),
                    *(built.get(name) for name in coding.names),
                ]
            )


def _wide(study: StudyRecord | Mapping[str, Any]) -> dict[str, list[str]]:
    record = study if isinstance(study, Mapping) else {k: getattr(study, k) for k in _KEPT}
    metrics = [metric for metric, _ in record["objectives"]]
    return {"internal": list(record["parameters"]), "values": metrics, "constraints": list(record["rules"])}


def _read_json(path: Path) -> tuple[dict[str, Any], Any]:
    data = json.loads(path.read_text(encoding="utf-8"))
    check_header(path, data)
    return data, data.get("trials")


def _read_parquet(path: Path) -> tuple[dict[str, Any], Any]:
    table = pq.read_table(path)
    header = json.loads((table.schema.metadata or {}).get(b"codesign", "{}"))
    check_header(path, header)
    wide = _wide(header["study"])
    names = [*("number", "state", "batch_index", *_TEXTS), *(f"{part}:{n}" for part in wide for n in wide[part])]
    for name in names:
        if name not in table.column_names:
            raise StudyError(f"{path} is not a study written by codesign: it lacks the column {name}")
    rows = table.to_pylist()
    for row in rows:
        row |= {part: [row[f"{part}:{name}"] for name in names] for part, names in wide.items()}
    return header, rows


def _restored(header: Mapping[str, Any], rows: list[dict[str, Any]]) -> tuple[TrialColumns, list[EvaluationRecord]]:
    def matrix(part: str) -> Any:
        width = len(_wide(header["study"])[part])
        return np.array([row[part] for row in rows], dtype=np.float64).reshape(len(rows), width)

    columns = TrialColumns(
        numbers=np.array([row["number"] for row in rows], dtype=np.int64),
        states=np.array([row["state"] for row in rows], dtype=np.str_),
        internal=matrix("internal"),
        values=matrix("values"),
        constraints=matrix("constraints"),
    )
    evaluations = [
        EvaluationRecord(row["number"], row["batch_index"], **{key: row[key] for key in _TEXTS})
        for row in rows
        if row["asked"] is not None
    ]
    return columns, evaluations
