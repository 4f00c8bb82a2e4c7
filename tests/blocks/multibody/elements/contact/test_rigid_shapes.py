"""Rigid shapes that stay in contact: rest, slide, roll; how they run, and what is refused."""

from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from biella import BiellaError, BlockError, Diagram, DiagramError, simulate
from biella import _contract as contract
from biella.blocks.multibody import (
    Body,
    Bore,
    CamProfile,
    Capsule,
    Cylinder,
    HoleProfile,
    Plane,
    RigidContact,
    Socket,
    Sphere,
    System,
    contact_statistics,
)
from biella.scheduler.compile.plan._plan import read_arrays
from biella.scheduler.engine._engine import Instance

from ...events import internal, locate
from ..plan_cells import with_cell
from .shape_pairs import EGG, system_of
from .test_contact import INSIDE, two_bodies
from .test_rigid_impacts import RIGID, run

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore:.*estimated error")]

GRAVITY = 9.81


def ball_on_floor(law: RigidContact, *, height: float = 0.0, gravity: Any = (0, 0, -GRAVITY),
                  radius: float = 0.05, mass: float = 1.0, **body: Any) -> System:  # fmt: skip
    s = System("ball", gravity)
    ball = s.body("ball", mass=mass, inertia=(0.4 * mass * radius**2,) * 3, free=True,
                  position=(0, 0, radius + height), **body)  # fmt: skip
    s.contact("floor", Sphere(ball.marker("m"), radius), Plane(s.ground.marker("m")), law=law)
    return s


# -- bounces


def test_bounces_are_a_geometric_series_that_ends() -> None:
    """Impacts at t₀ (1 + 2 e + … + 2 eᵏ), heights h e²ᵏ; at rest after t₀ (1 + e) / (1 - e).

    Flights are parabolas, exact in RK4, and impacts are located to 1e-13 of the radius: 1e-10 s.
    The bounces end where one is shorter than a tenth of a step, 1e-4 s: 1e-4 s (1 + e) / (1 - e)
    before the end of the series, and the tick is 1e-3 s.
    """
    e, height = 0.7, 0.2
    s = ball_on_floor(RigidContact(restitution=e), height=height)
    found = locate(internal(s, step=1e-3, max_events=64), 1.2)
    first = np.sqrt(2 * height / GRAVITY)
    exact = first * (1 + 2 * np.cumsum(np.concatenate([[0.0], e ** np.arange(1, 12)])))
    np.testing.assert_allclose(found.times[:12], exact, rtol=0, atol=1e-10)
    t, place, count, touches, normal, impulse, kinetic = run(
        s, 1.5, ["ball.position", "floor.impacts", "floor.contact", "floor.normal_force",
                 "floor.impulse", "kinetic_energy"]
    )  # fmt: skip
    for k in range(1, 4):
        # Between two impacts the highest sample is within half a tick of the top.
        between = (t > exact[k - 1]) & (t < exact[k])
        top = place[between, 2].max() - 0.05
        assert top == pytest.approx(height * e ** (2 * k), abs=0.5 * GRAVITY * 5e-4**2)
    rest = first * (1 + e) / (1 - e)
    assert t[np.argmax(touches > 0)] == pytest.approx(rest, abs=1.6e-3)
    assert 15 < count[-1] < 40
    assert kinetic[-1] < 1e-20 and place[-1, 2] == pytest.approx(0.05, abs=1e-13)
    assert normal[-1] == pytest.approx(GRAVITY, rel=1e-10)
    exact_impulse = np.sqrt(2 * GRAVITY * height) * (1 + e) / (1 - e)
    assert impulse[-1] == pytest.approx(exact_impulse, abs=GRAVITY * 1e-3)


# -- slopes


def slope(angle: float) -> Any:
    return (GRAVITY * np.sin(angle), 0.0, -GRAVITY * np.cos(angle))


