"""Event times against closed forms, to 1e-10 s at ticks of 1 ms.

The bracket of a located crossing is 1e-12 of a tick, 1e-15 s. What remains is the error of the
solver: none but rounding where each piece is a polynomial of low degree, and h⁵ / 120 = 1e-17 of
the range per step of rk4 where it decays with a time constant of a second.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import POINTER, c_double, c_int64, cast
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from biella import BiellaWarning, Diagram, simulate
from biella.blocks import (
    Backlash,
    Cam,
    CamLaw,
    Constant,
    Expression,
    Function,
    Integrator,
    Lookup1D,
    Lookup2D,
    Playback,
    Pulse,
    Ramp,
    RateLimiter,
    Relay,
    Saturation,
    SecondOrderIntegrator,
    Sine,
    StateFeedback,
    Step,
    TransferFunction,
    TransportDelay,
    Trapezoid,
)
from biella.scheduler.engine._engine import Instance
from biella.scheduler.engine._library import contract

pytestmark = pytest.mark.engine

TICK = 1e-3
CONTROLLED: dict[str, Any] = {"solver": "dopri5", "tolerance": 1e-12}
SETTINGS = [CONTROLLED, {"solver": "rk4"}, {"solver": "dopri5"}]
GRAVITY = 9.81


def find_events(d: Diagram, until: float, block: str) -> np.ndarray:
    """Return the times of the events of one block."""
    plan = d.compile()
    number = [item.path for item in plan.flat.blocks].index(block)
    ticks = round(until / plan.step)
    room, pick = 1 << 15, np.zeros(1, dtype=np.int64)
    rows = np.zeros((ticks + 1, 2))
    buffer = np.zeros(room, dtype=[("time", "f8"), ("block", "i4"), ("crossing", "i4")])
    record = contract.bl_record(
        pick=pick.ctypes.data_as(POINTER(c_int64)),
        count=1,
        every=1,
        out=rows.ctypes.data_as(POINTER(c_double)),
        capacity=ticks + 1,
        events=cast(buffer.ctypes.data, POINTER(contract.bl_event)),
        event_capacity=room,
    )
    with plan.instantiate() as instance:
        done, _ = instance.run(ticks, record)
        assert done == ticks
        assert instance.event_counts[1] == 0  # each tick was integrated with its events located
    found = buffer[: record.event_count]
    return found["time"][found["block"] == number]


def check_times(found: np.ndarray, exact: Any) -> None:
    assert len(found) == len(exact)
    assert np.abs(found - np.asarray(exact)).max() < 1e-10


def ball(restitution: float = 0.7, **options: Any) -> Diagram:
    d = Diagram("ball", **{"step": TICK, **options})
    g = d.add(Constant(-GRAVITY, unit="m/s2"), "g")
    bouncing = SecondOrderIntegrator(1.0, limits=(0.0, np.inf), restitution=restitution)
    d.output("height", d.add(bouncing, "ball", u=g)["position"])
    d.output("speed", bouncing["velocity"])
    return d


def list_bounces(restitution: float, rest_time: float = 1e-6) -> np.ndarray:
    """A fall of √(2 h / g), then flights of 2 v / g; each v is `restitution` times the last.

    The last impact is the one after which the flight would be shorter than the rest time.
    """
    times, v = [np.sqrt(2 / GRAVITY)], np.sqrt(2 * GRAVITY)
    while True:
        v *= restitution
        if 2 * v / GRAVITY < rest_time:
            return np.array(times)
        times.append(times[-1] + 2 * v / GRAVITY)


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("restitution", [0.0, 0.3, 0.7, 0.8])
def test_every_bounce_of_a_ball_until_it_rests(options, restitution):
    bounces = list_bounces(restitution)
    until = round(bounces[-1] + 0.5, 3)
    check_times(find_events(ball(restitution, **options), until, "ball"), bounces)
    result = simulate(ball(restitution, **options), until)
    rests = result.t > bounces[-1]
    assert rests.sum() > 400
    assert np.all(result["ball.position"][rests] == 0.0)
    assert np.all(result["ball.velocity"][rests] == 0.0)
    assert np.all(result["ball.at_limit"][rests] == -1)
    assert np.all(result["ball.at_limit"][result.t < bounces[-1]] == 0)


@pytest.mark.parametrize("options", SETTINGS)
def test_more_bounces_in_a_tick_than_allowed_end_in_rest(options):
    """With restitution 0.95 the last flights of a millisecond are 90, of which 32 are located."""
    d = ball(0.95, **options)
    with d.compile().instantiate() as instance:
        instance.run(25_000)
        assert instance.event_counts[1] == 1
        assert instance.get("ball.position") == instance.get("ball.velocity") == 0.0
    # It comes to rest after √(2 h / g) (1 + 2 e / (1 - e)) s, up to two ticks.
    end = np.sqrt(2 / GRAVITY) * (1 + 2 * 0.95 / 0.05)
    with pytest.warns(BiellaWarning, match="1 tick had more than max_events = 32 events"):
        result = simulate(d, 18.0)
    first = result.t[np.argmax(result["ball.at_limit"] == -1)]
    assert abs(first - end) < 2 * TICK
    assert np.all((result["ball.at_limit"] == -1) == (result.t >= first))


@pytest.mark.parametrize("options", SETTINGS)
def test_a_lift_departs_where_the_acceleration_turns(options):
    """u = 2 s with s = t - 0.5003 presses down until s = 0; then v = s² and x = s³ / 3.

    The upper limit, 8 / 3, is reached at s = 2 with u pressing: it rests there.
    """
    d = Diagram("lift", step=TICK, **options)
    push = d.add(Expression("2*(t - 0.5003)"), "push")
    d.add(SecondOrderIntegrator(limits=(0.0, 8 / 3)), "lift", u=push)
    check_times(find_events(d, 3.0, "lift"), [0.5003, 2.5003])
    result = simulate(d, 3.0)
    s = np.clip(result.t - 0.5003, 0.0, 2.0)
    assert result["lift.position"] == pytest.approx(s**3 / 3, abs=1e-12)
    assert list(result["lift.at_limit"][[0, 499, 600, 2499, 2600]]) == [-1, -1, 0, 0, 1]


@pytest.mark.parametrize("options", SETTINGS)
def test_limits_of_velocity_and_position(options):
    """u = 1: v = t to its limit 1.9995 at 1.9995 s; then x goes on at that speed to its limit, 0.

    From x = -5, that is after the rest of the way, 5 - 1.9995² / 2. Rebounds of half the speed:
    flights of 2 v = 1.9995, then half of that, and so on, since u = 1 leads back to the limit.
    """
    d = Diagram("limits", step=TICK, **options)
    top = 1.9995
    block = SecondOrderIntegrator(
        -5.0, limits=(-9.0, 0.0), velocity_limits=(-3.0, top), restitution=0.5
    )
    d.add(block, "x", u=d.add(Constant(1.0)))
    first = top + (5 - top**2 / 2) / top
    flights = top / 2.0 ** np.arange(30)
    later = np.cumsum(flights[flights > 1e-6])
    check_times(find_events(d, 9.0, "x"), [top, first, *(first + later)])


@pytest.mark.parametrize("options", SETTINGS)
def test_relay_oscillator(options):
    """x' = 1 from 0.3 until 1 at 0.7 s, then -1 until -1 two seconds later, and so on.

    The bounds are moved off the grid by 0.1 ms.
    """
    d = Diagram("relay", step=TICK, **options)
    x = d.add(Integrator(0.3), "x")
    relay = d.add(Relay(on=1.0001, off=-1.0001, high=-1.0, low=1.0), "relay", u=x)
    d.connect(relay, x)
    check_times(find_events(d, 20.0, "relay"), 0.7001 + 2.0002 * np.arange(10))


@pytest.mark.parametrize("options", SETTINGS)
def test_relay_with_a_lag(options):
    """x' = ±1 - x between ±0.3: x = 1 - (1 - x0) e⁻ᵗ reaches 0.3 after ln((1 - x0) / 0.7)."""
    d = Diagram("lag", step=TICK, **options)
    x = d.add(Integrator(), "x")
    relay = d.add(Relay(on=0.3, off=-0.3, high=-1.0, low=1.0), "relay", u=x)
    d.connect(d.add(Expression("r - x"), "f", r=relay, x=x), x)
    exact = np.log(1 / 0.7) + np.log(1.3 / 0.7) * np.arange(20)
    check_times(find_events(d, 12.5, "relay"), exact[exact < 12.5])


