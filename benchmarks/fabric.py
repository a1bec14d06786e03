"""Speed of the collective laws: evaluations of one (candidate, collective) pair per second on one core."""

import time
from collections.abc import Callable

import numpy as np

from codesign.catalog import load_catalog
from codesign.columns import over_mappings
from codesign.fabrics import fabric_of
from codesign.model.fabric.collectives import (
    Fabric,
    all_gather_ns,
    all_reduce_ns,
    all_to_all_ns,
    inner_count,
    moe_exchange_ns,
)
from codesign.units import Array, Numeric

CANDIDATES, MAPPINGS, REPEATS = 64, 256, 40


def rate_per_s(law: Callable[..., Numeric], *arguments: Array | Fabric) -> float:
    """Evaluations per second, best of three."""
    best = 0.0
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(REPEATS):
            law(*arguments)
        best = max(best, CANDIDATES * MAPPINGS * REPEATS / (time.perf_counter() - begin))
    return best


def main() -> None:
    """Print a line per collective."""
    names = ["h100-sxm", "b200-sxm", "gb200", "mi300x"] * (CANDIDATES // 4)
    fabric = over_mappings(fabric_of(load_catalog(), names, "trtllm"))
    group = 2.0 ** np.random.default_rng(0).integers(0, 8, MAPPINGS)[None, :]
    size = 2.0 ** np.linspace(10, 30, MAPPINGS)[None, :]
    inner = np.asarray(inner_count(group, 1.0, fabric.scale_up.domain_count))
    for law in (all_reduce_ns, all_gather_ns, all_to_all_ns):
        print(f"{law.__name__:20s} {rate_per_s(law, size, group, inner, fabric) / 1e6:8.2f} million/s")
    tokens, hidden, top = size / 1e3, np.full_like(size, 14336.0), np.full_like(size, 8.0)
    rate = rate_per_s(moe_exchange_ns, tokens, hidden, top, group, inner, fabric)
    print(f"{'moe_exchange_ns':20s} {rate / 1e6:8.2f} million/s")


if __name__ == "__main__":
    main()
