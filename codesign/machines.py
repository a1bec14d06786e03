"""From accelerator names and number formats to the engines the kernel laws read.

Peaks and memory rates are the part's own facts. Shares of peak, ramps and start times are fitted constants: those of
the part where it was measured, else of its architecture, else of the measured architecture it is most like.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TypeVar

import numpy as np

from codesign.catalog import Catalog
from codesign.catalog.architectures import lineage
from codesign.errors import CatalogError, nearest
from codesign.model.kernels.attention import AttentionEngine
from codesign.model.kernels.gemm import GemmEngine
from codesign.model.kernels.mla import MlaEngine
from codesign.model.kernels.moe import MoeEngine
from codesign.units import Array, gbps_from_gbytes_per_s, gflops_from_tflops

#: number format -> formats whose printed peak its matrix unit runs at, first one printed wins
_PEAKS: dict[str, tuple[str, ...]] = {
    "bf16": ("bf16",),
    "fp16": ("bf16",),
    "fp8": ("fp8", "bf16"),
    "fp8_block": ("fp8", "bf16"),
    "mxfp8": ("fp8", "bf16"),
    "nvfp4": ("fp4", "fp8", "bf16"),
    "mxfp4": ("fp4", "fp8", "bf16"),
    "w4a8": ("fp8", "bf16"),
    "int8": ("int8", "fp8", "bf16"),
    "int8_wo": ("bf16",),
    "int4": ("bf16",),
    "bf16-kv8": ("bf16",),
    "fp16-kv8": ("bf16",),
}
#: number format -> formats whose constants it may use, nearest first
_FORMATS: dict[str, tuple[str, ...]] = {
    "bf16": ("bf16",),
    "fp16": ("bf16",),
    "fp8": ("fp8", "bf16-kv8", "bf16"),
    "fp8_block": ("fp8_block", "fp8", "bf16"),
    "mxfp8": ("fp8_block", "fp8", "bf16"),
    "nvfp4": ("nvfp4", "fp8_block", "fp8", "bf16"),
    "mxfp4": ("nvfp4", "fp8_block", "fp8", "bf16"),
    "w4a8": ("w4a8", "fp8_block", "fp8", "bf16"),
    "int8": ("int8", "fp8", "bf16"),
    "int8_wo": ("int8_wo", "int4", "bf16"),
    "int4": ("int4", "int8_wo", "bf16"),
    "bf16-kv8": ("bf16-kv8", "bf16"),
    "fp16-kv8": ("bf16-kv8", "bf16"),
}
#: part or architecture whose constants serve where nothing nearer was measured
_MEASURED = "hopper"
#: number format -> bytes of one weight and of one activation as the matrix unit reads them, scales included
WEIGHT_BYTES: dict[str, float] = {
    "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "fp8_block": 1.0, "mxfp8": 1.03125, "nvfp4": 0.5625, "mxfp4": 0.53125,
    "w4a8": 0.53125, "int8": 1.0, "int8_wo": 1.0, "int4": 0.53125,
}  # fmt: skip
ACTIVATION_BYTES: dict[str, float] = {
    "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "fp8_block": 1.03125, "mxfp8": 1.03125, "nvfp4": 0.5625, "mxfp4": 2.0,
    "w4a8": 1.03125, "int8": 1.0, "int8_wo": 2.0, "int4": 2.0,
}  # fmt: skip


Engine = TypeVar("Engine", GemmEngine, AttentionEngine, MlaEngine, MoeEngine)


def constants_names(engine: type[Engine]) -> tuple[str, ...]:
    """Fitted constants of a kind of engine, as its file in calibration names them: all but the facts of a part."""
    facts = ("peak_gflops", "memory_rate_gbps")
    return tuple(field.name for field in fields(engine) if field.init and field.name not in facts)


def has_accelerator(catalog: Catalog, name: str) -> bool:
    """Whether a part has what every model needs: a peak, a memory rate and a capacity."""
    return not _lacking(catalog, name)


def accelerator_refusal(catalog: Catalog, name: str) -> str | None:
    """Why a part cannot be modelled, or None."""
    known = catalog.technologies("accelerators")
    if name not in known:
        return f"accelerator {name!r} is not in accelerators.yaml{nearest(name, known)}"
    lacking = _lacking(catalog, name)
    return f"accelerator {name!r} has no {' and no '.join(lacking)} in accelerators.yaml" if lacking else None


def _lacking(catalog: Catalog, name: str) -> list[str]:
    facts = catalog.technologies("accelerators").get(name, {})
    needed = ("bf16_peak_tflops", "memory_rate_tbytes_per_s", "memory_capacity_gb")
    return [fact for fact in needed if fact not in facts]


def peak_gflops(catalog: Catalog, accelerator: str, dtype: str) -> float:
    """Printed dense peak of a part in a number format, or in the next wider one it has.

    Raises:
        CatalogError: the part or the number format is unknown.
    """
    if dtype not in _PEAKS:
        raise CatalogError(f"number format {dtype!r} is unknown{nearest(dtype, _PEAKS)}")
    facts = catalog.technology("accelerators", accelerator)
    for name in _PEAKS[dtype]:
        if f"{name}_peak_tflops" in facts:
            return float(gflops_from_tflops(facts[f"{name}_peak_tflops"].value))
    raise CatalogError(f"catalog accelerators.yaml: {accelerator}: no peak for {dtype}")


def memory_rate_gbps(catalog: Catalog, accelerator: str) -> float:
    """Printed peak memory rate of a part."""
    rate = catalog.value("accelerators", accelerator, "memory_rate_tbytes_per_s")
    return float(gbps_from_gbytes_per_s(1e3 * rate))


def _group(catalog: Catalog, law: str, accelerator: str, dtype: str, kernels: Sequence[str] = ("",)) -> str:
    """The group of constants nearest to a part, format and kernel: ``part.format`` or ``part.format.kernel``.

    Nearest kernel first at the nearest part, then the nearest format.

    Raises:
        CatalogError: the number format is unknown or the law has no group for it.
    """
    if dtype not in _FORMATS:
        raise CatalogError(f"number format {dtype!r} is unknown{nearest(dtype, _FORMATS)}")
    groups = catalog.constants.get(law, {})
    for form in _FORMATS[dtype]:
        for kernel in kernels:
            for part in (*lineage(accelerator), _MEASURED):
                name = f"{part}.{form}.{kernel}".rstrip(".")
                if name in groups:
                    return name
    raise CatalogError(f"catalog calibration/{law}.yaml: no group for {accelerator} {dtype}")


def constants_of(
    catalog: Catalog,
    law: str,
    accelerators: Sequence[str],
    dtypes: Sequence[str],
    kernels: Sequence[tuple[str, ...]] | None = None,
) -> tuple[Callable[[str], Array], list[str]]:
    """A reader of the fitted constants of a law as columns, and the number format each row's peak is taken in.

    ``accelerators`` are parts or architectures. The peak is that of the row's own format: shares of peak carry over
    from a neighbouring format. Attention libraries choose the format of their products by themselves, so there it is
    that of the format the group was fitted in.

    Raises:
        CatalogError: a number format is unknown or the law has no group for it.
    """
    keys = list(zip(accelerators, dtypes, kernels or [("",)] * len(accelerators), strict=True))
    groups = {key: _group(catalog, law, *key) for key in dict.fromkeys(keys)}
    fitted = law in ("attention", "mla")

    def column(name: str) -> Array:
        values = {group: catalog.constant(law, group, name) for group in dict.fromkeys(groups.values())}
        return np.array([values[groups[key]] for key in keys])

    return column, [groups[key].split(".")[1] if fitted else key[1] for key in keys]


def _engine(
    kind: type[Engine],
    law: str,
    catalog: Catalog,
    accelerators: Sequence[str],
    dtypes: Sequence[str],
    kernels: Sequence[tuple[str, ...]] | None = None,
) -> Engine:
    """Engines of one kind: fitted constants as columns, with the peaks and memory rates of the parts."""
    column, forms = constants_of(catalog, law, accelerators, dtypes, kernels)
    pairs = list(zip(accelerators, forms, strict=True))
    peaks = {pair: peak_gflops(catalog, *pair) for pair in dict.fromkeys(pairs)}
    rates = {name: memory_rate_gbps(catalog, name) for name in dict.fromkeys(accelerators)}
    return kind(
        peak_gflops=np.array([peaks[pair] for pair in pairs]),
        memory_rate_gbps=np.array([rates[name] for name in accelerators]),
        **{name: column(name) for name in constants_names(kind)},
    )


def gemm_engine(catalog: Catalog, accelerators: Sequence[str], dtypes: Sequence[str]) -> GemmEngine:
    """Engines of matrix products, one row per (accelerator, number format).

    Raises:
        CatalogError: an accelerator or number format is unknown.
    """
    return _engine(GemmEngine, "gemm", catalog, accelerators, dtypes)


def without_quantisation(engine: GemmEngine) -> GemmEngine:
    """The same engine for activations that already are in its number format."""
    return replace(engine, quantise_launch_ns=0.0, quantise_bytes=0.0)


def attention_engine(
    catalog: Catalog, accelerators: Sequence[str], dtypes: Sequence[str], kv_dtypes: Sequence[str] | None = None
) -> AttentionEngine:
    """Engines of attention, one row per (accelerator, format of its products, format of its cache).

    The cache has the format of the products unless said.

    Raises:
        CatalogError: an accelerator or number format is unknown.
    """
    return _engine(AttentionEngine, "attention", catalog, accelerators, cache_forms(dtypes, kv_dtypes))


def mla_engine(
    catalog: Catalog,
    accelerators: Sequence[str],
    dtypes: Sequence[str],
    kv_dtypes: Sequence[str] | None = None,
    kernels: Sequence[str] | None = None,
) -> MlaEngine:
    """Engines of latent attention, one row per (accelerator, format of its products, format of its cache).

    ``kernels`` names the library as the case files do; the library of the serving engine with the best kernels else.

    Raises:
        CatalogError: an accelerator or number format is unknown.
    """
    named = [(name, "default") for name in kernels or ["default"] * len(accelerators)]
    return _engine(MlaEngine, "mla", catalog, accelerators, cache_forms(dtypes, kv_dtypes), named)


def cache_forms(dtypes: Sequence[str], kv_dtypes: Sequence[str] | None) -> list[str]:
    """Format words of attention constants: products and cache in one word."""
    caches = kv_dtypes or dtypes
    wide = ("bf16", "fp16")
    return [
        f"{dtype}-kv8" if dtype in wide and cache not in wide else dtype
        for dtype, cache in zip(dtypes, caches, strict=True)
    ]


def moe_engine(
    catalog: Catalog, accelerators: Sequence[str], dtypes: Sequence[str], libraries: Sequence[str] | None = None
) -> MoeEngine:
    """Engines of fused expert layers, one row per (accelerator, number format).

    ``libraries`` name a serving engine (``trtllm``, ``vllm``, ``sglang``) or an engine and its kind of kernel
    (``vllm-triton``); a kind that was not measured with one engine is taken from another that has it.

    Raises:
        CatalogError: an accelerator or number format is unknown.
    """
    named = [library_chain(name) for name in libraries or ["default"] * len(accelerators)]
    return _engine(MoeEngine, "moe_gemm", catalog, accelerators, dtypes, named)


def library_chain(name: str) -> tuple[str, ...]:
    """Libraries whose constants may stand for a named one, nearest first: same kind elsewhere, same engine, any."""
    engine, _, kind = name.partition("-")
    others = tuple(f"{other}-{kind}" for other in ("trtllm", "sglang", "vllm")) if kind else ()
    return (name, *others, engine, "default")
