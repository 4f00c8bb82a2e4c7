"""Events located within a tick, against closed forms.

Tolerances: event times and states are exact up to the width of a bracket, 1e-12 of a step, and
rounding, where the motion is a polynomial that the interpolant reproduces; elsewhere up to the
order of the solver.
"""

import ctypes
import warnings

import numpy as np
import pytest

from biella import BiellaWarning, Diagram, Subsystem, simulate
from biella.blocks import (
    Abs,
    Backlash,
    Compare,
    Constant,
    DeadZone,
    Expression,
    Gain,
    Integrator,
    MinMax,
    MultiportSwitch,
    Pulse,
    Ramp,
    RateLimiter,
    Relay,
    SampleHold,
    Saturation,
    Sign,
    Sine,
    Step,
    Sum,
    Switch,
    Time,
    UnitDelay,
)
from biella.blocks.multibody.plant._plant import Plant
from biella.blocks.multibody.system._system import System
from biella.errors import BlockError
from biella.scheduler.engine._engine import Instance
from biella.scheduler.engine._library import contract

pytestmark = pytest.mark.engine

EXPLICIT = ["euler", "heun", "rk3", "rk4", "dopri5"]
SOLVERS = [*EXPLICIT, "backward_euler", "trapezoidal", "radau5"]


def count(instance: Instance, counter: int) -> float:
    return float(instance.counters[counter])


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


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
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
    with pytest.warns(BiellaWarning, match="not located in 1 tick, first at t = 2.0"):
        result = simulate(d, 3.0)
    exact = np.where(result.t < 2, (1 - result.t / 2) ** 2, 0.0)
    assert result["x"] == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize(
    ("solver", "options"),
    [("rk4", {}), ("radau5", {}), ("dopri5", {"tolerance": 1e-6}), ("radau5", {"tolerance": 1e-6})],
)
def test_a_crossing_function_that_is_not_finite_beyond_a_border(solver, options):
    """x falls from 1 to the border, sqrt(x) = 0.5; steps that are tried end at x < 0."""
    d = Diagram("root", step=10.0, solver=solver, **options)
    x = d.add(Integrator(1.0), "x")
    d.connect(d.add(Expression("where(sqrt(x) > 0.5, -0.2, 0)"), "f", x=x), x)
    result = simulate(d, 30.0)
    assert result["x"] == pytest.approx([1.0, 0.25, 0.25, 0.25], abs=1e-9)


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


ADAPTIVE = ["dopri5", "radau5"]


@pytest.mark.parametrize("solver", ADAPTIVE)
@pytest.mark.parametrize("start", [0.0, -3.0, 1e6])
@pytest.mark.parametrize("ticks", [1, 3, 7])
def test_steps_under_error_control_end_at_samples(solver, start, ticks):
    """x' = z - x, where z is x one period ago. The rounding of times leaves no step to take.

    The error is a few times the tolerance, 1e-9, and at t = 1e6 s the rounding of a tick, 1e-10 s.
    """
    period, n = 0.1 * ticks, 60
    d = Diagram("sampled", step=0.1, solver=solver, tolerance=1e-9, start_time=start)
    x = d.add(Integrator(1.0), "x")
    z = d.add(UnitDelay(0.5), "z", u=x, period=period)
    d.add(Ramp(slope=0.0, at=start + 0.7123), "ramp")
    d.connect(d.add(Sum("+-+"), "sum", u1=z, u2=x, u3=d["ramp"]), x)
    result = simulate(d, start + n * period)
    exact, x0, held = [], 1.0, 0.5
    for _ in range(n):
        exact += [held + (x0 - held) * np.exp(-0.1 * k) for k in range(ticks)]
        x0, held = held + (x0 - held) * np.exp(-period), x0
    assert result["x"] == pytest.approx([*exact, x0], abs=1e-7)
    with run(d, n * ticks) as instance:
        assert [count(instance, k) for k in range(3)] == [1, 0, 0]


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_two_crossings_in_a_step_that_passes_ticks(solver):
    """Nothing but the crossing functions limits the steps: x' is 1 where sin(t) > 0, else 0."""
    f = Expression("where(sin(t) > 0, 1, 0)")
    x = integrate(f, solver=solver, tolerance=1e-6, until=20.0)["x"]
    t = 0.01 * np.arange(len(x))
    whole = np.floor(t / (2 * np.pi))
    exact = np.pi * whole + np.minimum(t - 2 * np.pi * whole, np.pi)
    assert x == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("options", [{}, {"tolerance": 1e-8}])
