"""Time of one matrix product on one accelerator."""

from dataclasses import dataclass, field

import numpy as np

from codesign.columns import freeze
from codesign.units import Numeric, empirical


@dataclass(frozen=True, slots=True, eq=False)
class GemmEngine:
    """Matrix unit, memory path and library of one accelerator at one number format.

    What depends on the hardware alone is worked out once, when the engine is made: the ``ns_per_*`` fields.
    """

    peak_gflops: Numeric  # dense peak of the matrix unit in this number format
    compute_frac: Numeric  # share of the peak that a large product sustains
    half_depth_count: Numeric  # inner dimension at which filling and draining cost as much as the product
    idle_area_count: Numeric  # outputs by which padding to tiles and the last wave enlarge a product
    memory_rate_gbps: Numeric  # peak rate of the memory
    memory_frac: Numeric  # share of that rate that a large product sustains
    exposed_frac: Numeric  # share of the shorter of arithmetic and memory that the longer does not hide
    launch_ns: Numeric  # a product with nothing to do
    step_ns: Numeric  # latency of one inner step of a tile
    steps_count: Numeric  # inner dimension beyond which the library splits it over more tiles
    quantise_launch_ns: Numeric  # start of the kernels that bring activations into this number format
    quantise_bytes: Numeric  # traffic of those kernels per activation
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
    """Time of ``(m, k) x (k, n)``: start, quantisation, the slower of arithmetic and memory, a share of the other.

    Arithmetic is ``2 (m n + idle area) (k + half depth)``: the idle area stands for outputs computed beside the matrix
    (tile padding, the last wave), the half depth for filling and draining a tile. A short product is bound by the
    latency of its inner steps, until the library splits a long inner dimension over more tiles. Which tile the library
    picks for one shape is not modelled: that is the remaining scatter of single shapes. Caches start cold, the result
    is written in two bytes.

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
        williams-2009: attainable = min(peak, bandwidth x intensity); start, area, depth and step terms are fitted.

    >>> engine = GemmEngine(1e6, 1.0, 0.0, 0.0, 8e3, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    >>> float(gemm_ns(1000.0, 1000.0, 1000.0, 2.0, 2.0, engine))  # 6 MB at 1000 byte/ns
    6000.0
    """
    area_count = m_count * n_count
    inputs_count = m_count * k_count
    depth_count = k_count + engine.half_depth_count
    compute_ns = (area_count + engine.idle_area_count) * depth_count * (2.0 * engine.ns_per_flop)
    moved_bytes = n_count * k_count * weight_bytes + inputs_count * activation_bytes + 2.0 * area_count
    memory_ns = moved_bytes * engine.ns_per_byte
    latency_ns = engine.step_ns * np.minimum(k_count, engine.steps_count) + engine.launch_ns
    quantise_ns = inputs_count * (engine.quantise_bytes * engine.ns_per_byte) + engine.quantise_launch_ns
    exposed_ns = np.minimum(compute_ns, memory_ns) * engine.exposed_frac
    time_ns: Numeric = latency_ns + quantise_ns + np.maximum(compute_ns, memory_ns) + exposed_ns
    return time_ns
