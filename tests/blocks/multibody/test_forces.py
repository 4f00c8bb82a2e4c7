"""Forces, laws and drivers in the engine, against closed forms and small equations of their own."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import simpson, solve_ivp

from biella import BiellaWarning, Diagram, DiagramError, simulate
from biella.blocks import Expression
from biella.blocks.multibody import Input, Joint, Linear, Sine, System, Table
from biella.blocks.multibody.plant._initial import coordinate_name
from biella.blocks.multibody.plant._tree import grow_tree
from biella.blocks.multibody.system._laws import Formula
from biella.scheduler.engine._engine import DIAGNOSTIC_RUN

pytestmark = pytest.mark.engine

ENERGIES = ["kinetic_energy", "potential_energy"]


def run(
    system, until, outputs, *, step=1e-3, inputs=(), mode="continuous", integrator="rk4", **options
):
    d = Diagram("mechanism", step=step)
    d.add(system.block(inputs, outputs, mode=mode, integrator=integrator), name="plant")
    result = simulate(d, until, **options)
    return result.t, [result[f"plant.{name}"] for name in outputs]


def solve(slope, until, start):
    """The state at the end, to some 1e-11."""
    return solve_ivp(slope, (0, until), start, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


def slider(*, position=0.0, velocity=0.0):
    """A body of 2 kg on a slide along x."""
    s = System("slider", gravity=(0, 0, 0))
    body = s.body(
        "mass", mass=2.0, inertia=0.1, position=(position, 0, 0), velocity=(velocity, 0, 0)
    )
    axis = (1, 0, 0)
    s.prismatic("slide", s.ground.marker("rail", axis=axis), body.marker("shoe", axis=axis))
    return s, body


def wheel(*, inertia=0.5, speed=0.0, angle=0.0):
    """A body that turns about z."""
    s = System("wheel", gravity=(0, 0, 0))
    turn = [np.cos(angle / 2), 0, 0, np.sin(angle / 2)]
    body = s.body("disc", mass=1.0, inertia=inertia, rotation=turn, angular_velocity=(0, 0, speed))
    s.revolute("pin", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))
    return s, body


def expect_jump(text):
    """A warning with this text, or none."""
    return pytest.warns(BiellaWarning, match=text) if text else nullcontext()


# -- laws

FORMULAS = [
    "0.3*sin(5*pi*t) + t**3 - 2*t",
    "cos(t)*exp(-t) / (1 + t)",
    "tan(t/3) - asin(t/4) + acos(t/5)",
    "atan(t)*sinh(t) - cosh(t/2) + tanh(2*t)",
    "sqrt(1 + t)*log(2 + t)*log10(3 + t)",
    "hypot(t, 1 - t) + atan2(t, 2)",
    "(1 + t)**(t + 0.5) + pow(2 + t, -1.5)",
    "(1 + t)**1 + (2 + t)**0 + t**2",
    "min(t, 0.35) + max(2*t, 0.7) + clip(t**2, 0.05, 0.4)",
    "(t**2 if t < 1 else t) + where(0.1 < t < 11 and not t > 12 or t == 9, t, t)",
    "abs(0.35 - t) + t % 11 + t//12 + floor(t/13) + ceil(t/14 + .1) + round(t/25) + sign(t + 1)",
    "-(t >= 15) * t + (t <= 15) + (t != 16) + (-t)**2",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_drives_with_its_derivatives(text):
    """Place, speed and acceleration of a driven body are the jet that calculus gives in Python."""
    s, _ = slider()
    s.driver("drive", s["slide"], text)
    paths = ["slide.displacement", "slide.speed", "slide.acceleration"]
    with expect_jump("rate of the prescribed motion" if "0.35" in text else ""):
        t, (place, speed, acceleration) = run(s, 0.6, paths, step=0.06)
    expected = np.array([Formula(text).jet(now) for now in t])
    # The projection leaves 1e-13 of errors in places, the multipliers 1e-12 of accelerations.
    assert np.allclose(place, expected[:, 0], rtol=0, atol=1e-11)
    assert np.allclose(speed, expected[:, 1], rtol=0, atol=1e-10)
    assert np.allclose(acceleration, expected[:, 2], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("interpolation", ["linear", "cubic"])
def test_a_table_drives_with_its_derivatives(interpolation):
    law = Table([0.1, 0.2, 0.5, 0.7], [1.0, 1.2, 0.4, 0.6], interpolation)
    s, _ = slider()
    s.driver("drive", s["slide"], law)
    # A spline has no rate beyond its ends either.
    with expect_jump("rate of the prescribed motion `drive` jumps by"):
        t, (place, speed, acceleration) = run(
            s, 0.9, ["slide.displacement", "slide.speed", "slide.acceleration"], step=0.03
        )
    inner = np.all(
        np.abs(t[:, None] - law.points) > 1e-9, axis=1
    )  # which side of a point is rounding
    expected = np.array([law.jet(now) for now in t])
    assert np.allclose(place, expected[:, 0], rtol=0, atol=1e-11)
    assert np.allclose(speed[inner], expected[inner, 1], rtol=0, atol=1e-10)
    assert np.allclose(acceleration[inner], expected[inner, 2], rtol=1e-9, atol=1e-9)


def test_coefficients_of_a_spring_follow_time_length_and_speed():
    s, body = slider(position=1.2)
    s.spring(
        "spring",
        s.ground.marker("a"),
        body.marker("b"),
        stiffness="30 + 5*l**2 + 2*t",
        damping=Table([-1.0, 0.0, 1.0], [0.5, 1.0, 3.0], "cubic", of="v"),
        force=Table([0.5, 1.0, 1.5], [1.0, 0.0, -2.0], of="l"),
        free_length=1.0,
    )
    _, (place,) = run(s, 2.0, ["slide.displacement"])
    damping = s["spring"].damping
    force = s["spring"].force

    def slope(t, y):
        x, v = y
        pull = (30 + 5 * x**2 + 2 * t) * (x - 1) + damping.evaluate(v=v) * v + force.evaluate(l=x)
        return v, -pull / 2.0

    # The table of forces has a kink, where RK4 falls back to order two of a step.
    assert place[-1] == pytest.approx(solve(slope, 2.0, (1.2, 0.0))[0], abs=1e-6)


def test_coefficients_of_a_torsional_spring_follow_time_angle_and_speed():
    s, _ = wheel(speed=2.0)
    s.torsional_spring(
        "spring",
        s["pin"],
        stiffness="4 + q**2",
        damping="0.1*abs(v)",
        free_angle=0.2,
        torque="sin(3*t)",
    )
    _, (angle,) = run(s, 3.0, ["pin.angle"])

    def slope(t, y):
        q, v = y
        return v, -((4 + q**2) * (q - 0.2) + 0.1 * abs(v) * v + np.sin(3 * t)) / 0.5

    assert angle[-1] == pytest.approx(solve(slope, 3.0, (0.0, 2.0))[0], abs=1e-7)


def test_numbers_of_laws_are_settable_and_constants_can_be_inputs():
    s, body = slider(position=0.8)
    s.spring(
        "spring", s.ground.marker("a"), body.marker("b"), stiffness=8.0, free_length=0.5,
        force=Sine(0.0, 1.0),
    )  # fmt: skip
    _, (place,) = run(s, 1.0, ["slide.displacement"], parameters={"plant.spring.stiffness": 32.0})
    assert place[-1] == pytest.approx(0.5 + 0.3 * np.cos(4.0), abs=1e-9)
    d = Diagram()
    stiffness = d.input("k", unit="N/m", default=32.0)
    plant = d.add(s.block(["spring.stiffness"], ["slide.displacement"]), name="plant")
    d.connect(stiffness, plant["spring.stiffness"])
    assert simulate(d, 1.0)["plant"][-1] == pytest.approx(place[-1], abs=1e-12)


def test_an_input_law_is_a_coefficient():
    s, body = slider(position=1.0)
    s.spring("spring", s.ground.marker("a"), body.marker("b"), stiffness=Input("k", 8.0))
    block = s.block(outputs=["slide.displacement"])
    assert [(port.name, str(port.unit)) for port in block.inputs] == [("k", "N/m")]
    assert not [p.name for p in block.parameters if "default" in p.name and not p.hidden]
    _, (place,) = run(s, 1.0, ["slide.displacement"])
    assert place[-1] == pytest.approx(np.cos(2.0), abs=1e-9)


def test_two_inputs_of_one_name_must_agree():
    s, body = slider()
    s.force("a", body.marker("a"), (Input("u"), 0, 0))
    s.spring("b", s.ground.marker("c"), body.marker("d", (1, 0, 0)), stiffness=Input("u"))
    with pytest.raises(DiagramError, match="two inputs are called `u`"):
        s.block()


# -- drivers


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


# -- both coordinates of a universal joint


@pytest.mark.parametrize("twist", [0.0, 2.5, -2.5, -0.8])
@pytest.mark.parametrize("ground_first", [True, False])
@pytest.mark.parametrize("number", [0, 1])
def test_a_universal_joint_has_springs_outputs_and_drivers_on_both_angles(
    number, ground_first, twist
):
    """One angle is held by a driver; about the other the body swings: I q'' = -k (q - q0)."""
    s = System("cross", gravity=(0, 0, 0))
    body = s.body("body", mass=1.0, inertia=np.diag([0.4, 0.4, 0.4]))
    m_g = s.ground.marker("m", axis=(0, 0, 1))
    x, z = np.array([np.cos(twist), 0.0, np.sin(twist)]), np.array([0.0, 1.0, 0.0])
    m_b = body.marker("m", rotation=np.column_stack([x, np.cross(z, x), z]))
    ends = (m_g, m_b) if ground_first else (m_b, m_g)
    joint = s.universal("cross", *ends)
    start = initial_angles(joint)
    s.driver("hold", joint, start[1 - number], coordinate=1 - number)
    s.torsional_spring(
        "spring", joint, stiffness=3.0, free_angle=start[number] + 0.3, coordinate=number
    )
    names = [f"cross.angle_{n + 1}" for n in range(2)]
    t, (moving, held, speed, energy) = run(
        s, 2.0,
        [names[number], names[1 - number], f"{names[number]}_speed", "potential_energy"],
    )  # fmt: skip
    omega = np.sqrt(3.0 / 0.4)
    assert np.allclose(moving, start[number] + 0.3 - 0.3 * np.cos(omega * t), atol=1e-8)
    assert np.allclose(speed, 0.3 * omega * np.sin(omega * t), atol=1e-7)
    assert np.allclose(held, start[1 - number], atol=1e-11)
    assert np.allclose(energy, 0.5 * 3.0 * (0.3 * np.cos(omega * t)) ** 2, atol=1e-8)


def initial_angles(joint):
    """The coordinates of a joint by their definition, in the poses that were given."""
    axes: dict[str, Any] = {}
    for side, marker, frame in (
        ("i", joint.first, joint.frame_i),
        ("j", joint.second, joint.frame_j),
    ):
        world = marker.body.rotation @ frame
        axes |= {f"{name}_{side}": world[:, n] for n, name in enumerate("fgh")}
    values = []
    for c in joint.coordinates:
        of, start, about = axes[c.of], axes[c.start], axes[c.about]
        values.append(float(np.arctan2(of @ np.cross(about, start), of @ start)))
    return values


# -- joints that close a loop


def friction_loop(order):
    """A four-bar with friction and springs on every pin; `order` changes which pin is cut."""
    s = System("loop", gravity=(0, -9.81, 0))
    # Velocities that fit together, so that they do not depend on the tree that reads them.
    left, coupler, right = (
        s.body(
            name, mass=mass, inertia=0.2, position=p, velocity=(v, 0, 0), angular_velocity=(0, 0, w)
        )
        for name, mass, p, v, w in (
            ("left", 1.0, (0, 0.5, 0), 4.5, -9.0),
            ("coupler", 1.0, (1, 1.5, 0), 9.0, 0.0),
            ("right", 2.0, (2, 1.0, 0), 4.5, -4.5),
        )
    )
    pins = {
        "a": (s.ground, left, (0, 0, 0)),
        "b": (left, coupler, (0, 1, 0)),
        "c": (coupler, right, (2, 2, 0)),
        "d": (right, s.ground, (2, 0, 0)),
    }
    for name in order:
        first, second, at = pins[name]
        joint = s.revolute(name, first, second, at=at, axis=(0, 0, 1))
        s.friction(f"friction_{name}", joint, viscous=0.05, coulomb=0.1, smoothing_speed=0.5)
        s.torsional_spring(f"spring_{name}", joint, stiffness=0.5, free_angle=0.1)
    return s


def test_efforts_and_outputs_are_the_same_wherever_a_loop_is_cut():
    outputs = [f"{pin}.{what}" for pin in "abcd" for what in ("angle", "speed", "acceleration")]
    cut, runs = set(), []
    for order in ("abcd", "dcba"):
        s = friction_loop(order)
        tree = grow_tree(s)
        cut |= {joint.name for joint in tree.cuts}
        runs.append(np.array(run(s, 2.0, outputs)[1]))
    assert len(cut) == 2
    # The crank, at 9 rad/s, makes more than a turn; what RK4 leaves depends on the coordinates.
    assert np.ptp(runs[0][0]) > 2 * np.pi
    for one, other in zip(*runs, strict=True):
        assert np.abs(one - other).max() < 1e-6 * np.abs(one).max()
    # The pins lie in one loop: their speeds add up to none.
    assert np.abs(runs[0][1::3].sum(axis=0)).max() < 1e-10


def test_power_of_friction_in_a_loop_is_what_the_energy_loses():
    s = friction_loop("abcd")
    t, values = run(s, 1.5, [*(f"{pin}.speed" for pin in "abcd"), *ENERGIES])
    lost = sum(v * (0.05 * v + 0.1 * np.tanh(v / 0.5)) for v in values[:4])
    energy = values[4] + values[5]
    assert energy[0] - energy[-1] == pytest.approx(simpson(lost, x=t), rel=1e-6)


@pytest.mark.parametrize("kind", ["prismatic", "cylindrical"])
def test_a_slide_that_closes_a_loop_has_friction_springs_and_outputs(kind):
    """A body on two slides along one line: the one that is cut carries spring, damper and load."""
    s = System("twice", gravity=(0, 0, 0))
    body = s.body("mass", mass=2.0, inertia=0.1)
    s.prismatic("first", s.ground, body, at=(0, 0, 0), axis=(1, 2, 2))
    s.force("along first", cast(Joint, s["first"]), 0.0)
    second = getattr(s, kind)("second", s.ground, body, at=(0, 0, 0), axis=(1, 2, 2))
    s.friction("friction", second, viscous=0.6, coordinate=0)
    s.stop("stop", second, lower=-0.1, upper=0.1, stiffness=50.0, coordinate=0)
    s.force("push", second, "8*cos(4*t)", coordinate=0)
    assert [joint.name for joint in grow_tree(s).cuts] == ["second"]
    names = ["second.displacement", "first.displacement"]
    names += ["second.displacement_speed", "second.displacement_acceleration"]
    _, (q, p, speed, acceleration) = run(s, 2.0, names)

    def slope(t, y):
        x, v = y
        over = np.clip(x, -0.1, 0.1) - x
        return v, (8 * np.cos(4 * t) - 0.6 * v + 50.0 * over) / 2.0

    x, v = solve(slope, 2.0, (0.0, 0.0))
    assert np.abs(q - p).max() < 1e-12
    assert q[-1] == pytest.approx(x, abs=1e-6)
    assert speed[-1] == pytest.approx(v, abs=1e-5)
    assert acceleration[-1] == pytest.approx(slope(2.0, (x, v))[1], abs=1e-4)


def test_angles_of_a_loop_are_unwrapped_and_saved():
    """A parallelogram: both cranks turn alike for three turns, whichever pin was cut."""
    s = System("parallelogram", gravity=(0, 0, 0))
    z = (0, 0, 1)
    one = s.body("one", mass=1, inertia=0.1, position=(0, 0.5, 0))
    two = s.body("two", mass=1, inertia=0.1, position=(2, 0.5, 0))
    bar = s.body("bar", mass=1, inertia=0.1, position=(1, 1, 0))
    s.revolute("a", s.ground, one, at=(0, 0, 0), axis=z)
    s.revolute("b", one, bar, at=(0, 1, 0), axis=z)
    s.revolute("c", bar, two, at=(2, 1, 0), axis=z)
    s.revolute("d", s.ground, two, at=(2, 0, 0), axis=z)
    s.driver("turn", cast(Joint, s["a"]), Linear(0.0, 10.0))
    s.driver(
        "level", cast(Joint, s["d"]), Linear(0.0, 10.0)
    )  # keeps it a parallelogram where it is flat
    (cut,) = (joint.name for joint in grow_tree(s).cuts)
    t, (angle, speed) = run(s, 2.0, [f"{cut}.angle", f"{cut}.speed"])
    sign = -1.0 if cut == "b" else 1.0
    assert np.allclose(angle, sign * 10.0 * t, atol=1e-9)
    assert np.allclose(speed, sign * 10.0, atol=1e-9)


def quick_return():
    """A crank pin in the slot of a rocker: both turn about the ground, so that the slot is cut."""
    s = System("quick return", gravity=(0, 0, 0))
    crank = s.body("crank", mass=1.0, inertia=0.1, position=(1, 0, 0))
    rocker = s.body("rocker", mass=1.0, inertia=0.5)
    z = (0, 0, 1)
    s.revolute("o", s.ground, rocker, at=(0, 0, 0), axis=z)
    s.revolute("c", s.ground, crank, at=(1, 0, 0), axis=z)
    slot = rocker.marker("slot", axis=(1, 0, 0))
    s.guide("slot", slot, crank.marker("pin", (0.4, 0, 0)))
    s.driver("turn", cast(Joint, s["c"]), Linear(0.0, 5.0))
    return s


def test_a_slot_in_a_turning_body_is_measured_and_pushed():
    """s = |1 + 0.4 exp(5 i t)|; a force in the slot does its work on s and on nothing else."""
    s = quick_return()
    s.force("push", s["slot"], "3 + 10*sin(7*t)")
    assert [joint.name for joint in grow_tree(s).cuts] == ["slot"]
    names = [
        "slot.displacement",
        "slot.speed",
        "slot.acceleration",
        "turn.effort",
        "kinetic_energy",
    ]
    t, (place, speed, acceleration, effort, kinetic) = run(s, 2.0, names)
    square, rate, bend = 1.16 + 0.8 * np.cos(5 * t), -4 * np.sin(5 * t), -20 * np.cos(5 * t)
    exact = np.sqrt(square)
    exact_speed = rate / (2 * exact)
    assert np.allclose(place, exact, atol=1e-9)
    assert np.allclose(speed, exact_speed, atol=1e-8)
    assert np.allclose(acceleration, (bend / 2 - exact_speed**2) / exact, atol=1e-6)
    work = simpson(5.0 * effort + (3 + 10 * np.sin(7 * t)) * speed, x=t)
    assert kinetic[-1] - kinetic[0] == pytest.approx(work, abs=1e-7)


@pytest.mark.parametrize("number", [0, 1])
def test_a_push_beside_the_other_coordinate_does_its_own_work_alone(number):
    """A pin in the plane of a turning body: pushed along x it has an arm of y, and vice versa."""
    s = System("table", gravity=(0, 0, 0))
    crank = s.body("crank", mass=1.0, inertia=0.1, position=(1, 0, 0))
    table = s.body("table", mass=1.0, inertia=0.5)
    for name, body, speed in (("o", table, 2.0), ("c", crank, 5.0)):
        joint = s.revolute(name, s.ground, body, at=body.position, axis=(0, 0, 1))
        s.driver(f"turn_{name}", joint, Linear(0.0, speed))
    joint = s.in_plane("pin", table.marker("top"), crank.marker("pin", (0.4, 0, 0)))
    s.force("push", joint, "3 + 10*sin(7*t)", coordinate=number)
    names = [f"pin.displacement_{number + 1}_speed", "turn_o.effort", "turn_c.effort"]
    t, (speed, table_effort, crank_effort, kinetic) = run(s, 2.0, [*names, "kinetic_energy"])
    power = 2.0 * table_effort + 5.0 * crank_effort + (3 + 10 * np.sin(7 * t)) * speed
    assert np.ptp(speed) > 1.0
    assert kinetic[-1] - kinetic[0] == pytest.approx(simpson(power, x=t), abs=1e-7)


def test_angles_of_a_cut_universal_joint_change_at_their_rates():
    """Two shafts at 30° with a universal joint between them, which is cut."""
    s = System("shafts", gravity=(0, 0, 0))
    bend = np.radians(30.0)
    out = np.array([np.cos(bend), np.sin(bend), 0.0])
    first = s.body("in", mass=1.0, inertia=0.1, position=(-1, 0, 0))
    second = s.body("out", mass=1.0, inertia=0.1, position=out)
    s.revolute("a", s.ground, first, at=(-1, 0, 0), axis=(1, 0, 0))
    s.revolute("b", s.ground, second, at=out, axis=out)
    s.universal("cross", first, second, at=(0, 0, 0), axis=((0, 1, 0), (0, 0, 1)))
    s.driver("turn", cast(Joint, s["a"]), Linear(0.0, 5.0))
    assert [joint.name for joint in grow_tree(s).cuts] == ["cross"]
    names = [f"cross.angle_{n}{what}" for n in (1, 2) for what in ("", "_speed", "_acceleration")]
    t, values = run(s, 2.0, names)
    h = t[1] - t[0]
    for angle, speed, acceleration in (values[:3], values[3:]):
        assert np.ptp(angle) > 0.5
        # Central differences are off by h² / 6 of the third derivative, some 100 rad/s³.
        assert np.abs((angle[2:] - angle[:-2]) / (2 * h) - speed[1:-1]).max() < 1e-4
        assert np.abs((speed[2:] - speed[:-2]) / (2 * h) - acceleration[1:-1]).max() < 2e-3


# -- forces on markers


@pytest.mark.parametrize("axis", range(3))
def test_a_bushing_swings_along_each_axis(axis):
    """m x'' + c x' + k x = 0 along the axes of the first marker, which are turned."""
    turned = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]], dtype=float)
    k, c = np.array([40.0, 90.0, 160.0]), np.array([0.4, 0.0, 2.0])
    direction = turned[:, axis]
    s = System("soft", gravity=(0, 0, 0))
    body = s.body("mass", mass=2.0, inertia=0.1, position=0.02 * direction)
    s.bushing(
        "rubber", s.ground.marker("seat", rotation=turned), body.marker("seat", rotation=turned),
        stiffness=[*k, 1, 2, 3], damping=[*c, 0, 0, 0],
    )  # fmt: skip
    t, (place,) = run(s, 1.0, ["mass.position"])
    decay, omega = c[axis] / 4.0, np.sqrt(k[axis] / 2.0 - (c[axis] / 4.0) ** 2)
    swing = np.exp(-decay * t) * (np.cos(omega * t) + decay / omega * np.sin(omega * t))
    assert np.allclose(place, 0.02 * np.outer(swing, direction), atol=1e-9)


