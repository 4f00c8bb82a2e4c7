"""Events of modes in internal steps, against closed forms and against mode "continuous".

Runge–Kutta steps have a relative error of (ω h)⁴ / 120 in phase: an event that ends a phase of an
oscillation with ω lies off by that part of the time since it began. At an event the state is that
of a cubic, off by h⁴ / 384 of the fourth derivative.
"""

from __future__ import annotations

import math
from typing import Any, cast

import fmpy
import numpy as np
import pytest

from biella import BiellaWarning, Diagram, simulate
from biella.blocks import Expression
from biella.blocks.multibody import HuntCrossley, Input, Joint, RigidContact, System, Table
from biella.blocks.multibody.mechanisms import slider_crank
from biella.scheduler.engine._engine import Instance

from ...elements.friction.test_stiction import belt, belt_events
from ...events import diagram_of, internal, locate
from ...small_systems import slider, wheel
from .test_events import log

pytestmark = pytest.mark.engine


def times(d: Diagram, until: float) -> list[float]:
    events, (_, unlocated) = log(d.compile(), round(until / d.step))
    assert unlocated == 0
    return [event.time for event in events]


def pulled(law: Any, velocity: float = 1.0) -> System:
    """A body of 2 kg on a slide, with a force by a law of the length 1 + x that pulls it back."""
    s, body = slider(velocity=velocity)
    s.spring("spring", s.ground.marker("wall", (-1, 0, 0)), body.marker("eye"), force=law)
    return s


def stopped(velocity: float = 1.0, gap: float = 0.2003) -> System:
    s, _ = slider(velocity=velocity)
    s.stop("stop", s["slide"], upper=gap, stiffness=2000.0)
    return s


# -- event times in closed form


@pytest.mark.parametrize("closes_loop", [False, True])
def test_stick_slip_on_a_belt(closes_loop):
    expected = belt_events()
    s = belt(closes_loop=closes_loop)
    events, (located, unlocated) = log(internal(s).compile(), math.ceil(expected[-1] * 1e3))
    # (ω h)⁴ / 120 = 5e-12 of 0.8 s in each of six periods
    assert [event.time for event in events] == pytest.approx(expected, abs=1e-10)
    assert [event.what for event in events] == ["dry: slips", "dry: sticks"] * 6
    assert (located, unlocated) == (12, 0)


@pytest.mark.parametrize("gap", [0.2, 0.2003])
def test_a_slider_rebounds_from_an_elastic_stop(gap):
    found, _ = log(internal(stopped(gap=gap), substeps=10).compile(), 1000)
    contact = math.pi / math.sqrt(1000.0)
    # ω h = 3.2e-3 in substeps: 8e-13 of 0.1 s
    assert [event.time for event in found] == pytest.approx([gap, gap + contact], abs=1e-12)
    assert [event.what for event in found] == ["stop: touches", "stop: leaves"]


def test_a_damped_stop_lets_go_before_the_limit():
    """The closed form is that of `elements/test_stop.py`."""
    s, _ = slider(velocity=1.0, position=-0.2003)
    s.stop("stop", s["slide"], lower=-5.0, upper=0.0, stiffness=2000.0, damping=60.0)
    omega2, delta = 1000.0, 15.0
    w = math.sqrt(omega2 - delta**2)
    lasts = (math.atan(2 * delta * w / (2 * delta**2 - omega2)) + math.pi) / w
    x = math.exp(-delta * lasts) * math.sin(w * lasts) / w
    v = math.exp(-delta * lasts) * (math.cos(w * lasts) - delta / w * math.sin(w * lasts))
    at = [0.2003, 0.2003 + lasts, 0.2003 + lasts - x / v]
    found, _ = log(internal(s, substeps=10).compile(), 1000)
    assert [event.time for event in found] == pytest.approx(at, abs=1e-12)
    assert [event.what for event in found] == ["stop: touches", "stop: releases", "stop: leaves"]


def test_a_force_that_jumps_at_a_place():
    """Parabolas on both sides, which Runge–Kutta steps integrate exactly."""
    d = internal(pulled("where(l < 1.25, -3, 1)"), ["slide.displacement", "slide.speed"])
    at = (math.sqrt(1.75) - 1) / 1.5  # t + 0.75 t² = 0.25
    rest, speed = 1 - at, 1 + 1.5 * at
    assert times(d, 1.0) == pytest.approx([at], abs=1e-14)
    result = simulate(d, 1.0)
    assert result.events[0].kind == "law"
    exact = [0.25 + speed * rest - 0.25 * rest**2, speed - 0.5 * rest]
    found = [result[f"plant.slide.{name}"][-1] for name in ("displacement", "speed")]
    assert found == pytest.approx(exact, abs=1e-12)  # 1000 steps of rounding


