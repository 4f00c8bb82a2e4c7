"""Coulomb friction on a joint coordinate that sticks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..... import _contract as contract
from ....core._ports import Parameter, parameter
from ...joints._joint import Joint
from .._element import Element, Output, power

if TYPE_CHECKING:
    from ...equations._loads import LoadState
    from ...equations._shapes import Shapes
    from ...plant._tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class Stiction(Element):
    """Coulomb friction on a joint coordinate that sticks, with given efforts.

    While the joint slides with the rate v, effort = -(viscous v + coulomb sign(v)). When v reaches
    0 the joint sticks: the effort is the one that keeps v = 0, as long as its magnitude is at most
    `static`. Beyond that the joint slides again. Both events are located within the tick; where
    events are not located (``events="tick"``; mode ``"continuous"`` in iterated couplings) they
    happen at ticks, with an internal solver between internal steps.

    While a driver or another constraint holds the coordinate at rest, the effort is not determined
    and is 0.
    """

    kernel = contract.MB_STICTION

    name: str
    joint: Joint
    coordinate: int
    viscous: float
    coulomb: float
    static: float

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path."""
        of = self.joint.coordinates[self.coordinate]
        for name, unit, doc in (
            ("viscous", f"{of.effort_unit}.s/{of.unit}", "viscous friction"),
            ("coulomb", of.effort_unit, "dry friction while it slides"),
            ("static", of.effort_unit, "largest dry friction while it sticks"),
        ):
            yield parameter(f"{self.name}.{name}", getattr(self, name), unit=unit, doc=doc)

    @property
    def acts_on(self) -> Joint:
        """Return the joint whose coordinate it acts on."""
        return self.joint

    @property
    def is_named(self) -> bool:
        """Return that messages of the kernel name it."""
        return True

    @property
    def sticks(self) -> bool:
        """Return that it holds its joint at rest."""
        return True

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        of = self.joint.coordinates[self.coordinate]
        doc = f"of friction on the coordinate of {self.joint.name}"
        return {
            of.effort: Output(
                contract.STICTION_SHOWN_EFFORT, of.effort_unit, doc, follows="solution"
            ),
            "power_loss": Output(
                contract.STICTION_SHOWN_POWER_LOSS, "W", "what friction turns into heat"
            ),
            "sticks": Output(
                contract.STICTION_SHOWN_STICKS, None, "whether the joint sticks", kind="boolean"
            ),
            "power": power(),
        }

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        at = tables.coordinate(self.joint, self.coordinate)
        number = tables.next_stiction()
        return [at.q, at.v, tables.place(f"{self.name}.viscous"), number, at.sign]

    def reserve(self, shapes: Shapes) -> int:
        """Return the scalar of its coordinate."""
        return shapes.coordinate(self.joint, self.coordinate)

    def push(self, at: LoadState, items: int) -> None:
        """Add its generalized force at a state; at rest there is none."""
        v = at.rate(items)
        at.push_scalar(items, -(self.viscous * v + self.coulomb * float(np.sign(v))))
