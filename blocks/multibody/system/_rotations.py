"""Rotations: matrices, Euler parameters and axes.

R_WB maps components in B to components in W; its columns are the axes of B seen in W. Euler
parameters are (e0, e1, e2, e3) with e0 = cos(ψ/2) and e = u sin(ψ/2). A planar system lies in the
plane z = 0 of the same space and turns about +z, so that its vectors and matrices are spatial too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def freeze(array: npt.ArrayLike) -> Array:
    """Return a copy that cannot be written to."""
    copy = np.array(array, dtype=np.float64)
    copy.setflags(write=False)
    return copy


def skew(a: npt.ArrayLike) -> Array:
    """Return ã, such that ã b = a × b."""
    x, y, z = np.asarray(a, dtype=np.float64)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def rotation_from_quaternion(e: npt.ArrayLike) -> Array:
    """Return A = (2 e0² - 1) I + 2 (e eᵀ + e0 ẽ) [V 1.4], of unit Euler parameters."""
    e0, *rest = np.asarray(e, dtype=np.float64)
    v = np.array(rest)
    return freeze((2.0 * e0**2 - 1.0) * np.eye(3) + 2.0 * (np.outer(v, v) + e0 * skew(v)))


def quaternion_from_rotation(rotation: npt.ArrayLike) -> Array:
    """Return unit Euler parameters with e0 ≥ 0.

    They are the eigenvector of the largest eigenvalue of a symmetric matrix made of R, which has no
    special cases; if e0 is 0, the first other one that is not 0 is positive.
    """
    r = np.asarray(rotation, dtype=np.float64)
    k = np.empty((4, 4))
    k[0, 0] = np.trace(r)
    k[0, 1:] = k[1:, 0] = r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]
    k[1:, 1:] = r + r.T - np.trace(r) * np.eye(3)
    e = np.linalg.eigh(k)[1][:, -1]
    e[np.abs(e) < 1e-16] = 0.0
    return freeze(e * np.sign(e[np.flatnonzero(e)[0]]))


def rotation_about(axis: npt.ArrayLike, angle: float) -> Array:
    """Return R = I + sin α ũ + (1 - cos α) ũ² of the unit vector u."""
    u = skew(axis)
    return freeze(np.eye(3) + np.sin(angle) * u + (1.0 - np.cos(angle)) * (u @ u))


def angle_of(rotation: Array) -> float:
    """Return the angle about z of a rotation in the plane, within ±π."""
    return float(np.arctan2(rotation[1, 0], rotation[0, 0]))


def frame_along(axis: Array, planar: bool) -> Array:
    """Return the frame with its joint axis along a unit vector, turned as little as possible.

    The joint axis of a spatial frame is its z axis, of a planar one its x axis.
    """
    if planar:
        return rotation_about([0.0, 0.0, 1.0], float(np.arctan2(axis[1], axis[0])))
    cross = np.cross([0.0, 0.0, 1.0], axis)
    sine, cosine = float(np.linalg.norm(cross)), float(axis[2])
    if sine < 1e-12:
        return freeze(np.diag([1.0, np.sign(cosine), np.sign(cosine)]))
    return rotation_about(cross / sine, float(np.arctan2(sine, cosine)))
