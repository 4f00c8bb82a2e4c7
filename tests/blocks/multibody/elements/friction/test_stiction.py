"""Friction that sticks, against closed forms and against drivers that hold the same joint.

Events are located on states that are right to some 1e-12 with dopri5 and a tolerance of 1e-12. A
joint begins to stick where its speed, and to slide where the effort on it, passes a limit at a
rate of about 1: event times are right to 1e-11 s for each event before them.
"""

from __future__ import annotations

from typing import Any, cast

import fmpy
import numpy as np
import pytest

from biella import BlockError, Diagram, DiagramError, Subsystem, linearize, simulate
from biella.blocks import Compare, Gain, Sine, Step, Sum
from biella.blocks.multibody import Friction, Input, Joint, RigidContact, Stiction, System
from biella.blocks.multibody.mechanisms import slider_crank
from biella.blocks.multibody.plant._tree import grow_tree
from biella.scheduler.engine._engine import Instance

from ...events import diagram_of, internal, locate
from ...small_systems import slider

pytestmark = pytest.mark.engine

MASS, STIFFNESS, SPEED, COULOMB, STATIC = 2.0, 50.0, 0.1, 3.0, 5.0
PERIODS = 6


def belt(*, closes_loop: bool = False, static: float = STATIC) -> System:
    """A block on a belt that a driver moves, held by a spring; both begin with the belt's speed."""
    s = System("belt", gravity=(0, 0, 0))
    band = s.body("band", mass=1.0, inertia=0.1, velocity=(SPEED, 0, 0))
    block = s.body("block", mass=MASS, inertia=0.1, velocity=(SPEED, 0, 0))
    s.driver(
        "motor", s.prismatic("run", s.ground, band, at=(0, 0, 0), axis=(1, 0, 0)), f"{SPEED}*t"
    )
    if closes_loop:
        rail = s.prismatic("rail", s.ground, block, at=(0, 0, 0), axis=(1, 0, 0))
        s.force("along the rail", rail, 0.0)
    slide = s.prismatic("slide", band, block, at=(0, 0, 0), axis=(1, 0, 0))
    s.friction("dry", slide, coulomb=COULOMB, static=static)
    s.spring(
        "spring", s.ground.marker("wall", (-1, 0, 0)), block.marker("eye"),
        stiffness=STIFFNESS, free_length=1.0,
    )  # fmt: skip
    return s


def belt_events(static: float = STATIC, count: int = 2 * PERIODS) -> np.ndarray:
    """The block sticks until the spring pulls with `static`; then it swings about COULOMB / k.

    x - COULOMB / k = d cos ω t + V / ω sin ω t with d = (static - COULOMB) / k: its speed is V
    again at ω t = 2 π - 2 φ, tan φ = ω d / V, where x - COULOMB / k = -d.
    """
    omega, d = np.sqrt(STIFFNESS / MASS), (static - COULOMB) / STIFFNESS
    slides = (2 * np.pi - 2 * np.arctan2(d, SPEED / omega)) / omega
    times = [static / STIFFNESS / SPEED]
    while len(times) < count:
        times += [times[-1] + slides, times[-1] + slides + 2 * d / SPEED]
    return np.array(times[:count])


@pytest.mark.parametrize("closes_loop", [False, True])
def test_stick_slip_on_a_belt(closes_loop):
    s = belt(closes_loop=closes_loop)
    cuts = [joint.name for joint in grow_tree(s).cuts]
    assert ("slide" in cuts or "rail" in cuts) == closes_loop
    expected = belt_events()
    found = locate(diagram_of(s), np.ceil(expected[-1] * 10) / 10)
    assert found.times == pytest.approx(expected, abs=1e-10)
    assert found.unlocated == 0


