"""Points and directions on bodies, and the dot products and angles that are made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..joints._joint import Coordinate, Joint, Row
from ..system._bodies import Body, Marker
from ..system._rotations import Array

if TYPE_CHECKING:
    from ..system._system import System


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Points and directions at one state.

    Attributes
    ----------
    value
        In world axes: (items, 3).
    jacobian
        With respect to the coordinates of the body that each is on: (items, 3, width).
    partial
        Rate where v = 0: that of a moving marker on its body.
    rest
        Acceleration where q̈ = 0.
    """

    value: Array
    jacobian: Array
    partial: Array
    rest: Array


@dataclass(frozen=True, slots=True, eq=False)
class Scalars:
    """Dot products, then angles: value, Jacobian over all of q, rate, rate where v = 0, and rest.

    The rest is the second derivative where q̈ = 0.
    """

    value: Array
    jacobian: Array
    rate: Array
    partial: Array
    rest: Array


class Shapes:
    """Collects items while a model is built; item 0 is the zero vector on the ground."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.ground = len(system.bodies)
        self.bodies: list[int] = [self.ground]
        self.local: list[Array] = [np.zeros(3)]
        self.is_point: list[float] = [0.0]
        self.moving: list[tuple[int, Marker]] = []
        self.euler: dict[int, int] = {}
        self._items: dict[object, int] = {}
        self._products: dict[tuple[int, int, int, int], int] = {}
        self._angles: dict[tuple[int, int], int] = {}

    def _item(self, key: object, body: int, local: Array, point: float) -> int:
        if key not in self._items:
            self._items[key] = len(self.bodies)
            self.bodies.append(body)
            self.local.append(local)
            self.is_point.append(point)
        return self._items[key]

    def point(self, marker: Marker) -> int:
        """Return the item of a marker's origin."""
        known = ("point", marker.path) in self._items
        body = self.ground if marker.body.is_ground else marker.body.index
        local = marker.position - marker.body.com
        item = self._item(("point", marker.path), body, local, 1.0)
        if marker.motion and not known:
            self.moving.append((item, marker))
        return item

    def origin(self, body: Body) -> int:
        """Return the item of the origin of a body's frame."""
        return self._item(("origin", body.name), body.index, -body.com, 1.0)

    def marker(self, path: str) -> int:
        """Return the item of ``body.marker``."""
        return self._items[("point", path)]

    def direction(self, body: int, vector: Array) -> int:
        """Return the item of a direction in axes of a body; the ground is the last body."""
        key = ("direction", body, *np.round(vector, 15).tolist())
        return self._item(key, body, np.array(vector), 0.0)

    def product(self, x: tuple[int, int], y: tuple[int, int]) -> int:
        """Return the scalar (x0 - x1) · (y0 - y1) of items."""
        return self._products.setdefault((*x, *y), len(self._products))

    def angle(self, sine: int, cosine: int) -> int:
        """Return the scalar atan2 of two products, as a negative number until `close`."""
        return -1 - self._angles.setdefault((sine, cosine), len(self._angles))

    def _axis(self, joint: Joint, name: str) -> int:
        marker, frame = (
            (joint.first, joint.frame_i) if name.endswith("i") else (joint.second, joint.frame_j)
        )
        body = self.ground if marker.body.is_ground else marker.body.index
        return self.direction(body, frame[:, "fgh".index(name[0])])

    def _between(self, joint: Joint) -> tuple[int, int]:
        return self.point(joint.second), self.point(joint.first)

    def row(self, joint: Joint, row: Row) -> int:
        """Return the scalar of a joint's equation."""
        if row.kind == "S":
            unit = self.direction(self.ground, np.eye(3)[row.component])
            return self.product((unit, 0), self._between(joint))
        if row.kind == "SS":
            return self.product(self._between(joint), self._between(joint))
        if row.kind == "angle":
            return self._joint_angle(joint, Coordinate("angle", of="f_j", start="f_i", about="h_i"))
        a = (self._axis(joint, row.a), 0)
        return self.product(
            a, self._between(joint) if row.kind == "d2" else (self._axis(joint, row.b), 0)
        )

    def coordinate(self, joint: Joint, index: int) -> int:
        """Return the scalar of a joint's coordinate."""
        of = joint.coordinates[index]
        if of.kind == "euler":
            return self._euler(joint.second.body, of.parameter)
        if of.kind == "length":
            return self.product((self._axis(joint, of.along), 0), self._between(joint))
        return self._joint_angle(joint, of)

    def _euler(self, body: Body, parameter: int) -> int:
        """Return the scalar of an Euler parameter: an item with e0, or with e1 … e3, is filled by
        the model, as no point or direction is one."""
        part, axis = (0, 0) if parameter == 0 else (1, parameter - 1)
        item = self._item(("euler", body.name, part), body.index, np.zeros(3), 0.0)
        self.euler[item] = part
        unit = self.direction(self.ground, np.eye(3)[axis])
        return self.product((unit, 0), (item, 0))

    def _joint_angle(self, joint: Joint, of: Coordinate) -> int:
        """Return the angle of `of` about `about` from `start`.

        Its sine is of · (about × start), where the two vectors on one body make a third one there.
        """
        frames = {"i": joint.frame_i, "j": joint.frame_j}

        def local(name: str) -> Array:
            return np.asarray(frames[name[-1]][:, "fgh".index(name[0])])

        if of.about[-1] == of.start[-1]:
            alone, crossed = of.of, np.cross(local(of.about), local(of.start))
        else:
            alone, crossed = of.start, np.cross(local(of.of), local(of.about))
        marker = joint.first if of.about[-1] == "i" else joint.second
        body = self.ground if marker.body.is_ground else marker.body.index
        third = self.direction(body, crossed)
        sine = self.product((self._axis(joint, alone), 0), (third, 0))
        cosine = self.product((self._axis(joint, of.of), 0), (self._axis(joint, of.start), 0))
        return self.angle(sine, cosine)

    def close(self) -> None:
        """Make arrays of all that was collected; markers become items too."""
        for body in (self.system.ground, *self.system.bodies):
            for marker in body.markers.values():
                self.point(marker)
        self.body = np.array(self.bodies, dtype=int)
        self.place = np.array(self.local)
        self.flag = np.array(self.is_point)
        self._pick = np.array(list(self._products), dtype=int).reshape(-1, 4)
        self._atan = np.array(list(self._angles), dtype=int).reshape(-1, 2)

    def scalar(self, number: int) -> int:
        """Return the index of a scalar in `Scalars`."""
        return number if number >= 0 else len(self._products) - 1 - number

    def places(self, t: float) -> tuple[Array, Array | None, Array | None]:
        """Return local places, and their rates and accelerations if any marker moves."""
        if not self.moving:
            return self.place, None, None
        place, rate, acceleration = self.place.copy(), *np.zeros((2, *self.place.shape))
        for item, marker in self.moving:
            where, rate[item], acceleration[item] = marker.place(t)
            place[item] = where - marker.body.com
        return place, rate, acceleration

    def _wide(self, jacobian: Array) -> Array:
        """Return Jacobians over all of q, of Jacobians over one body."""
        items, _, width = jacobian.shape
        wide = np.zeros((items, 3, self.ground + 1, width))
        wide[np.arange(items), :, self.body] = jacobian
        return wide[:, :, :-1].reshape(items, 3, -1)

    def combine(self, field: Field, v: Array) -> Scalars:
        """Return dot products and angles of a field."""
        xp, xm, yp, ym = self._pick.T
        wide = self._wide(field.jacobian)
        rate = wide @ v + field.partial

        def both(of: Array) -> tuple[Array, Array]:
            return of[xp] - of[xm], of[yp] - of[ym]

        x, y = both(field.value)
        x_q, y_q = both(wide)
        x_t, y_t = both(field.partial)
        x_v, y_v = both(rate)
        x_a, y_a = both(field.rest)
        value = (x * y).sum(1)
        jacobian = (y[:, None, :] @ x_q + x[:, None, :] @ y_q)[:, 0]
        rates = (x_v * y + x * y_v).sum(1)
        partial = (x_t * y + x * y_t).sum(1)
        rest = (x_a * y + x * y_a + 2.0 * x_v * y_v).sum(1)
        if not len(self._atan):
            return Scalars(value, jacobian, rates, partial, rest)
        s, c = self._atan.T
        sine, cosine = value[s], value[c]
        square = sine**2 + cosine**2

        def turn(of: Array) -> Array:
            scale = (...,) + (None,) * (of.ndim - 1)
            result: Array = (cosine[scale] * of[s] - sine[scale] * of[c]) / square[scale]
            return result

        theta_v = turn(rates)
        growth = 2.0 * (cosine * rates[c] + sine * rates[s]) / square
        return Scalars(
            np.concatenate([value, np.arctan2(sine, cosine)]),
            np.concatenate([jacobian, turn(jacobian)]),
            np.concatenate([rates, theta_v]),
            np.concatenate([partial, turn(partial)]),
            np.concatenate([rest, turn(rest) - theta_v * growth]),
        )
