"""Every shipped space: it loads, its baselines run, most of its samples can be built after repair."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from codesign.candidates import assemble_rows
from codesign.errors import StudyError
from codesign.evaluation import evaluate
from codesign.metrics import METRICS
from codesign.parameters import BY_NAME
from codesign.resources import search_spaces
from codesign.rules import PHYSICAL
from codesign.space import Range, load_space, shipped_spaces
from codesign.store.repository import Store
from codesign.study.coding import Coding
from codesign.study.feasibility import sample_feasibility
from codesign.study.problem import SpaceProblem, SpaceRecipe, recipe_of
from codesign.study.run import run_study
from codesign.study.screen import Range as Span
from codesign.study.screen import points
from tests.store.backends import sqlite_file

SPACES = sorted(shipped_spaces())
SAMPLES = 64

#: The decisions the project exists for; each is open in at least one shipped space.
MISSION = {
    "scale_up_lane_rate_gbps", "scale_up_modulation", "scale_up_lanes_count", "scale_up_equaliser", "scale_up_fec",
    "scale_up_medium", "scale_up_protocol", "scale_up_payload_bytes", "scale_up_retry", "scale_up_receive_buffer_bytes",
    "scale_up_virtual_channels_count", "scale_up_replay_buffer_bytes", "scale_up_topology", "scale_up_domain_count",
    "scale_up_reduction", "nic_rate_gbps", "scale_out_tiers_count", "scale_out_oversubscription_ratio", "memory_kind",
    "memory_stacks_count", "memory_height_count", "memory_pin_rate_gbps", "memory_write_queue_count",
    "second_tier_kind", "second_tier_gb", "compute_scale_frac", "sram_mb", "node", "compute_dies_count", "die_to_die",
    "cooling", "power_cap_w",
}  # fmt: skip


@cache
def problem(name: str) -> SpaceProblem:
    return recipe_of(name)()


def test_the_spaces_of_the_mission_are_shipped() -> None:
    assert {"quickstart", "training_dense", "training_moe", "serving_dense", "serving_moe", "factory_mix"} <= set(
        SPACES
    )


def test_every_parameter_of_the_mission_is_open_somewhere() -> None:
    opened = {parameter for name in SPACES for parameter in load_space(name).vary}
    assert set(BY_NAME) >= MISSION
    assert opened >= MISSION, f"fixed everywhere: {sorted(MISSION - opened)}"


@pytest.mark.parametrize("name", SPACES)
def test_the_first_line_is_the_question_in_words(name: str) -> None:
    first = (search_spaces() / f"{name}.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first == f"# {load_space(name).question}"
    assert first.endswith("?")
    assert load_space(name).name == name


def in_flight(count: int | None) -> SpaceRecipe:
    """The quickstart in small batches, so many of them in flight."""
    text = (search_spaces() / "quickstart.yaml").read_text(encoding="utf-8")
    said = "batch: 4" if count is None else f"batch: 4, in_flight: {count}"
    return SpaceRecipe(text.replace("batch: 16", said), "quickstart.yaml")


def test_a_space_that_says_nothing_of_batches_in_flight_has_the_digest_it_always_had() -> None:
    """Stored studies and the best designs known go by it: what is hashed holds the keys it held before this one."""
    hashed = json.loads(in_flight(None)().space.model_dump_json())

    assert set(hashed["search"]) == {"sampler", "trials", "batch", "seed"}
    assert len({in_flight(count)().space_digest for count in (None, 1, 2)}) == 3


def test_batches_in_flight_of_a_space_are_used_and_part_of_the_question(tmp_path: Path) -> None:
    whole, torn = sqlite_file(tmp_path, "whole"), sqlite_file(tmp_path, "torn")
    run_study(in_flight(3), whole, trials_total=24)
    for total in (10, 24):
        run_study(in_flight(3), torn, trials_total=total)

    with Store(whole) as one, Store(torn) as two:
        study = one.study("quickstart")
        assert study.in_flight_count == 3
        assert study.sampler["in_flight"] == 3
        assert np.array_equal(one.columns(study).internal, two.columns(two.study("quickstart")).internal)
    for other in (None, 2):
        with pytest.raises(StudyError, match="begun with another space"):
            run_study(in_flight(other), whole, trials_total=28)


@pytest.mark.parametrize("name", SPACES)
def test_baselines_run_and_at_least_one_can_be_built(name: str) -> None:
    asked = problem(name)
    machines = asked.machines()
    first = asked.evaluate([row for _, row in asked.baselines])
    assert len(machines) >= 3
    assert all(np.isfinite(list(machine["values"].values())).all() for machine in machines)
    assert any(machine["feasible"] for machine in machines)
    assert 1 <= len(asked.baselines) <= len(machines)
    assert np.isfinite(first.values).all()


@pytest.mark.parametrize("name", SPACES)
def test_at_least_half_of_uniform_samples_can_be_built_after_repair(name: str) -> None:
    report = sample_feasibility(name, 24 if name == "serving_moe" else SAMPLES, seed=3)
    assert report["feasible_frac"] >= 0.5, report


@pytest.mark.parametrize("name", SPACES)
def test_objectives_and_constraints_of_samples_are_finite_and_repair_changes_nothing_twice(name: str) -> None:
    asked = problem(name)
    coding = Coding(asked.parameters)
    unit = np.random.default_rng(11).random((8, len(coding.names)))
    rows = [dict(row) for row in coding.rows(coding.decode(unit))]
    found = asked.evaluate(rows)
    assert np.isfinite(found.values).all()
    assert np.isfinite(found.constraints).all()
    again, changes = asked._repair([dict(row) for row in found.repaired])
    assert again == [dict(row) for row in found.repaired]
    assert not any(changes)


@pytest.mark.parametrize("name", SPACES)
def test_a_screen_gives_what_an_evaluation_gives_and_runs_nothing_that_cannot_be_built(name: str) -> None:
    asked = problem(name)
    coding = Coding(asked.parameters)
    internal = points(coding, Span("sobol", 5, 0, 64 if name == "serving_moe" else 256))
    columns = coding.columns(internal)
    values, constraints = asked.screen(columns)
    physical = constraints[:, : len(PHYSICAL)]
    built = np.asarray((physical <= 0.0).all(axis=1))
    assert 0 < built.sum() < len(built)
    assert np.isnan(constraints[~built, len(PHYSICAL) :]).all()
    assert (values[~built] == [METRICS[metric].worst for metric, _ in asked.objectives]).all()
    rows = [row for row, kept in zip(coding.rows(internal), built, strict=True) if kept]
    whole = evaluate(assemble_rows(rows, asked.space), asked.space, asked.catalog)
    assert np.array_equal(values[built], whole.metrics.columns(list(asked.space.objectives)))
    assert np.array_equal(constraints[built], whole.violations.excess.T)


@pytest.mark.parametrize("name", SPACES)
def test_ranges_lie_within_the_bounds_of_their_parameters(name: str) -> None:
    for parameter, options in load_space(name).vary.items():
        if isinstance(options, Range):
            one = BY_NAME[parameter]
            assert one.low <= options.low < options.high <= one.high


def test_quickstart_is_small() -> None:
    asked = load_space("quickstart")
    assert len(asked.vary) <= 16
    assert asked.search.trials <= 128
