"""Forces and torques on markers, in the axes of world, body and marker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella.blocks.multibody import Load, System

from ..small_systems import arm, flat, run

pytestmark = pytest.mark.engine


def test_loads_in_axes_of_the_world_the_body_and_the_marker():
    """A body that turns at a constant speed: a force fixed on it turns too."""
    omega = 3.0
    frames: list[Any] = ["world", "body", "marker"]
    for frame in frames:
        s = System("thrust", gravity=(0, 0, 0))
        body = s.body("body", mass=2.0, inertia=0.1, angular_velocity=(0, 0, omega), free=True)
        if frame == "marker":
            s.force("thrust", body.marker("nozzle", axis=(1, 0, 0)), 4.0)
        else:
            s.force("thrust", body.marker("nozzle"), (4.0, 0.0, 0.0), frame=frame)
        t, (v,) = run(s, 1.0, ["body.velocity"])
        if frame == "world":
            expected = np.outer(2.0 * t, [1, 0, 0])
        else:
            expected = (
                np.column_stack([np.sin(omega * t), 1 - np.cos(omega * t), 0 * t]) * 2 / omega
            )
        assert np.allclose(v, expected, atol=1e-9), frame


def test_torques_on_markers_turn_the_body_whole():
    """A torque has no place: the body turns about its center of mass. About a marker's z, too."""
    for torque in ((0.0, 0.0, 0.6), 0.6):
        s = System("spin", gravity=(0, 0, 0))
        body = s.body("body", mass=2.0, inertia=0.3, free=True)
        s.torque("motor", body.marker("far", (1.0, 2.0, 0.0)), torque)
        _, (w, v) = run(s, 1.0, ["body.angular_velocity", "body.velocity"])
        assert np.allclose(w[-1], [0, 0, 2.0], atol=1e-11)
        assert np.abs(v).max() < 1e-12


def test_one_number_acts_along_the_axis_of_a_marker() -> None:
    s, body = arm()
    load = s.torque("motor", body.marker("m", axis=(0, 1, 0)), 10.0)
    assert isinstance(load, Load) and load.frame == "marker"
    assert [law.value(0.0) for law in load.components] == [0, 0, 10]
    s, body = flat()
    load = s.force("push", body.marker("m", axis=(0, 1)), 10.0)
    assert isinstance(load, Load)
    assert [law.value(0.0) for law in load.components] == [10, 0, 0]
