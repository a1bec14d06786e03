"""Engines of accelerators nobody has built: own peaks and memory rate, the shares and start times of an architecture.

What the constants of one generation are worth on another was measured by predicting each measured architecture from
every other one; ``transfer_band`` gives the spread of measured over predicted time, the range of such an engine.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from codesign.catalog import Catalog
from codesign.machines import (
    ATTENTION_CONSTANTS,
    GEMM_CONSTANTS,
    MLA_CONSTANTS,
    MOE_CONSTANTS,
    cache_forms,
    constants_of,
    library_chain,
)
from codesign.model.kernels.attention import AttentionEngine
from codesign.model.kernels.gemm import GemmEngine
from codesign.model.kernels.mla import MlaEngine
from codesign.model.kernels.moe import MoeEngine
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
    constants = {name: column(name) for name in GEMM_CONSTANTS}
    return GemmEngine(peak_gflops=peak_gflops, memory_rate_gbps=memory_rate_gbps, **constants)


def designed_attention_engine(
    catalog: Catalog,
    architectures: Sequence[str],
    dtypes: Sequence[str],
    peak_gflops: Numeric,
    memory_rate_gbps: Numeric,
    kv_dtypes: Sequence[str] | None = None,
) -> AttentionEngine:
    """Engines of attention; ``peak_gflops`` is that of the format of the products.

    Raises:
        CatalogError: a number format is unknown.
    """
    column, _ = constants_of(catalog, "attention", architectures, cache_forms(dtypes, kv_dtypes))
    constants = {name: column(name) for name in ATTENTION_CONSTANTS}
    return AttentionEngine(peak_gflops=peak_gflops, memory_rate_gbps=memory_rate_gbps, **constants)


def designed_mla_engine(
    catalog: Catalog,
    architectures: Sequence[str],
    dtypes: Sequence[str],
    peak_gflops: Numeric,
    memory_rate_gbps: Numeric,
    kv_dtypes: Sequence[str] | None = None,
) -> MlaEngine:
    """Engines of latent attention; ``peak_gflops`` is the sixteen-bit peak, in which the constants were fitted.

    Raises:
        CatalogError: a number format is unknown.
    """
    kernels = [("default",)] * len(architectures)
    column, _ = constants_of(catalog, "mla", architectures, cache_forms(dtypes, kv_dtypes), kernels)
    constants = {name: column(name) for name in MLA_CONSTANTS}
    return MlaEngine(peak_gflops=peak_gflops, memory_rate_gbps=memory_rate_gbps, **constants)


def designed_moe_engine(
    catalog: Catalog,
    architectures: Sequence[str],
    dtypes: Sequence[str],
    peak_gflops: Numeric,
    memory_rate_gbps: Numeric,
    libraries: Sequence[str] | None = None,
) -> MoeEngine:
    """Engines of fused expert layers.

    Raises:
        CatalogError: a number format is unknown.
    """
    named = [library_chain(name) for name in libraries or ["default"] * len(architectures)]
    column, _ = constants_of(catalog, "moe_gemm", architectures, dtypes, named)
    constants = {name: column(name) for name in MOE_CONSTANTS}
    return MoeEngine(peak_gflops=peak_gflops, memory_rate_gbps=memory_rate_gbps, **constants)
