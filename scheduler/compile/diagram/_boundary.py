"""Inputs and outputs of a whole diagram."""

from __future__ import annotations

from dataclasses import dataclass

from ....blocks.basic.routing._bus import BusType
from ....blocks.core._block import AbstractBlock
from ....blocks.core._ports import CONTINUOUS, Port, PortRef


class Inport(AbstractBlock):
    """An input of the diagram: a source whose value is set externally."""

    def __init__(self, port: Port, bus: BusType | None = None) -> None:
        super().__init__(outputs=[port], rate=CONTINUOUS)
        self.port = port
        self.bus = bus
        """What it carries if it is a bus; then `port` has only the default and the description."""

    def describe_missing_port(self, port: str) -> str:
        paths = [path for path, _ in self.bus.list_signals()] if self.bus else []
        return f" Take it from the bus with BusSelector({port!r})." if port in paths else ""


@dataclass(frozen=True, slots=True)
class Outport:
    """An output of the diagram: a name for a block's port."""

    name: str
    source: PortRef
