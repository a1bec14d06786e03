"""Collectives: textbook limits, directions, batches, and the choice of algorithm."""

from collections.abc import Callable
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codesign.catalog import Catalog
from codesign.columns import over_mappings
from codesign.fabrics import LIBRARIES, fabric_of
from codesign.model.fabric.collectives import (
    NEVER_NS,
    Fabric,
    Tier,
    all_gather_ns,
    all_reduce_ns,
    all_to_all_ns,
    broadcast_ns,
    distinct_ranks_count,
    inner_count,
    moe_exchange_ns,
    outer_reduce_ratio,
    point_to_point_ns,
    reduce_scatter_ns,
    ring_all_reduce_ns,
)
from codesign.model.fabric.parts import all_reduce_parts, all_to_all_parts
from codesign.units import Array, Numeric

Law = Callable[[Numeric, Numeric, Numeric, Fabric], Numeric]
LAWS: list[Law] = [all_reduce_ns, all_gather_ns, reduce_scatter_ns, all_to_all_ns, broadcast_ns]
UP = Tier(3200.0, 800.0, 5000.0, 2.0, 0.0, 3000.0, 80.0, 2000.0, 8.0, 1.0, handover_ns=4000.0)
OUT = Tier(400.0, 6000.0, 20000.0, 5.0, 0.0, NEVER_NS, 0.0, 400.0, 1e9, 1.0)
FABRIC = Fabric(UP, OUT)


def named(law: Law) -> str:
    return str(getattr(law, "__name__", law))


@pytest.mark.parametrize("law", LAWS, ids=named)
def test_a_group_of_one_takes_no_time(law: Law) -> None:
    assert float(law(1e6, 1.0, 1.0, FABRIC)) == 0.0


@pytest.mark.parametrize("law", LAWS, ids=named)
def test_a_large_message_runs_at_line_rate(law: Law) -> None:
    plain = Tier(800.0, 100.0, 1000.0, 1.0, 0.0, NEVER_NS, 0.0, 800.0, 8.0, 1.0)
    factor = {"all_reduce_ns": 1.75, "broadcast_ns": 1.0}.get(named(law), 0.875)

    time = float(law(1e13, 8.0, 8.0, Fabric(plain, plain)))

    assert time == pytest.approx(factor * 1e13 / 100.0, rel=1e-3)  # 800 Gb/s are 100 bytes a nanosecond


@pytest.mark.parametrize("law", LAWS, ids=named)
def test_an_empty_message_still_pays_the_launch(law: Law) -> None:
    assert float(law(0.0, 8.0, 8.0, FABRIC)) >= 3000.0


@pytest.mark.parametrize("law", LAWS, ids=named)
@settings(max_examples=60, deadline=None)
@given(size=st.floats(0, 1e10), group=st.sampled_from([2.0, 4.0, 8.0, 16.0, 64.0, 512.0]), grow=st.floats(1, 100))
def test_more_bytes_never_take_less_time(law: Law, size: float, group: float, grow: float) -> None:
    inner = float(inner_count(group, 1.0, 8.0))

    assert float(law(grow * size, group, inner, FABRIC)) >= float(law(size, group, inner, FABRIC)) * (1 - 1e-12)


@pytest.mark.parametrize("law", LAWS, ids=named)
@settings(max_examples=60, deadline=None)
@given(
    size=st.floats(1, 1e10),
    group=st.sampled_from([2.0, 8.0, 32.0, 256.0]),
    tier=st.sampled_from(["scale_up", "scale_out"]),
    better=st.sampled_from(
        [
            ("rate_gbps", 2.0),
            ("fast_rate_gbps", 2.0),
            ("hop_ns", 0.5),
            ("launch_ns", 0.5),
            ("ramp_ns_per_sqrt_byte", 0.5),
        ]
    ),
)
def test_more_of_a_resource_never_makes_a_collective_slower(
    law: Law, size: float, group: float, tier: str, better: tuple[str, float]
) -> None:
    name, factor = better
    old = getattr(FABRIC, tier)
    improved = replace(FABRIC, **{tier: replace(old, **{name: getattr(old, name) * factor})})
    inner = float(inner_count(group, 1.0, 8.0))

    assert float(law(size, group, inner, improved)) <= float(law(size, group, inner, FABRIC)) * (1 + 1e-12)


