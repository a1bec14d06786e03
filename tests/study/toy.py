"""A small numeric problem with every kind of parameter: what the study engine is tested on."""

import hashlib
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from codesign.study.parameters import Choices, FloatRange, IntRange, Parameter, Value, When
from codesign.study.problem_protocol import Direction, Evaluated
from codesign.units import Array

PARAMETERS: dict[str, Parameter] = {
    "medium": Choices(("copper", "optics", "backplane")),
    "lanes_count": Choices((1, 2, 4, 8, 16)),
    "rate_gbps": FloatRange(25.0, 224.0, peak=112.0),
    "window_bytes": FloatRange(1e3, 1e6, log=True),
    "stacks_count": IntRange(1, 8),
    "depth_count": IntRange(8, 512, log=True),
    "reach_m": FloatRange(0.5, 10.0, step=0.5, when=When("medium", ("optics",))),
}
SMALL: dict[str, Parameter] = {
    "medium": Choices(("copper", "optics")),
    "lanes_count": Choices((1, 2, 4, 8)),
    "stacks_count": IntRange(1, 4),
    "reach_m": FloatRange(1.0, 3.0, step=1.0, when=When("medium", ("optics",))),
}


@dataclass(frozen=True)
class Toy:
    """Cost of a link: convex in the logs, coupled, with two rules. Row for row, so any split gives the same bits."""

    name: str = "toy"
    parameters: Mapping[str, Parameter] = field(default_factory=lambda: PARAMETERS)
    objectives: tuple[tuple[str, Direction], ...] = (("cost_usd", "minimize"),)
    batch_count: int = 16
    seed: int = 7
    sampler: str | Mapping[str, Any] = "auto"
    catalog_digest: str = "facts-1"
    code_version: str = "1.0"
    baselines: tuple[tuple[str, Mapping[str, Value]], ...] = ()
    fidelity: str = "model"
    sleep_s: float = 0.0
    poison: int | None = None  # a depth that kills the process that evaluates it
    hang: int | None = None  # a depth that never returns
    kill_file: str | None = None  # removed by the first evaluation, which then dies

    @property
    def space_text(self) -> str:
        return repr(self.parameters)

    @property
    def space_digest(self) -> str:
        return hashlib.sha256(self.space_text.encode()).hexdigest()

    @property
    def rules(self) -> tuple[str, ...]:
        return ("power", "area")

    def evaluate(self, rows: Sequence[Mapping[str, Value]]) -> Evaluated:
        self._misbehave(rows)
        values, constraints = self.screen(
            {name: np.array([row.get(name, _absent(p)) for row in rows]) for name, p in self.parameters.items()}
        )
        details = [
            json.dumps({"binds": "power" if c[0] > c[1] else "area", "bill": {"link_usd": v[0]}, "violations": {}})
            for v, c in zip(values.tolist(), constraints.tolist(), strict=True)
        ]
        return Evaluated([dict(row) for row in rows], values, constraints, details)

    def screen(self, columns: Mapping[str, np.ndarray[Any, Any]]) -> tuple[Array, Array]:
        def number(name: str, otherwise: float) -> Array:
            given = columns.get(name)
            return np.full(len(next(iter(columns.values()))), otherwise) if given is None else given.astype(float)

        medium = columns["medium"]
        optics = medium == "optics"
        reach = np.where(optics, np.nan_to_num(number("reach_m", 1.0), nan=1.0), 1.0)
        lanes, stacks = number("lanes_count", 1.0), number("stacks_count", 1.0)
        rate = number("rate_gbps", 100.0)
        window, depth = np.log10(number("window_bytes", 1e4)), np.log2(number("depth_count", 64.0))
        cost = (
            (np.log2(lanes) - 2.0) ** 2
            + 0.5 * (stacks - 5.0) ** 2
            + ((rate - 140.0) / 40.0) ** 2
            + 2.0 * (window - 4.4) ** 2
            + 0.5 * (depth - 6.0 - 0.3 * (stacks - 5.0)) ** 2
            + np.where(optics, 0.3 * (reach - 3.0) ** 2, np.where(medium == "copper", 1.0, 2.5))
            + 3.0
        )
        power = lanes * rate / 400.0 + stacks / 4.0 - 4.0
        area = stacks * lanes / 24.0 - 1.5
        latency = 10.0 / lanes + 4.0 / window + 0.2 * depth
        columns_of = {"cost_usd": cost, "latency_ns": latency, "rate_gbps": rate * lanes}
        return (
            np.stack([columns_of[metric] for metric, _ in self.objectives], axis=1),
            np.stack([power, area], axis=1),
        )

    def _misbehave(self, rows: Sequence[Mapping[str, Value]]) -> None:
        time.sleep(self.sleep_s)
        depths = [row.get("depth_count") for row in rows]
        if self.poison in depths and self.poison is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.hang in depths and self.hang is not None:
            time.sleep(3600.0)
        if self.kill_file is not None and Path(self.kill_file).exists():
            Path(self.kill_file).unlink(missing_ok=True)
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class ToyRecipe:
    """Rebuilds the problem wherever it is called."""

    toy: Toy = field(default_factory=Toy)

    def __call__(self) -> Toy:
        return replace(self.toy)


def recipe(**changes: Any) -> ToyRecipe:
    return ToyRecipe(Toy(**changes))


BASELINES: tuple[tuple[str, Mapping[str, Value]], ...] = (
    (
        "eight-way",
        {
            "medium": "copper",
            "lanes_count": 8,
            "rate_gbps": 112.0,
            "window_bytes": 65536.0,
            "stacks_count": 4,
            "depth_count": 64,
        },
    ),
    (
        "rack",
        {
            "medium": "optics",
            "lanes_count": 4,
            "rate_gbps": 100.0,
            "window_bytes": 16384.0,
            "stacks_count": 6,
            "depth_count": 128,
            "reach_m": 2.0,
        },
    ),
)


def _absent(parameter: Parameter) -> Value:
    return "" if isinstance(parameter, Choices) and isinstance(parameter.values[0], str) else float("nan")
