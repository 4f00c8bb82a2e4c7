"""One level of a statechart: boxes in rows, transitions from row to row, labels in rows between.

The method is that of Sugiyama, Tagawa and Toda (1981). Every transition runs downward or upward
through all rows between its ends. In each of them it has a place of its own, and in one its label
too, so that no line runs through a box or a text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .._layering import Link, rank_cells
from .._wiring import Piece, Point, route_channel, simplify

PORT_PITCH = 16.0
"""Least distance of two lines at a box."""
_PORT_MARGIN = 11.0
_LINE = 8.0
"""Room on either side of a line."""
LABEL_GAP = 4.0
"""From a line to its label."""
_GAP = 14.0
"""Between boxes of a row."""
_STRAIGHT = 18.0
"""Height of a channel in which nothing turns."""
_TINY = 2.5
"""Turns of a line that would look like a mistake."""
_SMALL = 24.0
"""Turns of a line that a box is moved for."""
_SWEEPS = 24
_STIFF, _FAR = 1e6, 1e9
_CENTERING = 0.25
"""How much boxes should stand in line, in parts of how much a line should be straight."""

Place = Literal["middle", "top", "bottom", "header", "dot"]


@dataclass(slots=True)
class Item:
    """A box to place, or an end of lines on the frame around.

    Attributes
    ----------
    place
        ``"top"`` and ``"bottom"`` are points of the frame, ``"header"`` is what is written at the
        top left of it, ``"dot"`` stands beside that.
    right
        Room on the right of the box, for transitions to itself.
    fixed_top, fixed_bottom
        Where lines enter, from the left border, by the number of the edge; others find a place.
    """

    width: float
    height: float
    place: Place = "middle"
    right: float = 0.0
    fixed_top: dict[int, float] = field(default_factory=dict)
    fixed_bottom: dict[int, float] = field(default_factory=dict)
    x: float = 0.0
    y: float = 0.0


@dataclass(frozen=True, slots=True)
class Edge:
    """A transition between two items; `label` is the width and the height of its text."""

    source: int
    target: int
    label: tuple[float, float] = (0.0, 0.0)


@dataclass(slots=True)
class Level:
    """A placed level: items have their top left corners, edges run from source to target."""

    width: float
    height: float
    lines: list[list[Point]]
    labels: list[Point | None]
    """Top left corner of each label."""


@dataclass(slots=True)
class _Entry:
    """A place in a row: an item, or that of an edge on its way."""

    row: int
    left: float
    right: float
    height: float
    item: int = -1
    edge: int = -1
    is_left: bool = False
    """Whether the label stands on the left of the line."""
    x: float = 0.0
    up: list[_Segment] = field(default_factory=list)
    down: list[_Segment] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Segment:
    """A part of an edge, from one row to the next."""

    edge: int
    upper: _Entry
    lower: _Entry
    x_upper: float = 0.0
    x_lower: float = 0.0


def rank_rows(places: Sequence[Place], edges: Sequence[Edge]) -> list[int]:
    """Return the row of each item; only the structure counts, not sizes."""
    links = []
    initial = {edge.target for edge in edges if places[edge.source] == "dot"}
    for edge in edges:
        a, b = edge.source, edge.target
        # What is initial stands at the top: transitions back to it run upward.
        cost = 0.01 if b in initial else 1.0
        if places[a] == "bottom" or places[b] == "top":
            a, b = b, a
        if places[a] != "middle" or places[b] != "middle":
            cost = 1000.0
        links.append(Link(a, 0, b, 0, cost))
    rank = rank_cells(len(places), links)
    above: list[list[int]] = [[] for _ in places]
    for link in links:
        first, last = sorted((link.source, link.target), key=lambda n: rank[n])
        above[last].append(first)
    lowest = int(any(place not in ("middle", "bottom") for place in places))
    row = [0] * len(places)
    for n in sorted(range(len(places)), key=lambda n: rank[n]):
        if places[n] in ("middle", "bottom"):
            row[n] = max([lowest, *(row[m] + 1 for m in above[n])])
    last_row = max((row[n] for n, place in enumerate(places) if place != "bottom"), default=0)
    for n, place in enumerate(places):
        if place == "bottom":
            row[n] = last_row + 1
    return row


def place_level(items: Sequence[Item], edges: Sequence[Edge], rows: Sequence[int]) -> Level:
    """Give every item its place and every edge its line; `rows` are those of `rank_rows`."""
    return _Sheet(items, edges, rows).place()


class _Sheet:
    def __init__(self, items: Sequence[Item], edges: Sequence[Edge], rows: Sequence[int]) -> None:
        self.items, self.edges = items, edges
        count = 2 * max(rows, default=0) + 1
        self.entries = [
            _Entry(2 * row, item.width / 2, item.width / 2 + item.right, item.height, n)
            for n, (item, row) in enumerate(zip(items, rows, strict=True))
        ]
        load = [0.0] * count
        self.paths: list[list[_Segment]] = []
        self.label_entries: list[_Entry | None] = []
        on_the_way: list[_Entry] = []
        for number, edge in enumerate(edges):
            ends = (self.entries[edge.source], self.entries[edge.target])
            upper, lower = sorted(ends, key=lambda entry: entry.row)
            between = range(upper.row + 1, lower.row)
            wide, high = edge.label
            row = min((r for r in between if r % 2), key=lambda r: load[r]) if wide else -1
            chain = [upper]
            for r in between:
                entry = _Entry(r, _LINE, _LINE, 0.0, edge=number)
                if r == row:
                    entry = _Entry(r, _LINE, LABEL_GAP + wide + _LINE, high, edge=number)
                    load[r] += wide
                    self.label_entries.append(entry)
                chain.append(entry)
                on_the_way.append(entry)
            chain.append(lower)
            if row < 0:
                self.label_entries.append(None)
            path = []
            for a, b in itertools.pairwise(chain):
                segment = _Segment(number, a, b)
                a.down.append(segment)
                b.up.append(segment)
                path.append(segment)
            self.paths.append(path)
        self.entries += on_the_way
        self.rows: list[list[_Entry]] = [[] for _ in range(count)]
        for entry in self.entries:
            self.rows[entry.row].append(entry)

    def place(self) -> Level:
        self._drop_empty_rows()
        self._order()
        self._choose_sides()
        self._place_across()
        return self._place_down()

    def _drop_empty_rows(self) -> None:
        """Remove the rows for labels that have none."""
        for n in range(len(self.rows) - 2, 0, -2):
            if any(entry.height for entry in self.rows[n]):
                continue
            for entry in self.rows[n]:
                (over,), (under,) = entry.up, entry.down
                joined = _Segment(over.edge, over.upper, under.lower)
                over.upper.down[over.upper.down.index(over)] = joined
                under.lower.up[under.lower.up.index(under)] = joined
                path = self.paths[over.edge]
                at = path.index(over)
                path[at : at + 2] = [joined]
            del self.rows[n]
        for n, row in enumerate(self.rows):
            for entry in row:
                entry.row = n

    # Order within rows: medians of neighbors, then exchanges of two, as long as crossings vanish.

    def _order(self) -> None:
        for row in self.rows:
            self._pin(row)
        best, kept = self._count(), [list(row) for row in self.rows]
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            for n in range(1, len(self.rows)) if down else range(len(self.rows) - 2, -1, -1):
                near = self._keys(self.rows[n - 1 if down else n + 1], "down" if down else "up")
                row = self.rows[n]
                middle = {}
                for place, entry in enumerate(row):
                    ends = [near[id(s)] for s in (entry.up if down else entry.down)]
                    middle[id(entry)] = sum(ends) / len(ends) if ends else float(place)
                row.sort(key=lambda entry, middle=middle: middle[id(entry)])  # type: ignore[misc]
                self._pin(row)
            self._exchange()
            now = self._count()
            if now < best:
                best, kept = now, [list(row) for row in self.rows]
        self.rows = kept

    def _pin(self, row: list[_Entry]) -> None:
        row.sort(key=lambda entry: entry.item < 0 or self.items[entry.item].place != "header")

    def _exchange(self) -> None:
        for row in self.rows:
            for n in range(len(row) - 1):
                before = self._count()
                row[n], row[n + 1] = row[n + 1], row[n]
                self._pin(row)
                if self._count() >= before:
                    row[n], row[n + 1] = row[n + 1], row[n]
                    self._pin(row)

    def _keys(self, row: list[_Entry], side: str) -> dict[int, float]:
        """Return where each segment meets a row, in places from the left."""
        found = {}
        for place, entry in enumerate(row):
            for segment in entry.down if side == "down" else entry.up:
                share = 0.5
                if entry.item >= 0:
                    item = self.items[entry.item]
                    fixed = item.fixed_bottom if side == "down" else item.fixed_top
                    if segment.edge in fixed:
                        share = fixed[segment.edge] / item.width
                found[id(segment)] = place + 0.98 * share
        return found

    def _count(self) -> int:
        """Count the pairs of segments that cross."""
        total = 0
        for over, under in itertools.pairwise(self.rows):
            tops, bottoms = self._keys(over, "down"), self._keys(under, "up")
            ends = [(tops[key], bottoms[key]) for key in tops]
            for (a, b), (c, d) in itertools.combinations(ends, 2):
                total += (a - c) * (b - d) < 0
        return total

    def _choose_sides(self) -> None:
        """Put the first of several labels at one box on the left, so that the lines are close."""
        for row in self.rows:
            labels = [entry for entry in row if entry.item < 0 and entry.height]
            decided: set[int] = set()
            for side in ("up", "down"):
                groups: dict[int, list[_Entry]] = {}
                for label in labels:
                    if id(label) not in decided:
                        end = label.up[0].upper if side == "up" else label.down[0].lower
                        groups.setdefault(id(end), []).append(label)
                for group in groups.values():
                    if len(group) > 1:
                        decided.update(id(label) for label in group)
                        first = group[0]
                        first.left, first.right, first.is_left = first.right, first.left, True

    # Coordinates across: each entry toward its neighbors, in order and apart from each other.

    def _place_across(self) -> None:
        for row in self.rows:
            at = 0.0
            for entry in row:
                entry.x = at + entry.left
                at += entry.left + entry.right + _GAP
        for row in self.rows:
            middle = (row[0].x - row[0].left + row[-1].x + row[-1].right) / 2 if row else 0.0
            for entry in row:
                entry.x -= middle
        for sweep in range(2 * _SWEEPS):
            self._slide_ports()
            order = self.rows if sweep % 2 == 0 else self.rows[::-1]
            for row in order:
                self._relax(row)
        self._slide_ports()
        self._straighten()
        self._slide_ports()
        self._snap_ports()

    def _relax(self, row: list[_Entry]) -> None:
        wanted, weights = [], []
        for entry in row:
            pulls = [(entry.x + s.x_upper - s.x_lower, _stiffness(s)) for s in entry.up]
            pulls += [(entry.x + s.x_lower - s.x_upper, _stiffness(s)) for s in entry.down]
            pulls += [(s.upper.x, _CENTERING) for s in entry.up if s.edge not in self._fixed(s, 0)]
            pulls += [
                (s.lower.x, _CENTERING) for s in entry.down if s.edge not in self._fixed(s, 1)
            ]
            total = sum(weight for _, weight in pulls)
            wanted.append(sum(x * w for x, w in pulls) / total if pulls else entry.x)
            weights.append(total + 0.01)
        for entry, x in zip(row, _spread(wanted, weights, _distances(row)), strict=True):
            entry.x = x
        self._slide_ports()

    def _fixed(self, segment: _Segment, end: int) -> dict[int, float]:
        """Return the lines that have a fixed place at the upper (0) or lower end of a segment."""
        entry = segment.lower if end else segment.upper
        if entry.item < 0:
            return {}
        item = self.items[entry.item]
        return item.fixed_top if end else item.fixed_bottom

    def _slide_ports(self) -> None:
        """Put the ends of lines at boxes where the lines are straight, if there is room."""
        for entry in self.entries:
            for side in ("down", "up"):
                segments = entry.down if side == "down" else entry.up
                if entry.item < 0 or not segments:
                    for segment in segments:
                        _set_end(segment, side, entry.x)
                    continue
                item = self.items[entry.item]
                fixed = item.fixed_bottom if side == "down" else item.fixed_top
                low, high = entry.x - entry.left, entry.x - entry.left + item.width
                margin = min(_PORT_MARGIN, item.width / 2)
                ends = []
                for segment in segments:
                    other = segment.lower if side == "down" else segment.upper
                    far = segment.x_lower if side == "down" else segment.x_upper
                    at = far if other.item >= 0 else other.x
                    if segment.edge in fixed:
                        ends.append((low + fixed[segment.edge], _STIFF, segment))
                    else:
                        at = min(max(at, low + margin), high - margin)
                        ends.append((at, 1.0, segment))
                # Lines that go further to the left start further left.
                ends.sort(key=lambda end: (end[0], _far(end[2], side)))
                if any(end[1] == _STIFF for end in ends):
                    places = _fit_between(ends, low + margin, high - margin)
                else:
                    gap = [PORT_PITCH] * (len(ends) - 1)
                    places = _spread([end[0] for end in ends], [1.0] * len(ends), gap)
                    places = _clamp(places, low + margin, high - margin)
                for (_, _, segment), x in zip(ends, places, strict=True):
                    _set_end(segment, side, x)

    def _snap_ports(self) -> None:
        """Remove turns that are too small to be seen as such, at ends that may move."""
        for segment in (segment for path in self.paths for segment in path):
            if abs(segment.x_upper - segment.x_lower) > _TINY:
                continue
            if segment.upper.item >= 0 and segment.edge not in self._fixed(segment, 0):
                segment.x_upper = segment.x_lower
            elif segment.lower.item >= 0 and segment.edge not in self._fixed(segment, 1):
                segment.x_lower = segment.x_upper

    def _straighten(self) -> None:
        """Make the edges straight between their ends, and below or above an end, if there is room.

        The longest first: they are seen most.
        """
        paths = sorted(self.paths, key=lambda path: -len(path))
        for _ in range(4):
            for path in paths:
                inner = [segment.lower for segment in path[:-1]]
                if not inner:
                    continue
                # All of it, or the pieces between rows without room.
                runs, low, high = [], -_FAR, _FAR
                run: list[_Entry] = []
                for entry in inner:
                    least, most = self._room(entry)
                    if max(low, least) > min(high, most) + 1e-9:
                        runs.append((run, low, high))
                        run, low, high = [], -_FAR, _FAR
                    run.append(entry)
                    low, high = max(low, least), min(high, most)
                runs.append((run, low, high))
                for entries, least, most in runs:
                    ends = [entries[0].up[0].x_upper, entries[-1].down[0].x_lower]
                    now = sorted(entry.x for entry in entries)[len(entries) // 2]
                    ends.sort(key=lambda x, now=now: abs(x - now))  # type: ignore[misc]
                    fits = [x for x in ends if least - 1e-9 <= x <= most + 1e-9]
                    x = fits[0] if fits else min(max(now, least), most)
                    for entry in entries:
                        entry.x = x
            self._slide_ports()
            self._shift_boxes()

    def _shift_boxes(self) -> None:
        """Move boxes a little where that makes more of their lines straight."""
        for entry in self.entries[: len(self.items)]:
            low, high = self._room(entry)
            start, best, found = entry.x, -1.0, entry.x
            turns = {s.x_lower - s.x_upper for s in entry.down}
            turns |= {s.x_upper - s.x_lower for s in entry.up}
            for turn in sorted({0.0, *turns}, key=lambda x: (abs(x), x)):
                if abs(turn) > _SMALL or not low - 1e-9 <= start + turn <= high + 1e-9:
                    continue
                entry.x = start + turn
                self._slide_ports()
                straight = sum(abs(s.x_upper - s.x_lower) < 0.01 for s in (*entry.up, *entry.down))
                if straight > best:
                    best, found = straight, entry.x
            entry.x = found
            self._slide_ports()

    def _room(self, entry: _Entry) -> tuple[float, float]:
        """Return how far to the left and right an entry may move."""
        row = self.rows[entry.row]
        n = next(n for n, one in enumerate(row) if one is entry)
        low = row[n - 1].x + _distance(row[n - 1], entry) if n else -_FAR
        high = row[n + 1].x - _distance(entry, row[n + 1]) if n + 1 < len(row) else _FAR
        return low, high

    # Coordinates down, and lines.

    def _place_down(self) -> Level:
        shift = -min((e.x - e.left for e in self.entries), default=0.0)
        for entry in self.entries:
            entry.x += shift
        for path in self.paths:
            for segment in path:
                segment.x_upper += shift
                segment.x_lower += shift
        width = max((e.x + e.right for e in self.entries), default=0.0)
        top, tops, bottoms, ways = 0.0, [], [], {}
        for n, row in enumerate(self.rows):
            high = max((entry.height for entry in row), default=0.0)
            tops.append(top)
            bottoms.append(top + high)
            if n + 1 == len(self.rows):
                break
            segments = [segment for entry in row for segment in entry.down]
            channel = route_channel(
                [Piece([_tidy(s.x_upper)], [_tidy(s.x_lower)]) for s in segments]
            )
            turning = any(route.trunks for route in channel.routes)
            below = bottoms[-1]
            for segment, route in zip(segments, channel.routes, strict=True):
                way = route.cross(_tidy(segment.x_upper), _tidy(segment.x_lower))
                ways[id(segment)] = [(x, below + y) for y, x in way]
            top = below + (channel.width if turning else _STRAIGHT)
        for entry in self.entries:
            if entry.item >= 0:
                item, row_number = self.items[entry.item], entry.row
                item.x = 0.0 if item.place == "header" else entry.x - entry.left
                free = bottoms[row_number] - tops[row_number] - item.height
                item.y = tops[row_number] + {"header": 0.0, "top": 0.0, "bottom": free}.get(
                    item.place, free if row_number == 0 else free / 2
                )
        height = bottoms[-1] if bottoms else 0.0
        lines = [self._line(n, ways) for n in range(len(self.edges))]
        labels: list[Point | None] = []
        for label in self.label_entries:
            if label is None:
                labels.append(None)
                continue
            middle = (tops[label.row] + bottoms[label.row]) / 2
            wide = self.edges[label.edge].label[0]
            at = label.x - LABEL_GAP - wide if label.is_left else label.x + LABEL_GAP
            labels.append((at, middle - label.height / 2))
        return Level(width, height, lines, labels)

    def _line(self, number: int, ways: dict[int, list[Point]]) -> list[Point]:
        path = self.paths[number]
        first, last = path[0], path[-1]
        over, under = self.items[first.upper.item], self.items[last.lower.item]
        points = [(_tidy(first.x_upper), over.y + over.height)]
        for segment in path:
            points += ways[id(segment)]
            points.append((_tidy(segment.x_lower), points[-1][1]))
        points[-1] = (_tidy(last.x_lower), under.y)
        line = simplify(points)
        return line if first.upper.item == self.edges[number].source else line[::-1]


def _tidy(x: float) -> float:
    """Round, so that equal places are equal numbers."""
    return round(x, 2)


def _stiffness(segment: _Segment) -> float:
    """Return how much a segment should be straight: in the middle of a long edge most."""
    return (1.0, 2.0, 6.0)[(segment.upper.item < 0) + (segment.lower.item < 0)]


def _far(segment: _Segment, side: str) -> float:
    other = segment.lower if side == "down" else segment.upper
    return other.x


def _set_end(segment: _Segment, side: str, x: float) -> None:
    if side == "down":
        segment.x_upper = x
    else:
        segment.x_lower = x


def _distance(a: _Entry, b: _Entry) -> float:
    lines = a.item < 0 and b.item < 0
    return a.right + b.left + (0.0 if lines else _GAP - _LINE if a.item < 0 or b.item < 0 else _GAP)


def _distances(row: Sequence[_Entry]) -> list[float]:
    return [_distance(a, b) for a, b in itertools.pairwise(row)]


def _clamp(places: Sequence[float], low: float, high: float) -> list[float]:
    """Move places into a range, keeping their distances where they can be kept."""
    found = list(places)
    if len(found) > 1 and found[-1] - found[0] > high - low:
        return [low + (high - low) * n / (len(found) - 1) for n in range(len(found))]
    floor = low
    for n, x in enumerate(found):
        found[n] = max(x, floor)
        floor = found[n] + PORT_PITCH
    roof = high
    for n in range(len(found) - 1, -1, -1):
        found[n] = min(found[n], roof)
        roof = found[n] - PORT_PITCH
    return found


def _fit_between(
    ends: Sequence[tuple[float, float, _Segment]], low: float, high: float
) -> list[float]:
    """Return places for lines where some, those of stiff weight, have theirs."""
    taken = [x for x, weight, _ in ends if weight == _STIFF]
    found = []
    for x, weight, _ in ends:
        if weight == _STIFF:
            found.append(x)
            continue
        beside = [y + side * PORT_PITCH for y in taken for side in (-1, 1)]
        free = [
            place
            for place in (x, low, high, *beside)
            if low <= place <= high and all(abs(place - y) > PORT_PITCH - 1e-6 for y in taken)
        ]
        found.append(min(free, key=lambda place, x=x: abs(place - x), default=x))  # type: ignore[misc]
        taken.append(found[-1])
    return found


def _spread(
    wanted: Iterable[float], weights: Iterable[float], distances: Sequence[float]
) -> list[float]:
    """Return places in order, at least `distances` apart, with the least squares from `wanted`.

    Pool adjacent violators: isotonic regression of what is wanted less the distances so far.
    """
    offsets = [0.0, *itertools.accumulate(distances)]
    pools: list[tuple[float, float, int]] = []
    for x, weight, offset in zip(wanted, weights, offsets, strict=False):
        mean, total, count = x - offset, weight, 1
        while pools and pools[-1][0] >= mean:
            other, heavy, many = pools.pop()
            mean = (mean * total + other * heavy) / (total + heavy)
            total, count = total + heavy, count + many
        pools.append((mean, total, count))
    level = [mean for mean, _, count in pools for _ in range(count)]
    return [x + offset for x, offset in zip(level, offsets, strict=False)]
