"""Accuracy figures over predicted cases: per case, and grouped as the published tables need them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from codesign.cases.rows import CaseRows, Predictions, is_number

CARRIED = ("grade", "core", "mode", "accelerator", "model", "series")
Case = dict[str, Any]


def cases_of(rows: CaseRows, predictions: Predictions, by: Sequence[str] = ()) -> list[Case]:
    """One entry per row and compared column, in file order; an empty measured cell gives none.

    A refused row with no comparable cell still gives one entry, and so does a cell that is not a number, so that
    refusals never disappear.
    """
    carried = {name: rows.text(name) for name in dict.fromkeys([*CARRIED, *by])} | predictions.labels
    names = rows.text("case")
    out: list[Case] = []
    for i in range(len(rows)):
        base = {"case": names[i], "kind": rows.kind, "file": rows.file}
        extra = {name: (column[i] or None) for name, column in carried.items()}
        reason = predictions.refused[i]
        entries = [
            {**base, **_compare(metric, float(predicted[i]), float(measured[i]), reason), **extra}
            for metric, (predicted, measured) in predictions.metrics.items()
            if math.isfinite(measured[i])
        ]
        for metric in predictions.metrics:
            cell = rows.text(metric)[i].strip()
            if cell and not is_number(cell):
                wrong = f"{metric} is {cell!r}, no number"
                entries.append({**base, **_compare(metric, math.nan, math.nan, wrong), **extra})
        if not entries and reason is not None:
            entries = [{**base, **_compare("", math.nan, math.nan, reason), **extra}]
        out.extend(entries)
    return out


def _compare(metric: str, predicted: float, measured: float, refused: str | None) -> Case:
    known = refused is None and math.isfinite(predicted)
    error = 100.0 * (predicted - measured) / measured if known and measured != 0 else None
    log_error = math.log10(predicted / measured) if known and predicted > 0 and measured > 0 else None
    return {
        "metric": metric,
        "measured": measured if math.isfinite(measured) else None,
        "predicted": predicted if known else None,
        "error_pct": error,
        "log10_error": log_error,
        "refused": refused if refused is not None else (None if known else "the model gave no finite value"),
    }


def groups_of(cases: Sequence[Case], by: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Figures per kind and metric; again for grade A, grades A and B, core rows, serving modes, and each ``by``."""
    out = []
    for kind, metric in dict.fromkeys((c["kind"], c["metric"]) for c in cases if c["metric"]):
        mine = [c for c in cases if c["kind"] == kind and c["metric"] in (metric, "")]
        for where, chosen in _splits(mine, by):
            if chosen:
                out.append(_figures(kind, metric, where, chosen))
    return out


def _splits(cases: Sequence[Case], by: Sequence[str]) -> Iterable[tuple[Mapping[str, Any], list[Case]]]:
    yield {}, list(cases)
    graded = [c for c in cases if c["grade"]]
    if graded:
        yield {"grade": "A"}, [c for c in graded if c["grade"] == "A"]
        yield {"grade": "A|B"}, [c for c in graded if c["grade"] in ("A", "B")]
    core = [c for c in cases if c["core"] == "yes"]
    if core:
        yield {"core": "yes"}, core
        yield {"core": "yes", "grade": "A"}, [c for c in core if c["grade"] == "A"]
    for part in dict.fromkeys(c.get("class") for c in cases if c.get("class")):
        chosen = [c for c in cases if c.get("class") == part]
        yield {"class": part}, chosen
        yield {"class": part, "grade": "A|B"}, [c for c in chosen if c["grade"] in ("A", "B")]
    for column in by:
        for value in dict.fromkeys(c.get(column) for c in cases):
            yield {column: value}, [c for c in cases if c.get(column) == value]


def _figures(kind: str, metric: str, where: Mapping[str, Any], cases: Sequence[Case]) -> dict[str, Any]:
    known = [c for c in cases if c["refused"] is None]
    errors = np.array([c["error_pct"] for c in known if c["error_pct"] is not None])
    size = np.abs(errors)
    pairs = np.array([(c["predicted"], c["measured"]) for c in known]).reshape(-1, 2)
    return {
        "kind": kind,
        "metric": metric,
        "where": dict(where),
        "n": len(cases),
        "predicted": len(known),
        "refused": len(cases) - len(known),
        "mape_pct": float(size.mean()) if len(size) else None,
        "median_ape_pct": float(np.median(size)) if len(size) else None,
        "p90_ape_pct": float(np.percentile(size, 90)) if len(size) else None,
        "bias_pct": float(errors.mean()) if len(size) else None,
        "spearman": _spearman(pairs),
        "within_50_pct": float((size <= 50).mean()) if len(size) else None,
    }


def _spearman(pairs: Any) -> float | None:
    if len(pairs) < 3:
        return None
    from scipy.stats import rankdata

    a, b = rankdata(pairs[:, 0]), rankdata(pairs[:, 1])
    spread = float(a.std() * b.std())
    return float(((a - a.mean()) * (b - b.mean())).mean() / spread) if spread else None
