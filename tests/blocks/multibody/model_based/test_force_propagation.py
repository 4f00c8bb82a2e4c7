"""Forces carried down a tree: against -Jᵀ F, System.static_efforts and equilibrium."""

import numpy as np
import pytest

from biella.blocks.multibody import ForcePropagation, Jacobian

from .arms import branched, evaluate, planar_arm, plant_accelerations

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("seed", range(3))
def test_transposed_jacobians(seed):
    rng = np.random.default_rng(seed)
    s, q, wrenches = branched(seed), rng.normal(size=6), rng.normal(size=(2, 6))
    tips = ["hand.tip", "left.tip"]
    found = evaluate(ForcePropagation(s, tips), position=q, wrench=wrenches.ravel())
    expected = np.zeros(6)
    for tip, wrench in zip(tips, wrenches, strict=True):
        jacobian = evaluate(Jacobian(s, tip), position=q)["jacobian"].reshape(6, 6)
        expected -= jacobian.T @ wrench
    assert found["effort"] == pytest.approx(expected, abs=1e-13)


def test_static_efforts_in_the_given_pose():
    """System.static_efforts carries the wrenches about the origin of the world, in numpy."""
    s = planar_arm()
    found = evaluate(
        ForcePropagation(s, ["fore.tip", "upper"], weight=True),
        position=[0.0, 0.0],
        wrench=[1.0, -2.0, 0.5, 0.0, 0.0, 3.0],
    )
    expected = s.static_efforts({"fore.tip": (1.0, -2.0)}, {"fore": 0.5, "upper": 3.0}, weight=True)
    assert found["effort"] == pytest.approx(list(expected.values()), rel=1e-14)


def test_plant_stays_at_rest():
    rng = np.random.default_rng(3)
    q, force = rng.normal(size=6), rng.normal(size=3)
    s = branched(3)
    found = evaluate(
        ForcePropagation(s, "hand.tip", weight=True), position=q, wrench=[*force, 0.0, 0.0, 0.0]
    )
    loaded = branched(3)
    loaded.force("pull", loaded["hand.tip"], force)
    block = Jacobian(s, "hand.tip")
    rest, _ = plant_accelerations(loaded, block.coordinates, q, np.zeros(6), found["effort"])
    assert np.abs(rest).max() < 1e-11


def test_base_balances_all_forces_and_moments():
    s = branched(2)
    rng = np.random.default_rng(2)
    q, wrench = rng.normal(size=6), rng.normal(size=6)
    places = [f"{body.name}.position" for body in s.bodies] + ["hand.tip.position"]
    block = Jacobian(s, "hand.tip")
    _, seen = plant_accelerations(
        branched(2), block.coordinates, q, np.zeros(6), np.zeros(6),
        [*places, *(f"{body.name}.rotation" for body in s.bodies)],
    )  # fmt: skip
    force, moment = wrench[:3].copy(), wrench[3:] + np.cross(seen[4], wrench[:3])
    for k, body in enumerate(s.bodies):
        e0, e = seen[5 + k][0], seen[5 + k][1:]
        tilde = np.cross(np.eye(3), e)
        rotation = (e0**2 - e @ e) * np.eye(3) + 2 * np.outer(e, e) + 2 * e0 * tilde
        weight = body.mass * s.gravity
        force += weight
        moment += np.cross(seen[k] + rotation @ body.com, weight)
    found = evaluate(ForcePropagation(s, "hand.tip", weight=True), position=q, wrench=wrench)
    size = np.abs(moment).max()
    assert found["base"] == pytest.approx(-np.concatenate([force, moment]), abs=1e-13 * size)


def test_force_on_the_ground_is_held_by_the_ground():
    s = planar_arm()
    s.ground.marker("wall", (3.0, 4.0))
    found = evaluate(
        ForcePropagation(s, "ground.wall"), position=[0.1, 0.2], wrench=[1.0, 2.0, 0.5]
    )
    assert not found["effort"].any()
    assert found["base"] == pytest.approx([-1.0, -2.0, -(0.5 + 3.0 * 2.0 - 4.0 * 1.0)])
