"""Solvers: exact on polynomials of their order, and the order under halving."""

from __future__ import annotations

import numpy as np
import pytest

from biella import BlockError, Diagram, simulate
from biella.blocks import (
    Gain,
    Integrator,
    Pendulum,
    PythonBlock,
    Saturation,
    Sine,
    Sum,
)
from biella.scheduler.compile.diagram._solver_options import SOLVERS

pytestmark = pytest.mark.engine


ORDERS = {
    "euler": 1,
    "heun": 2,
    "rk3": 3,
    "rk4": 4,
    "dopri5": 5,
    "backward_euler": 1,
    "trapezoidal": 2,
    "radau5": 5,
}


class Power(PythonBlock):
    """u(t) = (n + 1) t^n, whose integral is t^(n+1)."""

    def __init__(self, n: int) -> None:
        super().__init__(outputs=["y"])
        self.n = n

    def output(self, t, x, u):
        return (self.n + 1) * t**self.n


def test_every_solver_has_an_order():
    assert set(ORDERS) == set(SOLVERS)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solver_is_exact_on_polynomials_of_its_order(solver):
    for degree in range(1, ORDERS[solver] + 1):
        d = Diagram(step=0.1, solver=solver)
        source = d.add(Power(degree - 1))
        x = d.add(Integrator(0.0), name="x")
        d.connect(source, x)
        result = simulate(d, 1.0)
        # Rounding of ten steps, and 1e-12 of Newton's stop for the implicit ones.
        assert result["x"][-1] == pytest.approx(1.0, abs=1e-11)


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_error_falls_with_the_order_on_a_nonlinear_oscillator(solver):
    """Pendulum from 2 rad; the reference is dopri5 at a step where its error is rounding."""

    def end(step, solver):
        d = Diagram(step=step, solver=solver)
        p = d.add(Pendulum(angle=2.0), name="p")
        d.output("angle", p["angle"])
        return simulate(d, 1.0, record=["p.angle"])["p.angle"][-1]

    reference = end(1 / 4096, "dopri5")
    steps = np.array([1 / 32, 1 / 64, 1 / 128])
    errors = np.array([abs(end(step, solver) - reference) for step in steps])
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(ORDERS[solver], abs=0.35)


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
def test_implicit_solvers_hold_a_stiff_diagram_where_explicit_ones_do_not():
    def decay(solver):
        d = Diagram(step=0.01, solver=solver)
        x, k = d.add(Integrator(1.0), name="x"), d.add(Gain(-1e5))
        d.connect(x, k)
        d.connect(k, x)
        return simulate(d, 1.0)["x"]

    assert abs(decay("backward_euler")[-1]) < 1e-12
    assert abs(decay("trapezoidal")[-1]) < 1.0
    with pytest.raises(BlockError, match="not finite"):
        decay("rk4")


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
@pytest.mark.parametrize("solver", ["backward_euler", "trapezoidal"])
def test_implicit_solvers_get_over_a_kink(solver):
    """dx/dt = -50 sat(x) + 100 sin(18 pi t): the slope of the saturation jumps inside a step."""
    d = Diagram(step=0.01, solver=solver)
    x = d.add(Integrator(0.0), name="x")
    limit = d.add(Saturation(-0.5, 0.5), name="limit")
    back = d.add(Gain(-50.0), name="back")
    push = d.add(Sine(100.0, 9.0), name="push")
    total = d.add(Sum("++"), name="total")
    d.connect(x, limit)
    d.connect(limit, back)
    d.connect(back, total["u1"])
    d.connect(push, total["u2"])
    d.connect(total, x)
    coarse = simulate(d, 1.0)["x"][-1]
    fine = simulate(d, 1.0, step=1e-4, solver="rk4")["x"][-1]
    assert coarse == pytest.approx(fine, abs=0.5)  # first order, 11 steps a period
