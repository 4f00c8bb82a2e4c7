"""`Model`: a diagram that is compiled, with all that is known about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...blocks.core._block import NativeBlock
from ._flatten import FlatDiagram
from ._order import Order
from ._port_types import ResolvedPorts
from ._rates import Ticks
from .coupling._couplings import Component
from .plan._described import AbstractDescribed
from .plan._plan import Plan


@dataclass(frozen=True, eq=False, kw_only=True)
class Model(Plan):
    """A compiled diagram: its plan, and what the plan was made from.

    It is made once, by the compiler, and is immutable: runs, sweeps, exports, linearizations and
    drawings share it. `Plan.load` gives the plan alone.

    Attributes
    ----------
    described
        What section META of the plan says, as plain data.
    flat
        The blocks without subsystems, in the order of their numbers, and what feeds each.
    ports
        Width, unit and kind of every port.
    rates
        Of each block, in ticks.
    order
        In which outputs are computed, and the algebraic loops.
    components
        The blocks with an internal solver that are advanced together.
    """

    described: dict[str, Any]
    flat: FlatDiagram
    ports: ResolvedPorts
    rates: tuple[Ticks, ...]
    order: Order
    components: tuple[Component, ...]

    def __post_init__(self) -> None:
        # In place of what `Plan` would read back from the bytes.
        object.__setattr__(self, "meta", self.described)

    @property
    def stiff(self) -> dict[str, tuple[str, str]]:
        """Of stiff blocks, by path: a parameter to perturb and an output to watch.

        Only where something answers to them, and where a run can be tried beforehand.
        """
        blocks = [item.block for item in self.flat.blocks]
        stiff = {item.path: item.block.stiff for item in self.flat.blocks if item.block.stiff}
        if not stiff or not all(isinstance(block, NativeBlock) for block in blocks):
            return {}
        answers = (
            any(block.has_internal_solver for block in blocks)
            or self.block_records["x_count"].any()
        )
        return stiff if answers else {}


@dataclass(frozen=True, eq=False)
class Outline(AbstractDescribed):
    """A diagram that was checked and described, but not encoded: its names, units and widths."""

    described: dict[str, Any]
    flat: FlatDiagram

    @property
    def meta(self) -> dict[str, Any]:
        """What section META would say."""
        return self.described
