"""The picture of a state machine as plain geometry: boxes, frames, lines and text.

Each state with states inside is a level of its own, placed from the inside out. A transition that
leaves such a state meets its frame at the top or at the bottom, depending on where its other end
is, and goes on outside.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ....blocks.machines._chart import Actions, State, Transition, format_action
from .._picture import Rect
from .._symbols import Words, measure
from .._wiring import Point, simplify
from ._level import PORT_PITCH, Edge, Item, Place, place_level, rank_rows

_NAME, _SMALL, _LABEL, _NUMBER = 9.0, 7.0, 7.5, 6.0
_LINE_HEIGHT = 1.3
_LONGEST = 30
_PAD = 12.0
_INNER = 10.0
"""Between a frame and what is inside."""
_LOOP = 16.0
_ROUNDED = 0.03
DOT = 4.0
MARKER = 6.0
"""Radii of the dot at an initial state and of the circle of a history."""
_BREAKS = re.compile(r"(?<=;) | (?=/ )|(?<= and) |(?<= or) | (?=\[)")


Look = Literal["state", "frame", "region"]


@dataclass(frozen=True, slots=True)
class Box:
    """A state; with states inside it is a frame, or a region of one, which has no outline."""

    path: str
    rect: Rect
    depth: int
    look: Look


@dataclass(frozen=True, slots=True)
class Arrow:
    """A transition from its source to its target, or from an initial dot."""

    name: str
    points: tuple[Point, ...]
    transition: Transition | None = None


@dataclass(slots=True)
class Chart:
    """Everything to draw; y points down, lengths are in points."""

    width: float = 0.0
    height: float = 0.0
    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    dots: list[Point] = field(default_factory=list)
    markers: list[Words] = field(default_factory=list)
    """H and H*, each in a circle."""
    separators: list[tuple[Point, Point]] = field(default_factory=list)
    words: list[Words] = field(default_factory=list)
    labels: list[Words] = field(default_factory=list)
    """Text beside arrows."""


def arrange_chart(root: State, transitions: Sequence[Transition]) -> Chart:
    """Return the picture of a machine; equal machines have equal pictures."""
    plan = _Plan(transitions)
    container = _Container(root, plan, [], 0)
    container.measure()
    chart = Chart(container.width, container.height)
    container.put(chart, 0.0, 0.0)
    for number, one in enumerate(transitions):
        points = simplify(plan.joined(number))
        if len(points) > 1:
            chart.arrows.append(Arrow(one.name, tuple(points), one))
            chart.labels += _number(one, points)
    return chart


def break_text(text: str, longest: int = _LONGEST) -> list[str]:
    """Return a text in lines of at most about `longest` letters, broken where it reads well."""
    lines: list[str] = []
    for part in _BREAKS.split(text):
        # Only what is much too long is broken between any two words.
        for word in [part] if len(part) <= 1.5 * longest else part.split():
            if lines and len(lines[-1]) + 1 + len(word) <= longest:
                lines[-1] += f" {word}"
            elif word:
                lines.append(word)
    return lines


class _Plan:
    """What concerns all levels: the pieces of each transition, and where it belongs."""

    def __init__(self, transitions: Sequence[Transition]) -> None:
        self.transitions = transitions
        self.texts = [break_text(one.label) for one in transitions]
        self.levels: dict[int, list[int]] = {}
        """Transitions by the level that has both their ends, by the identity of its state."""
        self.loops: dict[int, list[int]] = {}
        self.internal: dict[int, list[int]] = {}
        for number, one in enumerate(transitions):
            if one.target is None:
                self.internal.setdefault(id(one.source), []).append(number)
            elif one.target is one.source:
                self.loops.setdefault(id(one.source), []).append(number)
            else:
                self.levels.setdefault(id(_common(one.source, one.target)), []).append(number)
        self.pieces: dict[int, list[tuple[int, int, list[Point]]]] = {}

    def add_piece(self, number: int, phase: int, depth: int, points: list[Point]) -> None:
        self.pieces.setdefault(number, []).append((phase, depth, points))

    def joined(self, number: int) -> list[Point]:
        found = sorted(self.pieces.get(number, []), key=lambda piece: piece[:2])
        line: list[Point] = []
        for x, y in (point for _, _, points in found for point in points):
            # Levels round on their own: their pieces meet within that.
            if line and abs(x - line[-1][0]) < _ROUNDED:
                x = line[-1][0]
            if line and abs(y - line[-1][1]) < _ROUNDED:
                y = line[-1][1]
            line.append((x, y))
        return line

    def label_size(self, number: int) -> tuple[float, float]:
        return _size(self.texts[number], _LABEL)


@dataclass(slots=True)
class _Crossing:
    """A transition that leaves a level: which end is inside, and the side of the frame it meets."""

    number: int
    end: State
    side: Place
    x: float = 0.0


class _Leaf:
    """A state without states inside."""

    def __init__(self, state: State, plan: _Plan, depth: int) -> None:
        self.state, self.plan, self.depth = state, plan, depth
        self.notes = _notes(state, plan)
        self.top = self.bottom = 0
        self.width = self.height = 0.0
        self.crossings: list[_Crossing] = []

    def measure(self) -> None:
        wide, high = _size(self.notes, _SMALL)
        self.width = max(64.0, measure(self.state.name, _NAME, True) + 2 * _PAD, wide + 1.4 * _PAD)
        self.width = max(self.width, max(self.top, self.bottom, 1) * PORT_PITCH + 16)
        self.height = max(30.0, 22.0 + high + (5.0 if self.notes else 0.0))
        self.height = max(self.height, _loops_height(self.state, self.plan))

    def put(self, chart: Chart, x: float, y: float) -> None:
        rect = (x, y, self.width, self.height)
        chart.boxes.append(Box(self.state.path, rect, self.depth, "state"))
        wide, high = _size(self.notes, _SMALL)
        text_height = _NAME * _LINE_HEIGHT + high + (3.0 if self.notes else 0.0)
        top = y + (self.height - text_height) / 2
        middle = x + self.width / 2
        chart.words.append(
            Words(self.state.name, middle, top + _NAME * _LINE_HEIGHT / 2, _NAME, bold=True)
        )
        at = (middle - wide / 2, top + _NAME * _LINE_HEIGHT + 3.0)
        chart.words += _lines(self.notes, at, _SMALL, soft=True)


class _Container:
    """A state with states inside, or the machine itself."""

    def __init__(self, state: State, plan: _Plan, crossings: list[_Crossing], depth: int) -> None:
        self.state, self.plan, self.depth = state, plan, depth
        self.crossings = crossings
        self.top = self.bottom = 0
        self.width = self.height = 0.0
        self.notes = _notes(state, plan) if state.parent is not None else []
        own = plan.levels.get(id(state), [])
        self.is_row = state.is_parallel and not own and bool(state.children)
        self.least_header = 0.0
        self.own = own
        self.children: list[_Leaf | _Container] = []
        if self.is_row:
            self._divide()
        else:
            self._rank()

    def _divide(self) -> None:
        for child in self.state.children:
            inside = [c for c in self.crossings if c.end is not child and child.contains(c.end)]
            self.children.append(_Container(child, self.plan, inside, self.depth + 1))

    def _rank(self) -> None:
        state, plan = self.state, self.plan
        places: list[Place] = ["middle"] * len(state.children)
        self.edges: list[Edge] = []
        self.numbers: list[int] = []
        """The transition of each edge; -1 for that of the initial dot."""
        self.header = self.dot = -1
        if state.parent is not None:
            self.header = len(places)
            places.append("header")
        if state.initial is not None and not state.is_parallel:
            self.dot = len(places)
            places.append("dot")
            self._add_edge(-1, self.dot, state.children.index(state.initial))
        self.own_ports: dict[int, int] = {}
        for number in self.own:
            one = plan.transitions[number]
            assert one.target is not None
            ends = []
            for end, side in ((one.source, "top"), (one.target, "bottom")):
                if end is state:
                    self.own_ports[number] = len(places)
                    ends.append(len(places))
                    places.append("top" if side == "top" else "bottom")
                else:
                    ends.append(self._child(end))
            self._add_edge(number, ends[0], ends[1])
        self.port_items: list[int] = []
        for crossing in self.crossings:
            one = plan.transitions[crossing.number]
            port, child = len(places), self._child(crossing.end)
            self.port_items.append(port)
            places.append(crossing.side)
            pair = (child, port) if crossing.end is one.source else (port, child)
            self._add_edge(crossing.number, *pair)
        self.places, self.rows = places, rank_rows(places, self.edges)
        for n, child_state in enumerate(state.children):
            self.children.append(self._make_child(n, child_state))

    def _add_edge(self, number: int, source: int, target: int) -> None:
        size = self.plan.label_size(number) if number in self.own else (0.0, 0.0)
        self.edges.append(Edge(source, target, size))
        self.numbers.append(number)

    def _child(self, end: State) -> int:
        """Return the number of the child that is `end` or contains it."""
        for n, child in enumerate(self.state.children):
            if child is end or child.contains(end):
                return n
        raise AssertionError("an end of a transition is inside")

    def _make_child(self, n: int, state: State) -> _Leaf | _Container:
        inside: list[_Crossing] = []
        top = bottom = 0
        for edge, number in zip(self.edges, self.numbers, strict=True):
            if n not in (edge.source, edge.target):
                continue
            other = edge.target if edge.source == n else edge.source
            is_upper = self.rows[n] < self.rows[other]
            top, bottom = top + (not is_upper), bottom + is_upper
            if number < 0:
                continue
            one = self.plan.transitions[number]
            end = one.source if edge.source == n else one.target
            assert end is not None
            if end is not state:
                inside.append(_Crossing(number, end, "bottom" if is_upper else "top"))
        made: _Leaf | _Container
        if state.children or state.is_region:
            made = _Container(state, self.plan, inside, self.depth + 1)
        else:
            made = _Leaf(state, self.plan, self.depth + 1)
        made.top, made.bottom = top, bottom
        return made

    def _header_size(self) -> tuple[float, float]:
        wide, high = _size(self.notes, _SMALL)
        name = measure(self.state.name, _NAME, True)
        if self.state.history:
            name += 2 * MARKER + 6
        return max(name, wide, self.least_header), _NAME * _LINE_HEIGHT + high + 2.0

    def measure(self) -> None:
        if self.is_row:
            self._measure_row()
        else:
            self._measure_level()
        # Lines that end here find room between those that pass.
        self.width = max(self.width, 2 * max(self.top, self.bottom) * PORT_PITCH + 24)
        self.height = max(self.height, _loops_height(self.state, self.plan))

    def _measure_row(self) -> None:
        wide, high = self._header_size()
        first = self.children[0]
        if isinstance(first, _Container):
            first.least_header = wide
        self.strip = high + 8.0
        x = 0.0
        self.lefts = []
        for child in self.children:
            child.measure()
            self.lefts.append(x)
            for crossing in child.crossings:
                crossing.x += x
            x += child.width
        self.width = x
        self.height = self.strip + max(child.height for child in self.children)
        for crossing in self.crossings:
            for child, left in zip(self.children, self.lefts, strict=True):
                if crossing.end is child.state:
                    crossing.x = left + child.width / 2
                for inner in child.crossings:
                    if inner.number == crossing.number and inner.end is crossing.end:
                        crossing.x = inner.x

    def _measure_level(self) -> None:
        items = []
        for child in self.children:
            child.measure()
            item = Item(child.width, child.height, right=_loops_width(child.state, self.plan))
            for crossing in child.crossings:
                fixed = item.fixed_top if crossing.side == "top" else item.fixed_bottom
                for n, number in enumerate(self.numbers):
                    if number == crossing.number:
                        fixed[n] = crossing.x
            items.append(item)
        for place in self.places[len(items) :]:
            if place == "header":
                wide, high = self._header_size()
                items.append(Item(wide, high, place))
            elif place == "dot":
                items.append(Item(2 * DOT, 2 * DOT, place))
            else:
                items.append(Item(PORT_PITCH, 0.0, place))
        self.items = items
        self.level = place_level(items, self.edges, self.rows)
        framed = self.state.parent is not None
        self.left = _INNER if framed else 0.0
        self.above = 6.0 if framed else 0.0
        below = _INNER if framed and "bottom" not in self.places else 0.0
        self.width = self.level.width + 2 * self.left
        self.height = self.above + self.level.height + below
        for crossing, port in zip(self.crossings, self.port_items, strict=True):
            crossing.x = self.left + items[port].x + items[port].width / 2

    def put(self, chart: Chart, x: float, y: float, height: float | None = None) -> None:
        """Add everything, its top left corner at (x, y); a region is as high as those beside it."""
        state, is_region = self.state, height is not None
        height = self.height if height is None else height
        if state.parent is not None:
            rect = (x, y, self.width, height)
            look: Look = "frame" if not is_region else "region"
            chart.boxes.append(Box(state.path, rect, self.depth, look))
        if self.is_row:
            self._put_header(chart, x + _INNER, y + 6.0)
            for child, left in zip(self.children, self.lefts, strict=True):
                if left:
                    at = x + left
                    chart.separators.append(((at, y + self.strip), (at, y + height)))
                assert isinstance(child, _Container)
                child.put(chart, x + left, y + self.strip, height - self.strip)
            if state.children:
                ends = ((x, y + self.strip), (x + self.width, y + self.strip))
                chart.separators.append(ends)
            self._put_loops(chart, x, y)
            return
        left, top = x + self.left, y + self.above
        if self.header >= 0:
            item = self.items[self.header]
            self._put_header(chart, left + item.x, top + item.y)
        if self.dot >= 0:
            item = self.items[self.dot]
            chart.dots.append((left + item.x + DOT, top + item.y + DOT))
        for child, item in zip(self.children, self.items, strict=False):
            child.put(chart, left + item.x, top + item.y)
            if isinstance(child, _Leaf):
                _put_loops(chart, child.state, self.plan, (left + item.x, top + item.y),
                           child.width, child.height)  # fmt: skip
        for n, number in enumerate(self.numbers):
            line = [(left + px, top + py) for px, py in self.level.lines[n]]
            if number < 0:
                chart.arrows.append(Arrow(f"→ {state.path}", tuple(simplify(line))))
                continue
            self._put_line(chart, number, n, line, x, y, height)
        self._put_loops(chart, x, y)

    def _put_line(
        self,
        chart: Chart,
        number: int,
        n: int,
        line: list[Point],
        x: float,
        y: float,
        height: float,
    ) -> None:
        """Add a piece of a transition, lengthened to the frame where it ends there."""
        one = self.plan.transitions[number]
        edge = self.edges[n]
        for end, at in ((edge.source, 0), (edge.target, -1)):
            if self.places[end] == "top":
                line[at] = (line[at][0], y)
            elif self.places[end] == "bottom":
                line[at] = (line[at][0], y + height)
        if number in self.own:
            self.plan.add_piece(number, 1, 0, line)
            corner = self.level.labels[n]
            if corner is not None:
                at_label = (x + self.left + corner[0], y + self.above + corner[1])
                chart.labels += _lines(self.plan.texts[number], at_label, _LABEL)
            return
        inside = next(c.end for c in self.crossings if c.number == number)
        if inside is one.source:
            self.plan.add_piece(number, 0, -self.depth, line)
        else:
            self.plan.add_piece(number, 2, self.depth, line)

    def _put_header(self, chart: Chart, x: float, y: float) -> None:
        middle = y + _NAME * _LINE_HEIGHT / 2
        chart.words.append(Words(self.state.name, x, middle, _NAME, "left", bold=True))
        if self.state.history:
            at = x + measure(self.state.name, _NAME, True) + 6 + MARKER
            text = "H*" if self.state.history == "deep" else "H"
            chart.markers.append(Words(text, at, middle, _NUMBER))
        chart.words += _lines(self.notes, (x, y + _NAME * _LINE_HEIGHT + 1.0), _SMALL, soft=True)

    def _put_loops(self, chart: Chart, x: float, y: float) -> None:
        _put_loops(chart, self.state, self.plan, (x, y), self.width, self.height)


def _common(a: State, b: State) -> State:
    """Return the innermost state that is, or contains, both."""
    around = [a, *a.ancestors()]
    return next(state for state in (b, *b.ancestors()) if any(state is one for one in around))


def _notes(state: State, plan: _Plan) -> list[str]:
    """Return what is written in a state below its name."""
    lines: list[str] = []
    for when, actions, emitted in (
        ("entry", state.entry, state.emit),
        ("during", state.during, ()),
        ("exit", state.exit, ()),
    ):
        parts = _assignments(actions) + [f"emit {name}" for name in emitted]
        if parts:
            lines += break_text(f"{when} / {'; '.join(parts)}")
    for number in plan.internal.get(id(state), []):
        one = plan.transitions[number]
        order = "" if one.priority is None else f"{one.priority}: "
        lines += break_text(order + one.label)
    return lines


def _assignments(actions: Actions) -> list[str]:
    return [f"{name} = {format_action(value)}" for name, value in actions.items()]


def _size(lines: Sequence[str], size: float) -> tuple[float, float]:
    wide = max((measure(line, size) for line in lines), default=0.0)
    return wide, len(lines) * size * _LINE_HEIGHT


def _lines(lines: Sequence[str], corner: Point, size: float, *, soft: bool = False) -> list[Words]:
    return [
        Words(line, corner[0], corner[1] + (n + 0.5) * size * _LINE_HEIGHT, size, "left",
              tone="soft" if soft else "dark")
        for n, line in enumerate(lines)
    ]  # fmt: skip


def _loop_height(plan: _Plan, number: int) -> float:
    return max(plan.label_size(number)[1], 14.0) + 6.0


def _loops_height(state: State, plan: _Plan) -> float:
    return sum(_loop_height(plan, number) for number in plan.loops.get(id(state), []))


def _loops_width(state: State, plan: _Plan) -> float:
    numbers = plan.loops.get(id(state), [])
    return max((_LOOP + 6.0 + plan.label_size(number)[0] for number in numbers), default=0.0)


def _put_loops(
    chart: Chart, state: State, plan: _Plan, corner: Point, width: float, height: float
) -> None:
    """Add the transitions of a state to itself, on its right."""
    right = corner[0] + width
    top = corner[1] + (height - _loops_height(state, plan)) / 2
    for number in plan.loops.get(id(state), []):
        high = _loop_height(plan, number)
        middle = top + high / 2
        a, b = middle - 5.0, middle + 5.0
        line = [(right, a), (right + _LOOP, a), (right + _LOOP, b), (right, b)]
        plan.add_piece(number, 1, 0, line)
        tall = plan.label_size(number)[1]
        at = (right + _LOOP + 4.0, middle - tall / 2)
        chart.labels += _lines(plan.texts[number], at, _LABEL)
        top += high


def _number(one: Transition, points: Sequence[Point]) -> list[Words]:
    """Return the priority, written where the arrow starts."""
    if one.priority is None:
        return []
    (x, y), (bx, by) = points[:2]
    place = (x + 3.0, y + (6.0 if by > y else -6.0))
    if abs(bx - x) > abs(by - y):
        place = (x + 4.0, y - 5.0)
    return [Words(str(one.priority), *place, _NUMBER, "left", tone="soft")]
