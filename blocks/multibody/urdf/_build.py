"""A system from a URDF file: the links that fixed joints weld together are one body.

The base is welded to the ground, or flies. A body has the frame and the name of the link nearest
to the base; every other link of it is a marker on it, so that tool flanges and sensor frames
without mass need no mass. A floating joint is a body that no joint ties.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import DiagramError, name_list, suggest
from ..joints._joint import Joint
from ..system._bodies import OWN_NAMES, Body
from ..system._reading import read_number, read_numbers, read_rotation
from ..system._rotations import Array, frame_along, freeze, rotation_about
from ._file import Robot, UrdfJoint, read_robot

if TYPE_CHECKING:
    from ..system._system import System

SIZES = {
    "revolute": (1, 1),
    "continuous": (1, 1),
    "prismatic": (1, 1),
    "planar": (3, 3),
    "floating": (7, 6),
}
"""How many numbers the position and the velocity of a joint have."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """A frame p, R in another one."""

    position: Array
    rotation: Array

    def point(self, position: Array) -> Array:
        """Return a point given in this frame, in that in which the frame is given."""
        made: Array = self.position + self.rotation @ position
        return made

    def then(self, inner: _Frame) -> _Frame:
        """Return a frame given in this one, in that in which this one is given."""
        return _Frame(self.point(inner.position), self.rotation @ inner.rotation)


_HERE = _Frame(freeze(np.zeros(3)), freeze(np.eye(3)))


@dataclass(frozen=True, slots=True)
class _Motion:
    """The child of a joint in the joint's frame on the parent: place, and velocities."""

    frame: _Frame
    velocity: Array
    spin: Array


@dataclass(frozen=True, slots=True)
class Options:
    """What `System.from_urdf` was asked for, beside the file."""

    base: str
    positions: Mapping[str, Any]
    velocities: Mapping[str, Any]
    stop_stiffness: float | Mapping[str, float] | None
    stop_damping: float | Mapping[str, float]
    smoothing_speed: float
    allow_nonphysical: bool


def build_system(
    system_type: type[System], path: str | Path, gravity: Any, options: Options
) -> System:
    """Return the system of a file, as a new `system_type`; see `System.from_urdf`."""
    if options.base not in ("fixed", "free"):
        raise DiagramError(f"`base` is 'fixed' or 'free', got {options.base!r}.")
    if options.stop_stiffness is None and options.stop_damping:
        raise DiagramError("`stop_damping` is given without `stop_stiffness`: there are no stops.")
    robot = read_robot(path, options.allow_nonphysical)
    root, joints = _sort_outwards(robot)
    kind = "fixed" if options.base == "fixed" else "floating"
    x = freeze([1.0, 0.0, 0.0])
    line, none = robot.links[root].line, _HERE.position
    base = UrdfJoint(root, line, kind, "", root, none, _HERE.rotation, x, None, 0.0, 0.0)
    _check_names(robot, [base, *joints], options)
    return _Builder(robot, base, joints, system_type(robot.name, gravity), options).build()


def _sort_outwards(robot: Robot) -> tuple[str, list[UrdfJoint]]:
    """Return the link that no joint carries, and the joints from there outwards.

    Raises
    ------
    DiagramError
        If joints name links that are not there, or the links do not make one tree.
    """
    problems = []
    carrier: dict[str, UrdfJoint] = {}
    children: dict[str, list[UrdfJoint]] = defaultdict(list)
    for joint in robot.joints.values():
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in robot.links:
                problems.append(
                    f"{robot.at(joint)} has the {role} `{name}`, but there is no such link."
                    f"{suggest(name, robot.links)} Links: {name_list(robot.links)}."
                )
        if joint.child in carrier:
            problems.append(
                f"{robot.at(joint)} carries link `{joint.child}`, which joint "
                f"`{carrier[joint.child].name}` (line {carrier[joint.child].line}) carries "
                f"already: URDF describes trees. Keep one of them in the file and close the loop "
                f"in Python, with a joint of the system between two markers."
            )
        carrier.setdefault(joint.child, joint)
        children[joint.parent].append(joint)
    if problems:
        raise DiagramError(problems)
    roots = [name for name in robot.links if name not in carrier]
    if len(roots) > 1:
        raise DiagramError(
            f"{robot.path.name} has {len(roots)} links that no joint carries: {name_list(roots)}. "
            f"A robot has one, its base: add joints that carry the others."
        )
    joints = list(children[roots[0]]) if roots else []
    for joint in joints:
        joints += children[joint.child]
    if len(joints) < len(robot.joints):
        raise DiagramError(_report_cycle(robot, carrier, joints))
    return roots[0], joints


