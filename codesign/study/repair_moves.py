"""Which parameters help against which rule, best first, and the order in which repair walks words."""

from collections.abc import Mapping

from codesign.catalog import Catalog

#: Rule -> parameters repair may shift against it, in this order (their directions stand in `repair.DIRECTIONS`).
MOVES: Mapping[str, tuple[str, ...]] = {
    "memory_height": ("memory_kind",),
    "memory_pin_rate": ("memory_pin_rate_gbps",),
    "scale_up_payload": ("scale_up_payload_bytes",),
    "scale_out_payload": ("scale_out_payload_bytes",),
    "scale_up_reach": ("scale_up_medium", "scale_up_domain_count"),
    "scale_up_channel": (
        "scale_up_equaliser", "scale_up_fec", "scale_up_medium", "scale_up_domain_count", "scale_up_lane_rate_gbps",
        "scale_up_modulation",
    ),
    "scale_out_reach": ("scale_out_medium",),
    "scale_out_channel": (
        "scale_out_equaliser", "scale_out_fec", "scale_out_medium", "scale_out_lane_rate_gbps", "scale_out_modulation",
    ),
    "scale_up_radix": ("scale_up_domain_count", "scale_up_lanes_count"),
    "scale_out_radix": ("scale_out_tiers_count",),
    "scale_up_channels": ("scale_up_virtual_channels_count",),
    "scale_out_channels": ("scale_out_virtual_channels_count",),
    "reticle": ("compute_dies_count", "io_dies_count", "sram_mb", "compute_scale_frac"),
    "die_edge": ("compute_dies_count", "io_dies_count", "scale_up_lanes_count", "memory_stacks_count"),
    "package_power": ("power_cap_w", "cooling", "scale_up_lanes_count", "compute_scale_frac"),
    "cooling": ("cooling",),
    "package_area": ("memory_stacks_count", "compute_scale_frac", "sram_mb"),
}  # fmt: skip


def moves_of() -> Mapping[str, tuple[str, ...]]:
    """Rule -> parameters that help against it."""
    return MOVES


def orders_of(catalog: Catalog) -> Mapping[str, tuple[str, ...]]:
    """Parameter -> its words in the order in which repair walks them: the stronger, the later."""
    by_code = _sorted(catalog, "fec", ("inner_correctable_count", "correctable_count", "interleave_count"))
    by_reach = _sorted(catalog, "media", ("reach_limit_m",))
    ladder = ("ctle", "ffe_dfe", "adc_dsp")
    lines = ("nrz", "pam4", "pam6", "pam8")
    return {
        "cooling": ("air", "liquid"),
        "scale_up_equaliser": ladder,
        "scale_out_equaliser": ladder,
        "scale_up_modulation": lines,
        "scale_out_modulation": lines,
        "scale_up_fec": by_code,
        "scale_out_fec": by_code,
        "scale_up_medium": by_reach,
        "scale_out_medium": by_reach,
    }


def _sorted(catalog: Catalog, kind: str, facts: tuple[str, ...]) -> tuple[str, ...]:
    """Technologies of a kind by some of their facts, weakest first."""
    names = catalog.technologies(kind)
    return tuple(sorted(names, key=lambda name: (*(catalog.value(kind, name, fact) for fact in facts), name)))