@pytest.mark.parametrize("axis", range(3))
def test_a_bushing_swings_about_each_axis(axis):
    """I ψ'' = -k sin ψ - c ψ' about one axis, also far from none."""
    k, c, inertia = np.array([3.0, 5.0, 7.0]), np.array([0.0, 0.1, 0.2]), np.array([0.2, 0.3, 0.4])
    s = System("soft", gravity=(0, 0, 0))
    spin = np.zeros(3)
    spin[axis] = 4.0
    body = s.body("mass", mass=2.0, inertia=np.diag(inertia), angular_velocity=spin)
    s.bushing(
        "rubber", s.ground.marker("seat"), body.marker("seat"),
        stiffness=[1, 1, 1, *k], damping=[0, 0, 0, *c],
    )  # fmt: skip
    t, (turn, w, kinetic, potential) = run(
        s, 1.5, ["mass.rotation", "mass.angular_velocity", *ENERGIES]
    )

    def slope(_, y):
        return y[1], -(k[axis] * np.sin(y[0]) + c[axis] * y[1]) / inertia[axis]

    angle, speed = solve(slope, 1.5, (0.0, 4.0))
    found = 2 * np.arctan2(turn[-1, 1 + axis], turn[-1, 0])
    assert np.angle(np.exp(1j * (found - angle))) == pytest.approx(0.0, abs=1e-8)
    assert w[-1, axis] == pytest.approx(speed, abs=1e-7)
    lost = simpson(c[axis] * w[:, axis] ** 2, x=t)
    energy = kinetic + potential
    assert energy[0] - energy[-1] == pytest.approx(lost, abs=1e-8)


