"""Short bearings, parallel and tilted, against closed forms and independent quadrature."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.integrate import IntegrationWarning, quad

from biella import BiellaWarning
from biella.blocks.bearings import FiniteBearing, MisalignedShortBearing, ShortBearing

pytestmark = pytest.mark.engine

R, B, C, MU = 0.02, 0.01, 2e-5, 0.03
OMEGA = 300.0
K = MU * OMEGA * R * B**3 / C**2
THIN: dict[str, Any] = {"film_limit": 1e-5 * C}


def turn(angle: float) -> np.ndarray:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def at(eccentricity: float, angle: float) -> np.ndarray:
    return eccentricity * C * np.array([np.cos(angle), np.sin(angle)])


def integrate_around(position, velocity, omega):
    """Force and largest pressure of a film, by brute force on Vita's corrected (4.22), p > 0."""
    theta = np.linspace(0, 2 * np.pi, 200_001)[:-1]
    (x, y), (vx, vy) = position, velocity
    cos, sin = np.cos(theta), np.sin(theta)
    h = C - x * cos - y * sin
    p = -3 * MU * (omega * (x * sin - y * cos) - 2 * (vx * cos + vy * sin)) / h**3
    p = np.maximum(p, 0.0)
    area = 2 * np.pi * R * B**3 / 6
    return -area * np.array([np.mean(p * cos), np.mean(p * sin)]), p.max() * B**2 / 4


@pytest.mark.parametrize("n", [0.01, 0.05, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99])
def test_steady_force_is_ocvirks(ask, n):
    """F_r = K n² / (1-n²)², F_t = K π n / 4 (1-n²)^1.5, and the load and attitude they make."""
    found = ask(ShortBearing(R, B, C, MU, **THIN), [n * C, 0.0], speed=OMEGA)
    radial, tangential = n**2 / (1 - n**2) ** 2, np.pi / 4 * n / (1 - n**2) ** 1.5
    np.testing.assert_allclose(found["force"], [-K * radial, K * tangential], rtol=1e-12)
    load = n * np.sqrt(16 * n**2 + np.pi**2 * (1 - n**2)) / (4 * (1 - n**2) ** 2)
    assert np.hypot(*found["force"]) == pytest.approx(K * load, rel=1e-12)
    # Largest pressure where cos θ = (1 - √(1 + 24 n²)) / 4n, θ from the thickest film.
    cos = (1 - np.sqrt(1 + 24 * n**2)) / (4 * n)
    peak = 3 * MU * OMEGA * n / C**2 * np.sqrt(1 - cos**2) / (1 + n * cos) ** 3 * B**2 / 4
    assert found["pressure"][0] == pytest.approx(peak, rel=1e-12)
    np.testing.assert_allclose(
        found["moment"], [-B / 2 * found["force"][1], B / 2 * found["force"][0]], rtol=1e-14
    )


def test_pure_squeeze_pushes_back(ask):
    """A centered journal: F = -π/2 μ r (B/c)³ v, half of which is each side's positive arc."""
    v = 1e-3
    force = ask(ShortBearing(R, B, C, MU), [0.0, 0.0], [v, 0.0])["force"]
    np.testing.assert_allclose(force, [-np.pi / 2 * MU * R * (B / C) ** 3 * v, 0.0], atol=1e-12)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    n=st.floats(0.0, 0.98),
    angle=st.floats(0.0, 6.3),
    v=st.tuples(st.floats(-5e-3, 5e-3), st.floats(-5e-3, 5e-3)),
    omega=st.floats(-400, 400),
)
def test_force_is_the_integral_of_positive_pressure(ask, n, angle, v, omega):
    found = ask(ShortBearing(R, B, C, MU, **THIN), at(n, angle), v, omega)
    force, peak = integrate_around(at(n, angle), v, omega)
    # The trapezoidal rule is off by the square of its step where p has a corner.
    scale = max(np.hypot(*force), 1e-9)
    np.testing.assert_allclose(found["force"] / scale, force / scale, atol=1e-6)
    assert found["pressure"][0] == pytest.approx(peak, rel=1e-6, abs=1e-6)
    assert found["power_loss"][0] >= 0.0


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    angle=st.floats(0.0, 6.3),
    frame=st.floats(-300, 300),
    bush=st.floats(-200, 200),
    end=st.booleans(),
)
def test_axes_do_not_matter(ask, angle, frame, bush, end):
    """Turned axes turn the force; turning ones change rates and speeds, and nothing else."""
    bearing = MisalignedShortBearing(R, B, C, MU) if end else ShortBearing(R, B, C, MU)
    e, v = np.array([0.5 * C, 0.2 * C]), np.array([1e-3, -2e-3])
    first = ask(bearing, e, v, OMEGA, bush)
    turned = ask(bearing, turn(angle) @ e, turn(angle) @ v, OMEGA, bush)
    scale = np.hypot(*first["force"])
    np.testing.assert_allclose(turn(angle) @ first["force"], turned["force"], atol=1e-11 * scale)
    seen = v - frame * np.array([-e[1], e[0]])
    other = ask(bearing, e, seen, OMEGA - frame, bush - frame)
    np.testing.assert_allclose(other["force"], first["force"], atol=1e-11 * scale)
    assert other["torque"] == pytest.approx(first["torque"], rel=1e-9)
    assert other["power_loss"] == pytest.approx(first["power_loss"], rel=1e-9)