@pytest.mark.parametrize("options", SETTINGS)
def test_saturated_double_integrator(options):
    """x'' = -clip(x, -1, 1) from x = 1 + w² / 2 at rest, w = 2.0003.

    x = 1 + (w² - t²) / 2 until x = 1 at t = w with v = -w. Within ±1, x = cos s - w sin s until -1:
    cot(s / 2) = w, s = 2 atan(1 / w), again with v = -w. Outside, v changes by 1 per second, so
    that it is back after 2 w.
    """
    d = Diagram("saturated", step=TICK, **options)
    w = 2.0003
    x = SecondOrderIntegrator(1 + w**2 / 2)
    pull = d.add(Expression("-y"), "pull")
    d.connect(pull, d.add(x, "x"))
    d.connect(d.add(Saturation(-1.0, 1.0), "limit", u=x["position"]), pull)
    inside = 2 * np.arctan(1 / w)
    exact = w + np.concatenate([[0], np.cumsum([inside, 2 * w] * 6)])
    check_times(find_events(d, 20.0, "limit"), exact[exact < 20])


def test_switched_rc_circuit():
    """A comparator charges RC to 5 V from 1.7 V up to 3.3 V, then discharges it to 0 V."""
    rc = 0.0123
    d = Diagram("rc", step=TICK, **CONTROLLED)
    v = d.add(Integrator(), "v")
    on = d.add(Relay(on=3.3, off=1.7, high=0.0, low=5.0), "comparator", u=v)
    d.connect(d.add(Expression(f"(s - v) / {rc}"), "i", s=on, v=v), v)
    up, down = rc * np.log((5 - 1.7) / (5 - 3.3)), rc * np.log(3.3 / 1.7)
    first = rc * np.log(5 / (5 - 3.3))
    exact = first + np.concatenate([[0.0], np.cumsum([down, up] * 20)])
    check_times(find_events(d, 0.25, "comparator"), exact[exact < 0.25])


