"""Friction on joint coordinates, against closed forms."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from scipy.integrate import simpson

from biella.blocks.multibody import Joint, System
from biella.blocks.multibody.plant._tree import grow_tree

from ...small_systems import ENERGIES, friction_loop, run, slider, solve

pytestmark = pytest.mark.engine


def test_power_of_friction_in_a_loop_is_what_the_energy_loses():
    s = friction_loop("abcd")
    t, values = run(s, 1.5, [*(f"{pin}.speed" for pin in "abcd"), *ENERGIES])
    lost = sum(v * (0.05 * v + 0.1 * np.tanh(v / 0.5)) for v in values[:4])
    energy = values[4] + values[5]
    assert energy[0] - energy[-1] == pytest.approx(simpson(lost, x=t), rel=1e-6)


@pytest.mark.parametrize("kind", ["prismatic", "cylindrical"])
def test_a_slide_that_closes_a_loop_has_friction_springs_and_outputs(kind):
    """A body on two slides along one line: the one that is cut carries spring, damper and load."""
    s = System("twice", gravity=(0, 0, 0))
    body = s.body("mass", mass=2.0, inertia=0.1)
    s.prismatic("first", s.ground, body, at=(0, 0, 0), axis=(1, 2, 2))
    s.force("along first", cast(Joint, s["first"]), 0.0)
    second = getattr(s, kind)("second", s.ground, body, at=(0, 0, 0), axis=(1, 2, 2))
    s.friction("friction", second, viscous=0.6, coordinate=0)
    s.stop("stop", second, lower=-0.1, upper=0.1, stiffness=50.0, coordinate=0)
    s.force("push", second, "8*cos(4*t)", coordinate=0)
    assert [joint.name for joint in grow_tree(s).cuts] == ["second"]
    names = ["second.displacement", "first.displacement"]
    names += ["second.displacement_speed", "second.displacement_acceleration"]
    _, (q, p, speed, acceleration) = run(s, 2.0, names)

    def slope(t, y):
        x, v = y
        over = np.clip(x, -0.1, 0.1) - x
        return v, (8 * np.cos(4 * t) - 0.6 * v + 50.0 * over) / 2.0

    x, v = solve(slope, 2.0, (0.0, 0.0))
    assert np.abs(q - p).max() < 1e-12
    assert q[-1] == pytest.approx(x, abs=1e-6)
    assert speed[-1] == pytest.approx(v, abs=1e-5)
    assert acceleration[-1] == pytest.approx(slope(2.0, (x, v))[1], abs=1e-4)


def test_friction_and_its_smooth_sign():
    s, _ = slider(velocity=1.5)
    s.friction("friction", s["slide"], viscous=0.4, coulomb=1.2, smoothing_speed=0.1)
    _, (place, speed) = run(s, 2.0, ["slide.displacement", "slide.speed"])

    def slope(_, y):
        return y[1], -(0.4 * y[1] + 1.2 * np.tanh(y[1] / 0.1)) / 2.0

    x, v = solve(slope, 2.0, (0.0, 1.5))
    assert place[-1] == pytest.approx(x, abs=1e-8)
    assert speed[-1] == pytest.approx(v, abs=1e-8)


def test_friction_without_smoothing_is_the_sign():
    s, _ = slider(velocity=1.5)
    s.friction("friction", s["slide"], coulomb=1.0)
    _, (a,) = run(
        s, 0.1, ["slide.acceleration"], parameters={"plant.friction.smoothing_speed": 0.0}
    )
    assert np.allclose(a, -0.5, atol=1e-12)
