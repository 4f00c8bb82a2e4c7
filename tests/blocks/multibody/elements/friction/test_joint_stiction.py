"""Friction that sticks, with limits from reactions: one joint, against closed forms.

Tolerances of event times as in `test_stiction`: 1e-10 s with dopri5 and a tolerance of 1e-12.
"""

from __future__ import annotations

from typing import Any

import fmpy
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from biella import BlockError, Diagram, DiagramError, linearize, simulate
from biella.blocks.multibody import JointFriction, JointStiction, System
from biella.scheduler.engine._engine import Instance

from ...events import diagram_of, internal, locate

pytestmark = pytest.mark.engine

G = 9.81
MASS, STIFFNESS, SPEED, COEFFICIENT, STATIC = 2.0, 50.0, 0.1, 0.15, 0.25
SOLVERS = ["rk4", "dopri5", "internal rk4", "internal implicit"]


def diagram(s: System, names: list[str], solver: str) -> Diagram:
    if solver.startswith("internal"):
        return internal(s, names, integrator=solver.split()[1])
    return diagram_of(s, names, solver=solver, tolerance=None)


def incline(angle: float, coefficient: float, static: float, *, speed: float = 0.0) -> System:
    """A block on an incline that falls in the direction of its slide."""
    s = System("incline", planar=True, gravity=(0, -G))
    way = (np.cos(angle), -np.sin(angle))
    velocity = (speed * way[0], speed * way[1])
    block = s.body("block", mass=MASS, inertia=0.1, position=(0, 1), velocity=velocity)
    slide = s.prismatic("slide", s.ground, block, at=(0, 1), axis=way)
    s.friction("rub", slide, coefficient=coefficient, static=static, length=0.3)
    return s


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_block_on_an_incline_slides_above_the_angle_of_friction(solver):
    """N = m g cos α; it sticks up to tan α = static, and slides with g (sin α - μ cos α)."""
    names = ["slide.speed", "slide.displacement", "rub.force", "rub.load", "rub.sticks"]
    names += ["rub.power_loss", "rub.power"]
    limit = np.arctan(STATIC)
    for angle in (limit - 1e-9, limit + 1e-9, -limit + 1e-9, -limit - 1e-9, 0.7):
        s = incline(angle, COEFFICIENT, STATIC)
        result = simulate(diagram(s, names, solver), 0.5)
        speed, place, force, load, sticks, loss, power = (result[f"plant.{n}"] for n in names)
        slides = abs(angle) > limit
        way = np.sign(angle)
        a = G * (np.sin(angle) - way * COEFFICIENT * np.cos(angle)) if slides else 0.0
        t = result.t
        assert load == pytest.approx(np.full(t.size, MASS * G * np.cos(angle)), rel=1e-12)
        held = -MASS * G * np.sin(angle)
        slid = -way * COEFFICIENT * MASS * G * np.cos(angle)
        assert force == pytest.approx(np.full(t.size, slid if slides else held), rel=1e-12)
        # Implicit steps are of second order, but exact for a constant acceleration.
        assert speed == pytest.approx(a * t, abs=1e-11)
        assert place == pytest.approx(a * t**2 / 2, abs=1e-11)
        assert (sticks != 0).all() == (not slides)
        assert loss == pytest.approx(-force * speed, abs=1e-10)
        assert power == pytest.approx(force * speed, abs=1e-10)
        if not slides:
            assert (speed == 0).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("angle", [0.1, 0.6])
def test_a_block_thrown_uphill_stops_and_stays_or_comes_back(solver, angle):
    """It stops at v / (g (sin + μ cos)); on the steep one it then slides back."""
    s = incline(angle, COEFFICIENT, STATIC, speed=-1.0)
    names = ["slide.speed", "slide.displacement", "rub.sticks"]
    result = simulate(diagram(s, names, solver), 1.0)
    speed, place, sticks = (result[f"plant.{name}"] for name in names)
    up = G * (np.sin(angle) + COEFFICIENT * np.cos(angle))
    down = G * (np.sin(angle) - COEFFICIENT * np.cos(angle)) if angle > np.arctan(STATIC) else 0.0
    t, stops = result.t, 1.0 / up
    exact = np.where(t < stops, -1.0 + up * t, down * (t - stops))
    reached = np.where(t < stops, -t + up * t**2 / 2, -stops / 2 + down * (t - stops) ** 2 / 2)
    assert speed == pytest.approx(exact, abs=1e-11)
    assert place == pytest.approx(reached, abs=1e-11)
    assert np.array_equal(sticks != 0, (t >= stops) & (down == 0.0))


