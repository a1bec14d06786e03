"""The unit vocabulary: the last part of a name tells its unit, and nothing else does.

One canonical unit per dimension inside the model, which never converts: Gb/s, ns, byte, pJ/bit, W, mm2, USD,
Gflop/s. They are chosen so that products need no factor: ``gbps * ns == bits`` and ``gflops * ns == flop``.
The other units of the list are for files, tables and plots; ``bind`` and the views convert with the named
functions below. Every bandwidth is per direction.

Shapes: a ``Numeric`` is a float or an array; every model function accepts both and returns what broadcasting
gives. Axes, always in this order: ``s`` draws, ``w`` workloads, ``n`` candidates, ``m`` mappings, ``k`` objectives.
"""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Numeric: TypeAlias = float | Array

#: Name suffix -> unit as printed in docstrings, catalog files, tables and plots.
SUFFIXES: dict[str, str] = {
    # canonical inside the model
    "_gbps": "Gb/s",
    "_ns": "ns",
    "_bytes": "byte",
    "_bits": "bit",
    "_pj_per_bit": "pJ/bit",
    "_pj": "pJ",
    "_w": "W",
    "_mm2": "mm2",
    "_mm": "mm",
    "_usd": "USD",
    "_count": "count",
    "_frac": "1",
    "_ratio": "1",
    "_prob": "1",
    "_ber": "1",
    "_flag": "1",
    "_db": "dB",
    "_db_per_m": "dB/m",
    "_db_per_mm": "dB/mm",
    "_per_mm": "1/mm",
    "_ns_per_mm": "ns/mm",
    "_sqrt_ns_per_mm": "ns^0.5/mm",
    "_ui": "UI",
    "_v": "V",
    "_v2_per_ghz": "V2/GHz",
    "_nm": "nm",
    "_ghz": "GHz",
    "_m": "m",
    "_gflops": "Gflop/s",
    "_flop": "flop",
    "_pj_per_flop": "pJ/flop",
    "_pj_per_mm2": "pJ/mm2",
    "_bytes_per_ns": "byte/ns",
    "_bytes_per_mm": "byte/mm",
    "_gbps_per_mm": "Gb/s/mm",
    "_w_per_mm2": "W/mm2",
    "_per_ns": "1/ns",
    "_per_mm2": "1/mm2",
    "_per_cm2": "1/cm2",
    "_fit": "FIT",
    "_mbtransistors_per_mm2": "Mtransistor/mm2",
    "_usd_per_mm2": "USD/mm2",
    "_usd_per_w": "USD/W",
    "_usd_per_gb": "USD/GB",
    "_usd_per_w_year": "USD/W/year",
    "_usd_per_m": "USD/m",
    "_usd_per_kwh": "USD/kWh",
    "_usd_per_h": "USD/h",
    "_usd_per_year": "USD/year",
    "_usd_per_mtok": "USD/Mtoken",
    "_usd_per_gbps": "USD/(Gb/s)",
    "_tokens_per_s": "token/s",
    "_per_year": "1/year",
    "_h": "h",
    "_years": "year",
    "_year": "year",
    "_c": "degC",
    # for files, tables and plots
    "_us": "us",
    "_ms": "ms",
    "_s": "s",
    "_gb": "GB",
    "_mb": "MB",
    "_kib": "KiB",
    "_gbytes_per_s": "GB/s",
    "_tbytes_per_s": "TB/s",
    "_tflops": "Tflop/s",
    "_mhz": "MHz",
    "_gbd": "GBd",
    "_j": "J",
    "_kw": "kW",
    "_kwh": "kWh",
    "_pct": "%",
    "_um": "um",
    "_um2": "um2",
    "_pj_per_byte": "pJ/byte",
    "_mm2_per_mb": "mm2/MB",
    "_mm2_per_tbps": "mm2/(Tb/s)",
    "_w_per_mb": "W/MB",
    "_w_per_gbps": "W/(Gb/s)",
    "_ns_per_m": "ns/m",
    "_ns_per_sqrt_byte": "ns/byte^0.5",
    "_db_per_in": "dB/in",
    "_j_per_token": "J/token",
    "_bytes_per_token": "byte/token",
    "_flop_per_token": "flop/token",
}

_BY_LENGTH = sorted(SUFFIXES, key=len, reverse=True)


def unit_of(name: str) -> str | None:
    """Unit promised by a name, or None when its suffix is not in the vocabulary.

    >>> unit_of("pin_rate_gbps"), unit_of("usd_per_mtok"), unit_of("bandwidth")
    ('Gb/s', 'USD/Mtoken', None)
    """
    return next((SUFFIXES[suffix] for suffix in _BY_LENGTH if f"_{name}".endswith(suffix)), None)


F = TypeVar("F", bound=Callable[..., object])


def empirical(rows: str) -> Callable[[F], F]:
    """Mark a law as an empirical fit and say which rows it was fitted to; it skips the dimension test."""

    def mark(function: F) -> F:
        function.__dict__["empirical_rows"] = rows
        return function

    return mark


def gbps_from_gbytes_per_s(rate_gbytes_per_s: Numeric) -> Numeric:
    """GB/s to Gb/s, decimal giga on both sides.

    >>> gbps_from_gbytes_per_s(3350)
    26800.0
    """
    return rate_gbytes_per_s * 8.0


def gbytes_per_s(rate_gbps: Numeric) -> Numeric:
    """Gb/s to GB/s, for readers who think in bytes.

    >>> gbytes_per_s(26800.0)
    3350.0
    """
    return rate_gbps / 8.0


def gflops_from_tflops(peak_tflops: Numeric) -> Numeric:
    """Tflop/s to Gflop/s.

    >>> gflops_from_tflops(989.0)
    989000.0
    """
    return peak_tflops * 1e3


def bytes_from_gb(size_gb: Numeric) -> Numeric:
    """GB to bytes, decimal giga.

    >>> bytes_from_gb(80.0)
    80000000000.0
    """
    return size_gb * 1e9


def ns_from_us(time_us: Numeric) -> Numeric:
    """Microseconds to nanoseconds.

    >>> ns_from_us(2.5)
    2500.0
    """
    return time_us * 1e3


def us_from_ns(time_ns: Numeric) -> Numeric:
    """Nanoseconds to microseconds.

    >>> us_from_ns(2500.0)
    2.5
    """
    return time_ns / 1e3


def ms_from_ns(time_ns: Numeric) -> Numeric:
    """Nanoseconds to milliseconds.

    >>> ms_from_ns(2.5e6)
    2.5
    """
    return time_ns / 1e6


def s_from_ns(time_ns: Numeric) -> Numeric:
    """Nanoseconds to seconds.

    >>> s_from_ns(2.5e9)
    2.5
    """
    return time_ns / 1e9


def ns_from_s(time_s: Numeric) -> Numeric:
    """Seconds to nanoseconds.

    >>> ns_from_s(2.0)
    2000000000.0
    """
    return time_s * 1e9


def mm_from_m(length_m: Numeric) -> Numeric:
    """Metres to millimetres.

    >>> mm_from_m(0.25)
    250.0
    """
    return 1000.0 * length_m


def ns_from_ms(time_ms: Numeric) -> Numeric:
    """Milliseconds to nanoseconds.

    >>> ns_from_ms(2.5)
    2500000.0
    """
    return time_ms * 1e6
