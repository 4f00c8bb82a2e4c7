"""Random trees of joints, and what a plant and a block make of them at one state."""

from __future__ import annotations

from typing import Any

import numpy as np

from biella import Diagram, System, simulate
from biella.blocks import Constant
from biella.blocks.multibody import Input

STATE = ("position", "speed", "acceleration")


def random_frame(rng):
    """Arguments of a marker: a place and an axis."""
    return rng.normal(size=3), {"axis": rng.normal(size=3)}


def branched(seed=0, *, loads=False):
    """A tree of four bodies in space with two branches, joints of every kind, one reversed."""
    rng = np.random.default_rng(seed)
    s = System("branched", gravity=(0.5, -1.0, -9.0))

    def body(name):
        second = rng.normal(size=(3, 3))
        second = second @ second.T  # of a distribution of mass: its inertia is that of a body
        return s.body(
            name,
            mass=rng.uniform(0.5, 2.0),
            inertia=np.trace(second) * np.eye(3) - second,
            com=rng.normal(size=3),
        )

    def end(of, name):
        place, how = random_frame(rng)
        return of.marker(name, place, **how)

    trunk, left, right, hand = body("trunk"), body("left"), body("right"), body("hand")
    grip = end(s.ground, "a")
    turn = s.revolute("turn", grip, end(trunk, "b"))
    slide = s.prismatic("slide", end(left, "c"), end(trunk, "d"))  # runs inwards
    screw = s.cylindrical("screw", end(trunk, "e"), end(right, "f"))
    h_i, other = rng.normal(size=3), rng.normal(size=3)
    h_j = np.cross(h_i, other)
    s.universal(
        "wrist",
        right.marker("g", rng.normal(size=3), axis=h_i),
        hand.marker("h", rng.normal(size=3), axis=h_j),
    )
    tip = hand.marker("tip", rng.normal(size=3))
    left.marker("tip", rng.normal(size=3))
    if loads:
        s.torsional_spring("coil", turn, stiffness=3.0, damping=0.4, free_angle=0.2)
        s.friction("rub", slide, coulomb=0.7, smoothing_speed=0.5)
        s.spring("cord", grip, tip, stiffness=5.0, free_length=0.3, damping=0.2)
        s.force("drift", screw, 0.3, coordinate=0)
    return s


def evaluate(block, step=1e-3, **inputs):
    """The outputs of a block for constant inputs, by name."""
    d = Diagram("one state", step=step)
    wires: dict[str, Any] = {
        name: d.add(Constant(value), f"value {k}") for k, (name, value) in enumerate(inputs.items())
    }
    d.add(block, "block", **wires)
    result = simulate(d, step)
    return {port.name: result[f"block.{port.name}"][0] for port in block.outputs}


def plant_accelerations(system, coordinates, position, speed, effort, outputs=()):
    """Accelerations of a plant with these efforts on its coordinates, and other outputs."""
    initial: dict[str, float] = {}
    paths = []
    for k, path in enumerate(coordinates):
        joint = system[path.partition(".")[0]]
        single = len(joint.coordinates) == 1
        number = [c for c in coordinates if c.startswith(f"{joint.name}.")].index(path)
        add = system.force if joint.coordinates[number].kind == "length" else system.torque
        add(f"effort {k}", joint, effort[k], coordinate=number)
        rate = f"{joint.name}.speed" if single else f"{path}_speed"
        initial |= {path: position[k], rate: speed[k]}
        paths.append(rate.replace("speed", "acceleration"))
    d = Diagram("plant", step=1e-6)
    d.add(system.block(outputs=[*paths, *outputs], initial=initial), "plant")
    result = simulate(d, 1e-6)
    return np.array([result[f"plant.{p}"][0] for p in paths]), [
        result[f"plant.{name}"][0] for name in outputs
    ]


def planar_arm(*, motor=False):
    """Two equal uniform rods of 1 m and 1 kg in a vertical plane, from a pin at the origin."""
    s = System("arm", planar=True)
    upper = s.body("upper", mass=1.0, inertia=1.0 / 12.0, com=(0.5, 0.0))
    fore = s.body("fore", mass=1.0, inertia=1.0 / 12.0, com=(0.5, 0.0), position=(1.0, 0.0))
    shoulder = s.revolute("shoulder", s.ground.marker("pin"), upper.marker("pin"))
    s.revolute("elbow", upper.marker("elbow", (1.0, 0.0)), fore.marker("elbow"))
    fore.marker("tip", (1.0, 0.0))
    if motor:
        s.torque("motor", shoulder, Input())
    return s
