"""The rules a design must keep, named and graded: what is required, what is available, and by how much it is missed."""

from collections.abc import Mapping

import numpy as np

from codesign.candidates import Candidates
from codesign.catalog import Catalog
from codesign.hardware import Hardware, product_load
from codesign.jobs import columned
from codesign.metrics import METRICS, Metrics, Rule, Violations, WorkloadResult
from codesign.model.chip.power import package_w
from codesign.model.link.chain import Link
from codesign.networks import Networks
from codesign.space import Serving, Space, Training
from codesign.space.schema import Limit
from codesign.units import Array, Numeric, ms_from_ns

PHYSICAL: tuple[Rule, ...] = (
    Rule("memory_height", "count", "dies in a stack against what the memory allows"),
    Rule("memory_pin_rate", "Gb/s", "pin rate against what the memory allows"),
    Rule("scale_up_payload", "byte", "payload against the largest packet of the protocol"),
    Rule("scale_out_payload", "byte", "payload against the largest packet of the protocol"),
    Rule("scale_up_reach", "m", "cable length against what the medium reaches"),
    Rule("scale_up_channel", "dB", "SNR against what the code needs for its loss target"),
    Rule("scale_up_symbol_rate", "GBd", "symbol rate against the fastest the SerDes noise budget was fitted to"),
    Rule("scale_out_reach", "m", "cable length against what the medium reaches"),
    Rule("scale_out_channel", "dB", "SNR against what the code needs for its loss target"),
    Rule("scale_out_symbol_rate", "GBd", "symbol rate against the fastest the SerDes noise budget was fitted to"),
    Rule("scale_up_radix", "count", "accelerators of the domain against what the switches connect"),
    Rule("scale_out_radix", "count", "accelerators of the job against what the switches connect"),
    Rule("reticle", "mm2", "largest die against the reticle"),
    Rule("die_edge", "mm", "edge of the die that carries the PHYs against its usable perimeter"),
    Rule("package_power", "W", "power of a long 16-bit product at the lowest clock against the power cap"),
    Rule("cooling", "W", "power cap against what the cooling takes away"),
)


def rules_of(space: Space) -> tuple[Rule, ...]:
    """All rules of a space, in the order of the constraints its trials store."""
    levels: list[Rule] = []
    for name, work in space.workloads.items():
        levels.append(Rule(f"{name}:memory", "byte", "memory of the fullest rank against its capacity"))
        if isinstance(work, Serving):
            levels.append(Rule(f"{name}:tpot", "ms", "time per output token against the service level"))
            levels.append(Rule(f"{name}:ttft", "ms", "time to the first token against the service level"))
    limits = [Rule(f"limit:{name}", "", METRICS[name].meaning) for name in space.constraints]
    return (*PHYSICAL, *levels, *limits)


def physical(hardware: Hardware, nets: Networks, catalog: Catalog) -> Violations:
    """The rules that need no workload."""
    c, own = hardware.candidates, hardware.own
    kinds = c.words("memory_kind")
    height = np.array([catalog.value("memory", kind, "height_limit_count") for kind in kinds])
    pin = np.array([catalog.value("memory", kind, "pin_rate_limit_gbps") for kind in kinds])
    pairs: list[tuple[Numeric, Numeric]] = [
        (c.numbers("memory_height_count"), height),
        (c.numbers("memory_pin_rate_gbps"), pin),
        *(
            _payload(c.numbers(f"{p}_payload_bytes"), c.words(f"{p}_protocol"), catalog)
            for p in ("scale_up", "scale_out")
        ),
        *_line(own.up, hardware.length_m("scale_up"), catalog),
        *_line(own.out, hardware.length_m("scale_out"), catalog),
        (c.numbers("scale_up_domain_count"), nets.up.capacity_count),
        (nets.out.capacity_count * (1.0 + nets.out.radix_excess_ratio), nets.out.capacity_count),
        (own.chip.reticle_required_mm2, own.chip.reticle_available_mm2),
        (own.chip.edge_required_mm, own.chip.edge_available_mm),
        (_floor_power(hardware), own.power.power_cap_w),
        (own.power.power_cap_w, own.power.cooling_cap_w),
    ]
    return graded(PHYSICAL, pairs, len(hardware))


