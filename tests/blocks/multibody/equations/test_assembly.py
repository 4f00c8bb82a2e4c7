"""Assembly of positions and velocities."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.multibody import System, mechanisms
from biella.blocks.multibody.reference_formulations import (
    FormulationError,
    assemble,
    make_model,
)


def test_assembly() -> None:
    for by in ("projection", "levenberg-marquardt"):
        model = make_model(mechanisms.slider_crank())
        assert np.abs(model.phi(model.q0, 0.0)).max() > 1e-9
        rng = np.random.default_rng(0)
        q = assemble(model, 0.0, model.q0 + 0.1 * rng.normal(size=model.n), by=by)
        assert np.abs(model.phi(q, 0.0)).max() <= 1e-12
    s = System("short", planar=True)
    bar = s.body("bar", mass=1.0, inertia=0.1)
    s.revolute("left", s.ground.marker("l", (-1, 0)), bar.marker("l", (-0.5, 0)))
    s.revolute("right", s.ground.marker("r", (1, 0)), bar.marker("r", (0.5, 0)))
    with pytest.raises(FormulationError, match="cannot be closed") as caught:
        assemble(make_model(s))
    assert "`left` by 0.5" in str(caught.value)
    assert "`right` by 0.5" in str(caught.value)
