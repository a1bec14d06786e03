"""The whole evaluation on one page. Read this file first.

space -> candidates -> hardware (link, memory, chip, power, fabric) -> workloads at their best mapping -> watts and bill
-> metrics, violations and what binds. Every step works on the whole batch; the only loop is over workloads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codesign.availability import Sustained, sustained
from codesign.billing import Watts, activity_of, bill_of, fed_as, scenario_of, throttled, watts_of
from codesign.candidates import Candidates, space_faults
from codesign.catalog import Catalog
from codesign.catalog.models import load_models
from codesign.cost.bill import Bill
from codesign.cost.ownership import MixCosts, cvar_usd_per_mtok, shared_usd_per_mtok, token_usd_per_mtok
from codesign.details import Totals, details_of
from codesign.errors import nearest
from codesign.hardware import Hardware, hardware
from codesign.jobs import columned, has_layout, may_offload, serving_result, training_result
from codesign.machines import ACTIVATION_BYTES
from codesign.metrics import METRICS, Metrics, Violations, WorkloadResult
from codesign.model.chip.power import allowed_w
from codesign.networks import Networks
from codesign.pinned import mapping_faults
from codesign.rules import limit_violations, physical, rules_of, workload_rules
from codesign.space import Fault, Space, Training, refuse
from codesign.units import Array, ms_from_ns, s_from_ns

__all__ = ["Evaluation", "check_question", "evaluate", "evaluate_machines", "physical_violations", "rules_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Everything one evaluation found, row for row with its candidates."""

    space: Space
    hardware: Hardware
    networks: Networks
    workloads: tuple[WorkloadResult, ...]
    watts: tuple[Watts, ...]
    sustained: tuple[Sustained, ...]
    bill: Bill
    metrics: Metrics
    totals: Totals
    violations: Violations

    def details(self, row: int) -> dict[str, Any]:
        """One candidate as the documented JSON (docs/cli.md)."""
        return details_of(self, row)


def evaluate(candidates: Candidates, space: Space, catalog: Catalog) -> Evaluation:
    """Cost per token of every candidate at its best mapping, with everything that explains it."""
    return evaluate_machines(hardware(candidates, catalog, largest_job(space)), space, catalog)


def evaluate_machines(machines: Hardware, space: Space, catalog: Catalog, billed: Hardware | None = None) -> Evaluation:
    """The same from hardware; ``billed`` is what is paid for where that is not what runs (`codesign.shadow`)."""
    paid = machines if billed is None else billed
    fed = machines if billed is None else fed_as(paid, machines)
    nets = paid.nets

    offload = may_offload(space)
    mapped = tuple(
        training_result(name, work, machines, _pinned(space, name), catalog, offload)
        if isinstance(work, Training)
        else serving_result(name, work, machines, _pinned(space, name), catalog)
        for name, work in space.workloads.items()
    )
    results = tuple(throttled(result, fed, work) for work, result in zip(space.workloads.values(), mapped, strict=True))
    held = tuple(
        sustained(work, result, paid, nets, catalog)
        for work, result in zip(space.workloads.values(), results, strict=True)
    )

    given_w = allowed_w(fed.own.power) - allowed_w(paid.own.power)
    watts = tuple(
        watts_of(activity_of(result, paid, work), fed, catalog, given_w)
        for work, result in zip(space.workloads.values(), results, strict=True)
    )
    mixed = mixed_watts(watts, space)
    costs, inputs = bill_of(paid, nets, mixed, scenario_of(space.scenario), catalog)

    totals = _totals(space, results, [h.goodput_frac for h in held], costs, np.asarray(inputs.energy.utilisation_frac))
    metrics = _metrics(paid, results, watts, costs, totals, held)
    violations = Violations.joined(
        physical(paid, nets, catalog),
        *(workload_rules(result, space.workloads[result.name]) for result in results),
        limit_violations(space.constraints, metrics),
    )
    return Evaluation(space, machines, nets, results, watts, held, costs, metrics, totals, violations)


