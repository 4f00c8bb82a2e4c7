"""Finite bearings against an independent solution of the same cells, limits and published tables.

Published: Raimondi and Boyd, L/D = 1, film from p = 0 at the thickest place, Reynolds' condition;
Someya's data book, two axial grooves, L/D = 0.5. Their groove arc is not stated: 10° here.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from biella import BiellaWarning
from biella.blocks.bearings import FiniteBearing, Hole, LongBearing, Pocket, ShortBearing
from biella.blocks.bearings._analysis import open_film

from .cells import MU, C, R, assemble, hold

pytestmark = pytest.mark.engine

OMEGA = 300.0


def solve(cells, length, position, velocity, omega, cavitation, feeds=()):
    """Force, moment, and flows: numpy for the full film, non-negative least squares else."""
    held = hold(cells, length, feeds)
    A, f, theta, zeta = assemble(cells, length, position, velocity, omega, held)
    scale = 6 * MU * (R / C) ** 2
    free = np.isnan(held)
    q = np.where(free, 0.0, held / scale)
    inner, driven = A[np.ix_(free, free)], (f - A @ q)[free]
    if cavitation == "reynolds":
        # q ≥ 0, A q ≥ f, complementary: the minimum of |Lᵀ q - L⁻¹ f| for A = L Lᵀ.
        L = np.linalg.cholesky(inner)
        q[free] = nnls(L.T, np.linalg.solve(L, driven), maxiter=20 * f.size)[0]
    else:
        q[free] = np.linalg.solve(inner, driven)
    if cavitation == "gumbel":
        q = np.maximum(q, 0)
    area = R * length * 2 * np.pi / np.prod(cells)
    p = (scale * q).reshape(cells)
    z = zeta * length
    px, py = np.cos(theta) @ p * area, np.sin(theta) @ p * area
    load = np.array([-px.sum(), -py.sum(), z @ py, -z @ px])
    # Half a cell from the end, where the gap is that of the end.
    width, depth = R * 2 * np.pi / cells[0], length / cells[1] / 2
    gaps = [C - x * np.cos(theta) - y * np.sin(theta) for x, y in (position[:2], position[2:])]
    ends = [
        (gap**3 / (12 * MU) * p[:, j] / depth).sum() * width
        for gap, j in zip(gaps, (0, -1), strict=True)
    ]
    return load, ends, C / 2 * area * (A @ q - f)[~free].sum()


GROOVES = [(np.pi / 2, 0.5), (-1.0, 0.4)]
FEEDS = [
    Hole(0.3, 0.006, 3e6),
    Pocket(2.5, 0.6, 2e6, length=0.012, z=0.02),
    Pocket(-2.0, 0.0, 1e6),
    Hole(-0.4, 0.0, 1e6, z=0.002),
]
SYMMETRIC = [Pocket(1.0, 0.3, 2e6, length=0.014), Pocket(4.0, 0.3, 0.0, length=0.014)]


@pytest.mark.parametrize("cavitation", ["reynolds", "gumbel", "none"])
@pytest.mark.parametrize(
    ("grooves", "feeds"),
    [((), ()), (GROOVES, ()), ((), FEEDS), (GROOVES[:1], SYMMETRIC)],
    ids=["whole", "grooved", "fed", "fed alike at both ends"],
)
@pytest.mark.parametrize("tilted", [False, True], ids=["parallel", "tilted"])
@pytest.mark.parametrize("cells", [(20, 8), (14, 6), (10, 2)], ids=str)
def test_film_solves_its_cells(ask, cavitation, grooves, feeds, tilted, cells):
    """Wedge, squeeze and tilt, to rounding of what another method finds on the same cells."""
    length = 0.03
    options = {"cavitation": cavitation, "tilt": tilted, "grooves": grooves, "feeds": feeds}
    bearing = FiniteBearing(R, length, C, MU, cells=cells, **options)
    random = np.random.default_rng(2)
    for _ in range(4):
        ends = [random.uniform(0, 0.9) * C * np.exp(1j * random.uniform(0, 7)) for _ in range(2)]
        position = np.array([v for e in ends for v in (e.real, e.imag)])
        velocity = random.normal(size=4) * 100 * C
        if not tilted:
            position, velocity = np.tile(position[:2], 2), np.tile(velocity[:2], 2)
        found = ask(bearing, position[: 2 * bearing.ends], velocity[: 2 * bearing.ends], OMEGA)
        given = [*(Pocket(*groove) for groove in grooves), *feeds]
        load, side, supply = solve(cells, length, position, velocity, OMEGA, cavitation, given)
        scale = np.hypot(*load[:2]) + np.hypot(*load[2:]) / length
        np.testing.assert_allclose(found["force"], load[:2], atol=1e-9 * scale)
        np.testing.assert_allclose(found["moment"], load[2:], atol=1e-9 * scale * length)
        drawn = R * length * C * OMEGA
        np.testing.assert_allclose(found["side_flow"], side, atol=1e-9 * drawn)
        np.testing.assert_allclose(found["supply_flow"], supply, atol=1e-9 * drawn)


def test_the_film_that_was_is_only_a_guess(ask):
    """After any jump the film is the one of a fresh start, and then known at once."""
    random = np.random.default_rng(4)
    warm = FiniteBearing(R, 0.04, C, MU, cells=(32, 8))
    for _ in range(12):
        e = random.uniform(0, 0.95) * C * np.exp(1j * random.uniform(0, 7))
        position, velocity = [e.real, e.imag], random.normal(size=2) * 100 * C
        found = ask(warm, position, velocity, OMEGA)
        fresh = ask(FiniteBearing(R, 0.04, C, MU, cells=(32, 8)), position, velocity, OMEGA)
        scale = np.hypot(*fresh["force"])
        np.testing.assert_allclose(found["force"], fresh["force"], atol=1e-12 * scale)
        assert ask(warm, position, velocity, OMEGA)["solves"] == 1


def load(ask, bearing, n, angle=0.0):
    """Magnitude and attitude of the load that a film carries at an eccentricity."""
    found = ask(bearing, [n * C * np.cos(angle), n * C * np.sin(angle)], speed=OMEGA)
    fx, fy = -found["force"]
    attitude = np.remainder(angle - np.arctan2(fy, fx) + np.pi, 2 * np.pi) - np.pi
    return np.hypot(fx, fy), attitude, found


@pytest.mark.parametrize("n", [0.3, 0.8])
def test_short_and_long_are_its_limits(ask, n):
    """To 0.3 % where cells allow; what a bearing loses at its ends goes with D / L."""

    def ratio(model, proportion, cavitation="gumbel"):
        length = proportion * 2 * R
        finite = FiniteBearing(R, length, C, MU, cells=(256, 32), cavitation=cavitation)
        return load(ask, finite, n)[0] / load(ask, model(R, length, C, MU), n)[0]

    for cavitation in ("gumbel", "reynolds"):
        short = [ratio(ShortBearing, p, cavitation) for p in (0.5, 0.1, 0.02)]
        assert short[0] < short[1] < short[2]
        assert short[2] == pytest.approx(1, abs=3e-3)
    long = [ratio(LongBearing, p) for p in (1.0, 4.0, 16.0, 200.0)]
    assert long[0] < long[1] < long[2] < long[3]
    assert long[3] == pytest.approx(1, abs=3e-3)


@pytest.mark.parametrize("cavitation", ["reynolds", "gumbel"])
def test_order_of_the_cells_is_two(ask, cavitation):
    loads = [
        load(ask, FiniteBearing(R, 0.04, C, MU, cells=(n, n // 4), cavitation=cavitation), 0.6)[0]
        for n in (32, 64, 128, 256)
    ]
    first, second, third = np.abs(np.diff(loads))
    assert 1.6 < np.log2(second / third) < 2.4
    assert 1.6 < np.log2(first / second) < 2.4


@pytest.mark.parametrize(
    ("n", "S", "friction"),
    [
        (0.1, 1.33, 26.4),
        (0.2, 0.631, 12.8),
        (0.4, 0.264, 5.79),
        (0.6, 0.121, 3.2),
        (0.8, 0.0446, 1.7),
        (0.9, 0.0188, 1.05),
    ],
)
def test_raimondi_boyd(ask, n, S, friction):
    """L/D = 1: S within 2 % and (R/c) f within 1 %."""
    around = 256
    angle = np.pi / around  # so that the thickest place is the middle of a column
    bearing = FiniteBearing(R, 2 * R, C, MU, cells=(around, 32), grooves=[(angle + np.pi, 0.0)])
    W, _, found = load(ask, bearing, n, angle)
    assert (R / C) ** 2 * MU * OMEGA / (2 * np.pi) / (W / (2 * R) ** 2) == pytest.approx(
        S, rel=0.02
    )
    assert -found["torque"][0] / (R * W) * R / C == pytest.approx(friction, rel=0.01)


SOMEYA = {  # ε: S, φ in degrees, K row by row, C row by row
    0.1: (4.43, 80.4, [1.75, 10.3, -9.66, 2.70], [20.6, 2.08, 2.08, 11.4]),
    0.2: (2.07, 71.6, [1.88, 5.63, -4.41, 2.56], [11.2, 2.22, 2.22, 6.43]),
    0.4: (0.798, 57.5, [2.39, 3.75, -1.57, 2.17], [7.32, 2.24, 2.24, 3.50]),
    0.6: (0.323, 44.7, [3.65, 3.62, -0.427, 1.92], [6.81, 2.08, 2.08, 2.06]),
    0.8: (0.0926, 31.2, [7.35, 4.46, 0.527, 1.78], [8.17, 2.05, 2.05, 1.24]),
    0.9: (0.0315, 22.7, [13.8, 5.76, 1.24, 1.72], [10.6, 2.03, 2.03, 0.846]),
}
HALF = 0.5 * 2 * R
GROOVED = FiniteBearing(
    R, HALF, C, MU, cells=(360, 32), grooves=[(a, np.radians(10)) for a in (np.pi / 2, -np.pi / 2)]
)


def someya_load(S):
    return (R / C) ** 2 * MU * OMEGA / (2 * np.pi) / S * 2 * R * HALF


@pytest.mark.parametrize("n", SOMEYA)
def test_someya(n):
    """L/D = 0.5: load and attitude within 2 %, C within 5 % of its largest; K from ε 0.6 on."""
    S, phi, K, D = SOMEYA[n]
    found = GROOVED.coefficients(someya_load(S), OMEGA)
    assert found.equilibrium.eccentricity == pytest.approx(n, rel=0.02)
    assert np.degrees(found.equilibrium.attitude) == pytest.approx(phi, rel=0.02)
    stiffness, damping = found.along_load(C)
    np.testing.assert_allclose(damping.ravel(), D, atol=0.05 * max(D))
    if n >= 0.6:
        np.testing.assert_allclose(stiffness.ravel(), K, atol=0.05 * max(K))
    else:
        np.testing.assert_allclose(stiffness.ravel()[:2], K[:2], atol=0.07 * max(K))


def test_why_someyas_cross_stiffness_is_not_met_at_low_eccentricity():
    """More load moves the journal along its locus, with no force across: K_yx X' + K_yy Y' = 0.

    Ours holds it. The table's K, against the slope of the table's own φ(ε), misses by a fifth.
    """
    n = np.array(list(SOMEYA))
    S, phi = (np.array([SOMEYA[e][k] for e in n]) for k in range(2))

    def miss(x, y, row):
        """Of the identity at the middle of an interval, as a part of its terms."""
        first, second = row[0] * np.diff(x)[0], row[1] * np.diff(y)[0]
        return abs(first + second) / abs(second)

    x, y = n * np.cos(np.radians(phi)), n * np.sin(np.radians(phi))
    for k in range(2):
        pair = slice(k, k + 2)
        table = np.array([SOMEYA[e][2][2:] for e in n[pair]])
        # Entries fall like a power of ε: the middle one is their geometric mean.
        middle = -np.sqrt(table[0, 0] * table[1, 0]), np.sqrt(table[0, 1] * table[1, 1])
        ours = [GROOVED.coefficients(someya_load(s), OMEGA) for s in S[pair]]
        places = np.array([found.equilibrium.position for found in ours])
        rows = np.array([found.along_load(C)[0][1] for found in ours])
        own = -np.sqrt(rows[0, 0] * rows[1, 0]), np.sqrt(rows[0, 1] * rows[1, 1])
        assert miss(x[pair], y[pair], middle) > 0.12
        assert miss(places[:, 0], places[:, 1], own) < 0.08
    # And without differences between loads: a small step along our own locus.
    W = someya_load(S[0])
    low, high = (GROOVED.equilibrium(W * f, OMEGA).position for f in (0.995, 1.005))
    stiffness = GROOVED.coefficients(W, OMEGA).stiffness
    across, along = stiffness[1] @ (high - low), stiffness[0] @ (high - low)
    assert abs(across) < 0.01 * abs(stiffness[1, 1] * (high - low)[1])
    assert along == pytest.approx(0.01 * W, rel=0.01)


# -- cells and how thin a film they resolve


def coefficients_of(cells, eccentricity):
    """K and C at an eccentricity, each as a part of its largest entry, and the load."""
    found = FiniteBearing(R, 2 * R, C, MU, cells=(512, 16))
    with open_film(found) as film:
        at = eccentricity * C * np.array([np.cos(0.03), np.sin(0.03)])
        load = tuple(-film.force(at, np.zeros(2), 300.0, 0.0))
    given = {} if cells is None else {"cells": cells}
    return FiniteBearing(R, 2 * R, C, MU, film_limit=1e-4 * C, **given).coefficients(load, 300.0)


@pytest.mark.parametrize(
    ("eccentricity", "forces", "damping"), [(0.95, 0.004, 0.075), (0.99, 0.004, 0.075)]
)
def test_usual_cells_are_refined_where_a_film_is_found_to_be_thin(eccentricity, forces, damping):
    """Against the finest cells: 60 / N and 25 / N² percent, with N = 8 or a little less."""
    fine = coefficients_of((1024, 16), eccentricity)
    found = coefficients_of(None, eccentricity)
    assert found.equilibrium.film == pytest.approx(fine.equilibrium.film, rel=2 * forces)
    for ours, theirs in ((found.stiffness, fine.stiffness), (found.damping, fine.damping)):
        np.testing.assert_allclose(ours, theirs, atol=damping * np.abs(theirs).max())


def test_usual_cells_stay_where_they_are_enough(ask):
    """Then `equilibrium` is that of the block in a run, which always has the usual ones."""
    usual, given = FiniteBearing(R, 2 * R, C, MU), FiniteBearing(R, 2 * R, C, MU, cells=(64, 16))
    load = (0.0, -300.0)
    at = usual.equilibrium(load, 300.0)
    assert at.eccentricity < 0.6
    np.testing.assert_array_equal(at.position, given.equilibrium(load, 300.0).position)


def test_cells_that_were_given_are_kept_and_warned_of():
    told = (
        r"64 cells around are too few for a film of 1e-06 m .*damping by 18 %.*cells=\(15\d, 16\)"
    )
    with pytest.warns(BiellaWarning, match=told):
        coefficients_of((64, 16), 0.95)
    with pytest.warns(BiellaWarning, match="16 cells around are too few"):
        FiniteBearing(R, R / 2, C, MU, cells=(16, 4)).threshold_speed(1000.0, (0.0, -9810.0))
