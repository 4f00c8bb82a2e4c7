"""Laws of mechanisms with branches: events located within the tick, against closed forms.

Event times are those of polynomials or of harmonic motions: with dopri5 and a tolerance of 1e-12
the states are right to some 1e-12, so that an event at a speed of about 1 m/s is located to
1e-11 s.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from biella import BiellaWarning, Diagram, linearize, simulate
from biella.blocks import Step
from biella.blocks.multibody import Input, Joint, Table
from biella.scheduler.engine._engine import Instance

from ..events import diagram_of, locate
from ..small_systems import slider, wheel

pytestmark = pytest.mark.engine

CLOSE = 1e-10


def pushed(law, *, velocity=1.0):
    """A body of 2 kg on a slide, at 0, with a force of time."""
    s, _ = slider(velocity=velocity)
    s.force("push", s["slide"], law)
    return s


def pulled(law, *, velocity=1.0):
    """The same, with a force by a law of the length 1 + x that pulls it back."""
    s, body = slider(velocity=velocity)
    s.spring("spring", s.ground.marker("wall", (-1, 0, 0)), body.marker("eye"), force=law)
    return s


@pytest.mark.parametrize("solver", ["rk4", "dopri5", "radau5"])
@pytest.mark.parametrize("jump", [0.4, 0.40037])
def test_a_force_that_jumps_in_time(solver, jump):
    """The motion is a parabola on both sides, which the solvers integrate exactly."""
    tolerance = None if solver == "rk4" else 1e-12
    d = diagram_of(pushed(f"where(t < {jump}, 3, -1)"), solver=solver, tolerance=tolerance)
    found = locate(d, 1.0)
    speed = 1 + 1.5 * jump - 0.5 * (1 - jump)
    place = jump + 0.75 * jump**2 + (1 + 1.5 * jump) * (1 - jump) - 0.25 * (1 - jump) ** 2
    assert found.x == pytest.approx([place, speed], abs=1e-11)
    assert found.times == pytest.approx([jump] * len(found.times), abs=CLOSE)
    assert found.unlocated == 0


def test_a_force_that_jumps_at_a_place():
    found = locate(diagram_of(pulled("where(l < 1.25, -3, 1)")), 1.0)
    at = (np.sqrt(1.75) - 1) / 1.5  # t + 0.75 t² = 0.25
    rest = 1 - at
    speed = 1 + 1.5 * at
    assert found.times == pytest.approx([at], abs=CLOSE)
    exact = [0.25 + speed * rest - 0.25 * rest**2, speed - 0.5 * rest]
    assert found.x == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize(
    ("law", "times"),
    [
        ("3*abs(sin(pi*t/0.30011))", 0.30011 * np.arange(1, 4)),
        ("min(2, 10*t - 0.0005)", [0.20005]),
        ("floor(t/0.30011)", 0.30011 * np.arange(1, 4)),
        ("clip(t, 0.25037, 0.50029)", [0.25037, 0.50029]),
        ("round(2*t + 0.0004)", [0.2498, 0.7498]),
        ("t % 0.40013", 0.40013 * np.arange(1, 3)),
        ("sign(t - 0.123456)", [0.123456]),
    ],
)
def test_events_of_formulas_are_where_they_are_not_smooth(law, times):
    """At a tick modes are decided anyway: what lies there is an event, or is none."""
    found = locate(diagram_of(pushed(law)), 1.0).times
    found = found[np.abs(found - np.round(found, 3)) > 1e-9]
    assert found.size == len(times) and found == pytest.approx(times, abs=CLOSE)


def test_points_of_a_table_in_time_are_hit_without_a_search():
    """A trapezium of force: its integral is exact, also with Euler's rule for the rate of speed."""
    points, values = np.array([0.10003, 0.20005, 0.3, 0.40007]), np.array([1.0, 5.0, 5.0, 0.5])
    d = diagram_of(pushed(Table(points, values), velocity=0.0), solver="rk4", tolerance=None)
    with Instance(d.compile()) as instance:
        instance.initialize()
        instance.run(1000)
        located, unlocated, searched = instance.event_counts
        assert (located, unlocated, searched) == (3, 0, 0)  # one lies on a tick
        area = 0.10003 * 1.0 + np.trapezoid(values, points) + (1 - 0.40007) * 0.5
        assert instance.states[1] == pytest.approx(area / 2.0, abs=1e-13)