def link_violations(prefix: str, candidates: Candidates, found: Link, length_m: Array, catalog: Catalog) -> Violations:
    """The rules of one network's links alone, at the length they were worked out for."""
    payload = _payload(candidates.numbers(f"{prefix}_payload_bytes"), candidates.words(f"{prefix}_protocol"), catalog)
    names = [f"{prefix}_{part}" for part in ("payload", "reach", "channel", "symbol_rate")]
    rules = tuple(next(rule for rule in PHYSICAL if rule.name == name) for name in names)
    return graded(rules, [payload, *_line(found, length_m, catalog)], len(candidates))


def _line(found: Link, length_m: Array, catalog: Catalog) -> list[tuple[Numeric, Numeric]]:
    """Length, signal-to-noise ratio and symbol rate of a link: what it needs and what it has."""
    needed_db = found.signal.required_snr_db
    return [
        (length_m, length_m - found.reach_excess_m),
        (needed_db, needed_db - found.missing_db),
        (2.0 * found.signal.nyquist_ghz, catalog.constant("channel", "surrogate", "fastest_symbol_ghz")),
    ]


def _payload(payload: Array, protocols: list[str], catalog: Catalog) -> tuple[Array, Array]:
    most = {name: catalog.value("protocols", name, "max_payload_bytes") for name in dict.fromkeys(protocols)}
    return payload, np.array([most[name] for name in protocols])


def _floor_power(hardware: Hardware) -> Numeric:
    """Power of a long product at the lowest clock: above the cap no clock fits."""
    own = hardware.own
    load = product_load(hardware.catalog, own.chip, own.memory, own.up, own.up_ports_count)
    return package_w(own.power, load, own.power.clock_floor_frac)


def workload_rules(result: WorkloadResult, work: Training | Serving) -> Violations:
    """Memory of the chosen mapping, and the service levels of a serving workload."""
    rules = [Rule(f"{result.name}:memory", "byte", "memory of the fullest rank against its capacity")]
    pairs: list[tuple[Numeric, Numeric]] = [(result.memory_required_bytes, result.memory_available_bytes)]
    if isinstance(work, Serving):
        rules.append(Rule(f"{result.name}:tpot", "ms", "time per output token against the service level"))
        rules.append(Rule(f"{result.name}:ttft", "ms", "time to the first token against the service level"))
        pairs.append((ms_from_ns(result.time_ns), work.tpot_ms))
        pairs.append((ms_from_ns(result.ttft_ns), work.ttft_ms))
    return graded(tuple(rules), pairs, len(result))


def limit_violations(limits: Mapping[str, Limit], metrics: Metrics) -> Violations:
    """What a space limits by hand."""
    rules: list[Rule] = []
    pairs: list[tuple[Numeric, Numeric]] = []
    for name, limit in limits.items():
        value = getattr(metrics, name)
        rules.append(Rule(f"limit:{name}", "", METRICS[name].meaning))
        if limit.at_most is not None:
            pairs.append((value, limit.at_most))
        elif limit.at_least is not None:  # the schema asks for exactly one
            pairs.append((limit.at_least, value))
    return graded(tuple(rules), pairs, len(metrics))


def graded(rules: tuple[Rule, ...], pairs: list[tuple[Numeric, Numeric]], count: int) -> Violations:
    """Excess relative to what is available: 0 at the limit, 1 at twice of it; bounded so that it stays finite."""
    required = np.array([columned(r, count) for r, _ in pairs]).reshape(len(pairs), count)
    available = np.array([columned(a, count) for _, a in pairs]).reshape(len(pairs), count)
    scale = np.maximum(np.abs(available), 1e-9)
    excess = np.clip((required - available) / scale, -1.0, 1e6)
    return Violations(rules, required, available, np.where(np.abs(excess) < 1e-9, 0.0, excess))
