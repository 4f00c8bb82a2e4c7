"""A point on a curve through given points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .... import _contract as contract
from ....errors import DiagramError
from ...core._ports import Matrix, Parameter
from ..analysis._jets import Jet
from ..drawing._strokes import SOFT_INK, SPRING_LAYER, Stroke
from ..system._bodies import Marker
from ..system._parts import Parts
from ..system._reading import read_numbers, suggest_keywords
from ..system._rotations import Array
from ._element import Output, Term, power
from ._function_constraint import FunctionConstraint
from ._named_coordinates import between

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

    from ..drawing._paper import Paper
    from ..drawing._poses import Snapshot
    from ..plant._tables import Tables


@dataclass(frozen=True, slots=True, eq=False)
class CurveConstraint(FunctionConstraint):
    """One equation of a point P on a curve C(s): Ψ = n · (P - C), with C the nearest place to P.

    The normal n is z × C' in a plane. In space there are two equations, with n = C' × a and
    n = C' × (C' × a). The curve is a cubic spline over the length of its chords s, so that C' has a
    length near 1. The output ``force`` is that on the point along n, in N for a unit of n.

    Attributes
    ----------
    first, second
        Marker in whose axes the curve is given, and marker of the point.
    spline
        C(s), with two continuous derivatives; periodic if it is closed.
    number
        0, or 1 for the second equation in space.
    axis
        The direction a, which the curve is nowhere parallel to.
    """

    general = "curve"

    name: str
    first: Marker
    second: Marker
    spline: CubicSpline
    closed: bool
    number: int
    axis: Array

    @property
    def terms(self) -> tuple[Term, ...]:
        """Return the coordinates of the point in axes of the curve."""
        joint = between(self.first, self.second)
        return tuple(Term(joint, n, 1.0) for n in range(self.spline.c.shape[2]))

    def parameters(self) -> Iterator[Parameter]:
        """Yield nothing: points of curves are constant."""
        return iter(())

    def outputs(self) -> Mapping[str, Output]:
        """Return its available outputs, by name."""
        doc = f"force of curve {self.name} on its point, along the normal"
        return {
            "force": Output(0, "N", doc, 1, "solution", of="effort"),
            "power": power("solution"),
        }

    def law(self, tables: Tables, records: list[int]) -> int:
        """Return the number of the law of its row, whose coordinates have these records."""
        pieces = np.moveaxis(self.spline.c, (0, 1, 2), (2, 1, 0))
        data = np.concatenate([self.spline.x, pieces.ravel(), self.axis])
        own = [self.number, len(self.spline.x), tables.hide(data), int(self.closed)]
        return tables.laws.add_curve(records, own)

    def jet(self, coordinates: Sequence[Jet], time: Jet) -> Jet:
        """Return Ψ and its first two derivatives along a motion of the point."""
        p, v, a = (_spatial([one[n] for one in coordinates]) for n in range(3))
        c, c1, c2, c3 = self._nearest(p)
        if len(coordinates) == 2:
            n, n1, n2 = (np.cross([0.0, 0.0, 1.0], one) for one in (c1, c2, c3))
        else:
            n, n1, n2 = (np.cross(one, self.axis) for one in (c1, c2, c3))
            if self.number:
                n, n1, n2 = (
                    np.cross(c1, n),
                    np.cross(c2, n) + np.cross(c1, n1),
                    np.cross(c3, n) + 2.0 * np.cross(c2, n1) + np.cross(c1, n2),
                )
        e = p - c
        bend = c1 @ c1 - c2 @ e
        rate = c1 @ v / bend
        e_rate = v - rate * c1
        second = (c3 @ e * rate**2 + 2 * c2 @ e_rate * rate + c1 @ a - c1 @ c2 * rate**2) / bend
        turned = (n2 @ e - n1 @ c1) * rate**2 + n1 @ e * second
        return (
            float(n @ e),
            float(n @ v + n1 @ e * rate),
            float(n @ a + 2.0 * n1 @ v * rate + turned),
        )

    def _nearest(self, p: Array) -> tuple[Array, Array, Array, Array]:
        """Return the place of the curve nearest to a point, with its derivatives."""
        spline, s = self.spline, self.spline.x
        away = np.linalg.norm([_spatial(c) - p for c in spline(s)], axis=1)
        at = float(s[int(np.argmin(away))])
        for _ in range(16):
            e = p - _spatial(spline(at))
            c1, c2 = (_spatial(spline(at, n)) for n in (1, 2))
            bend = c1 @ c1 - c2 @ e
            at += float(c1 @ e / (bend if bend > 0.1 * c1 @ c1 else c1 @ c1))
        c, c1, c2, c3 = (_spatial(spline(at, n)) for n in range(4))
        return c, c1, c2, c3

    def draw(self, frame: Snapshot, paper: Paper) -> list[Stroke]:
        """Return the curve."""
        if self.number:
            return []
        at = np.linspace(self.spline.x[0], self.spline.x[-1], 200)
        turn = frame.rotation(self.first.body) @ self.first.rotation
        line = frame.point(self.first) + np.array([turn @ _spatial(c) for c in self.spline(at)])
        drawn = np.array([paper.at(one) for one in line])
        return [Stroke(drawn, SOFT_INK, width=1.2, layer=SPRING_LAYER)]


def _spatial(values: Any) -> Array:
    """Return a vector in space; z is 0 in a plane."""
    made = np.zeros(3)
    made[: len(values)] = values
    return made


class CurveMethods(Parts):
    """Adds points on curves."""

    @suggest_keywords
    def on_curve(
        self, name: str, curve: Marker, point: Marker, *, points: Matrix, closed: bool = False
    ) -> CurveConstraint:
        """Hold a point on a smooth curve through given points; see `CurveConstraint`.

        Beyond the ends of an open curve its first and last piece go on. A curve that is known as a
        formula, such as ``y - x**2`` or ``(x/a)**2 + (y/b)**2 - 1``, is a `constraint` with
        ``between=``.

        Parameters
        ----------
        name
            Of the equation; in space the second one is ``name_2``.
        curve, point
            Marker in whose axes the curve is given, and the marker that is held on it.
        points
            In m, one row for each, in the order of the curve: x and y, in space x, y and z; at
            least 4. Where the curve bends much they must be close.
        closed
            Whether the curve returns from the last point to the first, without a corner.

        Raises
        ------
        DiagramError
            If there are too few points, two neighbors coincide, or a curve in space has tangents in
            all directions.
        """
        self._check_name(name)
        curve, point = self._check_ends(name, curve, point)
        size = 2 if self.planar else 3
        rows = read_numbers(f"`points` of `{name}`", points)
        if rows.ndim != 2 or rows.shape[1] != size or not 4 <= len(rows) < contract.MB_CURVE_MOST:
            raise DiagramError(
                f"`points` of `{name}` are 4 to {contract.MB_CURVE_MOST - 1} rows of {size} "
                f"numbers; got an array of shape {rows.shape}."
            )
        if closed and np.any(rows[0] != rows[-1]):
            rows = np.vstack([rows, rows[:1]])
        chords = np.linalg.norm(np.diff(rows, axis=0), axis=1)
        if not (chords > 1e-9 * chords.sum()).all():
            at = int(np.argmin(chords))
            raise DiagramError(f"points {at} and {at + 1} of `{name}` coincide: leave one out.")
        from scipy.interpolate import CubicSpline  # here: it takes longer than all the rest

        s = np.concatenate([[0.0], np.cumsum(chords)])
        spline = CubicSpline(s, rows, bc_type="periodic" if closed else "not-a-knot")
        axis = np.array([0.0, 0.0, 1.0]) if self.planar else _across(name, spline)
        if not self.planar:
            self._check_name(f"{name}_2")
        made = self._add(CurveConstraint(name, curve, point, spline, closed, 0, axis))
        if not self.planar:
            self._add(CurveConstraint(f"{name}_2", curve, point, spline, closed, 1, axis))
        return made


def _across(name: str, spline: CubicSpline) -> Array:
    """Return the direction that is farthest from every tangent of a curve."""
    tangents = spline(np.linspace(spline.x[0], spline.x[-1], 400), 1)
    tangents = tangents / np.linalg.norm(tangents, axis=1)[:, None]
    steps = np.arange(200)
    z, turn = 1.0 - (steps + 0.5) / 200.0, steps * np.pi * (3.0 - 5.0**0.5)
    side = np.sqrt(1.0 - z * z)
    candidates = np.column_stack([side * np.cos(turn), side * np.sin(turn), z])
    largest = np.abs(candidates @ tangents.T).max(axis=1)
    best = int(np.argmin(largest))
    if largest[best] > 0.995:
        raise DiagramError(
            f"curve `{name}` runs in all directions: divide it, so that some direction is nowhere "
            f"its tangent."
        )
    return np.asarray(candidates[best])
