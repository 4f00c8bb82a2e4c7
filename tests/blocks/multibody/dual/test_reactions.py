"""Joint forces and efficiency against printed values, formulas of the source and power."""

from typing import Any

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks.multibody.dual import RCCC, Dual, RigidBody, Sleeve, efficiency, reactions
from biella.errors import FormulationError

TWISTS = Dual(np.radians([88.0, 91.5, 90.7, 30.0]), [0.02, -0.015, 0.01, 0.03])
SHAFT, CROSS = Sleeve(0.020, 0.010), Sleeve(0.006, 0.005)
SLEEVES = (SHAFT, CROSS, CROSS, SHAFT)
BODIES = (
    RigidBody(0.9, (0.02, 0.01, -0.05), (2e-3, 1.5e-3, 1e-3)),
    RigidBody(0.2, (0.005, 0.0, 0.01), [[3e-4, 2e-5, 0], [2e-5, 2.5e-4, 1e-5], [0, 1e-5, 2e-4]]),
    RigidBody(1.1, (-0.01, 0.02, 0.04), (1e-3, 2e-3, 2.2e-3)),
)


def test_statics_have_the_printed_values():
    motion = RCCC(TWISTS).motion(1.1, 2.0)
    found = reactions(motion, input_torque=100.0)
    np.testing.assert_allclose(found.real, 0.0, atol=1e-12)
    expected = [
        (21.066248, 49.088763, 100.0), (53.303835, 100.060954, 0.0),
        (113.373248, 0.0, 0.0), (22.316162, 1.357983, 111.146922),
    ]  # fmt: skip
    np.testing.assert_allclose(found.dual, expected, rtol=0, atol=6e-7)
    power = 100.0 * motion.rates.real[0] + found.dual[3, 2] * motion.rates.real[3]
    assert abs(power) < 1e-12
    back = reactions(motion, output_torque=found.dual[3, 2])
    np.testing.assert_allclose(back.dual, found.dual, atol=1e-11)


def test_statics_agree_with_the_formulas_of_the_source():
    """[V 6.30], with friction along all cylindrical joints, real and dual parts."""
    motion = RCCC(TWISTS).motion(np.linspace(0.2, 2.8, 6), 2.0)
    rub = Dual([0, 3.0, -2.0, 1.5], [0, 0.4, 0.3, 0.0])
    r = reactions(motion, input_torque=20.0, along=rub)
    a1, a2 = TWISTS[0], TWISTS[1]
    t1, t2 = motion.coordinates[:, 0], motion.coordinates[:, 1]
    sin, cos = np.sin, np.cos
    z1, z2, z3 = (r[:, k, 2] for k in range(3))
    y2 = (z1 - cos(a1) * z2) / sin(a1)
    x2 = (z3 + sin(a2) * cos(t2) * y2 - cos(a2) * z2) / (sin(a2) * sin(t2))
    w = (cos(a1) * z1 - z2) / sin(a1)
    for found, expected in (
        (r[:, 1, 1], y2), (r[:, 1, 0], x2), (r[:, 0, 0], cos(t1) * x2 - sin(t1) * w),
        (r[:, 0, 1], sin(t1) * x2 + cos(t1) * w),
    ):  # fmt: skip
        np.testing.assert_allclose(found.real, expected.real, atol=1e-11)
        np.testing.assert_allclose(found.dual, expected.dual, atol=1e-11)
    np.testing.assert_allclose(r.real[:, 1:, 2], np.broadcast_to(rub.real[1:], (6, 3)), atol=1e-11)


def test_inertia_does_the_work_of_kinetic_energy():
    """dE/dt by differences (h = 1e-5) is the power of the input torque and of the load."""
    mechanism = RCCC(TWISTS, offset=0.03)
    motion = mechanism.motion(1.1, 20.0, 30.0)
    found = reactions(motion, input_torque=7.0, bodies=BODIES)
    power = 7.0 * motion.rates.real[0] + found.dual[3, 2] * motion.rates.real[3]

    def energy(t):
        from biella.blocks.multibody.dual._rccc import twists_of_links

        at = mechanism.motion(1.1 + 20.0 * t + 15.0 * t * t, 20.0 + 30.0 * t)
        total = np.zeros(())
        for body, twist in zip(BODIES, twists_of_links(at)[0], strict=True):
            h = body.momentum(twist)
            total += 0.5 * (h.real @ twist.dual + h.dual @ twist.real)
        return total

    h = 1e-5
    assert power == pytest.approx((energy(h) - energy(-h)) / (2 * h), rel=1e-7)


