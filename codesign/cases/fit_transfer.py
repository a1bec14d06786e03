"""How far kernel times are off when the constants of another architecture are used: the range of designed parts."""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from codesign.cases import attention, gemm, mla, moe_gemm
from codesign.cases.fitting import Bound
from codesign.cases.formats import format_word
from codesign.cases.rows import read_rows
from codesign.catalog import Catalog
from codesign.catalog.architectures import lineage
from codesign.catalog.schema import Constant
from codesign.resources import case_data

FILE = "kernels/{gemm,attention,mla,moe_gemm}.csv, each architecture predicted from every other measured one"
BOUNDS = (
    Bound("low_ratio", "1", 1.0, 0.1, 1.0, "tenth percentile of measured over predicted time on another architecture"),
    Bound("high_ratio", "1", 1.0, 1.0, 10.0, "ninetieth percentile of the same"),
)
_ADAPTERS = {"gemm": gemm, "attention": attention, "mla": mla, "moe_gemm": moe_gemm}
_FORMATS = {"gemm": "gemm_dtype", "attention": "attn_dtype", "mla": "mla_dtype", "moe_gemm": "moe_dtype"}
_EVERY = 7  # rows used of each table: enough for percentiles


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """The band of every law."""
    found = {}
    for law, adapter in _ADAPTERS.items():
        rows = next(part for part in read_rows(case_data() / "kernels" / f"{law}.csv") if part.kind == law)
        rows = rows.pick(range(0, len(rows), _EVERY))
        family = np.array([lineage(name)[-1] for name in rows.text("accelerator")])
        ratios = []
        words = np.array([format_word(cell) or "" for cell in rows.text(_FORMATS[law])])
        for target, swapped in _swaps(catalog, law, sorted(set(family))):
            lent = {name.split(".")[1].split("-")[0] for name in swapped.constants[law]}
            chosen = np.flatnonzero((family == target) & np.isin(words, sorted(lent)))
            if len(chosen):
                predicted, measured = adapter.predict(rows.pick(chosen.tolist()), swapped).metrics["latency_us"]
                ratios.append(measured / predicted)
        low, high = np.percentile(np.concatenate(ratios), [10.0, 90.0])
        found[law] = {"low_ratio": float(min(low, 1.0)), "high_ratio": float(max(high, 1.0))}
    return found


def _swaps(catalog: Catalog, law: str, families: list[str]) -> Iterator[tuple[str, Catalog]]:
    """Each measured architecture with a catalog in which another one's constants stand in its place."""
    groups = catalog.constants[law]
    for target in families:
        for donor in families:
            if donor != target:
                lent: dict[str, dict[str, Constant]] = {
                    re.sub(rf"^{re.escape(donor)}\.", f"{target}.", name): dict(constants)
                    for name, constants in groups.items()
                    if name.startswith(f"{donor}.")
                }
                lent |= {name: dict(c) for name, c in groups.items() if name.startswith(f"{donor}.")}
                lent |= {name.replace(f"{donor}.", "hopper.", 1): c for name, c in list(lent.items())}
                yield target, replace(catalog, constants={**catalog.constants, law: lent})
