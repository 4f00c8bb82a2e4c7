"""A system as data: what it checks, and that it is read-only."""

from __future__ import annotations

import pytest

from biella import DiagramError
from biella.blocks.multibody import Body, System, mechanisms


def test_description_is_read_only() -> None:
    s = mechanisms.slider_crank()
    crank = s["crank"]
    assert isinstance(crank, Body)
    with pytest.raises(ValueError, match="read-only"):
        crank.position[0] = 1.0
    with pytest.raises(AttributeError):
        crank.mass = 2.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        s.parts["x"] = crank  # type: ignore[index]


def test_validate_lists_all_problems() -> None:
    s = System("loose")
    with pytest.raises(DiagramError, match="has no bodies"):
        s.validate()
    one, two = (s.body(name, mass=1, inertia=1) for name in ("one", "two"))
    s.revolute("pin", one, two, at=(0, 0, 0), axis=(0, 0, 1))
    link = s.body("link", mass=0, inertia=0)
    s.spherical("ball", s.ground, link, at=(0, 0, 0))
    with pytest.raises(DiagramError) as caught:
        s.validate()
    assert len(caught.value.problems) == 2
    assert "nothing ties `one`, `two` to the ground" in caught.value.problems[0]
    assert "`link` has no mass and 1 joints" in caught.value.problems[1]
    s.spring("rope", s.ground.marker("m"), one.marker("m"), stiffness=1)
    s.spherical("ball2", link, two, at=(0, 0, 0))
    s.validate()
