"""Rigid displacements as orthogonal dual matrices T = A + ε p̃A [V 5.70-5.74, 7.8].

T(F←M) takes lines, twists and wrenches from frame M to frame F: A is the rotation, p the origin of
M in F. Displacements are composed by their matrix product and inverted by their transpose.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....errors import FormulationError
from ..system._rotations import Array
from ._numbers import Dual, Dualish, as_dual, stack
from ._screws import cross


def skew(a: Dualish) -> Dual:
    """Return ã with ã b = a × b, of dual vectors along the last axis."""
    v = as_dual(a)
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    return _rows(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))


def displacement(rotation: npt.ArrayLike, position: npt.ArrayLike) -> Dual:
    """Return T = A + ε p̃A of a rotation matrix and a position."""
    matrix = np.asarray(rotation, dtype=np.float64)
    return Dual(matrix, skew(position).real @ matrix)


def position_of(motion: Dual) -> Array:
    """Return p of a displacement, from p̃ = A₀Aᵀ."""
    p = motion.dual @ np.swapaxes(motion.real, -1, -2)
    return np.stack([p[..., 2, 1], p[..., 0, 2], p[..., 1, 0]], axis=-1)


def about_x(angle: Dualish) -> Dual:
    """Return the helical motion Rx(α + ε a): a rotation about x and a shift along it."""
    c, s = np.cos(as_dual(angle)), np.sin(as_dual(angle))
    return _rows(((1.0, 0.0, 0.0), (0.0, c, -s), (0.0, s, c)))


def about_z(angle: Dualish) -> Dual:
    """Return the helical motion Rz(θ + ε s): a rotation about z and a shift along it [V 5.70]."""
    c, s = np.cos(as_dual(angle)), np.sin(as_dual(angle))
    return _rows(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)))


def about(line: Dualish, angle: Dualish) -> Dual:
    """Return the helical motion about a unit line, I + sin τ̂ Ê~ + (1 - cos τ̂) Ê~² [V 7.8]."""
    e, t = skew(line), as_dual(angle)[..., None, None]
    made: Dual = np.eye(3) + np.sin(t) * e + (1.0 - np.cos(t)) * (e @ e)
    return made


def frame_of_points(p: npt.ArrayLike, q: npt.ArrayLike, r: npt.ArrayLike) -> Dual:
    """Return T of the frame with the origin P, z along PQ and x along PR [V 5.71-5.74].

    x is made perpendicular to z in the plane of the points.

    Raises
    ------
    FormulationError
        If the points are on one line.
    """
    origin, on_z, on_x = (np.asarray(point, dtype=np.float64) for point in (p, q, r))
    k, i = on_z - origin, on_x - origin
    length = np.linalg.norm(k, axis=-1, keepdims=True)
    k = k / np.where(length > 0, length, 1.0)
    i = i - np.sum(i * k, axis=-1, keepdims=True) * k
    width = np.linalg.norm(i, axis=-1, keepdims=True)
    reach = np.linalg.norm(on_x - origin, axis=-1, keepdims=True)
    if not (np.all(length > 0) and np.all(width > 1e-12 * reach)):
        raise FormulationError("P, Q and R of a frame must not be on one line.")
    x, z = (Dual(e, np.cross(origin, e)) for e in (i / width, k))
    return stack((x, cross(z, x), z), axis=-1)


def _rows(rows: tuple[tuple[Dualish, ...], ...]) -> Dual:
    return stack([stack(row) for row in rows], axis=-2)
