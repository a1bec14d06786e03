"""Engines of accelerators nobody has built: own peaks and memory rate, the shares and start times of an architecture.

What the constants of one generation are worth on another was measured by predicting each measured architecture from
every other one; ``transfer_band`` gives the spread of measured over predicted time, the range of such an engine.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from codesign.catalog import Catalog
from codesign.machines import constants_names, constants_of
from codesign.model.kernels.gemm import GemmEngine
from codesign.units import Numeric


@dataclass(frozen=True, slots=True)
class TransferBand:
    """Measured over predicted time when constants come from another architecture: tenth and ninetieth percentile."""

    low_ratio: float
    high_ratio: float


def transfer_band(catalog: Catalog, law: str) -> TransferBand:
    """The range of kernel times of a designed part. ``law`` is gemm, attention, mla or moe_gemm.

    Raises:
        CatalogError: the law is unknown.
    """
    low, high = (catalog.constant("transfer", law, name) for name in ("low_ratio", "high_ratio"))
    return TransferBand(low, high)


def designed_gemm_engine(
    catalog: Catalog,
    architectures: Sequence[str],
    dtypes: Sequence[str],
    peak_gflops: Numeric,
    memory_rate_gbps: Numeric,
) -> GemmEngine:
    """Engines of matrix products with the constants of architectures and peaks of their own.

    Raises:
        CatalogError: a number format is unknown.
    """
    column, _ = constants_of(catalog, "gemm", architectures, dtypes)
    constants = {name: column(name) for name in constants_names(GemmEngine)}
    return GemmEngine(peak_gflops=peak_gflops, memory_rate_gbps=memory_rate_gbps, **constants)
