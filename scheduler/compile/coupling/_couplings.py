"""Couplings: which blocks with an internal solver exchange signals, and how they are advanced.

Nodes of the graph are these blocks and, as one more node, the continuous states of the diagram; an
edge leads from a node to one that reads a signal which depends on it at once, also through blocks
in between. The strongly connected components are the couplings. ``coupling.c`` runs them;
``docs/guides/co_simulation.md`` explains the methods.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

from ....blocks.core._block import NativeBlock, size_of
from ....blocks.core._units import parse_unit, same_dimension
from ....blocks.external._python import PythonBlock
from ....errors import DiagramError, name_list
from .._flatten import FlatDiagram, Source
from .._order import Order, find_minor_blocks
from .._port_types import ResolvedPorts
from .._rates import CONSTANT, EVERY_TICK, Ticks
from ._communication import find_groups, report_fixed_steps, report_no_coupling
from ._coupling_options import Coupling, CouplingWarning
from ._power_pairs import PowerPair, find_power_pairs

STATES = -1
"""The node of the diagram's continuous states."""
_TIME = -2
"""Marks a signal that changes with time alone."""
_HELD = -2
"""In place of the last member that a signal depends on: it keeps its value within a step."""
_LARGEST_SEARCH = 6
_LARGEST_UNKNOWNS = 512


@dataclass(slots=True)
class CoupledSignal:
    """A signal that members read; `last` is the position of the last member it depends on, -1 if
    it is in another coupling, or `_HELD`. `direct` is the same without what reaches it through the
    inputs of members: these can be extrapolated."""

    source: Source
    width: int
    last: int = -1
    direct: int = -1


@dataclass(slots=True)
class Member:
    """A block, or `STATES`, with its inputs as (port, number of the signal)."""

    node: int
    slopes: bool
    inputs: list[tuple[int, int]] = field(default_factory=list)
    carried: set[int] = field(default_factory=set)
    """Ports that the block integrates from their rates, which are connected too."""


@dataclass(slots=True)
class CoupledBond:
    """Two inputs whose product is a power, each as (position of the member, its input)."""

    name: str
    effort: tuple[int, int]
    flow: tuple[int, int]
    paths: tuple[str, str]
    is_place: bool = False
    """Whether the flow is given by a place, of which it is the rate."""
    factor: float = 1.0
    """From the product of the units to W, or J for a place."""
    declared: bool = True


@dataclass(slots=True)
class Exchange:
    """A power between two blocks that exchange held signals without being in a component."""

    pair: PowerPair
    members: tuple[str, ...]
    rate: Ticks


@dataclass(slots=True)
class Component:
    """Members that are advanced together, in this order."""

    how: Coupling
    members: list[Member]
    signals: list[CoupledSignal]
    calls: set[int]
    """The blocks whose outputs lead to the signals."""
    rolls_back: bool
    period: int
    takes_any_step: bool = True
    group: int = 0
    """Couplings of a group take the same adaptive communication steps; 0: base steps."""
    bonds: list[CoupledBond] = field(default_factory=list)

    @property
    def is_adaptive(self) -> bool:
        """Whether base steps are divided as the coupling tolerance of its group requires."""
        return self.group > 0

    @property
    def halvings(self) -> int:
        """How often a step that fails, or is not exact, may be halved."""
        fits = self.how.is_iterated and self.rolls_back and self.takes_any_step
        fits = fits or self.is_adaptive
        return self.how.halvings if fits else 0

    @property
    def element_count(self) -> int:
        return sum(signal.width for signal in self.signals)

    @property
    def extrapolated_count(self) -> int:
        """Elements that Gauss-Seidel has to extrapolate when a member reads them."""
        return sum(
            self.signals[s].width
            for position, member in enumerate(self.members)
            for _, s in member.inputs
            if self.signals[s].direct >= position
        )

    @property
    def is_sequential(self) -> bool:
        """Whether a member reads something that is known at the end of its step already."""
        return any(
            -1 <= self.signals[s].direct < position
            for position, member in enumerate(self.members)
            for _, s in member.inputs
        )

    @property
    def unknown_count(self) -> int:
        """Elements of signals that are read before all they depend on has been advanced."""
        return sum(self.signals[s].width for s in self._unknowns())

    def _unknowns(self) -> set[int]:
        return {
            s
            for position, member in enumerate(self.members)
            for _, s in member.inputs
            if self.signals[s].last >= position
        }


