"""Laying out one level of a diagram: cells in columns from left to right, wires between them.

The method is Sugiyama's: cut the cycles, put every cell in a column, give each wire that passes a
column a slot in it, order the columns so that few wires cross, and place the rows by a linear
program that keeps wires straight. `wiring` then draws the wires in the channels between columns.
y points down; lengths are in points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import networkx as nx
import numpy as np
import numpy.typing as npt
from scipy.optimize import LinearConstraint, linprog, milp
from scipy.sparse import coo_matrix

from .wiring import Piece, Point, route_channel, simplify

_CELL_GAP = 16.0
_WIRE_GAP = 11.0
_SMALL_STEP = 12.0
"""A wire that misses being straight by less than this is pulled straight if at all possible."""
_MOST_ROUNDS = 60
_MARGIN = 14.0
"""Left and right of the outer columns, where a frame or the paper begins."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Something to place: its size and where its ports are, measured from its top.

    Attributes
    ----------
    border
        ``"left"`` and ``"right"`` cells stand alone in the first and last column, at the very edge.
    spots
        For a cell whose inputs may change places: offsets above, at and below its middle.
    """

    width: float
    height: float
    inputs: tuple[float, ...]
    outputs: tuple[float, ...]
    border: Literal["left", "right", ""] = ""
    spots: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A wire from an output to an input. If a loop must be cut, the cheapest wire is."""

    source: int
    output: int
    target: int
    input: int
    cost: float = 1.0


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


@dataclass(frozen=True, slots=True)
class _Slot:
    """Something with a place in a column: a cell, or a passing wire if `cell` is -1."""

    number: int
    column: int
    height: float
    cell: int = -1
    part: int = 0
    backward: bool = False


@dataclass(frozen=True, slots=True)
class _Pin:
    """An end of a wire in a channel: output or input `port` of a cell, or a passing wire."""

    slot: int
    port: int = 0


@dataclass(slots=True)
class _Bundle:
    """The part of a net in one channel: what it joins on the left and on the right."""

    net: tuple[int, int]
    left: list[_Pin] = field(default_factory=list)
    right: list[_Pin] = field(default_factory=list)


def arrange_level(cells: Sequence[Cell], links: Sequence[Link]) -> Layout:
    """Place `cells` and route `links`; the result depends on nothing else."""
    level = _Level(cells, links)
    level.order_columns()
    level.place_rows()
    return level.route()


