"""Line charts as plain SVG, and figures of any kind written to a file as SVG or as a page that holds it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from codesign.errors import UsageError

_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf")
_LETTER = 6.2  # width of a letter of the font, about


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart of several over the same axis: the label of its vertical axis, with the unit, and its lines."""

    up: str
    lines: Mapping[str, Sequence[float]]
    straight: bool = False  # never logarithmic: what is next to nothing is to look like nothing


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    right: float
    top: float
    bottom: float


def curves_svg(
    at: Sequence[float | str], lines: Mapping[str, Sequence[float]], title: str, across: str, up: str
) -> str:
    """Lines over one axis; an axis whose numbers span more than two decades is logarithmic, words stand evenly.

    Args:
        at: Where the points stand.
        lines: Name -> one value per point.
        title: What the figure shows.
        across: Label of the horizontal axis, with its unit.
        up: Label of the vertical axis, with its unit.
    """
    box = _Box(78.0, 590.0, 44.0, 364.0)
    tilt = _tilt_px(at, box)
    parts = _chart(at, lines, box, [False] * len(at))
    for i, name in enumerate(lines):
        colour = _COLOURS[i % len(_COLOURS)]
        parts.append(f'<text x="600" y="{box.top + 16 * (i + 1)}" fill="{colour}">{escape(name)}</text>')
    parts.append(_across(across, box, tilt))
    middle = (box.top + box.bottom) / 2
    parts.append(
        f'<text x="16" y="{middle}" text-anchor="middle" transform="rotate(-90 16 {middle})">{escape(up)}</text>'
    )
    return _page(760.0, 420.0 + tilt, title, parts)


def panels_svg(
    at: Sequence[float | str], panels: Sequence[Panel], title: str, across: str, hollow: Sequence[bool]
) -> str:
    """Charts side by side, two in a row, over the same axis.

    Args:
        at: Where the points stand.
        panels: The charts.
        title: What the figure shows.
        across: Label of the horizontal axis, with its unit.
        hollow: Points to draw as rings.
    """
    wide, tall, gap = 400.0, 200.0, 80.0
    tilt = _tilt_px(at, _Box(0.0, wide, 0.0, tall))
    step = tall + 76.0 + tilt
    parts: list[str] = []
    for i, panel in enumerate(panels):
        left, top = gap + (i % 2) * (wide + gap), 64.0 + (i // 2) * step
        box = _Box(left, left + wide, top, top + tall)
        parts += _chart(at, panel.lines, box, hollow, panel.straight)
        parts.append(f'<text x="{left}" y="{top - 8}" font-size="12">{escape(panel.up)}</text>')
        parts.append(_legend(panel.lines, box.right, top - 8))
        parts.append(_across(across, box, tilt))
    rows = math.ceil(len(panels) / 2)
    return _page(2 * (wide + gap) + 60.0, 64.0 + rows * step, title, parts)


def _legend(lines: Mapping[str, Sequence[float]], right: float, y: float) -> str:
    spans = [
        f'<tspan fill="{_COLOURS[i % len(_COLOURS)]}" dx="{10 if i else 0}">{escape(name)}</tspan>'
        for i, name in enumerate(lines)
    ]
    return f'<text x="{right}" y="{y}" text-anchor="end">{"".join(spans)}</text>'


def _page(wide: float, tall: float, title: str, parts: Sequence[str]) -> str:
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:g}" height="{tall:g}" viewBox="0 0 {wide:g} {tall:g}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{wide:g}" height="{tall:g}" fill="white"/>',
        f'<text x="78" y="22" font-size="14">{escape(title)}</text>',
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def _tilt_px(at: Sequence[float | str], box: _Box) -> float:
    """Room below the axis for words that have to stand aslant because they are wider than their place; 0: they fit."""
    words = [word for word in at if isinstance(word, str)]
    longest = max((len(word) for word in words), default=0) * _LETTER
    fits = longest < 0.95 * (box.right - box.left) / max(len(words) - 1, 1)
    return 0.0 if fits else 0.6 * longest


def _across(label: str, box: _Box, tilt_px: float) -> str:
    middle, y = (box.left + box.right) / 2, box.bottom + 42 + tilt_px
    return f'<text x="{middle}" y="{y:.1f}" text-anchor="middle">{escape(label)}</text>'


