"""What each port of a flattened diagram carries: width, unit and kind, inferred and checked."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...blocks.core._block import AbstractBlock
from ...blocks.core._ports import Derived, Kind, Port, Same, Widths
from ...blocks.core._units import Unit, conversion, equivalent, parse_unit, same_dimension
from ...errors import name_list
from ._flatten import FlatDiagram, Source


class Carried(NamedTuple):
    """What one port carries."""

    width: int | None = None
    unit: Unit | None = None
    kind: Kind | None = None
    names: tuple[str, ...] = ()
    """Of an enumeration: the names of its values, from 1 on."""


@dataclass(frozen=True, slots=True)
class PortTypes:
    """Width, unit and kind of every port, by block."""

    inputs: tuple[tuple[Carried, ...], ...] = ()
    outputs: tuple[tuple[Carried, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ResolvedPorts(PortTypes):
    """Port types and, for the compiler, the values of each block's width symbols."""

    widths: tuple[Widths, ...] = ()


def resolve_ports(flat: FlatDiagram, steps: Sequence[float]) -> tuple[ResolvedPorts, list[str]]:
    """Propagate widths, units and kinds along the wires; return also what does not fit.

    `steps` are the blocks' sample times in s.
    """
    resolver = _Resolver(flat, steps)
    resolver.propagate()
    resolver.settle_widths()
    resolver.check_connections()
    return resolver.result(), resolver.problems


@dataclass(slots=True)
class _Draft:
    """What one port carries, as far as it is known."""

    width: int | None = None
    unit: Unit | None = None
    kind: Kind | None = None
    names: tuple[str, ...] = ()


