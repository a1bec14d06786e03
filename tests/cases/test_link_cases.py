"""Replays of link rows: how near the model comes, and what it refuses."""

from typing import Any

import numpy as np
import pytest

from codesign.cases import booksim_link, booksim_vc, fec, fit_serdes, link, pam, queue
from codesign.cases.rows import CaseRows, read_rows
from codesign.cases.score import cases_of
from codesign.catalog import Catalog
from codesign.resources import case_data

ADAPTERS: dict[str, Any] = {
    "pam": pam, "pam_inverse": pam, "fec": fec, "queue": queue, "booksim_credit": booksim_link,
    "booksim_link_latency": booksim_link, "booksim_vc": booksim_vc,
}  # fmt: skip


def errors(kind: str, metric: str, catalog: Catalog, **keep: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Absolute errors in percent of some rows of a reference file."""
    rows = read_rows(case_data() / "reference" / f"{kind}.csv")[0]
    chosen = [i for i in range(len(rows)) if all(rows.text(name)[i] == value for name, value in keep.items())]
    part = rows.pick(chosen)
    cases = cases_of(part, ADAPTERS[kind].predict(part, catalog))
    return np.array([abs(c["error_pct"]) for c in cases if c["metric"] == metric and c["error_pct"] is not None])


@pytest.mark.parametrize(
    ("kind", "metric"),
    [("pam", "BER_exact_gray"), ("pam", "SER_exact"), ("pam_inverse", "required_snr_db_Es_over_sigma2"),
     ("fec", "codeword_error_prob"), ("queue", "mean_wait"), ("queue", "wait_p99"), ("queue", "loss_prob")],
)  # fmt: skip
def test_exact_values_are_met_within_1e_6(catalog: Catalog, kind: str, metric: str) -> None:
    assert errors(kind, metric, catalog).max() < 1e-4


def test_the_credit_loop_is_within_2_percent_on_nearly_all_rows(catalog: Catalog) -> None:
    found = errors("booksim_credit", "accepted_flit_rate", catalog, sweep="a1_link")

    assert (found < 2.0).mean() >= 0.95


@pytest.mark.parametrize(("traffic", "limit"), [("bitcomp", 5.0), ("uniform", 10.0)])
def test_the_crossbar_is_within_its_limit(catalog: Catalog, traffic: str, limit: float) -> None:
    assert errors("booksim_credit", "accepted_flit_rate", catalog, sweep="a2_xbar", traffic=traffic).max() < limit


def test_latency_below_90_percent_of_saturation_is_within_10_percent(catalog: Catalog) -> None:
    rows = read_rows(case_data() / "reference" / "booksim_link_latency.csv")[0]
    loop = 2.0 * rows.numbers("channel_latency") + 3.0
    calm = rows.numbers("injection_rate") < 0.9 * np.minimum(1.0, rows.numbers("vc_buf_size") / loop)
    part = rows.pick(np.flatnonzero(calm).tolist())
    predicted, measured = booksim_link.predict(part, catalog).metrics["plat_avg"]

    assert np.max(np.abs(predicted / measured - 1.0)) < 0.10
    alone = part.numbers("packet_size") == 1.0
    unloaded = alone & (part.numbers("injection_rate") <= 0.1) & (part.numbers("vc_buf_size") >= 32.0)
    assert np.allclose(predicted[unloaded], measured[unloaded], rtol=2e-4)


def test_virtual_channels_of_links_are_within_5_percent_on_nearly_all_rows(catalog: Catalog) -> None:
    assert (errors("booksim_vc", "accepted_flit_rate", catalog, sweep="c2_link_vc") < 5.0).mean() >= 0.95


def test_clean_measurements_of_links_are_within_10_percent(catalog: Catalog) -> None:
    rows = read_rows(case_data() / "links.csv")[0]
    predicted, measured = link.predict(rows, catalog).metrics["value"]
    clean = np.array([grade == "A" for grade in rows.text("grade")])

    assert np.max(np.abs(predicted[clean] / measured[clean] - 1.0)) < 0.10


def row(**cells: str) -> CaseRows:
    return CaseRows("made.csv", cells.pop("kind", "link"), {"case": ["x"], **{k: [v] for k, v in cells.items()}})


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"link": "carrier pigeon", "unit": "GB/s", "value": "1"}, "no class of endpoints"),
        ({"link": "NVLink", "unit": "GB/s", "value": "1", "accelerator": "nobody"}, "states the rate"),
        ({"link": "NVLink", "unit": "furlong", "value": "1", "spec_GBs": "450"}, "no answer in the unit"),
        ({"link": "PCIe", "unit": "us", "value": "1", "spec_GBs": "64"}, "no start of a message"),
    ],
)
def test_a_row_that_cannot_be_replayed_says_why(catalog: Catalog, cells: dict[str, str], said: str) -> None:
    refused = link.predict(row(**cells), catalog).refused[0]

    assert refused is not None
    assert said in refused


def test_odd_rows_of_exact_sets_are_refused_and_not_crashed_on(catalog: Catalog) -> None:
    assert pam.predict(row(kind="pam", modulation="PAM5"), catalog).refused[0] is not None
    assert fec.predict(row(kind="fec", code="?", mapping=""), catalog).refused[0] is not None
    assert queue.predict(row(kind="queue", model="G/G/7"), catalog).refused[0] is not None
    assert booksim_link.predict(row(kind="booksim_credit"), catalog).refused[0] is not None
    assert booksim_vc.predict(row(kind="booksim_vc", topology="moebius"), catalog).refused[0] is not None


def test_left_out_designs_are_within_a_factor_of_1_6_for_80_percent(catalog: Catalog) -> None:
    ratios = np.array(list(fit_serdes.left_out_ratios().values()))
    spread = catalog.constant("serdes", "range", "energy_ratio")

    assert (np.maximum(ratios, 1.0 / ratios) < 1.6).mean() >= 0.8
    assert spread * spread <= 3.0


def test_stored_constants_are_what_the_fits_give(catalog: Catalog) -> None:
    from codesign.cases import fit_buffers, fit_links

    for law, found in (("links", fit_links.fit(catalog)), ("serdes", fit_serdes.fit(catalog)),
                       ("buffers", fit_buffers.fit(catalog))):  # fmt: skip
        for group, constants in found.items():
            for name, value in constants.items():
                assert value == pytest.approx(catalog.constant(law, group, name), rel=0.01), f"{law} {group} {name}"


def test_the_budget_of_the_serdes_agrees_with_an_operating_margin_tool_on_points_it_was_not_fitted_to(
    catalog: Catalog,
) -> None:
    from codesign.cases import fit_channel

    columns = fit_channel.points()
    held = {name: column[fit_channel.left_out(columns)] for name, column in columns.items()}
    errors_db = np.abs(fit_channel.errors_db(catalog, held))
    fast = fit_channel.number(held, "symbol_rate_gbd") > 106.25

    assert len(errors_db) >= 200
    for part in (np.ones_like(fast), fast, ~fast, *(held["equaliser"] == name for name in fit_channel.CLASSES)):
        assert part.sum() >= 50
        assert np.sqrt(np.mean(errors_db[part] ** 2)) < 1.0
    assert np.max(errors_db) < 2.5


def test_the_points_reach_lanes_of_448g_by_every_modulation() -> None:
    from codesign.cases import fit_channel

    columns = fit_channel.points()
    rate, levels = (fit_channel.number(columns, name) for name in ("symbol_rate_gbd", "levels"))

    for count, bits in ((4, 2.0), (6, 2.5), (8, 3.0)):
        assert (bits * rate[levels == count] >= 448.0).sum() >= 20


def test_the_signal_to_noise_ratio_of_the_points_explains_the_margin_of_the_tool() -> None:
    from codesign.cases import fit_channel

    columns = fit_channel.points()
    levels = fit_channel.number(columns, "levels")
    eye_db = fit_channel.number(columns, "snr_db") - 10.0 * np.log10((levels**2 - 1.0) / 3.0)
    gaussian_db = eye_db - 20.0 * np.log10(3.5401)  # amplitude exceeded with D3.3's error ratio of 2e-4
    off_db = gaussian_db - fit_channel.number(columns, "com_db")

    assert abs(np.mean(off_db)) < 0.5  # bounded interference is kinder than Gaussian
    assert np.std(off_db) < 0.4


def test_stored_factors_of_the_budget_are_what_the_fit_gives(catalog: Catalog) -> None:
    from codesign.cases import fit_channel

    for group, constants in fit_channel.fit(catalog).items():
        for name, value in constants.items():
            assert value == pytest.approx(catalog.constant("channel", group, name), rel=0.01), f"{group} {name}"