@pytest.mark.parametrize("options", SETTINGS)
def test_steps_and_pulses_off_the_grid(options):
    d = Diagram("sources", step=TICK, **options)
    for name, source in {
        "step": Step(at=0.1234567, to=2.0),
        "pulse": Pulse(period=0.0937, duty=0.31, delay=0.02113),
        "ramp": Ramp(at=0.3210123),
    }.items():
        d.add(Integrator(), f"x {name}", u=d.add(source, name))
    check_times(find_events(d, 1.0, "step"), [0.1234567])
    check_times(find_events(d, 1.0, "ramp"), [0.3210123])
    rises = 0.02113 + 0.0937 * np.arange(11)
    edges = np.sort(np.concatenate([rises, rises + 0.31 * 0.0937]))
    check_times(find_events(d, 1.0, "pulse"), edges[edges < 1.0])


KNOTS = np.array([0.0, 0.1003, 0.1003, 0.25, 0.3337, 0.4])
VALUES = np.array([0.0, 1.0, -2.0, 3.0, 3.0, 0.5])


def integrate_knots(t: np.ndarray, holds: bool, end: str) -> np.ndarray:
    """The integral of the pieces up to t, one after the other."""
    total = np.zeros_like(t)
    span = KNOTS[-1] - KNOTS[0]
    for turn in range(4 if end == "repeat" else 1):
        for a, b, p, q in zip(KNOTS, KNOTS[1:], VALUES, VALUES[1:], strict=False):
            if b > a:
                s = np.clip(t - turn * span, a, b) - a
                total += p * s if holds else p * s + (q - p) / (b - a) * s**2 / 2
    return total + (VALUES[-1] * np.maximum(t - KNOTS[-1], 0) if end in ("hold", "stop") else 0.0)


