"""Assembly: poses and velocities that joints allow, and joints that do not close."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks.multibody import Input, Joint, System
from biella.blocks.multibody.mechanisms import (
    slider_crank,
)

pytestmark = pytest.mark.engine

G = 9.81


def loose_four_bar(reach):
    """Three bars of 1 m, given apart from each other, between feet `reach` apart."""
    s = System("linkage", (0, -G), planar=True)
    a = s.body("crank", mass=1, inertia=1, position=(0, 0.5), rotation=np.pi / 2)
    b = s.body("coupler", mass=1, inertia=1, position=(0.5, 1))
    c = s.body("rocker", mass=1, inertia=1, position=(reach - 1, 0.5), rotation=np.pi / 2)
    s.revolute("foot", s.ground.marker("a"), a.marker("foot", (-0.5, 0)))
    s.revolute("knee", a.marker("top", (0.5, 0)), b.marker("left", (-0.5, 0)))
    s.revolute("hinge", b.marker("right", (0.5, 0)), c.marker("top", (0.5, 0)))
    s.revolute("heel", s.ground.marker("b", (reach, 0)), c.marker("foot", (-0.5, 0)))
    return s


def test_assembly_closes_joints_that_were_given_open():
    s = loose_four_bar(1.5)
    assembly = s.assemble()
    assert assembly.error < 1e-12
    assert str(assembly.gaps["heel"]) == "1 m"
    assert set(assembly.gaps) == {"heel", "hinge"}
    assert 0.1 < assembly.correction < 1.5
    pins = []
    for name, end in (("crank", 0.5), ("coupler", -0.5), ("coupler", 0.5), ("rocker", 0.5)):
        body = assembly[name]
        pins.append(body.position + end * body.rotation[:, 0])
    assert np.allclose(pins[0], pins[1], atol=1e-11)
    assert np.allclose(pins[2], pins[3], atol=1e-11)
    assert assembly.poses.positions.shape == (1, 3, 3)
    assert "`heel` was open by 1 m" in str(s.report())


def test_a_large_mechanism_closes_to_the_digits_it_has():
    """A crank of 1 km, given 10 m off, on a rod of 3 km: 1e-12 m is beyond its numbers."""
    s = System("crane", (0, -G), planar=True)
    crank = s.body("crank", mass=1, inertia=1, position=(500.0, 10.0))
    s.revolute("foot", s.ground.marker("foot"), crank.marker("foot", (-500.0, 0)))
    far = s.ground.marker("far", (4000.0, 100.0))
    s.distance("rope", far, crank.marker("tip", (500.0, 0)), length=3020.0)
    assert s.assemble().error < 1e-6  # of a squared length of 1e7 m²
    s.block()


def test_a_linkage_that_is_too_short_names_the_joint_and_its_gap():
    """Bars of 3 m in all between feet 4 m apart: one meter is missing, whatever the pose."""
    s = loose_four_bar(4.0)
    for make in (s.assemble, s.block):
        with pytest.raises(DiagramError) as caught:
            make()
        text = str(caught.value)
        assert "open by 1 m" in text
        named = [name for name in ("foot", "knee", "hinge", "heel") if f"`{name}` of" in text]
        assert len(named) == 1
        # The others of the loop are named as the places to look at.
        assert all(f"`{name}`" in text for name in ("foot", "knee", "hinge", "heel"))


def test_a_pose_that_an_input_chooses_is_left_to_the_run():
    s = slider_crank(planar=True)
    s.driver("push", cast(Joint, s["slide"]), Input("place"))
    with pytest.raises(DiagramError, match="open by"):
        s.assemble()  # the default, 0, is out of reach
    assert s.block().inputs


def test_a_distance_that_cannot_be_reached_is_reported_in_meters():
    s = System("rods", (0, 0, -G))
    bob = s.body("bob", mass=1, inertia=1, position=(1, 0, 0), free=True)
    for name, x in (("left", 0.0), ("right", 5.0)):
        s.distance(name, s.ground.marker(name, (x, 0, 0)), bob.marker(name), length=1.0)
    with pytest.raises(DiagramError, match="open by"):
        s.assemble()


def test_velocities_that_joints_forbid_are_projected_and_reported():
    """A point mass on a rod keeps only the part of its velocity across the rod."""
    s = System("pendulum", (0, -G), planar=True)
    bob = s.body("bob", mass=2.0, inertia=0.0, position=(1, 0), velocity=(3, 4))
    s.revolute("pin", s.ground, bob, at=(0, 0))
    assembly = s.assemble()
    assert np.allclose(assembly["bob"].velocity, [0, 4, 0], atol=1e-9)
    assert assembly["bob"].angular_velocity[2] == pytest.approx(4.0, abs=1e-9)
    assert assembly.velocity_correction == pytest.approx(3.0, abs=1e-9)
    assert "those given are impossible" in str(s.report())
