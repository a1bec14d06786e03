"""Which parameters help against which rule, best first, and the order in which repair walks words."""

from collections.abc import Mapping

import numpy as np

from codesign.catalog import Catalog
from codesign.links import link_inputs

#: Rule -> parameters repair may shift against it, in this order (their directions stand in `repair.DIRECTIONS`).
MOVES: Mapping[str, tuple[str, ...]] = {
    "memory_height": ("memory_height_count",),
    "memory_pin_rate": ("memory_pin_rate_gbps",),
    "scale_up_payload": ("scale_up_payload_bytes",),
    "scale_out_payload": ("scale_out_payload_bytes",),
    "scale_up_reach": ("scale_up_medium", "scale_up_domain_count"),
    "scale_up_channel": (
        "scale_up_equaliser", "scale_up_fec", "scale_up_medium", "scale_up_domain_count", "scale_up_lane_rate_gbps",
        "scale_up_modulation",
    ),
    "scale_up_symbol_rate": ("scale_up_lane_rate_gbps",),
    "scale_out_symbol_rate": ("scale_out_lane_rate_gbps",),
    "scale_out_reach": ("scale_out_medium",),
    "scale_out_channel": (
        "scale_out_equaliser", "scale_out_fec", "scale_out_medium", "scale_out_lane_rate_gbps", "scale_out_modulation",
    ),
    "scale_up_radix": ("scale_up_domain_count", "scale_up_port_lanes_count"),
    "scale_out_radix": ("scale_out_tiers_count", "scale_out_topology", "nic_rate_gbps"),
    "reticle": ("compute_dies_count", "sram_mb", "compute_scale_frac"),
    "die_edge": (
        "die_to_die", "io_dies_count", "compute_dies_count", "scale_up_lanes_count", "memory_stacks_count",
        "scale_up_lane_rate_gbps",
    ),
    "package_power": ("power_cap_w", "cooling", "scale_up_lanes_count", "compute_scale_frac"),
    "cooling": ("cooling",),
}  # fmt: skip


def moves_of() -> Mapping[str, tuple[str, ...]]:
    """Rule -> parameters that help against it."""
    return MOVES


_ORDERS: dict[str, Mapping[str, tuple[str, ...]]] = {}


def orders_of(catalog: Catalog) -> Mapping[str, tuple[str, ...]]:
    """Parameter -> its words in the order in which repair walks them: the stronger, the later."""
    if catalog.digest not in _ORDERS:
        _ORDERS[catalog.digest] = _orders_of(catalog)
    return _ORDERS[catalog.digest]


def _orders_of(catalog: Catalog) -> Mapping[str, tuple[str, ...]]:
    by_code = _by_strength(catalog)
    by_reach = _sorted(catalog, "media", "reach_limit_m")
    by_density = tuple(name for name in _sorted(catalog, "die_to_die", "edge_gbps_per_mm") if name != "none")
    ladder = ("ctle", "ffe_dfe", "adc_dsp")
    lines = ("nrz", "pam4", "pam6", "pam8")
    return {
        "cooling": ("air", "liquid"),
        "die_to_die": by_density,
        "scale_out_topology": ("rail_only", "rail_optimised", "fat_tree"),
        "scale_up_equaliser": ladder,
        "scale_out_equaliser": ladder,
        "scale_up_modulation": lines,
        "scale_out_modulation": lines,
        "scale_up_fec": by_code,
        "scale_out_fec": by_code,
        "scale_up_medium": by_reach,
        "scale_out_medium": by_reach,
    }


def _sorted(catalog: Catalog, kind: str, fact: str) -> tuple[str, ...]:
    """Technologies of a kind by one of their facts, weakest first."""
    return tuple(sorted(catalog.technologies(kind), key=lambda name: (catalog.value(kind, name, fact), name)))


def _by_strength(catalog: Catalog) -> tuple[str, ...]:
    """Codes by the bit errors each still corrects to the loss target of a usual link, weakest first."""
    names = sorted(catalog.technologies("fec"))
    usual = link_inputs(catalog, {"lane_rate_gbps": 100.0, "lanes_count": 2.0, "length_m": 1.0, "fec": names})
    order = np.argsort(np.broadcast_to(np.asarray(usual.fec.limit_ber), (len(names),)), kind="stable")
    return tuple(names[i] for i in order)
