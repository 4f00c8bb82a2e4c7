"""How redundant joints share a load: one rule in the engine and in analyses, in any order."""

from __future__ import annotations

from itertools import permutations
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biella import BiellaWarning, Diagram, DiagramError, simulate
from biella.blocks.multibody import Joint, Linear, System
from biella.blocks.multibody.mechanisms import slider_crank
from biella.scheduler.engine._engine import Instance

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore:.*redundant joints")]

Z = (0, 0, 1)


def reactions(system, *, at=0, until=1e-3, mode="continuous"):
    """Forces and torques of all joints that the engine gives, by joint."""
    names = [joint.name for joint in system.joints]
    d = Diagram("mechanism", step=1e-3)
    outputs = [f"{name}.{what}" for name in names for what in ("force", "torque")]
    d.add(system.block(outputs=outputs, mode=mode), name="plant")
    result = simulate(d, until)
    return {
        name: np.concatenate([result[f"plant.{name}.{what}"][at] for what in ("force", "torque")])
        for name in names
    }


def shaft(places, order=None, *, weight_at=0.8, span=1.0, driven=False):
    """A shaft of 10 kg in revolutes at parts of its span, its weight across."""
    s = System("shaft", gravity=(0, -9.81, 0))
    body = s.body("shaft", mass=10.0, inertia=(1, 1, 0.1), com=(0, 0, weight_at * span))
    for n in order or range(len(places)):
        s.revolute(f"b{n}", s.ground, body, at=(0, 0, places[n] * span), axis=Z)
    if driven:
        s.driver("hold", cast(Joint, s["b0"]), 0.0)
    return s


def assert_equal(found, expected, tolerance=1e-9):
    size = max(np.abs(value).max() for value in expected.values())
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=tolerance * size), name


@pytest.mark.parametrize("span", [1.0, 0.01, 100.0])
def test_a_shaft_in_two_bearings(span):
    """Minimum of F₁² + F₂² + (M₁² + M₂²) / span²: F₂ / W = (2 + x) / 5 for a weight at x span."""
    weight = 98.1
    for x in (0.5, 0.8):
        for order in ((0, 1), (1, 0)):
            found = reactions(shaft((0, 1), order, weight_at=x, span=span))
            right = weight * (2 + x) / 5
            assert found["b1"][1] == pytest.approx(right, rel=1e-12)
            assert found["b0"][1] == pytest.approx(weight - right, rel=1e-12)
            couple = -span * (x * weight - right) / 2
            for name in ("b0", "b1"):
                assert found[name][3] == pytest.approx(couple, abs=1e-12 * weight * span)


def test_a_shaft_in_three_bearings_in_any_order():
    """Each order cuts other joints."""
    places = (0.0, 0.3, 1.0)
    expected = reactions(shaft(places))
    matrix = [[1, 1, 1, 0, 0, 0], [*places, -1, -1, -1]]
    least = np.linalg.pinv(np.array(matrix, dtype=float)) @ [98.1, 0.8 * 98.1]
    assert [expected[f"b{n}"][1] for n in range(3)] == pytest.approx(least[:3], rel=1e-12)
    assert [expected[f"b{n}"][3] for n in range(3)] == pytest.approx(least[3:], rel=1e-12)
    for order in permutations(range(3)):
        assert_equal(reactions(shaft(places, order)), expected, 1e-13)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_engine_kinematics_and_equilibrium_agree(order):
    s = shaft((0, 1), order, driven=True)
    engine, motion, rest = reactions(s), s.kinematics([0.0]), s.equilibrium()
    for name, value in engine.items():
        assert motion[f"{name}.force"][0] == pytest.approx(value[:3], abs=1e-12)
        assert motion[f"{name}.torque"][0] == pytest.approx(value[3:], abs=1e-12)
        assert rest.reactions[name].force_j == pytest.approx(value[:3], abs=1e-12)
    assert set(motion.not_unique) == set(rest.not_unique) == {"b0", "b1"}


def five_bar(joint_order, body_order, *, ends=(), driven=False):
    """Three parallel bars under a coupler, loaded in all directions: 7 redundant rows."""
    s = System("five-bar", gravity=(1.0, -9.81, 3.0))
    tip, bodies = np.array([0.5, -0.6, 0.0]), {}
    bars = {"a": 0.0, "b": 1.2, "c": 2.5}
    for n in body_order:
        if n == 3:
            bodies["d"] = s.body("d", mass=19.0, inertia=(1, 2, 2.5), com=(-0.6, 0.1, 0.2),
                                 position=(1.25 + tip[0], tip[1], 0))  # fmt: skip
        else:
            name = "abc"[n]
            bodies[name] = s.body(name, mass=7.0, inertia=(0.5, 0.6, 0.7),
                                  position=tip / 2 + [bars[name], 0, 0])  # fmt: skip
    joints = []
    for name, x in bars.items():
        joints.append((f"{name}_foot", s.ground, bodies[name], (x, 0, 0)))
        joints.append((f"{name}_pin", bodies[name], bodies["d"], (x + tip[0], tip[1], 0)))
    for n in joint_order:
        name, first, second, at = joints[n]
        if n in ends:
            first, second = second, first
        s.revolute(name, first, second, at=at, axis=Z)
    if driven:
        s.driver("drive", cast(Joint, s["a_foot"]), Linear(0.0, -0.7 if 0 in ends else 0.7))
    return s