def block_on_feet(angle: float, friction: float, **body: Any) -> System:
    """A block of 2 kg on three small balls, with its center of mass 30 mm above the slope."""
    s = System("block", slope(angle))
    block = s.body("block", mass=2.0, inertia=(0.01, 0.02, 0.02), position=(0, 0, 0.03), free=True,
                   **body)  # fmt: skip
    for n, (x, y) in enumerate(((0.1, 0.0), (-0.1, 0.08), (-0.1, -0.08))):
        foot = Sphere(block.marker(f"foot{n}", (x, y, -0.02)), 0.01)
        floor = Plane(s.ground.marker(f"floor{n}"))
        s.contact(f"foot{n}", foot, floor, law=RigidContact(friction=friction))
    return s


def test_a_block_slides_down_a_slope_or_sticks() -> None:
    """a = g (sin - μ cos) down the slope; none for μ > tan, though single feet could slip."""
    angle = 0.5
    names = ["block.position", "block.velocity", *(f"foot{n}.normal_force" for n in range(3))]
    _, place, velocity, *normals = run(block_on_feet(angle, 0.3), 1.0, names)
    rate = GRAVITY * (np.sin(angle) - 0.3 * np.cos(angle))
    np.testing.assert_allclose(velocity[-1], (rate, 0, 0), atol=1e-9)
    np.testing.assert_allclose(place[-1], (rate / 2, 0, 0.03), atol=1e-9)
    total = sum(normals)
    np.testing.assert_allclose(total, 2.0 * GRAVITY * np.cos(angle), rtol=1e-9)
    # Moments about the center of mass: 0.1 (N_0 - N_1 - N_2) = 0.03 μ N.
    np.testing.assert_allclose(normals[0] - normals[1] - normals[2], 0.09 * total, rtol=1e-8)
    # Equal parts of 3.1 N each would be more than 0.7 of the 3.6 N at the rear.
    _, place, velocity, *_ = run(block_on_feet(angle, 0.7), 1.0, names)
    assert np.abs(place[-1] - (0, 0, 0.03)).max() < 1e-12
    assert np.abs(velocity).max() < 1e-12


def test_a_block_that_is_pushed_comes_to_rest() -> None:
    """On a level floor, after v² / (2 μ g); and it stays there."""
    s = block_on_feet(0.0, 0.4, velocity=(0.6, 0.8, 0.0))
    names = ["block.position", "block.velocity", "foot0.sliding_work", "foot1.sliding_work",
             "foot2.sliding_work"]  # fmt: skip
    _, place, velocity, *works = run(s, 1.0, names)
    far = 1.0 / (2 * 0.4 * GRAVITY)
    np.testing.assert_allclose(place[-1], (0.6 * far, 0.8 * far, 0.03), atol=1e-7)
    assert np.abs(velocity[-1]).max() < 1e-12
    # ∫ N |slip| dt times μ is the kinetic energy, m v² / 2 = 1 J. It turns on its way: 1e-6.
    assert 0.4 * sum(w[-1] for w in works) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("friction", [0.1, 0.5])
def test_a_ball_rolls_or_slides_down_a_slope(friction: float) -> None:
    """It rolls with 5/7 g sin if μ > 2/7 tan, else slides with g (sin - μ cos) and turns with
    5/2 μ g cos / r."""
    angle, radius = 0.5, 0.05
    law = RigidContact(friction=friction)
    s = ball_on_floor(law, gravity=slope(angle), radius=radius)
    _, velocity, spin, slid = run(
        s, 1.0, ["ball.velocity", "ball.angular_velocity", "floor.sliding"]
    )
    if friction > 2 / 7 * np.tan(angle):
        rate = 5 / 7 * GRAVITY * np.sin(angle)
        turning, slides = rate / radius, 0.0
    else:
        rate = GRAVITY * (np.sin(angle) - friction * np.cos(angle))
        turning = 2.5 * friction * GRAVITY * np.cos(angle) / radius
        slides = 0.5 * (rate - turning * radius)
    np.testing.assert_allclose(velocity[-1], (rate, 0, 0), atol=1e-10)
    np.testing.assert_allclose(spin[-1], (0, turning, 0), atol=1e-8)
    assert slid[-1] == pytest.approx(slides, abs=1e-9)


