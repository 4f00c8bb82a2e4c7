"""Objects by name, commands one after the other, and everything that can be wrong with them."""

import pytest

from biella import DiagramError
from biella.blocks.multibody import read_adams

from .models import BAR, HINGE, START, UNITS, build, write

VARIABLE = "variable create variable_name=.m.k real_value=2\n"


def test_names_are_completed_from_the_defaults(tmp_path):
    text = (
        "part create rigid_body name_and_position part_name=arm location=1, 2, 3\n"
        "marker create marker_name=a location=4, 5, 6 relative_to=arm\n"
        "marker create marker_name=ARM.b location=7, 8, 10 relative_to=.M.Arm\n"
        "defaults model part_name=ground\n"
        "marker create marker_name=c location=1, 0, 0\n"
        "marker create marker_name=m.arm.d location=0, 0, 0\n"
    )
    system = build(tmp_path, text)
    arm = system["arm"]
    assert {name: marker.position.tolist() for name, marker in arm.markers.items()} == {
        "a": [0.004, 0.005, 0.006], "b": [0.007, 0.008, 0.01],
        "d": [-0.001, -0.002, -0.003],
    }  # fmt: skip
    assert list(system.ground.markers) == ["c"]


def test_modify_replaces_single_parameters(tmp_path):
    text = (
        "part modify rigid_body name_and_position part_name=.m.bar location=0, 0, 50\n"
        "marker modify marker_name=.m.bar.end orientation=0, 90, 0 relative_to=.m.bar\n"
        "constraint modify joint revolute joint_name=hinge j_marker_name=.m.ground.top\n"
    )
    top = "marker create marker_name=.m.ground.top location=-100, 0, 50 orientation=0, 90, 0"
    system = build(tmp_path, BAR, HINGE, top, text)
    end = system["bar.end"]
    assert end.position.tolist() == [-0.1, 0, 0] and end.rotation[:, 2].tolist() == [0, -1, 0]
    assert system["bar"].position.tolist() == [0, 0, 0.05]
    assert system["hinge"].first.path == "ground.top"


def test_eval_is_the_value_of_its_moment(tmp_path):
    point = "marker create marker_name=.m.ground.{} location=({}), 0, 0\n"
    text = (
        VARIABLE
        + point.format("now", "eval(.m.k + 1)")
        + point.format("last", ".m.k + 1")
        + point.format("mixed", ".m.k * eval(.m.k)")
        + "variable modify variable_name=.m.k real_value=10\n"
    )
    markers = build(tmp_path, text).ground.markers
    assert [markers[n].position[0] for n in ("now", "last", "mixed")] == pytest.approx(
        [0.003, 0.011, 0.020]
    )


def test_set_makes_a_variable_or_changes_it(tmp_path):
    text = "variable set variable_name=.m.k real_value={}\n"
    assert read_adams(write(tmp_path, text.format(3))).variables == {".m.k": 3.0}
    assert read_adams(write(tmp_path, VARIABLE, text.format(3))).variables == {".m.k": 3.0}


def test_units_may_stand_in_two_commands_but_not_change(tmp_path):
    assert build(tmp_path, BAR, "defaults units length=mm").bodies
    with pytest.raises(DiagramError, match="line 9: the unit of length changes within the model"):
        build(tmp_path, BAR, "defaults units length=meter")


def test_orientation_type_holds_from_where_it_stands(tmp_path):
    text = (
        "marker create marker_name=.m.ground.a location=0,0,0 orientation=0, 90, 0\n"
        "defaults units orientation_type=body321\n"
        "marker create marker_name=.m.ground.b location=0,0,0 orientation=0, 90, 0\n"
    )
    markers = build(tmp_path, text).ground.markers
    assert markers["a"].rotation[:, 2].tolist() == [0, -1, 0]
    assert markers["b"].rotation[:, 2].tolist() == [1, 0, 0]


