"""Equilibria against closed forms, and against where the engine comes to rest."""

from __future__ import annotations

import numpy as np
import pytest

from biella import Diagram, DiagramError, simulate
from biella.blocks.multibody import System
from biella.blocks.multibody.mechanisms import (
    mcpherson,
)

pytestmark = pytest.mark.engine

G = 9.81


def sprung_pendulum(stiffness, angle=0.0):
    """A bob of 1 kg on 1 m, upright at angle 0, with a spring at the pin."""
    s = System("pendulum", (0, -G), planar=True)
    place = (-np.sin(angle), np.cos(angle))
    bob = s.body("bob", mass=1.0, inertia=0.2, position=place, rotation=angle)
    pin = s.revolute("pin", s.ground.marker("pin"), bob.marker("pin", (0, -1)))
    s.torsional_spring("spring", pin, stiffness=stiffness)
    return s


def test_a_soft_spring_lets_an_upright_pendulum_buckle():
    """k θ = m g l sin θ: upright is unstable for k < m g l, and there are two others."""
    upright = sprung_pendulum(5.0).equilibrium()
    assert upright.stability == "unstable"
    assert upright.iterations == 0
    # K / M = (k - m g l) / (J + m l²)
    assert upright.stiffnesses == pytest.approx([(5.0 - G) / 1.2], rel=1e-6)
    bent = sprung_pendulum(5.0, 0.1).equilibrium()
    theta = np.arctan2(-bent["bob"].position[0], bent["bob"].position[1])
    assert bent.stability == "stable"
    assert 5.0 * theta == pytest.approx(G * np.sin(theta), abs=1e-7)
    assert theta > 1.0
    assert sprung_pendulum(20.0, 0.5).equilibrium().stability == "stable"
    # The pin carries the weight.
    assert np.allclose(bent.reactions["pin"].force_j, [0, G, 0], atol=1e-7)


def test_mcpherson_rests_where_the_engine_comes_to_rest():
    s = mcpherson()
    found = s.equilibrium()
    assert found.stability == "neutral"  # wheel, tie rod and top mount spin freely
    d = Diagram("rest", step=2e-4)
    d.add(s.block(outputs=["wheel.position", "strut.position"]), name="plant")
    still = {"plant.ground.road.z.amplitude": 0.0}
    result = simulate(d, 6.0, every=1000, parameters=still)
    # Travel creeps back as exp(-2.83 t): 4e-8 of the 6 mm are left after six seconds.
    for name in ("wheel", "strut"):
        assert np.allclose(result[f"plant.{name}.position"][-1], found[name].position, atol=1e-8)


def test_a_cart_that_nothing_holds_has_no_equilibrium():
    s = System("cart", (0, -G), planar=True)
    cart = s.body("cart", mass=1.0, inertia=1.0)
    s.prismatic("slide", s.ground, cart, at=(0, 0), axis=(1, 0))
    s.force("wind", cart.marker("sail"), (1.0, 0.0))
    with pytest.raises(DiagramError, match=r"no equilibrium.*`cart` is pushed"):
        s.equilibrium()
