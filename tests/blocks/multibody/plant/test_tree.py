"""Joints that close a loop behave as those of the tree, whichever is cut."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from biella.blocks.multibody import Joint, Linear, System
from biella.blocks.multibody.plant._tree import grow_tree

from ..small_systems import friction_loop, run

pytestmark = pytest.mark.engine


def test_efforts_and_outputs_are_the_same_wherever_a_loop_is_cut():
    outputs = [f"{pin}.{what}" for pin in "abcd" for what in ("angle", "speed", "acceleration")]
    cut, runs = set(), []
    for order in ("abcd", "dcba"):
        s = friction_loop(order)
        tree = grow_tree(s)
        cut |= {joint.name for joint in tree.cuts}
        runs.append(np.array(run(s, 2.0, outputs)[1]))
    assert len(cut) == 2
    # The crank, at 9 rad/s, makes more than a turn; what RK4 leaves depends on the coordinates.
    assert np.ptp(runs[0][0]) > 2 * np.pi
    for one, other in zip(*runs, strict=True):
        assert np.abs(one - other).max() < 1e-6 * np.abs(one).max()
    # The pins lie in one loop: their speeds add up to none.
    assert np.abs(runs[0][1::3].sum(axis=0)).max() < 1e-10


def test_angles_of_a_loop_are_unwrapped_and_saved():
    """A parallelogram: both cranks turn alike for three turns, whichever pin was cut."""
    s = System("parallelogram", gravity=(0, 0, 0))
    z = (0, 0, 1)
    one = s.body("one", mass=1, inertia=0.1, position=(0, 0.5, 0))
    two = s.body("two", mass=1, inertia=0.1, position=(2, 0.5, 0))
    bar = s.body("bar", mass=1, inertia=0.1, position=(1, 1, 0))
    s.revolute("a", s.ground, one, at=(0, 0, 0), axis=z)
    s.revolute("b", one, bar, at=(0, 1, 0), axis=z)
    s.revolute("c", bar, two, at=(2, 1, 0), axis=z)
    s.revolute("d", s.ground, two, at=(2, 0, 0), axis=z)
    s.driver("turn", cast(Joint, s["a"]), Linear(0.0, 10.0))
    s.driver(
        "level", cast(Joint, s["d"]), Linear(0.0, 10.0)
    )  # keeps it a parallelogram where it is flat
    (cut,) = (joint.name for joint in grow_tree(s).cuts)
    t, (angle, speed) = run(s, 2.0, [f"{cut}.angle", f"{cut}.speed"])
    sign = -1.0 if cut == "b" else 1.0
    assert np.allclose(angle, sign * 10.0 * t, atol=1e-9)
    assert np.allclose(speed, sign * 10.0, atol=1e-9)