def find_couplings(
    flat: FlatDiagram,
    rates: Sequence[Ticks],
    order: Order,
    ports: ResolvedPorts,
    default: Coupling,
    estimate: bool,
    problems: list[str],
) -> tuple[list[Component], list[Exchange]]:
    """Return the couplings that need more than each block's internal solver, in the order to run
    them, and the powers of those that do not."""
    if not any(item.block.has_internal_solver for item in flat.blocks):
        _check_none(flat, problems)
        if default.is_adaptive:
            report_no_coupling()
        return [], []
    search = _Search(flat, rates, order, ports)
    chosen = _choose(flat, search, problems)
    found: list[Component] = []
    for group in sorted({search.group[n] for n in search.own}):
        found += search.find_components(group, default, chosen, estimate, problems)
    if default.is_adaptive and search.groups == 0 and not (search.has_fixed_steps or chosen):
        report_no_coupling()
    _place_bonds(flat, search, found, ports, problems)
    for component, pairs in search.pairs:
        _add_bonds(flat, component, pairs)
    return found, search.exchanges


def _check_none(flat: FlatDiagram, problems: list[str]) -> None:
    if flat.couplings or flat.bonds:
        problems.append(
            "couple and power_bond require blocks with an internal solver (FMUs, mechanisms with "
            "mode='internal'); the diagram has none."
        )


def _choose(flat: FlatDiagram, search: _Search, problems: list[str]) -> dict[int, Coupling]:
    """Return the settings of `couple` for each node."""
    chosen: dict[int, Coupling] = {}
    for coupling in flat.couplings:
        nodes: dict[int, int] = {}
        for number in coupling.blocks:
            item = flat.blocks[number]
            if number in search.own and item.guard >= 0:
                problems.append(
                    f"`{item.path}` is in a conditional subsystem, which may suspend it: it cannot "
                    f"be coupled. Remove it from couple(…)."
                )
            elif number in search.own:
                nodes[number] = number
            elif search.has_states(number):
                nodes[STATES] = number
            else:
                problems.append(
                    f"`{item.path}` ({item.block}) has neither an internal solver nor "
                    f"continuous states: remove it from couple(…); its outputs are computed in "
                    f"between."
                )
        groups = {search.group_of(node): number for node, number in nodes.items()}
        if len(groups) > 1:
            shown = [
                f"`{flat.blocks[number].path}` steps every {max(group.period, 1)} base steps"
                for group, number in groups.items()
            ]
            problems.append(
                f"couple requires blocks with the same period, but {', '.join(shown)}. Use one "
                f"period, or remove the slower blocks: signals between different periods are held."
            )
        for node in nodes:
            if chosen.setdefault(node, coupling.how) != coupling.how:
                problems.append(
                    f"`{search.name(node)}` is in two calls of couple(…) with different settings."
                )
    return chosen


