"""Newton and Euler at a moving pole, against differences of a body that moves in space."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from biella import DiagramError
from biella.blocks.multibody.dual import Dual, RigidBody

MASS, CENTER = 1.7, np.array([0.2, -0.1, 0.3])
TENSOR = np.array([[0.5, 0.02, -0.03], [0.02, 0.6, 0.01], [-0.03, 0.01, 0.4]])
OMEGA, ALPHA = np.array([0.7, -1.1, 0.4]), np.array([2.0, 0.3, -0.8])
SPEED, RATE = np.array([0.3, 0.5, -0.2]), np.array([-1.0, 0.4, 0.9])


def in_space(t):
    """Return momentum of mass and spin about it, in world axes: body twist OMEGA + ALPHA t …"""
    h = 1e-3
    steps = max(1, round(abs(t) / (h / 50)))
    turn, dt = Rotation.identity(), t / steps
    for k in range(steps):
        turn = turn * Rotation.from_rotvec((OMEGA + ALPHA * (k + 0.5) * dt) * dt)
    omega, v = OMEGA + ALPHA * t, SPEED + RATE * t
    return turn.apply(MASS * (v + np.cross(omega, CENTER))), turn.apply(TENSOR @ omega)


def test_the_wrench_is_the_rate_of_momentum():
    h = 1e-4
    (p_after, l_after), (p_before, l_before) = in_space(h), in_space(-h)
    force, about_center = (p_after - p_before) / (2 * h), (l_after - l_before) / (2 * h)
    found = RigidBody(MASS, CENTER, TENSOR).wrench(Dual(OMEGA, SPEED), Dual(ALPHA, RATE))
    np.testing.assert_allclose(found.real, force, atol=1e-7)
    np.testing.assert_allclose(found.dual, about_center + np.cross(CENTER, force), atol=1e-7)


def test_half_the_power_of_the_momentum_is_kinetic_energy():
    h = RigidBody(MASS, CENTER, TENSOR).momentum(Dual(OMEGA, SPEED))
    v = SPEED + np.cross(OMEGA, CENTER)
    energy = 0.5 * MASS * v @ v + 0.5 * OMEGA @ TENSOR @ OMEGA
    assert 0.5 * (h.real @ SPEED + h.dual @ OMEGA) == pytest.approx(energy, rel=1e-14)


def test_bodies_that_are_not_are_refused():
    with pytest.raises(DiagramError, match="mass"):
        RigidBody(-1.0, CENTER, TENSOR)
    with pytest.raises(DiagramError, match="three components"):
        RigidBody(1.0, (0, 0), TENSOR)
    with pytest.raises(DiagramError, match="tensor"):
        RigidBody(1.0, CENTER, 1.0)
