"""Motions: ends, bounds, closed forms, and derivatives that belong to the positions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from biella import Diagram, DiagramError, simulate
from biella.blocks import (
    Cam,
    CamLaw,
    Constant,
    Integrator,
    MinimumJerk,
    Pulse,
    Ramp,
    SCurve,
    Trapezoid,
)

pytestmark = pytest.mark.engine

STEP = 1e-4
MOTIONS: dict[str, Callable[[], Any]] = {
    "trapezoid": lambda: Trapezoid(0.5, 0.8, 5.0, before=0.1, at=0.05, unit="m"),
    "short trapezoid": lambda: Trapezoid(-0.1, 0.8, 5.0, deceleration=2.0),
    "s-curve": lambda: SCurve(0.5, 0.8, 5.0, 80.0, before=0.1, at=0.05),
    "s-curve without full velocity": lambda: SCurve(0.3, 8.0, 5.0, 80.0),
    "s-curve without full acceleration": lambda: SCurve(0.3, 0.2, 50.0, 80.0),
    "s-curve with neither": lambda: SCurve(-0.01, 8.0, 50.0, 80.0, before=0.02),
    "minimum jerk": lambda: MinimumJerk(0.3, 0.7, before=-0.2),
    **{law: partial(CamLaw, law, 0.3, 0.6) for law in
       ("cycloidal", "modified sine", "modified trapezoid", "3-4-5", "4-5-6-7")},
}  # fmt: skip
EVERY = pytest.mark.parametrize("make", MOTIONS.values(), ids=MOTIONS)


def run(block, until=None, step=STEP, **inputs):
    d = Diagram("motion", step=step)
    d.add(block, name="m")
    for name, source in inputs.items():
        d.connect(d.add(source), block[name])
    result = simulate(d, until or 1.2 * block.duration + 0.06, record=["*"])
    return result.t, {port.name: result[f"m.{port.name}"] for port in block.outputs}


def value(block, name):
    return float(next(p.value for p in block.parameters if p.name == name))


@EVERY
def test_ends_are_exact(make):
    """At rest at both ends, exactly where it was told to be; and continuous on the way there."""
    block = make()
    t, m = run(block)
    at, before = value(block, "at"), value(block, "before")
    end = value(block, "to")
    stood, stands = t < at, t >= at + block.duration
    assert stands.any()
    assert (m["position"][stood] == before).all() and (m["position"][stands] == end).all()
    for name in ("velocity", "acceleration"):
        assert (m[name][stood] == 0.0).all() and (m[name][stands] == 0.0).all()
    last = np.flatnonzero(~stands)[-1]
    assert abs(m["position"][last] - end) < 1e-6 and abs(m["velocity"][last]) < 6 * STEP


@EVERY
def test_derivatives_belong_to_the_position(make):
    """Integrals by the trapezoidal rule; at a jump its error is half the jump times a step."""
    _, m = run(make())
    names = [n for n in ("position", "velocity", "acceleration", "jerk") if n in m]
    for lower, upper in pairwise(names):
        integral = np.concatenate([[0.0], np.cumsum(0.5 * (m[upper][1:] + m[upper][:-1]) * STEP)])
        largest = np.abs(m[upper]).max()
        np.testing.assert_allclose(
            m[lower] - m[lower][0], integral, rtol=0, atol=6 * STEP * largest
        )


def test_segments_meet():
    """Position, velocity and bounded jerk's acceleration never step by more than their slope."""
    for make in MOTIONS.values():
        _, m = run(make(), step=1e-5)
        for lower, upper in (("position", "velocity"), ("velocity", "acceleration")):
            assert np.abs(np.diff(m[lower])).max() <= 1.0001e-5 * np.abs(m[upper]).max()
        if "jerk" in m:
            assert np.abs(np.diff(m["acceleration"])).max() <= 1.0001e-5 * np.abs(m["jerk"]).max()


