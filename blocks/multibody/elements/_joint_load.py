"""Forces and torques on joint coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .... import _contract as contract
from ...core._ports import Parameter
from ..drawing._signs import draw_effort
from ..joints._joint import Coordinate, Joint
from ..plant._parameters import law_parameters
from ..system._laws import AbstractLaw, Formula, Table
from ..system._rotations import Array
from ._element import Element, Output, power

if TYPE_CHECKING:
    from ..drawing._paper import Paper
    from ..drawing._poses import Snapshot
    from ..drawing._strokes import Stroke
    from ..equations._loads import LoadState
    from ..equations._shapes import Shapes
    from ..plant._tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class JointLoad(Element):
    """A force or torque on a joint coordinate, by a law of t. Positive increases the coordinate."""

    kernel = contract.MB_JOINT_EFFORT
    is_load = True

    name: str
    joint: Joint
    coordinate: int
    effort: AbstractLaw

    @property
    def of(self) -> Coordinate:
        """Return the coordinate it acts on."""
        return self.joint.coordinates[self.coordinate]

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters: ``name.force`` or ``name.torque``."""
        kind = self.of.effort
        yield from law_parameters(
            f"{self.name}.{kind}", self.effort, self.of.effort_unit, f"{kind} on {self.joint.name}"
        )

    @property
    def acts_on(self) -> Joint:
        """Return the joint whose coordinate it acts on."""
        return self.joint

    @property
    def may_be_stiff(self) -> bool:
        """Return whether it may depend on the state."""
        return isinstance(self.effort, Formula | Table)

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        doc = f"{self.of.effort} on the coordinate of {self.joint.name}"
        return {"effort": Output(0, self.of.effort_unit, doc, 1, "laws"), "power": power()}

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        at = tables.coordinate(self.joint, self.coordinate)
        law = tables.law(f"{self.name}.{self.of.effort}", self.effort)
        return [at.q, at.v, 0, law, at.sign]

    def reserve(self, shapes: Shapes) -> int:
        """Return the scalar of its coordinate."""
        return shapes.coordinate(self.joint, self.coordinate)

    def push(self, at: LoadState, items: int) -> None:
        """Add its generalized force at a state."""
        at.push_scalar(items, self.measure(at, items, "effort"))

    def measure(self, at: LoadState, items: int, what: str) -> Any:
        """Return the effort."""
        return at.evaluate(self.effort, t=at.t) if what == "effort" else None

    def draw(self, frame: Snapshot, paper: Paper) -> list[Stroke]:
        """Return an arrow."""
        return draw_effort(self.joint, self.of, self.effort, frame, paper)

    def label_place(self, frame: Snapshot, paper: Paper) -> tuple[Array, float] | None:
        """Return the places for its name and the distance from them."""
        return paper.at(frame.point(self.joint.second))[None], 19 * paper.size
