"""Predicted against measured on logarithmic axes, as a small SVG that any Markdown viewer shows."""

import math
from collections.abc import Sequence
from html import escape

SIZE, MARGIN = 420, 58
LINES_COUNT = 6  # grid lines at most
BANDS = ((1.0, "#333"), (1.25, "#aaa"), (0.8, "#aaa"))


def scatter_svg(pairs: Sequence[tuple[float, float]], title: str, unit: str, most: int = 600) -> str:
    """One dot per (measured, predicted) pair with the diagonal and the +-25 % lines; thinned evenly beyond ``most``."""
    shown = [pair for pair in pairs if pair[0] > 0 and pair[1] > 0]
    thin = shown[:: max(1, math.ceil(len(shown) / most))]
    logs = [math.log10(value) for pair in thin for value in pair] or [0.0, 1.0]
    low = math.floor(min(logs))
    high = max(math.ceil(max(logs)), low + 1)
    scale = (SIZE - 2 * MARGIN) / (high - low)

    def x(log: float) -> float:
        return MARGIN + (log - low) * scale

    def y(log: float) -> float:
        return SIZE - MARGIN - (log - low) * scale

    inner = SIZE - 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIZE}" height="{SIZE}" viewBox="0 0 {SIZE} {SIZE}" '
        'font-family="sans-serif" font-size="11">',
        f'<clipPath id="frame"><rect x="{MARGIN}" y="{MARGIN}" width="{inner}" height="{inner}"/></clipPath>',
        f'<rect width="{SIZE}" height="{SIZE}" fill="white"/>',
        f'<text x="{SIZE / 2}" y="18" text-anchor="middle" font-size="13">{escape(title)}</text>',
        f'<text x="{SIZE / 2}" y="33" text-anchor="middle" fill="#666">{_count_words(len(shown), len(thin))}</text>',
    ]
    for power in range(low, high + 1, max(1, math.ceil((high - low) / LINES_COUNT))):
        at_x, at_y = x(power), y(power)
        grid = f"M{at_x:.1f} {MARGIN}V{SIZE - MARGIN}M{MARGIN} {at_y:.1f}H{SIZE - MARGIN}"
        parts.append(f'<path d="{grid}" stroke="#ddd"/>')
        parts.append(f'<text x="{at_x:.1f}" y="{SIZE - MARGIN + 14}" text-anchor="middle">1e{power}</text>')
        parts.append(f'<text x="{MARGIN - 4}" y="{at_y + 4:.1f}" text-anchor="end">1e{power}</text>')
    parts.append('<g clip-path="url(#frame)">')
    for factor, colour in BANDS:
        away = math.log10(factor)
        ends = f'x1="{x(low):.1f}" y1="{y(low + away):.1f}" x2="{x(high):.1f}" y2="{y(high + away):.1f}"'
        parts.append(f'<line {ends} stroke="{colour}"/>')
    parts += [
        f'<circle cx="{x(math.log10(a)):.1f}" cy="{y(math.log10(b)):.1f}" r="2" fill="#1f77b4" fill-opacity="0.45"/>'
        for a, b in thin
    ]
    middle = SIZE / 2
    parts += [
        "</g>",
        f'<text x="{middle}" y="{SIZE - 18}" text-anchor="middle">measured [{escape(unit)}]</text>',
        f'<text x="11" y="{middle}" text-anchor="middle" transform="rotate(-90 11 {middle})">predicted '
        f"[{escape(unit)}]</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _count_words(count: int, drawn: int) -> str:
    return f"{count} cases" if drawn == count else f"{count} cases, {drawn} drawn"
