"""Degrees of freedom, redundant constraints and unique reactions of known mechanisms."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from biella.blocks.multibody import Body, Joint, Linear, System
from biella.blocks.multibody.mechanisms import (
    cardan,
    five_bar,
    four_bar,
    mcpherson,
    slider_crank,
)

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(
    ("system", "freedom", "rows", "redundant"),
    [
        (five_bar(), 1, 30, 7),
        (slider_crank(), 1, 19, 2),
        (cardan(), 0, 31, 13),
        (mcpherson(), 4, 26, 0),
        (four_bar(3), 1, 20, 0),
        (four_bar(3, planar=False), 1, 50, 9),
    ],
    ids=lambda item: item.name if isinstance(item, System) else "",
)
def test_report_counts_what_is_redundant_and_names_the_joints(system, freedom, rows, redundant):
    report = system.report()
    assert (report.freedom, report.rows, report.redundant) == (freedom, rows, redundant)
    assert report.mobility == freedom - redundant
    assert report.rank == rows - redundant
    # The smallest singular value that counts is far above the threshold, the next far below.
    assert report.gap[0] > 1e-3 > report.threshold > 1e-12 > report.gap[1]
    assert sum(map(len, report.dependent.values())) == redundant
    assert set(report.dependent) <= {joint.name for joint in system.joints}
    assert set(report.not_unique).isdisjoint(report.unique)
    assert bool(report.not_unique) == bool(redundant)
    text = str(report)
    assert f"{redundant} redundant" in text
    assert ("not unique" in text) == bool(redundant)
    for name in report.dependent:
        assert f"`{name}`" in text


def test_report_separates_unique_reactions_from_shared_ones():
    """A pendulum under the slider hangs on one joint only; a five-bar shares all its forces."""
    s = slider_crank()
    bob = s.body("bob", mass=1.0, inertia=0.1, position=(2.57793547, 0.0, -1.0))
    s.revolute("hook", cast(Body, s["slider"]), bob, at=(2.57793547, 0.0, 0.0), axis=(0, 1, 0))
    report = s.report()
    assert report.unique == ("hook",)
    # The two redundant rows hold the plane: what they share at the pivot acts out of it.
    assert set(report.not_unique["main"]) == {"Fy", "Tz"}
    assert cardan().report().unique == ("drive",)


def test_report_warns_of_drivers_that_contradict_each_other():
    s = four_bar()
    s.driver("left", cast(Joint, s["foot0"]), Linear(np.pi / 2, 1.0))
    s.driver("right", cast(Joint, s["foot1"]), Linear(np.pi / 2, 2.0))
    report = s.report()
    assert not report.consistent
    assert "contradict" in str(report)
    assert report.not_unique["left"] == ["effort"]
