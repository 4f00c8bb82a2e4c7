"""Flattening: a diagram with subsystems becomes one list of blocks, each input with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...blocks.basic.routing._bus import Bus, BusSelector, BusType
from ...blocks.core._block import AbstractBlock
from ...blocks.core._ports import Port, PortRef, Rate, main_output
from ...blocks.core._units import Unit
from ...errors import DiagramError, name_list
from ._buses import (
    Element,
    expand_ports,
    find_bus_problems,
    find_shape,
    list_elements,
    name_element,
)
from .coupling._coupling_options import Coupling
from .diagram._boundary import Inport
from .diagram._subsystem import HeldOutput, Subsystem

if TYPE_CHECKING:
    from .diagram._diagram import Diagram

_NONE: Mapping[Any, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Source:
    """Source of an input: output `port` of block number `block`, or, if `block` is
    negative, input number ``-1 - block`` of the whole diagram."""

    block: int
    port: int
    through: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """The outputs of subsystems that the signal passes, as (path, name), the taker's nearest first;
    for `rewrite.replace_blocks`."""
    element: str = field(default="", compare=False)
    """The element of a bus, by path, that the signal passes nearest to the taker, for messages."""
    unit: Unit | None = field(default=None, compare=False)
    """The unit that such an element declares: the signal's own, if its source has none."""


@dataclass(frozen=True, slots=True)
class FlatInput:
    """A value from outside: an input of the diagram, or an unconnected one of a subsystem."""

    name: str
    port: Port
    declared: bool


@dataclass(frozen=True, slots=True)
class FlatBlock:
    """A block of the flattened diagram."""

    path: str
    block: AbstractBlock
    guard: int
    """Number of the conditional subsystem that it is in, or -1."""
    sources: tuple[Source | None, ...] = ()
    shows_guard: int = -1
    """For an output of a conditional subsystem: that subsystem's number."""
    shown_as: Mapping[int, str] = field(default_factory=lambda: _NONE)
    """Outputs that go by another name than ``path.port``."""
    bare: bool = False
    """Whether its parameters go by their own names, without the path."""
    given_rate: Rate | None = None
    """The rate that was passed to `Diagram.add`."""

    @property
    def rate(self) -> Rate:
        """When it runs: the rate given to `Diagram.add`, or the block's own."""
        return self.given_rate or self.block.rate

    def output_path(self, port: int) -> str:
        """Return the name under which an output is recorded."""
        return self.shown_as.get(port, f"{self.path}.{self.block.outputs[port].name}")


@dataclass(frozen=True, slots=True)
class Guard:
    """A conditional subsystem of the flattened diagram."""

    path: str
    subsystem: Subsystem
    parent: int
    first: int
    count: int = 0
    control: Source | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The blocks of any subsystem: `count` from number `first` on."""

    path: str
    subsystem: Subsystem
    guard: int
    """Number of the enclosing conditional subsystem, or -1."""
    first: int
    count: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    """Its ports, with one for each element of a bus."""


@dataclass(frozen=True, slots=True)
class Border:
    """A connected input of a subsystem, or an element of a bus with a type: it is removed by
    flattening, but its type is checked."""

    path: str
    port: Port
    source: Source


@dataclass(frozen=True, slots=True)
class FlatCoupling:
    """Settings of `Diagram.couple` for blocks."""

    how: Coupling
    blocks: tuple[int, ...]
    scope: str
    """Path of the subsystem in which it was set, with a dot; empty at the top level."""


@dataclass(frozen=True, slots=True)
class FlatSubsteps:
    """A number of substeps by `Diagram.integrate` for blocks."""

    substeps: int
    blocks: tuple[int, ...]
    scope: str
    """As of `FlatCoupling`."""


@dataclass(frozen=True, slots=True)
class FlatDiagram:
    """A diagram without subsystems. It is immutable: `rewrite` makes others from it."""

    blocks: tuple[FlatBlock, ...]
    guards: tuple[Guard, ...] = ()
    inputs: tuple[FlatInput, ...] = ()
    outputs: tuple[tuple[str, Source | None], ...] = ()
    problems: tuple[str, ...] = ()
    borders: tuple[Border, ...] = ()
    groups: tuple[Group, ...] = ()
    couplings: tuple[FlatCoupling, ...] = ()
    substeps: tuple[FlatSubsteps, ...] = ()
    bonds: tuple[tuple[str, tuple[int, int], tuple[int, int]], ...] = ()
    """Names of power bonds, with their two inputs as (block, port)."""
    rerouted: Mapping[str, str] = field(default_factory=lambda: _NONE)
    """Replaced signals: path of the block's own output → path of the signal."""
    buses: tuple[tuple[str, Source], ...] = ()
    """Elements of buses by path, such as ``sensors.pose.x``: other names of signals."""
    within: str = ""
    """Path of the block of another diagram that this one runs inside of, if any."""


