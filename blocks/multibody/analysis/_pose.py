"""Assembly: poses and velocities that joints and drivers allow, or which joints will not close."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from ...._services import find_service
from ....errors import BlockError, DiagramError, FormulationError, name_list
from ..drawing._poses import Poses
from ..equations._assembly import assemble as close_nearest
from ..equations._assembly import consistent_velocity
from ..joints._joint import Joint
from ..plant._initial import Initial
from ..plant._tree import grow_tree
from ..system._rotations import Array, quaternion_from_rotation, rotation_from_quaternion
from ._manifold import BodyMotion, Manifold, least_squares, make_kinematic_model

if TYPE_CHECKING:
    from ..system._system import System

CLOSED = 1e-9
"""Errors below this, in m or rad, count as closed."""
_TIGHT = 1e3


@dataclass(frozen=True, slots=True)
class Gap:
    """How far a joint or driver is open: m between points or off a line, rad between axes."""

    distance: float
    angle: float

    @property
    def open(self) -> bool:
        """Whether it is more than rounding."""
        return max(self.distance, self.angle) > CLOSED

    def __str__(self) -> str:
        parts = []
        least = max(CLOSED, 1e-3 * max(self.distance, self.angle))
        if self.distance > least:
            parts.append(f"{self.distance:.3g} m")
        if self.angle > least:
            parts.append(f"{self.angle:.3g} rad")
        return " and ".join(parts) or "nothing"


@dataclass(frozen=True, slots=True)
class Change:
    """By how much the initial state of a body differs from what was given for its frame."""

    distance: float
    angle: float
    velocity: float
    spin: float

    @property
    def moved(self) -> Gap:
        """Return distance in m and angle in rad."""
        return Gap(self.distance, self.angle)

    def __str__(self) -> str:
        parts = []
        for value, unit in (
            (self.distance, "m"),
            (self.angle, "rad"),
            (self.velocity, "m/s"),
            (self.spin, "rad/s"),
        ):
            if value > CLOSED:
                parts.append(f"{value:.3g} {unit}")
        return ", ".join(parts) or "nothing"


def as_poses(t: float, bodies: tuple[BodyMotion, ...]) -> Poses:
    """Return one pose in the form used by pictures."""
    return Poses(
        np.array([t]),
        np.array([[body.position for body in bodies]]),
        np.array([[quaternion_from_rotation(body.rotation) for body in bodies]]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Assembly:
    """The state of the bodies with all joints closed.

    Attributes
    ----------
    time
        In s; drivers and moving markers are evaluated at this time.
    bodies
        The frame of each body: position, rotation, velocity, angular_velocity.
    correction, turn
        The largest displacement of a body in m, and the largest rotation of a body in rad.
    changes
        Changes of the bodies, by name; only bodies that changed.
    gaps
        Gaps of joints and drivers in the given pose, by name; only those that were open.
    error
        The largest remaining |Φ|.
    velocity_correction, spin_correction
        The largest change of the velocity of a center of mass, in m/s, and of an angular velocity,
        in rad/s, required by joints and drivers.
    rate_error
        The largest remaining |Φ_u u + Φ_t|: above rounding only if the motion of the drivers
        violates the joints.
    coordinates, speeds
        q and u of `manifold`.
    """

    time: float
    bodies: tuple[BodyMotion, ...]
    correction: float
    turn: float
    changes: dict[str, Change]
    gaps: dict[str, Gap]
    error: float
    velocity_correction: float
    spin_correction: float
    rate_error: float
    coordinates: Array = field(repr=False)
    speeds: Array = field(repr=False)

    def __getitem__(self, name: str) -> BodyMotion:
        """Return the frame of a body."""
        for body in self.bodies:
            if body.name == name:
                return body
        raise KeyError(f"{name!r}; bodies: {name_list(body.name for body in self.bodies)}")

    @property
    def poses(self) -> Poses:
        """Return the poses in the form accepted by `System.draw`."""
        return as_poses(self.time, self.bodies)


def assemble(system: System, t: float = 0.0, initial: Initial | None = None) -> Assembly:
    """Close all joints and drivers of a system; see `System.assemble`."""
    return assemble_model(make_kinematic_model(system), t, initial)


def assemble_model(model: Manifold, t: float, initial: Initial | None = None) -> Assembly:
    """Return the initial state of a run of the model's system at time t."""
    given = find_gaps(model, model.closure(t, model.q0)[0])
    wanted = model.speeds(model.q0, model.v0)
    q, u = find_start(model, t, initial)
    e = model.equations(t, q, u, loads=False)
    bodies = model.body_motion(q, u)
    changes = {
        body.name: Change(
            float(np.linalg.norm(found.position - body.position)),
            _angle_between(found.rotation, body.rotation),
            float(np.linalg.norm(found.velocity - body.velocity)),
            float(np.linalg.norm(found.angular_velocity - body.angular_velocity)),
        )
        for found, body in zip(bodies, model.bodies, strict=True)
    }
    return Assembly(
        t,
        bodies,
        max(change.distance for change in changes.values()),
        max(change.angle for change in changes.values()),
        {name: change for name, change in changes.items() if str(change) != "nothing"},
        {name: gap for name, gap in given.items() if gap.open},
        float(np.abs(e.phi).max(initial=0.0)),
        *_largest_change(model, u - wanted),
        float(np.abs(e.jacobian @ u + e.phi_t).max(initial=0.0)),
        q,
        u,
    )