class _Level:
    def __init__(self, cells: Sequence[Cell], links: Sequence[Link]) -> None:
        self.cells, self.links = cells, links
        self.inputs = [list(cell.inputs) for cell in cells]
        self.column_of = assign_columns(cells, links)
        self.columns: list[list[int]] = [[] for _ in range(max(self.column_of, default=0) + 1)]
        self.slots: list[_Slot] = []
        parts = _parts(len(cells), links)
        for number, cell in enumerate(cells):
            self._add_slot(self.column_of[number], cell.height, number, parts[number])
        self.bundles: list[list[_Bundle]] = [[] for _ in range(len(self.columns) + 1)]
        self._add_nets()
        self._guess_spots()
        self.y = np.zeros(len(self.slots))

    def _add_slot(
        self, column: int, height: float, cell: int, part: int, backward: bool = False
    ) -> int:
        number = len(self.slots)
        self.slots.append(_Slot(number, column, height, cell, part, backward))
        self.columns[column].append(number)
        return number

    def _add_nets(self) -> None:
        """Give each net a slot in every column that it passes: one way forward, one way back."""
        nets: dict[tuple[int, int], list[Link]] = {}
        for link in self.links:
            nets.setdefault((link.source, link.output), []).append(link)
        for net, links in nets.items():
            source, output = net
            start, part = self.column_of[source], self.slots[source].part
            ends: dict[int, list[_Pin]] = {}
            for link in links:
                ends.setdefault(self.column_of[link.target], []).append(
                    _Pin(link.target, link.input)
                )
            bundle = _Bundle(net, [_Pin(source, output)])
            self.bundles[start + 1].append(bundle)
            if min(ends) <= start:
                back = _Pin(self._add_slot(start, 0.0, -1, part, backward=True))
                bundle.left.append(back)
                for column in range(start, min(ends) - 1, -1):
                    turn = _Bundle(net, [], [back, *ends.get(column, [])])
                    self.bundles[column].append(turn)
                    if column > min(ends):
                        back = _Pin(self._add_slot(column - 1, 0.0, -1, part, backward=True))
                        turn.left.append(back)
            for column in range(start + 1, max(ends) + 1):
                bundle.right += ends.get(column, [])
                if column < max(ends):
                    passing = _Pin(self._add_slot(column, 0.0, -1, part))
                    bundle.right.append(passing)
                    bundle = _Bundle(net, [passing])
                    self.bundles[column + 1].append(bundle)

    def _guess_spots(self) -> None:
        """Let feedback enter a sum from below, a second one from above."""
        for number, cell in enumerate(self.cells):
            if cell.spots is None:
                continue
            column = self.column_of[number]
            back = [
                link.input
                for link in self.links
                if link.target == number and self.column_of[link.source] >= column
            ]
            free = [n for n in range(len(cell.inputs)) if n not in back]
            if not free and back:
                free = [back.pop(0)]
            order = [0, 1, 2] if len(free) > 1 else [1]
            if len(free) == 2:
                order = [1, 2] if not back else [0, 1]
            for n, spot in zip(free, order, strict=False):
                self.inputs[number][n] = cell.spots[spot]
            left = [spot for spot in (2, 0, 1) if spot not in order[: len(free)]]
            for n, spot in zip(back, left, strict=False):
                self.inputs[number][n] = cell.spots[spot]

    def _offset(self, pin: _Pin, side: str) -> float:
        """Return how far below its slot's top a wire's end is; outputs are on a channel's left."""
        cell = self.slots[pin.slot].cell
        if cell < 0:
            return 0.0
        return self.cells[cell].outputs[pin.port] if side == "left" else self.inputs[cell][pin.port]

    # Order: few crossings.

    def order_columns(self) -> None:
        """Find an order of every column with few crossings, from several first guesses."""
        self.tallies = [_Tally(self, bundles) for bundles in self.bundles]
        ends = self._backward_ends()
        best: list[list[int]] = []
        least = np.inf
        for sign in (1, -1):
            for beside in (False, True):
                self._guess_order(sign, ends if beside else {}, ends)
                self._improve()
                cost = self._cost()
                if cost < least - 1e-9:
                    best, least = [list(column) for column in self.columns], cost
        self.columns = best
        self._number_rows()
        self._settle_spots()

    def _backward_ends(self) -> dict[int, tuple[int, bool]]:
        """For each slot of a backward wire: a cell where it ends, and whether it enters from above."""
        found: dict[int, tuple[int, bool]] = {}
        for column, bundles in enumerate(self.bundles):
            for bundle in bundles:
                pins = [pin for pin in bundle.right if self.slots[pin.slot].cell >= 0]
                back = [pin.slot for pin in bundle.right if self.slots[pin.slot].backward]
                if not back:
                    continue
                if pins:
                    cell, spots = pins[0].slot, self.cells[pins[0].slot].spots
                    above = spots is not None and self.inputs[cell][pins[0].port] == spots[0]
                    found[back[0]] = (cell, above)
                else:
                    found[back[0]] = found[bundle.left[0].slot]
                assert self.slots[back[0]].column == column
        return found

    def _guess_order(
        self,
        sign: int,
        beside: dict[int, tuple[int, bool]],
        ends: dict[int, tuple[int, bool]],
    ) -> None:
        """Start in the order of the diagram; backward wires beside their cells or outermost."""

        def key(n: int) -> tuple[float, ...]:
            slot = self.slots[n]
            if n in beside:
                cell, above = beside[n]
                return slot.part, 0, sign * cell + (-0.5 if above else 0.5), n
            outer = 0 if n not in ends else -1 if ends[n][1] else 1
            return slot.part, outer, sign * n, n

        self.columns = [sorted(column, key=key) for column in self.columns]
        self._number_rows()

    def _improve(self) -> None:
        """Sweep to and fro, keep the best order met, then try every slot everywhere."""
        best: list[list[int]] = []
        least = np.inf
        for sweep in range(9):
            cost = self._cost()
            if cost < least - 1e-9:
                best, least = [list(column) for column in self.columns], cost
            self._sweep(forward=sweep % 2 == 0)
        self.columns = best
        self._number_rows()
        for _ in range(4):
            moved = [self._sift(column, size) for size in (1, 2) for column in range(len(best))]
            if not any(moved):
                break

    def _cost(self) -> float:
        return sum(tally.cost(self.row) for tally in self.tallies)

    def _number_rows(self) -> None:
        self.row = np.zeros(len(self.slots))
        for column in self.columns:
            self.row[column] = np.arange(len(column))

    def _inside(self, pin: _Pin, side: str) -> float:
        """Return where a pin is in its slot, from 0 at the top to 1."""
        height = self.slots[pin.slot].height
        return 0.05 + 0.9 * self._offset(pin, side) / height if height else 0.5

    def _position(self, pin: _Pin, side: str) -> float:
        return float(self.row[pin.slot]) + self._inside(pin, side)

    def _sweep(self, forward: bool) -> None:
        """Order every column by the mean place of what it is wired to in the one before it."""
        count = len(self.columns)
        for column in range(1, count) if forward else range(count - 2, -1, -1):
            near: dict[int, list[float]] = {}
            for bundle in self.bundles[column if forward else column + 1]:
                here, there = (
                    (bundle.right, bundle.left) if forward else (bundle.left, bundle.right)
                )
                places = [self._position(pin, "left" if forward else "right") for pin in there]
                for pin in here:
                    near.setdefault(pin.slot, []).extend(places)
            means = {
                n: sum(near[n]) / len(near[n]) if near.get(n) else float(self.row[n])
                for n in self.columns[column]
            }
            self.columns[column].sort(key=lambda n: (self.slots[n].part, means[n], self.row[n]))
            self.row[self.columns[column]] = np.arange(len(means))

    def _sift(self, column: int, size: int) -> bool:
        """Try every place for each run of `size` slots, keep the best; tell if any improved."""
        improved = False

        def arrange(order: list[int]) -> float:
            self.row[order] = np.arange(len(order))
            return self.tallies[column].cost(self.row) + self.tallies[column + 1].cost(self.row)

        for number in list(self.columns[column]):
            now = self.columns[column]
            at = now.index(number)
            group, rest = now[at : at + size], now[:at] + now[at + size :]
            least = arrange(now)
            best = now
            for place in range(len(rest) + 1):
                trial = rest[:place] + group + rest[place:]
                parts = [self.slots[n].part for n in trial]
                if parts != sorted(parts):
                    continue
                cost = arrange(trial)
                if cost < least - 1e-9:
                    best, least, improved = trial, cost, True
            self.columns[column] = best
            arrange(best)
        return improved

    def _settle_spots(self) -> None:
        """Give the inputs of each sum the places above, at and below its middle that fit best."""
        for number, cell in enumerate(self.cells):
            if cell.spots is None or len(cell.inputs) < 2:
                continue
            column = self.column_of[number]
            come: dict[int, float] = {}
            for bundle in self.bundles[column]:
                for pin in bundle.right:
                    if pin.slot != number:
                        continue
                    origin = bundle.left[:1]
                    side = "left"
                    if self.slots[bundle.right[0].slot].backward:
                        # From above or below in the same column: further out than any other.
                        origin, side = bundle.right[:1], "right"
                        shift = self.row[origin[0].slot] - self.row[number]
                        come[pin.port] = float(np.sign(shift) * 1000 + shift)
                    else:
                        come[pin.port] = self._position(origin[0], side)
            ports = sorted(range(len(cell.inputs)), key=lambda n: (come.get(n, 0.0), n))
            if len(ports) == 3:
                spots = [0, 1, 2]
            else:
                far = [abs(come.get(n, 0.0)) > 500 for n in ports]
                if far[0] != far[1]:
                    spots = [0, 1] if far[0] else [1, 2]
                else:
                    spots = [1, 2] if ports[0] == 0 else [0, 1]
            for n, spot in zip(ports, spots, strict=True):
                self.inputs[number][n] = cell.spots[spot]

    # Rows: straight wires.

    def place_rows(self) -> None:
        """Minimise the weighted vertical length of all wires, columns keeping their order."""
        terms = list(self._terms())
        count = len(self.slots)
        rows, columns, values, bounds = [], [], [], []

        def at_most(entries: Sequence[tuple[int, float]], bound: float) -> None:
            for column, value in entries:
                rows.append(len(bounds))
                columns.append(column)
                values.append(value)
            bounds.append(bound)

        cost = np.full(count + len(terms), 1e-3)
        for n, (a, shift_a, b, shift_b, weight) in enumerate(terms):
            cost[count + n] = weight
            at_most([(a, 1.0), (b, -1.0), (count + n, -1.0)], shift_b - shift_a)
            at_most([(b, 1.0), (a, -1.0), (count + n, -1.0)], shift_a - shift_b)
        for column in self.columns:
            for a, b in zip(column, column[1:], strict=False):
                both = self.slots[a].cell >= 0 and self.slots[b].cell >= 0
                gap = _CELL_GAP if both else _WIRE_GAP
                at_most([(a, 1.0), (b, -1.0)], -gap - self.slots[a].height)
        if not bounds:
            return
        table = coo_matrix((values, (rows, columns)), shape=(len(bounds), cost.size)).tocsr()
        found = linprog(cost, A_ub=table, b_ub=bounds, method="highs").x
        missed = found[count:]
        cost[count:] *= np.where((missed < _SMALL_STEP) & (cost[count:] > 1), 30.0, 1.0)
        found = linprog(cost, A_ub=table, b_ub=bounds, method="highs").x
        # Solver noise would make wires a hair off straight.
        self.y = np.round(found[:count], 3)

    def _terms(self) -> Iterator[tuple[int, float, int, float, float]]:
        for bundles in self.bundles:
            for bundle in bundles:
                if not bundle.left:
                    first, side = bundle.right[0], "right"
                else:
                    first, side = bundle.left[0], "left"
                start = self._offset(first, side)
                for pin in bundle.right:
                    if pin is not first:
                        weight = self._weight(first, pin, len(bundle.right))
                        weight *= 0.1 if side == "right" else 1.0
                        yield first.slot, start, pin.slot, self._offset(pin, "right"), weight
                for pin in bundle.left[1:]:
                    yield first.slot, start, pin.slot, 0.0, 0.1

    def _weight(self, a: _Pin, b: _Pin, fan: int) -> float:
        """Return how much it matters that a wire is straight: most for long ones, then chains."""
        from_cell, to_cell = self.slots[a.slot].cell, self.slots[b.slot].cell
        if self.slots[a.slot].backward and not self.slots[b.slot].backward:
            return 0.1
        if from_cell < 0 and to_cell < 0:
            return 6.0
        if from_cell < 0 or to_cell < 0:
            return 3.0 if fan == 1 else 1.5
        alone = len(self.cells[to_cell].inputs) == 1
        middle = self.cells[to_cell].spots
        main = alone or middle is None or self.inputs[to_cell][b.port] == middle[1]
        return (4.0 if main else 1.5) / (1.0 if fan == 1 else 1.6) + (0.2 if b.port == 0 else 0.0)

    # Wires.

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

    def _height_of(self, pin: _Pin, side: str) -> float:
        return round(float(self.y[pin.slot]) + self._offset(pin, side), 3)

    def _wire(self, link: Link, corners: list[Point], tracks: dict) -> list[Point]:  # type: ignore[type-arg]
        net = (link.source, link.output)
        source, target = self.cells[link.source], corners[link.target]
        x, y = corners[link.source]
        points = [(x + source.width, round(y + source.outputs[link.output], 3))]
        end = (target[0], self._height_of(_Pin(link.target, link.input), "right"))
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

    def _passing(self, pins: list[_Pin]) -> float:
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


