"""A slide that may rotate about its axis."""

from __future__ import annotations

import numpy as np

from .... import _contract as contract
from ...core._ports import Numbers
from ..drawing._strokes import GROUND_LAYER, INK, STEEL, Stroke, rounded
from ..drawing._symbols import JointView, draw_bar, draw_walls, mount_pedestal
from ..system._reading import suggest_keywords
from ..system._rotations import Array
from ._builder import End, JointBuilder
from ._joint import (
    ALONG_H,
    ANGLE,
    ON_LINE,
    PARALLEL,
    SLIDE,
    TURN,
    Chain,
    Joint,
    JointKind,
    JointType,
)


def _draw(view: JointView) -> list[Stroke]:
    if view.on_ground:
        return []
    bar, k = draw_bar(view), view.size
    if view.plain:
        return [bar]
    return [bar, *view.paper.barrel(view.at, view.slide_axis, 24 * k, 7 * k)]


def _mount(view: JointView, away: Array) -> list[Stroke]:
    rail, k = view.ground_rail, view.size
    if rail is None:
        return mount_pedestal(view, away)
    ends = rail[0] + np.outer([-46 * k, 46 * k], rail[1])
    bar = Stroke(rounded(ends, 2.2 * k), INK, STEEL, 1.0, GROUND_LAYER, 0.5)
    return [bar, *draw_walls(ends, rail[1], k)]


CYLINDRICAL = JointKind(
    "cylindrical",
    spatial=JointType(
        (*PARALLEL, *ON_LINE),
        (ALONG_H, ANGLE),
        (
            Chain(((SLIDE, 0), (TURN, 0)), 0, ((0, 1, 0.0), (1, 1, 0.0))),
            Chain(((SLIDE, 0), (TURN, 0)), 0, ((0, -1, 0.0), (1, -1, 0.0))),
        ),
        friction_kind=contract.MB_JOINT_FRICTION_CYLINDRICAL,
    ),
    planar="use a prismatic or a guide",
    draw=_draw,
    mount=_mount,
    sleeve="barrel",
)


class CylindricalMethods(JointBuilder):
    """Adds cylindrical joints."""

    @suggest_keywords
    def cylindrical(
        self,
        name: str,
        first: End,
        second: End,
        *,
        at: Numbers | None = None,
        axis: Numbers | None = None,
    ) -> Joint:
        """Add a cylindrical joint; coordinates: displacement along z, angle about z."""
        return self._joint(CYLINDRICAL, name, first, second, at, axis)
