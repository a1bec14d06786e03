"""Codeword failure of Reed-Solomon codes under independent errors, against exact binomials."""

import numpy as np

from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.model.link.fec import codeword_failure_prob, symbol_error_prob

SYMBOL_BITS = 10.0  #: all Reed-Solomon codes of these rows
BITS_PER_SLICE = {"iid_bits": 1.0, "pam4_gray": 2.0}


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Rows of kind ``fec``: from the bit error ratio before the code, else from a given symbol error ratio."""
    del catalog
    raw, symbols = rows.numbers("pre_fec_ber"), rows.numbers("n")
    bits = np.array([BITS_PER_SLICE.get(word, 1.0) for word in rows.text("mapping")])
    by_ber = np.asarray(symbol_error_prob(np.clip(np.nan_to_num(raw) * bits, 0.0, 1.0), SYMBOL_BITS / bits))
    given = rows.numbers("rs_symbol_error_prob")
    known_mapping = np.array([word in BITS_PER_SLICE for word in rows.text("mapping")])
    wrong = np.where(np.isfinite(raw) & known_mapping, by_ber, given)
    correctable = rows.numbers("t")
    usable = np.isfinite(wrong) & np.isfinite(symbols) & np.isfinite(correctable)
    failure = codeword_failure_prob(
        np.where(usable, wrong, 0.0), np.where(usable, symbols, 2.0), np.where(usable, correctable, 0.0)
    )
    refused = [None if ok else "neither a bit nor a symbol error ratio, or no code size" for ok in usable]
    return Predictions({"codeword_error_prob": (np.asarray(failure), rows.numbers("codeword_error_prob"))}, refused)
