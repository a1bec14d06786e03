"""One candidate of an evaluation as the documented JSON: design, mapping, waterfall, bill, what binds, violations."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from codesign.columns import number_at
from codesign.metrics import Metrics, WorkloadResult
from codesign.units import Array, ms_from_ns

if TYPE_CHECKING:
    from codesign.evaluation import Evaluation

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """Cost and delivery of the mix and of every workload, (n,) each; goodput and utilisation are inside the prices."""

    usd_per_mtok: Array
    cvar_usd_per_mtok: Array
    tokens_per_s: Array
    workload_usd: list[Array]
    workload_output_usd: list[Array]
    workload_input_usd: list[Array]
    goodput: list[Array]
    utilisation: Array


#: Part of a waterfall -> the resource that would shorten it.
RESOURCE_OF = {
    "gemm": "compute", "attention": "compute", "head": "compute", "recompute": "memory capacity",
    "elementwise": "memory rate",
    "tensor": "scale-up network", "context": "scale-up network", "expert": "scale-up network", "launch": "host",
    "bubble": "pipeline depth", "transfer": "scale-out network", "data": "scale-out network",
    "optimizer": "memory rate", "offload": "second memory tier", "fixed": "host", "straggler": "variability",
    "throttle": "power",
    "projection": "memory rate",
    "core": "memory rate", "dense": "memory rate", "experts": "memory rate", "tensor_parallel": "scale-up network",
    "expert_parallel": "scale-up network", "pipeline": "pipeline depth", "gap": "host", "host": "host",
    "interference": "compute",
}  # fmt: skip


def details_of(found: "Evaluation", row: int) -> dict[str, Any]:
    """The JSON of one row."""
    metrics = {f.name: float(getattr(found.metrics, f.name)[row]) for f in fields(Metrics)}
    works = {
        r.name: _workload(r, row)
        | {
            "goodput_frac": float(found.totals.goodput[i][row]),
            "p99_ratio": float(found.sustained[i].p99_ratio[row]),
            "variability_frac": float(found.sustained[i].vanishing_frac[row]),
            "usd_per_mtok": float(found.totals.workload_usd[i][row]),
            "output_usd_per_mtok": float(found.totals.workload_output_usd[i][row]),
            "input_usd_per_mtok": float(found.totals.workload_input_usd[i][row]),
        }
        for i, r in enumerate(found.workloads)
    }
    return {
        "feasible": bool((found.violations.excess[:, row] <= 0.0).all()),
        "values": {name: metrics[name] for name in found.space.objectives},
        "metrics": metrics,
        "design": found.hardware.candidates.row(row),
        "platform": found.hardware.candidates.platform[row],
        "workloads": works,
        "bill": _bill(found, row),
        "delivery": _delivery(found, row),
        "binds": _binds(found, row),
        "violations": _violations(found, row),
        "links": {"scale_up": _link(found, row, "up"), "scale_out": _link(found, row, "out")},
    }


def _workload(result: WorkloadResult, row: int) -> dict[str, Any]:
    total = float(result.time_ns[row])
    return {
        "kind": result.kind,
        "time_name": result.time_name,
        "time_ms": float(ms_from_ns(total)),
        "mapping": {name: _whole(number_at(column, row)) for name, column in result.mapping.items()},
        "runner_up": {name: _whole(number_at(column, row)) for name, column in result.runner_up.items()},
        "runner_up_ratio": float(result.runner_up_ratio[row]),
        "mappings_tried": result.mappings_count,
        "waterfall": [
            {
                "part": name.removesuffix("_ns"),
                "ms": float(ms_from_ns(float(part[row]))),
                "share": float(part[row]) / total,
            }
            for name, part in result.parts_ns.items()
        ],
        "tokens_per_s": float(result.tokens_per_s[row]),
        "input_tokens_per_s": float(result.input_tokens_per_s[row]),
        "ttft_ms": float(ms_from_ns(float(result.ttft_ns[row]))),
        "memory_gb": {
            name.removesuffix("_bytes"): float(part[row]) / 1e9 for name, part in result.memory_bytes.items()
        },
    }


def _whole(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _bill(found: "Evaluation", row: int) -> list[dict[str, Any]]:
    """Items per hour and per million tokens of the mix; these sum to `usd_per_mtok` because they share its divisor."""
    hourly, capital = found.bill.hourly, found.bill.capital
    per_hour = {
        f.name.removesuffix("_usd_per_h"): number_at(getattr(hourly, f.name), row)
        for f in fields(hourly)
        if f.name != "total_usd_per_h"
    }
    total = number_at(hourly.total_usd_per_h, row)
    factor = float(found.metrics.usd_per_mtok[row]) / total if total else 0.0
    return [
        {
            "item": name,
            "usd_per_accelerator": number_at(getattr(capital, f"{name}_usd"), row)
            if hasattr(capital, f"{name}_usd")
            else 0.0,
            "usd_per_h": usd,
            "usd_per_mtok": usd * factor,
        }
        for name, usd in per_hour.items()
    ]


def _delivery(found: "Evaluation", row: int) -> dict[str, Any]:
    """What the price divides by: tokens while up, times availability, meaned over the mix, times the hours sold."""
    weights = {name: work.weight for name, work in found.space.workloads.items()}
    tokens_per_s, utilisation = float(found.totals.tokens_per_s[row]), float(found.totals.utilisation[row])
    return {
        "mix": {name: weight / sum(weights.values()) for name, weight in weights.items()},
        "tokens_per_s": tokens_per_s,
        "utilisation_frac": utilisation,
        "tokens_per_h": SECONDS_PER_HOUR * tokens_per_s * utilisation,
    }


def _binds(found: "Evaluation", row: int) -> dict[str, Any]:
    """Resources by their share of time, over the mix; what is broken or nearly so comes first."""
    broken = [v["rule"] for v in _violations(found, row)]
    shares: dict[str, float] = {}
    weights = [work.weight for work in found.space.workloads.values()]
    for result, weight in zip(found.workloads, weights, strict=True):
        for name, part in result.parts_ns.items():
            resource = RESOURCE_OF[name.removesuffix("_ns")]
            share = float(part[row]) / float(result.time_ns[row]) * weight / sum(weights)
            shares[resource] = shares.get(resource, 0.0) + share
    order = sorted(shares, key=lambda name: -shares[name])
    names = [*(f"rule {rule}" for rule in broken), *order]
    return {"now": names[0], "next": names[1] if len(names) > 1 else "", "shares": {n: shares[n] for n in order}}


def _violations(found: "Evaluation", row: int) -> list[dict[str, Any]]:
    v = found.violations
    return [
        {
            "rule": rule.name,
            "required": float(v.required[i, row]),
            "available": float(v.available[i, row]),
            "unit": rule.unit,
            "excess": float(v.excess[i, row]),
            "workload": rule.name.split(":")[0] if rule.name.split(":")[0] in found.space.workloads else "",
            "meaning": rule.meaning,
        }
        for i, rule in enumerate(v.rules)
        if v.excess[i, row] > 0.0
    ]


def _link(found: "Evaluation", row: int, which: str) -> dict[str, float]:
    link = getattr(found.hardware.own, which)
    columns = link.columns()
    wanted = ("raw_rate_gbps", "goodput_gbps", "insertion_loss_db", "margin_db", "pre_fec_ber", "flit_loss_prob",
              "base_ns", "p999_ns", "buffer_need_bytes", "energy_pj_per_bit", "failure_fit")  # fmt: skip
    return {name: number_at(columns[name], row) for name in wanted if name in columns}
