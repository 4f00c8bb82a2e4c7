"""Which outputs formulas may read."""

import pytest

from biella import DiagramError
from biella.blocks.multibody import Formula, System
from biella.blocks.multibody.elements.formula._reads import order_reads


def rig(force=0.0, damping=0.0):
    s = System("rig", planar=True)
    bob = s.body("bob", mass=2.0, inertia=0.1, position=(1, 0))
    s.revolute("pin", s.ground, bob, at=(0, 0))
    anchor = s.ground.marker("anchor", (0, 1))
    s.spring("tie", anchor, bob.marker("tie"), stiffness=10.0, damping=damping)
    s.force("push", bob.marker("c"), (force, 0))
    return s


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        (
            "2*bb.x",
            r"the formula of `push.force.x` reads `bb.x`, and `rig` has no such output\. Did you "
            r"mean `bob.x` or `bob.z`\? Outputs, the nearest first: bob.x, bob.y, .*"
            r"print\(system.outputs\(\)\) lists all",
        ),
        ("bob.position", r"`bob.position`, and that has 3 numbers: read one, `bob.position\[0\]`"),
        ("bob.position[3]", r"`bob.position\[3\]`, and that has 3 numbers"),
        ("bob.x[0]", "`bob.x` is one number"),
        ("bob.rotation[0]", "the sign of its Euler parameters jumps. Read e0 … e3"),
        ("pin.closure", "it is an error of the computation"),
        (
            "pin.acceleration",
            "`push.force.x` depends on itself: `push.force.x` → accelerations and reactions → "
            "`pin.acceleration` → `push.force.x`",
        ),
        ("pin.angle_acceleration", "→ `pin.angle_acceleration` →"),
        ("bob.acceleration[0]", "accelerations and reactions"),
        ("pin.force[0]", "feed `pin.force` back through a delay"),
        ("push.power", "`push.force.x` → `push.power` → `push.force.x`"),
    ],
)
def test_what_cannot_be_read_is_named(formula, message):
    with pytest.raises(DiagramError, match=message):
        rig(formula).block()


def test_a_loop_through_two_elements_is_shown():
    message = (
        "`push.force.x` depends on itself: `push.force.x` → `tie.force` → `tie.damping` → "
        "`push.power` → `push.force.x`"
    )
    with pytest.raises(DiagramError, match=message):
        rig("tie.force", "0.1*push.power").block()


def test_a_loop_beside_a_formula_is_not_its_own():
    s = rig("tie.force", "0.1*tie.power")
    with pytest.raises(DiagramError) as error:
        s.block()
    assert len(error.value.problems) == 1
    assert "`tie.damping` → `tie.power` → `tie.damping`" in str(error.value)


def test_what_an_output_depends_on_comes_first():
    s = rig("tie.force", "0.1*bob.x")
    assert [read.text for read in order_reads(s)] == ["bob.x", "tie.force"]
    s.block()


def test_prescribed_motion_reads_nothing():
    s = rig()
    with pytest.raises(DiagramError, match=r"`dr` depends on `bob\.x`, an output of the mechanism"):
        s.driver("dr", s["pin"], "bob.x")
    with pytest.raises(DiagramError, match=r"motion `x` of marker `ground\.road` depends"):
        s.ground.marker("road", motion={"x": "bob.x"})


@pytest.mark.parametrize(
    ("text", "parameters", "message"),
    [
        ("k*t", {"kk": 1.0}, "does not use its parameter `kk`. Did you mean `k`"),
        ("k*t", {"k": float("nan")}, "parameter `k` of the formula `k\\*t`"),
        ("k*t", {"t": 1.0}, "a word other than t"),
        ("k[1]*t", {"k": 1.0}, "`k` is one number"),
        ("t.x.", {}, "cannot be read"),
        ("x.y()", {}, "a formula cannot hold"),
        ("(x+1).y", {}, "a formula cannot hold a dot"),
    ],
)
def test_a_formula_that_cannot_be_read(text, parameters, message):
    with pytest.raises(DiagramError, match=message):
        Formula(text, parameters)


def test_other_names_are_refused_as_before():
    with pytest.raises(DiagramError, match="depends on `x`, which is not available"):
        rig("x + 1")
    with pytest.raises(DiagramError, match="depends on `k`, which is not available"):
        rig(Formula("k + p*bob.x", {"p": 1.0}))


def test_a_value_at_a_time_needs_a_mechanism():
    with pytest.raises(DiagramError, match=r"depends on `bob\.x`, which is known to a moving"):
        Formula("bob.x + t").value(1.0)
    assert Formula("k*t", {"k": 3.0}).value(2.0) == 6.0


def test_laws_with_equal_text_and_parameters_are_equal():
    assert Formula("k*t", {"k": 1}) == Formula("k*t", {"k": 1.0})
    assert Formula("k*t", {"k": 1}) != Formula("k*t", {"k": 2})
    assert hash(Formula("k*t", {"k": 1})) == hash(Formula("k*t", {"k": 1.0}))
