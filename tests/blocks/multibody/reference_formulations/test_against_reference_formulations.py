"""The engine's kernel against the laboratory of formulations, which shares no equation with it.

The kernel works in joint coordinates, the laboratory in Cartesian ones with Euler parameters. Both
get the state that the engine shows; then accelerations and reactions must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from biella import Diagram, simulate
from biella.blocks.multibody import (
    Linear,
    Sine,
    System,
    mechanisms,
)
from biella.blocks.multibody.equations._euler_parameters import transformations
from biella.blocks.multibody.plant._initial import coordinate_name
from biella.blocks.multibody.plant._tree import grow_tree
from biella.blocks.multibody.reference_formulations import (
    METHODS,
    EulerModel,
    assemble,
    report_redundancy,
    run,
)
from biella.blocks.multibody.system._rotations import rotation_from_quaternion

pytestmark = pytest.mark.engine

Array = NDArray[np.float64]
Look = Callable[..., dict[str, Any]]

WITH_COORDINATES = (
    "revolute",
    "prismatic",
    "cylindrical",
    "universal",
    "planar",
    "guide",
    "in_plane",
)
ORACLES = ("null space svd", "augmented lagrangian")
few = settings(max_examples=15)


def state_of(model: EulerModel, seen: dict[str, Any]) -> tuple[Array, Array]:
    """Return q and v of the reference formulations at the state that the engine shows."""
    q, v = [], []
    for body in model.bodies:
        e, w = seen[f"{body.name}.rotation"], seen[f"{body.name}.angular_velocity"]
        arm = rotation_from_quaternion(e) @ body.com
        rates, _ = transformations(e[None])
        q += [*(seen[f"{body.name}.position"] + arm), *e]
        v += [*(seen[f"{body.name}.velocity"] + np.cross(w, arm)), *(0.5 * rates[0].T @ w)]
    return np.array(q), np.array(v)


def frame_accelerations(model: EulerModel, q: Array, v: Array, qdd: Array) -> dict[str, Array]:
    """Return acceleration and angular acceleration of every body's frame, in world axes."""
    spins = model.spins(q)
    rotations = model.rotations(q)
    found = {}
    for n, body in enumerate(model.bodies):
        # p̈ turns alone: the rest of ω̇ vanishes where p has length 1.
        wd, w = spins[n] @ model.blocks(qdd)[n], spins[n] @ model.blocks(v)[n]
        arm = -rotations[n] @ body.com
        found[f"{body.name}.acceleration"] = (
            model.blocks(qdd)[n, :3] + np.cross(wd, arm) + np.cross(w, np.cross(w, arm))
        )
        found[f"{body.name}.angular_acceleration"] = wd
    return found


def reactions(system: System) -> list[str]:
    return [f"{joint.name}.{what}" for joint in system.joints for what in ("force", "torque")]


def check(system: System, seen: dict[str, Any], method: str, t: float = 0.0) -> None:
    """Compare all accelerations, and the reactions that are unique."""
    model = EulerModel(system)
    q, v = state_of(model, seen)
    equations = model.evaluate(t, q, v)
    assert np.abs(equations.phi).max() < 1e-12
    assert np.abs(equations.rate).max() < 1e-11 * max(1.0, np.abs(v).max())
    qdd, lam = METHODS[method](model, t, q, v, {})
    expected = frame_accelerations(model, q, v, qdd)
    size = max(1.0, *(np.abs(value).max() for value in expected.values()))
    for path, value in expected.items():
        # The kernel stops where the next change would be 1e-10 of the largest acceleration.
        assert seen[path] == pytest.approx(value, abs=1e-9 * size), path
    unsure = report_redundancy(model, t, q, v).undetermined
    found = model.reactions(t, q, lam)
    most = max(1.0, *(np.abs(seen[path]).max() for path in reactions(system)))
    for joint in system.joints:
        if joint.name in unsure:
            continue
        pair = found[joint.name].force_j, found[joint.name].torque_j
        for what, value in zip(("force", "torque"), pair, strict=True):
            path = f"{joint.name}.{what}"
            assert seen[path] == pytest.approx(value, abs=1e-8 * most), path
    for driver in system.drivers:
        if driver.name not in unsure:
            effort = -lam[model.joint_rows[driver.name]][0]
            assert seen[f"{driver.name}.effort"] == pytest.approx(effort, abs=1e-8 * most)


