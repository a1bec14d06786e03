"""Line charts as plain SVG, and figures of any kind written to a file as SVG or as a page that holds it."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from codesign.errors import UsageError

_WIDE, _TALL, _LEFT, _TOP = 760, 420, 78, 44
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf")


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
    words = any(isinstance(point, str) for point in at)
    spots = [float(i) for i in range(len(at))] if words else [float(point) for point in at]
    x, x_marks = _axis(spots, _LEFT, _WIDE - 170)
    y, y_marks = _axis([v for line in lines.values() for v in line], _TALL - 56, _TOP)
    named = [(spot, str(point)) for spot, point in zip(spots, at, strict=True)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE}" height="{_TALL}" viewBox="0 0 {_WIDE} {_TALL}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{_WIDE}" height="{_TALL}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="14">{escape(title)}</text>',
    ]
    for mark, text in named if words else [(m, _short(m)) for m in x_marks]:
        parts.append(f'<path d="M{x(mark):.1f} {_TOP}V{_TALL - 56}" stroke="#ddd"/>')
        parts.append(f'<text x="{x(mark):.1f}" y="{_TALL - 40}" text-anchor="middle">{escape(text)}</text>')
    for mark in y_marks:
        parts.append(f'<path d="M{_LEFT} {y(mark):.1f}H{_WIDE - 170}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y(mark) + 4:.1f}" text-anchor="end">{_short(mark)}</text>')
    for i, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[i % len(_COLOURS)]
        points = [(x(spot), y(value)) for spot, value in zip(spots, line, strict=True)]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="2.4" fill="{colour}"/>' for px, py in points]
        parts.append(f'<text x="{_WIDE - 160}" y="{_TOP + 16 * (i + 1)}" fill="{colour}">{escape(name)}</text>')
    middle = (_TOP + _TALL - 56) / 2
    parts.append(f'<text x="{(_LEFT + _WIDE - 170) / 2}" y="{_TALL - 14}" text-anchor="middle">{escape(across)}</text>')
    parts.append(
        f'<text x="16" y="{middle}" text-anchor="middle" transform="rotate(-90 16 {middle})">{escape(up)}</text>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Scale:
    """From values to pixels."""

    def __init__(self, low: float, high: float, first: float, last: float, log: bool) -> None:
        self._log = log
        self._low, self._high = (math.log10(low), math.log10(high)) if log else (low, high)
        self._first, self._last = first, last

    def __call__(self, value: float) -> float:
        shown = math.log10(max(value, 10.0**self._low)) if self._log else value
        return self._first + (shown - self._low) / (self._high - self._low) * (self._last - self._first)


def _axis(values: Sequence[float], first: float, last: float) -> tuple[_Scale, list[float]]:
    positive = [v for v in values if v > 0.0]
    if positive and min(values) >= 0.0 and max(positive) > 100.0 * min(positive):
        low = 10.0 ** math.floor(math.log10(min(positive)))
        high = 10.0 ** math.ceil(math.log10(max(positive)))
        decades = round(math.log10(high / low))
        marks = [low * 10.0**k for k in range(0, decades + 1, max(decades // 8, 1))]
        return _Scale(low, high, first, last, True), marks
    low, high = min([0.0, *values]), max([*values, 0.0])
    high = high if high > low else low + 1.0
    step = 10.0 ** math.floor(math.log10((high - low) / 2.0))
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
