"""Drivers: prescribed motion, its initial state, and laws and inputs that jump."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from biella import BiellaWarning, Diagram, DiagramError, simulate
from biella.blocks import Expression
from biella.blocks.multibody import Input, Joint, Linear, System, Table
from biella.blocks.multibody.plant._tree import grow_tree
from biella.scheduler.engine._engine import DIAGNOSTIC_RUN

from ..small_systems import friction_loop, run, slider

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(("mode", "tolerance"), [("continuous", 1e-9), ("internal", 1e-8)])
def test_an_input_drives_with_its_rate_and_acceleration(mode, tolerance):
    """Internal steps hold the input and go on by its derivatives: an error of h³ / 6 in each
    place.
    """
    s, _ = slider()
    s.driver("drive", s["slide"], Input("x"))
    d = Diagram("driven", step=1e-3)
    plant = d.add(
        s.block(outputs=["slide.displacement", "slide.speed", "drive.effort"], mode=mode),
        name="plant",
    )
    assert [port.name for port in plant.inputs] == ["x", "x_rate", "x_acceleration"]
    for name, text in (
        ("x", "sin(3*t)"),
        ("x_rate", "3*cos(3*t)"),
        ("x_acceleration", "-9*sin(3*t)"),
    ):
        source = d.add(Expression(text), name=f"source_{name}")
        d.connect(source, plant[name])
    result = simulate(d, 2.0)
    t = result.t
    assert np.allclose(result["plant.slide.displacement"], np.sin(3 * t), atol=tolerance)
    # At the start itself an input has its default: the speed is there after the first step.
    speed = result["plant.slide.speed"][1:]
    assert np.allclose(speed, 3 * np.cos(3 * t[1:]), atol=3e3 * tolerance)
    assert np.allclose(result["plant.drive.effort"], -18 * np.sin(3 * t), atol=1e-6)


@pytest.mark.parametrize(
    ("text", "at", "size"),
    [("0 if t < 0.5 else 1", "0.5", "1"), ("floor(3*t)", "0.333333", "1"),
     ("t + 0.2*(t > 0.7)", "0.7", "0.2")],
)  # fmt: skip
def test_a_formula_that_jumps_cannot_prescribe_motion(text, at, size):
    s, body = slider()
    with pytest.raises(DiagramError, match=rf"law of `drive` jumps by {size} at t = {at} s"):
        s.driver("drive", s["slide"], text)
    with pytest.raises(DiagramError, match=rf"motion `x` of .* jumps by {size} at t = {at} s"):
        body.marker("moving", motion={"x": text})
    assert not s.drivers


@pytest.mark.parametrize("text", ["where(t < 1, t**2, 2*t - 1)", "abs(t - floor(t + 0.5))", "t"])
def test_a_formula_with_branches_that_meet_may_drive(text):
    s, _ = slider()
    s.driver("drive", s["slide"], text)


@pytest.mark.parametrize("mode", ["continuous", "internal"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.3*(t > 0.05)", r"motion `drive` jumps by 0\.3 m or rad in the step to t = 0\.05\d* s: "),
     ("0.1*floor(100*t + 0.5)", r"jumps by 0\.1 .* the largest of 10 jumps"),
     ("t", r"the largest of \d+ jumps.*connect rate")],
)  # fmt: skip
def test_an_input_that_jumps_is_warned_of(mode, text, expected):
    """The effort of such a driver is 0, wherever it puts the body."""
    s, _ = slider()
    s.driver("drive", s["slide"], Input("x"))
    d = Diagram("driven", step=1e-3)
    plant = d.add(s.block(outputs=["slide.displacement", "drive.effort"], mode=mode), name="plant")
    d.connect(d.add(Expression(text), name="source"), plant["x"])
    with pytest.warns(BiellaWarning, match=expected):
        result = simulate(d, 0.1)
    assert np.abs(result["plant.drive.effort"]).max() < 1e-9


@pytest.mark.parametrize("options", [{}, {"mode": "internal"},
                                     {"mode": "internal", "integrator": "implicit"}])  # fmt: skip
def test_a_run_starts_where_an_input_that_drives_is(options):
    """Not where its default is, nor at 0: the first step is then no jump."""
    s, _ = slider()
    s.driver("drive", s["slide"], Input("x", -0.3))
    d = Diagram("driven", step=1e-3)
    shown = ["slide.displacement", "slide.speed", "kinetic_energy"]
    plant = d.add(s.block(outputs=shown, **options), name="plant")
    laws = ("0.1*cos(9*t + 1)", "-0.9*sin(9*t + 1)", "-8.1*cos(9*t + 1)")
    for law, port in zip(laws, plant.inputs, strict=True):
        d.connect(d.add(Expression(law)), plant[port.name])
    result = simulate(d, 0.1)
    angle = 9 * result.t + 1
    assert result["plant.slide.displacement"] == pytest.approx(0.1 * np.cos(angle), abs=1e-5)
    assert result["plant.slide.speed"] == pytest.approx(-0.9 * np.sin(angle), abs=1e-4)
    energy = result["plant.kinetic_energy"]
    assert energy == pytest.approx(result["plant.slide.speed"] ** 2, abs=1e-12)


@pytest.mark.parametrize(
    ("laws", "expected"),
    [(("0.5", "0", "0*t"), "positions given do not fit .* `bob` is moved by"),
     (("t", "1", "0*t"), "starts with an impulse: `bob` was given at rest and gets")],
)  # fmt: skip
def test_what_an_input_changes_at_the_start_is_warned_of(laws, expected):
    s, body = slider()
    bob = s.body("bob", mass=1.0, inertia=0.1, position=(0, 0, -1))
    s.revolute("pin", body, bob, at=(0, 0, 0), axis=(0, 1, 0))
    s.driver("drive", s["slide"], Input("x"))
    d = Diagram("driven", step=1e-3)
    plant = d.add(s.block(outputs=["bob.position"]), name="plant")
    for law, port in zip(laws, plant.inputs, strict=True):
        d.connect(d.add(Expression(law)), plant[port.name])
    with pytest.warns(BiellaWarning, match=expected):
        simulate(d, 0.01)


@pytest.mark.parametrize("mode", ["continuous", "internal"])
def test_an_input_that_changes_after_the_start_jumps_however_often(mode):
    """The initial state is found once with inputs: not again where it is restored."""
    s, _ = slider()
    s.driver("drive", s["slide"], Input("x"))
    d = Diagram("driven", step=1e-3)
    d.connect(d.input("x"), d.add(s.block(outputs=["slide.displacement"], mode=mode), "plant")["x"])
    with d.compile().instantiate() as instance:
        instance.set("x", 0.2)
        instance.evaluate()
        assert instance.get("plant.slide.displacement") == pytest.approx(0.2, abs=1e-12)
        saved, ends = instance.save(), []
        for _ in range(2):
            instance.restore(saved)
            instance.set("x", 0.5)
            instance.evaluate()
            assert instance.get("plant.slide.displacement") == pytest.approx(0.2, abs=1e-12)
            instance.run(1)
            ends.append(instance.save())
        assert ends[0] == ends[1]
        with pytest.warns(BiellaWarning, match=r"`drive` jumps by 0\.3 m or rad .* t = 0\.001 s"):
            instance.warn(DIAGNOSTIC_RUN)


def test_the_rate_of_a_driver_that_jumps_is_warned_of():
    s, _ = slider()
    s.driver("drive", s["slide"], Table([0.0, 0.03, 0.1], [0.0, 0.03, -0.11]))
    with pytest.warns(BiellaWarning, match=r"rate of .* `drive` jumps by 3 m/s .* to t = 0\.03"):
        run(s, 0.05, ["slide.displacement"])


@pytest.mark.parametrize("mode", ["continuous", "internal"])
@pytest.mark.parametrize("steps", [8, 10, 22, 50])
def test_a_smooth_driver_in_few_steps_does_not_jump(steps, mode):
    """Its peaks lie in the middle of steps, at both ends of which the acceleration is the same."""
    s, _ = slider()
    shift = "0" if steps % 4 else f"pi/{steps}"
    s.driver("drive", s["slide"], f"0.1*sin(2*pi*t + {shift}) - 0.2*pi*t")
    run(s, 1.0, ["slide.displacement"], step=1 / steps, mode=mode)


def test_drivers_are_in_the_tree_wherever_the_loop_is():
    """Both pins of the coupler are driven, so that the tree must run through the coupler."""
    s = System("four bar", gravity=(0, 0, 0))
    left = s.body("left", mass=1, inertia=0.1, position=(0, 0.5, 0))
    coupler = s.body("coupler", mass=1, inertia=0.1, position=(1, 1, 0))
    right = s.body("right", mass=1, inertia=0.1, position=(2, 0.5, 0))
    z = (0, 0, 1)
    s.revolute("a", s.ground, left, at=(0, 0, 0), axis=z)
    s.revolute("d", s.ground, right, at=(2, 0, 0), axis=z)
    b = s.revolute("b", left, coupler, at=(0, 1, 0), axis=z)
    c = s.revolute("c", coupler, right, at=(2, 1, 0), axis=z)
    s.driver("turn", b, 0.0)
    s.torsional_spring("spring", c, stiffness=1.0)
    tree = grow_tree(s)
    assert ("b", 0) in tree.coordinates
    s.driver("other", c, 0.0)
    assert {("b", 0), ("c", 0)} <= set(grow_tree(s).coordinates)
    s.driver("third", cast(Joint, s["a"]), 0.0)
    s.driver("fourth", cast(Joint, s["d"]), 0.0)
    tree = grow_tree(s)
    assert [joint.name for joint in tree.cuts] == ["d"], "the last one is measured"


@pytest.mark.parametrize("start", [7.0, -20.0])
def test_a_driver_may_start_in_any_turn(start):
    """A crank that was given at an angle of 0: whole turns of the law change no pose."""
    places = []
    for turns in (0.0, start - np.angle(np.exp(1j * start))):
        s = friction_loop("abcd")
        s.driver("crank", s["a"], Linear(start - turns, -4.0))
        with pytest.warns(BiellaWarning, match="velocities given do not fit"):  # turned by the law
            _, (angle, place) = run(s, 0.5, ["a.angle", "coupler.position"])
        assert angle[0] == pytest.approx(start - turns, abs=1e-10)
        places.append(place)
    assert np.abs(places[0] - places[1]).max() < 1e-9


@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
def test_a_driver_turns_a_pendulum_on_a_pivot_that_moves(integrator):
    """τ = m L (g sin θ + x'' cos θ) at a steady θ', which starts in the second turn of θ."""
    s = System("pivot", gravity=(0, -9.81, 0))
    bob = s.body("bob", mass=1.5, inertia=0.1, position=(0, -1, 0))
    pivot = s.ground.marker("pivot", axis=(0, 0, 1), motion={"x": "0.1*sin(3*t)"})
    joint = s.revolute("pin", pivot, bob.marker("pin", (0, 1, 0), axis=(0, 0, 1)))
    s.driver("turn", joint, Linear(2.0 * np.pi, 2.0))
    t, (place, angle, torque, effort) = run(
        s, 3.0, ["bob.position", "pin.angle", "pin.torque", "turn.effort"],
        mode="internal", integrator=integrator,
    )  # fmt: skip
    theta, x, x2 = 2.0 * (np.pi + t), 0.1 * np.sin(3 * t), -0.9 * np.sin(3 * t)
    assert np.allclose(angle, theta, rtol=0, atol=1e-11)
    assert np.allclose(place[:, :2], np.c_[x + np.sin(theta), -np.cos(theta)], rtol=0, atol=1e-11)
    exact = 1.5 * (9.81 * np.sin(theta) + x2 * np.cos(theta))
    assert np.allclose(effort, exact, rtol=0, atol=1e-8)
    assert np.abs(torque).max() < 1e-10, "what the driver gives is none of the reaction"
