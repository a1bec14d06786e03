"""What a page says of one design: its price can be worked out again, its crumbs are one row, its words are honest."""

import io
import re
from typing import Any

import pytest
from rich.console import Console

from codesign.views.answer import headline
from codesign.views.designs import evaluated
from codesign.views.explain import delivery_text, single, violations_table, waterfall_table


def printed(page: Any) -> str:
    out = io.StringIO()
    Console(width=400, file=out).print(page)
    return out.getvalue()


@pytest.mark.parametrize("name", ["quickstart", "factory_mix"])
def test_the_price_can_be_worked_out_again_from_the_page(name: str) -> None:
    trial = evaluated(name)
    said = printed(delivery_text(trial)).replace(",", "")
    shares = [float(found) for found in re.findall(r"x ([0-9.]+) of the mix", said)] or [1.0]
    terms = re.findall(r"([0-9.]+) tokens/s x ([0-9.]+) availability", said)
    (utilisation,) = map(float, re.findall(r"x ([0-9.]+) utilisation", said))
    (usd_per_h,) = map(float, re.findall(r"([0-9.]+) USD/h", said))
    rate = sum(float(t) * float(a) * s for (t, a), s in zip(terms, shares, strict=True))
    price = usd_per_h / (rate * utilisation * 3600.0 / 1e6)
    assert price == pytest.approx(trial["metrics"]["usd_per_mtok"], rel=2e-3)  # four digits are printed
    assert printed(delivery_text(trial)).strip() in printed(single(trial))


def test_a_trial_stored_without_its_delivery_still_has_a_page() -> None:
    trial = dict(evaluated("quickstart"))
    del trial["delivery"]
    assert "delivered" not in printed(single(trial))


def test_crumbs_of_a_waterfall_are_one_row() -> None:
    parts = [("gemm", 10.0), ("launch", 9.872e-8), ("offload", 1e-7), ("gap", 0.0)]
    falls = [{"part": part, "ms": ms, "share": ms / 10.0} for part, ms in parts]
    work = {"time_name": "step_ns", "time_ms": 10.0, "waterfall": falls}
    alone = printed(waterfall_table({"workloads": {"a": work}}, None))
    assert "launch" not in alone
    assert "offload" not in alone
    assert "other" in alone
    known = {"workloads": {"a": {"waterfall": [{"part": "gemm", "ms": 8.0}, {"part": "launch", "ms": 2.0}]}}}
    beside = printed(waterfall_table({"workloads": {"a": work}}, known))
    assert re.search(r"launch.*~0.*0\.0 %.*2 ", beside)  # the baseline spends time there


def test_a_huge_excess_is_no_number_to_read() -> None:
    broken = {"rule": "limit:step_s", "required": 1.0, "available": 1e-7, "unit": "s", "excess": 1e6}
    said = printed(violations_table({"violations": [broken, broken | {"rule": "reticle", "excess": 0.25}]}))
    assert "over 1,000 times as much" in said
    assert "25.0 %" in said


def test_a_study_without_a_finished_trial_has_no_answer() -> None:
    summary = {"study": "toy", "trials": 8, "finished": 0, "feasible_frac": 0.0, "sampler": "gp", "state": "running"}
    said = printed(headline({**summary, "reason": "", "best": None}))
    assert "8 trials, none of them finished" in said
    assert "feasible" not in said
