"""The initial state: one routine for runs, `assemble` and FMUs; joint values that are kept."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from biella import BiellaWarning, Diagram, DiagramError, System, simulate
from biella.blocks.multibody import Body, Joint
from biella.blocks.multibody.analysis._manifold import make_manifold, split
from biella.blocks.multibody.system._rotations import rotation_from_quaternion
from biella.errors import BlockError
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine

Array = NDArray[np.float64]
SEEDS = st.integers(0, 2**32 - 1)
DRAWINGS = ("tree", "loops", "redundant")
STATE = ("position", "rotation", "velocity", "angular_velocity")
few = settings(max_examples=25)


def turn_by(rng: np.random.Generator, size: float) -> Array:
    half = 0.5 * size * rng.normal(size=3)
    return rotation_from_quaternion(np.array([1.0, *half]) / np.sqrt(1.0 + half @ half))


def displace(blueprint: Any, rng: np.random.Generator, size: float) -> Any:
    """Give all bodies poses about `size` away from one in which all joints close."""
    return replace(
        blueprint,
        displaced={
            body.name: (size * rng.normal(size=3), turn_by(rng, size)) for body in blueprint.bodies
        },
    )


def build(blueprint: Any) -> System:
    """Make the system; a universal joint, though, is refused where its axes are far from 90°."""
    try:
        made: System = blueprint.build()
    except DiagramError as error:
        assert "universal" in str(error)
        assume(False)
    return made


def run_start(system: System, initial: dict[str, float], mode: str, extra: Any = ()) -> Any:
    """Return what a run starts with."""
    paths = [f"{body.name}.{what}" for body in system.bodies for what in STATE] + [*extra]
    diagram = Diagram("start")
    options = {"initial": initial} if initial else {}
    diagram.add(system.block(outputs=paths, mode=mode, **options), name="plant")  # type: ignore[arg-type]
    with Instance(diagram.compile()) as instance:
        instance.initialize()
        instance.evaluate()
        return {path: np.array(instance.get(f"plant.{path}")) for path in paths}


def check_same_start(system: System, initial: dict[str, float], mode: str) -> Any:
    """Hold the state of a run against `assemble`, to rounding."""
    assembly = system.assemble(initial=initial) if initial else system.assemble()
    seen = run_start(system, initial, mode, list(initial))
    for body in system.bodies:
        found = assembly[body.name]
        rotation = rotation_from_quaternion(seen[f"{body.name}.rotation"])
        assert seen[f"{body.name}.position"] == pytest.approx(found.position, abs=1e-13)
        assert rotation == pytest.approx(found.rotation, abs=1e-13)
        fastest = max(1.0, *(np.abs(b.velocity).max() for b in assembly.bodies))
        assert seen[f"{body.name}.velocity"] == pytest.approx(found.velocity, abs=1e-12 * fastest)
        assert seen[f"{body.name}.angular_velocity"] == pytest.approx(
            found.angular_velocity, abs=1e-12 * fastest
        )
    for path, value in initial.items():
        assert seen[path] == pytest.approx(value, rel=1e-9, abs=1e-9)
    return assembly


def test_of_random_mechanisms_covers_kept_values(draw: Any) -> None:
    from biella.blocks.multibody.plant._initial import list_initial

    assert all(list_initial(draw(what, 0).build()) for what in DRAWINGS)


@few
@given(seed=SEEDS, size=st.sampled_from([0.0, 1e-9, 1e-4, 0.03, 0.1]), own=st.booleans())
@pytest.mark.parametrize("what", DRAWINGS)
def test_a_run_starts_as_assemble_says(
    what: str, seed: int, size: float, own: bool, draw: Any
) -> None:
    """Random given velocities, poses and kept values; loops, redundant rows."""
    rng = np.random.default_rng(seed)
    s = build(displace(draw(what, seed), rng, size))
    mode = "internal" if own else "continuous"
    try:
        free = s.assemble()
    except DiagramError:  # displaced too far: then a run says so, too
        with pytest.raises((DiagramError, BlockError)):
            run_start(s, {}, mode)
        return
    check_same_start(s, {}, mode)
    assert free.error < 1e-9
    # One coordinate near where it is, and one speed of another joint.
    from biella.blocks.multibody.plant._initial import list_initial

    names = list_initial(s)
    if not names:
        return
    chosen = rng.choice(sorted(names), size=min(2, len(names)), replace=False).tolist()
    here = run_start(s, {}, mode, chosen)
    initial = {path: float(here[path]) + 0.1 * float(rng.normal()) for path in chosen}
    try:
        s.assemble(initial=initial)
    except DiagramError as error:  # one decides the other, or the joints do not let it move
        assert any(path in str(error) for path in chosen)
        with pytest.raises((DiagramError, BlockError)):
            run_start(s, initial, mode)
        return
    check_same_start(s, initial, mode)


@few
@given(seed=SEEDS, size=st.sampled_from([0.0, 1e-4, 0.05]))
@pytest.mark.parametrize("what", DRAWINGS)
def test_the_initial_state_is_the_nearest_in_the_metric_of_mass(
    what: str, seed: int, size: float, draw: Any
) -> None:
    """Held against matrices of bodies alone, which know of no tree."""
    rng = np.random.default_rng(seed)
    s = build(displace(draw(what, seed), rng, size))
    try:
        assembly = s.assemble()
    except DiagramError:
        assume(False)  # it will not close
    model = make_manifold(s)
    q, u = assembly.coordinates, assembly.speeds
    e = model.equations(0.0, q, np.zeros(model.size), loads=False)
    rank, free, _ = split(e.jacobian)
    sigma = np.linalg.svd(e.jacobian, compute_uv=False)
    assume(sigma[rank - 1] > 1e-3 * sigma[0])  # not next to a singular position
    given_speeds = model.speeds(model.q0, model.v0)
    # v = N y with Nᵀ M (N y - w) = 0.
    y = np.linalg.solve(free.T @ e.mass @ free, free.T @ e.mass @ given_speeds)
    scale = max(1.0, float(np.abs(given_speeds).max()))
    assert u == pytest.approx(free @ y, abs=1e-9 * scale)
    # The gradient of half the sum of m |x - x_given|² does no work on what is free.
    gradient = np.zeros(model.size)
    for n, body in enumerate(s.bodies):
        found = assembly[body.name]
        way = found.position + found.rotation @ body.com
        way = way - body.position - body.rotation @ body.com
        gradient[6 * n : 6 * n + 3] = body.mass * way
        moments = 0.5 * np.trace(body.inertia) * np.eye(3) - body.inertia
        b = found.rotation @ moments @ body.rotation.T
        gradient[6 * n + 3 : 6 * n + 6] = b[2, 1] - b[1, 2], b[0, 2] - b[2, 0], b[1, 0] - b[0, 1]
    assert np.abs(free.T @ gradient).max(initial=0.0) < 1e-9


@few
@given(seed=SEEDS)
@pytest.mark.parametrize("what", DRAWINGS)
def test_the_initial_state_does_not_depend_on_the_order_of_making(
    what: str, seed: int, draw: Any
) -> None:
    rng = np.random.default_rng(seed)
    blueprint = displace(draw(what, seed), rng, 0.02)
    try:
        one, other = (build(b).assemble() for b in (blueprint, blueprint.reordered(rng)))
    except DiagramError:
        assume(False)  # it will not close
    # Far from the given pose there are several that are nearer than all poses around them.
    assume(one.correction < 0.2 and one.turn < 0.3)
    for body in one.bodies:
        # To rounding times what is small next to a singular position.
        assert other[body.name].position == pytest.approx(body.position, abs=1e-7)
        assert other[body.name].rotation == pytest.approx(body.rotation, abs=1e-7)
        assert other[body.name].velocity == pytest.approx(body.velocity, abs=1e-5)


def test_the_nearest_velocities_of_a_pendulum_and_a_four_bar() -> None:
    """By hand: (m v r + I ω) / (m r² + I); a bar at -3 rad/s of three, of which two turn: -0.6."""
    s = System("pendulum", (0, 0), planar=True)
    b = s.body("b", mass=1, inertia=0.5, position=(1, 0), velocity=(0, 1.0), angular_velocity=0.5)
    s.revolute("j", s.ground, b, at=(0, 0))
    assert s.assemble()["b"].angular_velocity[2] == pytest.approx(1.25 / 1.5, abs=1e-15)
    with pytest.warns(BiellaWarning, match=r"`b` is changed by 0.167 m/s and 0.333 rad/s"):
        start = simulate(plant(s, "j.speed"), 1e-3)["plant"][0]
    assert start == pytest.approx(1.25 / 1.5, abs=1e-15)

    s = System("four-bar", planar=True)
    bars = [
        s.body(name, mass=1, inertia=1 / 12, position=(x, 0.5), rotation=np.pi / 2,
               velocity=(-0.5 * w, 0), angular_velocity=w)
        for name, x, w in (("a", 0, -3.0), ("b", 1, 0.0))
    ]  # fmt: skip
    c = s.body("c", mass=1, inertia=1 / 12, position=(0.5, 1))
    s.revolute("fa", s.ground, bars[0], at=(0, 0))
    s.revolute("fb", s.ground, bars[1], at=(1, 0))
    s.revolute("ta", bars[0], c, at=(0, 1))
    s.revolute("tb", c, bars[1], at=(1, 1))
    assert s.assemble()["a"].angular_velocity[2] == pytest.approx(-0.6, abs=1e-14)
    match = r"`a` is changed by 1.2 m/s and 2.4 rad/s, `b` is changed by 0.3 m/s and 0.6 rad/s"
    with pytest.warns(BiellaWarning, match=match):
        start = simulate(plant(s, "fa.speed"), 1e-3)["plant"][0]
    assert start == pytest.approx(-0.6, abs=1e-14)
    assert "`a` was changed by 1.2 m/s, 2.4 rad/s" in str(s.report())


# -- kept values


def slider_crank(rod: float = 0.3, angle: float = 0.6) -> System:
    crank = 0.1
    pin = crank * np.array([np.cos(angle), np.sin(angle)])
    turn = -np.arcsin(pin[1] / rod)
    s = System("slider-crank", (0, -9.81), planar=True)
    a = s.body("crank", mass=0.5, inertia=0.002, rotation=angle)
    b = s.body("rod", mass=0.8, inertia=0.01, com=(rod / 2, 0), position=pin, rotation=turn)
    c = s.body("slider", mass=1.0, inertia=0.01, position=(pin[0] + rod * np.cos(turn), 0))
    s.revolute("main", s.ground.marker("o"), a.marker("o"))
    s.revolute("pin", a.marker("p", (crank, 0)), b.marker("p"))
    s.revolute("wrist", b.marker("w", (rod, 0)), c.marker("w"))
    s.prismatic("slide", s.ground.marker("s"), c.marker("s"))
    return s


def plant(system: System, *outputs: str, **options: Any) -> Diagram:
    d = Diagram("start", step=1e-3)
    d.add(system.block(outputs=outputs, **options), name="plant")
    return d


@pytest.mark.parametrize("angle", [0.6, -1.0, 2.5, 2.5 + 4 * np.pi, -9.0])
@pytest.mark.parametrize("mode", ["continuous", "internal"])
def test_joint_values_are_kept_and_the_rest_is_solved(angle: float, mode: Any) -> None:
    """Whichever joint closes the loop; angles start in the turn that was given. No warning."""
    exact = slider_crank(angle=angle)
    place = cast(Body, exact["slider"]).position[0]
    cosine, sine = np.cos(angle), np.sin(angle)
    rate = -0.1 * sine - 0.1 * sine * 0.1 * cosine / np.sqrt(0.09 - 0.01 * sine**2)
    for speed in (0.0, 10.0):
        d = plant(
            slider_crank(),
            "main.angle",
            "main.speed",
            "slider.position",
            "slide.speed",
            mode=mode,
            initial={"main.angle": angle, "main.speed": speed},
        )
        r = simulate(d, 1e-3)
        assert r["plant.main.angle"][0] == pytest.approx(angle, abs=1e-14)
        assert r["plant.main.speed"][0] == pytest.approx(speed, abs=1e-14)
        assert r["plant.slider.position"][0, 0] == pytest.approx(place, abs=1e-14)
        assert r["plant.slide.speed"][0] == pytest.approx(rate * speed, abs=1e-13)


@pytest.mark.parametrize("path", ["pin.speed", "wrist.speed", "slide.speed", "wrist.angle_speed"])
def test_the_speed_of_any_joint_is_kept(path: str) -> None:
    r = simulate(plant(slider_crank(), path, initial={path: 3.0}), 1e-3)
    assert r["plant"][0] == pytest.approx(3.0, abs=1e-14)


@pytest.mark.parametrize(
    "path, value", [("pin.angle", -0.3), ("wrist.angle", 0.3), ("slide.displacement", 0.33)]
)
def test_the_coordinate_of_any_joint_is_kept(path: str, value: float) -> None:
    r = simulate(plant(slider_crank(), path, initial={path: value}), 1e-3)
    assert r["plant"][0] == pytest.approx(value, abs=1e-14)


def test_a_kept_angle_stays_where_a_length_is_changed() -> None:
    """A rod of 0.35 m: without it, the crank goes where the masses move least, with a warning."""
    outputs = ("main.angle", "slider.position")
    longer = {"plant.rod.w.location": [0.35, 0.0], "plant.rod.com": [0.175, 0.0]}
    kept = plant(slider_crank(), *outputs, initial={"main.angle": 0.6})
    r = simulate(kept, 1e-3, parameters=longer)
    assert r["plant.main.angle"][0] == pytest.approx(0.6, abs=1e-14)
    exact = cast(Body, slider_crank(rod=0.35)["slider"]).position[0]
    assert r["plant.slider.position"][0, 0] == pytest.approx(exact, abs=1e-14)
    with pytest.warns(BiellaWarning, match=r"`crank` is moved by 0.0\d+ m and 0.\d+ rad"):
        r = simulate(plant(slider_crank(), *outputs), 1e-3, parameters=longer)
    assert abs(r["plant.main.angle"][0] - 0.6) > 0.1


def test_a_kept_value_is_a_parameter() -> None:
    d = plant(
        slider_crank(), "main.speed", "main.angle", initial={"main.speed": 1, "main.angle": 1}
    )
    r = simulate(d, 1e-3, parameters={"plant.main.initial_speed": -7.0})
    assert r["plant.main.speed"][0] == pytest.approx(-7.0, abs=1e-14)
    assert r["plant.main.angle"][0] == pytest.approx(1.0, abs=1e-14)
    for value in (np.nan, np.inf):
        with pytest.raises(Exception, match=r"finite|initial `main.angle` cannot be"):
            simulate(d, 1e-3, parameters={"plant.main.initial_angle": value})


def test_a_kept_value_is_a_parameter_of_an_fmu(tmp_path: Any) -> None:
    from fmpy import simulate_fmu

    s = slider_crank()
    path = s.export_fmu(tmp_path / "s.fmu", initial={"main.speed": 3.0, "main.angle": 0.6})
    for values, angle, speed in (
        ({}, 0.6, 3.0),
        ({"main.initial_angle": 1.0, "main.initial_speed": -2.0}, 1.0, -2.0),
    ):
        r = simulate_fmu(
            str(path), stop_time=1e-3, start_values=values, output=["main.angle", "main.speed"]
        )
        assert r["main.angle"][0] == pytest.approx(angle, abs=1e-14)
        assert r["main.speed"][0] == pytest.approx(speed, abs=1e-14)


def test_the_logger_of_an_fmu_has_the_same_warnings(tmp_path: Any, run_fmu: Any) -> None:
    path = slider_crank().export_fmu(tmp_path / "s.fmu")
    told = [text for status, text in run_fmu(path, **{"rod.w.location[0]": 0.35}) if status == 1]
    assert "positions given do not fit its joints and drivers" in told[0]
    assert "`crank` is moved by" in told[0]
    path = hanging("0.1 * sin(20 * t)").export_fmu(tmp_path / "h.fmu")
    told = [text for status, text in run_fmu(path) if status == 1]
    assert "it starts with an impulse: `bob`" in told[0]


@pytest.mark.parametrize(
    "initial, match",
    [
        ({"main.sped": 1.0}, r"no joint coordinate or speed `main.sped` in `slider-crank` .*"
         r"Did you mean `main.speed`.*There are: main.angle, main.speed, pin.angle"),
        ({"main.angle": np.nan}, r"initial `main.angle` must be finite"),
        ({"main.angle": (1, 2)}, r"initial `main.angle` is one number"),
        ({"main.angle": "far"}, r"initial `main.angle` requires numbers"),
        ({"main.speed": 1, "main.angle_speed": 1}, r"`initial` has `main.speed` twice"),
        (3.0, r"`initial` is a mapping"),
        ({"main.speed": 10.0, "wrist.speed": 3.0},
         r"initial `wrist.speed` cannot be 3 rad/s at t = 0 s, kept with `main.speed`: .* make it"),
        ({"slide.displacement": 0.7}, r"initial `slide.displacement` cannot be 0.7 m .*not close"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_kept_are_refused_by_name(initial: Any, match: str) -> None:
    for make in (slider_crank().block, slider_crank().assemble):
        with pytest.raises(DiagramError, match=match):
            make(initial=initial)


def test_values_that_agree_may_be_kept_twice() -> None:
    s = slider_crank()
    speeds = run_start(s, {"main.speed": 10.0}, "continuous", ["wrist.speed"])
    again = {"main.speed": 10.0, "wrist.speed": float(speeds["wrist.speed"])}
    assert simulate(plant(s, "main.speed", initial=again), 1e-3)["plant"][0] == pytest.approx(10.0)


def test_a_driver_decides_what_is_kept() -> None:
    s = slider_crank()
    s.driver("drive", cast(Joint, s["main"]), "0.6 + 4 * t")
    with pytest.raises(DiagramError, match=r"`main.speed` cannot be 5 rad/s .* make it 4 rad/s"):
        s.block(initial={"main.speed": 5.0})
    s.block(initial={"main.speed": 4.0})


# -- positions


def open_four_bar(crank: float = 0.10) -> System:
    """Make a four-bar that is drawn for a crank of 0.06 m."""
    s = System("four-bar", (0, -9.81), planar=True)
    a = s.body("crank", mass=0.5, inertia=0.001, rotation=np.pi / 2)
    b = s.body("coupler", mass=1, inertia=0.03, position=(0.3, 0.06))
    c = s.body("rocker", mass=0.8, inertia=0.01, position=(0.6, 0), rotation=np.pi / 2)
    s.revolute("main", s.ground.marker("o"), a.marker("o"))
    s.revolute("pin", a.marker("A", (crank, 0)), b.marker("A", (-0.3, 0)))
    s.revolute("top", b.marker("B", (0.3, 0)), c.marker("B", (0.06, 0)))
    s.revolute("foot", s.ground.marker("D", (0.6, 0)), c.marker("D"))
    return s


def test_positions_that_are_corrected_are_reported_with_bodies_and_sizes() -> None:
    match = r"positions given do not fit .*`coupler` is moved by 0.04 m and 0.0667 rad, `crank`"
    with pytest.warns(BiellaWarning, match=match):
        simulate(plant(open_four_bar(), "closure"), 1e-3)
    text = str(open_four_bar().report())
    assert "`pin` was open by 0.04 m" in text
    assert "`coupler` was changed by 0.02 m, 0.0667 rad" in text


def test_positions_are_reported_above_a_thousandth_of_the_size() -> None:
    """The four-bar is 0.63 m across; lengths add up to an error of angles that is smaller."""
    for longer, told in ((1e-5, False), (1e-4, False), (1.5e-3, True)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            simulate(plant(open_four_bar(0.06 + longer), "closure"), 1e-3)
        assert bool(caught) == told, longer


def test_a_pose_that_is_prescribed_is_not_reported() -> None:
    """By a driver, or by a value that is kept: given poses only choose the branch."""
    s = open_four_bar(0.065)
    simulate(plant(s, "closure", initial={"main.angle": 1.0}), 1e-3)
    s.driver("drive", cast(Joint, s["main"]), 1.2)
    simulate(plant(s, "closure"), 1e-3)


# -- impulses


def hanging(law: str, **given: Any) -> System:
    s = System("hanging", (0, -9.81), planar=True)
    bob = s.body("bob", mass=1, inertia=0.1, position=(0, -1), **given)
    s.revolute("pivot", s.ground.marker("support", motion={"x": law}), bob.marker("top", (0, 1)))
    return s


def test_what_hangs_at_rest_on_something_that_moves_starts_with_an_impulse() -> None:
    """The impulse acts at the pivot, at 2 m/s: ω = v m r / (m r² + I), about the center."""
    match = r"it starts with an impulse: `bob` was given at rest and gets 0.182 m/s and 1.82 rad/s"
    with pytest.warns(BiellaWarning, match=match):
        r = simulate(plant(hanging("0.1 * sin(20 * t)"), "bob.angular_velocity"), 1e-3)
    assert r["plant"][0, 2] == pytest.approx(-2.0 / 1.1, abs=1e-12)


@pytest.mark.parametrize(
    "law, given, initial",
    [
        ("0.1 * (1 - cos(20 * t))", {}, None),
        ("0.1 * sin(20 * t)", {"velocity": (2.0, 0.0)}, None),
        ("0.1 * sin(20 * t)", {}, {"pivot.speed": 0.0}),
    ],
    ids=["starts from rest", "moves along", "speed is kept"],
)
def test_a_motion_that_fits_is_no_impulse(law: str, given: Any, initial: Any) -> None:
    simulate(plant(hanging(law, **given), "closure", initial=initial), 1e-3)


def test_a_bearing_held_by_a_constraint_is_a_hinge_in_assemble() -> None:
    """A run moves its journal to where the film carries the load: within the clearance."""
    from biella.blocks import ShortBearing

    s = System("held", (0, -9.81), planar=True)
    disc = s.body("disc", mass=5.0, inertia=0.01, angular_velocity=300.0)
    film = ShortBearing(radius=0.02, length=0.01, clearance=4e-5, viscosity=0.01, squeeze=False)
    s.bearing("film", disc.marker("j"), s.ground.marker("b"), film, coupling="constraint")
    place = run_start(s, {}, "continuous")["disc.position"]
    assert s.assemble()["disc"].position == pytest.approx(np.zeros(3), abs=1e-15)
    assert 1e-7 < np.linalg.norm(place) < 4e-5
