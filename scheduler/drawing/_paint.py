"""How a picture looks, painted on any canvas: colors by rate, line widths, margins, a legend.

A canvas draws polygons, lines, circles and text; see `Canvas`. matplotlib's is in ``_draw.py``, for
every format and for people to go on with; those in ``_svg.py`` and ``_png.py`` start in a fraction
of the time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Literal, Protocol

from ._picture import Box, Frame, Picture, Rect, Wire
from ._symbols import Words, measure
from ._wiring import Point

# Okabe and Ito's palette, told apart with every common color blindness; its yellow is too pale.
# After one round the wires are dashed.
_CONSTANT, _CONTINUOUS, _UNKNOWN = "#7F7F7F", "#0072B2", "#333333"
_PERIODS = ["#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]

INK, SOFT_INK, WHITE = "#1A1A1A", "#5F5F5F", "#FFFFFF"
_MARGIN, _TITLE, _TITLE_STRIP, _LEGEND, _LEGEND_STRIP = 18.0, 12.0, 26.0, 7.5, 26.0
_THIN, _THICK, _DOUBLE, _OUTLINE = 1.15, 2.3, 3.4, 1.1
_CORNER, _WIRE_CORNER = 5.0, 4.0
_ARROW_LENGTH, _ARROW_HALF = 6.0, 2.9

Dash = Literal["solid", "dashed", "dotted"]


class Canvas(Protocol):
    """What can be painted on; lengths are in points, y points down, later covers earlier."""

    def polygon(
        self, points: Sequence[Point], fill: str, edge: str | None = None, width: float = 0.0
    ) -> None:
        """Fill a closed line, and draw it if it has an `edge`."""

    def line(self, points: Sequence[Point], color: str, width: float, dash: Dash = "solid") -> None:
        """Draw an open line."""

    def circle(
        self, at: Point, radius: float, fill: str, edge: str | None = None, width: float = 0.0
    ) -> None:
        """Fill a circle, and draw it if it has an `edge`."""

    def text(self, words: Words, color: str) -> None:
        """Write a line of text."""


def finish(picture: Picture, title: str | None = None) -> Picture:
    """Return `picture` with margins, title and legend."""
    heading = picture.name if title is None else title
    page = Picture(name=picture.name)
    top = _MARGIN + (_TITLE_STRIP if heading else 0.0)
    page.paste(picture, _MARGIN, top)
    page.width = picture.width + 2 * _MARGIN
    page.height = top + picture.height + _MARGIN
    if heading:
        page.words.append(Words(heading, _MARGIN, _MARGIN + 6, _TITLE, "left", bold=True))
    if page.rates:
        x = _MARGIN
        y = page.height + 4
        for rate in page.rates:
            text = describe_rate(rate)
            wide = measure(text, _LEGEND)
            if x > _MARGIN and x + 24 + wide > page.width - _MARGIN:
                x, y = _MARGIN, y + 14
            page.words.append(Words(text, x + 24, y, _LEGEND, "left", tone="soft"))
            page.legend.append((rate, (x, y)))
            x += 24 + wide + 18
        page.height = y + _MARGIN - 4
    right = max((word.extent[2] for word in page.words), default=0.0)
    page.width = max(page.width, right + _MARGIN)
    return page


def paint(page: Picture, canvas: Canvas) -> None:
    """Paint a finished picture."""
    colors = rate_colors(page.rates)
    for frame in sorted(page.frames, key=lambda frame: frame.depth):
        _paint_frame(canvas, frame)
    dots = {dot.at for dot in page.dots}
    nets: dict[str, list[Wire]] = {}
    for wire in page.wires:
        nets.setdefault(wire.source, []).append(wire)
    for wires in nets.values():
        _paint_net(canvas, wires, dots, colors)
    for dot in page.dots:
        canvas.circle(dot.at, 2.2, colors[dot.rate][0])
    for wire in page.wires:
        canvas.polygon(arrow(wire.points), colors[wire.rate][0])
    for rate, (x, y) in page.legend:
        color, dash = colors[rate]
        canvas.line([(x, y), (x + 18, y)], color, 2.2, dash)
    for box in page.boxes:
        _paint_box(canvas, box, colors[box.rate][0])
    for words in page.words:
        canvas.text(words, INK if words.tone == "dark" else SOFT_INK)


def describe_rate(rate: str) -> str:
    """Return a plan's rate in common notation: ``0.001 s`` is ``1 ms``."""
    return " + ".join(_describe_time(part) for part in rate.split(" + "))


def _describe_time(text: str) -> str:
    number, _, unit = text.partition(" ")
    if unit != "s":
        return text
    seconds = float(number)
    for factor, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= 0.9999999 * factor:
            return f"{seconds / factor:.6g} {name}"
    return f"{seconds / 1e-9:.6g} ns"


