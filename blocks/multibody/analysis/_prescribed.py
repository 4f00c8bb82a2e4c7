"""Motion that is prescribed: kinematics, inverse dynamics, and static efforts on a tree.

With as many independent equations as speeds, joints and drivers alone determine the motion
(`manifold` for the symbols):

    Φ(q, t) = 0,   Φ_u u = -Φ_t,   Φ_u u̇ = γ

and the forces follow: Φ_uᵀ λ = Q_u - M_u u̇. A driver gives the effort -λ. Redundant
joints share a load by the rule of `sharing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from ....errors import DiagramError, name_list, suggest
from ..drawing._poses import Poses
from ..joints._joint import Joint
from ..plant._initial import coordinate_name
from ..system._bodies import Body, Marker
from ..system._laws import Lawlike
from ..system._rotations import Array, quaternion_from_rotation
from ._manifold import Manifold, close, least_squares, make_manifold, split
from ._pose import Assembly, assemble, find_start
from ._prescribed_friction import PrescribedFriction
from ._sharing import share

if TYPE_CHECKING:
    from ..system._system import System

_STEP = 0.2  # rad that a body may turn between two closures, so that no branch is jumped
_FOLLOWED = 1e-10


class Motion(Mapping[str, Array]):
    """A prescribed motion, indexed by the paths of the outputs of `System.block`.

    ``motion["crank.position"]`` has shape (n, 3), ``motion["main.angle"]`` (n,); there are
    position, rotation, velocity, angular_velocity, acceleration and angular_acceleration of each
    body's frame, coordinates of joints with _speed and _acceleration, ``force`` and ``torque`` of
    each joint on its second body, at its marker there, and ``effort`` of each driver.

    Attributes
    ----------
    t
        Times in s.
    efforts
        Effort of each driver in N or N m, by name; for `inverse_dynamics` also the effort on each
        prescribed coordinate, by path.
    not_unique
        Joints and drivers whose forces depend on the load distribution among redundant joints,
        which is by minimum norm, as in the engine; see docs/explanation/redundancy.md.
    """

    def __init__(
        self,
        t: Array,
        values: dict[str, Array],
        efforts: dict[str, Array],
        not_unique: tuple[str, ...],
        bodies: tuple[str, ...],
    ) -> None:
        self.t = t
        self._values = values
        self.efforts = efforts
        self.not_unique = not_unique
        self._bodies = bodies

    def __getitem__(self, path: str) -> Array:
        """Return the values along a path."""
        if path not in self._values:
            raise KeyError(
                f"`{path}` is not part of the motion.{suggest(path, self._values)} "
                f"There are: {name_list(self._values)}."
            )
        return self._values[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def poses(self) -> Poses:
        """Return the poses in the form accepted by `System.draw` and `System.animate`."""
        parts = [
            np.stack([self[f"{name}.{what}"] for name in self._bodies], axis=1)
            for what in ("position", "rotation")
        ]
        return Poses(self.t, parts[0], parts[1])


def kinematics(system: System, times: Any) -> Motion:
    """Compute the motion of a fully driven mechanism; see `System.kinematics`."""
    return _follow(system, times, {})


def inverse_dynamics(system: System, motion: Mapping[str, Lawlike], times: Any) -> Motion:
    """Compute the efforts that move joints in a given way; see `System.inverse_dynamics`."""
    # The same parts in a separate system, which receives the added drivers.
    driven = copy(system)
    driven._parts = dict(system._parts)
    drivers: dict[str, str] = {}
    for path, law in motion.items():
        joint, number = find_coordinate(system, path)
        drivers[path] = driven.driver(f"motion of {path}".replace(".", " "), joint, law,
                                      coordinate=number).name  # fmt: skip
    return _follow(driven, times, drivers)


def coordinate_paths(system: System) -> dict[str, tuple[Joint, int]]:
    """Return the joint coordinates by path, such as ``main.angle``."""
    return {
        f"{joint.name}.{coordinate_name(joint, number)}": (joint, number)
        for joint in system.joints
        for number in range(len(joint.coordinates))
    }


def find_coordinate(system: System, path: str) -> tuple[Joint, int]:
    """Return a joint coordinate by its path, or by the joint alone if it has only one.

    Raises
    ------
    DiagramError
        If there is none.
    """
    paths = coordinate_paths(system)
    if path in paths:
        return paths[path]
    own = [found for found in paths.values() if found[0].name == path]
    if len(own) == 1:
        return own[0]
    raise DiagramError(
        f"there is no joint coordinate `{path}` in `{system.name}`.{suggest(path, paths)} "
        f"Coordinates: {name_list(paths)}."
    )


def _read_times(times: Any) -> Array:
    array = np.atleast_1d(np.asarray(times, dtype=np.float64))
    if array.ndim != 1 or not array.size or not np.isfinite(array).all():
        raise DiagramError(f"`times` are finite numbers in s, at least one; got {times!r}.")
    if (np.diff(array) <= 0.0).any():
        raise DiagramError("`times` must rise.")
    return array


class _Follower:
    """Keeps one model on its way in time, and the turns that its angles have made."""

    def __init__(self, model: Manifold, driven: Mapping[str, str]) -> None:
        self.model = model
        self.t = 0.0
        self.q, _ = find_start(model, 0.0)
        self.angles: dict[tuple[str, int], float] = {}
        self.driven = driven
        self.friction = PrescribedFriction(model)
        for driver in model.system.drivers:
            if driver.joint.coordinates[driver.coordinate].kind == "angle":
                self.angles[driver.joint.name, driver.coordinate] = driver.law.value(0.0)
        self._solve()
        self._unwrap()

    def _solve(self) -> None:
        """Work out u, u̇ and λ where the model stands."""
        model, t, q = self.model, self.t, self.q
        still = model.equations(t, q, np.zeros(model.size))
        rank, free, self.null = split(still.jacobian)
        if rank < model.size:
            raise DiagramError(_say_free(model, t, free.shape[1], self.driven))
        self.u = least_squares(still.jacobian, -still.phi_t)
        e = model.equations(t, q, self.u)
        self.u_t = least_squares(e.jacobian, e.gamma)
        for found, wanted in ((self.u, -e.phi_t), (self.u_t, e.gamma)):
            error = float(np.abs(e.jacobian @ found - wanted).max())
            if error > 1e-7 * max(1.0, float(np.abs(wanted).max())):
                raise DiagramError(
                    f"the drivers of `{model.system.name}` contradict each other or the joints at "
                    f"t = {t:g} s: an equation is missed by {error:.3g}. Drive fewer coordinates."
                )
        rest = e.force - e.mass @ self.u_t

        def solve(force: Array) -> Array:
            return share(model, least_squares(e.jacobian.T, rest + force), self.null)

        self.lam = self.friction.find(t, q, self.u, self.u_t, solve)

    def advance(self, target: float) -> None:
        """Go to another time in steps small enough to stay on the branch."""
        while self.t != target:
            spin = self._largest_turn(self.u)
            turning = self._largest_turn(self.u_t)
            step = min(
                _STEP / spin if spin else np.inf,
                np.sqrt(2.0 * _STEP / turning) if turning else np.inf,
                abs(target - self.t),
            )
            if step < 1e-10 * max(1.0, abs(self.t)) and step < abs(target - self.t):
                raise DiagramError(self._say_stuck())
            step = float(np.copysign(step, target - self.t))
            self._step(target if step == target - self.t else self.t + step)

    def _largest_turn(self, u: Array) -> float:
        return max(float(np.linalg.norm(self.model.twist(b, u)[1])) for b in self.model.bodies)

    def _step(self, t: float) -> None:
        for _ in range(12):
            h = t - self.t
            guess = self.model.move(self.q, h * self.u + 0.5 * h**2 * self.u_t)
            q, error = close(self.model, t, guess)
            if error <= _FOLLOWED:
                self.t, self.q = t, q
                self._solve()
                self._unwrap()
                return
            t = self.t + 0.5 * h
        raise DiagramError(self._say_stuck())

    def _say_stuck(self) -> str:
        return (
            f"`{self.model.system.name}` cannot follow its drivers beyond t = {self.t:.6g} s: its "
            f"joints will not close there. A driver asks for a place that is out of reach."
        )

    def _unwrap(self) -> None:
        self.coordinates = self.model.coordinates(self.t, self.q, self.u, self.u_t)
        for joint in self.model.system.joints:
            for number, of in enumerate(joint.coordinates):
                if of.kind == "angle":
                    key = joint.name, number
                    value = self.coordinates[key].value
                    turns = round((self.angles.get(key, value) - value) / (2.0 * np.pi))
                    self.angles[key] = value + 2.0 * np.pi * turns

    def record(self) -> dict[str, Array | float]:
        """Return everything at this time by path."""
        model = self.model
        row: dict[str, Array | float] = {}
        for body, found in zip(model.bodies, model.body_motion(self.q, self.u), strict=True):
            acceleration, turning = model.twist(body, self.u_t)
            omega, arm = found.angular_velocity, found.rotation @ body.com
            inward = np.cross(omega, np.cross(omega, arm))
            row[f"{body.name}.position"] = found.position
            row[f"{body.name}.rotation"] = quaternion_from_rotation(found.rotation)
            row[f"{body.name}.velocity"] = found.velocity
            row[f"{body.name}.angular_velocity"] = omega
            row[f"{body.name}.acceleration"] = acceleration - np.cross(turning, arm) - inward
            row[f"{body.name}.angular_acceleration"] = turning
        for path, (joint, number) in coordinate_paths(model.system).items():
            key = joint.name, number
            moving = self.coordinates[key]
            row[path] = self.angles.get(key, moving.value)
            row[f"{path}_speed"] = moving.rate
            row[f"{path}_acceleration"] = moving.acceleration
        forces = model.reactions(self.t, self.q, model.multipliers(self.lam))
        for name, reaction in forces.items():
            row[f"{name}.force"], row[f"{name}.torque"] = reaction.force_j, reaction.torque_j
        for item in model.system.constraints:
            row[f"{item.name}.effort"] = -float(self.lam[model.rows(item.name)][0])
        return row


def _follow(system: System, times: Any, drivers: Mapping[str, str]) -> Motion:
    wanted = _read_times(times)
    follower = _Follower(make_manifold(system), drivers)
    rows = []
    for t in wanted:
        follower.advance(float(t))
        rows.append(follower.record())
    values = {path: np.array([row[path] for row in rows]) for path in rows[0]}
    added = {name: path for path, name in drivers.items()}
    efforts = {
        added.get(item.name, item.name): values[f"{item.name}.effort"]
        for item in system.constraints
    }
    for name in added:
        del values[f"{name}.effort"]
    model = follower.model
    shared = tuple(
        added.get(name, name)
        for name in model.joint_rows
        if np.abs(follower.null[model.rows(name)]).max(initial=0.0) > 1e-7
    )
    for body in system.bodies:
        _keep_sign(values[f"{body.name}.rotation"])
    return Motion(wanted, values, efforts, shared, tuple(body.name for body in system.bodies))


def _keep_sign(quaternions: Array) -> None:
    """Turn the signs of Euler parameters so that they run on without jumps."""
    for before, after in pairwise(quaternions):
        if before @ after < 0.0:
            after *= -1.0


def _say_free(model: Manifold, t: float, freedom: int, drivers: Mapping[str, str]) -> str:
    system = model.system
    driven = {(driver.joint.name, driver.coordinate) for driver in system.drivers}
    free = [
        path
        for path, (joint, number) in coordinate_paths(system).items()
        if (joint.name, number) not in driven
    ]
    what = "coordinates with a motion" if drivers else "drivers"
    return (
        f"at t = {t:g} s `{system.name}` has {freedom} degrees of freedom that nothing prescribes: "
        f"either it needs that many more {what}, or it passes a singular position. Coordinates "
        f"without a driver: {name_list(f'`{path}`' for path in free)}."
    )


def static_efforts(
    system: System,
    forces: Mapping[str, Any],
    torques: Mapping[str, Any],
    weight: bool,
    at: Assembly | None,
) -> dict[str, float]:
    """Carry loads down a tree of joints to the ground; see `System.static_efforts`.

    Wrenches are moved to the origin of the world, W = (F, p × F + T), and summed over all bodies
    that a joint carries. On an angle about the axis h through p the joint then gives
    -h · (T_W - p × F_W), along a length -f · F_W: τ = -Jᵀ F [A.5].
    """
    pose = assemble(system) if at is None else at
    order = _tree_order(system)
    place = {body.name: (body.position, body.rotation) for body in pose.bodies}
    place["ground"] = (np.zeros(3), np.eye(3))
    carried = {body.name: np.zeros(6) for body in (system.ground, *system.bodies)}

    def add(body: Body, point: Array, force: Array, torque: Array) -> None:
        carried[body.name] += np.concatenate([force, np.cross(point, force) + torque])

    def point_of(marker: Marker) -> Array:
        position, rotation = place[marker.body.name]
        found: Array = position + rotation @ marker.place(pose.time)[0]
        return found

    for path, force in forces.items():
        marker = system[path]
        if not isinstance(marker, Marker):
            raise DiagramError(
                f"`{path}` is not a marker: a force acts at a marker, such as `hand.tip`."
            )
        add(marker.body, point_of(marker), system._vector(f"the force at `{path}`", force),
            np.zeros(3))  # fmt: skip
    for name, torque in torques.items():
        body = system[name]
        if not isinstance(body, Body):
            raise DiagramError(f"`{name}` is not a body: a torque acts on a body.")
        add(body, np.zeros(3), np.zeros(3), system._rotation_vector(f"torque on `{name}`", torque))
    if weight:
        for body in system.bodies:
            position, rotation = place[body.name]
            add(body, position + rotation @ body.com, body.mass * system.gravity, np.zeros(3))

    efforts = {}
    paths = {found: path for path, found in coordinate_paths(system).items()}
    for joint, inner, outer in reversed(order):
        wrench = carried[outer.name]
        carried[inner.name] += wrench
        sign = 1.0 if outer is joint.second.body else -1.0
        turning = wrench[3:] - np.cross(point_of(joint.second), wrench[:3])
        frames = {
            "i": place[joint.first.body.name][1] @ joint.frame_i,
            "j": place[joint.second.body.name][1] @ joint.frame_j,
        }
        for number, of in enumerate(joint.coordinates):
            name = of.about if of.kind == "angle" else of.along
            axis = frames[name[2]][:, "fgh".index(name[0])]
            load = turning if of.kind == "angle" else wrench[:3]
            efforts[paths[joint, number]] = -sign * float(axis @ load)
    return {path: efforts[path] for path in coordinate_paths(system)}


def _tree_order(system: System) -> list[tuple[Joint, Body, Body]]:
    """Return the joints from the ground outwards, each with its inner and outer body."""
    graph = nx.MultiGraph()
    graph.add_nodes_from(["ground", *(body.name for body in system.bodies)])
    for joint in system.joints:
        graph.add_edge(joint.first.body.name, joint.second.body.name, joint=joint)
    if not nx.is_tree(graph):
        loops = graph.number_of_edges() >= graph.number_of_nodes()
        raise DiagramError(
            f"static efforts are for a tree of joints that hangs on the ground, and "
            f"`{system.name}` {'has loops' if loops else 'has bodies that no joint ties to it'}: "
            f"use equilibrium(), or inverse_dynamics() with constant motion."
        )
    bodies = {body.name: body for body in (system.ground, *system.bodies)}
    return [
        (graph.edges[inner, outer, 0]["joint"], bodies[inner], bodies[outer])
        for inner, outer in nx.bfs_edges(graph, "ground")
    ]
