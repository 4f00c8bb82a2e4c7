"""Velocities that follow from those given on cards."""

import math

import numpy as np
import pytest

from biella.blocks.multibody import System

from .card_sets import START, change, close, copy

W = 3.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("mass_center", ["legacy", "physical"])
def test_the_crank_alone_is_given(tmp_path, sign, mass_center):
    """The speed of the crank is kept, and rod and piston follow: x = r cos θ + l cos φ - 0.04."""
    folder = close(copy(tmp_path / "s"), sign)
    pose = System.from_s3d(folder, mass_center=mass_center).assemble().bodies[0].rotation
    theta = float(np.arctan2(pose[1, 0], pose[0, 0]))
    change(folder, START, "end(1)", f"qp4={-sign * 0.5 * W * math.sin(theta / 2)!r}\n"
           f"qp7={sign * 0.5 * W * math.cos(theta / 2)!r}\nend(1)")  # fmt: skip
    crank, rod, piston = System.from_s3d(folder, mass_center=mass_center).assemble().bodies
    np.testing.assert_allclose(crank.angular_velocity, (0, 0, W), atol=1e-9)
    phi = np.arcsin(-0.25 * np.sin(theta) / 0.5)
    turning = -0.25 * np.cos(theta) * W / (0.5 * np.cos(phi))
    np.testing.assert_allclose(rod.angular_velocity, (0, 0, turning), atol=1e-9)
    speed = -0.25 * np.sin(theta) * W - 0.5 * np.sin(phi) * turning
    np.testing.assert_allclose(piston.velocity, (speed, 0, 0), atol=1e-9)


def test_the_piston_alone_is_given(tmp_path):
    folder = change(close(copy(tmp_path / "s")), START, "end(3)", "qp1=0.5\nend(3)")
    crank, _, piston = System.from_s3d(folder, mass_center="legacy").assemble().bodies
    np.testing.assert_allclose(piston.velocity, (0.5, 0, 0), atol=1e-9)
    assert abs(crank.angular_velocity[2]) > 1.0
