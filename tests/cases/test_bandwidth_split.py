"""The bandwidth split of LIBRA's four-dimensional network, solved here from its inputs."""

import json
from typing import Any

import numpy as np
import pytest

from codesign.cases.bandwidth_split import Collective, best_split, equal_split, step_ms
from codesign.resources import case_data

NPUS = 4096
#: $ per GB/s: chiplet link, package link, node link, and link, switch and NIC between pods
PRICES = [NPUS * price for price in (2.0, 4.0, 4.0, 7.8 + 18.0 + 31.6)]
#: collectives of one step in LIBRA's workload files: kind, bytes, ranks along ring 4, mesh 8, ring 4, switch 32
WORKLOADS = {
    "GPT_3": [
        Collective("all_reduce", 8 * 805306368, (4, 4, 1, 1)),
        Collective("all_gather", 2 * 50331648, (4, 4, 1, 1)),
        Collective("all_reduce", 452984832, (1, 2, 4, 32)),
    ],
    "MSFT_1T": [
        Collective("all_reduce", 8 * 805306368, (4, 8, 4, 1)),
        Collective("all_gather", 2 * 6291456, (4, 8, 4, 1)),
        Collective("all_reduce", 226492416, (1, 1, 1, 32)),
    ],
    "Turing_NLG": [Collective("all_reduce", 869449728, (4, 8, 4, 32))],
    "ResNet_50": [Collective("all_reduce", 51005824, (4, 8, 4, 32))],
}
ROWS = {k: v for k, v in json.loads((case_data() / "reproductions" / "libra.json").read_text()).items() if "@" in k}


def _case(name: str) -> tuple[list[Collective], float, dict[str, Any]]:
    workload, total = name.split(" ")[0], float(name.split("@")[1])
    return WORKLOADS[workload], total, ROWS[name]


@pytest.mark.published(source="libra-2024", where="inputs of 4 dimensions, no overlap", says="step with equal shares")
@pytest.mark.parametrize("name", ROWS)
def test_equal_shares_give_the_published_step(name: str) -> None:
    collectives, total, row = _case(name)

    equal = equal_split(row["compute_ms"], collectives, total, PRICES)

    assert equal.step_ms == pytest.approx(row["eq_ms"], rel=1e-6)
    assert equal.cost_usd == pytest.approx(1e6 * row["cost_eq_M"], rel=1e-6)


@pytest.mark.published(source="libra-2024", where="inputs of 4 dimensions, no overlap", says="optimal split, speed-up")
@pytest.mark.parametrize("name", ROWS)
def test_the_best_split_and_its_speed_up_are_the_published_ones(name: str) -> None:
    collectives, total, row = _case(name)

    best = best_split(row["compute_ms"], collectives, total, PRICES)

    assert row["eq_ms"] / best.step_ms == pytest.approx(row["speedup"], rel=1e-3)
    # rates are printed with one decimal
    assert best.rates_gbytes_per_s == pytest.approx(row["bw"], rel=0.02, abs=0.06)


@pytest.mark.published(source="libra-2024", where="inputs of 4 dimensions, no overlap", says="split of most work per $")
@pytest.mark.parametrize("name", ROWS)
def test_the_split_of_most_work_per_dollar_starves_the_network_ports(name: str) -> None:
    collectives, total, row = _case(name)

    best = best_split(row["compute_ms"], collectives, total, PRICES, per_cost=True)

    gain = row["eq_ms"] * 1e6 * row["cost_eq_M"] / (best.step_ms * best.cost_usd)
    assert gain == pytest.approx(row["ppc_gain_vs_equal"], rel=0.02)
    assert best.rates_gbytes_per_s == pytest.approx(row["ppc_bw"], rel=0.02, abs=0.06)
    fastest = best_split(row["compute_ms"], collectives, total, PRICES)
    assert best.rates_gbytes_per_s[3] <= fastest.rates_gbytes_per_s[3] + 1e-6


def test_the_benefit_shrinks_with_the_total() -> None:
    gains = []
    for total in (100.0, 300.0, 500.0):
        row = ROWS["MSFT_1T (TP128,DP32)@100"]
        equal = equal_split(row["compute_ms"], WORKLOADS["MSFT_1T"], total, PRICES)
        best = best_split(row["compute_ms"], WORKLOADS["MSFT_1T"], total, PRICES)
        gains.append(equal.step_ms / best.step_ms)

    assert gains[0] > gains[1] > gains[2] > 1.0


def test_pure_data_parallel_work_gets_the_same_shares_at_any_total() -> None:
    small = best_split(100.0, WORKLOADS["Turing_NLG"], 100.0, PRICES).rates_gbytes_per_s / 100.0
    large = best_split(100.0, WORKLOADS["Turing_NLG"], 1000.0, PRICES).rates_gbytes_per_s / 1000.0

    assert small == pytest.approx(large, rel=1e-3)


def test_no_random_split_beats_the_best_one() -> None:
    row = ROWS["GPT_3 (TP16,DP256)@100"]
    traffic = np.array([c.traffic_bytes() for c in WORKLOADS["GPT_3"]])
    best = best_split(row["compute_ms"], WORKLOADS["GPT_3"], 100.0, PRICES).step_ms

    shares = np.random.default_rng(1).dirichlet([1.0, 1.0, 1.0, 1.0], size=2000)

    assert min(step_ms(row["compute_ms"], traffic, 100.0 * share) for share in shares) >= best * (1 - 1e-9)