@pytest.mark.parametrize(
    "bounds", [(0.8, 5.0, 80.0), (8.0, 5.0, 80.0), (0.2, 50.0, 80.0), (8.0, 50.0, 80.0)]
)
def test_s_curve_keeps_its_bounds_and_is_the_fastest(bounds):
    """Each bound is kept; and no feasible sequence of bounded jerks gets there sooner.

    Linear programming finds the largest distance from rest to rest in a given time with these
    bounds on a grid. In the time of the S-curve it is the S-curve's distance.
    """
    v, a, j = bounds
    block = SCurve(0.3, v, a, j)
    _, m = run(block)
    for name, bound in (("velocity", v), ("acceleration", a), ("jerk", j)):
        assert np.abs(m[name]).max() <= bound * (1 + 1e-9)
    count = 200
    h = block.duration / count
    # acceleration, velocity, position after each step of constant jerk
    n = np.arange(count)
    later = (n[:, np.newaxis] - n).clip(-1)  # steps since a jerk began, -1 before
    past = later >= 0
    speed_up = past * h
    speed = past * h**2 * (later + 0.5)
    place = past * h**3 * (later**2 / 2 + later / 2 + 1 / 6)
    found = linprog(
        -place[-1],
        A_ub=np.vstack([speed_up, -speed_up, speed]),
        b_ub=np.concatenate([np.full(2 * count, a), np.full(count, v)]),
        A_eq=np.vstack([speed_up[-1], speed[-1]]), b_eq=[0, 0], bounds=(-j, j),
    )  # fmt: skip
    assert -found.fun == pytest.approx(0.3, rel=2e-3)


def test_trapezoid_takes_the_time_of_its_closed_form():
    """d / v + v / a with a flat top, 2 sqrt(d / a) without."""
    assert Trapezoid(2.0, 1.0, 4.0).duration == pytest.approx(2.0 + 0.25)
    assert Trapezoid(1.0, 9.0, 4.0).duration == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("law", "velocity", "acceleration", "jerk"),
    [  # over lift / duration^n: the peaks that handbooks of cam design list for double dwell
        ("cycloidal", 2.0, 2 * np.pi, 4 * np.pi**2),
        ("modified sine", 4 * np.pi / (4 + np.pi), None, 16 * np.pi**3 / (4 + np.pi)),
        ("modified trapezoid", 2.0, 8 * np.pi / (2 + np.pi), 32 * np.pi**2 / (2 + np.pi)),
        ("3-4-5", 1.875, 10 / np.sqrt(3), 60.0),
        ("4-5-6-7", 2.1875, 84 * np.sqrt(5) / 25, 52.5),
    ],
)
def test_laws_have_their_published_peaks(law, velocity, acceleration, jerk):
    _, m = run(CamLaw(law, 1.0, 1.0))
    wanted = {
        "velocity": velocity,
        "acceleration": acceleration or 4 * np.pi**2 / (4 + np.pi),
        "jerk": jerk,
    }
    for name, peak in wanted.items():
        assert np.abs(m[name]).max() == pytest.approx(peak, rel=1e-5)
    # Symmetric: half way at half time.
    assert m["position"][5000] == pytest.approx(0.5, abs=1e-15)


def test_minimum_jerk_has_the_least_jerk():
    """∫ jerk² dt is 720 d² / T⁵; the other laws have more."""
    for law in ("cycloidal", "modified sine", "modified trapezoid", "4-5-6-7"):
        _, other = run(CamLaw(law, 0.3, 0.6))
        assert np.sum(other["jerk"] ** 2) * STEP > 720 * 0.3**2 / 0.6**5 * 1.05
    _, m = run(MinimumJerk(0.3, 0.6))
    assert np.sum(m["jerk"] ** 2) * STEP == pytest.approx(720 * 0.3**2 / 0.6**5, rel=1e-3)


def test_triggered_motion_starts_with_its_signal_and_goes_on_by_the_same_distance():
    block = CamLaw("cycloidal", 1.5, 0.1, before=0.5, trigger=True)
    pulse = Pulse(0.3, 0.2, delay=0.05, kind="boolean")
    t, m = run(block, 0.7, 1e-3, start=pulse)
    moving = (t > 0.0499) & (t < 0.1499) | (t > 0.3499) & (t < 0.4499) | (t > 0.6499)
    np.testing.assert_array_equal(m["moving"] == 1, moving)
    assert (m["position"][t < 0.05] == 0.5).all()
    assert (m["position"][(t > 0.1501) & (t < 0.3499)] == 1.5).all()
    assert (m["position"][(t > 0.4501) & (t < 0.6499)] == 2.5).all()


