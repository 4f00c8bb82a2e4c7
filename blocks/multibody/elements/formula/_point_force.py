"""A force at a point of a body that laws give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..... import _contract as contract
from ....core._ports import Parameter
from ...plant._parameters import law_parameters
from ...system._laws import AbstractLaw, Constant
from .._element import Output
from .._load import Load

if TYPE_CHECKING:
    from ...equations._loads import LoadState
    from ...plant._tables import Tables

_ZERO = Constant(0.0)


@dataclass(frozen=True, slots=True, eq=False)
class PointForce(Load):
    """A force at a point of a body that laws give.

    Attributes
    ----------
    point
        Laws of t and of outputs, in m: from the marker, in axes of the body.
    """

    point: tuple[AbstractLaw, AbstractLaw, AbstractLaw] = (_ZERO, _ZERO, _ZERO)

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters: those of the force, then ``name.point.x`` …."""
        yield from Load.parameters(self)
        size = 2 if self.marker.body.system.planar else 3
        for axis, law in zip("xyz"[:size], self.point, strict=False):
            yield from law_parameters(f"{self.name}.point.{axis}", law, "m", f"point along {axis}")

    def laws(self) -> Iterator[tuple[str, AbstractLaw]]:
        """Yield its laws by path."""
        yield from Load.laws(self)
        for axis, law in zip("xyz", self.point, strict=True):
            yield f"{self.name}.point.{axis}", law

    @property
    def type_number(self) -> int:
        """Return its index in ``elements/table.c``."""
        return contract.MB_POINT_FORCE

    @property
    def may_be_stiff(self) -> bool:
        """Return whether it may depend on the state."""
        return any(law.reads for _, law in self.laws())

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        doc = "where it acts, in world axes"
        point = Output(contract.POINT_FORCE_SHOWN_POINT, "m", doc, 3, "laws")
        return {**Load.outputs(self), "point": point}

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        record = Load.record(self, tables)
        size = 2 if self.marker.body.system.planar else 3
        for n, law in enumerate(self.point):
            tables.law(f"{self.name}.point.{'xyz'[n]}" if n < size else "", law)
        return record

    def push(self, at: LoadState, items: int) -> None:
        """Add its generalized force at a state."""
        effort, body = self.measure(at, items, "applied_force"), at.body(self.marker)
        local = np.array([at.evaluate(law, t=at.t) for law in self.point])
        at.push(items, effort)
        at.turn(body, np.cross(at.rotations[body] @ local, effort))

    def measure(self, at: LoadState, items: int, what: str) -> Any:
        """Return the force in world axes, or its point."""
        if what != "point":
            return Load.measure(self, at, items, what)
        local = np.array([at.evaluate(law, t=at.t) for law in self.point])
        return at.field.value[items] + at.rotations[at.body(self.marker)] @ local
