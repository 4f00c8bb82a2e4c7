"""Rows of rolling contacts, see ``blocks/multibody/kernel/constraints/rolling.c``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..system._rotations import Array
from ._shapes import Field, Shapes

if TYPE_CHECKING:
    from ..elements._rolling import RollingRow


@dataclass(frozen=True, slots=True)
class RollingValues:
    """Φ, its Jacobian over q, its rate where v = 0, and -γ."""

    phi: float
    jacobian: Array
    partial: float
    rest: float


class RollingEquation:
    """The equation of one row: its points and directions."""

    def __init__(self, item: RollingRow, shapes: Shapes) -> None:
        self.item = item
        self.bodies = [
            shapes.ground if marker.body.is_ground else marker.body.index
            for marker in (item.first, item.second)
        ]
        i, j = self.bodies
        self.items = [
            shapes.point(item.first),
            shapes.point(item.second),
            shapes.direction(i, item.first.rotation[:, item.normal]),
            shapes.direction(i, item.first.rotation[:, item.direction]),
            shapes.direction(j, item.second.rotation[:, 2]),
        ]

    def evaluate(self, shapes: Shapes, field: Field, v: Array, spins: Array) -> RollingValues:
        """Return the row at a state; `spins` as from `AbstractModel.spins`."""
        item = self.item
        wide = np.zeros((5, 3, shapes.ground + 1, field.jacobian.shape[2]))
        turning = np.zeros((2, 3, *wide.shape[2:]))
        for k, n in enumerate(self.items):
            wide[k, :, shapes.body[n]] = field.jacobian[n]
        for k, body in enumerate(self.bodies):
            if body < shapes.ground:
                turning[k, :, body] = spins[body]
        places = wide[:, :, :-1].reshape(5, 3, -1)
        turns = turning[:, :, :-1].reshape(2, 3, -1)
        p, c, n, u, h = field.value[self.items]
        v_p, v_c, n_v, u_v, h_v = places @ v + field.partial[self.items]
        w_i, w_j = turns @ v
        part, part_v = (n @ h, n_v @ h + n @ h_v) if item.tilts else (0.0, 0.0)
        up, up_v = n - part * h, n_v - part_v * h - part * h_v
        length = max(float(np.linalg.norm(up)), 1e-9)
        e = up / length
        e_v = (up_v - e * (e @ up_v)) / length
        arm_j = -item.radius * e
        arm_i = c + arm_j - p
        slip = v_c + np.cross(w_j, arm_j) - v_p - np.cross(w_i, arm_i)
        arm_j_v = -item.radius * e_v
        arm_i_v = v_c + arm_j_v - v_p
        change = field.rest[self.items[1]] - field.rest[self.items[0]]
        change = change + np.cross(w_j, arm_j_v) - np.cross(w_i, arm_i_v)
        jacobian = u @ (places[1] - places[0])
        jacobian = jacobian + np.cross(arm_j, u) @ turns[1] - np.cross(arm_i, u) @ turns[0]
        return RollingValues(
            0.0 if item.binds_rates else float(n @ (c - p) - item.radius * length),
            jacobian,
            float(u @ (field.partial[self.items[1]] - field.partial[self.items[0]])),
            float(u @ change + u_v @ slip),
        )
