"""Couplings of joint coordinates: gears, belts, racks and screws."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks.multibody import Linear, System
from biella.blocks.multibody.analysis._manifold import make_manifold
from biella.blocks.multibody.elements._coupling import Coupling
from biella.blocks.multibody.joints._joint import Joint
from biella.blocks.multibody.plant._tree import grow_tree
from biella.errors import BiellaError, BiellaWarning, DiagramError
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine

MODES: list[dict[str, Any]] = [
    {"mode": "continuous"},
    {"mode": "internal"},
    {"mode": "internal", "integrator": "implicit"},
]


def run(system: System, outputs: list[str], until: float = 0.5, **options: Any) -> Any:
    diagram = Diagram("d")
    diagram.add(system.block(outputs=outputs, **options), name="plant")
    result = simulate(diagram, until=until, step=1e-3)
    return {path: result[f"plant.{path}"] for path in outputs} | {"t": result.t}


def look(system: System, outputs: list[str], **parameters: float) -> dict[str, Any]:
    """Return outputs at the start."""
    diagram = Diagram("d")
    diagram.add(system.block(outputs=outputs), name="plant")
    with Instance(diagram.compile()) as instance:
        for path, value in parameters.items():
            instance.set(f"plant.{path.replace('__', '.')}", value)
        instance.initialize()
        instance.evaluate()
        return {path: np.array(instance.get(f"plant.{path}")) for path in outputs}


def joint_of(system: System, name: str) -> Joint:
    joint = system[name]
    assert isinstance(joint, Joint)
    return joint


def two_discs(**gear: Any) -> System:
    """A torque of 3 N m turns a disc of 0.2 kg m², geared to one of 0.5 kg m²."""
    s = System("discs", planar=True, gravity=(0.0, 0.0))
    first = s.body("first", mass=1.0, inertia=0.2)
    second = s.body("second", mass=1.0, inertia=0.5, position=(1.0, 0.0))
    a = s.revolute("a", s.ground, first, at=(0.0, 0.0))
    b = s.revolute("b", s.ground, second, at=(1.0, 0.0))
    s.torque("motor", a, 3.0)
    s.gear("gear", a, b, **gear)
    return s


@pytest.mark.parametrize("options", MODES, ids=lambda o: o.get("integrator", o["mode"]))
def test_geared_discs_have_the_inertia_of_both(options: dict[str, Any]) -> None:
    """τ = (J1 + r² J2) q̈ is constant; all of it is exact but for rounding, also in implicit steps.

    The torque on the second disc is J2 r q̈; the work of the motor is the kinetic energy.
    """
    r = -20.0 / 60.0
    outputs = ["a.angle", "b.angle", "a.acceleration", "gear.effort", "gear.first_effort"]
    outputs += ["gear.power", "b.speed", "kinetic_energy", "closure", "closure_rate"]
    seen = run(two_discs(teeth=(20, 60)), outputs, **options)
    acceleration = 3.0 / (0.2 + r**2 * 0.5)
    # K = M + α JᵀJ is solved to 1e-12 of the largest acceleration.
    np.testing.assert_allclose(seen["a.acceleration"], acceleration, rtol=1e-10)
    np.testing.assert_allclose(seen["gear.effort"], 0.5 * r * acceleration, rtol=1e-9)
    np.testing.assert_allclose(seen["gear.first_effort"], -r * seen["gear.effort"], rtol=1e-14)
    np.testing.assert_allclose(seen["b.angle"], r * seen["a.angle"], atol=1e-13)
    np.testing.assert_allclose(seen["a.angle"], 0.5 * acceleration * seen["t"] ** 2, rtol=1e-9)
    np.testing.assert_allclose(seen["kinetic_energy"], 3.0 * seen["a.angle"], rtol=1e-9)
    np.testing.assert_allclose(seen["gear.power"], seen["gear.effort"] * seen["b.speed"])
    assert seen["closure"].max() < 1e-13
    assert seen["closure_rate"].max() < 1e-11


def test_ratio_is_a_parameter_of_the_compiled_block() -> None:
    s = two_discs(ratio=-0.5)
    built = look(s, ["a.acceleration"])["a.acceleration"]
    set_later = look(s, ["a.acceleration"], gear__ratio=2.0)["a.acceleration"]
    np.testing.assert_allclose(built, 3.0 / (0.2 + 0.25 * 0.5), rtol=1e-10)
    np.testing.assert_allclose(set_later, 3.0 / (0.2 + 4.0 * 0.5), rtol=1e-10)


def test_internal_gear_and_belt_turn_the_same_way() -> None:
    gear = two_discs(teeth=(20, 60), internal=True)["gear"]
    assert isinstance(gear, Coupling) and gear.ratio == pytest.approx(1.0 / 3.0)
    s = System("belt", planar=True)
    bodies = [s.body(n, mass=1.0, inertia=1.0) for n in "ab"]
    joints = [s.revolute(f"j{n.name}", s.ground, n, at=(0, 0)) for n in bodies]
    assert s.belt("open", *joints, radii=(0.1, 0.2)).ratio == pytest.approx(0.5)
    assert s.belt("crossed", *joints, radii=(0.1, 0.2), crossed=True).ratio == pytest.approx(-0.5)


def test_mass_on_a_rack_falls_slower_by_its_pinion() -> None:
    """m g = (m + J / r²) ẍ."""
    s = System("rack")
    mass = s.body("mass", mass=2.0, inertia=(1.0, 1.0, 1.0))
    wheel = s.body("wheel", mass=1.0, inertia=(0.3, 0.3, 0.3), position=(0.1, 0.0, 0.0))
    slide = s.prismatic("slide", s.ground, mass, at=(0, 0, 0), axis=(0, 0, 1))
    hinge = s.revolute("hinge", s.ground, wheel, at=(0.1, 0, 0), axis=(0, 1, 0))
    s.rack("rack", hinge, slide, radius=0.1)
    seen = look(s, ["slide.acceleration", "hinge.acceleration", "rack.effort"])
    expected = -2.0 * 9.80665 / (2.0 + 0.3 / 0.1**2)
    np.testing.assert_allclose(seen["slide.acceleration"], expected, rtol=1e-10)
    np.testing.assert_allclose(seen["hinge.acceleration"], expected / 0.1, rtol=1e-10)
    np.testing.assert_allclose(seen["rack.effort"], 2.0 * (expected + 9.80665), rtol=1e-9)


def test_screw_has_its_lead() -> None:
    """A nut under its weight: m g = (m + J (2π / lead)²) ẍ, and lead = x for each turn."""
    lead = 0.02
    s = System("screw")
    nut = s.body("nut", mass=3.0, inertia=(0.01, 0.01, 0.004))
    joint = s.cylindrical("joint", s.ground, nut, at=(0, 0, 0), axis=(0, 0, 1))
    s.screw("thread", joint, lead=lead)
    seen = run(s, ["joint.displacement", "joint.angle", "joint.displacement_acceleration"], 2.0)
    expected = -3.0 * 9.80665 / (3.0 + 0.004 * (2.0 * np.pi / lead) ** 2)
    np.testing.assert_allclose(seen["joint.displacement_acceleration"], expected, rtol=1e-8)
    turns = seen["joint.angle"][-1] / (2.0 * np.pi)
    np.testing.assert_allclose(seen["joint.displacement"][-1], lead * turns, rtol=1e-12)


def geared_crank(cut: str = "small", *, moves: bool = False) -> System:
    """A slider-crank, one of whose joints drives a wheel and by that a bar.

    The loop is cut at the joint `cut`, so that its coordinate is measured between markers; `moves`
    gives the crank a driver.
    """
    s = System("press", planar=True)
    crank = s.body("crank", mass=1.0, inertia=0.02, position=(0.1, 0.0))
    rod = s.body("rod", mass=1.5, inertia=0.05, position=(0.4, 0.0))
    slider = s.body("slider", mass=2.0, inertia=0.01, position=(0.6, 0.0))
    wheel = s.body("wheel", mass=1.0, inertia=0.4, position=(0.0, 1.0))
    main = s.revolute("main", s.ground, crank, at=(0.0, 0.0))
    pin = s.revolute("pin", crank, rod, at=(0.2, 0.0))
    if cut == "small":
        small = s.revolute("small", rod, slider, at=(0.6, 0.0))
        slide = s.prismatic("slide", s.ground, slider, at=(0.6, 0.0), axis=(1, 0))
    else:  # the rod slides through a block that swivels
        small = s.revolute("small", s.ground, slider, at=(0.6, 0.0))
        slide = s.prismatic("slide", slider, rod, at=(0.6, 0.0), axis=(1, 0))
    hub = s.revolute("hub", s.ground, wheel, at=(0.0, 1.0))
    s.coupling("gear", joint_of(s, cut), hub, ratio=3.0)
    s.rack("rack", hub, s.prismatic("bar", s.ground, s.body(
        "bar_body", mass=0.5, inertia=0.1, position=(0.0, 1.2)
    ), at=(0.0, 1.2), axis=(1, 0)), radius=-0.2)  # fmt: skip
    s.spring("spring", s.ground.marker("wall", (1.0, 0.0)), slider.marker("eye", (0.0, 0.0)),
             stiffness=400.0, free_length=0.4)  # fmt: skip
    if moves:
        s.driver("drive", main, Linear(0.3, 5.0))
    else:
        s.torque("motor", main, 2.0)
    # What acts on coordinates goes into the tree first: all joints, so that one must be left.
    for joint in (main, pin, small, slide):
        if joint.name != cut:
            s.friction(f"rub {joint.name}", joint, viscous=0.0)
    assert [joint.name for joint in grow_tree(s).cuts] == [cut]
    return s


def laboratory_accelerations(system: System, seen: dict[str, Any]) -> dict[str, Any]:
    """Solve M u̇ + Φᵀ λ = Q, Φ_u u̇ = γ in coordinates of the bodies, by numpy."""
    model = make_manifold(system)
    q, v = [], []
    for body in model.bodies:
        position, spin = seen[f"{body.name}.position"], seen[f"{body.name}.angular_velocity"][2]
        e = seen[f"{body.name}.rotation"]
        q += [*position[:2], 2.0 * np.arctan2(e[3], e[0])]
        v += [*seen[f"{body.name}.velocity"][:2], spin]
    e = model.equations(0.0, np.array(q), np.array(v))
    n, m = e.mass.shape[0], e.jacobian.shape[0]
    matrix = np.block([[e.mass, e.jacobian.T], [e.jacobian, np.zeros((m, m))]])
    x = np.linalg.solve(matrix, np.concatenate([e.force, e.gamma]))
    found = {f"{b.name}.acceleration": x[3 * k : 3 * k + 2] for k, b in enumerate(model.bodies)}
    found |= {c.name: -x[n:][model.rows(c.name)][0] for c in system.constraints}
    found["phi"] = np.abs(e.phi).max()
    return found


@pytest.mark.parametrize("cut", ["small", "slide"])
def test_coupled_coordinate_of_a_loop_agrees_with_equations_of_bodies(cut: str) -> None:
    """It is measured where the loop was cut: no equation of the kernel is used in numpy's."""
    s = geared_crank(cut)
    bodies = [body.name for body in s.bodies]
    shown = [f"{b}.{w}" for b in bodies for w in
             ("position", "rotation", "velocity", "angular_velocity", "acceleration")]  # fmt: skip
    diagram = Diagram("d")
    block = s.block(outputs=[*shown, "gear.effort", "rack.effort"],
                    initial={"main.angle": 0.7, "main.speed": 4.0})  # fmt: skip
    diagram.add(block, name="plant")
    with Instance(diagram.compile()) as instance:
        instance.initialize()
        instance.evaluate()
        seen = {p: np.array(instance.get(f"plant.{p}")) for p in [*shown, "gear.effort"]}
    found = laboratory_accelerations(s, seen)
    assert found["phi"] < 1e-12
    for name in bodies:
        np.testing.assert_allclose(
            seen[f"{name}.acceleration"][:2], found[f"{name}.acceleration"], rtol=1e-8, atol=1e-8
        )
    np.testing.assert_allclose(seen["gear.effort"], found["gear"], rtol=1e-8)


