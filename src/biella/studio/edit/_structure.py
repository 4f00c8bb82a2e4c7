"""What a diagram is made of, as plain data that can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...blocks.core._block import AbstractBlock
from ...blocks.core._ports import PortRef
from ...scheduler.compile.diagram._boundary import Inport
from ...scheduler.compile.diagram._diagram import Diagram
from ...scheduler.compile.diagram._subsystem import Subsystem


@dataclass(frozen=True)
class Structure:
    """Blocks, values and wires of a diagram and of its subsystems, by path.

    Attributes
    ----------
    types
        Of each block: its class, and the text of its rate.
    values
        Of each parameter: shape and bytes.
    hidden
        Parameters that are computed from others.
    wires
        Source of each connected input: paths of ports.
    outputs
        Source of each output of a diagram.
    groups
        Settings of certain blocks or ports: their paths, and the settings.
    settings
        What holds for a whole diagram.
    """

    types: Mapping[str, str]
    values: Mapping[str, tuple[tuple[int, ...], bytes]]
    hidden: frozenset[str]
    wires: Mapping[str, str]
    outputs: Mapping[str, str]
    groups: Mapping[str, tuple[tuple[str, ...], str]]
    settings: Mapping[str, str]


@dataclass
class _Found:
    types: dict[str, str] = field(default_factory=dict)
    values: dict[str, tuple[tuple[int, ...], bytes]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    wires: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    groups: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


def read_structure(diagram: Diagram) -> Structure:
    """Return what a diagram is made of."""
    found = _Found()
    _read(diagram, "", found)
    return Structure(
        found.types,
        found.values,
        frozenset(found.hidden),
        found.wires,
        found.outputs,
        found.groups,
        found.settings,
    )


def _read(diagram: Diagram, prefix: str, found: _Found) -> None:
    def name(ref: PortRef) -> str:
        return f"{prefix}{diagram.names[ref.block]}.{ref.name}"

    for number, (blocks, how) in enumerate((*diagram.couplings, *diagram.substeps)):
        paths = tuple(f"{prefix}{diagram.names[block]}" for block in blocks)
        found.groups[f"{prefix}coupling {number}"] = (paths, repr(how))
    for key, ends in diagram.bonds.items():
        found.groups[f"{prefix}bond {key}"] = (tuple(map(name, ends)), "")
    step = (diagram.name, diagram.step, diagram.solver, diagram.tolerance, diagram.start_time)
    limits = (diagram.events, diagram.max_events, diagram.max_steps, diagram.algebraic_loops)
    found.settings[prefix] = repr((*step, *limits, diagram.coupling))
    for own, block in diagram.blocks.items():
        path = f"{prefix}{own}"
        found.types[path] = f"{type(block).__qualname__} {diagram.rate_of(block)!r}"
        if isinstance(block, Subsystem):
            options = (block.control, block.edge, block.outputs_reset, block.states_reset)
            found.types[path] += f" {options!r} {block.initial!r}"
            _read(block.diagram, f"{path}.", found)
            continue
        if isinstance(block, Inport):
            port = block.port
            found.types[path] += f" {port.unit!r} {port.width!r} {port.kind!r} {block.bus!r}"
            found.values[path] = ((), repr(port.default).encode())
        for item in block.parameters:
            found.values[f"{path}.{item.name}"] = (item.value.shape, item.value.tobytes())
            if item.hidden:
                found.hidden.add(f"{path}.{item.name}")
    for (block, number), ref in diagram.sources.items():
        target = PortRef(block, block.inputs[number].name)
        found.wires[name(target)] = name(ref)
    for own, outport in diagram.outports.items():
        found.outputs[f"{prefix}{own}"] = name(outport.source)


def list_blocks(diagram: Diagram, prefix: str = "") -> Iterator[tuple[str, Diagram, AbstractBlock]]:
    """Yield the path of each block, the diagram that it is in, and the block."""
    for name, block in diagram.blocks.items():
        yield f"{prefix}{name}", diagram, block
        if isinstance(block, Subsystem):
            yield from list_blocks(block.diagram, f"{prefix}{name}.")


def describe_difference(wanted: Structure, found: Structure) -> str:
    """Return the first differences between two diagrams; an empty text if they are equal.

    Parameters that are computed from others may have other values.
    """
    parts = []
    for what in ("types", "values", "wires", "outputs", "groups", "settings"):
        left, right = getattr(wanted, what), getattr(found, what)
        for key in sorted(left.keys() | right.keys()):
            if left.get(key) == right.get(key):
                continue
            if what == "values" and key in wanted.hidden & found.hidden:
                continue
            parts.append(f"`{key}`" if key else "the settings")
    return ", ".join(dict.fromkeys(parts[:5]))
