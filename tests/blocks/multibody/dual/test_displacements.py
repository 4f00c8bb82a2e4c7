"""Dual matrices against rotation and translation of points."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from biella.blocks.multibody.dual import (
    Dual,
    about,
    about_x,
    about_z,
    displacement,
    frame_of_points,
    line,
    position_of,
    skew,
)
from biella.errors import FormulationError

R = Rotation.random(6, random_state=3).as_matrix()
P = np.random.default_rng(3).normal(size=(6, 3))


def close(a, b, tolerance=1e-14):
    np.testing.assert_allclose(a.real, b.real, atol=tolerance)
    np.testing.assert_allclose(a.dual, b.dual, atol=tolerance)


def test_a_displacement_moves_lines_with_their_points():
    t = displacement(R, P)
    point, direction = np.array([0.3, -0.2, 0.9]), np.array([0.6, 0.0, 0.8])
    moved = (t @ line(point, direction)[..., None])[..., 0]
    close(moved, line(R @ point + P, R @ direction))
    np.testing.assert_allclose(position_of(t), P, atol=1e-14)


def test_displacements_are_composed_and_inverted():
    t = displacement(R, P)
    both = t[:-1] @ t[1:]
    close(both, displacement(R[:-1] @ R[1:], P[:-1] + (R[:-1] @ P[1:, :, None])[..., 0]))
    close(t.T @ t, Dual(np.broadcast_to(np.eye(3), (6, 3, 3))))
    with np.errstate(all="raise"):
        close(t.inverse(), t.T)


def test_helical_motions_are_special_cases_of_rodrigues():
    angle = Dual(0.8, 0.25)
    for made, direction in ((about_z(angle), (0, 0, 1)), (about_x(angle), (1, 0, 0))):
        close(made, about(line((0, 0, 0), direction), angle))
        turned = Rotation.from_rotvec(0.8 * np.array(direction)).as_matrix()
        close(made, displacement(turned, 0.25 * np.array(direction, dtype=float)))
    center = np.array([0.1, 0.7, -0.3])
    away = about(line(center, (0, 0, 1)), Dual(0.8, 0.25))
    turned = Rotation.from_rotvec([0, 0, 0.8]).as_matrix()
    close(away, displacement(turned, center - turned @ center + [0, 0, 0.25]))


def test_a_frame_is_made_of_three_points():
    origin, r = P[0], R[0]
    made = frame_of_points(origin, origin + 3 * r[:, 2], origin + 2 * r[:, 0] + r[:, 2])
    close(made, displacement(r, origin))
    with pytest.raises(FormulationError, match="on one line"):
        frame_of_points((0, 0, 0), (1, 1, 1), (2, 2, 2))
    with pytest.raises(FormulationError, match="on one line"):
        frame_of_points((1, 0, 0), (1, 0, 0), (2, 2, 2))


def test_skew_is_the_cross_product():
    a, b = Dual(P[0], P[1]), Dual(P[2], P[3])
    product = (skew(a) @ b[..., None])[..., 0]
    np.testing.assert_allclose(product.dual, np.cross(P[0], P[3]) + np.cross(P[1], P[2]))
