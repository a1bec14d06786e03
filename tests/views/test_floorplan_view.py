"""The drawing of a die."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from codesign.catalog import Catalog
from codesign.chips import ChipChoice, chip_inputs
from codesign.model.chip.chain import chip
from codesign.views.floorplan import floorplan_svg


def draw(catalog: Catalog, row: int = 0, **choice: object) -> str:
    wanted = {"base": ["h100", "mi300x"], "memory_kind": ["hbm3", "hbm3"], "memory_stacks_count": 6.0} | choice
    inputs = chip_inputs(catalog, ChipChoice(**wanted))  # type: ignore[arg-type]
    return floorplan_svg(chip(inputs), inputs, row)


@pytest.mark.parametrize("row", [0, 1])
def test_the_drawing_is_well_formed_and_stays_inside_its_frame(row: int, catalog: Catalog) -> None:
    root = ElementTree.fromstring(draw(catalog, row))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])

    for box in root.iter("{http://www.w3.org/2000/svg}rect"):
        if box.attrib["width"] == "100%":
            continue
        x, y, w, h = (float(box.attrib.get(name, "0")) for name in ("x", "y", "width", "height"))
        assert x >= 0
        assert x + w <= width + 0.2
        assert y >= 0
        assert y + h <= height + 0.2


def test_it_names_the_die_that_carries_the_phys(catalog: Catalog) -> None:
    assert "Compute die (1 compute die in the package)" in draw(catalog, 0)
    assert "I/O die (8 compute dies on 4 I/O dies)" in draw(catalog, 1)


def test_it_says_what_does_not_fit(catalog: Catalog) -> None:
    crowded = draw(catalog, memory_stacks_count=12.0)

    assert "does not fit" in crowded
    assert re.search(r"memory \([\d.]+ mm without a place\)|SerDes \([\d.]+ mm without a place\)", crowded)
    assert "does not fit" not in draw(catalog)


def test_areas_in_the_table_sum_to_the_die(catalog: Catalog) -> None:
    inputs = chip_inputs(catalog, ChipChoice(base=["h100"], memory_kind=["hbm3"], memory_stacks_count=6.0))
    dies = chip(inputs)

    cells = re.findall(r"<title>[\w /,-]+: ([\d.]+) mm2</title>", floorplan_svg(dies, inputs, 0))

    # each entry is rounded to a tenth
    total = float(np.squeeze(dies.compute_die_mm2))
    assert sum(map(float, cells)) == pytest.approx(total, abs=0.05 * len(cells) + 0.05)


def test_the_same_design_draws_the_same_bytes(catalog: Catalog) -> None:
    assert draw(catalog) == draw(catalog)
