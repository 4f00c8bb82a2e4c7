"""Forces: what acts on bodies besides gravity and joints.

Between markers i, the first, and j, the second, d = p_j - p_i as in joints. An effort on a joint
coordinate acts on body j along the coordinate and on body i by the opposite. Coefficients are laws
of the time t and of the element's own variables; see each class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from ..bearings import AbstractBearing
from ..core.ports import Parameter, parameter
from .bodies import Marker
from .clearance import ClearanceRevolute
from .joints import Coordinate, Joint
from .laws import AbstractLaw
from .parameters import law_numbers
from .rotations import Array


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """A force at a marker, or a torque on its body.

    Attributes
    ----------
    effort
        ``"force"`` in N or ``"torque"`` in N m.
    components
        Three laws of t, along x, y, z of `frame`.
    frame
        Axes of the ``"world"``, of the ``"body"`` or of the ``"marker"``.
    single
        The one component that was given as a number, 0, 1 or 2, or None for a vector. The others
        are 0.
    """

    name: str
    effort: Literal["force", "torque"]
    marker: Marker
    components: tuple[AbstractLaw, AbstractLaw, AbstractLaw]
    frame: Literal["world", "body", "marker"]
    single: int | None = None

    def numbers(self) -> Iterator[Parameter]:
        """Yield its numbers: ``name.force`` of a single component, else ``name.force.x`` …."""
        unit = "N" if self.effort == "force" else "N.m"
        path = f"{self.name}.{self.effort}"
        if self.single is not None:
            yield from law_numbers(path, self.components[self.single], unit, self.effort)
            return
        size = 2 if self.marker.body.system.planar else 3
        for axis, law in zip("xyz"[:size], self.components, strict=False):
            yield from law_numbers(f"{path}.{axis}", law, unit, f"{self.effort} along {axis}")


@dataclass(frozen=True, slots=True, eq=False)
class JointLoad:
    """A force or torque on a joint coordinate, by a law of t. Positive increases the coordinate."""

    name: str
    joint: Joint
    coordinate: int
    effort: AbstractLaw

    @property
    def of(self) -> Coordinate:
        """Return the coordinate it acts on."""
        return self.joint.coordinates[self.coordinate]

    def numbers(self) -> Iterator[Parameter]:
        """Yield its numbers: ``name.force`` or ``name.torque``."""
        kind = self.of.effort
        yield from law_numbers(
            f"{self.name}.{kind}", self.effort, self.of.effort_unit, f"{kind} on {self.joint.name}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Spring:
    """A spring, damper and actuator between two markers.

    F = stiffness (l - free_length) + damping v + force, with l = |d| and v its rate: tension is
    positive, body i feels +F d/l at its marker and body j the opposite [V 1.57-1.61]. With
    `components` only those components of that force, in world axes, act.
    Coefficients are laws of t, l and v; at l = 0 there is no direction and no force.
    """

    name: str
    first: Marker
    second: Marker
    stiffness: AbstractLaw
    damping: AbstractLaw
    free_length: float
    force: AbstractLaw
    components: str

    def numbers(self) -> Iterator[Parameter]:
        """Yield its numbers by path."""
        name = self.name
        yield from law_numbers(f"{name}.stiffness", self.stiffness, "N/m", "stiffness")
        yield from law_numbers(f"{name}.damping", self.damping, "N.s/m", "viscous damping")
        yield parameter(f"{name}.free_length", self.free_length, unit="m", doc="without force")
        yield from law_numbers(f"{name}.force", self.force, "N", "tension")


@dataclass(frozen=True, slots=True, eq=False)
class TorsionalSpring:
    """A spring, damper and actuator on an angle of a joint.

    The torque on the coordinate is -(stiffness (q - free_angle) + damping v + torque), with v the
    rate of q: on body i it is + that times h_i [V 1.62]. Coefficients are laws of t, q and v.
    """

    name: str
    joint: Joint
    coordinate: int
    stiffness: AbstractLaw
    damping: AbstractLaw
    free_angle: float
    torque: AbstractLaw

    def numbers(self) -> Iterator[Parameter]:
        """Yield its numbers by path."""
        name = self.name
        yield from law_numbers(f"{name}.stiffness", self.stiffness, "N.m/rad", "stiffness")
        yield from law_numbers(f"{name}.damping", self.damping, "N.m.s/rad", "viscous damping")
        yield parameter(f"{name}.free_angle", self.free_angle, unit="rad", doc="without torque")
        yield from law_numbers(f"{name}.torque", self.torque, "N.m", "torque")


@dataclass(frozen=True, slots=True, eq=False)
class Bushing:
    """A soft joint: springs and dampers along and about the axes of marker i.

    With x = R_WMiᵀ d and (e0, e) the Euler parameters of R = R_WMiᵀ R_WMj, where e is the axis of
    the rotation times sin ψ/2, the springs store

        U = ½ Σ k_n x_n² + 2 Σ k_(3+n) e_n²

    and forces and torques are the gradient of U, plus damping:

        force = k[:3] x + c[:3] ẋ      torque = 2 (e0 K e + e × K e) + c[3:] ω,   K = diag(k[3:])

    in axes of marker i, with ẋ the velocity of p_j and ω the angular velocity of j as seen from
    body i. Body i feels the force at p_j and the torque, body j the opposite, so that no angular
    momentum is made. For small rotations the torque is k θ about each axis; about a single axis it
    is k sin ψ. It is meant for rotations up to 90°: beyond, the torque about an axis falls, and at
    180° it is 0. In a plane x and y along and the angle itself about z are used, for any number of
    turns: stiffness[0], [1] and [5]; the others are 0.
    """

    name: str
    first: Marker
    second: Marker
    stiffness: Array
    damping: Array

    def numbers(self) -> Iterator[Parameter]:
        """Yield its numbers by path: ``name.stiffness.x``, … ``name.stiffness.rz``."""
        planar = self.first.body.system.planar
        for n, axis in enumerate(("x", "y", "z", "rx", "ry", "rz")):
            if planar and axis not in ("x", "y", "rz"):
                continue
            units = ("N/m", "N.s/m") if n < 3 else ("N.m/rad", "N.m.s/rad")
            for kind, values, unit in zip(
                ("stiffness", "damping"), (self.stiffness, self.damping), units, strict=True
            ):
                yield parameter(
                    f"{self.name}.{kind}.{axis}", values[n], unit=unit, doc=f"{kind} along {axis}"
                )


@dataclass(frozen=True, slots=True, eq=False)
class Bearing:
    """An oil film between a journal and its bush: what a bearing block does, inside the mechanism.

    Both markers are in the middle of the bearing, with z along its axis. The film sees where the
    centre line of the journal cuts the middle plane of the bush (the planes of both ends, for a
    film that tilts), in the axes of the bush's marker, and how fast; spin speeds are those about
    z. The force acts on the journal in that plane, the opposite on the bush in the same line, and
    the friction torque on both, so that no momentum is made. Nothing holds the journal along z.

    With ``coupling="constraint"`` two equations hold the journal instead, p_j = p_b + ε [V 4.8]: ε
    is where the steady film carries their multipliers, found anew after every step.

    Attributes
    ----------
    coupling
        ``"force"`` or ``"constraint"``.
    load_axes
        In which a film without squeeze takes its load to stand still: ``"world"`` or ``"bush"``.
    """

    name: str
    journal: Marker
    bush: Marker
    film: AbstractBearing
    coupling: Literal["force", "constraint"] = "force"
    load_axes: Literal["world", "bush"] = "world"

    @property
    def first(self) -> Marker:
        """Return the journal's marker."""
        return self.journal

    @property
    def second(self) -> Marker:
        """Return the bush's marker."""
        return self.bush

    @property
    def held(self) -> bool:
        """Return whether constraints hold the journal."""
        return self.coupling == "constraint"

    def numbers(self) -> Iterator[Parameter]:
        """Yield its numbers by path: ``name.radius``, ``name.viscosity`` …."""
        for item in self.film.parameters:
            yield parameter(f"{self.name}.{item.name}", item.value, unit=item.unit, doc=item.doc)


