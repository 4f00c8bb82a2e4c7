"""The planar model."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.multibody import System
from biella.blocks.multibody.reference_formulations import (
    PlanarModel,
)


def test_planar_bushing_acts_by_the_angle() -> None:
    s = System("soft", (0, 0), planar=True)
    body = s.body("b", mass=1.0, inertia=0.5, rotation=2.0)
    s.bushing("seat", s.ground.marker("m"), body.marker("m"), stiffness=(1, 1, 3.0))
    model = PlanarModel(s)
    assert model.forces(0.0, model.q0, model.v0) == pytest.approx([0, 0, -6.0])
    # Round a whole turn it goes on: the angle is unwrapped.
    for angle in (3.0, 4.0, 5.0, 6.0, 7.0):
        force = model.forces(0.0, np.array([0, 0, angle]), model.v0)
    assert force == pytest.approx([0, 0, -21.0])
    model.reset()
    force = model.forces(0.0, np.array([0, 0, 7.0]), model.v0)
    assert force == pytest.approx([0, 0, -3.0 * (7.0 - 2 * np.pi)])
