"""Plots of results: stacked axes over one time axis, units on the left, legends beside the data.

This module imports matplotlib, so it is imported only when something is plotted. Figures are made
without pyplot: no display is needed, and no global state is left behind, until one is shown.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ...blocks.core._figure import ShownFigure, check_picture_format
from ...blocks.core._units import UnitError, format_unit, parse_unit
from ...errors import BiellaError
from ._files import replacing
from ._signals import ResultError, Signal

if TYPE_CHECKING:
    from ._result import Result, ScopeView

Array = NDArray[np.float64]

# Okabe and Ito's palette, told apart with every common color blindness; its yellow is too pale
# for a line. After one round the lines change their dashes.
COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
_DASHES = ["-", "--", ":", "-."]

STYLE: dict[Any, Any] = {
    "font.size": 12,
    "axes.labelsize": 12,
    "axes.titlesize": 13,
    "legend.fontsize": 11,
    "lines.linewidth": 1.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.8,
    "axes.formatter.useoffset": False,
    "axes.formatter.limits": (-4, 5),
}

_DATA_INCHES = 7.2
_LETTER_INCHES = 0.09
_AXES_INCHES = 2.3
_BOOLEAN_AXES_INCHES = 1.2
_DPI = 130

_EVENT_ROW_INCHES = 0.24
_EVENT_ROWS = 12
_EVENT_COLOR = "#555555"
_MOST_LINES = 60  # with more events the lines would hide the signals
_EVENT_BINS = 4000

# A screen is a few thousand pixels wide: more points are drawn as an envelope of their extremes.
_MAX_POINTS = 20_000


@dataclass(slots=True)
class _Panel:
    """Content of one axes: names as passed by the user, and their signals."""

    names: list[str] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    signals: list[Signal] = field(default_factory=list)
    elements: list[int | None] = field(default_factory=list)
    title: str = ""

    def add(self, name: str, caption: str, result: Result) -> None:
        """Add a signal by the user's name for it."""
        signal, element = result.signals.locate(name)
        self.names.append(name)
        self.captions.append(caption)
        self.signals.append(signal)
        self.elements.append(element)

    @property
    def labels(self) -> list[str]:
        """One per line."""
        labels = []
        for name, signal, element in zip(self.captions, self.signals, self.elements, strict=True):
            if element is not None or signal.width == 1:
                labels.append(name)
            else:
                labels += [f"{name}[{i}]" for i in range(signal.width)]
        return labels

    @property
    def is_boolean(self) -> bool:
        return all(signal.kind == "boolean" for signal in self.signals)

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of the values of an enumeration, if all signals have the same."""
        first = self.signals[0].names
        return first if all(signal.names == first for signal in self.signals) else ()

    @property
    def label(self) -> str:
        if self.is_boolean:
            return ""
        units = dict.fromkeys(label_unit(signal.unit) for signal in self.signals)
        return ", ".join(unit for unit in units if unit)


def plot_result(
    result: Result,
    arguments: Sequence[str | Sequence[str]],
    *,
    title: str | None = None,
    start: float | None = None,
    stop: float | None = None,
    events: bool | Sequence[str] = False,
) -> ShownFigure:
    """Draw signals; see `Result.plot`."""
    panels = _panels(result, arguments)
    rows = _rows_between(result.t, start, stop)
    heights = [_BOOLEAN_AXES_INCHES if p.is_boolean else _AXES_INCHES for p in panels]
    marks = _find_marks(result, rows, events)
    if marks:
        heights.append(_EVENT_ROW_INCHES * (len(marks) + 0.5))
    with mpl.rc_context(STYLE):
        # The figure widens with its longest name, so that the data keeps its room.
        letters = max(len(label) for panel in panels for label in panel.labels)
        size = (_DATA_INCHES + 0.6 + _LETTER_INCHES * letters, 0.9 + sum(heights))
        figure = ShownFigure(figsize=size, dpi=_DPI, layout="constrained")
        grid = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)
        for axes, panel in zip(grid[:, 0], panels, strict=False):
            _draw(axes, panel, result, rows)
        if marks:
            _draw_marks(list(grid[:, 0]), marks)
        grid[-1, 0].set_xlabel("time [s]")
        shown = result.t[rows]
        if shown.size and shown[0] < shown[-1]:
            grid[-1, 0].set_xlim(shown[0], shown[-1])
        heading = str(result.info.get("diagram", "")) if title is None else title
        if heading and any(panel.title for panel in panels):
            figure.suptitle(heading, x=0.01, ha="left")
        elif heading:
            grid[0, 0].set_title(heading, loc="left", pad=10)
        figure.align_ylabels()
        figure.draw_without_rendering()  # the layout knows where aligned labels are only then
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Save a figure in the format that the extension names, whole or not at all."""
    try:
        suffix = check_picture_format(path)
    except BiellaError as error:
        raise ResultError(str(error)) from None
    with replacing(path) as temporary:
        figure.savefig(temporary, format=suffix)