@pytest.mark.parametrize("solver", ADAPTIVE)
def test_a_block_in_a_loop_that_ticks_change(solver, options):
    """A Backlash follows y = sin(ω t) - y/4 - 1/4 from sin(ω t) = 1/4 on: every tick ends a step.

    There x' starts from 0, so that differences for a Jacobian have no measure of its noise.
    Tolerances: 1e-6 is above the error of one step of 0.1 s with order 5, (ω h)⁶ / 720 = 5e-9, in
    each of 12 ticks, and above 12 times the tolerance.
    """
    w = 2 * np.pi * 0.2
    d = Diagram("play", step=0.1, solver=solver, **options)
    u = d.add(Sum("+-"), "u", u1=d.add(Sine(frequency=0.2), "sine"))
    y = d.add(Backlash(0.5), "y", u=u)
    d.connect(d.add(Gain(0.25), "back", u=y), u["u2"])
    d.add(Integrator(), "x", u=y)
    t0 = np.arcsin(0.25) / w
    result = simulate(d, 1.2)
    t = np.maximum(result.t, t0)
    exact = ((np.cos(w * t0) - np.cos(w * t)) / w - 0.25 * (t - t0)) / 1.25
    assert result["x"] == pytest.approx(exact, abs=1e-6)
    assert result.events.counts == {"y": 1}


def test_a_rate_limiter_that_follows_a_constant():
    """Its output moves though its input does not, and not while its subsystem is disabled."""
    inside = Diagram("inside")
    y = inside.add(RateLimiter(rising=2.0, initial=0.0), "y", u=inside.add(Constant(9.0), "u"))
    inside.output("x", inside.add(Integrator(), "x", u=y))
    inside.output("y", y)
    d = Diagram("limited", step=0.1)
    on = d.add(Pulse(period=1.0, duty=0.5, kind="boolean"), "on")
    d.output("y", d.add(Subsystem(inside, enable=True), "sub", enable=on)["y"])
    result = simulate(d, 2.0)
    active = np.cumsum(result.t % 1.0 < 0.5 - 1e-9)
    assert result["y"] == pytest.approx(np.where(active > 0, 0.2 * active, 0.0), abs=1e-12)


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_error_control_in_a_coupling_whose_steps_are_taken_in_parts(solver):
    """Within a part of a step the input of x is a polynomial, which every solver integrates."""

    def ring(solver: str, **options) -> np.ndarray:
        d = Diagram("ring", 0.02, solver, coupling="fixed-point", extrapolation=1, **options)
        for name in ("a", "b"):
            s = System("mass", (0, 0), planar=True)
            body = s.body("mass", mass=1.0, inertia=1.0, velocity=(1.0, 0))
            s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
            s.force("push", body.marker("end"), (0.0, 0.0))
            d.add(Plant(s, ["push.force.x"], ["slide.speed"], mode="internal"), name)
        x = d.add(Integrator(), "x", u=d["a"]["slide.speed"])
        pull = d.add(Gain(-30.0, unit="N"), "pull", u=x)
        push = d.add(Gain(2.0, unit="N"), "push", u=d["b"]["slide.speed"])
        d.connect(pull, d["b"]["push.force.x"])
        d.connect(push, d["a"]["push.force.x"])
        d.couple(iterations=2, tolerance=1e-9)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that iterations do not converge
            return simulate(d, 1.0)["x"]

    assert ring(solver, tolerance=1e-9) == pytest.approx(ring("rk4"), abs=1e-8)


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_the_reason_of_a_step_that_fails_is_kept(solver):
    """The loop y = x + y² has no solution from x = 1/4 on, however short the step."""
    d = Diagram("parabola", step=0.1, solver=solver, tolerance=1e-6)
    x = d.add(Integrator(), "x", u=d.add(Constant(1.0), "one"))
    y = d.add(Expression("x + y * y"), "y", x=x)
    d.connect(y, y["y"])
    d.add(Integrator(), "z", u=y)
    with (
        pytest.warns(BiellaWarning, match="more than one solution"),
        pytest.raises(BlockError, match="the residual of the algebraic loop stays at"),
    ):
        simulate(d, 1.0)


def test_an_event_in_a_step_of_radau5_that_is_taken_in_parts():
    """x' = -eˣ, x = -ln(t + e⁻⁷), is too steep for a step; y = t passes its border beside it.

    The event time is exact, and so is what follows from it.
    """
    d = Diagram("steep", step=0.1, solver="radau5")
    x = d.add(Integrator(7.0), "x")
    d.connect(d.add(Expression("-exp(x)"), "f", x=x), x)
    y = d.add(Integrator(), "y", u=d.add(Constant(1.0), "one"))
    d.add(Integrator(), "z", u=d.add(Expression("where(y > 0.0123, 1, 0)"), "g", y=y))
    with run(d, 1) as instance:
        assert instance.states[1:] == pytest.approx([0.1, 0.1 - 0.0123], abs=1e-12)
        assert instance.states[0] == pytest.approx(-np.log(0.1 + np.exp(-7.0)), abs=0.02)


