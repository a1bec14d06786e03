"""Group algebra: strides and members per domain for any order, against a count of ranks."""

import itertools

import numpy as np
import pytest

from codesign.model.fabric.placement import Groups, crosses_frac, placement

NAMES = ("tp", "cp", "ep", "dp", "pp")


def _groups(sizes: tuple[int, ...], order: tuple[int, ...]) -> Groups:
    counts = {f"{name}_count": float(size) for name, size in zip(NAMES, sizes, strict=True)}
    places = {f"{name}_position_count": float(order.index(i)) for i, name in enumerate(NAMES)}
    return Groups(**counts, **places)


def _members(sizes: tuple[int, ...], order: tuple[int, ...], group: int) -> list[int]:
    """Ranks of the group that holds rank 0, by writing every rank out in mixed radix."""
    ranks = []
    for rank in range(int(np.prod(sizes))):
        rest, digits = rank, {}
        for i in order:
            digits[i] = rest % sizes[i]
            rest //= sizes[i]
        if all(digit == 0 for i, digit in digits.items() if i != group):
            ranks.append(rank)
    return ranks


@pytest.mark.parametrize("order", list(itertools.permutations(range(5))))
def test_any_order_of_groups_lies_as_a_count_of_ranks_says(order: tuple[int, ...]) -> None:
    sizes, domain = (2, 2, 4, 2, 2), 8.0

    found = placement(_groups(sizes, order), domain)

    for i, name in enumerate(NAMES):
        ranks = _members(sizes, order, i)
        assert float(getattr(found, f"{name}_stride_count")) == ranks[1] - ranks[0]
        assert float(getattr(found, f"{name}_inner_count")) == sum(rank < domain for rank in ranks)


@pytest.mark.parametrize("order", list(itertools.permutations(range(5)))[::7])
def test_pipeline_neighbours_cross_as_counted(order: tuple[int, ...]) -> None:
    sizes = (2, 2, 2, 2, 8)

    found = placement(_groups(sizes, order), 8.0)

    ranks = _members(sizes, order, 4)
    crossing = np.mean([a // 8 != b // 8 for a, b in itertools.pairwise(ranks)])
    assert float(found.pp_crosses_frac) == pytest.approx(float(crossing))


def test_orders_mix_in_one_batch() -> None:
    first, last = _groups((8, 1, 1, 4, 1), (0, 1, 2, 3, 4)), _groups((8, 1, 1, 4, 1), (3, 1, 2, 0, 4))
    both = Groups(**{
        name: np.array([getattr(first, name), getattr(last, name)])
        for name in (f"{n}{end}" for n in NAMES for end in ("_count", "_position_count"))
    })  # fmt: skip

    assert np.array_equal(np.asarray(placement(both, 8.0).tp_inner_count), [8.0, 2.0])
    assert np.array_equal(np.asarray(placement(both, 8.0).dp_inner_count), [1.0, 4.0])


def test_a_chain_of_one_crosses_nothing() -> None:
    assert float(crosses_frac(1.0, 1.0)) == 0.0
    assert float(crosses_frac(8.0, 8.0)) == 0.0
    assert float(crosses_frac(8.0, 1.0)) == 1.0