def _panels(result: Result, arguments: Sequence[str | Sequence[str]]) -> list[_Panel]:
    if not arguments and result.scopes:
        return [_scope_panel(result, scope) for scope in result.scopes]
    arguments = arguments or result.paths
    if not arguments:
        raise ResultError("There is nothing to plot: no signal was recorded.")
    explicit = not all(isinstance(argument, str) for argument in arguments)
    panels: dict[Hashable, _Panel] = {}
    for position, argument in enumerate(arguments):
        for name in [argument] if isinstance(argument, str) else argument:
            key = position if explicit else _group(result.signals.locate(name)[0])
            panels.setdefault(key, _Panel()).add(name, name, result)
    return list(panels.values())


def _scope_panel(result: Result, scope: ScopeView) -> _Panel:
    panel = _Panel(title=scope["title"])
    for name, caption in zip(scope["signals"], scope["labels"], strict=True):
        panel.add(name, caption, result)
    return panel


def _group(signal: Signal) -> Hashable:
    """Return what signals of one axes have in common: a unit, however spelled, or a kind."""
    if signal.names:
        return signal.names
    if signal.kind == "boolean" or signal.unit is None:
        return "boolean" if signal.kind == "boolean" else "no unit"
    try:
        unit = parse_unit(signal.unit)
    except UnitError:
        return signal.unit
    return unit.exponents, unit.count, float(f"{unit.factor:.12g}"), unit.offset


def label_unit(unit: str | None) -> str:
    """Return a unit as printed: [N·m], [m/s²], rather than N.m, m/s2; nothing for none."""
    if unit is None:
        return ""
    try:
        name = format_unit(parse_unit(unit))
    except UnitError:
        return f"[{unit}]"
    if name == "1":
        return "[–]"
    pretty = name.replace(".", "·").replace("ohm", "Ω").replace("deg", "°")
    return f"[{pretty.translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}]"


def _rows_between(t: Array, start: float | None, stop: float | None) -> slice:
    first = 0 if start is None else int(np.searchsorted(t, start, side="left"))
    last = t.size if stop is None else int(np.searchsorted(t, stop, side="right"))
    if t.size and first >= last:
        raise ResultError(
            f"Nothing was recorded between {start} and {stop} s; "
            f"the recording covers {t[0]:g} to {t[-1]:g} s."
        )
    return slice(first, last)