@pytest.mark.parametrize("options", [*SETTINGS, {"solver": "trapezoidal"}])
@pytest.mark.parametrize("interpolation", ["linear", "hold"])
@pytest.mark.parametrize("end", ["hold", "zero", "repeat", "stop"])
def test_recordings_are_integrated_piece_by_piece(options, interpolation, end):
    d = Diagram("playback", step=TICK, **options)
    d.add(Playback(KNOTS, VALUES, interpolation=interpolation, end=end), "p")
    d.add(Integrator(), "x", u=d["p"])
    until = 1.0 if end != "stop" else 0.4
    result = simulate(d, until)
    exact = integrate_knots(result.t, interpolation == "hold", end)
    assert result["x"] == pytest.approx(exact, abs=1e-13)
    found = find_events(d, min(until, 0.399), "p")
    # That on the grid, at 0.25 s, is decided at its tick.
    check_times(found, [0.1003, 0.3337])


def test_a_dense_recording_is_played_without_events():
    """Of 100 samples per tick none is an event; ticks are as exact as the integral of a line."""
    times = np.linspace(0.0, 0.1, 10_001)
    d = Diagram("dense", step=TICK)
    d.add(Playback(times, 2 * times), "p")
    d.add(Integrator(), "x", u=d["p"])
    d.add(Playback(times, 2 * times, interpolation="hold"), "h")
    d.add(Integrator(), "y", u=d["h"])
    assert len(find_events(d, 0.1, "p")) == 0
    assert len(find_events(d, 0.1, "h")) == 0
    result = simulate(d, 0.1)
    assert result["x"] == pytest.approx(result.t**2, abs=1e-14)
    assert result["y"] == pytest.approx(result.t * (result.t - TICK), abs=1e-14)


def integrate_table(block: Any, formula: str, **options: Any) -> Diagram:
    d = Diagram("table", step=TICK, **options)
    d.add(block, "f")
    d.connect(d.add(Expression(formula), "u"), "f")
    d.add(Integrator(), "x", u=d["f"])
    return d


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize(
    ("interpolation", "extrapolation", "exact"),
    [
        # u = 3 t - 1 passes the breakpoints -0.5, 0.201, 1.1015, and the middles between them.
        ("linear", "hold", [0.5 / 3, 1.201 / 3, 2.1015 / 3]),
        ("linear", "linear", [1.201 / 3]),
        ("nearest", "hold", [0.8505 / 3, 1.65125 / 3]),
        ("previous", "hold", [1.201 / 3, 2.1015 / 3]),
    ],
)
def test_breakpoints_of_a_table(options, interpolation, extrapolation, exact):
    points, values = np.array([-0.5, 0.201, 1.1015]), np.array([1.0, -1.0, 2.0])
    block = Lookup1D(
        points, values, interpolation=interpolation, extrapolation=extrapolation, events=True
    )
    d = integrate_table(block, "3*t - 1", **options)
    check_times(find_events(d, 1.0, "f"), exact)
    # Each piece is a line: the mean of its ends, just inside.
    ends = np.array([0.0, *exact, 1.0])
    middle = (ends[1:] + ends[:-1]) / 2
    u = 3 * middle - 1
    if interpolation == "linear":
        cell = np.clip(np.searchsorted(points, u) - 1, 0, 1)
        part = (u - points[cell]) / (points[cell + 1] - points[cell])
        if extrapolation == "hold":
            part = np.clip(part, 0, 1)
        y = values[cell] + part * (values[cell + 1] - values[cell])
    elif interpolation == "nearest":
        y = values[np.argmin(np.abs(u[:, None] - points), axis=1)]
    else:
        y = values[np.clip(np.searchsorted(points, u, side="right") - 1, 0, 2)]
    assert simulate(d, 1.0)["x"][-1] == pytest.approx(np.sum(y * np.diff(ends)), abs=1e-12)


@pytest.mark.parametrize("options", SETTINGS)
def test_breakpoints_of_a_table_of_two_inputs(options):
    """u1 = 2 t - 0.3005 passes x = 0, 0.5, 1 at 0.15025, 0.40025, 0.65025 s; u2 is 0.4."""
    d = Diagram("two", step=TICK, **options)
    table = Lookup2D([0.0, 0.5, 1.0], [0.0, 1.0], [[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]], events=True)
    one, two = d.add(Expression("2*t - 0.3005"), "u1"), d.add(Constant(0.4), "u2")
    d.add(table, "f", u1=one, u2=two)
    d.add(Integrator(), "x", u=d["f"])
    check_times(find_events(d, 1.0, "f"), [0.15025, 0.40025, 0.65025])
    # At u2 = 0.4 the table has 0.4, 1.2, 1.0 at its points; trapezoids in time.
    exact = 0.15025 * 0.4 + 0.25 * (0.4 + 1.2) / 2 + 0.25 * (1.2 + 1.0) / 2 + 0.34975 * 1.0
    assert simulate(d, 1.0)["x"][-1] == pytest.approx(exact, abs=1e-12)


