"""Friction that sticks in several joints at once, with limits from reactions.

Against the rule of two fingers below a ruler, Newton and Euler's equations of a slider-crank
in scipy, the same mechanisms with joints that are locked, and against conditions under which rigid
bodies have no solution.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, root

from biella import BiellaWarning, BlockError, Diagram, simulate
from biella.blocks.multibody import Joint, System

from ...events import diagram_of, internal, locate

pytestmark = pytest.mark.engine

G = 9.81
RULER, LEFT, RIGHT = 0.3, -0.3, 0.45  # kg, m


def ruler(speed: float, coefficient: float, static: float) -> System:
    """A ruler on two fingers that drivers move towards each other."""
    s = System("ruler", planar=True, gravity=(0, -G))
    body = s.body("ruler", mass=RULER, inertia=0.02)
    for name, at, way in (("left", LEFT, speed), ("right", RIGHT, -speed)):
        finger = s.body(f"{name} hand", mass=0.1, inertia=0.1, position=(at, 0), velocity=(way, 0))
        pad = s.body(f"{name} pad", mass=0.1, inertia=0.1, position=(at, 0), velocity=(way, 0))
        arm = s.prismatic(f"{name} arm", s.ground, finger, at=(at, 0), axis=(1, 0))
        s.driver(f"{name} motor", arm, f"{way}*t")
        s.revolute(f"{name} wrist", finger, pad, at=(at, 0))
        slide = s.prismatic(f"{name} slide", pad, body, at=(at, 0), axis=(1, 0))
        s.friction(name, slide, coefficient=coefficient, static=static, length=0.02, middle="first")
    return s


def ruler_events(speed: float, mu: float, static: float, count: int) -> tuple[list[float], str]:
    """Times of events, and which finger holds the ruler after each: l, r or none (-).

    The fingers press with m g (x_r - x) / (x_r - x_l) and the rest. With both sliding,
    x'' = μ g (x_l + x_r - 2 x) / (x_r - x_l). A finger holds from where the ruler has its speed, to
    where the other's friction exceeds its static friction: μ N_other = static N.
    """

    def fingers(t: float) -> tuple[float, float]:
        return LEFT + speed * t, RIGHT - speed * t

    def slope(t: float, x: Any) -> list[float]:
        left, right = fingers(t)
        return [x[1], mu * G * (left + right - 2 * x[0]) / (right - left)]

    times: list[float] = []
    t, state, held = 0.0, np.zeros(2), ""
    while len(times) < count:
        ends: Any = [lambda _, x: x[1] - speed, lambda _, x: x[1] + speed]
        for k, end in enumerate(ends):
            end.terminal, end.direction = True, 1 - 2 * k
        found = solve_ivp(
            slope, (t, t + 5), state, method="DOP853", rtol=1e-13, atol=1e-14, events=ends
        )
        t, state = found.t[-1], found.y[:, -1]
        which = 0 if found.t_events[0].size else 1
        times.append(t)
        held += "lr"[which]
        place, since, way = state[0], t, (speed, -speed)[which]

        def spare(t: float, w: int = which, x: float = place, s: float = since) -> float:
            near = (x + (speed, -speed)[w] * (t - s) - fingers(t)[0]) / np.diff(fingers(t))[0]
            loads = (1 - near, near)
            return static * loads[w] - mu * loads[1 - w]

        assert spare(t) > 0
        until = 0.999 * (RIGHT - LEFT) / 2 / speed
        if spare(until) > 0:
            break
        end = brentq(spare, t, until, xtol=1e-15, rtol=1e-14)
        times.append(end)
        held += "-"
        state = np.array([place + way * (end - t), way])
        t = end
    return times, held


@pytest.mark.parametrize("make", [diagram_of, internal])
def test_two_fingers_below_a_ruler_slide_in_turns(make):
    speed, mu, static = 0.02, 0.3, 0.45
    expected, held = ruler_events(speed, mu, static, 8)
    assert held == "l-r-l-r-" or held == "r-l-r-l-"
    s = ruler(speed, mu, static)
    names = ["left.sticks", "right.sticks", "ruler.velocity", "left.load", "right.load"]
    until = np.ceil(expected[-1] * 10) / 10
    if make is diagram_of:
        found = locate(diagram_of(s), until)
        assert found.times[: len(expected)] == pytest.approx(expected, abs=1e-10)
        assert found.unlocated == 0
    result = simulate(make(s, names), until)
    if make is internal:
        times = [event.time for event in result.events]
        assert times[: len(expected)] == pytest.approx(expected, abs=1e-9)
    t = result.t
    left, right = (result[f"plant.{name}.sticks"] != 0 for name in ("left", "right"))
    borders = [0.0, *expected, until]
    for k, (start, end) in enumerate(pairwise(borders[:-1])):
        inside = (t > start) & (t < end)
        holds = "-" + held
        assert (left[inside] == (holds[k] == "l")).all()
        assert (right[inside] == (holds[k] == "r")).all()
    # While one holds, the ruler has its speed.
    moved = result["plant.ruler.velocity"][:, 0]
    assert moved[left] == pytest.approx(np.full(left.sum(), speed), abs=1e-12)
    assert moved[right] == pytest.approx(np.full(right.sum(), -speed), abs=1e-12)
    # The closed form of slow fingers: a turn ends where the distances are as μ is to static.
    weight = result["plant.left.load"] + result["plant.right.load"]
    assert weight == pytest.approx(np.full(t.size, RULER * G), rel=1e-9)


CRANK, ROD, OFF = 0.2, 0.6, 0.03  # m; the center of mass of the slider is off the guide
MASSES, INERTIAS = (1.0, 1.5, 2.0), (0.02, 0.05, 0.01)
MU, STATIC, SIZES = 0.2, 0.3, (0.06, 0.05, 0.15)  # two pins, a guide
START = 0.7


def engine(load: str | float, *, mu: float = MU, static: float = STATIC) -> System:
    """A slider-crank with friction in main bearing, crank pin and guide."""
    a, b = START, -np.arcsin(CRANK * np.sin(START) / ROD)
    pin = CRANK * np.array([np.cos(a), np.sin(a)])
    end = pin + ROD * np.array([np.cos(b), np.sin(b)])
    s = System("engine", planar=True, gravity=(0, -G))
    places = [pin / 2, (pin + end) / 2, end + np.array([0, OFF])]
    crank, rod, slider = (
        s.body(name, mass=mass, inertia=inertia, position=tuple(place), rotation=turn)
        for name, mass, inertia, place, turn in zip(
            ("crank", "rod", "slider"), MASSES, INERTIAS, places, (a, b, 0.0), strict=True
        )
    )
    main = s.revolute("main", s.ground, crank, at=(0, 0))
    big = s.revolute("big", crank, rod, at=tuple(pin))
    s.revolute("small", rod, slider, at=tuple(end))
    guide = s.prismatic("guide", s.ground, slider, at=tuple(end), axis=(1, 0))
    s.friction("f0", main, coefficient=mu, static=static, diameter=SIZES[0])
    s.friction("f1", big, coefficient=mu, static=static, diameter=SIZES[1])
    s.friction("f2", guide, coefficient=mu, static=static, length=SIZES[2])
    s.torque("load", main, load)
    return s


class Engine:
    """The same by Newton and Euler: nine equations of the free bodies, solved at each state."""

    def __init__(self, mu: float, torque: Any) -> None:
        self.mu, self.torque = mu, torque
        self.guess = np.zeros(9)

    def rates(self, a: float, w: float) -> tuple[float, float, float, float]:
        """Angle and rate of the rod, speed of the slider, second derivative of sin."""
        b = -np.arcsin(CRANK * np.sin(a) / ROD)
        w_rod = -CRANK * np.cos(a) * w / (ROD * np.cos(b))
        return b, w_rod, -CRANK * np.sin(a) * w - ROD * np.sin(b) * w_rod, 0.0

    def solve(self, t: float, a: float, w: float, way: tuple[float, float, float]) -> float:
        """θ'' of the crank, with friction against the directions `way`."""
        b, w_rod, *_ = self.rates(a, w)
        e_a, n_a = np.array([np.cos(a), np.sin(a)]), np.array([-np.sin(a), np.cos(a)])
        e_b, n_b = np.array([np.cos(b), np.sin(b)]), np.array([-np.sin(b), np.cos(b)])
        down = np.array([0.0, -G])

        def residual(x: Any) -> np.ndarray:
            alpha, A, B, C, (P, M) = x[0], x[1:3], x[3:5], x[5:7], x[7:9]
            # crank: A from the ground, -B to the rod; rod: B, -C to the slider; slider: C, P, M
            alpha_rod = (
                -CRANK * (alpha * np.cos(a) - w**2 * np.sin(a)) + ROD * w_rod**2 * np.sin(b)
            ) / (ROD * np.cos(b))
            at_pin = CRANK * (alpha * n_a - w**2 * e_a)
            at_end = at_pin + ROD * (alpha_rod * n_b - w_rod**2 * e_b)
            at_middle = at_pin + ROD / 2 * (alpha_rod * n_b - w_rod**2 * e_b)
            t0 = -way[0] * self.mu * SIZES[0] / 2 * np.hypot(*A)
            t1 = -way[1] * self.mu * SIZES[1] / 2 * np.hypot(*B)
            # The guide is in its middle at the pin: M is about that.
            f2 = -way[2] * self.mu * (abs(P) + 2 * abs(M) / SIZES[2])

            def cross(r: np.ndarray, f: np.ndarray) -> float:
                return float(r[0] * f[1] - r[1] * f[0])

            force = C + np.array([f2, P]) + MASSES[2] * down - MASSES[2] * at_end
            about_end = M + cross(np.array([0, OFF]), MASSES[2] * (down - at_end))
            return np.array([
                *(A - B + MASSES[0] * (down - at_pin / 2)),
                *(B - C + MASSES[1] * (down - at_middle)),
                *force,
                self.torque(t) + t0 - t1 - cross(CRANK * e_a, B)
                + cross(CRANK / 2 * e_a, MASSES[0] * (down - at_pin / 2)) - INERTIAS[0] * alpha,
                t1 - cross(ROD * e_b, C) + cross(ROD / 2 * e_b, MASSES[1] * (down - at_middle))
                - INERTIAS[1] * alpha_rod,
                about_end,
            ])  # fmt: skip

        for guess in (self.guess, np.full(9, 10.0), np.full(9, -10.0)):
            found = root(residual, guess, method="hybr", tol=1e-13)
            if np.abs(residual(found.x)).max() < 1e-8:
                self.guess = found.x
                return float(found.x[0])
        raise AssertionError(found)

    def directions(self, a: float, way: float) -> tuple[float, float, float]:
        """Signs of the rates of main, big and guide if the crank turns this way."""
        _, w_rod, slides, _ = self.rates(a, way)
        return np.sign(way), np.sign(w_rod - way), np.sign(slides)


def run_engine(
    s: System, until: float, mode: str, speed: float = 0.0
) -> tuple[np.ndarray, dict[str, np.ndarray], list[float]]:
    names = ["main.angle", "main.speed", "f0.sticks", "f1.sticks", "f2.sticks", "f0.torque"]
    names += ["f1.torque", "f2.force", "f0.load", "f1.load", "f2.load", "closure_rate"]
    d = Diagram("engine", step=1e-3, solver="dopri5", tolerance=1e-12)
    initial = {"main.speed": speed}
    d.add(s.block(outputs=names, mode=mode, initial=initial), name="plant")  # type: ignore[arg-type]
    result = simulate(d, until)
    shown = {name: result[f"plant.{name}"] for name in names}
    return result.t, shown, [event.time for event in result.events]


@pytest.mark.parametrize("mode", ["continuous", "internal"])
def test_a_slider_crank_slides_to_rest_as_by_newton_and_euler(mode):
    """It stops before a dead center, with all three joints at once, and stays there."""
    speed = 3.0
    exact = Engine(MU, lambda t: 0.0)
    stop: Any = lambda _, x: x[1]  # noqa: E731
    stop.terminal = True
    found = solve_ivp(
        lambda t, x: [x[1], exact.solve(t, x[0], x[1], exact.directions(x[0], 1.0))],
        (0, 2.0), [START, speed], method="DOP853", rtol=1e-11, atol=1e-12, events=stop,
    )  # fmt: skip
    assert found.t_events[0].size == 1
    time, angle = found.t_events[0][0], found.y_events[0][0][0]
    exact.mu = STATIC  # it would have to be accelerated backwards against static friction
    assert exact.solve(time, angle, 0.0, exact.directions(angle, -1.0)) > 0
    t, shown, events = run_engine(engine(0.0), np.ceil(time * 10) / 10 + 0.5, mode, speed)
    # Residuals of 1e-11 of the reference, and Runge–Kutta steps of 1 ms: h⁴ times 1e4.
    count = 3 if mode == "internal" else 1  # of one instant; internal steps name each joint
    assert events == pytest.approx([time] * count, abs=1e-8)
    rests = t >= time
    assert shown["main.angle"][rests] == pytest.approx(np.full(rests.sum(), angle), abs=1e-8)
    assert (shown["main.speed"][rests] == 0).all()
    for k, effort in enumerate(("torque", "torque", "force")):
        limit = (SIZES[0] / 2, SIZES[1] / 2, 1.0)[k] * shown[f"f{k}.load"]
        size = np.abs(shown[f"f{k}.{effort}"])
        assert np.array_equal(shown[f"f{k}.sticks"] != 0, rests)
        assert size[~rests] == pytest.approx(MU * limit[~rests], rel=1e-12)
        assert (size[rests] <= STATIC * limit[rests] * (1 + 1e-12)).all()
    assert shown["closure_rate"].max() < 1e-12


@pytest.mark.parametrize("mode", ["continuous", "internal"])
@pytest.mark.parametrize("way", [1, -1])
def test_a_slider_crank_breaks_away_where_all_its_joints_are_at_their_limits(mode, way):
    """At the limit the mechanism is about to slide: θ'' = 0 with static friction in all joints."""
    exact = Engine(STATIC, None)

    def accelerates(torque: float, way: int) -> float:
        exact.torque = lambda t: torque
        return exact.solve(0.0, START, 0.0, exact.directions(START, way))

    limits = {d: brentq(accelerates, -60.0, 60.0, args=(d,), xtol=1e-13) for d in (1, -1)}
    first, rate = (limits[1] + limits[-1]) / 2, 2.0
    breaks = abs(limits[way] - first) / rate
    assert breaks > 0.05  # it holds in between
    until = np.ceil(breaks * 100) / 100 + 0.1
    t, shown, events = run_engine(engine(f"{first!r} + {way * rate}*t"), until, mode)
    # The reference has residuals of 1e-8 N m at the most: 5e-9 s.
    assert events[-1] == pytest.approx(breaks, abs=1e-8)
    before, after = t < breaks, t > breaks
    for k in range(3):
        assert shown[f"f{k}.sticks"][before].all() and not shown[f"f{k}.sticks"][after].any()
    assert (shown["main.speed"][before] == 0).all()
    assert (np.abs(shown["main.speed"][after]) > 0).all()
    # Then it slides with less friction: from the first acceleration of the reference on.
    exact.mu = MU
    exact.torque = lambda t: first + way * rate * t
    found = solve_ivp(
        lambda t, x: [x[1], exact.solve(t, x[0], x[1], exact.directions(x[0], way))],
        (breaks, t[-1]), [START, 0.0], method="DOP853", rtol=1e-11, atol=1e-12,
    )  # fmt: skip
    assert shown["main.angle"][-1] == pytest.approx(found.y[0, -1], abs=1e-8)
    assert shown["main.speed"][-1] == pytest.approx(found.y[1, -1], abs=1e-7)


@pytest.mark.parametrize("mode", ["continuous", "internal"])
def test_with_very_much_friction_a_joint_is_locked(mode):
    """A double pendulum whose second pin cannot slide is one rigid body."""

    def swing(locked: bool) -> np.ndarray:
        s = System("double", planar=True, gravity=(0, -G))
        one = s.body("one", mass=1.0, inertia=0.1, position=(0.3, 0))
        two = s.body("two", mass=0.7, inertia=0.05, position=(0.6, -0.3))
        s.revolute("shoulder", s.ground, one, at=(0, 0))
        if locked:
            s.fixed("elbow", one, two, at=(0.6, 0))
        else:
            elbow = s.revolute("elbow", one, two, at=(0.6, 0))
            s.friction("rust", elbow, coefficient=1e6, static=1e6, diameter=0.05)
        d = Diagram("swing", step=1e-3)
        names = ["one.position", "two.position", "shoulder.speed", "shoulder.force"]
        d.add(s.block(outputs=names, mode=mode), name="plant")
        result = simulate(d, 2.0)
        return np.column_stack([result[f"plant.{name}"] for name in names])

    assert swing(False) == pytest.approx(swing(True), abs=1e-9)


def test_with_very_much_friction_an_engine_that_is_loaded_does_not_move():
    _, shown, events = run_engine(engine("50*sin(9*t)", mu=1e5, static=1e5), 1.0, "continuous")
    assert (shown["main.angle"] == shown["main.angle"][0]).all()
    assert (shown["main.speed"] == 0).all() and not events


def test_given_static_friction_and_friction_by_a_coefficient_in_one_mechanism():
    """A block on a block: the lower joint has a given limit, the upper one that of its weight."""
    s = System("stack", planar=True, gravity=(0, -G))
    a, b = (s.body(name, mass=2.0, inertia=0.1) for name in "ab")
    low = s.prismatic("low", s.ground, a, at=(0, 0), axis=(1, 0))
    high = s.prismatic("high", a, b, at=(0, 0), axis=(-1, 0))
    s.friction("given", low, coulomb=2.0, static=3.0)
    s.friction("weight", high, coefficient=0.15, static=0.2, length=0.1)
    s.force("push", b.marker("center"), ("5*t", 0))
    names = ["given.force", "weight.force", "low.speed", "high.speed"]
    result = simulate(diagram_of(s, names), 1.5)
    given, weight, slow, fast = (result[f"plant.{name}"] for name in names)
    t = result.t
    stuck = t < 0.6
    assert given[stuck] == pytest.approx(-5 * t[stuck], abs=1e-12)
    assert weight[stuck] == pytest.approx(5 * t[stuck], abs=1e-12)
    # Both move with (5 t - 2) / 4, until the upper joint carries 2.5 t + 1 = 0.2 m g.
    slips = (0.2 * 2.0 * G - 1.0) / 2.5
    both = (t > 0.6) & (t < slips)
    assert slow[both] == pytest.approx(((5 * t**2 - 4 * t) / 8 - (1.8 - 2.4) / 8)[both], abs=1e-11)
    assert weight[both] == pytest.approx((2.5 * t + 1)[both], abs=1e-11)
    assert (fast[t < slips] == 0).all() and (fast[t > slips + 0.01] < 0).all()
    assert weight[t > slips + 1e-3] == pytest.approx(0.15 * 2.0 * G, rel=1e-12)


def guide(arm: float, mu: float, speed: float) -> System:
    """A slider whose center of mass is off its guide: braking it tilts it, and so presses."""
    s = System("guide", planar=True, gravity=(0, 0))
    body = s.body("slider", mass=2.0, inertia=0.1, position=(0, arm), velocity=(speed, 0))
    slide = s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    s.friction("rub", slide, coefficient=mu, static=mu, length=0.2)
    s.force("side", body.marker("center"), (0, 10.0))
    return s


@pytest.mark.parametrize("make", [diagram_of, internal])
def test_a_guide_brakes_itself_up_to_the_paradox_of_painleve(make):
    """N = F + 2 |m x'' arm| / L and m x'' = -μ N: N = F / (1 - 2 μ arm / L), if it is positive."""
    result = simulate(make(guide(0.3, 0.3, 1.0), ["rub.load", "slide.acceleration"]), 0.01)
    load = 10.0 / (1 - 2 * 0.3 * 0.3 / 0.2)
    assert result["plant.rub.load"] == pytest.approx(np.full(11, load), rel=1e-10)
    assert result["plant.slide.acceleration"] == pytest.approx(-0.3 * load / 2.0, rel=1e-10)
    with pytest.raises(BlockError, match=r"friction `rub` in joint `slide`.* have no end"):
        simulate(make(guide(0.3, 0.34, 1.0), ["rub.load"]), 0.01)


@pytest.mark.parametrize("make", [diagram_of, internal])
def test_joints_at_rest_that_have_no_unique_way_to_slide_end_the_run(make):
    """Pulled in the axis of its guide, with the center of mass off it, beyond F_x = static F_y.

    N = F_y + 2 arm |F_x - μ N| / L: with 2 μ arm / L > 1 a slider that moves is accelerated, by
    N = (F_y + 2 arm F_x / L) / (1 + 2 μ arm / L), or else braked: both satisfy the equations.
    """
    for mu, unique in ((0.3, True), (0.4, False)):
        s = guide(0.3, mu, 0.0)
        s.force("pull", cast(Joint, s["slide"]), "100*t")
        d = make(s, ["rub.load", "slide.speed"])
        if unique:
            result = simulate(d, 0.1)
            pull = 100 * result.t[-1]
            load = (10 + 2 * 0.3 * pull / 0.2) / (1 + 2 * mu * 0.3 / 0.2)
            assert result["plant.rub.load"][-1] == pytest.approx(load, rel=1e-9)
        else:
            with pytest.raises(
                BlockError, match=r"friction `rub`.*has no unique solution at t = 0\.04"
            ):
                simulate(d, 0.1)


@pytest.mark.parametrize("make", [diagram_of, internal])
def test_a_guide_that_locks_itself_sticks_at_any_load(make):
    """Pushed at the end of a long arm: F ≤ μ 2 F arm / L for μ ≥ L / (2 arm)."""
    for mu, sticks in ((0.34, True), (0.33, False)):
        s = System("drawer", planar=True, gravity=(0, 0))
        body = s.body("slider", mass=2.0, inertia=0.1)
        slide = s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
        s.friction("rub", slide, coefficient=mu, static=mu, length=0.2)
        s.force("push", body.marker("handle", (0, 0.3)), ("1000*t", 0))
        speed = simulate(make(s, ["slide.speed"]), 0.1)["plant.slide.speed"]
        assert (speed == 0).all() == sticks


def test_redundant_joints_are_named_and_friction_follows_the_rule_of_sharing():
    """A shaft in two equal bearings: each takes half of the weight."""
    s = System("shaft", gravity=(0, -G, 0))
    shaft = s.body("shaft", mass=2.0, inertia=0.1)
    for k, z in enumerate((-0.5, 0.5)):
        pin = s.revolute(f"bearing{k}", s.ground, shaft, at=(0, 0, z), axis=(0, 0, 1))
        s.friction(f"rub{k}", pin, coefficient=0.1, static=0.2, diameter=0.05, length=0.1)
    s.torque("load", cast(Joint, s["bearing0"]), "0.1*t")
    names = ["rub0.load", "rub1.load", "rub0.torque", "rub1.torque", "rub0.sticks", "rub1.sticks"]
    with pytest.warns(BiellaWarning, match=r"friction `rub0`.* not unique.*redundant"):
        result = simulate(diagram_of(s, [*names, "bearing0.speed"]), 1.5)
    loads = [result[f"plant.rub{k}.load"] for k in range(2)]
    assert loads[0] == pytest.approx(loads[1], rel=1e-9)
    # They slide where the torque is that of all static friction: 0.2 · 0.025 · Σ N.
    breaks = 0.2 * 0.025 * (loads[0] + loads[1])[0] / 0.1
    moving = result["plant.bearing0.speed"] != 0
    assert np.array_equal(moving, result.t > breaks)


SHAKEN = "1.5 + 2*sin(9*t)"


def shake(until: float, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Angles and speeds of an engine that a torque shakes over a dead center of its guide."""
    block = {key: options.pop(key) for key in ("mode", "integrator") if key in options}
    d = Diagram("engine", step=1e-3, **options)
    d.add(engine(SHAKEN).block(outputs=["main.angle", "main.speed"], **block), name="plant")
    result = simulate(d, until)
    return result["plant.main.angle"], result["plant.main.speed"]


def test_a_joint_that_reverses_at_a_dead_center_does_not_stop_the_mechanism():
    """All solvers agree, those that change modes at ticks to what an event late by a tick makes."""
    angle, speed = shake(3.0, solver="dopri5", tolerance=1e-10)
    assert angle.max() > 0.1 > -0.1 > angle.min()  # it passes 0, where the guide reverses
    assert (np.diff((speed == 0).astype(int)) == 1).sum() >= 2  # and rests at times
    # At ticks, each of some four events is late by up to 1 ms, at up to 7 rad/s.
    # The load of the guide has a kink where its moment passes 0, which is not located: h³ there.
    for options, tolerance in (
        ({"solver": "rk4"}, 1e-6),
        ({"mode": "internal"}, 1e-6),
        ({"mode": "internal", "integrator": "implicit"}, 1e-4),
        ({"solver": "rk4", "events": "tick"}, 3e-2),
        ({"mode": "internal", "events": "tick"}, 3e-2),
    ):
        found, _ = shake(3.0, **options)
        assert found == pytest.approx(angle, abs=tolerance), options