@pytest.mark.parametrize("law", LAWS, ids=named)
def test_a_larger_domain_never_makes_a_large_collective_slower(law: Law) -> None:
    nested = Fabric(replace(UP, rate_gbps=6400.0, ring_most_count=16.0), OUT)
    times = [float(law(1e9, 64.0, inner, nested)) for inner in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)]

    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(times))


def _random(count: int, seed: int = 3) -> tuple[Fabric, Array, Array, Array]:
    draw = np.random.default_rng(seed)
    zero = {f.name: np.full(count, getattr(UP, f.name)) for f in fields(Tier)}
    up = Tier(**(zero | {"rate_gbps": draw.uniform(100, 8000, count), "hop_ns": draw.uniform(10, 3000, count),
                         "reduction_flag": draw.integers(0, 2, count).astype(float)}))  # fmt: skip
    out = Tier(**({f.name: np.full(count, getattr(OUT, f.name)) for f in fields(Tier)}))
    group: Array = np.exp2(draw.integers(0, 10, count).astype(np.float64))
    size: Array = np.exp2(draw.uniform(0, 33, count))
    return Fabric(up, out), size, group, np.asarray(inner_count(group, 1.0, 8.0))


def _row(tier: Tier, i: int) -> Tier:
    return Tier(**{f.name: np.asarray(getattr(tier, f.name))[i : i + 1] for f in fields(Tier)})


@pytest.mark.parametrize("law", LAWS, ids=named)
@pytest.mark.parametrize("count", [1, 7, 64])
def test_a_batch_equals_its_rows(law: Law, count: int) -> None:
    fabric, size, group, inner = _random(count)

    whole = law(size, group, inner, fabric)
    rows = [
        law(
            size[i : i + 1],
            group[i : i + 1],
            inner[i : i + 1],
            Fabric(_row(fabric.scale_up, i), _row(fabric.scale_out, i)),
        )
        for i in range(count)
    ]

    assert np.array_equal(np.asarray(whole), np.concatenate([np.asarray(row) for row in rows]))


@pytest.mark.parametrize("law", LAWS, ids=named)
def test_the_grid_over_mappings_equals_its_columns(law: Law) -> None:
    fabric, _, group, inner = _random(7)
    sizes = np.array([1e3, 1e6, 1e9])[None, :]

    grid = np.asarray(law(sizes, group[:, None], inner[:, None], over_mappings(fabric)))

    for j in range(3):
        assert np.array_equal(grid[:, j], np.asarray(law(np.full(7, sizes[0, j]), group, inner, fabric)))


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_known_accelerator_gives_finite_positive_times(catalog: Catalog, library: str) -> None:
    names = [n for n, f in catalog.technologies("accelerators").items() if "scale_up_rate_gbytes_per_s" in f]
    fabric = fabric_of(catalog, names, library)
    for law in LAWS:
        for size in (0.0, 1e3, 1e9):
            inner = inner_count(64.0, 1.0, fabric.scale_up.domain_count)
            time = np.asarray(law(size, 64.0, inner, fabric))
            assert np.isfinite(time).all()
            assert (time > 0).all()


def test_inner_count_follows_strides() -> None:
    assert float(inner_count(8.0, 1.0, 8.0)) == 8.0
    assert float(inner_count(8.0, 8.0, 8.0)) == 1.0
    assert float(inner_count(4.0, 2.0, 72.0)) == 4.0


@pytest.mark.published(
    source="ml-engineering-2026",
    where="network chapter, all_reduce_bench of four P6-B200 nodes",
    says="busbw is not a wire speed: hierarchical algorithm",
)
def test_two_nodes_use_a_tree_and_many_nodes_a_ring() -> None:
    assert float(outer_reduce_ratio(16.0, 8.0)) == 1.0
    assert float(outer_reduce_ratio(24.0, 8.0)) == 1.5
    assert float(outer_reduce_ratio(1024.0, 8.0)) == pytest.approx(2.0, rel=2e-3)


def test_in_switch_reduction_beats_the_ring_for_large_groups_only() -> None:
    switched = Fabric(replace(UP, reduction_flag=1.0, switch_rate_ratio=0.8), OUT)

    for group, gain in ((2.0, False), (8.0, True)):
        faster = float(all_reduce_ns(1e9, group, group, switched)) < float(all_reduce_ns(1e9, group, group, FABRIC))
        assert faster == gain


