"""From names of memory kinds to the numbers of the memory model. Looks up and converts; computes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from codesign.catalog import Catalog
from codesign.model.memory.chain import MemoryInputs
from codesign.model.memory.controller import ControllerConstants
from codesign.model.memory.dram import DramDevice, burst_ns, peak_rate_gbps
from codesign.units import Array, Numeric, bytes_from_gb

#: Fields of the memory model that the catalog prints as clock cycles.
_CYCLES = (
    "read_latency",
    "write_latency",
    "row_to_read",
    "row_to_write",
    "precharge",
    "row_open",
    "row_cycle",
    "read_to_precharge",
    "write_recovery",
    "activate_gap",
    "activate_window",
    "read_to_write",
    "write_to_read",
    "refresh",
    "refresh_interval",
    "activate_command",
    "precharge_command",
    "column_command",
)


def column(catalog: Catalog, kind: str, names: Sequence[str], fact: str) -> Array:
    """One fact of many technologies as a column; each distinct name is looked up once."""
    known = {name: catalog.value(kind, name, fact) for name in dict.fromkeys(names)}
    return np.array([known[name] for name in names], dtype=np.float64)


def timing_columns(catalog: Catalog, kinds: Sequence[str]) -> dict[str, Array]:
    """Timings in ns of some memory kinds, keyed by the field names of the memory model."""
    clock_ns = column(catalog, "memory", kinds, "clock_ns")
    out = {f"{name}_ns": column(catalog, "memory", kinds, f"{name}_cycles_count") * clock_ns for name in _CYCLES}
    out["clock_ns"] = clock_ns
    out["refresh_bank_interval_ns"] = out["refresh_interval_ns"] / column(
        catalog, "memory", kinds, "refresh_groups_count"
    )
    for name in ("banks_count", "pseudo_channels_count", "row_bursts_count", "shared_command_flag"):
        out[name] = column(catalog, "memory", kinds, name)
    return out


def dram_device(catalog: Catalog, kinds: Sequence[str], channel_rate_gbps: Array) -> DramDevice:
    """Devices of some kinds with a given payload rate of one pseudo-channel."""
    timing = timing_columns(catalog, kinds)
    nominal_gbps = peak_rate_gbps(
        column(catalog, "memory", kinds, "reference_pin_rate_gbps"),
        column(catalog, "memory", kinds, "data_pins_count"),
        column(catalog, "memory", kinds, "payload_frac"),
    ) / (column(catalog, "memory", kinds, "channels_count") * timing["pseudo_channels_count"])
    ratio = nominal_gbps / channel_rate_gbps
    for name in ("clock_ns", "activate_command_ns", "precharge_command_ns", "column_command_ns"):
        timing[name] = timing[name] * ratio
    timing["burst_ns"] = np.asarray(burst_ns(column(catalog, "memory", kinds, "burst_bytes"), channel_rate_gbps))
    return DramDevice(**{field.name: timing[field.name] for field in fields(DramDevice)})


def memory_constants(catalog: Catalog) -> ControllerConstants:
    """Fitted controller constants of this catalog."""
    names = [field.name for field in fields(ControllerConstants)]
    return ControllerConstants(**{name: catalog.constant("memory", "controller", name) for name in names})


@dataclass(frozen=True, slots=True)
class MemoryChoice:
    """What a search decides about memory, one entry or value per candidate; zero means the default of the class."""

    kind: Sequence[str]
    stacks_count: Numeric
    pin_rate_gbps: Numeric = 0.0
    height_count: Numeric = 0.0
    write_queue_count: Numeric = 0.0
    outstanding_bytes: Numeric = 0.0
    interleave_bytes: Numeric = 0.0
    path_latency_ns: Numeric = 0.0
    path_pj_per_bit: Numeric = 0.0  # zero: that of the compute node below
    node: Sequence[str] = ()  # empty: n4
    per_bank_refresh_flag: Numeric = 0.0
    ecc_flag: Numeric = 1.0
    reserved_frac: Numeric = 0.0  # kept back by the maker of the part, packages_geometry.yaml
    second_kind: Sequence[str] = ()
    second_modules_count: Numeric = 0.0
    second_pin_rate_gbps: Numeric = 0.0
    kv_run_bytes: Numeric = 0.0
    optimizer_read_frac: Numeric = 0.0
    activation_read_frac: Numeric = 0.0


def memory_inputs(catalog: Catalog, choice: MemoryChoice) -> MemoryInputs:
    """Numbers of the memory model for some candidates.

    Raises:
        CatalogError: a memory kind is not in the catalog.
    """
    kinds = list(choice.kind)
    timing = timing_columns(catalog, kinds)
    nodes = [name or "n4" for name in choice.node] or ["n4"]
    ecc = np.asarray(choice.ecc_flag, dtype=np.float64)
    own = {
        name: column(catalog, "memory", kinds, name)
        for name in (
            "reference_pin_rate_gbps",
            "data_pins_count",
            "payload_frac",
            "pin_rate_limit_gbps",
            "height_limit_count",
            "channels_count",
            "burst_bytes",
            "device_pj_per_bit",
            "idle_w",
            "phy_mm2",
            "edge_mm",
        )
    }
    path = {name: catalog.value("blocks", "memory_path", name) for name in ("read_queue_count", "random_run_bytes")}
    return MemoryInputs(
        stacks_count=choice.stacks_count,
        pin_rate_gbps=chosen_or(choice.pin_rate_gbps, column(catalog, "memory", kinds, "pin_rate_gbps")),
        height_count=chosen_or(choice.height_count, column(catalog, "memory", kinds, "height_count")),
        die_bytes=bytes_from_gb(column(catalog, "memory", kinds, "die_gb")),
        close_row_flag=0.0,
        per_bank_refresh_flag=choice.per_bank_refresh_flag,
        ecc_capacity_frac=_withheld(ecc * column(catalog, "memory", kinds, "ecc_capacity_frac"), choice.reserved_frac),
        ecc_rate_frac=ecc * column(catalog, "memory", kinds, "ecc_rate_frac"),
        path_latency_ns=chosen_or(choice.path_latency_ns, catalog.value("blocks", "memory_path", "path_latency_ns"))
        + column(catalog, "memory", kinds, "link_latency_ns"),
        path_pj_per_bit=chosen_or(choice.path_pj_per_bit, column(catalog, "nodes", nodes, "memory_path_pj_per_bit")),
        **_defaulted(catalog, choice),
        **{name: timing[name] for name in timing if name != "refresh_groups_count"},
        **own,
        **path,
        **_second_tier(catalog, choice),
    )


def _withheld(ecc_frac: Array, reserved_frac: Numeric) -> Array:
    """Capacity that software does not see: check bits, and what the maker keeps back of the rest."""
    return 1.0 - (1.0 - ecc_frac) * (1.0 - np.asarray(reserved_frac, dtype=np.float64))


def _defaulted(catalog: Catalog, choice: MemoryChoice) -> dict[str, Numeric]:
    names = (
        "write_queue_count",
        "outstanding_bytes",
        "interleave_bytes",
        "kv_run_bytes",
        "optimizer_read_frac",
        "activation_read_frac",
    )
    return {name: chosen_or(getattr(choice, name), catalog.value("blocks", "memory_path", name)) for name in names}


def chosen_or(chosen: Numeric, default: Numeric) -> Array:
    """The choice where there is one, the default where it is zero."""
    value = np.asarray(chosen, dtype=np.float64)
    return np.where(value > 0.0, value, default)


def _second_tier(catalog: Catalog, choice: MemoryChoice) -> dict[str, Numeric]:
    """The second tier; without a kind it has no bytes, and a rate of zero."""
    named = list(choice.second_kind) or ["none"]
    kinds = [name if name not in ("", "none") else "ddr5" for name in named]
    there = np.array([name not in ("", "none") for name in named], dtype=np.float64)
    modules = np.asarray(choice.second_modules_count, dtype=np.float64) * there
    facts = {
        name: column(catalog, "memory", kinds, name)
        for name in ("data_pins_count", "payload_frac", "stream_frac", "device_pj_per_bit", "idle_w", "phy_mm2")
    }
    pin_gbps = chosen_or(choice.second_pin_rate_gbps, column(catalog, "memory", kinds, "pin_rate_gbps"))
    bytes_each = bytes_from_gb(column(catalog, "memory", kinds, "die_gb")) * column(
        catalog, "memory", kinds, "height_count"
    )
    path_ns = catalog.value("blocks", "memory_path", "path_latency_ns")
    device_ns = catalog.value("blocks", "memory_path", "device_latency_ns")
    return {
        "second_bytes": modules * bytes_each * (1.0 - column(catalog, "memory", kinds, "ecc_capacity_frac")),
        "second_rate_gbps": modules * peak_rate_gbps(pin_gbps, facts["data_pins_count"], facts["payload_frac"]),
        "second_read_frac": facts["stream_frac"],
        "second_latency_ns": path_ns + device_ns + column(catalog, "memory", kinds, "link_latency_ns"),
        "second_pj_per_bit": facts["device_pj_per_bit"],
        "second_idle_w": modules * facts["idle_w"],
        "second_phy_mm2": modules * facts["phy_mm2"],
        "second_edge_mm": modules * column(catalog, "memory", kinds, "edge_mm"),
    }
