"""The parts of a system: their names, and the checks common to all methods that add one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np

from ....errors import DiagramError, name_list, suggest
from ..elements._element import Constraint, Element
from ..joints._joint import Coordinate, Joint
from ._bodies import Body, Marker
from ._reading import read_vector
from ._rotations import Array, freeze

if TYPE_CHECKING:
    from ..elements._coupling import Coupling
    from ..elements._driver import JointDriver
    from ..elements._function_constraint import FunctionConstraint
    from ..elements._rolling import RollingRow

Part = Body | Joint | Element | Constraint
T = TypeVar("T", bound=Joint | Element | Constraint)


class Parts:
    """Named bodies, joints, elements and drivers; `System` is what users make."""

    name: str
    planar: bool
    ground: Body
    _parts: dict[str, Part]
    _stiffnesses: dict[str, tuple[float, float]]

    def __getitem__(self, path: str) -> Part | Marker:
        """Return a body, joint or element by name, or a marker by ``body.marker``."""
        name, _, below = path.partition(".")
        part = self._parts.get(name)
        if part is None:
            raise DiagramError(
                f"the system has nothing called `{name}`.{suggest(name, self._parts)} "
                f"It has: {name_list(self._parts)}."
            )
        if not below:
            return part
        markers: Mapping[str, Marker] = part.markers if isinstance(part, Body) else {}
        if below not in markers:
            raise DiagramError(
                f"`{name}` has no marker `{below}`.{suggest(below, markers)} "
                f"Markers: {name_list(markers)}."
            )
        return markers[below]

    @property
    def parts(self) -> Mapping[str, Part]:
        """Return the ground, bodies, joints, elements and drivers by name, in order of making."""
        return MappingProxyType(self._parts)

    @property
    def bodies(self) -> tuple[Body, ...]:
        """Return the bodies that move, in order of making."""
        return tuple(p for p in self._parts.values() if isinstance(p, Body) and not p.is_ground)

    @property
    def joints(self) -> tuple[Joint, ...]:
        """Return the joints, in order of making."""
        return tuple(part for part in self._parts.values() if isinstance(part, Joint))

    @property
    def elements(self) -> tuple[Element, ...]:
        """Return what acts by force, in order of making."""
        return tuple(part for part in self._parts.values() if isinstance(part, Element))

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Return the equations between coordinates: drivers, couplings, then the others."""
        return (*self.drivers, *self.couplings, *self.general_constraints)

    @property
    def drivers(self) -> tuple[JointDriver, ...]:
        """Return the drivers, in order of making."""
        found = (p for p in self._parts.values() if isinstance(p, Constraint) and p.driven)
        return cast("tuple[JointDriver, ...]", tuple(found))

    @property
    def couplings(self) -> tuple[Coupling, ...]:
        """Return the couplings of joint coordinates, in order of making."""
        found = (
            part
            for part in self._parts.values()
            if isinstance(part, Constraint) and not (part.driven or part.general)
        )
        return cast("tuple[Coupling, ...]", tuple(found))

    @property
    def general_constraints(self) -> tuple[FunctionConstraint | RollingRow, ...]:
        """Return constraints by formula, on curves and of rolling contacts, in order of making."""
        found = (p for p in self._parts.values() if isinstance(p, Constraint) and p.general)
        return cast("tuple[FunctionConstraint | RollingRow, ...]", tuple(found))

    def _newest_body(self) -> Body:
        """Return the body made last, or the ground: counting all of them takes longer each time."""
        return next(part for part in reversed(self._parts.values()) if isinstance(part, Body))

    def _check_name(self, name: str) -> None:
        if not isinstance(name, str) or not name or "." in name:
            raise DiagramError(f"a part of a system has a name without dots, got {name!r}.")
        if name in self._parts or name == "gravity":
            what = type(self._parts[name]).__name__.lower() if name in self._parts else "number"
            raise DiagramError(
                f"there is a {what} called `{name}` already: choose another name. Bodies, joints, "
                f"forces and drivers share one set of names."
            )

    def _check_marker(self, name: str, marker: Any) -> Marker:
        if not isinstance(marker, Marker):
            hint = f", such as {marker.name}.marker(…)" if isinstance(marker, Body) else ""
            raise DiagramError(f"`{name}` requires a marker{hint}; got {marker!r}.")
        if marker.body.system is not self:
            raise DiagramError(
                f"`{name}` uses marker `{marker.path}` of another system, "
                f"`{marker.body.system.name}`."
            )
        return marker

    def _check_ends(self, name: str, first: Any, second: Any) -> tuple[Marker, Marker]:
        ends = self._check_marker(name, first), self._check_marker(name, second)
        self._check_bodies(name, ends[0].body, ends[1].body)
        return ends

    def _check_bodies(self, name: str, first: Body, second: Body) -> None:
        for body in (first, second):
            if body.system is not self:
                raise DiagramError(
                    f"`{name}` uses body `{body.name}` of another system, `{body.system.name}`."
                )
        if first is second:
            raise DiagramError(
                f"`{name}` ties `{first.name}` to itself: its two ends must be on two bodies."
            )

    def _vector(self, what: str, value: Any) -> Array:
        return freeze(np.zeros(3)) if value is None else read_vector(what, value, self.planar)

    def _check_joint(self, name: str, joint: Joint) -> None:
        """Require a joint of this system."""
        if not isinstance(joint, Joint):
            raise DiagramError(
                f"`{name}` acts on a joint, got {joint!r}. Pass the joint itself, as returned by "
                "`revolute` and the like."
            )
        if self._parts.get(joint.name) is not joint:
            raise DiagramError(f"`{name}` acts on `{joint.name}`, a joint of another system.")

    def _find_coordinate(
        self,
        name: str,
        joint: Joint,
        given: int | None,
        kind: Literal["length", "angle"] | None = None,
    ) -> int:
        """Return the number of a joint's coordinate: the one given, or the only one that fits."""
        self._check_joint(name, joint)
        listed = ", ".join(
            f"{n}: {_describe(coordinate)}" for n, coordinate in enumerate(joint.coordinates)
        )
        has = f"Coordinates of `{joint.name}`, a {joint.kind} joint: {listed or 'none'}."
        fits = [
            n
            for n, coordinate in enumerate(joint.coordinates)
            if kind is None or coordinate.kind == kind
        ]
        if given is None:
            if not fits or (kind is None and len(fits) > 1):
                wanted = {"length": "a displacement", "angle": "an angle", None: "one"}[kind]
                raise DiagramError(
                    f"`{name}` acts on a coordinate that is {wanted}. {has} "
                    f"{'Choose with coordinate=….' if fits else ''}".rstrip()
                )
            return fits[0]
        if given not in fits:
            raise DiagramError(f"`{name}` cannot act on coordinate {given!r}. {has}")
        return given

    def _add(self, part: T) -> T:
        self._parts[part.name] = part
        return part


def _describe(coordinate: Coordinate) -> str:
    """Return a coordinate in words."""
    if coordinate.kind == "length":
        return f"displacement along {coordinate.along} (m)"
    return f"angle about {coordinate.about} (rad)"
