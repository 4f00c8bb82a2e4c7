"""Formulas of outputs in equilibrium, linearize, kinematics, inverse dynamics and formulations."""

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks.multibody import Formula, System
from biella.blocks.multibody.analysis._manifold import make_manifold
from biella.scheduler.run._alone import compile_alone


def cart(force, planar=True):
    s = System("cart", planar=planar, gravity=(0, 0) if planar else (0, 0, 0))
    zero = (0,) * (1 if planar else 2)
    body = s.body("cart", mass=2.0, inertia=1.0, position=(0.3, *zero))
    s.prismatic("rail", s.ground, body, at=(0, *zero), axis=(1, *zero))
    s.force("push", body.marker("c"), (force, *zero))
    return s


@pytest.mark.parametrize("planar", [False, True])
def test_equilibrium_and_its_small_motions(planar):
    """F = 5 - 20 x³ - 3 ẋ: x = 0.25^⅓, k = 60 x², c = 3."""
    s = cart(Formula("f - 20*cart.x**3 - 3*cart.x_rate", {"f": 5.0}), planar)
    at = s.equilibrium()
    x = 0.25 ** (1 / 3)
    assert at["cart"].position[0] == pytest.approx(x, rel=1e-9)
    small = s.linearize(at, coordinates=["rail.displacement"])
    assert small.stiffness[0, 0] == pytest.approx(60 * x**2, rel=1e-7)
    assert small.damping[0, 0] == pytest.approx(3.0, rel=1e-9)


def test_small_motions_about_a_motion():
    """F = -2 x ẋ at x = 0.3, ẋ = 0.7: k = 2 ẋ, c = 2 x."""
    s = System("cart", planar=True, gravity=(0, 0))
    body = s.body("cart", mass=2.0, inertia=1.0, position=(0.3, 0), velocity=(0.7, 0))
    s.prismatic("rail", s.ground, body, at=(0, 0), axis=(1, 0))
    s.force("push", body.marker("c"), ("-2*cart.x*cart.velocity[0]", 0))
    small = s.linearize(s.assemble(), coordinates=["rail.displacement"])
    assert small.stiffness[0, 0] == pytest.approx(1.4, rel=1e-6)
    assert small.damping[0, 0] == pytest.approx(0.6, rel=1e-6)


def test_inverse_dynamics_carries_the_force():
    """Effort = m ẍ + 20 x³ + 3 ẋ."""
    s = cart("-20*rail.displacement**3 - 3*rail.speed")
    t = np.linspace(0, 1, 11)
    found = s.inverse_dynamics({"rail.displacement": "0.2*sin(3*t)"}, t)
    x, v, a = 0.2 * np.sin(3 * t), 0.6 * np.cos(3 * t), -1.8 * np.sin(3 * t)
    np.testing.assert_allclose(
        found.efforts["rail.displacement"], 2 * a + 20 * x**3 + 3 * v, atol=1e-10
    )


def test_kinematics_keeps_euler_parameters_continuous():
    """A wheel that is driven over three turns, with a brake on e0: its effort is the torque."""
    s = System("wheel", gravity=(0, 0, 0))
    wheel = s.body("wheel", mass=1.0, inertia=0.5)
    hinge = s.revolute("hinge", s.ground, wheel, at=(0, 0, 0), axis=(0, 0, 1))
    s.torque("load", hinge, "4*wheel.e0 + 7*wheel.e3_rate + hinge.angle")
    s.driver("drive", hinge, "6*pi*t")
    t = np.linspace(0, 1, 301)
    angle = 6 * np.pi * t
    torque = 4 * np.cos(angle / 2) + 7 * 3 * np.pi * np.cos(angle / 2) + angle
    np.testing.assert_allclose(s.kinematics(t).efforts["drive"], -torque, atol=1e-9)


READ = [
    "one.x", "two.z", "one.e0", "one.e2", "two.e1", "two.e2_rate", "two.e3_rate", "two.y_rate",
    "one.position[1]", "two.velocity[2]", "two.angular_velocity[0]", "two.tip.position[0]",
    "two.tip.velocity[1]", "two.tip.angular_velocity[1]", "hinge.angle", "hinge.speed",
    "ball.angle", "ball.angle_speed", "ball.displacement", "ball.displacement_speed", "tie.length",
    "tie.rate", "tie.force", "tie.deflection", "coil.angle", "coil.torque", "coil.rate",
    "coil.deflection", "push.applied_force[1]", "twist.applied_torque[2]", "effort.effort",
]  # fmt: skip


def machine(name):
    """Two bodies in space that move, and a torque of 0.5 N m and what is read."""
    s = System("machine", gravity=(0, 0, 0))
    about = np.array((0.8, 0.36, 0.48, 0.0))
    one = s.body("one", mass=2.0, inertia=(0.2, 0.3, 0.4), position=(0.3, 0.2, 0.1), rotation=about,
                 com=(0.1, 0.02, 0.03), angular_velocity=(0.4, -0.8, 1.1))  # fmt: skip
    two = s.body("two", mass=1.0, inertia=(0.1, 0.2, 0.15), position=(0.9, 0.4, 0.2),
                 rotation=about, velocity=(0.3, 0.2, -0.4), angular_velocity=(0, 2, 1))  # fmt: skip
    hinge = s.revolute("hinge", s.ground, one, at=(0.3, 0.2, 0.1), axis=(1, 2, 2))
    s.cylindrical("ball", one, two, at=(0.9, 0.4, 0.2), axis=(0, 0, 1))
    tip = two.marker("tip", (0.1, 0.2, 0.3), axis=(0, 1, 1))
    s.spring("tie", s.ground.marker("o", (1, 1, 1)), tip, stiffness="3*two.x", damping=0.2,
             free_length=0.1)  # fmt: skip
    s.torsional_spring("coil", hinge, stiffness=2.0, damping="0.1 + two.y**2", free_angle=0.3)
    s.force("push", tip, (0.1, "one.y", 0.2), frame="body")
    s.torque("twist", tip, (0, 0.1, "one.z_rate"))
    s.torque("effort", hinge, "0.3*two.z")
    s.torque("reader", hinge, f"0.5 + {name}")
    return s


@pytest.mark.parametrize("name", READ)
def test_analyses_and_runs_read_the_same(name):
    """Accelerations of the engine against those of the equations in Python, at the start."""
    s = machine(name)
    model = make_manifold(s)
    at = s.assemble()
    e = model.equations(at.time, at.coordinates, at.speeds)
    size, rows = len(e.mass), len(e.jacobian)
    matrix = np.block([[e.mass, e.jacobian.T], [e.jacobian, np.zeros((rows, rows))]])
    u_t = np.linalg.solve(matrix, np.concatenate([e.force, e.gamma]))[:size]
    names = ["one.angular_acceleration", "two.angular_acceleration", "reader.effort"]
    with compile_alone(s.block(outputs=names), "p").open() as instance:
        instance.initialize()
        found = [instance.get(f"p.{name}") for name in names]
    np.testing.assert_allclose(found[0], u_t[3:6], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[1], u_t[9:12], rtol=1e-9, atol=1e-9)
    assert abs(found[2]) > 1e-4


def test_what_only_runs_know_is_named():
    s = cart("0.1*push2.power")
    s.force("push2", s["cart.c"], (1.0, 0))
    with pytest.raises(
        DiagramError, match=r"reads `push2\.power`, which runs know and analyses do"
    ):
        s.equilibrium()