class _Search:
    """Follows signals back to what they depend on within a step."""

    def __init__(
        self, flat: FlatDiagram, rates: Sequence[Ticks], order: Order, ports: ResolvedPorts
    ) -> None:
        self.flat, self.rates, self.order, self.ports = flat, rates, order, ports
        self.own = [n for n, item in enumerate(flat.blocks) if item.block.has_internal_solver]
        self.group = {n: rates[n] if rates[n].period > 1 else EVERY_TICK for n in self.own}
        self.pairs: list[tuple[Component, list[PowerPair]]] = []
        self.exchanges: list[Exchange] = []
        self.groups = 0
        self.has_fixed_steps = False
        self.held: set[int] = set()
        for loop in order.loops:  # a loop is solved as a whole, or held as a whole
            groups = {self.group[n] for n in loop.body if n in self.group}
            groups |= {EVERY_TICK for n in loop.body if self.has_states(n)}
            if len(groups) > 1 or not all(self._flows(n) for n in loop.body):
                self.held |= set(loop.body)

    def has_states(self, number: int) -> bool:
        block = self.flat.blocks[number].block
        if not isinstance(block, NativeBlock | PythonBlock):
            return False
        try:
            return size_of(block.states, self.ports.widths[number]) > 0
        except DiagramError:  # reported where sizes are laid out
            return False

    def name(self, node: int) -> str:
        return "states" if node == STATES else self.flat.blocks[node].path

    def group_of(self, node: int) -> Ticks:
        return EVERY_TICK if node == STATES else self.group[node]

    def _flows(self, number: int) -> bool:
        """Whether a block's outputs follow its inputs between ticks; sampled ones are held."""
        item = self.flat.blocks[number]
        if item.guard >= 0 or item.shows_guard >= 0 or self.rates[number] == CONSTANT:
            return False
        if item.block.has_internal_solver:
            return True
        return item.block.can_roll_back and item.rate.kind in ("inherited", "continuous")

    def trace(
        self, source: Source, group: Ticks, through: bool = True
    ) -> tuple[set[int], set[int]]:
        """Return the nodes that a signal depends on by direct feedthrough, and the blocks to call.

        Unless `through`, what reaches it through the inputs of a block with an internal solver is
        left out.
        """
        nodes: set[int] = set()
        calls: set[int] = set()
        seen: set[Source] = set()
        waiting = [source]
        while waiting:
            at = waiting.pop()
            if at in seen or at.block < 0 or at.block in self.held or not self._flows(at.block):
                continue
            seen.add(at)
            item = self.flat.blocks[at.block]
            if item.block.has_internal_solver:
                if self.group[at.block] != group:
                    continue
                nodes.add(at.block)
                if not through:
                    continue
            elif self.has_states(at.block):
                if group != EVERY_TICK:
                    continue
                nodes.add(STATES)
            elif item.rate.kind == "continuous":
                nodes.add(_TIME)
            calls.add(at.block)
            for n in item.block.feedthrough[at.port]:
                wire = item.sources[n] if n < len(item.sources) else None
                if wire is not None:
                    waiting.append(wire)
        return nodes, calls

    def inputs_of(self, node: int) -> Iterable[tuple[int, Source]]:
        """Return a node's inputs as (port, source); those of the states have no port."""
        if node != STATES:
            for n, source in enumerate(self.flat.blocks[node].sources):
                if source is not None:
                    yield n, source
            return
        owners = {n for n in range(len(self.flat.blocks)) if self.has_states(n)}
        minor = find_minor_blocks(self.flat, self.rates, owners, self.order.loops)
        sources: dict[Source, None] = {}
        for number in sorted(owners | minor):
            for source in self.flat.blocks[number].sources:
                # What is continuous is computed in minor steps.
                if source is None or source.block < 0 or self.rates[source.block].period == 0:
                    continue
                sources[source] = None
        for source in sources:
            yield -1, source

    def find_components(
        self,
        group: Ticks,
        default: Coupling,
        chosen: dict[int, Coupling],
        estimate: bool,
        problems: list[str],
    ) -> list[Component]:
        nodes = [n for n in self.own if self.group[n] == group and self._flows(n)]
        if group == EVERY_TICK and any(self.has_states(n) for n in range(len(self.flat.blocks))):
            nodes.append(STATES)
        successors: dict[int, dict[int, Any]] = {node: {} for node in nodes}
        read: dict[int, list[tuple[int, Source, set[int], set[int]]]] = {}
        for node in nodes:
            read[node] = []
            for port, source in self.inputs_of(node):
                depends, calls = self.trace(source, group)
                if depends and self.ports.outputs[source.block][source.port].kind != "real":
                    depends, calls = set(), set()  # what counts or switches is held within a step
                    read[node].append((port, source, depends, calls))
                elif depends:
                    read[node].append((port, source, depends, calls))
                    for other in depends - {_TIME}:
                        successors.setdefault(other, {})[node] = {}
        wanting = {n for n in nodes if chosen.get(n, default).is_adaptive}
        reading = {n for n in nodes if any(depends for _, _, depends, _ in read[n])}
        together = find_groups(successors, wanting, reading, self.groups)
        together = self._check_groups(together, wanting & set(chosen), estimate, problems)
        self.groups += len(set(together.values()))
        bonded = {bond_block for bond in self.flat.bonds for bond_block in (bond[1][0], bond[2][0])}
        found = []
        for members in _find_components(successors):
            inside = sorted(members, key=lambda node: (node == STATES, node))
            how = self._setting(inside, default, chosen, problems)
            reads = any(depends for node in inside for _, _, depends, _ in read[node])
            plain = (how.method == "jacobi" and how.extrapolation == 0) or not reads
            pairs = find_power_pairs(self.flat, self.ports, self, inside, group) if reads else []
            number = together.get(inside[0], 0)
            if plain and not number and not estimate and not bonded & set(inside):
                self._measure_plainly(inside, pairs, group)
                continue
            component = self._build(inside, how, group, read)
            if self._check_rollback(component, how in chosen.values(), estimate, problems):
                explicit = replace(how, method="gauss-seidel")
                component = self._build(inside, explicit, group, read)
                self._warn_of_fallback(component, how.method)
            elif how.method == "gauss-seidel" and reads and not component.is_sequential:
                self._warn_of_jacobi(component)
            component.group = number
            found.append(component)
            self.pairs.append((component, pairs))
        return sorted(found, key=lambda component: component.group)

    def _check_groups(
        self, together: dict[int, int], explicit: set[int], estimate: bool, problems: list[str]
    ) -> dict[int, int]:
        """Return the groups that can have adaptive communication steps, and report the others."""
        stuck = {
            n for n in together if n != STATES and not self.flat.blocks[n].block.takes_any_step
        }
        for group in sorted({together[n] for n in stuck}):
            inside = {n for n, other in together.items() if other == group}
            names = name_list(f"`{self.name(n)}`" for n in sorted(stuck & inside))
            report_fixed_steps(names, bool(explicit & inside), problems)
            self.has_fixed_steps = True
            together = {n: other for n, other in together.items() if other != group}
        numbers = {g: self.groups + 1 + k for k, g in enumerate(sorted(set(together.values())))}
        together = {n: numbers[group] for n, group in together.items()}
        if together and estimate:
            problems.append(
                "estimate_error compares steps of equal length, so it cannot be combined with "
                "coupling_tolerance, which controls the error itself: use one of them."
            )
        return together

    def _measure_plainly(self, nodes: list[int], pairs: Sequence[PowerPair], group: Ticks) -> None:
        members = tuple(self.name(node) for node in nodes)
        self.exchanges += [Exchange(pair, members, group) for pair in pairs]

    def owners_of(self, node: int) -> list[int]:
        """Return the blocks of a node."""
        if node != STATES:
            return [node]
        return [n for n in range(len(self.flat.blocks)) if self.has_states(n)]

    def _setting(
        self, nodes: list[int], default: Coupling, chosen: dict[int, Coupling], problems: list[str]
    ) -> Coupling:
        said = {chosen[node]: node for node in nodes if node in chosen}
        if len(said) > 1:
            names = name_list(f"`{self.name(node)}`" for node in said.values())
            problems.append(
                f"{names} depend on each other and are one coupling, but have different settings "
                f"in couple(…): use one call of couple(…) for all."
            )
        return next(iter(said), default)

    def _build(
        self, nodes: list[int], how: Coupling, group: Ticks, read: dict[int, Any]
    ) -> Component:
        best: Component | None = None
        orders = permutations(nodes) if len(nodes) <= _LARGEST_SEARCH else [tuple(nodes)]
        for ordered in orders:
            candidate = self._arrange(ordered, how, group, read)
            if best is None or _cost(candidate) < _cost(best):
                best = candidate
        assert best is not None
        return best

    def _arrange(
        self, nodes: Sequence[int], how: Coupling, group: Ticks, read: dict[int, Any]
    ) -> Component:
        position = {node: n for n, node in enumerate(nodes)}
        numbers: dict[Source, int] = {}
        component = Component(how, [], [], set(), True, max(group.period, 1))
        for node in nodes:
            block = None if node == STATES else self.flat.blocks[node].block
            member = Member(node, block is None or block.takes_input_derivatives)
            if block is not None:
                sources = self.flat.blocks[node].sources
                member.carried = {n for n, k in block.rate_ports.items() if sources[k] is not None}
            component.members.append(member)
            component.rolls_back &= not self._find_stuck(node)
            component.takes_any_step &= block is None or block.takes_any_step
            for port, source, depends, calls in read[node]:
                if source not in numbers:
                    numbers[source] = len(numbers)
                    width = self.ports.outputs[source.block][source.port].width or 1
                    last = max((position.get(other, -1) for other in depends), default=_HELD)
                    near = self.trace(source, group, through=False)[0] if depends else set()
                    direct = max((position.get(other, -1) for other in near), default=last)
                    component.signals.append(CoupledSignal(source, width, last, direct))
                    component.calls |= calls
                member.inputs.append((port, numbers[source]))
        return component

    def _check_rollback(
        self, component: Component, explicit: bool, estimate: bool, problems: list[str]
    ) -> bool:
        """Return whether it has to be coupled explicitly although it was to be iterated."""
        how = component.how
        stuck = self._name_stuck(component)
        if estimate and stuck:
            problems.append(
                f"the coupling error cannot be estimated: {stuck} cannot repeat a step. "
                f"Run without estimate_error."
            )
        if not how.is_iterated or not component.unknown_count:
            return False
        if stuck and explicit:
            problems.append(
                f"{stuck} cannot repeat a step, so the coupling cannot be iterated. "
                f"Use couple(…, method='gauss-seidel')."
            )
        elif stuck:
            return True
        elif how.method == "newton" and component.unknown_count > _LARGEST_UNKNOWNS:
            names = name_list(f"`{self.name(member.node)}`" for member in component.members)
            problems.append(
                f"the coupling of {names} has {component.unknown_count} unknowns; newton supports "
                f"at most {_LARGEST_UNKNOWNS}. Use couple(…, method='fixed-point')."
            )
        return False

    def _find_stuck(self, node: int) -> list[int]:
        """Return the blocks of a node that cannot repeat a step."""
        blocks = self.flat.blocks
        if node != STATES:
            return [] if blocks[node].block.can_roll_back else [node]
        return [n for n in self.owners_of(STATES) if not blocks[n].block.can_repeat_states]

    def _name_stuck(self, component: Component) -> str:
        stuck = [n for member in component.members for n in self._find_stuck(member.node)]
        return ", ".join(f"`{self.name(n)}`" for n in stuck)

    def _warn_of_fallback(self, component: Component, method: str) -> None:
        stuck = self._name_stuck(component)
        same = (
            "" if component.is_sequential else ", which is equivalent to jacobi for this coupling"
        )
        warnings.warn(
            f"{stuck} cannot repeat a step: the coupling uses gauss-seidel instead of "
            f"{method}{same}.",
            CouplingWarning,
            stacklevel=11,
        )

    def _warn_of_jacobi(self, component: Component) -> None:
        names = name_list(f"`{self.name(member.node)}`" for member in component.members)
        warnings.warn(
            f"gauss-seidel is equivalent to jacobi for the coupling of {names}: every signal that "
            f"a member reads depends on that member or on a later one, so no updated value is "
            f"available. Use method='newton' or method='jacobi', or let one block compute the "
            f"signal that the other reads.",
            CouplingWarning,
            stacklevel=11,
        )


