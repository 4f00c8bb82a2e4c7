"""`Model`: a compiled diagram, with the results of each stage of the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...blocks.core._block import NativeBlock
from ._flatten import FlatDiagram
from ._order import Order
from ._port_types import PortTypes
from ._rates import Ticks
from .plan._described import AbstractDescribed, freeze
from .plan._plan import Plan


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Model(Plan):
    """A compiled diagram: its plan, and the flattened diagram that the plan was made from.

    It is made once, by the compiler, and is immutable, with read-only mappings and tuples: runs,
    sweeps, exports, linearizations and drawings share it. `Plan.load` returns the plan alone.

    Attributes
    ----------
    described
        Content of section META of the plan, as plain data.
    flat
        The blocks without subsystems, in the order of their numbers, and what feeds each.
    ports
        Width, unit and kind of every port.
    rates
        Of each block, in ticks.
    order
        In which outputs are computed, and the algebraic loops.
    """

    described: Mapping[str, Any]
    flat: FlatDiagram
    ports: PortTypes
    rates: tuple[Ticks, ...]
    order: Order

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "described", freeze(self.described))
        # In place of what `Plan` would read back from the bytes.
        object.__setattr__(self, "meta", self.described)

    @property
    def stiff(self) -> dict[str, tuple[str, str]]:
        """Of stiff blocks, by path: a parameter to perturb and an output to watch.

        Empty if the diagram has no states or internal solvers that respond to the parameter, or
        has blocks that are not native, which a trial run would affect.
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

    described: Mapping[str, Any]
    flat: FlatDiagram

    def __post_init__(self) -> None:
        object.__setattr__(self, "described", freeze(self.described))

    @property
    def meta(self) -> Mapping[str, Any]:
        """Content that section META would have."""
        return self.described