def test_measured_angle_in_space_agrees_with_equations_of_bodies() -> None:
    """A four-bar of parallel hinges, over-constrained, one of whose hinges is geared to a wheel."""
    s = System("fourbar")
    bars = [
        s.body(name, mass=1.0 + n, inertia=(0.1, 0.1, 0.1), position=place)
        for n, (name, place) in enumerate(
            (("crank", (0.0, 0.0, 0.1)), ("rod", (0.4, 0.0, 0.3)), ("rocker", (0.8, 0.0, 0.1)))
        )
    ]
    wheel = s.body("wheel", mass=1.0, inertia=(0.2, 0.3, 0.2), position=(2.0, 0.0, 0.0))
    ends = (s.ground, *bars, s.ground)
    places = ((0, 0, 0), (0.1, 0, 0.3), (0.7, 0, 0.3), (0.8, 0, 0))
    hinges = [
        s.revolute(f"hinge{n}", ends[n], ends[n + 1], at=place, axis=(0, 1, 0))
        for n, place in enumerate(places)
    ]
    hub = s.revolute("hub", s.ground, wheel, at=(2.0, 0, 0), axis=(0, 1, 0))
    for joint in hinges:
        s.torque(f"motor {joint.name}", joint, 0.7)
    s.gear("gear", hinges[2], hub, ratio=-2.5)
    assert [joint.name for joint in grow_tree(s).cuts] == ["hinge2"]
    shown = [f"{b.name}.{w}" for b in s.bodies for w in ("position", "rotation", "velocity",
             "angular_velocity", "acceleration", "angular_acceleration")]  # fmt: skip
    diagram = Diagram("d")
    block = s.block(outputs=[*shown, "gear.effort"], initial={"hinge0.speed": 3.0})
    diagram.add(block, name="plant")
    with Instance(diagram.compile()) as instance:
        instance.initialize()
        instance.evaluate()
        seen = {p: np.array(instance.get(f"plant.{p}")) for p in [*shown, "gear.effort"]}
    model = make_manifold(s)
    q = np.concatenate(
        [np.r_[seen[f"{b.name}.position"], seen[f"{b.name}.rotation"]] for b in s.bodies]
    )
    u = np.concatenate(
        [np.r_[seen[f"{b.name}.velocity"], seen[f"{b.name}.angular_velocity"]] for b in s.bodies]
    )
    e = model.equations(0.0, q, u)
    assert np.abs(e.phi).max() < 1e-12
    n, m = e.mass.shape[0], e.jacobian.shape[0]
    matrix = np.block([[e.mass, e.jacobian.T], [e.jacobian, np.zeros((m, m))]])
    x = np.linalg.lstsq(matrix, np.concatenate([e.force, e.gamma]), rcond=1e-10)[0]
    for k, body in enumerate(s.bodies):
        both = np.r_[seen[f"{body.name}.acceleration"], seen[f"{body.name}.angular_acceleration"]]
        np.testing.assert_allclose(both, x[6 * k : 6 * k + 6], atol=1e-8)
    # The effort of the gear is unique, though reactions of the hinges are not.
    np.testing.assert_allclose(seen["gear.effort"], -x[n:][model.rows("gear")][0], rtol=1e-7)