def test_a_table_is_left_at_its_end():
    """With events a step that is tried beyond the end does not fail; leaving the table does."""
    table = Lookup1D([0.0, 1.0], [0.0, 1.0], extrapolation="error", events=True)
    d = integrate_table(table, "1 - (t - 0.05)**2 + 1e-9")
    with pytest.raises(Exception, match="left the table") as caught:
        simulate(d, 1.0)
    # 1 is exceeded between 0.05 ± √1e-9 only, within a tick of the maximum.
    assert "0.05" in str(caught.value) or "0.049" in str(caught.value)


@pytest.mark.parametrize("options", SETTINGS)
def test_segments_of_a_motion(options):
    """A trapezoid of 1 m with 0.5 m/s and 2 m/s²: ends of segments at 0.25, 2, 2.25 s from `at`."""
    d = Diagram("motion", step=TICK, **options)
    motion = Trapezoid(1.0, 0.5, 2.0, at=0.0503)
    d.add(motion, "m")
    d.add(Integrator(), "v", u=motion["acceleration"])
    check_times(find_events(d, 2.5, "m"), 0.0503 + np.array([0.0, 0.25, 2.0, 2.25]))
    result = simulate(d, 2.5)
    assert result["v"] == pytest.approx(result["m.velocity"], abs=1e-13)


@pytest.mark.parametrize("options", SETTINGS)
def test_segments_of_a_cam(options):
    """At 2 rad/s a cam of rise 1.0005, dwell 2, return to 2π: ends at 0.50025, 1.50025, π s, …."""
    d = Diagram("cam", step=TICK, **options)
    cam = Cam([("3-4-5", 1.0005, 0.1), ("dwell", 2.0), ("cycloidal", 2 * np.pi - 3.0005, -0.1)])
    d.add(cam, "cam", angle=d.add(Expression("2*t", unit="rad"), "angle"))
    d.connect(d.add(Constant(2.0, unit="rad/s")), cam["speed"])
    d.add(Integrator(), "v", u=cam["acceleration"])
    ends = np.concatenate([np.pi * turn + np.array([0.50025, 1.50025, np.pi]) for turn in range(2)])
    check_times(find_events(d, 6.5, "cam"), ends)
    result = simulate(d, 6.5)
    assert result["v"] == pytest.approx(result["cam.velocity"], abs=1e-9)


@pytest.mark.parametrize("options", SETTINGS)
def test_limits_of_a_state_feedback_and_the_cut_of_atan2(options):
    """y = clip(-2 x, ±1) turns where x = ±0.5; atan2(v, -1) jumps at v = 0."""
    d = Diagram("branches", step=TICK, **options)
    x = d.add(Expression("t - 1.00005"), "x")
    d.add(StateFeedback([[2.0]], limits=(-1.0, 1.0)), "k", state=x)
    d.add(Integrator(), "i", u=d["k"])
    check_times(find_events(d, 2.0, "k"), [0.50005, 1.50005])
    angle = d.add(Function("atan2"), "angle")
    d.connect(d.add(Expression("0.80005 - t"), "v"), angle["u1"])
    d.connect(d.add(Constant(-1.0)), angle["u2"])
    d.add(Integrator(), "j", u=angle)
    d.add(Expression("atan2(0.80005 - t, -1)"), "formula")
    d.add(Integrator(), "l", u=d["formula"])
    check_times(find_events(d, 2.0, "angle"), [0.80005])
    check_times(find_events(d, 2.0, "formula"), [0.80005])
    result = simulate(d, 2.0)

    # ∫ atan2(v, -1) dv = π v - v atan v + ln(1 + v²) / 2 above the cut, odd in v.
    def area(v: float) -> float:
        return np.pi * v - v * np.arctan(v) + np.log1p(v * v) / 2

    exact = area(0.80005) - area(2.0 - 0.80005)
    assert result["j"][-1] == pytest.approx(exact, abs=1e-11)
    assert result["l"][-1] == pytest.approx(exact, abs=1e-11)