def test_a_block_with_no_more_static_than_sliding_friction_swings_on():
    """Its speed touches that of the belt once in a period, where the spring pulls with COULOMB."""
    found = locate(diagram_of(belt(static=COULOMB)), 10.0)
    assert found.times[0] == pytest.approx(COULOMB / STIFFNESS / SPEED, abs=1e-10)
    assert found.unlocated == 0
    omega, since = np.sqrt(STIFFNESS / MASS), 10.0 - COULOMB / STIFFNESS / SPEED
    place = COULOMB / STIFFNESS + SPEED / omega * np.sin(omega * since)
    assert found.x[:2].sum() == pytest.approx(place, abs=1e-10)


@pytest.mark.parametrize("solver", ["rk4", "dopri5", "internal rk4", "internal implicit"])
def test_a_rising_force_breaks_a_joint_away(solver):
    """At F = 4 t the joint breaks away at static / 4, off the grid, and moves by the rest of F."""
    s, _ = slider()
    s.friction("dry", s["slide"], coulomb=1.0, static=1.5013, viscous=0.0)
    s.force("push", s["slide"], "4*t")
    names = ["dry.force", "dry.sticks", "dry.power_loss", "dry.power", "slide.speed"]
    if solver.startswith("internal"):
        d = internal(s, names, integrator=solver.split()[1])
    else:
        d = diagram_of(s, names, solver=solver, tolerance=None)
    result = simulate(d, 1.0)
    effort, sticks, loss, power, speed = (result[f"plant.{name}"] for name in names)
    at, t = 1.5013 / 4, result.t
    before = t < at
    exact = np.where(before, 0.0, (t**2 - at**2) - (t - at) / 2)
    # Implicit steps begin anew at an event: of order h² times the rate of the acceleration, once.
    tolerance = 1e-6 if solver == "internal implicit" else 1e-12
    assert speed == pytest.approx(exact, abs=tolerance)
    assert (speed[before] == 0.0).all() and np.array_equal(sticks != 0, before)
    assert effort == pytest.approx(np.where(before, -4 * t, -1.0), abs=1e-12)
    assert loss == pytest.approx(speed, abs=1e-12) and power == pytest.approx(-speed, abs=1e-12)


@pytest.mark.parametrize("direction", [1, -1])
def test_a_sliding_block_comes_to_rest_and_stays(direction):
    s, _ = slider(velocity=direction * 1.0)
    s.friction("dry", s["slide"], coulomb=3.0, static=3.0, viscous=0.5)
    found = locate(diagram_of(s), 2.0)
    # v' = -(3 + 0.5 v) / 2: v = 7 exp(-t / 4) - 6
    assert found.times == pytest.approx([4 * np.log(7 / 6)], abs=1e-10)
    assert found.x[1] == 0.0
    assert found.x[0] == pytest.approx(
        direction * (28 * (1 - 6 / 7) - 24 * np.log(7 / 6)), abs=1e-11
    )


@pytest.mark.parametrize("make", [diagram_of, internal])
def test_two_joints_in_a_row_stick_at_once(make):
    """A force on the outer body passes both joints; the inner one, the weaker, slides first."""
    s = System("row", gravity=(0, 0, 0))
    a, b = (s.body(name, mass=2.0, inertia=0.1) for name in "ab")
    one = s.prismatic("one", s.ground, a, at=(0, 0, 0), axis=(1, 0, 0))
    two = s.prismatic("two", a, b, at=(0, 0, 0), axis=(-1, 0, 0))
    s.friction("inner", one, coulomb=2.0, static=3.0)
    s.friction("outer", two, coulomb=3.0, static=4.0)
    s.force("push", b.marker("center"), ("5*t", 0, 0))
    names = ["inner.force", "outer.force", "one.speed", "two.speed"]
    result = simulate(make(s, names), 1.5)
    inner, outer, slow, fast = (result[f"plant.{name}"] for name in names)
    t = result.t
    stuck = t < 0.6
    assert inner[stuck] == pytest.approx(-5 * t[stuck], abs=1e-12)
    assert outer[stuck] == pytest.approx(5 * t[stuck], abs=1e-12)  # its axis points back
    # Then both move together with a = (5 t - 2) / 4, and the outer joint carries 2 a + 2.
    both = (t > 0.6) & (t < 1.2)
    assert slow[both] == pytest.approx(((5 * t**2 - 4 * t) / 8 - (1.8 - 2.4) / 8)[both], abs=1e-11)
    assert outer[both] == pytest.approx((5 * t - 2 * (5 * t - 2) / 4)[both], abs=1e-11)
    assert (fast[t < 1.2] == 0).all() and (fast[t > 1.21] < 0).all()  # 2.5 t + 1 = 4


