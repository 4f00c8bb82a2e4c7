"""A pin in a bore with play: tables of the reference, brute force, and the planar joint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

from biella import Diagram, simulate
from biella.blocks.multibody import Bore, Cylinder, HuntCrossley, System

from .shape_pairs import LAW, viewer

pytestmark = pytest.mark.engine


def pin_in_bore(
    radius: float, length: float, bore: float, bore_length: float, **body: Any
) -> System:
    s = System("pin", gravity=(0, 0, 0))
    options: dict[str, Any] = {"mass": 2.0, "inertia": (1.0, 1.0, 1.0), "free": True}
    pin = s.body("pin", **(options | body))
    law = body.get("law", LAW)
    s.contact("touch", Cylinder(pin.marker("m"), radius, length),
              Bore(s.ground.marker("m"), bore, bore_length), law=law)  # fmt: skip
    return s


def tilted(angle: float, direction: float = 0.0) -> Rotation:
    """A tilt whose axis leans toward a direction."""
    return Rotation.from_rotvec(angle * np.array([-np.sin(direction), np.cos(direction), 0.0]))


def largest_tilt(view: Any, low: float, high: float, direction: float) -> float:
    return float(
        brentq(
            lambda a: float(view.see((0, 0, 0), tilted(a, direction))["gap"]),
            low,
            high,
            xtol=1e-14,
            rtol=1e-14,
        )
    )


@pytest.mark.parametrize(
    ("sizes", "tilt"),
    [
        ((9.8, 30.0, 10.0, 60.0), 0.0133923218),
        ((9.0, 20.0, 10.0, 60.0), 0.1051661232),
        ((9.8, 60.0, 10.0, 8.0), 0.0472297621),
    ],
    ids=["short", "wide", "long"],
)
def test_largest_tilt_is_that_of_the_table(sizes: Any, tilt: float) -> None:
    """Sheet 4.3, to its ten digits and to the closed forms; at any direction of the tilt."""
    r, length, wide, bore = sizes
    if length < bore:
        exact = np.arctan2(length, 2 * r) - np.arccos(2 * wide / np.hypot(length, 2 * r))
    else:
        exact = np.arccos(2 * r / np.hypot(2 * wide, bore)) - np.arctan2(bore, 2 * wide)
    assert exact == pytest.approx(tilt, abs=5e-11)
    with viewer(pin_in_bore(*sizes)) as view:
        for direction in (0.0, 0.3, 2.0, -2.5):
            assert largest_tilt(view, 0.5 * tilt, 1.5 * tilt, direction) == pytest.approx(
                exact, rel=1e-12
            )
        seen = view.see((0, 0, 0), tilted(exact))
        assert seen["tilt"] == pytest.approx(exact, rel=1e-12)
        # Two contacts on opposite sides; the others are open by about the clearance.
        np.testing.assert_allclose(np.sort(seen["gaps"])[:2], 0.0, atol=1e-13 * wide)
        assert np.sort(seen["gaps"])[2] > 0.1 * (wide - r)
    if length < bore:  # the points of contact
        with viewer(pin_in_bore(*sizes)) as view:
            point = np.abs(view.see((0, 0, 0), tilted(exact + 1e-9))["point"])
            high = 0.5 * length * np.cos(exact) - r * np.sin(exact)
            np.testing.assert_allclose(point, [wide, 0.0, high], atol=1e-6)


def test_a_disc_can_tumble_in_its_tube() -> None:
    """√(r² + L²/4) = 9.812747 < 10: never more than the diagonal of the disc."""
    with viewer(pin_in_bore(9.8, 1.0, 10.0, 60.0)) as view:
        gaps = [view.see((0, 0, 0), tilted(a))["gap"] for a in np.linspace(0, np.pi, 400)]
    assert min(gaps) == pytest.approx(10.0 - np.hypot(9.8, 0.5), abs=1e-4)
    assert min(gaps) >= 10.0 - np.hypot(9.8, 0.5) - 1e-12


def test_ellipse_in_a_circle_has_two_farthest_points() -> None:
    """Sheet 6: an edge circle of radius 3, seen as an ellipse with b = 2, at d = 1.1.

    Farthest at cos ψ = d b / (a² - b²) = 0.44, by √(a² + a² d² / (a² - b²)) = 3.343351612.
    """
    tilt, wide = np.arccos(2.0 / 3.0), 5.0
    thin = 1e-9  # both edges of a disc are one circle
    with viewer(pin_in_bore(3.0, thin, wide, 60.0)) as view:
        lean = np.array([np.cos(0.4), np.sin(0.4), 0.0])
        seen = view.see(1.1 * lean, tilted(tilt, 0.4))
        gaps = seen["gaps"][:4]
        np.testing.assert_allclose(wide - gaps, 3.343351612, atol=2e-9)
        exact = np.sqrt(9.0 + 9.0 * 1.1**2 / 5.0)
        np.testing.assert_allclose(wide - gaps, exact, atol=2e-9)
        point = view.see(1.1 * lean, tilted(tilt, 0.4))["point"]
        # cos ψ is measured from the lower vertex, on the side of the offset
        assert (point @ lean - 1.1) / 2.0 == pytest.approx(0.44, abs=1e-8)
        vertex = view.see(2.6 * lean, tilted(tilt, 0.4))  # beyond (a² - b²) / b = 2.5
        assert wide - vertex["gap"] == pytest.approx(4.6, abs=1e-8)
        along = view.see(1.1 * np.array([-lean[1], lean[0], 0.0]), tilted(tilt, 0.4))
        assert wide - along["gap"] == pytest.approx(4.1, abs=1e-8)


def circle(center, axis, radius):
    side = np.linalg.svd(axis[None])[2][1:]
    angles = 2 * np.pi / 20000 * np.arange(20000)
    return center + radius * (np.cos(angles)[:, None] * side[0] + np.sin(angles)[:, None] * side[1])


def brute_gap(position, turn, r, length, wide, bore):
    """The smallest gap of all edge points that are within the other's length."""
    u, z = turn.as_matrix()[:, 2], np.array([0.0, 0.0, 1.0])
    found = [wide]
    for side in (0.5, -0.5):
        points = circle(position + side * length * u, u, r)
        inside = np.abs(points[:, 2]) <= 0.5 * bore
        found += list(wide - np.hypot(*points[inside, :2].T)[:, None].max(0, initial=0.0))
        off = circle(side * bore * z, z, wide) - position
        along = off @ u
        inside = np.abs(along) <= 0.5 * length
        away = np.linalg.norm(off - along[:, None] * u, axis=1)[inside]
        found.append(away.min(initial=wide + r) - r)
    return min(found)