@given(
    joints=st.permutations(range(6)),
    bodies=st.permutations(range(4)),
    ends=st.sets(st.integers(0, 5)),
    mode=st.sampled_from(["continuous", "internal"]),
)
@settings(max_examples=15)
def test_neither_order_nor_direction_nor_cuts_matter(joints, bodies, ends, mode):
    expected = reactions(five_bar(range(6), range(4)))
    found = reactions(five_bar(joints, bodies, ends=ends), mode=mode)
    turned = {
        name: -value if n in ends else value for n, (name, value) in enumerate(expected.items())
    }
    assert_equal(found, turned)


@given(joints=st.permutations(range(6)), bodies=st.permutations(range(4)))
@settings(max_examples=8)
def test_a_moving_five_bar_has_the_reactions_of_kinematics(joints, bodies):
    """At the end of 0.2 s at a given speed: the projection leaves 1e-13 of errors in places."""
    s = five_bar(joints, bodies, driven=True)
    engine = reactions(s, at=-1, until=0.2)
    motion = s.kinematics([0.2])
    expected = {
        name: np.concatenate([motion[f"{name}.force"][0], motion[f"{name}.torque"][0]])
        for name in engine
    }
    assert_equal(engine, expected, 1e-9)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=15)
def test_random_structures_have_the_least_norm(seed):
    """A body in random joints that hold it: the engine's reactions against a pseudo-inverse."""
    rng = np.random.default_rng(seed)
    kinds = ["revolute", "spherical", "cylindrical", "prismatic", "fixed", "guide"]
    chosen = [*rng.choice(kinds, rng.integers(2, 5)), "spherical", "spherical", "spherical"]
    rng.shuffle(chosen)
    at, axes = rng.normal(size=(len(chosen), 3)), rng.normal(size=(len(chosen), 3))
    com, gravity = rng.normal(size=3), rng.normal(size=3)
    carrier_at = rng.normal(size=3)

    def make(order):
        s = System("held", gravity=gravity)
        carrier = s.body("carrier", mass=1.0, inertia=1.0)
        body = s.body("body", mass=2.0, inertia=1.0, com=com)
        # Something must be able to move: the carrier turns about its own axis.
        s.revolute("turn", s.ground, carrier, at=carrier_at, axis=Z)
        for n in order:
            axis = {} if chosen[n] in ("spherical", "fixed") else {"axis": axes[n]}
            getattr(s, chosen[n])(f"j{n}", s.ground, body, at=at[n], **axis)
        return s

    found = reactions(make(range(len(chosen))))
    again = reactions(make(rng.permutation(len(chosen))))
    assert_equal(again, found, 1e-9)
    places = [*at, carrier_at]
    size = max(np.linalg.norm(a - b) for a in places for b in places)
    columns = []
    for kind, place, axis in zip(chosen, at, axes, strict=True):
        along = axis / np.linalg.norm(axis)
        across = np.eye(3) - np.outer(along, along)
        force = across if kind in ("cylindrical", "prismatic", "guide") else np.eye(3)
        free = {"spherical": 0 * across, "guide": 0 * across}
        turn = free.get(kind, across if kind in ("revolute", "cylindrical") else np.eye(3))
        cross = np.array([np.cross(place, e) for e in np.eye(3)]).T
        block = np.block([[force, np.zeros((3, 3))], [cross @ force, size * turn]])
        columns.append(block)
    load = 2.0 * np.concatenate([gravity, np.cross(com, gravity)])
    least = np.linalg.pinv(np.hstack(columns), rcond=1e-10) @ -load
    largest = np.abs(least).max()
    for n in range(len(chosen)):
        value = least[6 * n : 6 * n + 6] * [1, 1, 1, size, size, size]
        assert found[f"j{n}"] == pytest.approx(value, abs=1e-9 * largest * max(1.0, size))


