"""Chips and memories of parts on sale, composed from what is printed about them."""

from collections.abc import Sequence

import numpy as np

from codesign.catalog import Catalog
from codesign.chips import BASES, ChipChoice, chip_inputs
from codesign.errors import CatalogError, nearest
from codesign.memories import MemoryChoice, column
from codesign.model.chip.chain import chip

#: Parts that are published in enough detail to compose: accelerator -> base chip, memory kind.
PUBLISHED: dict[str, tuple[str, str]] = {
    "a100-sxm-80gb": ("a100", "hbm2e"),
    "h100-sxm": ("h100", "hbm3"),
    "h200-sxm": ("h100", "hbm3e"),
    "b200-sxm": ("b200", "hbm3e"),
    "gb200": ("b200", "hbm3e"),
    "mi300x": ("mi300x", "hbm3"),
    "mi355x": ("mi355x", "hbm3e"),
}


def published_parts(catalog: Catalog, accelerators: Sequence[str]) -> tuple[ChipChoice, MemoryChoice]:
    """Choices that describe parts on sale: pin rate and clock are those that give the printed rates.

    Raises:
        CatalogError: a part is not published in enough detail.
    """
    unknown = next((name for name in accelerators if name not in PUBLISHED), None)
    if unknown is not None:
        raise CatalogError(f"chips: no composition of {unknown!r}{nearest(unknown, PUBLISHED)}")
    parts = [PUBLISHED[name] for name in accelerators]
    bases, kinds = [part[0] for part in parts], [part[1] for part in parts]
    stacks = column(catalog, "parts", accelerators, "memory_stacks_count")
    sites = column(catalog, "packages_geometry", bases, "memory_sites_count")
    rate_gbps = column(catalog, "accelerators", accelerators, "memory_rate_tbytes_per_s") * 8e3
    pins = stacks * column(catalog, "memory", kinds, "data_pins_count")
    nodes = [BASES[base][1] for base in bases]
    memory = MemoryChoice(
        kind=kinds,
        stacks_count=stacks,
        pin_rate_gbps=rate_gbps / pins,
        path_pj_per_bit=column(catalog, "nodes", nodes, "memory_path_pj_per_bit"),
    )
    plain = chip_inputs(catalog, ChipChoice(base=bases, memory_kind=kinds, memory_stacks_count=sites, clock_ghz=1.0))
    one_ghz_gflops = np.asarray(chip(plain).bf16_peak_gflops)
    clock_ghz = column(catalog, "accelerators", accelerators, "bf16_peak_tflops") * 1e3 / one_ghz_gflops
    choice = ChipChoice(
        base=bases,
        memory_kind=kinds,
        memory_stacks_count=sites,
        clock_ghz=clock_ghz,
        power_cap_w=column(catalog, "accelerators", accelerators, "board_power_w"),
    )
    return choice, memory
