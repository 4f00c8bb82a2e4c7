"""Contacts in motion: closed forms, conservation, events, saved states, FMUs, hostile plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from biella import BiellaError, BiellaWarning, Diagram, DiagramError, simulate
from biella import _contract as contract
from biella.blocks.multibody import (
    Bore,
    Cylinder,
    HoleProfile,
    HuntCrossley,
    LankaraniNikravesh,
    Plane,
    Socket,
    Sphere,
    System,
    contact_statistics,
)
from biella.scheduler.compile.plan._plan import read_arrays
from biella.scheduler.engine._engine import Instance

from ...events import diagram_of, internal, locate
from ..plan_cells import with_cell
from .shape_pairs import PAIRS, Viewer, system_of, viewer

pytestmark = pytest.mark.engine


INSIDE = ("sphere-socket", "sphere-bore", "short pin", "long pin", "round pin in hole")


def run(s: System, until: float, outputs: list[str], *, step: float, **block: Any) -> Any:
    d = Diagram("d", step=step)
    d.add(s.block(outputs=outputs, **block), name="plant")
    result = simulate(d, until)
    return result.t, *(result[f"plant.{name}"] for name in outputs)


# -- a ball in a bowl

BOWL, BALL, GRAVITY, MASS = 0.5, 0.1, 9.81, 1.0


def ball_in_bowl(angle: float, stiffness: float, slip_speed: float) -> System:
    """A solid ball that is at rest as deep in the bowl as its weight presses it there."""
    s = System("bowl", (0, 0, -GRAVITY))
    depth = MASS * GRAVITY * np.cos(angle) / stiffness
    away = BOWL - BALL + depth
    inertia = 0.4 * MASS * BALL**2
    ball = s.body("ball", mass=MASS, inertia=(inertia,) * 3, free=True,
                  position=(away * np.sin(angle), 0, -away * np.cos(angle)))  # fmt: skip
    law = HuntCrossley(stiffness=stiffness, exponent=1.0, damping=50.0, friction=0.6,
                       slip_speed=slip_speed)  # fmt: skip
    s.contact("bowl", Sphere(ball.marker("m"), BALL), Socket(s.ground.marker("m"), BOWL), law=law)
    return s


def test_ball_rolls_in_a_bowl() -> None:
    """Sheet 3: from 0.8 rad, at 0.3 rad N/m = 12.996363, and (R - r) φ̇² = 10/7 g (cos - cos).

    The ball sinks in by 2e-6 of R - r and creeps at up to 1e-4 m/s of 1.3 m/s: some 1e-4.
    """
    s = ball_in_bowl(0.8, 1e7, 2e-4)
    _, place, speed, normal = run(
        s, 0.42, ["ball.position", "ball.velocity", "bowl.normal_force"], step=1e-5, mode="internal"
    )  # fmt: skip
    angle = np.arctan2(place[:, 0], -place[:, 2])
    first = int(np.argmax(angle < 0.3))
    assert 0 < first < len(angle) - 1
    assert np.interp(-0.3, -angle, normal) / MASS == pytest.approx(12.996363, rel=1e-3)
    reached = np.interp(-0.3, -angle, np.linalg.norm(speed, axis=1))
    exact = np.sqrt(10 / 7 * GRAVITY * (BOWL - BALL) * (np.cos(0.3) - np.cos(0.8)))
    assert reached == pytest.approx(exact, rel=5e-4)
    formula = MASS * GRAVITY / 7 * (17 * np.cos(angle) - 10 * np.cos(0.8))
    np.testing.assert_allclose(normal[100:], formula[100:], rtol=2e-3)


def test_period_of_a_ball_in_a_bowl() -> None:
    """Sheet 3: 2π √(7 (R - r) / (5 g)) = 1.501203 s, longer by φ0²/16 = 1e-5 at 0.0126 rad."""
    s = ball_in_bowl(0.0126, 1e6, 1e-4)
    t, place = run(s, 0.4, ["ball.position"], step=1e-5, mode="internal")
    x = place[:, 0]
    crossings = np.flatnonzero((x[:-1] > 0) != (x[1:] > 0))
    quarter = t[crossings[0]] + (t[1] - t[0]) * x[crossings[0]] / (
        x[crossings[0]] - x[crossings[0] + 1]
    )
    assert 4 * quarter == pytest.approx(1.501203, rel=1e-3)


def test_a_ball_slides_where_friction_is_below_two_sevenths_of_the_slope() -> None:
    """On a plane at 0.5 rad: it rolls with a = 5/7 g sin φ if μ > 2/7 tan φ, else slides."""
    for friction, exact in (
        (0.3, 5 / 7 * GRAVITY * np.sin(0.5)),
        (0.1, GRAVITY * (np.sin(0.5) - 0.1 * np.cos(0.5))),
    ):
        s = System("slope", (GRAVITY * np.sin(0.5), 0, -GRAVITY * np.cos(0.5)))
        ball = s.body("ball", mass=1.0, inertia=(0.004,) * 3, free=True,
                      position=(0, 0, 0.1 - GRAVITY * np.cos(0.5) / 1e6))  # fmt: skip
        law = HuntCrossley(stiffness=1e6, exponent=1.0, damping=20.0, friction=friction,
                           slip_speed=1e-3)  # fmt: skip
        s.contact("floor", Sphere(ball.marker("m"), 0.1), Plane(s.ground.marker("m")), law=law)
        _, velocity = run(s, 0.5, ["ball.velocity"], step=1e-4, mode="internal")
        assert velocity[-1, 0] / 0.5 == pytest.approx(exact, rel=2e-3)


# -- conservation


def two_bodies(pair: str, law: Any) -> System:
    """Both shapes on free bodies that fly at each other, off their centers of mass."""
    moving, fixed = PAIRS[pair]
    s = System("two", gravity=(0, 0, 0))
    where, velocity = (0.0, 0.0, 0.25), (0.31, 0.17, -1.0)
    if pair in INSIDE:
        where = (0.0, 0.0, 0.0)
    if pair == "roller on cam":
        where, velocity = (0.1, 0.0, 0.0), (-1.0, 0.17, 0.31)
    a = s.body("a", mass=1.0, inertia=(2e-3, 3e-3, 4e-3), free=True, position=where,
               velocity=velocity, angular_velocity=(1.0, -2.0, 0.7))  # fmt: skip
    b = s.body("b", mass=2.0, inertia=(9e-3, 8e-3, 7e-3), free=True, velocity=(0.0, 0.0, 0.1),
               angular_velocity=(0.3, 0.2, -0.1))  # fmt: skip
    turn = np.eye(3)
    if pair == "plane-sphere":
        turn = np.diag([1.0, -1.0, -1.0])
    if pair == "cam on face":
        turn = Rotation.from_euler("x", 80, degrees=True).as_matrix()
    s.contact("touch", moving(a.marker("m", rotation=turn)), fixed(b.marker("m")), law=law)
    return s


def momenta(values: dict[str, Any], inertias: Any) -> tuple[Any, Any]:
    linear, angular = np.zeros(3), np.zeros(3)
    for body, mass, inertia in (("a", 1.0, inertias[0]), ("b", 2.0, inertias[1])):
        place, velocity = (np.array(values[f"{body}.{n}"]) for n in ("position", "velocity"))
        turns = Rotation.from_quat(np.array(values[f"{body}.rotation"]), scalar_first=True)
        spin = turns.inv().apply(np.array(values[f"{body}.angular_velocity"]))
        linear = linear + mass * velocity
        angular = angular + mass * np.cross(place, velocity) + turns.apply(spin * inertia)
    return linear, angular


@pytest.mark.parametrize("pair", PAIRS)
def test_contacts_keep_momentum_and_energy(pair: str) -> None:
    """Momentum, also with friction and damping; energy without them, and never more with them.

    Steps of 2 µs are some 100 of a contact: RK4 leaves 1e-7 of the energy.
    """
    names = [f"{b}.{n}" for b in "ab" for n in ("position", "velocity", "rotation",
             "angular_velocity")]  # fmt: skip
    names += ["kinetic_energy", "potential_energy", "touch.normal_force", "touch.power_loss"]
    inertias = np.array([2e-3, 3e-3, 4e-3]), np.array([9e-3, 8e-3, 7e-3])
    for law in (
        HuntCrossley(stiffness=1e8),
        HuntCrossley(stiffness=1e8, damping=0.3, friction=0.4),
    ):
        t, *found = run(two_bodies(pair, law), 0.2 if pair not in SLOW else 0.03, names, step=5e-6,
                        mode="internal")  # fmt: skip
        values = dict(zip(names, found, strict=True))
        assert (values["touch.normal_force"] > 0).sum() > 5
        linear, angular = momenta(values, inertias)
        np.testing.assert_allclose(linear - linear[0], 0.0, atol=1e-11)
        np.testing.assert_allclose(angular - angular[0], 0.0, atol=1e-8)
        energy = values["kinetic_energy"] + values["potential_energy"]
        if law.damping == 0.0:
            np.testing.assert_allclose(energy, energy[0], rtol=2e-5)
        else:
            assert energy[-1] < energy[0]
            lost = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(t) * (
                values["touch.power_loss"][1:] + values["touch.power_loss"][:-1]))])  # fmt: skip
            np.testing.assert_allclose(energy[0] - energy, lost, atol=2e-3 * energy[0])


SLOW = ("short pin", "long pin", "sphere-socket", "sphere-bore")
"""Pairs with many impacts in a short time."""


def test_a_cylinder_comes_to_rest_on_its_end() -> None:
    """Twelve points of a solid hold it upright, with its weight on three of them."""
    s = System("stand", (0, 0, -9.81))
    pillar = s.body("pillar", mass=1.0, inertia=(2e-3, 2e-3, 1e-3), position=(0, 0, 0.0505),
                    rotation=[np.cos(0.01), np.sin(0.01), 0.0, 0.0], free=True)  # fmt: skip
    law = HuntCrossley(stiffness=1e5, exponent=1.0, damping=5.0, friction=0.3)
    s.contact(
        "floor", Cylinder(pillar.marker("m"), 0.04, 0.1), Plane(s.ground.marker("m")), law=law
    )
    _, forces, speed, place = run(
        s, 2.0, ["floor.normal_forces", "kinetic_energy", "pillar.position"], step=5e-5,
        mode="internal",
    )  # fmt: skip
    assert speed[-1] < 1e-9
    assert forces[-1].sum() == pytest.approx(9.81, rel=1e-4)
    assert np.count_nonzero(forces[-1] > 3.0) == 3
    assert place[-1, 2] == pytest.approx(0.05 - 9.81 / 3e5, abs=1e-8)


def test_pin_in_an_elliptic_hole_touches_once_or_twice() -> None:
    """At the long vertex the curvature is A / B²: a pin of r > B² / A bridges it."""
    wide, narrow = 0.05, 0.045
    angle = 2 * np.pi / 720 * np.arange(720)
    radii = wide * narrow / np.hypot(narrow * np.cos(angle), wide * np.sin(angle))
    for radius, places in ((0.98 * narrow**2 / wide, 1), (1.02 * narrow**2 / wide, 2)):
        s = System("oval", gravity=(0, 0, 0))
        body = s.body("body", mass=1.0, inertia=(1, 1, 1), free=True)
        hole = HoleProfile(s.ground.marker("m"), radii)
        s.contact("touch", Sphere(body.marker("m"), radius), hole, law=HuntCrossley(stiffness=1.0))
        with viewer(s) as view:
            gaps = view.see((wide - radius, 0.0, 0.0))["gaps"]
        assert np.count_nonzero(np.abs(gaps - gaps.min()) < 1e-9) == places
        if places == 1:
            assert gaps.min() == pytest.approx(0.0, abs=1e-9)


# -- the rest of the engine


def thrown(law: Any) -> System:
    """A ball 50 mm above a floor, to which it flies at 1 m/s."""
    s = System("throw", (0, 0, 0))
    ball = s.body("ball", mass=1.0, inertia=(1e-3,) * 3, position=(0, 0, 0.15),
                  velocity=(0, 0, -1.0), free=True)  # fmt: skip
    s.contact("floor", Sphere(ball.marker("m"), 0.1), Plane(s.ground.marker("m")), law=law)
    return s


@pytest.mark.parametrize("own", [False, True], ids=["continuous", "internal"])
def test_contact_begins_and_ends_when_it_should(own: bool) -> None:
    """At 50 ms; a contact by Hertz takes 2.9432 δ / v with δ = (5 m v² / 4 K)^0.4."""
    s = thrown(HuntCrossley(stiffness=1e6))
    d = internal(s, step=1e-4) if own else diagram_of(s, step=1e-3)
    found = locate(d, 0.1)
    assert len(found.times) == 2 and found.unlocated == 0
    assert found.times[0] == pytest.approx(0.05, abs=1e-10)
    assert found.times[1] - 0.05 == pytest.approx(2.94328 * (1.25e-6) ** 0.4, rel=1e-5)


@pytest.mark.parametrize("mode", [{}, {"mode": "internal"},
                                  {"mode": "internal", "integrator": "implicit"}])  # fmt: skip
@pytest.mark.parametrize("law", [HuntCrossley(stiffness=1e7, damping=0.4),
                                 LankaraniNikravesh(stiffness=1e7, restitution=0.7)])  # fmt: skip
def test_a_ball_rebounds_as_its_law_says(law: Any, mode: Any) -> None:
    _, velocity, gap = run(thrown(law), 0.06, ["ball.velocity", "floor.gap"], step=1e-5, **mode)
    assert (gap < 0).any() and gap[-1] > 0
    first = int(np.argmax(gap < 0)) - 1
    last = len(gap) - 1 - int(np.argmax(gap[::-1] < 0)) + 1
    wanted = (law.restitution(-velocity[first, 2]) if isinstance(law, HuntCrossley)
              else law.effective_restitution)  # fmt: skip
    assert -velocity[last, 2] / velocity[first, 2] == pytest.approx(wanted, rel=1e-4)


def test_a_saved_run_continues_with_the_same_bits() -> None:
    s = two_bodies("short pin", LankaraniNikravesh(stiffness=1e7, restitution=0.8, friction=0.1))
    d = Diagram("d", step=1e-5)
    d.add(s.block(outputs=["touch.normal_force"], mode="internal"), name="plant")
    with Instance(d.compile()) as instance:
        instance.initialize()
        instance.run(400)
        saved = instance.save()
        instance.run(600)
        wanted = instance.save()
        instance.restore(saved)
        instance.run(600)
        assert instance.save() == wanted


def test_statistics_of_a_pin_in_a_bore() -> None:
    """A ball between two walls of a bore: each impact turns its momentum around."""
    s = System("ball", (0, 0, 0))
    ball = s.body("ball", mass=0.5, inertia=(1e-3,) * 3, velocity=(0.4, 0, 0), free=True)
    s.contact("pin", Sphere(ball.marker("m"), 0.01), Bore(s.ground.marker("m"), 0.011, 0.1),
              law=HuntCrossley(stiffness=1e9))  # fmt: skip
    d = Diagram("ball", step=1e-6)
    names = ["contact", "normal_force", "angle", "angle_on_pin", "slip"]
    d.add(s.block(outputs=[f"pin.{name}" for name in names]), name="plant")
    found = contact_statistics(simulate(d, 0.03), "pin", bins=4)
    whole = found.impulses[found.began + found.lasted < 0.0299]
    assert len(whole) > 3
    np.testing.assert_allclose(whole, 2 * 0.5 * 0.4, rtol=1e-4)


def test_an_exported_mechanism_touches_alike(tmp_path: Any) -> None:
    fmpy = pytest.importorskip("fmpy")
    s = thrown(HuntCrossley(stiffness=1e6, damping=0.4))
    names = ["ball.position", "floor.gap"]
    path = s.export_fmu(tmp_path / "ball.fmu", outputs=names, step=1e-4, sources=False)
    rows = fmpy.simulate_fmu(str(path), stop_time=0.2, output_interval=1e-2, output=["floor.gap"])
    t, _, gap = run(s, 0.2, names, step=1e-4)
    np.testing.assert_allclose(rows["floor.gap"], np.interp(rows["time"], t, gap), atol=1e-12)


def test_coarse_steps_and_static_analyses_say_so() -> None:
    s = thrown(HuntCrossley(stiffness=1e9))
    with pytest.warns(BiellaWarning, match="too coarse for contacts"):
        run(s, 1e-3, ["floor.gap"], step=1e-3)
    with pytest.raises(DiagramError, match="`floor` is a contact, which is computed only by the"):
        s.equilibrium()


@pytest.mark.parametrize(("path", "value", "text"), [
    ("pin.first.radius", 0.02, "`first.radius` of `pin` is 0.02: it must be below `second.radius`"),
    ("pin.second.length", 0.0, "`second.length` of `pin` is 0: it must be finite and positive"),
    ("pin.stiffness", -1.0, "`stiffness` of `pin` is -1: it must be finite and positive"),
])  # fmt: skip
def test_parameters_set_later_are_checked(path: str, value: float, text: str) -> None:
    s = System("later", (0, 0, 0))
    body = s.body("body", mass=1.0, inertia=(1, 1, 1), free=True)
    s.contact("pin", Cylinder(body.marker("m"), 0.01, 0.1), Bore(s.ground.marker("m"), 0.011, 0.1),
              law=HuntCrossley(stiffness=1e6))  # fmt: skip
    d = Diagram("d", step=1e-4)
    d.add(s.block(), name="plant")
    with pytest.raises(BiellaError, match=text.replace("`", ".")):
        simulate(d, 1e-3, parameters={f"plant.{path}": value})


@pytest.mark.parametrize("pair", ["sphere-plane", "short pin", "round pin in hole"])
def test_hostile_plans_are_refused_or_run(pair: str) -> None:
    """Each integer of the record, changed in many ways, ends in an error or in a run."""
    d = Diagram("hostile", step=1e-5)
    d.add(system_of(pair).block(outputs=["touch.gap"]), name="plant")
    plan = d.compile()
    integers = read_arrays(plan.sections)["INTS"]
    kind = contract.MB_TOUCH if pair == "sphere-plane" else contract.MB_TOUCHES
    law = contract.TOUCH_SPHERE_PLANE if pair == "sphere-plane" else (
        contract.TOUCH_PIN_BORE if pair == "short pin" else contract.TOUCH_SPHERE_HOLE)  # fmt: skip
    law = (law << contract.TOUCH_PAIR_SHIFT) + (
        (72 << contract.TOUCH_COUNT_SHIFT) if pair == "round pin in hole" else 0)  # fmt: skip
    starts = [k for k in range(len(integers) - 6) if integers[k] == kind and integers[k + 4] == law]
    refused = 0
    for field in range(6):
        for value in (-1, 1, 2, 7, 8, 13, 30, 31, 33, 64, 4608, 2**30, 2**31 - 1, -(2**31)):
            try:
                with Instance(with_cell(plan, "INTS", starts[-1] + field, value)) as instance:
                    instance.initialize()
                    instance.run(3)
            except BiellaError:
                refused += 1
    assert refused > 30


# -- random approaches


def just_outside(random: Any, pair: str, view: Any) -> tuple[Any, Rotation]:
    """A random pose with a gap of up to 1 mm: along a ray, or anywhere in a hole."""
    for _ in range(1000):
        if pair in INSIDE:
            size = 8e-3 if pair == "round pin in hole" else 8e-4
            position = random.uniform(-size, size, 3)
            turn = Rotation.from_rotvec([*random.uniform(-0.008, 0.008, 2), random.uniform(-3, 3)])
        else:
            position, turn = random.normal(size=3), Rotation.random(random_state=random)
            near, far = 0.0, 0.4 / float(np.linalg.norm(position))
            for _ in range(10):
                middle = 0.5 * (near + far)
                near, far = (
                    (near, middle)
                    if view.see(middle * position, turn)["gap"] > 0.0
                    else (middle, far)
                )
            position = far * position
        if 0.0 < view.see(position, turn)["gap"] < 1e-3:
            return position, turn
    raise AssertionError("no pose just outside")


def approach(random: Any, pair: str, view: Any) -> bool:
    """A body flies at the other shape from just outside it, in any pose; return if they touch.

    K δ^2.5 / 2.5 is at most the kinetic energy at each place; what RK4 adds is 1e-3 of it.
    """
    instance = view.instance
    position, turn = just_outside(random, pair, view)
    velocity, spin = random.normal(size=3), random.uniform(-5, 5, 3)
    if pair not in INSIDE and velocity @ position > 0.0:
        velocity = -velocity
    view.see(position, turn, velocity, spin)
    energy = float(instance.get("plant.kinetic_energy"))
    deepest = float((2.5 * energy / 1e8) ** 0.4)
    touched = False
    for _ in range(10):
        instance.run(20)
        gap, kinetic, stored = (
            float(instance.get(f"plant.{name}"))
            for name in ("touch.gap", "kinetic_energy", "touch.energy")
        )
        touched = touched or gap < 0.0
        assert np.isfinite(instance.states).all()
        assert gap > -1.02 * deepest, (pair, gap, deepest)
        assert kinetic + stored == pytest.approx(energy, rel=2e-3), (pair, kinetic, stored)
    return touched


def approaches(count: int) -> None:
    random = np.random.default_rng(11)
    for pair in PAIRS:
        where = (0, 0, 0) if pair in INSIDE else (0, 0, 1 if pair != "plane-sphere" else -1)
        s = system_of(pair, HuntCrossley(stiffness=1e8), position=where)
        names = ["touch.gap", "touch.energy"]
        d = Diagram("d", step=1e-5)
        d.add(s.block(outputs=[*names, "kinetic_energy"]), name="plant")
        with Instance(d.compile()) as instance:
            instance.initialize()
            view = Viewer(instance, names)
            fresh = instance.save()
            touched, each = 0, count // len(PAIRS) + 1
            for _ in range(each):
                instance.restore(fresh)
                touched += approach(random, pair, view)
            assert touched > 0.3 * each, (pair, touched)


def test_random_approaches() -> None:
    """No crash, no missed contact, no penetration beyond what the energy allows: 1,000 of them."""
    approaches(1000)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_hundred_thousand_random_approaches() -> None:
    approaches(100_000)
