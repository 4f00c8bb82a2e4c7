"""Small plots as SVG, for notebooks: sparklines, curves and histograms.

Lines of data have fixed colors that are readable on light and on dark pages; axes and texts have
the color of the text around them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._html import Markup

Array = NDArray[np.float64]

COLORS = ("#2f88d0", "#e07b2a", "#2ca58d", "#c65f9b", "#8a78d6", "#b59a2b")
"""Of curves: mid tones, told apart with common color blindness."""

_TEXT = 'font-family="system-ui,sans-serif" font-size="11" fill="currentColor"'
_WIDTH, _HEIGHT = 420.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 14.0, 10.0, 38.0


def sparkline(low: ArrayLike, high: ArrayLike | None = None) -> Markup:
    """Return a curve without axes, for a cell of a table.

    Parameters
    ----------
    low, high
        Smallest and largest value of each bin of samples; of single samples `low` alone.
    """
    # Halves: their differences do not overflow.
    least = 0.5 * np.asarray(low, dtype=np.float64)
    most = least if high is None else 0.5 * np.asarray(high, dtype=np.float64)
    finite = np.isfinite(least) & np.isfinite(most)
    if not finite.any():
        return Markup("")
    width, height, edge = 120.0, 22.0, 2.0
    bottom, top = float(least[finite].min()), float(most[finite].max())
    x = np.linspace(edge, width - edge, len(least)) if len(least) > 1 else np.full(1, width / 2)

    def place(values: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            share = (
                (values - bottom) / (top - bottom) if top > bottom else np.full(len(values), 0.5)
            )
        return np.clip(height - edge - (height - 2 * edge) * share, -1e3, 1e3)

    points = np.stack([np.repeat(x, 2), np.stack([place(least), place(most)], 1).ravel()], 1)
    drawn = points[np.repeat(finite, 2)]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in drawn)
    return Markup(
        f'<svg width="{width:g}" height="{height:g}" role="img" aria-label="curve">'
        f'<polyline points="{path}" fill="none" stroke="{COLORS[0]}" stroke-width="1.2" '
        f'stroke-linejoin="round"/></svg>'
    )


def curves(
    x: ArrayLike, lines: Sequence[tuple[str, ArrayLike]], x_label: str, y_label: str = ""
) -> Markup:
    """Return curves over a common x, with axes; those without finite values are left out."""
    places = np.asarray(x, dtype=np.float64)
    drawn = [(name, np.asarray(values, dtype=np.float64)) for name, values in lines]
    drawn = [(name, y) for name, y in drawn if (np.isfinite(places) & np.isfinite(y)).any()]
    if not drawn:
        return Markup("")
    every = np.concatenate([y[np.isfinite(places) & np.isfinite(y)] for _, y in drawn])
    frame = _Frame(
        _spread(places[np.isfinite(places)]), _spread(every), x_label=x_label, y_label=y_label
    )
    parts = [*frame.axes()]
    for number, (name, y) in enumerate(drawn):
        color = COLORS[number % len(COLORS)]
        good = np.isfinite(places) & np.isfinite(y)
        points = [(frame.x(a), frame.y(b)) for a, b in zip(places[good], y[good], strict=True)]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        title = f"<title>{escape(name)}</title>"
        parts.append(
            f'<g>{title}<polyline points="{line}" fill="none" stroke="{color}" stroke-width="1.6" '
            f'stroke-linejoin="round"/>'
        )
        if len(points) <= 60:
            parts += [
                f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.2" fill="{color}"/>' for a, b in points
            ]
        parts.append("</g>")
    return _picture(parts)


def histogram(bins: Sequence[tuple[float, float, float]], x_label: str, y_label: str) -> Markup:
    """Return bars over a logarithmic axis; heights are logarithmic, so that single ones show.

    Parameters
    ----------
    bins
        Begin, end and count of each bin; a bin may begin at 0.
    """
    full = [(a, b, n) for a, b, n in bins if n > 0 and b > 0]
    if not full:
        return Markup("")
    # A bin that begins at 0 has no place on a logarithmic axis: it is drawn one octave wide.
    edges = [(a if a > 0 else b / 2, b, n) for a, b, n in full]
    low, high = min(a for a, _, _ in edges), max(b for _, b, _ in edges)
    most = max(n for _, _, n in edges)
    frame = _Frame(
        (math.log10(low), math.log10(high)),
        (math.log10(0.6), max(math.log10(most) * 1.04, 0.5)),
        x_label=x_label,
        y_label=y_label,
        is_logarithmic=True,
    )
    floor = frame.y(frame.y_range[0])
    parts = [*frame.axes()]
    for a, b, n in edges:
        left, right, top = frame.x(math.log10(a)), frame.x(math.log10(b)), frame.y(math.log10(n))
        title = f"<title>{a:.4g} to {b:.4g}: {n:g}</title>"
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(right - left - 0.6, 0.8):.1f}" '
            f'height="{max(floor - top, 0.8):.1f}" fill="{COLORS[0]}">{title}</rect>'
        )
    return _picture(parts)


class _Frame:
    """Axes: where values are in the picture, and the ticks beside them."""

    def __init__(
        self,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        *,
        x_label: str,
        y_label: str,
        is_logarithmic: bool = False,
    ) -> None:
        self.x_range, self.y_range = x_range, y_range
        self._labels = x_label, y_label
        self._logarithmic = is_logarithmic

    def x(self, value: float) -> float:
        low, high = self.x_range
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (value - low) / (high - low)

    def axes(self) -> list[str]:
        left, right, floor = _LEFT, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        faint = 'stroke="currentColor" stroke-opacity=".18"'
        parts = [
            f'<path d="M{left} {_TOP}V{floor}H{right}" fill="none" stroke="currentColor" '
            f'stroke-opacity=".6"/>'
        ]
        for value, text in self._ticks(self.x_range):
            x = self.x(value)
            parts.append(f'<path d="M{x:.1f} {_TOP}V{floor}" {faint}/>')
            parts.append(
                f'<text x="{x:.1f}" y="{floor + 14}" text-anchor="middle" {_TEXT}>{text}</text>'
            )
        for value, text in self._ticks(self.y_range):
            y = self.y(value)
            parts.append(f'<path d="M{left} {y:.1f}H{right}" {faint}/>')
            parts.append(
                f'<text x="{left - 6}" y="{y + 3.8:.1f}" text-anchor="end" {_TEXT}>{text}</text>'
            )
        x_label, y_label = (escape(label) for label in self._labels)
        middle, center = (left + right) / 2, (_TOP + floor) / 2
        parts.append(
            f'<text x="{middle:.1f}" y="{_HEIGHT - 6}" text-anchor="middle" {_TEXT}>'
            f"{x_label}</text>"
        )
        if y_label:
            parts.append(
                f'<text transform="translate(12 {center:.1f}) rotate(-90)" text-anchor="middle" '
                f"{_TEXT}>{y_label}</text>"
            )
        return parts

    def _ticks(self, span: tuple[float, float]) -> list[tuple[float, str]]:
        if not self._logarithmic:
            return [(value, f"{value:.6g}") for value in nice_ticks(*span)]
        first, last = math.ceil(span[0] - 1e-9), math.floor(span[1] + 1e-9)
        step = max(1, math.ceil((last - first + 1) / 6))
        powers = list(range(first, last + 1, step))
        if len(powers) < 2:  # less than a decade
            values = [m * 10.0**e for e in range(first - 1, last + 1) for m in (1, 2, 5)]
            powers_of = [(math.log10(v), f"{v:g}") for v in values]
            return [(at, text) for at, text in powers_of if span[0] <= at <= span[1]]
        return [(float(power), f"{10.0**power:g}") for power in powers]


def nice_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers between two."""
    if not high > low:
        return [low]
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first
    return [0.0 if first + k == 0 else (first + k) * step for k in range(int(count) + 1)]


def _spread(values: Array) -> tuple[float, float]:
    """Return the range of values, widened where it is empty."""
    low, high = float(values.min()), float(values.max())
    room = 0.04 * (high - low)
    if not (high - low) > 1e-12 * max(abs(low), abs(high)):
        room = 0.5 * abs(low) or 1.0
    return low - room, high + room


def _picture(parts: Sequence[str]) -> Markup:
    return Markup(
        f'<svg width="{_WIDTH:g}" height="{_HEIGHT:g}" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" '
        f'role="img" style="max-width:100%">{"".join(parts)}</svg>'
    )