# What a file says after START and BAR, which end on line 8; the line of the error, and its text.
DAMAGE = {
    "unknown command": ("frobnicate create a=1", 9, "there is no command `frobnicate`"),
    "misspelt command": ("markr create marker_name=.m.bar.x", 9, "Did you mean `marker`"),
    "ambiguous word": ("constraint create joint s joint_name=a", 9, "may mean screw, spherical"),
    "ambiguous parameter": ("constraint create joint revolute joint_name=.m.a i=.m.bar.end", 9,
                            "`i` may mean i_marker_name, i_part_name"),
    "incomplete command": ("part create rigid_body part_name=.m.p", 9, "is not complete"),
    "unknown parameter": ("marker create marker_name=.m.bar.x colour=red", 9,
                          "a parameter of `marker create` is `colour`"),
    "parameter twice": ("marker create marker_name=.m.bar.x location=0,0,0 location=1,1,1", 9,
                        "`location` is given already"),
    "initial conditions": (HINGE.rstrip() + " angular_velocity_ic=3", 9, "`angular_velocity_ic`"),
    "no name": ("marker create location=0,0,0", 9, "`marker create` has no `marker_name`"),
    "bad number": ("marker create marker_name=.m.bar.x location=1.O, 0, 0", 9,
                   "there is no unit `O`"),
    "word for a number": ("marker create marker_name=.m.bar.x location=a, 0, 0", 9,
                          "a number is expected, got `a`"),
    "text for a number": ('marker create marker_name=.m.bar.x location="1", 0, 0', 9,
                          "a number is expected, got the text"),
    "two numbers": ("marker create marker_name=.m.bar.x location=1, 2", 9,
                    "`location` of `.m.bar.x` has 3 numbers, got 2"),
    "huge number": ("marker create marker_name=.m.bar.x location=1e99, 0, 0", 9, "is too large"),
    "infinite number": ("marker create marker_name=.m.bar.x location=1e999, 0, 0", 9,
                        "is too large"),
    "duplicate marker": ("marker create marker_name=.m.bar.END location=0, 0, 0", 9,
                         "there is `.m.bar.end` already: see line 5"),
    "duplicate part": ("part create rigid_body name_and_position part_name=.m.bar", 9,
                       "there is `.m.bar` already: see line 3"),
    "second model": ("model create model_name=n", 9, "there is the model `m` already"),
    "other model": ("part create rigid_body name_and_position part_name=.n.p", 9,
                    "is in no model of this file"),
    "marker on no part": ("marker create marker_name=.m.bat.x location=0,0,0", 9,
                          "`.m.bat.x` is on no part"),
    "missing part": ("part modify rigid_body name_and_position part_name=.m.bra location=0,0,0", 9,
                     "there is no part `.m.bra`. Did you mean `.m.bar`"),
    "missing marker": (HINGE.replace("bar.end", "bar.edn"), 9, "Did you mean `.m.bar.end`"),
    "part for a marker": (HINGE.replace(".m.bar.end", ".m.bar"), 9,
                          "`.m.bar` is a part, where a marker is expected"),
    "other kind": (HINGE + "constraint modify joint fixed joint_name=.m.hinge", 10,
                   "`.m.hinge` is a revolute (line 9), not a fixed"),
    "circle of frames": (
        "marker create marker_name=.m.bar.x location=1,0,0 relative_to=.m.bar.y\n"
        "marker create marker_name=.m.bar.y location=1,0,0 relative_to=.m.bar.x", 9,
        "relative to each other in a circle: `.m.bar.x` (line 9) → `.m.bar.y` (line 10) → "),
    "own frame": ("part create rigid_body name_and_position part_name=.m.p location=1,0,0 "
                  "relative_to=.m.p", 9, "in a circle: `.m.p` (line 9) → `.m.p`"),
    "missing frame": ("marker create marker_name=.m.bar.x location=1,0,0 relative_to=.m.nix", 9,
                      "there is no part or marker `.m.nix`"),
    "circle of variables": (VARIABLE + "variable modify variable_name=.m.k real_value=(.m.k+1)", 10,
                            "depend on each other in a circle: `.m.k` (line 9) → `.m.k`"),
    "missing variable": ("marker create marker_name=.m.bar.x location=(.m.L), 0, 0", 9,
                         "there is no variable `.m.L`"),
    "no value": ("variable create variable_name=.m.k real_value=(1/0)", 9, "has no value"),
    "wrong unit": ("defaults units length=furlong", 9, "the unit of length is `furlong`"),
    "wrong kind of unit": ("defaults units mass=mm", 9, "the unit of mass is `mm`"),
    "unit that is a factor": ("defaults units units_consistency_factor=2", 9,
                              "`units_consistency_factor`"),
    "cylindrical coordinates": ("defaults units coordinate_system_type=cylindrical", 9,
                                "only cartesian coordinates are read"),
    "unknown sequence": ("defaults units orientation_type=body311", 9, "is `body311`"),
    "flexible body": ("part create flexible_body part_name=.m.f", 9,
                      "`part create flexible_body` is not read, and it changes the motion"),
    "contact": ("contact create contact_name=.m.c", 9, "contacts are not read: add one in Python"),
    "loop of a script": ("for variable_name=i start_value=1 end_value=3", 9, "run the script in"),
    "other file": ('file command read file_name="more.cmd"', 9, "other files are not opened"),
    "deleted part": ("part delete part_name=.m.bar", 9, "`part delete` is not read"),
    "name of dots": ("marker create marker_name=.m..x location=0,0,0", 9, "`.m..x` is no name"),
    "ambiguous name": (BAR.replace(".m.bar", ".m.rod").replace("marker create marker_name=.m.ground"
                       ".base location=0, 0, 0", HINGE.replace(".m.bar.end", "end").replace(
                           "constraint", "defaults model part_name=ground\nconstraint")), 15,
                       "`end` may be .m.bar.end, .m.rod.end: write it in full"),
    "two values for a name": ("marker create marker_name=.m.bar.x, .m.bar.y location=0,0,0", 9,
                              "`marker_name` has one value, got 2"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_named_with_file_and_line(tmp_path, case):
    text, line, message = DAMAGE[case]
    with pytest.raises(DiagramError) as caught:
        build(tmp_path, BAR, text)
    first = caught.value.problems[0]
    assert first.startswith(f"model.cmd, line {line}: "), first
    assert message in first


def test_all_commands_that_change_the_motion_are_named_at_once(tmp_path):
    text = (
        "contact create contact_name=.m.c\n"
        "geometry create shape block block_name=.m.bar.b\n"
        "force create element_like beam beam_name=.m.b\n"
        "list_info part part_name=.m.bar\n"
        "constraint create complex_joint gear gear_name=.m.g\n"
    )
    with pytest.raises(DiagramError) as caught:
        build(tmp_path, BAR, text)
    assert [text.split(":")[0] for text in caught.value.problems] == [
        f"model.cmd, line {n}" for n in (9, 11, 13)
    ]


def test_units_come_before_what_is_evaluated(tmp_path):
    start = "model create model_name=m\n"
    text = "variable create variable_name=.m.k real_value=(eval(3.0cm))\n"
    with pytest.raises(DiagramError, match="has to come before"):
        build(tmp_path, text, UNITS, start=start)
    assert read_adams(write(tmp_path, text)).variables == {".m.k": pytest.approx(30.0)}


def test_models_come_first(tmp_path):
    with pytest.raises(DiagramError, match="line 2: there is no model yet"):
        build(tmp_path, BAR, start=UNITS)
    assert START.startswith(UNITS)
