"""In which order outputs are computed.

The graph is at port level: an edge leads from an output to every output that depends on it by
direct feedthrough. A block with several outputs that is in a loop between blocks, but not in a loop
between ports, is called more than once, since outputs are pure. The same holds for a block with an
output that feeds another of its outputs. The remaining loops are algebraic loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any

from ._flatten import FlatDiagram
from ._rates import Ticks

Node = tuple[int, int]
"""(block, output port); a block without outputs is (block, -1), a guard (-1, guard)."""


@dataclass(frozen=True, slots=True)
class Loop:
    """An algebraic loop: calls in order, and the outputs whose values are guessed."""

    body: tuple[int, ...]
    tears: tuple[Node, ...]
    cycle: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """Entries ``("call", block)``, ``("loop", loop)``, ``("guard", guard)``, in execution order."""

    entries: tuple[tuple[str, int], ...] = ()
    loops: tuple[Loop, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class _Draft:
    """An `Order` that is being made."""

    entries: list[tuple[str, int]] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def order_outputs(flat: FlatDiagram, rates: Sequence[Ticks], widths: list[list[int]]) -> Order:
    """Order the blocks of `flat`; `widths` are those of each block's outputs."""
    draft = _draft_order(flat, rates, widths)
    return Order(tuple(draft.entries), tuple(draft.loops), tuple(draft.problems))


def _draft_order(flat: FlatDiagram, rates: Sequence[Ticks], widths: list[list[int]]) -> _Draft:
    order = _Draft()
    successors = _find_successors(flat)

    def key(component: Iterable[int]) -> tuple[int, int, int]:
        first = min(component)
        return (rates[first].period, rates[first].offset, first) if first >= 0 else (-2, 0, first)

    ordered = _sort(successors, lambda number: key((number,)))
    if len(ordered) == len(successors):
        for number in ordered:
            order.entries.append(("call", number) if number >= 0 else ("guard", -1 - number))
        return order

    import networkx as nx  # takes a third of the start of a process, and most diagrams need none

    graph = nx.DiGraph(successors)
    components = list(nx.strongly_connected_components(graph))
    strongly_connected = {
        n: i
        for i, component in enumerate(components)
        if len(component) > 1 or graph.has_edge(m := next(iter(component)), m)
        for n in component
    }
    condensed = nx.condensation(graph, components)
    members = condensed.nodes.data("members")
    for component_number in nx.lexicographical_topological_sort(
        condensed, key=lambda n: key(members[n])
    ):
        component = members[component_number]
        first = min(component)
        if first not in strongly_connected:
            order.entries.append(("call", first) if first >= 0 else ("guard", -1 - first))
        else:
            _order_component(flat, component, widths, order)
    return order


def _find_successors(flat: FlatDiagram) -> dict[int, dict[int, Any]]:
    """Return for each block those that need its outputs first; guards are below zero.

    Dictionaries without values keep what is added in order.
    """
    numbers = [*range(len(flat.blocks)), *(-1 - number for number in range(len(flat.guards)))]
    graph: dict[int, dict[int, Any]] = {number: {} for number in numbers}
    for number, item in enumerate(flat.blocks):
        needed = _needed_inputs(item.block)
        for n in needed:
            source = item.sources[n] if n < len(item.sources) else None
            if source is not None and source.block >= 0:
                graph[source.block][number] = {}
        for guard in {item.guard, item.shows_guard}:
            if guard >= 0:
                graph[-1 - guard][number] = {}
    for number, conditional in enumerate(flat.guards):
        if conditional.control is not None and conditional.control.block >= 0:
            graph[conditional.control.block][-1 - number] = {}
        if conditional.parent >= 0:
            graph[-1 - conditional.parent][-1 - number] = {}
    return graph


def _sort(successors: dict[int, dict[int, Any]], key: Callable[[int], Any]) -> list[int]:
    """Return the nodes in topological order, of those possible next always the one of the least
    key; without those in loops and behind them.
    """
    waits = dict.fromkeys(successors, 0)
    for following in successors.values():
        for node in following:
            waits[node] += 1
    ready = [(key(node), node) for node, count in waits.items() if count == 0]
    heapify(ready)
    ordered = []
    while ready:
        _, node = heappop(ready)
        ordered.append(node)
        for other in successors[node]:
            waits[other] -= 1
            if waits[other] == 0:
                heappush(ready, (key(other), other))
    return ordered


def _needed_inputs(block: Any) -> set[int]:
    return {n for inputs in block.feedthrough for n in inputs}


