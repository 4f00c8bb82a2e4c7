"""Powers between coupled blocks, found by the units of what they exchange.

One block gets an effort that depends on another one, such as a force, and returns to it a flow,
such as a speed, or the place that moves with it. The product is the power that passes between the
two. What both see of it within a step differs; the difference is created by the coupling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ....blocks.core._units import parse_unit, same_dimension
from .._flatten import FlatDiagram, Source
from .._port_types import ResolvedPorts
from .._rates import Ticks

_KINDS = (("N", "m/s", "m"), ("N.m", "rad/s", "rad"), ("V", "A", "C"), ("Pa", "m3/s", "m3"))
"""Efforts, their flows, and what moves with these."""


@dataclass(frozen=True, slots=True)
class PowerPair:
    """Two inputs, as (block, port), whose product is a power, or, for a place, an energy."""

    effort: tuple[int, int]
    flow: tuple[int, int]
    width: int
    is_place: bool
    factor: float
    """From the product of their numbers to W or J."""


class _Tracer(Protocol):
    def owners_of(self, node: int) -> list[int]: ...
    def trace(
        self, source: Source, group: Ticks, through: bool = True
    ) -> tuple[set[int], set[int]]: ...


def find_power_pairs(
    flat: FlatDiagram, ports: ResolvedPorts, tracer: _Tracer, nodes: Sequence[int], group: Ticks
) -> list[PowerPair]:
    """Return the pairs between the blocks of a coupling's nodes.

    The flow is an output of the one block that is connected to the other directly; the effort may
    pass through blocks in between. Where units leave it open which of several inputs belong
    together, there is no pair: the user may declare one.
    """
    node_of = {number: node for node in nodes for number in tracer.owners_of(node)}
    given: dict[tuple[int, int], list[int]] = {}
    for number, node in node_of.items():
        for port, source in enumerate(flat.blocks[number].sources):
            if source is not None and node_of.get(source.block, node) != node:
                given.setdefault((source.block, number), []).append(port)
    pairs = []
    for (giver, taker), flows in given.items():
        efforts = [
            port
            for port, source in enumerate(flat.blocks[giver].sources)
            if source is not None
            and node_of[taker] in tracer.trace(source, group, through=False)[0]
        ]
        pairs += _match(flat, ports, (giver, efforts), (taker, flows))
    return pairs


def _match(
    flat: FlatDiagram,
    ports: ResolvedPorts,
    given: tuple[int, Sequence[int]],
    taken: tuple[int, Sequence[int]],
) -> list[PowerPair]:
    (giver, efforts), (taker, flows) = given, taken
    rates = set(flat.blocks[taker].block.rate_ports.values())

    def having(number: int, among: Sequence[int], unit: str) -> list[int]:
        wanted, inputs = parse_unit(unit), ports.inputs[number]
        own = {port: inputs[port].unit for port in among}
        return [port for port, u in own.items() if u is not None and same_dimension(u, wanted)]

    found = []
    for effort, flow, place in _KINDS:
        acting = having(giver, efforts, effort)
        places = having(taker, flows, place)
        moving = places or [port for port in having(taker, flows, flow) if port not in rates]
        if len(acting) != 1 or len(moving) != 1:
            continue
        a, b = ports.inputs[giver][acting[0]], ports.inputs[taker][moving[0]]
        if (a.width or 1) != (b.width or 1) or a.unit is None or b.unit is None:
            continue
        factor = a.unit.factor * b.unit.factor
        ends = (giver, acting[0]), (taker, moving[0])
        found.append(PowerPair(*ends, a.width or 1, bool(places), factor))
    return found
