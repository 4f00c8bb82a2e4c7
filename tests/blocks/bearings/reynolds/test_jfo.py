"""Cavitation that keeps its oil: books that balance, and fronts that are known otherwise.

The references are ours and independent of the C: numpy with the equations written out cell by cell;
integrals along a long bearing for where its film ends and begins; and an ordinary differential
equation for the bubble between plates that move apart and together (after Ausas, Jai and Buscaglia,
2009, who derive the like for their own plates).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

from biella import Diagram, simulate
from biella.blocks import Constant, Gain, Integrator, Sum
from biella.blocks.bearings import FiniteBearing, Hole, Pocket
from biella.blocks.bearings._analysis import open_film
from biella.errors import DiagramError

from ..cells import MU, C, R, assemble, hold

pytestmark = pytest.mark.engine

OMEGA = 300.0
STEP = 1e-3  # of `open_film`
FEEDS: dict[str, Any] = {
    "none": [],
    "hole": [Hole(0.4, 0.005, 2e5)],
    "pocket": [Pocket(2.0, 0.7, 1e5, length=0.01, z=0.018)],
    "groove": [Pocket(-1.0, 0.5, 1e5)],
    "groove all around": [Pocket(0.0, 2 * np.pi, 1e5, length=0.005)],
}


def gap_of(cells, pair, constant):
    """Mean over each cell of constant - x cos θ - y sin θ, x and y along z in clearances."""
    n, m = cells
    edge = np.arange(n + 1) * 2 * np.pi / n
    z = (np.arange(m) + 0.5) / m
    x, y = (pair[k] + (pair[k + 2] - pair[k]) * z for k in (0, 1))
    cos, sin = np.diff(np.sin(edge)) * n / (2 * np.pi), -np.diff(np.cos(edge)) * n / (2 * np.pi)
    return constant - (np.outer(cos, x) + np.outer(sin, y)) / C


@pytest.mark.parametrize("feeds", FEEDS.values(), ids=FEEDS)
@pytest.mark.parametrize("tilted", [False, True], ids=["parallel", "tilted"])
def test_every_cell_keeps_its_books(tilted, feeds):
    """From the oil before and after a step follow pressures, none below zero: all cells balance.

    A q + ω ∂θ(ϑ H) + 2 (w' - w) / τ = 0 with what shear carries taken from upstream.
    """
    cells, length = (20, 6), 0.03
    bearing = FiniteBearing(
        R, length, C, MU, cells=cells, tilt=tilted, cavitation="jfo", feeds=feeds
    )
    held = hold(cells, length, feeds)
    free = np.isnan(held)
    scale = 6 * MU * (R / C) ** 2
    random = np.random.default_rng(3)
    cavities = 0
    with open_film(bearing) as film:
        for turn in range(12):
            omega = OMEGA * (-1) ** (turn // 4)
            ends = [
                random.uniform(0, 0.8) * C * np.exp(1j * random.uniform(0, 7)) for _ in range(2)
            ]
            position = np.array([v for e in ends for v in (e.real, e.imag)])
            velocity = random.normal(size=4) * 30 * C
            if not tilted:
                position, velocity = np.tile(position[:2], 2), np.tile(velocity[:2], 2)
            film.instance.set("position", position[: 2 * bearing.ends])
            film.instance.set("velocity", velocity[: 2 * bearing.ends])
            film.instance.set("journal_speed", omega)
            film.instance.evaluate()
            force, flow = film.read("force"), film.read("supply_flow")[0]
            before = film.instance.memory[: free.size].copy()
            film.instance.run(1)
            after = film.instance.memory[: free.size].copy()

            gap = gap_of(cells, position, 1.0)
            if turn == 0:
                before = gap.ravel()  # it starts full
            end = np.maximum(gap + STEP * gap_of(cells, velocity, 0.0), 0.1 * gap)
            part = (after.reshape(cells) / end).clip(0, 1)
            A, _, theta, _ = assemble(cells, length, position, velocity, omega, held)
            face = gap_of(cells, position, 1.0) * 0
            for j, z in enumerate((np.arange(cells[1]) + 0.5) / cells[1]):
                x, y = (position[k] + (position[k + 2] - position[k]) * z for k in (0, 1))
                edge = theta + np.pi / cells[0]
                face[:, j] = 1 - (x * np.cos(edge) + y * np.sin(edge)) / C
            upstream = part if omega > 0 else np.roll(part, -1, axis=0)
            over = omega * face * upstream * cells[0] / (2 * np.pi)
            source = -(over - np.roll(over, 1, axis=0)).ravel() - 2 * (after - before) / STEP
            full = free & (part.ravel() > 1 - 1e-12)
            q = np.where(free, 0.0, held / scale)
            q[full] = np.linalg.solve(A[np.ix_(full, full)], (source - A @ q)[full])
            left = A @ q - source
            size = max(np.abs(source).max(), OMEGA)
            assert q.min() > -1e-9 * max(q.max(), 1e-300)
            np.testing.assert_allclose(left[free], 0, atol=1e-9 * size)
            cavities += (free & ~full).sum()
            area = 2 * np.pi * R * length / free.size
            assert flow == pytest.approx(
                C / 2 * area * left[~free].sum(), abs=1e-9 * C * area * size
            )
            p = (scale * q).reshape(cells).sum(axis=1) * area
            wanted = -np.array([p @ np.cos(theta), p @ np.sin(theta)])
            np.testing.assert_allclose(force, wanted, atol=1e-8 * np.abs(p).sum())
    assert cavities > 20


@pytest.mark.parametrize("tilted", [False, True], ids=["parallel", "tilted"])
def test_no_oil_is_made_or_lost(tilted):
    """Over a whirl with squeeze: what came in, less what went out, is what there is more."""
    bearing = FiniteBearing(
        R, 0.03, C, MU, cells=(32, 8), tilt=tilted, cavitation="jfo", feeds=FEEDS["hole"]
    )
    with open_film(bearing) as film:
        oil, came = [], [0.0]
        for k in range(200):
            angle = 150.0 * k * STEP
            e = (0.5 + 0.3 * np.sin(0.1 * k)) * C
            place = e * np.array([np.cos(angle), np.sin(angle)])
            film.instance.set(
                "position", np.tile(place, bearing.ends) * ([1, 1, 0.8, 0.9][: 2 * bearing.ends])
            )
            film.instance.set(
                "velocity", np.tile(150.0 * np.array([-place[1], place[0]]), bearing.ends)
            )
            film.instance.set("journal_speed", OMEGA)
            film.instance.evaluate()
            oil.append(film.read("oil")[0])
            came.append(STEP * (film.read("supply_flow")[0] - film.read("side_flow").sum()))
            film.instance.run(1)
    more = np.array(oil) - oil[0]
    np.testing.assert_allclose(more, np.cumsum(came[:-1]), atol=1e-12 * np.abs(came).sum())
    assert np.ptp(oil) > 0.02 * oil[0]


def analytic_long(n, edges, supply):
    """Where the film of a long bearing ends and begins again, and its load over 6 μ ω r (r/c)² L.

    H = 1 - n cos θ; oil is fed between `edges` about π. Without flow along, H³ q' = H - H* with H*
    the gap where the film ends, as all that ended there arrives where it begins again.
    """

    def H(angle):
        return 1 - n * np.cos(angle)

    def rise(low, high, end):
        return quad(lambda a: (H(a) - H(end)) / H(a) ** 3, low, high, epsabs=1e-13, limit=200)[0]

    first, last = edges[1], edges[0] + 2 * np.pi
    rupture = brentq(lambda a: supply + rise(first, a, a), 2 * np.pi, 2.5 * np.pi)
    begin = brentq(lambda a: rise(a, last, rupture) - supply, rupture, last - 1e-6)

    def moment(low, high, anti):
        return quad(
            lambda a: -(H(a) - H(rupture)) / H(a) ** 3 * anti(a), low, high, epsabs=1e-13, limit=200
        )[0]

    # ∫ q cos = [q sin] - ∫ q' sin and ∫ q sin = -[q cos] + ∫ q' cos, q = 0 or `supply` at the ends.
    total = []
    for anti in (np.sin, lambda a: -np.cos(a)):
        fed = supply * (anti(edges[1]) - anti(edges[0]))
        one = -supply * anti(first) + moment(first, rupture, anti)
        two = supply * anti(last) + moment(begin, last, anti)
        total.append(-(fed + one + two))
    return rupture, begin, np.array(total)


@pytest.mark.parametrize(("n", "supply"), [(0.6, 0.15), (0.6, 0.02), (0.4, 0.05), (0.85, 0.2)])
def test_fronts_of_a_long_bearing(ask, n, supply):
    """Rupture and reformation within two columns of 960, load within 0.2 %."""
    columns, long = 960, 100.0
    beta = 0.5 * 48 * 2 * np.pi / columns
    unit = 6 * MU * OMEGA * (R / C) ** 2
    feeds = [Pocket(np.pi, 2 * beta, supply * unit)]
    bearing = FiniteBearing(
        R, long, C, MU, cells=(columns, 2), cavitation="jfo_steady", feeds=feeds
    )
    rupture, begin, load = analytic_long(n, (np.pi - beta, np.pi + beta), supply)
    with open_film(bearing) as film:
        force = film.force(np.array([n * C, 0.0]), np.zeros(2), OMEGA, 0.0) / (unit * R * long)
        whole = film.instance.memory[: 2 * columns : 2] > 0.5
    empty = np.flatnonzero(~whole) * 2 * np.pi / columns
    wrapped = np.sort(np.where(empty < np.pi, empty + 2 * np.pi, empty))
    assert wrapped[0] == pytest.approx(rupture, abs=2 * 2 * np.pi / columns)
    assert wrapped[-1] == pytest.approx(begin, abs=2 * 2 * np.pi / columns)
    np.testing.assert_allclose(force, load, atol=2e-3 * np.hypot(*load))


def test_a_flooded_film_ends_as_reynolds_says(ask):
    """With no pressure behind it oil does not come back before the groove: both films are one."""
    options: dict[str, Any] = {"cells": (128, 16), "grooves": [(np.pi, 0.2)]}
    for n in (0.3, 0.8):
        films = [
            ask(FiniteBearing(R, 0.04, C, MU, cavitation=c, **options), [n * C, 0.0], speed=OMEGA)
            for c in ("reynolds", "jfo_steady")
        ]
        reynolds, jfo = (film["force"] for film in films)
        np.testing.assert_allclose(jfo, reynolds, atol=1e-4 * np.hypot(*reynolds))
        assert films[1]["supply_flow"][0] == pytest.approx(films[1]["side_flow"].sum(), rel=1e-6)


def test_time_leads_to_the_steady_film(ask):
    options: dict[str, Any] = {"cells": (32, 8), "feeds": [Pocket(np.pi, 0.4, 2e5)]}
    place = [0.5 * C, 0.1 * C]
    steady = ask(
        FiniteBearing(R, 0.04, C, MU, cavitation="jfo_steady", **options), place, speed=OMEGA
    )
    moving = FiniteBearing(R, 0.04, C, MU, cavitation="jfo", **options)
    for _ in range(2000):
        found = ask(moving, place, speed=OMEGA)
    np.testing.assert_allclose(found["force"], steady["force"], rtol=1e-6)
    assert found["supply_flow"][0] == pytest.approx(steady["supply_flow"][0], rel=1e-6)


def test_oil_moves_on_where_all_else_is_constant():
    d = Diagram("still", step=STEP)
    film = FiniteBearing(R, 0.03, C, MU, cells=(24, 6), cavitation="jfo", feeds=FEEDS["hole"])
    d.add(film, name="film")
    d.connect(d.add(Constant([0.5 * C, 0.0], unit="m"), name="place"), film["position"])
    d.connect(d.add(Constant(OMEGA, unit="rad/s"), name="spin"), film["journal_speed"])
    oil = simulate(d, until=0.05, record=["film.oil"])["film.oil"]
    assert (np.diff(oil[:20]) < 0).all()


def bubble(gap, rate, supply, land, times):
    """How far each side's film reaches between plates, from where it is fed, at given times.

    Where it is fed p = p_s. A film that ends has p = p' = 0 there, so reaches √(p_s h³ / 6 μ h'):
    while that shrinks, oil of the thickness that was is left behind. From where it shrinks no more,
    h (1 - ϑ) dz/dt = (h³ / 12 μ) (p_s / z - 6 μ h' z / h³).
    """

    def ending(t):
        opens = rate(t)
        return np.sqrt(supply * gap(t) ** 3 / (6 * MU * opens)) if opens > 0 else np.inf

    fine = np.linspace(times[0], times[-1], 200_001)
    reach = np.array([ending(t) for t in fine])
    start = np.flatnonzero(reach < land / 2)[0]
    turn = start + reach[start:].argmin()
    passed, left = reach[start : turn + 1][::-1], gap(fine[start : turn + 1])[::-1]

    def grow(t, z):
        h = gap(t)
        empty = max(1 - np.interp(z[0], passed, left, right=left[-1]) / h, 1e-9)
        return [h**2 / (12 * MU) * (supply / z[0] - 6 * MU * rate(t) * z[0] / h**3) / empty]

    closed = lambda t, z: z[0] - land / 2  # noqa: E731
    closed.terminal = True  # type: ignore[attr-defined]
    after = solve_ivp(
        grow,
        (fine[turn], times[-1]),
        [reach[turn] * (1 + 1e-6)],
        method="Radau",
        events=closed,
        rtol=1e-8,
        atol=1e-12,
        dense_output=True,
    )
    found = np.full(times.shape, land / 2)
    for k, t in enumerate(times):
        if fine[start] <= t <= fine[turn]:
            found[k] = ending(t)
        elif fine[turn] < t < after.t[-1]:
            found[k] = after.sol(t)[0]
    return found, fine[start], after.t[-1]


def test_bubble_between_plates_grows_and_collapses():
    """A column of a very short bearing is a pair of plates: fronts within its cells."""
    length, along, around = 2e-4, 48, 16
    edge = length / along
    supply, nu, steps = 60.0, 100.0, 1000
    feeds = [
        Pocket(0.0, 2 * np.pi, supply, length=edge, z=z) for z in (edge / 2, length - edge / 2)
    ]
    period = 2 * np.pi / nu
    step = period / steps
    middle = np.pi / around
    direction = np.array([np.cos(middle), np.sin(middle)])
    d = Diagram("plates", step=step)
    bearing = FiniteBearing(R, length, C, MU, cells=(around, along), cavitation="jfo", feeds=feeds)
    d.add(bearing, name="film")
    for name in ("position", "velocity"):
        d.connect(d.input(name, width=2), bearing[name])
    times = np.arange(1, steps) * step
    reached = np.empty(times.shape)
    with d.compile().instantiate() as instance:
        for k in range(steps - 1):
            t = k * step
            instance.set("position", 0.5 * C * np.cos(nu * t) * direction)
            instance.set("velocity", -0.5 * C * nu * np.sin(nu * t) * direction)
            instance.run(1)
            oil = instance.memory[: along // 2]
            full = oil > (1 - 1e-9) * oil[0]  # which is fed, so full
            reached[k] = full[1:].argmin() * edge if not full.all() else length / 2 - edge
    wanted, start, stop = bubble(
        lambda t: C * (1 - 0.5 * np.cos(nu * t)),
        lambda t: 0.5 * C * nu * np.sin(nu * t),
        supply,
        length - 2 * edge,
        times,
    )
    there = (times > start + 0.02 * period) & (times < stop - 0.02 * period)
    assert there.sum() > steps / 4
    off = np.abs(reached - wanted)[there] / edge
    assert off.max() < 1.5
    assert off.mean() < 1.0
    almost = wanted.max() - 2 * edge
    closes, wanted_closes = (times[np.flatnonzero(z < almost)[-1]] for z in (reached, wanted))
    assert closes == pytest.approx(wanted_closes, abs=0.01 * period)


MASS, WEIGHT, SPEED = 5.0, 49.05, 150.0


def rotor(step, away):
    """A mass in the solver's internal steps, and where its film carries it."""
    bearing = FiniteBearing(
        R, 0.01, 4e-5, 0.01, cells=(48, 4), cavitation="jfo", grooves=[(np.pi / 2, 0.5)]
    )
    at = bearing.equilibrium((0.0, -WEIGHT), SPEED).position
    d = Diagram("rotor", step=step)
    film = d.add(bearing, name="film")
    total = d.add(Sum("++"), name="total")
    lighter = d.add(Gain(1 / MASS, unit="m/s2"), name="lighter")
    velocity = d.add(Integrator([0.0, 0.0]), name="velocity")
    place = d.add(Integrator(at + away), name="place")
    d.connect(d.add(Constant(SPEED, unit="rad/s"), name="spin"), film["journal_speed"])
    d.connect(film["force"], total["u1"])
    d.connect(d.add(Constant([0.0, -WEIGHT], unit="N"), name="weight"), total["u2"])
    for source, target in [(total, lighter), (lighter, velocity), (velocity, place)]:
        d.connect(source, target)
    d.connect(velocity, film["velocity"])
    d.connect(place, film["position"])
    return d, at


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
def test_rotor_settles_where_its_film_carries_it():
    d, at = rotor(5e-5, np.array([2e-6, 0.0]))
    result = simulate(d, until=0.6, record=["place"])
    np.testing.assert_allclose(result["place"][-1], at, atol=1e-4 * 4e-5)


@pytest.mark.filterwarnings("ignore:the estimated error")  # steps are coarse on purpose
def test_steps_within_a_tick_see_the_oil_as_a_part_of_the_gap():
    """A swing does not depend on the step beyond its first order.

    Were the oil at the next tick taken as it is, each minor step would squeeze what the step as a
    whole squeezes too.
    """
    away = np.array([4e-6, 8e-6])
    coarse, middle, fine = (
        simulate(rotor(step, away)[0], until=0.03, record=["place"])["place"][:: round(8e-5 / step)]
        for step in (8e-5, 4e-5, 2e-5)
    )
    first, second = (np.abs(a - b).max() for a, b in ((coarse, middle), (middle, fine)))
    swing = np.abs(fine - fine[-1]).max()
    assert second < 0.01 * swing
    assert first == pytest.approx(2 * second, rel=0.5)


def test_a_steady_film_that_nothing_feeds_is_refused():
    with pytest.raises(DiagramError, match=r"needs `grooves` or `feeds`"):
        FiniteBearing(R, 0.03, C, MU, cavitation="jfo_steady")
    with pytest.raises(DiagramError, match=r"needs `grooves` or `feeds`"):
        FiniteBearing(R, 0.03, C, MU, cavitation="jfo").equilibrium(10.0, OMEGA)
