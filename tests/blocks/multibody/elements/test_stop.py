"""End stops, against a small equation of motion."""

from __future__ import annotations

import numpy as np
import pytest

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
