"""Projections onto the constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella.blocks.multibody import System, mechanisms
from biella.blocks.multibody.reference_formulations import (
    NaturalModel,
    assemble,
    make_model,
    project_position,
    project_velocity,
    run,
)

from ..reference_formulations.formulation_cases import SETS


@pytest.mark.parametrize("coordinates", SETS)
def test_projections_are_orthogonal_in_the_measure_of_mass(coordinates: Any) -> None:
    model = make_model(mechanisms.slider_crank(), coordinates)
    rng = np.random.default_rng(1)
    start = assemble(model) + 1e-3 * rng.normal(size=model.n)
    speed = rng.normal(size=model.n)
    q = project_position(model, 0.0, start, speed)
    v = project_velocity(model, 0.0, q, speed)
    phi, jacobian = model.constraints(0.0, q)
    assert np.abs(phi).max() <= 1e-12
    assert np.abs(jacobian @ v).max() <= 1e-11
    kernel = np.linalg.svd(jacobian)[2][np.linalg.matrix_rank(jacobian) :].T
    assert kernel.T @ model.mass(q) @ (v - speed) == pytest.approx(0.0, abs=1e-9)
    # The measure is that of the start, and the last correction is of the size of the tolerance
    # times the curvature: the direction is right to about 1e-3 of the move.
    left = kernel.T @ model.mass(start) @ (q - start)
    assert np.abs(left).max() < 1e-2 * np.abs(q - start).max()


def test_velocity_projection_feeds_a_semi_implicit_run() -> None:
    """A bar spinning at ω gains ½ h ω³ a second velocity first, and loses it position first."""
    s = System("spin", (0, 0, 0))
    s.body("b", mass=1.0, inertia=0.4, angular_velocity=(0, 0, 10.0), free=True)
    for integrator, sign in (("semi-implicit", 1.0), ("position-first", -1.0)):
        model = NaturalModel(s)
        done = run(model, "kkt", step=1e-3, until=0.05, integrator=integrator, projection="both")  # type: ignore[arg-type]
        speed = (model.spins(done.q[-1])[0] @ done.v[-1])[2]
        # ω⁻² falls by h t: 100 / (1 ∓ h t ω²), to first order in h ω = 0.01.
        assert speed == pytest.approx(10.0 / np.sqrt(1 - sign * 1e-3 * 0.05 * 100), rel=1e-4)