def largest_job(space: Space) -> float:
    """Accelerators of the largest workload: what the networks are sized for."""
    return float(max(work.accelerators_count for work in space.workloads.values()))


def physical_violations(candidates: Candidates, space: Space, catalog: Catalog) -> Violations:
    """Only the rules that need no workload: what repair works on."""
    machines = hardware(candidates, catalog, largest_job(space))
    return physical(machines, machines.nets, catalog)


def check_question(space: Space, catalog: Catalog, more: Sequence[Fault] = ()) -> None:
    """Refuse a space that names or decides what the catalog or the model does not have.

    Args:
        space: What is asked.
        catalog: Facts.
        more: Faults that the caller found.

    Raises:
        SpaceError: file, line, key, what it got and what it wanted, of all faults at once.
    """
    refuse(space, [*space_faults(space, catalog), *_question_faults(space, catalog), *more])


def _question_faults(space: Space, catalog: Catalog) -> list[Fault]:
    faults = [fault for name in space.workloads for fault in _work_faults(space, name)]
    for kind in ("objectives", "constraints"):
        for name in getattr(space, kind):
            if name not in METRICS:
                faults.append(Fault((kind, name), f"no metric {name!r}{nearest(name, METRICS)}"))
    for name, direction in space.objectives.items():
        if name in METRICS and direction != METRICS[name].better:
            better = METRICS[name].better
            faults.append(Fault(("objectives", name), f"better when {better[:-1]}ed; wanted {better}, got {direction}"))
    prices, known = space.scenario.prices, catalog.technologies("scenarios")
    if prices not in known:
        faults.append(Fault(("scenario", "prices"), f"no scenario {prices!r}{nearest(prices, known)}"))
    return faults


def _work_faults(space: Space, name: str) -> list[Fault]:
    """Faults of one workload; its layouts are looked at only where the rest is sound."""
    work, at, faults = space.workloads[name], ("workloads", name), []
    if work.model not in load_models():
        faults.append(Fault((*at, "model"), f"no model {work.model!r}{nearest(work.model, load_models())}"))
    if work.precision not in ACTIVATION_BYTES:
        faults.append(
            Fault((*at, "precision"), f"no precision {work.precision!r}{nearest(work.precision, ACTIVATION_BYTES)}")
        )
    if faults:
        return faults
    pinned = _pinned(space, name)
    if pinned:
        return [Fault(("mapping", name, *fault.keys), fault.says) for fault in mapping_faults(work, pinned)]
    if isinstance(work, Training) and not has_layout(work):
        says = (
            f"no layout divides {work.global_batch_count} sequences over {work.accelerators_count} accelerators; "
            "try a power of two, or a divisor of the batch"
        )
        return [Fault(at, says)]
    return []


def _pinned(space: Space, name: str) -> dict[str, Any] | None:
    return None if space.mapping is None else space.mapping.get(name)


def mixed_watts(watts: tuple[Watts, ...], space: Space) -> Watts:
    """Power averaged over the mix by share of accelerator-hours; peak and idle are the machine's."""
    weights = [work.weight for work in space.workloads.values()]
    total = sum(weights)

    def mean(name: str) -> Array:
        out = getattr(watts[0], name) * (weights[0] / total)
        for one, weight in zip(watts[1:], weights[1:], strict=True):
            out = out + getattr(one, name) * (weight / total)
        return np.asarray(out)

    peak = watts[0].peak_w
    for one in watts[1:]:
        peak = np.maximum(peak, one.peak_w)
    return Watts(mean("package_w"), mean("board_w"), mean("idle_w"), peak)


