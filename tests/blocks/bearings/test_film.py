"""What all films share: friction, loss, thin films and contact, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from biella import BlockError
from biella.blocks.bearings import (
    Contact,
    MisalignedShortBearing,
    ShortBearing,
)

from .film_cases import EVERY_MODEL, MU, OMEGA, SIZE, B, C, R

pytestmark = pytest.mark.engine
PETROFF = 2 * np.pi * MU * R**3 * B / C


@EVERY_MODEL
@pytest.mark.parametrize("friction", ["shear", "petroff"])
def test_petroff_without_load(ask, model, friction):
    found = ask(model(*SIZE, friction=friction), [0.0, 0.0], speed=OMEGA, bush=50.0)
    assert found["torque"][0] == pytest.approx(-PETROFF * (OMEGA - 50.0), rel=1e-12)
    assert found["power_loss"][0] == pytest.approx(PETROFF * (OMEGA - 50.0) ** 2, rel=1e-12)


@EVERY_MODEL
def test_shear_balances_force_and_loss(ask, model):
    """Shear over a whole film is Petroff's / √(1-n²), and pressure adds half of e × F to it."""
    n = 0.6
    found = ask(model(*SIZE), [0.0, n * C], speed=OMEGA)
    twist = -n * C * found["force"][0]
    torque = -PETROFF * OMEGA / np.sqrt(1 - n**2) - twist / 2
    assert found["torque"][0] == pytest.approx(torque, rel=1e-12)
    assert found["power_loss"][0] == pytest.approx(-torque * OMEGA, rel=1e-12)
    none = ask(model(*SIZE, friction="none"), [0.0, n * C], speed=OMEGA)
    assert none["torque"][0] == 0.0


def test_shear_of_a_tilted_film(ask):
    """∫∫ dθ dz / h by sums over a fine grid."""
    ends = np.array([0.8, 0.1, -0.5, 0.6]) * C
    found = ask(MisalignedShortBearing(*SIZE), ends, speed=OMEGA)
    part = (np.arange(4000) + 0.5) / 4000
    x, y = ends[:2, None] + (ends[2:] - ends[:2])[:, None] * part
    shear = MU * OMEGA * R**3 * B * np.mean(2 * np.pi / np.sqrt(C**2 - x**2 - y**2))
    (fx, fy), (mx, my) = found["force"], found["moment"]
    slope = (ends[2:] - ends[:2]) / B
    twist = ends[0] * fy - ends[1] * fx - slope[0] * mx - slope[1] * my
    assert found["torque"][0] == pytest.approx(-shear - twist / 2, rel=1e-7)


@pytest.mark.parametrize(
    ("rule", "phi"), [("correlation", C / R), ("correlation_diameter", C / R / 2)]
)
def test_correlation(ask, rule, phi):
    """f = 3 φ / S below S = 1 and 3 φ / √S above; φ = c / r is Petroff's, 0.955 of it."""
    for n, low in ((0.1, True), (0.97, False)):
        found = ask(ShortBearing(*SIZE, friction=rule), [n * C, 0.0], speed=-OMEGA)
        load = np.hypot(*found["force"])
        S = load / (2 * R * B) * phi**2 / (MU * OMEGA)
        assert (S < 1) == low
        f = 3 * phi / S if low else 3 * phi / np.sqrt(S)
        assert found["torque"][0] == pytest.approx(f * R * load, rel=1e-12)
    still = ask(ShortBearing(*SIZE, friction=rule), [0.0, 0.0], speed=OMEGA)["torque"][0]
    ratio = 3 / np.pi * (1 if rule == "correlation" else 2)
    assert still == pytest.approx(-ratio * PETROFF * OMEGA, rel=1e-12)
    assert ask(ShortBearing(*SIZE, friction=rule), [0.5 * C, 0.0])["torque"][0] == 0.0