def _chart(
    at: Sequence[float | str],
    lines: Mapping[str, Sequence[float]],
    box: _Box,
    hollow: Sequence[bool],
    straight: bool = False,
) -> list[str]:
    """Grid, marks and lines of one chart."""
    words = any(isinstance(point, str) for point in at)
    spots = [float(i) for i in range(len(at))] if words else [float(point) for point in at]
    x, x_marks = _axis(spots, box.left, box.right)
    y, y_marks = _axis([v for line in lines.values() for v in line], box.bottom, box.top, straight)
    dashes = ' stroke-dasharray="2 3"' if words else ""  # between words there is nothing
    aslant = _tilt_px(at, box) > 0.0
    parts = []
    named = [(spot, str(point)) for spot, point in zip(spots, at, strict=True)]
    for mark, text in named if words else [(m, _short(m)) for m in x_marks]:
        px, py = x(mark), box.bottom + 16
        hung = f'text-anchor="end" transform="rotate(-35 {px:.1f} {py:.1f})"' if aslant else 'text-anchor="middle"'
        parts.append(f'<path d="M{px:.1f} {box.top}V{box.bottom}" stroke="#ddd"/>')
        parts.append(f'<text x="{px:.1f}" y="{py:.1f}" {hung}>{escape(text)}</text>')
    for mark in y_marks:
        colour = "#888" if mark == 0.0 else "#ddd"
        parts.append(f'<path d="M{box.left} {y(mark):.1f}H{box.right}" stroke="{colour}"/>')
        parts.append(f'<text x="{box.left - 6}" y="{y(mark) + 4:.1f}" text-anchor="end">{_short(mark)}</text>')
    for i, line in enumerate(lines.values()):
        colour = _COLOURS[i % len(_COLOURS)]
        points = [(x(spot), y(value)) for spot, value in zip(spots, line, strict=True)]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>')
        for (px, py), ring in zip(points, hollow, strict=True):
            fill = "white" if ring else colour
            parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{fill}" stroke="{colour}"/>')
    return parts


class _Scale:
    """From values to pixels."""

    def __init__(self, low: float, high: float, first: float, last: float, log: bool) -> None:
        self._log = log
        self._low, self._high = (math.log10(low), math.log10(high)) if log else (low, high)
        self._first, self._last = first, last

    def __call__(self, value: float) -> float:
        shown = math.log10(max(value, 10.0**self._low)) if self._log else value
        return self._first + (shown - self._low) / (self._high - self._low) * (self._last - self._first)


def _axis(values: Sequence[float], first: float, last: float, straight: bool = False) -> tuple[_Scale, list[float]]:
    positive = [v for v in values if v > 0.0]
    if not straight and positive and min(values) >= 0.0 and max(positive) > 100.0 * min(positive):
        low = 10.0 ** math.floor(math.log10(min(positive)))
        high = 10.0 ** math.ceil(math.log10(max(positive)))
        decades = round(math.log10(high / low))
        marks = [low * 10.0**k for k in range(0, decades + 1, max(decades // 8, 1))]
        return _Scale(low, high, first, last, True), marks
    low, high = min([0.0, *values]), max([*values, 0.0])
    high = high if high > low else low + 1.0
    step = 10.0 ** math.floor(math.log10((high - low) / 4.0))
    step *= next(k for k in (1.0, 2.0, 5.0) if (high - low) / (k * step) <= 8.0)
    high = math.ceil(high / step - 1e-9) * step
    low = math.floor(low / step + 1e-9) * step
    return _Scale(low, high, first, last, False), [low + i * step for i in range(round((high - low) / step) + 1)]


def _short(value: float) -> str:
    return f"{value:.4g}"


def write_figure(path: Path, svg: str, title: str) -> None:
    """Write a drawing as .svg, or as .html with the drawing inside.

    Raises:
        UsageError: another kind of file is asked for, or the file cannot be written.
    """
    if path.suffix not in (".svg", ".html"):
        raise UsageError(f"--plot {path}: a figure is written as .svg or .html")
    page = f"<!doctype html>\n<meta charset='utf-8'>\n<title>{escape(title)}</title>\n{svg}"
    write_text(path, svg if path.suffix == ".svg" else page)


def write_text(path: Path, text: str) -> None:
    """Write a file that a user asked for.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise UsageError(f"--plot {path}: cannot write: {problem.strerror or problem}") from None
