"""Equilibrium, coefficients and threshold speed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from biella import BiellaError
from biella.blocks.bearings import (
    FiniteBearing,
    LongBearing,
    MisalignedShortBearing,
    Pocket,
    ShortBearing,
    lobes,
)

pytestmark = pytest.mark.engine

R, B, C, MU, OMEGA = 0.02, 0.01, 2e-5, 0.03, 300.0
SIZE = (R, B, C, MU)
K = MU * OMEGA * R * B**3 / C**2


@pytest.mark.parametrize("n", [0.01, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("direction", [0.0, 2.0])
@pytest.mark.parametrize("sense", [1, -1])
def test_equilibrium_of_a_short_bearing(n, direction, sense):
    """The load of Ocvirk's law at n is carried at n, turned by its attitude with the rotation."""
    size = K / 4 * n * np.sqrt(16 * n**2 + np.pi**2 * (1 - n**2)) / (1 - n**2) ** 2
    load = (size * math.cos(direction), size * math.sin(direction))
    found = ShortBearing(*SIZE).equilibrium(load, sense * OMEGA)
    attitude = math.atan2(np.pi * np.sqrt(1 - n**2), 4 * n)
    assert found.eccentricity == pytest.approx(n, rel=1e-9)
    assert found.attitude == pytest.approx(sense * attitude, rel=1e-9)
    assert np.angle(complex(*found.position) * np.exp(-1j * direction)) == pytest.approx(
        sense * attitude, rel=1e-9
    )
    assert found.film == pytest.approx((1 - n) * C, rel=1e-9)


@pytest.mark.parametrize(
    "bearing",
    [
        ShortBearing(*SIZE),
        MisalignedShortBearing(*SIZE),
        LongBearing(*SIZE),
        FiniteBearing(*SIZE),
        FiniteBearing(*SIZE, cavitation="gumbel", tilt=True),
        FiniteBearing(*SIZE, grooves=[(1.5, 0.3), (-1.5, 0.3)]),
    ],
    ids=["short", "tilted", "long", "finite", "gumbel", "grooved"],
)
def test_film_carries_what_it_is_said_to_carry(ask, bearing):
    load = np.array([100.0, -30.0])
    found = bearing.equilibrium(tuple(load), OMEGA)
    np.testing.assert_allclose(ask(bearing, found.position, speed=OMEGA)["force"], -load, rtol=1e-6)


def ocvirk_force(position, velocity, omega):
    """The closed form of the short bearing, in numpy."""
    (x, y), (vx, vy) = position, velocity
    a, b = omega * x - 2 * vy, omega * y + 2 * vx
    angle = np.arctan2(b, a) + np.pi
    X, Y, cos, sin = x / C, y / C, np.cos(angle), np.sin(angle)
    D, u, v = 1 - X**2 - Y**2, Y * cos - X * sin, X * cos + Y * sin
    G = 2 / np.sqrt(D) * (np.pi / 2 + np.arctan(u / np.sqrt(D)))
    V, S = (2 + u * G) / D, v / (1 - v**2)
    k = np.array([3 * X * V - sin * G - 2 * cos * S, 3 * Y * V + cos * G - 2 * sin * S])
    return -MU * R * B**3 * np.hypot(a, b) / (4 * C**3 * D) * k


