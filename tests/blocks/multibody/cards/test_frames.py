"""Frames of joints from the points of cards."""

import numpy as np
import pytest

from biella import BiellaWarning
from biella.blocks.multibody import System

from .card_sets import change, copy


def read(folder):
    return System.from_s3d(folder, mass_center="legacy")


def test_revolute_frames_are_f_g_h(tmp_path):
    joint = read(copy(tmp_path / "s"))["Rot1"]
    c = np.sqrt(0.5)
    np.testing.assert_allclose(joint.frame_i, [[c, -c, 0], [c, c, 0], [0, 0, 1]], atol=1e-15)
    np.testing.assert_allclose(joint.first.position, (0, 0, 0))
    np.testing.assert_allclose(joint.second.position, (-0.125, 0, 0))


@pytest.mark.parametrize("r2", ["0.5  -1.  0.", "0.5  1.  0."])
def test_frames_of_a_slide_are_made_parallel(tmp_path, r2):
    """f of the second body is at right angles on the card, in either direction."""
    folder = change(copy(tmp_path / "s"), "Connection.s3d", "0.5  -1.  0.", r2)
    joint = read(folder)["Pri1"]
    np.testing.assert_allclose(joint.frame_i, np.transpose([(0, 0, 1), (0, -1, 0), (1, 0, 0)]))
    np.testing.assert_allclose(joint.frame_j, joint.frame_i, atol=1e-15)


def test_an_axis_the_other_way_is_the_same_joint(tmp_path):
    """The equations of a revolute cannot tell h from -h; the angle stays that from f to f."""
    plain = read(copy(tmp_path / "s"))["Rot2"]
    folder = change(copy(tmp_path / "t"), "Connection.s3d", "Q2=-0.25  0.  1.", "Q2=-0.25  0. -1.")
    turned = read(folder)["Rot2"]
    np.testing.assert_allclose(turned.frame_j, plain.frame_j, atol=1e-15)
    assert turned.given_value(0) == plain.given_value(0)


def test_axes_apart_are_noticed(tmp_path):
    folder = change(copy(tmp_path / "s"), "Connection.s3d", "Q2=-0.25  0.  1.", "Q2=0.55 0.  0.6")
    change(folder, "Connection.s3d", "R2=0.45710678119  0.70710678119  0.", "R2=-0.25 1. 0.")
    with pytest.warns(BiellaWarning, match=r"line 18: the axes of joint 2 are 0.927 rad apart"):
        read(folder)
    folder = change(copy(tmp_path / "t"), "Connection.s3d", "0.5  -1.  0.", "0.5  0.  1.")
    with pytest.warns(BiellaWarning, match=r"of joint 4, a slide, are 1.57 rad off"):
        read(folder)


def test_guide_and_sphere_need_only_what_they_use(tmp_path):
    """A sphere has a center; a guide the axis of its cylinder, on the first body."""
    folder = copy(tmp_path / "s")
    text = (folder / "Connection.s3d").read_text()
    for n, kind in ((2, 4), (3, 5)):
        start = text.index(f"begin({n})")
        block = text[start : text.index(f"end({n})")]
        lines = [line for line in block.splitlines() if not line.startswith(("Q2", "R2"))]
        lines = [line for line in lines if kind == 5 or not line.startswith(("Q1", "R1"))]
        text = text.replace(block, "\n".join(lines).replace("type=1", f"type={kind}") + "\n")
    (folder / "Connection.s3d").write_text(text)
    system = read(folder)
    assert [joint.kind for joint in system.joints] == [
        "revolute", "spherical", "guide", "prismatic",
    ]  # fmt: skip
    assert system["Rot3"].first.body.name == "Biella"
