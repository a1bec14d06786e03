"""From the names of serving engines to the numbers the serving model reads."""

from collections.abc import Sequence

import numpy as np

from codesign.catalog import Catalog
from codesign.errors import CatalogError, nearest
from codesign.model.workload.serving_inputs import QueueConstants, ServingSoftware
from codesign.units import Array

#: words that name an engine, inside a longer name, first one found wins
_WORDS = {
    "fastertransformer": "fastertransformer",
    "tensorrt": "trtllm",
    "trt": "trtllm",
    "vllm": "vllm",
    "sglang": "sglang",
}
#: engines that batch prompts with decode and those that do not, by their group of waiting constants
_MIXING = {True: "mixing", False: "separate"}


def engine_of(catalog: Catalog, name: str) -> str:
    """The entry of engines.yaml that an engine's printed name means.

    Raises:
        CatalogError: no engine of that name; the message names the nearest.
    """
    known, low = catalog.technologies("engines"), name.lower()
    if low in known:
        return low
    for word, engine in _WORDS.items():
        if word in low:
            return engine
    raise CatalogError(f"catalog engines.yaml: no engine {name!r}{nearest(low, known)}")


def serving_software(catalog: Catalog, engines: Sequence[str]) -> ServingSoftware:
    """Software columns of engines, one row each.

    Raises:
        CatalogError: an engine is unknown.
    """
    law = "serving_tpot"
    graphs = _facts(catalog, engines, "graph_flag")
    captured, eager = (catalog.constant(law, "all", name) for name in ("kernel_gap_ns", "eager_gap_ns"))
    shared = {
        name: catalog.constant(law, "all", name)
        for name in (
            "step_host_ns",
            "kv_reserve_frac",
            "chunk_count",
            "batch_limit_count",
            "straggler_ratio",
            "expert_skew_ratio",
            "exchange_start_frac",
            "prefill_work_ratio",
        )
    }
    return ServingSoftware(
        kernel_gap_ns=np.where(graphs > 0.0, captured, eager),
        sequence_host_ns=np.array([catalog.constant(law, engine, "sequence_host_ns") for engine in engines]),
        mixed_frac=_facts(catalog, engines, "mixed_batch_frac"),
        kv_memory_frac=_facts(catalog, engines, "memory_frac"),
        **shared,
    )


def queue_constants(catalog: Catalog, engines: Sequence[str]) -> QueueConstants:
    """Waiting constants of engines, one row each.

    Raises:
        CatalogError: an engine is unknown.
    """
    law = "serving_ttft"
    groups = [_MIXING[mixed >= 0.5] for mixed in _facts(catalog, engines, "mixed_batch_frac")]
    shared = {
        name: catalog.constant(law, "all", name)
        for name in (
            "prompt_ratio",
            "transfer_start_ns",
            "transfer_rate_frac",
            "pool_efficiency_frac",
            "pool_burst_frac",
        )
    }
    return QueueConstants(
        burst_frac=np.array([catalog.constant(law, group, "burst_frac") for group in groups]),
        wave_frac=np.array([catalog.constant(law, group, "wave_frac") for group in groups]),
        step_ratio=np.array([catalog.constant(law, engine, "step_ratio") for engine in engines]),
        start_ns=np.array([catalog.constant(law, engine, "start_ns") for engine in engines]),
        **shared,
    )


def _facts(catalog: Catalog, engines: Sequence[str], name: str) -> Array:
    values = {engine: catalog.value("engines", engine, name) for engine in dict.fromkeys(engines)}
    return np.array([values[engine] for engine in engines], dtype=np.float64)