def test_points_of_a_linear_table_of_a_length_are_events():
    points, values = [1.1003, 1.20005, 1.3], [0.0, 5.0, 1.0]
    found = times(internal(pulled(Table(points, values, of="l"))), 0.5)
    # Until the first point nothing acts; then x'' = -s / 2 · 5 / 0.09975: ω h = 5e-3.
    omega = math.sqrt(0.5 * 5 / 0.09975)
    exact = [0.1003, 0.1003 + math.asin(omega * 0.09975) / omega]
    assert len(found) == 3 and found[:2] == pytest.approx(exact, abs=1e-12)
    cubic = times(internal(pulled(Table(points, values, "cubic", of="l"))), 0.5)
    assert len(cubic) == 2


def test_conditions_on_state_and_time_in_one_law():
    s = System("wheel", (0, 0), planar=True)
    body = s.body("wheel", mass=2.0, inertia=2.0, angular_velocity=1.0)
    joint = s.revolute("axle", s.ground, body, at=(0, 0))
    law = "where(q > 0.2003, where(t < 0.5503, 3, 0), 0)"
    s.torsional_spring("brake", joint, stiffness=0.0, torque=law)
    d = internal(s, ["axle.speed"])
    assert times(d, 1.0) == pytest.approx([0.2003, 0.5503], abs=1e-14)
    # The brake of 3 N m acts on 2 kg m² for 0.35 s.
    assert simulate(d, 1.0)["plant.axle.speed"][-1] == pytest.approx(0.475, abs=1e-13)


HOLE, SPEED = 0.1, 1.0


def bouncing(stiffness: float = 5e4) -> System:
    """A round body that goes to and fro between two walls of a hole, without damping."""
    s = System("ball", (0.0, 0.0), planar=True)
    body = s.body("ball", mass=2.0, inertia=1.0, velocity=(SPEED, 0))
    s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    law = HuntCrossley(stiffness=stiffness, exponent=1.0, damping=0.0)
    s.clearance_revolute(
        "pin", body.marker("middle"), s.ground.marker("hole"), clearance=HOLE, pin_radius=0.02,
        contact=law,
    )  # fmt: skip
    return s


def test_a_mass_bounces_between_compliant_contacts():
    """Each contact lasts half a period, π / ω; each flight 2 · 0.1 m at 1 m/s."""
    contact = math.pi / math.sqrt(5e4 / 2.0)
    expected = [HOLE, HOLE + contact]
    for _ in range(2):
        expected += [expected[-1] + 2 * HOLE, expected[-1] + 2 * HOLE + contact]
    found, (_, unlocated) = log(internal(bouncing(), substeps=20).compile(), 600)
    # ω h = 8e-3 in substeps: (ω h)⁴ / 120 = 3e-11 of 20 ms in each contact
    assert [event.time for event in found] == pytest.approx(expected, abs=1e-11)
    assert [event.what for event in found] == ["pin: touches", "pin: leaves"] * 3
    assert unlocated == 0


def test_a_law_that_is_not_defined_beyond_its_border():
    """(l - 1)^1.5 beyond the border of its condition is not a number: such steps are halved.

    The border is approached to 1e-9 of a step; that tick is counted.
    """
    s = pulled("where(l > 1, 40*(l - 1)**1.5, 0)", velocity=1.0)
    d = internal(s, ["slide.displacement", "slide.speed"], step=1e-2)
    events, (_, unlocated) = log(d.compile(), 100)
    assert unlocated == 1 and [event.what for event in events] == ["law"]  # at the start
    with pytest.warns(BiellaWarning, match=r"not located in 1 tick, .*solver of `plant`"):
        speed = simulate(d, 1.0)["plant.slide.speed"]
    # ω h is 0.03; the force grows as x^1.5, with which RK4 has order 2.5 at both ends.
    assert speed[-1] == pytest.approx(-1.0, abs=1e-4)


# -- accuracy


