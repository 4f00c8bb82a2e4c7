"""Applied forces as generalized forces, in any set of coordinates.

A force F at a point p does Q = p_qᵀ F, a torque T on a body Q = ω_vᵀ T, an effort on a joint
coordinate Q = effort · coordinate_q. Each element adds its own, by `Element.push`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..elements.formula._reader import OutputReader
from ..system._bodies import Marker
from ..system._laws import AbstractLaw
from ..system._rotations import Array
from ._shapes import Field, Scalars, Shapes

if TYPE_CHECKING:
    from ..system._system import System


@dataclass(frozen=True, slots=True, eq=False)
class LoadState:
    """A state at which elements push, and what they push on.

    Attributes
    ----------
    t, field, scalars
        Time, points and directions, dot products and angles.
    spins, rotations, rates
        Of each body and of the ground: the Jacobian of ω, R, and the rates of the coordinates.
    force, total
        Q by body, and over all coordinates: what `push` adds to.
    """

    t: float
    field: Field
    scalars: Scalars
    spins: Array
    rotations: Array
    rates: Array
    force: Array
    total: Array
    shapes: Shapes
    turns: dict[int, float]
    reader: OutputReader

    def evaluate(self, law: AbstractLaw, **values: float) -> float:
        """Return the value of a law here, where its variables have `values`."""
        known = {read.text: self.reader.read(self, read) for read in law.reads}
        return law.evaluate(**values, **known)

    def body(self, marker: Marker) -> int:
        """Return the number of a marker's body among those of `rotations`."""
        return self.shapes.ground if marker.body.is_ground else marker.body.index

    def push(self, point: int, force: Array) -> None:
        """Add a force at a point."""
        self.force[self.shapes.body[point]] += self.field.jacobian[point].T @ force

    def turn(self, body: int, torque: Array) -> None:
        """Add a torque on a body."""
        self.force[body] += self.spins[body].T @ torque

    def push_scalar(self, scalar: int, effort: float) -> None:
        """Add an effort on a scalar, such as a joint coordinate."""
        self.total[:] += effort * self.scalars.jacobian[self.shapes.scalar(scalar)]

    def speed(self, point: int) -> Array:
        """Return the velocity of a point."""
        own = self.rates[self.shapes.body[point]]
        found: Array = self.field.jacobian[point] @ own + self.field.partial[point]
        return found

    def spin(self, body: int) -> Array:
        """Return the angular velocity of a body."""
        found: Array = self.spins[body] @ self.rates[body]
        return found

    def value(self, scalar: int) -> float:
        """Return a scalar."""
        return float(self.scalars.value[self.shapes.scalar(scalar)])

    def rate(self, scalar: int) -> float:
        """Return the rate of a scalar."""
        return float(self.scalars.rate[self.shapes.scalar(scalar)])

    def unwrapped(self, scalar: int) -> float:
        """Return an angle over all turns that it has made from state to state."""
        return self.unwrap(self.shapes.scalar(scalar), self.value(scalar))

    def unwrap(self, key: int, value: float) -> float:
        """Return an unwrapped angle; `key` identifies the angle."""
        last = self.turns.get(key, value)
        value += 2.0 * np.pi * round((last - value) / (2.0 * np.pi))
        self.turns[key] = value
        return value


class Loads:
    """The elements of a system, with the items and scalars that each one reads."""

    def __init__(self, system: System, shapes: Shapes) -> None:
        self.elements = system.elements
        self.shapes = shapes
        self._turns: dict[int, float] = {}
        self._items: dict[str, Any] = {e.name: e.reserve(shapes) for e in self.elements}
        self._reader = OutputReader(system, shapes, self._items)

    def reset(self) -> None:
        """Forget the turns that angles have made."""
        self._turns.clear()
        self._reader.reset()

    def add(
        self,
        t: float,
        field: Field,
        scalars: Scalars,
        spins: Array,
        rotations: Array,
        rates: Array,
        force: Array,
        total: Array,
    ) -> None:
        """Add Q of all elements: to `force` by body, to `total` over all coordinates."""
        at = LoadState(
            t, field, scalars, spins, rotations, rates, force, total, self.shapes, self._turns,
            self._reader,
        )  # fmt: skip
        for element in self.elements:
            element.push(at, self._items[element.name])
