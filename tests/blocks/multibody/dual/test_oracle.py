"""Mechanisms with revolute, cylindrical and universal joints against their dual closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella import Diagram, System, simulate
from biella.blocks.multibody.dual import (
    RCCC,
    Dual,
    RCCCMotion,
    RigidBody,
    Sleeve,
    change_pole,
    efficiency,
    position_of,
    reactions,
)

pytestmark = pytest.mark.engine

TWISTS = Dual(np.radians([88.0, 91.5, 90.7, 30.0]), [0.02, -0.015, 0.01, 0.03])
CARDAN = Dual(np.radians([90.0, 90.0, 90.0, 135.0]))
BODIES: Any = (
    RigidBody(0.9, (0.02, 0.01, -0.05), (2e-3, 1.5e-3, 1e-3)),
    RigidBody(0.2, (0.005, 0.0, 0.01), [[3e-4, 2e-5, 0], [2e-5, 2.5e-4, 1e-5], [0, 1e-5, 2e-4]]),
    RigidBody(1.1, (-0.01, 0.02, 0.04), (1e-3, 2e-3, 2.2e-3)),
)
START, SPEED, RATE = 0.3, 4.0, 6.0
TIMES = np.linspace(0.0, 0.9, 10)
TURNED = SPEED * TIMES + 0.5 * RATE * TIMES**2
NAMES = ("main", "c2", "c3", "c4")


def frames(motion: RCCCMotion, k: int) -> Dual:
    """Return T(1←k+1), the frame of link k; its inverse takes wrenches to that frame."""
    made = Dual(np.broadcast_to(np.eye(3), (*motion.coordinates.shape[:-1], 3, 3)))
    for i in range(k):
        made = made @ motion.displacements[..., i, :, :]
    return made


def mechanism(twists: Dual, rate: float = RATE) -> System:
    """Make the mechanism as a system, assembled by its closed form at START."""
    start = RCCC(twists).motion(START)
    s = System("RCCC", (0, 0, 0))
    links = [s.ground]
    for k, body in enumerate(BODIES, 1):
        t = frames(start, k)
        links.append(
            s.body(
                f"link{k}",
                mass=body.mass,
                inertia=body.inertia,
                com=body.center,
                position=position_of(t),
                rotation=t.real,
            )
        )
    links.append(s.ground)
    for k, name in enumerate(NAMES):
        t = frames(start, k)
        join = s.revolute if k == 0 else s.cylindrical
        joint = join(name, links[k], links[k + 1], at=position_of(t), axis=t.real[:, 2])
        if k == 0:
            s.driver("drive", joint, f"{SPEED} * t + {0.5 * rate} * t**2")
    return s


@pytest.fixture(scope="module", params=[TWISTS, CARDAN], ids=["general", "Cardan"])
def both(request):
    """Return closed form and kinematics of the system at TIMES."""
    twists = request.param
    exact = RCCC(twists).motion(START + TURNED, SPEED + RATE * TIMES, RATE)
    return exact, mechanism(twists).kinematics(TIMES), twists


def test_coordinates_speeds_and_accelerations_are_equal(both):
    exact, found, _ = both
    for k, name in enumerate(NAMES):
        angle = np.unwrap(exact.coordinates.real[:, k])
        kinds = ("angle",) if k == 0 else ("angle", "displacement")
        for path, expected, moved in (
            (f"{name}.angle", angle, True),
            (f"{name}.angle_speed", exact.rates.real[:, k], False),
            (f"{name}.angle_acceleration", exact.accelerations.real[:, k], False),
            (f"{name}.displacement", exact.coordinates.dual[:, k], True),
            (f"{name}.displacement_speed", exact.rates.dual[:, k], False),
            (f"{name}.displacement_acceleration", exact.accelerations.dual[:, k], False),
        ):
            if not path.startswith(tuple(f"{name}.{kind}" for kind in kinds)):
                continue
            # The joints of the system count from the pose it is described in.
            values = found[path] - (found[path][0] - expected[0] if moved else 0.0)
            size = max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(values, expected, rtol=0, atol=1e-11 * size)


def test_reactions_are_equal(both):
    exact, found, _ = both
    expected = reactions(exact, output_torque=0.0, bodies=BODIES)
    size = max(np.abs(expected.real).max(), np.abs(expected.dual).max())
    for k, name in enumerate(NAMES):
        t = frames(exact, k)
        at = marker_places(exact, k)
        world = Dual(found[f"{name}.force"], found[f"{name}.torque"])
        at_pole = change_pole(world, position_of(t) - at)
        turn = np.swapaxes(t.real, -1, -2)
        force, moment = ((turn @ p[..., None])[..., 0] for p in (at_pole.real, at_pole.dual))
        if k == 0:
            moment[:, 2] += found["drive.effort"]
        np.testing.assert_allclose(force, expected.real[:, k], rtol=0, atol=1e-11 * size)
        np.testing.assert_allclose(moment, expected.dual[:, k], rtol=0, atol=1e-11 * size)


def marker_places(exact: RCCCMotion, k: int):
    """Return where the marker on the second body of joint k is: at frame k+1 at the start."""
    start = position_of(frames(exact, k))[0]
    if k == 3:  # on the ground
        return np.broadcast_to(start, (len(TIMES), 3))
    t = frames(exact, k + 1)
    local = t.real[0].T @ (start - position_of(t)[0])
    return (t.real @ local) + position_of(t)


def test_the_engine_runs_the_same_motion(both):
    exact, _, twists = both
    outputs = ["c4.angle", "c4.angle_speed", "c4.displacement", "drive.effort"]
    d = Diagram("RCCC", step=1e-3)
    d.add(mechanism(twists).block(outputs=outputs), name="plant")
    run = simulate(d, until=0.9)
    rows = [round(t / 1e-3) for t in TIMES]
    angle = np.unwrap(exact.coordinates.real[:, 3])
    effort = reactions(exact, output_torque=0.0, bodies=BODIES).dual[:, 0, 2]
    for path, expected in (
        ("c4.angle", angle), ("c4.angle_speed", exact.rates.real[:, 3]),
        ("c4.displacement", exact.coordinates.dual[:, 3]), ("drive.effort", effort),
    ):  # fmt: skip
        values = run[f"plant.{path}"][rows]
        if path.endswith(("angle", "displacement")):
            values = np.unwrap(values) - values[0] + expected[0]
        size = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-10 * size, err_msg=path)


SLEEVES = (Sleeve(0.02, 0.1), Sleeve(0.006, 0.05), Sleeve(0.006, 0.05), Sleeve(0.02, 0.1))


@pytest.mark.parametrize("twists", [TWISTS, CARDAN], ids=["general", "Cardan"])
def test_friction_of_the_engine_is_that_of_the_closed_form(twists):
    """Coulomb friction in all joints, at a constant speed against a constant load."""
    s: Any = mechanism(twists, rate=0.0)
    load = 3.0
    for name, sleeve in zip(NAMES, SLEEVES, strict=True):
        s.friction(
            f"rub_{name}", s[name], coefficient=0.02, diameter=sleeve.diameter,
            length=sleeve.length, smoothing_speed=1e-9, middle="first",
        )  # fmt: skip
    # On the ground, the second body of c4; link 3 turns at -θ̇4 and has the reverse.
    sense = np.sign(RCCC(twists).motion(START, SPEED).rates.real[3])
    s.torque("load", s["c4"], -load * sense)
    rubs = [f"rub_{name}.power_loss" for name in NAMES]
    d = Diagram("RCCC", step=1e-3)
    d.add(s.block(outputs=["drive.effort", *rubs]), name="plant")
    run = simulate(d, until=0.9)
    rows = [round(t / 1e-3) for t in TIMES]
    for t, row in zip(TIMES, rows, strict=True):
        found = efficiency(
            RCCC(twists), START + SPEED * t, speed=SPEED, torque=run["plant.drive.effort"][row],
            coefficient=0.02, sleeves=SLEEVES, bodies=BODIES, law="slip",
        )  # fmt: skip
        losses = [run[f"plant.{path}"][row] for path in rubs]
        np.testing.assert_allclose(losses, found.losses, rtol=1e-7)
        assert found.output_torque == pytest.approx(load, rel=1e-9)


@pytest.mark.parametrize("degrees", [10.0, 45.0])
def test_a_universal_joint_turns_as_the_closed_form(degrees):
    """Two shafts in bearings and one universal joint; the driver moves the inertia of both."""
    exact = RCCC.cardan(np.radians(180 - degrees)).motion(
        START + TURNED, SPEED + RATE * TIMES, RATE
    )
    z = [frames(exact, k).real[0][:, 2] for k in range(4)]
    s = System("universal joint", (0, 0, 0))
    shaft_in = s.body("in", mass=1.0, inertia=2e-3, position=-0.2 * z[0])
    shaft_out = s.body("out", mass=1.0, inertia=2e-3, position=-0.2 * z[3])
    drive = s.revolute("main", s.ground, shaft_in, at=-0.3 * z[0], axis=z[0])
    s.universal("cross", shaft_in, shaft_out, at=(0, 0, 0), axis=(z[1], z[2]))
    s.cylindrical("c4", shaft_out, s.ground, at=-0.3 * z[3], axis=z[3])
    s.driver("drive", drive, f"{SPEED} * t + {0.5 * RATE} * t**2")
    found = s.kinematics(TIMES)
    for part, path in (
        (exact.rates.real, "angle_speed"), (exact.accelerations.real, "angle_acceleration")
    ):  # fmt: skip
        np.testing.assert_allclose(found[f"c4.{path}"], part[:, 3], rtol=1e-11, atol=1e-11)
    turned = found["c4.angle"] - found["c4.angle"][0]
    angle = np.unwrap(exact.coordinates.real[:, 3])
    np.testing.assert_allclose(turned, angle - angle[0], atol=1e-11)
    np.testing.assert_allclose(found["c4.displacement"], found["c4.displacement"][0], atol=1e-12)
    effort = 2e-3 * RATE + 2e-3 * exact.accelerations.real[:, 3] * exact.rates.real[:, 3] / (
        SPEED + RATE * TIMES
    )
    np.testing.assert_allclose(found["drive.effort"], effort, rtol=1e-9)
