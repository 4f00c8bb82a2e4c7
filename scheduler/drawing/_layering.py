"""Columns: which cell stands how far to the right, and which wires run back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import networkx as nx
import numpy as np

from ._program import Array, minimize

_MOST_ROUNDS = 60
"""Of the search for the best cuts; ordinary diagrams need two or three."""


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
    # Pull a cell that gives more wires than it takes toward what it feeds.
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
                loops[frozenset([(a, b), *itertools.pairwise(way)])] = None
        found = _choose_edges(cost, [[number[edge] for edge in sorted(loop)] for loop in loops])
        cut = [edge for edge in edges if found[number[edge]] > 0.5]
    # Too tangled for a good answer: let everything run in the order in which it was added.
    return [(a, b) for a, b in edges if a > b]


def _choose_edges(cost: Array, loops: Sequence[Sequence[int]]) -> Array:
    """Return 1 for each edge of the cheapest set that has one of every loop, 0 for the others."""
    found = minimize(cost, [[(n, -1.0) for n in loop] for loop in loops], [-1.0] * len(loops))
    if np.allclose(found, np.round(found), atol=1e-6):
        return found  # as nearly always: it happens to be whole
    from scipy.optimize import LinearConstraint, milp

    table = np.zeros((len(loops), cost.size))
    for line, loop in zip(table, loops, strict=True):
        line[loop] = 1.0
    chosen: Array = milp(
        cost,
        constraints=LinearConstraint(table, lb=1.0),
        integrality=np.ones(cost.size),
        bounds=(0, 1),
    ).x
    return chosen


def _edge_cost(graph: nx.DiGraph, component: set[int], edge: tuple[int, int]) -> float:
    """Return the cost of a cut: less where a loop is entered or left, and from later to earlier."""
    a, b = edge
    cost = float(graph.edges[edge]["cost"])
    if any(n not in component for n in graph.predecessors(b)):
        cost *= 0.7
    if any(n not in component for n in graph.successors(a)):
        cost *= 0.9
    return cost - 1e-3 * (a - b) / len(graph)
