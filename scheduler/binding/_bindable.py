"""Bindable parts of a diagram: every block and subsystem with its resolved ports."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ...blocks.basic.routing._bus import Bus, BusSelector
from ...blocks.core._block import AbstractBlock
from ...blocks.core._ports import EVERY_TICK, Port, PortRef, Rate
from ...blocks.core._units import Unit, parse_unit
from ..compile._buses import expand_ports
from ..compile.diagram._boundary import Inport
from ..compile.diagram._diagram import Diagram
from ..compile.diagram._subsystem import Subsystem
from ..compile.plan._described import AbstractDescribed, PortInfo


@dataclass(frozen=True, slots=True)
class BlockPorts:
    """A block or subsystem with its ports as resolved in the whole diagram."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    rate: Rate
    fed: frozenset[str]
    """Inputs that are connected."""
    read: frozenset[str]
    """Outputs that are connected."""

    def find(self, side: str) -> dict[str, Port]:
        """Return the ``inputs`` or ``outputs`` by name."""
        return {port.name: port for port in getattr(self, side)}


def list_blocks(diagram: Diagram, plan: AbstractDescribed) -> Iterator[tuple[str, BlockPorts]]:
    """Yield every block and subsystem that may be replaced, by path."""
    found = {block.path: block for block in plan.blocks}

    def enter(inside: Diagram, prefix: str) -> Iterator[tuple[str, BlockPorts]]:
        read = {*inside.sources.values(), *(port.source for port in inside.outports.values())}
        for name, block in inside.blocks.items():
            path = prefix + name

            def number_of(port: Port, block: AbstractBlock = block) -> int:
                return block.input_index[_whole(port, block.input_index)]

            def name_of(port: Port, block: AbstractBlock = block) -> str:
                return _whole(port, block.output_index)

            if isinstance(block, Inport | Bus | BusSelector):
                continue
            if isinstance(block, Subsystem):
                inputs, outputs = _subsystem_ports(block, path, plan)
            else:
                inputs = _resolved(block.inputs, found[path].inputs)
                outputs = _resolved(block.outputs, found[path].outputs)
            yield (
                path,
                BlockPorts(
                    inputs,
                    outputs,
                    _stand_in_rate(inside.rate_of(block)),
                    frozenset(p.name for p in inputs if (block, number_of(p)) in inside.sources),
                    frozenset(p.name for p in outputs if PortRef(block, name_of(p)) in read),
                ),
            )
            if isinstance(block, Subsystem):
                yield from enter(block.diagram, f"{path}.")

    return enter(diagram, "")


def _whole(port: Port, names: Collection[str]) -> str:
    """Return the name of a port of a block, or of the bus that it is an element of."""
    return port.name if port.name in names else port.name.partition(".")[0]


def _stand_in_rate(rate: Rate) -> Rate:
    """Return the rate of a stand-in: it keeps the period, which blocks behind it inherit."""
    return Rate("periodic", rate.period, rate.offset) if rate.kind == "periodic" else EVERY_TICK


def _resolved(ports: tuple[Port, ...], infos: tuple[PortInfo, ...]) -> tuple[Port, ...]:
    return tuple(
        port_of(info, port.name, port.default) for port, info in zip(ports, infos, strict=True)
    )


def port_of(info: PortInfo, name: str, default: float | tuple[float, ...] | None = None) -> Port:
    """Return a port with the fixed width, unit, kind and names of `info`."""
    unit = parse_unit(info.unit) if info.unit else None
    return Port(name, info.width, unit, info.kind, default, info.doc, info.names)


def _subsystem_ports(
    block: Subsystem, path: str, plan: AbstractDescribed
) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Trace the outputs of a subsystem to the blocks that produce them."""
    outputs = []
    taken, shown = expand_ports(block)
    for name in [port.name for port in shown]:
        info = _follow(block, path, name, plan)
        outputs.append(port_of(info, name) if info else Port(name))
    inputs = tuple(
        port if isinstance(port.kind, str) else Port(port.name, doc=port.doc) for port in taken
    )
    return inputs, tuple(outputs)


def _follow(block: Subsystem, path: str, output: str, plan: AbstractDescribed) -> PortInfo | None:
    if block.control and block.control != "reset":
        return plan.signals.get(plan.aliases.get(f"{path}.{output}", ""))
    if "." in output:
        found = plan.bus_elements.get(f"{path}.{output}", "")
        return plan.signals.get(found)
    inside = block.diagram
    source = inside.outports[output].source
    name = f"{path}.{inside.names[source.block]}"
    if isinstance(source.block, Subsystem):
        return _follow(source.block, name, source.name, plan)
    if isinstance(source.block, Inport):
        port = source.block.port
        unit = str(port.unit) if isinstance(port.unit, Unit) else None
        kind = port.kind if isinstance(port.kind, str) else "real"
        return PortInfo(name, 0, port.width if isinstance(port.width, int) else 1, unit, kind)
    return plan.signals[f"{name}.{source.name}"]