def pendulum(law: str) -> System:
    s, body = wheel(inertia=0.5, speed=2.0)
    s.torsional_spring("motor", s["pin"], torque=law, stiffness=4.0)
    s.spring(
        "swing", s.ground.marker("wall", (1, 1, 0)), body.marker("eye", (0.5, 0, 0)),
        stiffness=3.0, free_length=0.7,
    )  # fmt: skip
    return s


@pytest.mark.parametrize(("integrator", "order"), [("rk4", 4), ("implicit", 2)])
@pytest.mark.parametrize("substeps", [1, 3])
@pytest.mark.parametrize("law", ["where(q < {0}, 3, -2)", "3*abs(q - {0})"])
def test_the_order_is_kept_across_events(integrator, order, substeps, law):
    """Reference: mode "continuous" with dopri5 and a step of 0.2 ms."""
    places = np.linspace(0.11, 0.43, 7)
    steps = (0.05, 0.00625) if order == 4 else (0.0125, 0.0015625)
    exact = [
        locate(diagram_of(pendulum(law.format(at)), step=2e-4, tolerance=None), 1.5).x[0]
        for at in places
    ]

    def mean_error(step: float) -> float:
        errors = []
        for at, wanted in zip(places, exact, strict=True):
            s = pendulum(law.format(at))
            d = internal(s, ["pin.angle"], step=step, integrator=integrator, substeps=substeps)
            errors.append(abs(simulate(d, 1.5)["plant.pin.angle"][-1] - wanted))
        return float(np.mean(errors))

    assert math.log2(mean_error(steps[0]) / mean_error(steps[1])) / 3 > order - 0.35


@pytest.mark.parametrize("system", [belt, stopped, bouncing])
def test_internal_and_continuous_steps_agree(system):
    """Both take Runge–Kutta steps and locate on the same cubic: but for rounding they are equal."""
    outputs = ["slide.displacement", "slide.speed"]
    inside = simulate(internal(system(), outputs), 1.0)
    outside = simulate(diagram_of(system(), outputs, solver="rk4", tolerance=None), 1.0)
    for name in outputs:
        assert inside[f"plant.{name}"] == pytest.approx(outside[f"plant.{name}"], abs=1e-11)
    assert inside.events.times("plant") == pytest.approx(outside.events.times("plant"), abs=1e-11)


@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
def test_closures_hold_at_and_after_events(integrator):
    """A loop with a torque that jumps at an angle: closed to rounding, and the work is right."""
    s = slider_crank(planar=True, drive="none")
    main = cast(Joint, s["main"])
    s.torsional_spring("load", main, stiffness=0.0, torque="where(q < 1.2345, -20, 30)")
    names = ["closure", "closure_rate", "kinetic_energy", "potential_energy", "main.angle"]
    initial = {"main.angle": 0.6, "main.speed": 5.0}
    d = internal(s, names, step=1e-3, substeps=2, integrator=integrator, initial=initial)
    result = simulate(d, 0.3)
    values = {name: result[f"plant.{name}"] for name in names}
    assert values["closure"].max() < 1e-12 and values["closure_rate"].max() < 1e-10
    angle = values["main.angle"]
    assert angle.min() < 1.2345 < angle.max() and len(result.events) == 1
    work = 20 * (np.minimum(angle, 1.2345) - 0.6) - 30 * np.maximum(angle - 1.2345, 0)
    energy = values["kinetic_energy"] + values["potential_energy"]
    # Of 50 J, at ω = 10 rad/s and h = 0.5 ms: RK4 loses (ω h)⁴ = 6e-10, implicit steps some (ω h)²
    # = 2.5e-5.
    tolerance = 3e-8 if integrator == "rk4" else 5e-3
    assert energy - energy[0] == pytest.approx(work, abs=tolerance)


@pytest.mark.parametrize("system", [belt, stopped, bouncing])
def test_implicit_steps_locate_events(system):
    """Of order 2, as without events. Reference: Runge–Kutta steps of 0.1 ms."""
    exact = times(internal(system(), step=1e-4), 2.0)
    coarse, fine = (
        np.abs(np.subtract(times(internal(system(), step=h, integrator="implicit"), 2.0), exact))
        for h in (1e-3, 2e-4)
    )
    assert math.log(coarse.max() / fine.max(), 5) > 1.65


# -- limits