def _find_components(successors: dict[int, dict[int, Any]]) -> list[set[int]]:
    """Return the strongly connected components in topological order."""
    if not any(successors.values()):
        return [{node} for node in sorted(successors)]

    import networkx as nx  # for couplings only: it takes long to import

    condensed = nx.condensation(nx.DiGraph(successors))
    members = condensed.nodes.data("members")
    ordered = nx.lexicographical_topological_sort(condensed, key=lambda c: min(members[c]))
    return [members[n] for n in ordered]


def _cost(component: Component) -> int:
    """What an order of the members leaves to be guessed or extrapolated."""
    sequential = component.how.method == "gauss-seidel"
    return component.extrapolated_count if sequential else component.unknown_count


def _place_bonds(
    flat: FlatDiagram,
    search: _Search,
    components: list[Component],
    ports: ResolvedPorts,
    problems: list[str],
) -> None:
    """Find the two inputs of each power bond among the members of one coupling."""
    places = {
        (member.node, port): (component, (position, n))
        for component in components
        for position, member in enumerate(component.members)
        for n, (port, _) in enumerate(member.inputs)
        if member.node != STATES
    }
    for name, effort, flow in flat.bonds:
        ends = [f"`{_port_path(flat, *end)}`" for end in (effort, flow)]
        found = [places.get(end) for end in (effort, flow)]
        if found[0] is None or found[1] is None:
            missing = [end for end, place in zip(ends, found, strict=True) if place is None]
            problems.append(
                f"power_bond requires inputs that are driven by another block with an internal "
                f"solver; this does not hold for {name_list(missing)}."
            )
        elif found[0][0] is not found[1][0]:
            problems.append(
                f"power_bond requires inputs of two blocks that drive each other; {ends[0]} and "
                f"{ends[1]} do not."
            )
        elif (problem := _check_power(ports, effort, flow)) is not None:
            problems.append(f"the product of {ends[0]} and {ends[1]} is not a power: {problem}")
        else:
            component, place = found[0]
            paths = _port_path(flat, *effort), _port_path(flat, *flow)
            bond = CoupledBond(name, place, found[1][1], paths, factor=_factor(ports, effort, flow))
            # What moves by a rate is put right by its place at the start of every step.
            of = {k: n for n, k in flat.blocks[flow[0]].block.rate_ports.items()}.get(flow[1])
            if of is not None and (flow[0], of) in places:
                bond.flow, bond.is_place = places[flow[0], of][1], True
            component.bonds.append(bond)


