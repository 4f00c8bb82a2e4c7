"""Events of states that take substeps: located within a step, in the order in which they occur."""

from __future__ import annotations

import numpy as np
import pytest

from biella import BiellaWarning, Diagram, DiagramError, simulate
from biella.blocks import (
    Backlash,
    Constant,
    Expression,
    Gain,
    Integrator,
    RateLimiter,
    Relay,
    StateSpace,
    Sum,
)

pytestmark = pytest.mark.engine

PERIOD = 0.1


def oscillate(substeps: int = 100) -> Diagram:
    """cos(2π t / PERIOD) in steps of one period: at every tick it is 1."""
    d = Diagram("oscillator", PERIOD)
    omega = 2.0 * np.pi / PERIOD
    matrix = [[0.0, omega], [-omega, 0.0]]
    fast = StateSpace(matrix, [[0.0], [0.0]], [[1.0, 0.0]], initial=[1.0, 0.0])
    d.add(fast, "fast", u=d.add(Constant(0.0), "zero"))
    d.integrate(fast, substeps=substeps)
    return d


def test_crossings_that_do_not_last_until_the_end_of_a_step_are_located():
    """The cosine is negative from 1/4 to 3/4 of each step, for which the slow state integrates 1.

    rk4 is late by (2π/100)⁵/120 rad in each of 500 substeps, which is 7e-8 s in the end."""
    d = oscillate()
    negative = d.add(Expression("where(u < 0, 1, 0)"), "negative", u=d["fast"])
    d.add(Integrator(), "slow", u=negative)
    result = simulate(d, 5 * PERIOD)
    exact = [(k + part) * PERIOD for k in range(5) for part in (0.25, 0.75)]
    assert result.events.times("negative") == pytest.approx(exact, abs=2e-7)
    assert result["slow"] == pytest.approx(0.5 * result.t, abs=2e-7)


def test_events_of_both_parts_in_one_step_are_taken_in_order():
    """The slow state reaches 0.6 of a step between two crossings of the fast one."""
    d = oscillate()
    slow = d.add(Integrator(), "slow", u=d.add(Constant(1.0), "one"))
    d.add(Integrator(), "a", u=d.add(Expression("where(u < 0, 1, 0)"), "negative", u=d["fast"]))
    late = Expression(f"where(u > {0.6 * PERIOD}, 1, 0)")
    d.add(Integrator(), "b", u=d.add(late, "late", u=slow))
    result = simulate(d, PERIOD)
    events = [(event.source, event.time / PERIOD) for event in result.events]
    assert [source for source, _ in events] == ["negative", "late", "negative"]
    assert [time for _, time in events] == pytest.approx([0.25, 0.6, 0.75], abs=1e-6)
    assert result["b"][-1] == pytest.approx(0.4 * PERIOD, abs=1e-12)


def thermostat(step: float = 20e-3, substeps: int = 40) -> Diagram:
    """w' = λ (r - w) with a relay of ±0.5 that drives it to ∓1; its half period is ln(3) / λ."""
    d = Diagram("thermostat", step)
    fast = d.add(Integrator(-0.5), "fast")
    relay = d.add(Relay(on=0.5, off=-0.5, high=-1.0, low=1.0), "relay", u=fast)
    d.connect(d.add(Expression("200 * (r - w)"), "rate", r=relay, w=fast), fast)
    slow = d.add(Integrator(1.0), "slow")
    d.connect(d.add(Expression("w - 0.5 * x"), "back", w=fast, x=slow), slow)
    d.integrate(fast, substeps=substeps)
    return d


def test_a_relay_of_the_fast_part_switches_at_its_times():
    """Three or four times in each step; λ d of a substep is 0.1, and its error below 1e-7 s."""
    result = simulate(thermostat(), 0.2)
    exact = np.arange(1, 37) * np.log(3.0) / 200.0
    assert result.events.times("relay")[:36] == pytest.approx(exact, abs=1e-6)


def test_a_run_with_events_continues_from_a_saved_state_to_the_bit():
    with thermostat().compile().instantiate() as instance:
        instance.run(3)
        instance.run_to(instance.time + 7e-3)
        saved = instance.save()
        instance.run(10)
        first = instance.values.copy()
        assert instance.event_counts[0] > 30
        instance.restore(saved)
        instance.run(10)
        assert np.array_equal(instance.values, first)


