"""Transformers as data: parameters and cache bytes against published counts."""

# mypy: disable-error-code="index,arg-type"
# (a law returns a float or an array; here every model is a column)

import csv
import io
import math

import numpy as np
import pytest

from codesign.cases.rows import CaseRows
from codesign.catalog import Catalog
from codesign.catalog.models import load_models, model_record
from codesign.errors import CatalogError
from codesign.model.workload.transformer import (
    active_parameters_count,
    attention_flop,
    kv_bytes_per_token,
    kv_cache_bytes,
    matrix_flop_per_token,
    parameters_count,
    windowed_context_count,
)
from codesign.resources import case_data
from codesign.transformers import transformer_from_rows, transformer_of

ROWS = list(csv.DictReader(io.StringIO((case_data() / "models.csv").read_text(encoding="utf-8"))))
#: rows whose printed total is a trade name; the total computed from the printed shape is compared instead
NAMES_NOT_COUNTS = {"FT-GPT-350M", "FT-GPT-1.3B", "FT-GPT-6.7B", "FT-GPT-20B", "MCore-GPT-32B (2024)"}
#: rows without any total: what their publishers print on the model card, the name where it is a whole number
NAMED_TOTALS = {
    "Qwen3-Next-80B-A3B": "80",
    "Qwen3.5-397B-A17B": "397",
    "Nemotron-H-56B": "56",
    "Nemotron-3-Nano-30B-A3B": "31.6",
    "Nemotron-3-Super-120B-A12B": "120",
    "Nemotron-3-Ultra-550B-A55B": "550",
    "Nemotron-3.5-Lightning-30B-A3B": "31.6",
    "PaLM-540B": "540",
}
#: rows that cannot be described: compressed attention, hyper-connections and no feed-forward width in the source
NOT_DESCRIBED = {"DeepSeek-V4-Flash", "DeepSeek-V4-Pro"}


def half_digit(printed: str) -> float:
    """Half a unit of the last printed digit."""
    return 0.5 * 10.0 ** -len(printed.rstrip("0").partition(".")[2])


@pytest.mark.parametrize("row", [r for r in ROWS if r["model"] not in NOT_DESCRIBED], ids=lambda r: r["model"])
def test_parameters_of_every_listed_model_are_the_published_ones(row: dict[str, str]) -> None:
    printed = "" if row["model"] in NAMES_NOT_COUNTS else row["params_b"]
    named = NAMED_TOTALS.get(row["model"], "")
    published = printed or row["params_b_computed"] or named

    count_b = float(parameters_count(transformer_of([row["model"]]))[0]) / 1e9

    # one percent, or the rounding of the printed number where that is coarser
    slack = max(0.01 * float(published), half_digit(published))
    assert count_b == pytest.approx(float(published), abs=slack)


@pytest.mark.parametrize(
    ("model", "active_b", "slack_b"),
    [
        ("Qwen3-235B-A22B", 22.0, 0.5),
        ("Qwen3-480B-A35B", 35.0, 0.5),
        ("Qwen3-Next-80B-A3B", 3.0, 1.0),  # the name drops the embeddings
        ("Qwen3.5-397B-A17B", 17.0, 0.5),
        ("Llama-4-Scout", 17.0, 0.5),
        ("Llama-4-Maverick", 17.0, 0.5),
        ("Mixtral-8x7B", 12.9, 0.05),
        ("Mixtral-8x22B", 39.0, 0.5),
        ("DeepSeek-V3", 37.0, 0.6),
        ("Kimi-K2", 32.0, 1.0),
        ("GPT-OSS-120B", 5.1, 0.65),  # the publisher counts one of the two embedding tables
        ("GPT-OSS-20B", 3.6, 0.65),
        ("Nemotron-3-Super-120B-A12B", 12.0, 0.8),
        ("Nemotron-3-Ultra-550B-A55B", 55.0, 1.1),
    ],
)
def test_active_parameters_are_the_published_ones(model: str, active_b: float, slack_b: float) -> None:
    count_b = float(active_parameters_count(transformer_of([model]))[0]) / 1e9

    assert count_b == pytest.approx(active_b, abs=slack_b)


@pytest.mark.parametrize(
    ("model", "cached_values"),
    [
        ("Llama-3-70B", 80 * 2 * 8 * 128),
        ("Llama-2-7B", 32 * 2 * 32 * 128),
        ("Llama-3.1-405B", 126 * 2 * 8 * 128),
        ("DeepSeek-V3", 61 * (512 + 64)),
        ("Kimi-K2", 61 * (512 + 64)),
        ("GPT-OSS-120B", 36 * 2 * 8 * 64),
        ("Qwen3-Next-80B-A3B", 12 * 2 * 2 * 256),  # every fourth layer attends
        ("Nemotron-H-56B", 10 * 2 * 8 * 128),
        ("PaLM-540B", 118 * 2 * 1 * 256),
    ],
)
@pytest.mark.parametrize("value_bytes", [1.0, 2.0])
def test_cache_bytes_per_token_are_exact(model: str, cached_values: int, value_bytes: float) -> None:
    assert kv_bytes_per_token(transformer_of([model]), value_bytes)[0] == cached_values * value_bytes


