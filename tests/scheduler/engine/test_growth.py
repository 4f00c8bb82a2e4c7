"""Runs that overflow: a step too long, or a diagram that is unstable itself."""

from __future__ import annotations

import numpy as np
import pytest

from biella import BlockError, Diagram, simulate
from biella.blocks import (
    Gain,
    Integrator,
)

pytestmark = pytest.mark.engine


def test_a_stiff_diagram_that_overflows_is_told_with_step_and_solver():
    """x' = -1e4 x in a loop of blocks, none of which is stiff by itself."""
    d = Diagram("stiff", step=1e-2)
    d.connect(d.add(Integrator(1.0), name="x"), d.add(Gain(-1e4), name="k"))
    d.connect("k", "x")
    with pytest.raises(
        BlockError,
        match=r"not finite.*cause is the step.*1e\+04 1/s.*`rk4` is stable.*up to 0\.000279 s, not "
        r"0\.01 s.*backward_euler",
    ):
        simulate(d, 20.0)
    assert np.isfinite(simulate(d, 20.0, solver="backward_euler")["x"]).all()