def test_a_dense_table_in_time_is_not_located():
    points = np.linspace(0, 1, 20001)
    found = locate(diagram_of(pushed(Table(points, np.sin(points))), step=1e-2), 0.5)
    assert found.times.size == 0 and found.unlocated == 0


def test_points_of_a_table_of_a_length_are_events_where_it_is_linear():
    points, values = np.array([1.1003, 1.20005, 1.3]), [0.0, 5.0, 1.0]
    linear = locate(diagram_of(pulled(Table(points, values, of="l"))), 0.5)
    cubic = locate(diagram_of(pulled(Table(points, values, "cubic", of="l"))), 0.5)
    assert linear.times.size == 3 and cubic.times.size == 2
    # Until the first point nothing acts; then x'' = -s / 2 · 5 / 0.09975.
    assert linear.times[0] == pytest.approx(0.1003, abs=CLOSE)
    omega = np.sqrt(0.5 * 5 / (1.20005 - 1.1003))
    assert linear.times[1] == pytest.approx(
        0.1003 + np.arcsin(omega * (1.20005 - 1.1003)) / omega, abs=CLOSE
    )


@pytest.mark.parametrize(("solver", "order"), [("heun", 2), ("rk3", 3), ("rk4", 4), ("dopri5", 5)])
@pytest.mark.parametrize(
    "law", ["where(t < {0}, 3, -2)", "where(q < {0}, 3, -2)", "3*abs(q - {0})"]
)
def test_the_order_is_kept_across_jumps_of_laws(solver, order, law):
    """A pendulum with a torque that jumps. Reference: dopri5 at a 32 times smaller step."""

    def end(at, step, solver):
        s, body = wheel(inertia=0.5, speed=2.0)
        s.torsional_spring("motor", s["pin"], torque=law.format(at), stiffness=4.0)
        s.spring("swing", s.ground.marker("wall", (1, 1, 0)), body.marker("eye", (0.5, 0, 0)),
                 stiffness=3.0, free_length=0.7)  # fmt: skip
        return locate(diagram_of(s, step=step, solver=solver, tolerance=None), 1.5).x[0]

    places = np.linspace(0.11, 0.43, 7)
    exact = [end(at, 0.1 / 512, "dopri5") for at in places]
    coarse, fine = (
        np.mean([abs(end(a, 0.1 / n, solver) - b) for a, b in zip(places, exact, strict=True)])
        for n in (2, 16)
    )
    assert np.log2(coarse / fine) / 3 > order - 0.35


@pytest.mark.parametrize(("at", "events"), [(0.30005, 1), (0.3, 0)])
def test_velocities_follow_a_driver_whose_rate_jumps(at, events):
    """The impulse is reported once, also if it lies on a tick where all positions are closed."""
    s, _ = slider()
    s.driver("motor", s["slide"], f"0.1*max(t - {at}, 0)")
    d = diagram_of(s, ["slide.speed"], solver="rk4", tolerance=None)
    found = locate(d, 1.0)
    assert found.times == pytest.approx([at] * events, abs=CLOSE)
    assert found.x == pytest.approx([0.1 * (1 - at), 0.1], abs=1e-13)
    with pytest.warns(
        BiellaWarning, match=rf"jumps by 0\.1 m/s or rad/s in the step to t = {at} s:"
    ):
        simulate(d, 1.0)