class _Tally:
    """Counts the crossings in a channel for any order of the columns beside it."""

    def __init__(self, level: _Level, bundles: Sequence[_Bundle]) -> None:
        pins: list[tuple[int, float]] = []
        across: list[tuple[int, int]] = []
        turns: list[tuple[int, int, bool]] = []
        on_left: list[bool] = []
        for bundle in bundles:
            first: dict[str, int] = {}
            for side, group in (("left", bundle.left), ("right", bundle.right)):
                first[side] = len(pins)
                pins += [(pin.slot, level._inside(pin, side)) for pin in group]
                on_left += [side == "left"] * len(group)
                back = [n for n, pin in enumerate(group) if level.slots[pin.slot].backward]
                for n in range(len(group)):
                    if back and n != back[0]:
                        turns.append((first[side] + back[0], first[side] + n, side == "left"))
            if bundle.left:
                across += [(first["left"], first["right"] + n) for n in range(len(bundle.right))]
        self.slots = np.array([slot for slot, _ in pins], dtype=int)
        self.inside = np.array([inside for _, inside in pins])
        self.across = np.array(across, dtype=int).reshape(-1, 2)
        self.turns = np.array([turn[:2] for turn in turns], dtype=int).reshape(-1, 2)
        self.same_side = np.equal.outer([turn[2] for turn in turns], on_left)

    def cost(self, row: npt.NDArray[np.float64]) -> float:
        """Return the number of crossings, and a little for long turns and for turns above.

        Wires that turn back cross those that leave between their ends.
        """
        if not self.slots.size:
            return 0.0
        places = row[self.slots] + self.inside
        x, y = places[self.across[:, 0]], places[self.across[:, 1]]
        total = np.count_nonzero((x[:, None] - x) * (y[:, None] - y) < -1e-12) / 2
        if self.turns.size:
            a, b = places[self.turns[:, 0]], places[self.turns[:, 1]]
            low, high = np.minimum(a, b)[:, None], np.maximum(a, b)[:, None]
            total += np.count_nonzero(self.same_side & (low < places) & (places < high))
            total += float(0.06 * np.abs(a - b).sum() + 0.1 * np.count_nonzero(a < b))
        return float(total)


