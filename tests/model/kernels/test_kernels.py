"""Kernel laws: their limits, their directions, and that a batch is its rows."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesign.catalog import Catalog
from codesign.machines import (
    ACTIVATION_BYTES,
    WEIGHT_BYTES,
    attention_engine,
    gemm_engine,
    mla_engine,
    moe_engine,
    without_quantisation,
)
from codesign.model.kernels.attention import decode_attention_ns, prefill_attention_ns
from codesign.model.kernels.elementwise import elementwise_ns
from codesign.model.kernels.gemm import gemm_ns
from codesign.model.kernels.mla import mla_decode_ns, mla_prefill_ns
from codesign.model.kernels.moe import moe_gemm_ns, power_law_skew_ratio, touched_experts_count

PARTS = ["a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "gb300", "mi300x", "tpu-v5p"]
FORMATS = ["bf16", "bf16", "fp8", "nvfp4", "fp8_block", "fp8", "bf16"]
COUNT = st.integers(min_value=1, max_value=60_000)

Engines = tuple[Any, Any, Any, Any]  # of GemmEngine, AttentionEngine, MlaEngine, MoeEngine


@pytest.fixture(scope="module")
def engines(catalog: Catalog) -> Engines:
    wide = ["bf16"] * len(PARTS)
    return (
        gemm_engine(catalog, PARTS, FORMATS),
        attention_engine(catalog, PARTS, wide),
        mla_engine(catalog, PARTS, wide),
        moe_engine(catalog, PARTS, FORMATS),
    )


def times(engines: Engines, size: float) -> dict[str, Any]:
    """Every law at one size."""
    gemm, attention, mla, moe = engines
    return {
        "gemm": gemm_ns(size, 4096.0, 4096.0, 1.0, 1.0, gemm),
        "prefill": prefill_attention_ns(4.0, size, size, 32.0, 8.0, 128.0, attention),
        "decode": decode_attention_ns(size, 2000.0, 32.0, 8.0, 128.0, 2.0, attention),
        "mla_prefill": mla_prefill_ns(4.0, size, size, 16.0, 192.0, 128.0, mla),
        "mla_decode": mla_decode_ns(size, 2000.0, 16.0, 512.0, 64.0, 2.0, mla),
        "moe": moe_gemm_ns(size, 7168.0, 2048.0, 8.0, 256.0, 32.0, 1.0, 1.0, moe),
    }


def row_of(engine: Any, i: int) -> Any:
    """One row of an engine as plain numbers."""
    pick = {f.name: float(np.asarray(getattr(engine, f.name))[i]) for f in fields(engine) if f.init}
    return replace(engine, **pick)


@given(size=COUNT, more=COUNT)
def test_more_work_never_takes_less_time(engines: Engines, size: int, more: int) -> None:
    small, large = times(engines, float(size)), times(engines, float(size + more))

    for name in small:
        assert np.all(large[name] >= small[name]), name


@pytest.mark.parametrize("resource", ["peak_gflops", "memory_rate_gbps"])
def test_a_faster_part_is_never_slower(engines: Engines, resource: str) -> None:
    faster: Any = tuple(replace(e, **{resource: 2.0 * np.asarray(getattr(e, resource))}) for e in engines)

    for size in (1.0, 64.0, 5000.0):
        slow, fast = times(engines, size), times(faster, size)
        for name in slow:
            assert np.all(fast[name] <= slow[name]), (name, size)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_a_batch_is_its_rows(engines: Engines, size: int) -> None:
    index = np.arange(size) % len(PARTS)
    many: Any = tuple(
        replace(e, **{f.name: np.asarray(getattr(e, f.name))[index] for f in fields(e) if f.init}) for e in engines
    )

    batch = times(many, 777.0)

    for i in range(size):
        alone_engines: Any = tuple(row_of(e, i) for e in many)
        alone = times(alone_engines, 777.0)
        for name, column in batch.items():
            assert np.array_equal(np.asarray(column)[i], np.asarray(alone[name])), name


def test_every_law_is_finite_and_positive_at_the_edges(engines: Engines) -> None:
    for size in (1.0, 1e7):
        for name, column in times(engines, size).items():
            assert np.all(np.isfinite(column)), name
            assert np.all(column > 0.0), name


def test_a_large_product_reaches_the_sustained_share_of_the_peak(catalog: Catalog) -> None:
    engine = without_quantisation(gemm_engine(catalog, ["h100-sxm"], ["bf16"]))

    rate_gflops = 2.0 * 65536.0**3 / gemm_ns(65536.0, 65536.0, 65536.0, 2.0, 2.0, engine)

    ceiling = engine.peak_gflops * engine.compute_frac
    assert np.all(rate_gflops < ceiling)
    assert np.all(rate_gflops > 0.95 * ceiling)  # what is left: depth, area and the exposed share of memory


def test_a_decode_product_reads_its_weights_at_the_sustained_memory_rate(catalog: Catalog) -> None:
    engine = without_quantisation(gemm_engine(catalog, ["h200-sxm"], ["bf16"]))

    time_ns = gemm_ns(1.0, 65536.0, 65536.0, 2.0, 2.0, engine)

    least_ns = 8.0 * 2.0 * 65536.0**2 / (engine.memory_rate_gbps * engine.memory_frac)
    assert np.all(time_ns >= least_ns)
    assert np.all(time_ns < 1.25 * least_ns)


def test_grouped_queries_read_less_than_one_cache_per_head(engines: Engines) -> None:
    shared = decode_attention_ns(256.0, 8000.0, 32.0, 8.0, 128.0, 2.0, engines[1])
    alone = decode_attention_ns(256.0, 8000.0, 32.0, 32.0, 128.0, 2.0, engines[1])

    assert np.all(shared < 0.5 * alone)


def test_a_smaller_cache_format_is_faster_at_long_context(engines: Engines) -> None:
    wide = decode_attention_ns(128.0, 16000.0, 32.0, 8.0, 128.0, 2.0, engines[1])
    narrow = decode_attention_ns(128.0, 16000.0, 32.0, 8.0, 128.0, 1.0, engines[1])

    assert np.all(narrow < 0.7 * wide)


def test_touched_experts_run_from_top_k_to_all() -> None:
    tokens = np.array([1.0, 10.0, 1e6])

    touched = np.asarray(touched_experts_count(tokens, 8.0, 256.0, 256.0))

    assert touched[0] == pytest.approx(8.0)
    assert touched[1] == pytest.approx(256.0 * (1.0 - (1.0 - 8.0 / 256.0) ** 10.0))
    assert touched[2] == 256.0


def test_decode_reads_only_the_experts_that_tokens_touch(engines: Engines) -> None:
    one = moe_gemm_ns(1.0, 7168.0, 2048.0, 8.0, 256.0, 256.0, 2.0, 2.0, engines[3])
    all_experts = moe_gemm_ns(1.0, 7168.0, 2048.0, 256.0, 256.0, 256.0, 2.0, 2.0, engines[3])

    assert np.all(one < 0.2 * all_experts)


@given(tokens=COUNT, ranks=st.sampled_from([1, 2, 8, 32, 256]), exponent=st.sampled_from([1.01, 1.2]))
def test_skew_lies_between_even_and_everything_on_one_rank(tokens: int, ranks: int, exponent: float) -> None:
    skew = power_law_skew_ratio(float(tokens), 8.0, 256.0, 256.0 / ranks, exponent)

    assert 1.0 <= skew <= ranks


def test_elementwise_time_is_start_plus_traffic_over_rate() -> None:
    assert elementwise_ns(0.0, 8e3, 0.8, 2000.0) == 2000.0
    assert elementwise_ns(8e6, 8e3, 0.8, 2000.0) == 12000.0


@pytest.mark.parametrize("law", [gemm_ns, moe_gemm_ns])
def test_kernels_say_which_rows_they_were_fitted_to(law: Callable[..., Any]) -> None:
    assert "kernels/" in law.__dict__["empirical_rows"]


def test_number_formats_are_known_to_every_table(catalog: Catalog) -> None:
    for word in WEIGHT_BYTES:
        assert word in ACTIVATION_BYTES
        assert np.isfinite(gemm_engine(catalog, ["b200-sxm"], [word]).ns_per_flop).all()