@pytest.mark.parametrize("n", [0.1, 0.5, 0.9])
def test_coefficients_of_a_short_bearing(n):
    """Against derivatives of the closed form by Richardson's extrapolation."""
    size = K / 4 * n * np.sqrt(16 * n**2 + np.pi**2 * (1 - n**2)) / (1 - n**2) ** 2
    found = ShortBearing(*SIZE).coefficients(size, OMEGA)
    at = found.equilibrium.position

    def slope(along, step):
        def central(h):
            move = h * np.asarray(along)
            ahead = ocvirk_force(at + move[:2], move[2:], OMEGA)
            behind = ocvirk_force(at - move[:2], -move[2:], OMEGA)
            return (ahead - behind) / (2 * h)

        return (4 * central(step / 2) - central(step)) / 3

    h = 1e-3 * (1 - n) * C
    stiffness = -np.stack([slope([1, 0, 0, 0], h), slope([0, 1, 0, 0], h)], axis=1)
    damping = -np.stack([slope([0, 0, 1, 0], h * OMEGA), slope([0, 0, 0, 1], h * OMEGA)], axis=1)
    np.testing.assert_allclose(found.stiffness, stiffness, atol=1e-6 * np.abs(stiffness).max())
    np.testing.assert_allclose(found.damping, damping, atol=1e-6 * np.abs(damping).max())
    # A film that is only squeezed is a potential of its rates: C is symmetric.
    assert damping[0, 1] == pytest.approx(damping[1, 0], rel=1e-6)


def test_along_load_turns_with_the_load():
    bearing = ShortBearing(*SIZE)
    first = bearing.coefficients(100.0, OMEGA).along_load(C)
    second = bearing.coefficients((0.0, -100.0), OMEGA).along_load(C)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6 * np.abs(one).max())


def test_threshold_speed():
    """Growth changes sign there, the whirl is near half the speed, and masses agree."""
    mass, load = 5.0, 5.0 * 9.81
    bearing = ShortBearing(0.02, 0.01, 4e-5, 0.01)
    speed = bearing.threshold_speed(mass, load)
    at = bearing.coefficients(load, speed)
    assert at.critical_mass() == pytest.approx(mass, rel=1e-6)
    assert 0.4 < at.whirl_speed() / speed < 0.6

    def growth(omega):
        found = bearing.coefficients(load, omega)
        top = np.hstack([np.zeros((2, 2)), np.eye(2)])
        low = np.hstack([-found.stiffness / mass, -found.damping / mass])
        return np.linalg.eigvals(np.vstack([top, low])).real.max()

    assert growth(0.99 * speed) < 0 < growth(1.01 * speed)


def test_threshold_of_a_light_load_is_ocvirks_limit():
    """n → 0: K_xy = -K_yx = ω C/2, so that a mass whirls at ω/2 once m ω² / K_xx = 4."""
    mass, load = 1.0, 20.0
    bearing = ShortBearing(0.02, 0.01, 2e-5, 0.03)
    speed = bearing.threshold_speed(mass, load)
    found = bearing.coefficients(load, speed)
    assert found.equilibrium.eccentricity < 0.05
    assert found.whirl_speed() == pytest.approx(speed / 2, rel=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b.equilibrium(1e9, OMEGA), "the film carries .* N at its limit"),
        (lambda b: b.equilibrium(100.0, 0.0), "draw no oil into the wedge"),
        (lambda b: b.equilibrium(100.0, OMEGA, -OMEGA), "Their sum must not be zero"),
        (lambda b: b.equilibrium(0.0, OMEGA), "a load is a number or a pair"),
        (lambda b: b.equilibrium((1.0, 2.0, 3.0), OMEGA), "a load is a number or a pair"),
        (lambda b: b.equilibrium(np.nan, OMEGA), "a load is a number or a pair"),
        (lambda b: b.threshold_speed(-1.0, 10.0), "mass must be positive"),
        (lambda b: b.threshold_speed(1e-9, 10.0, (10.0, 100.0)), "is stable at all speeds"),
        (lambda b: b.threshold_speed(1e9, 10.0, (10.0, 100.0)), "is unstable at all speeds"),
        (lambda b: b.threshold_speed(1.0, 1e9, (10.0, 100.0)), "does not carry the load"),
        (lambda b: b.threshold_speed(1.0, 10.0, (0.0, 100.0)), "`between` is two speeds"),
        (lambda b: b.threshold_speed(1.0, 10.0, 100.0), "`between` is two speeds"),
    ],
)
def test_what_has_no_answer_says_so(call, message):
    with pytest.raises(BiellaError, match=message):
        call(ShortBearing(*SIZE))


