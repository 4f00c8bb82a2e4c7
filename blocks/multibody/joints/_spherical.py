"""A ball joint."""

from __future__ import annotations

from .... import _contract as contract
from ...core._ports import Numbers
from ..drawing._strokes import INK, WHITE, Stroke, circle
from ..drawing._symbols import JointView, mount_pedestal
from ..system._reading import suggest_keywords
from ._builder import End, JointBuilder
from ._joint import BALL, POINT, Chain, Joint, JointKind, JointType


def _draw(view: JointView) -> list[Stroke]:
    return [
        Stroke(circle(view.at, 6.6 * view.size), INK, WHITE, 1.2),
        Stroke(circle(view.at, 4.0 * view.size), INK, INK, 0.4),
    ]


SPHERICAL = JointKind(
    "spherical",
    spatial=JointType(
        POINT,
        chains=(Chain(((BALL, 0),)), Chain(((BALL, 0),))),
        takes_axis=False,
        friction_kind=contract.MB_JOINT_FRICTION_SPHERICAL,
        friction_sizes=("diameter",),
    ),
    planar="a revolute does the same",
    draw=_draw,
    mount=mount_pedestal,
)


class SphericalMethods(JointBuilder):
    """Adds spherical joints."""

    @suggest_keywords
    def spherical(self, name: str, first: End, second: End, *, at: Numbers | None = None) -> Joint:
        """Add a ball joint; it has no simple coordinates."""
        return self._joint(SPHERICAL, name, first, second, at)