def test_a_thrown_ball_slides_along_a_parabola_until_it_rolls() -> None:
    """The slip s₀ = v₀ + ω₀ × (-r z) keeps its direction d; until |s₀| / (7/2 μ g) the path is
    v₀ t - ½ μ g t² d, then a straight line. Where slip ends is an event: 1e-10 of a step."""
    friction, radius = 0.2, 0.1
    velocity, spin = np.array([3.0, 1.0, 0.0]), np.array([30.0, 10.0, 5.0])
    s = ball_on_floor(RigidContact(friction=friction), radius=radius, velocity=tuple(velocity),
                      angular_velocity=tuple(spin))  # fmt: skip
    _, place, ended, slid, turned = run(
        s, 2.0, ["ball.position", "ball.velocity", "floor.sliding", "ball.angular_velocity"]
    )
    slip = velocity + np.cross(spin, (0, 0, -radius))
    size = float(np.linalg.norm(slip))
    time, rate = 2 * size / (7 * friction * GRAVITY), friction * GRAVITY * slip / size
    rolls = velocity - rate * time
    at = velocity * time - 0.5 * rate * time**2 + rolls * (2.0 - time)
    np.testing.assert_allclose(place[-1, :2], at[:2], atol=1e-8)
    np.testing.assert_allclose(ended[-1], rolls, atol=1e-9)
    assert slid[-1] == pytest.approx(0.5 * size * time, rel=1e-8)
    # Rolling: ω = z × v / r; what it drills with stays.
    wanted = np.cross((0, 0, 1), rolls) / radius + (0, 0, 5.0)
    np.testing.assert_allclose(turned[-1], wanted, atol=1e-7)


def test_a_ball_rolls_in_a_bowl() -> None:
    """Sheet 3: from 0.8 rad N/m = (17 cos φ - 10 cos φ₀) g / 7, friction 2/7 m g sin φ."""
    bowl, radius, begin = 0.5, 0.1, 0.8
    s = System("bowl", (0, 0, -GRAVITY))
    away = bowl - radius
    ball = s.body("ball", mass=1.0, inertia=(0.4 * radius**2,) * 3, free=True,
                  position=(away * np.sin(begin), 0, -away * np.cos(begin)))  # fmt: skip
    law = RigidContact(friction=0.6)
    s.contact("bowl", Sphere(ball.marker("m"), radius), Socket(s.ground.marker("m"), bowl), law=law)
    names = ["ball.position", "ball.velocity", "bowl.normal_force", "bowl.friction_force",
             "bowl.slip", "bowl.gap"]  # fmt: skip
    _, place, speed, normal, friction, slip, gap = run(s, 1.0, names)
    angle = np.arctan2(place[:, 0], -place[:, 2])
    formula = (17 * np.cos(angle) - 10 * np.cos(begin)) * GRAVITY / 7
    np.testing.assert_allclose(normal, formula, rtol=1e-8)
    np.testing.assert_allclose(
        np.linalg.norm(friction, axis=1), 2 / 7 * GRAVITY * np.abs(np.sin(angle)), atol=1e-8
    )
    rates = np.linalg.norm(speed, axis=1) ** 2 / away
    np.testing.assert_allclose(rates, 10 / 7 * GRAVITY * (np.cos(angle) - np.cos(begin)), atol=1e-9)
    assert np.abs(slip).max() < 1e-10 and np.abs(gap).max() < 1e-14
    assert (17 * np.cos(0.3) - 10 * np.cos(0.8)) * GRAVITY / 7 == pytest.approx(12.996363, abs=5e-7)


# -- every pair, on its curvature


