"""Fit all-reduce as serving engines call it: low-latency kernels, their size limits, in-switch reduction, host launch.

One set per architecture (racks apart: another host launches them) and engine. The size limits are policies of the
engines; they are found on a coarse grid, the continuous constants by least squares at each grid point.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from scipy.optimize import least_squares

from codesign.cases.fit_collectives import line_rates_gbps
from codesign.cases.rows import CaseRows, read_rows
from codesign.catalog import Catalog
from codesign.catalog.architectures import lineage
from codesign.model.fabric.collectives import NEVER_NS, UNLIMITED_BYTES, Fabric, Tier, all_reduce_ns
from codesign.resources import case_data
from codesign.units import Array

#: constant -> (start, lower bound, upper bound)
PARAMETERS: dict[str, tuple[float, float, float]] = {
    "fast_launch_ns": (4500.0, 500.0, 15000.0),
    "fast_hop_ns": (60.0, 0.0, 2000.0),
    "fast_rate_frac": (0.6, 0.1, 1.0),
    "fast_barrier_ns": (2000.0, 0.0, 20000.0),
    "launch_ns": (8000.0, 2000.0, 30000.0),
    "hop_ns": (1000.0, 50.0, 4000.0),
    "rate_frac": (0.8, 0.3, 1.0),
    "handover_ns": (3000.0, 0.0, 60000.0),
    "handover_hop_ns": (500.0, 0.0, 12000.0),
    "switch_launch_ns": (20000.0, 2000.0, 300000.0),
    "switch_rate_ratio": (0.7, 0.2, 1.2),
    "host_fast_ns": (20000.0, 5000.0, 60000.0),
    "host_library_ns": (30000.0, 5000.0, 100000.0),
}
#: what measurements of eight accelerators on a mesh can tell
MESH_CONSTANTS = ("fast_launch_ns", "fast_rate_frac", "fast_barrier_ns")
OPEN_POLICY = {
    "fast_one_shot_bytes": UNLIMITED_BYTES,
    "fast_one_shot_power_ratio": 0.0,
    "fast_two_shot_bytes": UNLIMITED_BYTES,
    "switch_start_bytes": UNLIMITED_BYTES,
    "fast_domain_count": 1e9,
    "hop_ns": 1e6,  # rings never compete at these sizes
}
NONE_BYTES = 1.0  # a limit below every message: the kernel is never used
#: policy -> values tried
POLICIES: dict[str, tuple[float, ...]] = {
    "fast_one_shot_bytes": (2.0**20.5, 2.0**21.5, 2.0**22.5, 2.0**23.5, UNLIMITED_BYTES),
    "fast_one_shot_power_ratio": (0.0, 1.75, 2.4),
    "fast_two_shot_bytes": (NONE_BYTES, 2.0**22.5, 2.0**23.5, UNLIMITED_BYTES),
    "switch_start_bytes": (0.0, 2.0**20.5),
}
RACK_DOMAIN_COUNT = 8.0  # a domain beyond eight is a rack of many hosts
TRAY_COUNT = 4.0  # accelerators that map each other's memory on one host of such a rack
TRAY_ENGINES = ("vllm", "sglang")  # whose kernels map memory on one host only


def engine_of(kernel_source: str, backend: str) -> str:
    """Serving engine of a row: the words before the kernel's own name."""
    word = f"{kernel_source} {backend}".lower()
    if "mnnvl" in word:
        return "mnnvl"
    return next((name for name in ("sglang", "vllm", "trtllm") if name in word), "")


def architecture_of(catalog: Catalog, accelerator: str) -> str:
    """Architecture whose constants a part uses, with ``_rack`` where its domain spans many hosts."""
    facts = catalog.technologies("accelerators")[accelerator]
    domain = facts["scale_up_domain_count"].value if "scale_up_domain_count" in facts else 1.0
    return lineage(accelerator)[-1] + ("_rack" if domain > RACK_DOMAIN_COUNT else "")


def tier_of(ring: Mapping[str, float], own: Mapping[str, float], line_gbps: Array, eager: Array) -> Tier:
    """A scale-up tier: the library's constants, then the engine's own on top."""
    values = {**ring, **own}
    shares = {"rate_frac", "fast_rate_frac"}
    rest = {name: value for name, value in values.items() if name not in shares and not name.startswith("host_")}
    return Tier(
        rate_gbps=line_gbps * values["rate_frac"],
        reduction_flag=1.0,
        fast_rate_gbps=line_gbps * values["fast_rate_frac"],
        domain_count=1e9,
        contention_ratio=1.0,
        host_fast_ns=eager * values["host_fast_ns"],
        host_library_ns=eager * values["host_library_ns"],
        **rest,
    )


