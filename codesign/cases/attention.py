"""Replay of measured attention kernels (kernels/attention.csv): phase context is prefill, generation is decode."""

import numpy as np

from codesign.cases.formats import format_word
from codesign.cases.kernel_rows import latency, usable, whole
from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.machines import attention_engine
from codesign.model.kernels.attention import decode_attention_ns, prefill_attention_ns


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Latency of every row."""
    names = ("batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim")
    sizes = {name: rows.numbers(name) for name in names}
    parts, words, refused = usable(rows, catalog, rows.text("attn_dtype"), sizes)
    for i, phase in enumerate(rows.text("phase")):
        if refused[i] is None and phase not in ("context", "generation"):
            refused[i] = f"phase {phase!r} is neither context nor generation"
    batch, query, heads, kv_heads, width = (whole(column, refused) for column in sizes.values())
    step = np.nan_to_num(rows.numbers("step"))
    caches = [format_word(cell) or word for cell, word in zip(rows.text("kv_cache_dtype"), words, strict=True)]
    engine = attention_engine(catalog, parts, words, caches)
    kv_bytes = np.where([cache in ("bf16", "fp16") for cache in caches], 2.0, 1.0)
    prompt_ns = prefill_attention_ns(batch, query, query + step, heads, kv_heads, width, engine)
    token_ns = decode_attention_ns(batch, step + 1.0, heads, kv_heads, width, kv_bytes, engine)
    prompt = np.array([phase == "context" for phase in rows.text("phase")])
    return latency(rows, np.where(prompt, prompt_ns, token_ns), refused)
