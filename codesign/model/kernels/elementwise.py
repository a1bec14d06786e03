"""Time of what only moves data: norms, activations, residuals, embeddings, quantisation."""

from codesign.units import Numeric


def elementwise_ns(
    traffic_bytes: Numeric, memory_rate_gbps: Numeric, memory_frac: Numeric, launch_ns: Numeric
) -> Numeric:
    """Time of a kernel that reads and writes memory and computes next to nothing.

    Args:
        traffic_bytes: Bytes read and written. [byte], >= 0
        memory_rate_gbps: Peak rate of the memory. [Gb/s], > 0
        memory_frac: Share of that rate a long stream sustains. [1], 0 to 1
        launch_ns: Start of the kernel or kernels. [ns], >= 0

    Returns:
        Time of the traffic after the start. [ns]

    Source:
        definition: bytes over rate.

    >>> elementwise_ns(traffic_bytes=1e6, memory_rate_gbps=8e3, memory_frac=0.5, launch_ns=1000.0)
    3000.0
    """
    return launch_ns + 8.0 * traffic_bytes / (memory_rate_gbps * memory_frac)