def _soft(k, rotation, *, spin=(0.0, 0.0, 0.0), damping=0.0, place=(0.0, 0.0, 0.0)):
    """A body of unequal inertia on a bushing of unequal stiffness, with turned markers."""
    s = System("soft", gravity=(0, 0, 0))
    body = s.body("mass", mass=1.0, inertia=np.diag([0.1, 0.2, 0.25]), position=place,
                  rotation=rotation, angular_velocity=spin, free=True)  # fmt: skip
    seat = [0.8, 0.6, 0.0, 0.0]
    s.bushing("rubber", s.ground.marker("seat", (0.1, 0, 0.2), rotation=seat),
              body.marker("seat", (0.1, 0, 0.2), rotation=seat),
              stiffness=k, damping=damping)  # fmt: skip
    return s


def _product(p, q):
    """The product of two quaternions."""
    scalar = p[0] * q[0] - p[1:] @ q[1:]
    return np.array([scalar, *(p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:]))])


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10)
def test_forces_of_a_bushing_are_the_gradient_of_its_potential(seed):
    """At any rotation: -∂U along each axis and about it is force and torque on the body."""
    rng = np.random.default_rng(seed)
    k = rng.uniform(0.0, 20.0, 6)
    start, place = rng.normal(size=4), rng.normal(size=3)
    start /= np.linalg.norm(start)
    inertia = np.diag([0.1, 0.2, 0.25])
    paths = ["potential_energy", "mass.acceleration", "mass.angular_acceleration", "mass.rotation"]
    h = 1e-5

    def look(shift, turn):
        half = 0.5 * np.asarray(turn)
        rotation = _product(np.array([np.sqrt(1.0 - half @ half), *half]), start)
        _, values = run(_soft(k, rotation, place=place + shift), 1e-3, paths)
        return [value[0] for value in values]

    _, acceleration, turning, found = look(np.zeros(3), np.zeros(3))
    e0, e = found[0], found[1:]
    cross = np.array([[0, -e[2], e[1]], [e[2], 0, -e[0]], [-e[1], e[0], 0]])
    r = (e0**2 - e @ e) * np.eye(3) + 2 * np.outer(e, e) + 2 * e0 * cross
    force, torque = acceleration, r @ inertia @ r.T @ turning
    none = np.zeros(3)
    for n, axis in enumerate(np.eye(3)):
        down, up = (look(sign * h * axis, none)[0] for sign in (-1, 1))
        # Differences: h² of a third derivative of about 100, and rounding of 100 J over 2 h.
        assert (down - up) / (2 * h) == pytest.approx(force[n], abs=1e-7)
        down, up = (look(none, sign * h * axis)[0] for sign in (-1, 1))
        assert (down - up) / (2 * h) == pytest.approx(torque[n], abs=1e-7)


