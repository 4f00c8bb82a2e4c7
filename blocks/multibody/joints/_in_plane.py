"""A point in a plane."""

from __future__ import annotations

from ...core._ports import Numbers
from ..drawing._strokes import INK, Stroke, circle
from ..drawing._symbols import JointView, draw_sheets, mount_nothing
from ..system._reading import suggest_keywords
from ._builder import End, JointBuilder
from ._joint import ALONG_F, ALONG_G, BALL, SLIDE, Chain, Joint, JointKind, JointType, Row


def _draw(view: JointView) -> list[Stroke]:
    return [*draw_sheets(view, (0.0,)), Stroke(circle(view.at, 2.6 * view.size), INK, INK, 0.4)]


IN_PLANE = JointKind(
    "in_plane",
    spatial=JointType(
        (Row("d2", "h_i"),),
        (ALONG_F, ALONG_G),
        (
            Chain(((SLIDE, 1), (SLIDE, 1), (BALL, 1)), 0, ((0, 1, 0.0), (1, 1, 0.0))),
            Chain(((BALL, 0), (SLIDE, 1), (SLIDE, 1)), 1, ((1, -1, 0.0), (2, -1, 0.0))),
        ),
    ),
    planar="use a guide",
    draw=_draw,
    mount=mount_nothing,
)


class InPlaneMethods(JointBuilder):
    """Adds joints that hold a point in a plane."""

    @suggest_keywords
    def in_plane(
        self,
        name: str,
        first: End,
        second: End,
        *,
        at: Numbers | None = None,
        axis: Numbers | None = None,
    ) -> Joint:
        """Hold a point, the second marker, in the plane normal to z of the first.

        Coordinates: along x, along y.
        """
        return self._joint(IN_PLANE, name, first, second, at, axis)
