"""A universal joint: a cross with two perpendicular axes, one on each body."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import _contract as contract
from ....errors import DiagramError
from ...core._ports import Matrix, Numbers
from ..drawing._strokes import INK, WHITE, Stroke, circle
from ..drawing._symbols import JointView, mount_pedestal
from ..system._bodies import Body, Marker
from ..system._reading import read_direction, suggest_keywords
from ..system._rotations import Array
from ._builder import End, JointBuilder
from ._joint import POINT, TURN, Chain, Coordinate, Joint, JointKind, JointType, Row

RIGHT_ANGLE_SLACK = 5.0
"""Degrees by which its axes may be off in the given pose, a first guess."""

_HALF_PI = 1.5707963267948966


def _draw(view: JointView) -> list[Stroke]:
    at, k = view.at, view.size
    return [Stroke(circle(at, 7.5 * k), INK, WHITE, 1.2)] + [
        Stroke(
            at + np.outer([-7.5 * k, 7.5 * k], view.paper.slant(view.axis(name))), INK, width=2.0
        )
        for name in ("h_i", "h_j")
    ]


def _read_axis(name: str, bodies: tuple[Body, Body], axis: Any) -> tuple[Array, Array]:
    what = f"`axis` of `{name}`"
    if np.shape(axis) != (2, 3):
        raise DiagramError(
            f"{what}, a universal joint, is a pair: the axis on `{bodies[0].name}` and the "
            f"axis on `{bodies[1].name}`, at right angles; got {axis!r}."
        )
    h_i, h_j = (read_direction(what, one, False) for one in axis)
    _require_right_angle(name, h_i, h_j)
    f_i = h_j - (h_i @ h_j) * h_i
    f_j = h_i - (h_i @ h_j) * h_j
    return _frame(h_i, f_i), _frame(h_j, f_j)


def _frame(z: Array, x: Array) -> Array:
    """Return the frame with these two axes, at right angles to each other."""
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _check(name: str, first: Marker, second: Marker) -> None:
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


UNIVERSAL = JointKind(
    "universal",
    spatial=JointType(
        (*POINT, Row("d1", "h_i", "h_j")),
        (
            Coordinate("angle", of="h_j", start="f_i", about="h_i"),
            Coordinate("angle", of="f_j", start="h_i", about="h_j"),
        ),
        (
            Chain(((TURN, 0), (TURN, 1)), 0, ((0, 1, 0.0), (1, 1, -_HALF_PI))),
            Chain(((TURN, 0), (TURN, 2)), 0, ((1, -1, 0.0), (0, -1, -_HALF_PI))),
        ),
        friction_kind=contract.MB_JOINT_FRICTION_PIVOT,
    ),
    planar="use a revolute",
    draw=_draw,
    mount=mount_pedestal,
    check=_check,
    read_axis=_read_axis,
)


class UniversalMethods(JointBuilder):
    """Adds universal joints."""

    @suggest_keywords
    def universal(
        self,
        name: str,
        first: End,
        second: End,
        *,
        at: Numbers | None = None,
        axis: Matrix | None = None,
    ) -> Joint:
        """Add a universal joint with rotations about z of the first marker and z of the second.

        The two axes are perpendicular; ``axis=`` takes both. Coordinates: the angle of z of the
        second about z of the first, and of x of the second about its z.
        """
        return self._joint(UNIVERSAL, name, first, second, at, axis)
