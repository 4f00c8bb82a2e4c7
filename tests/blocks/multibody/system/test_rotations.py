"""Rotations, Euler parameters and frames."""

from __future__ import annotations

import math

import numpy as np

from biella.blocks.multibody.system._rotations import (
    frame_along,
    quaternion_from_rotation,
    rotation_about,
    rotation_from_quaternion,
    skew,
)


def test_rotations() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 3))
    assert np.allclose(skew(a) @ b, np.cross(a, b), atol=1e-15)
    for e in [*rng.normal(size=(20, 4)), np.array([0.0, 0.0, 1.0, 0.0])]:
        e = e / np.linalg.norm(e) * (1 if e[0] >= 0 else -1)
        rotation = rotation_from_quaternion(e)
        assert np.allclose(rotation.T @ rotation, np.eye(3), atol=1e-15)
        assert np.allclose(quaternion_from_rotation(rotation), e, atol=1e-14)
        angle = 2 * math.acos(e[0])
        assert np.allclose(rotation_about(e[1:] / np.linalg.norm(e[1:]), angle), rotation)
    for axis in (*np.eye(3), *-np.eye(3), a / np.linalg.norm(a)):
        frame = frame_along(axis, planar=False)
        assert np.allclose(frame[:, 2], axis, atol=1e-15)
        assert np.allclose(frame.T @ frame, np.eye(3), atol=1e-15)
        assert np.linalg.det(frame) > 0
