"""The QTZ decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella.blocks.multibody import mechanisms
from biella.blocks.multibody.reference_formulations import (
    METHODS,
    FormulationError,
    make_model,
    run,
)
from biella.blocks.multibody.reference_formulations._qtz import decompose

from .formulation_cases import state


def test_qtz_decomposition() -> None:
    model = make_model(mechanisms.five_bar(), "euler")
    q, v = state(model)
    jacobian = model.jacobian(q, 0.0)
    kept = decompose(jacobian)
    assert kept.rank == 27
    rows = kept.pick @ jacobian
    # Positions close to 1e-12, and redundant rows depend on each other no better than that.
    assert np.abs(jacobian @ kept.q2).max() < 1e-11
    assert np.abs(kept.rest @ jacobian).max() < 1e-11
    assert np.linalg.cond(rows @ kept.q1) < 100
    # Kept over a run, and made anew by its criteria; with a kept one the result is the same.
    done = run(model, "qtz", step=5e-3, until=0.5, integrator="rk4", projection="both")
    assert done.stable
    assert 1 < done.memory["decompositions"] < 100
    memory: dict[str, Any] = {}
    METHODS["qtz"](model, 0.0, done.q[0], done.v[0], memory)
    expected, _ = METHODS["null space svd"](model, 0.1, done.q[20], done.v[20], {})
    qdd, _ = METHODS["qtz"](model, 0.1, done.q[20], done.v[20], memory, kept_motion=0.0)
    assert memory["decompositions"] == 1
    assert qdd == pytest.approx(expected, abs=1e-8 * np.abs(expected).max())
    # A joint that is not closed makes redundant rows contradict each other.
    rng = np.random.default_rng(0)
    with pytest.raises(FormulationError, match="contradict"):
        METHODS["qtz"](model, 0.0, q + 1e-3 * rng.normal(size=model.n), 10 * v, {}, tolerance=1e-2)