def test_a_bushing_of_unequal_stiffness_keeps_energy_through_large_rotations():
    """Two swings past 90° in all directions; RK4 loses some 1e-10 of the energy in 20 s."""
    s = _soft([100, 100, 100, 5.0, 9.0, 2.0], [1, 0, 0, 0], spin=(4.5, 3.0, -6.0))
    _, (kinetic, potential, turn) = run(s, 20.0, [*ENERGIES, "mass.rotation"])
    assert np.degrees(2 * np.arccos(np.abs(turn[:, 0]).min())) > 95.0
    energy = kinetic + potential
    assert np.ptp(energy) < 1e-9 * energy[0]


def test_damping_of_a_bushing_only_takes_energy():
    s = _soft([100, 100, 100, 5.0, 9.0, 2.0], [1, 0, 0, 0], spin=(3.0, 2.0, -4.0),
              damping=[1, 2, 3, 0.05, 0.1, 0.02])  # fmt: skip
    _, (kinetic, potential) = run(s, 10.0, ENERGIES)
    energy = kinetic + potential
    assert np.diff(energy).max() < 1e-12
    assert energy[-1] < 0.5 * energy[0]


def test_a_planar_bushing_counts_turns():
    """I ψ'' = -k ψ with the angle itself, over more than a turn; along x and y as in space."""
    s = System("soft", gravity=(0, 0), planar=True)
    body = s.body("mass", mass=2.0, inertia=0.5, angular_velocity=20.0, position=(0.1, -0.2))
    s.bushing("rubber", s.ground.marker("seat"), body.marker("seat"), stiffness=[8.0, 18.0, 2.0])
    t, (place, w, kinetic, potential) = run(
        s, 2.0, ["mass.position", "mass.angular_velocity", *ENERGIES]
    )
    assert np.allclose(w[:, 2], 20 * np.cos(2 * t), atol=1e-7)
    assert np.allclose(place[:, 0], 0.1 * np.cos(2 * t), atol=1e-9)
    assert np.allclose(place[:, 1], -0.2 * np.cos(3 * t), atol=1e-9)
    assert np.ptp(kinetic + potential) < 1e-7