def _draw(axes: Axes, panel: _Panel, result: Result, rows: slice) -> None:
    styles = cycle([(color, dash) for dash in _DASHES for color in COLORS])
    labels = iter(panel.labels)
    t = result.t[rows]
    for name, signal in zip(panel.names, panel.signals, strict=True):
        values = result.read(name, rows)
        steps = "steps-post" if signal.holds_between_ticks else "default"
        for column in np.atleast_2d(values.T):
            color, dash = next(styles)
            line = axes.plot(*_thinned(t, column), color=color, linestyle=dash, drawstyle=steps)
            line[0].set_label(next(labels))
    axes.set_ylabel(panel.label)
    if panel.title:
        axes.set_title(panel.title, loc="left", fontsize=12)
    if panel.is_boolean:
        axes.set_ylim(-0.15, 1.15)
        axes.set_yticks([0, 1], ["false", "true"])
    elif panel.value_names:
        axes.set_ylim(0.5, len(panel.value_names) + 0.5)
        axes.set_yticks(range(1, len(panel.value_names) + 1), panel.value_names)
    else:
        axes.margins(y=0.08)
        if all(signal.kind != "real" for signal in panel.signals):
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    lines = len(axes.lines)
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(1.005, 1.03),
        frameon=False,
        borderaxespad=0.0,
        handlelength=1.6,
        ncols=1 + (lines - 1) // 14,
    )


def _find_marks(
    result: Result, rows: slice, events: bool | Sequence[str]
) -> list[tuple[str, Array]]:
    """Return the sources of events to mark, the most frequent first, and times in view of each."""
    if events is False or not result.length:
        return []
    chosen = result.events
    if events is not True:
        names = [events] if isinstance(events, str) else events
        chosen = chosen.of(*names)
    shown = result.t[rows]
    times = chosen.log["time"]
    seen = chosen.log[(times >= shown[0]) & (times <= shown[-1])]
    numbers, counts = np.unique(seen["block"], return_counts=True)
    order = numbers[np.argsort(-counts, kind="stable")].tolist()
    single = order if len(order) <= _EVENT_ROWS else order[: _EVENT_ROWS - 1]
    marks = [(chosen.blocks[n].path, seen["time"][seen["block"] == n]) for n in single]
    if rest := order[len(single) :]:
        marks.append((f"{len(rest)} other blocks", seen["time"][np.isin(seen["block"], rest)]))
    return [(f"{path} ({len(times)})", times) for path, times in marks]


def _draw_marks(grid: Sequence[Axes], marks: Sequence[tuple[str, Array]]) -> None:
    """Mark events in a row for each source below the signals, and if they are few through them."""
    axes = grid[-1]
    for row, (_, times) in enumerate(marks):
        axes.vlines(_distinct(times), row - 0.36, row + 0.36, colors=_EVENT_COLOR, linewidth=0.8)
    axes.set_yticks(range(len(marks)), [label for label, _ in marks], fontsize=10)
    axes.set_ylim(len(marks) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False)
    times = _distinct(np.concatenate([times for _, times in marks]))
    if len(times) > _MOST_LINES:
        return
    for signals in grid[:-1]:
        for time in times:
            signals.axvline(time, color=_EVENT_COLOR, linewidth=0.6, alpha=0.35, zorder=0.9)


def _distinct(times: Array) -> Array:
    """Return the times that a picture can show apart."""
    if len(times) < 2:
        return times
    width = max(float(np.ptp(times)), 1e-300) / _EVENT_BINS
    _, first = np.unique(np.floor((times - times.min()) / width), return_index=True)
    return times[first]


def _thinned(t: Array, y: Array) -> tuple[Array, Array]:
    """Keep the first, last, least and greatest point of each of many short stretches."""
    if t.size <= _MAX_POINTS:
        return t, y
    stretch = -(-4 * t.size // _MAX_POINTS)
    count = t.size // stretch
    body = y[: count * stretch].reshape(count, stretch)
    filled = np.where(np.isnan(body), body[:, :1], body)
    base = np.arange(count)[:, None] * stretch
    picks = np.stack(
        [
            np.zeros(count, dtype=np.intp),
            filled.argmin(axis=1),
            filled.argmax(axis=1),
            np.full(count, stretch - 1, dtype=np.intp),
        ],
        axis=1,
    )
    keep = np.unique(np.concatenate([(base + picks).ravel(), [count * stretch - 1, t.size - 1]]))
    return t[keep], y[keep]
