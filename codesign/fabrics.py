"""From accelerator, library and network names to the fabric that collectives read.

Line rates and domain sizes are the part's own facts. What a library reaches on them are fitted constants: those of the
part's architecture where it was measured (racks apart), else of the architecture it is most like, else pooled over all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

import numpy as np

from codesign.catalog import Catalog
from codesign.catalog.architectures import lineage
from codesign.errors import CatalogError, nearest
from codesign.model.fabric.collectives import NEVER_NS, UNLIMITED_BYTES, Exchange, Fabric, Tier
from codesign.units import Array, Numeric, gbps_from_gbytes_per_s

POOL = "generic"
HOST_COUNT = 8.0  # a larger domain is a rack of several hosts: other launches, memory mapped only within a tray
LIBRARIES = ("nccl", "nccl_ring", "trtllm", "vllm", "vllm_tuned", "sglang", "mnnvl")
NETWORKS = ("infiniband", "efa", "tcpxo")
Words = str | Sequence[str]


def architecture_names(catalog: Catalog, accelerator: str) -> tuple[str, ...]:
    """Groups of constants a part may use, nearest first; a rack's own group stands before its architecture's."""
    facts = catalog.technology("accelerators", accelerator)
    domain = facts["scale_up_domain_count"].value if "scale_up_domain_count" in facts else 1.0
    names: list[str] = []
    for name in lineage(accelerator):
        names += [f"{name}_rack", name] if domain > HOST_COUNT else [name]
    return (*names, POOL)


def fabric_of(
    catalog: Catalog,
    accelerators: Sequence[str],
    library: Words = "nccl",
    network: Words = "infiniband",
    exchange: Words = "deepep_ht",
    eager: bool | Sequence[bool] = False,
    domain_count: Sequence[float] | None = None,
    nic_gbps: Sequence[float] | None = None,
) -> Fabric:
    """Fabric columns of measured machines, one row per accelerator name.

    Args:
        catalog: Facts and fitted constants.
        accelerators: Names in accelerators.yaml.
        library: What runs the collectives: `LIBRARIES`, one word or one per row.
        network: Class of the scale-out network: `NETWORKS`, one word or one per row.
        exchange: Expert exchange kernel (deepep_ht, deepep_ll, nvlinktwosided, ...), one word or one per row.
        eager: The host launches each kernel instead of a captured graph; one or one per row.
        domain_count: Accelerators per scale-up domain, where they differ from the part's fact (smaller partitions).
        nic_gbps: Scale-out rate per accelerator and direction, where it differs from the part's fact.

    Raises:
        CatalogError: an accelerator, library or network is unknown, or the part has no scale-up rate.
    """
    count = len(accelerators)
    libraries, networks, kernels = (_words(w, count) for w in (library, network, exchange))
    launched = [eager] * count if isinstance(eager, bool) else list(eager)
    choices = zip(accelerators, libraries, networks, kernels, launched, strict=True)
    known: dict[tuple[str, str, str, str, bool], Row] = {}
    rows = [known.get(choice) or known.setdefault(choice, _row(catalog, *choice)) for choice in choices]
    up, out, dispatch, combine = (_columns([row[i] for row in rows]) for i in range(4))
    if domain_count is not None:
        given = np.asarray(domain_count, dtype=np.float64)
        up["domain_count"] = np.where(np.isfinite(given), given, up["domain_count"])
    if nic_gbps is not None:
        given = np.asarray(nic_gbps, dtype=np.float64)
        own = out.pop("line_gbps")
        out["rate_gbps"] = out["rate_gbps"] * np.where(np.isfinite(given), given, own) / own
    out.pop("line_gbps", None)
    return Fabric(Tier(**up), Tier(**out), Exchange(**dispatch), Exchange(**combine))


def _words(words: Words, count: int) -> list[str]:
    return [words] * count if isinstance(words, str) else list(words)


def _columns(rows: Iterable[Mapping[str, float]]) -> dict[str, Numeric]:
    table = list(rows)
    return {name: np.array([row[name] for row in table], dtype=np.float64) for name in table[0]} if table else {}


Row = tuple[dict[str, float], dict[str, float], dict[str, float], dict[str, float]]


def _row(catalog: Catalog, accelerator: str, library: str, network: str, kernel: str, eager: bool) -> Row:
    names = architecture_names(catalog, accelerator)
    up = scale_up_values(catalog, accelerator, library, eager)
    out = scale_out_values(catalog, accelerator, network)
    phases = [exchange_values(catalog, names, kernel, phase) for phase in ("dispatch", "combine")]
    return up, out, phases[0], phases[1]


def line_gbps(catalog: Catalog, accelerator: str) -> float:
    """Printed scale-up rate per direction.

    Raises:
        CatalogError: the part prints none.
    """
    facts = catalog.technology("accelerators", accelerator)
    if "scale_up_rate_gbytes_per_s" not in facts:
        raise CatalogError(f"accelerator {accelerator!r} has no scale_up_rate_gbytes_per_s in accelerators.yaml")
    return float(gbps_from_gbytes_per_s(facts["scale_up_rate_gbytes_per_s"].value))


def _first(catalog: Catalog, law: str, names: Iterable[str]) -> dict[str, float]:
    """Constants of the nearest group that exists, or none."""
    groups = catalog.constants.get(law, {})
    found = next((groups[name] for name in names if name in groups), {})
    return {name: constant.value for name, constant in found.items()}


def scale_up_values(catalog: Catalog, accelerator: str, library: str, eager: bool = False) -> dict[str, float]:
    """One row of the scale-up tier."""
    if library not in LIBRARIES:
        raise CatalogError(f"no collective library {library!r}{nearest(library, LIBRARIES)}")
    names = architecture_names(catalog, accelerator)
    line = line_gbps(catalog, accelerator)
    facts = catalog.technology("accelerators", accelerator)
    values = _first(catalog, "collectives", names) | _nearest_engine(catalog, names, library)
    values |= _first(catalog, "networks", [f"{name}_mesh" for name in names])
    if library == "nccl_ring":
        values["switch_rate_ratio"] = 0.0
    switch = values.get("switch_rate_ratio", 0.0)
    known = {f.name for f in fields(Tier)}
    host = {name: float(eager) * values.get(name, 0.0) for name in ("host_fast_ns", "host_library_ns")}
    return _every_field({k: v for k, v in values.items() if k in known}) | {
        "rate_gbps": line * values["rate_frac"],
        "reduction_flag": float(switch > 0.0),
        "switch_rate_ratio": switch or 1.0,
        "fast_launch_ns": values.get("fast_launch_ns", NEVER_NS),
        "fast_rate_gbps": line * values.get("fast_rate_frac", 1.0),
        "domain_count": facts["scale_up_domain_count"].value if "scale_up_domain_count" in facts else 1.0,
        **host,
    }


#: rows are stacked into columns, so every row carries every field of a tier
_NEUTRAL = {f.name: f.default for f in fields(Tier) if isinstance(f.default, float)}
_FIRST_TEN = {"reduction_flag": 0.0, "fast_launch_ns": NEVER_NS, "fast_hop_ns": 0.0, "fast_rate_gbps": 1.0,
              "domain_count": UNLIMITED_BYTES, "contention_ratio": 1.0}  # fmt: skip


def _every_field(values: Mapping[str, float]) -> dict[str, float]:
    return {**_NEUTRAL, **_FIRST_TEN, **values}


def _nearest_engine(catalog: Catalog, names: Sequence[str], library: str) -> dict[str, float]:
    """What a library adds to rings: in-switch reduction of the machine, low-latency kernels of an engine."""
    if library in ("nccl", "nccl_ring"):
        return _first(catalog, "networks", [f"{name}_switch" for name in names])
    generation = [f"{name}_{library}" for name in names]
    older = [f"{name}_{library.removesuffix('_tuned')}" for name in names]
    fallback = [f"hopper_{library.removesuffix('_tuned')}", "blackwell_rack_mnnvl"]
    return _first(catalog, "fast_kernels", [*generation, *older, *fallback])


def scale_out_values(catalog: Catalog, accelerator: str, network: str) -> dict[str, float]:
    """One row of the scale-out tier; a part without a printed network rate gets the class's."""
    if network not in NETWORKS:
        raise CatalogError(f"no network class {network!r}{nearest(network, NETWORKS)}")
    values = _first(catalog, "networks", [network])
    facts = catalog.technology("accelerators", accelerator)
    line = (
        facts["nic_rate_gbps"].value
        if "nic_rate_gbps" in facts
        else catalog.value("topologies", "default_nic", "nic_rate_gbps")
    )
    known = {f.name for f in fields(Tier)}
    return _every_field({k: v for k, v in values.items() if k in known}) | {
        "rate_gbps": line * values["rate_frac"],
        "line_gbps": line,
    }


