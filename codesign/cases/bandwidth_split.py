"""Best split of a fixed bandwidth over the dimensions of a network: shortest step, or most work per dollar."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from codesign.model.fabric.algorithms import nested_gather_bytes, nested_reduce_bytes
from codesign.units import Array


@dataclass(frozen=True)
class Collective:
    """One collective of a step and the ranks it spans along each dimension (1: it does not use the dimension)."""

    kind: str  # all_reduce or all_gather
    message_bytes: float
    spans: tuple[int, ...]

    def traffic_bytes(self) -> Array:
        """Bytes per rank in each dimension."""
        out = []
        for d, span in enumerate(self.spans):
            if self.kind == "all_reduce":
                inner = float(np.prod(self.spans[:d]))
                out.append(float(nested_reduce_bytes(self.message_bytes, float(span), inner)))
            else:
                outer = float(np.prod(self.spans[d + 1 :]))
                out.append(float(nested_gather_bytes(self.message_bytes, float(span), outer)))
        return np.array(out)


@dataclass(frozen=True)
class Split:
    """Bandwidth per dimension and what it gives."""

    rates_gbytes_per_s: Array
    step_ms: float
    cost_usd: float


def step_ms(compute_ms: float, traffic: Array, rates_gbytes_per_s: Array) -> float:
    """Compute, then every collective at the pace of its slowest dimension; chunks keep all dimensions busy."""
    return compute_ms + float((traffic / rates_gbytes_per_s / 1e6).max(axis=1).sum())


def best_split(
    compute_ms: float,
    collectives: Sequence[Collective],
    total_gbytes_per_s: float,
    prices_usd: Sequence[float],
    per_cost: bool = False,
) -> Split:
    """The split of a total that minimises the step, or step times cost.

    Prices are per GB/s of each dimension, for the whole system. The problem is convex in the shares; the times of the
    collectives are variables of their own, bounded below by each dimension.
    """
    traffic = np.array([c.traffic_bytes() for c in collectives])
    traffic = traffic / total_gbytes_per_s / 1e6  # ms at the whole bandwidth
    dims, count = traffic.shape[1], traffic.shape[0]
    prices = np.asarray(prices_usd, dtype=np.float64)

    def times(x: Array) -> float:
        return compute_ms + float(x[dims:].sum())

    def objective(x: Array) -> float:
        return float(np.log(times(x)) + (np.log(float((prices * x[:dims]).sum())) if per_cost else 0.0))

    rows, columns = np.nonzero(traffic > 0.0)
    need = traffic[rows, columns]
    constraints = [
        {"type": "eq", "fun": lambda x: x[:dims].sum() - 1.0},
        {"type": "ineq", "fun": lambda x: np.log(x[dims + rows] * x[columns] / need)},
    ]
    best, best_value = np.full(dims + count, np.nan), np.inf
    for skew in (0.25, 0.5, 1.0):  # the second objective is quasi-convex: starts along the traffic's own proportion
        share = np.maximum(traffic.sum(axis=0), 1e-9) ** skew
        share /= share.sum()
        start = np.concatenate([share, 1.05 * (traffic / share).max(axis=1)])
        found = minimize(
            objective, start, method="SLSQP", bounds=[(1e-6, None)] * (dims + count), constraints=constraints,
            options={"ftol": 1e-13, "maxiter": 1000},
        )  # fmt: skip
        shares = np.maximum(found.x[:dims], 1e-9) / float(np.maximum(found.x[:dims], 1e-9).sum())
        point = np.concatenate([shares, (traffic / shares).max(axis=1)])
        if objective(point) < best_value:
            best, best_value = point, objective(point)
    rates = best[:dims] * total_gbytes_per_s
    return Split(rates, times(best), float((prices * rates).sum()))


def equal_split(
    compute_ms: float, collectives: Sequence[Collective], total_gbytes_per_s: float, prices_usd: Sequence[float]
) -> Split:
    """The same share for every dimension."""
    traffic = np.array([c.traffic_bytes() for c in collectives])
    rates = np.full(traffic.shape[1], total_gbytes_per_s / traffic.shape[1])
    return Split(rates, step_ms(compute_ms, traffic, rates), float((np.asarray(prices_usd) * rates).sum()))