@pytest.mark.parametrize(
    ("sizes", "places"),
    [((9.8, 30.0, 10.0, 60.0), (-14, 14)), ((9.8, 60.0, 10.0, 8.0), (-20, 20)),
     ((9.0, 9.0, 10.0, 10.0), (1.5, 4.0))],
    ids=["pin inside", "pin through", "one end out"],
)  # fmt: skip
def test_gap_is_that_of_all_edge_points(sizes: Any, places: Any) -> None:
    """20,000 points of a circle have the farthest to r (π / 20000)² / 2 = 1e-7."""
    random = np.random.default_rng(2)
    with viewer(pin_in_bore(*sizes)) as view:
        for _ in range(150):
            turn = tilted(random.uniform(0, 0.06), random.uniform(-3, 3))
            position = np.array([*random.uniform(-0.2, 0.2, 2), random.uniform(*places)])
            wanted = brute_gap(position, turn, *sizes)
            assert view.see(position, turn)["gap"] == pytest.approx(wanted, abs=2e-6)


def test_a_pin_beside_its_bore_does_not_touch() -> None:
    with viewer(pin_in_bore(9.0, 9.0, 10.0, 10.0)) as view:
        poses = [((3, 0, 12), 0.0), ((15, 0, 0), 1.2), ((0, 0, -11), np.pi / 2)]
        for position, turn in (*poses, ((20, 0, 0), 0.0), ((0, -11, 2), 0.0)):
            seen = view.see(position, tilted(turn))
            assert seen["normal_force"] == 0.0
            assert 0.0 < seen["gap"] < 100.0


def planar_and_spatial(law: HuntCrossley, half: HuntCrossley, velocity: Any, spin: float):
    flat = System("flat", (0, -9.81), planar=True)
    body = flat.body("pin", mass=2.0, inertia=2e-3, velocity=velocity, angular_velocity=spin)
    flat.clearance_revolute("touch", body.marker("m"), flat.ground.marker("m"), clearance=1e-3,
                            pin_radius=0.01, contact=law)  # fmt: skip
    s = System("space", (0, -9.81, 0))
    body = s.body("pin", mass=2.0, inertia=(3e-3, 3e-3, 2e-3), velocity=(*velocity, 0.0),
                  angular_velocity=(0, 0, spin), free=True)  # fmt: skip
    bore = Bore(s.ground.marker("m"), 0.011, 0.1)
    s.contact("touch", Cylinder(body.marker("m"), 0.01, 0.05), bore, law=half)
    found = []
    for system in (flat, s):
        d = Diagram("d", step=2e-6)
        outputs = ["pin.position", "pin.angular_velocity", "touch.normal_force"]
        d.add(system.block(outputs=outputs, mode="internal"), name="plant")
        result = simulate(d, 0.05)
        found.append({name: result[f"plant.{name}"] for name in outputs})
    return found


