"""The model in Euler parameters."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.multibody import System
from biella.blocks.multibody.equations._euler_parameters import transformations
from biella.blocks.multibody.reference_formulations import (
    EulerModel,
)


def test_gyroscopic_force_of_euler_parameters() -> None:
    """8 Ġᵀ J Ġ p [V 4.31] and -2 Gᵀ (ω × J ω) turn the body alike; they differ along p only."""
    s = System("body", (0, 0, 0))
    inertia = np.diag([0.3, 0.5, 0.6])
    s.body("b", mass=1.0, inertia=inertia, angular_velocity=(3, -2, 1), free=True)
    model = EulerModel(s)
    p, rate = model.q0[3:], model.v0[3:]
    g, g_v = (transformations(x[None])[1][0] for x in (p, rate))
    printed = 8 * g_v.T @ inertia @ g_v @ p
    ours = model.forces(0.0, model.q0, model.v0)[3:]
    assert g @ ours == pytest.approx(g @ printed)
    assert np.linalg.norm(g @ ours) > 0.1
    mass = model.mass(model.q0)
    assert mass[3:, 3:] == pytest.approx(4 * g.T @ inertia @ g)
    assert np.linalg.matrix_rank(mass) == 6
