"""Replays of measured collectives and of network simulators: figures, held-out accelerators, odd rows."""

import numpy as np
import pytest

from codesign.cases import collective, fast_allreduce, fit_collectives, moe_alltoall, nccl
from codesign.cases.rows import CaseRows, read_rows
from codesign.cases.validate import predict
from codesign.catalog import Catalog
from codesign.catalog.architectures import lineage
from codesign.resources import case_data
from codesign.units import Array


def errors(file: str, metric: str, catalog: Catalog, grade: str = "") -> Array:
    """Relative errors of every compared row of a file."""
    out = []
    for rows in read_rows(case_data() / file):
        found = predict(rows, catalog)
        predicted, measured = found.metrics[metric]
        chosen = np.isfinite(predicted) & np.isfinite(measured) & (measured != 0)
        chosen &= np.array([reason is None for reason in found.refused])
        if grade:
            chosen &= np.array([word == grade for word in rows.text("grade")])
        out.append(predicted[chosen] / measured[chosen] - 1.0)
    return np.concatenate(out)


@pytest.mark.parametrize(
    ("file", "metric", "grade", "most"),
    [
        ("kernels/nccl.csv", "latency_us", "", 0.06),
        ("kernels/fast_allreduce.csv", "latency_us", "", 0.08),
        ("kernels/moe_alltoall.csv", "latency_us", "", 0.15),
        ("collectives.csv", "time_us", "A", 0.10),
        ("collectives.csv", "busbw_GBs", "A", 0.10),
        ("collectives.csv", "value", "A", 0.10),
        ("reference/astrasim.csv", "time_ns_max", "", 0.02),
        ("reference/htsim.csv", "fct_mean_us", "", 0.20),
        ("reference/booksim_topology.csv", "accepted_flit_rate", "", 0.15),
        ("reference/straggler.csv", "expected_max", "", 1e-3),
        ("reference/checkpoint.csv", "efficiency_exact_exponential", "", 1e-3),
    ],
)
def test_mean_error_of_a_file(file: str, metric: str, grade: str, most: float, catalog: Catalog) -> None:
    found = errors(file, metric, catalog, grade)

    assert len(found) > 0
    assert float(np.abs(found).mean()) < most


@pytest.mark.parametrize("file", ["straggler", "checkpoint"])
def test_exact_values_are_met_row_by_row(file: str, catalog: Catalog) -> None:
    metric = {"straggler": "expected_max", "checkpoint": "efficiency_exact_exponential"}[file]

    assert float(np.abs(errors(f"reference/{file}.csv", metric, catalog)).max()) < 1e-3


def test_worst_flows_are_ranked_as_the_packet_simulator_ranks_them(catalog: Catalog) -> None:
    (rows,) = read_rows(case_data() / "reference" / "htsim.csv")

    predicted, measured = predict(rows, catalog).metrics["fct_max_us"]

    a, b = (np.argsort(np.argsort(x)).astype(float) for x in (predicted, measured))
    assert float(np.corrcoef(a, b)[0, 1]) > 0.95


def test_latency_of_networks_below_seventy_percent_of_saturation(catalog: Catalog) -> None:
    (rows,) = read_rows(case_data() / "reference" / "booksim_topology.csv")

    found = predict(rows, catalog)

    predicted, measured = found.metrics["plat_avg"]
    calm = np.array([word.startswith("below") for word in found.labels["class"]])
    kinds = np.array(rows.text("topology"))
    for kind in ("mesh", "torus", "fattree", "dragonflynew"):
        chosen = calm & (kinds == kind) & np.isfinite(measured)
        assert chosen.sum() > 5, kind
        assert float(np.abs(predicted[chosen] / measured[chosen] - 1.0).mean()) < 0.15, kind


