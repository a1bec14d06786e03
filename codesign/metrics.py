"""What one evaluation says about a batch: results, what binds, and why a candidate cannot be built."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from codesign.columns import seal
from codesign.units import Array


@dataclass(frozen=True, slots=True)
class MetricKind:
    """A result that may be an objective or be limited: its better direction, its value where no throughput exists."""

    better: Literal["minimize", "maximize"]
    worst: float
    meaning: str

    def stands_in(self, value: float) -> bool:
        """Whether a value is the worst one, which stands where there is none: never a price or a time to show.

        A share may honestly be all of it.
        """
        return self.better == "minimize" and self.worst > 1.0 and value >= self.worst


#: Every column of `Metrics` that a space may name. ``worst`` is fixed: it never depends on other trials.
METRICS: dict[str, MetricKind] = {
    "usd_per_mtok": MetricKind("minimize", 1e6, "total dollars over total output (trained) tokens of the mix"),
    "worst_usd_per_mtok": MetricKind("minimize", 1e6, "cost per million tokens of the dearest workload of the mix"),
    "cvar_usd_per_mtok": MetricKind(
        "minimize", 1e6, "mean cost per million tokens over the dearer half of the mix, by accelerator-hours"
    ),
    "tokens_per_s": MetricKind("maximize", 0.0, "output (trained) tokens per second and accelerator"),
    "energy_j_per_token": MetricKind("minimize", 1e9, "facility energy per output (trained) token"),
    "tpot_ms": MetricKind("minimize", 1e6, "time per output token, slowest serving workload"),
    "ttft_ms": MetricKind("minimize", 1e9, "time to first token, slowest serving workload"),
    "step_s": MetricKind("minimize", 1e6, "training step, slowest training workload"),
    "package_power_w": MetricKind("minimize", 1e5, "sustained power of the package, hungriest workload"),
    "facility_power_w": MetricKind("minimize", 1e6, "facility power per accelerator, mix"),
    "capex_usd": MetricKind("minimize", 1e8, "capital per accelerator, its share of network and facility included"),
    "usd_per_h": MetricKind("minimize", 1e6, "cost of an accelerator-hour"),
    "die_mm2": MetricKind("minimize", 1e5, "silicon per package"),
    "edge_use_frac": MetricKind("minimize", 1e3, "die edge asked for over edge usable"),
    "availability_frac": MetricKind("maximize", 0.0, "useful share of time after failures, checkpoints and restarts"),
    "sustained_loss_frac": MetricKind(
        "minimize", 1.0, "share of cost that would vanish if every link and rank were always at its mean"
    ),
}


def has_value(name: str, value: float) -> bool:
    """Whether a result of this name is one, not what stands in for it where a design delivers nothing.

    >>> has_value("usd_per_mtok", 0.2), has_value("usd_per_mtok", 1e6), has_value("sustained_loss_frac", 1.0)
    (True, False, True)
    """
    return name not in METRICS or not METRICS[name].stands_in(value)


@dataclass(frozen=True, slots=True)
class Rule:
    """A named reason why something cannot be built, with the unit of what it compares."""

    name: str
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True, eq=False)
class Violations:
    """Required against available per rule, and the graded excess: (required - available) / scale, feasible at <= 0."""

    rules: tuple[Rule, ...]
    required: NDArray[np.float64]  # (r, n)
    available: NDArray[np.float64]  # (r, n)
    excess: NDArray[np.float64]  # (r, n)

    @staticmethod
    def joined(*parts: "Violations") -> "Violations":
        """Rules of several parts one after the other."""
        return Violations(
            tuple(rule for part in parts for rule in part.rules),
            np.concatenate([part.required for part in parts]),
            np.concatenate([part.available for part in parts]),
            np.concatenate([part.excess for part in parts]),
        )

    def feasible(self) -> NDArray[np.bool_]:
        """(n,) rows that break no rule."""
        return np.asarray((self.excess <= 0.0).all(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class WorkloadResult:
    """One workload over a batch: its chosen mapping, its parts of time and what it delivers."""

    name: str
    kind: str
    time_name: str  # step_ns or tpot_ns: what the parts sum to
    time_ns: Array
    parts_ns: dict[str, Array]
    mapping: dict[str, Array]
    runner_up: dict[str, Array]
    runner_up_ratio: Array  # time or cost of the runner-up over that of the chosen mapping
    tokens_per_s: Array  # output or trained tokens per accelerator
    input_tokens_per_s: Array
    prefill_share_frac: Array  # share of busy time that prefill takes (0 in training)
    ttft_ns: Array
    layers_count: float
    passes_count: Array  # micro-batches of one rank in a step
    memory_bytes: dict[str, Array]
    memory_required_bytes: Array
    memory_available_bytes: Array
    mappings_count: int

    def __len__(self) -> int:
        return len(self.time_ns)


@dataclass(frozen=True, slots=True, eq=False)
class Metrics:
    """Columns of results, row for row with the candidates that produced them."""

    usd_per_mtok: Array
    worst_usd_per_mtok: Array
    cvar_usd_per_mtok: Array
    tokens_per_s: Array
    energy_j_per_token: Array
    tpot_ms: Array
    ttft_ms: Array
    step_s: Array
    package_power_w: Array
    facility_power_w: Array
    capex_usd: Array
    usd_per_h: Array
    die_mm2: Array
    edge_use_frac: Array
    availability_frac: Array
    sustained_loss_frac: Array

    def __post_init__(self) -> None:
        seal(self)

    def __len__(self) -> int:
        return len(self.usd_per_mtok)

    def columns(self, names: Sequence[str]) -> Array:
        """Stack the named columns into (n, k), in the order asked for."""
        return np.column_stack([getattr(self, name) for name in names])