def test_pin_in_a_bore_is_the_planar_joint_in_the_planar_limit() -> None:
    """Two ends with half the stiffness each, without tilt: the same motion, impacts and friction.

    Impacts amplify differences of rounding, by some ten each.
    """
    options: dict[str, Any] = {"damping": 0.2, "friction": 0.2, "slip_speed": 0.01}
    law, half = (HuntCrossley(stiffness=k, **options) for k in (1e8, 5e7))
    flat, space = planar_and_spatial(law, half, (0.4, 0.1), 20.0)
    assert (flat["touch.normal_force"] > 0).any()
    impacts = np.count_nonzero(np.diff((flat["touch.normal_force"] > 0).astype(int)) == 1)
    assert impacts > 5
    np.testing.assert_allclose(space["pin.position"], flat["pin.position"], atol=1e-10)
    np.testing.assert_allclose(
        space["pin.angular_velocity"][:, 2], flat["pin.angular_velocity"][:, 2], rtol=1e-8
    )
    largest = flat["touch.normal_force"].max()
    np.testing.assert_allclose(
        space["touch.normal_force"], flat["touch.normal_force"], atol=1e-6 * largest
    )


def test_pose_of_two_points_at_an_angle_leaves_the_residual_of_the_reference() -> None:
    """Sheet 4.2: R = 10, r = 9.8, L = 30, β = 1.2, ξ = 0.5: tilt 0.0075284, gaps of +8.8e-5.

    The end centers of Vita's pose are at Δr from the axis, at ξ ± β/2; its circles stay circles.
    """
    play, half = 0.2, 0.6
    ends = [
        np.array([play * np.cos(0.5 + s * half), play * np.sin(0.5 + s * half), -15.0 * s])
        for s in (1.0, -1.0)
    ]
    axis = ends[1] - ends[0]
    tilt = np.arctan2(np.hypot(*axis[:2]), axis[2])
    turn = tilted(tilt, np.arctan2(axis[1], axis[0]))
    assert tilt == pytest.approx(0.0075284, abs=5e-8)
    length = float(np.linalg.norm(axis))  # 30 m along the bore
    with viewer(pin_in_bore(9.8, length, 10.0, 60.0)) as view:
        seen = view.see(0.5 * (ends[0] + ends[1]), turn)
    np.testing.assert_allclose(np.sort(seen["gaps"])[:2], 8.8e-5, atol=1e-6)
    assert seen["tilt"] == pytest.approx(tilt)


# -- statics


def pressed_pin(friction: float = 0.0) -> tuple[System, Any]:
    """A pin of 40 mm in a long bore; dampers bring it to rest, and hold it nowhere."""
    s = System("pressed", gravity=(0, 0, 0))
    pin = s.body("pin", mass=0.1, inertia=(1e-4, 1e-4, 1e-4), free=True)
    law = HuntCrossley(stiffness=1e8, exponent=1.0, damping=20.0, friction=friction,
                       slip_speed=1e-3)  # fmt: skip
    bore = Bore(s.ground.marker("m"), 0.01005, 0.4)
    s.contact("touch", Cylinder(pin.marker("m"), 0.01, 0.04), bore, law=law)
    return s, pin


def settled(s: System, until: float, *outputs: str, step: float = 5e-6) -> Any:
    d = Diagram("d", step=step)
    d.add(s.block(outputs=list(outputs), mode="internal"), name="plant")
    result = simulate(d, until)
    return [result[f"plant.{name}"] for name in outputs]


