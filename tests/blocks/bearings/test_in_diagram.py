"""A rigid rotor on an oil film, in time."""

from __future__ import annotations

import re

import numpy as np
import pytest

from biella import BiellaWarning, Diagram, simulate
from biella.blocks import (
    Constant,
    FiniteBearing,
    Gain,
    Integrator,
    LongBearing,
    MisalignedShortBearing,
    Mux,
    ShortBearing,
    Sine,
    Sum,
)
from biella.blocks.bearings import Contact
from biella.scheduler.engine._engine import DIAGNOSTIC_RUN

pytestmark = pytest.mark.engine

SIZE = (0.02, 0.01, 4e-5, 0.01)
MASS, WEIGHT = 5.0, 49.05


def rotor(bearing, speed, start, step):
    """Return a mass that film and weight move."""
    d = Diagram("rotor", step=step)
    film = d.add(bearing, name="film")
    weight = d.add(Constant([0.0, -WEIGHT], unit="N"), name="weight")
    total = d.add(Sum("++"), name="total")
    lighter = d.add(Gain(1 / MASS, unit="m/s2"), name="lighter")
    velocity = d.add(Integrator([0.0, 0.0]), name="velocity")
    place = d.add(Integrator(start), name="place")
    d.connect(d.add(Constant(speed, unit="rad/s"), name="spin"), film["journal_speed"])
    d.connect(film["force"], total["u1"])
    d.connect(weight, total["u2"])
    for source, target in [(total, lighter), (lighter, velocity), (velocity, place)]:
        d.connect(source, target)
    d.connect(velocity, film["velocity"])
    d.connect(place, film["position"])
    return d


@pytest.mark.parametrize("model", [ShortBearing, FiniteBearing])
def test_rotor_settles_where_its_film_carries_it(model):
    bearing = model(*SIZE, cells=(24, 4)) if model is FiniteBearing else model(*SIZE)
    speed = 0.5 * ShortBearing(*SIZE).threshold_speed(MASS, (0.0, -WEIGHT))
    at = bearing.equilibrium((0.0, -WEIGHT), speed)
    d = rotor(bearing, speed, at.position + np.array([0.05 * SIZE[2], 0.0]), 2e-5)
    result = simulate(d, until=0.6, record=["place", "film.power_loss"])
    np.testing.assert_allclose(result["place"][-1], at.position, atol=1e-5 * SIZE[2])
    assert result["film.power_loss"][-1] == pytest.approx(at.power_loss, rel=1e-4)


@pytest.mark.parametrize(("factor", "grows"), [(0.97, False), (1.03, True)])
def test_whirl_grows_above_the_threshold_and_dies_below(factor, grows):
    bearing = ShortBearing(*SIZE)
    speed = factor * bearing.threshold_speed(MASS, (0.0, -WEIGHT))
    at = bearing.equilibrium((0.0, -WEIGHT), speed)
    nudge = 1e-4 * SIZE[2]
    d = rotor(bearing, speed, at.position + np.array([nudge, 0.0]), 1e-5)
    away = np.linalg.norm(simulate(d, until=0.5, record=["place"])["place"] - at.position, axis=1)
    early, late = away[5000:15000].max(), away[-10000:].max()
    assert (late > 1.5 * early) == grows
    assert (late < early / 1.5) != grows


@pytest.mark.parametrize(
    "model", [ShortBearing, MisalignedShortBearing, LongBearing, FiniteBearing]
)
def test_a_block_whose_film_was_too_thin_says_so_when_the_run_ends(model):
    """A journal that is moved through its film and back, along a line."""
    options = {"cells": (256, 2)} if model is FiniteBearing else {}  # fine enough for any film
    ends = 2 if model is MisalignedShortBearing else 1
    film = model(*SIZE, **options)
    deepest = 1.5 * SIZE[2]
    told = r"`film` \(\w+\): its film was thinner than its `film_limit`, 4e-07 m, for .* beyond the"
    with pytest.warns(BiellaWarning, match=told) as warned:
        result = simulate(moved(film, deepest, ends), until=1.0)
    assert len(warned) == 1
    text, thin = str(warned[0].message), result["film.thin_film"] > 0
    assert read_after(text, "for") == pytest.approx(1e-2 * thin[:-1].sum(), rel=1e-2)
    assert read_after(text, "first at t =") == pytest.approx(result.t[thin.argmax()])
    assert read_after(text, "s:") == pytest.approx(-0.5 * SIZE[2], rel=1e-2)
    expected = model(*SIZE, contact=Contact(expected=True), **options)
    simulate(moved(expected, deepest, ends), until=1.0)
    simulate(moved(film, 0.9 * SIZE[2], ends), until=1.0)


def test_a_film_that_is_too_thin_for_its_cells_says_so_when_the_run_ends():
    """With the estimates of the errors, and the cells that would do."""
    told = (
        r"`film` \(FiniteBearing\): its film was too thin for its cells for (\S+) s, first at t = "
        r"(\S+) s, most at t = 0.5 s: with 64 around, forces were up to about 2.3 % off there and "
        r"damping 18 %\. Take cells=\(156, 16\)\."
    )
    with pytest.warns(BiellaWarning, match=told) as warned:
        result = simulate(moved(FiniteBearing(*SIZE), 0.95 * SIZE[2], 1), until=1.0)
    found = re.search(told, str(warned[0].message))
    assert found is not None
    seconds, first = map(float, found.groups())
    thin = result["film.film"] < 0.0715 * SIZE[2]
    assert (seconds, first) == pytest.approx((1e-2 * thin.sum(), result.t[thin.argmax()]))
    simulate(moved(FiniteBearing(*SIZE, cells=(156, 16)), 0.95 * SIZE[2], 1), until=1.0)
    simulate(moved(FiniteBearing(*SIZE), 0.92 * SIZE[2], 1), until=1.0)


def test_what_a_block_counts_belongs_to_the_state():
    plan = moved(FiniteBearing(*SIZE, cells=(256, 2)), 1.5 * SIZE[2], 1).compile()
    with plan.instantiate() as first, plan.instantiate() as second:
        first.run(60)
        second.restore(first.save())
        texts = []
        for instance in (first, second):
            instance.run(40)
            with pytest.warns(BiellaWarning, match="was thinner than its `film_limit`") as told:
                instance.warn(DIAGNOSTIC_RUN)
            texts.append(str(told[0].message))
            instance.initialize()
            instance.warn(DIAGNOSTIC_RUN)  # nothing is left of it
    assert texts[0] == texts[1]


def moved(film, deepest, ends):
    """Return a film whose journal moves by half a sine of this amplitude in a second."""
    d = Diagram("moved", step=1e-2)
    d.add(film, name="film")
    wave = d.add(Sine(amplitude=deepest, frequency=0.5), name="wave")
    still = d.add(Constant(0.0), name="still")
    both = d.add(Mux(2 * ends), name="both")
    for k in range(2 * ends):
        d.connect(still if k % 2 else wave, both[f"u{k + 1}"])
    d.connect(both, film["position"])
    return d


def read_after(text, words):
    """Return the first number after some words."""
    return float(text.split(f" {words} ", 1)[1].split()[0].rstrip(","))
