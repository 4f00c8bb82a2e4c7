"""End stops, against a small equation of motion."""

from __future__ import annotations

import numpy as np
import pytest

from ..events import diagram_of, locate
from ..small_systems import run, slider

pytestmark = pytest.mark.engine


def test_a_stop_pushes_and_never_pulls():
    s, _ = slider(velocity=1.0, position=0.0)
    s.stop("stop", s["slide"], lower=-0.3, upper=0.2, stiffness=2000.0, damping=60.0)
    _, (place, a) = run(s, 3.0, ["slide.displacement", "slide.acceleration"], step=1e-4)
    upper, lower = place > 0.2, place < -0.3
    assert upper.any() and lower.any()
    assert (a[upper] <= 0).all() and (a[lower] >= 0).all()
    assert (a[upper] == 0).any(), "while it leaves faster than the damper returns"
    assert np.abs(a[~upper & ~lower]).max() < 1e-12


@pytest.mark.parametrize("gap", [0.2, 0.2003])
def test_a_slider_rebounds_from_an_elastic_stop(gap):
    """Contact lasts half a period, π / ω; then it returns with the same speed.

    An event at a speed of 1 m/s is located to the error of the state, some 1e-12.
    """
    s, _ = slider(velocity=1.0)
    s.stop("stop", s["slide"], upper=gap, stiffness=2000.0)
    found = locate(diagram_of(s), 1.0)
    contact = np.pi / np.sqrt(1000.0)
    assert found.times == pytest.approx([gap, gap + contact], abs=1e-10)
    assert found.x == pytest.approx([gap - (1 - gap - contact), -1.0], abs=1e-10)


def test_a_damped_stop_lets_go_before_the_limit():
    """x'' = -ω² x - 2 δ x' from x = 0 with speed 1, until ω² x + 2 δ x' = 0, at tan(w t) = w / ...

    The effort of an oscillator with x = exp(-δ t) sin(w t) / w is 0 where
    tan(w t) = 2 δ w / (2 δ² - ω²), w² = ω² - δ²; then the body moves freely.
    """
    s, _ = slider(velocity=1.0, position=-0.2003)
    s.stop("stop", s["slide"], lower=-5.0, upper=0.0, stiffness=2000.0, damping=60.0)
    found = locate(diagram_of(s), 1.0)
    omega2, delta = 1000.0, 15.0
    w = np.sqrt(omega2 - delta**2)
    lasts = (np.arctan(2 * delta * w / (2 * delta**2 - omega2)) + np.pi) / w
    x = np.exp(-delta * lasts) * np.sin(w * lasts) / w
    v = np.exp(-delta * lasts) * (np.cos(w * lasts) - delta / w * np.sin(w * lasts))
    assert x > 0 > v
    at = 0.2003 + np.array([0.0, lasts, lasts - x / v])
    assert found.times == pytest.approx(at, abs=1e-10)
    assert found.x == pytest.approx([v * (1 - at[2]), v], abs=1e-9)
