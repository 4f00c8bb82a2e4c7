"""What a mechanism can show and take as a block: its outputs and inputs by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core._ports import Port
from ._plant import list_input_ports, list_output_ports

if TYPE_CHECKING:
    from ..system._system import System


@dataclass(frozen=True, slots=True)
class Signal:
    """An output or an input that a mechanism can have.

    Attributes
    ----------
    name
        What `System.block` takes in ``outputs=`` or ``inputs=``.
    unit
        Such as ``"rad/s"``; empty if it has none.
    width
        How many numbers it has.
    doc
        One line.
    always
        Whether the block has it without being asked: inputs that `Input` laws make.
    """

    name: str
    unit: str
    width: int
    doc: str
    always: bool = False


class Signals(dict[str, Signal]):
    """Signals by name; printed, a table with one line each.

    Parameters
    ----------
    title
        Above the table.
    signals
        In the order of the table.
    """

    def __init__(self, title: str, signals: Iterable[Signal]) -> None:
        super().__init__((signal.name, signal) for signal in signals)
        self.title = title

    def __str__(self) -> str:
        lines = [f"{self.title}: {len(self) or 'none'}"]
        rows = [
            (s.name, s.unit or "-", "" if s.width == 1 else f"[{s.width}]", s.doc)
            for s in self.values()
        ]
        widths = [max((len(row[n]) for row in rows), default=0) for n in range(3)]
        for *cells, doc in rows:
            padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
            lines.append(f"  {'  '.join([*padded, doc])}".rstrip())
        return "\n".join(lines)

    __repr__ = __str__


def _signal(port: Port, doc: str, always: bool = False) -> Signal:
    width = port.width if isinstance(port.width, int) else 1
    return Signal(port.name, "" if port.unit is None else str(port.unit), width, doc, always)


def outputs(system: System) -> Signals:
    """Return all outputs that the block of a system can have."""
    found = (_signal(port, port.doc) for port in list_output_ports(system))
    return Signals(f"outputs of {system.name}", found)


def inputs(system: System) -> Signals:
    """Return the inputs that the block of a system has, and those that it can have."""
    numbers = system.parameters()
    always, possible = list_input_ports(system)
    names = {port.name for port in always}
    found = []
    for port in (*always, *(port for port in possible if port.name not in names)):
        own = numbers.get(port.name)
        doc = port.doc or (own.doc if own is not None else "")
        there = port.name in names
        how = "always there" if there else "a number unless named in inputs="
        found.append(_signal(port, f"{doc}; {how}" if doc else how, there))
    return Signals(f"inputs of {system.name}", found)
