"""Every kind of joint, in space and in a plane."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from biella.blocks.multibody import System
from biella.blocks.multibody.joints._table import PLANAR, SPATIAL
from biella.blocks.multibody.plant._initial import coordinate_name
from biella.blocks.multibody.plant._tree import grow_tree
from biella.blocks.multibody.system._rotations import rotation_about

from ..pose import Pose, jacobian, rank
from ..small_systems import run

Array = NDArray[np.float64]


def two_bodies(kind: str, planar: bool) -> System:
    """Return two bodies in general pose, with a joint of that kind between them."""
    rng = np.random.default_rng(3)
    size = 2 if planar else 3
    s = System("two", planar=planar)
    ends = []
    for name in ("one", "two"):
        turn = rng.normal(size=1 if planar else 4)
        rotation = float(turn[0]) if planar else turn / np.linalg.norm(turn)
        ends.append(
            s.body(name, mass=1, inertia=1, position=rng.normal(size=size), rotation=rotation)
        )
    at, axis = rng.normal(size=size), rng.normal(size=size)
    if kind == "distance":
        markers = [body.marker("m", rng.normal(size=size)) for body in ends]
        s.distance("j", *markers)
    elif kind in ("fixed", "spherical") or (planar and kind == "revolute"):
        getattr(s, kind)("j", *ends, at=at)
    elif kind == "universal":
        s.universal("j", *ends, at=at, axis=(axis, np.cross(axis, [1.0, 2.0, 3.0])))
    else:
        getattr(s, "planar_joint" if kind == "planar" else kind)("j", *ends, at=at, axis=axis)
    return s


KINDS = [(kind, False) for kind in SPATIAL] + [(kind, True) for kind in PLANAR]


@pytest.mark.parametrize(("kind", "planar"), KINDS)
def test_every_joint_is_closed_and_independent(kind: str, planar: bool) -> None:
    """A joint made at a place in the world closes there, and its rows are independent."""
    system = two_bodies(kind, planar)
    counts = {
        False: dict(
            fixed=6, revolute=5, prismatic=5, cylindrical=4, spherical=3, universal=4, planar=3,
            guide=2, in_plane=1, distance=1,
        ),
        True: dict(fixed=3, revolute=2, prismatic=2, guide=1, distance=1),
    }  # fmt: skip
    matrix = jacobian(system)
    assert len(matrix) == counts[planar][kind]
    assert rank(matrix) == len(matrix)
    assert np.abs(Pose(system).rows(system)).max() < 1e-14


@pytest.mark.parametrize(("kind", "planar"), KINDS)
def test_coordinates_are_what_a_joint_leaves_free(kind: str, planar: bool) -> None:
    """Rows and coordinates together are independent: no coordinate is one that the rows hold."""
    system = two_bodies(kind, planar)
    (joint,) = system.joints
    if not joint.coordinates:
        assert kind in ("fixed", "spherical", "distance")
        return
    size = 6 if planar else 12

    def values(step: Array) -> Array:
        pose = Pose(system, step)
        return np.array([pose.coordinate(joint, one) for one in joint.coordinates])

    free = np.column_stack([(values(e) - values(-e)) / 2e-5 for e in 1e-5 * np.eye(size)])
    matrix = np.vstack([jacobian(system), free])
    assert rank(matrix) == len(matrix)
    # Joints of all free motions named: rows and coordinates fill the relative motion.
    if kind not in ("guide", "in_plane") or planar:
        assert len(matrix) == size // 2
    if not planar:
        assert np.abs(values(np.zeros(size))).max() < 1e-14  # counted from the given pose


def swinging(kind: str, planar: bool, swapped: bool, cut: bool) -> System:
    """Return a body on a joint to the ground, with an arm on it; a marker that moves is not in the
    tree.
    """
    size = 2 if planar else 3
    s = System("swing", planar=planar)
    turn = 0.4 if planar else rotation_about([0.6, 0.0, 0.8], 0.7)
    frame = rotation_about([0.0, 0.0, 1.0], 0.3) if planar else rotation_about([0.0, 0.6, 0.8], 0.9)
    inertia = 0.7 if planar else (0.5, 0.6, 0.7)
    body = s.body("body", mass=2.0, inertia=inertia, com=(0.2, 0.3, 0.1)[:size], rotation=turn)
    arm = s.body("arm", mass=1.0, inertia=inertia, com=(0.3, -0.2, 0.2)[:size], rotation=turn)
    if planar:
        s.revolute("hinge", body, arm, at=(0.1, 0.5))
    else:
        s.spherical("hinge", body, arm, at=(0.1, 0.5, 0.2))
    markers = []
    for owner, axes in ((s.ground, frame), (body, frame @ CROSS if kind == "universal" else frame)):
        motion = {"x": "0*t"} if cut and owner is s.ground else None
        local = owner.rotation.T @ axes
        turned = float(np.arctan2(local[1, 0], local[0, 0])) if planar else local
        markers.append(owner.marker("m", np.zeros(size), rotation=turned, motion=motion))
    if swapped:
        markers.reverse()
    getattr(s, "planar_joint" if kind == "planar" else kind)("joint", *markers)
    return s


CROSS = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
"""Its z axis is normal to the old one: the second axis of a universal joint."""


@pytest.mark.engine
@pytest.mark.parametrize("swapped", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize(("kind", "planar"), [case for case in KINDS if case[0] != "distance"])
def test_every_joint_moves_alike_in_the_tree_and_as_a_closure(
    kind: str, planar: bool, swapped: bool
) -> None:
    """Chains and rows of a kind are the same joint, and both have the same coordinates."""
    runs = []
    for cut in (False, True):
        s = swinging(kind, planar, swapped, cut)
        assert [joint.name for joint in grow_tree(s).cuts] == ["joint"] * cut
        (joint,) = (joint for joint in s.joints if joint.name == "joint")
        shown = [coordinate_name(joint, n) for n in range(len(joint.coordinates))]
        shown = [f"joint.{name}" for name in shown] + ["body.position", "arm.velocity"]
        _, values = run(s, 0.3, shown)
        runs.append(np.column_stack([one.reshape(len(one), -1) for one in values]))
    # RK4 in two sets of coordinates at h = 1e-3 differs by some 1e-10.
    assert np.abs(runs[0] - runs[1]).max() < 1e-8
