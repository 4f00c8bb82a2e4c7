"""A rigid rotor on an oil film, in time."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import Constant, FiniteBearing, Gain, Integrator, ShortBearing, Sum

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
