"""Rates of change of inputs: every reversal is located, and rates are found only where needed."""

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import Backlash, Constant, Gain, Integrator, PythonBlock, RateLimiter, Sine

pytestmark = pytest.mark.engine


class Counted(PythonBlock):
    """y = u; counts its evaluations."""

    def __init__(self) -> None:
        super().__init__(inputs=["u"], outputs=["y"])
        self.count = 0

    def output(self, t, x, u):
        self.count += 1
        return u


def make_oscillator(block, omega: float, start: float, step: float, solver: str) -> Diagram:
    """Return x = cos(ω t + start), which `block` reads; a state depends on the block."""
    d = Diagram("oscillator", step=step, solver=solver)
    x, v = (
        d.add(Integrator(value), name)
        for value, name in ((np.cos(start), "x"), (-omega * np.sin(start), "v"))
    )
    d.chain(v, x, d.add(Gain(-(omega**2)), "spring"), v)
    d.chain(x, d.add(block, "block"), d.add(Integrator(), "sum"))
    return d


@pytest.mark.parametrize("solver", ["rk4", "dopri5", "heun"])
def test_every_reversal_of_a_backlash_is_located(solver):
    """x turns at ω t + start = n π, wherever that is in a tick; y has its extremes there.

    The error of heun is ω³ h² t / 6 of a phase; a time is located by differences, to h² of it.
    """
    omega, half = 3.0, 0.05
    for start in np.random.default_rng(1).uniform(0.2, 3.0, 12):
        d = make_oscillator(Backlash(2 * half), omega, start, 1e-2, solver)
        events = simulate(d, 4.0, error_estimate=False).events
        times = np.array([event.time for event in events if event.source == "block"])
        turns = (np.arange(1, 5) * np.pi - start) / omega
        turns = turns[turns < 4.0 - 1e-2]
        error = 2e-3 if solver == "heun" else 1e-6
        distance = np.abs(times[:, None] - turns).min(axis=0)
        assert distance.max() < error, (start, distance)


@pytest.mark.parametrize("solver", ["rk4", "dopri5"])
def test_every_departure_of_a_rate_limiter_is_located(solver):
    """y leaves x where |x'| = ω |sin(ω t + start)| exceeds the limit of 0.8 ω."""
    omega, limit = 3.0, 0.8
    for start in np.random.default_rng(2).uniform(-0.5, 0.5, 12):
        d = make_oscillator(RateLimiter(limit * omega), omega, start, 1e-2, solver)
        events = simulate(d, 1.0, error_estimate=False).events
        times = np.array([event.time for event in events if event.source == "block"])
        leaves = (np.arcsin(limit) - start) / omega
        assert np.abs(times - leaves).min() < 1e-6


@pytest.mark.parametrize(
    "block", [Backlash(0.1), Backlash(1e3), RateLimiter(5.0), RateLimiter(0.1)]
)
def test_rates_are_not_found_where_the_mode_surely_holds(block):
    """x is evaluated at the tick, in three stages and at the end: no difference is formed."""
    counted = Counted()
    d = Diagram("counted", step=1e-3, solver="rk4")
    x = d.add(Integrator(1.0), "x")
    d.chain(x, d.add(Gain(-1.0), "decay"), x)
    d.chain(x, d.add(counted, "counted"), d.add(block, "block"), d.add(Integrator(), "sum"))
    with d.compile().instantiate() as instance:
        instance.run(200)
        counted.count = 0
        instance.run(100)
    assert counted.count == 500


def test_an_input_that_stands_still_in_contact():
    """It reaches 0.5 and stays: y stays half the play behind, and no event follows."""
    counted = Counted()
    d = Diagram("rest", step=1e-2, solver="rk4")
    x = d.add(Integrator(0.003, limits=(-1.0, 0.5)), "x")
    d.chain(d.add(Constant(1.0), "one"), x, d.add(counted, "counted"), d.add(Backlash(0.2), "play"))
    d.chain(d["play"], d.add(Integrator(), "sum"))
    result = simulate(d, 2.0, error_estimate=False)
    assert result["play"][-1] == pytest.approx(0.4, abs=1e-12)
    assert [event.time for event in result.events] == pytest.approx([0.097, 0.497], abs=1e-12)
    with d.compile().instantiate() as instance:
        instance.run(100)
        counted.count = 0
        instance.run(100)
    assert counted.count == 500


@pytest.mark.parametrize("frequency", [199.3, 85.06643051875588])
def test_a_restored_state_goes_on_as_the_run_did(frequency):
    """Where the input is faster than the steps, it matters whether modes were predicted."""
    d = Diagram("fast", step=1e-2, solver="rk4")
    sine = d.add(Sine(1.0, frequency, 0.0), "sine")
    d.chain(sine, d.add(Backlash(0.1), "play"), d.add(Integrator(), "sum"))
    with d.compile().instantiate() as instance:
        instance.run(1)
        first = instance.save()
        instance.run(400)
        last = instance.save()
        for ticks in (3, 20, 37, 61):
            instance.restore(first)
            instance.run(ticks)
            middle = instance.save()
            instance.restore(first)
            instance.run(400)
            assert instance.save() == last, ticks
            instance.restore(middle)
            instance.run(400 - ticks)
            assert instance.save() == last, ticks


class Interrupted(Counted):
    """Raises `KeyboardInterrupt` in one of its evaluations."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def output(self, t, x, u):
        if self.count == self.at:
            self.count += 1
            raise KeyboardInterrupt
        return super().output(t, x, u)


@pytest.mark.parametrize("at", range(1000, 1005))
def test_a_predicted_step_can_be_interrupted(at):
    """It is not taken again: wherever in a tick of five evaluations, the run ends."""
    d = Diagram("interrupted", step=1e-3, solver="rk4")
    x = d.add(Integrator(1.0), "x")
    d.chain(x, d.add(Gain(-1.0), "decay"), x)
    d.chain(x, d.add(Interrupted(at), "u"), d.add(Backlash(0.1), "play"), d.add(Integrator(), "s"))
    with d.compile().instantiate() as instance, pytest.raises(KeyboardInterrupt):
        instance.run(1000)
