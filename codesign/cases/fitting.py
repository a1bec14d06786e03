"""What every fit shares: positive constants, errors as ratios, and the YAML that holds the answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from codesign.units import Array, Numeric


@dataclass(frozen=True)
class Bound:
    """One constant: where its fit starts, how far it may go, what it means."""

    name: str
    unit: str
    start: float
    low: float
    high: float
    meaning: str


def fit_ratio(
    predict: Callable[[Mapping[str, float]], Numeric],
    measured: Array,
    bounds: Sequence[Bound],
    start: Mapping[str, float] | None = None,
    softness: float = 0.05,
) -> dict[str, float]:
    """The constants that bring predictions nearest to measurements, by soft absolute log ratio.

    Ratios beyond ``softness`` count linearly, so odd rows do not steer the fit. Constants are searched as logarithms
    within their bounds, from one stated start: the answer is the same on every run.
    """
    from scipy.optimize import least_squares

    names = [bound.name for bound in bounds]
    first = [dict(start or {}).get(bound.name, bound.start) for bound in bounds]
    low, high = np.log([b.low for b in bounds]), np.log([b.high for b in bounds])
    target = np.log(measured)

    def residual(z: Array) -> Array:
        found: Array = np.log(predict(dict(zip(names, np.exp(z).tolist(), strict=True)))) - target
        return found

    inside = np.clip(np.log(first), low + 1e-9, high - 1e-9)
    answer = least_squares(residual, inside, bounds=(low, high), loss="soft_l1", f_scale=softness, max_nfev=300)
    return dict(zip(names, np.exp(answer.x).tolist(), strict=True))


def calibration_yaml(
    groups: Mapping[str, Mapping[str, float]], bounds: Sequence[Bound], rows: Mapping[str, str], fit: str, head: str
) -> str:
    """The text of ``calibration/LAW.yaml``: every group with every constant, its bounds, meaning and rows."""
    known = {bound.name: bound for bound in bounds}
    lines = [f"# {line}" for line in head.strip().splitlines()]
    for group, constants in groups.items():
        lines.append(f"{group}:")
        for name, value in constants.items():
            bound = known[name]
            shown = float(f"{value:.4g}")
            low, high = min(bound.low, shown), max(bound.high, shown)
            lines += [
                f"  {name}:",
                f'    {{value: {shown:g}, unit: "{bound.unit}", low: {low:g}, high: {high:g},',
                f'     meaning: "{bound.meaning}",',
                f'     rows: "{rows.get(group, rows[""])}", fit: {fit}}}',
            ]
    return "\n".join(lines) + "\n"
