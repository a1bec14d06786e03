"""Replay of measured latent-attention kernels (kernels/mla.csv)."""

import numpy as np

from codesign.cases.fit_mla import KEY_DIM_COUNT, LATENT_COUNT, ROPE_COUNT, VALUE_DIM_COUNT
from codesign.cases.formats import format_word
from codesign.cases.kernel_rows import latency, usable, whole
from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.machines import mla_engine
from codesign.model.kernels.mla import mla_decode_ns, mla_prefill_ns


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Latency of every row; the file measures one model, whose widths are stated beside the fit."""
    sizes = {name: rows.numbers(name) for name in ("batch_size", "isl", "num_heads")}
    parts, words, refused = usable(rows, catalog, rows.text("mla_dtype"), sizes)
    phases = [name.rsplit("_", 1)[-1] for name in rows.text("op_name")]
    for i, phase in enumerate(phases):
        if refused[i] is None and phase not in ("context", "generation"):
            refused[i] = f"operation {rows.text('op_name')[i]!r} is neither mla_context nor mla_generation"
    batch, query, heads = (whole(column, refused) for column in sizes.values())
    step = np.nan_to_num(rows.numbers("step"))
    caches = [format_word(cell) or word for cell, word in zip(rows.text("kv_cache_dtype"), words, strict=True)]
    engine = mla_engine(catalog, parts, words, caches, rows.text("kernel_source"))
    kv_bytes = np.where([cache in ("bf16", "fp16") for cache in caches], 2.0, 1.0)
    prompt_ns = mla_prefill_ns(batch, query, query + step, heads, KEY_DIM_COUNT, VALUE_DIM_COUNT, engine)
    token_ns = mla_decode_ns(batch, step + 1.0, heads, LATENT_COUNT, ROPE_COUNT, kv_bytes, engine)
    return latency(rows, np.where([phase == "context" for phase in phases], prompt_ns, token_ns), refused)