def add_sine(d: Diagram, omega: float, from_state: bool) -> Any:
    """Return sin(ω t), as a source or as a state."""
    if not from_state:
        return d.add(Sine(frequency=omega / (2 * np.pi)), "u")
    s = SecondOrderIntegrator(0.0, omega)
    pull = d.add(Expression(f"-{omega * omega!r}*s"), "pull")
    d.connect(pull, d.add(s, "oscillator"))
    d.connect(s["position"], pull)
    return s["position"]


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("from_state", [False, True])
def test_reversals_of_a_backlash(options, from_state):
    """A play of 0.4 around y = 0 is crossed where sin = 0.2; y follows up to the maximum.

    It stands until u is 0.4 below, follows down to the minimum, stands until u is 0.4 above, and so
    on. The rate of u is found to (δ ω)² / 6 by a difference over δ = 1 µs, so the reversal to
    δ² ω / 6 = 1e-12 s; rounding of u over δ ω² is 1e-11 s.
    """
    omega = 3.0
    d = Diagram("play", step=TICK, **options)
    d.add(Backlash(0.4), "play", u=add_sine(d, omega, from_state))
    d.add(Integrator(), "x", u=d["play"])
    first, later = np.arcsin(0.2), np.pi / 2 + np.arccos(0.6) + np.pi * np.arange(5)
    turns = np.pi / 2 + np.pi * np.arange(5)
    exact = np.sort([first, *turns, *later]) / omega
    check_times(find_events(d, 4.9, "play"), exact[exact < 4.9])

    # y = sin - 0.2 up to 0.8, which is held until sin = 0.6; then sin + 0.2 down to -0.8.
    def area(a: float, b: float, shift: float) -> float:
        return (np.cos(a) - np.cos(b)) / omega + shift * (b - a) / omega

    top, free, bottom = np.pi / 2, np.pi / 2 + np.arccos(0.6), 3 * np.pi / 2
    whole = area(first, top, -0.2) + 0.8 * (free - top) / omega + area(free, bottom, 0.2)
    result = simulate(d, 1.571)
    rest = 1.571 - bottom / omega
    assert result["x"][-1] == pytest.approx(whole - 0.8 * rest, abs=1e-11)


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("from_state", [False, True])
def test_departures_of_a_rate_limiter(options, from_state):
    """y follows sin x, x = ω t, at most with half its largest rate.

    y = x / 2 until it meets sin x; it follows until cos x = -1/2, x = 2π / 3, then falls along a
    line until it meets sin x on the way up, where that is too fast: it rises along a line.
    """
    omega = 3.0
    d = Diagram("rate", step=TICK, **options)
    d.add(RateLimiter(omega / 2), "limited", u=add_sine(d, omega, from_state))
    d.add(Integrator(), "x", u=d["limited"])

    def meet(start: float, slope: float, low: float, high: float) -> float:
        y = np.sin(start)
        return float(
            brentq(lambda x: y + slope * (x - start) - np.sin(x), low, high, xtol=1e-15, rtol=1e-15)
        )

    one = meet(0.0, 0.5, 1.5, 2.5)
    two = 2 * np.pi / 3
    three = meet(two, -0.5, 4.0, 6.0)
    four = meet(three, 0.5, three + 1.5, three + 4.0)
    assert np.cos(three) > 0.5  # it does not follow there,
    assert np.cos(four) < -0.5  # nor there
    exact = np.array([one, two, three, four]) / omega
    check_times(find_events(d, 2.95, "limited"), exact)
    result = simulate(d, 2.0)

    def line(a: float, b: float, slope: float) -> float:
        return (np.sin(a) * (b - a) + slope * (b - a) ** 2 / 2) / omega

    whole = line(0.0, one, 0.5) + (np.cos(one) - np.cos(two)) / omega + line(two, three, -0.5)
    assert result["x"][-1] == pytest.approx(whole + line(three, 2.0 * omega, 0.5), abs=1e-11)