def test_a_bushing_between_two_bodies_makes_no_momentum():
    s = System("pair", gravity=(0, 0, 0))
    a = s.body(
        "a", mass=1.0, inertia=np.diag([0.1, 0.2, 0.25]), free=True, angular_velocity=(1, 2, 3)
    )
    b = s.body("b", mass=3.0, inertia=0.3, position=(0.5, 0.2, -0.1), free=True, velocity=(0, 1, 0))
    s.bushing(
        "rubber", a.marker("m", (0.2, 0, 0)), b.marker("m", (-0.2, 0.1, 0)),
        stiffness=[30, 50, 20, 2, 2, 2], damping=[1, 2, 1, 0.1, 0.1, 0.1],
    )  # fmt: skip
    _, (va, vb) = run(s, 1.0, ["a.velocity", "b.velocity"])
    assert np.abs(va + 3 * vb - [0, 3, 0]).max() < 1e-11


def test_a_bushing_between_bodies_that_turn_together_damps_nothing():
    s = System("pair", gravity=(0, 0, 0))
    spin: dict[str, Any] = {"inertia": 0.1, "angular_velocity": (0, 0, 2.0), "free": True}
    a = s.body("a", mass=1.0, **spin)
    b = s.body("b", mass=1.0, position=(1, 0, 0), velocity=(0, 2.0, 0), **spin)
    s.bushing(
        "rubber", a.marker("m"), b.marker("m", (-0.5, 0, 0)), stiffness=0.0, damping=[9.0] * 6
    )
    _, values = run(s, 0.001, ["a.acceleration", "b.acceleration", "a.angular_acceleration"])
    assert np.abs([value[0] for value in values]).max() < 1e-12


