"""The penalty formulation."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.multibody import mechanisms
from biella.blocks.multibody.reference_formulations import (
    METHODS,
    make_model,
)

from .formulation_cases import state


def test_penalty_error_falls_with_alpha() -> None:
    model = make_model(mechanisms.slider_crank(), "natural")
    q, v = state(model)
    exact, _ = METHODS["null space svd"](model, 0.0, q, v, {})
    errors = [
        np.abs(METHODS["penalty"](model, 0.0, q, v, {}, alpha=alpha)[0] - exact).max()
        for alpha in (1e3, 1e4, 1e5)
    ]
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(10, rel=0.1)