def joint_of(s: System, name: str) -> Joint:
    return cast(Joint, s[name])


def crank(load: str, **options) -> System:
    s = slider_crank(planar=True, drive="none")
    s.torque("load", joint_of(s, "main"), load)
    if options:
        s.friction("dry", joint_of(s, "main"), **options)
    return s


@pytest.mark.parametrize("mode", ["continuous", "internal"])
def test_a_loop_that_sticks_has_the_effort_of_a_driver_that_holds_it(mode):
    held = crank("4*sin(3*t)")
    held.driver("holder", joint_of(held, "main"), 0.6)
    stuck = crank("4*sin(3*t)", coulomb=50.0, static=60.0)
    initial = {"main.angle": 0.6, "main.speed": 0.0}
    efforts = []
    for system, name in ((held, "holder.effort"), (stuck, "dry.torque")):
        d = Diagram("held", step=1e-2)
        start = None if system is held else initial
        d.add(system.block(outputs=[name, "main.angle"], initial=start, mode=mode), name="plant")
        result = simulate(d, 1.0)
        assert result["plant.main.angle"] == pytest.approx(0.6, abs=1e-12)
        efforts.append(result[f"plant.{name}"])
    assert efforts[0] == pytest.approx(efforts[1], abs=1e-9)


def test_a_loop_breaks_away_where_the_holding_effort_reaches_the_limit():
    initial = {"main.angle": 0.6, "main.speed": 0.0}
    d = Diagram("held", step=1e-3)
    system = crank("80*t", coulomb=90.0, static=99.0)
    d.add(system.block(outputs=["dry.torque"], initial=initial), "plant")
    effort = np.abs(simulate(d, 1.0)["plant.dry.torque"])
    limit = 0.5 * (effort[800] + effort[801])  # reached between two ticks
    assert effort[:801].max() < limit < effort[801]
    d = Diagram("free", step=1e-3, solver="dopri5", tolerance=1e-12)
    names = ["main.speed", "dry.sticks", "closure", "dry.torque"]
    system = crank("80*t", coulomb=0.5 * limit, static=limit)
    d.add(system.block(outputs=names, initial=initial), name="plant")
    result = simulate(d, 0.85)
    speed, sticks, closure, torque = (result[f"plant.{name}"] for name in names)
    assert sticks[:801].all() and not sticks[801:].any()
    assert (speed[:801] == 0).all() and closure.max() < 1e-12
    assert torque[801:] == pytest.approx(-0.5 * limit * np.sign(speed[-1]), rel=1e-12)
    # It leaves in the middle of the tick: the speed grows from there by the same acceleration.
    assert speed[801] / (speed[802] - speed[801]) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("mode", ["continuous", "internal"])
def test_a_driven_joint_slides_and_rests_with_its_driver(mode):
    """Nothing but the driver moves it: its effort is the friction while it moves."""
    s, _ = slider()
    s.friction("dry", s["slide"], coulomb=2.0, static=3.0)
    s.driver("motor", s["slide"], "0.05*(1 - cos(5*pi*min(max(t - 0.3003, 0), 0.4)))")
    names = ["dry.force", "motor.effort", "slide.speed", "slide.acceleration"]
    d = diagram_of(s, names, solver="rk4", tolerance=None)
    result = simulate(internal(s, names) if mode == "internal" else d, 1.0)
    force, effort, speed, acceleration = (result[f"plant.{name}"] for name in names)
    assert force == pytest.approx(-2.0 * np.sign(np.round(speed, 11)), abs=1e-9)
    assert effort == pytest.approx(2.0 * acceleration - force, abs=1e-8)  # 1e-10 of 30 N


