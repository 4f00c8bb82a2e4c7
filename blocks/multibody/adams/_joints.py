"""Joints and motions of an Adams View command file.

The first marker of a joint here is J, the second is I: coordinates of Adams are those of I as seen
from J.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import DiagramError
from ..system._bodies import Marker
from ..system._rotations import Array
from ._builder import Builder
from ._frames import Frame
from ._items import Item


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
    if item.sub in ("universal", "hooke"):
        raise DiagramError(
            f"`{item.name}` is a {item.sub} joint, which has two axes: give it markers."
        )
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
        for a, b in pairs:
            s.perpendicular(f"{name}_{a}{b}", j, i, axes=(a, b))


def add_motion(b: Builder, item: Item) -> None:
    """Add the driver of a joint coordinate."""
    joint_item = _find_joint(b, item)
    joint = b.joints.get(joint_item)
    if joint is None:
        return  # the joint has a problem of its own
    kinds = [coordinate.kind for coordinate in joint.coordinates]
    if joint_item.sub not in ("revolute", "translational", "cylindrical"):
        raise DiagramError(
            f"`{item.name}` moves `{joint_item.name}`, a {joint_item.sub} joint: motions are "
            f"of revolute, translational and cylindrical joints."
        )
    only = {"length": "translational", "angle": "rotational"}[kinds[0]]
    freedom = b.option(
        item,
        "type_of_freedom",
        ("translational", "rotational"),
        only if len(kinds) == 1 else None,
    )
    kind = "length" if freedom == "translational" else "angle"
    if kind not in kinds:
        raise DiagramError(
            f"`{item.name}` is {freedom}, and `{joint_item.name}` is a {joint_item.sub} joint."
        )
    number = kinds.index(kind)
    order = ("displacement", "velocity", "acceleration")
    what = b.option(item, "time_derivative", order, "displacement")
    factor = b.units.length if kind == "length" else 1.0  # functions count in rad
    factor *= b.units.time ** -order.index(what)
    if "function" not in item.entries:
        raise DiagramError(f"`{item.name}` has no `function`.")
    law = b.function(item, "function", factor)
    if what != "displacement":
        start = joint.given_value(number)
        if not isinstance(law, float) or what == "acceleration":
            raise DiagramError(
                f"{item.entries['function'].place}: `{item.name}` prescribes the {what}"
                f"{' by a function of time' if what == 'velocity' else ''}: integrate it, and "
                f"give it as displacement."
            )
        law = f"{start!r} + {law!r}*t"
    b.system.driver(b.names[item], joint, law, coordinate=number)


def _find_joint(b: Builder, item: Item) -> Item:
    """Return the joint that a motion moves."""
    if "joint_name" in item.entries:
        return b.design.item(item.entries["joint_name"], item.name, "joint")
    ends = b.end(item, "i_marker_name"), b.end(item, "j_marker_name")
    axis = b.option(item, "axis", ("x", "y", "z", "b1", "b2", "b3"), None)
    for joint in b.joints:
        names = joint.entries.keys() & {"i_marker_name", "j_marker_name"}
        if len(names) == 2 and axis in ("z", "b3"):
            found = b.end(joint, "i_marker_name"), b.end(joint, "j_marker_name")
            if found == ends and ("type_of_freedom" not in item.entries):
                freedom = "rotational" if axis == "b3" else "translational"
                if joint.sub == "cylindrical" or (joint.sub == "revolute") == (axis == "b3"):
                    _check_only(b, item, freedom, joint)
                    return joint
    raise DiagramError(
        f"`{item.name}` moves two markers along or about `{axis}`: motions are read on joints, "
        f"with `joint_name`, or between the markers I and J of one, along z or about b3."
    )


def _check_only(b: Builder, item: Item, freedom: str, joint: Item) -> None:
    """Refuse a motion between markers of a joint with two coordinates."""
    if joint.sub == "cylindrical":
        raise DiagramError(
            f"`{item.name}` moves the markers of `{joint.name}`, a cylindrical joint: write "
            f"`joint_name = {joint.name}` and `type_of_freedom = {freedom}` instead."
        )


def _turn(marker: Marker, by: int) -> Array:
    """Return the axes of a marker with y (1) or x (2) in the place of z."""
    return np.roll(marker.rotation, by, axis=1)
