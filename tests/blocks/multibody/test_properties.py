"""What holds for every mechanism, on random ones: trees, loops and redundant rings.

Places, masses and moments are of the order of 1, speeds of 1/s and accelerations of 10 to 100. The
kernel gives accelerations that are right to some 1e-12 of the largest one; where a test has a wider
tolerance, it says why.
"""

from __future__ import annotations

import functools
import inspect
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import hypothesis
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from biella import DiagramError
from biella.blocks.multibody import Body, Joint, System
from biella.blocks.multibody.plant._tree import grow_tree
from biella.blocks.multibody.system._rotations import rotation_from_quaternion, skew

pytestmark = pytest.mark.engine

Array = NDArray[np.float64]
Look = Callable[..., dict[str, Any]]

SEEDS = st.integers(0, 2**32 - 1)
CUTS = {
    "fixed": (0, 1),
    "revolute": (0, 1, 2),
    "prismatic": (0, 1, 2),
    "cylindrical": (0, 1, 2),
    "spherical": (0, 1),
    "universal": (0, 1, 2),
    "planar": (0, 1, 2),
    "guide": (0, 1, 2),
    "in_plane": (0, 1, 2),
    "distance": (0,),
}
"""Joints, and where a loop with them can be cut: at them, or at two others."""
ONE_WAY = ("guide", "in_plane")
"""Joints that change if their ends are exchanged."""
DRAWINGS = ("tree", "loops", "redundant")
EFFORTS = ("force", "torque")
LINEAR = ("position", "velocity", "acceleration")
ANGULAR = ("angular_velocity", "angular_acceleration")

FINE = 2e-4
"""A step at which RK4 in one tree of joints or another differs by less than what is compared."""


