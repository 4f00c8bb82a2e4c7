"""The Jacobian of a marker: against its motion in the plant and differences of its place."""

import numpy as np
import pytest

from biella.blocks.multibody import Jacobian

from .arms import branched, evaluate, planar_arm, plant_accelerations

pytestmark = pytest.mark.engine

MOTION = ["velocity", "angular_velocity", "acceleration", "angular_acceleration"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("marker", ["hand.tip", "left.tip", "trunk"])
def test_velocity_and_acceleration_of_the_plant(seed, marker):
    rng = np.random.default_rng(seed)
    q, v, effort = rng.normal(size=(3, 6))
    block = Jacobian(branched(seed), marker)
    found = evaluate(block, position=q, speed=v)
    jacobian = found["jacobian"].reshape(6, 6)
    a, seen = plant_accelerations(
        branched(seed), block.coordinates, q, v, effort, [f"{marker}.{what}" for what in MOTION]
    )
    velocity, acceleration = np.concatenate(seen[:2]), np.concatenate(seen[2:])
    assert jacobian @ v == pytest.approx(velocity, abs=1e-13)
    assert found["velocity"] == pytest.approx(velocity, abs=1e-13)
    size = np.abs(acceleration).max()
    assert jacobian @ a + found["bias"] == pytest.approx(acceleration, abs=1e-12 * size)


def test_columns_of_joints_that_do_not_carry_the_marker_are_zero():
    jacobian = evaluate(Jacobian(branched(), "left.tip"), position=np.ones(6))["jacobian"]
    moved = np.abs(jacobian.reshape(6, 6)).max(axis=0) > 0.0
    assert moved.tolist() == [True, True, False, False, False, False]


def test_planar_arm():
    """Columns of the tip: z × (tip - joint)."""
    q = np.array([0.4, 0.9])
    found = evaluate(Jacobian(planar_arm(), "fore.tip"), position=q)["jacobian"].reshape(3, 2)
    elbow = np.array([np.cos(q[0]), np.sin(q[0])])
    tip = elbow + np.array([np.cos(q.sum()), np.sin(q.sum())])
    expected = [[-tip[1], -(tip - elbow)[1]], [tip[0], (tip - elbow)[0]], [1.0, 1.0]]
    assert found == pytest.approx(np.array(expected), abs=1e-15)


def test_marker_of_the_ground_does_not_move():
    s = planar_arm()
    found = evaluate(Jacobian(s, "ground.pin"), position=[0.1, 0.2], speed=[1.0, 1.0])
    assert not any(value.any() for value in found.values())