def test_friction_and_its_smooth_sign():
    s, _ = slider(velocity=1.5)
    s.friction("friction", s["slide"], viscous=0.4, coulomb=1.2, smoothing_speed=0.1)
    _, (place, speed) = run(s, 2.0, ["slide.displacement", "slide.speed"])

    def slope(_, y):
        return y[1], -(0.4 * y[1] + 1.2 * np.tanh(y[1] / 0.1)) / 2.0

    x, v = solve(slope, 2.0, (0.0, 1.5))
    assert place[-1] == pytest.approx(x, abs=1e-8)
    assert speed[-1] == pytest.approx(v, abs=1e-8)


def test_friction_without_smoothing_is_the_sign():
    s, _ = slider(velocity=1.5)
    s.friction("friction", s["slide"], coulomb=1.0)
    _, (a,) = run(
        s, 0.1, ["slide.acceleration"], parameters={"plant.friction.smoothing_speed": 0.0}
    )
    assert np.allclose(a, -0.5, atol=1e-12)


def test_a_stop_pushes_and_never_pulls():
    s, _ = slider(velocity=1.0, position=0.0)
    s.stop("stop", s["slide"], lower=-0.3, upper=0.2, stiffness=2000.0, damping=60.0)
    _, (place, a) = run(s, 3.0, ["slide.displacement", "slide.acceleration"], step=1e-4)
    upper, lower = place > 0.2, place < -0.3
    assert upper.any() and lower.any()
    assert (a[upper] <= 0).all() and (a[lower] >= 0).all()
    assert (a[upper] == 0).any(), "while it leaves faster than the damper returns"
    assert np.abs(a[~upper & ~lower]).max() < 1e-12


