"""Parameters of elements set after compile: the kernel accepts what the constructors accept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from biella import BlockError, Diagram, run_realtime
from biella.blocks import ShortBearing
from biella.blocks.bearings import Contact
from biella.blocks.multibody import (
    Bore,
    HuntCrossley,
    LankaraniNikravesh,
    RigidContact,
    Sphere,
    System,
    Wear,
)
from biella.errors import DiagramError
from biella.scheduler.engine._engine import Instance

from .test_outputs import CASES, options_of

pytestmark = pytest.mark.engine


def open_instance(system: System) -> Instance:
    diagram = Diagram("d")
    diagram.add(system.block(**options_of(system)), name="plant")
    return Instance(diagram.compile(step=1e-6))


def write(instance: Instance, path: str, value: float) -> None:
    """Write a value as a host in C does: nothing checks it before the kernel."""
    where, _ = instance.plan.find_settable(path)
    instance.values[where] = value
    instance.touch()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("case", CASES)
def test_no_parameter_of_an_element_may_be_infinite_or_nan(case: str, value: float) -> None:
    """Every parameter of every element, driver and moved marker; only limits may be infinite."""
    system = CASES[case]()
    owners = {*system.parts, "gravity"} - {body.name for body in system.bodies}
    forces = {part.name for part in (*system.elements, *system.couplings)}
    with open_instance(system) as instance:
        paths = [
            path
            for path in instance.plan.parameters
            if path.split(".")[1] in owners and path.split(".")[-1] not in ("location",)
        ]
        assert paths
        for path in paths:
            _, owner, *rest = path.split(".")
            where, _ = instance.plan.find_settable(path)
            before = instance.values[where].copy()
            write(instance, path, value)
            if rest == ["upper"] and value == np.inf:
                instance.initialize()
            else:
                with pytest.raises(BlockError, match=f"`{owner}.* is {value:g}: it must be") as e:
                    instance.initialize()
                if owner in forces:
                    assert f"`{'.'.join(rest)}` of `{owner}`" in str(e.value)
            instance.values[where] = before
            instance.touch()
            instance.initialize()


# -- the same rules as at construction


def plane() -> tuple[System, Any, Any]:
    s = System("plane", planar=True)
    body = s.body("body", mass=1.0, inertia=0.1, position=(0.3, 0.0))
    return s, s.revolute("pin", s.ground, body, at=(0.0, 0.0)), body


def two_turns() -> tuple[System, Any, Any]:
    s, pin, _ = plane()
    other = s.body("other", mass=1.0, inertia=0.1, position=(0.9, 0.0))
    return s, pin, s.revolute("second", s.ground, other, at=(0.6, 0.0))


def pin_in_hole(**numbers: Any) -> System:
    s = System("journal", planar=True)
    rotor = s.body("rotor", mass=1.0, inertia=0.01, free=True)
    s.clearance_revolute(
        "part", rotor.marker("p", (0, 0)), s.ground.marker("h", (0, 0)), **numbers
    )  # fmt: skip
    return s


def stop(**numbers: Any) -> System:
    s, pin, _ = plane()
    s.stop("part", pin, **numbers)
    return s


def friction(**numbers: Any) -> System:
    s, pin, _ = plane()
    s.friction("part", pin, **numbers)
    return s


def joint_friction(**numbers: Any) -> System:
    s = System("space")
    body = s.body("body", mass=1.0, inertia=0.1)
    slide = s.cylindrical("slide", s.ground, body, at=(0, 0, 0), axis=(0, 0, 1))
    s.friction("part", slide, **numbers)
    return s


def ball(**numbers: Any) -> System:
    s = System("space")
    body = s.body("body", mass=1.0, inertia=0.1)
    s.friction("part", s.spherical("ball", s.ground, body, at=(0, 0, 0)), **numbers)
    return s


def pivot(**numbers: Any) -> System:
    s = System("space")
    body = s.body("body", mass=1.0, inertia=0.1)
    axes = [(1, 0, 0), (0, 1, 0)]
    s.friction(
        "part", s.universal("u", s.ground, body, at=(0, 0, 0), axis=axes), coordinate=1, **numbers
    )
    return s


def guide_friction(**numbers: Any) -> System:
    s = System("plane", planar=True)
    body = s.body("body", mass=1.0, inertia=0.1)
    slide = s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    s.friction("part", slide, **numbers)
    return s


def torsional_spring(**numbers: Any) -> System:
    s, pin, _ = plane()
    s.torsional_spring("part", pin, **numbers)
    return s


def spring(**numbers: Any) -> System:
    s, _, body = plane()
    s.spring("part", s.ground.marker("a", (1, 1)), body.marker("b", (0.3, 0)), **numbers)
    return s


def bushing(**numbers: Any) -> System:
    s, _, body = plane()
    values: dict[str, list[float]] = {"stiffness": [1.0, 1.0, 1.0], "damping": [1.0, 1.0, 1.0]}
    for name, number in numbers.items():
        kind, axis = name.split(".")
        values[kind][["x", "y", "rz"].index(axis)] = number
    s.bushing("part", s.ground.marker("a", (1, 1)), body.marker("b", (0.3, 0)), **values)
    return s


def gear(**numbers: Any) -> System:
    s, first, second = two_turns()
    s.coupling("part", first, second, **numbers)
    return s


def torque(**numbers: Any) -> System:
    s, pin, _ = plane()
    s.torque("part", pin, numbers["torque"])
    return s


def force(**numbers: Any) -> System:
    s, _, body = plane()
    s.force("part", body.marker("b", (0.3, 0)), (numbers["force.x"], numbers["force.y"]))
    return s


def bearing(**numbers: Any) -> System:
    s = System("journal", planar=True)
    rotor = s.body("rotor", mass=1.0, inertia=0.01, free=True)
    limit = numbers.pop("film_limit")
    contact: dict[str, Any] = {
        name.removeprefix("contact_"): numbers.pop(name)
        for name in list(numbers)
        if name.startswith("contact_") or name == "slip_speed"
    }
    film = ShortBearing(**numbers, film_limit=limit, contact=Contact(**contact))
    s.bearing("part", rotor.marker("p", (0, 0)), s.ground.marker("h", (0, 0)), film)
    return s


def contact_of(law: type, **numbers: Any) -> System:
    play = {name: numbers.pop(name) for name in ("clearance", "pin_radius")}
    return pin_in_hole(contact=law(**numbers), **play)


def worn(**numbers: Any) -> System:
    wear = Wear(coefficient=numbers["wear_coefficient"], hardness=numbers["hardness"],
                length=numbers["length"])  # fmt: skip
    return pin_in_hole(clearance=1e-4, pin_radius=0.01, contact=HuntCrossley(stiffness=1e8),
                       wear=wear)  # fmt: skip


def worn_shape(**numbers: Any) -> System:
    s = System("ball", (0, 0, 0))
    ball = s.body("ball", mass=1.0, inertia=(1, 1, 1), free=True)
    wear = Wear(
        coefficient=numbers["wear_coefficient"],
        pin_coefficient=numbers["pin_wear_coefficient"],
        **{name: numbers[name] for name in ("hardness", "length", "pin_hardness")},
    )
    s.contact("part", Sphere(ball.marker("m"), 0.01), Bore(s.ground.marker("m"), 0.011, 0.1),
              law=HuntCrossley(stiffness=1e8), wear=wear)  # fmt: skip
    return s


PLAY = {"clearance": 1e-4, "pin_radius": 0.01}
SOFT = {"stiffness": 1e8, "exponent": 1.5, "friction": 0.1, "slip_speed": 0.01}
KINDS: dict[str, tuple[Callable[..., System], dict[str, float]]] = {
    "stop": (stop, {"lower": -0.5, "upper": 0.5, "stiffness": 10.0, "damping": 1.0}),
    "friction": (friction, {"viscous": 0.1, "coulomb": 0.1}),
    "joint_friction": (
        joint_friction,
        {"coefficient": 0.1, "diameter": 0.1, "length": 0.1, "smoothing_speed": 0.01},
    ),
    "ball_friction": (ball, {"coefficient": 0.1, "diameter": 0.1, "smoothing_speed": 0.01}),
    "ball_given": (ball, {"viscous": 0.1, "coulomb": 0.1, "smoothing_speed": 0.01}),
    "pivot_friction": (pivot, {"coefficient": 0.1, "diameter": 0.1, "length": 0.1}),
    "pivot_stiction": (
        pivot,
        {"coefficient": 0.1, "static": 0.2, "diameter": 0.1, "length": 0.1},
    ),
    "guide_friction": (guide_friction, {"coefficient": 0.1, "length": 0.1}),
    "joint_stiction": (guide_friction, {"coefficient": 0.1, "static": 0.2, "length": 0.1}),
    "torsional_spring": (
        torsional_spring,
        {"stiffness": 1.0, "damping": 1.0, "free_angle": 0.1, "torque": 1.0},
    ),
    "spring": (spring, {"stiffness": 1.0, "damping": 1.0, "free_length": 0.1, "force": 1.0}),
    "bushing": (bushing, {"stiffness.x": 1.0, "stiffness.rz": 1.0, "damping.y": 1.0}),
    "coupling": (gear, {"ratio": 0.4, "offset": 0.1}),
    "torque": (torque, {"torque": 0.1}),
    "force": (force, {"force.x": 0.1, "force.y": 0.2}),
    "bearing": (
        bearing,
        {
            "radius": 2.0,
            "length": 0.6,
            "clearance": 1e-2,
            "viscosity": 1e-3,
            "film_limit": 1e-4,
            "contact_stiffness": 1e3,
            "contact_damping": 0.1,
            "contact_friction": 0.1,
            "slip_speed": 0.01,
        },
    ),
    "hunt_crossley": (
        lambda **numbers: contact_of(HuntCrossley, **numbers),
        {**PLAY, **SOFT, "damping": 0.1},
    ),
    "lankarani_nikravesh": (
        lambda **numbers: contact_of(LankaraniNikravesh, **numbers),
        {**PLAY, **SOFT, "restitution": 0.5, "slowest_impact": 0.01},
    ),
    "rigid": (
        lambda **numbers: contact_of(RigidContact, **numbers),
        {**PLAY, "friction": 0.1, "restitution": 0.5, "tangential_restitution": 0.0},
    ),
    "wear": (worn, {"wear_coefficient": 1e-6, "hardness": 1e9, "length": 0.01}),
    "worn shape": (
        worn_shape,
        {
            "wear_coefficient": 1e-6,
            "hardness": 1e9,
            "length": 0.01,
            "pin_wear_coefficient": 1e-6,
            "pin_hardness": 1e9,
        },
    ),
}
ONLY_AT_CONSTRUCTION = {("bearing", "clearance"), ("bearing", "radius")}
"""Larger than a film can be: the constructor asks whether the units are right, the law is not."""


@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_accepts_what_the_constructor_accepts(kind: str) -> None:
    make, good = KINDS[kind]
    compared = 0
    system = make(**good)
    with open_instance(system) as instance:
        settable = {path for path in instance.plan.parameters if path.startswith("plant.part.")}
        assert {f"plant.part.{name}" for name in good} <= settable
        for name in good:
            for value in (-2.0, -0.9, 0.0, 0.6, 0.9, 1.5, np.inf, np.nan):
                if (kind, name) in ONLY_AT_CONSTRUCTION and value > 0.0:
                    continue
                try:
                    make(**{**good, name: value})
                    allowed = True
                except DiagramError:
                    allowed = False
                instance.reset()
                write(instance, f"plant.part.{name}", value)
                if allowed:
                    instance.initialize()
                    continue
                compared += 1
                # A pair of limits names the lower one, whichever was set.
                text = rf"parameter `(lower|coefficient|{name})` of `part` is .*: it must be "
                if name == "clearance":  # or the limit that is then above it
                    text = r"parameter `(clearance|film_limit)` of `part` is .*: it must be "
                with pytest.raises(BlockError, match=text):
                    instance.initialize()
    assert compared >= 2, "no value was refused"


# -- during a run


def test_a_parameter_that_is_set_during_a_run_is_refused_at_the_next_tick() -> None:
    with open_instance(stop(lower=-0.5, upper=0.5, stiffness=10.0, damping=1.0)) as instance:
        instance.initialize()
        instance.run(5)
        instance.set("plant.part.damping", -1.0)
        text = r"t = 5e-06 s.*parameter `damping` of `part` is -1: it must be finite and not neg"
        with pytest.raises(BlockError, match=text):
            instance.run(5)
        instance.set("plant.part.damping", 2.0)
        instance.run(5)
        assert instance.tick == 10


def test_two_limits_may_move_in_any_order_between_two_ticks() -> None:
    with open_instance(stop(lower=-0.5, upper=0.5, stiffness=10.0)) as instance:
        instance.initialize()
        instance.run(1)
        instance.set("plant.part.lower", 1.0)
        instance.set("plant.part.upper", 2.0)
        instance.run(1)
        instance.set("plant.part.lower", 3.0)
        with pytest.raises(
            BlockError, match=r"`lower` of `part` is 3: .* below `upper`, which is 2"
        ):
            instance.run(1)


def test_a_limit_may_be_infinite_and_never_nan() -> None:
    with open_instance(stop(upper=0.5, stiffness=10.0)) as instance:
        instance.set("plant.part.lower", -1.0)
        instance.initialize()
        instance.values[instance.plan.find_settable("plant.part.lower")[0]] = -np.inf
        with pytest.raises(Exception, match=r"`plant.part.lower` must be a number, got nan"):
            instance.set("plant.part.lower", np.nan)


def test_in_real_time_it_ends_the_run_and_names_the_element() -> None:
    d = Diagram("rig", step=1e-3)
    d.add(stop(lower=-0.5, upper=0.5, stiffness=10.0).block(outputs=["pin.angle"]), name="plant")
    text = "parameter `stiffness` of `part` is -4: it must be finite and not negative"
    with pytest.raises(BlockError, match=text), run_realtime(d) as run:
        run.latest("plant.pin.angle")  # it runs
        run["plant.part.stiffness"] = -4.0
        run.wait()


def test_an_fmu_logs_it(tmp_path, run_fmu) -> None:
    d = Diagram("fmu", step=1e-3)
    d.add(stop(lower=-0.5, upper=0.5, stiffness=10.0).block(outputs=["pin.angle"]), name="plant")
    path = d.export_fmu(tmp_path / "stop.fmu", outputs=["plant.pin.angle"])
    assert [text for status, text in run_fmu(path) if status == 3] == []
    errors = [
        text for status, text in run_fmu(path, **{"plant.part.stiffness": -4.0}) if status == 3
    ]
    assert (
        "plant: parameter `stiffness` of `part` is -4: it must be finite and not neg" in errors[0]
    )
