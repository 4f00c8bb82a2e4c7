"""Shapes for pictures: listed by body, read only, and no part of the mechanism."""

import numpy as np
import pytest

from biella.blocks.multibody import System
from biella.blocks.multibody.system._visuals import Visual


def test_shapes_are_listed_by_body_and_are_no_parts():
    s = System("s")
    body = s.body("body", mass=1.0, inertia=1.0, free=True)
    assert not s.visuals
    ball = Visual("sphere", (0.1,), np.zeros(3), np.eye(3))
    before = list(s.parts), list(s.parameters()), s.block().integers
    s._add_visual(body, ball)
    assert dict(s.visuals) == {"body": [ball]}
    assert (list(s.parts), list(s.parameters()), s.block().integers) == before
    with pytest.raises(TypeError):
        s.visuals["other"] = []  # type: ignore[index]
    with pytest.raises(AttributeError):
        ball.kind = "box"  # type: ignore[misc]
