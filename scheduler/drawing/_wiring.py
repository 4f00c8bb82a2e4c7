"""Routing wires in the channel between two columns: one vertical track for each, none overlapping.

A piece of wire joins ends at given heights on the left and the right border of the channel by a
vertical trunk. Where one piece has an end on the left at the height of another one's end on the
right, its trunk must stand further left, or the two would lie upon each other. Rings of such
demands are opened by giving one piece two trunks with a bridge between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import networkx as nx

Point = tuple[float, float]

_PITCH = 9.0
_LEFT, _RIGHT = 13.0, 15.0
_NARROWEST = 30.0
_NEAR = 5.0
"""Parallel wires closer than this would look like one."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Heights at which a wire meets the channel's borders."""

    left: list[float]
    right: list[float]


@dataclass(slots=True)
class _Trunk:
    """A vertical line with its ends on both sides."""

    left: list[float]
    right: list[float]
    piece: int
    track: int = 0
    x: float = 0.0

    @property
    def low(self) -> float:
        return min(self.left + self.right)

    @property
    def high(self) -> float:
        return max(self.left + self.right)


@dataclass(slots=True)
class Route:
    """How a piece runs through its channel, x measured from the channel's left border."""

    trunks: list[_Trunk] = field(default_factory=list)
    bridge: float = 0.0

    @property
    def dots(self) -> list[Point]:
        """Where three or four wires meet."""
        found = []
        for trunk in self.trunks:
            for y in sorted({*trunk.left, *trunk.right}):
                ways = (y in trunk.left) + (y in trunk.right) + (y > trunk.low) + (y < trunk.high)
                if ways > 2:
                    found.append((trunk.x, y))
        return found

    def cross(self, left: float, right: float) -> list[Point]:
        """Return the way from height `left` on the left border to `right` on the other."""
        if not self.trunks:
            return []
        heights = [left, self.bridge, right] if len(self.trunks) == 2 else [left, right]
        way = []
        for n, trunk in enumerate(self.trunks):
            way += [(trunk.x, heights[n]), (trunk.x, heights[n + 1])]
        return way

    def turn(self, start: float, end: float, side: str) -> list[Point]:
        """Return the way between two heights on the same border."""
        if not self.trunks:
            return []
        x = self.trunks[0 if side == "left" else -1].x
        return [(x, start), (x, end)]


@dataclass(frozen=True, slots=True)
class Channel:
    """A routed channel: its width and a route for each piece."""

    width: float
    routes: list[Route]


def route_channel(pieces: Sequence[Piece]) -> Channel:
    """Give every piece that is not straight its trunk."""
    routes = [Route() for _ in pieces]
    trunks = []
    for n, piece in enumerate(pieces):
        if len({*piece.left, *piece.right}) > 1:
            trunks.append(_Trunk(sorted(set(piece.left)), sorted(set(piece.right)), n))
    if not trunks:
        return Channel(_NARROWEST, routes)
    taken = {y for piece in pieces for y in (*piece.left, *piece.right)}
    before = _find_demands(trunks)
    while not nx.is_directed_acyclic_graph(before):
        ring = max(nx.strongly_connected_components(before), key=lambda c: (len(c), -min(c)))
        _split(trunks, min(ring), routes, taken)
        before = _find_demands(trunks)
    _add_wishes(before, trunks)
    used = _assign_tracks(before, trunks)
    width = max(_NARROWEST, _LEFT + _PITCH * (used - 1) + _RIGHT)
    start = _LEFT + (width - _LEFT - _RIGHT - _PITCH * (used - 1)) / 2
    for trunk in trunks:
        trunk.x = start + _PITCH * trunk.track
        routes[trunk.piece].trunks.append(trunk)
    for route in routes:
        route.trunks.sort(key=lambda trunk: trunk.x)
    return Channel(width, routes)


def simplify(points: Sequence[Point]) -> list[Point]:
    """Drop points that repeat or lie on a straight line between their neighbors."""
    kept: list[Point] = []
    for point in points:
        if kept and abs(kept[-1][0] - point[0]) + abs(kept[-1][1] - point[1]) < 1e-6:
            continue
        if len(kept) > 1:
            (ax, ay), (bx, by) = kept[-2:]
            level = abs(ay - by) < 1e-6 and abs(by - point[1]) < 1e-6
            upright = abs(ax - bx) < 1e-6 and abs(bx - point[0]) < 1e-6
            if level or upright:
                kept.pop()
        kept.append(point)
    return kept


def _find_demands(trunks: list[_Trunk]) -> nx.DiGraph:
    """Return the graph of trunks, with an edge from one that must stand further left."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(trunks)))
    for a, first in enumerate(trunks):
        for b, second in enumerate(trunks):
            if a == b:
                continue
            if first.piece == second.piece:
                # Two halves: the second was added later.
                if a < b:
                    graph.add_edge(a, b)
            elif any(abs(y - z) < _NEAR for y in first.left for z in second.right):
                graph.add_edge(a, b)
    return graph


def _split(trunks: list[_Trunk], number: int, routes: list[Route], taken: set[float]) -> None:
    """Replace a trunk by two, joined at a height where no other wire is."""
    old = trunks[number]
    middle = (old.low + old.high) / 2
    bridge = middle
    for step in range(1000):
        bridge = middle + (step + 1) // 2 * 2.5 * (-1) ** step
        if all(abs(bridge - y) >= _NEAR for y in taken):
            break
    taken.add(bridge)
    routes[old.piece].bridge = bridge
    trunks[number] = _Trunk(old.left, [bridge], old.piece)
    trunks.append(_Trunk([bridge], old.right, old.piece))


def _add_wishes(before: nx.DiGraph, trunks: list[_Trunk]) -> None:
    """Order further pairs so that fewer wires cross, the most useful first."""
    wishes = []
    for a in range(len(trunks)):
        for b in range(a + 1, len(trunks)):
            saved = _crossings(trunks[b], trunks[a]) - _crossings(trunks[a], trunks[b])
            if saved:
                wishes.append((-abs(saved), *((a, b) if saved > 0 else (b, a))))
    for _, a, b in sorted(wishes):
        if not nx.has_path(before, b, a):
            before.add_edge(a, b)


def _crossings(first: _Trunk, second: _Trunk) -> int:
    """Count crossings if `first` stands further left."""
    return sum(second.low < y < second.high for y in first.right) + sum(
        first.low < y < first.high for y in second.left
    )


def _assign_tracks(before: nx.DiGraph, trunks: list[_Trunk]) -> int:
    """Give each trunk the first track where none before it is and none overlaps it."""
    used: list[list[_Trunk]] = []
    for n in nx.lexicographical_topological_sort(before, key=lambda n: (trunks[n].low, n)):
        trunk = trunks[n]
        track = max((trunks[m].track + 1 for m in before.predecessors(n)), default=0)
        while track < len(used) and any(
            trunk.low < other.high + _PITCH and other.low < trunk.high + _PITCH
            for other in used[track]
        ):
            track += 1
        while track >= len(used):
            used.append([])
        trunk.track = track
        used[track].append(trunk)
    return len(used)
