"""Single base constraints between two markers, for joints that no ready kind is [V 1.12, 1.13].

They only close loops: a body that nothing else holds is carried by a free joint of the tree.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from ....errors import DiagramError
from ..drawing._strokes import Stroke
from ..system._bodies import Marker
from ..system._reading import suggest_keywords
from ._builder import JointBuilder
from ._joint import Axis, Joint, JointKind, JointType, Row

_AXES = {"x": "f", "y": "g", "z": "h"}


def _nothing(*_: Any) -> list[Stroke]:
    return []


@cache
def _kind(name: str, rows: tuple[Row, ...]) -> JointKind:
    one = JointType(rows, frames="given", takes_axis=False)
    return JointKind(name, spatial=one, planar=one, draw=_nothing, mount=_nothing)


class BaseConstraintMethods(JointBuilder):
    """Adds base constraints of joints."""

    @suggest_keywords
    def perpendicular(
        self, name: str, first: Marker, second: Marker, *, axes: tuple[str, str] = ("z", "z")
    ) -> Joint:
        """Hold an axis of one marker at right angles to an axis of another: Φ = a · b.

        Parameters
        ----------
        name, first, second
            Its name and two markers with `axis` or `rotation`; others have the axes of their body.
        axes
            ``"x"``, ``"y"`` or ``"z"`` of the first marker and of the second; in a plane x or y.
        """
        if not isinstance(axes, tuple | list) or len(axes) != 2:
            raise DiagramError(f"`axes` of `{name}` are two, such as ('x', 'z'); got {axes!r}.")
        a, b = (self._base_axis(name, axis) for axis in axes)
        row = Row("d1", cast("Axis", f"{a}_i"), cast("Axis", f"{b}_j"))
        return self._joint(_kind("perpendicular", (row,)), name, first, second)

    @suggest_keywords
    def perpendicular_distance(
        self, name: str, first: Marker, second: Marker, *, axis: str = "z"
    ) -> Joint:
        """Hold the distance between two markers at right angles to an axis of the first: Φ = a · d.

        Parameters
        ----------
        name, first, second
            Its name and two markers; d runs from the first to the second.
        axis
            ``"x"``, ``"y"`` or ``"z"`` of the first marker; no ``"z"`` in a plane.
        """
        return self._coincide("perpendicular_distance", name, first, second, axis)

    @suggest_keywords
    def coincident(
        self, name: str, first: Marker, second: Marker, *, coordinates: str = "xyz"
    ) -> Joint:
        """Hold two markers at one point, or at the same place along some axes: Φ_k = a_k · d = 0.

        Parameters
        ----------
        name, first, second
            Its name and two markers; d runs from the first to the second.
        coordinates
            Which axes of the first marker: ``"xyz"``, ``"z"``, ``"xy"`` …; ``z`` is left out in a
            plane. For coordinates of the world, put the first marker on the ground.
        """
        if coordinates == "xyz" and self.planar:
            coordinates = "xy"
        return self._coincide("coincident", name, first, second, coordinates)

    def _coincide(self, kind: str, name: str, first: Marker, second: Marker, axes: Any) -> Joint:
        if not isinstance(axes, str) or not axes or len(set(axes)) < len(axes):
            raise DiagramError(f"`{name}` needs different axes, such as 'xy'; got {axes!r}.")
        along = [cast("Axis", f"{self._base_axis(name, axis)}_i") for axis in axes]
        return self._joint(_kind(kind, tuple(Row("d2", a) for a in along)), name, first, second)

    def _base_axis(self, name: str, axis: Any) -> str:
        known = "xy" if self.planar else "xyz"
        if not isinstance(axis, str) or axis not in tuple(known):
            raise DiagramError(
                f"`{name}` has an axis {axis!r}; the axes of a marker are {', '.join(known)}."
            )
        return _AXES[axis]
