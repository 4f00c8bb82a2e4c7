"""Joints between the markers I and J, and their motions."""

import numpy as np
import pytest

from biella import DiagramError

from .models import BAR, HINGE, build, run

FRAMES = {
    "revolute": "revolute", "translational": "prismatic", "cylindrical": "cylindrical",
    "spherical": "spherical", "fixed": "fixed", "planar": "planar",
}  # fmt: skip
PRIMITIVES = {
    "inline": ("guide", 2), "inplane": ("in_plane", 1), "at_point": ("spherical", 3),
    "perpendicular": ("perpendicular", 1), "parallel_axis": ("perpendicular", 2),
    "orientation": ("perpendicular", 3),
}  # fmt: skip


@pytest.mark.parametrize("kind", FRAMES)
def test_joints_are_between_j_and_i(tmp_path, kind):
    system = build(tmp_path, BAR, HINGE.replace("revolute", kind))
    (joint,) = system.joints
    assert (joint.kind, joint.first.path, joint.second.path) == (
        FRAMES[kind], "ground.base", "bar.end",
    )  # fmt: skip


@pytest.mark.parametrize("kind", PRIMITIVES)
def test_primitives(tmp_path, kind):
    markers = "i_marker_name=.m.bar.end j_marker_name=.m.ground.base"
    if kind == "perpendicular":
        markers = markers.replace("base", "side")
    system = build(
        tmp_path,
        BAR,
        "marker create marker_name=.m.ground.side location=0, 0, 0 orientation=0, 90, 0",
        f"constraint create primitive_joint {kind} jprim_name=.m.j {markers}",
    )
    name, rows = PRIMITIVES[kind]
    assert {joint.kind for joint in system.joints} == {name}
    assert sum(len(joint.rows) for joint in system.joints) == rows
    assert all(joint.first.body.is_ground for joint in system.joints)
    assert not any(system.assemble().gaps.values())
    assert system.report().freedom == 6 - rows


def test_universal_has_its_axes_along_z_and_hooke_along_the_bars(tmp_path):
    """Hooke: y of J and x of I are the bars; both joints then have the same axes."""
    shafts = (
        "marker create marker_name=.m.ground.u location=0,0,0 orientation=90, 90, 0\n"
        "marker create marker_name=.m.bar.u location=-100,0,0 orientation=180, 90, 0 "
        "relative_to=.m.bar\n"
        "marker create marker_name=.m.ground.h location=0,0,0 orientation=90, 90, 90\n"
        "marker create marker_name=.m.bar.h location=-100,0,0 orientation=90, 90, 90 "
        "relative_to=.m.bar\n"
    )
    joint = (
        "constraint create joint {0} joint_name=.m.j i_marker_name=.m.bar.{1} "
        "j_marker_name=.m.ground.{1}"
    )
    (one,) = build(tmp_path, BAR, shafts, joint.format("universal", "u")).joints
    np.testing.assert_allclose(one.first.rotation[:, 2], [1, 0, 0], atol=1e-16)
    np.testing.assert_allclose(one.second.rotation[:, 2], [0, 1, 0], atol=1e-16)
    system = build(tmp_path, BAR, shafts, joint.format("hooke", "h"))
    (two,) = system.joints
    shaft = system.ground.markers["h"].rotation
    np.testing.assert_array_equal(two.first.rotation[:, 2], shaft[:, 1])
    np.testing.assert_array_equal(two.second.rotation[:, 2], shaft[:, 0])
    with pytest.raises(DiagramError, match="universal joint, and its two axes are at 0°"):
        build(tmp_path, BAR, shafts, joint.format("universal", "h"))


def test_joint_by_parts_and_a_place(tmp_path):
    text = (
        "constraint create joint revolute joint_name=.m.hinge i_part_name=.m.bar "
        "j_part_name=.m.ground location=50, 0, 10 orientation=0, 90, 0"
    )
    system = build(tmp_path, BAR, text)
    joint = system.joints[0]
    np.testing.assert_allclose(joint.first.position, [0.05, 0, 0.01], rtol=1e-15)
    np.testing.assert_allclose(joint.second.position, [-0.05, 0, 0.01], rtol=1e-15)
    np.testing.assert_array_equal(joint.second.rotation[:, 2], [0, -1, 0])


@pytest.mark.parametrize(
    ("kind", "motion", "value", "rate"),
    [
        ("revolute", 'function="30.0d * time"', 0.25 * np.pi / 6, np.pi / 6),
        ("revolute", 'type_of_freedom=rotational function="60d" time_derivative=velocity',
         0.25 * np.pi / 3, np.pi / 3),
        ("translational", 'function="100*SIN(2*PI*time)"', 0.1, 0.0),
        ("cylindrical", 'type_of_freedom=translational function="STEP(time, 0, 0, 0.5, 10)"',
         0.005, 0.03),
        ("cylindrical", 'type_of_freedom=rotational function="0.5", "*time"', 0.125, 0.5),
    ],
)  # fmt: skip
def test_motions(tmp_path, kind, motion, value, rate):
    text = f"constraint create motion_generator motion_name=.m.drive joint_name=.m.hinge {motion}"
    (driver,) = build(tmp_path, BAR, HINGE.replace("revolute", kind), text).drivers
    assert driver.law.value(0.25) == pytest.approx(value, abs=1e-16)
    assert driver.law.rate(0.25) == pytest.approx(rate, abs=1e-15)
    wanted = "angle" if "rot" in motion or kind == "revolute" else "length"
    assert driver.joint.coordinates[driver.coordinate].kind == wanted


