"""Friction in a spherical joint, given by numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..... import _contract as contract
from .....errors import DiagramError
from ....core._ports import Parameter, parameter
from ...joints._joint import Joint
from .._element import Element, Output, power

if TYPE_CHECKING:
    from ...equations._loads import LoadState
    from ...equations._shapes import Shapes
    from ...plant._tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class SphericalFriction(Element):
    """Friction in a spherical joint: M = -(viscous ω + coulomb (ω / |ω|) tanh(|ω| / s)).

    ω is the angular velocity of the second body relative to the first, M the torque on the second
    body, s the `smoothing_speed` in rad/s: with less than about a tenth of it the joint creeps. The
    Coulomb torque is given; `JointFriction` derives it from the reaction of the joint.
    """

    kernel = contract.MB_SPHERICAL_FRICTION

    name: str
    joint: Joint
    viscous: float
    coulomb: float
    smoothing_speed: float

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path."""
        for name, unit, doc in (
            ("viscous", "N.m.s/rad", "viscous friction"),
            ("coulomb", "N.m", "dry friction"),
            ("smoothing_speed", "rad/s", "where dry friction reaches 76 %"),
        ):
            yield parameter(f"{self.name}.{name}", getattr(self, name), unit=unit, doc=doc)

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        return {
            "torque": Output(
                contract.SPHERICAL_FRICTION_SHOWN_TORQUE,
                "N.m",
                f"of friction in {self.joint.name} on its second body, in axes of the world",
                3,
            ),
            "power_loss": Output(
                contract.SPHERICAL_FRICTION_SHOWN_POWER_LOSS, "W", "what friction turns into heat"
            ),
            "power": power(),
        }

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        joint = self.joint
        i = tables.marker(joint.first, joint.frame_i)
        j = tables.marker(joint.second, joint.frame_j)
        return [i, j, tables.place(f"{self.name}.viscous"), 0, 0]

    def reserve(self, shapes: Shapes) -> None:
        """Return nothing: it reads angular velocities."""
        return

    def push(self, at: LoadState, items: None) -> None:
        """Add its generalized force at a state."""
        i, j = at.body(self.joint.first), at.body(self.joint.second)
        omega = at.spin(j) - at.spin(i)
        rate = float(np.linalg.norm(omega))
        # tanh(x) / x is 1 at 0: the slope there is that of a damper, as `linearize` takes it.
        slow = rate < 1e-8 * self.smoothing_speed
        dry = 1.0 / self.smoothing_speed if slow else np.tanh(rate / self.smoothing_speed) / rate
        torque = -(self.viscous + self.coulomb * dry) * omega
        at.turn(j, torque)
        at.turn(i, -torque)


def refuse_ball_stiction(
    name: str, joint: Joint, static: float | None, smoothing_speed: float | None
) -> None:
    """Raise if friction in a spherical joint is to stick."""
    if static is None and smoothing_speed != 0.0:
        return
    given = "`static` friction" if static is not None else "no `smoothing_speed`"
    raise DiagramError(
        f"`{name}` has {given} in `{joint.name}`, a spherical joint, which turns about every axis: "
        f"a joint with a stick mode has one coordinate. Take a smoothing_speed above 0, or three "
        f"revolutes with bodies of mass 0 between them."
    )