def warn_of_undamped(bearings: Iterable[Bearing]) -> str:
    """Return a warning of films that act as forces without their damping, or nothing."""
    names = [f"`{item.name}`" for item in bearings if not (item.film.squeeze or item.held)]
    if not names:
        return ""
    films, have = ("films", "have") if len(names) > 1 else ("film", "has")
    return (
        f"the {films} of {', '.join(names)} {have} squeeze=False and a force for coupling: nothing "
        f"damps the motion of the journal in its bush, which rings or whirls with growing "
        f"amplitude. Leave squeeze=False out, or take coupling='constraint'."
    )


@dataclass(frozen=True, slots=True, eq=False)
class Friction:
    """Friction on a joint coordinate: effort = -(viscous v + coulomb tanh(v / smoothing_speed)).

    v is the rate of the coordinate. The tanh replaces the sign of v: below about a tenth of
    `smoothing_speed` the joint creeps instead of sticking, at twice that speed 96 % of the Coulomb
    effort acts. The Coulomb effort is given; `Rubbing` derives it from the reaction of the joint.
    """

    name: str
    joint: Joint
    coordinate: int
    viscous: float
    coulomb: float
    smoothing_speed: float

    def numbers(self) -> Iterator[Parameter]:
        """Yield its numbers by path."""
        of = self.joint.coordinates[self.coordinate]
        rate = f"{of.unit}/s"
        for name, unit, doc in (
            ("viscous", f"{of.effort_unit}.s/{of.unit}", "viscous friction"),
            ("coulomb", of.effort_unit, "dry friction"),
            ("smoothing_speed", rate, "where dry friction reaches 76 %"),
        ):
            yield parameter(f"{self.name}.{name}", getattr(self, name), unit=unit, doc=doc)


