"""Whole transformers as catalog records: one entry of ``data/models.yaml`` per model, with its source."""

from functools import cache
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from codesign.catalog.parsed import parsed
from codesign.catalog.refused import refused
from codesign.errors import CatalogError, nearest
from codesign.resources import catalog_data

Count = int


class StateLayer(BaseModel):
    """A mixer with a recurrent state in place of a growing cache."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["mamba2", "gated-delta"]
    layers: Count = Field(gt=0)
    heads: Count = Field(gt=0, description="state heads (value heads of gated-delta)")
    head_dim: Count = Field(gt=0, description="values of one state head (value head dim)")
    state: Count = Field(gt=0, description="state entries per value: SSM state size, or the key head dim")
    groups: Count = Field(gt=0, description="groups of B and C, or key heads")
    convolution: Count = Field(gt=0, description="width of the short convolution")


class Mla(BaseModel):
    """Latent attention."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    q_lora: Count = Field(ge=0)
    kv_lora: Count = Field(gt=0)
    qk_nope: Count = Field(gt=0)
    qk_rope: Count = Field(ge=0)
    v_head_dim: Count = Field(gt=0)


class Experts(BaseModel):
    """Routed and shared experts of the expert layers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    experts: Count = Field(gt=0)
    top_k: Count = Field(gt=0)
    ffn: Count = Field(gt=0)
    layers: Count = Field(gt=0, description="layers that have experts")
    shared: Count = Field(default=0, ge=0)
    shared_ffn: Count | None = Field(default=None, description="inner width of a shared expert; that of a routed one")
    latent: Count | None = Field(default=None, description="width the experts work at; the hidden width")

    @model_validator(mode="after")
    def _top_k_fits(self) -> Self:
        if self.top_k > self.experts:
            raise ValueError(f"top_k {self.top_k} is more than the {self.experts} experts")
        return self


class ModelRecord(BaseModel):
    """Architecture of one published model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    layers: Count = Field(gt=0)
    attention_layers: Count | None = Field(default=None, ge=0, description="all layers unless said")
    dense_layers: Count | None = Field(default=None, ge=0, description="layers with a dense feed-forward")
    hidden: Count = Field(gt=0)
    ffn: Count = Field(ge=0)
    gated: bool
    heads: Count = Field(gt=0)
    kv_heads: Count = Field(gt=0)
    head_dim: Count = Field(gt=0)
    vocab: Count = Field(gt=0)
    tied: bool = False
    positions: Count = Field(default=0, ge=0, description="learned position embeddings")
    attention_gate: bool = False
    window: Count = Field(default=0, ge=0)
    windowed_layers: Count = Field(default=0, ge=0)
    sparse_context: Count = Field(default=0, ge=0)
    mla: Mla | None = None
    experts: Experts | None = None
    state: StateLayer | None = None
    mtp_layers: Count = Field(default=0, ge=0)
    published_parameters_b: float | None = Field(default=None, description="total as its source prints it")
    source: str
    where: str = Field(min_length=1)
    note: str = ""


Models = dict[str, ModelRecord]


@cache
def load_models(data: Path | None = None) -> Models:
    """Every record of ``models.yaml``, by the name that case files and spaces use.

    Raises:
        CatalogError: a record breaks the schema.
    """
    path = (data or catalog_data()) / "models.yaml"
    try:
        return TypeAdapter(Models).validate_python(parsed(path.parent)[path.name])
    except ValidationError as error:
        raise refused(path, error) from error


def model_record(name: str, models: Models | None = None) -> ModelRecord:
    """One model.

    Raises:
        CatalogError: there is no such model; the message names the nearest.
    """
    known = models if models is not None else load_models()
    if name not in known:
        raise CatalogError(f"catalog models.yaml: no model {name!r}{nearest(name, known)}")
    return known[name]
