"""Efforts of a motion: against the closed form, the plant and System.inverse_dynamics."""

import numpy as np
import pytest

from biella.blocks.multibody import InverseDynamics, System

from .arms import branched, evaluate, planar_arm, plant_accelerations

pytestmark = pytest.mark.engine


def two_rods(q, v, a):
    """Textbook equations of two uniform rods of 1 m and 1 kg, under gravity along -y."""
    (q1, q2), (v1, v2) = q, v
    c, s = np.cos(q2), np.sin(q2)
    mass = np.array([[5 / 3 + c, 1 / 3 + c / 2], [1 / 3 + c / 2, 1 / 3]])
    speeds = 0.5 * s * np.array([-v2 * (2 * v1 + v2), v1**2])
    g = 9.80665
    weight = g * np.array([1.5 * np.cos(q1) + 0.5 * np.cos(q1 + q2), 0.5 * np.cos(q1 + q2)])
    return mass @ a + speeds + weight


def test_two_rods_in_a_plane():
    rng = np.random.default_rng(5)
    s = planar_arm()
    for _ in range(5):
        q, v, a = rng.normal(size=(3, 2))
        found = evaluate(InverseDynamics(s), position=q, speed=v, acceleration=a)["effort"]
        # Some ten operations on numbers of order 10.
        assert found == pytest.approx(two_rods(q, v, a), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loads", [False, True])
def test_plant_with_these_efforts_accelerates_as_wanted(seed, loads):
    """Forward dynamics is a different recursion, of articulated bodies."""
    rng = np.random.default_rng(100 + seed)
    block = InverseDynamics(branched(seed, loads=loads))
    q, v, a = rng.normal(size=(3, 6))
    effort = evaluate(block, position=q, speed=v, acceleration=a)["effort"]
    found, _ = plant_accelerations(branched(seed, loads=loads), block.coordinates, q, v, effort)
    # The condition of these mass matrices is below 1e4.
    assert found == pytest.approx(a, abs=1e-11)


def test_system_inverse_dynamics():
    """The formulation in absolute coordinates, with multipliers, over a motion."""
    s = planar_arm()
    motion = {"shoulder.angle": "0.3*sin(2*t)", "elbow.angle": "0.5 - 0.2*t*t"}
    times = np.array([0.2, 0.7])
    wanted = s.inverse_dynamics(motion, times)
    for k, t in enumerate(times):
        q = [0.3 * np.sin(2 * t), 0.5 - 0.2 * t * t]
        v = [0.6 * np.cos(2 * t), -0.4 * t]
        a = [-1.2 * np.sin(2 * t), -0.4]
        found = evaluate(InverseDynamics(s), position=q, speed=v, acceleration=a)["effort"]
        expected = [wanted.efforts[f"{p}.angle"][k] for p in ("shoulder", "elbow")]
        assert found == pytest.approx(expected, abs=1e-9)  # to which positions are closed there


def test_defaults_hold_against_weight():
    s = planar_arm()
    found = evaluate(InverseDynamics(s), position=[0.0, 0.0])["effort"]
    assert found == pytest.approx([9.80665 * 2.0, 9.80665 * 0.5])


def test_inputs_of_the_mechanism_stay_inputs():
    block = InverseDynamics(planar_arm(motor=True))
    assert [port.name for port in block.inputs] == [
        "motor.torque", "position", "speed", "acceleration"
    ]  # fmt: skip
    plain = evaluate(block, position=[0.0, 0.0])["effort"]
    helped = evaluate(block, position=[0.0, 0.0], **{"motor.torque": 3.0})["effort"]
    assert helped == pytest.approx(plain - [3.0, 0.0])


def test_laws_of_time_are_those_of_the_run():
    s = System("cart", planar=True)
    cart = s.body("cart", mass=2.0, inertia=1.0)
    rail = s.prismatic("rail", s.ground.marker("o", axis=(1, 0)), cart.marker("o", axis=(1, 0)))
    s.force("wind", rail, "7*cos(t)")
    assert evaluate(InverseDynamics(s), position=[0.0], acceleration=[3.0])["effort"] == [-1.0]


def test_euler_parameters_in_formulas_have_the_sign_of_the_given_pose():
    """Both joints at 3 rad: the rod is given at 6 rad, e0 = cos 3 < 0, or -0.28 rad, e0 > 0."""
    s = System("rods", planar=True, gravity=(0, 0))
    along = np.array([np.cos(3.0), np.sin(3.0)])
    first = s.body("first", mass=1.0, inertia=0.1, position=along, rotation=3.0)
    second = s.body("second", mass=1.0, inertia=0.1, position=2 * along, rotation=6.0)
    s.revolute("shoulder", s.ground, first, at=(0, 0))
    s.revolute("elbow", first, second, at=2 * along)
    s.torque("load", second.marker("c"), "3*second.e0 + 2*second.e3")
    for q in ([3.0, 3.0], [3.2, 3.3], [2.0, 2.0]):
        half = (q[0] + q[1]) / 2
        torque = -3.0 * np.cos(half) - 2.0 * np.sin(half)
        found = evaluate(InverseDynamics(s), position=q)["effort"]
        assert found == pytest.approx([-torque, -torque], abs=1e-13)
