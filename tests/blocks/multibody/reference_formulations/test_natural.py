"""Natural coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks.multibody import System
from biella.blocks.multibody.reference_formulations import make_model
from biella.blocks.multibody.reference_formulations._natural import mass_block

from .formulation_cases import SETS


def test_mass_of_natural_coordinates() -> None:
    """N as printed by Oldani with its first row corrected, and the energy of a turning body."""
    rng = np.random.default_rng(2)
    points, weights = rng.normal(size=(20, 3)), rng.uniform(0.1, 1.0, 20)
    points -= weights @ points / weights.sum()
    m = weights.sum()
    inertia = sum(
        w * (p @ p * np.eye(3) - np.outer(p, p)) for w, p in zip(weights, points, strict=True)
    )
    ix, iy, iz = np.diag(inertia)
    ixy, ixz, iyz = -inertia[0, 1], -inertia[0, 2], -inertia[1, 2]
    n = mass_block(m, inertia)
    first = [
        m + (ix + iy + iz) / 2 + 2 * (ixy + ixz + iyz),
        (ix - iy - iz) / 2 - (ixy + ixz),
        (iy - ix - iz) / 2 - (ixy + iyz),
        (iz - ix - iy) / 2 - (ixz + iyz),
    ]
    assert n[0] == pytest.approx(first)
    assert np.diag(n)[1:] == pytest.approx(
        [(-ix + iy + iz) / 2, (ix - iy + iz) / 2, (ix + iy - iz) / 2]
    )
    assert [n[1, 2], n[1, 3], n[2, 3]] == pytest.approx([ixy, ixz, iyz])
    # Every point of a rigid body moves as C q, so that ½ vᵀ M v is its energy.
    s = System("body", (0, 0, 0))
    s.body(
        "b", mass=m, inertia=inertia, velocity=(1, 2, 3), angular_velocity=(2, -1, 0.5), free=True
    )
    speeds = np.array([1, 2, 3]) + np.cross([2, -1, 0.5], points)
    kinetic = 0.5 * weights @ (speeds**2).sum(1)
    for kind in SETS.values():
        model = kind(s)
        assert model.energy(model.q0, model.v0) == pytest.approx(kinetic)


def test_constraints_on_euler_parameters_are_refused() -> None:
    """They are not linear in natural coordinates, where their rows would be 0."""
    s = System("ball", (0, 0, -9.81))
    body = s.body("body", mass=1.0, inertia=1.0, rotation=(0.8, 0.6, 0, 0))
    s.spherical("joint", s.ground, body, at=(0, 0, 0))
    s.constraint("held", "body.e1 - 0.5")
    assert make_model(s, "euler").row_names[-1] == "held"
    with pytest.raises(DiagramError, match=r"`held` .*natural coordinates.*coordinates='euler'"):
        make_model(s, "natural")
