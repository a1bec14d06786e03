"""Measured memory bandwidth: streams of known read and write mix on accelerators and hosts.

Rules for what a row leaves open: peak from the row, else from the accelerator's data sheet, else from its host; bytes
are those of one array of one core; a row without bytes is taken as large.
"""

import re

import numpy as np

from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.memories import column, dram_device, memory_constants
from codesign.model.memory.controller import Access, Controller, ControllerConstants, achieved_frac
from codesign.units import Array

#: Kernel words -> (share of traffic that reads, arrays that move). The first that fits counts.
_KERNELS: tuple[tuple[str, float, float], ...] = (
    (r"triad|add\b|axpy|daxpy", 2.0 / 3.0, 3.0),
    (r"copy|mul\b|scale|memcpy|read\s*\+\s*write|read-write|transpose", 0.5, 2.0),
    (r"nstream", 0.75, 4.0),
    (r"write|memset|fill|store|init", 0.0, 1.0),
    (r"dot|read|load|reduce|sum|gemv|decode|stream", 1.0, 1.0),
)
#: Across a link, not across the memory interface; other models answer these.
_LINKS = re.compile(r"\b(h2d|d2h|host|peer|p2p\b.*(?:gpu|device).*(?:to|->)|pcie|nvlink)", re.IGNORECASE)
#: Copies that a driver makes on one device, rather than a tuned kernel.
_DRIVER_COPY = re.compile(r"same-device|memcpy|device_local|d2d", re.IGNORECASE)
#: Seconds or bytes per second of a unit; rates are of payload.
RATE_GBYTES_PER_S = {"tb/s": 1e3, "gb/s": 1.0, "mb/s": 1e-3, "tib/s": 1099.511627776, "gib/s": 1.073741824}
_TIME_NS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Achieved bandwidth, or the time of one pass, in the row's own unit."""
    peaks_gbytes = peaks_gbytes_per_s(rows, catalog)
    words = [_words(rows, i) for i in range(len(rows))]
    units = [unit.strip().lower() for unit in rows.text("unit")]
    refused = [
        _reason(rows, i, word, unit, peak)
        for i, (word, unit, peak) in enumerate(zip(words, units, peaks_gbytes, strict=True))
    ]
    rate_gbytes, moved_bytes = _rates(rows, catalog, np.where(np.isfinite(peaks_gbytes), peaks_gbytes, 1.0))
    predicted = np.array(
        [
            rate / RATE_GBYTES_PER_S[unit] if unit in RATE_GBYTES_PER_S else moved / rate / _TIME_NS.get(unit, 1.0)
            for rate, moved, unit in zip(rate_gbytes, moved_bytes, units, strict=True)
        ]
    )
    return Predictions({"value": (predicted, rows.numbers("value"))}, refused)


def stream_frac(
    kinds: list[str],
    read_frac: Array,
    drained: Array,
    path_frac: Array,
    catalog: Catalog,
    constants: ControllerConstants,
) -> Array:
    """Share of peak of a long stream: the DRAM limits with a write-back cache as write queue, times the path."""
    channel_gbps = column(catalog, "memory", kinds, "reference_pin_rate_gbps") * column(
        catalog, "memory", kinds, "data_pins_count"
    )
    channel_gbps = channel_gbps * column(catalog, "memory", kinds, "payload_frac")
    channel_gbps = channel_gbps / column(catalog, "memory", kinds, "channels_count")
    pseudo = column(catalog, "memory", kinds, "pseudo_channels_count")
    device = dram_device(catalog, kinds, channel_gbps / pseudo)
    access = Access(
        read_frac=read_frac,
        run_count=device.row_bursts_count,
        runs_count=1.0,
        outstanding_count=1e4,
        block_count=1.0,
        sequential_flag=1.0,
    )
    controller = Controller(
        read_queue_count=1e4,
        write_queue_count=drained * pseudo,
        close_row_flag=0.0,
        refresh_flag=1.0,
        per_bank_refresh_flag=0.0,
    )
    return np.asarray(achieved_frac(access, controller, device, constants)) * path_frac


def setup(rows: CaseRows, catalog: Catalog) -> tuple[list[str], Array, list[str], Array, Array]:
    """Memory kind, read share, architecture class, arrays that move and bytes of one array, for every row."""
    words = [_words(rows, i) for i in range(len(rows))]
    mixes = [_mix(word) or (1.0, 1.0) for word in words]
    kinds = [_kind(name, catalog) for name in rows.text("memory")]
    classes = [_class(name, kind) for name, kind in zip(rows.text("accelerator"), kinds, strict=True)]
    cores = np.array([_cores(scope) for scope in rows.text("scope")])
    return kinds, np.array([m[0] for m in mixes]), classes, np.array([m[1] for m in mixes]), cores * _bytes(rows)


