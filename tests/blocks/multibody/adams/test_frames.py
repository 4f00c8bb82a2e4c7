"""Orientation angles against scipy, and frames relative to others."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from biella import DiagramError
from biella.blocks.multibody.adams._frames import rotation_from_angles, turn
from biella.blocks.multibody.adams._model import ORIENTATIONS

from .models import BAR, build

ANGLES = [0.3, -1.1, 2.4]


@pytest.mark.parametrize("convention", ORIENTATIONS)
def test_sequences_of_angles_are_those_of_scipy(convention):
    """Upper case of scipy are axes of the body, lower case axes of the world."""
    axes = convention[-3:].translate(str.maketrans("123", "XYZ"))
    axes = axes if convention.startswith("body") else axes.lower()
    expected = Rotation.from_euler(axes, ANGLES).as_matrix()
    np.testing.assert_allclose(rotation_from_angles(convention, ANGLES), expected, atol=1e-15)


def test_z_of_body313():
    """z = (sin a sin b, -cos a sin b, cos b), by hand."""
    (a, b, _), made = ANGLES, rotation_from_angles("body313", ANGLES)
    z = [np.sin(a) * np.sin(b), -np.cos(a) * np.sin(b), np.cos(b)]
    np.testing.assert_allclose(made[:, 2], z, atol=1e-15)


def test_right_angles_are_exact():
    for axis in range(3):
        for quarters in range(-8, 9):
            made = turn(axis, np.radians(90.0 * quarters))
            assert set(np.abs(made).ravel()) == {0.0, 1.0}
            expected = Rotation.from_rotvec(np.eye(3)[axis] * quarters * np.pi / 2).as_matrix()
            np.testing.assert_allclose(made, expected, atol=1e-14)
    near = turn(0, np.radians(90.0 + 1e-9))
    assert near[2, 2] == pytest.approx(-1e-9 * np.pi / 180, rel=1e-6)


FRAME = (
    "part create rigid_body name_and_position part_name=.m.p location=100, 200, 300 "
    "orientation=30, 40, 50\n"
    "marker create marker_name=.m.p.a location=10, 20, 30 orientation=70, 80, 20 relative_to=.m.p\n"
)


def pose(position, angles):
    made = np.eye(4)
    made[:3, 3] = np.array(position) * 1e-3
    made[:3, :3] = Rotation.from_euler("ZXZ", angles, degrees=True).as_matrix()
    return made


def check(marker, expected):
    np.testing.assert_allclose(marker.world_position, expected[:3, 3], rtol=0, atol=1e-15)
    np.testing.assert_allclose(marker.world_rotation, expected[:3, :3], rtol=0, atol=1e-14)


PART, A = pose([100, 200, 300], [30, 40, 50]), pose([10, 20, 30], [70, 80, 20])


INNER = pose([1, 2, 3], [15, 25, 35])
SPLIT = PART @ INNER
SPLIT[:3, 3] = (PART @ A @ INNER)[:3, 3]
"""Its place in axes of marker a, its axes in those of the part."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("location=1,2,3 orientation=15,25,35 relative_to=.m.p", PART @ INNER),
        ("location=1,2,3 orientation=15,25,35 relative_to=.m.p.a",
         PART @ A @ INNER),
        ("location=1,2,3 orientation=15,25,35 relative_to=.m.ground", INNER),
        ("location=1,2,3 orientation=15,25,35", INNER),
        ("location=1,2,3 orientation=15,25,35 relative_to=.m", INNER),
        ("location=(LOC_RELATIVE_TO({1, 2, 3}, .m.p.a)) "
         "orientation=(ORI_RELATIVE_TO({15d, 25, 35}, .m.p.a)) relative_to=.m.p",
         PART @ A @ INNER),
        ("location=(eval(LOC_RELATIVE_TO({0.1, 0.2, 0.3}cm, .m.p.a))) relative_to=.m.p &\n"
         "orientation=15,25,35", SPLIT),
        ("", PART),
    ],
)  # fmt: skip
def test_a_marker_relative_to_others(tmp_path, text, expected):
    system = build(tmp_path, FRAME, f"marker create marker_name=.m.p.x {text}")
    check(system["p.x"], expected)


def test_default_coordinate_system(tmp_path):
    """It holds for the commands after it; the frames of files that Adams View exports."""
    text = (
        "defaults coordinate_system default_coordinate_system=.m.p\n"
        "marker create marker_name=.m.p.x location=1,2,3 orientation=15,25,35\n"
        "part create rigid_body name_and_position part_name=.m.q location=4,5,6 orientation=1,2,3\n"
        "defaults coordinate_system default_coordinate_system=.m.p.a\n"
        "marker create marker_name=.m.q.y location=1,2,3 orientation=15,25,35\n"
        "defaults coordinate_system default_coordinate_system=.m\n"
        "marker create marker_name=.m.q.z location=1,2,3 orientation=15,25,35\n"
    )
    system = build(tmp_path, FRAME, text)
    check(system["p.x"], PART @ INNER)
    check(system["q.y"], PART @ A @ INNER)
    check(system["q.z"], INNER)
    np.testing.assert_allclose(system["q"].rotation, (PART @ pose([4, 5, 6], [1, 2, 3]))[:3, :3],
                               atol=1e-15)  # fmt: skip


def test_points(tmp_path):
    text = (
        "point create point_name=.m.p.hp location=5, 6, 7 relative_to=.m.p\n"
        "marker create marker_name=.m.ground.x location=(LOC_RELATIVE_TO({1, 2, 3}, .m.p.hp))\n"
    )
    np.testing.assert_allclose(
        build(tmp_path, FRAME, text)["ground.x"].position,
        (PART @ [0.006, 0.008, 0.010, 1])[:3],
        atol=1e-15,
    )


def test_digits_in_axes_of_the_part_are_kept(tmp_path):
    marker = build(tmp_path, FRAME)["p.a"]
    assert marker.position.tolist() == [10 * 1e-3, 20 * 1e-3, 30 * 1e-3]


def test_a_place_by_expression_is_relative_to_its_part(tmp_path):
    text = "marker create marker_name=.m.p.x location=(LOC_RELATIVE_TO({1, 2, 3}, .m.p.a))"
    with pytest.raises(DiagramError, match=r"line 5: .*what it means is not clear. Add `relative_"):
        build(tmp_path, FRAME, text)
    assert build(tmp_path, BAR, "marker create marker_name=.m.ground.x &\n"
                 "location=(LOC_RELATIVE_TO({1, 2, 3}, .m.bar.cm))")  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("location=(LOC_RELATIVE_TO({1, 2}, .m.p.a))", "has three numbers in braces"),
        ("location=(LOC_RELATIVE_TO({1, 2, 3}))", "`LOC_RELATIVE_TO` has three numbers in braces"),
        ("location=(LOC_RELATIVE_TO({1, 2, 3}, .m.p.b))", "there is no part or marker or point"),
        ("location=(LOC_ALONG_LINE(.m.p.a, .m.p, 3))", "`LOC_ALONG_LINE` is not read here"),
        ("orientation=(ORI_ALONG_AXIS(.m.p.a, .m.p, \"z\"))", "is not expected"),
    ],
)  # fmt: skip
def test_other_expressions_of_places(tmp_path, text, message):
    with pytest.raises(DiagramError, match=f"model.cmd, line 5: .*{message}"):
        build(tmp_path, FRAME, f"marker create marker_name=.m.p.x {text} relative_to=.m.p")