def test_trigger_during_a_motion_is_passed_over():
    block = CamLaw("cycloidal", 1.0, 0.1, trigger=True)
    t, m = run(block, 0.19, 1e-3, start=Pulse(0.02, 0.5, kind="boolean"))
    _, once = run(CamLaw("cycloidal", 1.0, 0.1), 0.19, 1e-3)
    np.testing.assert_allclose(
        m["position"][t < 0.1], once["position"][t < 0.1], rtol=0, atol=1e-14
    )


TURN = [("modified sine", 2.0, 0.03), ("dwell", 1.0), ("cycloidal", 2.2, -0.03)]


def test_cam_is_its_laws_over_the_angle():
    """At constant speed a cam is the same motion as the law over time, derivatives included."""
    speed = 5.0
    block = Cam([*TURN, ("dwell", 2 * np.pi - 5.2)], before=0.01, unit="m")
    t, m = run(
        block,
        4 * np.pi / speed,
        angle=Ramp(speed, unit="rad"),
        speed=Ramp(0, before=speed, unit="rad/s"),
    )
    _, rise = run(CamLaw("modified sine", 0.04, 2.0 / speed, before=0.01), t[-1])
    first = t < 3.0 / speed
    for name in ("position", "velocity", "acceleration", "jerk"):
        scale = np.abs(rise[name]).max()
        np.testing.assert_allclose(m[name][first], rise[name][first], rtol=0, atol=1e-9 * scale)
    turn = 2 * np.pi / speed
    np.testing.assert_allclose(
        np.interp(t + turn, t, m["position"])[t < turn], m["position"][t < turn], rtol=0, atol=1e-6
    )
    assert m["position"][-2] == pytest.approx(0.01)


def test_cam_of_an_accelerating_shaft():
    """Velocity and acceleration are the derivatives of the position over time."""
    block = Cam([("cycloidal", np.pi, 1.0), ("3-4-5", np.pi, 0.5)])
    d = Diagram("cam", step=1e-4)
    d.add(block, name="m")
    omega, theta = d.add(Integrator(2.0), name="omega"), d.add(Integrator(), name="theta")
    alpha = d.add(Constant(3.0, unit="rad/s2"), name="alpha")
    d.connect(alpha, omega, block["angular_acceleration"])
    d.connect(omega, theta, block["speed"])
    d.connect(theta, block["angle"])
    r = simulate(d, 3.0, record=["*"])
    for lower, upper in (
        ("position", "velocity"),
        ("velocity", "acceleration"),
        ("acceleration", "jerk"),
    ):
        slope = np.gradient(r[f"m.{lower}"], 1e-4)
        off = np.abs(slope - r[f"m.{upper}"])
        assert np.quantile(off, 0.999) < 2e-4 * np.abs(r[f"m.{upper}"]).max()
    # An indexing cam: 1.5 further each turn.
    assert r["m.position"][-1] > 1.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Trapezoid(1, -1, 1), "`velocity` is one positive number; got -1"),
        (lambda: SCurve(1, 1, 1, 0), "`jerk` is one positive number; got 0"),
        (lambda: CamLaw("cycloidal", 1, 0), "`duration` is one positive number"),
        (lambda: CamLaw("cycloid", 1, 1), "no law 'cycloid'. Did you mean `cycloidal`"),
        (lambda: MinimumJerk(0, 1), "got 0 for both"),
        (lambda: Trapezoid(1, 1, 1, at=1, trigger=True), "at `at` or by a trigger"),
        (lambda: Cam(TURN), "make 2π rad together, not 5.2: add 62.0"),
        (lambda: Cam([("dwell", 1, 2)]), r"is \(law, angle, lift\) or"),
    ],
)
def test_wrong_parameters_are_refused(make, message):
    with pytest.raises(DiagramError, match=message):
        make()
