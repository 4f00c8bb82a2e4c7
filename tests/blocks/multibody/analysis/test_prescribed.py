"""Kinematics and inverse dynamics of prescribed motions, against closed forms."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from biella import Diagram, DiagramError, simulate
from biella.blocks.multibody import Formula, Joint, Linear, Sine, System, Table
from biella.blocks.multibody.mechanisms import (
    cardan,
    four_bar,
    slider_crank,
)

pytestmark = pytest.mark.engine

G = 9.81


def run(system, until, outputs, *, step=1e-3, parameters=None, every=1):
    d = Diagram("mechanism", step=step)
    d.add(system.block(outputs=outputs), name="plant")
    return simulate(d, until, every=every, parameters=parameters or {})


# -- kinematics


def driven_slider_crank(speed=3.0):
    s = slider_crank(planar=True, drive="none")
    # The crank is given at 45°, so that joint angle 0 is there.
    s.driver("drive", cast(Joint, s["main"]), Linear(0.0, speed))
    return s


def slider_formula(t, speed):
    """x = cos θ + √(4 - sin² θ), and its rates by hand; crank 1 m, rod 2 m."""
    theta = np.pi / 4 + speed * t
    sin, cos = np.sin(theta), np.cos(theta)
    root = np.sqrt(4.0 - sin**2)
    rate = -sin - sin * cos / root
    bend = -cos - (cos**2 - sin**2) / root - (sin * cos) ** 2 / root**3
    return cos + root, rate * speed, bend * speed**2


def test_slider_crank_follows_its_formula_through_two_turns():
    times = np.linspace(0.0, 4.0, 41)
    motion = driven_slider_crank().kinematics(times)
    x, v, a = slider_formula(times, 3.0)
    # The printed lengths are right to 1e-8 m; rates multiply that by 3 and by 9.
    assert np.allclose(motion["slider.position"][:, 0], x, atol=5e-8)
    assert np.allclose(motion["slider.velocity"][:, 0], v, atol=2e-7)
    assert np.allclose(motion["slider.acceleration"][:, 0], a, atol=1e-6)
    assert np.allclose(motion["main.angle"], 3.0 * times, atol=1e-10)
    assert np.allclose(motion["main.angle_speed"], 3.0, atol=1e-10)
    assert not motion.not_unique


def test_a_frame_away_from_the_center_of_mass_moves_as_a_point_of_its_body():
    """On a wheel at θ = t²: position r e(θ), acceleration -r θ'² e + r θ'' e'."""
    s = System("wheel", (0, 0, 0))
    wheel = s.body("wheel", mass=1.0, inertia=0.1, com=(-0.2, 0.1, 0.3), position=(0.5, 0, 0))
    hub = s.revolute("hub", s.ground, wheel, at=(0, 0, 0), axis=(0, 0, 1))
    s.driver("drive", hub, Formula("t**2"))
    times = np.array([0.0, 0.7, 3.0])
    motion = s.kinematics(times)
    cos, sin, zero = np.cos(times**2), np.sin(times**2), 0 * times
    along, across = np.array([cos, sin, zero]).T, np.array([-sin, cos, zero]).T
    speed = 2.0 * times[:, None]
    assert np.allclose(motion["wheel.position"], 0.5 * along, atol=1e-10)
    assert np.allclose(motion["wheel.velocity"], 0.5 * speed * across, atol=1e-9)
    exact = -0.5 * speed**2 * along + 0.5 * 2.0 * across
    assert np.allclose(motion["wheel.acceleration"], exact, atol=1e-8)
    assert np.allclose(motion["hub.angle"], times**2, atol=1e-10)


def test_driver_effort_balances_power():
    """effort · speed = d/dt (kinetic energy) - power of weight, from the motion alone."""
    s = driven_slider_crank()
    times = np.linspace(0.1, 2.0, 20)
    motion = s.kinematics(times)
    power = np.zeros(times.size)
    for body in s.bodies:
        v, a = motion[f"{body.name}.velocity"], motion[f"{body.name}.acceleration"]
        omega = motion[f"{body.name}.angular_velocity"][:, 2]
        alpha = motion[f"{body.name}.angular_acceleration"][:, 2]
        power += body.mass * ((v * (a - s.gravity)).sum(1)) + body.inertia[2, 2] * omega * alpha
    assert np.allclose(motion.efforts["drive"] * 3.0, power, atol=1e-9)
    assert np.array_equal(motion["drive.effort"], motion.efforts["drive"])


def test_kinematics_has_the_paths_and_values_of_the_engine():
    s = driven_slider_crank()
    engine = run(s, 1.0, [
        "rod.position", "rod.velocity", "rod.acceleration", "rod.angular_acceleration",
        "main.angle", "main.force", "wrist_pin.force", "drive.effort",
    ], every=100)  # fmt: skip
    motion = s.kinematics(engine.t)
    for path in ("rod.position", "rod.velocity", "rod.acceleration", "rod.angular_acceleration",
                 "main.angle", "main.force", "wrist_pin.force", "drive.effort"):  # fmt: skip
        # Forces are some 100 N; the engine closes its loops to 1e-12 m.
        assert np.allclose(motion[path], engine[f"plant.{path}"], rtol=1e-7, atol=1e-7), path


def test_cardan_joint_turns_as_its_formula_says():
    """tan φ_out = cos β tan φ_in between forks, with 13 redundant equations."""
    beta = np.radians(30.0)
    times = np.linspace(0.0, 6.0, 31)
    motion = cardan(beta, 2.0).kinematics(times)
    exact = np.unwrap(np.arctan2(np.sin(2.0 * times) * np.cos(beta), np.cos(2.0 * times)))
    assert np.allclose(motion["output_shaft.angle"], exact, atol=1e-11)
    assert "drive" not in motion.not_unique
    assert "output_left" in motion.not_unique


def test_kinematics_refuses_freedom_and_places_out_of_reach():
    with pytest.raises(DiagramError, match=r"1 degrees of freedom.*`main.angle`"):
        slider_crank(planar=True).kinematics([0.0])
    s = slider_crank(planar=True)
    s.driver("push", cast(Joint, s["slide"]), Linear(2.57793547, 1.0))
    with pytest.raises(DiagramError, match=r"cannot follow its drivers beyond t = 0\.4|singular"):
        s.kinematics([1.0])
    with pytest.raises(DiagramError, match="must rise"):
        driven_slider_crank().kinematics([1.0, 0.0])
    with pytest.raises(KeyError, match=r"Did you mean `slider.position`"):
        driven_slider_crank().kinematics([0.0])["slider.positon"]


# -- inverse dynamics and static efforts


def arm(*, gravity=(0, 0, -G), second_axis=(0, 1, 0)):
    """A shoulder about z and an elbow about `second_axis`, with offset centers of mass."""
    s = System("arm", gravity)
    upper = s.body("upper", mass=3.0, inertia=(0.02, 0.1, 0.1), com=(0.4, 0.02, 0.0))
    lower = s.body(
        "lower", mass=2.0, inertia=(0.01, 0.05, 0.06), com=(0.3, 0, 0.05), position=(0.8, 0, 0)
    )
    s.revolute("shoulder", s.ground, upper, at=(0, 0, 0), axis=(0, 0, 1))
    # The lower arm is the first end here, so that the tree runs against the joint.
    s.revolute("elbow", lower, upper, at=(0.8, 0, 0), axis=second_axis)
    s.friction("grease", cast(Joint, s["elbow"]), viscous=0.3)
    lower.marker("hand", (0.6, 0, 0))
    return s


def test_inverse_dynamics_of_one_link_is_its_equation():
    """(J + m l²) θ'' + m g l cos θ."""
    s = System("link", (0, -G), planar=True)
    link = s.body("link", mass=2.0, inertia=0.3, position=(0.5, 0))
    s.revolute("pin", s.ground, link, at=(0, 0))
    times = np.linspace(0, 2, 9)
    found = s.inverse_dynamics({"pin.angle": Sine(0.7, 3.0)}, times).efforts["pin.angle"]
    theta, turning = 0.7 * np.sin(3 * times), -6.3 * np.sin(3 * times)
    assert np.allclose(found, (0.3 + 0.5) * turning + 2 * G * 0.5 * np.cos(theta), atol=1e-10)


def test_efforts_of_inverse_dynamics_give_the_motion_back():
    """The engine, driven by the efforts, moves as prescribed."""
    motion = {"shoulder": Formula("0.6*(1-cos(2*t))"), "elbow.angle": Formula("0.4*(cos(3*t)-1)")}
    times = np.linspace(0.0, 1.0, 101)
    found = arm().inverse_dynamics(motion, times)
    s = arm()
    for path, name in (("shoulder", "first"), ("elbow.angle", "second")):
        law = Table(times, found.efforts[path], "cubic")
        s.torque(name, s[path.partition(".")[0]], law)
    result = run(s, 1.0, ["shoulder.angle", "elbow.angle"], every=100)
    t = result.t
    # Splines of 10 ms miss torques of some 10 N m by 1e-8; RK4 at 1 ms adds less than 1e-9 rad.
    assert np.allclose(result["plant.shoulder.angle"], 0.6 * (1 - np.cos(2 * t)), atol=1e-7)
    assert np.allclose(result["plant.elbow.angle"], 0.4 * (np.cos(3 * t) - 1), atol=1e-7)
    assert len(arm().drivers) == 0


def test_inverse_dynamics_names_coordinates_that_do_not_exist():
    with pytest.raises(DiagramError, match=r"`sholder.angle`.*Did you mean `shoulder.angle`"):
        arm().inverse_dynamics({"sholder.angle": 0.0}, [0.0])
    with pytest.raises(DiagramError, match=r"1 degrees of freedom.*`elbow.angle`"):
        arm().inverse_dynamics({"shoulder.angle": 0.0}, [0.0])


def test_static_torques_of_a_planar_arm_are_minus_j_transpose_f():
    a1, a2, l1, l2 = 0.4, -0.9, 0.8, 0.5
    s = System("2R", (0, -G), planar=True)
    elbow = l1 * np.array([np.cos(a1), np.sin(a1)])
    first = s.body("first", mass=1.0, inertia=0.1, rotation=a1)
    second = s.body("second", mass=1.0, inertia=0.1, position=elbow, rotation=a1 + a2)
    s.revolute("shoulder", s.ground, first, at=(0, 0))
    s.revolute("elbow", first, second, at=elbow)
    second.marker("tip", (l2, 0))
    sin, cos = np.sin([a1, a1 + a2]), np.cos([a1, a1 + a2])
    jacobian = np.array(
        [[-l1 * sin[0] - l2 * sin[1], -l2 * sin[1]], [l1 * cos[0] + l2 * cos[1], l2 * cos[1]]]
    )
    force = np.array([3.0, -7.0])
    found = s.static_efforts({"second.tip": force}, {"second": 2.0})
    assert list(found) == ["shoulder.angle", "elbow.angle"]
    assert np.allclose(list(found.values()), -jacobian.T @ force - 2.0, atol=1e-12)


def test_static_efforts_hold_the_weight_as_inverse_dynamics_says():
    s = arm(gravity=(1.0, -2.0, -G), second_axis=(0, 1, 0))
    s.force("load", s["lower.hand"], (4, -3, 2))
    held = s.static_efforts({"lower.hand": (4, -3, 2)}, weight=True)
    dynamic = s.inverse_dynamics({"shoulder": 0.0, "elbow": 0.0}, [0.0]).efforts
    assert held["shoulder.angle"] == pytest.approx(dynamic["shoulder"][0], abs=1e-10)
    assert held["elbow.angle"] == pytest.approx(dynamic["elbow"][0], abs=1e-10)
    assert abs(held["elbow.angle"]) > 1.0
    with pytest.raises(DiagramError, match="has loops"):
        four_bar().static_efforts()
