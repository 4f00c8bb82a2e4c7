"""Coulomb friction that sticks in joints, from their reactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..... import _contract as contract
from .....errors import DiagramError
from ....core._ports import Parameter, parameter
from ...joints._joint import Joint
from .._element import Element, Output, power
from ._pivots import require_tree

if TYPE_CHECKING:
    from ...equations._loads import LoadState
    from ...equations._shapes import Shapes
    from ...plant._tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class JointStiction(Element):
    """Coulomb friction in a joint that sticks, with the normal load from its reaction.

    With the normal load N of `JointFriction`, the rate v of the coordinate, and r the radius of the
    pin of a revolute, 1 for a prismatic joint:

        slides     effort = -coefficient N r sign(v)
        sticks     v = 0; effort = what keeps v' = 0, as long as |effort| <= static N r

    Reactions depend on friction and friction on reactions: the efforts and loads of all joints of
    the mechanism, with or without a stick mode, are solved together. Both changes of the mode are
    events, located within the tick as those of `Stiction`.

    Joints that hold the same motion, such as those of a four-bar, stick together. Their
    efforts are then not unique: they share the load with the least sum of squares of
    effort / (static r), each up to its limit. They slide where no efforts within the limits hold
    the mechanism; with several degrees of freedom in rare cases a little before.

    A run ends with an error where friction and reactions have no solution, or several, with rigid
    bodies (the paradox of Painlevé).

    Attributes
    ----------
    coefficient, static
        Of dry friction while the joint slides, and largest while it sticks.
    diameter, length, middle
        As for `JointFriction`.
    coordinate
        Of its joint; a universal joint has two, each with its own mode.
    """

    kernel = contract.MB_JOINT_STICTION

    name: str
    joint: Joint
    coefficient: float
    static: float
    diameter: float | None
    length: float | None
    middle: Literal["first", "second"]
    coordinate: int = 0

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path."""
        for name, unit, doc in (
            ("coefficient", None, f"of dry friction in {self.joint.name} while it slides"),
            ("static", None, "largest coefficient of dry friction while it sticks"),
            ("diameter", "m", "of the pin, or across the guide"),
            ("length", "m", "between supports along the axis"),
        ):
            value = getattr(self, name)
            if value is not None:
                yield parameter(f"{self.name}.{name}", value, unit=unit, doc=doc)

    @property
    def follows_reaction_of(self) -> Joint:
        """Return the joint whose reaction its force follows from."""
        return self.joint

    @property
    def acts_on(self) -> Joint:
        """Return the joint whose coordinate it acts on."""
        return self.joint

    @property
    def sticks(self) -> bool:
        """Return that it holds its joint at rest."""
        return True

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        of = self.joint.coordinates[self.coordinate]
        effort = f"of friction on the coordinate of {self.joint.name}"
        load = "with which the bearing presses: the normal load"
        return {
            of.effort: Output(
                contract.JOINT_STICTION_SHOWN_EFFORT, of.effort_unit, effort, follows="solution"
            ),
            "load": Output(contract.JOINT_STICTION_SHOWN_LOAD, "N", load, follows="solution"),
            "power_loss": Output(
                contract.JOINT_STICTION_SHOWN_POWER_LOSS,
                "W",
                "what friction turns into heat",
                follows="solution",
            ),
            "sticks": Output(
                contract.JOINT_STICTION_SHOWN_STICKS,
                None,
                "whether the joint sticks",
                kind="boolean",
            ),
            "power": power("solution"),
        }

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        joint = self.joint
        kind = joint.type.friction_kind
        assert kind is not None
        at = tables.coordinate(joint, self.coordinate)
        if joint.has_pivots:
            require_tree(tables, self.name, joint)
        places = {"length": [0, 0], "angle": [0, 0]}
        places[joint.coordinates[self.coordinate].kind] = (
            [at.v, max(-1, min(at.sign, 1))] if at.sign else [-1 - at.q, 0]
        )
        first = self.middle == "first"
        number = tables.add_joint_friction([
            kind, *places["length"], *places["angle"],
            *tables.reaction(joint),
            tables.marker(joint.first, joint.frame_i) if first
            else tables.marker(joint.second, joint.frame_j),
            tables.place(f"{self.name}.coefficient"),
            -1,
        ])  # fmt: skip
        return [at.q, at.v, number, tables.next_stiction(), at.sign]

    def reserve(self, shapes: Shapes) -> int:
        """Return the scalar of its coordinate."""
        return shapes.coordinate(self.joint, self.coordinate)

    def push(self, at: LoadState, items: int) -> None:
        """Let it be where it does nothing: in a joint at rest."""
        if at.rate(items) != 0.0:
            raise DiagramError(
                f"friction `{self.name}` follows from the reaction of `{self.joint.name}`, "
                f"which runs, kinematics() and inverse_dynamics() iterate. Where nothing moves, "
                f"equilibrium() goes without it."
            )