def test_crossing_functions_of_a_disabled_subsystem():
    """Frozen modes leave |u| beyond its border when the subsystem is disabled: not an event."""
    inside = Diagram("inside")
    size = inside.add(Abs(), "abs", u=inside.input("u"))
    inside.add(Integrator(), "x", u=size)
    inside.output("y", size)
    d = Diagram("disabled", step=0.1)
    u = d.add(Integrator(-0.55), "u", u=d.add(Constant(1.0), "one"))
    on = d.add(Pulse(period=100.0, duty=0.01, kind="boolean"), "on")
    d.output("y", d.add(Subsystem(inside, enable=True), "sub", enable=on, u=u)["y"])
    with Instance(d.compile()) as instance:
        instance.initialize()
        with instance.frozen_modes():
            instance.run(12)
        instance.run(3)
        assert instance.event_counts == (0, 0, 0)


def test_frozen_modes_of_blocks_that_are_not_due():
    """They have not decided: a saturation would pass its input, a switch would have no input."""
    d = Diagram("sampled", step=0.1)
    five = d.add(Constant([5.0, 6.0]), "five")
    d.add(Saturation(-1.0, 1.0), "clipped", u=five, period=0.3, offset=0.1)
    d.add(
        MultiportSwitch(2),
        "chosen",
        period=0.3,
        offset=0.1,
        selector=d.add(Constant(2, kind="integer"), "two"),
    )
    d.connect(five, d["chosen"]["u1"], d["chosen"]["u2"])
    with Instance(d.compile()) as instance:
        instance.initialize()
        instance.run(2)
        with instance.frozen_modes():
            instance.run(2)
            instance.evaluate()
            assert instance.get("clipped").tolist() == [1.0, 1.0]
            assert instance.get("chosen").tolist() == [5.0, 6.0]


def test_asking_for_no_derivative_changes_nothing():
    """Freezing the modes evaluates outputs, which are part of a saved state."""
    with run(relay_oscillator(), 3) as instance:
        state, slot, seed = instance.save(), ctypes.c_int64(), ctypes.c_double()
        arguments = (slot, seed, 1, slot, 1, 0, ctypes.c_double())
        instance.call(instance.library.bl_directional, *map(_by_reference, arguments))
        assert instance.save() == state


def _by_reference(argument):
    return argument if isinstance(argument, int) else ctypes.byref(argument)


@pytest.mark.parametrize("solver", SOLVERS)
def test_chattering_does_not_end_a_run(solver):
    """Two sliding modes. Both states then stay within what a tick can move them, 1.4 · 0.05."""
    d = Diagram("chatter", 0.05, solver, max_events=8)
    x, y = d.add(Integrator(0.3), "x"), d.add(Integrator(0.2), "y")
    f = "where(x > 0, -1, 1) + 0.3 * sin(3 * t) + 0.1 * where(y > 0, -1, 1)"
    d.connect(d.add(Expression(f), "f", x=x, y=y), x)
    d.connect(d.add(Expression("where(y + x > 0, -1, 1) + 0.3 * sin(2 * t)"), "g", x=x, y=y), y)
    with run(d, 40) as instance:
        assert np.abs(instance.states).max() < 2 * 1.4 * 0.05
        assert count(instance, contract.BL_COUNT_UNLOCATED) > 0


CONTROLLED = [("rk4", {}), ("dopri5", {"tolerance": 1e-6}), ("radau5", {"tolerance": 1e-6})]


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
@pytest.mark.parametrize("start", [0.0, 1000.0])
@pytest.mark.parametrize(("solver", "options"), CONTROLLED)
def test_every_crossing_is_one_event(solver, options, start):
    """A sine of 5 Hz passes both limits of 15 Saturations twice in a period: 20 a second."""
    d = Diagram("limits", step=0.01, solver=solver, start_time=start, **options)
    u = d.add(Sine(frequency=5.0), "u")
    for k in range(1, 16):
        d.add(Integrator(), f"x{k}", u=d.add(Saturation(-0.06 * k, 0.06 * k), f"y{k}", u=u))
    assert simulate(d, start + 6.0).events.counts == {f"y{k}": 120 for k in range(1, 16)}


