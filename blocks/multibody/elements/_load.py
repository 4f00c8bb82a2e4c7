"""Forces at markers and torques on bodies, by laws of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .... import _contract as contract
from ...core._ports import Parameter
from ..drawing._signs import draw_arrow, is_zero
from ..plant._parameters import law_parameters
from ..system._bodies import Marker
from ..system._laws import AbstractLaw
from ..system._rotations import Array
from ._element import Element, Output, power

if TYPE_CHECKING:
    from ..drawing._paper import Paper
    from ..drawing._poses import Snapshot
    from ..drawing._strokes import Stroke
    from ..equations._loads import LoadState
    from ..equations._shapes import Shapes
    from ..plant._tables import Tables

_AXES = {
    "world": contract.MB_AXES_WORLD,
    "body": contract.MB_AXES_BODY,
    "marker": contract.MB_AXES_MARKER,
}


@dataclass(frozen=True, slots=True, eq=False)
class Load(Element):
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

    is_load = True

    name: str
    effort: Literal["force", "torque"]
    marker: Marker
    components: tuple[AbstractLaw, AbstractLaw, AbstractLaw]
    frame: Literal["world", "body", "marker"]
    single: int | None = None

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters: ``name.force`` of a single component, else ``name.force.x`` …."""
        unit = "N" if self.effort == "force" else "N.m"
        path = f"{self.name}.{self.effort}"
        if self.single is not None:
            yield from law_parameters(path, self.components[self.single], unit, self.effort)
            return
        size = 2 if self.marker.body.system.planar else 3
        for axis, law in zip("xyz"[:size], self.components, strict=False):
            yield from law_parameters(f"{path}.{axis}", law, unit, f"{self.effort} along {axis}")

    @property
    def type_number(self) -> int:
        """Return its index in ``elements/table.c``."""
        return contract.MB_FORCE if self.effort == "force" else contract.MB_TORQUE

    @property
    def may_be_stiff(self) -> bool:
        """Return whether it may depend on the state."""
        return any(law.reads for law in self.components)

    def laws(self) -> Iterator[tuple[str, AbstractLaw]]:
        """Yield its laws by path."""
        path = f"{self.name}.{self.effort}"
        for n, law in enumerate(self.components):
            yield (path if self.single is not None else f"{path}.{'xyz'[n]}"), law

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        unit = "N" if self.effort == "force" else "N.m"
        on = "at its marker" if self.effort == "force" else "on its body"
        return {
            f"applied_{self.effort}": Output(
                0, unit, f"{self.effort} {on}, in world axes", 3, "laws"
            ),
            "power": power(),
        }

    def record(self, tables: Tables) -> list[int]:
        """Return the integers I, J, P, LAW and EXTRA of its record in the kernel."""
        path = f"{self.name}.{self.effort}"
        numbers = []
        for n, law in enumerate(self.components):
            own = path if self.single is not None else f"{path}.{'xyz'[n]}"
            numbers.append(tables.law(own if self.single in (None, n) else "", law))
        marker = tables.marker(self.marker)
        return [marker, marker, 0, numbers[0], _AXES[self.frame]]

    def reserve(self, shapes: Shapes) -> int:
        """Return the point where it acts."""
        return shapes.point(self.marker)

    def push(self, at: LoadState, items: int) -> None:
        """Add its generalized force at a state."""
        effort = self.measure(at, items, f"applied_{self.effort}")
        if self.effort == "force":
            at.push(items, effort)
        else:
            at.turn(at.body(self.marker), effort)

    def measure(self, at: LoadState, items: int, what: str) -> Any:
        """Return the force or torque in world axes."""
        if what != f"applied_{self.effort}":
            return None
        effort = np.array([at.evaluate(law, t=at.t) for law in self.components])
        if self.frame == "marker":
            effort = self.marker.rotation @ effort
        if self.frame != "world":
            effort = at.rotations[at.body(self.marker)] @ effort
        return effort

    def draw(self, frame: Snapshot, paper: Paper) -> list[Stroke]:
        """Return an arrow."""
        values = np.array([1.0 if law.reads else law.value(frame.t) for law in self.components])
        if not values.any() and self.single is not None:
            values[self.single] = 0.0 if is_zero(self.components[self.single]) else 1.0
        rotation = np.eye(3)
        if self.frame != "world":
            rotation = frame.rotation(self.marker.body)
        if self.frame == "marker":
            rotation = rotation @ self.marker.rotation
        at = paper.at(frame.point(self.marker))
        return draw_arrow(self.effort == "force", at, rotation @ values, paper)

    def label_place(self, frame: Snapshot, paper: Paper) -> tuple[Array, float] | None:
        """Return the places for its name and the distance from them."""
        return paper.at(frame.point(self.marker))[None], 19 * paper.size