def test_the_order_is_kept_across_events_of_the_fast_part():
    """A decay whose rate changes at a threshold, coupled to a slow state in both directions;
    against dopri5 with a tolerance of 1e-13."""

    def make(step: float, solver: str = "rk4", **options) -> Diagram:
        d = Diagram("valve", step, solver, **options)
        slow, fast = d.add(Integrator(0.2), "slow"), d.add(Integrator(-1.0), "fast")
        flow = Expression("where(w > 0.3 * x, 15, 30) * (cos(3 * x) - w)")
        d.connect(d.add(flow, "flow", w=fast, x=slow), fast)
        d.connect(d.add(Expression("0.8 * w - x ** 3"), "push", w=fast, x=slow), slow)
        d.integrate(fast, substeps=10)
        return d

    exact = simulate(make(0.1, "dopri5", tolerance=(1e-13, 1e-13)), 2.0)
    assert len(exact.events) == 2
    errors = []
    steps = [2.0 / n for n in (37, 74, 148, 296)]
    for step in steps:
        result = simulate(make(step), 2.0, error_estimate=False)
        assert len(result.events) == 2
        errors.append(max(abs(result[n][-1] - exact[n][-1]) for n in ("slow", "fast")))
    assert errors[-1] < errors[0] / 8**3.7  # where an event lies in its step changes the error


def test_beyond_the_number_of_events_the_rest_of_the_tick_is_counted():
    d = thermostat(0.5, 1000)
    d.max_events = 5
    with d.compile().instantiate() as instance:
        instance.run(1)
        counts = instance.event_counts
    assert counts[0] == 5
    assert counts[1] == 1


@pytest.mark.parametrize("block", [RateLimiter(1.0), Backlash(0.1)])
def test_events_that_depend_on_rates_of_fast_signals_are_refused(block):
    d = oscillate()
    d.add(block, "block", u=d["fast"])
    d.add(Integrator(), "slow", u=block)
    with pytest.raises(DiagramError, match=r"`block` .* depends on states that take substeps"):
        d.compile()
    assert d.compile(events="tick").multirate
    beside = oscillate()
    slow = beside.add(Integrator(1.0), "slow", u=beside["zero"])
    beside.add(Integrator(), "other", u=beside.add(type(block)(1.0), "block", u=slow))
    simulate(beside, 2 * PERIOD)


def test_gains_without_events_are_as_before():
    """Evaluating crossing functions in substeps changes no state."""
    plain, watched = oscillate(), oscillate()
    for d in (plain, watched):
        d.add(Integrator(), "slow", u=d.add(Gain(1.0), "g", u=d["fast"]))
    watched.add(Integrator(), "x", u=watched.add(Expression("where(u < -2, 1, 0)"), "w", u="fast"))
    a, b = (simulate(d, 3 * PERIOD) for d in (plain, watched))
    assert np.array_equal(a["slow"], b["slow"])
    assert np.array_equal(a["fast"], b["fast"])


def add_loose_gear(d: Diagram) -> None:
    """Adds a play of 0.2 that follows sin(2π t / 0.17), and the integral of what it passes on."""
    d.add(Expression("sin(2 * pi * t / 0.17)"), "wave")
    d.add(Backlash(0.2), "gear", u=d["wave"])
    d.add(Integrator(), "sum", u=d["gear"])


def test_inputs_are_checked_in_steps_with_events_of_the_fast_part():
    """The inputs of a Backlash vary faster than steps of 0.1 s, which events divide too."""
    d = oscillate()
    negative = d.add(Expression("where(u < 0, 1, 0)"), "negative", u=d["fast"])
    add_loose_gear(d)
    d.add(Integrator(), "slow", u=d.add(Sum("++"), "both", u1=negative, u2=d["wave"]))
    exact = Diagram("alone", PERIOD, solver="dopri5", tolerance=1e-12)
    add_loose_gear(exact)
    expected = simulate(exact, 2.0)
    with pytest.warns(BiellaWarning, match="the estimated error"):  # of the states, not of events
        found = simulate(d, 2.0)
    times = expected.events.times("gear")
    assert len(times) > 20
    assert found.events.times("gear") == pytest.approx(times, abs=1e-6)
