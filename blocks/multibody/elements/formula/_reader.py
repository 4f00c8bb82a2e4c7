"""Outputs that formulas read, in the equations of analyses and reference formulations.

Runs use ``signals.c``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .....errors import DiagramError
from ...joints._joint import Joint
from ...system._bodies import Body, Marker
from ...system._laws import Read
from ...system._rotations import Array, quaternion_from_rotation
from ._reads import order_reads

if TYPE_CHECKING:
    from ...equations._loads import LoadState
    from ...equations._shapes import Shapes
    from ...system._system import System

Value = Callable[["LoadState"], Any]


class OutputReader:
    """Finds the values of the outputs that the formulas of a system read.

    Parameters
    ----------
    system
        The system.
    shapes
        Where the points and joint coordinates are reserved.
    items
        Those of each element, by name.
    """

    def __init__(self, system: System, shapes: Shapes, items: Mapping[str, Any]) -> None:
        self._system = system
        self._shapes = shapes
        self._items = items
        self._turned: dict[int, Array] = {}
        self._values: dict[Read, Value] = {read: self._find(read) for read in order_reads(system)}

    def reset(self) -> None:
        """Forget the signs of Euler parameters."""
        self._turned.clear()

    def read(self, at: LoadState, read: Read) -> float:
        """Return a number of an output at a state."""
        value = self._values[read](at)
        return float(value if read.element is None else value[read.element])

    def _find(self, read: Read) -> Value:
        owner, _, what = read.path.rpartition(".")
        name, _, below = owner.partition(".")
        part = self._system.parts.get(name)
        if isinstance(part, Body) and below in part.markers:
            return self._of_marker(read, part.markers[below], what)
        if isinstance(part, Body) and not below:
            return self._of_body(read, part, what)
        if isinstance(part, Joint):
            return self._of_joint(read, part, what)
        return self._of_element(read, owner, what)

    def _of_marker(self, read: Read, marker: Marker, what: str) -> Value:
        point = self._shapes.point(marker)
        if what == "position":
            return lambda at: at.field.value[point]
        if what == "velocity":
            return lambda at: at.speed(point)
        if what == "angular_velocity":
            return lambda at: at.spin(at.body(marker))
        return self._unknown(read)

    def _of_body(self, read: Read, body: Body, what: str) -> Value:
        origin = self._shapes.origin(body)
        if what == "angular_velocity":
            return lambda at: at.spin(body.index)
        if what == "position" or what in ("x", "y", "z"):
            axis = slice(None) if what == "position" else "xyz".index(what)
            return lambda at: at.field.value[origin][axis]
        if what == "velocity" or what in ("x_rate", "y_rate", "z_rate"):
            axis = slice(None) if what == "velocity" else "xyz".index(what[0])
            return lambda at: at.speed(origin)[axis]
        if what.removesuffix("_rate") not in ("e0", "e1", "e2", "e3"):
            return self._unknown(read)
        number = int(what[1])
        if what.endswith("_rate"):
            return lambda at: self._turn_rate(at, body)[number]
        return lambda at: self._turn(at, body)[number]

    def _turn(self, at: LoadState, body: Body) -> Array:
        """Return Euler parameters, with the sign nearest to the last ones, or the given ones."""
        found = quaternion_from_rotation(at.rotations[body.index])
        before = self._turned.get(body.index)
        if before is None:
            before = quaternion_from_rotation(body.rotation)
        signed: Array = -found if float(before @ found) < 0.0 else found
        self._turned[body.index] = signed
        return signed

    def _turn_rate(self, at: LoadState, body: Body) -> Array:
        """Return ½ (0, ω) ⊗ e, with ω in axes of the world."""
        e, w = self._turn(at, body), at.spin(body.index)
        return 0.5 * np.array([-w @ e[1:], *(e[0] * w + np.cross(w, e[1:]))])

    def _of_joint(self, read: Read, joint: Joint, what: str) -> Value:
        from ...plant._initial import coordinate_name

        for number, coordinate in enumerate(joint.coordinates):
            scalar = self._shapes.coordinate(joint, number)
            name = coordinate_name(joint, number)
            if what == name and coordinate.kind == "angle":
                return lambda at, scalar=scalar: at.unwrapped(scalar)  # type: ignore[misc]
            if what == name:
                return lambda at, scalar=scalar: at.value(scalar)  # type: ignore[misc]
            if what in ("speed", f"{name}_speed"):
                return lambda at, scalar=scalar: at.rate(scalar)  # type: ignore[misc]
        return self._unknown(read)

    def _of_element(self, read: Read, owner: str, what: str) -> Value:
        element = next((e for e in self._system.elements if e.name == owner), None)
        if element is None:
            return self._unknown(read)

        def value(at: LoadState) -> Any:
            found = element.measure(at, self._items[owner], what)
            return self._unknown(read)(at) if found is None else found

        return value

    def _unknown(self, read: Read) -> Value:
        def fail(at: LoadState) -> Any:
            raise DiagramError(
                f"a formula of `{self._system.name}` reads `{read.text}`, which runs know and "
                f"analyses do not: equilibrium, linearize, kinematics and inverse_dynamics know "
                f"coordinates and speeds of joints, positions and velocities, and outputs of "
                f"springs, forces and torques."
            )

        return fail
