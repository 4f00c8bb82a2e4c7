"""The methods of a system that add joints."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import DiagramError, name_list
from ..elements._element import Element
from ._bodies import Body, Marker
from ._joints import PLANAR, SPATIAL, Joint, joint_frames
from ._parts import Parts
from ._reading import read_direction, read_number, suggest_keywords
from ._rotations import Array, angle_of, frame_along

End = Marker | Body
"""An end of a joint."""

RIGHT_ANGLE_SLACK = 5.0
"""Degrees by which the axes of a universal joint may be off in the given pose, a first guess."""

_INSTEAD = {
    "spherical": "a revolute does the same",
    "cylindrical": "use a prismatic or a guide",
    "universal": "use a revolute",
    "planar": "a body moves in the plane without any joint",
    "in_plane": "use a guide",
}


class JointMethods(Parts):
    """Adds joints between two markers, or between two bodies at a point ``at=`` in the world.

    For two bodies, a marker with the name of the joint is added to each of them, with ``axis=``
    along that direction in the world. Coordinates are those of the second relative to the first:
    write the ground or the parent first. If the frames of two bodies differ by a rotation about the
    axis, the angle of a joint created with ``at=`` is that rotation; otherwise it is measured from
    the given pose.
    """

    @suggest_keywords
    def fixed(self, name: str, first: End, second: End, *, at: Any = None) -> Joint:
        """Connect two markers rigidly.

        All joints accept two markers, or two bodies and a point ``at=`` in the world (with
        ``axis=``, a direction in the world). In the second case a marker with the name of the joint
        is added to each body. Coordinates are those of the second relative to the first.
        """
        return self._joint("fixed", name, first, second, at, None)

    @suggest_keywords
    def revolute(
        self, name: str, first: End, second: End, *, at: Any = None, axis: Any = None
    ) -> Joint:
        """Add a hinge about the z axes of two markers; coordinate: the angle of x about z."""
        return self._joint("revolute", name, first, second, at, axis)

    @suggest_keywords
    def prismatic(
        self, name: str, first: End, second: End, *, at: Any = None, axis: Any = None
    ) -> Joint:
        """Add a slide along the z axes of two markers (x in a plane); coordinate: displacement."""
        return self._joint("prismatic", name, first, second, at, axis)

    @suggest_keywords
    def cylindrical(
        self, name: str, first: End, second: End, *, at: Any = None, axis: Any = None
    ) -> Joint:
        """Add a cylindrical joint; coordinates: displacement along z, angle about z."""
        return self._joint("cylindrical", name, first, second, at, axis)

    @suggest_keywords
    def spherical(self, name: str, first: End, second: End, *, at: Any = None) -> Joint:
        """Add a ball joint; it has no simple coordinates."""
        return self._joint("spherical", name, first, second, at, None)

    @suggest_keywords
    def universal(
        self, name: str, first: End, second: End, *, at: Any = None, axis: Any = None
    ) -> Joint:
        """Add a universal joint with rotations about z of the first marker and z of the second.

        The two axes are perpendicular; ``axis=`` takes both. Coordinates: the angle of z of the
        second about z of the first, and of x of the second about its z.
        """
        return self._joint("universal", name, first, second, at, axis)

    @suggest_keywords
    def planar_joint(
        self, name: str, first: End, second: End, *, at: Any = None, axis: Any = None
    ) -> Joint:
        """Hold two markers in a plane normal to z; coordinates: along x, along y, angle about z."""
        return self._joint("planar", name, first, second, at, axis)

    @suggest_keywords
    def guide(
        self, name: str, first: End, second: End, *, at: Any = None, axis: Any = None
    ) -> Joint:
        """Hold a point, the second marker, on a line, z of the first (x if planar).

        Coordinates: the displacement; if planar also the angle.
        """
        return self._joint("guide", name, first, second, at, axis)

    @suggest_keywords
    def in_plane(
        self, name: str, first: End, second: End, *, at: Any = None, axis: Any = None
    ) -> Joint:
        """Hold a point, the second marker, in the plane normal to z of the first.

        Coordinates: along x, along y.
        """
        return self._joint("in_plane", name, first, second, at, axis)

    @suggest_keywords
    def distance(
        self, name: str, first: Marker, second: Marker, *, length: float | None = None
    ) -> Joint:
        """Hold two markers at a distance in m; by default that of the given pose."""
        if length is None and isinstance(first, Marker) and isinstance(second, Marker):
            length = float(np.linalg.norm(second.world_position - first.world_position))
        length = read_number(f"`length` of `{name}`", length)
        if length <= 0:
            raise DiagramError(
                f"`{name}` keeps a distance of {length:g} m: it must be positive. To keep two "
                f"points together use a spherical joint, in a plane a revolute."
            )
        return self._joint("distance", name, first, second, None, None, length)

    @suggest_keywords
    def joint_stiffness(self, joint: Joint | str, *, force: float, torque: float) -> None:
        """Set the stiffness of a joint for the load distribution among redundant joints.

        Joints stay rigid: the motion does not change. The reactions of redundant joints are those
        with the least elastic energy, Σ |F|² / (2 force) + |M|² / (2 torque), the limit of small
        compliance. Set it for all joints of the system or for none; see
        docs/explanation/redundancy.md.

        Parameters
        ----------
        joint
            The joint or its name, or the name of a bearing held by a constraint.
        force
            In N/m, against displacements.
        torque
            In N m/rad, against rotations; a small value models a self-aligning bearing.

        Raises
        ------
        DiagramError
            If the joint does not exist, or a value is not positive.
        """
        name = joint if isinstance(joint, str) else joint.name
        part = self[name]
        if not isinstance(part, Joint) and not (isinstance(part, Element) and part.row_count):
            raise DiagramError(f"`{name}` is not a joint: only joints have a joint_stiffness.")
        read = [
            read_number(f"`{what}` of `{name}`", value)
            for what, value in (("force", force), ("torque", torque))
        ]
        if not min(read) > 0.0:
            raise DiagramError(
                f"the stiffnesses of `{name}` must be positive, got force={force!r}, "
                f"torque={torque!r}."
            )
        self._stiffnesses[name] = (read[0], read[1])

    def _joint(
        self,
        kind: str,
        name: str,
        first: End,
        second: End,
        at: Any,
        axis: Any,
        length: float | None = None,
    ) -> Joint:
        self._check_name(name)
        types = PLANAR if self.planar else SPATIAL
        if kind not in types:
            raise DiagramError(
                f"`{name}`: a planar system has no {kind} joint: {_INSTEAD[kind]}. "
                f"Joints in a plane: {name_list(types)}."
            )
        if isinstance(first, Body) and isinstance(second, Body):
            self._check_bodies(name, first, second)
            first, second = self._make_markers(kind, name, first, second, at, axis)
        elif at is not None or axis is not None:
            raise DiagramError(
                f"`{name}` has markers and `at` or `axis`: give the markers alone, or bodies."
            )
        first, second = self._check_ends(name, first, second)
        if kind == "universal":
            _check_universal(name, first, second)
        frame_i, frame_j = joint_frames(kind, first, second)
        return self._add(Joint(name, kind, first, second, frame_i, frame_j, types[kind], length))

    def _make_markers(
        self, kind: str, name: str, first: Body, second: Body, at: Any, axis: Any
    ) -> tuple[Marker, Marker]:
        """Add a marker to each body at one point in the world, both with the same axes."""
        if at is None:
            raise DiagramError(
                f"`{name}` ties `{first.name}` to `{second.name}`, but where? Give at=(…), a place "
                f"in the world, or give markers."
            )
        place = self._vector(f"`at` of `{name}`", at)
        needs_axis = kind not in ("fixed", "spherical") and not (self.planar and kind == "revolute")
        if needs_axis and axis is None:
            raise DiagramError(f"`{name}` needs axis=(…), the direction of its axis in the world.")
        if not needs_axis and axis is not None:
            raise DiagramError(f"`{name}` turns about z: it takes no `axis`.")
        for body in (first, second):
            if name in body.markers:
                raise DiagramError(
                    f"`{name}` would put a marker `{body.name}.{name}` on `{body.name}`, which has "
                    f"one: choose another name, or give markers."
                )
        rotations = self._rotations(kind, name, (first, second), axis)
        made = []
        for body, rotation in zip((first, second), rotations, strict=True):
            position = body.rotation.T @ (place - body.position)
            made.append(
                body.marker(name, position[:2] if self.planar else position, rotation=rotation)
            )
        return made[0], made[1]

    def _rotations(
        self, kind: str, name: str, bodies: tuple[Body, Body], axis: Any
    ) -> tuple[Any, Any]:
        """Return the rotations of two new markers on their bodies, as `Body.marker` takes them."""
        if axis is None:
            return None, None
        r_i, r_j = (body.rotation.T for body in bodies)
        what = f"`axis` of `{name}`"
        if kind == "universal":
            if np.shape(axis) != (2, 3):
                raise DiagramError(
                    f"{what}, a universal joint, is a pair: the axis on `{bodies[0].name}` and the "
                    f"axis on `{bodies[1].name}`, at right angles; got {axis!r}."
                )
            h_i, h_j = (read_direction(what, one, False) for one in axis)
            _require_right_angle(name, h_i, h_j)
            f_i = h_j - (h_i @ h_j) * h_i
            f_j = h_i - (h_i @ h_j) * h_j
            return r_i @ _frame(h_i, f_i), r_j @ _frame(h_j, f_j)
        direction = read_direction(what, axis, self.planar)
        if self.planar:
            frame = frame_along(direction, True)
            return angle_of(r_i @ frame), angle_of(r_j @ frame)
        same = np.abs(r_i @ direction - r_j @ direction).max() < 1e-12
        if same and kind != "prismatic":
            frame = frame_along(r_i @ direction, False)
            return frame, frame
        frame = frame_along(direction, False)
        return r_i @ frame, r_j @ frame


def _frame(z: Array, x: Array) -> Array:
    """Return the frame with these two axes, at right angles to each other."""
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _check_universal(name: str, first: Marker, second: Marker) -> None:
    for marker in (first, second):
        if marker.orientation == "none":
            raise DiagramError(
                f"`{name}`, a universal joint, needs an axis on each body: give marker "
                f"`{marker.path}` one, with axis=(…)."
            )
    _require_right_angle(name, first.world_rotation[:, 2], second.world_rotation[:, 2])


def _require_right_angle(name: str, h_i: Array, h_j: Array) -> None:
    angle = float(np.degrees(np.arccos(np.clip(h_i @ h_j, -1.0, 1.0))))
    if abs(angle - 90.0) > RIGHT_ANGLE_SLACK:
        raise DiagramError(
            f"`{name}` is a universal joint, and its two axes are at {angle:.4g}° in the given "
            f"pose: they must be at right angles. They are the two axes of its cross, not those of "
            f"the shafts."
        )