def _totals(
    space: Space, results: tuple[WorkloadResult, ...], goodput: list[Array], costs: Bill, utilisation: Array
) -> Totals:
    """Cost per million tokens of every workload and of the mix: total dollars over total output (trained) tokens.

    A serving machine's cost is split between input and output tokens by the busy time of prefill and decode.
    """
    weights = [work.weight for work in space.workloads.values()]
    whole = sum(weights)
    per_h = columned(costs.hourly.total_usd_per_h, len(results[0]))
    usd = [
        columned(token_usd_per_mtok(per_h, r.tokens_per_s, utilisation, g), len(r))
        for r, g in zip(results, goodput, strict=True)
    ]
    output_only = [
        columned(shared_usd_per_mtok(per_h, 1.0 - r.prefill_share_frac, r.tokens_per_s, utilisation, g), len(r))
        for r, g in zip(results, goodput, strict=True)
    ]
    input_only = [
        columned(shared_usd_per_mtok(per_h, r.prefill_share_frac, r.input_tokens_per_s, utilisation, g), len(r))
        for r, g in zip(results, goodput, strict=True)
    ]
    tokens = results[0].tokens_per_s * goodput[0] * (weights[0] / whole)
    for r, g, weight in zip(results[1:], goodput[1:], weights[1:], strict=True):
        tokens = tokens + r.tokens_per_s * g * (weight / whole)
    mixed = columned(token_usd_per_mtok(per_h, tokens, utilisation, 1.0), len(tokens))
    worst = METRICS["usd_per_mtok"].worst
    own = [np.minimum(u, worst) for u in usd]
    return Totals(
        usd_per_mtok=np.minimum(mixed, worst),
        cvar_usd_per_mtok=np.asarray(cvar_usd_per_mtok(MixCosts(np.stack(own), np.array(weights)[:, None]))),
        tokens_per_s=tokens,
        workload_usd=own,
        workload_output_usd=[np.minimum(u, worst) for u in output_only],
        workload_input_usd=[np.minimum(u, worst) for u in input_only],
        goodput=goodput,
        utilisation=columned(utilisation, len(tokens)),
    )


def _metrics(
    machines: Hardware,
    results: tuple[WorkloadResult, ...],
    watts: tuple[Watts, ...],
    costs: Bill,
    totals: Totals,
    held: tuple[Sustained, ...],
) -> Metrics:
    count = len(machines)
    zero = np.zeros(count)

    def worst_of(columns: list[Array], default: Array) -> Array:
        out = default
        for column in columns:
            out = np.maximum(out, column)
        return out

    serving = [r for r in results if r.kind == "serving"]
    package = worst_of([w.package_w for w in watts], zero)
    facility = columned(costs.energy.average_w, count)
    availability = totals.goodput[0]
    for share in totals.goodput[1:]:
        availability = np.minimum(availability, share)
    own = machines.own.chip
    columns = {
        "usd_per_mtok": totals.usd_per_mtok,
        "worst_usd_per_mtok": worst_of(totals.workload_usd, zero),
        "cvar_usd_per_mtok": totals.cvar_usd_per_mtok,
        "tokens_per_s": totals.tokens_per_s,
        "energy_j_per_token": facility / np.maximum(totals.tokens_per_s, 1e-9),
        "tpot_ms": worst_of([np.asarray(ms_from_ns(r.time_ns)) for r in serving], zero),
        "ttft_ms": worst_of([np.asarray(ms_from_ns(r.ttft_ns)) for r in serving], zero),
        "step_s": worst_of([np.asarray(s_from_ns(r.time_ns)) for r in results if r.kind == "training"], zero),
        "package_power_w": package,
        "facility_power_w": facility,
        "capex_usd": columned(costs.capital.total_usd, count),
        "usd_per_h": columned(costs.hourly.total_usd_per_h, count),
        "die_mm2": columned(own.silicon_mm2, count),
        "edge_use_frac": columned(own.edge_required_mm / np.maximum(own.edge_available_mm, 1e-9), count),
        "availability_frac": availability,
        "sustained_loss_frac": worst_of([1.0 - h.goodput_frac * (1.0 - h.vanishing_frac) for h in held], zero),
    }
    return Metrics(**{name: _bounded(name, column) for name, column in columns.items()})


def _bounded(name: str, column: Array) -> Array:
    """Never beyond the fixed worst value of its metric: finite whatever the candidate."""
    worst = METRICS[name].worst
    return np.minimum(column, worst) if METRICS[name].better == "minimize" else np.maximum(column, worst)
