"""The memory of one accelerator, all kinds."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesign.catalog import Catalog, load_catalog
from codesign.errors import CatalogError
from codesign.memories import MemoryChoice, memory_constants, memory_inputs
from codesign.model.memory.chain import MemoryInputs, MemorySystem, memory_system
from codesign.units import Array

MIXES = ("weights_frac", "kv_frac", "optimizer_frac", "activation_frac", "random_frac")


def build(catalog: Catalog, **choice: object) -> MemorySystem:
    wanted = MemoryChoice(**({"kind": ["hbm3e"], "stacks_count": 8.0} | choice))  # type: ignore[arg-type]
    return memory_system(memory_inputs(catalog, wanted), memory_constants(catalog))


def rate(memory: MemorySystem, mix: str) -> Array:
    achieved: Array = np.asarray(memory.peak_rate_gbps) * getattr(memory, mix)
    return achieved


def test_every_kind_gives_finite_figures_between_zero_and_one(catalog: Catalog) -> None:
    kinds = list(catalog.technologies("memory"))

    memory = build(catalog, kind=kinds, stacks_count=4.0)

    for field in fields(memory):
        assert np.all(np.isfinite(np.asarray(getattr(memory, field.name)))), field.name
    for mix in MIXES:
        share = np.asarray(getattr(memory, mix))
        assert np.all((share > 0) & (share <= 1)), mix


@pytest.mark.published(source="ml-engineering-2026", where="compute/accelerator/README.md, HBM table", says="36 GB")
def test_capacity_of_a_stack(catalog: Catalog) -> None:
    assert build(catalog, stacks_count=1.0).capacity_bytes == pytest.approx(36e9)


def test_mixed_traffic_gets_less_than_reads_and_random_less_than_runs(catalog: Catalog) -> None:
    memory = build(catalog)

    assert np.all(memory.optimizer_frac < memory.weights_frac)
    assert np.all(memory.random_frac < memory.kv_frac)


@given(
    kind=st.sampled_from(["hbm2e", "hbm3", "hbm3e", "hbm4", "hbm4e", "gddr7", "lpddr5x", "lpddr6", "ddr5"]),
    name=st.sampled_from(["stacks_count", "pin_rate_gbps", "write_queue_count", "outstanding_bytes"]),
    low=st.floats(0.1, 1.0),
    factor=st.floats(1.0, 4.0),
)
def test_more_of_a_memory_resource_never_lowers_any_rate(kind: str, name: str, low: float, factor: float) -> None:
    catalog = load_catalog()
    scale = {
        "stacks_count": 8.0,
        "pin_rate_gbps": catalog.value("memory", kind, "pin_rate_gbps"),
        "write_queue_count": 256.0,
        "outstanding_bytes": 4e6,
    }[name]

    less = build(catalog, kind=[kind], **{name: low * scale})
    more = build(catalog, kind=[kind], **{name: low * factor * scale})

    for mix in MIXES:
        assert np.all(rate(more, mix) >= rate(less, mix) * (1 - 1e-9)), mix


def test_a_longer_way_across_the_chip_costs_rate_only_when_too_little_is_in_flight(catalog: Catalog) -> None:
    starved = [build(catalog, outstanding_bytes=5e5, path_latency_ns=ns) for ns in (200.0, 400.0)]
    ample = [build(catalog, outstanding_bytes=5e7, path_latency_ns=ns) for ns in (200.0, 400.0)]

    assert rate(starved[1], "weights_frac") < rate(starved[0], "weights_frac")
    assert rate(ample[1], "weights_frac") == pytest.approx(rate(ample[0], "weights_frac"))


def test_a_starved_rate_is_proportional_to_the_bytes_in_flight(catalog: Catalog) -> None:
    one, two = build(catalog, outstanding_bytes=1e5), build(catalog, outstanding_bytes=2e5)

    # the extra cycles of a lone request make the first a little slower still
    assert rate(two, "weights_frac") == pytest.approx(2 * rate(one, "weights_frac"), rel=0.01)


def test_in_line_ecc_costs_capacity_and_rate_and_side_band_does_not(catalog: Catalog) -> None:
    with_ecc = build(catalog, kind=["gddr6", "hbm3"], ecc_flag=1.0)
    without = build(catalog, kind=["gddr6", "hbm3"], ecc_flag=0.0)

    ratio = np.asarray(with_ecc.capacity_bytes) / without.capacity_bytes
    assert ratio.tolist() == pytest.approx([15 / 16, 1.0])
    assert np.asarray(with_ecc.peak_rate_gbps)[0] < np.asarray(without.peak_rate_gbps)[0]


def test_a_design_beyond_its_class_gets_a_graded_excess(catalog: Catalog) -> None:
    memory = build(catalog, pin_rate_gbps=np.array([9.6, 12.0, 14.4]))

    assert np.asarray(memory.pin_rate_excess_ratio) == pytest.approx([0.0, 0.25, 0.5])


def test_a_custom_base_die_saves_area_edge_and_energy(catalog: Catalog) -> None:
    memory = build(catalog, kind=["hbm4", "hbm4_custom_base"])

    for name in ("phy_mm2", "edge_mm", "device_pj_per_bit"):
        plain, custom = np.asarray(getattr(memory, name))
        assert custom < plain, name


def test_the_second_tier_adds_capacity_and_nothing_when_absent(catalog: Catalog) -> None:
    none = build(catalog)
    some = build(catalog, second_kind=["lpddr5x"], second_modules_count=8.0)

    assert np.all(np.asarray(none.second_bytes) == 0)
    assert np.all(np.asarray(none.second_rate_gbps) == 0)
    assert some.second_bytes == pytest.approx(8 * 32e9 * 15 / 16)
    assert np.all(np.asarray(some.idle_w) > none.idle_w)
    assert np.all(np.asarray(some.edge_mm) > none.edge_mm)


def test_cxl_is_farther_than_local_memory(catalog: Catalog) -> None:
    local = build(catalog, second_kind=["ddr5"], second_modules_count=1.0)
    far = build(catalog, second_kind=["cxl"], second_modules_count=1.0)

    assert np.asarray(far.second_latency_ns) - local.second_latency_ns == pytest.approx(250)


def test_per_bank_refresh_changes_a_stream(catalog: Catalog) -> None:
    plain, single = (build(catalog, per_bank_refresh_flag=flag) for flag in (0.0, 1.0))

    assert plain.weights_frac != pytest.approx(single.weights_frac)


def test_an_unknown_kind_names_the_nearest(catalog: Catalog) -> None:
    with pytest.raises(CatalogError, match="did you mean 'hbm3e'"):
        build(catalog, kind=["hbm3ee"])


@pytest.mark.parametrize("count", [1, 7, 64])
def test_a_batch_of_memories_is_its_rows(count: int, catalog: Catalog) -> None:
    generator = np.random.default_rng(5)
    kinds = list(generator.choice(["hbm3", "hbm4", "lpddr5x", "gddr7", "cxl"], count))
    stacks, queue = generator.integers(1, 13, count).astype(float), generator.uniform(16, 512, count)
    inputs = memory_inputs(catalog, MemoryChoice(kind=kinds, stacks_count=stacks, write_queue_count=queue))
    constants = memory_constants(catalog)

    batch = memory_system(inputs, constants)

    for row in range(count):
        alone = memory_system(_row(inputs, row), constants)
        for field in fields(batch):
            whole = np.broadcast_to(np.atleast_1d(getattr(batch, field.name)), (count,))
            assert np.array_equal(whole[row : row + 1], np.atleast_1d(getattr(alone, field.name))), field.name


def _row(inputs: MemoryInputs, row: int) -> MemoryInputs:
    def pick(value: object) -> object:
        flat = np.atleast_1d(np.asarray(value, dtype=float))
        return flat[row : row + 1] if flat.size > 1 else flat

    return MemoryInputs(**{field.name: pick(getattr(inputs, field.name)) for field in fields(inputs)})  # type: ignore[arg-type]
