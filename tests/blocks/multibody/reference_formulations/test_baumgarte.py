"""Baumgarte stabilization."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.multibody import mechanisms
from biella.blocks.multibody.reference_formulations import (
    METHODS,
    make_model,
)
from biella.blocks.multibody.reference_formulations import _baumgarte as baumgarte


def test_baumgarte_gains() -> None:
    assert baumgarte.deadbeat_gains(1e-3) == (1e3, 1e3)
    alpha, beta = baumgarte.period_gains(1e-3, periods=20, damping=0.5)
    assert beta == pytest.approx(2 * np.pi / 20e-3)
    assert alpha == pytest.approx(0.5 * beta)
    # Φ̈ + 2 α Φ̇ + β² Φ = 0 off the constraints.
    model = make_model(mechanisms.slider_crank("spherical"))
    rng = np.random.default_rng(0)
    q, v = model.q0 + 0.01 * rng.normal(size=model.n), rng.normal(size=model.n)
    e = model.evaluate(0.0, q, v)
    qdd, _ = METHODS["baumgarte"](model, 0.0, q, v, {}, alpha=alpha, beta=beta)
    bend = e.jacobian @ qdd - e.gamma
    expected = -2 * alpha * e.rate - beta**2 * e.phi
    assert bend == pytest.approx(expected, abs=1e-9 * np.abs(expected).max())