def assign_columns(cells: Sequence[Cell], links: Sequence[Link]) -> list[int]:
    """Return the column of each cell: one further right than all that feeds it, cut loops apart."""
    rank = rank_cells(len(cells), links)
    forward = [link for link in links if rank[link.source] < rank[link.target]]
    feeds: list[list[int]] = [[] for _ in cells]
    fed: list[list[Link]] = [[] for _ in cells]
    for link in forward:
        feeds[link.target].append(link.source)
        fed[link.source].append(link)
    first = int(any(cell.border == "left" for cell in cells))
    column = [0 if cell.border == "left" else first for cell in cells]
    order = sorted(range(len(cells)), key=lambda n: rank[n])
    for n in order:
        if cells[n].border != "left":
            column[n] = max([first, *(column[m] + 1 for m in feeds[n])])
    inner = [column[n] for n in order if cells[n].border != "right"]
    last = max(inner, default=0) + 1
    for n in order:
        if cells[n].border == "right":
            column[n] = last
    # Pull a cell that gives more wires than it takes towards what it feeds.
    for n in reversed(order):
        gives = len({link.output for link in fed[n]})
        if cells[n].border or not gives or len(feeds[n]) >= gives:
            continue
        column[n] = max(column[n], min(column[link.target] for link in fed[n]) - 1)
    used = sorted(set(column))
    return [used.index(c) for c in column]


