"""Poses of all bodies, and their constraint equations, without the package's own."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from biella.blocks.multibody import Joint, Marker, System
from biella.blocks.multibody.joints._joint import Coordinate, Row
from biella.blocks.multibody.system._rotations import rotation_about

Array = NDArray[np.float64]


class Pose:
    """Positions and rotations of all bodies, moved by small steps; an oracle of its own."""

    def __init__(self, system: System, step: Array | None = None, t: float = 0.0) -> None:
        self.t = t
        size = 3 if system.planar else 6
        self.where = {"ground": (np.zeros(3), np.eye(3), 0.0)}
        for n, body in enumerate(system.bodies):
            move = np.zeros(6)
            if step is not None:
                part = step[size * n : size * (n + 1)]
                move[[0, 1, 5] if system.planar else slice(None)] = part
            angle = float(np.linalg.norm(move[3:]))
            turn = rotation_about(move[3:] / angle, angle) if angle else np.eye(3)
            self.where[body.name] = (body.position + move[:3], turn @ body.rotation, move[5])

    def point(self, marker: Marker) -> Array:
        position, rotation, _ = self.where[marker.body.name]
        return position + rotation @ marker.place(self.t)[0]

    def axis(self, joint: Joint, name: str) -> Array:
        marker, frame = {"i": (joint.first, joint.frame_i), "j": (joint.second, joint.frame_j)}[
            name[2]
        ]
        return self.where[marker.body.name][1] @ frame[:, "fgh".index(name[0])]

    def row(self, joint: Joint, row: Row) -> float:
        d = self.point(joint.second) - self.point(joint.first)
        match row.kind:
            case "S":
                return float(d[row.component])
            case "d1":
                return float(self.axis(joint, row.a) @ self.axis(joint, row.b))
            case "d2":
                return float(self.axis(joint, row.a) @ d)
            case "SS":
                assert joint.length is not None
                return float(d @ d - joint.length**2)
            case "angle":
                f_i, f_j = self.axis(joint, "f_i"), self.axis(joint, "f_j")
                return math.atan2(np.cross(f_i, f_j)[2], f_i @ f_j)

    def coordinate(self, joint: Joint, coordinate: Coordinate) -> float:
        if coordinate.kind == "length":
            d = self.point(joint.second) - self.point(joint.first)
            return float(d @ self.axis(joint, coordinate.along))
        of, start, about = (
            self.axis(joint, name) for name in (coordinate.of, coordinate.start, coordinate.about)
        )
        return math.atan2(of @ np.cross(about, start), of @ start)

    def rows(self, system: System) -> Array:
        return np.array([self.row(joint, row) for joint in system.joints for row in joint.rows])


def jacobian(system: System) -> Array:
    """Return the constraint Jacobian by central differences; its error is about 1e-10."""
    size = (3 if system.planar else 6) * len(system.bodies)
    step = 1e-5 * np.eye(size)
    return np.column_stack(
        [(Pose(system, e).rows(system) - Pose(system, -e).rows(system)) / 2e-5 for e in step]
    )


def rank(matrix: Array) -> int:
    """Return the rank; the gap between true singular values and rounding is wide here."""
    values = np.linalg.svd(matrix, compute_uv=False)
    assert not ((values > 1e-7) & (values < 1e-3)).any(), values
    return int((values > 1e-5).sum())
