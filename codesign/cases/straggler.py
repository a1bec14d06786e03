"""Replay the expected maximum of many independent ranks."""

import re

import numpy as np

from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.model.fabric.synchronisation import (
    exponential_maximum_ratio,
    lognormal_maximum_ratio,
    normal_maximum_ratio,
)

DISTRIBUTIONS = ("normal", "lognormal", "exponential")


def _parameter(text: str, name: str, default: float) -> float:
    found = re.search(rf"\b{name}=([-+.\deE]+)", text)
    return float(found[1]) if found else default


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:  # noqa: ARG001 - every adapter has the same form
    """Mean of the slowest of N."""
    words, texts, count = rows.text("distribution"), rows.text("parameters"), rows.numbers("N")
    refused = [
        f"no law for the distribution {word!r}" if word not in DISTRIBUTIONS
        else (None if n >= 1 else "the number of ranks is not stated")
        for word, n in zip(words, count, strict=True)
    ]  # fmt: skip
    mean = np.array([_parameter(t, "mean", 0.0 if w == "normal" else 1.0) for t, w in zip(texts, words, strict=True)])
    deviation = np.array([_parameter(t, "sd", 1.0) for t in texts])
    sigma = np.array([_parameter(t, "sigma_log", 0.1) for t in texts])
    many = np.where(count >= 1, count, 1.0)
    kind = np.array(words)
    value = np.where(kind == "normal", mean + deviation * normal_maximum_ratio(many), np.nan)
    value = np.where(kind == "lognormal", mean * lognormal_maximum_ratio(many, sigma), value)
    value = np.where(kind == "exponential", mean * exponential_maximum_ratio(many), value)
    return Predictions({"expected_max": (value, rows.numbers("expected_max"))}, refused)