@dataclass(frozen=True, slots=True, eq=False)
class Rubbing:
    """Coulomb friction in a joint, from its reaction and the size of its bearing [V 6.49-6.54].

    In joint axes with z along the axis (the x axis of a slide in a plane), with the reaction of the
    ideal joint F, and M about the middle of the bearing:

        N = √(F_x² + F_y²) + 2 √(M_x² + M_y²) / length            the normal load
            + 2 |M_z| / diameter                                  of a prismatic joint, in space
        w = √(ṡ² + (θ̇ diameter / 2)²)                             the slip of the surfaces
        F_z = -coefficient N (ṡ / w) tanh(w / smoothing_speed)
        M_z = -coefficient N (diameter / 2) (θ̇ diameter / 2 / w) tanh(w / smoothing_speed)

    A revolute has no ṡ, a prismatic joint no θ̇. Force and couple are added as in the source; two
    narrow supports would feel less, the larger of the two where both load them in one plane. Not in
    the source, but derived in its spirit: the prismatic joint, whose guide turns M_z into a pair of
    forces across its width, and the sharing of the friction of a cylindrical joint between its two
    directions. In a plane nothing tilts a pin: a revolute has no length, and a slide no diameter.

    Neglected, as in the source: friction of the force along the axis of a revolute on its shoulder,
    and that friction acts at the surface of a guide, not in its middle. There is no stiction: with
    less slip than `smoothing_speed` a joint creeps, as with `Friction`.

    Attributes
    ----------
    diameter, length
        Of the bearing, in m; None where there is none. For a prismatic joint the diameter is the
        width across which a pair of forces keeps it from turning.
    smoothing_speed
        Of the surfaces, in m/s.
    middle
        Whether the middle of the bearing is the first marker of the joint or the second; they are
        apart where a joint slides.
    """

    name: str
    joint: Joint
    coefficient: float
    diameter: float | None
    length: float | None
    smoothing_speed: float
    middle: Literal["first", "second"]

    @property
    def efforts(self) -> tuple[Literal["force", "torque"], ...]:
        """Return what it does: on the displacement, on the angle of its joint, or on both."""
        return tuple(of.effort for of in self.joint.coordinates)

    def numbers(self) -> Iterator[Parameter]:
        """Yield its numbers by path."""
        for name, unit, doc in (
            ("coefficient", None, f"of dry friction in {self.joint.name}"),
            ("smoothing_speed", "m/s", "slip where dry friction reaches 76 %"),
            ("diameter", "m", "of the pin, or across the guide"),
            ("length", "m", "between supports along the axis"),
        ):
            value = getattr(self, name)
            if value is not None:
                yield parameter(f"{self.name}.{name}", value, unit=unit, doc=doc)


@dataclass(frozen=True, slots=True, eq=False)
class Stop:
    """End stops on a joint coordinate q with rate v.

    Beyond `upper` by δ = q - upper > 0 the effort is -max(0, stiffness δ + damping v); below
    `lower` by δ = lower - q > 0 it is +max(0, stiffness δ - damping v). A stop never pulls. An
    infinite limit is no stop.
    """

    name: str
    joint: Joint
    coordinate: int
    lower: float
    upper: float
    stiffness: float
    damping: float

    def numbers(self) -> Iterator[Parameter]:
        """Yield its numbers by path."""
        of = self.joint.coordinates[self.coordinate]
        for name, unit, doc in (
            ("lower", of.unit, "lower limit"),
            ("upper", of.unit, "upper limit"),
            ("stiffness", f"{of.effort_unit}/{of.unit}", "beyond a limit"),
            ("damping", f"{of.effort_unit}.s/{of.unit}", "beyond a limit"),
        ):
            value = getattr(self, name)
            yield parameter(f"{self.name}.{name}", value, unit=unit, doc=doc, finite=False)


@dataclass(frozen=True, slots=True, eq=False)
class Driver:
    """Prescribed motion of a joint coordinate: Φ = q - law(t) = 0.

    With the equations of motion M q̈ + Φ_qᵀ λ = Q the effort of the driver on the coordinate is -λ.
    """

    name: str
    joint: Joint
    coordinate: int
    law: AbstractLaw

    def numbers(self) -> Iterator[Parameter]:
        """Yield its numbers by path."""
        of = self.joint.coordinates[self.coordinate]
        yield from law_numbers(f"{self.name}.motion", self.law, of.unit, f"{self.joint.name}")


Element = (
    Load
    | JointLoad
    | Spring
    | TorsionalSpring
    | Bushing
    | Bearing
    | ClearanceRevolute
    | Friction
    | Rubbing
    | Stop
)
"""Everything that acts by a force; drivers act by a constraint and stand apart."""
