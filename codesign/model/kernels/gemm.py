"""Time of one matrix product on one accelerator."""

from dataclasses import dataclass, field

import numpy as np

from codesign.columns import freeze
from codesign.units import Numeric, empirical


@dataclass(frozen=True, slots=True, eq=False)
class GemmEngine:
    """Matrix unit, memory path and library of one accelerator at one number format.

    What depends on the hardware alone is worked out once, when the engine is made: ``ns_per_*`` fields.
    """

    peak_gflops: Numeric  # dense peak of the matrix unit in this number format
    compute_frac: Numeric  # share of the peak a long product sustains
    half_depth_count: Numeric  # inner dimension at which prologue and epilogue cost as much as the product
    row_tile_count: Numeric  # rows of one output tile: fewer rows cost the same time
    column_tile_count: Numeric  # columns of one output tile
    launch_ns: Numeric  # time of a product with nothing to do
    memory_rate_gbps: Numeric  # peak rate of the memory
    memory_frac: Numeric  # share of that rate a long product sustains
    ramp_bytes: Numeric  # bytes by which the approach to the sustained memory rate is delayed
    quantise_passes_count: Numeric  # passes over the activations that write them in this number format
    ns_per_flop: Numeric = field(init=False)
    ns_per_byte: Numeric = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ns_per_flop", 1.0 / (self.peak_gflops * self.compute_frac))
        object.__setattr__(self, "ns_per_byte", 8.0 / (self.memory_rate_gbps * self.memory_frac))
        freeze(self)


@empirical("kernels/gemm.csv")
def gemm_ns(
    m_count: Numeric,
    n_count: Numeric,
    k_count: Numeric,
    weight_bytes: Numeric,
    activation_bytes: Numeric,
    engine: GemmEngine,
) -> Numeric:
    """Time of ``(m, k) x (k, n)``: start, quantisation, then the slower of arithmetic and memory.

    Rows and columns are padded to the output tile of the library; a short inner dimension pays for filling and
    draining the pipeline. The output is written in two bytes. Caches are cold: weights come from memory.

    Args:
        m_count: Rows of the activations (tokens). [count], > 0
        n_count: Columns of the result. [count], > 0
        k_count: Inner dimension. [count], > 0
        weight_bytes: Bytes of one weight. [byte], > 0
        activation_bytes: Bytes of one activation as the matrix unit reads it. [byte], > 0
        engine: Matrix unit, memory path and library.

    Returns:
        Time of one call. [ns]

    Source:
        williams-2009: attainable = min(peak, bandwidth x intensity); tile, depth and start terms are ours.

    >>> engine = GemmEngine(1e6, 1.0, 0.0, 1.0, 1.0, 0.0, 8e3, 1.0, 0.0, 0.0)
    >>> float(gemm_ns(1000.0, 1000.0, 1000.0, 2.0, 2.0, engine))  # 6 MB at 1000 byte/ns
    6000.0
    """
    rows_count = np.ceil(m_count / engine.row_tile_count) * engine.row_tile_count
    columns_count = np.ceil(n_count / engine.column_tile_count) * engine.column_tile_count
    compute_ns = 2.0 * rows_count * columns_count * (k_count + engine.half_depth_count) * engine.ns_per_flop
    moved_bytes = m_count * k_count * activation_bytes + n_count * (k_count * weight_bytes + 2.0 * m_count)
    memory_ns = (moved_bytes + engine.ramp_bytes) * engine.ns_per_byte
    quantise_ns = engine.quantise_passes_count * (m_count * k_count * (2.0 + activation_bytes)) * engine.ns_per_byte
    time_ns: Numeric = engine.launch_ns + quantise_ns + np.maximum(compute_ns, memory_ns)
    return time_ns
