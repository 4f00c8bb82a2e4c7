"""Adds a joint of any kind to a system: its markers, its frames and the checks common to all."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ....errors import DiagramError, name_list
from ...core._ports import Matrix, Numbers
from ..system._bodies import Body, Marker
from ..system._parts import Parts
from ..system._reading import read_direction
from ..system._rotations import angle_of, frame_along
from ._joint import Joint, JointKind, JointType, joint_frames

End = Marker | Body
"""An end of a joint."""


class JointBuilder(Parts):
    """Adds joints between two markers, or between two bodies at a point ``at=`` in the world.

    For two bodies, a marker with the name of the joint is added to each of them, with ``axis=``
    along that direction in the world. Coordinates are those of the second relative to the first:
    write the ground or the parent first. If the frames of two bodies differ by a rotation about the
    axis, the angle of a joint created with ``at=`` is that rotation; otherwise it is measured from
    the given pose.
    """

    joint_kinds: ClassVar[tuple[JointKind, ...]]

    def _joint(
        self,
        kind: JointKind,
        name: str,
        first: End,
        second: End,
        at: Numbers | None = None,
        axis: Matrix | None = None,
        length: float | None = None,
    ) -> Joint:
        """Add a joint; see its public methods."""
        self._check_name(name)
        if self.planar and isinstance(kind.planar, str):
            planar = [one.name for one in self.joint_kinds if isinstance(one.planar, JointType)]
            raise DiagramError(
                f"`{name}`: a planar system has no {kind.name} joint: {kind.planar}. "
                f"Joints in a plane: {name_list(planar)}."
            )
        if isinstance(first, Body) and isinstance(second, Body):
            self._check_bodies(name, first, second)
            first, second = self._make_markers(kind, name, first, second, at, axis)
        elif at is not None or axis is not None:
            raise DiagramError(
                f"`{name}` has markers and `at` or `axis`: give the markers alone, or bodies."
            )
        first, second = self._check_ends(name, first, second)
        if kind.check is not None:
            kind.check(name, first, second)
        frame_i, frame_j = joint_frames(kind.type_in(self.planar), first, second)
        return self._add(Joint(name, kind, first, second, frame_i, frame_j, length))

    def _make_markers(
        self,
        kind: JointKind,
        name: str,
        first: Body,
        second: Body,
        at: Numbers | None,
        axis: Matrix | None,
    ) -> tuple[Marker, Marker]:
        """Add a marker to each body at one point in the world, both with the same axes."""
        if at is None:
            raise DiagramError(
                f"`{name}` ties `{first.name}` to `{second.name}`, but where? Give at=(…), a place "
                f"in the world, or give markers."
            )
        place = self._vector(f"`at` of `{name}`", at)
        needs_axis = kind.type_in(self.planar).takes_axis
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
        self,
        kind: JointKind,
        name: str,
        bodies: tuple[Body, Body],
        axis: Matrix | None,
    ) -> tuple[Any, Any]:
        """Return the rotations of two new markers on their bodies, as `Body.marker` takes them."""
        if axis is None:
            return None, None
        r_i, r_j = (body.rotation.T for body in bodies)
        if kind.read_axis is not None:
            frame_i, frame_j = kind.read_axis(name, bodies, axis)
            return r_i @ frame_i, r_j @ frame_j
        direction = read_direction(f"`axis` of `{name}`", axis, self.planar)
        if self.planar:
            frame = frame_along(direction, True)
            return angle_of(r_i @ frame), angle_of(r_j @ frame)
        same = np.abs(r_i @ direction - r_j @ direction).max() < 1e-12
        if same and kind.spatial.frames != "held":
            frame = frame_along(r_i @ direction, False)
            return frame, frame
        frame = frame_along(direction, False)
        return r_i @ frame, r_j @ frame