@pytest.mark.parametrize("cut", ["small", "slide"])
def test_reactions_carry_what_a_measured_coupling_does(cut: str) -> None:
    """The reactions at the start against those that numpy solves for in coordinates of bodies."""
    s = geared_crank(cut, moves=True)
    paths = [f"{joint.name}.{what}" for joint in s.joints for what in ("force", "torque")]
    motion, seen = s.kinematics([0.0]), look(s, paths)
    for path in paths:
        np.testing.assert_allclose(seen[path], motion[path][0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("options", MODES, ids=lambda o: o.get("integrator", o["mode"]))
def test_coupled_loop_conserves_energy_and_stays_closed(options: dict[str, Any]) -> None:
    s = geared_crank()
    outputs = ["kinetic_energy", "potential_energy", "main.angle", "closure"]
    seen = run(s, outputs, 0.6, **options)
    total = seen["kinetic_energy"] + seen["potential_energy"] - 2.0 * seen["main.angle"]
    # RK4 with 1 ms; generalized-α of order two damps and errs more.
    limit = 1e-3 if options.get("integrator") == "implicit" else 1e-7
    assert np.abs(total - total[0]).max() < limit * np.ptp(seen["kinetic_energy"])
    assert seen["closure"].max() < 1e-11


def test_kinematics_follow_a_coupling_over_many_turns() -> None:
    s = two_discs(ratio=-0.4)
    s.driver("drive", joint_of(s, "a"), Linear(0.0, 20.0))
    motion = s.kinematics(np.linspace(0.0, 3.0, 31))
    np.testing.assert_allclose(motion["b.angle"], -0.4 * motion["a.angle"], atol=1e-10)
    np.testing.assert_allclose(motion["b.angle_speed"], -8.0, atol=1e-9)


def test_driven_loop_gives_the_same_efforts_as_the_engine() -> None:
    s = geared_crank(moves=True)
    motion = s.kinematics([0.0, 0.1])
    seen = run(s, ["gear.effort", "rack.effort", "drive.effort", "hub.angle"], 0.1)
    for path in ("gear.effort", "rack.effort", "drive.effort"):
        owner = path.partition(".")[0]
        np.testing.assert_allclose(seen[path][0], motion.efforts[owner][0], rtol=1e-7)
        np.testing.assert_allclose(seen[path][-1], motion.efforts[owner][-1], rtol=1e-6)


def test_equilibrium_and_linearization_have_the_coupling() -> None:
    """A pendulum geared to a torsional spring: m g l sin q = r k (r q) at rest, one frequency."""
    s = System("balance", planar=True)
    arm = s.body("arm", mass=2.0, inertia=0.1, com=(0.5, 0.0))
    disc = s.body("disc", mass=1.0, inertia=0.3, position=(2.0, 0.0))
    a = s.revolute("a", s.ground, arm, at=(0.0, 0.0))
    b = s.revolute("b", s.ground, disc, at=(2.0, 0.0))
    s.torsional_spring("spring", b, stiffness=100.0)
    s.gear("gear", a, b, ratio=2.0)
    rest = s.equilibrium()
    arm_now, disc_now = (rest[name].rotation for name in ("arm", "disc"))
    q = float(np.arctan2(arm_now[1, 0], arm_now[0, 0]))
    # Weight m g l cos q turns the arm down, the spring r² k q back.
    assert 2.0 * 9.80665 * 0.5 * np.cos(q) == pytest.approx(-4.0 * 100.0 * q, abs=1e-8)
    assert np.arctan2(disc_now[1, 0], disc_now[0, 0]) == pytest.approx(2.0 * q)
    # The effort on the disc is what the spring takes; the arm feels the ratio of it.
    assert rest.efforts["gear"] == pytest.approx(100.0 * 2.0 * q)
    inertia = 0.1 + 2.0 * 0.25 + 4.0 * 0.3
    stiffness = 400.0 - 2.0 * 9.80665 * 0.5 * np.sin(q)
    (mode,) = s.modes(rest)
    assert mode.frequency == pytest.approx(np.sqrt(stiffness / inertia) / (2 * np.pi), rel=1e-6)
    assert s.report().freedom == 1


def test_redundant_couplings_share_a_load() -> None:
    """Two equal gears between the same joints carry half each."""
    s = two_discs(ratio=1.0)
    s.gear("twin", joint_of(s, "a"), joint_of(s, "b"), ratio=1.0)
    seen = look(s, ["gear.effort", "twin.effort"])
    half = 0.5 * 0.5 * 3.0 / 0.7
    np.testing.assert_allclose(seen["gear.effort"], half, rtol=1e-9)
    np.testing.assert_allclose(seen["twin.effort"], half, rtol=1e-9)
    assert s.report().redundant == 1


@pytest.mark.parametrize("path", ["gear.first_effort", "gear.power"])
def test_outputs_of_a_redundant_coupling_do_not_depend_on_other_outputs(path: str) -> None:
    """Two gears that are redundant, but not alike: the rule decides what each of them carries."""
    s: Any = two_discs(ratio=-2.0)
    s.gear("twin", s["b"], s["a"], ratio=-0.5)
    with pytest.warns(BiellaWarning, match="not unique, and `gear.(first_)?effort`"):
        both = run(s, [path, "gear.effort"], 0.05)
    context = pytest.warns(BiellaWarning, match="`gear.first_effort` is one of them")
    with context if path == "gear.first_effort" else nullcontext():
        alone = run(s, [path], 0.05)
    np.testing.assert_array_equal(alone[path], both[path])


@pytest.mark.parametrize("driven", [True, False], ids=["driver", "initial"])
@pytest.mark.parametrize("turns", [-3, 3, 6])
def test_measured_angle_starts_in_the_turn_of_what_it_is_coupled_to(
    turns: int, driven: bool
) -> None:
    """The hub starts after whole turns, of which the joint that closes the loop made a third."""
    s: Any = geared_crank()
    start, options = 2.0 * np.pi * turns, {}
    if driven:
        s.driver("drive", s["hub"], Linear(start, 0.0))
    else:
        options["initial"] = {"hub.angle": start}
    seen = run(s, ["hub.angle", "small.angle", "closure"], 0.002, **options)
    assert seen["hub.angle"][0] == pytest.approx(start)
    assert seen["small.angle"][0] == pytest.approx(start / 3.0)
    assert seen["closure"].max() < 1e-10


@pytest.mark.parametrize("ratio", [-1.0, 1.0])
def test_coupled_angles_start_in_the_same_turn_whatever_is_shown(ratio: float) -> None:
    """The tree is a quarter turn ahead of the second angle of a universal joint."""
    s = System("cross", gravity=(0.0, 0.0, 0.0))
    cross = s.body("cross", mass=1.0, inertia=np.eye(3))
    wheel = s.body("wheel", mass=1.0, inertia=np.eye(3), position=(3.0, 0.0, 0.0))
    x, z = np.array([np.cos(2.5), 0.0, -np.sin(2.5)]), np.array([0.0, 1.0, 0.0])
    still = s.ground.marker("still", rotation=[[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    moved = cross.marker("moved", rotation=np.column_stack([x, np.cross(z, x), z]))
    joint = s.universal("joint", still, moved)
    hub = s.revolute("hub", s.ground, wheel, at=(3.0, 0.0, 0.0), axis=(0, 0, 1))
    s.coupling("gear", joint, hub, ratio=ratio, first_coordinate=1)
    assert joint.given_value(1) == pytest.approx(2.5)
    for outputs in (["hub.angle"], ["hub.angle", "joint.angle_2"]):
        assert look(s, outputs)["hub.angle"] == pytest.approx(0.0, abs=1e-12)


def test_offset_keeps_the_given_pose_and_can_be_given() -> None:
    s = System("set", planar=True)
    bodies = [s.body(n, mass=1.0, inertia=1.0, rotation=0.3 if n == "b" else 0.0) for n in "ab"]
    a, b = (s.revolute(f"j{body.name}", s.ground, body, at=(0, 0)) for body in bodies)
    assert s.gear("gear", a, b, ratio=2.0).offset == pytest.approx(b.given_value(0))
    assert s.coupling("other", a, b, ratio=1.0, offset=0.1).offset == 0.1


def test_bad_couplings_are_refused() -> None:
    s = two_discs(ratio=1.0)
    a, b = joint_of(s, "a"), joint_of(s, "b")
    with pytest.raises(DiagramError, match="ratio of 0"):
        s.coupling("x", a, b, ratio=0.0)
    with pytest.raises(DiagramError, match="to itself"):
        s.coupling("x", a, a, ratio=1.0)
    with pytest.raises(DiagramError, match="a `ratio` or `teeth`"):
        s.gear("x", a, b)
    with pytest.raises(DiagramError, match="has its sign"):
        s.gear("x", a, b, ratio=1.0, internal=True)
    with pytest.raises(DiagramError, match="must be positive"):
        s.gear("x", a, b, teeth=(0, 3))
    with pytest.raises(DiagramError, match="a displacement"):
        s.rack("x", a, b, radius=0.1)
    with pytest.raises(BiellaError, match="no keyword `pitch`"):
        s.screw("x", a, pitch=0.1)  # type: ignore[call-arg]
    assert "x" not in s.parts