def _report_cycle(robot: Robot, carrier: Mapping[str, UrdfJoint], found: list[UrdfJoint]) -> str:
    """Walk from a link that the base does not reach toward its parents, until one comes again."""
    reached = {joint.name for joint in found}
    joint = next(joint for joint in robot.joints.values() if joint.name not in reached)
    walked: list[UrdfJoint] = []
    while joint not in walked:
        walked.append(joint)
        joint = carrier[joint.parent]
    ring = walked[walked.index(joint) :][::-1]
    path = " → ".join(
        [f"`{ring[0].parent}`", *(f"{one.name} → `{one.child}`" for one in ring)],
    )
    return (
        f"{robot.at(ring[0])} is in a cycle of parents and children: {path}. Each link hangs on "
        f"one nearer to the base: turn one of these joints around, or take it out and close the "
        f"loop in Python."
    )


def _check_names(robot: Robot, joints: Sequence[UrdfJoint], options: Options) -> None:
    """Check that options by joint name joints that can have them."""
    movable = [joint.name for joint in joints if joint.kind != "fixed"]
    limited = [joint.name for joint in joints if joint.limits]
    for what, valid in (
        ("positions", movable),
        ("velocities", movable),
        ("stop_stiffness", limited),
        ("stop_damping", limited),
    ):
        given = getattr(options, what)
        for name in given if isinstance(given, Mapping) else ():
            if name not in valid:
                raise DiagramError(
                    f"`{what}` has `{name}`, which is not a joint of {robot.path.name} that "
                    f"{'moves' if valid is movable else 'has limits'}.{suggest(name, valid)} "
                    f"Joints: {name_list(valid)}."
                )