def _rates(rows: CaseRows, catalog: Catalog, peaks_gbytes: Array) -> tuple[Array, Array]:
    kinds, read_frac, classes, arrays, size_bytes = setup(rows, catalog)
    values = {name: np.array([catalog.constant("memory", c, name) for c in classes]) for name in _CLASS_CONSTANTS}
    fraction = stream_frac(
        kinds, read_frac, values["write_queue_count"], values["path_frac"], catalog, memory_constants(catalog)
    )
    long_gbytes = peaks_gbytes * fraction * np.where(by_driver(rows), driver_copy_frac(catalog), 1.0)
    moved_bytes = arrays * size_bytes
    rate_gbytes = pass_rate(moved_bytes, long_gbytes, values["start_ns"])
    return rate_gbytes, np.where(np.isfinite(moved_bytes), moved_bytes, np.nan)


def by_driver(rows: CaseRows) -> Array:
    """Which rows are copies that the driver makes."""
    return np.array([bool(_DRIVER_COPY.search(_words(rows, i))) for i in range(len(rows))])


def driver_copy_frac(catalog: Catalog) -> float:
    """What a driver's copy on one device reaches of a tuned kernel."""
    return catalog.constant("memory", "driver_copy", "path_frac")


def pass_rate(moved_bytes: Array, long_gbytes: Array, start_ns: Array) -> Array:
    """Rate of one pass in GB/s: it costs a start besides its traffic; without a size it is long."""
    sized = np.isfinite(moved_bytes)
    finite = np.where(sized, moved_bytes, 1.0)
    return np.where(sized, finite / (start_ns + finite / long_gbytes), long_gbytes)


_CLASS_CONSTANTS = ("write_queue_count", "path_frac", "start_ns")


def peaks_gbytes_per_s(rows: CaseRows, catalog: Catalog) -> Array:
    """Peak of each row: its own column, the part's data sheet, or the host's."""
    known = catalog.facts.get("accelerators", {})
    hosts = catalog.facts.get("host_memory", {})
    out = rows.numbers("peak_TBs_spec") * 1e3
    for i, name in enumerate(rows.text("accelerator")):
        if np.isfinite(out[i]) and out[i] > 0:
            continue
        sheet = known.get(name, {}).get("memory_rate_tbytes_per_s")
        host = hosts.get(name, {}).get("memory_rate_gbytes_per_s")
        out[i] = sheet.value * 1e3 if sheet else host.value if host else np.nan
    return out


def _words(rows: CaseRows, i: int) -> str:
    return f"{rows.text('kernel')[i]} {rows.text('metric')[i]}".lower()


def _mix(word: str) -> tuple[float, float] | None:
    return next(((read, arrays) for pattern, read, arrays in _KERNELS if re.search(pattern, word)), None)


def _reason(rows: CaseRows, i: int, word: str, unit: str, peak: float) -> str | None:
    name = rows.text("accelerator")[i]
    if not np.isfinite(peak) or peak <= 0:
        return f"no memory rate known for {name!r}, and none in the row"
    if _LINKS.search(word):
        return f"{word.strip()!r} crosses a link, not the memory interface"
    if _mix(word) is None:
        return f"kernel {word.strip()!r}: read and write shares unknown"
    if unit in _TIME_NS and not np.isfinite(rows.numbers("bytes")[i]):
        return "a time without bytes cannot be predicted"
    return None if unit in RATE_GBYTES_PER_S or unit in _TIME_NS else f"unit {unit!r} unknown"


def _kind(memory: str, catalog: Catalog) -> str:
    """Catalog kind of a memory named in a table; an unspecific or new name gets the nearest class."""
    known = catalog.technologies("memory")
    name = memory.strip().lower().replace("-", "").replace(" ", "")
    if name in known:
        return name
    near = sorted((k for k in known if name.startswith(k) or k.startswith(name)), key=len, reverse=True)
    return near[0] if name and near else "hbm3"


def _class(accelerator: str, kind: str) -> str:
    """What collects traffic: a software-managed scratchpad, a host's caches, or a GPU's write-back cache."""
    if accelerator.startswith(("tpu", "aws", "trainium", "gaudi", "ascend")):
        return "scratchpad"
    return "host" if kind.startswith(("ddr", "lpddr", "cxl")) else "cache"


def _bytes(rows: CaseRows) -> Array:
    sizes = rows.numbers("bytes")
    return np.where(sizes > 0, sizes, np.inf)


def _cores(scope: str) -> float:
    """Cores that each move the stated bytes."""
    found = re.search(r"(\d+)\s*cores?", scope.lower())
    return float(found.group(1)) if found else 1.0
