"""Predicted against measured on logarithmic axes, as a small SVG that any Markdown viewer shows."""

import math
from collections.abc import Sequence

SIZE, MARGIN = 420, 46


def scatter_svg(pairs: Sequence[tuple[float, float]], title: str, unit: str, most: int = 600) -> str:
    """One dot per (measured, predicted) pair with the diagonal and the +-25 % lines; thinned evenly beyond ``most``."""
    shown = [pair for pair in pairs if pair[0] > 0 and pair[1] > 0]
    step = max(1, math.ceil(len(shown) / most))
    thin = shown[::step]
    logs = [math.log10(value) for pair in thin for value in pair] or [0.0, 1.0]
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    high = max(high, low + 1)
    scale = (SIZE - 2 * MARGIN) / (high - low)

    def x(value: float) -> float:
        return MARGIN + (math.log10(value) - low) * scale

    def y(value: float) -> float:
        return SIZE - MARGIN - (math.log10(value) - low) * scale

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIZE}" height="{SIZE}" viewBox="0 0 {SIZE} {SIZE}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{SIZE}" height="{SIZE}" fill="white"/>',
        f'<text x="{SIZE / 2}" y="18" text-anchor="middle" font-size="13">{title} ({len(shown)} cases)</text>',
    ]
    for power in range(low, high + 1):
        at_x, at_y = x(10.0**power), y(10.0**power)
        parts.append(
            f'<path d="M{at_x:.1f} {MARGIN}V{SIZE - MARGIN}M{MARGIN} {at_y:.1f}H{SIZE - MARGIN}" stroke="#ddd"/>'
        )
        parts.append(f'<text x="{at_x:.1f}" y="{SIZE - MARGIN + 14}" text-anchor="middle">1e{power}</text>')
        parts.append(f'<text x="{MARGIN - 4}" y="{at_y + 4:.1f}" text-anchor="end">1e{power}</text>')
    for factor, colour in ((1.0, "#333"), (1.25, "#aaa"), (0.8, "#aaa")):
        start, end = 10.0**low, 10.0**high
        parts.append(
            f'<line x1="{x(start):.1f}" y1="{y(start * factor):.1f}" x2="{x(end):.1f}" y2="{y(end * factor):.1f}" '
            f'stroke="{colour}" clip-path="none"/>'
        )
    parts += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="2" fill="#1f77b4" fill-opacity="0.45"/>' for a, b in thin]
    middle = SIZE / 2
    parts.append(f'<text x="{middle}" y="{SIZE - 8}" text-anchor="middle">measured [{unit}]</text>')
    parts.append(
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">predicted [{unit}]</text>'
    )
    parts.append("</svg>")
    return "\n".join(parts) + "\n"
