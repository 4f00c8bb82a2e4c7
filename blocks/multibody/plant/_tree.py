"""From a mechanism to a tree of elementary joints and the closures that remain.

A breadth-first tree from the ground takes one joint for each body; every other joint is cut and
becomes rows of constraints. A tree joint is a short chain of elementary ones (turn about z, slide
along z, ball), each on a separate link; only the last link of a chain carries the body. The
tables are those of ``multibody.h``.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import networkx as nx

from ....errors import DiagramError
from ..joints._joint import BALL, SLIDE, TURN, WELD, Chain, Joint
from ..system._bodies import Body

if TYPE_CHECKING:
    from ..system._system import System

SPEEDS = {WELD: 0, TURN: 1, SLIDE: 1, BALL: 3}
COORDINATES = {WELD: 0, TURN: 1, SLIDE: 1, BALL: 4}

FREE = Chain(((SLIDE, 1), (SLIDE, 1), (SLIDE, 1), (BALL, 0)))
FREE_PLANAR = Chain(((SLIDE, 1), (SLIDE, 1), (TURN, 1)))


@dataclass(frozen=True, slots=True)
class Link:
    """One elementary joint and what it moves."""

    parent: int
    type: int
    q: int
    v: int
    body: Body | None
    turn: int
    base: tuple[Joint, Literal["i", "j"]] | None
    tip: tuple[Joint, Literal["i", "j"]] | None
    end_turn: int


@dataclass(frozen=True, slots=True)
class TreeCoordinate:
    """Where a joint's coordinate lies in the tree: value = sign · q + offset."""

    link: int
    q: int
    v: int
    sign: int
    offset: float


@dataclass(slots=True)
class Tree:
    """The links, where each body is, what was cut, and where joint coordinates lie."""

    links: list[Link] = field(default_factory=list)
    link_of: dict[Body, int] = field(default_factory=dict)
    cuts: list[Joint] = field(default_factory=list)
    tree_joints: dict[str, int] = field(default_factory=dict)
    """Name of a tree joint → its last link."""
    coordinates: dict[tuple[str, int], TreeCoordinate] = field(default_factory=dict)
    nq: int = 0
    nv: int = 0


def grow_tree(system: System) -> Tree:
    """Choose the tree and number its links outwards from the ground."""
    # Closures are distances, which leave five freedoms, and joints at markers that move.
    usable = [
        joint
        for joint in system.joints
        if joint.type.chains and not joint.first.motion and not joint.second.motion
    ]
    driven = _driven_joints(system, usable)
    wanted = _wanted_joints(system)
    pivots = _pivoted_joints(system)
    neighbors: dict[Body, list[tuple[float, int, Joint, Body]]] = {system.ground: []}
    for body in system.bodies:
        neighbors[body] = []
    for number, joint in enumerate(usable):
        cost = 1e-6 if joint.name in pivots else 1e-3 if joint.name in wanted else 1.0
        a, b = joint.first.body, joint.second.body
        neighbors[a].append((cost, number, joint, b))
        neighbors[b].append((cost, number, joint, a))
    tree = Tree()
    reached: dict[Body, float] = {}
    # Bodies that no joint reaches hang on the ground by a free one.
    queue: list[tuple[float, int, float, Joint, Body, Body]] = []

    def visit(body: Body, distance: float) -> None:
        reached[body] = distance
        for cost, number, joint, other in neighbors[body]:
            if other not in reached:
                order = -1.0 if joint.name in driven else distance + cost
                heapq.heappush(queue, (order, number, distance + cost, joint, body, other))

    def empty_queue() -> None:
        while queue:
            _, _, distance, joint, parent, child = heapq.heappop(queue)
            if child not in reached:
                _add_chain(tree, system, joint, parent, child)
                visit(child, distance)

    visit(system.ground, 0.0)
    empty_queue()
    for body in system.bodies:
        if body not in reached:
            _add_chain(tree, system, None, system.ground, body)
            visit(body, 1.0)
            empty_queue()
    if tree.nv == 0:
        raise DiagramError(
            f"nothing in `{system.name}` can move: every body is fixed to the ground. Give one of "
            f"them a joint that moves."
        )
    tree.cuts = [joint for joint in system.joints if joint.name not in tree.tree_joints]
    return tree


def _driven_joints(system: System, usable: list[Joint]) -> set[str]:
    """Names of joints with drivers that the tree takes first: there a driver is one number.

    It cannot take those at markers that move by a law, nor all of a loop; the coordinates of these
    are measured between their markers.
    """
    groups = nx.utils.UnionFind([system.ground, *system.bodies])
    driven: set[str] = set()
    for driver in system.drivers:
        joint = driver.joint
        if joint.name in driven or joint not in usable:
            continue
        if groups[joint.first.body] != groups[joint.second.body]:
            groups.union(joint.first.body, joint.second.body)
            driven.add(joint.name)
    return driven


