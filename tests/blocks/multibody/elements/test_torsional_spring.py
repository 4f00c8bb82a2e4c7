"""Torsional springs, against a small equation of motion."""

from __future__ import annotations

import numpy as np
import pytest

from ..small_systems import run, solve, wheel

pytestmark = pytest.mark.engine


def test_coefficients_of_a_torsional_spring_follow_time_angle_and_speed():
    s, _ = wheel(speed=2.0)
    s.torsional_spring(
        "spring",
        s["pin"],
        stiffness="4 + q**2",
        damping="0.1*abs(v)",
        free_angle=0.2,
        torque="sin(3*t)",
    )
    _, (angle,) = run(s, 3.0, ["pin.angle"])

    def slope(t, y):
        q, v = y
        return v, -((4 + q**2) * (q - 0.2) + 0.1 * abs(v) * v + np.sin(3 * t)) / 0.5

    assert angle[-1] == pytest.approx(solve(slope, 3.0, (0.0, 2.0))[0], abs=1e-7)