@few
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=512)  # loops: two rows are almost dependent, 68 iterations
@pytest.mark.parametrize("method", ORACLES)
@pytest.mark.parametrize("what", ["tree", "loops", "redundant"])
def test_random_mechanisms(what: str, method: str, seed: int, draw: Any, look: Look) -> None:
    s = draw(what, seed).build()
    check(s, look(s, reactions(s)), method)


@pytest.mark.parametrize("what", ["loops", "redundant"])
def test_initial_velocities_fit_the_joints_to_rounding(what: str, draw: Any, look: Look) -> None:
    """J v of a few dozen terms of order 1: rounding is some 1e-14, times the lever of near ones."""
    for seed in range(500, 600):
        s = draw(what, seed).build()
        seen = look(s, ["closure", "closure_rate"])
        assert seen["closure"] < 1e-12, seed
        assert seen["closure_rate"] < 1e-12, seed


@pytest.mark.parametrize("cut", [0, 1])
@pytest.mark.parametrize("swapped", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize(
    "kind",
    [
        "fixed",
        "revolute",
        "prismatic",
        "cylindrical",
        "spherical",
        "universal",
        "planar",
        "guide",
        "in_plane",
        "distance",
    ],
)
def test_every_joint_in_motion(
    kind: str, swapped: bool, cut: int, draw_closed: Any, look: Look
) -> None:
    """After a while, when nothing is left of the given pose."""
    s = draw_closed(kind, swapped, cut, 5).build()
    check(s, look(s, reactions(s), steps=100), "null space svd", t=0.1)


@pytest.mark.parametrize(
    "kind, coordinate",
    [
        ("revolute", 0),
        ("prismatic", 0),
        ("cylindrical", 0),
        ("cylindrical", 1),
        ("planar", 0),
        ("planar", 1),
        ("planar", 2),
        ("universal", 0),
        ("guide", 0),
        ("in_plane", 0),
        ("in_plane", 1),
    ],
)
@pytest.mark.parametrize("swapped", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize(
    "motion",
    [{}, {"x": Sine(0.1, 3.0), "y": Linear(0.0, 0.2), "z": Sine(0.05, -4.0)}],
    ids=["marker at rest", "marker in motion"],
)
def test_every_driver(
    kind: str, coordinate: int, swapped: bool, motion: Any, draw_closed: Any, look: Look
) -> None:
    """What a driver gives, on any coordinate, where its joint stands in a loop, and after a while.

    At a marker that moves on its body the joint closes the loop, and the driver acts on a measure.
    """
    blueprint = replace(draw_closed(kind, swapped, 1, 11), motion={"k": motion})
    plain = blueprint.build()
    path = f"k.{coordinate_name(plain['k'], coordinate)}"
    start = float(look(plain, [path])[path])
    s = blueprint.build()
    law = Sine(0.2, 3.5, 0.5, start - 0.2 * np.sin(0.5))
    s.driver("drive", s["k"], law, coordinate=coordinate)
    assert (s["k"] in grow_tree(s).cuts) == bool(motion)
    for steps in (0, 100):
        seen = look(s, [*reactions(s), "drive.effort", path], steps=steps)
        t = 1e-3 * steps
        assert seen[path] == pytest.approx(law.value(t), abs=1e-12)
        check(s, seen, "null space svd", t=t)


@pytest.mark.parametrize("kind", WITH_COORDINATES)
@pytest.mark.parametrize("swapped", [False, True], ids=["forwards", "backwards"])
def test_reactions_of_an_actuated_joint_do_not_depend_on_the_cut(
    kind: str, swapped: bool, draw_closed: Any, look: Look
) -> None:
    """They are those of the ideal joint alone: the same whether the tree has it or it is cut."""
    drawn = replace(draw_closed(kind, swapped, 1, 3), wanted=("k",), effort=7.0)
    inside, outside = drawn.build(), replace(drawn, motion={"k": {"x": 0.0}}).build()
    assert inside["k"] not in grow_tree(inside).cuts
    assert grow_tree(outside).cuts == [outside["k"]]
    shown = reactions(inside)
    one = look(inside, shown)
    check(inside, one, "null space svd")
    cut = look(replace(drawn, motion={"k": {"x": 0.0}}).started(one).build(), shown)
    most = max(1.0, *(np.abs(one[path]).max() for path in shown))
    for path in shown:
        assert cut[path] == pytest.approx(one[path], abs=1e-8 * most), path


@pytest.mark.parametrize("name", ["slider_crank", "mcpherson", "five_bar", "cardan", "rotor"])
def test_ready_mechanisms(name: str, look: Look) -> None:
    """Redundant ones among them: what is unique of their reactions agrees."""
    s = getattr(mechanisms, name)()
    extra = [*reactions(s), *(f"{driver.name}.effort" for driver in s.drivers)]
    for steps in (0, 100):
        check(s, look(s, extra, steps=steps, step=2e-4), "null space svd", t=steps * 2e-4)


def test_elements_between_bodies(look: Look) -> None:
    """Bushing, springs along one axis, moving markers, springs and friction in joints."""
    s = System("elements", (0.3, -9.81, 0.5))
    size = (0.2, 0.25, 0.3)
    cart = s.body("cart", mass=2.0, inertia=size, com=(0.1, 0.2, 0.05))
    arm = s.body("arm", mass=1.0, inertia=size, position=(0.5, 0, 0), com=(0, 0.1, 0))
    loose = s.body("loose", mass=0.7, inertia=size, position=(1.2, 0.1, 0.2), free=True)
    slide = s.prismatic("slide", s.ground, cart, at=(0, 0, 0), axis=(1, 0, 0))
    elbow = s.revolute("elbow", cart, arm, at=(0, 0, 0), axis=(0, 0.6, 0.8))
    road = s.ground.marker("road", (0, -2, 0), motion={"x": Sine(0.1, 3.0)})
    end, other = arm.marker("end", (0.5, 0, 0)), loose.marker("end", (-0.2, 0.1, 0))
    s.spring("spring", road, end, stiffness=100.0, damping=3.0, free_length=0.5, force=2.0)
    s.spring("lift", s.ground.marker("hook"), end, stiffness=20.0, components="y")
    s.bushing(
        "bushing", end, other, stiffness=(50, 60, 70, 3, 5, 4), damping=(1, 2, 3, 0.1, 0.2, 0.3)
    )
    s.force("push", slide, 3.0)
    s.torque("motor", elbow, 4.0)
    s.force("follower", end, (1.0, 2.0, 0.0), frame="body")
    s.torsional_spring("coil", elbow, stiffness=5.0, damping=0.2, free_angle=0.3, torque=0.1)
    s.friction("rub", slide, viscous=0.3, coulomb=0.5, smoothing_speed=0.1)
    s.stop("stop", slide, lower=-1.0, upper=-0.5, stiffness=200.0, damping=3.0)
    for steps in (0, 200):
        check(s, look(s, reactions(s), steps=steps), "null space svd", t=steps * 1e-3)


def mcpherson_motion(
    step: float, lab_step: float, until: float, transient: float = 0.01
) -> tuple[float, float, float]:
    """Return the largest differences of positions in m and, relative, of reactions.

    Reactions are told apart: until the step load has died away, and after that.
    """
    s = mechanisms.mcpherson()
    names = [body.name for body in s.bodies]
    diagram = Diagram("suspension", step=step)
    paths = [f"{name}.position" for name in names] + reactions(s)
    diagram.add(s.block(outputs=paths, mode="internal"), name="plant")
    every = round(lab_step / step)
    ours = simulate(diagram, until, every=every)
    model = EulerModel(s)
    theirs = run(
        model,
        "augmented lagrangian",
        step=lab_step,
        until=until,
        integrator="rk4",
        projection="both",
    )
    assert theirs.stable
    places = theirs.q.reshape(len(theirs.q), len(names), 7)[:, :, :3]
    gap = max(
        float(np.abs(ours[f"plant.{name}.position"] - places[:, n]).max())
        for n, name in enumerate(names)
    )
    worst = {True: 0.0, False: 0.0}
    for k in range(0, len(theirs.times), 20):
        t, q, v = float(theirs.times[k]), theirs.q[k], theirs.v[k]
        _, lam = METHODS["null space svd"](model, t, q, v, {})
        found = model.reactions(t, q, lam)
        size = max(np.abs(ours[f"plant.{path}"][k]).max() for path in reactions(s))
        for joint in s.joints:
            pair = found[joint.name].force_j, found[joint.name].torque_j
            for what, value in zip(("force", "torque"), pair, strict=True):
                difference = np.abs(ours[f"plant.{joint.name}.{what}"][k] - value).max()
                worst[t < transient] = max(worst[t < transient], float(difference / size))
    return gap, worst[True], worst[False]


def test_mcpherson_moves_as_in_the_reference_formulations() -> None:
    """The step load at t = 0 and the first tenth of a second.

    Both integrate with RK4. The tire's damper makes a mode of c/m = 3000 1/s, which the step load
    excites: at 0.25 ms its first decay is off by (λh)⁵/120, about 1 % of a deflection of 0.1 mm.
    """
    gap, early, late = mcpherson_motion(1.25e-4, 2.5e-4, 0.1)
    assert gap < 5e-7
    assert max(early, late) < 5e-5


@pytest.mark.slow
def test_mcpherson_moves_as_in_the_reference_formulations_for_a_second() -> None:
    """At small steps, where RK4 resolves the tire's damper.

    At t = 2 ms reactions differ by 1.6e-5. It is the laboratory's error of integration: it falls by
    18 if its step is halved, and does not change with that of the kernel.
    """
    gap, early, late = mcpherson_motion(5e-5, 1e-4, 1.0)
    assert gap < 1e-8
    assert early < 5e-5
    assert late < 1e-6


def test_the_step_load_of_mcphersons_road(look: Look) -> None:
    """The road starts at 0.03 · 5π m/s under a wheel at rest: the tire's damper pushes at once.

    Its tension is k (l - l0) + c l', with l' = -0.471 m/s: 37.7 kN on a wheel of 25 kg.
    """
    s = mechanisms.mcpherson()
    seen = look(s, reactions(s))
    damper = 8.0e4 * 0.03 * 15.707963267948966
    assert seen["wheel.velocity"] == pytest.approx([0, 0, 0], abs=1e-12)
    model = EulerModel(s)
    q = assemble(model)
    zero = np.zeros(model.n)
    assert model.evaluate(0.0, q, zero).power == 0.0
    qdd, _ = METHODS["kkt"](model, 0.0, q, zero, {})
    wheel = next(n for n, body in enumerate(s.bodies) if body.name == "wheel")
    assert seen["wheel.acceleration"] == pytest.approx(model.blocks(qdd)[wheel, :3], abs=1e-6)
    # The wheel and what hangs on it start upwards at less than the wheel alone would.
    assert 0.4 * damper / 25.0 < seen["wheel.acceleration"][2] < damper / 25.0
