"""The floor plan of the die that carries the PHYs, to scale, with its edge budget, as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from codesign.columns import number_at
from codesign.model.chip.chain import Chip, ChipInputs

_SCALE = 13.0  # pixels per millimetre of the die
_MARGIN = 36.0
_TOP = 84.0
_PANEL = 430.0
_STRIP_MM = 1.1  # drawn depth of an edge strip
_INK, _MUTED, _FAULT = "#1f2933", "#66727f", "#c22f2f"
#: Block: (field of `Chip`, label, colour). Cores first, then what is shared, then interfaces.
_BLOCKS = (
    ("arrays_mm2", "matrix arrays", "#3b6ea5"),
    ("vector_mm2", "vector units", "#5b8fc4"),
    ("control_mm2", "control", "#84acd6"),
    ("registers_mm2", "registers", "#a9c6e5"),
    ("local_sram_mm2", "local SRAM", "#7fb8a4"),
    ("network_mm2", "on-chip network", "#c9d8ea"),
    ("shared_sram_mm2", "shared cache", "#4f9d86"),
    ("buffer_mm2", "link buffers", "#b7dccf"),
    ("memory_controller_mm2", "memory controllers", "#e7b36a"),
    ("memory_phy_mm2", "memory PHYs", "#d98e32"),
    ("link_controller_mm2", "link controllers", "#c7a4dc"),
    ("link_phy_mm2", "SerDes", "#9a66bf"),
    ("host_mm2", "host port", "#b58aa5"),
    ("die_to_die_mm2", "die-to-die", "#cf6f6f"),
    ("rest_mm2", "everything else", "#d9dde2"),
)
#: Edge user: (field of `Chip`, label, colour, sides in order of preference).
_EDGES = (
    ("memory_edge_mm", "memory", "#d98e32", ("left", "right", "top", "bottom")),
    ("die_to_die_edge_mm", "die-to-die", "#cf6f6f", ("bottom", "top", "right", "left")),
    ("link_edge_mm", "SerDes", "#9a66bf", ("top", "bottom", "right", "left")),
    ("host_edge_mm", "host port", "#b58aa5", ("bottom", "top", "right", "left")),
)
_CORE_FIELDS = {"arrays_mm2", "vector_mm2", "control_mm2", "registers_mm2", "local_sram_mm2", "network_mm2"}


@dataclass(frozen=True, slots=True)
class _Box:
    """A rectangle in pixels."""

    x: float
    y: float
    width: float
    height: float


def floorplan_svg(chip: Chip, inputs: ChipInputs, row: int) -> str:
    """Draw one candidate: blocks by area inside the die, PHY strips along its edges, and the budget beside it.

    The die that is drawn is the one that carries memory and links: an I/O die where there are any. Blocks are to
    scale; their places are illustrative, the edges they need are not.
    """
    apart = number_at(inputs.io_dies_count, row) > 0
    carriers = number_at(inputs.io_dies_count if apart else inputs.compute_dies_count, row)
    width_mm, height_mm = number_at(chip.die_width_mm, row), number_at(chip.die_height_mm, row)
    die = _Box(_MARGIN, _TOP, width_mm * _SCALE, height_mm * _SCALE)
    blocks = _blocks(chip, apart, carriers, width_mm * height_mm, row)
    strips, left_over = _strips(chip, inputs, row, die)
    panel_x = die.x + die.width + _MARGIN
    body = [
        _text(_MARGIN, 34.0, _title(inputs, apart, row), size=17, weight=600),
        _text(
            _MARGIN,
            54.0,
            f"{width_mm:.1f} x {height_mm:.1f} mm, {width_mm * height_mm:.0f} mm2 of "
            f"{number_at(chip.reticle_available_mm2, row):.0f} mm2 field",
            colour=_MUTED,
        ),
        f'<rect x="{die.x:.1f}" y="{die.y:.1f}" width="{die.width:.1f}" height="{die.height:.1f}" rx="3" '
        f'fill="#f4f6f8" stroke="{_INK}" stroke-width="1.4"/>',
        *_treemap(blocks, _inner(die)),
        *strips,
        *_panel(chip, row, panel_x, blocks, left_over),
    ]
    tall = max(die.y + die.height, _TOP + 180.0 + 18.0 * len(blocks)) + _MARGIN
    wide = panel_x + _PANEL
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{tall:.0f}" '
        f'viewBox="0 0 {wide:.0f} {tall:.0f}" font-family="Inter, Helvetica, Arial, sans-serif" role="img">'
        f"<title>{escape(_title(inputs, apart, row))}</title>"
        f'<rect width="100%" height="100%" fill="#ffffff"/>' + "".join(body) + "</svg>\n"
    )


def _title(inputs: ChipInputs, apart: bool, row: int) -> str:
    compute, io = number_at(inputs.compute_dies_count, row), number_at(inputs.io_dies_count, row)
    dies = f"{compute:.0f} compute {'die' if compute == 1 else 'dies'}"
    if not apart:
        return f"Compute die ({dies} in the package)"
    where = "on" if number_at(inputs.stacked_flag, row) > 0.5 else "beside"
    return f"I/O die ({dies} {where} {io:.0f} I/O {'die' if io == 1 else 'dies'})"


def _blocks(chip: Chip, apart: bool, carriers: float, die_mm2: float, row: int) -> list[tuple[str, float, str]]:
    """Blocks of the drawn die, largest first; what they leave of it is the rest."""
    out, named_mm2 = [], 0.0
    for field, label, colour in _BLOCKS:
        if field == "rest_mm2" or (apart and field in _CORE_FIELDS):
            continue
        size_mm2 = number_at(getattr(chip, field), row) / carriers
        named_mm2 += size_mm2
        if size_mm2 > 0.05:
            out.append((label, size_mm2, colour))
    out.sort(key=lambda block: -block[1])
    rest_mm2 = max(die_mm2 - named_mm2, 0.0)
    label = "under compute dies, network, spare" if apart else "everything else"
    return [*out, (label, rest_mm2, "#d9dde2")] if rest_mm2 > 0.05 else out


def _inner(die: _Box) -> _Box:
    gap = _STRIP_MM * _SCALE + 3.0
    return _Box(die.x + gap, die.y + gap, max(die.width - 2 * gap, 1.0), max(die.height - 2 * gap, 1.0))


def _treemap(blocks: Sequence[tuple[str, float, str]], box: _Box) -> list[str]:
    """Cut the box in two along its longer side, areas in proportion, until each block has its own."""
    if not blocks:
        return []
    if len(blocks) == 1:
        return [_cell(blocks[0], box)]
    total = sum(size for _, size, _ in blocks)
    cut, first = 1, blocks[0][1]
    while cut < len(blocks) - 1 and first + blocks[cut][1] / 2.0 < total / 2.0:
        first += blocks[cut][1]
        cut += 1
    share = first / total
    if box.width >= box.height:
        one = _Box(box.x, box.y, box.width * share, box.height)
        two = _Box(box.x + one.width, box.y, box.width - one.width, box.height)
    else:
        one = _Box(box.x, box.y, box.width, box.height * share)
        two = _Box(box.x, box.y + one.height, box.width, box.height - one.height)
    return [*_treemap(blocks[:cut], one), *_treemap(blocks[cut:], two)]


def _cell(block: tuple[str, float, str], box: _Box) -> str:
    label, size_mm2, colour = block
    shape = (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{max(box.width - 1.5, 0.5):.1f}" '
        f'height="{max(box.height - 1.5, 0.5):.1f}" fill="{colour}" rx="2">'
        f"<title>{escape(label)}: {size_mm2:.1f} mm2</title></rect>"
    )
    if box.width < 7.4 * len(label) + 10 or box.height < 34:
        return shape
    dark = colour in ("#3b6ea5", "#4f9d86", "#9a66bf", "#5b8fc4")
    ink = "#ffffff" if dark else _INK
    return (
        shape
        + _text(box.x + 7, box.y + 17, label, colour=ink, size=12)
        + _text(box.x + 7, box.y + 31, f"{size_mm2:.0f} mm2", colour=ink, size=11)
    )


def _strips(chip: Chip, inputs: ChipInputs, row: int, die: _Box) -> tuple[list[str], dict[str, float]]:
    """Give each user its edges, preferred sides first; return the drawing and the millimetres that found no place."""
    corner_mm = number_at(inputs.corner_mm, row)
    side_mm = {
        "left": die.height / _SCALE - 2 * corner_mm,
        "right": die.height / _SCALE - 2 * corner_mm,
        "top": die.width / _SCALE - 2 * corner_mm,
        "bottom": die.width / _SCALE - 2 * corner_mm,
    }
    used = dict.fromkeys(side_mm, 0.0)
    out, missing = [], {}
    for field, label, colour, sides in _EDGES:
        need = number_at(getattr(chip, field), row)
        # memory stands on both long sides alike
        wanted = {side: need / 2.0 for side in ("left", "right")} if label == "memory" else {}
        for turn in (wanted, dict.fromkeys(sides, np.inf)):
            for side, most in turn.items():
                length = min(need, most, max(side_mm[side] - used[side], 0.0))
                if length > 1e-6:
                    out.append(_strip(die, side, corner_mm + used[side], length, colour, label))
                    used[side] += length
                    need -= length
        if need > 1e-6:
            missing[label] = need
    return out, missing


def _strip(die: _Box, side: str, start_mm: float, length_mm: float, colour: str, label: str) -> str:
    depth, start, length = _STRIP_MM * _SCALE, start_mm * _SCALE, length_mm * _SCALE
    x, y = {
        "left": (die.x, die.y + start),
        "right": (die.x + die.width - depth, die.y + start),
        "top": (die.x + start, die.y),
        "bottom": (die.x + start, die.y + die.height - depth),
    }[side]
    wide, tall = (depth, length) if side in ("left", "right") else (length, depth)
    tip = f"{label}: {length_mm:.1f} mm of the {side} edge"
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" fill="{colour}" stroke="#ffffff" '
        f'stroke-width="1"><title>{escape(tip)}</title></rect>'
    )


def _panel(
    chip: Chip,
    row: int,
    x: float,
    blocks: Sequence[tuple[str, float, str]],
    left_over: dict[str, float],
) -> list[str]:
    """Edge budget as a bar, then the area table."""
    available, required = number_at(chip.edge_available_mm, row), number_at(chip.edge_required_mm, row)
    scale = (_PANEL - 40.0) / max(available, required, 1e-9)
    over = required > available
    note = f"needs {required:.1f} of {available:.1f} mm usable" + (" - does not fit" if over else "")
    out = [_text(x, _TOP + 12, "Edge budget of this die", size=15, weight=600)]
    out.append(_text(x + _PANEL - 40, _TOP + 12, note, colour=_FAULT if over else _MUTED, anchor="end"))
    at, y = x, _TOP + 24.0
    for field, label, colour, _ in _EDGES:
        length = number_at(getattr(chip, field), row) * scale
        if length > 0:
            out.append(
                f'<rect x="{at:.1f}" y="{y:.0f}" width="{length:.1f}" height="20" fill="{colour}">'
                f"<title>{escape(label)}: {length / scale:.1f} mm</title></rect>"
            )
            at += length
    out.append(
        f'<rect x="{x:.1f}" y="{y:.0f}" width="{available * scale:.1f}" height="20" fill="none" stroke="{_INK}" '
        'stroke-width="1.2"/>'
    )
    for k, (field, label, colour, _) in enumerate(_EDGES):
        lost = f" ({left_over[label]:.1f} mm without a place)" if label in left_over else ""
        out += _legend(x, y + 42.0 + 18.0 * k, colour, label + lost, f"{number_at(getattr(chip, field), row):.1f} mm")
    y += 42.0 + 18.0 * len(_EDGES) + 22.0
    out.append(_text(x, y, "Area of this die", size=15, weight=600))
    for k, (label, size_mm2, colour) in enumerate(blocks):
        out += _legend(x, y + 22.0 + 18.0 * k, colour, label, f"{size_mm2:.1f} mm2")
    excess = number_at(chip.reticle_excess_ratio, row)
    if excess > 0:
        words = f"{100 * excess:.0f} % over the exposure field"
        out.append(_text(x + _PANEL - 40, y, words, colour=_FAULT, anchor="end"))
    return out


def _legend(x: float, y: float, colour: str, label: str, size: str) -> list[str]:
    return [
        f'<rect x="{x:.1f}" y="{y - 10:.1f}" width="12" height="12" rx="2" fill="{colour}"/>',
        _text(x + 19, y, label, size=12),
        _text(x + _PANEL - 40, y, size, size=12, anchor="end"),
    ]


def _text(
    x: float, y: float, words: str, size: int = 12, colour: str = _INK, weight: int = 400, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="{anchor}">{escape(words)}</text>'
    )
