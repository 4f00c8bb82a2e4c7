"""The QTZ decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella.blocks.multibody import mechanisms
from biella.blocks.multibody.reference_formulations import (
    METHODS,
    QTZ_INDEPENDENT,
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


def test_independent_accelerations_converge_with_order_four() -> None:
    """Errors of the redundant slider-crank at 0.4 s, against four times shorter steps, go by 2⁴.

    The reference has 1/4⁴ of the smaller error, which changes the ratio by less than 0.06.
    """
    system = mechanisms.slider_crank
    ends = [
        run(system(), QTZ_INDEPENDENT, step=h, until=0.4, projection="position").q[-1]
        for h in (2e-2, 1e-2, 2.5e-3)
    ]
    coarse, fine = (float(np.abs(end - ends[2]).max()) for end in ends[:2])
    assert coarse < 1e-3
    assert 10 < coarse / fine < 26


@pytest.mark.parametrize("name", ["slider_crank", "five_bar", "pendulum_on_cart"])
def test_independent_accelerations_give_the_motion_of_the_others(name: str) -> None:
    """Velocities satisfy the constraints to rounding without a projection of them."""
    make = getattr(mechanisms, name)
    expected = run(make(), "qtz", step=2e-3, until=0.1, integrator="rk4", projection="both")
    done = run(make(), QTZ_INDEPENDENT, step=2e-3, until=0.1, projection="position")
    assert done.stable
    assert done.error < 1e-11 and done.rate_residual.max() < 1e-9
    assert done.q[-1] == pytest.approx(expected.q[-1], abs=1e-6)


def test_independent_accelerations_of_a_driven_mechanism() -> None:
    """A Cardan joint without freedom: ż is empty, and the form solves its kinematics [V 4.5.3]."""
    done = run(
        mechanisms.cardan(), QTZ_INDEPENDENT, step=1e-2, until=0.5, coordinates="euler",
        projection="position",
    )  # fmt: skip
    assert done.stable, done.reason
    decomposition = done.memory["decomposition"]
    assert decomposition.q2.shape[1] == 0
    assert done.rate_residual.max() < 1e-9
