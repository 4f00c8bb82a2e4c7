"""Oil fed to a finite film: what goes in comes out, and closed forms of what flows."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.bearings import FiniteBearing, Hole, Pocket
from biella.blocks.bearings._analysis import open_film
from biella.errors import BlockError, DiagramError

pytestmark = pytest.mark.engine

R, L, C, MU, OMEGA = 0.02, 0.04, 2e-5, 0.03, 300.0
SIZE = (R, L, C, MU)
SUPPLY = 3e5


@pytest.mark.parametrize(
    "feeds",
    [
        [Hole(0.3, 0.006, SUPPLY)],
        [Hole(0.3, 0.006, SUPPLY), Pocket(2.0, 0.5, 2 * SUPPLY, length=0.01, z=0.012)],
        [Pocket(0.0, 2 * np.pi, SUPPLY, length=0.005)],
        [Pocket(1.0, 0.2)],
    ],
    ids=["hole", "hole and pocket", "groove all around", "axial groove"],
)
def test_what_goes_in_comes_out(ask, feeds):
    """A film that is whole everywhere loses no oil, however the journal turns, moves and tilts."""
    bearing = FiniteBearing(*SIZE, cavitation="none", tilt=True, feeds=feeds)
    random = np.random.default_rng(5)
    for _ in range(3):
        found = ask(
            bearing, random.uniform(-0.5, 0.5, 4) * C, random.normal(size=4) * 20 * C, OMEGA
        )
        through = np.abs(found["side_flow"]).sum() + abs(found["supply_flow"][0])
        left = found["supply_flow"][0] - found["side_flow"].sum()
        assert abs(left) < 1e-11 * through


@pytest.mark.parametrize("cavitation", ["none", "reynolds", "gumbel"])
@pytest.mark.parametrize("n", [0.0, 0.6])
def test_leakage_of_a_groove_all_around(ask, cavitation, n):
    """Each land lets through π r c³ p (1 + 1.5 n²) / (6 μ l): pressure falls in a line along it.

    ∫ h³ dθ = 2π c³ (1 + 1.5 n²), and lands begin at edges of cells. Off center, pressure is the
    same straight line at every angle, so that nothing flows around.
    """
    groove = L / 4
    bearing = FiniteBearing(
        *SIZE, cavitation=cavitation, feeds=[Pocket(0.0, 2 * np.pi, SUPPLY, length=groove)]
    )
    found = ask(bearing, [n * C * np.cos(1.0), n * C * np.sin(1.0)])
    land = (L - groove) / 2
    each = np.pi * R * C**3 * SUPPLY * (1 + 1.5 * n**2) / (6 * MU * land)
    np.testing.assert_allclose(found["side_flow"], [each, each], rtol=1e-12)
    assert found["supply_flow"][0] == pytest.approx(2 * each, rel=1e-12)
    np.testing.assert_allclose(found["force"], 0, atol=1e-10 * SUPPLY * R * L)
    assert found["pressure"][0] == pytest.approx(SUPPLY, rel=1e-12)


def test_pressure_falls_in_a_line_between_axial_grooves(ask):
    """A journal at rest in the middle of a long bearing: the force is that of the straight lines.

    Grooves are opposite each other and 2 β wide. With φ from the fed one, p / p_s is 1 up to β and
    (π - β - φ) / (π - 2 β) from there to π - β, so that ∫ p cos φ dφ = p_s 4 cos β / (π - 2 β).
    """
    long, columns = 100.0, 240
    beta = 10 * 2 * np.pi / columns  # edges of cells
    feeds = [Pocket(1.0, 2 * beta, SUPPLY), Pocket(1.0 + np.pi, 2 * beta, 0.0)]
    film = FiniteBearing(R, long, C, MU, cells=(columns, 2), cavitation="none", feeds=feeds)
    found = ask(film, [0.0, 0.0])
    # Middles of columns are not at 1 rad: the fed columns are those of the nearest edge.
    nearest = round(columns / (2 * np.pi)) * 2 * np.pi / columns
    size = SUPPLY * R * long * 4 * np.cos(beta) / (np.pi - 2 * beta)
    wanted = -size * np.array([np.cos(nearest), np.sin(nearest)])
    np.testing.assert_allclose(found["force"], wanted, atol=1e-4 * size)


@pytest.mark.parametrize("z", [0.25, 0.4])
def test_feeds_at_mirrored_places_make_mirrored_films(ask, z):
    one, other = (
        FiniteBearing(*SIZE, tilt=True, feeds=[Hole(0.5, 0.007, SUPPLY, z=at)])
        for at in (z * L, L - z * L)
    )
    position, turned = np.array([0.3, 0.1, 0.2, -0.3]) * C, np.array([0.2, -0.3, 0.3, 0.1]) * C
    first, second = ask(one, position, speed=OMEGA), ask(other, turned, speed=OMEGA)
    np.testing.assert_allclose(first["force"], second["force"], rtol=1e-10)
    np.testing.assert_allclose(first["side_flow"], second["side_flow"][::-1], rtol=1e-10)
    fx, fy = first["force"]
    about_middle = first["moment"] - 0.5 * L * np.array([-fy, fx])
    np.testing.assert_allclose(
        second["moment"] - 0.5 * L * np.array([-fy, fx]), -about_middle, rtol=1e-8
    )


def test_a_fed_journal_is_lifted_at_rest(ask):
    """Oil from below pushes up; twice the pressure twice as much."""
    film = FiniteBearing(*SIZE, feeds=[Hole(-np.pi / 2, 0.008, SUPPLY)])
    doubled = FiniteBearing(*SIZE, feeds=[Hole(-np.pi / 2, 0.008, 2 * SUPPLY)])
    once, twice = (ask(b, [0.0, -0.5 * C])["force"] for b in (film, doubled))
    assert once[1] > 0
    assert abs(once[0]) < 1e-9 * once[1]
    np.testing.assert_allclose(twice[1], 2 * once[1], rtol=1e-12)


def test_pressure_of_a_feed_can_be_set():
    bearing = FiniteBearing(*SIZE, feeds=[Hole(0.0, 0.01, SUPPLY)])
    with open_film(bearing) as film:
        film.ask(np.zeros(2), np.zeros(2), 0.0, 0.0)
        before = film.read("supply_flow")[0]
        film.instance.set("bearing.feed_pressure", [3 * SUPPLY])
        film.ask(np.zeros(2), np.zeros(2), 0.0, 0.0)
        assert film.read("supply_flow")[0] == pytest.approx(3 * before, rel=1e-12)
        film.instance.set("bearing.feed_pressure", [-1.0])
        with pytest.raises(BlockError, match=r"feed 1 is at -1 Pa.*not negative"):
            film.ask(np.zeros(2), np.zeros(2), 0.0, 0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feeds": [(0.0, 0.1)]}, r"`feeds` of FiniteBearing are Pocket"),
        ({"feeds": [Hole(0.0, -0.01)]}, r"must not be negative, got Hole"),
        ({"feeds": [Pocket(0.0, 0.1, -1.0)]}, r"must not be negative, got Pocket"),
        ({"feeds": [Pocket(0.0, "wide")]}, r"must not be negative, got Pocket"),  # type: ignore[arg-type]
        (
            {"feeds": [Hole(float("nan"), 0.01)]},
            r"middle of a feed is at an angle in rad.*got Hole",
        ),
        ({"feeds": [Hole(0.0, 1e-3, z=2 * SIZE[1])]}, r"up to the length of the bush"),
        ({"feeds": 5}, r"`feeds` of FiniteBearing are Pocket"),
        ({"grooves": [(0.0,)]}, r"pairs \(angle, width\) in rad"),
        ({"grooves": [(0.0, -1.0)]}, r"pairs \(angle, width\) in rad"),
    ],
)
def test_bad_feeds_are_refused(options, message):
    with pytest.raises(DiagramError, match=message):
        FiniteBearing(*SIZE, **options)
