"""Queues, turnaround, row hits and interleave."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesign.catalog import Catalog, load_catalog
from codesign.memories import dram_device, memory_constants
from codesign.model.memory.controller import (
    Access,
    Controller,
    ControllerConstants,
    achieved_frac,
    drain_count,
    interleave_frac,
    outstanding_frac,
    softmin_frac,
    turnaround_frac,
)
from codesign.model.memory.dram import DramDevice
from codesign.model.memory.rows import activations_ratio
from codesign.units import Numeric

QUEUES = Controller(64.0, 64.0, 0.0, 1.0, 0.0)


@pytest.fixture(scope="module")
def constants(catalog: Catalog) -> ControllerConstants:
    return memory_constants(catalog)


@pytest.fixture(scope="module")
def hbm3(catalog: Catalog) -> DramDevice:
    return dram_device(catalog, ["hbm3"], np.array([6.4 * 32]))


def access(**changes: Numeric) -> Access:
    plain = Access(1.0, 1.0, 64.0, 128.0, 1.0, 0.0)
    return replace(plain, **changes)


def test_reads_alone_and_writes_alone_never_turn_the_bus(hbm3: DramDevice, constants: ControllerConstants) -> None:
    for share in (0.0, 1.0):
        assert turnaround_frac(share, 10.0, 0.0, hbm3, constants) == pytest.approx(1.0)


@pytest.mark.published(
    source="ramulator-2", where="hbm3.py: RTW 20, WTRL 10, RL 20, WL 10 clocks", says="38 idle clocks a drain"
)
def test_one_drain_idles_the_bus_for_the_two_turnarounds(hbm3: DramDevice, constants: ControllerConstants) -> None:
    # reads to writes 20 + 10 - 20 - 2 = 8 clocks, writes to reads 10 + 20 = 30; 19 bursts of 2 clocks each way
    assert turnaround_frac(0.5, 19.0, 0.0, hbm3, constants) == pytest.approx(76 / (76 + 38))


@given(small=st.floats(0, 4000), more=st.floats(0, 4000))
def test_a_longer_write_queue_never_hurts(small: float, more: float) -> None:
    catalog = load_catalog()
    constants = memory_constants(catalog)
    device = dram_device(catalog, ["hbm3"], np.array([6.4 * 32]))
    mix = access(read_frac=0.5, run_count=4.0)

    short = achieved_frac(mix, replace(QUEUES, write_queue_count=small), device, constants)
    long = achieved_frac(mix, replace(QUEUES, write_queue_count=small + more), device, constants)

    assert np.all(np.asarray(long) >= np.asarray(short) - 1e-12)


@given(few=st.floats(0.5, 500), more=st.floats(0, 500), stream=st.booleans())
def test_more_outstanding_requests_never_hurt(few: float, more: float, stream: bool) -> None:
    catalog = load_catalog()
    constants = memory_constants(catalog)
    device = dram_device(catalog, ["hbm3"], np.array([6.4 * 32]))
    base = access(run_count=8.0, runs_count=16.0, sequential_flag=float(stream))

    short = achieved_frac(replace(base, outstanding_count=few), QUEUES, device, constants)
    long = achieved_frac(replace(base, outstanding_count=few + more), QUEUES, device, constants)

    assert np.all(np.asarray(long) >= np.asarray(short) - 1e-12)


def test_longer_runs_need_fewer_activations(hbm3: DramDevice, constants: ControllerConstants) -> None:
    runs = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])

    opened = np.asarray(activations_ratio(access(run_count=runs), QUEUES, hbm3, constants))

    assert opened[0] == pytest.approx(1.0)
    assert np.all(np.diff(opened) < 0)


def test_closing_rows_makes_every_access_open_one(hbm3: DramDevice, constants: ControllerConstants) -> None:
    closing = replace(QUEUES, close_row_flag=1.0)

    assert activations_ratio(access(run_count=32.0), closing, hbm3, constants) == pytest.approx(1.0)


def test_a_drain_grows_with_queue_and_block(constants: ControllerConstants) -> None:
    assert drain_count(128, 1, 1, constants) > drain_count(64, 1, 1, constants)
    assert drain_count(64, 32, 1, constants) > drain_count(64, 1, 1, constants)
    assert drain_count(64, 1, 2, constants) == pytest.approx(np.asarray(drain_count(64, 1, 1, constants)) / 2)


def test_little_is_linear_below_saturation() -> None:
    assert outstanding_frac(2, 100, 2, 1) == 2 * np.asarray(outstanding_frac(1, 100, 2, 1))


@given(a=st.floats(1e-3, 10), b=st.floats(1e-3, 10), power=st.floats(1, 20))
def test_the_smooth_minimum_stays_below_both_and_is_symmetric(a: float, b: float, power: float) -> None:
    low = float(softmin_frac(a, b, power))

    assert low <= min(a, b)
    assert low >= min(a, b) * 2 ** (-1 / power) - 1e-12
    assert low == float(softmin_frac(b, a, power))


def test_coarse_interleave_leaves_channels_idle() -> None:
    sizes = np.array([64.0, 256.0, 1024.0, 4096.0, 65536.0])

    for sequential in (0.0, 1.0):
        busy = np.asarray(interleave_frac(65536.0, sizes, 64.0, sequential))
        assert np.all(np.diff(busy) <= 0)
        assert busy[-1] == pytest.approx(1 / 64)


@pytest.mark.parametrize("count", [1, 7, 64])
def test_a_batch_of_controllers_is_its_rows(count: int, catalog: Catalog, constants: ControllerConstants) -> None:
    generator = np.random.default_rng(3)
    kinds = list(generator.choice(list(catalog.technologies("memory")), count))
    device = dram_device(catalog, kinds, generator.uniform(20, 300, count))
    mixes = Access(
        read_frac=generator.uniform(0, 1, count),
        run_count=generator.integers(1, 33, count).astype(float),
        runs_count=generator.integers(1, 65, count).astype(float),
        outstanding_count=generator.uniform(1, 300, count),
        block_count=generator.integers(1, 65, count).astype(float),
        sequential_flag=generator.integers(0, 2, count).astype(float),
    )

    batch = np.asarray(achieved_frac(mixes, QUEUES, device, constants))

    for row in range(count):
        alone = achieved_frac(_row(mixes, row), QUEUES, _row(device, row), constants)
        assert np.array_equal(batch[row : row + 1], np.atleast_1d(alone))


def _row(struct: Any, row: int) -> Any:
    names = struct.__slots__
    return type(struct)(**{name: np.atleast_1d(getattr(struct, name))[row : row + 1] for name in names})