def belt(static: float = STATIC) -> System:
    """As the belt of `test_stiction`, with the friction of the weight of the block."""
    s = System("belt", planar=True, gravity=(0, -G))
    band = s.body("band", mass=1.0, inertia=0.1, velocity=(SPEED, 0))
    block = s.body("block", mass=MASS, inertia=0.1, velocity=(SPEED, 0))
    run = s.prismatic("run", s.ground, band, at=(0, 0), axis=(1, 0))
    s.driver("motor", run, f"{SPEED}*t")
    slide = s.prismatic("slide", band, block, at=(0, 0), axis=(1, 0))
    s.friction("dry", slide, coefficient=COEFFICIENT, static=static, length=0.2)
    s.spring(
        "spring", s.ground.marker("wall", (-1, 0)), block.marker("eye"),
        stiffness=STIFFNESS, free_length=1.0,
    )  # fmt: skip
    return s


def belt_events(count: int) -> np.ndarray:
    """The closed form of `test_stiction` with the efforts μ m g."""
    coulomb, static = COEFFICIENT * MASS * G, STATIC * MASS * G
    omega, d = np.sqrt(STIFFNESS / MASS), (static - coulomb) / STIFFNESS
    slides = (2 * np.pi - 2 * np.arctan2(d, SPEED / omega)) / omega
    times = [static / STIFFNESS / SPEED]
    while len(times) < count:
        times += [times[-1] + slides, times[-1] + slides + 2 * d / SPEED]
    return np.array(times[:count])


def test_stick_slip_on_a_belt():
    expected = belt_events(8)
    found = locate(diagram_of(belt()), np.ceil(expected[-1] * 10) / 10)
    assert found.times == pytest.approx(expected, abs=1e-10)
    assert found.unlocated == 0


@pytest.mark.parametrize(("integrator", "tolerance"), [("rk4", 1e-10), ("implicit", 2e-5)])
def test_stick_slip_on_a_belt_with_an_internal_solver(integrator, tolerance):
    """Runge–Kutta: 5e-12 for each event. Implicit: h² ω² / 12 of each time of sliding."""
    d = internal(belt(), integrator=integrator)
    expected = belt_events(6)
    result = simulate(d, np.ceil(expected[-1] * 10) / 10)
    kinds = [event.kind for event in result.events]
    assert kinds == ["dry: slips", "dry: sticks"] * 3
    assert [event.time for event in result.events] == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("solver", ["rk4", "internal rk4", "internal implicit"])
def test_at_ticks_it_sticks_and_slides_without_chattering(solver):
    names = ["dry.sticks", "slide.speed"]
    if solver == "rk4":
        d = diagram_of(belt(), names, solver="rk4", tolerance=None, events="tick")
    else:
        d = internal(belt(), names, events="tick", integrator=solver.split()[1])
    result = simulate(d, 10.0)
    sticks = result["plant.dry.sticks"] != 0
    changes = result.t[1:][np.diff(sticks.astype(int)) != 0]
    assert changes.size >= 6
    assert np.abs(np.diff(changes) - np.diff(belt_events(changes.size))).max() < 5e-3
    assert (result["plant.slide.speed"][sticks] == 0).all()


LENGTH, INERTIA, DIAMETER, MU = 0.5, 0.02, 0.08, 0.6


def pendulum(**friction: Any) -> System:
    s = System("pendulum", planar=True, gravity=(0, -G))
    rod = s.body("rod", mass=MASS, inertia=INERTIA, position=(0, -LENGTH))
    pin = s.revolute("pin", s.ground, rod, at=(0, 0))
    s.friction("journal", pin, coefficient=MU, diameter=DIAMETER, **friction)
    return s


