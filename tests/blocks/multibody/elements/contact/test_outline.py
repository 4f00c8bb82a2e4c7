"""Sections against exact gaps: pins and balls in bores, outlines in each other, their forces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from biella import Diagram, DiagramError, simulate
from biella.blocks.multibody import (
    Bore,
    Cylinder,
    HoleProfile,
    HuntCrossley,
    PinProfile,
    Sphere,
    System,
    Wear,
)

from .shape_pairs import viewer

pytestmark = pytest.mark.engine

UNWORN = Wear(coefficient=0.0, hardness=1.0, length=1.0, sections=720)
STIFFNESS = 1e6


def angles(count: int) -> Any:
    return 2 * np.pi / count * np.arange(count)


def held(inner: Any, outer: Any, wear: Wear | None, planar: bool = False) -> System:
    s = System("held", (0.0, 0.0) if planar else (0.0, 0.0, 0.0), planar=planar)
    body = s.body("body", mass=1.0, inertia=1.0 if planar else (1.0,) * 3, free=True)
    s.contact("touch", inner(body.marker("m")), outer(s.ground.marker("m")),
              law=HuntCrossley(stiffness=STIFFNESS, exponent=1.0), wear=wear)  # fmt: skip
    return s


BORES: dict[str, tuple[Any, Any]] = {
    "ball": (lambda m: Sphere(m, 0.049), lambda m: Bore(m, 0.05, 0.02)),
    "short": (lambda m: Cylinder(m, 0.049, 0.08), lambda m: Bore(m, 0.05, 0.1)),
    "long": (lambda m: Cylinder(m, 0.049, 0.2), lambda m: Bore(m, 0.05, 0.1)),
}


@pytest.mark.parametrize("kind", BORES)
def test_gaps_of_unworn_sections_are_the_exact_ones(kind: str) -> None:
    """In any pose with a contact near; off by τ ln 2 where a ring touches at two places, τ = 8e-8.

    Elsewhere the normalization holds where δ falls off as play (1 - cos θ); the pin may be nearer
    to the middle, or the ellipse of a tilted circle flatter or sharper: τ / 2 ln of the ratio.
    """
    random = np.random.default_rng(5)
    tau = 1e-3 * (2 * np.pi / 720) ** 2
    near = 0
    with viewer(held(*BORES[kind], None)) as exact, viewer(held(*BORES[kind], UNWORN)) as worn:
        for _ in range(150):
            place = random.uniform(-1, 1, 3) * (7e-4, 7e-4, 0.03)
            turn = Rotation.from_rotvec([*random.uniform(-0.01, 0.01, 2), random.uniform(-3, 3)])
            wanted, found = exact.see(place, turn), worn.see(place, turn)
            if wanted["gap"] > 5e-4:
                continue
            near += 1
            assert found["gap"] == pytest.approx(wanted["gap"], abs=2 * tau)
            if wanted["gap"] < 0 and kind == "ball":
                np.testing.assert_allclose(found["force"], wanted["force"],
                                           atol=2 * tau * STIFFNESS)  # fmt: skip
    assert near > 30


def test_an_ellipse_in_a_circle() -> None:
    """Sheet 6: its farthest point from the center of the circle, with one contact and with two.

    a = 3, b = 2; at d = 1.1 across the long axis √(a² + a² d² / (a² - b²)) = 3.343351612 at two
    places; along it d + a. The gap is measured along radii of the pin, and exact where it is 0.
    Sections leave τ ln 2 at two places, and τ / 2 ln of how much sharper the contact is.
    """
    phi = angles(720)
    ellipse = 6 / np.hypot(2 * np.cos(phi), 3 * np.sin(phi))
    for radius, place, turn in ((3.343351612, (0.0, 1.1, 0.0), 0.0), (3.3, (0.3, 0.0, 0.0), 0.0),
                                (3.3, (0.0, 0.3, 0.0), np.pi / 2)):  # fmt: skip
        circle = np.full(720, radius)
        s = held(lambda m: PinProfile(m, ellipse), lambda m, r=circle: HoleProfile(m, r), None)
        tau = (radius - ellipse.mean()) * (2 * np.pi / 720) ** 2
        with viewer(s) as view:
            gap = view.see(place, Rotation.from_rotvec([0, 0, turn]))["gap"]
        assert gap == pytest.approx(0.0, abs=2 * tau)


def test_a_lobed_pin_in_an_oval_hole_against_brute_force() -> None:
    """The gap is the least of r_pin(φ) - ρ over the hole: any pose, a third of the clearance."""
    phi = angles(360)
    hole, pin = 0.05 + 0.002 * np.cos(2 * phi), 0.045 + 0.001 * np.cos(3 * phi)
    s = held(lambda m: PinProfile(m, pin), lambda m: HoleProfile(m, hole), None)
    fine = angles(20000)
    outline = (0.05 + 0.002 * np.cos(2 * fine))[:, None] * np.c_[np.cos(fine), np.sin(fine)]
    random = np.random.default_rng(3)
    tau = 0.005 * (2 * np.pi / 360) ** 2
    with viewer(s) as view:
        for _ in range(50):
            place, turn = random.uniform(-3e-3, 3e-3, 2), random.uniform(-3, 3)
            off = outline - place
            at = np.arctan2(off[:, 1], off[:, 0]) - turn
            wanted = (np.linalg.norm(off, axis=1) - 0.045 - 0.001 * np.cos(3 * at)).min()
            found = view.see((*place, 0.0), Rotation.from_rotvec([0, 0, turn]))["gap"]
            assert found == pytest.approx(wanted, abs=3 * tau)


@pytest.mark.parametrize("turn", [-1e-16, -1e-17, 1e-17, 1e-16])
def test_a_pin_turned_by_rounding_is_one_that_is_not_turned(turn: float) -> None:
    """Such a turn moves no surface by more than 1e-17 m; below 0 it is rounded to a whole turn.

    A lobe that points between the sections of the hole, so that all sections around 0 count, and
    the same pin against its mirror image. Gaps are sums of numbers of 0.05 m: to 1e-15 m.
    """
    phi = angles(90)
    oval = 0.05 + 1e-3 * np.cos(2 * phi)
    for lobe in (0.02, -0.02, np.pi / 3):
        pin = 0.0485 + 1e-3 * np.cos(3 * (phi - lobe))
        s = held(lambda m, r=pin: PinProfile(m, r), lambda m: HoleProfile(m, oval), None)
        with viewer(s) as view:
            for place in (1.6e-3, -1.6e-3):
                straight, turned = (
                    view.see((place, 0.0, 0.0), Rotation.from_rotvec([0, 0, by]))
                    for by in (0.0, turn)
                )
                assert turned["gap"] == pytest.approx(straight["gap"], abs=1e-15)
                near = 1e-15 * STIFFNESS
                np.testing.assert_allclose(turned["force"], straight["force"], atol=near)


@pytest.mark.parametrize("kind", ["ball", "short", "long", "outline"])
def test_forces_and_torques_are_slopes_of_the_energy(kind: str) -> None:
    """In any pose, by central differences of 1e-7 m and 1e-6 rad: some 1e-6 of them."""
    phi = angles(90)
    lobed, oval = 0.0485 + 1e-3 * np.cos(3 * phi), 0.05 + 1e-3 * np.cos(2 * phi)
    shapes = BORES.get(kind) or (lambda m: PinProfile(m, lobed), lambda m: HoleProfile(m, oval))
    inner, outer = shapes
    s = held(inner, outer, Wear(coefficient=0.0, hardness=1.0, length=1.0, sections=90))
    random = np.random.default_rng(7)
    touched = 0
    with viewer(s) as view:
        for _ in range(60):
            place = random.uniform(-1, 1, 3) * (1.2e-3, 1.2e-3, 2e-3)
            turn = Rotation.from_rotvec([*random.uniform(-0.01, 0.01, 2), random.uniform(-3, 3)])
            seen = view.see(place, turn)
            if seen["gap"] > -1e-5:
                continue
            touched += 1
            near = 1e-3 + 1e-5 * float(seen["normal_force"])
            for axis in np.eye(3):
                up, down = (view.see(place + x * axis, turn)["energy"] for x in (1e-7, -1e-7))
                assert seen["force"] @ axis == pytest.approx((down - up) / 2e-7, abs=near)
                both = (Rotation.from_rotvec(x * axis) * turn for x in (1e-6, -1e-6))
                up, down = (view.see(place, way)["energy"] for way in both)
                assert seen["torque"] @ axis == pytest.approx((down - up) / 2e-6, abs=0.1 * near)
    assert touched > 10


def test_outlines_run_in_a_plane_and_in_either_order() -> None:
    phi = angles(72)
    rows = []
    for swapped in (False, True):
        s = System("plane", (0.0, -9.81), planar=True)
        body = s.body("body", mass=1.0, inertia=1e-4, angular_velocity=20.0, free=True)
        pin = PinProfile(body.marker("m"), 0.0095 + 2e-4 * np.cos(3 * phi))
        hole = HoleProfile(s.ground.marker("m"), 0.010 + 1e-4 * np.cos(2 * phi))
        law = HuntCrossley(stiffness=1e7, damping=0.5, friction=0.1)
        s.contact("c", *((hole, pin) if swapped else (pin, hole)), law=law)
        d = Diagram("d", step=1e-5)
        d.add(s.block(outputs=["c.gap", "body.position", "c.angle_on_pin"]), name="p")
        result = simulate(d, 0.02)
        rows.append(result["p.body.position"])
        assert result["p.c.gap"].min() < 0
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-12)


def test_pins_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DiagramError, match="does not fit in the hole of radius"):
        held(lambda m: PinProfile(m, [0.06] * 8), lambda m: HoleProfile(m, [0.05] * 8), None)
    with pytest.raises(DiagramError, match="A pin can touch: hole"):
        held(lambda m: PinProfile(m, [0.04] * 8), lambda m: Bore(m, 0.05, 0.1), None)


def test_sections_of_wear_that_miss_a_part_of_an_outline_are_refused() -> None:
    """Outlines are read at the sections: a rib of 1° between them would vanish."""
    rib = 0.05 - 0.002 * np.exp(-0.5 * ((angles(720) - np.radians(5.0)) / np.radians(1.0)) ** 2)
    shapes = (lambda m: Sphere(m, 0.04), lambda m: HoleProfile(m, rib))
    with pytest.raises(
        DiagramError, match=r"36 sections.*the hole of 720 points differs .*sections=576"
    ):
        held(*shapes, Wear(coefficient=0.0, hardness=1.0, length=1.0, sections=36))
    gaps = []
    for wear in (None, UNWORN):
        with viewer(held(*shapes, wear)) as view:
            place = 0.0099 * np.array([np.cos(np.radians(5.0)), np.sin(np.radians(5.0)), 0.0])
            gaps.append(float(view.see(place, Rotation.identity())["gap"]))
    assert gaps[0] == pytest.approx(-0.0019, abs=1e-6)
    assert gaps[1] == pytest.approx(gaps[0], abs=1e-4)