def test_events_at_ticks_are_integrated_across():
    """The step in which the force jumps is off by up to the jump times the step."""
    d = internal(pulled("where(l < 1.2505, -3, 1)"), ["slide.speed"], events="tick")
    events, counts = log(d.compile(), 1000)
    assert (events, counts) == ([], (0, 0))
    at = (math.sqrt(1 + 3 * 0.2505) - 1) / 1.5
    off = abs(simulate(d, 1.0)["plant.slide.speed"][-1] - (1 + 1.5 * at - 0.5 * (1 - at)))
    assert 1e-6 < off < 2e-3


def chattering() -> System:
    """Sliding on a surface that pushes back on both sides: a friction without a mode at rest."""
    s, body = slider(velocity=0.1)
    s.spring("dry", s.ground.marker("wall", (-1, 0, 0)), body.marker("eye"),
             force="where(v > 0, 3, -3)")  # fmt: skip
    return s


@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
def test_more_events_than_the_limit_are_counted(integrator):
    d = internal(chattering(), ["slide.speed"], max_events=5, step=1e-2, integrator=integrator)
    events, (located, unlocated) = log(d.compile(), 20)
    # It stops at 0.0667 s, in tick 7 of 20; from there on each tick has five events and a rest.
    assert unlocated == 14 and located == len(events) >= 1
    with pytest.warns(BiellaWarning, match=r"not located in 14 ticks, .*solver of `plant`"):
        speed = simulate(d, 0.2)["plant.slide.speed"]
    assert np.abs(speed[7:]).max() < 0.02


def test_two_events_in_one_step_and_a_step_that_ends_at_one():
    """Stops 0.6 mm apart are both met within 1 ms; the first lies at the end of a step."""
    s, _ = slider(velocity=1.0, position=-0.1)
    s.stop("near", s["slide"], upper=0.0, stiffness=100.0)
    s.stop("far", s["slide"], upper=0.0006, stiffness=100.0)
    found, (_, unlocated) = log(internal(s).compile(), 102)
    assert [event.what for event in found] == ["near: touches", "far: touches"]
    # With ω² = 50: x = sin(ω t) / ω
    assert [event.time for event in found] == pytest.approx(
        [0.1, 0.1 + math.asin(0.0006 * math.sqrt(50)) / math.sqrt(50)], abs=1e-12
    )
    assert unlocated == 0


# -- with rigid contacts


def test_a_rigid_contact_beside_a_law_with_a_condition_on_the_state():
    """Thrown up against a spring that acts above 0.02 m, then falls onto the bottom of a hole."""
    g, speed, edge, k, mass = 9.81, 1.0, 0.02, 400.0, 2.0
    s = System("ball", (0.0, -g), planar=True)
    body = s.body("ball", mass=mass, inertia=1.0, velocity=(0, speed))
    slide = s.prismatic("slide", s.ground, body, at=(0, 0), axis=(0, 1))
    s.stop("stop", slide, upper=edge, stiffness=k)
    s.clearance_revolute(
        "pin", body.marker("middle"), s.ground.marker("hole"), clearance=0.1, pin_radius=0.02,
        contact=RigidContact(restitution=0.5),
    )  # fmt: skip
    found, (_, unlocated) = log(internal(s, substeps=5).compile(), 450)
    up = (speed - math.sqrt(speed**2 - 2 * g * edge)) / g
    v, omega = speed - g * up, math.sqrt(k / mass)
    # It swings about g / ω² below the edge, symmetric in time, until it is back at the edge.
    lasts = 2 * math.atan2(v / omega, g / omega**2) / omega
    fall = (-v + math.sqrt(v**2 + 2 * g * (0.1 + edge))) / g
    at = [up, up + lasts, up + lasts + fall]
    assert [event.what for event in found][:3] == ["stop: touches", "stop: leaves", "pin: rebounds"]
    assert [event.time for event in found][:3] == pytest.approx(at, abs=1e-11)
    assert unlocated == 0


# -- state, couplings, export


@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
@pytest.mark.parametrize("system", [belt, stopped, bouncing])
def test_save_and_restore_around_events_bit_for_bit(system, integrator):
    plan = internal(system(), integrator=integrator, substeps=2).compile()
    events = [event.time for event in log(plan, 1200)[0]]
    assert events
    with Instance(plan) as one, Instance(plan) as two:
        one.initialize()
        two.initialize()
        for at in events:
            one.run(math.floor(at * 1e3) - one.tick)
            for _ in range(3):
                two.restore(one.save())
                one.run(1)
                two.run(1)
                assert one.save() == two.save()
        for end in (1.3004, 1.3008):
            one.run_to(end)
            two.restore(one.save())
            one.run_to(end + 0.1)
            two.run_to(end + 0.1)
            assert one.save() == two.save()


