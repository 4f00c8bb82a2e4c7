"""Nets: every wire as slots in the columns that it passes and bundles in the channels between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import networkx as nx

from ._layering import Cell, Link, assign_columns


@dataclass(frozen=True, slots=True)
class Slot:
    """Something with a place in a column: a cell, or a passing wire if `cell` is -1."""

    number: int
    column: int
    height: float
    cell: int = -1
    part: int = 0
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Pin:
    """An end of a wire in a channel: output or input `port` of a cell, or a passing wire."""

    slot: int
    port: int = 0


@dataclass(slots=True)
class Bundle:
    """The part of a net in one channel: what it joins on the left and on the right."""

    net: tuple[int, int]
    left: list[Pin] = field(default_factory=list)
    right: list[Pin] = field(default_factory=list)


class Level:
    """Cells and wires in columns: what is ordered, placed and routed.

    Attributes
    ----------
    columns
        Numbers of slots from top to bottom; those of the cells are the cells' own.
    bundles
        For each channel, left of column 0, 1, … and right of the last, the wires in it.
    inputs
        Heights of the inputs of each cell, once those that are free have been chosen.
    """

    def __init__(self, cells: Sequence[Cell], links: Sequence[Link]) -> None:
        self.cells, self.links = cells, links
        self.inputs = [list(cell.inputs) for cell in cells]
        self.column_of = assign_columns(cells, links)
        self.columns: list[list[int]] = [[] for _ in range(max(self.column_of, default=0) + 1)]
        self.slots: list[Slot] = []
        parts = _parts(len(cells), links)
        for number, cell in enumerate(cells):
            self._add_slot(self.column_of[number], cell.height, number, parts[number])
        self.bundles: list[list[Bundle]] = [[] for _ in range(len(self.columns) + 1)]
        self._add_nets()
        self._guess_spots()

    def _add_slot(
        self, column: int, height: float, cell: int, part: int, backward: bool = False
    ) -> int:
        number = len(self.slots)
        self.slots.append(Slot(number, column, height, cell, part, backward))
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
            ends: dict[int, list[Pin]] = {}
            for link in links:
                ends.setdefault(self.column_of[link.target], []).append(
                    Pin(link.target, link.input)
                )
            bundle = Bundle(net, [Pin(source, output)])
            self.bundles[start + 1].append(bundle)
            if min(ends) <= start:
                back = Pin(self._add_slot(start, 0.0, -1, part, backward=True))
                bundle.left.append(back)
                for column in range(start, min(ends) - 1, -1):
                    turn = Bundle(net, [], [back, *ends.get(column, [])])
                    self.bundles[column].append(turn)
                    if column > min(ends):
                        back = Pin(self._add_slot(column - 1, 0.0, -1, part, backward=True))
                        turn.left.append(back)
            for column in range(start + 1, max(ends) + 1):
                bundle.right += ends.get(column, [])
                if column < max(ends):
                    passing = Pin(self._add_slot(column, 0.0, -1, part))
                    bundle.right.append(passing)
                    bundle = Bundle(net, [passing])
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

    def offset(self, pin: Pin, side: str) -> float:
        """Return how far below its slot's top a wire's end is; outputs are on a channel's left."""
        cell = self.slots[pin.slot].cell
        if cell < 0:
            return 0.0
        return self.cells[cell].outputs[pin.port] if side == "left" else self.inputs[cell][pin.port]


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