class _Resolver:
    def __init__(self, flat: FlatDiagram, steps: Sequence[float]) -> None:
        self.flat = flat
        self.problems: list[str] = []
        self.inputs = [[_fixed(port) for port in item.block.inputs] for item in flat.blocks]
        self.outputs = [[_fixed(port) for port in item.block.outputs] for item in flat.blocks]
        self.widths = [_widths(step) for step in steps]
        self.destinations: list[list[tuple[Source, int, int]]] = [[] for _ in flat.blocks]
        for number, item in enumerate(flat.blocks):
            for n, source in enumerate(item.sources):
                if source is not None and source.block >= 0:
                    self.destinations[source.block].append((source, number, n))

    def result(self) -> ResolvedPorts:
        return ResolvedPorts(
            tuple(_settled(drafts) for drafts in self.inputs),
            tuple(_settled(drafts) for drafts in self.outputs),
            tuple(self.widths),
        )

    def propagate(self) -> None:
        waiting = deque(range(len(self.flat.blocks)))
        queued = set(waiting)
        for number, item in enumerate(self.flat.blocks):
            for n, source in enumerate(item.sources):
                if source is not None and source.block < 0:
                    self._flow(source, number, n)
        while waiting:
            number = waiting.popleft()
            queued.discard(number)
            self._relate(number)
            for source, target, n in self.destinations[number]:
                if self._flow(source, target, n) and target not in queued:
                    queued.add(target)
                    waiting.append(target)

    def _flow(self, source: Source, number: int, n: int) -> bool:
        """Propagate open properties of an input over a wire; return whether any was added."""
        given, target = self._given(source), self.inputs[number][n]
        unit = given.unit or source.unit
        new = False
        if target.width is None and given.width is not None:
            target.width, new = given.width, True
        if target.unit is None and unit is not None:
            target.unit, new = unit, True
        if target.kind is None and given.kind is not None:
            target.kind, target.names, new = given.kind, given.names, True
        return new

    def _relate(self, number: int) -> None:
        """Apply the relations between the ports of a block."""
        block = self.flat.blocks[number].block
        ins, outs = self.inputs[number], self.outputs[number]
        widths = self.widths[number]
        units: dict[str, Unit] = {}
        kinds: dict[str, tuple[Kind, tuple[str, ...]]] = {}
        for port, carried in _both(block, ins, outs):
            if carried.width is not None and isinstance(port.width, str):
                widths.setdefault(port.width, carried.width)
            if carried.unit is not None and isinstance(port.unit, Same):
                units.setdefault(port.unit.label, carried.unit)
            if carried.kind is not None and isinstance(port.kind, Same):
                kinds.setdefault(port.kind.label, (carried.kind, carried.names))
        for port, carried in _both(block, ins, outs):
            if carried.width is None and isinstance(port.width, str):
                carried.width = widths.get(port.width)
            if carried.unit is None:
                if isinstance(port.unit, Same):
                    carried.unit = units.get(port.unit.label)
                elif isinstance(port.unit, Derived):
                    carried.unit = _derive(port.unit, block, ins)
            if carried.kind is None and isinstance(port.kind, Same):
                carried.kind, carried.names = kinds.get(port.kind.label, (None, ()))
        for port, carried in zip(block.outputs, outs, strict=True):
            if carried.width is None and callable(port.width):
                with suppress(KeyError):  # a symbol may not be known yet
                    carried.width = port.width(widths)

    def settle_widths(self) -> None:
        """Give width 1, and kind real, to what nothing determines."""
        for number, item in enumerate(self.flat.blocks):
            ins, outs = self.inputs[number], self.outputs[number]
            widths = self.widths[number]
            for port in (*item.block.inputs, *item.block.outputs):
                if isinstance(port.width, str):
                    widths.setdefault(port.width, 1)
            for port, carried in _both(item.block, ins, outs):
                if carried.width is None:
                    carried.width = widths[port.width] if isinstance(port.width, str) else None
                if carried.width is None and callable(port.width):
                    carried.width = port.width(widths)
                carried.kind = carried.kind or "real"

    def check_connections(self) -> None:
        for number, item in enumerate(self.flat.blocks):
            for n, (port, carried) in enumerate(
                zip(item.block.inputs, self.inputs[number], strict=True)
            ):
                source = item.sources[n] if n < len(item.sources) else None
                if source is None:
                    if port.default is None:
                        self.problems.append(
                            f"input `{item.path}.{port.name}` is not connected"
                            + (f" ({port.doc})" if port.doc else "")
                            + f": d.connect(…, '{item.path}.{port.name}')."
                        )
                    continue
                given = self._given(source).kind
                if given in _TEXTS and port.kind != given:
                    kind = "numeric" if isinstance(port.kind, Same) else port.kind
                    self.problems.append(
                        f"`{item.path}.{port.name}` expects a {kind} signal, but "
                        f"{self._name_giver(source)} is a {given}. {_TEXTS[given]} connect only to "
                        f"{given} inputs of FMUs."
                    )
                    continue
                wanted = self._wanted(number, port, carried)
                self._check_wire(source, f"{item.path}.{port.name}", wanted)
        for border in self.flat.borders:
            self._check_wire(border.source, border.path, _fixed(border.port))

    def _check_wire(self, source: Source, taker: str, wanted: _Draft) -> None:
        giver, given = self._name_giver(source), self._given(source)
        if given.unit is None and source.unit is not None:
            given = replace(given, unit=source.unit)
        if given.width != wanted.width:
            self.problems.append(
                f"`{taker}` expects {_signals(wanted)}, but {giver} provides {_signals(given)}."
                f"{self._alternatives(source, wanted)}"
            )
            return
        widens = given.kind == "integer" and wanted.kind == "real"
        if wanted.kind not in (None, given.kind) and not widens:
            self.problems.append(
                f"`{taker}` expects a {wanted.kind} signal, but {giver} is {given.kind}."
                f"{_KIND_ADVICE.get((given.kind, wanted.kind), '')}"
            )
        elif given.kind == "binary" and _differ(given.names, wanted.names):
            self.problems.append(
                f"`{taker}` expects binaries of the MIME type {wanted.names[0]}, but {giver} "
                f"provides {given.names[0]}."
            )
        elif given.kind != "binary" and _differ(given.names, wanted.names):
            self.problems.append(
                f"`{taker}` is an enumeration of {name_list(wanted.names)}, but {giver} is "
                f"one of {name_list(given.names)}."
            )
        if given.unit is None or wanted.unit is None or equivalent(given.unit, wanted.unit):
            return
        if same_dimension(given.unit, wanted.unit):
            gain, offset = conversion(given.unit, wanted.unit)
            how = (
                f"Gain({gain!r}, unit={str(wanted.unit)!r})"
                if offset == 0
                else (f"Expression('{gain!r}*u + {offset!r}', unit={str(wanted.unit)!r})")
            )
            self.problems.append(
                f"`{taker}` is in {wanted.unit}, but {giver} is in {given.unit}. The units "
                f"differ by a scale: put {how} between them."
            )
        else:
            self.problems.append(
                f"`{taker}` expects {_signals(wanted)}, but {giver} provides {_signals(given)}."
                f"{_turns(given.unit, wanted.unit) or self._alternatives(source, wanted)}"
            )

    def _wanted(self, number: int, port: Port, carried: _Draft) -> _Draft:
        """Return the type that the block, not the wire, requires of the port."""
        block = self.flat.blocks[number].block
        widths = self.widths[number]
        width = port.width if isinstance(port.width, int) else carried.width
        if isinstance(port.width, str):
            width = widths[port.width]
        unit = port.unit if isinstance(port.unit, Unit) else None
        if isinstance(port.unit, Same):
            unit = self._shared_unit(block, number, port.unit)
        elif isinstance(port.unit, Derived):
            unit = _derive(port.unit, block, self.inputs[number])
        kind = carried.kind if isinstance(port.kind, Same) else port.kind
        names = port.names
        if isinstance(port.kind, Same):
            shared = [
                known
                for other, known in _both(block, self.inputs[number], self.outputs[number])
                if other.kind == port.kind and known.kind
            ]
            kind = shared[0].kind if shared else kind
            names = next((known.names for known in shared if known.names), names)
        return _Draft(width, unit, kind, names)

    def _shared_unit(self, block: AbstractBlock, number: int, label: Same) -> Unit | None:
        for port, carried in _both(block, self.inputs[number], self.outputs[number]):
            if port.unit == label and carried.unit is not None:
                return carried.unit
        return None

    def _given(self, source: Source) -> _Draft:
        if source.block < 0:
            return _fixed(self.flat.inputs[-1 - source.block].port)
        return self.outputs[source.block][source.port]

    def _name_giver(self, source: Source) -> str:
        """Return the source of a signal, quoted, behind the element of a bus that it comes from."""
        if source.block < 0:
            name = self.flat.inputs[-1 - source.block].name
        else:
            item = self.flat.blocks[source.block]
            name = f"{item.path}.{item.block.outputs[source.port].name}"
        inside = source.element not in ("", name)
        return f"`{source.element}` (`{name}`)" if inside else f"`{name}`"

    def _alternatives(self, source: Source, wanted: _Draft) -> str:
        """Return other outputs of the source block that match."""
        if source.block < 0:
            return ""
        item = self.flat.blocks[source.block]
        if len(item.block.outputs) == 1:
            return ""
        fitting = [
            f"`{item.path}.{port.name}` ({carried.unit})"
            for port, carried in zip(item.block.outputs, self.outputs[source.block], strict=True)
            if carried.width == wanted.width
            and carried.unit is not None
            and wanted.unit is not None
            and equivalent(carried.unit, wanted.unit)
        ]
        names = name_list(item.block.output_index)
        did = f" Did you mean {' or '.join(fitting)}?" if fitting else ""
        return f"{did} Outputs of `{item.path}`: {names}."