def test_loads_in_axes_of_the_world_the_body_and_the_marker():
    """A body that turns at a constant speed: a force fixed on it turns too."""
    omega = 3.0
    frames: list[Any] = ["world", "body", "marker"]
    for frame in frames:
        s = System("thrust", gravity=(0, 0, 0))
        body = s.body("body", mass=2.0, inertia=0.1, angular_velocity=(0, 0, omega), free=True)
        if frame == "marker":
            s.force("thrust", body.marker("nozzle", axis=(1, 0, 0)), 4.0)
        else:
            s.force("thrust", body.marker("nozzle"), (4.0, 0.0, 0.0), frame=frame)
        t, (v,) = run(s, 1.0, ["body.velocity"])
        if frame == "world":
            expected = np.outer(2.0 * t, [1, 0, 0])
        else:
            expected = (
                np.column_stack([np.sin(omega * t), 1 - np.cos(omega * t), 0 * t]) * 2 / omega
            )
        assert np.allclose(v, expected, atol=1e-9), frame


def test_torques_on_markers_turn_the_body_whole():
    """A torque has no place: the body turns about its center of mass. About a marker's z, too."""
    for torque in ((0.0, 0.0, 0.6), 0.6):
        s = System("spin", gravity=(0, 0, 0))
        body = s.body("body", mass=2.0, inertia=0.3, free=True)
        s.torque("motor", body.marker("far", (1.0, 2.0, 0.0)), torque)
        _, (w, v) = run(s, 1.0, ["body.angular_velocity", "body.velocity"])
        assert np.allclose(w[-1], [0, 0, 2.0], atol=1e-11)
        assert np.abs(v).max() < 1e-12


def test_a_spring_of_one_component_pushes_along_it_alone():
    s = System("tire", gravity=(0, 0, 0))
    body = s.body("mass", mass=2.0, inertia=0.1, position=(0.4, 0.0, 0.9), free=True)
    s.spring(
        "tire", s.ground.marker("road"), body.marker("hub"), stiffness=60.0, free_length=0.7,
        components="z",
    )  # fmt: skip
    _, (place,) = run(s, 1.0, ["mass.position"])

    def slope(_, y):
        length = np.hypot(0.4, y[0])
        return y[1], -60.0 * (length - 0.7) * y[0] / length / 2.0

    assert place[-1, 2] == pytest.approx(solve(slope, 1.0, (0.9, 0.0))[0], abs=1e-9)
    assert np.abs(place[:, :2] - [0.4, 0.0]).max() < 1e-12


# -- markers that move


def test_a_pendulum_on_a_pivot_that_moves():
    """(m L² + I) θ'' = -m L (g sin θ + x'' cos θ) for a bob below a pivot that moves sideways."""
    s = System("pivot", gravity=(0, -9.81, 0))
    bob = s.body("bob", mass=1.5, inertia=0.1, position=(0, -1, 0))
    pivot = s.ground.marker("pivot", axis=(0, 0, 1), motion={"x": "0.1*sin(3*t)"})
    s.revolute("pin", pivot, bob.marker("pin", (0, 1, 0), axis=(0, 0, 1)))
    outputs = ["bob.position", "pin.angle", "pin.force", "ground.pivot.position",
               "ground.pivot.velocity", "ground.pivot.acceleration", "closure"]  # fmt: skip
    with pytest.warns(BiellaWarning, match="it starts with an impulse: `bob`"):
        t, (place, angle, force, moved, v, a, closure) = run(s, 3.0, outputs)

    def slope(t, y):
        return y[1], -1.5 / 1.6 * (9.81 * np.sin(y[0]) - 0.9 * np.sin(3 * t) * np.cos(y[0]))

    # The bob was given no velocity, but the pivot moves at 0.3 m/s: of all motions that fit, the
    # projection takes the one of least energy, (m L² + I) θ' = -0.3 m L.
    spin = -0.3 * 1.5 / 1.6
    theta, _ = solve(slope, 3.0, (0.0, spin))
    x = 0.1 * np.sin(3 * t)
    assert np.allclose(moved[:, 0], x, atol=1e-14)
    assert np.allclose(v[:, 0], 0.3 * np.cos(3 * t), atol=1e-14)
    assert np.allclose(a[:, 0], -0.9 * np.sin(3 * t), atol=1e-14)
    assert closure.max() < 1e-10
    assert place[-1, 0] == pytest.approx(x[-1] + np.sin(theta), abs=1e-7)
    assert angle[-1] == pytest.approx(theta, abs=1e-7)
    assert force[0, 1] == pytest.approx(1.5 * (9.81 + spin**2), abs=1e-8)


def test_a_marker_that_moves_on_a_turning_body():
    """A bead on a spoke at r(t) = 0.5 + 0.2 sin 2t, turned at ω: its acceleration has all parts."""
    omega = 3.0
    s, disc = wheel()
    s.driver("turn", s["pin"], Linear(0.0, omega))
    bead = s.body("bead", mass=0.5, inertia=0.01, position=(0.5, 0, 0))
    spoke = disc.marker("spoke", (0.5, 0, 0), motion={"x": Sine(0.2, 2.0)})
    s.spherical("hold", spoke, bead.marker("center"))
    t, (place, force, a) = run(s, 2.0, ["bead.position", "hold.force", "disc.spoke.acceleration"])
    turn = np.exp(1j * omega * t)
    r, r1, r2 = 0.5 + 0.2 * np.sin(2 * t), 0.4 * np.cos(2 * t), -0.8 * np.sin(2 * t)
    exact = (r2 - omega**2 * r + 2j * omega * r1) * turn
    assert np.allclose(place[:, 0] + 1j * place[:, 1], r * turn, atol=1e-10)
    assert np.allclose(a[:, 0] + 1j * a[:, 1], exact, atol=1e-8)
    assert np.allclose(force[:, 0] + 1j * force[:, 1], 0.5 * exact, atol=1e-7)


