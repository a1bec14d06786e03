"""From model names and case rows to `Transformer` columns."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Protocol

import numpy as np

from codesign.catalog.models import ModelRecord, StateLayer, load_models, model_record
from codesign.errors import nearest
from codesign.model.workload.transformer import Transformer
from codesign.units import Array


class Rows(Protocol):
    """Rows of a table by column, as `codesign.cases.rows.CaseRows` has them."""

    def __len__(self) -> int:
        """How many."""
        ...

    def text(self, name: str) -> list[str]:
        """A column as words."""
        ...

    def numbers(self, name: str) -> Array:
        """A column as numbers, NaN where there is none."""
        ...


#: column of a case file -> numbers of `shape_of` that it replaces
_COLUMNS = {
    "layers": "layers_count",
    "hidden": "hidden_count",
    "ffn": "ffn_count",
    "heads": "heads_count",
    "kv_heads": "kv_heads_count",
    "head_dim": "head_dim_count",
    "vocab": "vocab_count",
    "experts": "experts_count",
    "topk": "top_k_count",
    "moe_ffn": "moe_ffn_count",
    "shared_experts": "shared_experts_count",
}
#: bytes of one entry of a recurrent state: engines keep it in single precision
_STATE_VALUE_BYTES = 4.0


def shape_of(record: ModelRecord) -> dict[str, float]:
    """The numbers of one record, by the field names of `Transformer`."""
    experts, mla, state = record.experts, record.mla, record.state
    attention = record.layers if record.attention_layers is None else record.attention_layers
    moe_layers = experts.layers if experts else 0
    dense = record.layers - moe_layers if record.dense_layers is None else record.dense_layers
    return {
        "layers_count": record.layers,
        "attention_layers_count": attention,
        "linear_layers_count": state.layers if state else 0,
        "dense_layers_count": dense,
        "moe_layers_count": moe_layers,
        "hidden_count": record.hidden,
        "ffn_count": record.ffn,
        "gated_flag": float(record.gated),
        "vocab_count": record.vocab,
        "tied_flag": float(record.tied),
        "positions_count": record.positions,
        "heads_count": record.heads,
        "kv_heads_count": record.kv_heads,
        "head_dim_count": record.head_dim,
        "attention_gate_flag": float(record.attention_gate),
        "window_count": record.window,
        "windowed_layers_frac": record.windowed_layers / attention if attention else 0.0,
        "sparse_context_count": record.sparse_context,
        "mla_flag": float(mla is not None),
        "q_lora_count": mla.q_lora if mla else 0,
        "kv_lora_count": mla.kv_lora if mla else 0,
        "qk_nope_count": mla.qk_nope if mla else 0,
        "qk_rope_count": mla.qk_rope if mla else 0,
        "v_head_dim_count": mla.v_head_dim if mla else 0,
        "experts_count": experts.experts if experts else 0,
        "top_k_count": experts.top_k if experts else 0,
        "moe_ffn_count": experts.ffn if experts else 0,
        "moe_hidden_count": (experts.latent or record.hidden) if experts else record.hidden,
        "shared_experts_count": experts.shared if experts else 0,
        "shared_ffn_count": (experts.shared_ffn or experts.ffn) if experts else 0,
        "linear_projection_count": _projection_count(state, record.hidden),
        "linear_other_count": _other_count(state),
        "state_bytes": _STATE_VALUE_BYTES * state.heads * state.head_dim * state.state if state else 0.0,
        "mtp_layers_count": record.mtp_layers,
    }


def _projection_count(state: StateLayer | None, hidden: int) -> float:
    """Input and output projections of one linear layer: gate, values, B and C (or keys and queries), steps."""
    if state is None:
        return 0.0
    inner, keys = state.heads * state.head_dim, state.groups * state.state
    steps = state.heads if state.kind == "mamba2" else 2 * state.heads
    return float(hidden * (2 * inner + 2 * keys + steps) + inner * hidden)


def _other_count(state: StateLayer | None) -> float:
    """Short convolution over values, B and C; one decay, step bias and skip per head; the gated norm."""
    if state is None:
        return 0.0
    inner, keys = state.heads * state.head_dim, state.groups * state.state
    norm = inner if state.kind == "mamba2" else state.head_dim
    return float((inner + 2 * keys) * state.convolution + 3 * state.heads + norm)


def transformer_of(names: Sequence[str]) -> Transformer:
    """The named models as columns of length ``len(names)``.

    Raises:
        CatalogError: a name is not in models.yaml; the message names the nearest.
    """
    shapes = {name: shape_of(model_record(name)) for name in dict.fromkeys(names)}
    return _columns([shapes[name] for name in names])


def transformer_from_rows(rows: Rows) -> tuple[Transformer, list[str | None]]:
    """Shapes of case rows, and why a row cannot be modelled (None where it can).

    A row's own cells win; models.yaml fills what they leave open. A model that is in neither is refused, and its
    columns hold the shape of the smallest record so that every number stays finite.
    """
    names = rows.text("model")
    cells = {column: rows.numbers(column) for column in _COLUMNS}
    known = load_models()
    filler = shape_of(min(known.values(), key=lambda record: record.hidden * record.layers))
    shapes: list[dict[str, float]] = []
    refused: list[str | None] = []
    for i, name in enumerate(names):
        own = {_COLUMNS[c]: float(v[i]) for c, v in cells.items() if np.isfinite(v[i])}
        shape = _merged(shape_of(known[name]), own) if name in known else _alone(own)
        shapes.append(shape or filler)
        refused.append(None if shape else _missing(name, own, known))
    return _columns(shapes), refused


def _merged(shape: dict[str, float], own: dict[str, float]) -> dict[str, float]:
    """A record with a row's own cells in place; layer kinds keep their shares when only the depth changes."""
    latent = shape["moe_hidden_count"] != shape["hidden_count"]
    merged = {**shape, **own}
    if merged["layers_count"] != shape["layers_count"]:
        scale = merged["layers_count"] / shape["layers_count"]
        for kind in ("attention", "linear"):
            merged[f"{kind}_layers_count"] = round(shape[f"{kind}_layers_count"] * scale)
        merged["moe_layers_count"] = (
            max(merged["layers_count"] - shape["dense_layers_count"], 0.0) if (shape["moe_layers_count"]) else 0.0
        )
        if not shape["moe_layers_count"]:
            merged["dense_layers_count"] = round(shape["dense_layers_count"] * scale)
    if not latent:
        merged["moe_hidden_count"] = merged["hidden_count"]
    if shape["shared_ffn_count"] == shape["moe_ffn_count"]:
        merged["shared_ffn_count"] = merged["moe_ffn_count"]
    return merged