@pytest.mark.filterwarnings("ignore:.*estimated error", "ignore:.*had no solution")
@pytest.mark.parametrize("pair", RIGID)
def test_forces_are_what_bodies_are_accelerated_by(pair: str) -> None:
    """m dv/dt of a free body, by central differences, is the force: N follows from curvature.

    A step is 20 µs, in which directions turn by at most 0.02 rad in the clearances of 1 mm:
    differences leave 0.02² / 6, 1e-4.
    """
    law = RigidContact(restitution=0.0, friction=0.1)
    names = ["a.velocity", "touch.force", "touch.impacts", "touch.contact"]
    s = two_bodies(pair, law)
    outer = np.zeros(3)
    if pair not in INSIDE:  # else they part again
        outer[0 if pair == "roller on cam" else 2] = -20.0
        s.force("press", cast(Body, s["a"]).marker("here"), tuple(outer))
    t, velocity, force, impacts, touches = run(s, 0.14, names, step=2e-5)
    calm = (touches[:-2] * touches[1:-1] * touches[2:] > 0) & (impacts[2:] == impacts[:-2])
    # Neither at a jump of the force, where a wall ends, or slip ends.
    change = np.linalg.norm(force[2:] - force[:-2], axis=1)
    calm &= change < 0.05 * np.linalg.norm(force[1:-1], axis=1)
    assert calm.sum() > 20, calm.sum()
    rates = (velocity[2:] - velocity[:-2]) / (t[2:] - t[:-2])[:, None]
    missing = np.linalg.norm(rates - force[1:-1] - outer, axis=1)[calm]
    size = np.linalg.norm(force[1:-1], axis=1)[calm]
    # Small jumps are left, where the curvature of a wall changes: in less than a twentieth.
    assert np.quantile(missing / (size + 1e-3 * size.max()), 0.95) < 1e-3


def test_a_pin_in_a_bore_is_the_planar_rigid_joint_in_the_planar_limit() -> None:
    """Without tilt: two ends, which are hit together, against one joint: the same flights,
    impacts with friction, sliding and forces. Rounding grows by some ten at each impact.
    """
    velocity, spin = (0.4, 0.1), 20.0
    law = RigidContact(restitution=0.5, tangential_restitution=0.2, friction=0.2)
    flat = System("flat", (0, -9.81), planar=True)
    body = flat.body("pin", mass=2.0, inertia=2e-3, velocity=velocity, angular_velocity=spin)
    flat.clearance_revolute("touch", body.marker("m"), flat.ground.marker("m"), clearance=1e-3,
                            pin_radius=0.01, contact=law)  # fmt: skip
    s = System("space", (0, -9.81, 0))
    body = s.body("pin", mass=2.0, inertia=(3e-3, 3e-3, 2e-3), velocity=(*velocity, 0.0),
                  angular_velocity=(0, 0, spin), free=True)  # fmt: skip
    pin, bore = Cylinder(body.marker("m"), 0.01, 0.05), Bore(s.ground.marker("m"), 0.011, 0.1)
    s.contact("touch", pin, bore, law=law)
    names = ["pin.position", "pin.angular_velocity", "touch.normal_force", "touch.slip",
             "touch.impulse"]  # fmt: skip
    names.append("touch.impacts")
    _, place, turns, normal, slip, impulse, hits = run(flat, 0.04, names, step=1e-4)
    _, place_s, turns_s, normal_s, slip_s, impulse_s, hits_s = run(s, 0.04, names, step=1e-4)
    assert (normal > 0).any() and hits[-1] > 8
    np.testing.assert_array_equal(hits_s, 2 * hits)
    np.testing.assert_allclose(place_s, place, atol=1e-9)
    np.testing.assert_allclose(turns_s, turns, atol=1e-6)
    np.testing.assert_allclose(normal_s, normal, atol=1e-6 * normal.max())
    np.testing.assert_allclose(slip_s, np.abs(slip), atol=1e-7)
    assert impulse_s[-1] == pytest.approx(impulse[-1], rel=1e-9)