@pytest.mark.parametrize("make", [diagram_of, internal])
def test_frictions_that_hold_the_same_motion_are_refused(make):
    s, _ = slider()
    s.friction("one", s["slide"], coulomb=1.0, static=2.0)
    s.friction("two", s["slide"], coulomb=1.0, static=2.0)
    with pytest.raises(BlockError, match="friction `two` sticks at t = 0 s where other frictions"):
        simulate(make(s, ["slide.speed"]), 0.1)


def test_what_static_friction_cannot_be():
    s, _ = slider()
    slide = s["slide"]
    with pytest.raises(DiagramError, match="`static` of `f` is 1, less than `coulomb`, 2"):
        s.friction("f", slide, coulomb=2.0, static=1.0)
    with pytest.raises(DiagramError, match="leave one of them out"):
        s.friction("f", slide, coulomb=1.0, static=2.0, smoothing_speed=1e-2)
    assert isinstance(s.friction("smooth", slide, coulomb=1.0), Friction)
    sticks = s.friction("sticks", slide, coulomb=1.0, smoothing_speed=0)
    assert isinstance(sticks, Stiction) and sticks.static == 1.0
    hole: dict[str, Any] = {"clearance": 1e-3, "pin_radius": 0.01, "contact": RigidContact()}
    flat = System("flat", planar=True)
    ball = flat.body("ball", mass=1.0, inertia=1.0)
    rail = flat.prismatic("rail", flat.ground, ball, at=(0, 0), axis=(1, 0))
    flat.friction("dry", rail, coulomb=1.0, static=2.0)
    flat.clearance_revolute("joint", ball.marker("pin"), flat.ground.marker("hole"), **hole)
    with pytest.raises(DiagramError, match="`dry` sticks and `joint` has a RigidContact"):
        flat.block(mode="internal")


def test_parameters_that_make_no_friction_are_refused():
    d = diagram_of(belt(), ["slide.speed"])
    with pytest.raises(BlockError, match=r"`dry` is .*must be below `static`"):
        simulate(d, 0.1, parameters={"plant.dry.static": 1.0})


@pytest.mark.parametrize("solver", ["rk4", "internal rk4", "internal implicit"])
def test_at_ticks_it_sticks_and_slides_without_chattering(solver):
    """Without located events the modes change at ticks: each is late by at most a tick or two."""
    names = ["dry.sticks", "slide.speed"]
    if solver == "rk4":
        d = diagram_of(belt(), names, solver="rk4", tolerance=None, events="tick")
    else:
        d = internal(belt(), names, events="tick", integrator=solver.split()[1])
    result = simulate(d, 10.0)
    sticks = result["plant.dry.sticks"] != 0
    changes = result.t[1:][np.diff(sticks.astype(int)) != 0]
    expected = belt_events(count=changes.size)
    assert changes.size >= 10
    assert np.abs(np.diff(changes) - np.diff(expected)).max() < 5e-3
    assert (result["plant.slide.speed"][sticks] == 0).all()


@pytest.mark.parametrize("mode", ["continuous", "internal"])
def test_an_input_that_jumps_at_a_tick_moves_the_joint_from_there(mode):
    s, _ = slider()
    s.friction("dry", s["slide"], coulomb=1.0, static=2.0)
    s.force("push", s["slide"], Input("F"))
    d = Diagram("input", step=1e-3)
    plant = d.add(s.block(outputs=["slide.speed", "dry.force"], mode=mode), name="plant")
    d.connect(d.add(Step(at=0.5, to=3.0)), plant)
    result = simulate(d, 1.0)
    assert result["plant.slide.speed"] == pytest.approx(np.maximum(result.t - 0.5, 0), abs=1e-12)
    d.output("v", plant["slide.speed"])