def test_windows_bound_the_cache_of_their_layers() -> None:
    oss = transformer_of(["GPT-OSS-120B"])  # every other layer sees 128 tokens

    short, long = (kv_cache_bytes(oss, context, 2.0)[0] for context in (100.0, 10_000.0))

    assert short == 100 * kv_bytes_per_token(oss, 2.0)[0]
    assert long == (18 * 10_000 + 18 * 128) * 2 * 8 * 64 * 2
    assert windowed_context_count(oss, 10_000.0)[0] == 128


def test_recurrent_layers_keep_a_state_of_constant_size() -> None:
    hybrid = transformer_of(["Nemotron-H-56B"])

    grown = kv_cache_bytes(hybrid, 2000.0, 2.0)[0] - kv_cache_bytes(hybrid, 1000.0, 2.0)[0]

    assert grown == 1000 * kv_bytes_per_token(hybrid, 2.0)[0]
    assert kv_cache_bytes(hybrid, 0.0, 2.0)[0] == 54 * 256 * 64 * 256 * 4


@pytest.mark.published(
    source="narayanan-2021",
    where="appendix, floating-point operations",
    says="24 B s l h^2 + 4 B s^2 h forward per layer, 2 B s h V for the logits",
)
def test_forward_operations_of_a_plain_transformer_follow_the_published_formula() -> None:
    t = transformer_of(["Megatron-GPT-145B (2021)"])
    sequence, layers, hidden, vocabulary = 2048.0, 80.0, 12288.0, 51200.0

    flop = sequence * matrix_flop_per_token(t)[0] + attention_flop(t, sequence, sequence)[0]

    shape = 1.0 + sequence / (6.0 * hidden) + vocabulary / (12.0 * layers * hidden)
    formula = 24.0 * sequence * layers * hidden**2 * shape
    masked = 2.0 * sequence**2 * hidden * layers  # the formula counts the masked half of the scores, we do not
    assert flop == pytest.approx(formula - masked, rel=1e-9)


def test_operations_per_token_are_twice_the_weights_it_meets() -> None:
    names = ["Llama-3-8B", "DeepSeek-V3", "Nemotron-H-56B"]
    t = transformer_of(names)

    met = active_parameters_count(t) - t.hidden_count * t.vocab_count  # the embedding is a look-up

    assert np.allclose(matrix_flop_per_token(t), 2.0 * met, rtol=2e-3)  # norms and convolutions are not products


@pytest.mark.parametrize("size", [1, 7, 64])
def test_a_batch_is_its_rows(size: int) -> None:
    names = [list(load_models())[i % len(load_models())] for i in range(size)]

    batch = parameters_count(transformer_of(names))

    assert np.array_equal(batch, np.array([parameters_count(transformer_of([name]))[0] for name in names]))


def rows_of(**columns: list[str]) -> CaseRows:
    length = len(columns["model"])
    return CaseRows("x.csv", "training", {"case": [str(i) for i in range(length)], **columns})


def test_a_rows_own_cells_win_over_the_record() -> None:
    rows = rows_of(model=["Llama-3-8B", "Llama-3-8B"], layers=["", "16"], vocab=["", "1000"])

    t, refused = transformer_from_rows(rows)

    assert refused == [None, None]
    assert list(t.layers_count) == [32.0, 16.0]
    assert list(t.attention_layers_count) == [32.0, 16.0]
    assert list(t.vocab_count) == [128256.0, 1000.0]


def test_a_model_unknown_to_the_catalog_is_built_from_its_cells() -> None:
    t, refused = transformer_from_rows(
        rows_of(model=["new"], layers=["10"], hidden=["1024"], ffn=["4096"], heads=["8"], vocab=["32000"])
    )

    assert refused == [None]
    assert parameters_count(t)[0] == 10 * (4 * 1024**2 + 3 * 1024 * 4096) + 21 * 1024 + 2 * 32000 * 1024


def test_a_model_with_neither_record_nor_cells_is_refused_by_name() -> None:
    t, refused = transformer_from_rows(rows_of(model=["Llama-3-8C"], layers=["10"]))

    assert refused[0] is not None
    assert "'Llama-3-8C'" in refused[0]
    assert "did you mean 'Llama-3-8B'" in refused[0]
    assert math.isfinite(parameters_count(t)[0])


def test_an_unknown_model_name_points_to_the_nearest() -> None:
    with pytest.raises(CatalogError, match="did you mean 'DeepSeek-V3'"):
        model_record("DeepSeek-V33")


def test_every_model_cites_a_listed_source(catalog: Catalog) -> None:
    assert {record.source for record in load_models().values()} <= set(catalog.sources)