def times_ns(rows: CaseRows, tier: Tier) -> Array:
    """Model times of the rows on one scale-up tier."""
    message, ranks = rows.numbers("message_bytes"), rows.numbers("num_gpus")
    return np.asarray(all_reduce_ns(message, ranks, ranks, Fabric(tier, tier)))


def eager_of(rows: CaseRows) -> Array:
    """1 where the host launches each kernel, 0 where a captured graph does."""
    return np.array([float("eager" in word) for word in rows.text("backend")])


def policies(reach_count: float) -> Iterator[dict[str, float]]:
    """Every combination of size limits, for kernels that map the memory of so many ranks."""
    for point in itertools.product(*POLICIES.values()):
        yield dict(zip(POLICIES, point, strict=True)) | {"fast_domain_count": reach_count}


def fit_one(
    rows: CaseRows, ring: Mapping[str, float], catalog: Catalog, tried: Iterable[dict[str, float]]
) -> dict[str, float]:
    """Constants of one engine on one architecture, with the best of the policies tried."""
    line, eager, measured = line_rates_gbps(rows, catalog), eager_of(rows), 1e3 * rows.numbers("latency_us")
    names = list(PARAMETERS)
    start, low, high = (np.array([PARAMETERS[n][i] for n in names]) for i in range(3))
    best_cost, best = np.inf, dict[str, float]()
    for policy in tried:

        def residual(x: Array, policy: dict[str, float] = policy) -> Array:
            own = dict(zip(names, x, strict=True)) | policy
            return np.asarray(np.log(times_ns(rows, tier_of(ring, own, line, eager)) / measured))

        found = least_squares(
            residual, start, bounds=(low, high), x_scale=start, loss="soft_l1", f_scale=0.05, max_nfev=40
        )
        if found.cost < 0.999 * best_cost:
            best_cost, best = found.cost, dict(zip(names, map(float, found.x), strict=True)) | policy
    return best


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Constants per architecture and engine; the library's own constants must be in the catalog."""
    (rows,) = read_rows(case_data() / "kernels" / "fast_allreduce.csv")
    engines = [engine_of(k, b) for k, b in zip(rows.text("kernel_source"), rows.text("backend"), strict=True)]
    parts = [architecture_of(catalog, name) for name in rows.text("accelerator")]
    out = {}
    for part, engine in sorted(set(zip(parts, engines, strict=True))):
        chosen = [i for i, pair in enumerate(zip(parts, engines, strict=True)) if pair == (part, engine)]
        ring = ring_constants(catalog, part.removesuffix("_rack"))
        tray = part.endswith("_rack") and engine in TRAY_ENGINES
        tried = policies(TRAY_COUNT if tray else 1e9)
        out[f"{part}_{engine}"] = fit_one(rows.pick(chosen), ring, catalog, tried)
    return out | fit_meshes(catalog)


def _mesh_rows() -> CaseRows:
    """Low-latency kernels measured on full meshes, in the columns of the engine sweep."""
    rows = next(part for part in read_rows(case_data() / "collectives.csv") if part.kind == "collective")
    mine = rows.pick([i for i, name in enumerate(rows.text("library")) if name.startswith("vLLM custom")])
    columns = {
        "case": mine.text("case"),
        "accelerator": mine.text("accelerator"),
        "message_bytes": mine.text("msg_bytes"),
        "num_gpus": mine.text("n_accel"),
        "latency_us": mine.text("time_us"),
        "engine": ["vllm_tuned" if "tuned" in name else "vllm" for name in mine.text("library")],
    }
    return CaseRows(mine.file, mine.kind, columns)


def fit_meshes(catalog: Catalog) -> dict[str, dict[str, float]]:
    """The same constants on full meshes, before and after the engine tuned its kernel."""
    rows, out = _mesh_rows(), {}
    for part, engine in sorted(
        {(lineage(a)[1], e) for a, e in zip(rows.text("accelerator"), rows.text("engine"), strict=True)}
    ):
        mine = [
            i
            for i in range(len(rows))
            if (lineage(rows.text("accelerator")[i])[1], rows.text("engine")[i]) == (part, engine)
        ]
        found = fit_one(rows.pick(mine), ring_constants(catalog, "hopper"), catalog, [OPEN_POLICY])
        out[f"{part}_{engine}"] = {name: found[name] for name in MESH_CONSTANTS}
    return out


def ring_constants(catalog: Catalog, architecture: str) -> dict[str, float]:
    """The library's constants of an architecture."""
    return {name: constant.value for name, constant in catalog.constants["collectives"][architecture].items()}


__all__ = ["NEVER_NS", "PARAMETERS", "POLICIES", "architecture_of", "engine_of", "fit", "tier_of", "times_ns"]
