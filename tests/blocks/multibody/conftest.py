"""Random mechanisms as data, and one look at what the engine makes of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from biella import Diagram
from biella.blocks.multibody import System
from biella.scheduler.engine._engine import Instance

Array = NDArray[np.float64]

KINDS = (
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
)
BODY = (
    "position",
    "rotation",
    "velocity",
    "angular_velocity",
    "acceleration",
    "angular_acceleration",
)
ONE_WAY = ("guide", "in_plane")
"""Joints that change if their ends are exchanged: a point of one body on a line of the other."""


@dataclass(frozen=True)
class BodyData:
    """A body in the world; the center of mass and the tensor are in its own axes."""

    name: str
    mass: float
    com: Array
    inertia: Array
    position: Array
    rotation: Array
    velocity: Array
    spin: Array


@dataclass(frozen=True)
class JointData:
    """A joint by the places and frames of its two markers in the world."""

    name: str
    kind: str
    first: str
    second: str
    places: tuple[Array, Array]
    frames: tuple[Array, Array]


@dataclass(frozen=True)
class LoadData:
    """A force at a place of a body and a torque on it; in world axes or in those of the body."""

    name: str
    body: str
    at: Array
    force: Array
    torque: Array
    frame: Literal["world", "body"]


@dataclass(frozen=True)
class SpringData:
    """A spring and damper between a place of a body and a place in the world."""

    name: str
    body: str
    at: Array
    anchor: Array
    stiffness: float
    damping: float
    free_length: float


@dataclass(frozen=True)
class Blueprint:
    """A mechanism in a pose, to be built in any order, anywhere and in any units."""

    gravity: Array
    bodies: tuple[BodyData, ...]
    joints: tuple[JointData, ...] = ()
    loads: tuple[LoadData, ...] = ()
    springs: tuple[SpringData, ...] = ()
    wanted: tuple[str, ...] = ()
    """Joints that get an effort on their first coordinate, which pulls them into the tree."""
    effort: float = 0.0
    motion: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Laws by joint that move its markers on their bodies, which keeps it out of the tree."""
    displaced: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    """By body, a shift and a turn of the pose that is given from the one in which joints close."""

    def build(self) -> System:
        """Make the system."""
        s = System("random", gravity=self.gravity)
        bodies = {"ground": s.ground}
        jointed = {name for joint in self.joints for name in (joint.first, joint.second)}
        poses = {"ground": (np.zeros(3), np.eye(3))}
        for body in self.bodies:
            poses[body.name] = body.position, body.rotation
            shift, turn = self.displaced.get(body.name, (np.zeros(3), np.eye(3)))
            bodies[body.name] = s.body(
                body.name,
                mass=body.mass,
                inertia=body.inertia,
                com=body.com,
                position=body.position + shift,
                rotation=turn @ body.rotation,
                velocity=body.velocity,
                angular_velocity=body.spin,
                free=body.name not in jointed,
            )
        for joint in self.joints:
            ends = [
                bodies[name].marker(
                    f"{joint.name}_{side}",
                    poses[name][1].T @ (place - poses[name][0]),
                    rotation=poses[name][1].T @ frame,
                    motion=self.motion.get(joint.name, {}),
                )
                for side, name, place, frame in zip(
                    "ij", (joint.first, joint.second), joint.places, joint.frames, strict=True
                )
            ]
            method = "planar_joint" if joint.kind == "planar" else joint.kind
            made = getattr(s, method)(joint.name, *ends)
            if joint.name in self.wanted:
                effort = s.force if made.coordinates[0].kind == "length" else s.torque
                choice: dict[str, Any] = {"coordinate": 0} if len(made.coordinates) > 1 else {}
                effort(f"{joint.name}_effort", made, self.effort, **choice)
        for load in self.loads:
            marker = bodies[load.body].marker(load.name, load.at)
            s.force(f"{load.name}_force", marker, load.force, frame=load.frame)
            s.torque(f"{load.name}_torque", marker, load.torque, frame=load.frame)
        for spring in self.springs:
            s.spring(
                spring.name,
                s.ground.marker(spring.name, spring.anchor),
                bodies[spring.body].marker(spring.name, spring.at),
                stiffness=spring.stiffness,
                damping=spring.damping,
                free_length=spring.free_length,
            )
        return s

    def started(self, seen: Mapping[str, Any]) -> Blueprint:
        """Return it with the velocities of a look at it, which its joints allow."""
        return replace(
            self,
            bodies=tuple(
                replace(
                    b,
                    velocity=seen[f"{b.name}.velocity"],
                    spin=seen[f"{b.name}.angular_velocity"],
                )
                for b in self.bodies
            ),
        )

    def reordered(self, rng: np.random.Generator) -> Blueprint:
        """Return the same mechanism with everything added in another order."""

        def shuffle(items: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(items[k] for k in rng.permutation(len(items)))

        return replace(
            self,
            bodies=shuffle(self.bodies),
            joints=shuffle(self.joints),
            loads=shuffle(self.loads),
            springs=shuffle(self.springs),
        )

    def moved(self, turn: Array, shift: Array) -> Blueprint:
        """Return the whole mechanism, gravity included, turned about the origin and shifted."""

        def place(p: Array) -> Array:
            return turn @ p + shift

        return replace(
            self,
            gravity=turn @ self.gravity,
            bodies=tuple(
                replace(
                    b,
                    position=place(b.position),
                    rotation=turn @ b.rotation,
                    velocity=turn @ b.velocity,
                    spin=turn @ b.spin,
                )
                for b in self.bodies
            ),
            joints=tuple(
                replace(
                    j,
                    places=(place(j.places[0]), place(j.places[1])),
                    frames=(turn @ j.frames[0], turn @ j.frames[1]),
                )
                for j in self.joints
            ),
            loads=tuple(
                replace(
                    load,
                    force=turn @ load.force if load.frame == "world" else load.force,
                    torque=turn @ load.torque if load.frame == "world" else load.torque,
                )
                for load in self.loads
            ),
            springs=tuple(replace(s, anchor=place(s.anchor)) for s in self.springs),
        )

    def scaled(self, length: float, mass: float) -> Blueprint:
        """Return it in other units of length and mass; times and angles stay."""
        return replace(
            self,
            gravity=length * self.gravity,
            bodies=tuple(
                replace(
                    b,
                    mass=mass * b.mass,
                    com=length * b.com,
                    inertia=mass * length**2 * b.inertia,
                    position=length * b.position,
                    velocity=length * b.velocity,
                )
                for b in self.bodies
            ),
            joints=tuple(
                replace(j, places=(length * j.places[0], length * j.places[1])) for j in self.joints
            ),
            loads=tuple(
                replace(
                    load,
                    at=length * load.at,
                    force=mass * length * load.force,
                    torque=mass * length**2 * load.torque,
                )
                for load in self.loads
            ),
            springs=tuple(
                replace(
                    s,
                    at=length * s.at,
                    anchor=length * s.anchor,
                    stiffness=mass * s.stiffness,
                    damping=mass * s.damping,
                    free_length=length * s.free_length,
                )
                for s in self.springs
            ),
        )


def draw_rotation(rng: np.random.Generator) -> Array:
    """Return a rotation, all alike likely."""
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q if np.linalg.det(q) > 0 else -q


def turn_z(angle: float) -> Array:
    """Return the rotation about z."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def draw_body(rng: np.random.Generator, name: str) -> BodyData:
    """Return a body of about 1 kg and 1 m, anywhere and in motion."""
    axes = draw_rotation(rng)
    # Moments of a cloud of points: always those of some body.
    squares = rng.uniform(0.02, 0.2, size=3)
    return BodyData(
        name,
        float(rng.uniform(0.5, 3.0)),
        rng.uniform(-0.3, 0.3, size=3),
        axes @ np.diag(squares.sum() - squares) @ axes.T,
        rng.uniform(-1.0, 1.0, size=3),
        draw_rotation(rng),
        rng.normal(size=3),
        rng.normal(size=3),
    )


def draw_joint(
    rng: np.random.Generator, name: str, kind: str, first: str, second: str
) -> JointData:
    """Return a joint somewhere in the world, its second marker where the joint lets it be."""
    place, frame = rng.uniform(-1.0, 1.0, size=3), draw_rotation(rng)
    turn, slide = turn_z(float(rng.uniform(-2.0, 2.0))), rng.uniform(-0.6, 0.6, size=3)
    other_place, other_frame = place, frame
    if kind in ("revolute", "cylindrical", "planar"):
        other_frame = frame @ turn
    elif kind in ("spherical", "guide", "in_plane", "distance"):
        other_frame = draw_rotation(rng)
    elif kind == "universal":
        # z of the second is at right angles to z of the first.
        quarter = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
        other_frame = frame @ turn @ quarter @ turn_z(float(rng.uniform(-2.0, 2.0)))
    if kind in ("prismatic", "cylindrical", "guide"):
        other_place = place + frame[:, 2] * slide[2]
    elif kind in ("planar", "in_plane"):
        other_place = place + frame[:, :2] @ slide[:2]
    elif kind == "distance":
        other_place = place + slide + 0.3 * np.sign(slide)
    return JointData(name, kind, first, second, (place, other_place), (frame, other_frame))


def draw_loads(
    rng: np.random.Generator, bodies: Sequence[str]
) -> tuple[tuple[LoadData, ...], tuple[SpringData, ...]]:
    """Return a load and a spring on every body."""
    loads = tuple(
        LoadData(
            f"load_{body}",
            body,
            rng.uniform(-0.5, 0.5, size=3),
            rng.normal(scale=5.0, size=3),
            rng.normal(scale=2.0, size=3),
            cast(Any, str(rng.choice(["world", "body"]))),
        )
        for body in bodies
    )
    springs = tuple(
        SpringData(
            f"spring_{body}",
            body,
            rng.uniform(-0.5, 0.5, size=3),
            rng.uniform(-3.0, 3.0, size=3),
            float(rng.uniform(1.0, 50.0)),
            float(rng.uniform(0.0, 5.0)),
            float(rng.uniform(0.1, 1.0)),
        )
        for body in bodies
    )
    return loads, springs


def draw_tree(rng: np.random.Generator, count: int) -> Blueprint:
    """Return a tree of `count` bodies with joints of any kind but distances, loaded."""
    names = [f"b{k}" for k in range(count)]
    joints = []
    for k, name in enumerate(names):
        parent = "ground" if k == 0 else str(rng.choice(["ground", *names[:k]]))
        ends = (parent, name) if rng.random() < 0.5 else (name, parent)
        # Something has to move: the first joint is not a fixed one.
        kind = str(rng.choice(KINDS[0 if k else 1 : -1]))
        joints.append(draw_joint(rng, f"j{k}", kind, *ends))
    bodies = tuple(draw_body(rng, name) for name in names)
    return Blueprint(rng.normal(scale=6.0, size=3), bodies, tuple(joints), *draw_loads(rng, names))


def draw_loop(rng: np.random.Generator) -> Blueprint:
    """Return a tree with loops that leave it at least one degree of freedom.

    A chain of spherical joints, which has freedom to spare, is tied to the ground and to itself by
    joints of any kind.
    """
    names = [f"b{k}" for k in range(int(rng.integers(3, 6)))]
    joints = [
        draw_joint(rng, f"j{k}", "spherical", "ground" if k == 0 else names[k - 1], name)
        for k, name in enumerate(names)
    ]
    free = 3 * len(names)
    rows = {"fixed": 6, "revolute": 5, "prismatic": 5, "cylindrical": 4, "spherical": 3}
    rows |= {"universal": 4, "planar": 3, "guide": 2, "in_plane": 1, "distance": 1}
    for k in range(3):
        kind = str(rng.choice(KINDS))
        if free - rows[kind] < 1:
            continue
        free -= rows[kind]
        first, second = rng.choice(["ground", *names], size=2, replace=False).tolist()
        joints.append(draw_joint(rng, f"c{k}", kind, first, second))
    bodies = tuple(draw_body(rng, name) for name in names)
    return Blueprint(rng.normal(scale=6.0, size=3), bodies, tuple(joints), *draw_loads(rng, names))


def draw_ring(rng: np.random.Generator) -> Blueprint:
    """Return a plane four-bar in a plane of its own, with revolutes: three rows are redundant."""
    corners = [np.zeros(3), np.array([0.2, 1.0, 0.0]), np.array([1.4, 1.3, 0.0])]
    corners.append(np.array([1.6, 0.1, 0.0]))
    tilt = draw_rotation(rng)
    names = ["b0", "b1", "b2"]
    ends = [("ground", "b0"), ("b0", "b1"), ("b2", "b1"), ("ground", "b2")]
    joints = []
    for k, (corner, (first, second)) in enumerate(zip(corners, ends, strict=True)):
        place = tilt @ (corner + np.append(rng.uniform(-0.05, 0.05, size=2), 0.0))
        one, two = (tilt @ turn_z(float(rng.uniform(-2.0, 2.0))) for _ in range(2))
        joints.append(JointData(f"j{k}", "revolute", first, second, (place, place), (one, two)))
    bodies = tuple(draw_body(rng, name) for name in names)
    return Blueprint(rng.normal(scale=6.0, size=3), bodies, tuple(joints), *draw_loads(rng, names))


DRAWINGS: dict[str, Callable[[np.random.Generator], Blueprint]] = {
    "tree": lambda rng: draw_tree(rng, int(rng.integers(1, 6))),
    "loops": draw_loop,
    "redundant": draw_ring,
}


@pytest.fixture(scope="session")
def draw() -> Callable[[str, int], Blueprint]:
    """Return a function that draws a mechanism: a tree, one with loops or a redundant one."""
    return lambda what, seed: DRAWINGS[what](np.random.default_rng(seed))


@pytest.fixture(scope="session")
def draw_closed() -> Callable[[str, bool, int, int], Blueprint]:
    """Return a function that puts a joint of one kind into a loop, and chooses what is cut.

    Body ``a`` hangs on ``base``, which turns about a point of the ground, by the joint ``k``, and
    also by a slide and a plane with ``b`` between them, which together take no freedom away. Cut: 0
    is ``k``, 1 the plane, 2 the slide, which takes a ``k`` that has a coordinate. Swapped, ``k``
    runs from ``a`` to ``base``: the same mechanism, but for `ONE_WAY` joints.
    """

    def make(kind: str, swapped: bool, cut: int, seed: int) -> Blueprint:
        rng = np.random.default_rng(seed)
        names = ("base", "a", "b")
        bodies = tuple(draw_body(rng, name) for name in names)
        foot = draw_joint(rng, "foot", "spherical", "ground", "base")
        k = draw_joint(rng, "k", kind, "base", "a")
        if swapped:
            k = replace(k, first="a", second="base")
            if kind not in ONE_WAY:
                k = replace(k, places=k.places[::-1], frames=k.frames[::-1])
        slide = draw_joint(rng, "slide", "prismatic", "base", "b")
        plane = draw_joint(rng, "plane", "in_plane", "b", "a")
        wanted = (("slide", "plane"), (), ("plane", "k"))[cut]
        loads, springs = draw_loads(rng, names)
        gravity = rng.normal(scale=6.0, size=3)
        return Blueprint(gravity, bodies, (foot, k, slide, plane), loads, springs, wanted)

    return make


@pytest.fixture(scope="session")
def look() -> Callable[..., dict[str, Any]]:
    """Return a function that shows outputs of a mechanism after some steps of the engine."""

    def look(
        system: System, extra: Sequence[str] = (), *, steps: int = 0, step: float = 1e-3
    ) -> dict[str, Any]:
        paths = [f"{body.name}.{what}" for body in system.bodies for what in BODY] + [*extra]
        diagram = Diagram("look", step=step)
        diagram.add(system.block(outputs=paths), name="plant")
        with Instance(diagram.compile()) as instance:
            instance.initialize()  # and no word of velocities drawn at random
            if steps:
                instance.run(steps)
            return {path: np.array(instance.get(f"plant.{path}")) for path in paths}

    return look


RUN_FMU = """
import json, sys
from fmpy import simulate_fmu
path, values = sys.argv[1], json.loads(sys.argv[2])
told = []
def log(component, name, status, category, message):
    told.append((status, message.decode()))
try:
    simulate_fmu(path, stop_time=2.0, output_interval=0.01, logger=log, start_values=values)
except Exception:
    told.append((99, "stopped"))
print(json.dumps(told))
"""


@pytest.fixture
def run_fmu() -> Callable[..., list[tuple[int, str]]]:
    """Run an FMU in FMPy and return its log messages, each with its status; 99 if it failed.

    In a process of its own: FMPy has one logger per process, and calls it when it is gone, too.
    """

    def run(path: Path, **values: float) -> list[tuple[int, str]]:
        command = [sys.executable, "-c", RUN_FMU, str(path), json.dumps(values)]
        printed = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=300
        ).stdout
        return [(status, text) for status, text in json.loads(printed.splitlines()[-1])]

    return run
