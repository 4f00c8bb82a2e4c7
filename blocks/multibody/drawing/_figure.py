"""A figure at an exact scale: strokes and names on axes, directions and lengths beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from ...core._figure import ShownFigure
from ..system._rotations import Array
from ._labels import PlacedLabel
from ._scene import Scene
from ._strokes import INK, LOAD_LAYER, SOFT_INK, Stroke, arrow_head, unit

DPI = 144
_LEFT, _BOTTOM, _RIGHT, _TOP = 60.0, 42.0, 14.0, 30.0
_GRAVITY_STRIP = 26.0
_BARE, _TRIAD_STRIP = 12.0, 58.0

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.labelsize": 10,
    "axes.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": "#E8E8E8",
    "grid.linewidth": 0.7,
    "svg.hashsalt": "biella",
    "svg.fonttype": "path",
}


class SystemFigure(ShownFigure):
    """A picture of a mechanism."""


def set_up(scene: Scene, title: str) -> tuple[SystemFigure, Axes]:
    """Return an empty figure whose axes hold the scene at its scale, to the point."""
    flat = scene.paper.view.flat
    width, height = scene.bounds.size
    left, bottom, right = (_LEFT, _BOTTOM, _RIGHT) if flat else (_BARE, _TRIAD_STRIP, _BARE)
    top = _TOP if title else _BARE
    pulled = np.linalg.norm(scene.paper.slant(scene.system.gravity)) > 1e-6
    right += _GRAVITY_STRIP if pulled else 0.0
    pixel = 72.0 / DPI
    # Video codecs require an even number of pixels in each direction.
    full = (
        np.ceil(np.array([left + width + right, bottom + height + top]) / (2 * pixel)) * 2 * pixel
    )
    figure = SystemFigure(figsize=tuple(full / 72.0), dpi=DPI)
    place = (left / full[0], bottom / full[1], width / full[0], height / full[1])
    axes = figure.add_axes(place)
    low, high = scene.bounds.low / scene.paper.scale, scene.bounds.high / scene.paper.scale
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    if title:
        figure.text(left / full[0], 1.0 - 9.0 / full[1], title, size=12, va="top", ha="left")
    if flat:
        axes.grid(True)
        axes.set(xlabel=scene.paper.view.label(scene.paper.view.right))
        axes.set(ylabel=scene.paper.view.label(scene.paper.view.up))
        axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]))
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    else:
        axes.set_axis_off()
        _draw_triad(figure, scene, full)
    if pulled:
        _draw_gravity(figure, scene, full)
    return figure, axes


def paint(
    axes: Axes, strokes: Iterable[Stroke], scale: float, fade: float = 0.0, lift: float = 0.0
) -> list[Artist]:
    """Put strokes on axes in m; `fade` mixes their colors with white, `lift` raises them."""
    made: list[Artist] = []
    for stroke in strokes:
        points = stroke.points / scale
        path = Path(np.vstack([points, points[:1]]), closed=True) if stroke.closed else Path(points)
        face: Any = "none"
        if stroke.face:
            face = (*_mixed(stroke.face, (1.0 - fade) * stroke.tint), stroke.alpha)
        patch = PathPatch(
            path,
            edgecolor=_mixed(stroke.edge, 1.0 - fade) if stroke.edge else "none",
            facecolor=face,
            linewidth=stroke.width,
            zorder=stroke.layer + lift,
            capstyle="round",
            joinstyle="round",
            clip_on=False,
        )
        made.append(axes.add_artist(patch))
    return made


def write_labels(axes: Axes, placed: Iterable[PlacedLabel], scale: float) -> None:
    """Write the labels, with a leader line to distant parts."""
    for item in placed:
        label = item.label
        if item.leader is not None:
            end = np.clip(item.leader, item.box[:2], item.box[2:])
            line = Stroke(np.array([item.leader, end]), SOFT_INK, width=0.6, layer=LOAD_LAYER)
            paint(axes, [line], scale)
        x, y = (item.center / scale).tolist()
        text = axes.text(
            x,
            y,
            label.text,
            size=label.size,
            weight="bold" if label.bold else "normal",
            color=_darker(label.color),
            ha="center",
            va="center_baseline",
            zorder=LOAD_LAYER + 2.0,
        )
        text.set_path_effects([withStroke(linewidth=2.6, foreground="white", alpha=0.85)])


def _draw_gravity(figure: Figure, scene: Scene, full: Array) -> None:
    """Show which way gravity pulls, beside the picture."""
    strip = figure.add_axes(
        (1.0 - 46.0 / full[0], 1.0 - 78.0 / full[1], 46.0 / full[0], 46.0 / full[1])
    )
    strip.set(xlim=(-23.0, 23.0), ylim=(-23.0, 23.0), aspect="equal")
    strip.set_axis_off()
    down = unit(scene.paper.slant(scene.system.gravity))
    line = Stroke(np.array([-17.0 * down, 13.0 * down]), SOFT_INK, width=1.4)
    paint(strip, [line, arrow_head(17.0 * down, down, 7.0, SOFT_INK)], 1.0)
    x, y = (-8.0 * down[1], 8.0 * down[0])
    strip.text(x, y, "g", style="italic", size=11, color=SOFT_INK, ha="center", va="center")


def _draw_triad(figure: Figure, scene: Scene, full: Array) -> None:
    """Show the directions of the world and a length, below the picture."""
    view = scene.paper.view
    strip = figure.add_axes((0.0, 0.0, 1.0, _TRIAD_STRIP / full[1]))
    strip.set(xlim=(0.0, full[0]), ylim=(0.0, _TRIAD_STRIP), aspect="equal")
    strip.set_axis_off()
    axes = np.array([view.project(axis) for axis in np.eye(3)]) * 26.0
    origin = np.array([16.0, 14.0]) - np.minimum(axes.min(axis=0), 0.0)
    for name, axis in zip("xyz", axes, strict=True):
        if np.linalg.norm(axis) < 3.0:
            continue
        tip, along = origin + axis, unit(axis)
        line = Stroke(np.array([origin, tip]), INK, width=1.2)
        paint(strip, [line, arrow_head(tip, along, 5.5, INK)], 1.0)
        x, y = (tip + along * 7.0).tolist()
        strip.text(x, y, name, size=9, ha="center", va="center")
    length = _round_length(110.0 / scene.paper.scale)
    wide = length * scene.paper.scale
    start, y = float(full[0]) - _BARE - 8.0 - wide, 16.0
    lines = (
        [[start, y], [start + wide, y]],
        *([[x, y - 3], [x, y + 3]] for x in (start, start + wide)),
    )
    paint(strip, [Stroke(np.array(line), INK, width=1.3) for line in lines], 1.0)
    text = f"{length:g} m" if length >= 1.0 else f"{1e3 * length:g} mm"
    strip.text(start + wide / 2.0, y + 5.0, text, size=9, ha="center", va="bottom")


def _round_length(most: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten that is not longer."""
    power = 10.0 ** np.floor(np.log10(most))
    return float(max(n * power for n in (1.0, 2.0, 5.0) if n * power <= most * (1 + 1e-9)))


def _mixed(color: str, share: float) -> tuple[float, float, float]:
    r, g, b = (1.0 - share + share * value for value in to_rgb(color))
    return r, g, b


def _darker(color: str) -> tuple[float, float, float]:
    """Return a color dark enough for letters on white."""
    r, g, b = to_rgb(color)
    light = 0.299 * r + 0.587 * g + 0.114 * b
    share = min(1.0, 0.42 / light) if light else 1.0
    return r * share, g * share, b * share
