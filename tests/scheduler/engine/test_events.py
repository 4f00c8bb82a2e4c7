"""Events located within a tick, against closed forms.

Tolerances: event times and states are exact up to the width of a bracket, 1e-12 of a step, and
rounding, where the motion is a polynomial that the interpolant reproduces; elsewhere up to the
order of the solver.
"""

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import (
    Abs,
    Compare,
    Constant,
    DeadZone,
    Expression,
    Gain,
    Integrator,
    MinMax,
    Pulse,
    Ramp,
    RateLimiter,
    Relay,
    Saturation,
    Sign,
    Sine,
    Step,
    Sum,
    Switch,
    Time,
)
from biella.scheduler.engine._engine import Instance
from biella.scheduler.engine._library import contract

pytestmark = pytest.mark.engine

EXPLICIT = ["euler", "heun", "rk3", "rk4", "dopri5"]
SOLVERS = [*EXPLICIT, "backward_euler", "trapezoidal", "radau5"]


def count(instance: Instance, counter: int) -> float:
    return float(instance.values[len(instance.values) - contract.BL_EVENT_COUNTERS + counter])


def run(d: Diagram, ticks: int) -> Instance:
    instance = Instance(d.compile())
    instance.initialize()
    instance.run(ticks)
    return instance


def integrate(block, *, step=1e-2, solver="rk4", until=1.0, u=None, **options):
    """The integral of a block of time, or of one that follows `u`."""
    d = Diagram("integral", step=step, solver=solver, **options)
    d.add(block, "f")
    if u is not None:
        d.connect(d.add(u, "u"), "f")
    d.add(Integrator(), "x", u=d["f"])
    return simulate(d, until)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_step_between_ticks(solver):
    result = integrate(Step(at=0.1234567, to=2.0), solver=solver)
    assert result["x"][-1] == pytest.approx(2.0 * (1 - 0.1234567), abs=1e-13)


def test_pulses_and_a_ramp_between_ticks():
    pulse = integrate(Pulse(period=0.0937, duty=0.31, delay=0.0211))
    t, whole = pulse.t, np.floor((pulse.t - 0.0211) / 0.0937)
    rest = np.minimum((t - 0.0211) - whole * 0.0937, 0.31 * 0.0937)
    exact = np.where(t < 0.0211, 0.0, whole * 0.31 * 0.0937 + rest)
    assert pulse["x"] == pytest.approx(exact, abs=1e-13)
    ramp = integrate(Ramp(slope=3.0, at=0.1234567))
    assert ramp["x"][-1] == pytest.approx(1.5 * (1 - 0.1234567) ** 2, abs=1e-13)


@pytest.mark.parametrize("solver", EXPLICIT[1:])
@pytest.mark.parametrize(
    ("formula", "exact"),
    [
        ("where(t < 0.4567, 50, 0)", 50 * 0.4567),
        ("50 if t < 0.4567 else 0", 50 * 0.4567),
        ("abs(t - 0.4567)", (0.4567**2 + 0.5433**2) / 2),
        ("sign(t - 0.4567)", 0.5433 - 0.4567),
        ("max(t, 0.4567)", 0.4567**2 + (1 - 0.4567**2) / 2),
        ("min(t, 0.4567)", 0.4567**2 / 2 + 0.4567 * 0.5433),
        ("clip(t, 0.2345, 0.4567)", 0.2345**2 + (0.4567**2 - 0.2345**2) / 2 + 0.4567 * 0.5433),
        ("floor(7 * t)", 3.0),
        ("ceil(7 * t)", 4.0),
        ("round(7 * t)", 3.5),
        ("mod(t, 0.3)", 3 * 0.3**2 / 2 + 0.1**2 / 2),
        ("t // 0.3", 0.3 + 0.6 + 3 * 0.1),
        ("0.2345 < t <= 0.4567", 0.4567 - 0.2345),
    ],
)
def test_formulas_that_are_not_smooth(solver, formula, exact):
    """Of each piece, these methods integrate a polynomial of degree 1 exactly."""
    assert integrate(Expression(formula), solver=solver)["x"][-1] == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(
    ("block", "exact"),
    [
        (Saturation(-0.2, 0.3), lambda s: -0.2 if s < -0.2 else min(s, 0.3)),
        (DeadZone(-0.2, 0.3), lambda s: min(s + 0.2, 0.0) + max(s - 0.3, 0.0)),
        (Abs(), abs),
        (Sign(), np.sign),
        (Relay(on=0.3, off=-0.2), None),
        (RateLimiter(0.8), None),
    ],
)
def test_blocks_that_follow_a_line(block, exact):
    """u = 2.3 t - 1; the exact integral by pieces, from 200,000 midpoints off the borders' grid."""
    line = Expression("2.3*t - 1")
    result = integrate(block, u=line)
    t = (np.arange(230_000) + 0.5) / 230_000
    u = 2.3 * t - 1
    if isinstance(block, Relay):
        exact_integral = 1 - 1.3 / 2.3
    elif isinstance(block, RateLimiter):
        exact_integral = -1 + 0.8 / 2  # it starts at u(0) and never catches up
    else:
        exact_integral = float(np.mean([exact(value) for value in u]))
    tolerance = 1e-12 if exact is None else 1e-5
    assert result["x"][-1] == pytest.approx(exact_integral, abs=tolerance)


