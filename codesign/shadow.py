"""What binds next, in numbers: every resource a little better at no cost, the design mapped again.

The perturbed machines are further rows of the same batch, so the answer costs about one evaluation. Only what runs is
perturbed; what is paid for (silicon, memory, links, switches, supply and cooling) stays that of the design, and the
electricity is that of what runs.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from codesign.candidates import Candidates
from codesign.catalog import Catalog
from codesign.evaluation import Evaluation, evaluate_machines, largest_job
from codesign.hardware import Hardware, Parts, hardware, product_load
from codesign.model.chip.power import throttled_clock_frac
from codesign.space import Serving, Space
from codesign.units import Array

SHARE = 0.10  # more rate or capacity, less latency


def _parts(change: Callable[[Parts, Array], Parts]) -> Callable[[Hardware, Array], Hardware]:
    return lambda machines, ratio: replace(machines, own=change(machines.own, ratio))


def _compute(p: Parts, ratio: Array) -> Parts:
    names = [f.name for f in fields(p.chip) if f.name.endswith("_peak_gflops")]
    return replace(p, chip=replace(p.chip, **{name: getattr(p.chip, name) * ratio for name in names}))


def _memory(name: str) -> Callable[[Parts, Array], Parts]:
    return lambda p, ratio: replace(p, memory=replace(p.memory, **{name: getattr(p.memory, name) * ratio}))


def _second(p: Parts, ratio: Array) -> Parts:
    rate = np.asarray(p.memory.second_rate_gbps) * ratio
    return replace(p, second_tier_bytes=p.second_tier_bytes * ratio, memory=replace(p.memory, second_rate_gbps=rate))


def _latency(name: str) -> Callable[[Parts, Array], Parts]:
    def change(p: Parts, ratio: Array) -> Parts:
        link = getattr(p, name)
        nearer = replace(link.coding, base_ns=link.coding.base_ns * (2.0 - ratio))
        changed: dict[str, Any] = {name: replace(link, coding=nearer)}
        return replace(p, **changed)

    return change


def _power(machines: Hardware, ratio: Array) -> Hardware:
    """More watts under both caps, and the clock that they leave."""
    p = machines.own
    caps = {name: getattr(p.power, name) * ratio for name in ("power_cap_w", "cooling_cap_w")}
    power = replace(p.power, **caps)
    load = product_load(machines.catalog, p.chip, p.memory, p.up, p.up_ports_count)
    clock = np.where(ratio > 1.0, throttled_clock_frac(power, load), p.clock_frac)
    return replace(machines, own=replace(p, power=power, clock_frac=clock))


#: Resource -> the hardware with that resource better by a ratio above one per row; watts come first, for the clock they
#: leave is that of the design's own dies, not of faster ones.
RESOURCES: Mapping[str, Callable[[Hardware, Array], Hardware]] = {
    "power": _power,
    "compute peak": _parts(_compute),
    "memory rate": _parts(_memory("peak_rate_gbps")),
    "memory capacity": _parts(_memory("capacity_bytes")),
    "scale-up rate": _parts(lambda p, ratio: replace(p, up_ports_count=p.up_ports_count * ratio)),
    "scale-up latency": _parts(_latency("up")),
    "scale-out rate": _parts(lambda p, ratio: replace(p, out_ports_count=p.out_ports_count * ratio)),
    "scale-out latency": _parts(_latency("out")),
    "second tier": _parts(_second),
    "host launch": lambda machines, ratio: replace(machines, host_ratio=machines.host_ratio * (2.0 - ratio)),
}


def perturbed(machines: Hardware, ratios: Mapping[str, Array]) -> Hardware:
    """Hardware with some resources better, each by its own ratio on every row."""
    for name in RESOURCES:
        if name in ratios:
            machines = RESOURCES[name](machines, ratios[name])
    return machines


def shadow(candidates: Candidates, space: Space, catalog: Catalog) -> tuple[Evaluation, list[list[dict[str, Any]]]]:
    """Evaluate designs, and what 10 % more of each resource at no cost would change of their cost per token.

    Returns:
        An evaluation whose first rows are the designs, in their order; and for every design
        ``{"resource", "change_pct"}`` in the order of what helps most.
    """
    count, width = len(candidates), 1 + len(RESOURCES)
    rows = [i for _ in range(width) for i in range(count)]
    paid = hardware(candidates.part(rows), catalog, largest_job(space))
    which = np.repeat(np.arange(width), count)
    ratios = {name: np.where(which == k + 1, 1.0 + SHARE, 1.0) for k, name in enumerate(RESOURCES)}
    found = evaluate_machines(perturbed(paid, ratios), space, catalog, billed=paid)
    usd = np.asarray(found.metrics.usd_per_mtok).reshape(width, count)
    change = 100.0 * (usd[1:] / usd[0] - 1.0)
    return found, [_listed(change[:, i]) for i in range(count)]


def _listed(change_pct: Array) -> list[dict[str, Any]]:
    order = sorted(zip(RESOURCES, change_pct, strict=True), key=lambda entry: entry[1])
    return [{"resource": name, "change_pct": float(change)} for name, change in order]


def bound_by(binds: Mapping[str, Any], elasticities: list[dict[str, Any]]) -> dict[str, Any]:
    """What binds, told by what would lower the cost most; the shares of time stay beside it.

    >>> bound_by({"now": "memory", "next": "compute"}, [{"resource": "scale-up rate", "change_pct": -2.0}])["now"]
    'scale-up rate'
    """
    helping = [entry["resource"] for entry in elasticities if entry["change_pct"] < 0.0]
    named = dict(zip(("now", "next"), helping, strict=False))
    return {**binds, **named, "elasticities": elasticities}


def explained(trial: Mapping[str, Any], space: Space, elasticities: list[dict[str, Any]]) -> dict[str, Any]:
    """What every page and display says of a trial beyond what is stored with it.

    What binds, told by what would lower the cost most, and the mode that was asked of each serving workload, for a
    search that may try two pools may find one.
    """
    modes = {name: work.mode for name, work in space.workloads.items() if isinstance(work, Serving)}
    works = {
        name: {**work, "mode": modes[name]} if name in modes else work for name, work in trial["workloads"].items()
    }
    return {**trial, "workloads": works, "binds": bound_by(trial["binds"], elasticities)}
