"""Steps under error control: where they end, what they cost, what is repeated."""

from __future__ import annotations

import math

import pytest

from biella import Diagram, simulate
from biella.blocks import (
    Constant,
    Expression,
    Integrator,
    PythonBlock,
    SecondOrderIntegrator,
    Time,
    ZeroOrderHold,
)
from biella.scheduler.engine._engine import Instance
from biella.scheduler.engine._library import contract

pytestmark = pytest.mark.engine

ADAPTIVE = ("dopri5", "radau5")


def count(instance: Instance, counter: int) -> int:
    """Return a counter of the solver."""
    return int(instance.counters[contract.BL_EVENT_COUNTERS + counter])


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_a_step_into_a_region_without_crossing_functions_starts_again_where_it_began(solver):
    """dx/dt = -1 while log(x) > -1, then -x. A long step ends at x < 0, where log(x) is NaN.

    x(2) = 1/e · exp(-(2 - t₁)) with t₁ = 1 - 1/e. Tolerance 1e-9, 1e-7 allowed.
    """
    d = Diagram(step=2.0, solver=solver, tolerance=1e-9)
    x = d.add(Integrator(1.0), "x")
    f = d.add(Expression("where(log(x) > -1, -1, -x)", inputs=["x"]), "f")
    d.connect(x, f)
    d.connect(f, x)
    result = simulate(d, 2.0)
    assert result["x"][-1] == pytest.approx(math.exp(-1) * math.exp(-(1 + math.exp(-1))), rel=1e-7)


class Oscillator(PythonBlock):
    """A harmonic oscillator that counts the evaluations of its derivatives."""

    calls = 0

    def __init__(self) -> None:
        super().__init__(outputs=["y"], state=[1.0, 0.0])

    def output(self, t, x, u):
        return x[0]

    def derivative(self, t, x, u):
        self.calls += 1
        return [x[1], -x[0]]


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_no_evaluation_is_repeated_from_step_to_step(solver):
    """The counter counts all evaluations but the first one, at the tick.

    The last stage of dopri5 is the first of the next step: 6 for each try, and 1 for the first
    length.
    """
    d = Diagram(step=10.0, solver=solver, tolerance=1e-8)
    oscillator = Oscillator()
    d.add(oscillator, "oscillator")
    instance = d.compile().instantiate()
    instance.run(1)
    steps, rejections, evaluations = (
        count(instance, counter)
        for counter in (
            contract.BL_SOLVER_STEPS,
            contract.BL_SOLVER_REJECTIONS,
            contract.BL_SOLVER_EVALUATIONS,
        )
    )
    assert steps > 20
    assert oscillator.calls == evaluations + 1
    if solver == "dopri5":
        assert evaluations == 6 * (steps + rejections) + 1
    assert instance.get("oscillator.y") == pytest.approx(math.cos(10.0), abs=1e-6)


@pytest.mark.parametrize("reset", ["rising", "level"])
@pytest.mark.parametrize("options", [{"tolerance": 1e-8}, {"tolerance": 1e-3}, {}])
def test_a_reset_at_ticks_waits_for_the_end_of_the_last_step_of_a_tick(options, reset):
    """The signal rises at 0.025 s, between steps: up to the tick at 0.1 s the states go on."""
    d = Diagram("reset", step=0.1, solver="dopri5", events="tick", **options)
    signal = d.add(Expression("sin(2*pi*(t - 0.025))"), "signal")
    one = d.add(Constant(1.0), "one")
    first = d.add(Integrator(5.0, reset=reset), "first", u=one, reset=signal)
    second = d.add(SecondOrderIntegrator(5.0, 1.0, reset=reset), "second", u=one, reset=signal)
    d.add(Integrator(), "sum of first", u=first)
    d.add(Integrator(), "sum of second", u=second["position"])
    result = simulate(d, 0.1)
    assert result["sum of first"][-1] == pytest.approx(0.505, rel=1e-12)
    assert result["sum of second"][-1] == pytest.approx(0.505 + 1e-3 / 6, rel=1e-12)
    assert result["first"][-1] == result["second.position"][-1] == 5.0


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_steps_end_at_the_samples_that_the_blocks_of_a_loop_read(solver):
    """a = p + b/2 and b = q + a/2, so dx/dt = b = 4/3 (q + p/2); p and q hold t for 0.2 and 0.3 s.

    In 1.2 s, ∫p = 0.2 (0 + 0.2 + … + 1) = 0.6 and ∫q = 0.3 (0 + 0.3 + 0.6 + 0.9) = 0.54.
    """
    d = Diagram(step=0.1, solver=solver, tolerance=1e-9)
    time, x = d.add(Time(), "time"), d.add(Integrator(0.0), "x")
    a = d.add(Expression("p + b/2", inputs=["p", "b"]), "a")
    b = d.add(Expression("q + a/2", inputs=["q", "a"]), "b")
    for name, port, period in (("p", a["p"], 0.2), ("q", b["q"], 0.3)):
        hold = d.add(ZeroOrderHold(), name, period=period)
        d.connect(time, hold)
        d.connect(hold, port)
    d.connect(a, b["a"])
    d.connect(b, a["b"])
    d.connect(b, x)
    with d.compile().instantiate() as instance:
        instance.run(12)
        assert instance.get("x") == pytest.approx(1.12, rel=1e-9)
        # The slope is constant in each step, unless a step passes a sample.
        assert count(instance, contract.BL_SOLVER_REJECTIONS) == 0


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_steps_end_at_the_samples_that_a_loop_of_one_block_reads(solver):
    """a = p + a/2 = 2 p, and ∫p = 0.6 in 1.2 s, as above."""
    d = Diagram(step=0.1, solver=solver, tolerance=1e-9, algebraic_loops="solve")
    a = d.add(Expression("p + a/2"), "a")
    d.chain(d.add(Time(), "time"), d.add(ZeroOrderHold(), "p", period=0.2), a["p"])
    d.connect(a, a["a"])
    d.add(Integrator(), "x", u=a)
    with d.compile().instantiate() as instance:
        instance.run(12)
        assert instance.get("x") == pytest.approx(1.2, rel=1e-9)
        assert count(instance, contract.BL_SOLVER_REJECTIONS) == 0


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_derivatives_are_evaluated_from_the_start_on_only(solver):
    """Also where the length of the first step is found: inputs may begin there."""
    times = []

    class Observer(PythonBlock):
        def __init__(self) -> None:
            super().__init__(outputs=["y"], state=[1.0])

        def output(self, t, x, u):
            return x[0]

        def derivative(self, t, x, u):
            times.append(t)
            return [-x[0]]

    d = Diagram(step=0.5, start_time=2.0, solver=solver, tolerance=1e-6)
    d.add(Observer(), "observer")
    simulate(d, 2.5)
    assert len(times) > 5
    assert min(times) == 2.0
