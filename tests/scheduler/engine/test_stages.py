"""Blocks whose outputs are constant while a step is integrated are not evaluated in its stages."""

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import Gain, Integrator, PythonBlock, Relay, Sign, Sine, Step, Sum

pytestmark = pytest.mark.engine


class Counted(PythonBlock):
    """y = u; counts its evaluations."""

    def __init__(self) -> None:
        super().__init__(inputs=["u"], outputs=["y"])
        self.count = 0

    def output(self, t, x, u):
        self.count += 1
        return u


def count_evaluations(d: Diagram, counted: Counted, ticks: int = 10, **options) -> float:
    with d.compile(**options).instantiate() as instance:
        instance.run(1)
        counted.count = 0
        instance.run(ticks)
    return counted.count / ticks


@pytest.mark.parametrize("make", [lambda: Relay(1e3, -1e3), Sign])
def test_what_feeds_only_a_constant_output_is_evaluated_at_both_ends_of_a_step(make):
    """At the tick, and for the crossing function at the end; rk4 has three stages in between."""
    counted = Counted()
    d = Diagram("relay", step=1e-3, solver="rk4")
    x = d.add(Integrator(1.0), "x")
    block = d.add(make(), "block")
    gain = d.add(Gain(1e-3), "gain")
    d.chain(x, d.add(counted, "counted"), block)
    d.chain(block, gain)
    d.connect(gain, x)
    assert count_evaluations(d, counted) == 2


def test_what_derivatives_depend_on_is_evaluated_in_every_stage():
    counted = Counted()
    d = Diagram("relay", step=1e-3, solver="rk4")
    x = d.add(Integrator(1.0), "x")
    relay = d.add(Relay(1e3, -1e3), "relay")
    total = d.add(Sum("+-"), "total")
    d.chain(x, d.add(counted, "counted"), relay)
    d.connect(relay, total["u1"])
    d.connect(d["counted"], total["u2"])
    d.connect(total, x)
    assert count_evaluations(d, counted) == 5


def test_located_switching_has_the_order_of_the_solver():
    """x'' = -sign(x) + sin(t) switched on at 0.3217: against steps that are 16 times smaller."""

    def end(step: float) -> float:
        d = Diagram("switched", step=step, solver="rk4")
        v, x = d.add(Integrator(1.0), "v"), d.add(Integrator(0.0), "x")
        force, push = d.add(Sum("-++"), "force"), d.add(Sine(frequency=1.0), "push")
        d.chain(x, d.add(Sign(), "side"), force["u1"])
        d.connect(push, force["u2"])
        d.connect(d.add(Step(at=0.3217), "step"), force["u3"])
        d.chain(force, v, x)
        return float(simulate(d, 3.2, error_estimate=False)["x"][-1])

    exact = end(1e-3 / 4)
    errors = np.array([abs(end(step) - exact) for step in (3.2e-2, 1.6e-2)])
    # Order 4 and a constant of about 1: 1e-6; a factor of 16, or of 8 where errors partly cancel.
    assert errors[0] < 1e-6 and errors[1] < errors[0] / 8
