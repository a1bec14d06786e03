"""Errors on rows the constants were not fitted to: whole models, parts or model-and-part groups left out.

``python -m codesign.cases.held_out`` refits everything several times over and stores the figures in
``data/held_out.json``, from where the accuracy page takes them. It takes minutes.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codesign.cases import fit_collectives, fit_serdes, fit_serving, fit_serving_tpot, fit_serving_ttft, fit_training
from codesign.cases.nccl import predict as predict_nccl
from codesign.catalog import Catalog, load_catalog
from codesign.resources import case_data
from codesign.units import Array

Row = dict[str, Any]
FOLDS = 5
FILE = "held_out.json"


def figures(kind: str, metric: str, left_out: str, log_errors: Array) -> Row:
    """Figures of logarithmic errors, in the words of `codesign.cases.score`."""
    errors = 100.0 * np.expm1(log_errors[np.isfinite(log_errors)])
    size = np.abs(errors)
    return {
        "kind": kind,
        "metric": metric,
        "left_out": left_out,
        "n": len(errors),
        "mape_pct": float(size.mean()),
        "median_ape_pct": float(np.median(size)),
        "bias_pct": float(errors.mean()),
    }


def _training(catalog: Catalog) -> Iterator[Row]:
    rows, replay = fit_training._load(catalog)
    for word in ("model", "accelerator"):
        errors = fit_training.held_out(rows, replay, catalog, rows.text(word), FOLDS)
        yield figures("training", "time", f"{word}s, in {FOLDS} parts", errors)


def _serving(catalog: Catalog) -> Iterator[Row]:
    data = fit_serving.fit_rows(catalog)
    pairs = list(zip(data.rows.text("model"), data.rows.text("accelerator"), strict=True))
    names = sorted(set(pairs))
    fold = np.array([names.index(pair) % FOLDS for pair in pairs])
    laws: Sequence[tuple[str, str, Callable[..., Mapping[fit_serving.Key, float]]]] = (
        ("serving_tpot", "tpot", fit_serving_tpot.fit_to),
        ("serving_ttft", "ttft", fit_serving_ttft.fit_to),
    )
    classes = np.array(data.classes)
    for law, name, fit_to in laws:
        errors = np.full(len(pairs), np.nan)
        for left in range(FOLDS):
            values = fit_to(catalog, data.pick(fold != left))
            rest = data.pick(fold == left)
            point = fit_serving.predicted(rest, fit_serving.with_constants(catalog, law, values))
            measured = rest.rows.numbers(f"{name}_ms")
            miss = fit_serving.log_ratio(getattr(point, f"{name}_ns"), measured)
            errors[fold == left] = np.where(measured > 0, miss, np.nan)
        for word in sorted(set(data.classes)):
            yield figures("serving", f"{name}_ms, {word}", f"model-and-accelerator pairs, in {FOLDS} parts",
                          errors[classes == word])  # fmt: skip


def _collectives(catalog: Catalog) -> Iterator[Row]:
    """Each part predicted from the others: by its architecture where another part of it was measured, else pooled."""
    rows = fit_collectives.sweep_rows()
    parts = np.array(rows.text("accelerator"))
    errors = np.full(len(rows), np.nan)
    for part in sorted(set(parts)):
        found = fit_collectives.fit(catalog, leave_out=[part])
        groups = {}
        for group, names in catalog.constants["collectives"].items():
            fitted = found.get(group, found[fit_collectives.POOL])
            groups[group] = {
                name: one.model_copy(update={"value": fitted.get(name, one.value)}) for name, one in names.items()
            }
        facts = replace(catalog, constants={**catalog.constants, "collectives": groups})
        here = [int(i) for i in np.flatnonzero(parts == part)]
        predicted, measured = predict_nccl(rows.pick(here), facts).metrics["latency_us"]
        errors[here] = np.log(predicted / measured)
    yield figures("nccl", "latency_us", "one accelerator at a time", errors)


def _serdes(catalog: Catalog) -> Iterator[Row]:
    del catalog
    ratios = np.array(list(fit_serdes.left_out_ratios().values()))
    yield figures("SerDes designs", "pJ/bit", "one design at a time", np.log(ratios))


def held_out(catalog: Catalog) -> list[Row]:
    """Figures of everything that can be held out."""
    return [row for part in (_training, _serving, _collectives, _serdes) for row in part(catalog)]


def stored() -> list[Row]:
    """The figures as stored; none where nobody has run this module."""
    path = case_data() / FILE
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return rows


if __name__ == "__main__":
    found = held_out(load_catalog())
    (case_data() / FILE).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    json.dump(found, sys.stdout, indent=1)