def swing(theta: float, omega: float, direction: float) -> float:
    """θ'' of Newton and Euler: I_0 θ'' = -m g l sin θ - d μ r |R|, by iteration of R."""
    second = 0.0
    for _ in range(200):
        across = MASS * (LENGTH * second + G * np.sin(theta))
        along = MASS * (LENGTH * omega**2 + G * np.cos(theta))
        torque = -direction * MU * DIAMETER / 2 * np.hypot(across, along)
        torque -= MASS * G * LENGTH * np.sin(theta)
        second = torque / (INERTIA + MASS * LENGTH**2)
    return second


def swing_to_rest(theta: float, most: float) -> tuple[list[float], float]:
    """The times at which it stops, up to the one where sin θ ≤ most, and the angle there."""
    times, t, direction = [], 0.0, -np.sign(theta)
    while True:
        stop: Any = lambda _, x: x[1]  # noqa: E731
        stop.terminal, stop.direction = True, -direction
        found = solve_ivp(
            lambda _, x, d=direction: [x[1], swing(x[0], x[1], d)],
            (t, t + 5.0), [theta, direction * 1e-300], method="DOP853",
            rtol=1e-13, atol=1e-14, events=stop,
        )  # fmt: skip
        t, theta, direction = found.t_events[0][-1], found.y_events[0][-1][0], -direction
        times.append(t)
        if abs(np.sin(theta)) <= most:
            return times, theta


@pytest.mark.parametrize("make", [diagram_of, internal])
def test_a_pendulum_comes_to_rest_where_journal_friction_holds_it(make):
    """At rest |R| = m g: it stays where m g l |sin θ| ≤ static r m g."""
    static = 0.9
    times, angle = swing_to_rest(0.8, static * DIAMETER / 2 / LENGTH)
    assert 2 <= len(times) <= 8 and abs(np.sin(angle)) > 0.01  # not at the bottom
    s = pendulum(static=static)
    names = ["pin.angle", "pin.speed", "journal.sticks", "journal.torque", "journal.load"]
    d = Diagram("swing", step=1e-3, solver="dopri5", tolerance=1e-12)
    mode: Any = "internal" if make is internal else "continuous"
    d.add(s.block(outputs=names, initial={"pin.angle": 0.8}, mode=mode), name="plant")
    result = simulate(d, np.ceil(times[-1]) + 2.0)
    theta, speed, sticks, torque, load = (result[f"plant.{name}"] for name in names)
    rest = result.t >= times[-1]
    # 4 % of 1e-9 is what Runge–Kutta steps of 1 ms leave at these speeds.
    assert theta[rest] == pytest.approx(np.full(rest.sum(), angle), abs=1e-9)
    assert (speed[rest] == 0).all() and np.array_equal(sticks != 0, rest | (result.t == -1))
    assert torque[rest] == pytest.approx(MASS * G * LENGTH * np.sin(angle), abs=1e-8)
    assert load[rest] == pytest.approx(MASS * G, rel=1e-12)
    assert result.events[-1].time == pytest.approx(times[-1], abs=1e-9)


def test_the_energy_that_friction_takes_is_what_the_pendulum_loses():
    names = ["kinetic_energy", "potential_energy", "journal.power_loss", "power_loss"]
    d = Diagram("swing", step=1e-3)
    d.add(pendulum(static=0.9).block(outputs=names, initial={"pin.angle": 0.8}), name="plant")
    result = simulate(d, 4.0)
    kinetic, potential, loss, whole = (result[f"plant.{name}"] for name in names)
    assert np.array_equal(loss, whole)
    # The loss has kinks where it reverses: the trapezoidal rule is of second order.
    taken = np.trapezoid(loss, result.t)
    assert kinetic[0] + potential[0] - kinetic[-1] - potential[-1] == pytest.approx(taken, rel=1e-5)


