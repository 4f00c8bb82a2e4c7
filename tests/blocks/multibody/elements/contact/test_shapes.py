"""Gaps between shapes, against brute force and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize
from scipy.spatial.transform import Rotation

from biella import Diagram, DiagramError
from biella.blocks.multibody import (
    Bore,
    CamProfile,
    Capsule,
    Cylinder,
    HoleProfile,
    HuntCrossley,
    Plane,
    RigidContact,
    Socket,
    Sphere,
    System,
    Wear,
)
from biella.scheduler.engine._engine import Instance

from .shape_pairs import LAW, PAIRS, system_of, viewer

pytestmark = pytest.mark.engine

CENTER = np.zeros(3)


def capsule_gap(c, u, half, radius, d, v, half_d, radius_d):
    """Nearest points of two segments, as least squares with bounds."""
    found = lsq_linear(np.column_stack([u, -v]), d - c, ([-half, -half_d], [half, half_d]),
                       method="bvls", tol=1e-14)  # fmt: skip
    return np.sqrt(2.0 * found.cost) - radius - radius_d


def cylinder_distance(c, radius, half):
    """The distance of c from a solid cylinder about z, as a convex problem."""
    rules = [
        {"type": "ineq", "fun": lambda x: radius**2 - x[0] ** 2 - x[1] ** 2},
        {"type": "ineq", "fun": lambda x: half - x[2]},
        {"type": "ineq", "fun": lambda x: half + x[2]},
    ]
    found = minimize(lambda x: 1e2 * np.sum((x - c) ** 2), CENTER, constraints=rules,
                     options={"ftol": 1e-16, "maxiter": 200})  # fmt: skip
    return np.linalg.norm(found.x - c)


def oracle(pair, position, turn):
    """The gap of a pair whose fixed shape has the axes of the world."""
    u = turn.as_matrix()[:, 2]
    z = np.array([0.0, 0.0, 1.0])
    rho = np.hypot(position[0], position[1])
    if pair == "sphere-plane":
        return position[2] - 0.05
    if pair == "capsule-plane":
        return position[2] - 0.05 * abs(u[2]) - 0.03
    if pair == "cylinder-plane":  # its support function
        return position[2] - 0.05 * abs(u[2]) - 0.04 * np.sqrt(1 - u[2] ** 2)
    if pair == "plane-sphere":
        return -u @ position - 0.05
    if pair == "sphere-sphere":
        return np.linalg.norm(position) - 0.13
    if pair == "sphere-capsule":
        return capsule_gap(position, u, 1e-12, 0.05, CENTER, z, 0.05, 0.04)
    if pair == "capsule-capsule":
        return capsule_gap(position, u, 0.05, 0.03, CENTER, z, 0.1, 0.04)
    if pair == "sphere-cylinder":
        return cylinder_distance(position, 0.06, 0.05) - 0.05
    if pair == "sphere-socket":
        return 0.001 - np.linalg.norm(position)
    assert pair == "sphere-bore"
    if abs(position[2]) <= 0.05:
        return 0.001 - rho
    return np.hypot(0.05 - rho, abs(position[2]) - 0.05) - 0.049


SIMPLE = [pair for pair in PAIRS if "pin" not in pair and "cam" not in pair]


@pytest.mark.parametrize("pair", SIMPLE)
def test_gap_is_the_distance(pair: str) -> None:
    """300 random poses, two thirds of them apart; overlapping solids have signed distances."""
    random = np.random.default_rng(1)
    size = 0.002 if pair in ("sphere-socket", "sphere-bore") else 0.25
    with viewer(system_of(pair)) as view:
        for _ in range(300):
            position, turn = random.uniform(-size, size, 3), Rotation.random(rng=random)
            if pair == "sphere-bore":
                position[2] *= 40.0
            wanted = oracle(pair, position, turn)
            if pair == "sphere-cylinder" and wanted < -0.049:
                continue  # its center is in the cylinder, where the oracle has no sign
            seen = view.see(position, turn)
            # SLSQP finds the square of the distance to 1e-16
            tolerance = 1e-7 if pair == "sphere-cylinder" else 1e-9
            assert seen["gap"] == pytest.approx(wanted, abs=tolerance)
            assert bool(seen["contact"]) == (seen["gap"] <= 0.0)


def test_sphere_inside_a_cylinder_leaves_by_the_nearest_face() -> None:
    with viewer(system_of("sphere-cylinder")) as view:
        wall = view.see((0.05, 0.0, 0.0))
        end = view.see((0.01, 0.0, -0.045))
        assert wall["gap"] == pytest.approx(-0.01 - 0.05)
        np.testing.assert_allclose(wall["force"] / wall["normal_force"], [1, 0, 0], atol=1e-15)
        assert end["gap"] == pytest.approx(-0.005 - 0.05)
        np.testing.assert_allclose(end["force"] / end["normal_force"], [0, 0, -1], atol=1e-15)


def test_parallel_capsules_touch_in_the_middle_of_their_overlap() -> None:
    """Half lengths 0.05 and 0.1: beside each other from 0.08 - 0.05 to 0.1."""
    with viewer(system_of("capsule-capsule")) as view:
        seen = view.see((0.069, 0.0, 0.08))
        assert seen["gap"] == pytest.approx(-0.001)
        np.testing.assert_allclose(seen["point"], [0.039, 0.0, 0.065], atol=1e-15)
        far = view.see((0.0, 0.0, 0.21))
        assert far["gap"] == pytest.approx(0.06 - 0.07)


@pytest.mark.parametrize("pair", PAIRS)
def test_force_follows_the_gap(pair: str) -> None:
    """The work of the force over a small displacement is what the energy gives up: F = -dU/dx.

    Differences of up to 2e-6 m at depths from 1e-5 m leave some 1e-3 of the force.
    """
    random = np.random.default_rng(5)
    found = 0
    with viewer(system_of(pair)) as view:
        for _ in range(4000):
            size = (
                0.0025 if pair in ("sphere-socket", "sphere-bore", "short pin", "long pin") else 0.1
            )
            position, turn = random.uniform(-size, size, 3), Rotation.random(rng=random)
            if "pin" in pair and "hole" not in pair:
                turn = Rotation.from_rotvec(
                    [*random.uniform(-0.03, 0.03, 2), random.uniform(-3, 3)]
                )
            if pair in ("round pin in hole", "roller on cam", "cam on face"):
                position *= 0.2 if "hole" in pair else 1.0
                turn = Rotation.from_euler("z", random.uniform(-3, 3))
                if pair == "cam on face":
                    turn = Rotation.from_euler("zxz", random.uniform(-3, 3, 3))
            seen = view.see(position, turn)
            if not -0.01 < seen["gap"] < -1e-5:
                continue
            found += 1
            move, axis = random.normal(size=3), random.normal(size=3)
            energies = []
            for sign in (1e-7, -1e-7):
                turned = Rotation.from_rotvec(sign * 10.0 * axis) * turn
                energies.append(float(view.see(position + sign * move, turned)["energy"]))
            power = seen["force"] @ move + seen["torque"] @ (10.0 * axis)
            scale = float(np.linalg.norm(seen["force"])) * (1.0 + 10.0 * 0.1)
            assert (energies[1] - energies[0]) / 2e-7 == pytest.approx(power, abs=3e-3 * scale)
            if found == 60:
                break
    assert found >= 20


def test_shapes_in_a_plane() -> None:
    """A disc, and a capsule at 30° on a slope of 10°: distances of its ends from the slope."""
    s = System("flat", (0, 0), planar=True)
    slope = s.ground.marker("slope", (0.1, 0.2), rotation=np.radians(10.0))
    disc = s.body("disc", mass=1.0, inertia=1.0, position=(0.3, 0.5))
    rod = s.body("rod", mass=1.0, inertia=1.0, position=(-0.2, 0.6), rotation=np.radians(30.0))
    s.contact("a", Plane(slope), Sphere(disc.marker("m"), 0.05), law=LAW)
    s.contact("b", Capsule(rod.marker("m"), 0.03, 0.2), Plane(slope), law=LAW)
    s.contact("c", Capsule(rod.marker("n"), 0.03, 0.2), Sphere(disc.marker("n"), 0.05), law=LAW)
    normal = np.array([-np.sin(np.radians(10.0)), np.cos(np.radians(10.0))])
    along = np.array([np.cos(np.radians(30.0)), np.sin(np.radians(30.0))])
    d = Diagram("d", step=1e-6)
    d.add(s.block(outputs=["a.gap", "b.gaps", "c.gap"]), name="plant")
    with Instance(d.compile()) as instance:
        instance.initialize()
        instance.evaluate()
        disc_gap, rod_gaps, both = (
            instance.get(f"plant.{n}") for n in ("a.gap", "b.gaps", "c.gap")
        )
    assert disc_gap == pytest.approx(normal @ (0.2, 0.3) - 0.05)
    wanted = [normal @ ((-0.3, 0.4) + sign * 0.1 * along) - 0.03 for sign in (1, -1)]
    np.testing.assert_allclose(rod_gaps, wanted)
    off = np.array([0.5, -0.1])
    part = np.clip(off @ along, -0.1, 0.1)
    assert both == pytest.approx(np.linalg.norm(off - part * along) - 0.08)


def test_a_ball_in_the_middle_of_a_circle_has_a_gap() -> None:
    """There all points of the curve are nearest: the first one is taken."""
    circle = np.full(72, 0.01)
    for shape, radius, gap in ((HoleProfile, 0.0098, 0.0002), (CamProfile, 0.005, -0.015)):
        s = System("middle", gravity=(0, 0, 0))
        body = s.body("body", mass=1.0, inertia=(1, 1, 1), free=True)
        s.contact("touch", Sphere(body.marker("m"), radius), shape(s.ground.marker("m"), circle),
                  law=LAW)  # fmt: skip
        with viewer(s) as view:
            for away in (0.0, 1e-9):
                assert view.see((away, 0, 0))["gap"] == pytest.approx(gap, abs=2e-9)


def test_a_ball_beside_a_bore_does_not_touch() -> None:
    """One that rolls past the mouth outside is not in the wall."""
    with viewer(system_of("sphere-bore")) as view:
        for z in (0.06, 0.0501, 0.0499, 0.0):
            seen = view.see((0.11, 0, z))
            assert seen["normal_force"] == 0.0
            assert seen["gap"] > 0.01


def test_a_capsule_without_a_straight_part_is_a_ball() -> None:
    for other in (lambda m: Sphere(m, 0.02), lambda m: Capsule(m, 0.02, 0.0), Plane):
        s = System("round", gravity=(0, 0, 0))
        body = s.body("body", mass=1.0, inertia=(1, 1, 1), free=True)
        s.contact("touch", Capsule(body.marker("m"), 0.01, 0.0), other(s.ground.marker("m")),
                  law=LAW)  # fmt: skip
        with viewer(s) as view:
            gap = view.see((0, 0, 0.05))["gap"]
        assert gap == pytest.approx(0.04 if other is Plane else 0.02, abs=1e-15)


def test_angle_of_contact_is_about_the_axis_of_the_cam() -> None:
    """Under a face as under a roller; `angle_on_pin` is about z of the other shape."""
    lift = Rotation.from_euler("x", 90, degrees=True)
    with viewer(system_of("cam on face")) as view:
        for angle in (0.0, 0.5, 2.0):
            turn = lift * Rotation.from_euler("z", angle)
            seen = view.see((0.01, 0.02, 0.05), turn)
            x, y, z = turn.inv().apply(seen["point"] - (0.01, 0.02, 0.05))
            assert seen["angle"] == pytest.approx(np.arctan2(y, x), abs=1e-12)
            assert z == pytest.approx(0.0, abs=1e-12)
            x, y, _ = seen["point"]
            assert seen["angle_on_pin"] == pytest.approx(np.arctan2(y, x), abs=1e-12)


def test_forces_are_those_of_the_law() -> None:
    """A ball 1 mm deep that goes in at 0.2 m/s and slides at 0.3 m/s."""
    law = HuntCrossley(stiffness=1e6, damping=0.5, friction=0.4, slip_speed=0.1)
    with viewer(system_of("sphere-plane", law)) as view:
        # the point of contact is 49 mm above its lowest point: its center moves, and turns about y
        seen = view.see((0, 0, 0.049), None, (0.25, 0.0, -0.2), (0.0, -1.0, 0.0))
    normal = 1e6 * 1e-3**1.5 * (1 + 0.5 * 0.2)
    slip = 0.25 + 0.05
    friction = 0.4 * normal * np.tanh(slip / 0.1)
    assert seen["slip"] == pytest.approx(slip)
    assert seen["normal_force"] == pytest.approx(normal)
    np.testing.assert_allclose(seen["force"], [-friction, 0, normal], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(seen["torque"], [0, friction * 0.05, 0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(seen["friction_force"], [-friction, 0, 0], rtol=1e-12, atol=1e-12)
    loss = normal * 0.2 - 1e6 * 1e-3**1.5 * 0.2 + friction * slip
    assert seen["power_loss"] == pytest.approx(loss)
    assert seen["power"] == pytest.approx(-0.2 * normal - friction * slip)


def test_forces_reverse_with_the_order_of_the_shapes() -> None:
    forces = []
    for swap in (False, True):
        s = System("order")
        ball = s.body("ball", mass=1.0, inertia=(1e-3,) * 3, position=(0, 0, 0.099), free=True,
                      velocity=(0.2, 0, 0))  # fmt: skip
        pair = [Sphere(ball.marker("m"), 0.1), Plane(s.ground.marker("m"))]
        pair = pair[::-1] if swap else pair
        s.contact("touch", *pair, law=HuntCrossley(stiffness=1e6, friction=0.3))
        with viewer(s) as view:
            forces.append(view.see((0, 0, 0.099), None, (0.2, 0, 0)))
    assert forces[0]["normal_force"] == forces[1]["normal_force"] > 0
    np.testing.assert_array_equal(forces[0]["force"], -forces[1]["force"])
    assert forces[0]["force"][2] > 0


def test_bad_contacts_teach() -> None:
    s = System("bad")
    a, b = (s.body(name, mass=1.0, inertia=(1, 1, 1)) for name in "ab")
    m, n = a.marker("m"), b.marker("n")
    with pytest.raises(
        DiagramError,
        match=r"a capsule and a cylinder is not available.*can touch: plane, sphere, capsule",
    ):
        s.contact("c", Capsule(m, 0.1, 0.2), Cylinder(n, 0.1, 0.2), law=LAW)
    with pytest.raises(DiagramError, match=r"does not fit in the socket of radius 0\.1"):
        s.contact("c", Socket(m, 0.1), Sphere(n, 0.1), law=LAW)
    with pytest.raises(DiagramError, match="`law` of `c` is a HuntCrossley, a Lankarani"):
        s.contact("c", Plane(m), Sphere(n, 0.1), law=1e9)  # type: ignore[arg-type]
    wear = Wear(coefficient=1e-3, hardness=1e9, length=0.1)
    with pytest.raises(DiagramError, match="`c` is a rigid contact, which does not wear"):
        s.contact("c", Sphere(m, 0.1), Bore(n, 0.11, 0.2), law=RigidContact(), wear=wear)
    with pytest.raises(DiagramError, match="`first` of `c` is a shape, such as Sphere"):
        s.contact("c", m, Sphere(n, 0.1), law=LAW)  # type: ignore[arg-type]
    with pytest.raises(DiagramError, match="ties `a` to itself"):
        s.contact("c", Plane(m), Sphere(a.marker("other"), 0.1), law=LAW)
    with pytest.raises(DiagramError, match="`radius` of Sphere is positive, in m; got -1"):
        Sphere(m, -1.0)
    with pytest.raises(DiagramError, match="a Sphere is at a marker"):
        Sphere(a, 1.0)  # type: ignore[arg-type]
    with pytest.raises(DiagramError, match="`length` of Bore is positive"):
        Bore(m, 1.0, 0.0)
    with pytest.raises(DiagramError, match="8 to 3600 numbers"):
        CamProfile(m, [1.0, 2.0])
    with pytest.raises(DiagramError, match="got -1 at point 3"):
        HoleProfile(m, [1, 1, 1, -1, 1, 1, 1, 1])
    plane = System("flat", planar=True)
    c = plane.body("disc", mass=1.0, inertia=1.0)
    with pytest.raises(DiagramError, match="a cylinder is for systems in space"):
        plane.contact(
            "c", Cylinder(c.marker("m"), 0.1, 0.1), Plane(plane.ground.marker("p")), law=LAW
        )
    assert not s.elements
