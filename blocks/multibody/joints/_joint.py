"""What a joint is: the entry of its kind, its equations, coordinates and frames.

Conventions, for every part that reads this description:

- A joint ties marker i, the first, to marker j, the second. Its frame on body i has axes f_i, g_i,
  h_i and on body j f_j, g_j, h_j: the columns of `Joint.frame_i` and `Joint.frame_j`.
- d = p_j - p_i runs from marker i to marker j, in axes of the world.
- Coordinates give the pose of j relative to i: write the ground or the parent first.
- The equations of motion are M q̈ + Φ_qᵀ λ = Q: the force of a joint on the system is -Φ_qᵀ λ.
  A row S then puts the force +λ on body i at p_i and -λ on body j.
- The reaction of a joint, its `force` and `torque`, is what its own equations do to body j, in axes
  of the world, about p_j: the wrench of the ideal joint. It has no part along the coordinates that
  the joint leaves free and does no work on a joint at rest. The efforts of drivers, motors,
  springs, friction and stops along these coordinates are not included: they are separate outputs.
  The total load through the joint is the sum of both: an effort on a length acts along its axis
  at p_j, one on an angle about its axis. The result does not depend on where a loop was cut.

Base equations, by `Row.kind` [V 1.12-1.32]; vectors on the right are in axes of the world:

    S      Φ = d[component]
    d1     Φ = a · b          a fixed on one body, b on the other
    d2     Φ = a · d          a fixed on body i
    SS     Φ = d · d - length²
    angle  Φ = the angle about z from f_i to f_j, unwrapped; planar systems only

Planar systems have three coordinates a body and the joints of [P], with the sign j - i of S
for all rows: their S and angle rows are those of [P] times -1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .... import _contract as contract
from ...core._ports import Parameter, parameter
from ..system._bodies import Body, Marker
from ..system._rotations import Array, freeze, quaternion_from_rotation, rotation_about

if TYPE_CHECKING:
    from ..drawing._strokes import Stroke
    from ..drawing._symbols import JointView

Axis = Literal["f_i", "g_i", "h_i", "f_j", "g_j", "h_j", ""]


@dataclass(frozen=True, slots=True)
class Row:
    """One base equation: its kind, the axes a and b in it, or the component of d."""

    kind: Literal["S", "d1", "d2", "SS", "angle"]
    a: Axis = ""
    b: Axis = ""
    component: int = 0


@dataclass(frozen=True, slots=True)
class Coordinate:
    """What a joint leaves free.

    - a length: q = d · along, in m
    - an angle: q of `of` about `about`, counted from `start`: atan2(of · (about × start),
      of · start) in rad, unwrapped over turns
    - an Euler parameter of body j, in formulas of constraints alone: number `parameter`, 0 to 3

    The effort on a coordinate is what does work on its rate: it pushes or turns body j, and body i
    by the opposite.
    """

    kind: Literal["length", "angle", "euler"]
    along: Axis = ""
    of: Axis = ""
    start: Axis = ""
    about: Axis = ""
    parameter: int = 0

    @property
    def unit(self) -> str:
        """Return its unit."""
        return {"length": "m", "angle": "rad", "euler": "1"}[self.kind]

    @property
    def effort_unit(self) -> str:
        """Return the unit of a force or torque on it."""
        return "N" if self.kind == "length" else "N.m"

    @property
    def effort(self) -> Literal["force", "torque"]:
        """Return the name of a force or torque on it."""
        return "force" if self.kind == "length" else "torque"


POINT = (Row("S", component=0), Row("S", component=1), Row("S", component=2))
"""The two markers are at one point; in a plane the first two rows."""
PARALLEL = (Row("d1", "f_i", "h_j"), Row("d1", "g_i", "h_j"))
"""The axes h are parallel."""
ON_LINE = (Row("d2", "f_i"), Row("d2", "g_i"))
"""Marker j is on the axis h_i."""
NO_TURN = Row("d1", "f_i", "g_j")
"""No rotation about h, where the axes h are parallel."""
ANGLE = Coordinate("angle", of="f_j", start="f_i", about="h_i")
ALONG_F = Coordinate("length", along="f_i")
ALONG_G = Coordinate("length", along="g_i")
ALONG_H = Coordinate("length", along="h_i")
EULER = tuple(Coordinate("euler", parameter=k) for k in range(4))

WELD, TURN = contract.MB_FIXED, contract.MB_REVOLUTE
SLIDE, BALL = contract.MB_PRISMATIC, contract.MB_SPHERICAL
"""Elementary joints of the tree: none, a turn about z, a slide along z, a ball."""


@dataclass(frozen=True, slots=True)
class Chain:
    """How a tree joint is made of elementary ones.

    Attributes
    ----------
    steps
        (type, turn before it) of each: turn 1 makes the old x the new z, turn 2 the old y.
    end
        The turn that restores the axes.
    coordinates
        The step, sign and offset of each coordinate of the joint.
    """

    steps: tuple[tuple[int, int], ...]
    end: int = 0
    coordinates: tuple[tuple[int, int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class JointType:
    """A kind of joint in space, or in a plane.

    Attributes
    ----------
    rows, coordinates
        Its equations, and what they leave free.
    chains
        Its form in the tree, seen from the first marker and from the second; None for a joint that
        only closes loops.
    frames
        The frames of a joint whose markers have no full rotation. ``"completed"``: what a marker
        leaves open is that of the other in the given pose. ``"held"``: also the angle about the
        axis, because the joint stops it. ``"given"``: those of the markers.
    takes_axis
        Whether a joint between two bodies needs ``axis=``.
    friction_kind
        Which formula of ``joint_friction.c`` friction from the reaction follows; None if none does.
    friction_sizes
        The dimensions of its bearing on which this friction depends.
    """

    rows: tuple[Row, ...]
    coordinates: tuple[Coordinate, ...] = ()
    chains: tuple[Chain, Chain] | None = None
    frames: Literal["completed", "held", "given"] = "completed"
    takes_axis: bool = True
    friction_kind: int | None = None
    friction_sizes: tuple[Literal["diameter", "length"], ...] = ("diameter", "length")


@dataclass(frozen=True, slots=True, eq=False)
class JointKind:
    """A kind of joint: all that differs from other kinds.

    Attributes
    ----------
    name
        Such as ``"revolute"``.
    spatial
        Its type between markers in space; h is the axis.
    planar
        Its type in a plane, where all joints turn about z and f is the direction of a slide; or,
        if there is none, what a user does instead.
    draw
        Returns its symbol, without what belongs to the ground.
    mount
        Returns what holds it to the ground, given a direction in which no body is.
    sleeve
        Of a joint whose second body, or the first if the second is the ground, is a sleeve on a
        rail: the shape of that sleeve.
    check
        Raises a `DiagramError` unless the two markers suit it; its first argument is the name.
    read_axis
        Returns the rotations of two new markers in world axes, from the name of the joint, its
        bodies and ``axis=``; None for a single direction along h of both.
    """

    name: str
    spatial: JointType
    planar: JointType | str
    draw: Callable[[JointView], list[Stroke]]
    mount: Callable[[JointView, Array], list[Stroke]]
    sleeve: Literal["", "box", "barrel"] = ""
    check: Callable[[str, Marker, Marker], None] | None = None
    read_axis: Callable[[str, tuple[Body, Body], Any], tuple[Array, Array]] | None = None

    def type_in(self, planar: bool) -> JointType:
        """Return its type in a plane or in space."""
        found = self.planar if planar else self.spatial
        assert isinstance(found, JointType)
        return found


def joint_frames(of: JointType, first: Marker, second: Marker) -> tuple[Array, Array]:
    """Return the frames of a joint on its two bodies.

    The unspecified part of a marker's rotation is taken from the other marker in the given pose:
    all of it, if no axis was given; and for joints that stop rotation about their axis, the angle
    about it, so that they hold the pose that was given.
    """
    frame_i, frame_j = first.rotation, second.rotation
    if of.frames == "given":
        return frame_i, frame_j
    r_ji = second.body.rotation.T @ first.body.rotation
    holds = of.frames == "held"
    given_i, given_j = first.orientation != "none", second.orientation != "none"
    if not given_j and (given_i or holds):
        return frame_i, freeze(r_ji @ frame_i)
    if not given_i and given_j:
        return freeze(r_ji.T @ frame_j), frame_j
    if holds and not first.body.system.planar:
        if second.orientation == "axis":
            return frame_i, _turn(frame_j, r_ji @ frame_i[:, 0])
        if first.orientation == "axis":
            return _turn(frame_i, r_ji.T @ frame_j[:, 0]), frame_j
    return frame_i, frame_j


def _turn(frame: Array, toward: Array) -> Array:
    """Turn a frame about its z axis until its x axis points `toward`, as far as it can."""
    seen = frame.T @ toward
    return freeze(frame @ rotation_about([0.0, 0.0, 1.0], float(np.arctan2(seen[1], seen[0]))))


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """A joint between two markers; made by `System.revolute` and its like.

    Attributes
    ----------
    name
        Its name.
    entry
        What its kind of joint is.
    first, second
        Markers i and j.
    frame_i, frame_j
        R_BM of the joint's frame on each body: that of the marker, or the completed rotation of a
        marker that was given without a full rotation.
    length
        Of a distance joint, in m.
    """

    name: str
    entry: JointKind
    first: Marker
    second: Marker
    frame_i: Array
    frame_j: Array
    length: float | None = None

    @property
    def kind(self) -> str:
        """Return the name of its kind, such as ``"revolute"``."""
        return self.entry.name

    @property
    def type(self) -> JointType:
        """Return its rows, its coordinates and its form in the tree."""
        return self.entry.type_in(self.first.body.system.planar)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Return its equations."""
        return self.type.rows

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Return its coordinates; empty for joints that have none that are simple."""
        return self.type.coordinates

    @property
    def slide(self) -> Coordinate | None:
        """Return its displacement, if it has exactly one."""
        lengths = [one for one in self.coordinates if one.kind == "length"]
        return lengths[0] if len(lengths) == 1 else None

    @property
    def has_pivots(self) -> bool:
        """Return whether each of its coordinates turns in a bearing of its own."""
        return self.type.friction_kind == contract.MB_JOINT_FRICTION_PIVOT

    @property
    def is_ball(self) -> bool:
        """Return whether it turns freely and has no coordinates."""
        return self.type.friction_kind == contract.MB_JOINT_FRICTION_SPHERICAL

    @property
    def is_hinge(self) -> bool:
        """Whether the angle about its axis is its only coordinate."""
        return self.coordinates == (ANGLE,)

    def given_axis(self, name: str) -> Array:
        """Return one of its axes, such as ``"h_i"``, in the given pose and in world axes."""
        marker, frame = (
            (self.first, self.frame_i) if name[2] == "i" else (self.second, self.frame_j)
        )
        return np.asarray(marker.body.rotation @ frame[:, "fgh".index(name[0])])

    def given_value(self, number: int) -> float:
        """Return a coordinate in the given pose, in m or rad, angles from -π to π."""
        of = self.coordinates[number]
        if of.kind == "euler":
            return float(quaternion_from_rotation(self.second.world_rotation)[of.parameter])
        if of.kind == "length":
            d = self.second.world_position - self.first.world_position
            return float(d @ self.given_axis(of.along))
        start, about, end = (self.given_axis(name) for name in (of.start, of.about, of.of))
        return float(np.arctan2(end @ np.cross(about, start), end @ start))

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters by path."""
        if self.length is not None:
            yield parameter(
                f"{self.name}.length", self.length, unit="m", doc="distance", tunable=False
            )
