"""Applied forces as generalised forces, in any set of coordinates.

A force F at a point p does Q = p_qᵀ F, a torque T on a body Q = ω_vᵀ T, an effort on a joint
coordinate Q = effort · coordinate_q.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....errors import DiagramError
from ..clearance import ClearanceRevolute
from ..forces import (
    Bearing,
    Bushing,
    Friction,
    JointLoad,
    Load,
    Rubbing,
    Spring,
    Stop,
    TorsionalSpring,
)
from ..rotations import Array
from .shapes import Field, Scalars, Shapes

if TYPE_CHECKING:
    from ..system import System


class Loads:
    """The elements of a system, with the items and scalars that each one reads."""

    def __init__(self, system: System, shapes: Shapes) -> None:
        self.elements = system.elements
        self.planar = system.planar
        self.shapes = shapes
        self._turns: dict[int, float] = {}
        self._scalar: dict[str, int] = {}
        self._lengths: dict[str, list[int]] = {}
        self._rubbing: dict[str, list[int]] = {}
        for element in self.elements:
            if isinstance(element, Load):
                shapes.point(element.marker)
            elif isinstance(element, Spring):
                shapes.point(element.first)
                shapes.point(element.second)
            elif isinstance(element, Bushing):
                ends = shapes.point(element.second), shapes.point(element.first)
                body = self._body(element.first.body.index)
                self._lengths[element.name] = [
                    shapes.product((shapes.direction(body, axis), 0), ends)
                    for axis in element.first.rotation.T
                ]
            elif isinstance(element, Rubbing):
                self._rubbing[element.name] = [
                    shapes.coordinate(element.joint, n)
                    for n in range(len(element.joint.coordinates))
                ]
            elif not isinstance(element, Bearing | ClearanceRevolute):
                self._scalar[element.name] = shapes.coordinate(element.joint, element.coordinate)

    def _body(self, index: int) -> int:
        return self.shapes.ground if index < 0 else index

    def reset(self) -> None:
        """Forget the turns that angles have made."""
        self._turns.clear()

    def _unwrapped(self, scalar: int, angular: bool, value: float) -> float:
        if not angular:
            return value
        last = self._turns.get(scalar, value)
        value += 2.0 * np.pi * round((last - value) / (2.0 * np.pi))
        self._turns[scalar] = value
        return value

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
        shapes = self.shapes

        def push(item: int, f: Array) -> None:
            force[shapes.body[item]] += field.jacobian[item].T @ f

        def speed(item: int) -> Array:
            found: Array = field.jacobian[item] @ rates[shapes.body[item]] + field.partial[item]
            return found

        for element in self.elements:
            if isinstance(element, Load):
                body = self._body(element.marker.body.index)
                effort = np.array([law.value(t) for law in element.components])
                if element.frame == "marker":
                    effort = element.marker.rotation @ effort
                if element.frame != "world":
                    effort = rotations[body] @ effort
                if element.effort == "force":
                    push(shapes.point(element.marker), effort)
                else:
                    force[body] += spins[body].T @ effort
            elif isinstance(element, Spring):
                i, j = shapes.point(element.first), shapes.point(element.second)
                d = field.value[j] - field.value[i]
                length = float(np.sqrt(d @ d))
                if length == 0.0:
                    continue
                v = float(d @ (speed(j) - speed(i))) / length
                at = {"t": t, "l": length, "v": v}
                tension = (
                    element.stiffness.evaluate(**at) * (length - element.free_length)
                    + element.damping.evaluate(**at) * v
                    + element.force.evaluate(**at)
                )
                pull = tension / length * d
                for n, axis in enumerate("xyz"):
                    if axis not in element.components:
                        pull[n] = 0.0
                push(i, pull)
                push(j, -pull)
            elif isinstance(element, Bushing):
                self._add_bushing(element, scalars, spins, rotations, rates, force, total)
            elif isinstance(element, Bearing):
                raise DiagramError(
                    f"`{element.name}` is a lubricated bearing, whose film only the engine knows: "
                    f"run the system in time. Where a film carries a load, and how stiff it is "
                    f"there, its equilibrium(…) and coefficients(…) say."
                )
            elif isinstance(element, ClearanceRevolute):
                raise DiagramError(
                    f"`{element.name}` is a revolute with clearance, whose contact only the engine "
                    f"knows: run the system in time."
                )
            elif isinstance(element, Rubbing):
                self._refuse_rubbing(element, scalars)
            else:
                scalar = shapes.scalar(self._scalar[element.name])
                effort_on = self._effort(
                    element, t, scalar, float(scalars.value[scalar]), float(scalars.rate[scalar])
                )
                total += effort_on * scalars.jacobian[scalar]

    def _refuse_rubbing(self, element: Rubbing, scalars: Scalars) -> None:
        """Let it be where it does nothing: in a joint at rest."""
        places = [self.shapes.scalar(n) for n in self._rubbing[element.name]]
        if any(scalars.rate[n] != 0.0 for n in places):
            raise DiagramError(
                f"friction `{element.name}` follows from the reaction of `{element.joint.name}`, "
                f"which only the engine iterates: run the system in time. Where nothing moves it "
                f"is 0, and equilibrium() goes without it."
            )

    def _effort(
        self,
        element: JointLoad | TorsionalSpring | Friction | Stop,
        t: float,
        scalar: int,
        value: float,
        v: float,
    ) -> float:
        if isinstance(element, JointLoad):
            return element.effort.value(t)
        if isinstance(element, Friction):
            return -(
                element.viscous * v + element.coulomb * float(np.tanh(v / element.smoothing_speed))
            )
        angular = element.joint.coordinates[element.coordinate].kind == "angle"
        q = self._unwrapped(scalar, angular, value)
        if isinstance(element, TorsionalSpring):
            at = {"t": t, "q": q, "v": v}
            return -(
                element.stiffness.evaluate(**at) * (q - element.free_angle)
                + element.damping.evaluate(**at) * v
                + element.torque.evaluate(**at)
            )
        if q > element.upper:
            return -max(0.0, element.stiffness * (q - element.upper) + element.damping * v)
        if q < element.lower:
            return max(0.0, element.stiffness * (element.lower - q) - element.damping * v)
        return 0.0

    def _add_bushing(
        self,
        element: Bushing,
        scalars: Scalars,
        spins: Array,
        rotations: Array,
        rates: Array,
        force: Array,
        total: Array,
    ) -> None:
        i, j = (self._body(end.body.index) for end in (element.first, element.second))
        for k, scalar in enumerate(self._lengths[element.name]):
            effort = element.stiffness[k] * scalars.value[scalar]
            effort += element.damping[k] * scalars.rate[scalar]
            total -= effort * scalars.jacobian[scalar]
        frame = rotations[i] @ element.first.rotation
        r = frame.T @ rotations[j] @ element.second.rotation
        if self.planar:
            key = -1 - self._lengths[element.name][0]
            angle = self._unwrapped(key, True, float(np.arctan2(r[1, 0], r[0, 0])))
            elastic = np.array([0.0, 0.0, element.stiffness[5] * angle])
        else:
            # The gradient of Σ a_n (1 - R_nn) = 2 Σ k_n e_n²; see `Bushing`.
            a = 0.5 * element.stiffness[3:].sum() - element.stiffness[3:]
            elastic = np.array([
                a[1] * r[2, 1] - a[2] * r[1, 2],
                a[2] * r[0, 2] - a[0] * r[2, 0],
                a[0] * r[1, 0] - a[1] * r[0, 1],
            ])  # fmt: skip
        spin = frame.T @ (spins[j] @ rates[j] - spins[i] @ rates[i])
        torque = frame @ (elastic + element.damping[3:] * spin)
        force[i] += spins[i].T @ torque
        force[j] -= spins[j].T @ torque
