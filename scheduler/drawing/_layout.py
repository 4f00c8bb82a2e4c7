"""Laying out one level of a diagram: cells in columns from left to right, wires between them.

The method is Sugiyama's: cut the cycles, put every cell in a column, give each wire that passes a
column a slot in it, order the columns so that few wires cross, and place the rows by a linear
program that keeps wires straight. `wiring` then draws the wires in the channels between columns.
y points down; lengths are in points.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ._crossing import order_columns
from ._layering import Cell, Link
from ._nets import Level, Pin
from ._program import Row, minimize
from ._wiring import Piece, Point, Route, route_channel, simplify

_CELL_GAP = 16.0
_WIRE_GAP = 11.0
_SMALL_STEP = 12.0
"""A wire that misses being straight by less than this is pulled straight if at all possible."""
_MARGIN = 14.0
"""Left and right of the outer columns, where a frame or the paper begins."""

_Tracks = dict[tuple[tuple[int, int], int], tuple[Route, float]]
"""By net and channel: the route, and where the channel begins."""


@dataclass(slots=True)
class Layout:
    """Where everything is: cells by their top left corner, one polyline for each link."""

    corners: list[Point]
    inputs: list[list[float]]
    wires: list[list[Point]]
    dots: list[tuple[int, Point]]
    """Branches: the number of a link of that net, and the place."""
    width: float
    height: float


def arrange_level(cells: Sequence[Cell], links: Sequence[Link]) -> Layout:
    """Place `cells` and route `links`; the result depends on nothing else."""
    level = Level(cells, links)
    order_columns(level)
    sheet = _Sheet(level)
    sheet.place_rows()
    return sheet.route()


class _Sheet:
    """A level with its order, being given coordinates."""

    def __init__(self, level: Level) -> None:
        self.level, self.cells, self.links = level, level.cells, level.links
        self.slots, self.columns, self.bundles = level.slots, level.columns, level.bundles
        self.column_of, self.inputs = level.column_of, level.inputs
        self.y = np.zeros(len(level.slots))

    def place_rows(self) -> None:
        """Minimize the weighted vertical length of all wires, columns keeping their order."""
        terms = list(self._terms())
        count = len(self.slots)
        rows: list[Row] = []
        bounds: list[float] = []

        def at_most(row: Row, bound: float) -> None:
            rows.append(row)
            bounds.append(bound)

        cost = np.full(count + len(terms), 1e-3)
        for n, (a, shift_a, b, shift_b, weight) in enumerate(terms):
            cost[count + n] = weight
            at_most([(a, 1.0), (b, -1.0), (count + n, -1.0)], shift_b - shift_a)
            at_most([(b, 1.0), (a, -1.0), (count + n, -1.0)], shift_a - shift_b)
        for column in self.columns:
            for a, b in itertools.pairwise(column):
                both = self.slots[a].cell >= 0 and self.slots[b].cell >= 0
                gap = _CELL_GAP if both else _WIRE_GAP
                at_most([(a, 1.0), (b, -1.0)], -gap - self.slots[a].height)
        if not bounds:
            return
        found = minimize(cost, rows, bounds)
        missed = found[count:]
        cost[count:] *= np.where((missed < _SMALL_STEP) & (cost[count:] > 1), 30.0, 1.0)
        found = minimize(cost, rows, bounds)
        # Solver noise would make wires a hair off straight.
        self.y = np.round(found[:count], 3)

    def _terms(self) -> Iterator[tuple[int, float, int, float, float]]:
        for bundles in self.bundles:
            for bundle in bundles:
                if not bundle.left:
                    first, side = bundle.right[0], "right"
                else:
                    first, side = bundle.left[0], "left"
                start = self.level.offset(first, side)
                for pin in bundle.right:
                    if pin is not first:
                        weight = self._weight(first, pin, len(bundle.right))
                        weight *= 0.1 if side == "right" else 1.0
                        yield first.slot, start, pin.slot, self.level.offset(pin, "right"), weight
                for pin in bundle.left[1:]:
                    yield first.slot, start, pin.slot, 0.0, 0.1

    def _weight(self, a: Pin, b: Pin, fan: int) -> float:
        """Return how much it matters that a wire is straight: most for long ones, then chains."""
        from_cell, to_cell = self.slots[a.slot].cell, self.slots[b.slot].cell
        if self.slots[a.slot].backward and not self.slots[b.slot].backward:
            return 0.1
        if from_cell < 0 and to_cell < 0:
            return 6.0
        if to_cell < 0:
            return 3.3 if fan == 1 else 1.5
        alone = len(self.cells[to_cell].inputs) == 1
        middle = self.cells[to_cell].spots
        main = alone or middle is None or self.inputs[to_cell][b.port] == middle[1]
        if from_cell < 0:
            # Less than into a slot: of two bends, the one at the end is the better.
            return (3.0 if main else 2.5) / (1.0 if fan == 1 else 2.0)
        return (4.0 if main else 1.5) / (1.0 if fan == 1 else 1.6) + (0.2 if b.port == 0 else 0.0)

    def route(self) -> Layout:
        """Set the columns apart as far as the wires between them need, and draw these."""
        channels = []
        for bundles in self.bundles:
            pieces = [
                Piece(
                    [self._height_of(pin, "left") for pin in bundle.left],
                    [self._height_of(pin, "right") for pin in bundle.right],
                )
                for bundle in bundles
            ]
            channels.append(route_channel(pieces))
        widths = [
            max((self.cells[self.slots[n].cell].width for n in column if self.slots[n].cell >= 0),
                default=0.0)
            for column in self.columns
        ]  # fmt: skip
        starts, x = [], 0.0
        lefts = []
        for column, width in enumerate(widths):
            outer = column == 0
            lefts.append(x)
            x += self._outer_margin(0, channels[0].width) if outer else channels[column].width
            starts.append(x)
            x += width
        lefts.append(x)
        x += self._outer_margin(-1, channels[-1].width)
        corners = []
        for number, cell in enumerate(self.cells):
            column = self.column_of[number]
            slack = widths[column] - cell.width
            share = {"left": 0.0, "right": 1.0}.get(cell.border, 0.5)
            if not cell.border and slack > 60 and (cell.inputs or cell.outputs):
                share = 0.5 if cell.inputs and cell.outputs else 0.0 if cell.inputs else 1.0
            corners.append((starts[column] + share * slack, float(self.y[number])))
        layout = Layout(corners, self.inputs, [], [], x, 0.0)
        tracks = {
            (bundle.net, c): (route, lefts[c])
            for c, (channel, bundles) in enumerate(zip(channels, self.bundles, strict=True))
            for route, bundle in zip(channel.routes, bundles, strict=True)
        }
        first_link: dict[tuple[int, int], int] = {}
        for n, link in enumerate(self.links):
            first_link.setdefault((link.source, link.output), n)
            layout.wires.append(self._wire(link, corners, tracks))
        for (net, _), (route, left) in tracks.items():
            layout.dots += [(first_link[net], (left + dx, y)) for dx, y in route.dots]
        self._fit(layout)
        return layout

    def _outer_margin(self, column: int, channel: float) -> float:
        """Return the room beside an outer column: none at a border, else for its wires."""
        numbers = [self.slots[n].cell for n in self.columns[column] if self.slots[n].cell >= 0]
        if any(self.cells[n].border for n in numbers):
            return 0.0
        return max(_MARGIN, channel if self.bundles[0 if column == 0 else -1] else 0.0)

    def _height_of(self, pin: Pin, side: str) -> float:
        return round(float(self.y[pin.slot]) + self.level.offset(pin, side), 3)

    def _wire(self, link: Link, corners: list[Point], tracks: _Tracks) -> list[Point]:
        net = (link.source, link.output)
        source, target = self.cells[link.source], corners[link.target]
        x, y = corners[link.source]
        points = [(x + source.width, round(y + source.outputs[link.output], 3))]
        end = (target[0], self._height_of(Pin(link.target, link.input), "right"))
        start, goal = self.column_of[link.source], self.column_of[link.target]
        channels = range(start + 1, goal + 1) if goal > start else range(start + 1, goal - 1, -1)
        for c in channels:
            bundle = next(b for b in self.bundles[c] if b.net == net)
            route, left = tracks[net, c]
            entry = points[-1][1]
            last = c == goal
            if goal > start:
                leave = end[1] if last else self._passing(bundle.right)
                way = route.cross(entry, leave)
            elif c == start + 1:
                leave = self._passing(bundle.left)
                way = route.turn(entry, leave, "left")
            elif last:
                leave = end[1]
                way = route.turn(entry, leave, "right")
            else:
                leave = self._passing(bundle.left)
                way = list(reversed(route.cross(leave, entry)))
            points += [(left + dx, y) for dx, y in way]
        points.append(end)
        return simplify(points)

    def _passing(self, pins: list[Pin]) -> float:
        """Return the height of the wire's own slot among `pins`."""
        return next(float(self.y[p.slot]) for p in pins if self.slots[p.slot].cell < 0)

    def _fit(self, layout: Layout) -> None:
        """Move everything so that it begins at y = 0 and measure the height."""
        bottoms = [y + cell.height for (_, y), cell in zip(layout.corners, self.cells, strict=True)]
        ys = [y for wire in layout.wires for _, y in wire]
        top = min([y for _, y in layout.corners] + ys, default=0.0)
        layout.height = max(bottoms + ys, default=0.0) - top
        layout.corners = [(x, y - top) for x, y in layout.corners]
        layout.wires = [[(x, y - top) for x, y in wire] for wire in layout.wires]
        layout.dots = [(n, (x, y - top)) for n, (x, y) in layout.dots]
