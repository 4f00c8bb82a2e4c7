"""Shapes of bodies from their markers."""

from __future__ import annotations

import numpy as np
import pytest

from .drawn import READY, scene_of


def test_shapes_follow_from_markers() -> None:
    kinds = {
        name: {n: shape.kind for n, shape in scene_of(READY[name]()).shapes.items()}
        for name in ("slider_crank", "mcpherson", "pendulum_on_cart", "cardan")
    }
    assert kinds["slider_crank"] == {"crank": "rod", "rod": "rod", "slider": "block"}
    assert kinds["pendulum_on_cart"] == {"cart": "block", "pendulum": "rod"}
    assert kinds["mcpherson"]["wheel"] == "disc"
    assert kinds["mcpherson"]["strut"] == "plate"
    assert kinds["mcpherson"]["top_mount"] == "block"
    assert kinds["cardan"] == {"input": "plate", "cross": "plate", "output": "plate"}
    # J = m r²/2: a wheel of 25 kg and 0.1 kg m² has r = 0.0894 m.
    wheel = scene_of(READY["mcpherson"]()).shapes["wheel"]
    assert wheel.disc == pytest.approx(np.sqrt(2 * 0.1 / 25))