class _Builder:
    """Makes bodies, joints and forces, from the base outwards."""

    def __init__(
        self,
        robot: Robot,
        base: UrdfJoint,
        joints: Sequence[UrdfJoint],
        system: System,
        options: Options,
    ) -> None:
        self.robot, self.system, self.options = robot, system, options
        self.joints = [base, *joints]
        # For every link: the link that names its body, and its pose in that body.
        self.seats: dict[str, tuple[str, _Frame]] = {"": ("", _HERE)}
        self.welded: dict[str, list[str]] = defaultdict(list)
        for joint in self.joints:
            carrier, frame = self.seats[joint.parent]
            if joint.kind == "fixed":
                seat = carrier, frame.then(_Frame(joint.position, joint.rotation))
            else:
                seat = joint.child, _HERE
            self.seats[joint.child] = seat
            self.welded[seat[0]].append(joint.child)
        self.link_names, self.joint_names = _choose_names(robot)
        self.bodies: dict[str, Body] = {"": system.ground}

    def build(self) -> System:
        self._check_masses()
        self._mark_links("")
        for joint in self.joints:
            if joint.kind != "fixed":
                self._add(joint)
        for name in self.robot.links:
            self._show(name)
        return self.system

    def _show(self, link: str) -> None:
        """Add the shapes of a link to its body."""
        carrier, seat = self.seats[link]
        for visual in self.robot.links[link].visuals:
            at = seat.then(_Frame(visual.position, visual.rotation))
            placed = replace(visual, position=freeze(at.position), rotation=freeze(at.rotation))
            self.system._add_visual(self.bodies[carrier], placed)

    def _check_masses(self) -> None:
        """Check that bodies at the end of a chain have mass."""
        holds = {
            self.seats[j.parent][0] for j in self.joints if j.kind not in ("fixed", "floating")
        }
        problems = []
        for joint in self.joints:
            if joint.kind == "fixed" or sum(self._masses(joint.child)) > 0:
                continue
            if joint.kind == "floating" or joint.child not in holds:
                link = self.robot.links[joint.child]
                problems.append(
                    f"{self.robot.at(link)} has no mass, nor has any link fixed to it, but "
                    f"{'it flies freely' if joint.kind == 'floating' else 'it ends a chain'}: "
                    f"its motion is undetermined. Give it <inertial> with <mass> and <inertia>"
                    f"{'' if joint.parent else ', or set base=' + repr('fixed')}."
                )
        if problems:
            raise DiagramError(problems)

    def _masses(self, carrier: str) -> list[float]:
        return [self.robot.links[name].mass for name in self.welded[carrier]]

    def _add(self, joint: UrdfJoint) -> None:
        """Add the body that a joint carries, the joint, and the forces in it."""
        carrier, seat = self.seats[joint.parent]
        parent = self.bodies[carrier]
        seat = seat.then(_Frame(joint.position, joint.rotation))
        body = self.bodies[joint.child] = self._add_body(joint, parent, seat)
        self._mark_links(joint.child)
        if joint.kind == "floating":
            self._reject_dynamics(joint)
            return
        name, frame = self.joint_names[joint.name], frame_along(joint.axis, False)
        ends = (
            parent.marker(name, seat.position, rotation=seat.rotation @ frame),
            body.marker(name, rotation=frame),
        )
        if joint.kind == "planar":
            self.system.planar_joint(name, *ends)
            self._reject_dynamics(joint)
            return
        make = self.system.prismatic if joint.kind == "prismatic" else self.system.revolute
        self._add_forces(joint, make(name, *ends))

    def _add_body(self, joint: UrdfJoint, parent: Body, seat: _Frame) -> Body:
        start = self._read_start(joint)
        in_world = _Frame(parent.position, parent.rotation).then(seat)
        axes = in_world.rotation
        place = in_world.then(start.frame)
        arm = place.position - parent.position
        mass, com, inertia = self._weigh(joint.child)
        return self.system.body(
            self.link_names[joint.child],
            mass=mass,
            com=com,
            inertia=inertia,
            position=place.position,
            rotation=place.rotation,
            velocity=parent.velocity
            + np.cross(parent.angular_velocity, arm)
            + axes @ start.velocity,
            angular_velocity=parent.angular_velocity + axes @ start.spin,
            free=joint.kind == "floating",
            allow_nonphysical=self.options.allow_nonphysical,
        )

    def _weigh(self, carrier: str) -> tuple[float, Array, Array]:
        """Return mass, center of mass and inertia about it of all links of a body."""
        links = [(self.robot.links[name], self.seats[name][1]) for name in self.welded[carrier]]
        if len(links) == 1:
            link = links[0][0]
            return link.mass, link.com, link.inertia
        centers = [frame.point(link.com) for link, frame in links]
        mass = sum(link.mass for link, _ in links)
        com = np.zeros(3)
        if mass > 0:
            com = sum((link.mass * c for (link, _), c in zip(links, centers, strict=True)), com)
            com = com / mass
        inertia = np.zeros((3, 3))
        for (link, frame), center in zip(links, centers, strict=True):
            d = center - com
            inertia += frame.rotation @ link.inertia @ frame.rotation.T
            inertia += link.mass * (d @ d * np.eye(3) - np.outer(d, d))
        return mass, com, inertia

    def _mark_links(self, carrier: str) -> None:
        """Put a marker on a body for every link of it that does not give it its frame."""
        for name in self.welded[carrier]:
            if name != carrier:
                frame = self.seats[name][1]
                self.bodies[carrier].marker(
                    self.link_names[name], frame.position, rotation=frame.rotation
                )

    def _read_start(self, joint: UrdfJoint) -> _Motion:
        """Return where a joint starts and how fast, from the options."""
        numbers = []
        for what, size in zip(("positions", "velocities"), SIZES[joint.kind], strict=True):
            default = np.zeros(size)
            if what == "positions" and joint.kind == "floating":
                default[3] = 1.0
            given = getattr(self.options, what).get(joint.name, default)
            read = np.atleast_1d(read_numbers(f"`{what}` of `{joint.name}`", given))
            if read.shape != (size,):
                raise DiagramError(
                    f"`{what}` of `{joint.name}`, a {joint.kind} joint, has {size} "
                    f"number{'s' if size > 1 else ''}, got {given!r}."
                )
            numbers.append(read)
        q, v = numbers
        still = np.zeros(3)
        if joint.kind == "floating":
            turned = read_rotation(f"`positions` of `{joint.name}`", q[3:], False)
            return _Motion(_Frame(q[:3], turned), v[:3], v[3:])
        axis = joint.axis
        if joint.kind == "prismatic":
            return _Motion(_Frame(axis * q[0], _HERE.rotation), axis * v[0], still)
        turned = rotation_about(axis, float(q[-1]))
        if joint.kind == "planar":
            plane = frame_along(axis, False)[:, :2]
            return _Motion(_Frame(plane @ q[:2], turned), plane @ v[:2], axis * v[2])
        return _Motion(_Frame(still, turned), still, axis * v[0])

    def _add_forces(self, joint: UrdfJoint, made: Joint) -> None:
        if joint.damping or joint.friction:
            self.system.friction(
                f"{made.name}_friction",
                made,
                viscous=joint.damping,
                coulomb=joint.friction,
                smoothing_speed=self.options.smoothing_speed,
            )
        stiffness = self._option("stop_stiffness", joint)
        if stiffness is None or joint.limits is None:
            return
        lower, upper = joint.limits
        if lower >= upper:
            raise DiagramError(
                f"{self.robot.at(joint)} has limits at lower={lower:g} and upper={upper:g}, which "
                f"leave it no way to go: correct <limit>, or give `stop_stiffness` by joint and "
                f"leave this one out."
            )
        damping = self._option("stop_damping", joint) or 0.0
        self.system.stop(
            f"{made.name}_stop",
            made,
            lower=lower,
            upper=upper,
            stiffness=stiffness,
            damping=damping,
        )

    def _option(self, what: str, joint: UrdfJoint) -> float | None:
        """Return an option that is one number for all joints, or given by joint."""
        given = getattr(self.options, what)
        if isinstance(given, Mapping):
            given = given.get(joint.name)
        return None if given is None else read_number(f"`{what}`", given)

    def _reject_dynamics(self, joint: UrdfJoint) -> None:
        if joint.damping or joint.friction:
            raise DiagramError(
                f"{self.robot.at(joint)} is {joint.kind} and has <dynamics>: one number for "
                f"displacements and angles together. Delete it, and add forces in Python."
            )


def _choose_names(robot: Robot) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names of links and joints in the system, where both share one set.

    A name already used by the system or by a link gets the suffix `_link` or `_joint`.
    """
    taken = {"ground", "gravity", *OWN_NAMES}
    links = _rename(robot.links, "_link", taken)
    return links, _rename(robot.joints, "_joint", {*taken, *links.values()})


def _rename(names: Iterable[str], suffix: str, taken: set[str]) -> dict[str, str]:
    names = list(names)
    chosen = {}
    for name in names:
        new = name
        while new in taken or (new != name and new in names):
            new += suffix
        chosen[name] = new
    return chosen
