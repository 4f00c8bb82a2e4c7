"""Outputs of every element: they exist, have units, are pure, true, and balance.

Elements are found by their classes, so that a new one is tested here by being there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from biella import Diagram, simulate
from biella.blocks import ShortBearing
from biella.blocks.core._units import parse_unit
from biella.blocks.multibody import (
    Bore,
    CamProfile,
    Cylinder,
    HoleProfile,
    HuntCrossley,
    Input,
    LankaraniNikravesh,
    PinProfile,
    Plane,
    RigidContact,
    Sine,
    Sphere,
    System,
    Wear,
)
from biella.blocks.multibody.elements import _table as table
from biella.blocks.multibody.elements._element import AbstractElement
from biella.blocks.multibody.joints._joint import Joint
from biella.blocks.multibody.plant._outputs import list_outputs
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine


def spatial(**options: bool) -> System:
    """Two bodies with most elements; all coefficients that may be laws are inputs if asked."""
    inputs = bool(options.get("inputs"))
    law = (lambda number: Input(default=number)) if inputs else float
    s = System("space")
    a = s.body("a", mass=2.0, inertia=(0.1, 0.2, 0.15), position=(0.3, 0.0, 0.0))
    b = s.body("b", mass=1.0, inertia=(0.05, 0.06, 0.07), position=(0.6, 0.1, 0.0))
    hinge = s.revolute("hinge", s.ground, a, at=(0, 0, 0), axis=(0, 1, 0))
    rail = s.cylindrical("rail", a, b, at=(0.6, 0, 0), axis=(0, 0, 1))
    ground = s.ground.marker("post", (0, 0, -1), motion={"z": law(0.0)})
    s.spring("spring", ground, a.marker("eye", (0.1, 0, 0)), stiffness=law(300.0),
             damping=law(3.0), free_length=0.8,
             force=Input("actuator", default=1.0) if inputs else 1.0)  # fmt: skip
    s.bushing("bushing", a.marker("b1", (0.2, 0, 0)), b.marker("b2", (-0.1, 0, 0)),
              stiffness=(100, 200, 300, 3, 4, 5), damping=(1, 2, 3, 0.1, 0.2, 0.3))  # fmt: skip
    s.torsional_spring("torsion", hinge, stiffness=law(3.0), damping=0.1, free_angle=0.2)
    s.friction("friction", hinge, viscous=0.2)
    s.stop("stop", rail, lower=0.001, upper=0.2, stiffness=1e3, damping=2.0, coordinate=0)
    s.force("push", b.marker("p", (0, 0, 0.1)), (law(3.0), 1.0, 0.0), frame="body")
    s.force("jet", b.marker("j"), (law(0.3), 0.1, "2*a.x*rail.angle_speed"),
            point=(law(0.1), "0.3*a.x + 0.1*spring.length", 0.0))  # fmt: skip
    s.torque("twist", b.marker("t", (0, 0, 0.1)), (0.1, law(0.2), 0.0))
    s.torque("motor", hinge, law(2.0))
    s.force("pull", rail, law(0.5))
    return s


def joint_friction() -> System:
    s = spatial()
    rail = s["rail"]
    assert isinstance(rail, Joint)
    s.friction("rubbing", rail, coefficient=0.1, diameter=0.05, length=0.1)
    return s


def ball_friction() -> System:
    s = spatial()
    c = s.body("c", mass=1.0, inertia=0.01, position=(0, 0, 2), angular_velocity=(1, -2, 3))
    d = s.body("d", mass=1.0, inertia=0.01, position=(0.1, 0, 1.9), velocity=(0.2, 0.4, 0.2),
               angular_velocity=(1, -2, 3))  # fmt: skip
    ball = s.spherical("ball", s.ground, c, at=(0, 0, 2))
    cross = s.universal("cross", c, d, at=(0, 0, 1.9), axis=[(1, 0, 0), (0, 1, 0)])
    s.friction("socket", ball, coefficient=0.1, diameter=0.1, smoothing_speed=0.1)
    s.friction("brake", ball, viscous=0.01, coulomb=0.01, smoothing_speed=1.0)
    s.friction("pin", cross, coordinate=0, coefficient=0.1, diameter=0.1, length=0.2,
               smoothing_speed=0.1)  # fmt: skip
    return s


def stiction() -> System:
    s = spatial()
    hinge, rail = s["hinge"], s["rail"]
    assert isinstance(hinge, Joint) and isinstance(rail, Joint)
    s.friction("weak", hinge, coulomb=0.1, static=0.2)
    s.friction("strong", rail, coulomb=400.0, static=500.0, coordinate=0)
    return s


def joint_stiction() -> System:
    s = spatial()
    hinge = s["hinge"]
    assert isinstance(hinge, Joint)
    s.friction("journal", hinge, coefficient=0.05, static=0.1, diameter=0.05, length=0.1)
    return s


def locked() -> System:
    """A loop whose pins hold the same motion."""
    s = loop()
    for name in ("main", "pin"):
        pin = s[name]
        assert isinstance(pin, Joint)
        s.friction(f"rust in {name}", pin, coefficient=2.0, static=3.0, diameter=0.2)
    return s


def driven() -> System:
    s = System("driven")
    a = s.body("a", mass=2.0, inertia=(0.1, 0.2, 0.15), position=(0.3, 0.0, 0.0))
    b = s.body("b", mass=1.0, inertia=(0.05, 0.06, 0.07), position=(0.6, 0.1, 0.0))
    hinge = s.revolute("hinge", s.ground, a, at=(0, 0, 0), axis=(0, 1, 0))
    other = s.revolute("other", s.ground, b, at=(0.6, 0.1, 0.0), axis=(0, 1, 0))
    s.driver("driver", hinge, Sine(0.4, 3.0))
    s.gear("gear", hinge, other, ratio=1.5)
    third = s.body("c", mass=1.0, inertia=(0.05, 0.06, 0.07), position=(0.2, 0.3, 0.1))
    s.universal("cardan", s.ground, third, at=(0, 0.3, 0), axis=[(1, 0, 0), (0, 1, 0)])
    s.constraint("formula", "c.z - k*c.x - 0.1*(1 - cos(3*t))", parameters={"k": 0.5})
    ball = s.body("ball", mass=1.0, inertia=0.004, position=(0.0, 0.0, 0.1))
    s.rolling("roll", s.ground.marker("floor"), ball.marker("hub"), radius=0.1, shape="sphere")
    bead = s.body("bead", mass=1.0, inertia=0.004, position=(2.0, 0.0, 0.0))
    wire = [(2.0 + 0.1 * x, 0.02 * x**2, -0.1 * x) for x in range(-4, 5)]
    s.on_curve("wire", s.ground.marker("origin"), bead.marker("eye"), points=wire)
    return s


def loop() -> System:
    """A four-bar: one joint closes the loop."""
    s = System("loop", planar=True)
    crank = s.body("crank", mass=1.0, inertia=0.02, position=(0.0, 0.1))
    rod = s.body("rod", mass=1.0, inertia=0.05, position=(0.4, 0.25))
    rocker = s.body("rocker", mass=1.0, inertia=0.05, position=(0.8, 0.15))
    s.revolute("main", s.ground, crank, at=(0.0, 0.0))
    s.revolute("pin", crank, rod, at=(0.0, 0.2))
    s.revolute("knee", rod, rocker, at=(0.8, 0.3))
    s.revolute("end", s.ground, rocker, at=(0.8, 0.0))
    return s


def journal(contact: Any = None, wear: Any = None) -> System:
    """A rotor in an oil film, or a pin in a hole."""
    s = System("journal", planar=True)
    rotor = s.body("rotor", mass=1.0, inertia=0.01, angular_velocity=100.0,
                   position=(2e-6, -5e-6), velocity=(1e-3, 0.0), free=True)  # fmt: skip
    pin, hole = rotor.marker("pin", (0, 0)), s.ground.marker("hole", (0, 0))
    if contact is None:
        film = ShortBearing(radius=0.02, length=0.02, clearance=2e-5, viscosity=0.03)
        s.bearing("bearing", pin, hole, film)
    else:
        s.clearance_revolute("clearance", pin, hole, clearance=4e-6, pin_radius=0.02,
                             contact=contact, wear=wear)  # fmt: skip
    return s


def shapes() -> System:
    """A ball on a floor, a pin in a bore and a roller on a cam."""
    s = System("shapes")
    ball = s.body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0, 0, 0.0999), free=True,
                  velocity=(0.1, 0.0, -0.1))  # fmt: skip
    pin = s.body("pin", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(1.001, 0, 0), free=True)
    soft = HuntCrossley(stiffness=1e6, damping=0.1, friction=0.2)
    hard = LankaraniNikravesh(stiffness=1e6, friction=0.2)
    s.contact("floor", Plane(s.ground.marker("floor")), Sphere(ball.marker("m"), 0.1), law=soft)
    s.contact("play", Cylinder(pin.marker("m"), 0.05, 0.2), Bore(s.ground.marker("bore", (1, 0, 0)),
              0.051, 0.1), law=hard)  # fmt: skip
    cam = CamProfile(s.ground.marker("cam", (0, 0.5, 0)), [0.1] * 12)
    s.contact("cam", Sphere(ball.marker("roller"), 0.1), cam, law=soft)
    return s


def worn_shapes() -> System:
    """A pin in a bore and outlines in each other, which wear."""
    s = System("worn")
    pin = s.body("pin", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(1.001, 0, 0), free=True,
                 velocity=(0.1, 0.0, -0.1), angular_velocity=(0.0, 0.0, 3.0))  # fmt: skip
    cam = s.body("cam", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.001, 1, 0), free=True)
    hard = LankaraniNikravesh(stiffness=1e6, friction=0.2)
    wear = Wear(coefficient=1e-3, hardness=1e9, length=0.1, sections=36, pin_coefficient=1e-3)
    s.contact("play", Cylinder(pin.marker("m"), 0.05, 0.2), Bore(s.ground.marker("bore", (1, 0, 0)),
              0.051, 0.1), law=hard, wear=wear)  # fmt: skip
    hole = HoleProfile(s.ground.marker("hole", (0, 1, 0)), [0.1] * 12)
    outline = PinProfile(cam.marker("outline"), [0.099, 0.0985] * 6)
    s.contact("slot", outline, hole, law=hard, wear=wear)
    return s


def rigid_shapes() -> System:
    """A ball that slides on a floor, without compliance."""
    s = System("rigid shapes")
    ball = s.body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.05, 0, 0.1), free=True,
                  velocity=(0.3, 0.1, 0), angular_velocity=(0.1, 0.2, 0.3))  # fmt: skip
    floor = Plane(s.ground.marker("floor"))
    s.contact("floor", floor, Sphere(ball.marker("m"), 0.1), law=RigidContact(friction=0.2))
    return s


CASES: dict[str, Callable[[], System]] = {
    "spatial": spatial,
    "inputs": lambda: spatial(inputs=True),
    "rubbing": joint_friction,
    "balls": ball_friction,
    "sticks": stiction,
    "journal": joint_stiction,
    "locked": locked,
    "driven": driven,
    "loop": loop,
    "film": journal,
    "contact": lambda: journal(HuntCrossley(stiffness=1e8, damping=0.1, friction=0.2)),
    "wear": lambda: journal(
        HuntCrossley(stiffness=1e8), Wear(coefficient=1e-5, hardness=1e9, length=0.02)
    ),
    "rigid": lambda: journal_outside(),
    "shapes": shapes,
    "worn shapes": worn_shapes,
    "rigid shapes": rigid_shapes,
    "worn pin": lambda: journal(
        HuntCrossley(stiffness=1e8),
        Wear(coefficient=1e-5, hardness=1e9, length=0.02, pin_coefficient=1e-5),
    ),
    "pushed": lambda: spatial().block().with_push()[0].system,
}


def journal_outside() -> System:
    s = System("journal", planar=True)
    rotor = s.body("rotor", mass=1.0, inertia=0.01, position=(0, 0), free=True)
    s.clearance_revolute("clearance", rotor.marker("pin", (0, 0)), s.ground.marker("hole", (0, 0)),
                         clearance=1e-3, pin_radius=0.02, contact=RigidContact())  # fmt: skip
    return s


def options_of(system: System) -> dict[str, Any]:
    return {"mode": "internal"} if any(e.is_rigid for e in system.elements) else {}


def subclasses(of: type) -> set[type]:
    found: set[type] = set(of.__subclasses__())
    return found.union(*(subclasses(kind) for kind in found))


def test_every_kind_of_element_is_in_a_case() -> None:
    made = {
        type(part)
        for make in CASES.values()
        for part in make().parts.values()
        if isinstance(part, AbstractElement)
    }
    kinds = {
        kind
        for kind in subclasses(AbstractElement)
        if kind.__name__ not in ("Element", "Constraint", "FunctionConstraint")
    }
    assert len(kinds) >= 12
    assert len(table.ElementMethods.__bases__) >= 10
    assert {kind.__name__ for kind in kinds} == {kind.__name__ for kind in made}


@pytest.mark.parametrize("case", CASES)
def test_all_outputs_of_a_mechanism_run_and_are_pure(case: str) -> None:
    """Each listed output has a unit that parses, a line of text, its width, and one value."""
    system = CASES[case]()
    listed = system.outputs()
    names = list_outputs(system)
    assert list(listed) == names
    assert len(set(names)) == len(names)
    for part in system.parts.values():
        if isinstance(part, AbstractElement):
            assert part.outputs()
            assert "power" in part.outputs()
    block = system.block(outputs=names, **options_of(system))
    for port in block.outputs:
        assert port.doc
        if port.unit is not None:
            parse_unit(str(port.unit))
    diagram = Diagram("d")
    diagram.add(block, name="plant")
    with Instance(diagram.compile(step=1e-6)) as instance:
        instance.initialize()
        instance.evaluate()
        first = {name: np.array(instance.get(f"plant.{name}")) for name in names}
        instance.touch()
        instance.evaluate()
        for name in names:
            np.testing.assert_array_equal(first[name], instance.get(f"plant.{name}"), name)
            assert np.isfinite(first[name]).all(), name
            assert first[name].size == listed[name].width


def test_feedthrough_of_elements_is_as_declared() -> None:
    """An input moves exactly the outputs that are declared to follow it at once, or fewer."""
    system = spatial(inputs=True)
    names = list_outputs(system)
    block = system.block(outputs=names, initial={"hinge.speed": 1.0})
    declared = {
        (port.name, block.inputs[k].name)
        for port, inputs in zip(block.outputs, block.feedthrough, strict=True)
        for k in inputs
    }
    diagram = Diagram("d")
    diagram.add(block, name="plant")
    for port in block.inputs:
        unit = None if port.unit is None else str(port.unit)
        source = diagram.input(port.name.replace(".", " "), unit=unit, default=port.default)
        diagram.connect(source, block[port.name])

    def look(changed: str | None) -> dict[str, Any]:
        with Instance(diagram.compile()) as instance:
            instance.initialize()
            if changed is not None:
                path = changed.replace(".", " ")
                instance.set(path, float(np.ravel(instance.get(path))[0]) + 0.1)
            instance.touch()
            instance.evaluate()
            return {name: np.array(instance.get(f"plant.{name}")) for name in names}

    rest = look(None)
    followed = set()
    for port in block.inputs:
        moved = look(port.name)
        followed |= {(n, port.name) for n in names if not np.array_equal(rest[n], moved[n])}
    assert followed <= declared
    for pair in (
        ("spring.force", "spring.stiffness"),
        ("spring.force", "spring.damping"),
        ("spring.length", "ground.post.z"),
        ("push.applied_force", "push.force.x"),
        ("motor.effort", "motor.torque"),
        ("torsion.torque", "torsion.stiffness"),
    ):
        assert pair in followed
        assert pair in declared
    assert ("spring.length", "spring.stiffness") not in declared
    assert ("torsion.angle", "torsion.stiffness") not in declared
    assert ("bushing.force", "spring.stiffness") not in declared


def run(system: System, outputs: list[str], until: float, step: float, **options: Any) -> Any:
    diagram = Diagram("d")
    diagram.add(system.block(outputs=outputs, **options), name="plant")
    result = simulate(diagram, until=until, step=step)
    return {name: result[f"plant.{name}"] for name in outputs} | {"t": result.t}


def integral(t: Any, rate: Any) -> Any:
    """Return ∫ rate dt by the trapezoidal rule with its end correction, of order four."""
    step = t[1] - t[0]
    slope = np.gradient(rate, step, edge_order=2)
    sums = np.concatenate([[0.0], np.cumsum(0.5 * step * (rate[1:] + rate[:-1]))])
    return sums - step**2 / 12.0 * (slope - slope[0])


@pytest.mark.parametrize("case", ["spatial", "rubbing", "balls", "sticks", "driven"])
def test_powers_of_all_elements_are_the_change_of_energy(case: str) -> None:
    """T + weight changes by ∫ Σ power of all elements and drivers; stored energy has its part.

    Steps of 0.1 ms, and a trapezoidal rule of order four between them: about 1e-9 of what flows,
    but for the smooth friction of `joint_friction` and the kink of a stop.
    """
    system = CASES[case]()
    driving = (*system.drivers, *system.general_constraints)
    powers = [f"{e.name}.power" for e in (*system.elements, *driving)]
    names = ["kinetic_energy", "weight_energy", "elastic_energy", "contact_energy"]
    names += ["potential_energy", *powers]
    seen = run(system, names, 0.1, 1e-4)
    total = seen["kinetic_energy"] + seen["weight_energy"]
    work = integral(seen["t"], sum(seen[name] for name in powers))
    flow = np.ptp(seen["kinetic_energy"]) + np.ptp(total)
    assert np.abs(total - total[0] - work).max() < 1e-5 * flow
    parts = sum(seen[f"{kind}_energy"] for kind in ("weight", "elastic", "contact"))
    np.testing.assert_allclose(parts, seen["potential_energy"], atol=1e-12)


@pytest.mark.parametrize("name", ["spring", "bushing"])
def test_power_of_what_stores_is_the_loss_of_its_energy(name: str) -> None:
    """Without damping, power = -dU/dt: the work of a spring on the bodies is what it gives up."""
    s = System("store")
    body = s.body("body", mass=1.0, inertia=(0.1, 0.2, 0.3), position=(0.5, 0, 0), free=True,
                  velocity=(1.0, 0.2, -0.3), angular_velocity=(1.0, 2.0, 0.5))  # fmt: skip
    ends = s.ground.marker("wall", (0, 0, 0)), body.marker("eye", (0.0, 0.1, 0.05))
    if name == "spring":
        s.spring(name, *ends, stiffness=200.0, free_length=0.4)
    else:
        s.bushing(name, *ends, stiffness=(200, 150, 120, 4, 5, 6))
    seen = run(s, [f"{name}.power", f"{name}.energy", "elastic_energy"], 0.3, 1e-4)
    work = integral(seen["t"], seen[f"{name}.power"])
    lost = seen[f"{name}.energy"][0] - seen[f"{name}.energy"]
    assert np.ptp(lost) > 1.0
    np.testing.assert_allclose(work, lost, atol=1e-8 * np.ptp(lost))
    np.testing.assert_array_equal(seen["elastic_energy"], seen[f"{name}.energy"])


def look(system: System, names: list[str], **options: Any) -> dict[str, Any]:
    diagram = Diagram("d")
    diagram.add(system.block(outputs=names, **options), name="plant")
    with Instance(diagram.compile(step=1e-4)) as instance:
        instance.initialize()
        instance.evaluate()
        return {name: np.array(instance.get(f"plant.{name}")) for name in names}


def test_spring_shows_its_law() -> None:
    """l = 5, l̇ = 3/5 · 2 + 4/5 · 1 = 2, F = 10 (5 - 4) + 3 · 2 + 7 = 23 N, -F l̇ = -46 W."""
    s = System("law", gravity=(0, 0, 0))
    body = s.body("body", mass=1.0, inertia=(1, 1, 1), position=(3.0, 4.0, 0.0), free=True,
                  velocity=(2.0, 1.0, 0.0))  # fmt: skip
    s.spring("tire", s.ground.marker("g", (0, 0, 0)), body.marker("m", (0, 0, 0)),
             stiffness=10.0, damping=3.0, free_length=4.0, force=7.0)  # fmt: skip
    what = ["length", "rate", "force", "deflection", "power", "energy"]
    seen = look(s, [f"tire.{name}" for name in what])
    np.testing.assert_allclose([seen[f"tire.{name}"] for name in what], [5, 2, 23, 1, -46, 5])


def test_torsional_spring_friction_stop_and_load_show_their_laws() -> None:
    """At q = 0.5 rad and q̇ = 2 rad/s, with the stop 0.1 rad below."""
    s = System("joint", planar=True, gravity=(0, 0))
    body = s.body("body", mass=1.0, inertia=1.0)
    joint = s.revolute("joint", s.ground, body, at=(0, 0))
    s.torsional_spring("torsion", joint, stiffness=10.0, damping=1.0, free_angle=0.2, torque=3.0)
    s.friction("friction", joint, viscous=2.0, coulomb=5.0, smoothing_speed=1e-3)
    s.stop("stop", joint, upper=0.4, stiffness=100.0, damping=1.0)
    s.torque("motor", joint, 4.0)
    s.torque("twist", body.marker("m", (0, 0)), 1.5)
    expected = {
        "torsion.angle": 0.5, "torsion.rate": 2.0, "torsion.torque": -(3.0 + 2.0 + 3.0),
        "torsion.deflection": 0.3, "torsion.power": -16.0, "torsion.energy": 0.5 * 10 * 0.3**2,
        "friction.torque": -9.0, "friction.power_loss": 18.0, "friction.power": -18.0,
        "stop.torque": -12.0, "stop.deflection": 0.1, "stop.power": -24.0, "stop.energy": 0.5,
        "motor.effort": 4.0, "motor.power": 8.0, "twist.power": 3.0,
    }  # fmt: skip
    initial = {"joint.angle": 0.5, "joint.speed": 2.0}
    seen = look(s, [*expected, "twist.applied_torque"], initial=initial)
    for name, value in expected.items():
        np.testing.assert_allclose(seen[name], value, rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(seen["twist.applied_torque"], [0, 0, 1.5])


@pytest.mark.parametrize("planar", [True, False])
def test_bushing_shows_force_on_its_second_body_in_world_axes(planar: bool) -> None:
    """Marker i is turned by 90° about z: x of the bushing is y of the world."""
    s = System("bush", planar=planar, gravity=(0, 0) if planar else (0, 0, 0))
    zero = () if planar else (0.0,)
    body = s.body("body", mass=1.0, inertia=1.0 if planar else (1, 1, 1), free=True,
                  position=(0.0, 0.1, *zero), velocity=(0.0, 2.0, *zero))  # fmt: skip
    turned = np.pi / 2 if planar else [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    wall = s.ground.marker("wall", (0.0, 0.0, *zero), rotation=turned)
    eye = body.marker("eye", (0.0, 0.0, *zero), rotation=turned)
    stiffness = (100.0, 7.0, 3.0) if planar else (100.0, 7.0, 7.0, 3.0, 3.0, 3.0)
    damping = (5.0, 0.0, 0.0) if planar else (5.0, 0, 0, 0, 0, 0)
    s.bushing("bushing", wall, eye, stiffness=stiffness, damping=damping)
    what = ["force", "torque", "deflection", "deflection_rate", "rotation", "power", "energy"]
    seen = {name: look(s, [f"bushing.{name}"])[f"bushing.{name}"] for name in what}
    np.testing.assert_allclose(seen["force"], [0.0, -20.0, 0.0], atol=1e-13)
    np.testing.assert_allclose(seen["deflection"], [0.1, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(seen["deflection_rate"], [2.0, 0.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(seen["rotation"], 0.0, atol=1e-15)
    np.testing.assert_allclose([seen["power"], seen["energy"]], [-40.0, 0.5])


def test_bushing_shows_the_rotation_vector() -> None:
    s = System("bush", gravity=(0, 0, 0))
    axis, angle = np.array([2.0, -1.0, 2.0]) / 3.0, 0.8
    quaternion = np.r_[np.cos(angle / 2), np.sin(angle / 2) * axis]
    body = s.body("body", mass=1.0, inertia=(1, 1, 1), free=True, rotation=quaternion,
                  angular_velocity=(0.1, 0.2, 0.3))  # fmt: skip
    s.bushing("bushing", s.ground.marker("w", (0, 0, 0)), body.marker("e", (0, 0, 0)),
              stiffness=(1, 1, 1, 1, 1, 1))  # fmt: skip
    seen = look(s, ["bushing.rotation", "bushing.rotation_rate"])
    np.testing.assert_allclose(seen["bushing.rotation"], angle * axis, rtol=1e-12)
    np.testing.assert_allclose(seen["bushing.rotation_rate"], [0.1, 0.2, 0.3], rtol=1e-12)


def test_load_cell_in_series_shows_the_weight_at_rest() -> None:
    """A mass hangs on a damped spring: at rest its tension is m g."""
    s = System("scale")
    mass = s.body("mass", mass=2.5, inertia=(1, 1, 1), position=(0, 0, -0.5))
    s.prismatic("guide", s.ground, mass, at=(0, 0, -0.5), axis=(0, 0, 1))
    s.spring("cell", s.ground.marker("hook", (0, 0, 0)), mass.marker("eye", (0, 0, 0)),
             stiffness=500.0, damping=60.0, free_length=0.5)  # fmt: skip
    seen = run(s, ["cell.force", "cell.deflection"], 3.0, 1e-3)
    assert seen["cell.force"][-1] == pytest.approx(2.5 * 9.80665, rel=1e-9)
    assert seen["cell.deflection"][-1] == pytest.approx(2.5 * 9.80665 / 500.0, rel=1e-9)