@pytest.mark.parametrize("start", [0.0, 1000.0])
@pytest.mark.parametrize("source", ["time", "state"])
@pytest.mark.parametrize(("solver", "options"), CONTROLLED)
def test_a_crossing_on_a_tick_is_one_event(solver, options, source, start):
    """Each limit is the time of a tick up to rounding: the crossing is before, at or after it."""
    d = Diagram("limits", step=0.1, solver=solver, start_time=start, **options)
    u = d.add(Time() if source == "time" else Integrator(start), "u")
    if source == "state":
        d.connect(d.add(Constant(1.0), "one"), u)
    for k in range(1, 40):
        d.add(Integrator(), f"x{k}", u=d.add(Saturation(-1e9, start + 0.1 * k), f"y{k}", u=u))
    events = simulate(d, start + 4.5).events
    assert events.counts == {f"y{k}": 1 for k in range(1, 40)}
    # Time is rounded to 1e-13 s at 1000 s; so is the sum of 39 steps.
    assert events.times() == pytest.approx(start + 0.1 * np.arange(1, 40), rel=1e-14, abs=1e-12)


STOPPED = pytest.mark.parametrize("stops", [(), (0.317, 0.36)])


def run_with_stops(d: Diagram, stops: tuple[float, ...], times: tuple[float, ...]) -> np.ndarray:
    """y at some of the ticks, also if a run stops in between."""
    with d.compile().instantiate() as instance:
        values = []
        for t in sorted({*stops, *times}):
            instance.run_to(t)
            instance.evaluate()
            values += [float(instance.get("y"))] if t in times else []
        return np.array(values)


@STOPPED
@pytest.mark.parametrize(("solver", "options"), CONTROLLED)
def test_a_rate_limiter_goes_on_from_where_a_jump_finds_it(solver, options, stops):
    """Its input jumps to 5 at 0.35 s: y = t - 0.35 from there on."""
    d = Diagram("jump", step=0.1, solver=solver, **options)
    y = d.add(RateLimiter(1.0), "y", u=d.add(Step(at=0.35, to=5.0), "u"))
    d.add(Integrator(), "x", u=y)
    values = run_with_stops(d, stops, (0.3, 0.4, 0.5))
    assert values == pytest.approx([0.0, 0.05, 0.15], abs=1e-14)


@STOPPED
@pytest.mark.parametrize(("solver", "options"), CONTROLLED)
def test_a_backlash_goes_on_from_where_a_jump_finds_it(solver, options, stops):
    """u = 10 t leads y to 3 at 0.35 s, then falls by 0.7 and leads it on from 0.42 s."""
    d = Diagram("jump", step=0.1, solver=solver, **options)
    u = d.add(Expression("where(t < 0.35, 10*t, 10*t - 0.7)"), "u")
    d.add(Integrator(), "x", u=d.add(Backlash(1.0), "y", u=u))
    values = run_with_stops(d, stops, (0.3, 0.4, 0.5))
    assert values == pytest.approx([2.5, 3.0, 3.8], abs=1e-12)


@STOPPED
@pytest.mark.parametrize(("solver", "options"), CONTROLLED)
def test_a_sample_and_hold_holds_the_value_at_the_fall(solver, options, stops):
    """sin(4 t + 1.7) falls through 0 at (π - 1.7) / 4 = 0.3604 s; the value is t."""
    d = Diagram("hold", step=0.1, solver=solver, **options)
    wave = d.add(Sine(frequency=2 / np.pi, phase=1.7), "wave")
    sample = d.add(Compare(">=", 0.0), "sample", u=wave)
    y = d.add(SampleHold(), "y", u=d.add(Time(), "t"), sample=sample)
    d.add(Integrator(), "x", u=y)
    values = run_with_stops(d, stops, (0.3, 0.4, 0.5))
    assert values == pytest.approx([0.3, (np.pi - 1.7) / 4, (np.pi - 1.7) / 4], abs=1e-12)


def test_a_tick_that_fails_counts_its_events_once():
    """The step at 0.13 s and the branch at 0.15 s, however often the tick is tried."""
    d = Diagram("fails", step=0.1)
    x = d.add(Integrator(), "x", u=d.add(Step(at=0.13), "step"))
    f = d.add(Expression("where(x > 0.02, 1, 0)"), "f", x=x)
    d.add(Integrator(), "y", u=d.add(Expression("exp(1e6*f)"), "g", f=f))
    with d.compile().instantiate() as instance:
        counts = []
        for _ in range(3):
            with pytest.raises(BlockError, match="not finite"):
                instance.run(3)
            instance.touch()
            counts.append(instance.event_counts)
        assert counts[0][0] > 0
        assert counts == [counts[0]] * 3
