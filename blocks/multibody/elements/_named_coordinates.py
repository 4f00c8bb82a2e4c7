"""Coordinates of a mechanism by their names in formulas, each as one of a joint.

Places and angles that no joint has are those of a joint without equations between two frames.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import DiagramError, name_list, suggest
from ...core.formula._formula import Formula, Variable
from ..joints._joint import (
    ALONG_F,
    ALONG_G,
    ALONG_H,
    ANGLE,
    EULER,
    Joint,
    JointKind,
    JointType,
)
from ..plant._initial import coordinate_name
from ..system._bodies import Body, Marker
from ..system._parts import Parts
from ..system._rotations import freeze
from ._element import Term

if TYPE_CHECKING:
    from ..drawing._strokes import Stroke


def _nothing(*_: Any) -> list[Stroke]:
    return []


_FRAMES = JointKind(
    "frames",
    spatial=JointType((), (ALONG_F, ALONG_G, ALONG_H, *EULER), frames="given"),
    planar=JointType((), (ALONG_F, ALONG_G, ANGLE), frames="given"),
    draw=_nothing,
    mount=_nothing,
)
_SPATIAL = ("x", "y", "z")
_EULER = ("e0", "e1", "e2", "e3")
_PLANAR = ("x", "y", "angle")


def _names(planar: bool) -> tuple[str, ...]:
    return _PLANAR if planar else _SPATIAL


def frame_of(body: Body) -> Marker:
    """Return the frame of a body as a marker without a name."""
    return Marker(
        "", body, freeze(np.zeros(3)), freeze(np.eye(3)), "rotation", MappingProxyType({})
    )


def between(first: Marker, second: Marker) -> Joint:
    """Return a joint without equations between two frames: their relative coordinates."""
    name = f"({second.path} in {first.path})"
    return Joint(name, _FRAMES, first, second, first.rotation, second.rotation)


def relative_coordinates(system: Parts, name: str, ends: tuple[Marker, Marker]) -> dict[str, Term]:
    """Return the coordinates of a second marker in axes of a first one, by name."""
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise DiagramError(f"`between` of `{name}` is two markers, got {ends!r}.")
    joint = between(*system._check_ends(name, *ends))
    return {what: Term(joint, n, 1.0) for n, what in enumerate(_names(system.planar))}


def list_coordinates(system: Parts) -> list[str]:
    """Return every coordinate that a formula may name."""
    found = [
        f"{joint.name}.{coordinate_name(joint, number)}"
        for joint in system.joints
        for number in range(len(joint.coordinates))
    ]
    for body in system.bodies:
        found += [f"{body.name}.{what}" for what in (() if system.planar else _EULER)]
        for owner in (body.name, *(marker.path for marker in body.markers.values())):
            found += [f"{owner}.{what}" for what in _names(system.planar)]
    return found


def find_coordinate(system: Parts, formula: Formula, variable: Variable, near: bool) -> Term:
    """Return the coordinate that a variable names, or raise where it is in the formula."""
    path = variable.name
    owner, _, what = path.rpartition(".")
    names = _names(system.planar)
    if variable.index is not None:
        if what != "position" or variable.index >= (2 if system.planar else 3):
            raise formula.fail(
                variable.column, f"`{path}[{variable.index}]` is no coordinate; see `{owner}.x`"
            )
        what = names[variable.index]
    part, _, below = owner.partition(".")
    found = system.parts.get(part)
    if isinstance(found, Joint) and not below:
        for number in range(len(found.coordinates)):
            if coordinate_name(found, number) == what:
                return Term(found, number, 1.0)
    if isinstance(found, Body) and what in names:
        marker = found.markers.get(below) if below else frame_of(found)
        if marker is not None:
            joint = between(frame_of(system.ground), marker)
            return Term(joint, names.index(what), 1.0)
    if isinstance(found, Body) and what in _EULER:
        return _find_euler(system, formula, variable, found, below, what)
    if isinstance(found, Body) and what == "angle" and not system.planar:
        raise formula.fail(
            variable.column,
            f"`{path}`: a body in space has no single angle; name the angle of a joint",
        )
    if what in ("speed", "velocity", "acceleration") or what.endswith(("_speed", "_acceleration")):
        raise formula.fail(
            variable.column,
            f"`{path}` is a rate: a constraint is a formula of coordinates and of `t`",
        )
    known = list_coordinates(system)
    own = f" With `between`: {name_list(names)}." if near else ""
    raise formula.fail(
        variable.column,
        f"there is no coordinate `{path}` in `{system.name}`.{suggest(path, known)}{own} "
        f"Coordinates: {name_list(known)}",
    )


def _find_euler(
    system: Parts, formula: Formula, variable: Variable, body: Body, below: str, what: str
) -> Term:
    """Return an Euler parameter of the frame of a body."""
    if system.planar:
        raise formula.fail(
            variable.column,
            f"`{variable.name}`: a body in a plane has an angle; name `{body.name}.angle`",
        )
    if below:
        raise formula.fail(
            variable.column,
            f"`{variable.name}`: Euler parameters are those of bodies; name `{body.name}.{what}`",
        )
    joint = between(frame_of(system.ground), frame_of(body))
    return Term(joint, len(_SPATIAL) + _EULER.index(what), 1.0)
