"""Flattening: a diagram with subsystems becomes one list of blocks, each input with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...blocks.core._block import AbstractBlock
from ...blocks.core._ports import Port, PortRef, Rate
from ...errors import DiagramError
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


@dataclass(frozen=True, slots=True)
class Border:
    """A connected input of a subsystem: it is removed by flattening, but its type is checked."""

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
    bonds: tuple[tuple[str, tuple[int, int], tuple[int, int]], ...] = ()
    """Names of power bonds, with their two inputs as (block, port)."""
    rerouted: Mapping[str, str] = field(default_factory=lambda: _NONE)
    """Replaced signals: path of the block's own output → path of the signal."""
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
    bonds: list[tuple[str, tuple[int, int], tuple[int, int]]] = field(default_factory=list)


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
                    scope.numbers[block] = -1 - len(flat.inputs)
                    flat.inputs.append(FlatInput(name, block.port, True))
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
        if block.control:
            count = len(flat.blocks) - first
            flat.guards[guard] = replace(flat.guards[guard], count=count)
            if not count:
                flat.problems.append(f"the conditional subsystem `{path}` contains no blocks.")
        if block.control and block.control != "reset":
            for name in block.diagram.outports:
                inner.shown[name] = len(flat.blocks)
                shown = HeldOutput(block.initial, block.outputs_reset)
                flat.blocks.append(FlatBlock(f"{path}.{name}", shown, scope.guard, (), guard))
        flat.groups.append(Group(path, block, scope.guard, first, len(flat.blocks) - first))

    def resolve(scope: _Scope, ref: PortRef) -> Source | None:
        """Follow a wire through the borders of subsystems to the block that drives it."""
        passed: set[tuple[int, PortRef]] = set()
        through: tuple[tuple[str, str], ...] = ()
        while True:
            block = ref.block
            if isinstance(block, Subsystem):
                inner = scope.inner[block]
                through += ((inner.prefix[:-1], ref.name),)
                if ref.name in inner.shown:
                    return Source(inner.shown[ref.name], 0, through)
                scope, ref = inner, inner.diagram.outports[ref.name].source
            elif isinstance(block, Inport) and scope.parent is not None:
                if (id(scope), ref) in passed:
                    flat.problems.append(
                        f"`{scope.prefix}{scope.diagram.names[block]}` is connected to itself "
                        f"through a subsystem without a block in between."
                    )
                    return None
                passed.add((id(scope), ref))
                outer = scope.parent.diagram.sources.get(_key_of(scope, block))
                if outer is None:
                    return unconnected(scope, block, through)
                scope, ref = scope.parent, outer
            else:
                return Source(scope.numbers[block], block.output_index[ref.name], through)

    def unconnected(scope: _Scope, block: Inport, through: tuple[tuple[str, str], ...]) -> Source:
        if block not in scope.numbers:
            scope.numbers[block] = -1 - len(flat.inputs)
            name = scope.prefix + scope.diagram.names[block]
            flat.inputs.append(FlatInput(name, block.port, False))
        return Source(scope.numbers[block], 0, through)

    def source_of(scope: _Scope, block: AbstractBlock, port: int) -> Source | None:
        ref = scope.diagram.sources.get((block, port))
        return resolve(scope, ref) if ref else None

    root = _Scope(diagram, "", None, None, -1)
    enter(root)
    for scope in scopes:
        for block, number in list(scope.numbers.items()):
            if number >= 0:
                sources = tuple(source_of(scope, block, n) for n in range(len(block.inputs)))
                flat.blocks[number] = replace(flat.blocks[number], sources=sources)
        for inner_block, inner in scope.inner.items():
            assert isinstance(inner_block, Subsystem)
            for n, port in enumerate(inner_block.inputs):
                path = f"{inner.prefix}{port.name}"
                source = source_of(scope, inner_block, n)
                if source is not None:
                    flat.borders.append(Border(path, port, source))
                elif port.default is None and (inner_block, n) not in scope.diagram.sources:
                    flat.problems.append(f"input `{path}` is not connected.")
            if inner_block.control:
                control = source_of(
                    scope, inner_block, inner_block.input_index[inner_block.control]
                )
                flat.guards[inner.guard] = replace(flat.guards[inner.guard], control=control)
            for name, number in inner.shown.items():
                inside = resolve(inner, inner.diagram.outports[name].source)
                flat.blocks[number] = replace(flat.blocks[number], sources=(inside, None))
    for scope in scopes:
        for blocks, how in scope.diagram.couplings:
            numbers = tuple(n for block in blocks for n in _inside(scope, block))
            flat.couplings.append(FlatCoupling(how, numbers, scope.prefix))
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
    outputs = tuple((name, resolve(root, port.source)) for name, port in diagram.outports.items())
    return FlatDiagram(
        blocks=tuple(flat.blocks),
        guards=tuple(flat.guards),
        inputs=tuple(flat.inputs),
        outputs=outputs,
        problems=tuple(flat.problems),
        borders=tuple(flat.borders),
        groups=tuple(flat.groups),
        couplings=tuple(flat.couplings),
        bonds=tuple(flat.bonds),
    )


def _inside(scope: _Scope, block: AbstractBlock) -> list[int]:
    """Return a block's number, or those of a subsystem's blocks that a coupling can be of."""
    if block not in scope.inner:
        return [scope.numbers[block]]
    inner = scope.inner[block]
    return [
        n
        for part in inner.diagram.names
        if part.has_internal_solver or part in inner.inner
        for n in _inside(inner, part)
    ]


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
