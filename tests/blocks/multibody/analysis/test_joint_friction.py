"""Friction from reactions that are not unique is named."""

from __future__ import annotations

from typing import Any, cast

import pytest

from biella import BiellaWarning
from biella.blocks.multibody import Joint, System
from biella.blocks.multibody.analysis._joint_friction import LARGEST_CHECKED, warn_of_doubt
from biella.blocks.multibody.mechanisms import slider_crank

from ..elements.friction.test_joint_friction import piston_engine
from ..small_systems import run

pytestmark = pytest.mark.engine


def shaft(*second: str) -> System:
    """A shaft in a revolute, and by a second joint of another kind, all with friction."""
    s = System("shaft")
    body = s.body("body", mass=1.0, inertia=0.1)
    first = s.revolute("left", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))
    s.friction("rub", first, coefficient=0.1, diameter=0.05, length=0.1)
    for kind in second:
        getattr(s, kind)("right", s.ground, body, at=(0, 0, 1), axis=(0, 0, 1))
    return s


def test_a_second_bearing_makes_the_load_of_the_first_ambiguous() -> None:
    """A revolute alone holds all five; each row of a second one can be loaded against it."""
    assert warn_of_doubt(shaft()) == ""
    assert "friction `rub` follows from reactions that are not unique" in warn_of_doubt(
        shaft("revolute")
    )
    assert "`rub`" in warn_of_doubt(shaft("cylindrical"))


def test_a_reaction_along_the_axis_alone_is_no_normal_load() -> None:
    """The redundant row of a joint that holds the shaft along its axis loads neither across."""
    s = shaft()
    body = s.bodies[0]
    s.in_plane("collar", s.ground, body, at=(0, 0, 1), axis=(0, 0, 1))
    assert warn_of_doubt(s) == ""


def test_large_mechanisms_are_not_checked() -> None:
    s = shaft("revolute")
    for k in range(LARGEST_CHECKED):
        s.body(f"more_{k}", mass=1.0, inertia=0.1, free=True)
    assert warn_of_doubt(s) == ""


def test_without_an_initial_state_the_run_reports_the_reason() -> None:
    s = shaft()
    body = s.bodies[0]
    s.revolute("far", s.ground.marker("f", (0, 0, 9)), body.marker("n", (0, 0, 1)))
    assert warn_of_doubt(s) == ""


def test_friction_of_redundant_joints_is_in_doubt():
    s = slider_crank()
    size: dict[str, Any] = {"coefficient": 0.1, "diameter": 0.05, "length": 0.1}
    for name in ("main", "slide"):
        s.friction(f"rub_{name}", cast(Joint, s[name]), **size)
    with pytest.warns(BiellaWarning, match=r"friction `rub_main`.* not unique.*redundant"):
        run(s, 0.01, ["rub_main.torque"])
    report = s.report()
    assert "rub_main" in report.doubtful_friction
    assert "friction `rub_main`" in str(report)
    planar = piston_engine(0.7, 20.0, 0.1)
    assert planar.report().doubtful_friction == ()
