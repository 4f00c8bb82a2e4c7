"""Forces at markers and torques on bodies, by laws of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from .... import _contract as contract
from ....errors import DiagramError
from ...core._ports import Numbers, Parameter
from ..drawing._signs import draw_arrow, is_zero
from ..joints._joint import Joint
from ..plant._parameters import law_parameters
from ..system._bodies import Marker
from ..system._laws import AbstractLaw, Constant, Lawlike, as_law
from ..system._parts import Parts
from ..system._reading import suggest_keywords
from ..system._rotations import Array
from ._element import Element, Output, power
from ._joint_load import JointLoad

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
        """Return False: it does not depend on the state."""
        return False

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
        body = at.body(self.marker)
        effort = np.array([law.value(at.t) for law in self.components])
        if self.frame == "marker":
            effort = self.marker.rotation @ effort
        if self.frame != "world":
            effort = at.rotations[body] @ effort
        if self.effort == "force":
            at.push(items, effort)
        else:
            at.turn(body, effort)

    def draw(self, frame: Snapshot, paper: Paper) -> list[Stroke]:
        """Return an arrow."""
        values = np.array([law.value(frame.t) for law in self.components])
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


class LoadMethods(Parts):
    """Adds forces and torques."""

    @suggest_keywords
    def force(
        self,
        name: str,
        on: Marker | Joint,
        value: Lawlike | Sequence[Lawlike] | Numbers,
        *,
        frame: Literal["world", "body"] | None = None,
        coordinate: int | None = None,
    ) -> Load | JointLoad:
        """Add a force.

        Parameters
        ----------
        name
            Unique in the system.
        on
            The marker where it acts, or a joint on whose displacement it acts.
        value
            Components in N, each a number or a law of t. One alone acts along z of the marker (x
            in a plane), or on the coordinate of the joint.
        frame
            Of the components: ``"world"`` or ``"body"``; the world if not given.
        coordinate
            Of the joint, from 0; its first displacement if not given.
        """
        return self._load("force", name, on, value, frame, coordinate)

    @suggest_keywords
    def torque(
        self,
        name: str,
        on: Marker | Joint,
        value: Lawlike | Sequence[Lawlike] | Numbers,
        *,
        frame: Literal["world", "body"] | None = None,
        coordinate: int | None = None,
    ) -> Load | JointLoad:
        """Add a torque in N m, as `force`; one alone acts about z of the marker, or on an angle."""
        return self._load("torque", name, on, value, frame, coordinate)

    def _load(
        self,
        effort: Literal["force", "torque"],
        name: str,
        on: Marker | Joint,
        value: Lawlike | Sequence[Lawlike] | Numbers,
        frame: Literal["world", "body"] | None,
        coordinate: int | None,
    ) -> Load | JointLoad:
        self._check_name(name)
        if isinstance(on, Joint):
            if frame is not None:
                raise DiagramError(f"`{name}` acts on a joint coordinate: it takes no `frame`.")
            place = self._find_coordinate(
                name, on, coordinate, "length" if effort == "force" else "angle"
            )
            law = as_law(f"`{effort}` of `{name}`", value)
            return self._add(JointLoad(name, on, place, law))
        if coordinate is not None:
            raise DiagramError(f"`{name}` acts on a marker: it takes no `coordinate`.")
        self._check_marker(name, on)
        if frame not in (None, "world", "body"):
            raise DiagramError(f"`frame` of `{name}` is 'world' or 'body', got {frame!r}.")
        laws: list[AbstractLaw] = [Constant(0.0)] * 3
        if isinstance(value, str | AbstractLaw) or np.ndim(cast(Any, value)) == 0:
            if frame is not None:
                raise DiagramError(
                    f"`{name}` is one number, along the axis of marker `{on.path}`: it takes no "
                    f"`frame`. Give all components to choose one."
                )
            single = 0 if self.planar and effort == "force" else 2
            laws[single] = as_law(f"`{effort}` of `{name}`", value)
            return self._add(Load(name, effort, on, (laws[0], laws[1], laws[2]), "marker", single))
        values = list(cast(Sequence[Lawlike], value))
        wanted = 2 if self.planar else 3
        if len(values) != wanted or (self.planar and effort == "torque"):
            shape = "one number" if self.planar and effort == "torque" else f"{wanted} numbers"
            raise DiagramError(
                f"`{effort}` of `{name}` has {shape} in a {'planar' if self.planar else 'spatial'} "
                f"system, got {value!r}."
            )
        for n, component in enumerate(values):
            laws[n] = as_law(f"`{effort}` of `{name}`, component {'xyz'[n]}", component)
        return self._add(Load(name, effort, on, (laws[0], laws[1], laws[2]), frame or "world"))