def test_linearize_keeps_a_joint_that_sticks():
    def model(friction):
        s, body = slider()
        arm = s.body("arm", mass=1.0, inertia=0.1, position=(0, -1, 0))
        s.revolute("pin", body, arm, at=(0, 0, 0), axis=(0, 0, 1))
        s.gravity = (0, -9.81, 0)
        if friction:
            s.friction("dry", s["slide"], coulomb=1.0, static=2.0)
        else:
            s.driver("hold", s["slide"], 0.0)
        d = Diagram("linear", step=1e-3)
        d.add(s.block(outputs=["pin.angle"]), name="plant")
        return np.sort_complex(np.linalg.eigvals(linearize(d).A))

    swings = model(friction=True)
    exact = np.sqrt(9.81 / 1.1)
    assert swings.imag.max() == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("options", [{}, {"solver": "dopri5", "tolerance": 1e-9}])
def test_save_and_restore_around_events_bit_for_bit(options):
    plan = diagram_of(belt(), **({"solver": "rk4", "tolerance": None} | options)).compile()
    at = round(belt_events(count=1)[0] * 1e3)
    with Instance(plan) as one, Instance(plan) as two:
        one.initialize()
        two.initialize()
        for ticks in (at - 1, 1, 1, 700, 1, 30, 1):
            one.run(ticks)
            two.restore(one.save())
            one.run(13)
            two.run(13)
            assert one.save() == two.save()
        for end in (1.8004, 1.8009):
            one.run_to(end)
            two.restore(one.save())
            one.run_to(end + 0.1)
            two.run_to(end + 0.1)
            assert one.save() == two.save()


@pytest.mark.parametrize("mode", ["continuous", "internal"])
@pytest.mark.parametrize("states", ["held", "reset"])
def test_save_and_restore_in_a_subsystem_that_is_disabled_and_enabled(states, mode):
    s, _ = slider()
    s.friction("dry", s["slide"], coulomb=3.0, static=5.0)
    s.force("push", s["slide"], Input("f"))
    inside = Diagram("inside")
    inside.add(s.block(mode=mode), "plant", f=inside.input("f"))
    d = Diagram("outside", step=1e-2)
    on = d.add(Compare(">", 0.0), "on", u=d.add(Sine(frequency=0.6), "sine"))
    force = d.add(Sine(amplitude=8.0, frequency=1.0), "force")
    d.add(Subsystem(inside, enable=True, states=states), "sub", enable=on, f=force)
    plan = d.compile()
    with Instance(plan) as one, Instance(plan) as two:
        one.initialize()
        two.initialize()
        for _ in range(400):
            two.restore(two.save())
            two.run(1)
        one.run(400)
        assert one.save() == two.save()


@pytest.mark.parametrize("interval", [1e-3, 7e-3, 2.5e-4])
def test_an_exported_fmu_sticks_and_slides_alike(tmp_path, interval):
    """Also with communication steps that are several ticks, or a part of one."""
    names = ["slide.speed", "dry.force"]
    path = belt().export_fmu(
        tmp_path / "belt.fmu", outputs=names, step=1e-3, solver="rk4", sources=False
    )
    outside = fmpy.simulate_fmu(str(path), stop_time=2.1, output_interval=interval)
    inside = simulate(diagram_of(belt(), names, solver="rk4", tolerance=None), 2.1)
    every, of = (round(interval / 1e-3), 1) if interval >= 1e-3 else (1, round(1e-3 / interval))
    for name in names:
        expected, found = inside[f"plant.{name}"][::every], outside[name][::of]
        if of == 1:
            assert np.array_equal(found, expected)
        else:  # rk4 takes other steps
            assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("coupling", ["newton", "jacobi"])
