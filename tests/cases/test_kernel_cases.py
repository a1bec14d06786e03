"""Kernel tables replayed: accuracy gates, refusals, and odd cells."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from codesign.cases.fit_transfer import fit as fit_transfer
from codesign.cases.rows import CaseRows, read_rows
from codesign.cases.validate import validate
from codesign.catalog import Catalog
from codesign.catalog.architectures import lineage
from codesign.designed import designed_gemm_engine, transfer_band
from codesign.errors import CatalogError
from codesign.machines import accelerator_refusal, gemm_engine, has_accelerator
from codesign.model.kernels.gemm import gemm_ns
from codesign.resources import case_data

LIMITS = {"gemm": 8.0, "attention": 18.0, "moe_gemm": 15.0, "mla": 15.0}


@pytest.mark.parametrize("law", LIMITS)
def test_measured_kernels_are_predicted_within_the_stated_error(law: str, catalog: Catalog) -> None:
    figures = validate([case_data() / "kernels" / f"{law}.csv"], catalog=catalog)["groups"][0]

    assert figures["refused"] <= 0.01 * figures["n"]
    assert figures["mape_pct"] <= LIMITS[law]
    assert abs(figures["bias_pct"]) <= 3.0


def test_published_kernel_rates_are_predicted_within_the_stated_error(catalog: Catalog) -> None:
    groups = validate([case_data() / "gemm_published.csv"], catalog=catalog)["groups"]
    best = next(group for group in groups if group["where"] == {"grade": "A"})

    assert best["refused"] <= 0.05 * best["n"]
    assert best["mape_pct"] <= 15.0


def first_rows(law: str, **cells: str) -> CaseRows:
    """Two rows of a table, the first with some cells replaced."""
    rows = next(iter(read_rows(case_data() / "kernels" / f"{law}.csv"))).pick([0, 1])
    columns = {name: list(column) for name, column in rows.columns.items()}
    for name, cell in cells.items():
        columns[name][0] = cell
    return replace(rows, columns=columns)


@pytest.mark.parametrize(
    ("law", "cells", "reason"),
    [
        ("gemm", {"accelerator": "h100-sxn"}, "did you mean 'h100-sxm'"),
        ("gemm", {"gemm_dtype": "fp64"}, "number format 'fp64' is not modelled"),
        ("gemm", {"m": ""}, "the row lacks m"),
        ("attention", {"phase": "sideways"}, "phase 'sideways'"),
        ("attention", {"head_dim": "zero"}, "the row lacks head_dim"),
        ("moe_gemm", {"num_experts": "0"}, "the row lacks num_experts"),
        ("mla", {"op_name": "mla_other"}, "operation 'mla_other'"),
    ],
)
def test_a_row_that_cannot_be_modelled_is_refused_with_its_reason(
    law: str, cells: dict[str, str], reason: str, catalog: Catalog
) -> None:
    predictions = import_module(f"codesign.cases.{law}").predict(first_rows(law, **cells), catalog)

    assert reason in (predictions.refused[0] or "")
    assert predictions.refused[1] is None
    predicted, _ = predictions.metrics["latency_us"]
    assert np.isnan(predicted[0])
    assert np.isfinite(predicted[1])


@pytest.mark.parametrize("law", LIMITS)
@pytest.mark.parametrize("part", ["rubin", "mi355x", "tpu-v7x-ironwood", "gaudi3", "l40s"])
def test_parts_without_kernel_tables_are_predicted_all_the_same(law: str, part: str, catalog: Catalog) -> None:
    predictions = import_module(f"codesign.cases.{law}").predict(first_rows(law, accelerator=part), catalog)

    predicted, measured = predictions.metrics["latency_us"]
    assert predictions.refused == [None, None]
    assert measured[0] / 60.0 < predicted[0] < 60.0 * measured[0]  # another part, the same kernel


def test_an_unseen_library_and_distribution_are_predicted(catalog: Catalog) -> None:
    rows = first_rows("moe_gemm", engine="new-engine", kernel_source="new_kernel", distribution="power_law_1.0")

    predictions = import_module("codesign.cases.moe_gemm").predict(rows, catalog)

    assert predictions.refused == [None, None]
    assert np.isfinite(predictions.metrics["latency_us"][0]).all()


def test_every_accelerator_of_the_case_files_can_be_modelled(catalog: Catalog) -> None:
    for name in catalog.technologies("accelerators"):
        assert has_accelerator(catalog, name), accelerator_refusal(catalog, name)
        assert len(lineage(name)) >= 2, f"{name} has no architecture"


def test_an_accelerator_without_peaks_is_refused_by_name(catalog: Catalog) -> None:
    bare = replace(catalog, facts={**catalog.facts, "accelerators": {"mystery": {}}})

    assert accelerator_refusal(bare, "mystery") == (
        "accelerator 'mystery' has no bf16_peak_tflops and no memory_rate_tbytes_per_s and no memory_capacity_gb"
        " in accelerators.yaml"
    )


def test_an_unknown_number_format_points_to_the_nearest(catalog: Catalog) -> None:
    with pytest.raises(CatalogError, match="did you mean 'fp8'"):
        gemm_engine(catalog, ["h100-sxm"], ["fp88"])


def test_a_designed_part_with_the_numbers_of_a_real_one_behaves_like_its_architecture(catalog: Catalog) -> None:
    real = gemm_engine(catalog, ["h100-sxm"], ["bf16"])
    designed = designed_gemm_engine(catalog, ["hopper"], ["bf16"], real.peak_gflops, real.memory_rate_gbps)

    ratio = gemm_ns(4096.0, 8192.0, 8192.0, 2.0, 2.0, designed) / gemm_ns(4096.0, 8192.0, 8192.0, 2.0, 2.0, real)

    assert ratio == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("law", LIMITS)
def test_the_transfer_band_holds_one_and_is_what_the_fit_finds(law: str, catalog: Catalog) -> None:
    band, found = transfer_band(catalog, law), fit_transfer(catalog)[law]

    assert band.low_ratio < 1.0 < band.high_ratio
    assert band.low_ratio == pytest.approx(found["low_ratio"], rel=0.01)
    assert band.high_ratio == pytest.approx(found["high_ratio"], rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("law", [*LIMITS, "kernel"])
def test_the_stored_constants_are_what_the_fit_finds(law: str, catalog: Catalog) -> None:
    found = import_module(f"codesign.cases.fit_{law}").fit(catalog)

    for group, constants in found.items():
        for name, value in constants.items():
            assert catalog.constant(law, group, name) == pytest.approx(value, rel=0.02, abs=1e-6), (group, name)