def rank_cells(count: int, links: Sequence[Link]) -> list[int]:
    """Return an order of the cells in which the wires that run backward cost least in all."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    for link in links:
        known = graph.get_edge_data(link.source, link.target, {"cost": 0.0})["cost"]
        graph.add_edge(link.source, link.target, cost=known + link.cost)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    for component in sorted(nx.strongly_connected_components(graph), key=min):
        if len(component) > 1:
            graph.remove_edges_from(_cut_loops(graph, component))
    rank = [0] * count
    for place, n in enumerate(nx.lexicographical_topological_sort(graph)):
        rank[n] = place
    return rank


def _cut_loops(graph: nx.DiGraph, component: set[int]) -> list[tuple[int, int]]:
    """Return the cheapest edges that open every loop of a strongly connected component.

    A small integer program: of each loop at least one edge is cut. Loops that are still closed by a
    solution are added until there are none.
    """
    inside = graph.subgraph(component)
    edges = sorted(inside.edges)
    number = {edge: n for n, edge in enumerate(edges)}
    cost = np.array([_edge_cost(graph, component, edge) for edge in edges])
    loops: dict[frozenset[tuple[int, int]], None] = {}
    cut: list[tuple[int, int]] = []
    for _ in range(_MOST_ROUNDS):
        rest = nx.DiGraph(inside)
        rest.remove_edges_from(cut)
        closed = [c for c in nx.strongly_connected_components(rest) if len(c) > 1]
        if not closed:
            return cut
        for ring in sorted(closed, key=min):
            for a, b in sorted(rest.subgraph(ring).edges):
                way = nx.shortest_path(rest, b, a)
                loops[frozenset([(a, b), *zip(way, way[1:], strict=False)])] = None
        table = np.array([[edge in loop for edge in edges] for loop in loops], dtype=float)
        found = milp(
            cost,
            constraints=LinearConstraint(table, lb=1.0),
            integrality=np.ones(len(edges)),
            bounds=(0, 1),
        )
        cut = [edge for edge in edges if found.x[number[edge]] > 0.5]
    # Too tangled for a good answer: let everything run in the order in which it was added.
    return [(a, b) for a, b in edges if a > b]


def _edge_cost(graph: nx.DiGraph, component: set[int], edge: tuple[int, int]) -> float:
    """Return the cost of a cut: less where a loop is entered or left, and from later to earlier."""
    a, b = edge
    cost = float(graph.edges[edge]["cost"])
    if any(n not in component for n in graph.predecessors(b)):
        cost *= 0.7
    if any(n not in component for n in graph.successors(a)):
        cost *= 0.9
    return cost - 1e-3 * (a - b) / graph.number_of_nodes()


def _parts(count: int, links: Sequence[Link]) -> list[int]:
    """Number the connected parts of the level in the order of their first cells."""
    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from((link.source, link.target) for link in links)
    parts = [0] * count
    for k, part in enumerate(sorted(nx.connected_components(graph), key=min)):
        for n in part:
            parts[n] = k
    return parts