def test_in_an_iterated_coupling_it_sticks_and_slides_at_ticks(coupling):
    """A heavy body with an internal solver pulls the block by a spring at 0.1 m/s.

    The block sticks until k v t = static, then overshoots: coupled steps are repeated, so that its
    modes change at ticks only.
    """
    s, _ = slider()
    s.friction("dry", s["slide"], coulomb=COULOMB, static=STATIC)
    s.force("pull", s["slide"], Input("F"))
    heavy = System("heavy", gravity=(0, 0, 0))
    tractor = heavy.body("tractor", mass=1e9, inertia=1.0, velocity=(SPEED, 0, 0))
    rail = heavy.prismatic("rail", heavy.ground, tractor, at=(0, 0, 0), axis=(1, 0, 0))
    heavy.force("drag", rail, Input("drag"))
    d = Diagram("coupled", step=1e-3, coupling=coupling)
    names = ["slide.displacement", "slide.speed", "dry.sticks"]
    block = d.add(s.block(outputs=names), name="block")
    end = d.add(heavy.block(outputs=["rail.displacement"], mode="internal"), name="end")
    stretch = d.add(Sum("+-"), name="stretch")
    d.connect(end, stretch["u1"])
    d.connect(block["slide.displacement"], stretch["u2"])
    pull = d.add(Gain(STIFFNESS, unit="N"), name="spring", u=stretch)
    d.connect(pull, block["F"])
    d.connect(d.add(Gain(-1.0), name="back", u=pull), end["drag"])
    result = simulate(d, 5.0)
    sticks = result["block.dry.sticks"] != 0
    changes = result.t[1:][np.diff(sticks.astype(int)) != 0]
    # As on the belt, seen from the tractor.
    expected = belt_events(count=changes.size)
    assert changes.size >= 4
    assert np.abs(np.diff(changes) - np.diff(expected)).max() < 5e-3
    assert (result["block.slide.speed"][sticks] == 0).all()


PRESSED = "1.5 + 2*sin(9*t)"


def pressed_engine() -> System:
    """A slider-crank that a torque turns, with given friction in its guide."""
    s = System("engine", planar=True, gravity=(0, 0))
    crank = s.body("crank", mass=1.0, inertia=0.1)
    rod = s.body("rod", mass=0.2, inertia=0.01, position=(0.4, 0))
    piston = s.body("piston", mass=0.3, inertia=0.01, position=(0.7, 0))
    main = s.revolute("main", s.ground, crank, at=(0, 0))
    s.revolute("big", crank, rod, at=(0.1, 0))
    s.revolute("small", rod, piston, at=(0.7, 0))
    guide = s.prismatic("guide", s.ground, piston, at=(0.7, 0), axis=(1, 0))
    s.friction("rub", guide, coulomb=1.0, static=1.5)
    s.torque("motor", main, PRESSED)
    return s


@pytest.mark.parametrize("events", ["locate", "tick"])
@pytest.mark.parametrize("mode", ["continuous", "internal"])
def test_a_guide_that_reverses_at_a_dead_center_does_not_stop_the_crank(mode, events):
    """No impulse of the guide acts on the crank there: the balance of energy, at every tick."""
    d = Diagram("engine", step=1e-3, solver="rk4", events=events)
    d.add(pressed_engine().block(outputs=["main.angle", "main.speed"], mode=mode), name="plant")
    result = simulate(d, 3.0)
    t, angle, speed = result.t, result["plant.main.angle"], result["plant.main.speed"]
    assert angle[-1] > 40  # over many dead centers
    tilt = -np.arcsin(0.1 * np.sin(angle) / 0.6)
    turn = -0.1 * np.cos(angle) * speed / (0.6 * np.cos(tilt))
    big = 0.1 * speed * np.array([-np.sin(angle), np.cos(angle)])
    arm = turn * np.array([-np.sin(tilt), np.cos(tilt)])
    rod, piston = big + 0.3 * arm, big + 0.6 * arm
    moving = 0.1 * speed**2 + 0.2 * (rod**2).sum(0) + 0.01 * turn**2 + 0.3 * (piston**2).sum(0)
    power = (1.5 + 2 * np.sin(9 * t)) * speed
    work = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * np.diff(t))])
    way = np.abs(np.diff(0.1 * np.cos(angle) + 0.6 * np.cos(tilt)))
    lost = np.concatenate([[0.0], np.cumsum(way)])
    # A tick too late at a dead center: 1 N along less than 1e-4 m. The sum of power: h².
    assert 0.5 * moving == pytest.approx(work - lost, abs=2e-2)
