"""Fit what published sweeps add to the library's rings: in-switch reduction, host launch, networks, full meshes."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import least_squares

from codesign.cases.collective import times_ns
from codesign.cases.rows import CaseRows, read_rows
from codesign.catalog import Catalog, Constant
from codesign.resources import case_data
from codesign.units import Array

#: group -> constant -> (start, lower bound, upper bound)
PARAMETERS: dict[str, dict[str, tuple[float, float, float]]] = {
    "ampere_switch": {"host_library_ns": (40000.0, 5000.0, 90000.0)},
    "hopper_switch": {
        "host_library_ns": (40000.0, 5000.0, 90000.0),
        "switch_launch_ns": (40000.0, 2000.0, 200000.0),
        "switch_rate_ratio": (0.7, 0.3, 1.2),
    },
    "blackwell_switch": {"switch_launch_ns": (40000.0, 2000.0, 200000.0), "switch_rate_ratio": (0.7, 0.3, 1.2)},
    "blackwell_rack_switch": {"switch_launch_ns": (200000.0, 2000.0, 900000.0), "switch_rate_ratio": (0.6, 0.3, 1.2)},
    "tcpxo": {
        "launch_ns": (90000.0, 10000.0, 400000.0),
        "hop_ns": (20000.0, 1000.0, 80000.0),
        "rate_frac": (0.9, 0.4, 1.0),
        "ramp_ns_per_sqrt_byte": (20.0, 0.0, 300.0),
        "handover_ns": (300000.0, 0.0, 2e6),
        "handover_bytes": (4e5, 1e4, 2e7),
    },
    "efa": {
        "launch_ns": (250000.0, 10000.0, 500000.0),
        "hop_ns": (20000.0, 1000.0, 80000.0),
        "rate_frac": (0.9, 0.4, 1.0),
        "ramp_ns_per_sqrt_byte": (20.0, 0.0, 300.0),
        "handover_ns": (100000.0, 0.0, 2e6),
        "handover_bytes": (4e5, 1e4, 2e7),
    },
    "cdna3_mesh": {"rate_frac": (0.7, 0.3, 1.0)},
    "infiniband": {"rate_frac": (0.95, 0.4, 1.0)},
}


def _chosen(rows: CaseRows, group: str) -> list[int]:
    """Rows that tell a group's constants: by architecture inside one domain, by network beyond it."""
    out = []
    for i in range(len(rows)):
        part, network = rows.text("accelerator")[i], rows.text("scale_out")[i].lower()
        one_domain = not network
        whole = rows.text("collective")[i] in ("all_reduce", "all_gather", "reduce_scatter")
        if not whole or rows.text("library")[i].startswith("vLLM") or rows.text("grade")[i] == "C":
            continue
        mine = {
            "ampere_switch": one_domain and part.startswith("a100-sxm"),
            "hopper_switch": one_domain and part in ("h100-sxm", "h200-sxm"),
            "blackwell_switch": one_domain and part == "b200-sxm",
            "blackwell_rack_switch": one_domain and part == "gb200",
            "cdna3_mesh": one_domain and part in ("mi300x", "mi325x"),
            "tcpxo": "tcpx" in network,
            "efa": "efa" in network,
            "infiniband": "ib" in network or "infiniband" in network,
        }[group]
        if (mine and rows.text("grade")[i] == "A") or (mine and group == "infiniband"):
            out.append(i)
    return out


def with_constants(catalog: Catalog, group: str, values: Mapping[str, float]) -> Catalog:
    """The same catalog with some constants of one group replaced."""
    laws = {law: dict(groups) for law, groups in catalog.constants.items()}
    stated = dict(laws["networks"][group])
    for name, value in values.items():
        old = stated[name]
        stated[name] = Constant.model_construct(**(old.model_dump() | {"value": float(value)}))
    laws["networks"][group] = stated
    return Catalog(catalog.facts, laws, catalog.sources, catalog.digest)


def _fit_group(catalog: Catalog, group: str, rows: CaseRows, names: Sequence[str]) -> dict[str, float]:
    measured = rows.numbers("time_us") * 1e3
    start, low, high = (np.array([PARAMETERS[group][n][i] for n in names]) for i in range(3))

    def residual(x: Array) -> Array:
        facts = with_constants(catalog, group, dict(zip(names, x, strict=True)))
        return np.asarray(np.log(times_ns(rows, facts)[0] / measured))

    found = least_squares(residual, start, bounds=(low, high), x_scale=start, loss="soft_l1", f_scale=0.05)
    return dict(zip(names, map(float, found.x), strict=True))


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Constants per switch generation and network class; ring constants must be in the catalog."""
    rows = next(part for part in read_rows(case_data() / "collectives.csv") if part.kind == "collective")
    out = {}
    for group, parameters in PARAMETERS.items():
        mine = rows.pick(_chosen(rows, group))
        timed = [i for i, t in enumerate(_times_us(mine)) if np.isfinite(t)]
        mine = mine.pick(timed)
        mine.columns["time_us"] = [repr(float(t)) for t in _times_us(mine)]
        out[group] = _fit_group(catalog, group, mine, list(parameters))
    return out


def _times_us(rows: CaseRows) -> Array:
    """Measured time, or the time that the printed bus bandwidth stands for."""
    ranks, message = rows.numbers("n_accel"), rows.numbers("msg_bytes")
    factor = np.where(np.array(rows.text("collective")) == "all_reduce", 2.0, 1.0) * (ranks - 1.0) / ranks
    derived = factor * message / rows.numbers("busbw_GBs") / 1e3
    time = rows.numbers("time_us")
    return np.asarray(np.where(np.isfinite(time), time, derived))
