"""Rates of change of inputs: every reversal is located, and rates are found only where needed."""

import numpy as np
import pytest
from scipy.optimize import brentq

from biella import Diagram, simulate
from biella.blocks import (
    Backlash,
    Constant,
    Gain,
    Integrator,
    PythonBlock,
    RateLimiter,
    Sine,
    Sum,
)
from biella.errors import BiellaWarning

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
    """x is evaluated at the tick, in three stages and at the end: no difference is formed.

    In tick 256, one of 64, it is checked whether the step resolves x: 7 parts, and dense output.
    Ticks after a restored state are those of the run that saved it.
    """
    counted = Counted()
    d = Diagram("counted", step=1e-3, solver="rk4")
    x = d.add(Integrator(1.0), "x")
    d.chain(x, d.add(Gain(-1.0), "decay"), x)
    d.chain(x, d.add(counted, "counted"), d.add(block, "block"), d.add(Integrator(), "sum"))
    with d.compile().instantiate() as instance:
        instance.run(200)
        state = instance.save()
        for _ in range(2):
            counted.count = 0
            instance.evaluate()
            instance.run(100)
            assert counted.count == 500 + 8
            instance.restore(state)


def test_an_input_that_stands_still_in_contact():
    """It reaches 0.5 and stays: y stays half the play behind, and no event follows.

    Ticks 128 and 192 are checked as above.
    """
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
    assert counted.count == 500 + 2 * 8


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


SOLVERS = [("rk4", None), ("dopri5", None), ("heun", None), ("radau5", None), ("dopri5", 1e-6)]


def make_fast(block, frequency: float, phase: float = 0.0, **options) -> Diagram:
    """Return a sine of amplitude 1, which `block` reads, in steps of 10 ms."""
    d = Diagram("fast", step=1e-2, **options)
    sine = d.add(Sine(1.0, frequency, phase), "sine")
    d.chain(sine, d.add(block, "block"), d.add(Integrator(), "sum"))
    return d