@pytest.mark.parametrize("kind", ["planar", "spatial"])
def test_a_disc_in_a_socket_is_the_planar_rigid_joint(kind: str) -> None:
    """The same number, impact for impact: a ball that moves in a plane, or a disc."""
    law = RigidContact(restitution=0.6, tangential_restitution=0.2, friction=0.15)
    velocity, spin = (0.5, 0.3), 12.0
    flat = System("flat", (0, -9.81), planar=True)
    body = flat.body("pin", mass=2.0, inertia=2e-3, velocity=velocity, angular_velocity=spin)
    flat.clearance_revolute("touch", body.marker("m"), flat.ground.marker("m"), clearance=1e-3,
                            pin_radius=0.01, contact=law)  # fmt: skip
    planar = kind == "planar"
    s = System("shapes", (0, -9.81) if planar else (0, -9.81, 0), planar=planar)
    if planar:
        body = s.body("pin", mass=2.0, inertia=2e-3, velocity=velocity, angular_velocity=spin)
    else:
        body = s.body("pin", mass=2.0, inertia=(2e-3,) * 3, free=True, velocity=(*velocity, 0),
                      angular_velocity=(0, 0, spin))  # fmt: skip
    s.contact("touch", Sphere(body.marker("m"), 0.01), Socket(s.ground.marker("m"), 0.011), law=law)
    names = ["pin.position", "pin.angular_velocity", "touch.impacts", "touch.impulse",
             "touch.sliding", "touch.sliding_work", "touch.normal_force"]  # fmt: skip
    _, *wanted = run(flat, 0.06, names, step=1e-4)
    _, *found = run(s, 0.06, names, step=1e-4)
    assert wanted[2][-1] > 10
    np.testing.assert_array_equal(found[2], wanted[2])
    scales = (1e-3, 20.0, 1.0, 1.0, 1e-2, 1e-2, 100.0)
    for mine, other, scale, name in zip(found, wanted, scales, names, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-7 * scale, err_msg=name)


@pytest.mark.parametrize("pair", ["sphere-socket", "short pin", "long pin"])
def test_what_rattles_does_not_escape(pair: str) -> None:
    """Shaken for half a second by a load that turns around, with rebounds and friction."""
    law = RigidContact(restitution=0.7, tangential_restitution=0.1, friction=0.1)
    s = system_of(pair, law, velocity=(0.3, -0.2, 0.0), angular_velocity=(0.4, 0.3, 2.0))
    shape = cast(Body, s["body"]).marker("off", (0.0, 0.01, 0.005))
    s.force("shake", shape, ("80*sin(60*t)", "80*cos(83*t)", "0"))
    names = ["touch.gap", "touch.impacts", "touch.normal_force", "touch.contact"]
    _, gap, impacts, normal, touches = run(s, 0.5, names, step=5e-4)
    assert gap.min() > -1e-12
    assert impacts[-1] > 20
    assert normal.min() > -1e-8
    assert 0 < touches.sum() < len(touches)


# -- how it runs


def rattling() -> System:
    law = RigidContact(restitution=0.6, tangential_restitution=0.2, friction=0.2)
    s = system_of("short pin", law, velocity=(0.3, -0.2, 0.02), angular_velocity=(0.4, 0.3, 2.0))
    s.force("shake", cast(Body, s["body"]).marker("off", (0.0, 0.01, 0.005)), (20.0, -60.0, 0.0))
    return s


SEEN = ["body.position", "body.angular_velocity", "touch.impacts", "touch.impulse",
        "touch.sliding", "touch.sliding_work", "touch.contact", "touch.force",
        "touch.normal_forces"]  # fmt: skip


@pytest.mark.parametrize("at", [0.02, 0.0505, 0.12])
def test_a_saved_run_continues_with_the_same_bits(at: float) -> None:
    d = Diagram("d", step=5e-4)
    d.add(rattling().block([], SEEN, mode="internal"), name="plant")
    plan = d.compile()
    with Instance(plan) as one, Instance(plan) as other:
        for instance in (one, other):
            instance.initialize()
        one.run_to(at)
        state = one.save()
        one.run_to(0.15)
        other.run_to(0.07)
        other.restore(state)
        other.run_to(0.15)
        for name in SEEN:
            np.testing.assert_array_equal(one.get(f"plant.{name}"), other.get(f"plant.{name}"))