def test_the_larger_of_two_signals():
    d = Diagram("max", step=1e-2)
    larger = d.add(MinMax("max", inputs=2), "larger")
    d.connect(d.add(Time(), "t"), larger["u1"])
    d.connect(d.add(Constant(0.4567, unit="s"), "c"), larger["u2"])
    d.add(Integrator(), "x", u=larger)
    assert simulate(d, 1.0)["x"][-1] == pytest.approx(0.4567**2 + (1 - 0.4567**2) / 2, abs=1e-13)


def relay_oscillator(**options) -> Diagram:
    d = Diagram("relay", step=1e-2, **options)
    x = d.add(Integrator(0.3), "x")
    d.connect(d.add(Relay(on=1.0, off=-1.0, high=-1.0, low=1.0), "relay", u=x), x)
    return d


def triangle(t):
    """dx/dt = 1 from 0.3 until x = 1 at t = 0.7, then -1 until x = -1, and so on: period 4."""
    phase = (t - 0.7) % 4
    return np.where(t < 0.7, 0.3 + t, np.where(phase < 2, 1 - phase, phase - 3))


@pytest.mark.parametrize("solver", SOLVERS)
def test_relay_oscillator(solver):
    result = simulate(relay_oscillator(solver=solver), 40.0)
    assert result["x"] == pytest.approx(triangle(result.t), abs=1e-12)


@pytest.mark.parametrize("solver", ["dopri5", "radau5"])
def test_relay_oscillator_under_error_control(solver):
    """The steps are as long as the events are apart, and span hundreds of ticks."""
    d = relay_oscillator(solver=solver, tolerance=1e-10)
    result = simulate(d, 40.0)
    assert result["x"] == pytest.approx(triangle(result.t), abs=1e-9)
    instance = run(d, 4000)
    # The first of 20 is at a tick, up to rounding: there it may be decided without a search.
    assert count(instance, contract.BL_COUNT_EVENTS) in (19, 20)
    assert count(instance, contract.BL_COUNT_UNCONTROLLED) == 0


def ball(step: float, restitution: float = 0.8, **options) -> Diagram:
    d = Diagram("ball", step=step, **options)
    v = d.add(Integrator(reset="rising", initial_port=True, state_port=True), "v")
    height = d.add(Integrator(1.0), "height", u=v["y"])
    hit = d.add(Compare("<=", 0.0), "hit", u=height)
    d.connect(d.add(Constant(-9.81), "g"), v["u"])
    d.connect(hit, v["reset"])
    back = d.add(Gain(-restitution), "back", u=v["state"])
    first = d.add(Switch(), "first", on_true=back, condition=hit, on_false=d.add(Constant(0.0)))
    d.connect(first, v["initial"])
    return d


def bounces(restitution: float, until: float) -> list[float]:
    """Fall for √(2 h / g), then flights of 2 v / g, each v the part `restitution` of the last."""
    times, v = [np.sqrt(2 / 9.81)], np.sqrt(2 * 9.81)
    while True:
        v *= restitution
        times.append(times[-1] + 2 * v / 9.81)
        if times[-1] > until:
            return times


@pytest.mark.parametrize("step", [1e-2, 1e-3])
@pytest.mark.parametrize("options", [{}, {"solver": "dopri5", "tolerance": 1e-12}])
def test_bouncing_ball(step, options):
    result = simulate(ball(step, **options), 3.0)
    times = bounces(0.8, 3.0)
    speeds = np.sqrt(2 * 9.81) * 0.8 ** np.arange(1, len(times) + 1)
    flight = np.searchsorted(times, result.t, side="right") - 1
    since = result.t - np.array(times)[np.maximum(flight, 0)]
    flying = speeds[np.maximum(flight, 0)] * since - 9.81 * since**2 / 2
    exact = np.where(flight < 0, 1 - 9.81 * result.t**2 / 2, flying)
    assert result["height"] == pytest.approx(exact, abs=1e-10)


