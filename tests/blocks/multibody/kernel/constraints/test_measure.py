"""Angles of joints that close loops."""

from __future__ import annotations

import warnings
from typing import cast

import numpy as np
import pytest

from biella import BiellaWarning, Diagram, simulate
from biella.blocks.multibody import Joint, System

pytestmark = pytest.mark.engine


def rotor(rpm, *, spring_on=None, torque=0.0):
    """A shaft in two revolutes: one of them closes a loop."""
    s = System("rotor", gravity=(0, 0, 0))
    speed = rpm * np.pi / 30
    body = s.body("shaft", mass=1, inertia=(0.1, 0.1, 0.2), angular_velocity=(0, 0, speed))
    for name, z in (("left", 0.0), ("right", 1.0)):
        s.revolute(name, s.ground, body, at=(0, 0, z), axis=(0, 0, 1))
    if spring_on:
        s.torsional_spring("spring", cast(Joint, s[spring_on]), stiffness=0.05)
    if torque:
        s.torque("motor", body.marker("m"), (0, 0, torque))
    return s, speed


def angles(system, *, step=1e-2, mode="continuous", until=1.0):
    d = Diagram("rotor", step=step)
    outputs = ["left.angle", "right.angle"]
    d.add(system.block(outputs=outputs, mode=mode), name="plant")
    result = simulate(d, until)
    return result.t, [result[f"plant.{name}"] for name in outputs]


@pytest.mark.parametrize("mode", ["continuous", "internal"])
@pytest.mark.parametrize("rpm", [2900, 3100, -3100, 60_000])
def test_whole_turns_are_counted_above_half_a_turn_per_step(rpm, mode):
    s, speed = rotor(rpm)
    t, found = angles(s, mode=mode)
    for angle in found:
        assert angle == pytest.approx(speed * t, abs=1e-8 * abs(speed))


@pytest.mark.parametrize("joint", ["left", "right"])
def test_a_spring_on_a_joint_that_closes_a_loop_counts_turns(joint):
    """I φ'' = -k φ; RK4 with ω h = 0.005."""
    s, speed = rotor(3100, spring_on=joint)
    t, found = angles(s)
    omega = np.sqrt(0.05 / 0.2)
    for angle in found:
        assert angle == pytest.approx(speed / omega * np.sin(omega * t), abs=1e-6)


@pytest.mark.filterwarnings("ignore:the estimated error")  # of coarse steps, and real
def test_an_angle_that_its_speed_does_not_predict_is_warned_of():
    """With a jerk of j the mean of two speeds is off by j h³/12, here 42 rad."""
    s, _ = rotor(100)
    s.torque("ramp", s["shaft"].marker("r"), (0, 0, "1e8*t"))
    with pytest.warns(BiellaWarning, match=r"angle of `right` may have lost or gained whole turns"):
        angles(s, until=0.2)


def test_steady_acceleration_is_predicted():
    """From rest to 12 turns a step, by 0.6 turns a step more in each."""
    s, _ = rotor(0, torque=8e3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t, found = angles(s, until=0.2)
    for angle in found:
        assert angle == pytest.approx(0.5 * 8e3 / 0.2 * t**2, rel=1e-9, abs=1e-9)
