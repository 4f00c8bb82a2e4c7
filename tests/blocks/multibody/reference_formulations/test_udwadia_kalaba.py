"""The formulation of Udwadia and Kalaba."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella.blocks.multibody import mechanisms
from biella.blocks.multibody.reference_formulations import (
    METHODS,
    EulerModel,
    FormulationError,
    NaturalModel,
)
from biella.blocks.multibody.reference_formulations._udwadia_kalaba import (
    accelerations as udwadia_kalaba,
)

from .formulation_cases import state


def test_euler_parameters_break_udwadia_and_kalaba() -> None:
    """M⁻¹ does not exist with 7 coordinates; both ways out give the right answer."""
    euler = EulerModel(mechanisms.slider_crank())
    natural = NaturalModel(mechanisms.slider_crank())
    for model in (euler, natural):
        q, v = state(model, 2)
        expected, _ = METHODS["null space svd"](model, 0.0, q, v, {})
        forms: list[Any] = ["regular", "general"] + (["plain"] if model is natural else [])
        for by in ("svd", "greville"):
            for form in forms:
                qdd, _ = udwadia_kalaba(model, 0.0, q, v, {}, by=by, form=form)
                assert qdd == pytest.approx(expected, abs=1e-9 * np.abs(expected).max())
    q, v = state(euler, 2)
    with pytest.raises(FormulationError, match="singular"):
        udwadia_kalaba(euler, 0.0, q, v, {}, form="plain")
