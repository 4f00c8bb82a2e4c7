"""Coulomb friction in joints, from their reactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..... import _contract as contract
from .....errors import DiagramError
from ....core._ports import Parameter, parameter
from ...joints._joint import Joint
from ...joints._table import KINDS
from ...plant._parameters import law_parameters
from ...system._laws import AbstractLaw, Constant, Input, Lawlike, as_law
from ...system._parts import Parts
from ...system._reading import read_not_negative, read_positive
from .._element import Element, Output, power
from ._joint_stiction import JointStiction
from ._pivots import require_tree
from ._spherical_friction import refuse_ball_stiction

if TYPE_CHECKING:
    from ...equations._loads import LoadState
    from ...equations._shapes import Shapes
    from ...plant._tables import Tables


SMOOTHING_SPEED = 1e-3
"""Of dry friction, if none is given."""


@dataclass(frozen=True, slots=True, eq=False)
class JointFriction(Element):
    """Coulomb friction in a joint, from its reaction and the size of its bearing [V 6.49-6.54].

    In joint axes with z along the axis (the x axis of a slide in a plane), with the reaction of the
    ideal joint F, and M about the middle of the bearing:

        N = √(F_x² + F_y²) + 2 √(M_x² + M_y²) / length            the normal load
            + 2 |M_z| / diameter                                  of a prismatic joint, in space
        w = √(ṡ² + (θ̇ diameter / 2)²)                             the slip of the surfaces
        F_z = -coefficient N (ṡ / w) tanh(w / smoothing_speed)
        M_z = -coefficient N (diameter / 2) (θ̇ diameter / 2 / w) tanh(w / smoothing_speed)

    A revolute has no ṡ, a prismatic joint no θ̇. A universal joint has two pins, the pivots of its
    cross, each with its own friction and its own load: M is then the whole moment across the axis
    of the pivot, with the efforts on the other coordinate, as for two revolutes with a cross
    without mass. A spherical joint with the relative angular velocity ω has

        N = |F|,   w = |ω| diameter / 2
        M = -coefficient N (diameter / 2) (ω / |ω|) tanh(w / smoothing_speed)

    on its second body, in axes of the world. Force and couple are added as in the source;
    the load of two narrow supports is smaller: the larger of the two terms if both act in one
    plane. Not in the source, but derived analogously: the prismatic joint, whose guide turns M_z
    into a pair of forces across its width, and the distribution of the friction of a cylindrical
    joint between its two directions. In planar systems no couple tilts a pin: a revolute has no
    length, and a slide no diameter.

    Neglected, as in the source: friction of the force along the axis of a revolute on its shoulder,
    and that friction acts at the surface of a guide, not in its middle. There is no stiction: with
    less slip than `smoothing_speed` a joint creeps, as with `Friction`. `JointStiction` sticks.

    Attributes
    ----------
    coefficient
        A number, or a law of the slip v = w in m/s and of the normal load N in N, such as
        `stribeck_friction` and `film_friction`. Kinks of a law are not located as events.
    diameter, length
        Of the bearing, in m; None where there is none. For a prismatic joint the diameter is the
        width across which a pair of forces keeps it from turning.
    smoothing_speed
        Of the surfaces, in m/s.
    middle
        Whether the middle of the bearing is the first marker of the joint or the second; they are
        apart where a joint slides.
    coordinate
        Of a universal joint: the pivot, 0 on the first body and 1 on the second.
    """

    kernel = contract.MB_JOINT_FRICTION

    name: str
    joint: Joint
    coefficient: float | AbstractLaw
    diameter: float | None
    length: float | None
    smoothing_speed: float
    middle: Literal["first", "second"]
    coordinate: int | None = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return the coordinates of its joint on which it acts."""
        every = tuple(range(len(self.joint.coordinates)))
        return every if self.coordinate is None else (self.coordinate,)

    @property
    def efforts(self) -> tuple[Literal["force", "torque"], ...]:
        """Return its efforts: on the displacement, on the angle of its joint, or on both."""
        if self.joint.is_ball:
            return ("torque",)
        return tuple(self.joint.coordinates[n].effort for n in self.numbers)

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path."""
        for name, unit, doc in (
            ("coefficient", None, f"of dry friction in {self.joint.name}"),
            ("smoothing_speed", "m/s", "slip where dry friction reaches 76 %"),
            ("diameter", "m", "of the pin, or across the guide"),
            ("length", "m", "between supports along the axis"),
        ):
            value = getattr(self, name)
            if isinstance(value, AbstractLaw):
                yield from law_parameters(f"{self.name}.{name}", value, "1", doc)
            elif value is not None:
                yield parameter(f"{self.name}.{name}", value, unit=unit, doc=doc)

    @property
    def follows_reaction_of(self) -> Joint:
        """Return the joint whose reaction its force follows from."""
        return self.joint

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        known = {
            "force": Output(
                contract.MB_JOINT_FRICTION_FORCE,
                "N",
                "of friction on the displacement",
                1,
                "solution",
            ),
            "torque": Output(
                contract.MB_JOINT_FRICTION_TORQUE, "N.m", "of friction on the angle", 1, "solution"
            ),
        }
        if self.joint.is_ball:
            known["torque"] = Output(
                contract.MB_JOINT_FRICTION_TORQUE,
                "N.m",
                "of friction on the second body, in axes of the world",
                3,
                "solution",
            )
        load = "with which the bearing presses: the normal load"
        return {effort: known[effort] for effort in self.efforts} | {
            "load": Output(contract.MB_JOINT_FRICTION_LOAD, "N", load, 1, "solution"),
            "power_loss": Output(
                contract.MB_JOINT_FRICTION_POWER_LOSS,
                "W",
                "what friction turns into heat",
                1,
                "solution",
            ),
            "power": power("solution"),
        }

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        joint = self.joint
        kind = joint.type.friction_kind
        assert kind is not None
        ends = tables.marker(joint.first, joint.frame_i), tables.marker(joint.second, joint.frame_j)
        places = {"length": [0, 0], "angle": [0, 0]}
        for number in self.numbers:
            at = tables.coordinate(joint, number)
            sign = max(-1, min(at.sign, 1))
            places[joint.coordinates[number].kind] = [at.v, sign] if sign else [-1 - at.q, 0]
        if joint.is_ball:
            places = {"length": [ends[0], 0], "angle": [ends[1], 0]}
        if joint.has_pivots:
            require_tree(tables, self.name, joint)
        number = tables.add_joint_friction([
            kind, *places["length"], *places["angle"],
            *tables.reaction(joint),
            ends[0 if self.middle == "first" else 1],
            *self._coefficient(tables),
        ])  # fmt: skip
        return [0, 0, 0, number, int(joint.is_ball)]

    def _coefficient(self, tables: Tables) -> tuple[int, int]:
        """Return where its numbers begin, the coefficient being the first, and the law or -1."""
        if not isinstance(self.coefficient, AbstractLaw):
            return tables.place(f"{self.name}.coefficient"), -1
        law = tables.law(f"{self.name}.coefficient", self.coefficient)
        return tables.place(f"{self.name}.smoothing_speed") - 1, law

    def reserve(self, shapes: Shapes) -> list[int]:
        """Return the scalars of its coordinates."""
        return [shapes.coordinate(self.joint, n) for n in self.numbers]

    def push(self, at: LoadState, items: list[int]) -> None:
        """Let it be where it does nothing: in a joint at rest."""
        ends = self.joint.first, self.joint.second
        turns = self.joint.is_ball and (at.spin(at.body(ends[1])) - at.spin(at.body(ends[0]))).any()
        if turns or any(at.rate(n) != 0.0 for n in items):
            raise DiagramError(
                f"friction `{self.name}` follows from the reaction of `{self.joint.name}`, "
                f"which runs, kinematics() and inverse_dynamics() iterate. Where nothing moves it "
                f"is 0, and equilibrium() goes without it."
            )


def make_joint_friction(
    system: Parts,
    name: str,
    joint: Joint,
    coefficient: Lawlike,
    diameter: float | None,
    length: float | None,
    smoothing_speed: float | None,
    static: float | None,
    middle: Literal["first", "second"],
    coordinate: int | None,
) -> JointFriction | JointStiction:
    """Add friction from the reaction of a joint; see `System.friction`."""
    if isinstance(joint, Joint) and joint.type.friction_kind is None:
        *others, last = (one.name for one in KINDS if one.spatial.friction_kind is not None)
        raise DiagramError(
            f"`{name}` is friction from the reaction of `{joint.name}`, a {joint.kind} joint: "
            f"only {', '.join(others)} and {last} joints have it. Give viscous and "
            f"coulomb instead."
        )
    system._check_joint(name, joint)
    if joint.has_pivots and coordinate is None:
        raise DiagramError(
            f"`{name}` is friction in `{joint.name}`, a {joint.kind} joint, which has two pivots, "
            f"each with its own load: give coordinate=0 for the one on "
            f"`{joint.first.body.name}`, 1 for the one on `{joint.second.body.name}`, and add "
            f"friction of another name for the other one."
        )
    if not joint.has_pivots and coordinate is not None:
        raise DiagramError(
            f"`{name}` has a `coefficient`: it follows from the reaction of `{joint.name}`, a "
            f"{joint.kind} joint, and acts on all that it leaves free. Leave `coordinate` out."
        )
    if coordinate is not None:
        coordinate = system._find_coordinate(name, joint, coordinate)
        middle = "first" if coordinate == 0 else "second"  # the marker with the axis of the pivot
    for other in system.elements:
        if other.follows_reaction_of is not joint:
            continue
        if coordinate is None or getattr(other, "coordinate", None) == coordinate:
            pivot = "" if coordinate is None else f"pivot {coordinate} of "
            raise DiagramError(
                f"`{other.name}` is friction from the reaction of {pivot}`{joint.name}` already: a "
                f"{'joint' if coordinate is None else 'pivot'} has one bearing."
            )
    if middle not in ("first", "second"):
        raise DiagramError(f"`middle` of `{name}` is 'first' or 'second', got {middle!r}.")
    sizes = {"diameter": diameter, "length": length}
    for what, value in sizes.items():
        where = f"a {joint.kind} joint in {'a plane' if system.planar else 'space'}"
        wanted = what in joint.type.friction_sizes
        if wanted and value is None:
            raise DiagramError(
                f"`{name}` needs `{what}`, in m: friction in {where} depends on the "
                f"{what} of its bearing."
            )
        if value is not None and not wanted:
            raise DiagramError(
                f"`{name}` takes no `{what}`: friction in {where} does not depend on it."
            )
        sizes[what] = None if value is None else read_positive(name, what, value)
    dry = _read_coefficient(name, coefficient)
    if joint.is_ball:
        refuse_ball_stiction(name, joint, static, smoothing_speed)
    if isinstance(dry, AbstractLaw) and (static is not None or smoothing_speed == 0.0):
        raise DiagramError(
            f"`{name}` has `static` friction, and a coefficient that is a law: a joint sticks with "
            f"numbers. Leave `static` out, and take a smoothing_speed."
        )
    if not isinstance(dry, AbstractLaw) and (static is not None or smoothing_speed == 0.0):
        limit = _read_static(name, joint, dry, static)
        return system._add(
            JointStiction(
                name, joint, dry, limit, sizes["diameter"], sizes["length"], middle, coordinate or 0
            )
        )
    speed = read_positive(
        name, "smoothing_speed", SMOOTHING_SPEED if smoothing_speed is None else smoothing_speed
    )
    return system._add(
        JointFriction(
            name, joint, dry, sizes["diameter"], sizes["length"], speed, middle, coordinate
        )
    )


def _read_coefficient(name: str, coefficient: Lawlike) -> float | AbstractLaw:
    if not isinstance(coefficient, str | AbstractLaw):
        return read_not_negative(name, "coefficient", coefficient)
    law = as_law(f"`coefficient` of `{name}`", coefficient, ("t", "v", "N"))
    if isinstance(law, Constant):
        return read_not_negative(name, "coefficient", law.number)
    if isinstance(law, Input):
        raise DiagramError(
            f"`coefficient` of `{name}` is an Input: give a number or a law of the slip `v` and "
            f"the normal load `N`."
        )
    return law


def _read_static(name: str, joint: Joint, dry: float, static: float | None) -> float:
    """Return the coefficient with which a joint sticks."""
    if len(joint.coordinates) > 1 and not joint.has_pivots:
        raise DiagramError(
            f"`{name}` has `static` friction in `{joint.name}`, a {joint.kind} joint, which slides "
            f"and turns: a joint with a stick mode has one coordinate. Take a smoothing_speed, or "
            f"a revolute and a prismatic joint in a row."
        )
    limit = dry if static is None else read_not_negative(name, "static", static)
    if limit < dry:
        raise DiagramError(
            f"`static` of `{name}` is {limit:g}, less than `coefficient`, {dry:g}: a joint "
            f"that slides would have more friction than one that sticks."
        )
    return limit
