"""Springs, bushings, forces and torques: each by the law of the manual, as the block shows it."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from biella import DiagramError
from biella.blocks.multibody import System

from .models import BAR, HINGE, build, run

SPRING = (
    "force create element_like {} spring_damper_name=.m.s i_marker_name=.m.bar.cm "
    "j_marker_name=.m.ground.base "
)
SINGLE = "force create direct single_component_force single_component_force_name=.m.f "
ENDS = "i_marker_name=.m.bar.cm j_marker_name=.m.ground.base "
TURNED = BAR.replace("location=100, 0, 0", "location=100,0,0 orientation=90,0,0")
QUARTER = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]])
"""The bar with its frame turned by 90° about z, and that turn."""


def test_spring_pushes_apart_by_its_preload(tmp_path):
    """F = preload - c ṙ - k (r - r0) apart; tension here is -F. r = 100 mm, ṙ = 50 mm/s."""
    text = SPRING.format("translational_spring_damper") + (
        "stiffness=2 damping=0.5 preload=7 displacement_at_preload=90"
    )
    moving = "part create rigid_body initial_velocity part_name=.m.bar vx=50"
    system = build(tmp_path, BAR, moving, text)
    shown = run(system, ["s.force", "s.length", "s.rate"], 1e-3)
    assert shown["s.length"][0] == pytest.approx(0.1) and shown["s.rate"][0] == pytest.approx(0.05)
    assert shown["s.force"][0] == pytest.approx(-(7 - 0.5 * 50 - 2 * 10))


def test_a_stiffness_without_length_means_nothing(tmp_path):
    text = SPRING.format("translational_spring_damper")
    assert build(tmp_path, BAR, text + "damping=1").elements
    with pytest.raises(
        DiagramError, match=r"line 9: `.m.s` has a stiffness and no `displacement_at"
    ):
        build(tmp_path, BAR, text + "stiffness=1")


# Markers of a hinge about x of the world, with x axes at 25° to each other, and those of a spring
# with other x axes: I, J of the joint, then of the spring, as angles about the hinge.
JOINT_I, JOINT_J, SPRING_I, SPRING_J = 25.0, 0.0, 100.0, -40.0
AXES = "orientation=90, 90, {}"
BACK = "orientation=-90, 90, {}"


def make_hinge(axes, swapped):
    """Return a bar on a hinge about x, and spring markers `si`, `sj` with z along ±x."""
    ends = (
        f"marker create marker_name=.m.bar.i location=-100,0,0 {AXES.format(JOINT_I)} "
        "relative_to=.m.bar\n"
        f"marker create marker_name=.m.ground.j location=0,0,0 {AXES.format(JOINT_J)}\n"
        f"marker create marker_name=.m.bar.si location=0,0,0 {axes.format(SPRING_I)} "
        "relative_to=.m.bar\n"
        f"marker create marker_name=.m.ground.sj location=0,0,0 {axes.format(SPRING_J)}\n"
    )
    i, j = (".m.ground.j", ".m.bar.i") if swapped else (".m.bar.i", ".m.ground.j")
    return ends + (
        f"constraint create joint revolute joint_name=.m.h i_marker_name={i} j_marker_name={j}"
    )


@pytest.mark.parametrize("axes", [AXES, BACK])
@pytest.mark.parametrize("swapped", [False, True])
def test_torsional_spring_acts_on_the_angle_of_a_joint(tmp_path, axes, swapped):
    """T = preload - ct ȧ - kt (a - a0) on I about z of J, with a of x_I about z_J from x_J.

    The angular acceleration of the free bar is T / Ixx, whatever joint measures it. Angles: 140°
    between the x axes of the spring; stiffness per degree.
    """
    text = SPRING.format("rotational_spring_damper").replace("bar.cm", "bar.si").replace(
        "ground.base", "ground.sj"
    ) + ("stiffness=0.3 damping=0.2 preload=5 displacement_at_preload=130")
    turning = "part create rigid_body initial_velocity part_name=.m.bar wx=60"
    system = build(tmp_path, BAR, turning, make_hinge(axes, swapped), text)
    sense = (
        1.0 if axes is AXES else -1.0
    )  # z of J along x, or against it; then x_I at the same 140°
    torque = 5 - 0.2 * 60 * sense - 0.3 * 10
    shown = run(system, ["bar.angular_acceleration", "s.power"], 1e-3, step=1e-3)
    expected = sense * torque * 1e-3 / (1000e-6)
    assert shown["bar.angular_acceleration"][0, 0] == pytest.approx(expected, rel=1e-9)
    assert shown["s.power"][0] == pytest.approx(sense * torque * 1e-3 * np.radians(60), rel=1e-9)


@pytest.mark.parametrize("axes", [AXES, BACK])
@pytest.mark.parametrize("swapped", [False, True])
def test_torque_with_reaction_and_measures_of_its_markers(tmp_path, axes, swapped):
    """The same spring as a function of AZ and WZ, which count in rad."""
    markers = "i_marker_name=.m.bar.si j_marker_name=.m.ground.sj "
    text = (
        SINGLE
        + "type_of_freedom=rotational "
        + markers
        + (
            'function="5 - 0.2*RTOD*WZ(.m.bar.si, .m.ground.sj) ", '
            '"+ 0.3*(RTOD*AZ(.m.ground.sj, .m.bar.si) + 130)"'
        )
    )
    turning = "part create rigid_body initial_velocity part_name=.m.bar wx=60"
    system = build(tmp_path, BAR, turning, make_hinge(axes, swapped), text)
    sense = 1.0 if axes is AXES else -1.0
    torque = 5 - 0.2 * 60 * sense - 0.3 * 10
    found = run(system, ["bar.angular_acceleration"], 1e-3)["bar.angular_acceleration"][0, 0]
    assert found == pytest.approx(sense * torque * 1e-3 / (1000e-6), rel=1e-9)
    constant = SINGLE + "type_of_freedom=rotational " + markers + 'function="4*time + 3"'
    system = build(tmp_path, BAR, make_hinge(axes, swapped), constant)
    found = run(system, ["bar.angular_acceleration"], 1e-3)["bar.angular_acceleration"][0, 0]
    assert found == pytest.approx(sense * 3e-3 / (1000e-6), rel=1e-9)


def test_torque_between_free_bodies(tmp_path):
    other = BAR.replace(".m.bar", ".m.rod").rsplit("marker create", 1)[0]
    text = SINGLE + (
        "type_of_freedom=rotational i_marker_name=.m.bar.cm j_marker_name=.m.rod.cm "
        'function="10*time + 5"'
    )
    system = build(tmp_path, BAR, other, text)
    shown = run(system, ["bar.angular_acceleration", "rod.angular_acceleration"], 1e-3)
    np.testing.assert_allclose(shown["bar.angular_acceleration"][0], [0, 0, 2.0], atol=1e-12)
    np.testing.assert_allclose(shown["rod.angular_acceleration"][0], [0, 0, -2.0], atol=1e-12)
    tilted = "marker modify marker_name=.m.rod.cm orientation=0, 30, 0 relative_to=.m.rod"
    with pytest.raises(DiagramError, match=r"z of its markers have different directions"):
        build(tmp_path, BAR, other, text, tilted)


def test_force_along_the_line_of_its_markers(tmp_path):
    """Positive pushes apart; DM and VR are its own length and rate, in mm and mm/s."""
    text = (
        SINGLE
        + "type_of_freedom=translational "
        + ENDS
        + ('function="3*time + 2*(DM(cm, .m.ground.base) - 90) - 0.5*VR(.m.ground.base, cm)"')
    )
    moving = "part create rigid_body initial_velocity part_name=.m.bar vx=50"
    shown = run(build(tmp_path, BAR, moving, text), ["f.force", "bar.acceleration"], 1e-3)
    assert shown["f.force"][0] == pytest.approx(-(2 * 10 - 0.5 * 50))
    np.testing.assert_allclose(shown["bar.acceleration"][0], [-2.5, 0, 0], atol=1e-12)


@pytest.mark.parametrize("freedom", ["translational", "rotational"])
@pytest.mark.parametrize("on", [".m.ground", ".m.bar"])
def test_action_only_is_along_z_of_j(tmp_path, freedom, on):
    """On the ground the direction stays; on the part of I it turns with the part."""
    turned = Rotation.from_euler("ZXZ", [30, 40, 50], degrees=True).as_matrix()
    relative = "" if on == ".m.ground" else f"relative_to={on}"
    text = (
        f"marker create marker_name={on}.j location=1,2,3 orientation=30,40,50 {relative}\n"
        f"{SINGLE} type_of_freedom={freedom} action_only=on i_marker_name=.m.bar.cm "
        f'j_marker_name={on}.j function="100 + 0*time"'
    )
    system = build(tmp_path, TURNED, text)
    effort = "force" if freedom == "translational" else "torque"
    found = run(system, [f"f.applied_{effort}"], 1e-3)[f"f.applied_{effort}"][0]
    z = (
        turned[:, 2]
        if on == ".m.ground"
        else np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]]) @ turned[:, 2]
    )
    np.testing.assert_allclose(found, z * (100 if effort == "force" else 0.1), atol=1e-12)


def test_bushing_measures_i_in_axes_of_j(tmp_path):
    """Force on I: -k x - c ẋ in axes of J; rotational stiffness per degree."""
    text = (
        "marker create marker_name=.m.ground.j location=90, 5, 0 orientation=90, 0, 0\n"
        "part create rigid_body initial_velocity part_name=.m.bar vy=20 wx=30\n"
        "force create element_like bushing bushing_name=.m.b i_marker_name=.m.bar.cm "
        "j_marker_name=.m.ground.j stiffness=1, 2, 3 damping=0.1, 0.2, 0.3 "
        "tstiffness=4, 5, 6 tdamping=0.4, 0.5, 0.6 force_preload=0,0,0"
    )
    system = build(tmp_path, BAR, text)
    bushing = system.elements[0]
    assert (bushing.first.path, bushing.second.path) == ("ground.j", "bar.cm")
    np.testing.assert_allclose(bushing.stiffness[3:], np.array([4, 5, 6]) * 1e-3 * 180 / np.pi)
    shown = run(system, ["b.force"], 1e-3)["b.force"][0]
    # x of J is y of the world, y of J is -x: I is at -5 along x and -10 along y of J.
    np.testing.assert_allclose(shown, [-2 * 10, 1 * 5 - 0.1 * 20, 0], atol=1e-12)
    with pytest.raises(DiagramError, match=r"line 11: `.m.b` has a preload"):
        build(tmp_path, BAR, text.replace("force_preload=0", "force_preload=1"))


VECTOR = (
    "part create rigid_body name_and_position part_name=.m.ground\n"
    "floating_marker create floating_marker_name=.m.ground.fm\n"
    "marker create marker_name={0}.ref location=0,0,0 orientation=30, 40, 50 {1}\n"
    "force create direct {2} {2}_name=.m.v i_marker_name=.m.bar.cm "
    "j_floating_marker_name=.m.ground.fm ref_marker_name={0}.ref {3}"
)


@pytest.mark.parametrize("on", [".m.ground", ".m.bar"])
def test_vectors_in_axes_of_their_reference(tmp_path, on):
    relative = "" if on == ".m.ground" else f"relative_to={on}"
    axes = Rotation.from_euler("ZXZ", [30, 40, 50], degrees=True).as_matrix()
    if on == ".m.bar":
        axes = QUARTER @ axes
    forces = 'x_force_function="10" y_force_function="20*COS(time)" z_force_function="-30"'
    torques = forces.replace("force", "torque").replace("20*COS(time)", "200")
    force, torque = axes @ [10, 20, -30], axes @ [0.01, 0.2, -0.03]
    cases = {
        "force_vector": (forces, {"v.applied_force": force}),
        "torque_vector": (torques, {"v.applied_torque": torque}),
        "general_force": (f"{forces} {torques}",
                          {"v.applied_force": force, "v_torque.applied_torque": torque}),
    }  # fmt: skip
    for kind, (given, expected) in cases.items():
        text = VECTOR.format(on, relative, kind, given)
        shown = run(build(tmp_path, TURNED, text), list(expected), 1e-3)
        for name, value in expected.items():
            np.testing.assert_allclose(shown[name][0], value, rtol=1e-12, atol=1e-12)


def test_torque_vector_reacts_on_another_part(tmp_path):
    other = BAR.replace(".m.bar", ".m.rod").rsplit("marker create", 1)[0]
    text = (
        VECTOR.format(".m.ground", "", "torque_vector", 'z_torque_function="10"')
        .replace("j_floating_marker_name=.m.ground.fm", "j_part_name=.m.rod")
        .replace("30, 40, 50", "0, 0, 50")
    )
    shown = run(build(tmp_path, BAR, other, text), ["rod.angular_acceleration"], 1e-3)
    np.testing.assert_allclose(shown["rod.angular_acceleration"][0], [0, 0, -4.0], atol=1e-12)
    force = text.replace("torque", "force")
    with pytest.raises(DiagramError, match=r"line \d+: `.m.v` has a reaction on `rod` at a point"):
        build(tmp_path, BAR, other, force)


ASSEMBLY = (
    "ude create instance instance_name=.m.S definition_name=.MDI.Forces.spring location=0,0,0\n"
    "variable modify variable_name=.m.S.i_marker object_value=(.m.bar.cm)\n"
    "variable modify variable_name=.m.S.j_marker object_value=(.m.ground.base)\n"
    'variable modify variable_name=.m.S.stiffness_mode string_value="linear"\n'
    "variable modify variable_name=.m.S.stiffness_coefficient real_value=(20(newton/cm))\n"
    "variable modify variable_name=.m.S.stiffness_spline object_value=(NONE)\n"
    "variable modify variable_name=.m.S.damping_coefficient real_value=0.5\n"
    'variable modify variable_name=.m.S.damping_mode string_value="none"\n'
    'variable modify variable_name=.m.S.free_length_mode string_value="Design_Length"\n'
    "variable modify variable_name=.m.S.free_length real_value=1\n"
    "variable modify variable_name=.m.S.preload real_value=0.0\n"
    "ude modify instance instance_name=.m.S\n"
)


def test_spring_of_the_spring_button(tmp_path):
    (spring,) = build(tmp_path, BAR, ASSEMBLY).elements
    assert (spring.name, spring.first.path, spring.second.path) == ("S", "bar.cm", "ground.base")
    assert (spring.stiffness.number, spring.damping.number) == (pytest.approx(2e3), 0)
    assert spring.free_length == pytest.approx(0.1)
    (spring,) = build(tmp_path, BAR, ASSEMBLY.replace("Design_Length", "Custom")).elements
    assert spring.free_length == pytest.approx(1e-3)
    for old, new, message in (
        (".spring ", ".torsion_spring ", "an assembly of the definition `.MDI.Forces.torsion_sp"),
        ("preload real_value=0.0", "preload real_value=3", "has a preload"),
        ('"none"', '"spline"', "has a spline"),
        ("S.j_marker", "S.k_marker", "has no variable `j_marker`"),
    ):
        with pytest.raises(DiagramError, match=f"model.cmd, line .*`.m.S` .*{message}|{message}"):
            build(tmp_path, BAR, ASSEMBLY.replace(old, new))


ERRORS = {
    "no freedom": (SINGLE + ENDS + 'function="1"', "has no `type_of_freedom`"),
    "no function": (SINGLE + ENDS + "type_of_freedom=rotational", "has no `function`"),
    "empty function": (SINGLE + ENDS + 'type_of_freedom=tra function=""', "is empty"),
    "bad option": (SINGLE + ENDS + 'type_of_freedom=both function="1"', "is `both`"),
    "other markers": (SINGLE + ENDS + 'type_of_f=tra function="DM(.m.bar.end, .m.ground.base)"',
                      "may depend on time, DM"),
    "third observer": (SINGLE + ENDS + 'type_of_f=tra function="VR(cm, base, end)"', "depends on"),
    "no joint": (SPRING.format("rotational_spring_damper") + "damping=1",
                 "without a revolute or cylindrical joint about that axis"),
    "one part": (SPRING.format("translational_spring_damper").replace("ground.base", "bar.end")
                 + "damping=1", "has both markers on `bar`"),
    "no reaction": (VECTOR.format(".m.ground", "", "force_vector", "").replace(
        "j_floating_marker_name=.m.ground.fm", ""), "neither `j_floating_marker_name`"),
    "reaction on itself": (VECTOR.format(".m.ground", "", "torque_vector", "").replace(
        "j_floating_marker_name=.m.ground.fm", "j_part_name=.m.bar"), "reacts on one part"),
    "third part": (
        BAR.replace(".m.bar", ".m.rod").rsplit("marker create", 1)[0] + SINGLE
        + "type_of_freedom=tra action_only=on i_marker_name=.m.bar.cm j_marker_name=.m.rod.cm "
        'function="1"', "acts along z of `.m.rod.cm`, on a third part"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(tmp_path, case):
    text, message = ERRORS[case]
    with pytest.raises(DiagramError) as caught:
        build(tmp_path, BAR, text)
    assert caught.value.problems[0].startswith("model.cmd, line ")
    assert message in caught.value.problems[0]


def test_forces_that_are_switched_off(tmp_path):
    text = SPRING.format("translational_spring_damper") + "damping=1\n"
    off = "force attributes force_name=.m.s active=off"
    system = build(tmp_path, BAR, HINGE, text, off)
    assert isinstance(system, System) and not system.elements
