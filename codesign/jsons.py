"""One encoder for every JSON this package prints or stores: strict, stable key order as given, no NaN."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """A value as JSON can say it: arrays as lists, non-finite numbers as null, keys as words.

    >>> plain({"a": np.float64(1.5), "b": float("nan"), "c": np.arange(2)})
    {'a': 1.5, 'b': None, 'c': [0, 1]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def dump(value: Any, indent: int | None = 2) -> str:
    """Strict JSON text.

    >>> dump({"x": float("inf")}, indent=None)
    '{"x": null}'
    """
    return json.dumps(plain(value), indent=indent, allow_nan=False, ensure_ascii=False)
