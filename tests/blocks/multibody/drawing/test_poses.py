"""Poses between recorded times, and their checks."""

from __future__ import annotations

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks.multibody import mechanisms
from biella.blocks.multibody.drawing._poses import (
    Poses,
    Snapshot,
    given_poses,
    read_poses,
    snapshots,
)
from biella.blocks.multibody.system._rotations import rotation_about

from .drawn import slider_crank_motion


def test_poses_between_times() -> None:
    motion = slider_crank_motion(3, turns=0.25)
    flipped = Poses(motion.times, motion.positions, motion.quaternions * [[[1]], [[-1]], [[1]]])
    for poses in (motion, flipped):
        middle = poses.at(np.array([0.25]))
        turn = snapshots(middle)[0].rotation(mechanisms.slider_crank().bodies[0])
        # Halfway between two turns about one axis, whatever the signs of the parameters.
        assert turn == pytest.approx(rotation_about((0, 1, 0), -np.pi / 8), abs=1e-12)
    assert motion.at(np.array([-1.0, 9.0])).positions == pytest.approx(motion.positions[[0, -1]])


def test_bad_poses_are_reported() -> None:
    system, motion = mechanisms.slider_crank(), slider_crank_motion(5)
    t, p, e = motion.times, motion.positions, motion.quaternions
    spoilt = p.copy()
    spoilt[3, 0, 0] = np.nan
    for value, words in (
        ((t, p[:, :2], e), r"`positions` .* \(5, 2, 3\); .* 3 bodies .* must be \(5, 3, 3\)"),
        ((t, p, e[:4]), r"`quaternions` of the poses has shape \(4, 3, 4\)"),
        ((t[::-1], p, e), "`times` of the poses must rise: 0.75 s comes after 1 s"),
        ((t, spoilt, e), "`positions` of the poses must be finite; row 3 is not"),
        ((t, p, 2 * e), "those of `crank` in row 0 have length 2"),
        (([], p[:0], e[:0]), "with at least one time"),
        (7, r"poses are \(times, positions, quaternions\), Poses, or the result of a run; got int"),
    ):
        with pytest.raises(DiagramError, match=words):
            read_poses(system, value)


def test_a_snapshot_knows_moving_markers() -> None:
    system = mechanisms.mcpherson()
    given = given_poses(system)
    frame = Snapshot(0.1, given.positions[0], given.quaternions[0])
    road = frame.point(system["ground.road"])  # type: ignore[arg-type]
    # 0.03 sin(15.708 · 0.1) at the top of its first wave.
    assert road == pytest.approx([0.452, -0.410, -0.300], abs=1e-9)