def test_the_order_is_kept_across_events():
    """x'' = -sign(x), and y' = sin(3 x) - y, which no method integrates exactly.

    Reference: the same with dopri5 at a step 32 times smaller than the smallest compared.
    """

    def end(first, step, solver):
        d = Diagram("order", step=step, solver=solver)
        v = d.add(Integrator(1.0), "v")
        x = d.add(Integrator(first), "x", u=v)
        side = d.add(Sign(), "side", u=x)
        d.connect(d.add(Gain(-1.0), "pull", u=side), v)
        y = d.add(Integrator(), "y")
        d.connect(d.add(Expression("sin(3*s) - y"), "f", s=x, y=y), y)
        return simulate(d, 6.0)["y"][-1]

    # The error of a step depends on where the events lie in it: the mean over several starts.
    starts = np.linspace(0.1, 0.4, 7)
    exact = [end(first, 0.3 / 1024, "dopri5") for first in starts]
    for solver, order in (("heun", 2), ("rk3", 3), ("rk4", 4), ("dopri5", 5)):
        coarse, fine = (
            np.mean([abs(end(a, 0.3 / n, solver) - b) for a, b in zip(starts, exact, strict=True)])
            for n in (4, 32)
        )
        assert np.log2(coarse / fine) / 3 > order - 0.35, solver


def test_chattering_is_bounded_and_counted():
    """x' = -sign(x) slides along 0 after 0.0123 s, with more events than a tick may have."""
    d = Diagram("sliding", step=1e-3, max_events=8)
    x = d.add(Integrator(0.0123), "x")
    d.connect(d.add(Relay(on=0.0, off=-0.0, high=-1.0, low=1.0), "relay", u=x), x)
    instance = run(d, 100)
    assert abs(instance.get("x")) <= 1e-3
    assert 0 < count(instance, contract.BL_COUNT_UNLOCATED) <= 100
    assert count(instance, contract.BL_COUNT_EVENTS) <= 8 * 100


def test_not_finite_beyond_a_border():
    """x' = -√x for x > 0, else 0: x = (1 - t / 2)², and a trial step beyond 0 is not a number."""
    d = Diagram("drain", step=1e-2)
    x = d.add(Integrator(1.0), "x")
    d.connect(d.add(Expression("where(x > 0, -sqrt(x), 0)"), "f", x=x), x)
    result = simulate(d, 3.0)
    exact = np.where(result.t < 2, (1 - result.t / 2) ** 2, 0.0)
    assert result["x"] == pytest.approx(exact, abs=1e-6)


def test_vectors_and_loops():
    """Two relays at once, one of them in an algebraic loop: y = u - 0.5 saturated(y)."""
    d = Diagram("vector", step=1e-2)
    x = d.add(Integrator([0.3, -0.6]), "x")
    d.connect(d.add(Relay(on=1.0, off=-1.0, high=-1.0, low=1.0), "relay", u=x), x)
    result = simulate(d, 8.0)
    assert result["x"][:, 0] == pytest.approx(triangle(result.t), abs=1e-12)
    assert result["x"][:, 1] == pytest.approx(triangle(result.t - 0.9), abs=1e-12)

    d = Diagram("loop", step=1e-2)
    t = d.add(Time(), "t")
    y = d.add(Sum("+-"), "y", u1=t)
    half = d.add(Gain(0.5), "half", u=d.add(Saturation(-1.0, 0.2), "limit", u=y))
    d.connect(half, y["u2"])
    d.add(Integrator(), "x", u=y)
    # y = t / 1.5 until y = 0.2 at t = 0.3, then y = t - 0.1
    assert simulate(d, 1.0)["x"][-1] == pytest.approx(0.03 + 0.91 / 2 - 0.07, abs=1e-9)


@pytest.mark.parametrize(
    "options",
    [{}, {"solver": "dopri5", "tolerance": 1e-9}, {"solver": "radau5", "tolerance": 1e-9}],
)
def test_save_and_restore_bit_for_bit(options):
    plan = ball(1e-2, **options).compile()
    with Instance(plan) as one, Instance(plan) as two:
        one.initialize()
        two.initialize()
        for ticks in (44, 1, 1, 60, 37):
            one.run(ticks)
            two.restore(one.save())
            one.run(13)
            two.run(13)
            assert one.save() == two.save()


def test_events_at_ticks_are_still_there():
    d = relay_oscillator(events="tick")
    instance = run(d, 4000)
    assert count(instance, contract.BL_COUNT_EVENTS) == 0
    off = Diagram("off the grid", step=7e-3, events="tick")
    x = off.add(Integrator(0.3), "x")
    off.connect(off.add(Relay(on=1.0, off=-1.0, high=-1.0, low=1.0), "relay", u=x), x)
    result = simulate(off, 40.0)
    assert np.abs(result["x"] - triangle(result.t)).max() > 1e-3


def test_events_of_a_sine_do_not_change_the_states():
    """Abs has an event at each zero of its input; ∫|sin ωt| over a period is 4 / ω."""
    result = integrate(Abs(), u=Sine(frequency=1.0, phase=0.3), step=1e-3)
    assert result["x"][-1] == pytest.approx(2 / np.pi, abs=1e-12)