def test_steady_law_ignores_velocity(ask):
    bearing = ShortBearing(R, B, C, MU, squeeze=False)
    first = ask(bearing, at(0.5, 1.0), [0.0, 0.0], OMEGA)["force"]
    np.testing.assert_array_equal(ask(bearing, at(0.5, 1.0), [1e-2, 3e-3], OMEGA)["force"], first)


def slice_force(x, y, vx, vy, omega):
    """Force of a slice but for z (B - z): the closed arc integral, in numpy."""
    a, b = omega * x - 2 * vy, omega * y + 2 * vx
    angle = np.arctan2(b, a) + np.pi
    X, Y, cos, sin = x / C, y / C, np.cos(angle), np.sin(angle)
    D, u, v = 1 - X**2 - Y**2, Y * cos - X * sin, X * cos + Y * sin
    G = 2 / np.sqrt(D) * (np.pi / 2 + np.arctan(u / np.sqrt(D)))
    V, S = (2 + u * G) / D, v / (1 - v**2)
    k = np.array([3 * X * V - sin * G - 2 * cos * S, 3 * Y * V + cos * G - 2 * sin * S])
    return -3 * MU * R * np.hypot(a, b) / (2 * C**3 * D) * k


def integrate_along(position, velocity, omega):
    """Force and moment of a tilted film by scipy's adaptive quadrature."""

    def density(z, n):
        (x, y), (vx, vy) = (v[:2] + (v[2:] - v[:2]) * z / B for v in (position, velocity))
        fx, fy = slice_force(x, y, vx, vy, omega) * z * (B - z)
        return (fx, fy, -z * fy, z * fx)[n]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IntegrationWarning)  # it asks for more than rounding allows
        return np.array(
            [quad(density, 0, B, args=(n,), epsabs=0, epsrel=1e-11, limit=800)[0] for n in range(4)]
        )


@pytest.mark.parametrize("gap", [0.5, 0.1, 1e-2, 1e-3, 1e-4])
def test_tilted_film_is_summed_well_however_thin(ask, gap):
    """Both ends anywhere, one of them at 1 - gap: within 1e-7 of adaptive integration."""
    random = np.random.default_rng(5)
    bearing = MisalignedShortBearing(R, B, C, MU, **THIN)
    for n in range(6):
        first, angle = random.uniform(0, 2 * np.pi, 2)
        second = [angle, first + np.pi, first + 0.1][n % 3]
        other = 1 - gap if n % 2 else random.uniform(0, 1 - gap)
        position = np.concatenate([at(1 - gap, first), at(other, second)])
        velocity = random.normal(size=4) * C * 100 * (n > 1)
        found = ask(bearing, position, velocity, OMEGA)
        wanted = integrate_along(position, velocity, OMEGA)
        scale = np.hypot(*wanted[:2]) + np.hypot(*wanted[2:]) / B
        np.testing.assert_allclose(found["force"], wanted[:2], atol=1e-7 * scale)
        np.testing.assert_allclose(found["moment"], wanted[2:], atol=1e-7 * scale * B)
        assert found["power_loss"][0] > 0.0


def test_tilted_film_that_is_not_tilted_is_short(ask):
    position, velocity = at(0.7, 2.0), [2e-3, 1e-3]
    short = ask(ShortBearing(R, B, C, MU), position, velocity, OMEGA)
    tilted = ask(MisalignedShortBearing(R, B, C, MU), position, velocity, OMEGA)
    for name in short:
        rough = 1e-6 if name == "pressure" else 1e-9  # its place along z is found to 1e-3
        np.testing.assert_allclose(tilted[name], short[name], rtol=rough, err_msg=name)


def test_peak_of_a_tilted_film(ask):
    """The largest pressure of all slices, on a fine grid along and around."""
    position = np.concatenate([at(0.97, 0.3), at(0.2, 2.0)])
    found = ask(MisalignedShortBearing(R, B, C, MU, **THIN), position, speed=OMEGA)["pressure"][0]
    highest = 0.0
    for part in np.linspace(0.005, 0.05, 401):
        e = position[:2] + (position[2:] - position[:2]) * part
        _, peak = integrate_around(e, (0.0, 0.0), OMEGA)
        highest = max(highest, peak * 4 * part * (1 - part))
    assert found == pytest.approx(highest, rel=1e-5)


@pytest.mark.parametrize("model", [ShortBearing, MisalignedShortBearing])
def test_a_short_bearing_that_is_long_is_warned_of(model):
    """At the line that calls for it; up to one diameter it is taken as it is."""
    told = rf"`length` of {model.__name__} is 1\.5 diameters\. .*Take a FiniteBearing"
    with pytest.warns(BiellaWarning, match=told) as warned:
        model(R, 3 * R, C, MU)
    assert warned[0].filename == __file__
    model(R, 2 * R, C, MU)


@pytest.mark.parametrize(("n", "more"), [(0.1, 1.3), (0.8, 3.0)])
def test_what_the_warning_of_length_says_is_so(ask, n, more):
    """Against a finite film of one diameter."""
    position = [n * C, 0.0]
    short, finite = (
        np.hypot(*ask(film, position, speed=OMEGA)["force"])
        for film in (ShortBearing(R, 2 * R, C, MU), FiniteBearing(R, 2 * R, C, MU, cells=(192, 16)))
    )
    assert more < short / finite < 1.1 * more
