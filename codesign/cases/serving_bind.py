"""From measured rows to the structs of the serving model: number formats, engines, fabric, software."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from codesign.cases.rows import CaseRows
from codesign.cases.serving_rows import PoolRows, ServingRows
from codesign.catalog import Catalog
from codesign.columns import rows_of
from codesign.engines import queue_constants, serving_software
from codesign.model.workload.serving_inputs import Pool, ServingLayout
from codesign.model.workload.serving_search import ServingSystem
from codesign.model.workload.transformer import Transformer
from codesign.serving_formats import formats_of, serving_fabric, serving_job, serving_kernels
from codesign.transformers import transformer_from_rows
from codesign.units import Array


@dataclass(frozen=True)
class ServingBatch:
    """Everything `serving_point` reads, as columns of the same rows."""

    system: ServingSystem
    layout: ServingLayout

    def pick(self, rows: Any) -> "ServingBatch":
        """Some of the rows."""
        return ServingBatch(rows_of(self.system, rows), rows_of(self.layout, rows))


def serving_layout(repaired: ServingRows) -> ServingLayout:
    """Layout columns of repaired rows."""
    return ServingLayout(_pool(repaired.prefill), _pool(repaired.decode), repaired.disaggregated, repaired.users)


def _pool(rows: PoolRows) -> Pool:
    return Pool(rows.workers, rows.tp, rows.dp, rows.pp, rows.ep)


def bind_rows(
    catalog: Catalog,
    rows: CaseRows,
    repaired: ServingRows,
    transformer: Transformer,
    engines: Sequence[str],
    speculation_ratio: Array,
) -> ServingBatch:
    """All structs of rows of known parts, models and engines."""
    accelerators = rows.text("accelerator")
    words = zip(
        rows.text("model"), accelerators, engines, rows.text("precision"), rows.text("gemm_quant_mode"),
        np.broadcast_to(transformer.experts_count, (len(rows),)), strict=True,
    )  # fmt: skip
    formats = [formats_of(catalog, *row) for row in words]
    system = ServingSystem(
        transformer=transformer,
        job=serving_job(repaired.isl, repaired.osl, repaired.wave, formats, speculation_ratio),
        kernels=serving_kernels(catalog, accelerators, formats),
        fabric=serving_fabric(catalog, accelerators, engines),
        software=serving_software(catalog, engines),
        queue=queue_constants(catalog, engines),
    )
    return ServingBatch(system, serving_layout(repaired))


def bind_tables(catalog: Catalog, rows: CaseRows, engines: Sequence[str]) -> ServingBatch:
    """All structs of rows of the inference tables: fixed lengths, one engine, the formats the row prints."""
    accelerators, one = rows.text("accelerator"), np.ones(len(rows))
    transformer = transformer_from_rows(rows)[0]
    words = zip(
        rows.text("model"), accelerators, engines, rows.text("weight_prec"),
        np.broadcast_to(transformer.experts_count, (len(rows),)), strict=True,
    )  # fmt: skip
    formats = [
        replace(
            formats_of(catalog, model, part, engine, precision, "", experts),
            cache="fp8" if width == 1.0 else "bf16",
            kv_bytes=width,
        )
        for (model, part, engine, precision, experts), width in zip(words, _cache_bytes(rows), strict=True)
    ]
    tp, pp, dp, ep = (_filled(rows.numbers(name)) for name in ("tp", "pp", "dp_attn", "moe_ep"))
    # a tp printed beside attention replicas is that of one replica's attention
    pool = Pool(one, tp, dp, pp, np.where(dp > 1.0, tp * dp, np.minimum(ep, tp)))
    system = ServingSystem(
        transformer=transformer,
        job=serving_job(rows.numbers("isl"), rows.numbers("osl"), one, formats, one),
        kernels=serving_kernels(catalog, accelerators, formats),
        fabric=serving_fabric(catalog, accelerators, engines),
        software=serving_software(catalog, engines),
        queue=queue_constants(catalog, engines),
    )
    return ServingBatch(system, ServingLayout(pool, pool, 0.0 * one, one))


def _filled(column: Array) -> Array:
    return np.where(column > 0.0, column, 1.0)


def _cache_bytes(rows: CaseRows) -> list[float]:
    """Bytes of a cached value as printed; as the weights where nothing is printed."""
    printed = zip(rows.text("kv_prec"), rows.text("weight_prec"), strict=True)
    return [1.0 if "8" in (cache or weights) or "FP4" in (cache or weights) else 2.0 for cache, weights in printed]
