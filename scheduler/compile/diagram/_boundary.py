"""Inputs and outputs of a whole diagram."""

from __future__ import annotations

from dataclasses import dataclass

from ....blocks.core._block import AbstractBlock
from ....blocks.core._ports import CONTINUOUS, Port, PortRef


class Inport(AbstractBlock):
    """An input of the diagram: a source whose value is set externally."""

    def __init__(self, port: Port) -> None:
        super().__init__(outputs=[port], rate=CONTINUOUS)
        self.port = port


@dataclass(frozen=True, slots=True)
class Outport:
    """An output of the diagram: a name for a block's port."""

    name: str
    source: PortRef
