"""Outlines of cams from their lift, and followers on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from biella import Diagram, DiagramError, simulate
from biella.blocks.multibody import (
    CamProfile,
    HuntCrossley,
    Plane,
    Sphere,
    System,
    cam_for_face,
    cam_for_roller,
)

from .shape_pairs import LAW, viewer

pytestmark = pytest.mark.engine

BASE, ROLLER, OFFSET = 0.03, 0.01, 0.006
THETA = 2 * np.pi / 720 * np.arange(720)
LIFT = 0.006 * (1 - np.cos(2 * THETA))


def at(design: Any, values: Any, theta: float) -> float:
    ends = np.append(design.angles, 2 * np.pi), np.append(values, values[0])
    return float(CubicSpline(*ends, bc_type="periodic")(theta))


def test_numbers_of_the_reference() -> None:
    """Sheet 7: at θ = 0.6 α = 0.118966920 rad, under a flat face ρ = 0.042522440 m.

    A spline has s″ to its step² / 12 of the fourth derivative: of 3600 points 2.4e-8 m.
    """
    lift = 0.006 * (1 - np.cos(2 * (2 * np.pi / 3600 * np.arange(3600))))
    roller = cam_for_roller(lift, base_radius=BASE, roller_radius=ROLLER, offset=OFFSET)
    assert at(roller, roller.pressure_angle, 0.6) == pytest.approx(0.118966920, abs=1e-9)
    face = cam_for_face(lift, base_radius=BASE)
    assert at(face, face.curvature_radius, 0.6) == pytest.approx(0.042522440, abs=2.5e-8)
    straight = cam_for_roller(lift, base_radius=BASE, roller_radius=ROLLER)
    height = BASE + ROLLER + 0.006 * (1 - np.cos(1.2))
    first, second = 0.012 * np.sin(1.2), 0.024 * np.cos(1.2)
    pitch = (height**2 + first**2) ** 1.5 / (height**2 + 2 * first**2 - height * second)
    assert at(straight, straight.curvature_radius, 0.6) == pytest.approx(pitch - ROLLER, rel=1e-5)


def cam_on_ground(radii: Any, follower: Any) -> System:
    s = System("cam", gravity=(0, 0, 0))
    body = s.body("body", mass=1.0, inertia=(1, 1, 1), position=(0, 1, 0), free=True)
    s.contact("touch", follower(body.marker("m")), CamProfile(s.ground.marker("m"), radii), law=LAW)
    return s


def test_a_roller_at_its_lift_touches_its_cam() -> None:
    """With the cam held and the follower turned back by θ. Both splines are exact to 1e-9 m."""
    design = cam_for_roller(LIFT, base_radius=BASE, roller_radius=ROLLER, offset=OFFSET)
    with viewer(cam_on_ground(design.radii, lambda m: Sphere(m, ROLLER))) as view:
        for theta in np.linspace(0, 6.2, 50):
            height = np.sqrt((BASE + ROLLER) ** 2 - OFFSET**2) + 0.006 * (1 - np.cos(2 * theta))
            place = Rotation.from_euler("z", -theta).apply((OFFSET, height, 0.3))
            seen = view.see(place)
            assert seen["gap"] == pytest.approx(0.0, abs=2e-9)
            pressed = view.see(0.999 * place)
            normal = pressed["force"] / pressed["normal_force"]
            along = Rotation.from_euler("z", -theta).apply((0, 1, 0))
            slope = (0.012 * np.sin(2 * theta) - OFFSET) / height
            assert np.arccos(normal @ along) == pytest.approx(abs(np.arctan(slope)), abs=2e-3)


def test_a_face_at_its_lift_touches_its_cam() -> None:
    design = cam_for_face(LIFT, base_radius=BASE)
    assert (design.curvature_radius > 0).all()
    with viewer(cam_on_ground(design.radii, Plane)) as view:
        for theta in np.linspace(0, 6.2, 50):
            back = Rotation.from_euler("z", -theta)
            place = back.apply((0, BASE + 0.006 * (1 - np.cos(2 * theta)), 0))
            turn = back * Rotation.from_euler("x", np.pi / 2)  # its normal points down to the cam
            seen = view.see(place, turn)
            assert seen["gap"] == pytest.approx(0.0, abs=2e-9)
            point = back.inv().apply(seen["point"])
            assert point[0] == pytest.approx(0.012 * np.sin(2 * theta), abs=1e-6)


def test_eccentric_disc_is_a_circle_for_both_followers() -> None:
    """r(φ) of a circle of radius R about (0, e): centers at the distance R + r_r; lift e sin."""
    wide, e = 0.04, 0.01
    angles = 2 * np.pi / 360 * np.arange(360)
    radii = e * np.sin(angles) + np.sqrt(wide**2 - (e * np.cos(angles)) ** 2)
    random = np.random.default_rng(3)
    with viewer(cam_on_ground(radii, lambda m: Sphere(m, ROLLER))) as view:
        for _ in range(50):
            place = random.uniform(-0.1, 0.1, 3)
            away = np.hypot(place[0], place[1] - e)
            if away < 0.01:
                continue
            assert view.see(place)["gap"] == pytest.approx(away - wide - ROLLER, abs=1e-9)
    with viewer(cam_on_ground(radii, Plane)) as view:
        for theta in np.linspace(0, 6.2, 30):
            back = Rotation.from_euler("z", -theta)
            turn = back * Rotation.from_euler("x", np.pi / 2)
            seen = view.see(back.apply((0.02, 0.06, 0.0)), turn)
            assert seen["gap"] == pytest.approx(0.06 - wide - e * np.cos(theta), abs=1e-9)


def valve_train(speed: float, preload: float) -> float:
    """The largest gap under a face that a spring presses to its cam, in one turn after another."""
    s = System("valve", (0.0, 0.0), planar=True)
    cam = s.body("cam", mass=1.0, inertia=1.0)
    valve = s.body("valve", mass=0.2, inertia=1e-3, position=(0.0, BASE))
    s.driver("motor", s.revolute("axis", s.ground, cam, at=(0, 0)), f"{speed}*t")
    guide = s.prismatic("guide", s.ground, valve, at=(0, BASE), axis=(0, 1))
    s.force("preload", guide, -preload)
    s.spring("spring", s.ground.marker("seat", (0, 1.0 + BASE)), valve.marker("top"),
             stiffness=2000.0, free_length=1.0)  # fmt: skip
    design = cam_for_face(LIFT, base_radius=BASE)
    face = valve.marker("face", rotation=np.pi)
    s.contact("touch", CamProfile(cam.marker("m"), design.radii), Plane(face),
              law=HuntCrossley(stiffness=3e7, exponent=1.0, damping=1.0))  # fmt: skip
    d = Diagram("d", step=1e-5)
    d.add(s.block(outputs=["touch.gap", "touch.normal_force"], mode="internal"), name="plant")
    result = simulate(d, 2 * np.pi / speed)
    return float(result["plant.touch.gap"].max())


def test_follower_leaves_its_cam_above_the_speed_of_its_balance() -> None:
    """m s″ ω² + k s + F = 0 at the top of the lift: s″ = -0.024 m, k s = 24 N, F = 60 N.

    ω = √(84 / (0.2 · 0.024)) = 132.3 rad/s. The contact is 84 N / 3e7 N/m deep there at most.
    """
    limit = np.sqrt((2000 * 0.012 + 60.0) / (0.2 * 0.024))
    assert valve_train(0.95 * limit, 60.0) < 1e-6
    assert valve_train(1.05 * limit, 60.0) > 1e-5


def test_cams_that_cannot_be_made_are_refused() -> None:
    with pytest.raises(DiagramError, match=r"undercut at θ = .* the roller 0\.05 m"):
        cam_for_roller(LIFT, base_radius=0.001, roller_radius=0.05)
    with pytest.raises(DiagramError, match=r"hollow at θ = .*Take base_radius above 0\.012"):
        cam_for_face(LIFT, base_radius=0.01)
    with pytest.raises(DiagramError, match="`offset` of cam_for_roller is below"):
        cam_for_roller(LIFT, base_radius=0.01, roller_radius=0.01, offset=0.02)
    with pytest.raises(DiagramError, match="at least 8 numbers over one turn"):
        cam_for_face([0.0, 1.0], base_radius=0.1)
    with pytest.raises(DiagramError, match="`points` of cam_for_face is a whole number"):
        cam_for_face(LIFT, base_radius=0.1, points=4)
    with pytest.raises(DiagramError, match="`lift` of `cam_for_face` must not be negative"):
        cam_for_face(LIFT - 1.0, base_radius=0.1)