def test_a_load_and_a_bushing_on_a_marker_that_moves():
    s, disc = wheel(inertia=0.5)
    arm = disc.marker("arm", (0, 0, 0), motion={"x": Linear(0.0, 1.0)})
    s.force("push", arm, (0.0, 2.0, 0.0), frame="body")
    _, (speed,) = run(s, 1.0, ["pin.speed"])
    # I ω' = 2 x with x = t.
    assert speed[-1] == pytest.approx(2.0 * 0.5 / 0.5, abs=1e-10)
    s, body = slider()
    seat = s.ground.marker("seat", motion={"x": Sine(0.1, 2.0)})
    s.bushing(
        "rubber",
        seat,
        body.marker("seat"),
        stiffness=[50, 0, 0, 0, 0, 0],
        damping=[3, 0, 0, 0, 0, 0],
    )
    _, (place,) = run(s, 2.0, ["slide.displacement"])

    def slope(t, y):
        return y[1], -(50 * (y[0] - 0.1 * np.sin(2 * t)) + 3 * (y[1] - 0.2 * np.cos(2 * t))) / 2.0

    assert place[-1] == pytest.approx(solve(slope, 2.0, (0.0, 0.0))[0], abs=1e-9)


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


def test_an_input_that_moves_a_marker_acts_at_once_on_what_shows_it():
    s, body = slider()
    road = s.ground.marker("road", (1, 0, 0), motion={"x": Input("x")})
    s.spring("spring", road, body.marker("end"), stiffness=5.0)
    shown = ["ground.road.position", "slide.displacement", "potential_energy", "mass.position"]
    block = s.block(outputs=shown)
    direct = {
        port.name for port, used in zip(block.outputs, block.feedthrough, strict=True) if used
    }
    assert direct == {"ground.road.position", "potential_energy"}


# -- power


JOINTS = (
    "revolute", "prismatic", "cylindrical", "universal", "spherical", "planar_joint", "guide",
    "in_plane",
)  # fmt: skip


@st.composite
def chains(draw):
    """A chain of two to four bodies with random joints, springs, bushings, stops and friction.

    Its last body may be tied back to the ground by a rod, which makes it a loop.
    """
    number = st.floats(-1.0, 1.0).map(lambda x: round(x, 2))
    s = System("chain", gravity=tuple(draw(number) * 5 for _ in range(3)))
    bodies, dampers, stops = [s.ground], [], draw(st.booleans())
    for n in range(draw(st.integers(2, 4))):
        place = (0.5 + n, draw(number) * 0.2, draw(number) * 0.2)
        body = s.body(f"b{n}", mass=1.0 + n, inertia=np.diag([0.2, 0.3, 0.4]), position=place)
        kind = draw(st.sampled_from(JOINTS))
        ends = (bodies[-1], body) if draw(st.booleans()) else (body, bodies[-1])
        axis = np.array([draw(number), draw(number), 1.0])
        options = {"at": (float(n), 0, 0), "axis": axis}
        if kind == "universal":
            options["axis"] = (axis, np.cross(axis, (1.0, 0.3, 0.0)))
        elif kind == "spherical":
            del options["axis"]
        joint = getattr(s, kind)(f"j{n}", *ends, **options)
        for k, coordinate in enumerate(joint.coordinates):
            if coordinate.kind == "angle":
                s.torsional_spring(
                    f"s{n}{k}", joint, stiffness=3.0, free_angle=draw(number), coordinate=k
                )
            if stops:
                s.stop(f"e{n}{k}", joint, lower=-0.3, upper=0.4, stiffness=30.0, coordinate=k)
            s.friction(
                f"f{n}{k}", joint, viscous=0.3, coulomb=0.2, smoothing_speed=1.0, coordinate=k
            )
            dampers.append((joint, k))
        bodies.append(body)
    tip = bodies[-1].marker("tip", (0.3, draw(number), 0.1))
    s.spring("spring", s.ground.marker("wall", (3, 2, 1)), tip, stiffness=6.0, free_length=1.0)
    if draw(st.booleans()):
        s.distance("rod", s.ground.marker("post", (2, -2, 1)), tip)
    k = 1.0 + abs(draw(number))
    s.bushing(
        "bushing", bodies[-2].marker("p"), bodies[-1].marker("p", (0.1, 0.2, draw(number))),
        stiffness=[5, 6, 7, k, k, k],
    )  # fmt: skip
    s.force(
        "thrust",
        tip,
        (1.0, draw(number), "sin(5*t)"),
        frame=draw(st.sampled_from(["world", "body"])),
    )
    return s, dampers, stops


@settings(max_examples=25)
@given(chains())
def test_work_of_forces_is_the_change_of_energy(case):
    """E(t) - E(0) = ∫ (thrust · v - friction · speed) dt, for a chain of any joints and forces."""
    s, dampers, stops = case
    speeds = [f"{joint.name}.{coordinate_name(joint, k)}_speed" for joint, k in dampers]
    load = s["thrust"]
    tip = load.marker
    shown = [*ENERGIES, f"{tip.path}.velocity", f"{tip.path}.rotation", *speeds]
    t, (kinetic, potential, velocity, turn, *rates) = run(s, 0.4, shown)
    force = np.column_stack([[law.value(now) for now in t] for law in load.components])
    if load.frame == "body":
        e0, v = turn[:, :1], turn[:, 1:]
        force = force + 2 * np.cross(v, np.cross(v, force) + e0 * force)
    power = (force * velocity).sum(axis=1)
    for rate in rates:
        power -= rate * (0.3 * rate + 0.2 * np.tanh(rate))
    energy = kinetic + potential
    # RK4 leaves some 1e-9; stops begin at a kink inside a step, worth about k v² h² / 2 each time.
    work = simpson(power, x=t)
    assert energy[-1] - energy[0] == pytest.approx(work, abs=2e-4 if stops else 1e-6)
