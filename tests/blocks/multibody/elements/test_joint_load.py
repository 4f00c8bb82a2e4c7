"""Efforts on joint coordinates do their work on these alone, also where a loop is cut."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from scipy.integrate import simpson

from biella.blocks.multibody import Joint, Linear, System
from biella.blocks.multibody.plant._tree import grow_tree

from ..small_systems import run

pytestmark = pytest.mark.engine


def quick_return():
    """A crank pin in the slot of a rocker: both turn about the ground, so that the slot is cut."""
    s = System("quick return", gravity=(0, 0, 0))
    crank = s.body("crank", mass=1.0, inertia=0.1, position=(1, 0, 0))
    rocker = s.body("rocker", mass=1.0, inertia=0.5)
    z = (0, 0, 1)
    s.revolute("o", s.ground, rocker, at=(0, 0, 0), axis=z)
    s.revolute("c", s.ground, crank, at=(1, 0, 0), axis=z)
    slot = rocker.marker("slot", axis=(1, 0, 0))
    s.guide("slot", slot, crank.marker("pin", (0.4, 0, 0)))
    s.driver("turn", cast(Joint, s["c"]), Linear(0.0, 5.0))
    return s


def test_a_slot_in_a_turning_body_is_measured_and_pushed():
    """s = |1 + 0.4 exp(5 i t)|; a force in the slot does its work on s and on nothing else."""
    s = quick_return()
    s.force("push", s["slot"], "3 + 10*sin(7*t)")
    assert [joint.name for joint in grow_tree(s).cuts] == ["slot"]
    names = [
        "slot.displacement",
        "slot.speed",
        "slot.acceleration",
        "turn.effort",
        "kinetic_energy",
    ]
    t, (place, speed, acceleration, effort, kinetic) = run(s, 2.0, names)
    square, rate, bend = 1.16 + 0.8 * np.cos(5 * t), -4 * np.sin(5 * t), -20 * np.cos(5 * t)
    exact = np.sqrt(square)
    exact_speed = rate / (2 * exact)
    assert np.allclose(place, exact, atol=1e-9)
    assert np.allclose(speed, exact_speed, atol=1e-8)
    assert np.allclose(acceleration, (bend / 2 - exact_speed**2) / exact, atol=1e-6)
    work = simpson(5.0 * effort + (3 + 10 * np.sin(7 * t)) * speed, x=t)
    assert kinetic[-1] - kinetic[0] == pytest.approx(work, abs=1e-7)


@pytest.mark.parametrize("number", [0, 1])
def test_a_push_beside_the_other_coordinate_does_its_own_work_alone(number):
    """A pin in the plane of a turning body: pushed along x it has an arm of y, and vice versa."""
    s = System("table", gravity=(0, 0, 0))
    crank = s.body("crank", mass=1.0, inertia=0.1, position=(1, 0, 0))
    table = s.body("table", mass=1.0, inertia=0.5)
    for name, body, speed in (("o", table, 2.0), ("c", crank, 5.0)):
        joint = s.revolute(name, s.ground, body, at=body.position, axis=(0, 0, 1))
        s.driver(f"turn_{name}", joint, Linear(0.0, speed))
    joint = s.in_plane("pin", table.marker("top"), crank.marker("pin", (0.4, 0, 0)))
    s.force("push", joint, "3 + 10*sin(7*t)", coordinate=number)
    names = [f"pin.displacement_{number + 1}_speed", "turn_o.effort", "turn_c.effort"]
    t, (speed, table_effort, crank_effort, kinetic) = run(s, 2.0, [*names, "kinetic_energy"])
    power = 2.0 * table_effort + 5.0 * crank_effort + (3 + 10 * np.sin(7 * t)) * speed
    assert np.ptp(speed) > 1.0
    assert kinetic[-1] - kinetic[0] == pytest.approx(simpson(power, x=t), abs=1e-7)
