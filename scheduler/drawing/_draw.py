"""Drawing a diagram: a picture from left to right, rates by color, subsystems framed.

This module imports matplotlib, so it is imported only when something is drawn. Figures are made
without pyplot: no display is needed, and no global state is left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Polygon

from ...blocks.core._figure import ShownFigure
from ...errors import DiagramError
from ..compile.plan._plan import Plan
from ..results._files import replacing
from ._arrange import arrange
from ._paint import Canvas, Dash, finish, paint
from ._picture import Picture
from ._symbols import FONT, Words
from ._wiring import Point

if TYPE_CHECKING:
    from ..compile.diagram._diagram import Diagram

FORMATS = ("svg", "pdf", "png")
_DPI = 160


def draw(
    source: Diagram | Plan, path: str | FilePath | None = None, *, title: str | None = None
) -> ShownFigure:
    """Draw a block diagram from left to right.

    Wires and outlines are colored by rate, vectors are thick with their width beside them,
    buses are double lines, subsystems are framed with their blocks inside. A diagram that does not
    compile is drawn without rates. A plan has no frames: its blocks are labeled with their full
    paths.

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
    target = require_format(path)
    figure = render(finish(arrange(source), title))
    save(figure, target)
    return figure


def require_format(path: str | FilePath | None) -> FilePath | None:
    """Return where to draw to; raise an error unless it has one of the extensions `FORMATS`."""
    target = None if path is None else FilePath(path)
    if target is not None and target.suffix.lower().lstrip(".") not in FORMATS:
        raise DiagramError(
            f"cannot draw to `{target.name}`: give it one of the extensions {', '.join(FORMATS)}."
        )
    return target


def save(figure: ShownFigure, target: FilePath | None) -> None:
    """Write a figure, if there is a `target`; equal figures give equal bytes."""
    if target is None:
        return
    suffix = target.suffix.lower().lstrip(".")
    # Dates and random identifiers would make every file different.
    metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(
        suffix, {}
    )
    style: dict[Any, Any] = {"svg.hashsalt": "biella", "svg.fonttype": "path"}
    with mpl.rc_context(style), replacing(target) as temporary:
        figure.savefig(temporary, format=suffix, metadata=metadata)


def render(page: Picture) -> ShownFigure:
    """Draw a finished picture."""
    return render_page(page.width, page.height, lambda canvas: paint(page, canvas))


def render_page(width: float, height: float, painter: Callable[[Canvas], None]) -> ShownFigure:
    """Return a figure of this size, in points, that `painter` has painted."""
    with mpl.rc_context({"font.family": [FONT]}):
        figure = ShownFigure(figsize=(width / 72, height / 72), dpi=_DPI)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        painter(_Canvas(axes))
    return figure


class _Canvas:
    """The axes of a figure; everything added lies above what was there."""

    def __init__(self, axes: Axes) -> None:
        self._axes = axes
        self._level = 0

    def polygon(
        self, points: Sequence[Point], fill: str, edge: str | None = None, width: float = 0.0
    ) -> None:
        style = self._style(fill, edge, width)
        self._axes.add_patch(Polygon(list(points), closed=True, joinstyle="round", **style))

    def circle(
        self, at: Point, radius: float, fill: str, edge: str | None = None, width: float = 0.0
    ) -> None:
        self._axes.add_patch(Circle(at, radius, **self._style(fill, edge, width)))

    def line(self, points: Sequence[Point], color: str, width: float, dash: Dash = "solid") -> None:
        xs, ys = zip(*points, strict=True)
        line = Line2D(
            xs,
            ys,
            color=color,
            linewidth=width,
            linestyle=dash,
            solid_capstyle="butt",
            solid_joinstyle="round",
            snap=False,
            zorder=self._next_level(),
        )
        self._axes.add_line(line)

    def text(self, words: Words, color: str) -> None:
        self._axes.text(
            words.x,
            words.y,
            words.text,
            fontsize=words.size,
            fontweight="bold" if words.bold else "normal",
            color=color,
            ha=words.anchor,
            va="center_baseline" if len(words.text) > 1 else "center",
            parse_math=False,
            zorder=self._next_level(),
        )

    def _style(self, fill: str, edge: str | None, width: float) -> dict[str, Any]:
        return {
            "facecolor": fill,
            "edgecolor": edge or "none",
            "linewidth": width,
            "zorder": self._next_level(),
        }

    def _next_level(self) -> int:
        self._level += 1
        return self._level
