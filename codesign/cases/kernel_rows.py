"""What the kernel adapters share: which rows can be modelled, and how a latency becomes a prediction."""

from collections.abc import Mapping, Sequence

import numpy as np

from codesign.cases.formats import format_word
from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.machines import accelerator_refusal
from codesign.units import Array, Numeric, us_from_ns

#: stands in for a refused row so that columns stay whole; its prediction is thrown away
_FILLER = ("h100-sxm", "bf16")


def usable(
    rows: CaseRows, catalog: Catalog, formats: Sequence[str], needed: Mapping[str, Array]
) -> tuple[list[str], list[str], list[str | None]]:
    """Accelerators and number formats with refused rows filled in, and the reason of each refusal.

    ``needed`` are columns that must be positive.
    """
    parts, words, refused = list(rows.text("accelerator")), [format_word(cell) for cell in formats], []
    known = {name: accelerator_refusal(catalog, name) for name in dict.fromkeys(parts)}
    for i, part in enumerate(parts):
        reason = known[part]
        if reason is None and words[i] is None:
            reason = f"number format {formats[i]!r} is not modelled"
        if reason is None:
            bad = [name for name, column in needed.items() if not column[i] > 0.0]
            reason = f"the row lacks {', '.join(bad)}" if bad else None
        refused.append(reason)
        if reason is not None:
            parts[i], words[i] = _FILLER
    return parts, [word or _FILLER[1] for word in words], refused


def whole(column: Array, refused: Sequence[str | None], filler: float = 1.0) -> Array:
    """A column with refused rows replaced, so that arithmetic stays finite."""
    return np.where([reason is None for reason in refused], column, filler)


def latency(rows: CaseRows, time_ns: Numeric, refused: list[str | None]) -> Predictions:
    """Predictions of ``latency_us``; refused rows carry no number."""
    predicted = np.where([reason is None for reason in refused], us_from_ns(time_ns), np.nan)
    return Predictions({"latency_us": (predicted, rows.numbers("latency_us"))}, refused)
