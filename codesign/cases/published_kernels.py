"""Published kernel rates as columns: which law a row needs, its sizes, its library and its unit."""

import re
from dataclasses import dataclass

import numpy as np

from codesign.cases.kernel_rows import usable, whole
from codesign.cases.rows import CaseRows
from codesign.catalog import Catalog
from codesign.machines import peak_gflops
from codesign.units import Array

#: pattern in the library cell -> class of `calibration/kernel.yaml`; first match wins, ``plain`` where none does
_LIBRARIES = (
    ("deepgemm", "deepgemm"),
    ("hipblaslt", "hipblaslt"),
    ("cublaslt", "cublaslt"),
    (r"_scaled_mm|mamf|best shape", "best-shape"),
    ("pytorch|torch", "framework"),
    ("xla|jax", "xla"),
)
#: a row whose printed peak is below this share of the part's describes one of several devices in the part
_WHOLE_PART_FRAC = 0.75


@dataclass(frozen=True)
class PublishedKernels:
    """Rows of one file, refused ones filled in."""

    parts: list[str]
    words: list[str]
    libraries: list[str]
    kernels: list[str]  # gemm, prefill or decode
    refused: list[str | None]
    m: Array
    n: Array  # groups of a grouped product lie side by side
    k: Array
    batch: Array
    heads: Array
    kv_heads: Array
    head_dim: Array
    query: Array
    context: Array
    share_frac: Array  # of the part that one device of the row is


def library_class(cell: str) -> str:
    """The class of a library cell.

    >>> library_class("cuBLASLt"), library_class("PyTorch matmul"), library_class("")
    ('cublaslt', 'framework', 'plain')
    """
    text = cell.lower()
    return next((name for pattern, name in _LIBRARIES if re.search(pattern, text)), "plain")


def kernel_class(cell: str) -> str:
    """The law that a kernel cell needs, empty where there is none.

    >>> kernel_class("grouped gemm (masked)"), kernel_class("attention forward"), kernel_class("softmax")
    ('gemm', 'prefill', '')
    """
    text = cell.lower()
    if "attention" in text:
        return "decode" if "decode" in text else "prefill"
    return "gemm" if re.search("gemm|matmul|linear", text) else ""


def published_kernels(rows: CaseRows, catalog: Catalog) -> PublishedKernels:
    """Read the rows; a row that no law covers carries its reason."""
    kernels = [kernel_class(cell) for cell in rows.text("kernel")]
    is_gemm = np.array([kernel == "gemm" for kernel in kernels])
    first = {name: np.where(is_gemm, rows.numbers(name), 1.0) for name in ("m", "n", "k")}
    second = {name: np.where(is_gemm, 1.0, rows.numbers(name)) for name in ("batch", "heads", "head_dim", "seq_kv")}
    parts, words, refused = usable(rows, catalog, rows.text("dtype_in"), {**first, **second})
    for i, kernel in enumerate(kernels):
        if refused[i] is None and not kernel:
            refused[i] = f"kernel {rows.text('kernel')[i]!r} is not modelled"
    groups = np.where(is_gemm, np.nan_to_num(rows.numbers("groups"), nan=1.0), 1.0)
    heads = whole(second["heads"], refused)
    context = whole(second["seq_kv"], refused)
    kv_heads, query = rows.numbers("kv_heads"), rows.numbers("seq_q")
    printed = 1e3 * rows.numbers("peak_spec_tflops")
    peaks = np.array([peak_gflops(catalog, part, word) for part, word in zip(parts, words, strict=True)])
    share = printed / peaks
    return PublishedKernels(
        parts=parts,
        words=words,
        libraries=[library_class(cell) for cell in rows.text("library")],
        kernels=kernels,
        refused=refused,
        m=whole(first["m"], refused),
        n=whole(first["n"] * np.maximum(groups, 1.0), refused),
        k=whole(first["k"], refused),
        batch=whole(second["batch"], refused),
        heads=heads,
        kv_heads=np.where(kv_heads > 0.0, kv_heads, heads),
        head_dim=whole(second["head_dim"], refused),
        query=np.where(query > 0.0, query, context),
        context=context,
        share_frac=np.where(share < _WHOLE_PART_FRAC, share, 1.0),
    )


def flop_of(rows: PublishedKernels) -> Array:
    """Operations of every row as its source counts them: attention causal, as its time is."""
    prompt = np.array([kernel == "prefill" for kernel in rows.kernels])
    seen = np.where(prompt, rows.context - 0.5 * rows.query, rows.context)
    query = np.where(prompt, rows.query, 1.0)
    attention = 4.0 * rows.batch * rows.heads * rows.head_dim * query * seen
    is_gemm = np.array([kernel == "gemm" for kernel in rows.kernels])
    return np.where(is_gemm, 2.0 * rows.m * rows.n * rows.k, attention)


def in_unit(unit: str, time_ns: float, flop: float, peak_tflops: float) -> float | None:
    """A time in the unit of a row, or None where the unit is not known.

    >>> in_unit("TFLOP/s", 1000.0, 1e9, 1.0), in_unit("us", 1500.0, 1.0, 1.0)
    (1000.0, 1.5)
    """
    rate_tflops = flop / time_ns / 1e3
    known = {"tflop/s": rate_tflops, "tflops": rate_tflops, "gflop/s": 1e3 * rate_tflops, "us": time_ns / 1e3}
    known |= {"ms": time_ns / 1e6, "s": time_ns / 1e9, "%": 100.0 * rate_tflops / peak_tflops}
    return known.get(unit.strip().lower())
