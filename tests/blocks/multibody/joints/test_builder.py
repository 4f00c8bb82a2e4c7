"""Joints that cannot be made, and the messages."""

from __future__ import annotations

import math

import pytest

from biella import DiagramError
from biella.blocks.multibody import System

from ..small_systems import arm


def test_bad_joints_teach() -> None:
    s, body = arm()
    m, other = body.marker("m"), System("other")
    with pytest.raises(DiagramError, match="`j` ties `arm` to itself"):
        s.revolute("j", m, body.marker("n"))
    with pytest.raises(DiagramError, match="`j` ties `arm` to itself"):
        s.revolute("j", body, body, at=(0, 0, 0), axis=(0, 0, 1))
    with pytest.raises(DiagramError, match=r"but where\? Give at="):
        s.revolute("j", s.ground, body)
    with pytest.raises(DiagramError, match="needs axis="):
        s.revolute("j", s.ground, body, at=(0, 0, 0))
    with pytest.raises(DiagramError, match="give the markers alone"):
        s.revolute("j", s.ground.marker("g"), m, at=(0, 0, 0))
    with pytest.raises(DiagramError, match="of another system, `other`"):
        s.revolute("j", other.ground.marker("m"), m)
    with pytest.raises(DiagramError, match=r"requires a marker, such as arm.marker"):
        s.revolute("j", s.ground.marker("h"), body)
    with pytest.raises(DiagramError, match=r"two axes are at 0° .*not those of the shafts"):
        s.universal("j", s.ground.marker("k", axis=(1, 0, 0)), body.marker("k", axis=(1, 0, 0)))
    with pytest.raises(DiagramError, match=r"two axes are at 80°"):
        skewed = (math.cos(math.radians(80)), math.sin(math.radians(80)), 0)
        s.universal("j", s.ground, body, at=(0, 0, 0), axis=((1, 0, 0), skewed))
    with pytest.raises(DiagramError, match=r"give marker `arm.m` one"):
        s.universal("j", s.ground.marker("l", axis=(1, 0, 0)), m)
    with pytest.raises(DiagramError, match="is a pair"):
        s.universal("j", s.ground, body, at=(0, 0, 0), axis=(1, 0, 0))
    with pytest.raises(DiagramError, match="distance of 0 m: it must be positive"):
        s.distance("j", s.ground.marker("o"), m)
    body.marker("taken")
    with pytest.raises(DiagramError, match=r"would put a marker `arm.taken` on `arm`"):
        s.spherical("taken", s.ground, body, at=(0, 0, 0))
    assert "taken" not in s.ground.markers
    assert not s.joints and "j" not in body.markers and "j" not in s.ground.markers