def test_closures_hold_at_and_after_events():
    """A four-bar under a torque that jumps: closed to rounding, and its energy balance holds."""
    from biella.blocks.multibody.mechanisms import slider_crank

    s = slider_crank(planar=True, drive="none")
    s.torque("load", cast(Joint, s["main"]), "where(t < 0.10037, 20, -30)")
    d = Diagram("loop", step=1e-3, solver="dopri5", tolerance=1e-10)
    names = ["closure", "closure_rate", "kinetic_energy", "potential_energy", "main.angle"]
    d.add(s.block(outputs=names), name="plant")
    result = simulate(d, 0.4)
    values = {name: result[f"plant.{name}"] for name in names}
    assert values["closure"].max() < 1e-13 and values["closure_rate"].max() < 1e-11
    energy = values["kinetic_energy"] + values["potential_energy"]
    # The work of a constant torque is the torque times the angle, so that the angle of the jump
    # follows from the balance over the whole run; it lies in the tick of the jump.
    angle = values["main.angle"]
    at = (energy[-1] - energy[0] + 30 * angle[-1] + 20 * angle[0]) / 50
    assert angle[100] < at < angle[101] or angle[101] < at < angle[100]
    early = 20 * (angle[:101] - angle[0])
    assert energy[:101] - energy[0] == pytest.approx(early, abs=1e-7)
    late = 30 * (angle[-1] - angle[101:])
    assert energy[101:] - energy[-1] == pytest.approx(late, abs=1e-7)


@pytest.mark.parametrize("options", [{}, {"solver": "dopri5", "tolerance": 1e-9}])
def test_save_and_restore_around_events_bit_for_bit(options):
    s, body = slider(velocity=1.0)
    s.force("push", s["slide"], "where(t < 0.1005, 3, -20)")
    s.stop("stop", s["slide"], lower=-0.1, upper=0.11, stiffness=5000.0, damping=20.0)
    s.driver("motor", s.revolute("pin", body, s.body("arm", mass=1.0, inertia=0.1),
             at=(0, 0, 0), axis=(0, 0, 1)), "max(t - 0.2, 0)**2")  # fmt: skip
    plan = diagram_of(s, **({"solver": "rk4", "tolerance": None} | options)).compile()
    with Instance(plan) as one, Instance(plan) as two:
        one.initialize()
        two.initialize()
        for ticks in (99, 1, 1, 60, 37):
            one.run(ticks)
            two.restore(one.save())
            one.run(13)
            two.run(13)
            assert one.save() == two.save()
        # The same within ticks.
        for end in (0.3005, 0.3008, 0.3103):
            one.run_to(end)
            two.restore(one.save())
            one.run_to(end + 0.05)
            two.run_to(end + 0.05)
            assert one.save() == two.save()


def test_linearize_keeps_the_modes_of_laws():
    s = pulled("where(l < 1, 7*(l - 1), 30*(l - 1))", velocity=0.0)
    d = Diagram("linear", step=1e-3)
    d.add(s.block(outputs=["slide.displacement"]), name="plant")
    assert linearize(d).A[1, 0] == pytest.approx(-15.0, abs=1e-6)


def test_an_input_that_steps_between_ticks_reaches_the_mechanism():
    s, _ = slider(velocity=1.0)
    s.force("push", s["slide"], Input("F"))
    d = Diagram("step", step=1e-3, solver="dopri5", tolerance=1e-12)
    plant = d.add(s.block(outputs=["slide.speed"]), name="plant")
    d.connect(d.add(Step(at=0.123456, to=4.0)), plant)
    assert simulate(d, 1.0)["plant.slide.speed"][-1] == pytest.approx(
        1 + 2 * (1 - 0.123456), abs=1e-11
    )


def test_events_at_ticks_are_as_before():
    """One rk4 step across a jump on the grid loses 1/6 of step · height."""
    d = diagram_of(pushed("where(t < 0.4, 3, -1)"), solver="rk4", tolerance=None, events="tick")
    found = locate(d, 1.0)
    assert found.times.size == 0
    exact = 1 + 1.5 * 0.4 - 0.5 * 0.6
    assert found.x[1] - exact == pytest.approx(-1e-3 / 6 * 4 / 2, rel=1e-6)