def test_linearize_keeps_the_mode():
    """A joint that sticks is locked: what hangs from it swings alone."""
    s = System("hangs", planar=True, gravity=(0, -G))
    block = s.body("block", mass=MASS, inertia=0.1)
    arm = s.body("arm", mass=1.0, inertia=0.1, position=(0, -1))
    slide = s.prismatic("slide", s.ground, block, at=(0, 0), axis=(1, 0))
    s.revolute("pin", block, arm, at=(0, 0))
    s.friction("rub", slide, coefficient=0.1, static=0.2, length=0.1)
    d = Diagram("linear", step=1e-3)
    d.add(s.block(outputs=["pin.angle"]), name="plant")
    swings = np.linalg.eigvals(linearize(d).A)
    assert swings.imag.max() == pytest.approx(np.sqrt(G / 1.1), abs=1e-5)


@pytest.mark.parametrize("mode", ["continuous", "internal"])
def test_save_and_restore_around_events_bit_for_bit(mode):
    names = ["slide.speed", "dry.sticks"]
    plan = (internal(belt(), names) if mode == "internal" else diagram_of(belt(), names)).compile()
    at = round(belt_events(1)[0] * 1e3)
    with Instance(plan) as one, Instance(plan) as two:
        one.initialize()
        two.initialize()
        one.run(at - 1)
        two.restore(one.save())
        one.run(400)
        two.run(400)
        assert one.save() == two.save()


def test_parameters_are_set_by_name():
    d = Diagram("incline", step=1e-3)
    s = incline(0.3, 0.1, 0.1)
    d.add(s.block(outputs=["slide.speed", "rub.load"]), name="plant")
    moves = simulate(d, 0.1)["plant.slide.speed"]
    holds = simulate(d, 0.1, parameters={"plant.rub.static": 0.5})["plant.slide.speed"]
    assert moves[-1] > 0.1 and (holds == 0).all()
    with pytest.raises(BlockError, match=r"`rub` is .*must be below `static`"):
        simulate(d, 0.1, parameters={"plant.rub.static": 0.05})
    with pytest.raises(BlockError, match="`length`"):
        simulate(d, 0.1, parameters={"plant.rub.length": 0.0})


def test_an_exported_mechanism_sticks_and_slides_as_here(tmp_path):
    names = ["slide.speed", "dry.sticks", "dry.load"]
    d = internal(belt(), names)
    for name in names:
        d.output(name.replace(".", " "), d["plant"][name])
    here = simulate(d, 3.0)
    d.export_fmu(tmp_path / "belt.fmu")
    there = fmpy.simulate_fmu(str(tmp_path / "belt.fmu"), stop_time=3.0, output_interval=1e-3)
    for name in names:
        assert np.array_equal(there[name.replace(".", " ")].astype(float), here[f"plant.{name}"])


def test_what_static_friction_by_a_coefficient_cannot_be():
    s = System("system", planar=True)
    block = s.body("block", mass=1.0, inertia=0.1)
    slide = s.prismatic("slide", s.ground, block, at=(0, 0), axis=(1, 0))
    with pytest.raises(DiagramError, match=r"`static` of `f` is 0\.1, less than `coefficient`"):
        s.friction("f", slide, coefficient=0.2, static=0.1, length=0.1)
    with pytest.raises(DiagramError, match="leave one of them out"):
        s.friction("f", slide, coefficient=0.1, static=0.2, length=0.1, smoothing_speed=1e-2)
    with pytest.raises(DiagramError, match="Add viscous or coulomb as friction"):
        s.friction("f", slide, coefficient=0.1, static=0.2, length=0.1, viscous=1.0)
    sticks = s.friction("rub", slide, coefficient=0.1, length=0.1, smoothing_speed=0)
    assert isinstance(sticks, JointStiction) and sticks.static == 0.1
    with pytest.raises(DiagramError, match="a joint has one bearing"):
        s.friction("f", slide, coefficient=0.1, static=0.2, length=0.1)
    space = System("space")
    rod = space.body("rod", mass=1.0, inertia=0.1)
    bush = space.cylindrical("bush", space.ground, rod, at=(0, 0, 0), axis=(0, 0, 1))
    with pytest.raises(DiagramError, match="`bush`, a cylindrical joint, which slides and turns"):
        space.friction("f", bush, coefficient=0.1, static=0.2, diameter=0.1, length=0.1)
    smooth = space.friction("f", bush, coefficient=0.1, diameter=0.1, length=0.1)
    assert isinstance(smooth, JointFriction)