def test_units_of_length_do_not_matter():
    """The same mechanism in other units: forces stay, torques scale."""

    def table(scale):
        s = System("table", gravity=(0.4, 0, -9.81))
        top = s.body("top", mass=4.0, inertia=scale**2, com=(0.2 * scale, 0.1 * scale, 0.0))
        for n, (x, y) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1))):
            s.cylindrical(f"leg{n}", s.ground, top, at=(x * scale, y * scale, 0), axis=(1, 0, 0))
        return reactions(s)

    small, large = table(1.0), table(1000.0)
    for name, value in small.items():
        assert large[name][:3] == pytest.approx(value[:3], abs=1e-10)
        assert large[name][3:] == pytest.approx(1000.0 * value[3:], abs=1e-7)


def test_given_stiffnesses_share_as_springs_do():
    """Two springs in place of the bearings, moments negligible: simple supports, then 3 : 1."""
    s = shaft((0, 1))
    s.joint_stiffness("b0", force=1e7, torque=1e-3)
    s.joint_stiffness(s["b1"], force=1e7, torque=1e-3)
    found = reactions(s)
    assert [found[n][1] for n in ("b0", "b1")] == pytest.approx([19.62, 78.48], rel=1e-9)
    s = shaft((0, 0), weight_at=0.0, driven=True)
    s.joint_stiffness("b0", force=3e7, torque=1e4)
    s.joint_stiffness("b1", force=1e7, torque=1e4)
    found, motion = reactions(s), s.kinematics([0.0])
    assert [found[n][1] for n in ("b0", "b1")] == pytest.approx([0.75 * 98.1, 0.25 * 98.1])
    assert motion["b0.force"][0] == pytest.approx(found["b0"][:3], abs=1e-10)


def test_stiffnesses_are_given_for_all_joints_or_none():
    s = shaft((0, 1))
    s.joint_stiffness("b0", force=1e7, torque=1.0)
    with pytest.raises(DiagramError, match=r"for some joints only: give it for `b1` too"):
        s.block(outputs=["b0.force"])
    with pytest.raises(DiagramError, match="must be positive"):
        s.joint_stiffness("b1", force=1e7, torque=0.0)
    with pytest.raises(DiagramError, match="`shaft` is not a joint"):
        s.joint_stiffness("shaft", force=1e7, torque=1.0)


# -- warnings


@pytest.mark.filterwarnings("error")
def test_an_output_that_is_not_unique_is_warned_of_once():
    expected = r"`b1\.force` is one of them: at t = 0 s 54\.94 of its 54\.94 N .*joint_stiffness"
    with pytest.warns(BiellaWarning, match=expected) as caught:
        reactions(shaft((0, 1)), until=0.5)
    assert len(caught) == 1


@pytest.mark.filterwarnings("error")
def test_no_warning_where_nothing_is_shared():
    """Stiffnesses are given; no reaction is an output; or none of the load is shared."""
    s = shaft((0, 1))
    for name in ("b0", "b1"):
        s.joint_stiffness(name, force=1e7, torque=1e4)
    reactions(s)
    d = Diagram("shaft", step=1e-3)
    d.add(shaft((0, 1)).block(outputs=["b0.angle", "b1.angle"]), name="plant")
    simulate(d, 0.01)
    # Loads in its plane: what keeps a spatial slider-crank there carries nothing.
    reactions(slider_crank(), until=0.3)


@pytest.mark.filterwarnings("error")
def test_a_load_that_comes_later_is_warned_of():
    s = System("shaft", gravity=(0, 0, 0))
    body = s.body("shaft", mass=10.0, inertia=(1, 1, 0.1), com=(0, 0, 0.8))
    for n in (0, 1):
        s.revolute(f"b{n}", s.ground, body, at=(0, 0, n), axis=Z)
    s.force("push", body.marker("m"), (0, "100*max(t - 0.1, 0)", 0))
    with pytest.warns(BiellaWarning, match=r"`b\d\.\w+` is one of them: at t = 0\.[23]"):
        reactions(s, until=0.3)


@pytest.mark.filterwarnings("error")
def test_export_of_an_output_that_is_not_unique_is_warned_of(tmp_path):
    d = Diagram("shaft", step=1e-3)
    plant = d.add(shaft((0, 1)).block(outputs=["b0.force"]), name="plant")
    d.output("force", plant["b0.force"])
    with pytest.warns(BiellaWarning, match=r"`b0\.force` is one of them"):
        d.export_fmu(tmp_path / "shaft.fmu")


def test_save_and_restore_give_the_same_bits():
    s = five_bar(range(6), range(4))
    d = Diagram("five-bar", step=1e-3)
    d.add(s.block(outputs=[f"{joint.name}.force" for joint in s.joints]), name="plant")
    with Instance(d.compile()) as instance:
        instance.initialize()
        instance.run(70)
        state = instance.save()
        instance.run(70)
        after = instance.save()
        instance.restore(state)
        instance.run(70)
        assert instance.save() == after
