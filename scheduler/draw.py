"""Drawing a diagram: a picture from left to right, rates by colour, subsystems framed.

This module imports matplotlib, so it is imported only when something is drawn. Figures are made
without pyplot: no display is needed, and no global state is left behind.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Circle, FancyBboxPatch, PathPatch, Polygon
from matplotlib.path import Path

from ..errors import DiagramError
from .diagram import Diagram
from .drawing.arrange import arrange
from .drawing.picture import Box, Frame, Picture, Rect, Wire
from .drawing.symbols import FONT, Words, measure
from .drawing.wiring import Point
from .files import replacing
from .plan import Plan
from .plotting import ResultFigure

FORMATS = ("svg", "pdf", "png")

# Okabe and Ito's palette, told apart with every common colour blindness; its yellow is too pale.
# After one round the wires are dashed.
_CONSTANT, _CONTINUOUS, _UNKNOWN = "#7F7F7F", "#0072B2", "#333333"
_PERIODS = ["#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]

_INK, _SOFT_INK = "#1A1A1A", "#5F5F5F"
_MARGIN, _TITLE, _TITLE_STRIP, _LEGEND, _LEGEND_STRIP = 18.0, 12.0, 26.0, 7.5, 26.0
_THIN, _THICK, _OUTLINE = 1.15, 2.3, 1.1
_CORNER, _WIRE_CORNER = 5.0, 4.0
_ARROW_LENGTH, _ARROW_HALF = 6.0, 2.9
_DPI = 160


def draw(
    source: Diagram | Plan, path: str | FilePath | None = None, *, title: str | None = None
) -> ResultFigure:
    """Draw a block diagram from left to right.

    Wires and outlines are coloured by rate, vectors are thick with their width beside them,
    subsystems are framed with their blocks inside. A diagram that does not compile is drawn without
    rates. A plan has no frames any more: its blocks stand under their full paths.

    Parameters
    ----------
    source
        A `Diagram`, or a compiled `Plan`.
    path
        Where to save the picture: ``.svg``, ``.pdf`` or ``.png``. Equal diagrams give equal bytes.
    title
        Instead of the diagram's name; ``""`` for none.

    Raises
    ------
    DiagramError
        If the extension of `path` is another one.
    """
    target = None if path is None else FilePath(path)
    suffix = "" if target is None else target.suffix.lower().lstrip(".")
    if target is not None and suffix not in FORMATS:
        raise DiagramError(
            f"cannot draw to `{target.name}`: give it one of the extensions {', '.join(FORMATS)}."
        )
    figure = render(finish(arrange(source), title))
    if target is not None:
        # Dates and random identifiers would make every file different.
        metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(
            suffix, {}
        )
        style: dict[Any, Any] = {"svg.hashsalt": "biella", "svg.fonttype": "path"}
        with mpl.rc_context(style), replacing(target) as temporary:
            figure.savefig(temporary, format=suffix, metadata=metadata)
    return figure


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


def render(page: Picture) -> ResultFigure:
    """Draw a finished picture."""
    with mpl.rc_context({"font.family": [FONT]}):
        figure = ResultFigure(figsize=(page.width / 72, page.height / 72), dpi=_DPI)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, page.width)
        axes.set_ylim(page.height, 0)
        colours = _colours(page.rates)
        for frame in page.frames:
            _draw_frame(axes, frame)
        dots = {dot.at for dot in page.dots}
        nets: dict[str, list[Wire]] = {}
        for wire in page.wires:
            nets.setdefault(wire.source, []).append(wire)
        for order, wires in enumerate(nets.values()):
            _draw_net(axes, wires, dots, colours, 2 + order / (len(nets) + 1))
        for dot in page.dots:
            colour, _ = colours[dot.rate]
            axes.add_patch(Circle(dot.at, 2.2, facecolor=colour, edgecolor="none", zorder=4))
        for box in page.boxes:
            _draw_box(axes, box, colours[box.rate][0])
        for rate, (x, y) in page.legend:
            colour, dash = colours[rate]
            axes.plot([x, x + 18], [y, y], color=colour, linestyle=dash, linewidth=2.2, zorder=5)
        for word in page.words:
            axes.text(
                word.x,
                word.y,
                word.text,
                fontsize=word.size,
                fontweight="bold" if word.bold else "normal",
                color=_INK if word.tone == "dark" else _SOFT_INK,
                ha=word.anchor,
                va="center_baseline" if len(word.text) > 1 else "center",
                parse_math=False,
                zorder=7,
            )
    return figure


def describe_rate(rate: str) -> str:
    """Return a plan's rate as people say it: ``0.001 s`` is ``1 ms``."""
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


