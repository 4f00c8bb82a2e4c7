"""A hinge."""

from __future__ import annotations

from .... import _contract as contract
from ...core._ports import Numbers
from ..drawing._strokes import Stroke
from ..drawing._symbols import JointView, mount_pedestal
from ..system._reading import suggest_keywords
from ._builder import End, JointBuilder
from ._joint import ANGLE, PARALLEL, POINT, TURN, Chain, Joint, JointKind, JointType


def _draw(view: JointView) -> list[Stroke]:
    return view.paper.barrel(view.at, view.axis("h_i"), 17 * view.size, 5.4 * view.size)


_CHAINS = (
    Chain(((TURN, 0),), 0, ((0, 1, 0.0),)),
    Chain(((TURN, 0),), 0, ((0, -1, 0.0),)),
)

REVOLUTE = JointKind(
    "revolute",
    spatial=JointType(
        (*POINT, *PARALLEL),
        (ANGLE,),
        _CHAINS,
        friction_kind=contract.MB_JOINT_FRICTION_REVOLUTE,
    ),
    planar=JointType(
        POINT[:2],
        (ANGLE,),
        _CHAINS,
        frames="given",
        takes_axis=False,
        friction_kind=contract.MB_JOINT_FRICTION_REVOLUTE,
        friction_sizes=("diameter",),
    ),
    draw=_draw,
    mount=mount_pedestal,
)


class RevoluteMethods(JointBuilder):
    """Adds revolute joints."""

    @suggest_keywords
    def revolute(
        self,
        name: str,
        first: End,
        second: End,
        *,
        at: Numbers | None = None,
        axis: Numbers | None = None,
    ) -> Joint:
        """Add a hinge about the z axes of two markers; coordinate: the angle of x about z."""
        return self._joint(REVOLUTE, name, first, second, at, axis)
