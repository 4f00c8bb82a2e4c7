"""Drawing a state machine as a statechart.

This module imports matplotlib, so it is imported only when something is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ....blocks.core._figure import ShownFigure
from ....blocks.machines._chart import State
from ....blocks.machines._state_machine import StateMachine
from ....errors import DiagramError, name_list, suggest
from .._draw import render_page, require_format, save
from .._paint import INK, SOFT_INK, WHITE, Canvas, arrow, paper, round_corners, rounded
from .._symbols import Words
from ._chart import DOT, MARKER, Box, Chart, arrange_chart

_MARGIN, _TITLE, _TITLE_STRIP = 16.0, 12.0, 24.0
_EDGE, _FRAME_EDGE, _FILL = "#3B5B7A", "#8A93A0", "#EAF1F8"
_ACTIVE_EDGE, _ACTIVE_FILL, _ACTIVE_PAPER = "#C45500", "#FFD9A8", "#FFF6EA"
_LINE = 1.1


def draw_statechart(
    machine: StateMachine,
    path: str | Path | None = None,
    *,
    active: str | State | Iterable[str | State] = (),
    title: str = "",
) -> ShownFigure:
    """Draw a machine; see `StateMachine.draw`."""
    target = require_format(path)
    shown = find_active(machine, active)
    chart = arrange_chart(machine.chart, machine.transitions)
    right = max([chart.width, *(words.extent[2] for words in chart.labels)])
    strip = _TITLE_STRIP if title else 0.0
    heading = Words(title, _MARGIN, _MARGIN + 5, _TITLE, "left", bold=True)
    width = max(right, heading.extent[2] - _MARGIN) + 2 * _MARGIN
    height = chart.height + strip + 2 * _MARGIN

    def painter(canvas: Canvas) -> None:
        if title:
            canvas.text(heading, INK)
        paint_chart(chart, shown, canvas, (_MARGIN, _MARGIN + strip))

    figure = render_page(width, height, painter)
    save(figure, target)
    return figure


def find_active(
    machine: StateMachine, active: str | State | Iterable[str | State]
) -> frozenset[str]:
    """Return the paths of states to highlight, with those around them."""
    given = [active] if isinstance(active, str | State) else list(active)
    states = {state.path: state for state in machine.chart.walk() if state.path}
    found: set[str] = set()
    for one in given:
        path = one.path if isinstance(one, State) else str(one)
        if path not in states:
            raise DiagramError(
                f"the machine has no state `{path}`.{suggest(path, states)} "
                f"States: {name_list(states)}."
            )
        found.add(path)
        found.update(around.path for around in states[path].ancestors())
    return frozenset(found)


def paint_chart(
    chart: Chart, active: frozenset[str], canvas: Canvas, corner: tuple[float, float]
) -> None:
    """Paint a chart with its top left corner at `corner`."""
    dx, dy = corner
    for box in sorted(chart.boxes, key=lambda box: (box.look == "state", box.depth)):
        _paint_box(canvas, box, box.path in active, dx, dy)
    for a, b in chart.separators:
        points = [(a[0] + dx, a[1] + dy), (b[0] + dx, b[1] + dy)]
        canvas.line(points, _FRAME_EDGE, 1.0, "dashed" if a[0] == b[0] else "solid")
    for one in chart.arrows:
        line = [(x + dx, y + dy) for x, y in one.points]
        canvas.line(round_corners(line, set()), INK, _LINE)
        canvas.polygon(arrow(line), INK)
    for x, y in chart.dots:
        canvas.circle((x + dx, y + dy), DOT, INK)
    for words in chart.markers:
        canvas.circle((words.x + dx, words.y + dy), MARKER, WHITE, _EDGE, 0.9)
        canvas.text(words.moved(dx, dy), INK)
    for words in (*chart.words, *chart.labels):
        canvas.text(words.moved(dx, dy), INK if words.tone == "dark" else SOFT_INK)


def _paint_box(canvas: Canvas, box: Box, is_active: bool, dx: float, dy: float) -> None:
    x, y, width, height = box.rect
    rect = (x + dx, y + dy, width, height)
    if box.look == "region":
        return
    if box.look == "frame":
        fill = _ACTIVE_PAPER if is_active else paper(box.depth)
        edge, line = (_ACTIVE_EDGE, 1.5) if is_active else (_FRAME_EDGE, 1.0)
        canvas.polygon(rounded(rect, 9.0), fill, edge, line)
        return
    fill, edge = (_ACTIVE_FILL, _ACTIVE_EDGE) if is_active else (_FILL, _EDGE)
    canvas.polygon(rounded(rect, 8.0), fill, edge, 2.0 if is_active else 1.2)
