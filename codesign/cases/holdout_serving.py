"""How right the serving constants are on rows they were not fitted to."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from codesign.cases.fit_serving import FitRows, fit_rows, predicted, with_constants
from codesign.cases.fit_serving_tpot import LAW as TPOT
from codesign.cases.fit_serving_tpot import fit_to as fit_tpot
from codesign.cases.fit_serving_ttft import LAW as TTFT
from codesign.cases.fit_serving_ttft import fit_to as fit_ttft
from codesign.catalog import Catalog, load_catalog

Figures = dict[str, float]
_RESULTS = ("case", "ttft_ms", "tpot_ms", "repeats", "measured_first", "measured_last", "notes", "source")


def held_out(catalog: Catalog, by: Literal["configuration", "machine"], count: int) -> Figures:
    """Mean error of the time per token by class, and median error of the first token, on rows left out.

    By configuration: ``count`` random halves, every repeat of a configuration on the same side. By machine: ``count``
    folds that leave whole groups of model and accelerator out.
    """
    data = fit_rows(catalog)
    classes, tpot, ttft = [], [], []
    for test in _folds(data, by, count):
        train, facts = data.pick(~test), catalog
        for _ in range(2):
            facts = with_constants(facts, TPOT, fit_tpot(facts, train))
            facts = with_constants(facts, TTFT, fit_ttft(facts, train))
        left = data.pick(test)
        point, size = predicted(left, facts), int(test.sum())
        classes += left.classes
        tpot.append(np.broadcast_to(point.tpot_ns, (size,)) * 1e-6 / left.rows.numbers("tpot_ms") - 1.0)
        ttft.append(np.broadcast_to(point.ttft_ns, (size,)) * 1e-6 / left.rows.numbers("ttft_ms") - 1.0)
    label, per_token, first = np.array(classes), np.abs(np.concatenate(tpot)), np.abs(np.concatenate(ttft))
    figures = {name: float(np.nanmean(per_token[label == name])) for name in ("dense_agg", "moe_agg", "disagg")}
    shared = label != "disagg"
    figures["ttft_agg_median"] = float(np.nanmedian(first[shared]))
    figures["ttft_agg_within_half"] = float((first[shared & np.isfinite(first)] <= 0.5).mean())
    figures["ttft_disagg_median"] = float(np.nanmedian(first[~shared]))
    return figures


def _folds(data: FitRows, by: str, count: int) -> Iterator[Any]:
    generator = np.random.default_rng(0)
    keys: list[tuple[str, ...]]
    if by == "machine":
        keys = list(zip(data.rows.text("model"), data.rows.text("accelerator"), strict=True))
    else:
        names = [name for name in data.rows.columns if name not in _RESULTS]
        keys = [tuple(data.rows.columns[name][i] for name in names) for i in range(len(data.rows))]
    distinct = sorted(set(keys))
    order = generator.permutation(len(distinct))
    for fold in range(count):
        if by == "configuration":
            order = generator.permutation(len(distinct))
            chosen = {distinct[i] for i in order[: len(distinct) // 2]}
        else:
            chosen = {distinct[i] for i in order[fold::count]}
        yield np.array([key in chosen for key in keys])


if __name__ == "__main__":
    print("10 random halves by configuration", held_out(load_catalog(), "configuration", 10))
    print("every group of model and accelerator left out", held_out(load_catalog(), "machine", 24))
