"""A point on a line."""

from __future__ import annotations

import numpy as np

from ...core._ports import Numbers
from ..drawing._strokes import GROUND_LAYER, INK, WHITE, Stroke, circle, rounded, unit
from ..drawing._symbols import JointView, draw_walls, mount_pedestal
from ..system._reading import suggest_keywords
from ..system._rotations import Array
from ._builder import End, JointBuilder
from ._joint import (
    ALONG_F,
    ALONG_H,
    ANGLE,
    BALL,
    ON_LINE,
    SLIDE,
    TURN,
    Chain,
    Joint,
    JointKind,
    JointType,
    Row,
)


def _draw(view: JointView) -> list[Stroke]:
    k, along = view.size, view.paper.slant(view.slide_axis)
    slot = rounded(view.rail_ends + np.outer([-18 * k, 18 * k], unit(along)), 5.4 * k)
    return [
        Stroke(slot, INK, WHITE, 1.2, GROUND_LAYER + 0.5),
        Stroke(circle(view.at, 4.0 * k), INK, WHITE, 1.2),
    ]


def _mount(view: JointView, away: Array) -> list[Stroke]:
    rail, k = view.ground_rail, view.size
    if rail is None:
        return mount_pedestal(view, away)
    return draw_walls(rail[0] + np.outer([-46 * k, 46 * k], rail[1]), rail[1], k)


GUIDE = JointKind(
    "guide",
    spatial=JointType(
        ON_LINE,
        (ALONG_H,),
        (
            Chain(((SLIDE, 0), (BALL, 0)), 0, ((0, 1, 0.0),)),
            Chain(((BALL, 0), (SLIDE, 0)), 0, ((1, -1, 0.0),)),
        ),
    ),
    planar=JointType(
        (Row("d2", "g_i"),),
        (ALONG_F, ANGLE),
        (
            Chain(((SLIDE, 1), (TURN, 2)), 0, ((0, 1, 0.0), (1, 1, 0.0))),
            Chain(((TURN, 0), (SLIDE, 1)), 2, ((1, -1, 0.0), (0, -1, 0.0))),
        ),
    ),
    draw=_draw,
    mount=_mount,
)


class GuideMethods(JointBuilder):
    """Adds guides."""

    @suggest_keywords
    def guide(
        self,
        name: str,
        first: End,
        second: End,
        *,
        at: Numbers | None = None,
        axis: Numbers | None = None,
    ) -> Joint:
        """Hold a point, the second marker, on a line, z of the first (x if planar).

        Coordinates: the displacement; if planar also the angle.
        """
        return self._joint(GUIDE, name, first, second, at, axis)
