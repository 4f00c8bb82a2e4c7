"""The parameters of a system: every number by path."""

from __future__ import annotations

import math

import numpy as np
import pytest

from biella.blocks.multibody import Input, Sine, System, mechanisms


def test_numbers() -> None:
    numbers = mechanisms.mcpherson().parameters()
    assert numbers["strut.mass"].value == 12.1
    assert numbers["suspension.stiffness"].value == 4.22e4
    assert str(numbers["suspension.damping"].unit) == "N.s/m"
    assert numbers["ground.road.z.omega"].value == pytest.approx(5 * math.pi)
    assert numbers["strut.hub.position"].value.tolist() == [
        -0.011009036,
        -0.130331171,
        -0.144181697,
    ]
    assert numbers["gravity"].value.tolist() == [0, 0, -9.80665]
    assert all(item.unit is not None and item.doc for item in numbers.values())
    assert "motor.torque" in mechanisms.slider_crank().parameters()
    assert "drive.force.z" in mechanisms.slider_crank(drive="as listed").parameters()
    planar = mechanisms.four_bar().parameters()
    assert planar["bar0.inertia"].value == 1 / 12
    assert planar["bar0.angle"].value == pytest.approx(math.pi / 2)
    assert planar["bar0.position"].value.tolist() == [0, 0.5]
    assert mechanisms.cardan().parameters()["drive.motion.slope"].value == 2.0
    assert str(mechanisms.cardan().parameters()["drive.motion.slope"].unit) == "rad/s"


def test_every_element_gives_its_numbers() -> None:
    s = System("all")
    arm = s.body("arm", mass=1, inertia=1)
    cyl = s.cylindrical("cyl", s.ground, arm, at=(0, 0, 0), axis=(0, 0, 1))
    rod = s.distance("rod", s.ground.marker("a", (0, 0, 2)), arm.marker("b", (0, 0, 1)))
    s.force("push", cyl, "sin(t)")
    s.torque("turn", cyl, Input())
    s.torsional_spring("twist", cyl, stiffness=2, damping="where(t < 4, 8, 2*abs(v))", free_angle=1)
    s.friction("rub", cyl, viscous=1, coulomb=2, coordinate=1)
    s.stop("end", cyl, upper=1, stiffness=1e5, coordinate=0)
    s.bushing("rubber", rod.first, rod.second, stiffness=range(6))
    s.driver("drive", cyl, Sine(1, 2), coordinate=1)
    numbers = s.parameters()
    assert rod.length == 1 and numbers["rod.length"].value == 1
    assert numbers["turn.torque.default"].value == 0
    assert numbers["rub.coulomb"].unit is not None and str(numbers["rub.coulomb"].unit) == "N.m"
    assert str(numbers["end.stiffness"].unit) == "N/m"
    assert numbers["end.lower"].value == -np.inf
    assert numbers["rubber.stiffness.rz"].value == 5
    assert "twist.damping" not in numbers  # a formula stays as it was given
    assert {"push", "turn", "twist", "rub", "end", "rubber"} == {e.name for e in s.elements}
    assert [driver.coordinate for driver in s.drivers] == [1]
    assert repr(s) == "System('all', 1 bodies, 2 joints, 6 forces, 1 drivers)"
