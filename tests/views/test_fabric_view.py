"""The fabric of a design as a reader sees it."""

import pytest

from codesign.catalog import Catalog
from codesign.fabrics import fabric_of
from codesign.views.fabric import FASTER, LIMITS, curve_rows, default_groups, fabric_figure, limit_of


def test_small_messages_are_limited_by_starts_and_large_ones_by_a_line(catalog: Catalog) -> None:
    fabric = fabric_of(catalog, ["h100-sxm", "gb200"], "nccl_ring")
    domain, across = default_groups(fabric)

    rows = curve_rows(fabric, [domain, across])

    assert (domain, across) == (8.0, 128.0)
    for operation in ("all_reduce", "all_to_all"):
        for group, last in ((domain, LIMITS["scale_up_ns"]), (across, LIMITS["scale_out_ns"])):
            mine = [r for r in rows if (r["operation"], r["group_count"]) == (operation, group)]
            assert mine[0]["limit"] in (LIMITS["launch_ns"], LIMITS["steps_ns"])
            assert mine[-1]["limit"] == last


def test_the_parts_of_every_row_add_up(catalog: Catalog) -> None:
    fabric = fabric_of(catalog, ["gb200"], "trtllm")

    for row in curve_rows(fabric, default_groups(fabric)):
        parts = sum(float(str(row[name])) for name in LIMITS) + float(str(row["saved_ns"]))
        assert parts == pytest.approx(1e3 * float(str(row["time_us"])), rel=1e-9)


def test_a_kernel_that_replaces_the_ring_is_named() -> None:
    parts = dict.fromkeys(LIMITS, 10.0)

    assert limit_of(parts, -40.0) == FASTER
    assert limit_of(parts | {"launch_ns": 100.0}, 0.0) == LIMITS["launch_ns"]


def test_the_figure_has_a_curve_per_operation_and_group(catalog: Catalog) -> None:
    fabric = fabric_of(catalog, ["b200-sxm"])

    figure = fabric_figure(curve_rows(fabric, [8.0, 64.0]))

    assert len(figure.data) == 2 * 2 * 2