def _add_bonds(flat: FlatDiagram, component: Component, pairs: Sequence[PowerPair]) -> None:
    """Add bonds that were found by units, where none is declared."""
    known = {bond.effort for bond in component.bonds}
    for pair in pairs:
        ends = [_find_input(flat, component, *end) for end in (pair.effort, pair.flow)]
        if ends[0] is None or ends[1] is None or ends[0] in known:
            continue
        paths = _port_path(flat, *pair.effort), _port_path(flat, *pair.flow)
        component.bonds.append(
            CoupledBond(
                " · ".join(paths), ends[0], ends[1], paths, pair.is_place, pair.factor, False
            )
        )


def _find_input(
    flat: FlatDiagram, component: Component, number: int, port: int
) -> tuple[int, int] | None:
    """Return an input of a block among those of a component's members."""
    source = flat.blocks[number].sources[port]
    for position, member in enumerate(component.members):
        for n, (own, signal) in enumerate(member.inputs):
            is_states = member.node == STATES and component.signals[signal].source == source
            if is_states or (member.node == number and own == port):
                return position, n
    return None


def _port_path(flat: FlatDiagram, number: int, port: int) -> str:
    return f"{flat.blocks[number].path}.{flat.blocks[number].block.inputs[port].name}"


def _factor(ports: ResolvedPorts, effort: tuple[int, int], flow: tuple[int, int]) -> float:
    """Return what the product of the numbers at two inputs is multiplied by to be in SI units."""
    units = [ports.inputs[number][port].unit for number, port in (effort, flow)]
    return math.prod(1.0 if unit is None else unit.factor for unit in units)


def _check_power(
    ports: ResolvedPorts, effort: tuple[int, int], flow: tuple[int, int]
) -> str | None:
    a, b = (ports.inputs[number][port] for number, port in (effort, flow))
    if (a.width or 1) != (b.width or 1):
        return f"their widths are {a.width or 1} and {b.width or 1}."
    if a.unit is None or b.unit is None:
        return None
    product = a.unit * b.unit
    # An angle is counted: N.m times rad/s is W.rad.
    if any(same_dimension(product, parse_unit(unit)) for unit in ("W", "W.rad", "W/rad")):
        return None
    return f"{a.unit} times {b.unit} is not in W."
