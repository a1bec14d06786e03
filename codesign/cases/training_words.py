"""What the words in a row of training.csv mean: framework, release, number format, recompute, sharding.

Only columns that every row has are read; notes and series names are not.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Recompute:
    """What runs again in the backward pass, and what is kept in the second tier instead."""

    full: float = 0.0  # share of the layers whose whole forward runs again
    attention: float = 0.0
    elementwise: float = 0.0
    offload: float = 0.0  # share of the kept activations that live in the second tier
    sequence_parallel: bool | None = None  # said by the row; None: as the release does by default


@dataclass(frozen=True)
class Sharding:
    """How weights, gradients and optimizer state are split over the data ranks."""

    fully: bool = False
    gradients: bool = False
    optimizer: bool = False
    wide_reduce: bool | None = None  # gradients reduced in four bytes; None: as the release does
    ranks: float = 0.0  # ranks that share one copy; 0: all data ranks


#: framework words -> family of software.yaml, first match wins
_FAMILIES: tuple[tuple[str, str], ...] = (
    (r"habana|synapse", "synapse"),
    (r"rocm|llmboost", "rocm"),
    (r"composer|llm-foundry|mosaic", "composer"),
    (r"torchtitan|fsdp", "torchtitan"),
    (r"maxtext|jax|pathways|t5x|pax", "maxtext"),
    (r"megatron|nemo|bridge", "megatron"),
)
_VENDOR_FAMILIES = {"tpu": "maxtext", "mi": "rocm", "gaudi": "synapse"}


def family_of(framework: str, fw_version: str, accelerator: str) -> str:
    """Family of the software; where the framework does not tell, what the vendor of the part ships.

    >>> family_of("NeMo / Megatron-Core", "25.04", "h100-sxm"), family_of("PyTorch", "", "mi300x")
    ('megatron', 'rocm')
    """
    for prefix, family in _VENDOR_FAMILIES.items():
        if accelerator.startswith(prefix):
            return family
    if fw_version.startswith("MLPerf Training"):
        return "mlperf"
    return next((family for words, family in _FAMILIES if re.search(words, framework, re.IGNORECASE)), "megatron")


def release_year_of(fw_version: str, date: str) -> float:
    """Release as a year with months as its fraction: from the version where it is a date, else from the date.

    >>> release_year_of("26.06.01", "2026-07"), release_year_of("", "2023-2024")
    (2026.417, 2023.0)
    """
    short = re.search(r"\b(2\d)\.(0[1-9]|1[0-2])\b", fw_version)
    if short:
        return round(2000 + int(short[1]) + (int(short[2]) - 1) / 12, 3)
    for text in (fw_version, date):
        long = re.search(r"\b(20\d\d)(?:-(0[1-9]|1[0-2])\b)?", text)
        if long:
            return round(int(long[1]) + (int(long[2]) - 1 if long[2] else 0) / 12, 3)
    return 2024.0


def format_of(precision: str) -> str:
    """Number format of the matrix products; where two are named as possible, the wider.

    >>> format_of("FP8 (current scaling)"), format_of("FP8 or NVFP4 (not determinable)"), format_of("amp_bf16")
    ('fp8', 'fp8', 'bf16')
    """
    words = precision.lower()
    for mark, name in (("mxfp8", "mxfp8"), ("fp8", "fp8"), ("float8", "fp8"), ("nvfp4", "nvfp4"), ("fp4", "nvfp4")):
        if mark in words:
            return name
    return "int8" if "int8" in words else "bf16"


def recompute_of(words: str) -> Recompute:
    """What a row recomputes; an empty cell means nothing, which is the rule that fits rows without the field.

    >>> recompute_of("selective + sequence parallel")
    Recompute(full=0.0, attention=1.0, elementwise=0.0, offload=0.0, sequence_parallel=True)
    """
    text = words.lower()
    parallel = True if "sequence parallel" in text else None
    if text.startswith("full"):
        return Recompute(full=1.0, sequence_parallel=parallel is not None)
    if text.startswith("minimal"):
        return Recompute(attention=1.0, elementwise=1.0)
    if text.startswith("selective (per-op)"):
        return Recompute(full=0.5, sequence_parallel=parallel)
    if text in ("selective", "selective + sequence parallel"):
        return Recompute(attention=1.0, sequence_parallel=parallel)
    if text.startswith("selective"):
        return Recompute(elementwise=1.0)
    if text.startswith(("custom", "see config")):
        return Recompute(full=1.0)
    return Recompute(sequence_parallel=parallel)


def sharding_of(words: str) -> Sharding:
    """How a row shards; an empty cell means plain replicas.

    >>> sharding_of("FSDP FULL_SHARD (PURE)").wide_reduce, sharding_of("distributed optimizer (DDP)").optimizer
    (False, True)
    """
    text = words.lower()
    wide = True if "(default)" in text else False if "(pure)" in text else None
    if "shard_grad_op" in text:
        return Sharding(gradients=True, optimizer=True, wide_reduce=wide)
    if "fsdp" in text or "full_shard" in text:
        ranks = re.search(r"fsdp2? (\d+)", text)
        return Sharding(True, True, True, wide, float(ranks[1]) if ranks else 0.0)
    return Sharding(optimizer="distributed" in text)
