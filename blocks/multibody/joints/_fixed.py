"""Two markers that are rigidly connected."""

from __future__ import annotations

import numpy as np

from ...core._ports import Numbers
from ..drawing._strokes import INK, WHITE, Stroke, across, hatch, rectangle
from ..drawing._symbols import JointView
from ..system._reading import suggest_keywords
from ..system._rotations import Array
from ._builder import End, JointBuilder
from ._joint import NO_TURN, PARALLEL, POINT, WELD, Chain, Joint, JointKind, JointType, Row


def _draw(view: JointView) -> list[Stroke]:
    k = view.size
    box = rectangle(view.at, np.array([1.0, 0.0]), 9 * k, 9 * k)
    return [Stroke(box, INK, WHITE, 1.2)] + [
        Stroke(box[[n, n + 2]], INK, width=1.2) for n in (0, 1)
    ]


def _mount(view: JointView, away: Array) -> list[Stroke]:
    k, at = view.size, view.ground_place
    side = across(away) * 15 * k
    return hatch(at - side, at + side, away, 7 * k)


_CHAINS = (Chain(((WELD, 0),)), Chain(((WELD, 0),)))

FIXED = JointKind(
    "fixed",
    spatial=JointType(
        (*POINT, *PARALLEL, NO_TURN), chains=_CHAINS, frames="held", takes_axis=False
    ),
    planar=JointType((*POINT[:2], Row("angle")), chains=_CHAINS, frames="held", takes_axis=False),
    draw=_draw,
    mount=_mount,
)


class FixedMethods(JointBuilder):
    """Adds fixed joints."""

    @suggest_keywords
    def fixed(self, name: str, first: End, second: End, *, at: Numbers | None = None) -> Joint:
        """Connect two markers rigidly.

        All joints accept two markers, or two bodies and a point ``at=`` in the world (with
        ``axis=``, a direction in the world). In the second case a marker with the name of the joint
        is added to each body. Coordinates are those of the second relative to the first.
        """
        return self._joint(FIXED, name, first, second, at)