def test_rate_limiter_and_backlash_in_a_loop():
    """x'' = -4 y - 0.3 x', where y is x through both: the order of rk4 is kept.

    Reference: steps 64 times smaller than the smaller ones.
    """

    def end(step: float) -> float:
        d = Diagram("loop", step=step)
        x = d.add(Integrator(1.0), "x")
        v = d.add(Integrator(), "v")
        y = d.add(RateLimiter(0.6), "rate", u=d.add(Backlash(0.1, 1.0), "play", u=x))
        d.connect(d.add(Expression("-4*y - 0.3*v"), "f", y=y, v=v), v)
        d.connect(v, x)
        return float(simulate(d, 6.4)["x"][-1])

    exact = end(0.1 / 512)
    errors = [abs(end(0.1 / n) - exact) for n in (1, 8)]
    assert np.log2(errors[0] / errors[1]) / 3 > 3.5


@pytest.mark.parametrize("options", SETTINGS)
def test_the_first_sample_of_a_delay(options):
    """Of a constant 2 through a delay of 12.3 ms, 1 comes before."""
    d = Diagram("delay", step=TICK, **options)
    d.add(TransportDelay(0.0123, initial=1.0), "delay", u=d.add(Sine(0.0, bias=2.0)))
    d.add(Integrator(), "x", u=d["delay"])
    check_times(find_events(d, 0.1, "delay"), [0.0123])
    result = simulate(d, 0.1)
    exact = result.t + np.maximum(result.t - 0.0123, 0.0)
    assert result["x"] == pytest.approx(exact, abs=1e-14)


ORDERED: dict[str, Callable[[Diagram, float], Any]] = {
    "playback": lambda d, shift: d.add(
        Playback(np.array([-1, 0.7, 0.7, 2.3, 3.1, 9]) + shift, [0, 2, -1, 1, 0.5, 1.5])
    ),
    "lookup": lambda d, shift: d.add(
        Lookup1D([-0.6, 0.1, 0.5], [0.0, 3.5, -2.5], events=True),
        u=d.add(TransferFunction([1.0], [1.0, 1.0]), u=d.add(Sine(frequency=0.2, phase=shift))),
    ),
    "backlash": lambda d, shift: d.add(
        Backlash(0.3),
        u=d.add(TransferFunction([3.0], [1.0, 1.0]), u=d.add(Sine(frequency=0.3, phase=shift))),
    ),
    "rate limiter": lambda d, shift: d.add(
        RateLimiter(0.8),
        u=d.add(TransferFunction([3.0], [1.0, 1.0]), u=d.add(Sine(frequency=0.3, phase=shift))),
    ),
    "motion": lambda d, shift: d.add(Trapezoid(20.0, 8.0, 9.0, at=shift))["acceleration"],
}


@pytest.mark.parametrize("name", ORDERED)
def test_the_order_is_kept_across_knots(name):
    """y' = sin(3 w) - y, w' = p: no method integrates it exactly.

    Reference: dopri5 at a step 16 times smaller than the smallest compared. The error of a step
    depends on where the events lie in it: the mean over several places, and a line through four
    steps.
    """

    def end(shift: float, step: float, solver: str) -> float:
        d = Diagram("order", step=step, solver=solver)
        w = d.add(Integrator(), "w", u=ORDERED[name](d, shift))
        y = d.add(Integrator(), "y")
        d.connect(d.add(Expression("sin(3*w) - y"), "f", w=w, y=y), y)
        return float(simulate(d, 6.0)["y"][-1])

    shifts, parts = np.linspace(0.1, 0.4, 7), (4, 8, 16, 32)
    exact = [end(shift, 0.3 / 512, "dopri5") for shift in shifts]
    for solver, order in (("rk4", 4), ("dopri5", 5)):
        errors = [
            np.mean([abs(end(a, 0.3 / n, solver) - b) for a, b in zip(shifts, exact, strict=True)])
            for n in parts
        ]
        assert -np.polyfit(np.log(parts), np.log(errors), 1)[0] > order - 0.35, solver