def test_a_tick_of_many_steps_is_the_same_as_many_ticks() -> None:
    _, *fine = run(rattling(), 0.1, SEEN, step=5e-4)
    _, *coarse = run(rattling(), 0.1, SEEN, step=4e-3, substeps=8)
    for mine, other in zip(fine, coarse, strict=True):
        np.testing.assert_array_equal(mine[::8], other)


def test_an_fmu_does_the_same_bit_by_bit(tmp_path: Any) -> None:
    fmpy = pytest.importorskip("fmpy")
    path = rattling().export_fmu(tmp_path / "pin.fmu", outputs=SEEN, step=5e-4, sources=False)
    outside = fmpy.simulate_fmu(
        str(path), stop_time=0.1, output_interval=5e-4, start_values={"touch.restitution": 0.4}
    )
    d = Diagram("d", step=5e-4)
    d.add(rattling().block([], SEEN, mode="internal"), name="plant")
    result = simulate(d, 0.1, parameters={"plant.touch.restitution": 0.4})
    for name in SEEN:
        columns = [c for c in outside.dtype.names if c.partition("[")[0] == name]
        theirs = np.stack([outside[c] for c in columns], axis=-1).squeeze()
        np.testing.assert_array_equal(theirs, np.squeeze(result[f"plant.{name}"]), err_msg=name)


def test_statistics_of_a_ball_in_a_bore() -> None:
    """Impacts between samples are counted, and their impulses."""
    law = RigidContact(restitution=0.5, friction=0.1)
    s = system_of("sphere-bore", law, velocity=(0.6, 0.2, 0.0))
    s.force("down", cast(Body, s["body"]).marker("middle"), (0.0, -20.0, 0.0))
    names = [f"touch.{n}" for n in ("contact", "normal_force", "angle", "angle_on_pin", "slip",
             "impacts", "impulse", "sliding", "sliding_work")]  # fmt: skip
    d = Diagram("d", step=1e-3)
    d.add(s.block([], names, mode="internal"), name="plant")
    result = simulate(d, 0.2)
    found = contact_statistics(result, "touch")
    assert found.impacts == result["plant.touch.impacts"][-1] > 1
    assert found.impact_impulses.sum() == pytest.approx(result["plant.touch.impulse"][-1])


def test_cams_carry_rigid_followers() -> None:
    """An eccentric disc under a flat face: lift e cos θ, N = m (g - e ω² cos θ), no bounce."""
    radius, offset, speed = 0.03, 0.004, 30.0
    angles = 2 * np.pi / 360 * np.arange(360)
    radii = offset * np.cos(angles) + np.sqrt(radius**2 - (offset * np.sin(angles)) ** 2)
    s = System("valve", gravity=(0, -GRAVITY), planar=True)
    cam = s.body("cam", mass=1.0, inertia=1e-3)
    valve = s.body("valve", mass=0.2, inertia=1e-4, position=(0, radius))
    s.driver("motor", s.revolute("axis", s.ground, cam, at=(0, 0)), f"{speed}*t")
    s.prismatic("guide", s.ground, valve, at=(0, radius), axis=(0, 1))
    face = Plane(valve.marker("face", rotation=np.pi))
    s.contact("lobe", CamProfile(cam.marker("m"), radii), face, law=RigidContact(restitution=0.0))
    t, place, normal, gap = run(s, 0.3, ["valve.position", "lobe.normal_force", "lobe.gap"])
    # The table begins at the largest radius, along x: the center of the disc is at e sin θ.
    np.testing.assert_allclose(place[:, 1], radius + offset * np.sin(speed * t), atol=2e-9)
    force = 0.2 * (GRAVITY - offset * speed**2 * np.sin(speed * t))
    np.testing.assert_allclose(normal[1:], force[1:], atol=2e-3 * force.max())
    assert np.abs(gap).max() < 1e-12


# -- what is refused, and said


