"""The frames of a joint, and where its coordinates are counted from."""

from __future__ import annotations

import numpy as np
import pytest

from biella.blocks.multibody import System
from biella.blocks.multibody.system._rotations import frame_along, rotation_about

from ..pose import Pose


def test_angle_of_bodies_that_turn_about_the_axis() -> None:
    """The angle of a revolute is that between the bodies, in a plane and in space alike."""
    for planar in (True, False):
        s = System("swing", planar=planar)
        angle = 0.3 if planar else rotation_about([0.0, 0.0, 1.0], 0.3)
        arm = s.body("arm", mass=1, inertia=1, rotation=angle)
        if planar:
            joint = s.revolute("pin", s.ground, arm, at=(0, 0))
        else:
            joint = s.revolute("pin", s.ground, arm, at=(0, 0, 0), axis=(0, 0, 1))
        assert Pose(s).coordinate(joint, joint.coordinates[0]) == pytest.approx(0.3, abs=1e-15)


def test_prismatic_holds_the_given_pose() -> None:
    """Markers with an axis only do not turn a body that slides: the open angle is as given."""
    s = System("slide")
    body = s.body("b", mass=1, inertia=1, rotation=rotation_about([0.6, 0.0, 0.8], 1.0))
    axis = np.array([1.0, 2.0, 3.0])
    rail = s.ground.marker("rail", axis=axis)
    shoe = body.marker("shoe", axis=body.rotation.T @ axis)
    s.prismatic("slide", rail, shoe)
    assert np.abs(Pose(s).rows(s)).max() < 1e-15
    # The same if the first marker is the one with an open angle.
    whole = body.marker("whole", rotation=frame_along(shoe.rotation[:, 2], planar=False))
    s.prismatic("other", rail, whole)
    # Where one marker has no axis at all, it takes that of the other.
    s.revolute("hinge", rail, body.marker("plain"))
    s.revolute("hinge2", s.ground.marker("plain"), shoe)
    assert np.abs(Pose(s).rows(s)).max() < 1e-15
