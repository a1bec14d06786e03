"""Links for tests: the example's numbers as columns, one number changed at a time."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from codesign.model.link.bursts import BurstTable
from codesign.model.link.chain import Link, link
from codesign.model.link.example import example_inputs
from codesign.model.link.inputs import LinkInputs


def changed(inputs: LinkInputs, **values: Any) -> LinkInputs:
    """Inputs with some fields replaced, named ``part__field``."""
    parts: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        part, _, field = name.partition("__")
        parts.setdefault(part, {})[field] = value
    return replace(inputs, **{part: replace(getattr(inputs, part), **new) for part, new in parts.items()})


def number_fields() -> list[tuple[str, str]]:
    """Every number of `LinkInputs` as (part, field)."""
    inputs = example_inputs()
    return [
        (part.name, field.name)
        for part in fields(inputs)
        for field in fields(getattr(inputs, part.name))
        if not isinstance(getattr(getattr(inputs, part.name), field.name), BurstTable)
    ]


def picked(struct: Any, rows: Any) -> Any:
    """Some rows of a nested struct of columns."""
    if isinstance(struct, BurstTable):
        return struct
    if is_dataclass(struct) and not isinstance(struct, type):
        return type(struct)(**{f.name: picked(getattr(struct, f.name), rows) for f in fields(struct)})
    return struct[rows] if isinstance(struct, np.ndarray) and struct.ndim else struct


def result(**values: Any) -> Link:
    """The example's link with some numbers changed."""
    return link(changed(example_inputs(), **values))
