"""The works of `multibody.py` in biella, as `System.block` in its internal solver, one a tick."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from biella import Diagram, simulate
from biella.blocks.multibody import Body, System
from biella.blocks.multibody.mechanisms import four_bar, mcpherson, slider_crank
from mechanisms.measure import Meter, final_points
from mechanisms.plants import STEP, ZERO, Array, Plant, place, plant, rotation_of, tree_robot

PLANE = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""Takes the plane x-y of our planar slider-crank to the plane x-z of the others."""

_KINDS = ("position", "rotation", "velocity", "angular_velocity")


def build_system(work: str, spatial: bool) -> System:
    """Make the mechanism of a work, from the ready ones where there is one.

    The pose of the ready slider-crank is that printed, open by 1e-8 m: it is assembled first, and
    so starts some 1e-9 m from where the others do.
    """
    if work == "slider_crank":
        return slider_crank(pins="revolute", planar=not spatial, drive="as listed")
    if work.startswith("four_bars_"):
        return four_bar(int(work.removeprefix("four_bars_")), planar=not spatial)
    return _from_plant(work, plant(work), spatial)


def _from_plant(work: str, made: Plant, spatial: bool) -> System:
    """Make a mechanism of revolutes, or a free body, from its data; its plane is x-y."""

    def vector(values: Any) -> Any:
        return values if spatial else values[:2]

    def about_z(values: Any) -> Any:
        return values if spatial else values[2]

    s = System(work, vector(made.gravity), planar=not spatial)
    bodies = [
        s.body(
            body.name,
            mass=body.mass,
            inertia=about_z(body.inertia),
            position=vector(body.position),
            velocity=vector(body.velocity),
            angular_velocity=about_z(body.angular_velocity),
            free=not made.joints,
        )
        for body in made.bodies
    ]
    for number, joint in enumerate(made.joints):
        first, second = (s.ground if n < 0 else bodies[n] for n in (joint.first, joint.second))
        base = ZERO if joint.first < 0 else made.bodies[joint.first].position
        at = np.add(base, joint.at_first)
        axis = joint.axis if spatial else None
        s.revolute(f"pin{number}", first, second, at=vector(at), axis=axis)
    return s


def build_ring(n: int) -> System:
    """Make a ring of n rods of 1 m and 1 kg in the plane, at rest and pinned in one corner."""
    s = System(f"ring of {n}", (0.0, -9.81), planar=True)
    turns = 2 * np.pi * np.arange(n + 1) / n
    corners = np.column_stack([np.sin(turns), np.cos(turns)]) / (2 * np.sin(np.pi / n))
    corners[-1] = corners[0]
    rods = [
        s.body(f"rod{i}", mass=1.0, inertia=1 / 12, position=(corners[i] + corners[i + 1]) / 2)
        for i in range(n)
    ]
    s.revolute("pin", s.ground, rods[0], at=corners[0])
    for i in range(n):
        s.revolute(f"joint{i}", rods[i - 1], rods[i], at=corners[i])
    return s


def _build(system: System, outputs: list[str], step: float = STEP) -> Diagram:
    d = Diagram(system.name, step=step)
    d.add(system.block(outputs=outputs, mode="internal"), name="plant")
    return d


def start_system(system: System, outputs: list[str], step: float = STEP) -> Any:
    """Compile a mechanism in its internal solver and start it."""
    return _build(system, outputs, step).compile().instantiate()