@pytest.mark.parametrize("moment", [0.3, 0.9])
def test_a_pressed_pin_lies_on_a_line_or_crosswise(moment: float) -> None:
    """Sheet 4.4: F = 30 N, L = 40 mm: a line while |M| ≤ F L / 2 = 0.6 N m, N = F / 2 ± M / L."""
    s, pin = pressed_pin()
    s.bushing("damper", s.ground.marker("d"), pin.marker("d"), stiffness=0,
              damping=(60, 60, 60, 0.05, 0.05, 0.05))  # fmt: skip
    s.force("load", pin.marker("f"), (0.0, -30.0, 0.0))
    s.torque("moment", pin.marker("t"), (moment, 0.0, 0.0))
    normal, force = settled(s, 0.3, "touch.normal_forces", "touch.force")
    np.testing.assert_allclose(force[-1], [0, 30.0, 0], atol=1e-3)
    ends = [normal[-1, :2].sum(), normal[-1, 2:4].sum()]
    # The edges that touch crosswise are nearer to the middle by r sin τ, with τ = 2 Δr / L.
    arm = 0.02 if moment < 0.6 else 0.02 - 0.01 * 0.0025
    wanted = sorted(abs(15.0 + sign * moment / (2 * arm)) for sign in (1, -1))
    np.testing.assert_allclose(sorted(ends), wanted, rtol=5e-4)


@pytest.mark.parametrize("arm", [0.9, 1.1])
def test_a_pin_that_is_pushed_beside_its_axis_jams(arm: float) -> None:
    """Sheet 4.4, drawer rule: with f = 0.2 an axial force at h jams where 2 f h ≥ L, h = 0.1 m.

    Else it accelerates by F (1 - 2 f h / L) / m. The friction of the law creeps: 1e-3 m/s
    times atanh of the part of it that is used, here 1.5e-3 m/s.
    """
    s, pin = pressed_pin(friction=0.2)
    offset = 0.1 * arm
    s.torque("tilt", pin.marker("t"), (0.0, -5.0 * offset, 0.0))
    s.bushing("damper", s.ground.marker("d"), pin.marker("d"), stiffness=0,
              damping=(60, 60, 0, 0.05, 0.05, 0.05))  # fmt: skip
    s.force("push", pin.marker("f"), (0.0, 0.0, "5*min(1, max(0, (t - 0.05)/0.01))"))
    [velocity] = settled(s, 0.1, "pin.velocity")
    if arm > 1.0:
        assert abs(velocity[-1, 2]) < 2e-3
    else:
        gained = velocity[-1, 2] - velocity[-2001, 2]
        assert gained / 0.01 == pytest.approx(5.0 * 0.1 / 0.1, rel=0.02)


@pytest.mark.parametrize("mode", [{}, {"mode": "internal"}], ids=["continuous", "internal"])
def test_a_pressed_pin_slides_out_of_its_bore(mode: Any) -> None:
    """A place that ceases to exist does not pull while its mode is kept, by a linear law.

    The pin sinks in by 1e-6 m; the energy at the mouth is that of 100 N over this depth.
    """
    s = System("pin", gravity=(100.0, 0, -200.0))
    pin = s.body("pin", mass=1.0, inertia=(1e-4,) * 3, free=True, position=(0.001, 0, 0),
                 velocity=(0, 0, -1.0))  # fmt: skip
    s.contact("touch", Cylinder(pin.marker("m"), 0.009, 0.05),
              Bore(s.ground.marker("m"), 0.010, 0.06),
              law=HuntCrossley(stiffness=1e8, exponent=1.0))  # fmt: skip
    d = Diagram("d", step=1e-5)
    names = ["kinetic_energy", "potential_energy", "pin.position"]
    d.add(s.block(outputs=names, **mode), name="plant")
    result = simulate(d, 0.05)
    kinetic, potential, place = (result[f"plant.{name}"] for name in names)
    assert place[-1, 2] < -0.055  # it is out
    np.testing.assert_allclose(kinetic + potential, 0.5 - 0.1, atol=1e-4)


def test_a_pin_as_long_as_its_bore_touches_once_at_each_end() -> None:
    """Level with the mouths its edges touch, not those of the mouths too, in any pose of both."""
    rng = np.random.default_rng(4)
    for trial in range(20):
        turn = Rotation.random(random_state=rng) if trial else Rotation.identity()
        place = rng.normal(size=3) * (trial > 0)
        s = System("level", gravity=(0, 0, 0))
        pin = s.body("pin", mass=1.0, inertia=(1.0, 1.0, 1.0), free=True)
        bore = s.ground.marker("m", tuple(place), rotation=turn.as_matrix())
        s.contact("touch", Cylinder(pin.marker("m"), 0.009, 0.05), Bore(bore, 0.01, 0.05), law=LAW)
        with viewer(s) as view:
            for along in (0.0, 1e-9, -1e-9):
                seen = view.see(place + turn.apply((0.00101, 0.0, along)), turn)
                assert np.count_nonzero(seen["normal_forces"]) == 2
                assert seen["normal_force"] == pytest.approx(2e6 * 1e-5**1.5, rel=1e-6)