def test_other_seeds_of_the_same_networks(catalog: Catalog) -> None:
    assert float(np.abs(errors("reference/booksim_seeds.csv", "accepted_flit_rate", catalog)).mean()) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("left_out", ["a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "gb200"])
def test_an_accelerator_left_out_of_the_fit(left_out: str, catalog: Catalog) -> None:
    """Constants of its architecture if another part of it was measured, else those pooled over all."""
    others, all_rows = fit_collectives.sweep_rows([left_out]), fit_collectives.sweep_rows()
    names = others.text("accelerator")
    kin = [i for i, name in enumerate(names) if lineage(name)[-1] == lineage(left_out)[-1]]
    values = fit_collectives.fit_one(others.pick(kin) if kin else others, catalog)
    rows = all_rows.pick([i for i, name in enumerate(all_rows.text("accelerator")) if name == left_out])

    tier = fit_collectives.tier_of(values, fit_collectives.line_rates_gbps(rows, catalog))
    error = fit_collectives.times_ns(rows, tier) / 1e3 / rows.numbers("latency_us") - 1.0

    assert float(np.abs(error).mean()) < 0.25


def test_the_stored_constants_are_those_the_fit_finds(catalog: Catalog) -> None:
    rows = fit_collectives.sweep_rows()
    hopper = rows.pick([i for i, name in enumerate(rows.text("accelerator")) if lineage(name)[-1] == "hopper"])

    found = fit_collectives.fit_one(hopper, catalog)

    for name in ("launch_ns", "hop_ns", "rate_frac"):
        assert found[name] == pytest.approx(catalog.constant("collectives", "hopper", name), rel=0.01)


def _rows(kind: str, **columns: list[str]) -> CaseRows:
    count = len(next(iter(columns.values())))
    return CaseRows("made.csv", kind, {"case": [f"c{i}" for i in range(count)], **columns})


def test_unseen_parts_sizes_and_operations_are_predicted_or_refused_with_a_reason(catalog: Catalog) -> None:
    rows = _rows(
        "nccl",
        accelerator=["b300-sxm", "mi355x", "rubin", "nothing", "h100-sxm", "h100-sxm", "gb300"],
        op_name=["all_reduce", "all_gather", "alltoall", "all_reduce", "sort", "all_reduce", "reduce_scatter"],
        num_gpus=["8", "4", "72", "8", "8", "", "72"],
        message_bytes=["1e6", "0", "123456", "1e6", "1e6", "1e6", "1e12"],
    )

    found = nccl.predict(rows, catalog)

    assert [reason is None for reason in found.refused] == [True, True, True, False, False, False, True]
    predicted = found.metrics["latency_us"][0]
    assert all(np.isfinite(predicted[i]) and predicted[i] > 0 for i, r in enumerate(found.refused) if r is None)
    assert "nothing" in str(found.refused[3])
    assert "sort" in str(found.refused[4])


def test_new_engines_and_kernels_fall_back_to_the_nearest_measured_one(catalog: Catalog) -> None:
    fast = fast_allreduce.predict(
        _rows(
            "fast_allreduce", accelerator=["h20", "gb300"], backend=["flashinfer", "trtllm"], kernel_source=["", ""],
            num_gpus=["8", "64"], message_bytes=["65536", "65536"],
        ),
        catalog,
    )  # fmt: skip
    moe = moe_alltoall.predict(
        _rows(
            "moe_alltoall", accelerator=["b300-sxm", "h800-sxm"], comm_backend=["new_ll", "deepep_ht"],
            phase=["dispatch", "combine"], comm_dtype=["fp8", "bfloat16"], ep_size=["16", "32"], node_num=["2", "4"],
            hidden_size=["7168", "7168"], topk=["8", "8"], num_tokens=["128", "4096"],
        ),
        catalog,
    )  # fmt: skip

    for found in (fast, moe):
        assert found.refused == [None, None]
        assert np.isfinite(found.metrics["latency_us"][0]).all()


def test_a_sweep_over_nodes_without_a_named_network_is_refused(catalog: Catalog) -> None:
    base = {
        "grade": ["A"] * 3, "accelerator": ["h100-sxm", "h100-sxm", "gb200"], "n_accel": ["16", "16", "64"],
        "n_nodes": ["2", "2", "16"], "accel_per_node": ["8", "8", "4"], "collective": ["all_reduce"] * 3,
        "scale_out": ["", "8x400Gb IB per node", ""], "library": ["NCCL"] * 3, "algorithm": [""] * 3,
        "msg_bytes": ["1e9"] * 3, "metric": ["time"] * 3, "time_us": ["5000"] * 3,
    }  # fmt: skip

    found = collective.predict(_rows("collective", **base), catalog)

    assert [reason is None for reason in found.refused] == [False, True, True]
    assert "network" in str(found.refused[0])


def test_a_printed_port_rate_is_read_per_accelerator(catalog: Catalog) -> None:
    base = {
        "accelerator": ["h100-sxm"] * 2, "n_accel": ["64"] * 2, "n_nodes": ["8"] * 2, "accel_per_node": ["8"] * 2,
        "collective": ["all_reduce"] * 2, "scale_out": ["8x400Gb IB per node", "8x200Gb IB per node"],
        "library": ["NCCL"] * 2, "algorithm": ["Ring"] * 2, "msg_bytes": ["1e11"] * 2, "time_us": ["1"] * 2,
    }  # fmt: skip

    fast, slow = collective.predict(_rows("collective", **base), catalog).metrics["time_us"][0]

    assert slow == pytest.approx(2.0 * fast, rel=0.02)


@pytest.mark.parametrize("file", ["astrasim", "htsim", "booksim_topology", "straggler", "checkpoint"])
def test_reference_files_never_crash_on_empty_cells(file: str, catalog: Catalog) -> None:
    (rows,) = read_rows(case_data() / "reference" / f"{file}.csv")
    few = rows.pick(range(min(6, len(rows))))
    for name in list(few.columns):
        if name in ("case", "kind"):
            continue
        emptied = CaseRows(few.file, few.kind, {**few.columns, name: [""] * len(few)})
        found = predict(emptied, catalog)
        for predicted, measured in found.metrics.values():
            compared = np.isfinite(measured) & np.array([reason is None for reason in found.refused])
            assert np.isfinite(np.asarray(predicted)[compared]).all(), name
