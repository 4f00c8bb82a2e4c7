"""Timelines of state machines as bars.

This module imports matplotlib, so it is imported only when something is plotted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch

from ....blocks.core._figure import ShownFigure
from .._plotting import STYLE
from .._signals import ResultError

if TYPE_CHECKING:
    from ._timeline import Interval, Timeline

# Tol's light palette: dark text is readable on each, and they are told apart with every common
# color blindness. After one round the bars are hatched.
_COLORS = ["#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#DDDDDD"]
_HATCHES = ["", "///", "...", "xxx"]
_INCHES, _ROW_INCHES, _DPI = 8.6, 0.55, 130
_LETTER = 0.085
"""Width of a letter on a bar, in inches."""
_PIXELS = 3000
"""Shorter bars than a share of the picture's width are merged into the one before them."""


def plot_timeline(
    timeline: Timeline,
    *,
    title: str | None = None,
    start: float | None = None,
    stop: float | None = None,
) -> ShownFigure:
    """Draw a timeline; see `Timeline.plot`."""
    first, last = timeline.intervals[0].start, timeline.intervals[-1].end
    low, high = first if start is None else max(start, first), last if stop is None else stop
    high = min(high, last)
    if low > high:
        raise ResultError(
            f"Nothing was recorded between {start} and {stop} s; "
            f"the recording covers {first:g} to {last:g} s."
        )
    span = (high - low) or 1.0
    rows = {
        region: [one for one in intervals if one.end >= low and one.start <= high]
        for region, intervals in timeline.regions.items()
    }
    states = list(dict.fromkeys(one.state for row in timeline.regions.values() for one in row))
    looks = {state: n for n, state in enumerate(states)}
    names = [region or timeline.name for region in rows]
    with mpl.rc_context(STYLE):
        margin = 0.09 * max(map(len, names)) + 0.09 * max(map(len, states)) + 1.0
        size = (_INCHES + margin, 1.1 + max(_ROW_INCHES * len(rows), 0.2 * len(states) - 0.4))
        figure = ShownFigure(figsize=size, dpi=_DPI, layout="constrained")
        axes = figure.subplots()
        unnamed: dict[str, None] = {}
        for y, (region, row) in enumerate(rows.items()):
            cut = len(region) + 1 if region else 0
            _draw_row(axes, y, row, (low, high), looks, cut, unnamed)
        axes.set_yticks(range(len(rows)), names)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(low, low + span)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("time [s]")
        heading = timeline.name if title is None else title
        if heading:
            axes.set_title(heading, loc="left", pad=10)
        if unnamed:
            shown = [state for state in states if state in unnamed]
            handles = [Patch(**_style(looks[state]), label=state) for state in shown]
            axes.legend(
                handles=handles,
                loc="upper left",
                bbox_to_anchor=(1.005, 1.03),
                frameon=False,
                borderaxespad=0.0,
                handlelength=1.2,
            )
        figure.draw_without_rendering()
    return figure


def _style(number: int) -> dict[str, Any]:
    hatch = _HATCHES[number // len(_COLORS) % len(_HATCHES)]
    return {"facecolor": _COLORS[number % len(_COLORS)], "edgecolor": "#555555", "hatch": hatch}


def _draw_row(
    axes: Axes,
    y: int,
    row: Sequence[Interval],
    view: tuple[float, float],
    looks: dict[str, int],
    cut: int,
    unnamed: dict[str, None],
) -> None:
    """Draw the bars of a region; states whose name fits on no bar are added to `unnamed`."""
    low, high = view
    span = (high - low) or 1.0
    bars: dict[str, list[tuple[float, float]]] = {}
    named: set[str] = set()
    for one in row:
        begin, end = max(one.start, low), min(one.end, high)
        # A visit shorter than a pixel is still seen as a line.
        bars.setdefault(one.state, []).append((begin, max(end - begin, span / _PIXELS)))
        text = one.state[cut:]
        if (end - begin) / span * _INCHES > _LETTER * len(text) + 0.1:
            hatched = looks[one.state] >= len(_COLORS)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0} if hatched else None
            axes.text(
                (begin + end) / 2, y, text, ha="center", va="center", fontsize=10, bbox=box,
                parse_math=False,
            )  # fmt: skip
            named.add(one.state)
    many = len(row) > 200
    for state, ranges in bars.items():
        style = _style(looks[state])
        # Outlines of many short bars would cover their colors.
        edge = "none" if many and not style["hatch"] else style["edgecolor"]
        axes.broken_barh(
            _merge(ranges, span / _PIXELS),
            (y - 0.36, 0.72),
            facecolors=[to_rgb(style["facecolor"])],
            edgecolor=edge,
            hatch=style["hatch"],
            linewidth=0.0 if many else 0.5,
        )
        if state not in named:
            unnamed[state] = None


def _merge(ranges: Sequence[tuple[float, float]], least: float) -> list[tuple[float, float]]:
    """Join bars of one state that a picture cannot show apart."""
    found: list[tuple[float, float]] = []
    for begin, width in ranges:
        if found and begin + width - (found[-1][0] + found[-1][1]) < least:
            found[-1] = (found[-1][0], max(found[-1][1], begin + width - found[-1][0]))
        else:
            found.append((begin, width))
    return found
