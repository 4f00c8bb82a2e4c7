"""Buses of a diagram: what a wire carries, and whether it fits where it leads.

`flatten` follows each element of a bus to the block that drives it, so that nothing after it knows
of buses. What is checked here are the names; widths, units and kinds of the elements are checked
like those of all wires, see `_port_types`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...blocks.basic.routing._bus import Bus, BusSelector, BusType, Shape
from ...blocks.core._block import AbstractBlock
from ...blocks.core._ports import Port, PortRef
from ...errors import DiagramError, name_list, suggest
from .diagram._boundary import Inport
from .diagram._subsystem import Subsystem

if TYPE_CHECKING:
    from .diagram._diagram import Diagram

Element = tuple[str, ...]
"""Path of an element in a bus; empty for a signal that is no bus."""


def find_shape(diagram: Diagram, ref: PortRef) -> Shape | None:
    """Return the elements of the bus that an output carries; None if it is no bus.

    Raises
    ------
    DiagramError
        If a bus contains itself.
    """
    return _find_shape(diagram, ref, ())


def _find_shape(
    diagram: Diagram, ref: PortRef, passed: tuple[tuple[Diagram, PortRef], ...]
) -> Shape | None:
    if (diagram, ref) in passed:
        raise DiagramError(f"the bus `{diagram.name_port(ref)}` contains itself.")
    passed += ((diagram, ref),)
    block = ref.block
    if isinstance(block, Inport):
        return block.bus.shape if block.bus else None
    if isinstance(block, Subsystem):
        return _find_shape(block.diagram, block.diagram.outports[ref.name].source, passed)
    if isinstance(block, Bus):
        shape: dict[str, Shape | None] = {}
        for n, (name, declared) in enumerate(block.elements.items()):
            source = diagram.sources.get((block, n))
            shape[name] = None
            if isinstance(declared, BusType):
                shape[name] = declared.shape
            elif declared is None and source is not None:
                shape[name] = _find_shape(diagram, source, passed)
        return shape
    if isinstance(block, BusSelector):
        source = diagram.sources.get((block, 0))
        found = None if source is None else _find_shape(diagram, source, passed)
        for name in ref.name.split("."):
            found = found.get(name) if found is not None else None
        return found
    return None


def list_elements(shape: Shape | None) -> list[Element]:
    """Return the paths of all signals of a bus, in order; of a signal, the empty path."""
    if shape is None:
        return [()]
    return [(name, *rest) for name, inside in shape.items() for rest in list_elements(inside)]


def expand_ports(block: Subsystem) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Return the inputs and outputs of a subsystem with a port for each element of its buses."""
    inputs: list[Port] = []
    for port in block.inputs:
        bus = block.buses.get(port.name)
        inputs += [name_element(port, p, path) for path, p in bus.list_signals()] if bus else [port]
    outputs: list[Port] = []
    for port in block.outputs:
        shape = find_shape(block.diagram, block.diagram.outports[port.name].source)
        for element in list_elements(shape):
            name = ".".join((port.name, *element))
            outputs.append(Port(name, width=f"out {name}"))
    return tuple(inputs), tuple(outputs)


def name_element(port: Port, element: Port, path: str) -> Port:
    """Return an element of a bus input as a port of its own; it has the bus's default if none, and
    an enumeration its first value."""
    default = port.default
    if element.default is not None:
        default = element.default
    elif default is not None and element.kind == "enumeration":
        default = 1.0
    return Port(
        f"{port.name}.{path}",
        element.width,
        element.unit,
        element.kind,
        default,
        element.doc,
        element.names,
    )


def find_bus_problems(diagram: Diagram, prefix: str) -> list[str]:
    """Return which wires of one level of a diagram lead a bus where none fits, or the reverse."""
    problems: list[str] = []
    for block, name in diagram.names.items():
        for n, port in enumerate(block.inputs):
            ref = diagram.sources.get((block, n))
            wiring = isinstance(block, Bus | BusSelector)
            if ref is None and not wiring:
                continue
            target = f"{prefix}{name}.{port.name}"
            if ref is None:
                problems.append(
                    f"input `{target}` is not connected: d.connect(…, '{name}.{port.name}')."
                )
                continue
            try:
                given = find_shape(diagram, ref)
            except DiagramError as error:
                problems.append(str(error))
                continue
            wanted = _wanted(block, port)
            if given is None and wanted is None and not wiring:
                continue
            source = _name_source(diagram, ref, prefix)
            if isinstance(block, BusSelector):
                problems += _check_selection(block, target, source, given)
                continue
            if wanted != "any":
                problems += _compare(target, wanted, source, given)
    return list(dict.fromkeys(problems))


def _wanted(block: AbstractBlock, port: Port) -> Shape | str | None:
    """Return which bus an input takes; None if it takes a signal."""
    if isinstance(block, Bus):
        declared = block.elements[port.name]
        return declared.shape if isinstance(declared, BusType) else None if declared else "any"
    if isinstance(block, Subsystem) and port.name in block.buses:
        return block.buses[port.name].shape
    return None


def _check_selection(
    block: BusSelector, target: str, source: str, given: Shape | None
) -> list[str]:
    chosen = list(block.output_index)
    if given is None:
        return [_no_bus(target, f"a bus with {name_list(chosen)}", source)]
    return [text for path in chosen for text in _missing(target, path.split("."), source, given)]


def _missing(target: str, path: list[str], source: str, given: Shape | None) -> list[str]:
    """Return that an element is not in a bus, if so."""
    for n, name in enumerate(path):
        bus = ".".join((source, *path[:n]))
        if given is None:
            return [f"`{target}` takes `{'.'.join(path)}`, but `{bus}` is one signal, not a bus."]
        if name not in given:
            return [
                f"`{bus}` has no element `{name}`, which `{target}` takes.{suggest(name, given)} "
                f"Elements of `{bus}`: {name_list(given)}."
            ]
        given = given[name]
    return []


def _compare(
    target: str, wanted: Shape | str | None, source: str, given: Shape | None
) -> list[str]:
    """Return what does not fit; elements that nobody takes are no problem."""
    if isinstance(wanted, Mapping) and given is not None:
        found: list[str] = []
        for name, inside in wanted.items():
            missing = _missing(target, [name], source, given)
            found += missing or _compare(
                f"{target}.{name}", inside, f"{source}.{name}", given[name]
            )
        return found
    if isinstance(wanted, Mapping):
        return [_no_bus(target, f"a bus with {name_list(wanted)}", source)]
    if given is not None:
        first = next(iter(given))
        return [
            f"`{target}` takes a signal, but `{source}` is a bus. Select an element with "
            f"BusSelector({first!r}). Elements of `{source}`: {name_list(given)}."
        ]
    return []


def _no_bus(target: str, wanted: str, source: str) -> str:
    return f"`{target}` takes {wanted}, but `{source}` is one signal. Group signals with Bus([…])."


def _name_source(diagram: Diagram, ref: PortRef, prefix: str) -> str:
    name = prefix + diagram.names[ref.block]
    return name if isinstance(ref.block, Bus | Inport) else f"{name}.{ref.name}"