def test_what_has_no_rigid_contact_is_refused_by_name() -> None:
    law = RigidContact()
    s = System("refused")
    body = s.body("body", mass=1.0, inertia=(1, 1, 1), free=True)

    def pair(first: Any, second: Any) -> None:
        s.contact("touch", first, second, law=law)

    floor, here = Plane(s.ground.marker("floor")), body.marker("here")
    with pytest.raises(DiagramError, match=r"RigidContact of a cylinder and a plane.*Capsule"):
        pair(Cylinder(here, 0.1, 0.2), floor)
    with pytest.raises(DiagramError, match=r"RigidContact of a sphere and a hole.*Bore"):
        pair(Sphere(here, 0.02), HoleProfile(s.ground.marker("hole"), EGG))
    with pytest.raises(DiagramError, match="tilt so far in its bore"):
        pair(Cylinder(here, 0.095, 0.02), Bore(s.ground.marker("bore"), 0.1, 0.2))
    hollow = 0.05 + 0.02 * np.cos(3 * 2 * np.pi / 72 * np.arange(72))
    with pytest.raises(DiagramError, match="outline of the cam is hollow"):
        pair(Sphere(here, 0.02), CamProfile(s.ground.marker("cam"), hollow))
    with pytest.raises(DiagramError, match="HuntCrossley, a LankaraniNikravesh or a RigidContact"):
        s.contact("touch", Sphere(here, 0.02), floor, law=3.0)  # type: ignore[arg-type]


def test_modes_that_cannot_run_it_are_refused_by_name() -> None:
    s = ball_on_floor(RigidContact())
    with pytest.raises(DiagramError, match=r"`floor` has a RigidContact.*mode='internal'"):
        s.block()
    with pytest.raises(DiagramError, match=r"`floor` has a RigidContact.*integrator='rk4'"):
        s.block(mode="internal", integrator="implicit")
    with pytest.raises(DiagramError, match="`floor` is a contact"):
        s.equilibrium()


def test_shapes_that_overlap_at_the_start_are_refused_with_the_amount() -> None:
    s = ball_on_floor(RigidContact(), height=-0.01)
    with pytest.raises(BlockError, match=r"shapes of `floor` overlap by 0\.01 m at the start"):
        run(s, 0.01, ["floor.gap"])
    near = ball_on_floor(RigidContact(), height=-1e-9)  # to printed digits
    _, gap, normal = run(near, 0.01, ["floor.gap", "floor.normal_force"])
    assert np.abs(gap).max() < 1e-15
    np.testing.assert_allclose(normal, GRAVITY, rtol=1e-10)


@pytest.mark.parametrize(("path", "value", "text"), [
    ("floor.restitution", 1.5, "restitution"), ("floor.friction", -0.1, "friction"),
    ("floor.tangential_restitution", -2.0, "tangential_restitution"),
    ("floor.first.radius", 0.0, "first.radius"),
])  # fmt: skip
def test_parameters_set_later_are_checked(path: str, value: float, text: str) -> None:
    d = Diagram("d", step=1e-3)
    d.add(ball_on_floor(RigidContact()).block([], ["floor.gap"], mode="internal"), name="plant")
    with pytest.raises(BlockError, match=text):
        simulate(d, 0.01, parameters={f"plant.{path}": value})


@pytest.mark.parametrize("pair", ["sphere-plane", "short pin", "roller on cam"])
def test_hostile_plans_are_refused_or_run(pair: str) -> None:
    """Each integer of the element and of its rows, changed in many ways: an error or a run."""
    d = Diagram("hostile", step=1e-5)
    where = (1, 0, 0) if pair == "roller on cam" else (0, 0, 0 if pair == "short pin" else 1)
    block = system_of(pair, RigidContact(friction=0.2), position=where).block(
        outputs=["touch.gap", "touch.normal_force"], mode="internal"
    )
    d.add(block, name="plant")
    plan = d.compile()
    cells = read_arrays(plan.sections)["INTS"]
    rows = [k for k in range(len(cells) - 5) if cells[k] == contract.MB_ROW_NORMAL
            and cells[k + 6] == cells[k + 12] == contract.MB_ROW_TANGENT]  # fmt: skip
    element = [k for k in range(len(cells) - 6) if cells[k] == contract.MB_TOUCH_RIGID
               and (k > rows[0] or cells[k + 4] > 0)]  # fmt: skip
    refused = 0
    for start in {rows[0], rows[0] + 6, element[-1]}:
        for field in range(6):
            for value in (-1, 1, 2, 8, 13, 31, 64, 4608, 2**30, 2**31 - 1, -(2**31)):
                try:
                    with Instance(with_cell(plan, "INTS", start + field, value)) as instance:
                        instance.initialize()
                        instance.run(3)
                except BiellaError:
                    refused += 1
    assert refused > 90