def _exchange_groups(names: Sequence[str], kernel: str, phase: str) -> list[str]:
    """Groups that may describe a kernel: of the part's architecture, else of any where it was measured."""
    return [f"{name}.{kernel}.{phase}" for name in (*names, "hopper", "blackwell", "blackwell_rack")]


def exchange_values(catalog: Catalog, names: Sequence[str], kernel: str, phase: str) -> dict[str, float]:
    """One row of an expert exchange kernel; neutral with ``known_flag`` 0 where nobody measured it."""
    found = _first(catalog, "alltoall", _exchange_groups(names, kernel, phase))
    neutral = {f.name: float(f.default) for f in fields(Exchange) if isinstance(f.default, float)}
    return neutral | {n: v for n, v in found.items() if n in neutral} | {"known_flag": float(bool(found))}


def exchange_of(
    catalog: Catalog, names: Sequence[Sequence[str]], kernels: Sequence[str], phases: Sequence[str]
) -> tuple[Exchange, Array]:
    """Columns of expert exchange kernels, and the share of their traffic that travels in the narrow format."""
    choices = list(zip(map(tuple, names), kernels, phases, strict=True))
    values = {choice: exchange_values(catalog, *choice) for choice in set(choices)}
    narrow = {c: _first(catalog, "alltoall", _exchange_groups(*c)).get("narrow_frac", 1.0) for c in values}
    return Exchange(**_columns([values[c] for c in choices])), np.array([narrow[c] for c in choices])


def exchange_kernels(catalog: Catalog) -> set[tuple[str, str]]:
    """Every (kernel, phase) that was measured on some architecture."""
    parts = (name.split(".") for name in catalog.constants.get("alltoall", {}))
    return {(kernel, phase) for _, kernel, phase in parts}


def wire_bytes_per_value(catalog: Catalog, accelerator: str, kernel: str, phase: str, dtype_bytes: float) -> float:
    """Bytes per hidden value that a kernel moves for a number format: some kernels convert only after sending."""
    groups = _exchange_groups(architecture_names(catalog, accelerator), kernel, phase)
    return 2.0 + _first(catalog, "alltoall", groups).get("narrow_frac", 1.0) * (dtype_bytes - 2.0)


def fabric_refusal(catalog: Catalog, accelerator: str) -> str | None:
    """Why no fabric can be given for a part, or None."""
    known = catalog.technologies("accelerators")
    if accelerator not in known:
        return f"accelerator {accelerator!r} is not in accelerators.yaml{nearest(accelerator, known)}"
    if "scale_up_rate_gbytes_per_s" not in known[accelerator]:
        return f"accelerator {accelerator!r} has no scale_up_rate_gbytes_per_s in accelerators.yaml"
    return None