@EVERY_MODEL
def test_contact_takes_over_below_the_limit(ask, model):
    """No jump at the limit; beyond it the film stays as it was there and a spring is added."""
    k, limit = 1e8, 0.05 * C
    contact = Contact(stiffness=k, friction=0.0)
    bearing = model(*SIZE, film_limit=limit, contact=contact)
    film = ask(bearing, [C - limit * 1.0001, 0.0], speed=OMEGA)
    edge = ask(bearing, [C - limit * 0.9999, 0.0], speed=OMEGA)
    np.testing.assert_allclose(edge["force"], film["force"], rtol=1e-3)
    assert (film["thin_film"], edge["thin_film"]) == (0.0, 1.0)
    for depth in (0.3 * limit, 3 * limit):  # still inside the bush, and through it
        deep = ask(bearing, [C - limit + depth, 0.0], speed=OMEGA)
        pushed = deep["force"] - edge["force"]
        np.testing.assert_allclose(pushed, [-k * depth, 0.0], rtol=1e-3, atol=1e-3 * k * depth)
        assert deep["film"][0] == pytest.approx(limit - depth, rel=1e-9)
        assert deep["thin_film"] == 1.0
        np.testing.assert_allclose(deep["moment"][1], B / 2 * deep["force"][0], rtol=1e-9)


def test_contact_damps_and_rubs(ask):
    k, a, mu, depth, v = 1e8, 20.0, 0.2, 1e-6, 1e-2
    contact = Contact(stiffness=k, damping=a, friction=mu, slip_speed=1e-4)
    position = [0.0, 0.98 * C + depth]

    def contact_part(velocity):
        """Less the film, which a bearing without stiffness has alone."""
        with_it, without = (
            ask(
                ShortBearing(*SIZE, film_limit=0.02 * C, contact=law),
                position,
                velocity,
                OMEGA,
            )
            for law in (contact, Contact(stiffness=0.0))
        )
        return {name: with_it[name] - without[name] for name in with_it}

    into = contact_part([0.0, v])
    N = k * depth * (1 + a * v)
    # The journal turns and its top slides toward -x, so that the bush drags it to +x.
    np.testing.assert_allclose(into["force"], [mu * N, -N], rtol=1e-6)
    assert into["torque"][0] == pytest.approx(-mu * N * R, rel=1e-6)
    wanted = k * depth * a * v**2 + mu * N * R * OMEGA
    assert into["power_loss"][0] == pytest.approx(wanted, rel=1e-6)
    away = contact_part([0.0, -1.0])  # a ḋ < -1: it does not pull
    np.testing.assert_allclose(away["force"], [0.0, 0.0], atol=1e-6 * N)


@EVERY_MODEL
@pytest.mark.parametrize("rule", ["shear", "none"])
def test_axes_do_not_matter_below_the_limit(ask, model, rule):
    """Nor does the heat: what shaft and center put in, less what the spring keeps, is lost."""
    k, bush, frame = 1e8, 80.0, 200.0
    contact = Contact(stiffness=k, damping=5.0, friction=0.2, slip_speed=1.0)
    bearing = model(*SIZE, film_limit=0.05 * C, contact=contact, friction=rule)
    e, v = np.array([0.6 * C, 0.9 * C]), np.array([3e-3, -1e-3])
    first = ask(bearing, e, v, OMEGA, bush)
    other = ask(bearing, e, v - frame * np.array([-e[1], e[0]]), OMEGA - frame, bush - frame)
    for name in ("force", "moment", "torque", "pressure", "power_loss"):
        np.testing.assert_allclose(other[name], first[name], rtol=1e-9)
    (fx, fy), torque = first["force"], first["torque"][0]
    bush_torque = -torque - (e[0] * fy - e[1] * fx)
    put_in = -fx * v[0] - fy * v[1] - torque * OMEGA - bush_torque * bush
    kept = k * (np.hypot(*e) - 0.95 * C) * (e @ v) / np.hypot(*e)
    assert first["power_loss"][0] == pytest.approx(put_in - kept, rel=1e-9)


@EVERY_MODEL
@pytest.mark.parametrize("eccentricity", [0.991, 1.0, 1.5])
def test_without_contact_a_thin_film_stops_the_run(ask, model, eccentricity):
    with pytest.raises(BlockError, match=r"m thick, thinner than `film_limit`.*contact=Contact"):
        ask(model(*SIZE, contact=None), [0.0, eccentricity * C], speed=OMEGA)


def test_without_contact_and_limit_a_film_may_be_as_thin_as_it_likes(ask):
    bearing = ShortBearing(*SIZE, contact=None, film_limit=0.0)
    assert np.isfinite(ask(bearing, [0.0, C * (1 - 1e-9)], speed=OMEGA)["force"]).all()
    with pytest.raises(BlockError, match="thinner"):
        ask(bearing, [0.0, C], speed=OMEGA)