def _order_component(
    flat: FlatDiagram, component: set[int], widths: list[list[int]], order: _Draft
) -> None:
    """Order one strongly connected component of blocks at port level, finding its true loops."""
    import networkx as nx

    ports = nx.DiGraph()
    for number in sorted(component):
        if number < 0:
            guard = flat.guards[-1 - number]
            ports.add_node((-1, -1 - number))
            if guard.parent >= 0 and -1 - guard.parent in component:
                ports.add_edge((-1, guard.parent), (-1, -1 - number))
            control = guard.control
            if control is not None and control.block in component:
                ports.add_edge((control.block, control.port), (-1, -1 - number))
            continue
        item = flat.blocks[number]
        for output, inputs in enumerate(item.block.feedthrough):
            ports.add_node((number, output))
            for n in inputs:
                source = item.sources[n] if n < len(item.sources) else None
                if source is not None and source.block in component:
                    ports.add_edge((source.block, source.port), (number, output))
            for guard_number in {item.guard, item.shows_guard}:
                if guard_number >= 0 and -1 - guard_number in component:
                    ports.add_edge((-1, guard_number), (number, output))
    condensed = nx.condensation(ports)
    members = condensed.nodes.data("members")
    called: list[Node] = []  # the outputs that the last call is for
    for n in nx.lexicographical_topological_sort(condensed, key=lambda c: min(members[c])):
        nodes: set[Node] = members[n]
        first = min(nodes)
        if len(nodes) == 1 and not ports.has_edge(first, first):
            if _needs_a_call(ports, called, first):
                entry = ("guard", first[1]) if first[0] < 0 else ("call", first[0])
                order.entries.append(entry)
            continue
        called.clear()
        guards = [node[1] for node in nodes if node[0] < 0]
        if guards:
            path = flat.guards[guards[0]].path
            port = flat.guards[guards[0]].subsystem.control
            order.problems.append(
                f"the {port} signal of subsystem `{path}` depends on its own output in the same "
                f"tick. Put a UnitDelay before `{path}.{port}`."
            )
            continue
        order.entries.append(("loop", len(order.loops)))
        order.loops.append(_tear(ports.subgraph(nodes).copy(), widths))


def _needs_a_call(graph: Any, called: list[Node], node: Node) -> bool:
    """Return whether an output needs another call, and update the outputs of the last call."""
    same = bool(called) and called[0][0] == node[0] >= 0
    if same and not any(graph.has_edge(before, node) for before in called):
        called.append(node)
        return False
    called[:] = [node]
    return True


def _tear(component: Any, widths: list[list[int]]) -> Loop:
    """Choose blocks whose outputs, once guessed, leave no loop; order the rest."""
    import networkx as nx

    cycle = [edge[0] for edge in nx.find_cycle(component, min(component.nodes))]
    remaining = component.copy()
    tears: list[Node] = []
    while True:
        components = [
            c
            for c in nx.strongly_connected_components(remaining)
            if len(c) > 1 or remaining.has_edge(m := next(iter(c)), m)
        ]
        if not components:
            break
        for nodes in components:
            # All outputs of a block are cut together, so that one call closes them all.
            def cost(block: int, nodes: set[Node] = nodes) -> tuple[float, int]:
                own = [node for node in nodes if node[0] == block]
                degree = sum(remaining.in_degree(v) * remaining.out_degree(v) for v in own)
                return (sum(widths[v[0]][v[1]] for v in own) - 1e-3 * degree, block)

            best = min({node[0] for node in nodes}, key=cost)
            for node in [node for node in component.nodes if node[0] == best]:
                tears.append(node)
                remaining.remove_edges_from(list(remaining.out_edges(node)))
    torn = {node[0] for node in tears}
    # A torn block is called once, after all that it needs; its outputs feed nobody in this pass.
    calls = nx.DiGraph()
    for node in remaining.nodes:
        calls.add_node(node if node[0] not in torn else (node[0], -1))
    for a, b in remaining.edges:
        calls.add_edge(a, b if b[0] not in torn else (b[0], -1))
    called: list[Node] = []
    body = [
        node[0]
        for node in nx.lexicographical_topological_sort(calls)
        if _needs_a_call(calls, called, node)
    ]
    return Loop(tuple(body), tuple(sorted(tears)), tuple(cycle))


def find_minor_blocks(
    flat: FlatDiagram, rates: Sequence[Ticks], with_derivatives: set[int], loops: Sequence[Loop]
) -> set[int]:
    """Return the continuous blocks whose outputs reach a derivative: all that minor steps call."""
    return find_sources_of(flat, rates, set(), with_derivatives, loops)


def find_sources_of(
    flat: FlatDiagram,
    rates: Sequence[Ticks],
    outputs_of: set[int],
    inputs_of: set[int],
    loops: Sequence[Loop],
) -> set[int]:
    """Return the continuous blocks to call for some outputs, and for all inputs of some blocks."""
    needed: set[int] = set()
    waiting: list[int] = []

    def need(number: int) -> None:
        if number >= 0 and number not in needed and rates[number].period == 0:
            needed.add(number)
            waiting.append(number)

    def need_sources(number: int, inputs: Iterable[int]) -> None:
        for n in inputs:
            source = flat.blocks[number].sources[n]
            if source is not None:
                need(source.block)

    in_loop = {number: loop for loop in loops for number in loop.body}
    for number in outputs_of:
        need(number)
    for number in inputs_of:
        need_sources(number, range(len(flat.blocks[number].sources)))
    while waiting:
        number = waiting.pop()
        need_sources(number, sorted(_needed_inputs(flat.blocks[number].block)))
        if number in in_loop:
            for other in in_loop[number].body:
                need(other)
    return needed
