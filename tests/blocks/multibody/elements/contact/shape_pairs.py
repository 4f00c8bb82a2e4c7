"""Two shapes, one on the ground and one on a free body, looked at in any pose."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from biella import Diagram
from biella.blocks.multibody import (
    Bore,
    CamProfile,
    Capsule,
    Cylinder,
    HoleProfile,
    HuntCrossley,
    Plane,
    Socket,
    Sphere,
    System,
)
from biella.scheduler.engine._engine import Instance

LAW = HuntCrossley(stiffness=1e6, exponent=1.5)
ANGLES = 2 * np.pi / 72 * np.arange(72)
EGG = 0.05 + 0.004 * np.cos(2 * ANGLES) + 0.002 * np.sin(3 * ANGLES)

# Of each pair: the moving shape, the fixed one, and how far it moves about where they just touch.
PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sphere-plane": (lambda m: Sphere(m, 0.05), Plane),
    "capsule-plane": (lambda m: Capsule(m, 0.03, 0.1), Plane),
    "cylinder-plane": (lambda m: Cylinder(m, 0.04, 0.1), Plane),
    "plane-sphere": (Plane, lambda m: Sphere(m, 0.05)),
    "sphere-sphere": (lambda m: Sphere(m, 0.05), lambda m: Sphere(m, 0.08)),
    "sphere-capsule": (lambda m: Sphere(m, 0.05), lambda m: Capsule(m, 0.04, 0.1)),
    "sphere-cylinder": (lambda m: Sphere(m, 0.05), lambda m: Cylinder(m, 0.06, 0.1)),
    "capsule-capsule": (lambda m: Capsule(m, 0.03, 0.1), lambda m: Capsule(m, 0.04, 0.2)),
    "sphere-socket": (lambda m: Sphere(m, 0.049), lambda m: Socket(m, 0.05)),
    "sphere-bore": (lambda m: Sphere(m, 0.049), lambda m: Bore(m, 0.05, 0.1)),
    "short pin": (lambda m: Cylinder(m, 0.049, 0.08), lambda m: Bore(m, 0.05, 0.1)),
    "long pin": (lambda m: Cylinder(m, 0.049, 0.2), lambda m: Bore(m, 0.05, 0.1)),
    "round pin in hole": (lambda m: Sphere(m, 0.04), lambda m: HoleProfile(m, EGG)),
    "roller on cam": (lambda m: Sphere(m, 0.02), lambda m: CamProfile(m, EGG)),
    "cam on face": (lambda m: CamProfile(m, EGG), Plane),
}


def system_of(pair: str, law: Any = LAW, **body: Any) -> System:
    """The moving shape on a free body, the other on the ground."""
    moving, fixed = PAIRS[pair]
    s = System(pair, gravity=(0, 0, 0))
    options: dict[str, Any] = {"mass": 2.0, "inertia": (0.002, 0.003, 0.004), "free": True}
    part = s.body("body", **(options | body))
    s.contact("touch", moving(part.marker("shape")), fixed(s.ground.marker("shape")), law=law)
    return s


class Viewer:
    """Outputs of a mechanism of one free body, in any state."""

    def __init__(self, instance: Instance, names: list[str]) -> None:
        self.instance, self.names = instance, names

    def see(self, position: Any, turn: Rotation | None = None, velocity: Any = (0, 0, 0),
            spin: Any = (0, 0, 0)) -> dict[str, Any]:  # fmt: skip
        """Return the outputs; the angular velocity is in axes of the body."""
        quaternion = (turn or Rotation.identity()).as_quat(scalar_first=True)
        self.instance.states[:] = np.concatenate([position, quaternion, velocity, spin])
        self.instance.touch()
        self.instance.evaluate()
        return {
            name.partition(".")[2]: np.array(self.instance.get(f"plant.{name}"))
            for name in self.names
        }


@contextmanager
def viewer(s: System):
    names = [n for n in s.outputs() if n.startswith("touch.")]
    d = Diagram("d", step=1e-9)  # shapes may begin deep in each other
    d.add(s.block(outputs=names), name="plant")
    with Instance(d.compile()) as instance:
        instance.initialize()
        yield Viewer(instance, names)
