"""Two points at a constant distance."""

from __future__ import annotations

import numpy as np

from ....errors import DiagramError
from ..drawing._strokes import INK, WHITE, Stroke, circle
from ..drawing._symbols import JointView, mount_pedestal
from ..system._bodies import Marker
from ..system._reading import read_number, suggest_keywords
from ._builder import JointBuilder
from ._joint import Joint, JointKind, JointType, Row


def _draw(view: JointView) -> list[Stroke]:
    ends = np.array([view.paper.at(view.frame.point(view.joint.first)), view.at])
    line = Stroke(ends, INK, width=2.2)
    return [line, *(Stroke(circle(end, 3.6 * view.size), INK, WHITE, 1.2) for end in ends)]


# It only closes loops: five freedoms are not a chain of elementary joints.
DISTANCE = JointKind(
    "distance",
    spatial=JointType((Row("SS"),)),
    planar=JointType((Row("SS"),), frames="given"),
    draw=_draw,
    mount=mount_pedestal,
)


class DistanceMethods(JointBuilder):
    """Adds constant distances."""

    @suggest_keywords
    def distance(
        self, name: str, first: Marker, second: Marker, *, length: float | None = None
    ) -> Joint:
        """Hold two markers at a distance in m; by default that of the given pose."""
        if length is None and isinstance(first, Marker) and isinstance(second, Marker):
            length = float(np.linalg.norm(second.world_position - first.world_position))
        length = read_number(f"`length` of `{name}`", length)
        if length <= 0:
            raise DiagramError(
                f"`{name}` keeps a distance of {length:g} m: it must be positive. To keep two "
                f"points together use a spherical joint, in a plane a revolute."
            )
        return self._joint(DISTANCE, name, first, second, length=length)