def test_events_at_ticks_give_the_numbers_of_before():
    """Held samples at ticks; a linear jump on the grid is short by a sixth of step · height."""
    d = Diagram("tick", step=TICK, events="tick")
    d.add(Playback(KNOTS, VALUES, interpolation="hold"), "held")
    d.add(Integrator(), "x", u=d["held"])
    d.add(Playback([0.0, 0.1, 0.1, 1.0], [1.0, 1.0, 0.0, 0.0]), "jump")
    d.add(Integrator(), "y", u=d["jump"])
    result = simulate(d, 0.4)
    held = VALUES[np.searchsorted(KNOTS, result.t + 1e-9, side="right") - 1]
    exact = np.concatenate([[0.0], np.cumsum(held[:-1]) * TICK])
    assert result["x"] == pytest.approx(exact, abs=1e-14)
    assert result["y"][-1] == pytest.approx(0.1 - TICK / 6, abs=1e-13)

    d = Diagram("nonlinear", step=TICK, events="tick")
    wave = d.add(Sine(frequency=3.0), "u")
    d.add(Integrator(), "play x", u=d.add(Backlash(0.4), "play", u=wave))
    d.add(Integrator(), "rate x", u=d.add(RateLimiter(9.0), "rate", u=wave))
    result = simulate(d, 1.0)
    y, z = 0.0, result["u"][0]
    for n, u in enumerate(result["u"]):
        y = min(max(y, u - 0.2), u + 0.2)
        z = min(max(u, z - 9.0 * TICK), z + 9.0 * TICK)
        assert result["play"][n] == pytest.approx(y, abs=1e-12)
        assert result["rate"][n] == pytest.approx(z, abs=1e-12)

    rough = simulate(ball(events="tick"), 4.0)
    assert np.abs(rough["ball.position"]).min() >= 0.0
    assert rough["ball.position"][-1] == 0.0  # flights of a few ticks end in rest
    assert rough["ball.velocity"][-1] == 0.0


@pytest.mark.parametrize("options", [*SETTINGS, {"solver": "radau5", "tolerance": 1e-10}])
def test_save_and_restore_at_events_bit_for_bit(options):
    """Saved right at bounces, at rest, at knots, and in between."""
    d = ball(**options)
    d.add(Playback(KNOTS, VALUES, end="repeat"), "p")
    d.add(Integrator(), "x", u=d["p"])
    table = d.add(Lookup1D([-0.1, 0.0, 0.2], [0.0, 1.0, 0.0], events=True), "table", u=d["x"])
    d.add(Integrator(), "y", u=table)
    wave = add_sine(d, 9.0, True)
    d.add(Integrator(), "play x", u=d.add(Backlash(0.4), "play", u=wave))
    d.add(Integrator(), "rate x", u=d.add(RateLimiter(4.5), "rate", u=wave))
    plan = d.compile()
    bounces = list_bounces(0.7)
    with Instance(plan) as one, Instance(plan) as two:
        one.initialize()
        two.initialize()
        for time in (*bounces[:3], bounces[-1], bounces[-1] + 1e-9, 2.5, 2.6003):
            one.run_to(float(time))
            two.restore(one.save())
            for instance in (one, two):
                instance.run_to(float(time) + 0.0117)
            assert one.save() == two.save()


def test_linearize_keeps_modes():
    """At rest a pressed position does not answer to its input; in flight it does."""
    from biella import linearize

    def matrix(start: float) -> np.ndarray:
        d = Diagram("linear", step=TICK)
        u = d.input("u", default=-1.0)
        block = SecondOrderIntegrator(start, limits=(0.0, 2.0))
        d.output("x", d.add(block, "x", u=u)["position"])
        return np.asarray(linearize(d).B)

    assert matrix(0.0) == pytest.approx(np.zeros((2, 1)))
    assert matrix(1.0).ravel() == pytest.approx([0.0, 1.0])


def test_cam_laws_end_where_they_should():
    d = Diagram("law", step=TICK)
    law = CamLaw("modified trapezoid", 0.3, 0.5, at=0.1007)
    d.add(law, "law")
    d.add(Integrator(), "v", u=law["acceleration"])
    d.add(Integrator(), "s", u=d["v"])
    result = simulate(d, 1.0)
    # On its sines, of ω = 4π / 0.5 s, Simpson's rule is off by (ω h)⁴ / 2880 = 1.4e-10 of 0.3.
    assert result["s"][-1] == pytest.approx(0.3, abs=5e-11)
