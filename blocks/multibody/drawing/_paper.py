"""The paper a mechanism is projected on: its scale, and solids seen from where the eye is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..system._rotations import Array, frame_along
from ._strokes import INK, JOINT_LAYER, WHITE, Stroke, arrow_head, hull, unit
from ._view import View


@dataclass(frozen=True)
class Paper:
    """A view, how many points on paper a meter has, and how large symbols are against full size."""

    view: View
    scale: float
    size: float

    def at(self, place: ArrayLike) -> Array:
        """Return the position on paper, in points, of a point in the world."""
        return self.view.project(np.asarray(place)) * self.scale

    def slant(self, direction: Array) -> Array:
        """Return a direction of the world on paper, foreshortened."""
        return self.view.project(direction)

    def ring(self, center: Array, axis: Array, radius: float, turn: Array | None = None) -> Array:
        """Return a circle about an axis of the world, or an arc over the angles `turn`.

        `center` and `radius` are in points on paper. Angle 0 is where the circle is lowest on
        paper, and angles turn about the axis.
        """
        frame = frame_along(unit(axis, (0.0, 0.0, 1.0)), False)
        angles = np.linspace(0.0, 2.0 * np.pi, 37)[:-1] if turn is None else turn
        u, v = self.slant(frame[:, 0]), self.slant(frame[:, 1])
        lowest = np.arctan2(-v[1], -u[1])
        a = angles + lowest
        return np.asarray(center + radius * (np.outer(np.cos(a), u) + np.outer(np.sin(a), v)))

    def barrel(
        self,
        center: Array,
        axis: Array,
        length: float,
        radius: float,
        *,
        face: str = WHITE,
        edge: str = INK,
        tint: float = 1.0,
        layer: float = JOINT_LAYER,
    ) -> list[Stroke]:
        """Return a cylinder: a circle seen from its end, a rectangle from its side."""
        reach = self.slant(axis) * length / 2.0
        rings = [self.ring(center + sign * reach, axis, radius) for sign in (1.0, -1.0)]
        near = rings[0 if axis @ self.view.toward >= 0.0 else 1]
        outline = Stroke(hull(np.vstack(rings)), edge, face, 1.2, layer, tint)
        if abs(axis @ self.view.toward) > 0.995:
            return [outline]
        return [outline, Stroke(near, edge, face, 1.0, layer, tint)]

    def sheet(self, center: Array, first: Array, second: Array, half: float) -> Array:
        """Return a square that two directions of the world span."""
        u, v = self.slant(first) * half, self.slant(second) * half
        return np.array([center + u + v, center - u + v, center - u - v, center + u - v])

    def turning_arrow(self, center: Array, axis: Array, radius: float, color: str) -> list[Stroke]:
        """Return an arc with a head that turns about an axis by the right hand."""
        size = 7.5 * self.size
        arc = self.ring(center, axis, radius, np.radians(np.linspace(70.0, 300.0, 40)))
        head = arrow_head(arc[-1], unit(arc[-1] - arc[-6]), size, color)
        return [Stroke(arc[:-3], color, width=1.6, layer=head.layer), head]

    def spiral(self, center: Array, axis: Array, inner: float, outer: float) -> Array:
        """Return the line of a torsional spring."""
        angles = np.linspace(0.0, 4.5 * np.pi, 90)
        line = self.ring(np.zeros(2), axis, 1.0, angles)
        return np.asarray(center + line * np.linspace(inner, outer, 90)[:, None])