def test_low_latency_kernels_serve_small_messages_within_a_domain_only() -> None:
    assert float(all_reduce_ns(8192.0, 8.0, 8.0, FABRIC)) < float(ring_all_reduce_ns(8192.0, 8.0, 8.0, FABRIC))
    across = float(all_reduce_ns(8192.0, 16.0, 8.0, FABRIC))
    assert across == float(ring_all_reduce_ns(8192.0, 16.0, 8.0, FABRIC))


def test_low_latency_kernels_keep_to_their_size_limits() -> None:
    bounded = Fabric(replace(UP, fast_one_shot_bytes=1e5, fast_one_shot_power_ratio=1.0, fast_two_shot_bytes=1.0), OUT)

    fast, slow = float(all_reduce_ns(5e4, 4.0, 4.0, bounded)), float(all_reduce_ns(5.1e4, 4.0, 4.0, bounded))

    assert slow > fast + 1000.0  # the limit of four ranks is half of that of two


def test_a_full_mesh_gives_a_pair_one_link() -> None:
    mesh = Fabric(replace(UP, mesh_flag=1.0), OUT)

    slow, fast = (float(ring_all_reduce_ns(1e13, 2.0, 2.0, f)) for f in (mesh, FABRIC))

    assert slow == pytest.approx(7.0 * fast, rel=2e-3)


def test_contention_behind_the_leaf_slows_all_to_all() -> None:
    four = replace(OUT, exchange_contention_ratio=4.0)

    ratio = float(all_to_all_ns(1e10, 64.0, 8.0, Fabric(UP, four))) / float(all_to_all_ns(1e10, 64.0, 8.0, FABRIC))

    assert ratio == pytest.approx(4.0, rel=0.01)


def test_the_larger_of_both_tiers_sets_the_pace() -> None:
    fast_network = Fabric(UP, replace(OUT, rate_gbps=1e9))

    assert float(all_reduce_ns(1e10, 64.0, 8.0, fast_network)) == pytest.approx(
        float(ring_all_reduce_ns(1e10, 8.0, 8.0, FABRIC)), rel=0.01
    )


def test_tokens_go_once_to_each_rank_that_needs_them() -> None:
    assert distinct_ranks_count(8.0, 1.0) == 1.0
    assert float(distinct_ranks_count(8.0, 1e6)) == pytest.approx(8.0, rel=1e-4)
    narrow = float(moe_exchange_ns(1e5, 1e4, 8.0, 2.0, 2.0, FABRIC))
    copies = float(moe_exchange_ns(1e5, 1e4, 1.0, 2.0, 2.0, FABRIC))
    assert narrow < 2.1 * copies  # two ranks: at most twice the bytes of one expert, not eight times


@settings(max_examples=60, deadline=None)
@given(tokens=st.floats(0, 1e6), group=st.sampled_from([2.0, 8.0, 64.0]), more=st.floats(1, 8))
def test_an_exchange_grows_with_tokens(tokens: float, group: float, more: float) -> None:
    inner = min(group, 8.0)
    less = float(moe_exchange_ns(tokens, 7168.0, 8.0, group, inner, FABRIC))

    assert float(moe_exchange_ns(more * tokens, 7168.0, 8.0, group, inner, FABRIC)) >= less * (1 - 1e-12)


def test_crossing_transfers_take_the_network() -> None:
    inside, outside = (float(point_to_point_ns(1e9, share, FABRIC)) for share in (0.0, 1.0))

    assert outside > inside
    assert float(point_to_point_ns(1e9, 0.5, FABRIC)) == pytest.approx(0.5 * (inside + outside))


@pytest.mark.parametrize("size", [0.0, 1e4, 1e7, 1e10])
@pytest.mark.parametrize("group", [2.0, 8.0, 64.0])
def test_parts_of_a_collective_add_up(size: float, group: float) -> None:
    inner = min(group, 8.0)
    for parts in (all_reduce_parts(size, group, inner, FABRIC), all_to_all_parts(size, group, inner, FABRIC)):
        total = sum(float(getattr(parts, f.name)) for f in fields(parts) if f.name != "total_ns")
        assert total == pytest.approx(float(parts.total_ns), rel=1e-12)
