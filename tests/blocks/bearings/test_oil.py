"""Warm oil: laws of viscosity against their points, and balances solved by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from biella import Diagram, simulate
from biella.blocks import (
    Constant,
    FiniteBearing,
    LongBearing,
    MisalignedShortBearing,
    OilTemperature,
    ShortBearing,
)
from biella.blocks.bearings import Hole, Vogel, Walther
from biella.blocks.bearings._analysis import open_film
from biella.errors import BlockError, DiagramError

pytestmark = pytest.mark.engine

R, L, C, MU, OMEGA = 0.02, 0.02, 2e-5, 0.03, 300.0
VG46 = Walther((313.15, 46e-6), (373.15, 6.8e-6), 870.0)
VOGEL = Vogel.through([(313.15, 0.040), (343.15, 0.0135), (373.15, 0.0065)])
LAWS = {"Walther": VG46, "Vogel": VOGEL}


def test_laws_go_through_their_points():
    for temperature, viscosity in ((313.15, 46e-6), (373.15, 6.8e-6)):
        assert VG46.viscosity(temperature) == pytest.approx(870 * viscosity, rel=1e-12)
    for temperature, viscosity in ((313.15, 0.040), (343.15, 0.0135), (373.15, 0.0065)):
        assert VOGEL.viscosity(temperature) == pytest.approx(viscosity, rel=1e-12)
    # In between Walther's is the straight line of log log against log.
    middle = math.sqrt(313.15 * 373.15)
    points = [math.log10(math.log10(v + 0.7)) for v in (46, 6.8)]
    wanted = 10**10 ** np.mean(points) - 0.7
    assert VG46.viscosity(middle) == pytest.approx(870e-6 * wanted, rel=1e-12)


def warm(bearing, law, flow=None, start=313.15, capacity=20.0, until=600.0, **options):
    """A journal that turns in one place, and its oil, after a while."""
    d = Diagram("warm", step=0.1, solver="rk4")
    film = d.add(bearing, name="film")
    oil = d.add(
        OilTemperature(law, heat_capacity=capacity, temperature=start, **options), name="oil"
    )
    place = d.add(Constant(np.tile([0.5 * C, 0.1 * C], bearing.ends), unit="m"), name="place")
    d.connect(place, film["position"])
    d.connect(d.add(Constant(OMEGA, unit="rad/s"), name="spin"), film["journal_speed"])
    d.connect(film["power_loss"], oil["power_loss"])
    d.connect(oil["viscosity"], film["viscosity"])
    if flow == "side":
        d.connect(film["side_flow"], oil["flow"])
    elif flow is not None:
        d.connect(d.add(Constant(flow, unit="m3/s"), name="flow"), oil["flow"])
    record = ["oil.temperature", "oil.viscosity", "film.power_loss"]
    result = simulate(d, until=until, record=record)
    return tuple(float(result[name][-1]) for name in record)


def petroff(viscosity):
    return 2 * np.pi * viscosity * OMEGA**2 * R**3 * L / C


MODELS = {
    "short": lambda **k: ShortBearing(R, L, C, MU, **k),
    "tilted": lambda **k: MisalignedShortBearing(R, L, C, MU, **k),
    "long": lambda **k: LongBearing(R, L, C, MU, **k),
    "finite": lambda **k: FiniteBearing(R, L, C, MU, cells=(64, 4), **k),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_oil_warms_until_heat_is_balanced(model, law):
    """2π μ(T) ω² r³ L / c = ρ c Q (T - T_s) + G (T - T_a), solved by bisection."""
    flow, conductance = 2e-6, 0.4
    found, viscosity, loss = warm(
        model(friction="petroff", viscosity_input=True),
        law,
        flow,
        conductance=conductance,
        supply_temperature=313.15,
        ambient_temperature=300.0,
    )

    def left(temperature):
        carried = 870.0 * 1900.0 * flow * (temperature - 313.15)
        lost = conductance * (temperature - 300.0)
        return petroff(law.viscosity(temperature)) - carried - lost

    wanted = brentq(left, 300.0, 500.0, xtol=1e-12)
    assert wanted > 320
    assert found == pytest.approx(wanted, abs=1e-6)
    assert viscosity == pytest.approx(law.viscosity(wanted), rel=1e-6)
    assert loss == pytest.approx(petroff(law.viscosity(wanted)), rel=1e-6)


def test_way_to_the_balance():
    """With a viscosity that does not change, T nears its end like exp(-t G / C)."""
    law = Vogel(MU, 1e-9, 0.0)
    bearing = MODELS["short"](friction="petroff", viscosity_input=True)
    found, *_ = warm(
        bearing, law, capacity=50.0, until=40.0, conductance=1.0, ambient_temperature=313.15
    )
    wanted = 313.15 + petroff(MU) * (1 - math.exp(-40.0 / 50.0))
    assert found == pytest.approx(wanted, rel=1e-9)


def test_own_flow_cools_a_fed_bearing():
    """Loss and leakage of the film that has the viscosity in the end balance each other."""
    film = FiniteBearing(
        R, L, C, MU, cells=(24, 6), viscosity_input=True, feeds=[Hole(3.0, 4e-3, 5e5)]
    )
    found, viscosity, loss = warm(film, VG46, "side", supply_temperature=310.0)
    plain = FiniteBearing(R, L, C, viscosity, cells=(24, 6), feeds=[Hole(3.0, 4e-3, 5e5)])
    with open_film(plain) as alone:
        alone.ask(np.array([0.5 * C, 0.1 * C]), np.zeros(2), OMEGA, 0.0)
        leak = alone.read("side_flow").sum()
        assert alone.read("power_loss")[0] == pytest.approx(loss, rel=1e-6)
    assert found == pytest.approx(310.0 + loss / (870.0 * 1900.0 * leak), abs=1e-3)


def test_unwired_viscosity_is_the_given_one(ask):
    given, wired = (
        ask(ShortBearing(R, L, C, MU, viscosity_input=v), [0.5 * C, 0.0], speed=OMEGA)["force"]
        for v in (False, True)
    )
    np.testing.assert_array_equal(given, wired)


def test_oil_too_cold_for_its_law_stops_the_run():
    d = Diagram("cold", step=0.1)
    d.add(OilTemperature(VOGEL, heat_capacity=1.0, temperature=20.0), name="oil")
    with pytest.raises(BlockError, match=r"at 20 K, where its law gives no viscosity.*in °C"):
        simulate(d, until=1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Walther((373.15, 6.8e-6), (313.15, 46e-6), 870.0), "a cold and a hot point"),
        (lambda: Walther((313.15, 46e-6), (373.15, 6.8e-6), 0.0), "needs a density"),
        (lambda: Vogel.through([(300, 0.1), (320, 0.05)]), "goes through three points"),
        (lambda: Vogel.through([(300, 0.1), (320, 0.05), (340, 0.2)]), "three points"),
        (lambda: OilTemperature(0.03, heat_capacity=1.0), "is a Vogel"),  # type: ignore[arg-type]
        (lambda: OilTemperature(VG46, heat_capacity=0.0), "positive `heat_capacity`"),
        (lambda: OilTemperature(VG46, heat_capacity=1.0, conductance=-1.0), "not negative"),
        (lambda: OilTemperature(VG46, heat_capacity=1.0, supply_temperature=-9.0), "not negative"),
        (lambda: OilTemperature(VG46, heat_capacity="much"), "positive `heat_capacity`"),  # type: ignore[arg-type]
    ],
)
def test_bad_oil_is_refused(make, message):
    with pytest.raises(DiagramError, match=message):
        make()