_TEXTS = {"string": "Strings", "binary": "Binaries"}


def _differ(given: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Whether both ports declare names of values, or MIME types, that are not the same."""
    return bool(given and wanted) and given != wanted


_KIND_ADVICE: dict[tuple[Kind | None, Kind | None], str] = {
    ("real", "boolean"): " Put a Compare between them.",
    ("integer", "boolean"): " Put a Compare between them.",
    ("boolean", "real"): " Put Convert('real') between them.",
    ("boolean", "integer"): " Put Convert('integer') between them.",
    ("real", "integer"): " Put Convert('integer') between them.",
}


def _settled(drafts: Sequence[_Draft]) -> tuple[Carried, ...]:
    return tuple([Carried(draft.width, draft.unit, draft.kind, draft.names) for draft in drafts])


def _fixed(port: Port) -> _Draft:
    return _Draft(
        port.width if isinstance(port.width, int) else None,
        port.unit if isinstance(port.unit, Unit) else None,
        port.kind if isinstance(port.kind, str) else None,
        port.names,
    )


def _both(block: AbstractBlock, ins: list[_Draft], outs: list[_Draft]) -> list[tuple[Port, _Draft]]:
    return [*zip(block.inputs, ins, strict=True), *zip(block.outputs, outs, strict=True)]


def _derive(rule: Derived, block: AbstractBlock, ins: list[_Draft]) -> Unit | None:
    units = [ins[block.input_index[name]].unit for name in rule.of]
    return None if any(unit is None for unit in units) else rule.compute(*units)


def _turns(given: Unit, wanted: Unit) -> str:
    """Return how turns become radians, or the other way, if that is all that lies between."""
    per_turn = parse_unit("rad")
    for turned, factor in ((given * per_turn, "2*pi"), (given / per_turn, "1/(2*pi)")):
        if equivalent(turned, wanted):
            return (
                f" If one of them counts revolutions, 1 Hz is 2π rad/s: put "
                f"Gain({factor}, unit={str(wanted)!r}) between them."
            )
    return ""


def _signals(carried: _Draft) -> str:
    number = "1 signal" if carried.width == 1 else f"{carried.width} signals"
    return number if carried.unit is None else f"{number} in {carried.unit}"


def _widths(step: float) -> Widths:
    widths = Widths()
    widths.step = step
    return widths