class Ours:
    """One mechanism, compiled; every run starts from the beginning."""

    def __init__(self, work: str, spatial: bool) -> None:
        self.made: Plant = plant(work)
        self.system = build_system(work, spatial)
        self._turn = PLANE if work == "slider_crank" and not spatial else np.eye(3)
        # Frames of the plants are parallel to the world at the start, ours need not be.
        rotations = {body.name: np.array(body.rotation) for body in self.system.bodies}
        self._start = [rotations[body.name] for body in self.made.bodies]
        shown = sorted({number for number, _ in self.made.points.values()})
        self._shown = [self.made.bodies[number].name for number in shown]
        paths = [f"{name}.{what}" for name in self._shown for what in ("position", "rotation")]
        self._timed = start_system(self.system, paths)

    def run(self, seconds: float) -> tuple[float, dict[str, Any]]:
        """Run once; give the time the steps took and the final places of the named points."""
        self._timed.reset()
        start = time.perf_counter()
        self._timed.run(round(seconds / STEP))
        elapsed = time.perf_counter() - start
        count = len(self.made.bodies)
        p, R = np.zeros((count, 3)), np.zeros((count, 3, 3))
        for number, body in enumerate(self.made.bodies):
            if body.name in self._shown:
                center = self._timed.get(f"plant.{body.name}.position")
                p[number] = self._turn @ center
                R[number] = self._rotate(self._timed.get(f"plant.{body.name}.rotation"), number)
        return elapsed, {"points": final_points(self.made, p, R)}

    def check(self, seconds: float) -> dict[str, Any]:
        """Run once more, looking at all bodies after every step."""
        names = [body.name for body in self.made.bodies]
        paths = {kind: [f"{name}.{kind}" for name in names] for kind in _KINDS}
        shown = [path for kind in _KINDS for path in paths[kind]]
        d = _build(self.system, shown)
        result = simulate(d, until=seconds, record=[f"plant.{path}" for path in shown])
        tracks = {
            kind: np.stack([result[f"plant.{path}"] for path in paths[kind]], axis=1)
            for kind in _KINDS
        }
        meter = Meter(self.made)
        turn = self._turn.T
        for centers, quaternions, v, w in zip(*(tracks[kind] for kind in _KINDS), strict=True):
            p = centers @ turn
            R = np.array([self._rotate(q, number) for number, q in enumerate(quaternions)])
            meter.see(p, R, v @ turn, w @ turn)
        return meter.answer(p, R)

    def _rotate(self, quaternion: Array, number: int) -> Array:
        """Give the rotation of a body since the start, in the plane of the others."""
        turned = rotation_of(quaternion) @ self._start[number].T
        return self._turn @ turned @ self._turn.T


def build_tree(seed: int) -> System:
    """Make the tree robot of a seed, placed and moving as its joints say."""
    s = System(f"tree robot {seed}", (0.0, 0.0, -9.80665))
    links = tree_robot(seed)
    bodies: list[Body] = []
    for link, placed in zip(links, place(links), strict=True):
        body = s.body(
            link.name,
            mass=link.mass,
            inertia=link.inertia,
            com=link.com,
            position=placed.position,
            rotation=placed.rotation,
            velocity=placed.velocity,
            angular_velocity=placed.angular_velocity,
        )
        base = s.ground if link.parent < 0 else bodies[link.parent]
        bodies.append(body)
        name, at, axis = f"joint_{link.name}", placed.position, placed.rotation[:, 2]
        if link.kind == "revolute":
            joint = s.revolute(name, base, body, at=at, axis=axis)
            s.torque(f"load_{link.name}", joint, link.load)
        elif link.kind == "prismatic":
            joint = s.prismatic(name, base, body, at=at, axis=axis)
            s.force(f"load_{link.name}", joint, link.load)
        else:
            s.spherical(name, base, body, at=at)
        frame = body.marker("frame")
        s.force(f"force_{link.name}", frame, list(link.force), frame="world")
        s.torque(f"torque_{link.name}", frame, list(link.torque), frame="world")
    return s


def tree_accelerations(seed: int) -> dict[str, list[float]]:
    """Give the acceleration of every link's frame and its angular acceleration, in the world."""
    s = build_tree(seed)
    kinds = ("acceleration", "angular_acceleration")
    run = start_system(s, [f"{body.name}.{kind}" for body in s.bodies for kind in kinds])
    return {
        body.name: [float(x) for kind in kinds for x in run.get(f"plant.{body.name}.{kind}")]
        for body in s.bodies
    }


def mcpherson_track(seconds: float, step: float, every: float) -> list[list[list[float]]]:
    """Give the centers of all bodies of the suspension from time to time."""
    s = mcpherson()
    run = start_system(s, [f"{body.name}.position" for body in s.bodies], step)
    track = []
    for sample in range(round(seconds / every) + 1):
        if sample:
            run.run(round(every / step))
        track.append([run.get(f"plant.{body.name}.position").tolist() for body in s.bodies])
    return track