# -- films that carry more than the load when the journal is in the middle


def dam(theta, z):
    """A pocket in the upper half of a bush, as deep as the clearance, that ends in a step."""
    turned = np.remainder(theta, 2 * np.pi)
    return np.where((turned > 0.2) & (turned < 2.5) & (np.abs(z - R) < 0.7 * R), C, 0.0)


PUSHING: dict[str, dict[str, Any]] = {
    "pressure dam": {"bush": dam, "grooves": [(0.0, 0.35), (np.pi, 0.35)]},
    "lemon bore": {"bush": lobes(2, C, np.pi / 2), "grooves": [(0.0, 0.35), (np.pi, 0.35)]},
    "three lobes": {"bush": lobes(3, C, 0.3)},
    "fed from above": {"feeds": [Pocket(np.pi / 2, 0.5, pressure=2e6, length=R)]},
    "jfo, fed": {"feeds": [Pocket(1.0, 0.5, pressure=1e6, length=R)], "cavitation": "jfo"},
}


@pytest.mark.parametrize("load", [(0.0, -1.0), (0.0, -200.0), (150.0, 100.0), (0.0, 20.0)])
@pytest.mark.parametrize("shape", PUSHING)
def test_equilibrium_of_a_bush_that_pushes_a_centered_journal(ask, shape, load):
    """Less than what it pushes with, or more, along it or against it."""
    bearing = FiniteBearing(R, 2 * R, C, MU, cells=(48, 8), **PUSHING[shape])
    found = bearing.equilibrium(load, OMEGA)
    assert found.film > 0.01 * C
    answer = ask(bearing.settled, found.position, speed=OMEGA)
    np.testing.assert_allclose(answer["force"], -np.array(load), atol=1e-6 * np.hypot(*load))
    assert found.eccentricity == pytest.approx(np.hypot(*found.position) / C)
    assert np.linalg.eigvals(bearing.coefficients(load, OMEGA).damping).real.min() > 0


def test_the_journal_of_a_lemon_bore_may_lie_farther_out_than_its_clearance(ask):
    """Along the split, where such a bush leaves twice its clearance and more."""
    bearing = FiniteBearing(R, 2 * R, C, MU, cells=(48, 8), bush=lobes(2, 3 * C, np.pi / 2))
    load = (0.0, -5.0)
    wide = next(
        found
        for size in np.geomspace(10.0, 2000.0, 12)
        if (found := bearing.equilibrium((size, 0.0), OMEGA)).eccentricity > 1.05
    )
    assert wide.film > 0.01 * C
    force = ask(bearing, wide.position, speed=OMEGA)["force"]
    np.testing.assert_allclose(force, -wide.load, atol=1e-6 * np.hypot(*wide.load))
    assert bearing.equilibrium(load, OMEGA).eccentricity < 1.0


def test_a_load_that_no_film_carries_is_refused_in_any_bush():
    for options in PUSHING.values():
        bearing = FiniteBearing(R, 2 * R, C, MU, cells=(48, 8), **options)
        with pytest.raises(BiellaError, match=r"no equilibrium was found for a load of 1e\+09 N"):
            bearing.equilibrium((0.0, -1e9), OMEGA)


def test_threshold_of_a_bearing_with_a_pressure_dam():
    """At the threshold the critical mass is the rotor's; a dam raises it."""
    load, mass = (0.0, -66.0), 66.0 / 9.81
    plain, dammed = (
        FiniteBearing(R, 2 * R, 3 * C, MU, cells=(48, 8), **options)
        for options in ({"grooves": PUSHING["pressure dam"]["grooves"]}, PUSHING["pressure dam"])
    )
    speed = dammed.threshold_speed(mass, load)
    assert dammed.coefficients(load, speed).critical_mass() == pytest.approx(mass, rel=1e-5)
    assert speed > 1.5 * plain.threshold_speed(mass, load)
