"""The fast check of given poses agrees with the model that solves them."""

from __future__ import annotations

from typing import Any

import pytest

from biella.blocks.multibody import Input, System
from biella.blocks.multibody.analysis import _given_pose, _pose
from biella.blocks.multibody.analysis._given_pose import check_pose
from biella.errors import DiagramError


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count how often the model is asked."""
    calls: list[int] = []
    found = _pose.find_start

    def find_start(*args: Any, **options: Any) -> object:
        calls.append(1)
        return found(*args, **options)

    monkeypatch.setattr(_pose, "find_start", find_start)
    return calls


def pair(gap: float, **options: Any) -> System:
    """A bar between two pins that are 1 m apart, but for a gap."""
    s = System("bar", planar=True)
    bar = s.body("bar", mass=1.0, inertia=0.1)
    s.revolute("a", s.ground.marker("a", (0, 0)), bar.marker("a", (0, 0)))
    tip = s.ground.marker("b", (1.0 + gap, 0.0), **options)
    s.revolute("b", tip, bar.marker("b", (1.0, 0.0)))
    return s


def test_a_closed_pose_asks_no_model(searched: list[int]) -> None:
    check_pose(pair(0.0))
    check_pose(pair(9e-6))
    assert searched == []


def test_an_open_pose_is_solved_and_refused(searched: list[int]) -> None:
    with pytest.raises(DiagramError, match="`b`"):
        check_pose(pair(0.1))
    assert searched == [1]


def test_prescribed_values_are_always_solved(searched: list[int]) -> None:
    s = System("pendulum", planar=True)
    rod = s.body("rod", mass=1.0, inertia=0.1, position=(0.5, 0.0))
    s.revolute("pin", s.ground, rod, at=(0.0, 0.0))
    check_pose(s)
    assert searched == []
    check_pose(s, initial={"pin.angle": 0.3})
    assert searched == [1]


def test_a_driver_that_starts_elsewhere_is_solved(searched: list[int]) -> None:
    s = System("pendulum", planar=True)
    rod = s.body("rod", mass=1.0, inertia=0.1, position=(0.5, 0.0))
    pin = s.revolute("pin", s.ground, rod, at=(0.0, 0.0))
    s.driver("drive", pin, "0.2 + t")
    check_pose(s)
    assert searched == [1]


def test_what_an_input_moves_is_left_to_the_run(searched: list[int]) -> None:
    check_pose(pair(0.1, motion={"x": Input()}))
    check_pose(pair(0.1, motion={"x": 0.0}), inputs=["ground.b.x"])
    assert searched == []


def test_large_systems_are_left_to_the_run(searched: list[int]) -> None:
    s = pair(0.1)
    for k in range(_given_pose._LARGEST):
        s.body(f"more_{k}", mass=1.0, inertia=0.1, free=True)
    check_pose(s)
    assert searched == []
