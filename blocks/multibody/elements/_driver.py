"""Drivers: joint coordinates that follow a law of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .... import _contract as contract
from ....errors import DiagramError
from ...core._ports import Parameter
from ..drawing._signs import draw_effort
from ..joints._joint import Joint
from ..plant._parameters import law_parameters
from ..system._laws import AbstractLaw, Constant, Lawlike, as_law, check_motion
from ..system._parts import Parts
from ..system._reading import suggest_keywords
from ..system._rotations import Array
from ._element import Constraint, Output, Term, power

if TYPE_CHECKING:
    from ..drawing._paper import Paper
    from ..drawing._poses import Snapshot
    from ..drawing._strokes import Stroke
    from ..plant._tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class JointDriver(Constraint):
    """Prescribed motion of a joint coordinate: Φ = q - law(t) = 0.

    With the equations of motion M q̈ + Φ_qᵀ λ = Q the effort of the driver on the coordinate is -λ.
    """

    driven = True
    is_load = True

    name: str
    joint: Joint
    coordinate: int
    law: AbstractLaw

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path."""
        of = self.joint.coordinates[self.coordinate]
        yield from law_parameters(f"{self.name}.motion", self.law, of.unit, f"{self.joint.name}")

    @property
    def terms(self) -> tuple[Term, ...]:
        """Return the coordinates in the equation."""
        return (Term(self.joint, self.coordinate, 1.0),)

    @property
    def right_side(self) -> AbstractLaw:
        """Return the law that the coordinate follows."""
        return self.law

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        unit = self.joint.coordinates[self.coordinate].effort_unit
        doc = f"force or torque of driver {self.name} on its coordinate"
        return {
            "effort": Output(0, unit, doc, 1, "solution", of="effort"),
            "power": power("solution"),
        }

    def row(self, tables: Tables) -> tuple[list[int], list[list[int]]]:
        """Return the integers of its row in the kernel, and the path: the speeds in the row."""
        at = tables.tree.coordinates.get((self.joint.name, self.coordinate))
        shift = at is not None and at.offset != 0.0
        law = tables.law(f"{self.name}.motion", self.law, moves=True, shift=shift)
        tables.motion_laws[self.name] = law
        if at is not None:
            return [contract.MB_ROW_DRIVER, at.q, 0, at.v, at.sign, law], [[at.v, at.link, 0, 1]]
        measure = -1 - tables.coordinate(self.joint, self.coordinate).q
        turns, i, j = tables.measures[measure][:3]
        kind = contract.MB_ROW_DRIVEN_ANGLE if turns else contract.MB_ROW_DRIVEN_LENGTH
        return [kind, i, j, measure, 0, law], tables.path(self.joint.first, self.joint.second)

    def draw(self, frame: Snapshot, paper: Paper) -> list[Stroke]:
        """Return an arrow along the speed."""
        speed = Constant(self.law.jet(frame.t)[1])
        return draw_effort(self.joint, self.joint.coordinates[self.coordinate], speed, frame, paper)

    def label_place(self, frame: Snapshot, paper: Paper) -> tuple[Array, float] | None:
        """Return the places for its name and the distance from them."""
        return paper.at(frame.point(self.joint.second))[None], 19 * paper.size


class DriverMethods(Parts):
    """Adds drivers."""

    @suggest_keywords
    def driver(
        self, name: str, joint: Joint, law: Lawlike, *, coordinate: int | None = None
    ) -> JointDriver:
        """Prescribe a joint coordinate as a law of t, in m or rad.

        Parameters
        ----------
        name, joint
            Its name, and the driven joint.
        law
            Of the coordinate, with a continuous rate. A formula that jumps is an error; jumps
            during the run cause a warning at its end.
        coordinate
            From 0; the only one of the joint if not given.

        Raises
        ------
        DiagramError
            If the law jumps within its first 10 s, or the coordinate already has a driver.
        """
        self._check_name(name)
        place = self._find_coordinate(name, joint, coordinate)
        for other in self.drivers:
            if other.joint is joint and other.coordinate == place:
                raise DiagramError(
                    f"`{name}` drives coordinate {place} of `{joint.name}`, which `{other.name}` "
                    f"drives already."
                )
        what = f"the law of `{name}`"
        return self._add(JointDriver(name, joint, place, check_motion(what, as_law(what, law))))