def capsule_on_capsule(turned: float) -> System:
    """One slides along another on the ground, or across it, at 0.1 m/s with μ = 0.3."""
    s = System("capsules", (0, 0, -GRAVITY))
    body = s.body("body", mass=1.0, inertia=(0.01, 0.01, 0.001), free=True, position=(0, 0, 0.1),
                  velocity=(0.1, 0, 0))  # fmt: skip
    lying = Rotation.from_euler("y", np.pi / 2)
    across = Rotation.from_euler("z", turned) * lying
    s.contact(
        "touch",
        Capsule(body.marker("m", rotation=lying.as_matrix()), 0.05, 0.3),
        Capsule(s.ground.marker("m", rotation=across.as_matrix()), 0.05, 0.3),
        law=RigidContact(friction=0.3),
    )
    return s


def test_a_capsule_that_slides_along_a_parallel_one_is_warned_of() -> None:
    """Its one place goes from end to end: 0.92 m/s² was seen in place of μ g = 2.94 m/s²."""
    with pytest.warns(UserWarning, match="capsules of `touch` touch went by more than"):
        run(capsule_on_capsule(0.0), 0.01, ["body.velocity"])


def test_a_capsule_that_slides_on_a_crossed_one_is_not() -> None:
    """Before it tips, 0.02 s of μ g; the place is beside the center by 1 mm / sin 0.3."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*estimated error")
        _, velocity = run(capsule_on_capsule(0.3), 0.02, ["body.velocity"])
    assert velocity[-1, 0] == pytest.approx(0.1 - 0.3 * GRAVITY * 0.02, rel=5e-3)


@pytest.mark.parametrize("step", [1e-3, 0.02])
def test_a_block_on_three_feet_rides_a_turntable(step: float) -> None:
    """At 3.9 rad/s and 0.3 m it needs μ = ω² r / g = 0.465 of 0.5, and stays where it is.

    A foot that slides at no speed, in a direction that stays as the table turns, would use up the
    friction. RK4 turns by 0.078 rad in a step: 0.078⁵ / 120 of r in each of 50, 4e-7 m.
    """
    rate, radius = 3.9, 0.3
    s = System("turntable", (0, 0, -GRAVITY))
    table = s.body("table", mass=1.0, inertia=(0.1,) * 3, angular_velocity=(0, 0, rate))
    hinge = s.revolute("hinge", s.ground.marker("o"), table.marker("o"))
    s.driver("drive", hinge, f"{rate}*t")
    body = s.body("body", mass=1.0, inertia=(0.01,) * 3, free=True, position=(radius, 0, 0.05),
                  velocity=(0, rate * radius, 0), angular_velocity=(0, 0, rate))  # fmt: skip
    for n, (x, y) in enumerate(((0.05, 0.05), (0.05, -0.05), (-0.05, 0.0))):
        foot = Sphere(body.marker(f"m{n}", (x, y, -0.04)), 0.01)
        floor = Plane(table.marker(f"m{n}"))
        s.contact(f"foot{n}", foot, floor, law=RigidContact(friction=0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*estimated error")
        _, place = run(s, 1.0, ["body.position"], step=step)
    assert np.abs(np.hypot(place[:, 0], place[:, 1]) - radius).max() < 2e-6