def find_start(model: Manifold, t: float, initial: Initial | None = None) -> tuple[Array, Array]:
    """Return q and u that a run starts with at time t: the engine's own, of its `init`.

    Raises
    ------
    DiagramError
        If there is none near the given pose, with the joints that stay open and by how much.
    """
    try:
        plant = _kinematic_plant(model.system, initial)
    except DiagramError:
        if initial is not None:
            raise
        return _start_without_engine(model, t)  # nothing in it can move
    try:
        return _read_start(model, plant, t)
    except BlockError as error:
        if initial is None:
            close_pose(model, t)  # reports the open joints in more detail
        reason = str(error).rpartition("(tick 0): ")[2]
        raise DiagramError(f"`{model.system.name}`: {reason}") from None


def _kinematic_plant(system: System, initial: Initial | None) -> Any:
    """Return the mechanism as a block that shows all bodies.

    The tree of joints is that of a run. Rigid contacts, which start after the pose is found, are
    left out.
    """
    from ..plant._plant import Plant

    rigid = [e for e in system.elements if e.is_rigid]
    if rigid:
        system = copy.copy(system)
        system._parts = {n: p for n, p in system._parts.items() if p not in rigid}
    shown = ("position", "rotation", "velocity", "angular_velocity")
    outputs = [f"{body.name}.{what}" for body in system.bodies for what in shown]
    return Plant(system, (), outputs, initial=initial, check=False)


def _read_start(model: Manifold, plant: Any, t: float) -> tuple[Array, Array]:
    q, u = model.q0.copy(), np.zeros(model.size)
    with find_service("compile_alone")(plant, "plant").open() as instance:
        instance.start_at(t)
        instance.initialize()
        instance.evaluate()
        for n, body in enumerate(model.bodies):
            position, rotation, velocity, omega = (
                np.asarray(instance.get(f"plant.{body.name}.{what}"), dtype=np.float64)
                for what in ("position", "rotation", "velocity", "angular_velocity")
            )
            axes = rotation_from_quaternion(rotation)
            arm = axes @ body.com
            center, speed = position + arm, velocity + np.cross(omega, arm)
            size, each = model.n // model.count, model.speeds_each
            if model.system.planar:
                turn = np.arctan2(axes[1, 0], axes[0, 0])
                turn += 2.0 * np.pi * np.round((q[size * n + 2] - turn) / (2.0 * np.pi))
                q[size * n : size * (n + 1)] = *center[:2], turn
                u[each * n : each * (n + 1)] = *speed[:2], omega[2]
            else:
                side = 1.0 if rotation @ q[size * n + 3 : size * (n + 1)] >= 0.0 else -1.0
                q[size * n : size * (n + 1)] = *center, *(side * rotation)
                u[each * n : each * (n + 1)] = *speed, *omega
    return q, u


def _start_without_engine(model: Manifold, t: float) -> tuple[Array, Array]:
    """Return the nearest state of a mechanism that no engine runs, because nothing in it moves."""
    q = close_pose(model, t)
    u = model.speeds(model.q0, model.v0)
    try:
        rates, _ = consistent_velocity(model, t, q, model.basis(q) @ u)
        u = model.speeds(q, rates)
    except np.linalg.LinAlgError:
        pass
    e = model.equations(t, q, u, loads=False)
    return q, u - least_squares(e.jacobian, e.jacobian @ u + e.phi_t)


def _angle_between(first: Array, second: Array) -> float:
    # |R1 - R2| = 2 √2 sin(angle / 2) keeps its digits where the angle is small.
    chord = float(np.linalg.norm(first - second)) / (2.0 * np.sqrt(2.0))
    return 2.0 * float(np.arcsin(min(1.0, chord)))


def _largest_change(model: Manifold, change: Array) -> tuple[float, float]:
    twists = [model.twist(body, change) for body in model.bodies]
    return (
        max(float(np.linalg.norm(v)) for v, _ in twists),
        max(float(np.linalg.norm(omega)) for _, omega in twists),
    )