def coupled(method: str, **options: Any) -> Diagram:
    """A body that meets stops, tied by a spring of the diagram to a second mass."""
    d = Diagram("coupled", step=1e-3, coupling=method, **options)
    first, _ = slider(velocity=1.0)
    first.stop("stop", first["slide"], lower=-0.1003, upper=0.1003, stiffness=3e4)
    first.friction("dry", first["slide"], coulomb=2.0, static=4.0)
    second, _ = slider()
    for s in (first, second):
        s.force("pull", s["slide"], Input("F"))
    a = d.add(first.block([], ["slide.displacement", "dry.sticks"], mode="internal"), "a")
    b = d.add(second.block([], ["slide.displacement"], mode="internal"), "b")
    for name, one, other in (("spring", a, b), ("back", b, a)):
        force = d.add(Expression("300 * (y - x)", unit="N"), name)
        d.connect(one["slide.displacement"], force["x"])
        d.connect(other["slide.displacement"], force["y"])
        d.connect(force, one["F"])
    return d


@pytest.mark.filterwarnings("ignore:gauss-seidel is equivalent to jacobi")
@pytest.mark.parametrize("estimate", [False, True])
@pytest.mark.parametrize("method", ["jacobi", "gauss-seidel", "fixed-point", "newton"])
def test_events_of_repeated_steps_appear_once(method, estimate):
    d = coupled(method, extrapolation=1)
    events, (located, unlocated) = log(d.compile(estimate_error=int(estimate)), 600)
    assert located == len(events) and unlocated == 0
    at = np.array([event.time for event in events])
    assert len(events) >= 6 and (np.diff(at) > 0).all()
    stop = [event.what for event in events if event.what.startswith("stop")]
    assert stop == (["stop: touches", "stop: leaves"] * len(stop))[: len(stop)]
    # The stick mode at a tick is that of the last event before it.
    sticks = simulate(d, 0.6)["a.dry.sticks"]
    dry = [event for event in events if event.what.startswith("dry")]
    after = np.searchsorted([event.time for event in dry], 1e-3 * np.arange(601))
    wanted = [n > 0 and dry[n - 1].what == "dry: sticks" for n in after]
    assert np.array_equal(sticks != 0, wanted)


def test_iterated_couplings_agree_with_one_mechanism():
    """Both bodies and the spring in one mechanism: the same events, of order 2 in the coupling."""
    s, body = slider(velocity=1.0)
    s.stop("stop", s["slide"], lower=-0.1003, upper=0.1003, stiffness=3e4)
    s.friction("dry", s["slide"], coulomb=2.0, static=4.0)
    other = s.body("other", mass=2.0, inertia=0.1)
    s.prismatic("second", s.ground, other, at=(0, 0, 0), axis=(1, 0, 0))
    far = other.marker("far", (9, 0, 0))
    s.spring("tie", body.marker("eye"), far, stiffness=300.0, free_length=9.0)
    one = times(internal(s, step=1e-3), 0.3)
    two = times(coupled("newton", extrapolation=2), 0.3)
    assert len(one) >= 4 and two == pytest.approx(one, abs=1e-5)


@pytest.mark.parametrize("interval", [1e-3, 7e-3])
@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
def test_an_exported_fmu_has_the_same_events(tmp_path, interval, integrator):
    outputs = ["slide.displacement", "slide.speed"]
    d = internal(belt(), outputs, integrator=integrator)
    inside = simulate(d, 2.1)
    for name in outputs:
        d.output(name.replace(".", "_"), d["plant"][name])
    path = d.export_fmu(tmp_path / "belt.fmu", sources=False)
    outside = fmpy.simulate_fmu(str(path), stop_time=2.1, output_interval=interval)
    every = round(interval / 1e-3)
    for name in outputs:
        assert np.array_equal(outside[name.replace(".", "_")], inside[f"plant.{name}"][::every])


def test_the_error_estimate_locates_events_too():
    """The halved steps of the estimate divide at the same events: its error is that of order 4."""
    result = simulate(internal(stopped(), ["slide.displacement"]), 1.0, error_estimate="whole")
    estimate = result.error_estimate
    assert estimate is not None
    # (ω h)⁴ / 120 = 8e-9 of the phase of a contact, at 1 m/s.
    assert estimate.signals["plant.slide.displacement"] < 1e-8
