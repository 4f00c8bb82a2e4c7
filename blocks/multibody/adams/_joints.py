"""Joints and motions of an Adams View command file.

The first marker of a joint here is J, the second is I: coordinates of Adams are those of I as seen
from J.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import DiagramError
from ..joints._joint import Joint
from ..system._bodies import Marker
from ..system._rotations import Array
from ._builder import PARALLEL, Builder
from ._frames import Frame
from ._items import Item


@dataclass(frozen=True, slots=True)
class JointAngle:
    """A motion of I as seen from J, as a coordinate of a joint: a = sign q + offset."""

    joint: Joint
    number: int
    sign: float
    offset: float


def _joint_ends(b: Builder, item: Item) -> tuple[Marker, Marker]:
    """Return the markers I and J of a joint, which may be given by parts and a place."""
    has_markers = item.entries.keys() & {"i_marker_name", "j_marker_name"}
    has_parts = item.entries.keys() & {"i_part_name", "j_part_name"}
    if has_markers and (has_parts or item.entries.keys() & {"location", "orientation"}):
        raise DiagramError(
            f"`{item.name}` has markers, and parts or a location: one way says where it is."
        )
    if not has_parts:
        return b.ends(item)
    ends = []
    for name in ("i_part_name", "j_part_name"):
        if name not in item.entries:
            raise DiagramError(f"`{item.name}` has no `{name}`.")
        ends.append(b.design.item(item.entries[name], item.name, "part"))
    if ends[0] is ends[1]:
        raise DiagramError(f"`{item.name}` has the part `{ends[0].name}` twice.")
    if "location" not in item.entries:
        raise DiagramError(f"`{item.name}` has parts and no `location`.")
    if item.sub in ("universal", "hooke", "perpendicular"):
        raise DiagramError(f"`{item.name}` is {item.sub}, with two axes: give it markers.")
    where = b.frames.in_world(item)
    i, j = (
        b.new_marker(b.bodies[part], b.names[item], b.frames.in_world(part).seen(where))
        for part in ends
    )
    return i, j


def add_joint(b: Builder, item: Item) -> None:
    """Add a joint; primitives without a ready kind become constraints between axes."""
    name, s = b.names[item], b.system
    if "friction_enabled" in item.entries:
        friction = ("no", "yes", "off", "on", "preload_only")
        if b.option(item, "friction_enabled", friction, "no") not in ("no", "off"):
            raise DiagramError(
                f"{item.entries['friction_enabled'].place}: `{item.name}` has friction, which "
                f"is not read: switch it off, and add friction in Python with System.friction."
            )
    i, j = _joint_ends(b, item)
    makers: dict[str, Any] = {
        "revolute": s.revolute, "translational": s.prismatic, "cylindrical": s.cylindrical,
        "spherical": s.spherical, "universal": s.universal, "fixed": s.fixed,
        "planar": s.planar_joint, "inline": s.guide, "inplane": s.in_plane,
        "at_point": s.spherical, "atpoint": s.spherical, "perpendicular": s.perpendicular,
    }  # fmt: skip
    if item.sub in makers:
        b.joints[item] = makers[item.sub](name, j, i)
    elif item.sub == "hooke":
        # z is along the shafts; the bars of the cross are y of J and x of I.
        ends = [
            b.new_marker(end.body, f"{end.name}_bar", Frame(end.position, _turn(end, by)))
            for end, by in ((j, 1), (i, 2))
        ]
        b.joints[item] = s.universal(name, *ends)
    else:
        # z of one at right angles to x and y of the other; `orientation` also x to y.
        pairs = [("x", "z"), ("y", "z")]
        pairs += [("x", "y")] if item.sub == "orientation" else []
        for axes in pairs:
            s.perpendicular(f"{name}_{''.join(axes)}", j, i, axes=axes)


def find_angle(b: Builder, item: Item) -> JointAngle | None:
    """Return the angle of I about z of J as that of a joint between the same parts."""
    i, j = b.ends(item)
    axis = j.world_rotation[:, 2]
    for joint in b.joints.values():
        bodies = [joint.second.body, joint.first.body]
        if joint.kind not in ("revolute", "cylindrical") or {i.body, j.body} != set(bodies):
            continue
        h = joint.first.world_rotation[:, 2]
        if max(np.linalg.norm(np.cross(one, h)) for one in (axis, i.world_rotation[:, 2])) > (
            PARALLEL
        ):
            continue
        sign = 1.0 if (axis @ h > 0) == (i.body is joint.second.body) else -1.0
        number = [one.kind for one in joint.coordinates].index("angle")
        x_i, x_j = i.world_rotation[:, 0], j.world_rotation[:, 0]
        angle = float(np.arctan2(x_i @ np.cross(axis, x_j), x_i @ x_j))
        offset = angle - sign * joint.given_value(number)
        offset = float(np.angle(np.exp(1j * offset)))
        return JointAngle(joint, number, sign, 0.0 if abs(offset) < 1e-15 else offset)
    return None


def add_motion(b: Builder, item: Item) -> None:
    """Add the driver of a joint coordinate."""
    at = _find_coordinate(b, item)
    if at is None:
        return  # the joint has a problem of its own
    kind = at.joint.coordinates[at.number].kind
    order = ("displacement", "velocity", "acceleration")
    what = b.option(item, "time_derivative", order, "displacement")
    factor = b.units.length if kind == "length" else 1.0  # functions count in rad
    factor *= b.units.time ** -order.index(what)
    if "function" not in item.entries:
        raise DiagramError(f"`{item.name}` has no `function`.")
    law = b.function(item, "function", factor)
    if what != "displacement":
        if not isinstance(law, float) or what == "acceleration":
            raise DiagramError(
                f"{item.entries['function'].place}: `{item.name}` prescribes the {what}"
                f"{' by a function of time' if what == 'velocity' else ''}: integrate it, and "
                f"give it as displacement."
            )
        law = f"{at.joint.given_value(at.number)!r} + {at.sign * law!r}*t"
    elif at.sign < 0 or at.offset != 0.0:
        law = (
            at.sign * (law - at.offset)
            if isinstance(law, float)
            else (f"({at.sign!r})*({law} - ({at.offset!r}))")
        )
    b.system.driver(b.names[item], at.joint, law, coordinate=at.number)


def _find_coordinate(b: Builder, item: Item) -> JointAngle | None:
    """Return the coordinate that a motion prescribes; None if its joint could not be made."""
    freedoms = ("translational", "rotational")
    if "joint_name" not in item.entries:
        return _find_between(b, item)
    on = b.design.item(item.entries["joint_name"], item.name, "joint")
    if not on.active:
        raise DiagramError(f"`{item.name}` moves `{on.name}`, which is switched off.")
    joint = b.joints.get(on)
    if joint is None:
        return None
    if on.sub not in ("revolute", "translational", "cylindrical"):
        raise DiagramError(
            f"`{item.name}` moves `{on.name}`, a {on.sub} joint: motions are of revolute, "
            f"translational and cylindrical joints."
        )
    kinds = [coordinate.kind for coordinate in joint.coordinates]
    only = {"length": "translational", "angle": "rotational"}[kinds[0]]
    freedom = b.option(item, "type_of_freedom", freedoms, only if len(kinds) == 1 else None)
    kind = "length" if freedom == "translational" else "angle"
    if kind not in kinds:
        raise DiagramError(f"`{item.name}` is {freedom}, and `{on.name}` is a {on.sub} joint.")
    return JointAngle(joint, kinds.index(kind), 1.0, 0.0)


def _find_between(b: Builder, item: Item) -> JointAngle | None:
    """Return the coordinate that is the motion of two markers along z or about it, b3."""
    axis = b.option(item, "axis", ("x", "y", "z", "b1", "b2", "b3"), None)
    ends = b.end(item, "i_marker_name"), b.end(item, "j_marker_name")
    if axis == "b3":
        angle = find_angle(b, item)
        if angle is not None:
            return angle
    for on, joint in b.joints.items():
        names = on.entries.keys() & {"i_marker_name", "j_marker_name"}
        if axis != "z" or len(names) < 2 or on.sub not in ("translational", "cylindrical"):
            continue
        if (b.end(on, "i_marker_name"), b.end(on, "j_marker_name")) == ends:
            number = [one.kind for one in joint.coordinates].index("length")
            return JointAngle(joint, number, 1.0, 0.0)
    raise DiagramError(
        f"`{item.name}` moves two markers along or about `{axis}`: motions are read on joints, "
        f"with `joint_name`; along z between the markers I and J of one; or about b3, between "
        f"parts with a hinge about that axis."
    )


def _turn(marker: Marker, by: int) -> Array:
    """Return the axes of a marker with y (1) or x (2) in the place of z."""
    return np.roll(marker.rotation, by, axis=1)
