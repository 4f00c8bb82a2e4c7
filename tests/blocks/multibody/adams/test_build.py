"""Systems from Adams View command files: parts, joints and motions."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from biella import DiagramError
from biella.blocks.multibody import AdamsModel, Sine, System, mechanisms, read_adams

from .models import BAR, HINGE, MCPHERSON, SLIDER_CRANK, START, build, run, write

BODIES = ("position", "velocity", "rotation", "angular_velocity")


def compare_parts(found, expected):
    """Masses, inertias, poses and markers are equal but for the rounding of mm and degrees.

    A number in mm has 1 rounding when it is read and 1 when it is converted: 2.3e-16 of it.
    """
    assert [body.name for body in found.bodies] == [body.name for body in expected.bodies]
    for a, b in zip(found.bodies, expected.bodies, strict=True):
        assert a.mass == pytest.approx(b.mass, rel=1e-15)
        for what in ("inertia", "com", "position", "rotation"):
            np.testing.assert_allclose(getattr(a, what), getattr(b, what), rtol=4e-16, atol=1e-15)
    assert [(joint.name, joint.kind) for joint in found.joints] == [
        (joint.name, joint.kind) for joint in expected.joints
    ]
    for a, b in zip(found.joints, expected.joints, strict=True):
        for end, other in ((a.first, b.first), (a.second, b.second)):
            assert end.body.name == other.body.name
            np.testing.assert_allclose(end.position, other.position, rtol=4e-16, atol=1e-16)
            if a.kind != "spherical":  # axes; angles of 15 digits
                np.testing.assert_allclose(
                    end.rotation[:, 2], other.rotation[:, 2], rtol=0, atol=1e-14
                )


@pytest.mark.parametrize("pins", ["revolute", "spherical"])
def test_slider_crank_is_the_one_described_by_hand(tmp_path, pins):
    """Motion, and reactions in the plane.

    Rounding of 2e-16 in the data, times the smallest singular value 0.15 to the power -2, in each
    of 1000 steps: 1e-11. Reactions of the mechanism described by hand already change by 1.5e-10 of
    the largest if a mass changes in its last digit.
    """
    text = SLIDER_CRANK.read_text().replace("joint revolute", f"joint {pins}")
    path = tmp_path / "model.cmd"
    path.write_text(text)
    found, expected = System.from_adams(path), mechanisms.slider_crank(pins)
    compare_parts(found, expected)
    assert found.gravity == pytest.approx(expected.gravity, rel=1e-15)
    outputs = [f"{body.name}.{what}" for body in expected.bodies for what in BODIES[:2]]
    reactions = [f"{joint.name}.force" for joint in expected.joints]
    a, b = run(found, outputs + reactions, 1.0), run(expected, outputs + reactions, 1.0)
    for name in outputs:
        np.testing.assert_allclose(a[name], b[name], rtol=0, atol=1e-11)
    atol = 1e-9 * max(np.abs(b[name]).max() for name in reactions)
    for name in reactions:
        np.testing.assert_allclose(a[name][:, [0, 2]], b[name][:, [0, 2]], rtol=0, atol=atol)


def by_hand():
    """The suspension of `mechanisms`, on a plate that a driver moves."""
    s = mechanisms.mcpherson()
    del s._parts["tire"]
    plate = s.body("plate", mass=0.01, inertia=1e-4, position=(0.452, -0.41, -0.43))
    guide = s.ground.marker("guide", (0.452, -0.41, -0.33), axis=(0, 0, 1))
    s.prismatic("lift", guide, plate.marker("contact", (0, 0, 0.1), axis=(0, 0, 1)))
    s.spring(
        "tire", plate.markers["contact"], s["wheel.center"], stiffness=2e5, damping=8e4,
        free_length=0.35,
    )  # fmt: skip
    s.driver("bump", s["lift"], Sine(0.03, 15.707963267948966))
    return s


def test_mcpherson_is_the_one_described_by_hand():
    """Rounding of 2e-16, over the smallest singular value 0.02 squared, in each of 600 steps: 3e-10
    of the largest reaction; positions and velocities are corrected at each step."""
    found, expected = System.from_adams(MCPHERSON), by_hand()
    compare_parts(found, expected)
    springs = [
        (s.name, s.stiffness.number, s.damping.number, s.free_length) for s in found.elements
    ]
    wanted = [
        (s.name, s.stiffness.number, s.damping.number, s.free_length) for s in expected.elements
    ]
    for a, b in zip(springs, wanted, strict=True):
        assert a[0] == b[0]
        assert a[1:] == pytest.approx(b[1:], rel=1e-15)
    outputs = [f"{body.name}.{what}" for body in expected.bodies for what in BODIES]
    reactions = [
        f"{joint.name}.{what}" for joint in expected.joints for what in ("force", "torque")
    ]
    reactions += ["suspension.force", "tire.force", "bump.effort"]
    a = run(found, outputs + reactions, 0.3, step=5e-4)
    b = run(expected, outputs + reactions, 0.3, step=5e-4)
    for name in outputs:
        np.testing.assert_allclose(a[name], b[name], rtol=0, atol=1e-12)
    largest = max(np.abs(b[name]).max() for name in reactions)
    for name in reactions:
        np.testing.assert_allclose(a[name], b[name], rtol=0, atol=3e-10 * largest)
    # The ready mechanism moves a marker on the ground instead: RK4 sees its law between steps too.
    ready = run(mechanisms.mcpherson(), outputs[:-4], 0.3, step=5e-4)
    for name in outputs[:-4]:
        atol = 1e-8 if name.endswith(("position", "rotation")) else 1e-5
        np.testing.assert_allclose(a[name], ready[name], rtol=0, atol=atol)


def test_read_adams_tells_variables_and_what_it_ignored():
    model = read_adams(MCPHERSON)
    assert isinstance(model, AdamsModel) and isinstance(model.system, System)
    assert model.variables[".mcpherson.rate_tire"] == pytest.approx(200.0, rel=1e-15)
    assert not model.ignored
    ignored = read_adams(SLIDER_CRANK).ignored
    assert "slider_crank.cmd, line 24: view" in ignored
    assert any(one.endswith(": geometry") for one in ignored)


def test_mass_and_products_of_inertia(tmp_path):
    """A plate of three particles: Ixy = ∫xy dm is minus the element of the tensor.

    The moments are given about a marker away from the center, with turned axes.
    """
    masses = np.array([1.0, 2.0, 3.0])
    points = np.array([[0.1, 0.0, 0.02], [0.0, 0.2, 0.0], [-0.1, 0.05, 0.1]])
    turned = Rotation.from_euler("ZXZ", [30, 40, 50], degrees=True).as_matrix()
    seen = (points - [0.1, 0.2, 0.3]) @ turned * 1e3  # from the marker, in its axes, in mm
    moments = {
        **{f"i{a}{a}": float(masses @ (seen**2).sum(1) - masses @ seen[:, n] ** 2)
           for n, a in enumerate("xyz")},
        **{f"i{'xyz'[a]}{'xyz'[b]}": float(masses @ (seen[:, a] * seen[:, b]))
           for a, b in ((0, 1), (1, 2), (2, 0))},
    }  # fmt: skip
    com = masses @ points / masses.sum()
    text = (
        "part create rigid_body name_and_position part_name=.m.p location=10, 20, 30 "
        "orientation=90, 0, 0\n"
        f"marker create marker_name=.m.p.cm location={','.join(repr(float(x * 1e3)) for x in com)} "
        "orientation=7, 8, 9 relative_to=.m.p\n"
        "marker create marker_name=.m.p.im location=100, 200, 300 orientation=30, 40, 50 "
        "relative_to=.m.p\n"
        "part create rigid_body mass_properties part_name=.m.p mass=6 "
        "center_of_mass_marker=.m.p.cm inertia_marker=.m.p.im "
        + " ".join(f"{name}={value!r}" for name, value in moments.items())
    )
    (body,) = build(tmp_path, text).bodies
    away = points - com
    expected = sum(
        m * (d @ d * np.eye(3) - np.outer(d, d)) for m, d in zip(masses, away, strict=True)
    )
    assert body.mass == 6 and body.free
    np.testing.assert_allclose(body.com, com, rtol=1e-15)
    np.testing.assert_allclose(body.inertia, expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(body.position, [0.01, 0.02, 0.03], rtol=1e-15)
    assert body.rotation.tolist() == [[0, -1, 0], [1, 0, 0], [0, 0, 1]]


def test_units_of_inches_pounds_and_minutes(tmp_path):
    start = (
        "defaults units length=inch mass=pound_mass force=pound_force time=minute angle=rad\n"
        "model create model_name=m\n"
    )
    text = BAR.replace("100, 0, 0", "4, 0, 0") + HINGE.replace("bar.end", "bar.cm")
    text += (
        "force create body gravitational gravity_field_name=g z_component_gravity=-100\n"
        "constraint create motion_generator motion_name=.m.turn joint_name=.m.hinge "
        'function="2*time"'
    )
    system = build(tmp_path, text, start=start)
    body = system.bodies[0]
    assert body.position[0] == pytest.approx(0.1016) and body.mass == pytest.approx(0.90718474)
    assert body.inertia[0, 0] == pytest.approx(1000 * 0.45359237 * 0.0254**2)
    assert system.gravity[2] == pytest.approx(-100 * 0.0254 / 3600)
    assert system.drivers[0].law.value(60.0) == pytest.approx(2.0)


def test_initial_velocity_is_of_the_center_of_mass(tmp_path):
    text = BAR.replace("bar.cm location=0, 0, 0", "bar.cm location=0, 10, 0 orientation=90, 0, 0")
    text += (
        "part create rigid_body initial_velocity part_name=.m.bar vx=200 wx=90 wy=0 no_vy=true\n"
        "marker create marker_name=.m.ground.axes location=0, 0, 0 orientation=0, 90, 0\n"
    )
    (body,) = build(tmp_path, text).bodies
    # wx is about x of cm, which is y of the world; the center is 10 mm along y: no difference.
    np.testing.assert_allclose(body.angular_velocity, [0, np.pi / 2, 0], atol=1e-16)
    np.testing.assert_allclose(body.velocity, [0.2, 0, 0], atol=1e-16)
    more = (
        "part modify rigid_body initial_velocity part_name=.m.bar wx=0 wz=90 vm=.m.ground.axes vy=5"
    )
    (body,) = build(tmp_path, text, more).bodies
    np.testing.assert_allclose(body.angular_velocity, [0, 0, np.pi / 2], atol=1e-16)
    # v_origin = v_center - ω × r with r = 10 mm along y; x, y of vm are x, z of the world.
    np.testing.assert_allclose(body.velocity, [0.2 + 0.01 * np.pi / 2, 0, 0.0], atol=1e-15)


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


def test_motion_between_the_markers_of_a_joint(tmp_path):
    motion = (
        "constraint create motion_generator motion_name=.m.d i_marker_name=.m.bar.end "
        'j_marker_name=.m.ground.base axis={} function="time"'
    )
    assert build(tmp_path, BAR, HINGE, motion.format("b3")).drivers[0].joint.name == "hinge"
    slide = HINGE.replace("revolute", "translational")
    assert build(tmp_path, BAR, slide, motion.format("z")).drivers[0].joint.name == "hinge"
    for joint, axis in ((HINGE, "z"), (slide, "b3"), (HINGE, "x")):
        with pytest.raises(DiagramError, match=r"line 10: `.m.d` moves two markers along or about"):
            build(tmp_path, BAR, joint, motion.format(axis))


def test_what_is_switched_off_is_left_out(tmp_path):
    off = "constraint attributes constraint_name=.m.hinge active=off"
    assert not build(tmp_path, BAR, HINGE, off).joints
    assert build(tmp_path, BAR, HINGE, off, off.replace("off", "on")).joints
    with pytest.raises(DiagramError, match=r"line 9: `.m.bar` is switched off with all"):
        build(tmp_path, BAR, "part attributes part_name=.m.bar active=off")


def test_names_that_a_system_has_already(tmp_path):
    text = BAR.replace("bar.end", "bar.position").replace(".m.bar", ".m.gravity")
    system = build(tmp_path, text)
    assert [body.name for body in system.bodies] == ["gravity_2"]
    assert set(system.bodies[0].markers) == {"cm", "position_2"}
    assert build(tmp_path, BAR.replace(".m.bar", '.m."my bar.1"')).bodies[0].name == "my bar_1"


CASES = {
    "no center": ("mass=2 center_of_mass_marker=.m.bar.cm", "mass=2",
                  r"line 3: `.m.bar` has a mass and no `center_of_mass_marker`"),
    "density": ("mass=2", "density=1", r"line 6: the mass of `.m.bar` is that of its shapes"),
    "negative mass": ("mass=2", "mass=-2", r"line 3: body `bar` has mass -2 kg"),
    "nonphysical": ("izz=2500", "izz=9000", r"line 3: .*which no body has"),
    "foreign center": ("center_of_mass_marker=.m.bar.cm", "center_of_mass_marker=.m.ground.base",
                       r"line 6: `center_of_mass_marker` of `.m.bar` is `.m.ground.base`"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_errors_in_parts(tmp_path, case):
    old, new, message = CASES[case]
    assert old in BAR
    with pytest.raises(DiagramError, match=rf"model.cmd, {message}"):
        build(tmp_path, BAR.replace(old, new))


def test_errors_are_listed_together(tmp_path):
    path = write(
        tmp_path,
        BAR,
        HINGE.replace("end", "missing"),
        HINGE.replace(".m.hinge", ".m.other").replace(".m.ground.base", ".m.bar.cm"),
        HINGE.replace(".m.hinge", ".m.third"),
        'constraint create motion_generator motion_name=.m.d joint_name=.m.third function="DM(1)"',
        "force create body gravitational gravity_field_name=g",
    )
    with pytest.raises(DiagramError) as caught:
        System.from_adams(path)
    text = str(caught.value)
    assert "3 problems" in text
    assert "line 9: `i_marker_name` of `.m.hinge`: there is no marker `.m.bar.missing`" in text
    assert "line 10: `.m.other` has both markers on `bar`" in text
    assert "line 12: `function` of `.m.d`: `DM(…)` depends on the motion" in text


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


def test_ground_has_its_name_and_place(tmp_path):
    part = "part create rigid_body name_and_position part_name={} {}"
    assert not build(tmp_path, part.format(".m.ground", "ground_part=yes location=0,0,0")).bodies
    with pytest.raises(DiagramError, match="line 3: the `location` of the ground is that of"):
        build(tmp_path, part.format(".m.ground", "location=1,0,0"))
    with pytest.raises(DiagramError, match=r"line 3: `.m.base` is made the ground: call it"):
        build(tmp_path, part.format(".m.base", "ground_part=yes"))


def test_two_fields_of_gravity(tmp_path):
    text = "force create body gravitational gravity_field_name={} y_component_gravity=-9806.65"
    assert build(tmp_path, text.format("g")).gravity == pytest.approx([0, -9.80665, 0])
    assert build(tmp_path).gravity.tolist() == [0, 0, 0]
    with pytest.raises(DiagramError, match=r"line 4: there is a second field of gravity, `.m.h`"):
        build(tmp_path, text.format("g"), text.format("h"))


def test_friction_is_named(tmp_path):
    assert build(tmp_path, BAR, HINGE.rstrip() + " friction_enabled=no mu_dyn_rot=0.3").joints
    with pytest.raises(DiagramError, match=r"line 9: `.m.hinge` has friction, which is not read"):
        build(tmp_path, BAR, HINGE.rstrip() + " friction_enabled=yes")


def test_without_a_model(tmp_path):
    with pytest.raises(DiagramError, match=r"model.cmd: there is no `model create`"):
        build(tmp_path, start="")
    with pytest.raises(DiagramError, match="the units of length, mass, force, time, angle are not"):
        build(tmp_path, start="model create model_name=m\n")
    assert build(tmp_path, start=START).name == "m"