@dataclass(slots=True)
class _Draft:
    """A `FlatDiagram` in the making."""

    blocks: list[FlatBlock] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    inputs: list[FlatInput] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    borders: list[Border] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    couplings: list[FlatCoupling] = field(default_factory=list)
    substeps: list[FlatSubsteps] = field(default_factory=list)
    bonds: list[tuple[str, tuple[int, int], tuple[int, int]]] = field(default_factory=list)
    buses: dict[str, Source] = field(default_factory=dict)


@dataclass(slots=True)
class _Scope:
    """One use of a diagram, which may be used at several places."""

    diagram: Diagram
    prefix: str
    parent: _Scope | None
    subsystem: Subsystem | None
    guard: int
    numbers: dict[AbstractBlock, int] = field(default_factory=dict)
    inner: dict[AbstractBlock, _Scope] = field(default_factory=dict)
    elements: dict[tuple[AbstractBlock, Element], int] = field(default_factory=dict)
    """For an `Inport` that is a bus: the numbers of its elements, as in `numbers`."""
    shown: dict[str, int] = field(default_factory=dict)
    """Outputs of a conditional subsystem: name → number of its `HeldOutput`."""


def flatten(diagram: Diagram) -> FlatDiagram:
    """Expand all subsystems of `diagram`. Blocks of a subsystem stay next to each other."""
    flat = _Draft()
    scopes: list[_Scope] = []

    def enter(scope: _Scope) -> None:
        scopes.append(scope)
        flat.problems += scope.diagram.double_sources
        for name, block in scope.diagram.blocks.items():
            path = scope.prefix + name
            if isinstance(block, Inport):
                if scope.parent is None:
                    for element in list_elements(block.bus.shape if block.bus else None):
                        add_input(scope, block, element, True)
            elif isinstance(block, Bus | BusSelector):
                continue  # wires pass them, see `resolve`
            elif isinstance(block, Subsystem):
                enter_subsystem(scope, block, path)
            else:
                scope.numbers[block] = len(flat.blocks)
                given = scope.diagram.rates.get(block)
                flat.blocks.append(FlatBlock(path, block, scope.guard, given_rate=given))

    def enter_subsystem(scope: _Scope, block: Subsystem, path: str) -> None:
        guard, first = scope.guard, len(flat.blocks)
        if block.control:
            guard = len(flat.guards)
            flat.guards.append(Guard(path, block, scope.guard, len(flat.blocks)))
        outer: _Scope | None = scope
        while outer is not None:
            if outer.diagram is block.diagram:
                raise DiagramError(f"the subsystem `{path}` contains itself.")
            outer = outer.parent
        inner = _Scope(block.diagram, path + ".", scope, block, guard)
        scope.inner[block] = inner
        enter(inner)
        inputs, outputs = expand_ports(block)
        if block.control:
            count = len(flat.blocks) - first
            flat.guards[guard] = replace(flat.guards[guard], count=count)
            if not count:
                flat.problems.append(f"the conditional subsystem `{path}` contains no blocks.")
        if block.control and block.control != "reset":
            for name, _, _ in _list_outputs(block.diagram):
                inner.shown[name] = len(flat.blocks)
                shown = HeldOutput(block.initial, block.outputs_reset)
                flat.blocks.append(FlatBlock(f"{path}.{name}", shown, scope.guard, (), guard))
        count = len(flat.blocks) - first
        flat.groups.append(Group(path, block, scope.guard, first, count, inputs, outputs))

    def add_input(scope: _Scope, block: Inport, element: Element, declared: bool) -> None:
        name, port = scope.prefix + scope.diagram.names[block], block.port
        if block.bus:
            path = ".".join(element)
            name = f"{name}.{path}"
            declared_port = _port_at(block.bus, element)
            assert declared_port is not None
            port = replace(name_element(port, declared_port, path), name="y")
            scope.elements[block, element] = -1 - len(flat.inputs)
        else:
            scope.numbers[block] = -1 - len(flat.inputs)
        flat.inputs.append(FlatInput(name, port, declared))

    def resolve(scope: _Scope, ref: PortRef, element: Element = ()) -> Source | None:
        """Follow a wire, or an element of a bus, through the borders of subsystems and through
        buses to the block that drives it."""
        passed: set[tuple[int, PortRef, Element]] = set()
        through: tuple[tuple[str, str], ...] = ()
        name, unit = "", None  # of the nearest element of a bus, and the unit that one declares

        def declare(path: str, port: Port | None) -> None:
            nonlocal name, unit
            name = name or path
            if unit is None and port is not None and isinstance(port.unit, Unit):
                unit = port.unit

        while True:
            block = ref.block
            if (id(scope), ref, element) in passed:
                path = ".".join((scope.prefix + scope.diagram.names[block], *element))
                between = "a subsystem" if isinstance(block, Inport) else "a bus"
                flat.problems.append(
                    f"`{path}` is connected to itself through {between} without a block in between."
                )
                return None
            if isinstance(block, Inport | Bus | BusSelector):
                passed.add((id(scope), ref, element))
            if isinstance(block, Subsystem):
                inner = scope.inner[block]
                output = ".".join((ref.name, *element))
                through += ((inner.prefix[:-1], output),)
                if element:
                    declare(inner.prefix + output, None)
                if output in inner.shown:
                    return Source(inner.shown[output], 0, through, name, unit)
                scope, ref = inner, inner.diagram.outports[ref.name].source
            elif isinstance(block, Bus):
                path = ".".join((scope.prefix + scope.diagram.names[block], *element))
                declare(path, _port_at(block.elements, element))
                ref = scope.diagram.sources[block, block.input_index[element[0]]]
                element = element[1:]
            elif isinstance(block, BusSelector):
                element = (*ref.name.split("."), *element)
                ref = scope.diagram.sources[block, 0]
            elif isinstance(block, Inport) and scope.parent is not None:
                if block.bus:
                    path = ".".join((scope.prefix + scope.diagram.names[block], *element))
                    declare(path, _port_at(block.bus, element))
                outer = scope.parent.diagram.sources.get(_key_of(scope, block))
                if outer is None:
                    if block not in scope.numbers and (block, element) not in scope.elements:
                        add_input(scope, block, element, False)
                    return outside(scope, block, element, through, name, unit)
                scope, ref = scope.parent, outer
            elif isinstance(block, Inport):
                return outside(scope, block, element, through, name, unit)
            else:
                number, port = scope.numbers[block], block.output_index[ref.name]
                return Source(number, port, through, name, unit)

    def outside(scope: _Scope, block: Inport, element: Element, *rest: Any) -> Source:
        number = scope.elements[block, element] if element else scope.numbers[block]
        return Source(number, 0, *rest)

    def source_of(scope: _Scope, block: AbstractBlock, port: int) -> Source | None:
        ref = scope.diagram.sources.get((block, port))
        return resolve(scope, ref) if ref else None

    def add_borders(scope: _Scope, path: str, wanted: Port | BusType, ref: PortRef) -> None:
        """Have the type of a connected input checked; of a bus, that of each element."""
        ports = wanted.list_signals() if isinstance(wanted, BusType) else [("", wanted)]
        for at, port in ports:
            source = resolve(scope, ref, tuple(at.split(".")) if at else ())
            if source is not None:
                flat.borders.append(Border(f"{path}.{at}" if at else path, port, source))

    def name_buses(scope: _Scope) -> None:
        """Note the elements of the buses of a diagram, and of its outputs, as names of signals."""
        names = scope.diagram.names
        ends = [
            (scope.prefix + name, PortRef(block, "bus"))
            for block, name in names.items()
            if isinstance(block, Bus)
        ]
        if scope.parent is not None and scope.subsystem is not None and not scope.shown:
            ends += [(scope.prefix + n, p.source) for n, p in scope.diagram.outports.items()]
        for path, ref in ends:
            for element in list_elements(find_shape(scope.diagram, ref)):
                name = ".".join((path, *element))
                # Where an output of that name is held, it is the name of the held signal.
                if element and name.removeprefix(scope.prefix) not in scope.shown:
                    source = resolve(scope, ref, element)
                    if source is not None:
                        name_signal(name, source, flat.buses)

    def name_signal(name: str, source: Source, known: dict[str, Source]) -> None:
        if known.setdefault(name, source) != source:
            flat.problems.append(
                f"`{name}` is the name of two signals, one of them an element of a bus: rename "
                f"the output, or the block."
            )

    root = _Scope(diagram, "", None, None, -1)
    enter(root)
    misfits = [p for scope in scopes for p in find_bus_problems(scope.diagram, scope.prefix)]
    if misfits:
        raise DiagramError([*flat.problems, *misfits])  # such wires cannot be followed
    for scope in scopes:
        for block, number in list(scope.numbers.items()):
            if number >= 0:
                sources = tuple(source_of(scope, block, n) for n in range(len(block.inputs)))
                flat.blocks[number] = replace(flat.blocks[number], sources=sources)
        for bus_block in [block for block in scope.diagram.names if isinstance(block, Bus)]:
            path = scope.prefix + scope.diagram.names[bus_block]
            for n, (element_name, declared) in enumerate(bus_block.elements.items()):
                if declared is not None:
                    ref = scope.diagram.sources[bus_block, n]
                    add_borders(scope, f"{path}.{element_name}", declared, ref)
        for inner_block, inner in scope.inner.items():
            assert isinstance(inner_block, Subsystem)
            for n, port in enumerate(inner_block.inputs):
                path = f"{inner.prefix}{port.name}"
                wire = scope.diagram.sources.get((inner_block, n))
                bus = inner_block.buses.get(port.name)
                if wire is not None:
                    add_borders(scope, path, bus or port, wire)
                    continue
                needed = [port.default is None]
                if bus:
                    needed = [
                        name_element(port, one, at).default is None
                        for at, one in bus.list_signals()
                    ]
                if any(needed):
                    flat.problems.append(f"input `{path}` is not connected.")
            if inner_block.control:
                control = source_of(
                    scope, inner_block, inner_block.input_index[inner_block.control]
                )
                flat.guards[inner.guard] = replace(flat.guards[inner.guard], control=control)
            for name, ref, element in _list_outputs(inner.diagram) if inner.shown else ():
                number = inner.shown[name]
                inside = resolve(inner, ref, element)
                flat.blocks[number] = replace(flat.blocks[number], sources=(inside, None))
    for scope in scopes:
        for blocks, how in scope.diagram.couplings:
            numbers = tuple(n for block in blocks for n in _inside(scope, block))
            flat.couplings.append(FlatCoupling(how, numbers, scope.prefix))
        for named, count in scope.diagram.substeps:
            numbers = tuple(n for block in named for n in _integrated_inside(scope, block))
            flat.substeps.append(FlatSubsteps(count, numbers, scope.prefix))
            if not numbers:
                paths = name_list(scope.prefix + scope.diagram.names[block] for block in named)
                flat.problems.append(
                    f"d.integrate({paths}, substeps={count}) has nothing to integrate: no block "
                    f"there has continuous states."
                )
        for name, ends in scope.diagram.bonds.items():
            for end in ends:
                if end.block not in scope.numbers:
                    flat.problems.append(f"power_bond requires inputs of blocks, got `{end.name}`.")
            places = [
                (scope.numbers[end.block], end.block.input_index[end.name])
                for end in ends
                if end.block in scope.numbers
            ]
            if len(places) == 2:
                flat.bonds.append((scope.prefix + name, places[0], places[1]))
    elements: list[tuple[str, Source | None]] = []
    outputs: list[tuple[str, Source | None]] = []
    for name, ref, element in _list_outputs(diagram):
        outputs.append((name, resolve(root, ref, element)))
        elements += outputs[-1:] if element else []
    for scope in scopes:
        name_buses(scope)
    elements += flat.buses.items()
    taken = _name_outputs(flat.blocks) if elements else {}
    for name, source in elements:
        if source is not None:
            name_signal(name, source, taken)
    return FlatDiagram(
        blocks=tuple(flat.blocks),
        guards=tuple(flat.guards),
        inputs=tuple(flat.inputs),
        outputs=tuple(outputs),
        problems=tuple(flat.problems),
        borders=tuple(flat.borders),
        groups=tuple(flat.groups),
        couplings=tuple(flat.couplings),
        substeps=tuple(flat.substeps),
        bonds=tuple(flat.bonds),
        buses=tuple(flat.buses.items()),
    )