def _colours(rates: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return colour and line style for each rate."""
    found = {"": (_UNKNOWN, "-"), "constant": (_CONSTANT, "-"), "continuous": (_CONTINUOUS, "-")}
    periods = [rate for rate in rates if rate not in found]
    for n, rate in enumerate(periods):
        style = ["-", "--", ":"][min(n // len(_PERIODS), 2)]
        found[rate] = (_PERIODS[n % len(_PERIODS)], style)
    return found


def _paper(depth: int) -> str:
    """Return the background inside `depth` frames."""
    return "#FFFFFF" if depth == 0 else ["#F6F7F9", "#EDEFF3"][(depth - 1) % 2]


def _tint(colour: str, share: float) -> tuple[float, float, float]:
    red, green, blue = to_rgb(colour)
    return 1 - share * (1 - red), 1 - share * (1 - green), 1 - share * (1 - blue)


def _rounded(rect: Rect, radius: float, **style: Any) -> FancyBboxPatch:
    x, y, width, height = rect
    radius = min(radius, width / 2, height / 2)
    return FancyBboxPatch(
        (x, y), width, height, boxstyle=f"round,pad=0,rounding_size={radius}", **style
    )


def _draw_frame(axes: Axes, frame: Frame) -> None:
    axes.add_patch(
        _rounded(
            frame.rect,
            7.0,
            facecolor=_paper(frame.depth),
            edgecolor="#9AA0AA",
            linewidth=0.9,
            zorder=0.5 + 0.01 * frame.depth,
        )
    )


def _draw_net(
    axes: Axes,
    wires: list[Wire],
    dots: set[Point],
    colours: dict[str, tuple[str, str]],
    level: float,
) -> None:
    """Draw the wires from one output, with a gap in the paper's colour around them."""
    # A stretch that wires share is painted once, or it would look bolder.
    paths, painted = [], set[tuple[Point, Point]]()
    for wire in wires:
        points = _split_at(wire.points, dots)
        steps = list(itertools.pairwise(points))
        new = next((n for n, step in enumerate(steps) if step not in painted), len(steps) - 1)
        painted.update(steps)
        paths.append(_wire_path(points[new:], dots))
    path = Path.make_compound_path(*paths)
    width = _THICK if wires[0].width > 1 else _THIN
    colour, dash = colours[wires[0].rate]
    style: dict[str, Any] = {"facecolor": "none", "zorder": level, "capstyle": "butt"}
    paper = _paper(wires[0].depth)
    axes.add_patch(PathPatch(path, edgecolor=paper, linewidth=width + 3.2, **style))
    axes.add_patch(PathPatch(path, edgecolor=colour, linewidth=width, linestyle=dash, **style))
    for wire in wires:
        axes.add_patch(_arrow(wire.points, colour))


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


def _wire_path(points: Sequence[Point], dots: set[Point]) -> Path:
    """Return the line with rounded corners, except at branches; it ends inside its arrow."""
    (ax, ay), (bx, by) = points[-2:]
    length = max(abs(bx - ax), abs(by - ay))
    share = max(0.0, 1 - 0.7 * _ARROW_LENGTH / length)
    line = [*points[:-1], (ax + share * (bx - ax), ay + share * (by - ay))]
    vertices, codes = [line[0]], [Path.MOVETO]
    for before, at, after in zip(line, line[1:], line[2:], strict=False):
        into = max(abs(at[0] - before[0]), abs(at[1] - before[1]))
        out = max(abs(after[0] - at[0]), abs(after[1] - at[1]))
        radius = min(_WIRE_CORNER, into / 2, out / 2)
        if at in dots:
            vertices.append(at)
            codes.append(Path.LINETO)
            continue
        first, last = _towards(at, before, radius / into), _towards(at, after, radius / out)
        vertices += [first, at, last]
        codes += [Path.LINETO, Path.CURVE3, Path.CURVE3]
    vertices.append(line[-1])
    codes.append(Path.LINETO)
    return Path(vertices, codes)


def _towards(a: Point, b: Point, share: float) -> Point:
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])


def _arrow(points: Sequence[Point], colour: str) -> Polygon:
    (ax, ay), (x, y) = points[-2:]
    length = max(abs(x - ax), abs(y - ay))
    dx, dy = (x - ax) / length, (y - ay) / length
    back = (x - _ARROW_LENGTH * dx, y - _ARROW_LENGTH * dy)
    sides = [(back[0] + s * _ARROW_HALF * dy, back[1] - s * _ARROW_HALF * dx) for s in (1, -1)]
    return Polygon([(x, y), *sides], closed=True, facecolor=colour, edgecolor="none", zorder=5)


def _draw_box(axes: Axes, box: Box, colour: str) -> None:
    x, y, width, height = box.body
    style: dict[str, Any] = {
        "facecolor": _tint(colour, 0.09),
        "edgecolor": colour,
        "linewidth": _OUTLINE,
        "zorder": 6,
    }
    shape = box.look.shape
    if shape == "triangle":
        corners = [(x, y), (x + width, y + height / 2), (x, y + height)]
        axes.add_patch(Polygon(corners, closed=True, joinstyle="round", **style))
    elif shape == "circle":
        axes.add_patch(Circle((x + width / 2, y + height / 2), width / 2, **style))
    elif shape == "bar":
        axes.add_patch(_rounded(box.body, 1.5, **style | {"facecolor": colour}))
    elif shape in ("inport", "outport"):
        tip = 8.0
        corners = [(x, y), (x + width - tip, y), (x + width, y + height / 2),
                   (x + width - tip, y + height), (x, y + height)]  # fmt: skip
        axes.add_patch(Polygon(corners, closed=True, joinstyle="round", **style))
    else:
        if shape == "sink":
            style["facecolor"] = "#FFFFFF"
        axes.add_patch(_rounded(box.body, height if shape == "source" else _CORNER, **style))
    left, top = box.rect[:2]
    for stroke in box.look.strokes:
        xs, ys = zip(*((left + u, top + v) for u, v in stroke), strict=True)
        axes.plot(xs, ys, color=_INK, linewidth=1.1, zorder=7, solid_joinstyle="round")
    for at in box.open_inputs:
        axes.add_patch(
            Circle(at, 2.4, facecolor="#FFFFFF", edgecolor=_SOFT_INK, linewidth=0.9, zorder=7)
        )
