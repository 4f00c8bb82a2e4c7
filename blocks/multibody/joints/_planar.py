"""Two planes on each other."""

from __future__ import annotations

from ...core._ports import Numbers
from ..drawing._strokes import Stroke
from ..drawing._symbols import JointView, draw_sheets, mount_nothing
from ..system._reading import suggest_keywords
from ._builder import End, JointBuilder
from ._joint import (
    ALONG_F,
    ALONG_G,
    ANGLE,
    PARALLEL,
    SLIDE,
    TURN,
    Chain,
    Joint,
    JointKind,
    JointType,
    Row,
)


def _draw(view: JointView) -> list[Stroke]:
    return draw_sheets(view, (-2.5, 2.5))


PLANAR_JOINT = JointKind(
    "planar",
    spatial=JointType(
        (*PARALLEL, Row("d2", "h_i")),
        (ALONG_F, ALONG_G, ANGLE),
        (
            Chain(
                ((SLIDE, 1), (SLIDE, 1), (TURN, 1)),
                0,
                ((0, 1, 0.0), (1, 1, 0.0), (2, 1, 0.0)),
            ),
            Chain(
                ((TURN, 0), (SLIDE, 1), (SLIDE, 1)),
                1,
                ((1, -1, 0.0), (2, -1, 0.0), (0, -1, 0.0)),
            ),
        ),
    ),
    planar="a body moves in the plane without any joint",
    draw=_draw,
    mount=mount_nothing,
)


class PlanarMethods(JointBuilder):
    """Adds planar joints."""

    @suggest_keywords
    def planar_joint(
        self,
        name: str,
        first: End,
        second: End,
        *,
        at: Numbers | None = None,
        axis: Numbers | None = None,
    ) -> Joint:
        """Hold two markers in a plane normal to z; coordinates: along x, along y, angle about z."""
        return self._joint(PLANAR_JOINT, name, first, second, at, axis)
