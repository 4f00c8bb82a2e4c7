"""Signs of loads."""

from __future__ import annotations

import numpy as np

from biella.blocks.multibody import System

from .drawn import scene_of


def test_arrows_turn_with_the_right_hand() -> None:
    for torque, turn in ((1.0, 1.0), (-1.0, -1.0)):
        s = System("fan", (0, 0), planar=True)
        fan = s.body("fan", mass=1, inertia=1.0)
        pin = s.revolute("pin", s.ground, fan, at=(0, 0))
        load = s.torque("motor", pin, torque)
        arc = load.draw(scene_of(s).frames[0], scene_of(s).paper)[0].points
        cross = arc[:-1, 0] * arc[1:, 1] - arc[:-1, 1] * arc[1:, 0]
        assert (np.sign(cross) == turn).all()
