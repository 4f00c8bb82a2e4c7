"""The long bearing against Sommerfeld's closed forms and an integration of its own equation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import cumulative_simpson

from biella.blocks.bearings import LongBearing

pytestmark = pytest.mark.engine

R, B, C, MU = 0.02, 0.01, 2e-5, 0.03
OMEGA = 300.0


@pytest.mark.parametrize("n", [0.01, 0.3, 0.6, 0.9, 0.98])
def test_steady_force_is_sommerfelds(ask, n):
    """Full film: 12 π n / ((2+n²) √(1-n²)) across. Half film: half of it, and 12 n² / … along."""
    scale = MU * OMEGA * R * B * (R / C) ** 2
    across = 12 * np.pi * n / ((2 + n**2) * np.sqrt(1 - n**2))
    along = 12 * n**2 / ((2 + n**2) * (1 - n**2))
    full = ask(LongBearing(R, B, C, MU, cavitation="none"), [n * C, 0.0], speed=OMEGA)
    np.testing.assert_allclose(
        full["force"], [0.0, scale * across], rtol=1e-11, atol=1e-11 * scale * across
    )
    half = ask(LongBearing(R, B, C, MU), [n * C, 0.0], speed=OMEGA)
    np.testing.assert_allclose(half["force"], [-scale * along, scale * across / 2], rtol=1e-11)


def integrate(position, velocity, omega, gumbel):
    """h³ p' = 6 μ r² (…) + constant, closed around the journal, p = 0 at the thickest film."""
    e = np.hypot(*position)
    n = position / e
    t = np.array([-n[1], n[0]])
    theta = np.linspace(0, 2 * np.pi, 100_001)
    h = C + e * np.cos(theta)
    flow = (e * omega - 2 * velocity @ t) * np.cos(theta) + 2 * velocity @ n * np.sin(theta)
    driven = cumulative_simpson(flow / h**3, x=theta, initial=0)
    free = cumulative_simpson(1 / h**3, x=theta, initial=0)
    p = 6 * MU * R**2 * (driven - free * driven[-1] / free[-1])
    p = np.maximum(p, 0) if gumbel else p
    along, across = (np.trapezoid(p * g, theta) for g in (np.cos(theta), np.sin(theta)))
    return (along * n + across * t) * R * B, p.max()


@pytest.mark.parametrize("cavitation", ["gumbel", "none"])
def test_wedge_and_squeeze(ask, cavitation):
    random = np.random.default_rng(3)
    bearing = LongBearing(R, B, C, MU, cavitation=cavitation)
    for _ in range(20):
        n, angle = random.uniform(0.01, 0.97), random.uniform(0, 2 * np.pi)
        position = n * C * np.array([np.cos(angle), np.sin(angle)])
        velocity, omega = random.normal(size=2) * 100 * C, random.normal() * 200
        found = ask(bearing, position, velocity, omega)
        force, peak = integrate(position, velocity, omega, cavitation == "gumbel")
        # The corner where Gümbel's film ends costs the sums the square of their step.
        np.testing.assert_allclose(found["force"], force, atol=1e-7 * np.hypot(*force))
        assert found["pressure"][0] == pytest.approx(peak, rel=1e-7)


def test_squeeze_without_wedge_is_all_or_nothing(ask):
    """12 π μ r³ B ẋ / c³ (1-n²)^1.5 as the film closes, nothing as it opens."""
    n, v = 0.5, 1e-3
    bearing = LongBearing(R, B, C, MU)
    closing = ask(bearing, [n * C, 0.0], [v, 0.0])["force"]
    # p = 0 at the thickest film adds a constant, which no force sees.
    wanted = -12 * np.pi * MU * R**3 * B * v / C**3 / (1 - n**2) ** 1.5
    np.testing.assert_allclose(closing, [wanted, 0.0], rtol=1e-11, atol=1e-9)
    np.testing.assert_array_equal(ask(bearing, [n * C, 0.0], [-v, 0.0])["force"], [0.0, 0.0])
