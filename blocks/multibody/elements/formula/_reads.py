"""Outputs that formulas of the same mechanism read, and in which order.

Outputs that follow from positions and velocities can be read. Accelerations and reactions follow
from all forces, so that a force which reads one depends on itself; so does an element whose formula
reads its own force, or that of another element which reads this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...system._laws import Read

if TYPE_CHECKING:
    from ...system._system import System
    from .._element import Element, Output


def list_law_reads(system: System) -> Iterator[tuple[str, Read]]:
    """Yield the paths of laws whose formulas read outputs, and what they read."""
    for element in system.elements:
        for path, law in element.laws():
            for read in law.reads:
                yield path, read


def order_reads(system: System) -> list[Read]:
    """Return all outputs that formulas read, each after those on which it depends."""
    ordered: dict[Read, None] = {}

    def visit(read: Read, above: tuple[Read, ...]) -> None:
        if read in ordered or read in above:
            return
        for _, needed in needed_reads(system, read):
            visit(needed, (*above, read))
        ordered[read] = None

    for _, read in list_law_reads(system):
        visit(read, ())
    return list(ordered)


def find_output_of_part(system: System, path: str) -> tuple[Element | None, Output | None]:
    owner, _, what = path.rpartition(".")
    part: Any = system.parts.get(owner)
    output = part.outputs().get(what) if hasattr(part, "outputs") else None
    return (part, output) if output is not None else (None, None)


def needed_reads(system: System, read: Read) -> Iterator[tuple[str, Read]]:
    """Yield laws on which an output depends, by path, and what they read."""
    element, output = find_output_of_part(system, read.path)
    if element is None or output is None or output.follows != "laws":
        return
    for path, law in element.laws():
        for needed in law.reads:
            yield path, needed