def close_pose(model: Manifold, t: float) -> Array:
    """Return q with Φ(q, t) = 0, near the given pose.

    Raises
    ------
    DiagramError
        If there is none near it, with the joints that stay open and by how much.
    """
    size = max(1.0, *(float(np.abs(model.center(n, model.q0)).max()) for n in range(model.count)))
    try:
        q = close_nearest(model, t, tolerance=1e-12 * size)
        return model.move(q, np.zeros(model.size))
    except (FormulationError, np.linalg.LinAlgError):
        pass
    joints = {joint.name for joint in grow_tree(model.system).cuts}
    weights = np.full(model.m - model.base_rows, _TIGHT)
    for name in joints:
        weights[model.rows(name)] = 1.0
    q, phi = _least_error(model, t, weights)
    if all(max(gap.distance, gap.angle) <= CLOSED * size for gap in find_gaps(model, phi).values()):
        return q
    raise DiagramError(_explain(model, t, phi))


def _least_error(model: Manifold, t: float, weights: Array) -> tuple[Array, Array]:
    """Return q and Φ where the weighted sum of squares of Φ is least, by Levenberg–Marquardt.

    Joints of the tree weigh a thousand times more than those that close loops, so that what cannot
    be closed shows where a loop ends and not a little in each joint.
    """
    q = model.move(model.q0, np.zeros(model.size))
    phi, jacobian = model.closure(t, q, rates=False)
    damping = 1e-3
    for _ in range(500):
        error = weights * phi
        if np.abs(phi).max(initial=0.0) <= 1e-12 or damping > 1e9:
            break
        matrix = weights[:, None] * jacobian
        normal = matrix.T @ matrix + damping * np.eye(model.size)
        step = np.asarray(np.linalg.solve(normal, matrix.T @ error), dtype=np.float64)
        trial = model.move(q, -step)
        new_phi, new_jacobian = model.closure(t, trial, rates=False)
        new_error = weights * new_phi
        gain = float(error @ error - new_error @ new_error)
        if gain > 0.0:
            q, phi, jacobian = trial, new_phi, new_jacobian
            damping = max(0.2 * damping, 1e-9)
            if gain < 1e-14 * float(error @ error):
                break
        else:
            damping *= 8.0
    return q, phi


def find_gaps(model: Manifold, phi: Array) -> dict[str, Gap]:
    """Return how far each joint and driver is open, of Φ without rows of bodies."""
    found = {}
    for joint in model.system.joints:
        distance = angle = 0.0
        for row, value in zip(joint.rows, phi[model.rows(joint.name)], strict=True):
            if row.kind in ("S", "d2"):
                distance = float(np.hypot(distance, value))
            elif row.kind == "SS":
                length = joint.length or 0.0
                distance = abs(float(np.sqrt(max(0.0, value + length**2))) - length)
            elif row.kind == "d1":
                angle = float(np.hypot(angle, np.arcsin(np.clip(value, -1.0, 1.0))))
            else:
                angle = abs(float(value))
        found[joint.name] = Gap(distance, angle)
    for item in model.system.constraints:
        value = abs(float(phi[model.rows(item.name)][0]))
        found[item.name] = Gap(0.0, value) if item.turns else Gap(value, 0.0)
    return found


def _explain(model: Manifold, t: float, phi: Array) -> list[str]:
    system = model.system
    gaps = find_gaps(model, phi)
    worst = max(max(gap.distance, gap.angle) for gap in gaps.values())
    # Gaps of tree joints, a result of their weighting, are reported only if no other joint is open.
    told = {n: g for n, g in gaps.items() if max(g.distance, g.angle) > 1e-2 * worst and g.open}
    problems = []
    for name, gap in told.items():
        part = system[name]
        around = f" {_loop(system, part)}" if isinstance(part, Joint) else ""
        problems.append(
            f"`{name}` of `{system.name}` will not close: at t = {t:g} s it stays open by {gap} "
            f"with the other joints closed.{around} Change a length or an axis there, or give "
            f"positions nearer to a closed pose."
        )
    return problems


def _loop(system: System, joint: Joint) -> str:
    """Say which other joints lie between the two bodies of a joint."""
    graph = nx.Graph()
    for other in system.joints:
        if other is not joint:
            graph.add_edge(other.first.body.name, other.second.body.name, joint=other.name)
    try:
        path = nx.shortest_path(graph, joint.first.body.name, joint.second.body.name)
    except (nx.NetworkXNoPath, nx.NodeNotFound):
        return ""
    names = [graph.edges[pair]["joint"] for pair in pairwise(path)]
    return f"Its loop runs through {name_list(f'`{name}`' for name in names)}."