ANGLES = np.array([0.3, 0.8, 1.4])
ERRORS = {"length_errors": 5e-4, "angle_errors": np.radians([0.006, 0.006, 0.006, 0.0])}


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ({}, (0.994653349, 0.994007394, 0.995086754)),
        (ERRORS, (0.992985604, 0.992479184, 0.993621596)),
    ],
)
def test_the_efficiency_of_a_cardan_joint_has_the_printed_values(errors, expected):
    mechanism = RCCC.cardan(np.radians(15.0), **errors)
    found = efficiency(
        mechanism, ANGLES, speed=50 * np.pi, torque=100.0, coefficient=0.005, sleeves=SLEEVES
    )
    np.testing.assert_allclose(found.efficiency, expected, rtol=0, atol=6e-10)
    speed = np.abs(found.motion.rates.real[:, 3])
    delivered = found.output_torque * speed / (100.0 * 50 * np.pi)
    np.testing.assert_allclose(delivered, found.efficiency, rtol=1e-12)


def test_mean_efficiencies_over_a_turn_fall_with_the_angle():
    angles = np.linspace(0, 2 * np.pi, 720, endpoint=False)
    for degrees, expected in ((5, 0.998206), (10, 0.996415), (15, 0.994582)):
        found = efficiency(
            RCCC.cardan(np.radians(degrees)), angles, speed=1.0, torque=100.0, coefficient=0.005,
            sleeves=SLEEVES,
        )  # fmt: skip
        assert found.efficiency.mean() == pytest.approx(expected, abs=6e-7)


def test_without_friction_all_power_arrives():
    found = efficiency(
        RCCC(TWISTS), ANGLES, speed=-3.0, torque=-5.0, coefficient=0.0, sleeves=SLEEVES
    )
    np.testing.assert_array_equal(found.efficiency, 1.0)
    arrived = found.output_torque * np.abs(found.motion.rates.real[:, 3])
    np.testing.assert_allclose(arrived, 15.0, rtol=1e-12)


def test_friction_opposes_every_motion_and_inertia_takes_no_part_in_the_balance():
    found = efficiency(
        RCCC(TWISTS), ANGLES, speed=30.0, torque=5.0, coefficient=(0.02, 0.01, 0.01, 0.02),
        sleeves=SLEEVES, bodies=BODIES,
    )  # fmt: skip
    rates = found.motion.rates
    assert (found.friction.dual * rates.real < 0).all()
    assert (found.friction.real[:, 1:] * rates.dual[:, 1:] < 0).all()
    np.testing.assert_allclose(
        found.losses, -found.friction.dual * rates.real - found.friction.real * rates.dual
    )
    r, f = found.reactions, (0.02, 0.01, 0.01, 0.02)
    for k, sleeve in enumerate(SLEEVES):
        moment, force = (np.hypot(p[:, k, 0], p[:, k, 1]) for p in (r.dual, r.real))
        size = f[k] * sleeve.diameter * (moment / sleeve.length + 0.5 * force)
        np.testing.assert_allclose(np.abs(found.friction.dual[:, k]), size, rtol=1e-10)


def test_what_cannot_be_is_refused():
    motion = RCCC(TWISTS).motion(1.1, 2.0)
    with pytest.raises(DiagramError, match="one of input_torque= and output_torque="):
        reactions(motion)
    with pytest.raises(DiagramError, match="one of input_torque= and output_torque="):
        reactions(motion, input_torque=1.0, output_torque=1.0)
    common: dict[str, Any] = {"speed": 1.0, "torque": 1.0, "coefficient": 0.01, "sleeves": SLEEVES}
    for change, message in (
        ({"coefficient": -0.1}, "at least 0"), ({"coefficient": (0.1, 0.2)}, "at least 0"),
        ({"torque": -1.0}, "so that it drives"), ({"sleeves": (SHAFT,)}, "four joints"),
    ):  # fmt: skip
        with pytest.raises(DiagramError, match=message):
            efficiency(RCCC(TWISTS), 1.1, **(common | change))
    with pytest.raises(DiagramError, match="diameter"):
        Sleeve(0.0, 0.1)
    with pytest.raises(DiagramError, match="length"):
        Sleeve(0.1, -0.1)


def test_a_mechanism_that_locks_is_refused():
    with pytest.raises(FormulationError, match="locks"):
        efficiency(RCCC(TWISTS), ANGLES, speed=1.0, torque=1.0, coefficient=2.0, sleeves=SLEEVES)
