"""Springs, dampers and actuators on an angle of a joint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .... import _contract as contract
from ...core._ports import Parameter, parameter
from ..drawing._signs import joint_axis
from ..drawing._strokes import INK, Stroke
from ..joints._joint import Joint
from ..plant._parameters import law_parameters
from ..system._laws import AbstractLaw, Lawlike, as_law
from ..system._parts import Parts
from ..system._reading import read_number, suggest_keywords
from ..system._rotations import Array
from ._element import Element, Output, energy, power

if TYPE_CHECKING:
    from ..drawing._paper import Paper
    from ..drawing._poses import Snapshot
    from ..equations._loads import LoadState
    from ..equations._shapes import Shapes
    from ..plant._tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class TorsionalSpring(Element):
    """A spring, damper and actuator on an angle of a joint.

    The torque on the coordinate is -(stiffness (q - free_angle) + damping v + torque), with v the
    rate of q: on body i it is + that times h_i [V 1.62]. Coefficients are laws of t, q and v.
    """

    kernel = contract.MB_JOINT_SPRING

    name: str
    joint: Joint
    coordinate: int
    stiffness: AbstractLaw
    damping: AbstractLaw
    free_angle: float
    torque: AbstractLaw

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path."""
        name = self.name
        yield from law_parameters(f"{name}.stiffness", self.stiffness, "N.m/rad", "stiffness")
        yield from law_parameters(f"{name}.damping", self.damping, "N.m.s/rad", "viscous damping")
        yield parameter(f"{name}.free_angle", self.free_angle, unit="rad", doc="without torque")
        yield from law_parameters(f"{name}.torque", self.torque, "N.m", "torque")

    @property
    def acts_on(self) -> Joint:
        """Return the joint whose coordinate it acts on."""
        return self.joint

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        return {
            "angle": Output(contract.TORSION_SHOWN_ANGLE, "rad", f"angle of {self.joint.name}"),
            "rate": Output(contract.TORSION_SHOWN_RATE, "rad/s", "rate of the angle"),
            "torque": Output(
                contract.TORSION_SHOWN_TORQUE,
                "N.m",
                "torque of all its parts on the angle",
                1,
                "laws",
            ),
            "deflection": Output(contract.TORSION_SHOWN_DEFLECTION, "rad", "angle less free_angle"),
            "power": power(),
            "energy": energy(),
        }

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        at = tables.coordinate(self.joint, self.coordinate)
        first = tables.law(f"{self.name}.stiffness", self.stiffness)
        tables.law(f"{self.name}.damping", self.damping)
        tables.law(f"{self.name}.torque", self.torque)
        return [at.q, at.v, tables.place(f"{self.name}.free_angle"), first, at.sign]

    def reserve(self, shapes: Shapes) -> int:
        """Return the scalar of its coordinate."""
        return shapes.coordinate(self.joint, self.coordinate)

    def push(self, at: LoadState, items: int) -> None:
        """Add its generalized force at a state."""
        at.push_scalar(items, self.measure(at, items, "torque"))

    def measure(self, at: LoadState, items: int, what: str) -> Any:
        """Return its angle, rate, deflection or torque."""
        q, v = at.unwrapped(items), at.rate(items)
        if what in ("angle", "deflection"):
            return q - (self.free_angle if what == "deflection" else 0.0)
        if what != "torque":
            return v if what == "rate" else None
        of = {"t": at.t, "q": q, "v": v}
        return -(
            at.evaluate(self.stiffness, **of) * (q - self.free_angle)
            + at.evaluate(self.damping, **of) * v
            + at.evaluate(self.torque, **of)
        )

    def draw(self, frame: Snapshot, paper: Paper) -> list[Stroke]:
        """Return a spiral."""
        at = paper.at(frame.point(self.joint.second))
        about = joint_axis(self.joint, self.joint.coordinates[self.coordinate], frame)
        return [Stroke(paper.spiral(at, about, 6 * paper.size, 15 * paper.size), INK, width=1.2)]

    def label_place(self, frame: Snapshot, paper: Paper) -> tuple[Array, float] | None:
        """Return the places for its name and the distance from them."""
        return paper.at(frame.point(self.joint.second))[None], 19 * paper.size


class TorsionalSpringMethods(Parts):
    """Adds springs, dampers and actuators on angles."""

    @suggest_keywords
    def torsional_spring(
        self,
        name: str,
        joint: Joint,
        *,
        stiffness: Lawlike = 0.0,
        damping: Lawlike = 0.0,
        free_angle: float = 0.0,
        torque: Lawlike | None = None,
        coordinate: int | None = None,
    ) -> TorsionalSpring:
        """Add a spring, damper and actuator on an angle of a joint; see `TorsionalSpring`.

        Parameters
        ----------
        name, joint
            Its name, and the joint on which it acts.
        stiffness, damping, torque
            In N m/rad, N m s/rad and N m; a positive torque reduces the angle. Numbers, or laws of
            t, of the angle q, its rate v and outputs of the mechanism; see `Formula`.
        free_angle
            In rad.
        coordinate
            From 0; the first angle of the joint if not given.
        """
        self._check_name(name)
        known = ("t", "q", "v")
        return self._add(
            TorsionalSpring(
                name,
                joint,
                self._find_coordinate(name, joint, coordinate, "angle"),
                as_law(f"`stiffness` of `{name}`", stiffness, known),
                as_law(f"`damping` of `{name}`", damping, known),
                read_number(f"`free_angle` of `{name}`", free_angle),
                as_law(f"`torque` of `{name}`", 0.0 if torque is None else torque, known),
            )
        )