def _name_outputs(blocks: list[FlatBlock]) -> dict[str, Source]:
    """Return the outputs of blocks by their names in results."""
    found = {}
    for n, item in enumerate(blocks):
        main = main_output(list(item.block.output_index))
        if main is not None:
            found[item.path] = Source(n, item.block.output_index[main])
    for n, item in enumerate(blocks):
        for k in range(len(item.block.outputs)):
            found[item.output_path(k)] = Source(n, k)
    return found


def _list_outputs(diagram: Diagram) -> list[tuple[str, PortRef, Element]]:
    """Return the outputs of a diagram, with one for each element of a bus."""
    return [
        (".".join((name, *element)), port.source, element)
        for name, port in diagram.outports.items()
        for element in list_elements(find_shape(diagram, port.source))
    ]


def _port_at(elements: Mapping[str, Port | BusType | None], path: Element) -> Port | None:
    """Return the type of a signal in a bus, if it is declared."""
    found: Port | BusType | None = elements[path[0]]
    for name in path[1:]:
        found = found[name] if isinstance(found, BusType) else None
    return found if isinstance(found, Port) else None


def _inside(scope: _Scope, block: AbstractBlock) -> list[int]:
    """Return a block's number, or those of a subsystem's blocks that a coupling can be of."""
    if block not in scope.inner:
        return [scope.numbers[block]] if block in scope.numbers else []
    inner = scope.inner[block]
    return [
        n
        for part in inner.diagram.names
        if part.has_internal_solver or part in inner.inner
        for n in _inside(inner, part)
    ]


def _integrated_inside(scope: _Scope, block: AbstractBlock) -> list[int]:
    """Return the number of a block with continuous states, or of all in a subsystem."""
    if not isinstance(block, Subsystem):
        continuous = getattr(block, "states", 0) != 0 and not block.has_internal_solver
        return [scope.numbers[block]] if continuous else []
    inner = scope.inner[block]
    return [n for part in inner.diagram.names for n in _integrated_inside(inner, part)]


def _key_of(scope: _Scope, block: Inport) -> tuple[AbstractBlock, int]:
    """Under which key the outer diagram keeps the source of an input of its subsystem."""
    assert scope.subsystem is not None
    name = scope.diagram.names[block]
    if name not in scope.subsystem.input_index:
        raise DiagramError(
            f"the input `{name}` was added to {scope.diagram.name!r} after `{scope.prefix[:-1]}` "
            f"was made from it: make the Subsystem last."
        )
    return scope.subsystem, scope.subsystem.input_index[name]
