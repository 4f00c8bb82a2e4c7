"""A pose at rest along its free motions: mass, stiffness and damping in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.multibody import System
from biella.blocks.multibody.analysis._manifold import make_manifold
from biella.blocks.multibody.analysis._reduced import (
    compute_damping,
    compute_stiffness,
    reduce_pose,
)

G, MASS, LENGTH, INERTIA = 9.81, 2.0, 0.7, 0.3
ANGLE = 0.4


def pendulum(angle: float = ANGLE) -> System:
    """A body whose center hangs at an angle from the vertical, on a pin with spring and damper."""
    s = System("pendulum", (0.0, -G), planar=True)
    place = (LENGTH * np.sin(angle), -LENGTH * np.cos(angle))
    rod = s.body("rod", mass=MASS, inertia=INERTIA, position=place)
    pin = s.revolute("pin", s.ground, rod, at=(0.0, 0.0))
    s.torsional_spring("spring", pin, stiffness=5.0, damping=0.8, free_angle=0.1)
    return s


def per_radian(basis: np.ndarray) -> float:
    """Return what the one free motion turns the body by: p times this is an angle."""
    assert basis.shape == (3, 1)
    return float(basis[2, 0])


def test_mass_stiffness_and_damping_of_a_pendulum() -> None:
    """I + m l², k + m g l cos φ and c; the residual is the torque that is not balanced."""
    model = make_manifold(pendulum())
    here = reduce_pose(model, 0.0, model.q0)
    turn = per_radian(here.basis)
    assert here.mass[0, 0] == pytest.approx(turn**2 * (INERTIA + MASS * LENGTH**2), rel=1e-12)
    # The joint angle is 0 in the given pose; the spring is free at 0.1.
    torque = 5.0 * 0.1 - MASS * G * LENGTH * np.sin(ANGLE)
    assert here.residual[0] == pytest.approx(turn * torque, rel=1e-12)
    damping = compute_damping(model, 0.0, model.q0, here.basis)
    assert damping[0, 0] == pytest.approx(turn**2 * 0.8, rel=1e-8)
    assert here.null.shape[1] == 0
    still = make_manifold(pendulum(0.0))
    rest = reduce_pose(still, 0.0, still.q0)
    upright = compute_stiffness(still, 0.0, still.q0, rest.basis, rest.lam)
    assert upright[0, 0] == pytest.approx(
        per_radian(rest.basis) ** 2 * (5.0 + MASS * G * LENGTH), rel=1e-8
    )


def test_a_locked_mechanism_has_empty_matrices() -> None:
    s = System("locked", (0.0, -G), planar=True)
    plate = s.body("plate", mass=1.0, inertia=0.1)
    s.revolute("one", s.ground, plate, at=(0.0, 0.0))
    s.revolute("two", s.ground, plate, at=(1.0, 0.0))
    model = make_manifold(s)
    here = reduce_pose(model, 0.0, model.q0)
    assert here.basis.shape == (3, 0)
    assert here.null.shape == (4, 1), "one of four rows is redundant"
    assert compute_stiffness(model, 0.0, model.q0, here.basis, here.lam).shape == (0, 0)
    assert compute_damping(model, 0.0, model.q0, here.basis).shape == (0, 0)
    # The weight is carried by both pins alike, and nothing along the line between them.
    assert here.largest == pytest.approx(G)
    assert here.lam @ here.null == pytest.approx(0.0, abs=1e-12)