def _wanted_joints(system: System) -> set[str]:
    """Names of joints with efforts on a coordinate: the tree has it cheaper than a closure."""
    wanted = {item.acts_on.name for item in system.elements if item.acts_on}
    ties = (*system.couplings, *system.general_constraints)
    return wanted | {term.joint.name for item in ties for term in item.terms}


def _pivoted_joints(system: System) -> set[str]:
    """Names of universal joints that rub: in the tree the moments on their pivots are known."""
    joints = (item.follows_reaction_of for item in system.elements)
    return {joint.name for joint in joints if joint and joint.has_pivots}


def _add_chain(tree: Tree, system: System, joint: Joint | None, parent: Body, child: Body) -> None:
    parent_link = tree.link_of.get(parent, -1)
    if joint is None:
        chain = FREE_PLANAR if system.planar else FREE
        base = tip = None
    else:
        forward = joint.first.body is parent
        assert joint.type.chains is not None
        chain = joint.type.chains[0 if forward else 1]
        base = (joint, "i" if forward else "j")
        tip = (joint, "j" if forward else "i")
    first = len(tree.links)
    for n, (kind, turn) in enumerate(chain.steps):
        last = n + 1 == len(chain.steps)
        tree.links.append(
            Link(
                parent_link if n == 0 else len(tree.links) - 1,
                kind,
                tree.nq,
                tree.nv,
                child if last else None,
                turn,
                base if n == 0 else None,  # type: ignore[arg-type]
                tip if last else None,  # type: ignore[arg-type]
                chain.end if last else 0,
            )
        )
        tree.nq += COORDINATES[kind]
        tree.nv += SPEEDS[kind]
    tree.link_of[child] = len(tree.links) - 1
    if joint is None:
        return
    tree.tree_joints[joint.name] = len(tree.links) - 1
    for number, (step, sign, offset) in enumerate(chain.coordinates):
        link = tree.links[first + step]
        tree.coordinates[joint.name, number] = TreeCoordinate(
            first + step, link.q, link.v, sign, offset
        )


@dataclass(slots=True)
class Pattern:
    """The pattern of K and of its factor, in the order of elimination."""

    permutation: list[int]
    row_start: list[int]
    column_of: list[int]
    slot_of: list[int]
    column_start: list[int]
    row_of: list[int]
    entries: dict[tuple[int, int], int]

    def slot(self, a: int, b: int) -> int:
        """Return where entry (a, b) of K lies: -1 - k on the diagonal, else among the rows."""
        row, column = self.permutation[a], self.permutation[b]
        if row == column:
            return -1 - row
        return self.entries[max(row, column), min(row, column)]


def find_pattern(nv: int, cliques: list[list[int]]) -> Pattern:
    """Order the unknowns by least degree and work out where the factor fills in."""
    neighbors: list[set[int]] = [set() for _ in range(nv)]
    for clique in cliques:
        members = set(clique)
        for v in clique:
            neighbors[v] |= members
    for v in range(nv):
        neighbors[v].discard(v)
    order: list[int] = []
    fill: list[set[int]] = []
    heap = [(len(neighbors[v]), v) for v in range(nv)]
    heapq.heapify(heap)
    done = [False] * nv
    while heap:
        degree, v = heapq.heappop(heap)
        if done[v] or degree != len(neighbors[v]):
            continue
        if degree == nv - len(order) - 1:
            # All that remain are tied to each other: no order is better than another.
            rest = [w for w in range(nv) if not done[w]]
            order += rest
            fill += [set(rest[n + 1 :]) for n in range(len(rest))]
            break
        done[v] = True
        order.append(v)
        later = neighbors[v]
        fill.append(set(later))
        for w in later:
            neighbors[w] |= later
            neighbors[w] -= {v, w}
            heapq.heappush(heap, (len(neighbors[w]), w))
    permutation = [0] * nv
    for position, v in enumerate(order):
        permutation[v] = position
    columns = [sorted(permutation[w] for w in members) for members in fill]
    column_start, row_of = [0], []
    for rows in columns:
        row_of += rows
        column_start.append(len(row_of))
    by_row: list[list[tuple[int, int]]] = [[] for _ in range(nv)]
    for column, rows in enumerate(columns):
        for k, row in enumerate(rows):
            by_row[row].append((column, column_start[column] + k))
    row_start: list[int] = [0]
    column_of: list[int] = []
    slot_of: list[int] = []
    entries = {}
    for row, items in enumerate(by_row):
        for column, slot in items:
            entries[row, column] = len(column_of)
            column_of.append(column)
            slot_of.append(slot)
        row_start.append(len(column_of))
    inverse = [0] * nv
    for v, position in enumerate(permutation):
        inverse[position] = v
    return Pattern(
        permutation + inverse, row_start, column_of, slot_of, column_start, row_of, entries
    )
