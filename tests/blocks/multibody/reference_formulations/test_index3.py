"""The index-3 formulation, and published residuals."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.multibody import mechanisms
from biella.blocks.multibody.reference_formulations import (
    INDEX_3,
    FormulationError,
    make_model,
    run,
)
from biella.blocks.multibody.reference_formulations._index3 import step as index3_step

PUBLISHED_RESIDUALS = {1e-2: 3.769e-3, 1e-3: 3.846e-4}
FINE_RESIDUALS = {1e-4: 3.854e-5, 1e-5: 3.854e-6}


def check_residual(step: float, published: float) -> None:
    """Compare √(ΦᵀΦ) of the explicit run as its listing computes it.

    The listing adds Δt until t reaches 1 s and takes the residual before the last update: after
    n - 1 of n steps, where n is 1/Δt, and one more where the sum of Δt stays below 1 s.
    """
    t, steps = 0.0, 0
    while t < 1.0:
        t += step
        steps += 1
    model = make_model(mechanisms.pendulum_on_cart())
    done = run(
        model,
        "kkt",
        step=step,
        until=steps * step,
        integrator="explicit",
        start=(model.q0, model.v0),
    )
    before_last = model.phi(done.q[steps - 1], 0.0)
    # Half a unit of the last printed digit.
    assert np.linalg.norm(before_last) == pytest.approx(published, rel=0.5e-3 / 3.769)


@pytest.mark.parametrize("step", PUBLISHED_RESIDUALS)
def test_published_residuals(step: float) -> None:
    check_residual(step, PUBLISHED_RESIDUALS[step])


@pytest.mark.slow
@pytest.mark.parametrize("step", FINE_RESIDUALS)
def test_published_residuals_of_fine_steps(step: float) -> None:
    check_residual(step, FINE_RESIDUALS[step])


def test_index_3() -> None:
    """Of second order, at home with redundant rows, and stable with a stiff damper at 10 ms."""
    reference = run(
        mechanisms.slider_crank(),
        "null space svd",
        step=4e-3,
        until=0.2,
        integrator="rk4",
        projection="both",
        markers=["slider.wrist"],
    )
    ends = []
    for step in (2e-2, 1e-2):
        done = run(
            mechanisms.slider_crank(), INDEX_3, step=step, until=0.2, markers=["slider.wrist"]
        )
        assert done.error < 1e-10
        assert done.rate_residual.max() < 1e-10
        ends.append(
            abs(done.markers["slider.wrist"] - reference.markers["slider.wrist"][-1])[-1, 0]
        )
    assert ends[0] / ends[1] == pytest.approx(4, rel=0.1)
    model = make_model(mechanisms.mcpherson(), "euler")
    stiff = run(model, INDEX_3, step=1e-2, until=0.05, options={"stiff": True})
    assert stiff.stable, stiff.reason
    assert stiff.error < 1e-10
    explicit = run(model, "kkt", step=1e-2, until=0.05, integrator="rk4")
    assert not explicit.stable
    with pytest.raises(FormulationError, match="Newton"):
        index3_step(model, 0.0, model.q0, model.v0, {}, 1e-2, iterations=1, tolerance=1e-30)
