"""Scenes: ground, rails, bodies."""

from __future__ import annotations

import pytest

from biella.blocks.multibody import System, mechanisms
from biella.blocks.multibody.drawing._picture import draw

from .drawn import scene_of, slider_crank_motion, text_boxes


def test_a_place_on_the_ground_is_hatched_once() -> None:
    s = System("cart", (0, -9.81), planar=True)
    cart = s.body("cart", mass=1, inertia=1.0)
    s.prismatic("slide", s.ground, cart, at=(0, 0), axis=(1, 0))
    wall = s.ground.marker("wall", (-1, 0))
    s.spring("coil", wall, cart.marker("a"), stiffness=1.0)
    once = len(scene_of(s).ground)
    s.spring("pot", wall, cart.marker("b"), damping=1.0)
    assert len(scene_of(s).ground) == once


def test_a_body_alone_is_drawn() -> None:
    s = System("stone", (0, 0, -9.81))
    s.body("stone", mass=1, inertia=1.0, free=True)
    assert "stone" in text_boxes(draw(s))


def test_rails_are_as_long_as_the_travel() -> None:
    system = mechanisms.slider_crank()
    low, high = scene_of(system, slider_crank_motion(401)).rails["slide"]
    assert (low, high) == pytest.approx((1.0, 3.0), abs=1e-3)
