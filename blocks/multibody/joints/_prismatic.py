"""A slide that does not rotate."""

from __future__ import annotations

import numpy as np

from .... import _contract as contract
from ...core._ports import Numbers
from ..drawing._strokes import INK, WHITE, Stroke, across, hatch, rectangle, unit
from ..drawing._symbols import JointView, draw_bar, mount_pedestal
from ..system._reading import suggest_keywords
from ..system._rotations import Array
from ._builder import End, JointBuilder
from ._joint import (
    ALONG_F,
    ALONG_H,
    NO_TURN,
    ON_LINE,
    PARALLEL,
    SLIDE,
    Chain,
    Joint,
    JointKind,
    JointType,
    Row,
)


def _draw(view: JointView) -> list[Stroke]:
    if view.on_ground:
        return []
    bar, k = draw_bar(view), view.size
    if view.plain:
        return [bar]
    along = view.paper.slant(view.slide_axis)
    if np.linalg.norm(along) < 0.2:
        return [bar, Stroke(rectangle(view.at, np.array([1.0, 0.0]), 14 * k, 14 * k), INK, WHITE)]
    return [bar, Stroke(rectangle(view.at, unit(along), 24 * k, 14 * k), INK, WHITE, 1.2)]


def _mount(view: JointView, away: Array) -> list[Stroke]:
    rail, k = view.ground_rail, view.size
    if rail is None:
        return mount_pedestal(view, away)
    ends, along = rail
    side = across(along)
    if side[1] > 1e-9 or (abs(side[1]) <= 1e-9 and side[0] > 0.0):
        side = -side
    ends = ends + np.outer([-34 * k, 34 * k], along) + side * 12.8 * k
    return hatch(ends[0], ends[1], side, 7 * k)


PRISMATIC = JointKind(
    "prismatic",
    # [V 1.19] writes d1(f_i, f_j) with f_j at right angles to f_i; here the frames are parallel.
    spatial=JointType(
        (*PARALLEL, *ON_LINE, NO_TURN),
        (ALONG_H,),
        (
            Chain(((SLIDE, 0),), 0, ((0, 1, 0.0),)),
            Chain(((SLIDE, 0),), 0, ((0, -1, 0.0),)),
        ),
        frames="held",
        friction_kind=contract.MB_JOINT_FRICTION_PRISMATIC,
    ),
    planar=JointType(
        (Row("angle"), Row("d2", "g_i")),
        (ALONG_F,),
        (
            Chain(((SLIDE, 1),), 2, ((0, 1, 0.0),)),
            Chain(((SLIDE, 1),), 2, ((0, -1, 0.0),)),
        ),
        frames="held",
        friction_kind=contract.MB_JOINT_FRICTION_PRISMATIC,
        friction_sizes=("length",),
    ),
    draw=_draw,
    mount=_mount,
    sleeve="box",
)


class PrismaticMethods(JointBuilder):
    """Adds prismatic joints."""

    @suggest_keywords
    def prismatic(
        self,
        name: str,
        first: End,
        second: End,
        *,
        at: Numbers | None = None,
        axis: Numbers | None = None,
    ) -> Joint:
        """Add a slide along the z axes of two markers (x in a plane); coordinate: displacement."""
        return self._joint(PRISMATIC, name, first, second, at, axis)