def test_motion_turns_i_as_seen_from_j(tmp_path):
    motion = "constraint create motion_generator motion_name=.m.d joint_name=.m.hinge function="
    system = build(tmp_path, BAR, HINGE, motion + '"90d*time"')
    at = run(system, ["bar.position"], 1.0, step=1e-2)["bar.position"][-1]
    np.testing.assert_allclose(at, [0, 0.1, 0], atol=1e-9)
    # The same with I on the ground: the bar turns the other way.
    other = HINGE.replace("i_marker_name=.m.bar.end", "i_marker_name=.m.ground.base").replace(
        "j_marker_name=.m.ground.base", "j_marker_name=.m.bar.end"
    )
    system = build(tmp_path, BAR, other, motion + '"90d*time"')
    at = run(system, ["bar.position"], 1.0, step=1e-2)["bar.position"][-1]
    np.testing.assert_allclose(at, [0, -0.1, 0], atol=1e-9)


def test_motion_between_markers(tmp_path):
    """About b3, the coordinate of a hinge on that axis with its sign and offset; along z, that of a
    joint with these markers."""
    motion = (
        "constraint create motion_generator motion_name=.m.d i_marker_name={} "
        'j_marker_name={} axis={} function="90d*time + 0.1"'
    )
    ends = ".m.bar.end", ".m.ground.base"
    (driver,) = build(tmp_path, BAR, HINGE, motion.format(*ends, "b3")).drivers
    assert driver.law.value(1.0) == pytest.approx(np.pi / 2 + 0.1)
    # z against the axis, x at 180° - 30°: a = -q + 150°.
    turned = "marker create marker_name=.m.ground.back location=0,0,0 orientation=30, 180, 0"
    system = build(tmp_path, BAR, HINGE, turned, motion.format(ends[0], ".m.ground.back", "b3"))
    axes = np.array([system[path].world_rotation for path in ("bar.end", "ground.back")])
    start = np.arctan2(axes[0, :, 0] @ axes[1, :, 1], axes[0, :, 0] @ axes[1, :, 0])
    assert system.drivers[0].law.value(1.0) == pytest.approx(-(np.pi / 2 + 0.1 - start))
    slide = HINGE.replace("revolute", "cylindrical")
    (driver,) = build(tmp_path, BAR, slide, motion.format(*ends, "z")).drivers
    assert driver.joint.coordinates[driver.coordinate].kind == "length"
    for joint, axis in ((HINGE, "z"), (HINGE.replace("revolute", "translational"), "b3"),
                        (HINGE, "x")):  # fmt: skip
        with pytest.raises(DiagramError, match=r"line 10: `.m.d` moves two markers along or about"):
            build(tmp_path, BAR, joint, motion.format(*ends, axis))


MOTIONS = {
    "spherical": ("joint_name=.m.hinge function=\"time\"", "spherical", "motions are of revolute"),
    "kind": ("joint_name=.m.hinge type_of_freedom=translational function=\"time\"", "revolute",
             "is translational, and `.m.hinge` is a revolute joint"),
    "which": ("joint_name=.m.hinge function=\"time\"", "cylindrical", "has no `type_of_freedom`"),
    "empty": ("joint_name=.m.hinge function=\"\"", "revolute", "is the file complete"),
    "none": ("joint_name=.m.hinge", "revolute", "has no `function`"),
    "rate": ("joint_name=.m.hinge function=\"time\" time_derivative=velocity", "revolute",
             "prescribes the velocity by a function of time: integrate it"),
    "acceleration": ("joint_name=.m.hinge function=\"1\" time_derivative=acceleration",
                     "revolute", "prescribes the acceleration"),
    "jump": ("joint_name=.m.hinge function=\"IF(time-1: 0, 0, 1)\"", "revolute", "jumps by 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", MOTIONS)
def test_errors_in_motions(tmp_path, case):
    motion, kind, message = MOTIONS[case]
    text = f"constraint create motion_generator motion_name=.m.d {motion}"
    with pytest.raises(DiagramError, match=rf"model.cmd, line 10: .*{message}"):
        build(tmp_path, BAR, HINGE.replace("revolute", kind), text)


def test_friction_is_named(tmp_path):
    assert build(tmp_path, BAR, HINGE.rstrip() + " friction_enabled=no mu_dyn_rot=0.3").joints
    with pytest.raises(DiagramError, match=r"line 9: `.m.hinge` has friction, which is not read"):
        build(tmp_path, BAR, HINGE.rstrip() + " friction_enabled=yes")