def _alone(own: dict[str, float]) -> dict[str, float] | None:
    """A shape from a row's cells alone: gated feed-forward, untied head, every layer alike."""
    needed = ("layers_count", "hidden_count", "heads_count", "vocab_count")
    if any(own.get(name, 0.0) <= 0.0 for name in needed):
        return None
    experts = own.get("experts_count", 0.0)
    ffn = own.get("ffn_count", own.get("moe_ffn_count", 0.0))
    if ffn <= 0.0 or (experts and own.get("top_k_count", 0.0) <= 0.0):
        return None
    shape = {field.name: 0.0 for field in fields(Transformer)}
    shape.update(kv_heads_count=own["heads_count"], head_dim_count=own["hidden_count"] / own["heads_count"])
    shape.update(gated_flag=1.0, ffn_count=ffn, moe_ffn_count=ffn if experts else 0.0)
    shape.update(attention_layers_count=own["layers_count"], moe_hidden_count=own["hidden_count"])
    shape.update({"moe_layers_count" if experts else "dense_layers_count": own["layers_count"]})
    shape.update(own)
    shape["shared_ffn_count"] = shape["moe_ffn_count"]
    return shape


def _missing(name: str, own: dict[str, float], known: dict[str, ModelRecord]) -> str:
    lacking = [c for c, f in _COLUMNS.items() if c in ("layers", "hidden", "ffn", "heads", "vocab") and f not in own]
    return f"model {name!r} is not in models.yaml and the row lacks {', '.join(lacking)}{nearest(name, known)}"


def _columns(shapes: Sequence[dict[str, float]]) -> Transformer:
    names = [field.name for field in fields(Transformer)]
    return Transformer(**{name: np.array([shape[name] for shape in shapes], dtype=np.float64) for name in names})
