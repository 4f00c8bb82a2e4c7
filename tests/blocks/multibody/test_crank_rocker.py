"""A four-bar with play, against a link without mass and against itself with another contact."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks.multibody import (
    HuntCrossley,
    Joint,
    LankaraniNikravesh,
    RigidContact,
    contact_statistics,
    hertz_stiffness,
)
from biella.blocks.multibody.mechanisms import crank_rocker

pytestmark = pytest.mark.engine

PLAY = 5e-4
SLOW = 500 * np.pi / 30


def run(system, until, outputs, *, step=1e-5, **options):
    d = Diagram("crank-rocker", step=step)
    d.add(system.block([], outputs, **options), name="plant")
    return simulate(d, until)


def loaded(pin, toward=0.0):
    """With a torque on the rocker that keeps the pin at one side of its hole."""
    s = crank_rocker(pin, speed=SLOW, clearance=PLAY, toward=toward)
    s.torque("load", cast(Joint, s["foot"]), -40.0)
    return s


@pytest.fixture(scope="module")
def swinging():
    """The direction half a radian off the pull of an ideal pin, and what a link does there."""
    pull = run(loaded("ideal"), 1e-5, ["pin.force"])["plant.pin.force"][0]
    toward = np.arctan2(-pull[1], -pull[0]) + 0.5
    places = ["coupler.hole.position", "rocker.pin.position"]
    link = run(loaded("link", toward), 0.06, ["pin.force", *places])
    offset = link["plant.rocker.pin.position"] - link["plant.coupler.hole.position"]
    np.testing.assert_allclose(np.linalg.norm(offset, axis=1), PLAY, rtol=1e-11)
    return toward, link["plant.pin.force"], offset


def test_a_rigid_contact_that_lasts_is_a_link_without_mass(swinging):
    """Half a turn in which the contact swings to and fro; an ideal pin has other forces."""
    toward, force, offset = swinging
    found = run(
        loaded(RigidContact(restitution=0.0), toward), 0.06,
        ["pin.force", "rocker.pin.position", "coupler.hole.position", "pin.contact"],
        mode="internal",
    )  # fmt: skip
    assert found["plant.pin.contact"].all()
    scale = np.abs(force).max()
    np.testing.assert_allclose(found["plant.pin.force"], force, rtol=0, atol=1e-8 * scale)
    moved = found["plant.rocker.pin.position"] - found["plant.coupler.hole.position"]
    np.testing.assert_allclose(moved, offset, rtol=0, atol=1e-9 * PLAY)
    ideal = run(loaded("ideal"), 0.06, ["pin.force"])["plant.pin.force"]
    assert np.abs(ideal - force).max() > 0.1 * scale
    angles = np.unwrap(np.arctan2(offset[:, 1], offset[:, 0]))
    assert ((np.diff(np.sign(np.diff(angles))) != 0).sum()) > 10


def test_a_compliant_contact_tends_to_a_link_as_it_hardens(swinging):
    """The pin sinks in by (N / K)^(2/3): a hundredfold K brings it 20 times as near."""
    toward, _, offset = swinging
    steel = hertz_stiffness(0.01, 0.01 + PLAY)
    errors = []
    for factor, substeps in ((10, 8), (1000, 80)):
        law = HuntCrossley(stiffness=factor * steel, damping=20.0)
        places = ["coupler.hole.position", "rocker.pin.position"]
        found = run(loaded(law, toward), 0.02, places, mode="internal", substeps=substeps)
        moved = found["plant.rocker.pin.position"] - found["plant.coupler.hole.position"]
        errors.append(np.abs(moved - offset[: len(moved)]).max() / PLAY)
    assert errors[0] < 0.1
    assert errors[0] / errors[1] > 10.0


@pytest.mark.parametrize("toward", [0.0, 2.0, -2.5])
@pytest.mark.parametrize("drive", ["speed", "torque"])
def test_it_starts_touching_and_at_rest_there(toward, drive):
    s = crank_rocker(
        HuntCrossley(stiffness=1e9), speed=100.0, clearance=PLAY, toward=toward, drive=drive
    )
    outputs = ["pin.gap", "coupler.hole.velocity", "rocker.pin.velocity", "main.speed"]
    outputs += ["coupler.hole.position", "rocker.pin.position"]
    found = {name: run(s, 1e-5, outputs)[f"plant.{name}"][0] for name in outputs}
    assert abs(found["pin.gap"]) < 1e-15
    np.testing.assert_allclose(
        found["rocker.pin.velocity"], found["coupler.hole.velocity"], atol=1e-12
    )
    offset = found["rocker.pin.position"] - found["coupler.hole.position"]
    np.testing.assert_allclose(offset[:2], PLAY * np.array([np.cos(toward), np.sin(toward)]))
    assert found["main.speed"] == pytest.approx(100.0)


SIGNALS = [f"pin.{name}" for name in ("contact", "normal_force", "angle", "angle_on_pin", "slip")]
COUNTED = [f"pin.{name}" for name in ("impacts", "impulse", "sliding", "sliding_work")]


def judge(contact, speed=1000 * np.pi / 30, turns=12):
    rigid = isinstance(contact, RigidContact)
    s = crank_rocker(contact, speed=speed, clearance=PLAY, toward=np.pi)
    turn = 2 * np.pi / speed
    result = run(
        s, turns * turn, SIGNALS + COUNTED * rigid, step=turn / 3000, mode="internal",
        substeps=1 if rigid else 5,
    )  # fmt: skip
    return contact_statistics(result, "pin", start=2 * turn)


def test_rigid_and_compliant_contacts_agree():
    """Chaos makes each run another; what lasts is the mean force, the share and the two zones."""
    soft = LankaraniNikravesh(stiffness=hertz_stiffness(0.01, 0.01 + PLAY), restitution=0.5)
    hard = RigidContact(restitution=soft.effective_restitution)
    found, wanted = judge(soft), judge(hard)
    pushed = [
        (part.mean_force * part.contact_time + part.impact_impulses.sum()) / part.duration
        for part in (found, wanted)
    ]
    assert pushed[0] == pytest.approx(pushed[1], rel=0.1)
    assert found.contact_share == pytest.approx(wanted.contact_share, abs=0.1)
    for part in (found.hole, wanted.hole):
        assert part.probability(np.radians(100), np.radians(-60)) > 0.7  # the rod pushes
        assert 0.02 < part.probability(np.radians(-60), np.radians(100)) < 0.3  # it pulls
    assert wanted.impacts > 100
    assert wanted.sliding_distance == pytest.approx(found.sliding_distance, rel=0.2)


@pytest.mark.filterwarnings("ignore:.*had no solution with rigid bodies")
def test_friction_keeps_the_pin_in_contact():
    """Published of μ = 0.02: fewer losses of contact."""
    free, joint_friction = (judge(RigidContact(restitution=0.7, friction=mu)) for mu in (0.0, 0.02))
    assert joint_friction.contact_share > free.contact_share + 0.04
    assert joint_friction.impacts < 0.9 * free.impacts
