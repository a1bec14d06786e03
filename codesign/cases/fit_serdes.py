"""Fit the energy of whole SerDes transceivers to published designs."""

import csv
from collections.abc import Sequence

import numpy as np

from codesign.catalog import Catalog
from codesign.model.link.transceiver import transceiver_pj_per_bit
from codesign.resources import case_data
from codesign.units import Array

Design = dict[str, str]
NAMES = ("base_pj_per_bit", "loss_exponent_ratio", "node_exponent_ratio", "converter_ratio", "forwarded_clock_ratio")


def designs() -> list[Design]:
    """The usable rows of serdes_designs.csv: whole transceivers with energy, node and loss."""
    with (case_data() / "serdes_designs.csv").open(newline="", encoding="utf-8") as handle:
        return [row for row in csv.DictReader(handle) if row["usable"] == "yes"]


def numbers(rows: Sequence[Design], name: str) -> Array:
    """A column as numbers."""
    return np.array([float(row[name]) for row in rows])


def solve(rows: Sequence[Design]) -> dict[str, float]:
    """Least squares of the logarithm: the law is a product of powers."""
    loss, node = np.log1p(numbers(rows, "loss_db")), np.log(numbers(rows, "node_nm") / 5.0)
    terms = np.stack([np.ones(len(rows)), loss, node, numbers(rows, "converter"), numbers(rows, "forwarded_clock")])
    answer = np.linalg.lstsq(terms.T, np.log(numbers(rows, "energy_pj_per_bit")), rcond=1e-9)[0]
    values = [float(np.exp(answer[0])), float(answer[1]), float(answer[2]), *np.exp(answer[3:]).tolist()]
    return dict(zip(NAMES, values, strict=True))


def predicted_pj_per_bit(rows: Sequence[Design], constants: dict[str, float]) -> Array:
    """The law at each design."""
    return np.asarray(transceiver_pj_per_bit(
        numbers(rows, "loss_db"), numbers(rows, "node_nm"), numbers(rows, "converter"),
        numbers(rows, "forwarded_clock"), **constants,
    ))  # fmt: skip


def left_out_ratios() -> dict[str, float]:
    """Predicted over published energy of each design, fitted to the others."""
    rows = designs()
    return {
        row["id"]: float(
            predicted_pj_per_bit([row], solve(rows[:i] + rows[i + 1 :]))[0] / float(row["energy_pj_per_bit"])
        )
        for i, row in enumerate(rows)
    }


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """All usable designs."""
    del catalog
    return {"energy": solve(designs())}
