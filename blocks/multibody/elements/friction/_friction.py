"""Friction on a joint coordinate, given by numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..... import _contract as contract
from .....errors import DiagramError
from ....core._ports import Parameter, parameter
from ...joints._joint import Joint
from ...system._laws import Lawlike
from ...system._parts import Parts
from ...system._reading import read_not_negative, read_positive, suggest_keywords
from .._element import Element, Output, power
from ._joint_friction import SMOOTHING_SPEED, JointFriction, make_joint_friction
from ._joint_stiction import JointStiction
from ._spherical_friction import SphericalFriction, refuse_ball_stiction
from ._stiction import Stiction

if TYPE_CHECKING:
    from ...equations._loads import LoadState
    from ...equations._shapes import Shapes
    from ...plant._tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class Friction(Element):
    """Friction on a joint coordinate: effort = -(viscous v + coulomb tanh(v / smoothing_speed)).

    v is the rate of the coordinate. The tanh replaces the sign of v: below about a tenth of
    `smoothing_speed` the joint creeps instead of sticking, at twice that speed 96 % of the Coulomb
    effort acts. `Stiction` sticks. The Coulomb effort is given; `JointFriction` derives it from the
    reaction of the joint.
    """

    kernel = contract.MB_FRICTION

    name: str
    joint: Joint
    coordinate: int
    viscous: float
    coulomb: float
    smoothing_speed: float

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path."""
        of = self.joint.coordinates[self.coordinate]
        rate = f"{of.unit}/s"
        for name, unit, doc in (
            ("viscous", f"{of.effort_unit}.s/{of.unit}", "viscous friction"),
            ("coulomb", of.effort_unit, "dry friction"),
            ("smoothing_speed", rate, "where dry friction reaches 76 %"),
        ):
            yield parameter(f"{self.name}.{name}", getattr(self, name), unit=unit, doc=doc)

    @property
    def acts_on(self) -> Joint:
        """Return the joint whose coordinate it acts on."""
        return self.joint

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        of = self.joint.coordinates[self.coordinate]
        doc = f"of friction on the coordinate of {self.joint.name}"
        return {
            of.effort: Output(contract.FRICTION_SHOWN_EFFORT, of.effort_unit, doc),
            "power_loss": Output(
                contract.FRICTION_SHOWN_POWER_LOSS, "W", "what friction turns into heat"
            ),
            "power": power(),
        }

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        at = tables.coordinate(self.joint, self.coordinate)
        return [at.q, at.v, tables.place(f"{self.name}.viscous"), 0, at.sign]

    def reserve(self, shapes: Shapes) -> int:
        """Return the scalar of its coordinate."""
        return shapes.coordinate(self.joint, self.coordinate)

    def push(self, at: LoadState, items: int) -> None:
        """Add its generalized force at a state."""
        v = at.rate(items)
        dry = self.coulomb * float(np.tanh(v / self.smoothing_speed))
        at.push_scalar(items, -(self.viscous * v + dry))


class FrictionMethods(Parts):
    """Adds friction to joints."""

    @suggest_keywords
    def friction(
        self,
        name: str,
        joint: Joint,
        *,
        viscous: float = 0.0,
        coulomb: float = 0.0,
        coefficient: Lawlike | None = None,
        diameter: float | None = None,
        length: float | None = None,
        smoothing_speed: float | None = None,
        static: float | None = None,
        middle: Literal["first", "second"] = "second",
        coordinate: int | None = None,
    ) -> Friction | Stiction | SphericalFriction | JointFriction | JointStiction:
        """Add friction to a joint: with given efforts, or from its reaction by a `coefficient`.

        With given efforts it acts on one coordinate with rate v: -(viscous v + coulomb tanh(v /
        smoothing_speed)); see `Friction`. With `static`, the joint sticks; see `Stiction`. In a
        spherical joint it is a torque against the relative angular velocity; see
        `SphericalFriction`. With a coefficient, and the size of its bearing, it is Coulomb's, from
        the reaction of a revolute, prismatic, cylindrical or spherical joint or of a pivot of a
        universal joint; see `JointFriction`, and with `static` `JointStiction`.
        Its outputs are then ``name.torque`` and ``name.force`` on the coordinates, ``load`` (the
        normal load) and ``power_loss``. With `static` there is also ``sticks``.

        Parameters
        ----------
        name, joint
            Its name, and the joint on which it acts.
        viscous, coulomb
            In N s/m and N, or N m s/rad and N m.
        coefficient
            Of friction: a number, or a law of the slip ``v`` of the surfaces in m/s and of the
            normal load ``N`` in N, such as `stribeck_friction` and `film_friction`.
        diameter, length
            Of the bearing of a joint with a coefficient, in m. In space both, of a spherical joint
            the diameter; in a plane the diameter of a revolute or the length of a prismatic joint.
        smoothing_speed
            Speed at which dry friction reaches 76 %: that of the coordinate, in m/s or rad/s; with
            a coefficient that of the surfaces, in m/s. 1e-3 by default. With 0 the joint sticks, up
            to `static` or, without that, `coulomb` or `coefficient`.
        static
            Largest effort with which the joint sticks, at least `coulomb`, in N or N m; with a
            coefficient, the largest coefficient with which a revolute or prismatic joint or a
            pivot sticks, at least `coefficient`. Dry friction is then not smoothed. A spherical
            joint has no stick mode.
        middle
            Marker at the middle of the bearing of a sliding joint: the second for a block
            on a rail, the first for a rod in a bush.
        coordinate
            From 0; the only one of the joint if not given. With a coefficient that of a pivot of a
            universal joint: 0 on its first body, 1 on its second; each is friction of its own.
        """
        self._check_name(name)
        if static is not None and smoothing_speed:
            raise DiagramError(
                f"`{name}` has `static` friction, with which the joint sticks, and a "
                f"`smoothing_speed`, with which it creeps: leave one of them out."
            )
        if coefficient is not None:
            if viscous or coulomb:
                raise DiagramError(
                    f"`{name}` has a `coefficient`: it follows from the reaction of the joint. Add "
                    f"viscous or coulomb as friction of another name."
                )
            return make_joint_friction(
                self, name, joint, coefficient, diameter, length, smoothing_speed, static, middle,
                coordinate,
            )  # fmt: skip
        if diameter is not None or length is not None:
            raise DiagramError(
                f"`{name}` has the size of a bearing but no `coefficient`: give one, or leave "
                f"diameter and length out."
            )
        damping = read_not_negative(name, "viscous", viscous)
        dry = read_not_negative(name, "coulomb", coulomb)
        self._check_joint(name, joint)
        if joint.is_ball and coordinate is None:
            refuse_ball_stiction(name, joint, static, smoothing_speed)
            smooth = SMOOTHING_SPEED if smoothing_speed is None else smoothing_speed
            speed = read_positive(name, "smoothing_speed", smooth)
            return self._add(SphericalFriction(name, joint, damping, dry, speed))
        place = self._find_coordinate(name, joint, coordinate)
        if static is None and smoothing_speed != 0.0:
            smooth = SMOOTHING_SPEED if smoothing_speed is None else smoothing_speed
            speed = read_positive(name, "smoothing_speed", smooth)
            return self._add(Friction(name, joint, place, damping, dry, speed))
        limit = dry if static is None else read_not_negative(name, "static", static)
        if limit < dry:
            raise DiagramError(
                f"`static` of `{name}` is {limit:g}, less than `coulomb`, {dry:g}: a joint "
                f"that slides would have more friction than one that sticks."
            )
        return self._add(Stiction(name, joint, place, damping, dry, limit))
