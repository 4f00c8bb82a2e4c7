"""Impacts of rigid shapes: the law of Chatterjee and Ruina, momentum, energy, random approaches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from biella import Diagram, simulate
from biella.blocks.multibody import (
    Capsule,
    HuntCrossley,
    Plane,
    RigidContact,
    Socket,
    Sphere,
    System,
)
from biella.scheduler.engine._engine import Instance

from .shape_pairs import PAIRS, system_of, viewer
from .test_contact import INSIDE, just_outside, momenta, two_bodies

pytestmark = pytest.mark.engine

RIGID = [pair for pair in PAIRS if pair not in ("cylinder-plane", "round pin in hole")]


def run(s: System, until: float, outputs: list[str], *, step: float = 1e-3, **block: Any) -> Any:
    d = Diagram("d", step=step)
    d.add(s.block([], outputs, mode="internal", **block), name="plant")
    result = simulate(d, until)
    return result.t, *(np.asarray(result[f"plant.{name}"]) for name in outputs)


# -- closed forms


def thrown_ball(law: RigidContact, velocity: Any, spin: Any, mass: float, radius: float) -> System:
    s = System("thrown", (0, 0, 0))
    ball = s.body("ball", mass=mass, inertia=(0.4 * mass * radius**2,) * 3, free=True,
                  position=(0.3, -0.2, radius + 1e-4), velocity=velocity,
                  angular_velocity=spin)  # fmt: skip
    s.contact("wall", Sphere(ball.marker("m"), radius), Plane(s.ground.marker("m")), law=law)
    return s


@pytest.mark.parametrize(
    ("friction", "impulse"), [(0.05, (-0.096, -0.128, 3.2)), (0.5, (-0.342857, -0.457143, 3.2))]
)
def test_oblique_impact_of_the_reference(friction: float, impulse: Any) -> None:
    """Sheet 5: m = 2, v = (-1, 0.6, 0.8), e_n = 0.6, e_t = 0; printed to six digits."""
    law = RigidContact(restitution=0.6, friction=friction)
    s = thrown_ball(law, (0.6, 0.8, -1.0), (0, 0, 0), 2.0, 0.1)
    _, velocity, spin, count, normal = run(
        s, 1e-3, ["ball.velocity", "ball.angular_velocity", "wall.impacts", "wall.impulse"]
    )
    np.testing.assert_allclose(2.0 * (velocity[-1] - velocity[0]), impulse, atol=5e-7)
    slip = velocity[-1] + np.cross(spin[-1], (0, 0, -0.1))
    expected = (0.432, 0.576, 0.6) if friction < 0.1 else (0.0, 0.0, 0.6)
    np.testing.assert_allclose(slip, expected, atol=1e-12)
    assert count[-1] == 1.0
    assert normal[-1] == pytest.approx(3.2, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_impact_of_a_spinning_ball_in_closed_form(seed: int) -> None:
    """With M_c⁻¹ = diag(1, 7/2, 7/2)/m: I_n = (1 + e_n) m |v_n|, and I_t = -(2/7) m (1 + e_t) s
    against the slip s = v + ω × (-r n), or less: |I_t| = μ I_n. Drilling spin does not change.
    """
    random = np.random.default_rng(seed)
    e_n, e_t, friction = random.uniform(0, 1), random.uniform(-1, 1), random.uniform(0, 0.6)
    mass, radius = random.uniform(0.5, 3.0), random.uniform(0.05, 0.2)
    velocity = np.array([*random.uniform(-2, 2, 2), -random.uniform(0.5, 3.0)])
    spin = random.uniform(-20, 20, 3)
    law = RigidContact(restitution=e_n, tangential_restitution=e_t, friction=friction)
    s = thrown_ball(law, tuple(velocity), tuple(spin), mass, radius)
    _, after, turned = run(s, 1e-3, ["ball.velocity", "ball.angular_velocity"])
    arm = np.array([0.0, 0.0, -radius])
    slip = (velocity + np.cross(spin, arm)) * (1, 1, 0)
    normal = (1 + e_n) * mass * -velocity[2]
    across = -2 / 7 * mass * (1 + e_t) * slip
    across *= min(1.0, friction * normal / np.linalg.norm(across))
    impulse = across + np.array([0.0, 0.0, normal])
    np.testing.assert_allclose(after[-1], velocity + impulse / mass, atol=1e-12)
    expected = spin + np.cross(arm, impulse) / (0.4 * mass * radius**2)
    np.testing.assert_allclose(turned[-1], expected, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize(
    ("friction", "impulse", "after"),
    [(0.1, (0.471071, 0.047107), (0.5, -0.214999)), (1.0, (0.478758, 0.067268), (0.5, -0.190640))],
)
@pytest.mark.parametrize("planar", [False, True], ids=["space", "plane"])
def test_end_of_a_slender_rod_hits_a_plane(
    friction: float, impulse: Any, after: Any, planar: bool
) -> None:
    """Sheet 5: m = 1, L = 1, its end at s = -½ (sin 0.5 n + cos 0.5 t), v = (-1, 0.3).

    Friction on the end is along +t although it slips along +t: the impulse that stops the approach
    reverses the slip. The printed digits are six.
    """
    across, along = 0.5 * np.sin(0.5), 0.5 * np.cos(0.5)
    law = RigidContact(restitution=0.5, friction=friction)
    s = System("rod", (0, 0) if planar else (0, 0, 0), planar=planar)
    height, radius = across + 1e-4, 1e-9
    if planar:
        rod = s.body("rod", mass=1.0, inertia=1 / 12, position=(0, height), velocity=(0.3, -1.0))
    else:
        rod = s.body("rod", mass=1.0, inertia=(1 / 12, 1 / 12, 1 / 12), free=True,
                     position=(0, 0, height), velocity=(0.3, 0.0, -1.0))  # fmt: skip
    end = rod.marker("end", (-along, -across) if planar else (-along, 0.0, -across))
    s.contact("hit", Sphere(end, radius), Plane(s.ground.marker("m")), law=law)
    _, velocity, normal = run(s, 1e-3, ["rod.velocity", "hit.impulse"])
    change = velocity[-1] - velocity[0]
    assert normal[-1] == pytest.approx(impulse[0], abs=5e-7)
    assert change[1 if planar else 2] == pytest.approx(impulse[0], abs=5e-7)
    assert change[0] == pytest.approx(impulse[1], abs=5e-7)
    _, moved = run(s, 1e-3, ["rod.angular_velocity"])
    spin = moved[-1, 2 if planar else 1]
    turned = across * spin if planar else -across * spin
    assert velocity[-1, 0] + turned == pytest.approx(after[1], abs=2e-6)


def test_impulses_of_any_body_follow_its_mobility() -> None:
    """The impulse through M_c⁻¹ = Σ (1/m - s̃ J⁻¹ s̃), in numpy, for bodies without symmetry.

    The gap closes in 50 ns. After the impact the body turns at up to 30 rad/s for at most 10 ns
    until the next sample: 3e-7 rad.
    """
    random = np.random.default_rng(5)
    for _ in range(6):
        friction, e_n, e_t = random.uniform(0.0, 0.8), random.uniform(0, 1), random.uniform(-1, 1)
        inertia, mass = random.uniform(2e-3, 4e-3, 3), random.uniform(0.5, 2.0)
        turn = Rotation.random(random_state=random)
        place, velocity = random.uniform(-0.1, 0.1, 3), random.uniform(-0.3, 0.3, 3)
        velocity[2] = -2.0
        s = System("any", (0, 0, 0))
        down = turn.apply(place)[2]
        body = s.body("body", mass=mass, inertia=tuple(inertia), free=True,
                      position=(0, 0, 0.02 - down + 1e-7), velocity=tuple(velocity),
                      rotation=turn.as_matrix(),
                      angular_velocity=tuple(random.uniform(-0.3, 0.3, 3)))  # fmt: skip
        law = RigidContact(restitution=e_n, tangential_restitution=e_t, friction=friction)
        tip = Sphere(body.marker("tip", tuple(place)), 0.02)
        s.contact("hit", tip, Plane(s.ground.marker("m")), law=law)
        names = ["body.velocity", "body.angular_velocity", "body.rotation", "hit.impacts"]
        _, v, w, attitude, hits = run(s, 2e-7, names, step=1e-8)
        k = int(np.argmax(hits > 0))
        assert hits[-1] == 1.0 and k > 0
        turns = Rotation.from_quat(attitude[k], scalar_first=True).as_matrix()
        arm = turns @ place - (0, 0, 0.02)
        cross = np.cross(np.eye(3), arm)
        inverse = np.linalg.inv(turns @ np.diag(inertia) @ turns.T)
        mobility = np.eye(3) / mass + cross.T @ inverse @ cross
        given = mass * (v[k] - v[k - 1])
        before = v[k - 1] + np.cross(w[k - 1], arm)
        plain = np.array([0, 0, -before[2] / mobility[2, 2]])
        stick = -np.linalg.solve(mobility, before)
        trial = (1 + e_n) * plain + (1 + e_t) * (stick - plain)
        part = 1 + e_t
        if np.hypot(*trial[:2]) > friction * trial[2]:
            part = (friction * (1 + e_n) * plain[2]
                    / (np.hypot(*stick[:2]) - friction * (stick - plain)[2]))  # fmt: skip
        wanted = (1 + e_n) * plain + part * (stick - plain)
        np.testing.assert_allclose(given, wanted, atol=1e-6 * float(np.linalg.norm(wanted)))


# -- several contacts at once


def test_a_ball_in_a_corner_leaves_all_three_walls() -> None:
    """Equal impulses of three orthogonal walls: the velocity reverses, times e."""
    s = System("corner", (0, 0, 0))
    ball = s.body("ball", mass=1.0, inertia=(1e-3,) * 3, position=(0.11,) * 3, free=True,
                  velocity=(-1.0,) * 3)  # fmt: skip
    turns = {"x": Rotation.from_euler("y", 90, degrees=True),
             "y": Rotation.from_euler("x", -90, degrees=True),
             "z": Rotation.identity()}  # fmt: skip
    for name, turn in turns.items():
        wall = Plane(s.ground.marker(name, rotation=turn.as_matrix()))
        s.contact(name, Sphere(ball.marker(name), 0.1), wall, law=RigidContact(restitution=0.8))
    hit = [f"{name}.impacts" for name in turns]
    _, velocity, *hits = run(s, 0.05, ["ball.velocity", *hit])
    np.testing.assert_allclose(velocity[-1], (0.8,) * 3, rtol=1e-12)
    assert [h[-1] for h in hits] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("friction", [0.0, 0.2, 5.0])
def test_a_capsule_that_falls_flat_rebounds_flat(friction: float) -> None:
    """Both ends are hit together and rebound with e, so that it does not tilt; the impulse along
    the axis, which both share, stays within the cones."""
    s = System("flat", (0, 0, 0))
    turn = Rotation.from_euler("y", 90, degrees=True).as_matrix()
    body = s.body("body", mass=2.0, inertia=(3e-3, 3e-3, 1e-3), free=True, position=(0, 0, 0.06),
                  rotation=turn, velocity=(0.8, 0.0, -1.0))  # fmt: skip
    law = RigidContact(restitution=0.6, friction=friction)
    s.contact("floor", Capsule(body.marker("m"), 0.05, 0.2), Plane(s.ground.marker("m")), law=law)
    names = ["body.velocity", "body.angular_velocity", "floor.impacts", "floor.impulse"]
    _, velocity, spin, hits, impulse = run(s, 0.03, names)
    assert hits[-1] == 2.0
    assert velocity[-1, 2] == pytest.approx(0.6, rel=1e-9)
    assert abs(spin[-1, 1]) < 1e-8
    lost = 2.0 * (0.8 - velocity[-1, 0])
    assert 0.0 <= lost <= friction * impulse[-1] + 1e-12
    # Sticking: the ends of a body that does not turn stop. Else one of the cones is reached, that
    # of the end that friction lifts: a little less than μ of both.
    assert lost == pytest.approx({0.0: 0.0, 0.2: 0.64, 5.0: 1.6}[friction], rel=0.1)
    assert impulse[-1] == pytest.approx(2.0 * 1.6, rel=1e-9)


def test_a_capsule_that_falls_flat_stops_flat() -> None:
    """Without rebound it lies at once on both ends."""
    s = System("flat", (0, 0, -9.81))
    body = s.body("body", mass=1.0, inertia=(3e-3, 3e-3, 1e-3), free=True, position=(0, 0, 0.1),
                  rotation=Rotation.from_euler("y", 90, degrees=True).as_matrix())  # fmt: skip
    floor = Plane(s.ground.marker("m"))
    s.contact("floor", Capsule(body.marker("m"), 0.05, 0.2), floor, law=RigidContact(restitution=0))
    _, place, spin, normals, kinetic = run(
        s, 0.5, ["body.position", "body.angular_velocity", "floor.normal_forces", "kinetic_energy"]
    )
    assert place[-1, 2] == pytest.approx(0.05, abs=1e-12)
    assert np.abs(spin[-1]).max() < 1e-9
    np.testing.assert_allclose(normals[-1], 9.81 / 2, rtol=1e-8)
    assert np.diff(kinetic).max() > 0  # it fell
    assert kinetic[-1] < 1e-18


# -- conservation, for every pair


@pytest.mark.filterwarnings(
    "ignore:.*had no solution with rigid bodies", "ignore:.*estimated error"
)
@pytest.mark.parametrize("pair", RIGID)
def test_momentum_is_kept_and_energy_never_grows(pair: str) -> None:
    """Of two free bodies that collide and stay in contact or not; RK4 leaves 1e-9 of momentum.

    Without losses energy is kept; a body that slides with friction in a clearance turns by half a
    radian per step, where RK4 leaves 1e-7 of the energy.
    """
    names = [f"{b}.{n}" for b in "ab" for n in ("position", "velocity", "rotation",
             "angular_velocity")]  # fmt: skip
    names += ["kinetic_energy", "touch.impacts", "touch.gap", "touch.normal_force"]
    inertias = np.array([2e-3, 3e-3, 4e-3]), np.array([9e-3, 8e-3, 7e-3])
    for law in (
        RigidContact(restitution=1.0),
        RigidContact(restitution=0.5, tangential_restitution=0.3, friction=0.4),
        RigidContact(restitution=0.0, friction=0.4),
    ):
        _, *found = run(two_bodies(pair, law), 0.2, names, step=5e-4)
        values = dict(zip(names, found, strict=True))
        assert values["touch.impacts"][-1] >= 1
        linear, angular = momenta(values, inertias)
        np.testing.assert_allclose(linear - linear[0], 0.0, atol=1e-13)
        np.testing.assert_allclose(angular - angular[0], 0.0, atol=1e-8)
        energy = values["kinetic_energy"]
        assert np.diff(energy).max() < 1e-7 * energy[0]
        if law.restitution == 1.0:
            np.testing.assert_allclose(energy, energy[0], rtol=1e-10)
        else:
            assert energy[-1] < 0.9 * energy[0]
        assert values["touch.gap"].min() > -1e-12
        assert values["touch.normal_force"].min() >= -1e-9


# -- random approaches


APART = {"plane-sphere": (0, 0, -1), "roller on cam": (1, 0, 0)}


def approaches(count: int) -> None:
    """Bodies fly at the other shape from just outside it, in any pose, for 3 ms.

    In a clearance of 1 mm they slide around at up to 2 m/s, 0.2 rad in a step: RK4 leaves up to
    0.2⁵ / 120 of the energy, 3e-6.
    """
    random = np.random.default_rng(11)
    each = count // len(RIGID) + 1
    for pair in RIGID:
        where = (0, 0, 0) if pair in INSIDE else APART.get(pair, (0, 0, 1))
        with viewer(system_of(pair, position=where)) as view:
            poses = [just_outside(random, pair, view) for _ in range(each)]
        law = RigidContact(restitution=0.6, tangential_restitution=0.2, friction=0.3)
        d = Diagram("d", step=1e-4)
        names = ["touch.gap", "kinetic_energy", "touch.impacts", "body.position"]
        d.add(system_of(pair, law, position=where).block([], names, mode="internal"), name="plant")
        hits = 0
        with Instance(d.compile()) as instance:
            for position, turn in poses:
                velocity = random.normal(size=3)
                if pair not in INSIDE and velocity @ position > 0.0:
                    velocity = -velocity
                instance.reset()
                instance.set("plant.body.initial_position", position)
                instance.set("plant.body.initial_rotation", turn.as_quat(scalar_first=True))
                instance.set("plant.body.initial_velocity", velocity)
                instance.set("plant.body.initial_angular_velocity", random.uniform(-5, 5, 3))
                instance.initialize()
                instance.evaluate()
                energy = float(instance.get("plant.kinetic_energy"))
                for _ in range(3):
                    instance.run(10)
                    instance.evaluate()
                    gap, kinetic, met = (float(instance.get(f"plant.{n}")) for n in names[:3])
                    assert gap > -1e-11, (pair, gap)
                    assert kinetic < energy * (1 + 1e-5), (pair, kinetic, energy)
                    energy = kinetic
                hits += met > 0
        assert hits > 0.3 * each, (pair, hits)


def test_random_approaches() -> None:
    """No crash, no missed contact, no penetration beyond rounding, no energy: 2,000 of them."""
    approaches(2000)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_hundred_thousand_random_approaches() -> None:
    approaches(100_000)


def test_a_compliant_law_is_not_rigid() -> None:
    """The same shapes without the outputs of impacts."""
    s = system_of("sphere-plane", HuntCrossley(stiffness=1e6))
    assert "touch.impacts" not in s.outputs()
    rigid = system_of("sphere-plane", RigidContact())
    assert {"touch.impacts", "touch.impulse", "touch.sliding", "touch.sliding_work"} <= set(
        rigid.outputs()
    )
    assert "touch.energy" not in rigid.outputs()
    assert Socket.kind == "socket"