@pytest.mark.parametrize(("solver", "tolerance"), SOLVERS)
@pytest.mark.parametrize("frequency", [199.3, 85.06643051875588, 60.0, 37.1])
def test_a_backlash_whose_input_is_faster_than_the_steps(frequency, solver, tolerance):
    """At 199.3 Hz, u is nearly the same at start, middle and end of every step.

    y follows sin(ω t) half the play behind from 0.05 on, stands still from every extreme on, and
    follows again where u has come back by 0.1. An extreme is where a symmetric difference is 0.
    """
    omega, half = 2 * np.pi * frequency, 0.05
    d = make_fast(Backlash(2 * half), frequency, solver=solver, tolerance=tolerance)
    result = simulate(d, 0.4, error_estimate=False)
    contact = np.pi - np.arcsin(1 - 2 * half)  # after the extreme at π/2
    turns = np.arange(int(0.4 * omega / np.pi) + 2) * np.pi
    phases = np.sort(np.concatenate(([np.arcsin(half)], turns + np.pi / 2, turns + contact)))
    expected = phases[phases < 0.4 * omega] / omega
    # Events at ticks are not events: none is nearer than 1e-6 s.
    assert np.min(np.abs(expected[:, None] - result.t)) > 1e-6
    np.testing.assert_allclose([event.time for event in result.events], expected, atol=1e-10)

    angle = omega * result.t
    since = (angle - np.pi / 2) % np.pi
    sign = np.where((angle - np.pi / 2) // np.pi % 2 == 0, 1.0, -1.0)
    follows = since + np.pi / 2 >= contact
    y = np.where(follows, np.sin(angle) + sign * half, sign * (1 - half))
    first = angle < np.pi / 2
    y[first] = np.maximum(np.sin(angle[first]) - half, 0.0)
    np.testing.assert_allclose(result["block"], y, atol=1e-10)


@pytest.mark.parametrize(("solver", "tolerance"), SOLVERS)
@pytest.mark.parametrize(("frequency", "phase"), [(199.3, 0.0), (100.0, np.pi / 2), (200.0, 0.4)])
def test_a_rate_limiter_whose_input_is_faster_than_the_steps(frequency, phase, solver, tolerance):
    """y goes up or down with 10 /s, and turns where it meets u, which is far faster there.

    The first y is u(0). Where they meet is found by bisection.
    """
    omega, rate = 2 * np.pi * frequency, 10.0
    d = make_fast(RateLimiter(rate), frequency, phase, solver=solver, tolerance=tolerance)
    result = simulate(d, 0.3, error_estimate=False)
    t, y, way = 0.0, np.sin(phase), 1.0
    if phase == np.pi / 2:  # y follows u until that is too fast
        t, way = np.arcsin(rate / omega) / omega, -1.0
        y = np.cos(omega * t)
    times, values = [0.0, t], [np.sin(phase), y]
    while t < 0.3:

        def rest(s, t=t, y=y, way=way):
            return way * (np.sin(omega * s + phase) - y) - rate * (s - t)

        step = 0.02 / frequency
        after = t + step
        while rest(after) > 0.0:
            after += step
        end = brentq(rest, after - step, after, xtol=1e-15)
        t, y, way = end, y + way * rate * (end - t), -way
        times.append(t)
        values.append(y)
    # A rate is a difference over 2e-5 s, exact to (1e-5 ω)² / 6: so is the phase at which it is 10.
    np.testing.assert_allclose(result["block"], np.interp(result.t, times, values), atol=1e-8)


def test_an_input_that_is_too_fast_for_internal_steps_is_reported():
    """500 periods in a tick: 64 internal steps do not resolve them."""
    d = Diagram("fast", step=1e-2, solver="rk4")
    sine = d.add(Sine(0.01, 50e3, 0.1), "sine")
    d.chain(sine, d.add(Backlash(0.1), "play"), d.add(Integrator(), "sum"))
    with pytest.warns(BiellaWarning, match="not located in 100 ticks, .* input of `play` varies"):
        result = simulate(d, 1.0, error_estimate=False)
    assert not result["play"].any()


def test_an_input_that_varies_by_rounding_only_is_not_reported():
    """A difference of two equal numbers, with noise of 1e-16, is constant for a play of 0.1."""
    d = Diagram("rounding", step=1e-2, solver="rk4")
    sine, cosine = d.add(Sine(1e3, 20.0, 0.1), "sine"), d.add(Sine(1e3, 20.0, 0.1), "same")
    total = d.add(Sum("+-"), "total")
    d.connect(d.add(Gain(1 / 3), "third", u=d.add(Gain(3.0), "three", u=sine)), total["u1"])
    d.connect(cosine, total["u2"])
    d.chain(total, d.add(Backlash(0.1, 0.05), "play"), d.add(Integrator(), "sum"))
    result = simulate(d, 2.0, error_estimate=False)
    assert 0 < np.abs(result["total"]).max() < 1e-12
    np.testing.assert_allclose(result["play"], 0.05, atol=1e-12)


@pytest.mark.parametrize("solver", ["rk4", "dopri5", "radau5"])
def test_an_input_that_is_in_contact_within_a_checked_step_only(solver):
    """u = cos(ω (t - peak)), beyond half the play for 6.4 ms of the tick of 10 ms around the peak.

    y follows up to the peak. In tick 64 it is checked whether the step resolves u, at seven parts:
    the first and the last of them are not beyond the border.
    """
    peak, beyond, omega = 0.645, 2e-4, 2 * np.pi
    d = make_fast(Backlash(2 * (1 - beyond)), 1.0, np.pi / 2 - omega * peak, solver=solver)
    result = simulate(d, 0.8, error_estimate=False)
    assert result["block"][-1] == pytest.approx(beyond, abs=1e-9)
    contact = np.arccos(1 - beyond) / omega
    times = [event.time for event in result.events]
    assert times == pytest.approx([peak - contact, peak], abs=1e-6)
