"""Systems from Adams View command files: the two mechanisms, names, errors of several objects."""

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks.multibody import AdamsModel, Sine, System, mechanisms, read_adams

from .models import BAR, ELEMENTS, HINGE, MCPHERSON, SLIDER_CRANK, START, build, run, write

BODIES = ("position", "velocity", "rotation", "angular_velocity")


def compare_parts(found, expected):
    """Masses, inertias, poses and markers are equal but for the rounding of mm and degrees.

    A number in mm has 1 rounding when it is read and 1 when it is converted: 2.3e-16 of it.
    """
    assert [body.name for body in found.bodies] == [body.name for body in expected.bodies]
    for a, b in zip(found.bodies, expected.bodies, strict=True):
        assert (a.mass, a.free) == (pytest.approx(b.mass, rel=1e-15), b.free)
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
    lift = s.prismatic("lift", guide, plate.marker("contact", (0, 0, 0.1), axis=(0, 0, 1)))
    wheel = next(body for body in s.bodies if body.name == "wheel")
    s.spring(
        "tire", plate.markers["contact"], wheel.markers["center"], stiffness=2e5, damping=8e4,
        free_length=0.35,
    )  # fmt: skip
    s.driver("bump", lift, Sine(0.03, 15.707963267948966))
    return s


def test_mcpherson_is_the_one_described_by_hand():
    """Rounding of 2e-16, over the smallest singular value 0.02 squared, in each of 600 steps: 3e-10
    of the largest reaction; positions and velocities are corrected at each step."""
    found, expected = System.from_adams(MCPHERSON), by_hand()
    compare_parts(found, expected)
    found_numbers, numbers = found.parameters(), expected.parameters()
    for name in ("suspension", "tire"):
        for what in ("stiffness", "damping", "free_length", "force"):
            path = f"{name}.{what}"
            assert found_numbers[path].value == pytest.approx(numbers[path].value, rel=1e-15)
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


def test_every_kind_of_object_in_one_file():
    """Free is what nothing ties to the ground; what is switched off is left out."""
    system = System.from_adams(ELEMENTS)
    assert {joint.name: joint.kind for joint in system.joints} == {
        "hinge": "revolute", "cross": "universal",
    }  # fmt: skip
    assert [element.name for element in system.elements] == [
        "twist", "coil", "rubber", "pull", "motor", "wind", "wind_torque", "spring",
    ]  # fmt: skip
    assert [body.free for body in system.bodies] == [False] * 3
    shown = run(system, ["kinetic_energy", "bar.position"], 0.01)
    assert np.isfinite(shown["kinetic_energy"]).all()


def test_read_adams_tells_variables_and_what_it_ignored():
    model = read_adams(MCPHERSON)
    assert isinstance(model, AdamsModel) and isinstance(model.system, System)
    assert model.variables[".mcpherson.rate_tire"] == pytest.approx(200.0, rel=1e-15)
    assert not model.ignored
    ignored = read_adams(SLIDER_CRANK).ignored
    assert "slider_crank.cmd, line 24: view" in ignored
    assert any(one.endswith(": geometry") for one in ignored)


def test_what_is_switched_off_is_left_out(tmp_path):
    off = "constraint attributes constraint_name=.m.hinge active=off"
    assert not build(tmp_path, BAR, HINGE, off).joints
    assert build(tmp_path, BAR, HINGE, off, off.replace("off", "on")).joints
    motion = 'constraint create motion_generator motion_name=.m.d joint_name=.m.hinge function="1"'
    with pytest.raises(DiagramError, match=r"line 10: `.m.d` moves `.m.hinge`, which is switched"):
        build(tmp_path, BAR, HINGE, motion, off)


def test_a_part_that_is_switched_off(tmp_path):
    off = "part attributes part_name=.m.bar active=off"
    assert not build(tmp_path, BAR, off).bodies
    joint_off = "constraint attributes constraint_name=.m.hinge active=off"
    assert not build(tmp_path, BAR, HINGE, off, joint_off).parts.keys() - {"ground"}
    with pytest.raises(DiagramError, match=r"line 9: `.m.hinge` has the marker .* switched off"):
        build(tmp_path, BAR, HINGE, off)
    for text in ("marker attributes marker_name=.m.bar.end color=red", "view erase"):
        assert build(tmp_path, BAR, text).bodies
    for text in (off.replace("active", "dependents_active"), off.replace("active", "expr_active")):
        with pytest.raises(DiagramError, match=r"line 9: .*(with all that belongs|`expr_active`)"):
            build(tmp_path, BAR, text)


def test_what_is_not_read_may_be_switched_off(tmp_path):
    beam = "force create element_like beam beam_name=.m.beam\n"
    assert build(tmp_path, BAR, beam, "force attributes force_name=.m.beam active=off").bodies
    with pytest.raises(DiagramError, match=r"line 9: `force create element_like beam` is not read"):
        build(tmp_path, BAR, beam)


def test_conditions_on_what_is_ignored(tmp_path):
    """Exported files choose colors so; `!` in parentheses is not a comment."""
    text = (
        'if condition = (! db_exists(".colors.RED_1"))\ncolor create color_name=.colors.RED_1 &\n'
        "   red_component=1.0\nelse \ncolor modify color_name=.colors.RED_1\nend \n"
    )
    assert build(tmp_path, text, BAR).bodies
    for wrong, message in (
        (text.replace("color create color_name", "variable create variable_name"),
         "line 4: `variable create` depends on the condition of line 3"),
        (text.replace("end", ""), "line 3: `if` has no `end`"),
        ("end", "line 3: `end` has no `if` before it"),
    ):  # fmt: skip
        with pytest.raises(DiagramError, match=message):
            build(tmp_path, wrong, BAR)


def test_names_that_a_system_has_already(tmp_path):
    text = BAR.replace("bar.end", "bar.position").replace(".m.bar", ".m.gravity")
    system = build(tmp_path, text)
    assert [body.name for body in system.bodies] == ["gravity_2"]
    assert set(system.bodies[0].markers) == {"cm", "position_2"}
    assert build(tmp_path, BAR.replace(".m.bar", '.m."my bar.1"')).bodies[0].name == "my bar_1"


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


def test_two_fields_of_gravity(tmp_path):
    text = "force create body gravitational gravity_field_name={} y_component_gravity=-9806.65"
    assert build(tmp_path, text.format("g")).gravity == pytest.approx([0, -9.80665, 0])
    assert build(tmp_path).gravity.tolist() == [0, 0, 0]
    with pytest.raises(DiagramError, match=r"line 4: there is a second field of gravity, `.m.h`"):
        build(tmp_path, text.format("g"), text.format("h"))


def test_without_a_model(tmp_path):
    with pytest.raises(DiagramError, match=r"model.cmd: there is no `model create`"):
        build(tmp_path, start="")
    with pytest.raises(DiagramError, match="the units of length, mass, force, time, angle are not"):
        build(tmp_path, start="model create model_name=m\n")
    assert build(tmp_path, start=START).name == "m"
