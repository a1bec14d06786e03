"""Error ratio of PAM-M against exact values, and the signal-to-noise ratio a target asks for."""

import re

import numpy as np

from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.model.link.pam import gray_ber, required_snr_db, symbol_error_log10_ratio
from codesign.units import Array

GRAY_LEVELS = (2.0, 4.0, 8.0)


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Rows of kind ``pam`` and ``pam_inverse``; refuses level counts that Gray coding does not fill."""
    del catalog
    levels = np.array([_levels(word) for word in rows.text("modulation")])
    refused = [None if m in GRAY_LEVELS else f"no exact Gray value for {w!r}"
               for m, w in zip(levels, rows.text("modulation"), strict=True)]  # fmt: skip
    known = np.where(np.isin(levels, GRAY_LEVELS), levels, 2.0)
    if rows.kind == "pam_inverse":
        measured = rows.numbers("required_snr_db_Es_over_sigma2")
        return Predictions({"required_snr_db_Es_over_sigma2": (_inverse(rows.numbers("target_BER"), known), measured)},
                           refused)  # fmt: skip
    snr_db = rows.numbers("snr_db_Es_over_sigma2")
    symbol = 10.0 ** np.asarray(symbol_error_log10_ratio(snr_db, known))
    bit = np.asarray(gray_ber(snr_db, known))
    return Predictions(
        {"SER_exact": (symbol, rows.numbers("SER_exact")), "BER_exact_gray": (bit, rows.numbers("BER_exact_gray"))},
        refused,
    )


def _levels(word: str) -> float:
    found = re.fullmatch(r"PAM-?(\d+)", word.strip().upper())
    return float(found[1]) if found else (2.0 if word.strip().upper() == "NRZ" else 0.0)


def _inverse(target: Array, levels: Array) -> Array:
    """The nearest-neighbour inverse, then two secant steps on the exact ratio for targets that slips of two reach."""
    snr = np.asarray(required_snr_db(target, levels, np.log2(levels)))
    for _ in range(2):
        here = np.log(np.asarray(gray_ber(snr, levels)) / target)
        slope = (np.log(np.asarray(gray_ber(snr + 1e-3, levels)) / target) - here) / 1e-3
        snr = snr - here / slope
    return snr