def rate_colors(rates: Sequence[str]) -> dict[str, tuple[str, Dash]]:
    """Return color and line style for each rate."""
    named = {"": _UNKNOWN, "constant": _CONSTANT, "continuous": _CONTINUOUS}
    found: dict[str, tuple[str, Dash]] = {}
    for rate, color in named.items():
        found[rate] = (color, "solid")
    styles: tuple[Dash, ...] = ("solid", "dashed", "dotted")
    periods = [rate for rate in rates if rate not in found]
    for n, rate in enumerate(periods):
        found[rate] = (_PERIODS[n % len(_PERIODS)], styles[min(n // len(_PERIODS), 2)])
    return found


def paper(depth: int) -> str:
    """Return the background inside `depth` frames."""
    return "#FFFFFF" if depth == 0 else ["#F6F7F9", "#EDEFF3"][(depth - 1) % 2]


def tint(color: str, share: float) -> str:
    """Return `color` thinned with white."""
    parts = (int(color[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(255 - share * (255 - part)):02X}" for part in parts)


def rounded(rect: Rect, radius: float) -> list[Point]:
    """Return the outline of a rectangle with round corners."""
    x, y, width, height = rect
    r = min(radius, width / 2, height / 2)
    centers = [(x + width - r, y + r), (x + width - r, y + height - r), (x + r, y + height - r),
               (x + r, y + r)]  # fmt: skip
    steps = 8
    return [
        (cx + r * math.cos(angle), cy + r * math.sin(angle))
        for quarter, (cx, cy) in enumerate(centers)
        for angle in ((quarter - 1 + k / steps) * math.pi / 2 for k in range(steps + 1))
    ]


def _paint_frame(canvas: Canvas, frame: Frame) -> None:
    canvas.polygon(rounded(frame.rect, 7.0), paper(frame.depth), "#9AA0AA", 0.9)


def _paint_net(
    canvas: Canvas,
    wires: list[Wire],
    dots: set[Point],
    colors: dict[str, tuple[str, Dash]],
) -> None:
    """Draw the wires from one output, with a gap in the paper's color around them."""
    # A stretch that wires share is painted once, or it would look bolder.
    lines, painted = [], set[tuple[Point, Point]]()
    for wire in wires:
        points = _split_at(wire.points, dots)
        steps = list(itertools.pairwise(points))
        new = next((n for n, step in enumerate(steps) if step not in painted), len(steps) - 1)
        painted.update(steps)
        lines.append(round_corners(points[new:], dots))
    width = _DOUBLE if wires[0].is_bus else _THICK if wires[0].width > 1 else _THIN
    color, dash = colors[wires[0].rate]
    for line in lines:
        canvas.line(line, paper(wires[0].depth), width + 3.2)
    for line in lines:
        canvas.line(line, color, width, dash)
    if wires[0].is_bus:  # a double line
        for line in lines:
            canvas.line(line, paper(wires[0].depth), width - 2 * _THIN)


def _split_at(points: Sequence[Point], dots: set[Point]) -> list[Point]:
    """Return the line with a point of its own at every branch on it."""
    line = [points[0]]
    for a, b in itertools.pairwise(points):
        on = [
            d
            for d in dots
            if min(a[0], b[0]) <= d[0] <= max(a[0], b[0])
            and min(a[1], b[1]) <= d[1] <= max(a[1], b[1])
            and d not in (a, b)
        ]
        line += sorted(on, key=lambda d: abs(d[0] - a[0]) + abs(d[1] - a[1]))
        line.append(b)
    return line


def round_corners(points: Sequence[Point], dots: set[Point]) -> list[Point]:
    """Return the line with rounded corners, except at branches; it ends inside its arrow."""
    (ax, ay), (bx, by) = points[-2:]
    length = max(abs(bx - ax), abs(by - ay))
    share = max(0.0, 1 - 0.7 * _ARROW_LENGTH / length)
    line = [*points[:-1], (ax + share * (bx - ax), ay + share * (by - ay))]
    drawn = [line[0]]
    for before, at, after in zip(line, line[1:], line[2:], strict=False):
        if at in dots:
            drawn.append(at)
            continue
        into = max(abs(at[0] - before[0]), abs(at[1] - before[1]))
        out = max(abs(after[0] - at[0]), abs(after[1] - at[1]))
        radius = min(_WIRE_CORNER, into / 2, out / 2)
        first, last = _toward(at, before, radius / into), _toward(at, after, radius / out)
        drawn += [_bend(first, at, last, k / 6) for k in range(7)]
    drawn.append(line[-1])
    return drawn


def _bend(a: Point, b: Point, c: Point, share: float) -> Point:
    """Return a point of the parabola from `a` to `c` whose tangents meet in `b`."""
    return _toward(_toward(a, b, share), _toward(b, c, share), share)


def _toward(a: Point, b: Point, share: float) -> Point:
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])


def arrow(points: Sequence[Point]) -> list[Point]:
    (ax, ay), (x, y) = points[-2:]
    length = max(abs(x - ax), abs(y - ay))
    dx, dy = (x - ax) / length, (y - ay) / length
    back = (x - _ARROW_LENGTH * dx, y - _ARROW_LENGTH * dy)
    sides = [(back[0] + s * _ARROW_HALF * dy, back[1] - s * _ARROW_HALF * dx) for s in (1, -1)]
    return [(x, y), *sides]


def _paint_box(canvas: Canvas, box: Box, color: str) -> None:
    x, y, width, height = box.body
    fill = tint(color, 0.09)
    shape = box.look.shape
    if shape == "circle":
        canvas.circle((x + width / 2, y + height / 2), width / 2, fill, color, _OUTLINE)
    else:
        if shape == "triangle":
            outline = [(x, y), (x + width, y + height / 2), (x, y + height)]
        elif shape in ("inport", "outport"):
            tip = 8.0
            outline = [(x, y), (x + width - tip, y), (x + width, y + height / 2),
                       (x + width - tip, y + height), (x, y + height)]  # fmt: skip
        else:
            radius = {"bar": 1.5, "source": height}.get(shape, _CORNER)
            outline = rounded(box.body, radius)
        fill = {"bar": color, "sink": WHITE}.get(shape, fill)
        canvas.polygon(outline, fill, color, _OUTLINE)
    left, top = box.rect[:2]
    for stroke in box.look.strokes:
        canvas.line([(left + u, top + v) for u, v in stroke], INK, 1.1)
    for at in box.open_inputs:
        canvas.circle(at, 2.4, WHITE, SOFT_INK, 0.9)