def few(test: Callable[..., None]) -> Callable[..., None]:
    """Try a test with 6 seeds by default, and with 15 among the slow tests."""

    def run(count: int, **arguments: Any) -> None:
        @hypothesis.seed(zlib.crc32(test.__name__.encode()))
        @settings(max_examples=count)
        @given(seed=SEEDS)
        def check(seed: int) -> None:
            test(seed=seed, **arguments)

        check()

    functools.update_wrapper(run, test)
    kept = [p for p in inspect.signature(test).parameters.values() if p.name != "seed"]
    count = inspect.Parameter("count", inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = inspect.Signature([*kept, count])  # type: ignore[attr-defined]
    counts = [6, pytest.param(15, marks=pytest.mark.slow)]
    marked: Callable[..., None] = pytest.mark.parametrize("count", counts)(run)
    return marked


def exponential(turn: Array) -> Array:
    """Return the rotation by a vector of angle and axis."""
    angle = float(np.linalg.norm(turn))
    if angle < 1e-300:
        return np.eye(3)
    u = skew(turn / angle)
    return np.asarray(np.eye(3) + np.sin(angle) * u + (1.0 - np.cos(angle)) * (u @ u))


def rotation(seen: dict[str, Any], body: str) -> Array:
    return rotation_from_quaternion(seen[f"{body}.rotation"])


def pose_of(seen: dict[str, Any], body: Body, t: float = 0.0) -> tuple[Array, Array]:
    """Return where a body is after t, if its accelerations stay as they are seen."""
    if body.is_ground:
        return np.zeros(3), np.eye(3)
    p, v, a, w, wd = (
        seen[f"{body.name}.{what}"]
        for what in (
            "position",
            "velocity",
            "acceleration",
            "angular_velocity",
            "angular_acceleration",
        )
    )
    return p + v * t + a * t * t / 2, exponential(w * t + wd * t * t / 2) @ rotation(
        seen, body.name
    )


def equations(joint: Joint, pose_i: tuple[Array, Array], pose_j: tuple[Array, Array]) -> Array:
    """Return Φ of a joint as the description defines it, from the poses of its bodies alone."""
    (p_i, r_i), (p_j, r_j) = pose_i, pose_j
    d = p_j + r_j @ joint.second.position - p_i - r_i @ joint.first.position
    axes = {f"{n}_i": (r_i @ joint.frame_i)[:, k] for k, n in enumerate("fgh")}
    axes |= {f"{n}_j": (r_j @ joint.frame_j)[:, k] for k, n in enumerate("fgh")}
    length = joint.length or 0.0
    values = {
        "S": lambda row: d[row.component],
        "d1": lambda row: axes[row.a] @ axes[row.b],
        "d2": lambda row: axes[row.a] @ d,
        "SS": lambda row: d @ d - length**2,
        "angle": lambda row: np.arctan2(axes["f_j"] @ axes["g_i"], axes["f_j"] @ axes["f_i"]),
    }
    return np.array([values[row.kind](row) for row in joint.rows])


def differences(f: Callable[[float], Array], h: float) -> tuple[Array, Array]:
    """Return f' and f'' at 0 to order four, by central differences at h and h/2."""

    def first(h: float) -> Array:
        return (f(h) - f(-h)) / (2 * h)

    def second(h: float) -> Array:
        return (f(h) - 2 * f(0.0) + f(-h)) / h**2

    return (4 * first(h / 2) - first(h)) / 3, (4 * second(h / 2) - second(h)) / 3


def check_joints(system: System, seen: dict[str, Any], what: str) -> None:
    """Hold every joint against its bare equations: Φ = Φ' = Φ'' = 0, and its reaction is Jᵀλ."""
    size = max(1.0, *(np.abs(v).max() for k, v in seen.items() if k.endswith("acceleration")))
    most = max(1.0, *(np.abs(seen[path]).max() for path in reactions(system)))
    for joint in system.joints:
        bodies = joint.first.body, joint.second.body

        def along(t: float, joint: Joint = joint, bodies: Any = bodies) -> Array:
            return equations(joint, *(pose_of(seen, body, t) for body in bodies))

        rate, bend = differences(along, 4e-3)
        # Left over: h⁴ times the sixth derivative, and the rounding of Φ divided by h².
        assert np.abs(along(0.0)).max() < 1e-12, (what, joint.name)
        assert np.abs(rate).max() < 1e-8 * size**2, (what, joint.name)
        assert np.abs(bend).max() < 1e-7 * size**2, (what, joint.name)

        columns, wrench = [], []
        force, torque = seen[f"{joint.name}.force"], seen[f"{joint.name}.torque"]
        place = pose_of(seen, bodies[1])
        at = place[0] + place[1] @ joint.second.position
        for side, body in enumerate(bodies):
            if body.is_ground:
                continue
            sign = (-1.0, 1.0)[side]
            p, r = pose_of(seen, body)
            wrench += [*(sign * force), *(sign * (torque + np.cross(at - p, force)))]
            for k in range(6):
                step = np.eye(6)[k]

                def moved(
                    t: float,
                    p: Array = p,
                    r: Array = r,
                    step: Array = step,
                    side: int = side,
                    joint: Joint = joint,
                    bodies: Any = bodies,
                ) -> Array:
                    poses = [pose_of(seen, body) for body in bodies]
                    poses[side] = p + step[:3] * t, exponential(step[3:] * t) @ r
                    return equations(joint, *poses)

                columns.append(differences(moved, 4e-3)[0])
        jacobian, pushed = np.array(columns), np.array(wrench)
        multipliers = np.linalg.lstsq(jacobian, pushed, rcond=None)[0]
        left = np.abs(jacobian @ multipliers - pushed).max()
        assert left < 1e-8 * most, (what, joint.name)


def unique_reactions(system: System) -> list[str]:
    """Return the reactions that do not depend on how redundant rows share them."""
    return [f"{name}.{what}" for name in system.report().unique for what in EFFORTS]


def reactions(system: System) -> list[str]:
    return [f"{joint.name}.{what}" for joint in system.joints for what in EFFORTS]


@pytest.mark.parametrize("swapped", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("kind, cut", [(kind, cut) for kind in CUTS for cut in CUTS[kind]])
def test_jacobian_and_bias_of_every_joint(
    kind: str, swapped: bool, cut: int, draw_closed: Any, look: Look
) -> None:
    """Against finite differences of its equations, in the tree or closing a loop, both ways round.

    With accelerations that the kernel gives, J v' + c is Φ'' along the motion: it must be 0. What
    the joint does to its two bodies must be a combination of the rows of J.
    """
    for seed in range(3):
        s = draw_closed(kind, swapped, cut, seed).build()
        assert [joint.name for joint in grow_tree(s).cuts] == [("k", "plane", "slide")[cut]]
        seen = look(s, reactions(s))
        check_joints(s, seen, f"{kind}, seed {seed}")


def draw_planar_closed(kind: str, swapped: bool, cut: int, seed: int) -> System:
    """Put a joint of one kind into a loop in the plane, as `draw_closed` does in space.

    Cut: 0 is the joint `k`, 1 the guide.
    """
    rng = np.random.default_rng(seed)
    s = System("plane", rng.normal(scale=6.0, size=2), planar=True)
    base, a, b = (
        s.body(
            name,
            mass=float(rng.uniform(0.5, 3.0)),
            inertia=float(rng.uniform(0.05, 0.3)),
            com=rng.uniform(-0.3, 0.3, size=2),
            position=rng.uniform(-1.0, 1.0, size=2),
            rotation=float(rng.uniform(-3.0, 3.0)),
            velocity=rng.normal(size=2),
            angular_velocity=float(rng.normal()),
        )
        for name in ("base", "a", "b")
    )

    def add(joint_kind: str, name: str, first: Body, second: Body) -> Joint:
        place, angle = rng.uniform(-1.0, 1.0, size=2), float(rng.uniform(-3.0, 3.0))
        along = np.array([np.cos(angle), np.sin(angle)])
        turn = float(rng.uniform(-2.0, 2.0)) if joint_kind in ("revolute", "guide") else 0.0
        other = place + along * float(rng.uniform(-0.5, 0.5)) * (
            joint_kind in ("prismatic", "guide", "distance")
        )
        ends = [
            body.marker(
                f"{name}_{side}",
                (body.rotation.T @ [*(at - body.position[:2]), 0.0])[:2],
                rotation=heading - float(np.arctan2(body.rotation[1, 0], body.rotation[0, 0])),
            )
            for side, body, at, heading in zip(
                "ij", (first, second), (place, other), (angle, angle + turn), strict=True
            )
        ]
        made: Joint = getattr(s, joint_kind)(name, *ends)
        return made

    add("revolute", "foot", s.ground, base)
    add(kind, "k", *((a, base) if swapped else (base, a)))
    slide = add("prismatic", "slide", base, b)
    guide = add("guide", "guide", b, a)
    for joint in (slide, guide) if cut == 0 else ():
        s.force(f"{joint.name}_effort", joint, 0.0)
    s.torque("motor", cast(Joint, s["foot"]), 3.0)
    return s


@pytest.mark.parametrize("swapped", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize(
    "kind, cut",
    [(k, c) for k in ("fixed", "revolute", "prismatic", "guide") for c in (0, 1)]
    + [("distance", 0)],
)
def test_jacobian_and_bias_of_every_joint_in_the_plane(
    kind: str, swapped: bool, cut: int, look: Look
) -> None:
    """As in space; a motor turns the foot, whose reaction must not show it."""
    for seed in range(3):
        s = draw_planar_closed(kind, swapped, cut, seed)
        assert [joint.name for joint in grow_tree(s).cuts] == [("k", "guide")[cut]]
        check_joints(s, look(s, reactions(s)), f"{kind}, seed {seed}")


@few
@pytest.mark.parametrize("what", DRAWINGS)
def test_joints_of_random_mechanisms(what: str, seed: int, draw: Any, look: Look) -> None:
    s = draw(what, seed).build()
    check_joints(s, look(s, reactions(s)), what)


@pytest.mark.parametrize("kind", CUTS)
def test_a_joint_moves_alike_both_ways_round_and_wherever_its_loop_is_cut(
    kind: str, draw_closed: Any, look: Look
) -> None:
    """Six ways to run one mechanism; guides are another one when swapped, so three for them."""
    for seed, first in ((0, False), (1, False), (2, True)):
        start = look(draw_closed(kind, first, 0, seed).build())
        shown = [f"{name}.{what}" for name in ("foot", "k", "slide", "plane") for what in EFFORTS]
        ends = {
            (swapped, cut): look(
                draw_closed(kind, swapped, cut, seed).started(start).build(),
                shown,
                steps=50,
                step=5e-4,
            )
            for swapped in ([first] if kind in ONE_WAY else [False, True])
            for cut in CUTS[kind]
        }
        one = ends[first, 0]
        most = max(1.0, *(np.abs(one[path]).max() for path in shown))
        for (swapped, cut), other in ends.items():
            why = f"seed {seed}, swapped {swapped}, cut {cut}"
            for body in ("base", "a", "b"):
                # RK4 in other coordinates: h⁴ of motions at some 20 rad/s.
                for path in ("position", "velocity"):
                    a, b = one[f"{body}.{path}"], other[f"{body}.{path}"]
                    assert a == pytest.approx(b, abs=1e-8), why
                a, b = rotation(one, body), rotation(other, body)
                assert a == pytest.approx(b, abs=1e-8), why
            # Of a swapped joint the other body is the second one, and the torque about its marker.
            paths = shown if swapped == first else ["k.force"]
            for path in paths:
                value = other[path] * (1.0 if swapped == first else -1.0)
                assert value == pytest.approx(one[path], abs=1e-8 * most), (why, path)


@few
@pytest.mark.parametrize("what", DRAWINGS)
def test_ideal_joints_do_no_work(what: str, seed: int, draw: Any, look: Look) -> None:
    """The rate of kinetic energy is the power of weights, loads and springs."""
    blueprint = draw(what, seed)
    seen = look(blueprint.build())
    power = {}
    for body in blueprint.bodies:
        get = {k: seen[f"{body.name}.{k}"] for k in ("velocity", "angular_velocity")}
        v, w = get["velocity"], get["angular_velocity"]
        a, wd = seen[f"{body.name}.acceleration"], seen[f"{body.name}.angular_acceleration"]
        r = rotation(seen, body.name)
        arm, tensor = r @ body.com, r @ body.inertia @ r.T
        v_c = v + np.cross(w, arm)
        a_c = a + np.cross(wd, arm) + np.cross(w, np.cross(w, arm))
        power[f"inertia {body.name}"] = -body.mass * v_c @ a_c
        power[f"spin {body.name}"] = -w @ (tensor @ wd + np.cross(w, tensor @ w))
        power[f"weight {body.name}"] = body.mass * blueprint.gravity @ v_c
    for load in blueprint.loads:
        r = rotation(seen, load.body) if load.frame == "body" else np.eye(3)
        v, w = seen[f"{load.body}.velocity"], seen[f"{load.body}.angular_velocity"]
        arm = rotation(seen, load.body) @ load.at
        power[load.name] = (r @ load.force) @ (v + np.cross(w, arm)) + (r @ load.torque) @ w
    for spring in blueprint.springs:
        v, w = seen[f"{spring.body}.velocity"], seen[f"{spring.body}.angular_velocity"]
        arm = rotation(seen, spring.body) @ spring.at
        d = seen[f"{spring.body}.position"] + arm - spring.anchor
        length = float(np.linalg.norm(d))
        rate = d @ (v + np.cross(w, arm)) / length
        tension = spring.stiffness * (length - spring.free_length) + spring.damping * rate
        power[spring.name] = -tension * rate
    values = np.array(list(power.values()))
    assert abs(values.sum()) < 1e-10 * max(1.0, np.abs(values).max())


@few
@pytest.mark.parametrize("what", DRAWINGS)
def test_reactions_do_no_work_where_motors_do(what: str, seed: int, draw: Any, look: Look) -> None:
    """Of each joint alone, with an effort on its first coordinate: F · Δv + T · Δω = 0 at p_j."""
    blueprint = draw(what, seed)
    plain = blueprint.build()
    actuated = tuple(joint.name for joint in plain.joints if joint.coordinates)
    s = replace(blueprint, wanted=actuated, effort=4.0).build()
    seen = look(s, [*reactions(s), "iterations"])
    # Next to a singular position the iterations end at their limit, before velocities fit.
    assume(seen["iterations"] <= 20)
    most = max(1.0, *(np.abs(seen[path]).max() for path in reactions(s)))
    fastest = max(1.0, *(np.abs(v).max() for k, v in seen.items() if k.endswith("velocity")))
    for joint in s.joints:
        place = pose_of(seen, joint.second.body)
        at = place[0] + place[1] @ joint.second.position
        v, w = [], []
        for body in (joint.first.body, joint.second.body):
            still = {"velocity": np.zeros(3), "angular_velocity": np.zeros(3)}
            get = still if body.is_ground else {k: seen[f"{body.name}.{k}"] for k in still}
            w.append(get["angular_velocity"])
            v.append(get["velocity"] + np.cross(w[-1], at - pose_of(seen, body)[0]))
        power = seen[f"{joint.name}.force"] @ (v[1] - v[0])
        power += seen[f"{joint.name}.torque"] @ (w[1] - w[0])
        assert abs(power) < 1e-10 * most * fastest, joint.name


def check_same(
    names: list[str],
    first: dict[str, Any],
    second: dict[str, Any],
    turn: Array,
    shift: Array,
    length: float = 1.0,
    mass: float = 1.0,
    joints: Sequence[str] = (),
    tolerance: float = 1e-8,
) -> None:
    """The second is the first one, turned, shifted and in other units of length and mass."""
    for path in joints:
        unit = mass * length * (length if path.endswith("torque") else 1.0)
        size = max(1.0, *(np.abs(first[other]).max() for other in joints))
        assert second[path] / unit == pytest.approx(turn @ first[path], abs=tolerance * size), path
    for name in names:
        a, b = ({k: seen[f"{name}.{k}"] for k in LINEAR + ANGULAR} for seen in (first, second))
        assert (b["position"] - shift) / length == pytest.approx(
            turn @ a["position"], abs=tolerance
        )
        assert rotation(second, name) == pytest.approx(turn @ rotation(first, name), abs=tolerance)
        for path in ("velocity", "acceleration", *ANGULAR):
            expected = turn @ a[path]
            found = b[path] / (1.0 if path in ANGULAR else length)
            # Accelerations are found to a part of the largest one.
            size = max(1.0, *(np.abs(first[f"{other}.{path}"]).max() for other in names))
            assert found == pytest.approx(expected, abs=tolerance * size), path


@few
@pytest.mark.parametrize("what", DRAWINGS)
def test_a_mechanism_moves_alike_wherever_it_stands(
    what: str, seed: int, draw: Any, look: Look
) -> None:
    """Turned and shifted as a whole with its gravity: the same motion, turned and shifted."""
    blueprint = draw(what, seed)
    rng = np.random.default_rng(seed)
    turn, shift = exponential(rng.normal(scale=2.0, size=3)), rng.normal(scale=3.0, size=3)
    paths = unique_reactions(blueprint.build())
    for steps in (0, 20):
        here = look(blueprint.build(), paths, steps=steps, step=FINE)
        there = look(blueprint.moved(turn, shift).build(), paths, steps=steps, step=FINE)
        names = [body.name for body in blueprint.bodies]
        check_same(names, here, there, turn, shift, joints=paths)


@few
@pytest.mark.parametrize("what", DRAWINGS)
def test_the_order_of_making_does_not_matter(what: str, seed: int, draw: Any, look: Look) -> None:
    """Nor does it for velocities that the joints do not allow, which are made to fit."""
    blueprint = draw(what, seed)
    other = blueprint.reordered(np.random.default_rng(seed))
    names = [body.name for body in blueprint.bodies]
    paths = unique_reactions(blueprint.build())
    for steps in (0, 20):
        one, two = (
            look(each.build(), paths, steps=steps, step=FINE) for each in (blueprint, other)
        )
        check_same(names, one, two, np.eye(3), np.zeros(3), joints=paths)


@few
@pytest.mark.parametrize("length, mass", [(1e3, 1e3), (1e-3, 1e-3), (1e3, 1e-6)])
@pytest.mark.parametrize("what", DRAWINGS)
def test_units_do_not_matter(
    what: str, length: float, mass: float, seed: int, draw: Any, look: Look
) -> None:
    """Millimeters and grams, kilometers and tonnes: the same motion in other numbers."""
    blueprint = draw(what, seed)
    paths = unique_reactions(blueprint.build())
    for steps in (0, 20):
        meters = look(blueprint.build(), paths, steps=steps, step=FINE)
        others = look(blueprint.scaled(length, mass).build(), paths, steps=steps, step=FINE)
        names = [body.name for body in blueprint.bodies]
        check_same(names, meters, others, np.eye(3), np.zeros(3), length, mass, joints=paths)


def test_a_redundant_ring_moves_in_any_plane(look: Look) -> None:
    """A parallelogram, tilted: rounding in rows that move nothing must not become a constraint."""
    tilt = exponential(np.array([0.3, -0.8, 0.5]))
    found = []
    for turn in (np.eye(3), tilt):
        s = System("parallelogram", gravity=turn @ (0, -10, 0))
        names = ["left", "coupler", "right"]
        places = np.array([[0, 0.5, 0], [1.0, 1, 0], [2, 0.5, 0]])
        bodies = [
            s.body(name, mass=1.0, inertia=0.1, position=turn @ place, rotation=turn)
            for name, place in zip(names, places, strict=True)
        ]
        ends = [s.ground, *bodies, s.ground]
        corners = [(0, 0, 0), (0, 1, 0), (2, 1, 0), (2, 0, 0)]
        for k, corner in enumerate(corners):
            s.revolute(f"pin{k}", ends[k], ends[k + 1], at=turn @ corner, axis=turn @ (0, 0, 1))
        s.torque("motor", bodies[0].marker("motor"), turn @ (0, 0, -2.0))
        found.append(look(s, steps=200))
    assert np.linalg.norm(found[0]["coupler.velocity"]) > 0.1
    assert found[1]["coupler.velocity"] == pytest.approx(
        tilt @ found[0]["coupler.velocity"], abs=1e-10
    )


def test_what_cannot_move_teaches() -> None:
    s = System("statue")
    body = s.body("statue", mass=1.0, inertia=0.1)
    s.fixed("plinth", s.ground, body, at=(0, 0, 0))
    with pytest.raises(DiagramError, match=r"nothing in `statue` can move"):
        s.block()


@pytest.mark.parametrize("seed", range(3))
def test_loops_far_from_the_origin_close_as_well(seed: int, draw: Any, look: Look) -> None:
    """A hundred kilometers away, where places are rounded to 1e-11 m, gaps are told as near it."""
    blueprint = draw("loops", seed).moved(np.eye(3), np.array([1e5, 0.0, 0.0]))
    assert look(blueprint.build(), ["closure"], steps=20)["closure"] < 1e-14


@pytest.mark.parametrize("seed", range(5))
def test_velocities_are_projected_to_rounding(seed: int, draw: Any, look: Look) -> None:
    """The same in millimeters and grams: rounding in K, which its large weights amplify, is out."""
    blueprint = draw("redundant", seed)
    meters = look(blueprint.build())
    others = look(blueprint.scaled(1e-3, 1e-3).build())
    for body in blueprint.bodies:
        path = f"{body.name}.angular_velocity"
        assert others[path] == pytest.approx(meters[path], abs=1e-13)
