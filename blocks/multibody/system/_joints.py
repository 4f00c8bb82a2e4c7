"""Joints: which equations each of them sets, and which coordinates it leaves free.

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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...core._ports import Parameter, parameter
from ._bodies import Marker
from ._rotations import Array, freeze, rotation_about

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

    The effort on a coordinate is what does work on its rate: it pushes or turns body j, and body i
    by the opposite.
    """

    kind: Literal["length", "angle"]
    along: Axis = ""
    of: Axis = ""
    start: Axis = ""
    about: Axis = ""

    @property
    def unit(self) -> str:
        """Return its unit."""
        return "m" if self.kind == "length" else "rad"

    @property
    def effort_unit(self) -> str:
        """Return the unit of a force or torque on it."""
        return "N" if self.kind == "length" else "N.m"

    @property
    def effort(self) -> Literal["force", "torque"]:
        """Return the name of a force or torque on it."""
        return "force" if self.kind == "length" else "torque"


@dataclass(frozen=True, slots=True)
class JointType:
    """The rows and coordinates of a kind of joint."""

    rows: tuple[Row, ...]
    coordinates: tuple[Coordinate, ...] = ()


_POINT = (Row("S", component=0), Row("S", component=1), Row("S", component=2))
_PARALLEL = (Row("d1", "f_i", "h_j"), Row("d1", "g_i", "h_j"))
_ON_LINE = (Row("d2", "f_i"), Row("d2", "g_i"))
_NO_TURN = Row("d1", "f_i", "g_j")
ANGLE = Coordinate("angle", of="f_j", start="f_i", about="h_i")
_ALONG_F = Coordinate("length", along="f_i")
_ALONG_G = Coordinate("length", along="g_i")
_ALONG_H = Coordinate("length", along="h_i")

SPATIAL: dict[str, JointType] = {
    "fixed": JointType((*_POINT, *_PARALLEL, _NO_TURN)),
    "revolute": JointType((*_POINT, *_PARALLEL), (ANGLE,)),
    # [V 1.19] writes d1(f_i, f_j) with f_j at right angles to f_i; here the frames are parallel.
    "prismatic": JointType((*_PARALLEL, *_ON_LINE, _NO_TURN), (_ALONG_H,)),
    "cylindrical": JointType((*_PARALLEL, *_ON_LINE), (_ALONG_H, ANGLE)),
    "spherical": JointType(_POINT),
    "universal": JointType(
        (*_POINT, Row("d1", "h_i", "h_j")),
        (
            Coordinate("angle", of="h_j", start="f_i", about="h_i"),
            Coordinate("angle", of="f_j", start="h_i", about="h_j"),
        ),
    ),
    "planar": JointType((*_PARALLEL, Row("d2", "h_i")), (_ALONG_F, _ALONG_G, ANGLE)),
    "guide": JointType(_ON_LINE, (_ALONG_H,)),
    "in_plane": JointType((Row("d2", "h_i"),), (_ALONG_F, _ALONG_G)),
    "distance": JointType((Row("SS"),)),
}
"""Joints between markers in space; h is the axis."""

PLANAR: dict[str, JointType] = {
    "fixed": JointType((*_POINT[:2], Row("angle"))),
    "revolute": JointType(_POINT[:2], (ANGLE,)),
    "prismatic": JointType((Row("angle"), Row("d2", "g_i")), (_ALONG_F,)),
    "guide": JointType((Row("d2", "g_i"),), (_ALONG_F, ANGLE)),
    "distance": JointType((Row("SS"),)),
}
"""Joints between markers in a plane; all turn about z, and f is the direction of a slide."""


def joint_frames(kind: str, first: Marker, second: Marker) -> tuple[Array, Array]:
    """Return the frames of a joint on its two bodies.

    The unspecified part of a marker's rotation is taken from the other marker in the given pose:
    all of it, if no axis was given; and for joints that stop rotation about their axis, the angle
    about it, so that they hold the pose that was given.
    """
    frame_i, frame_j = first.rotation, second.rotation
    planar = first.body.system.planar
    if planar and kind in ("revolute", "distance"):
        return frame_i, frame_j
    r_ji = second.body.rotation.T @ first.body.rotation
    holds = kind in ("fixed", "prismatic")
    given_i, given_j = first.orientation != "none", second.orientation != "none"
    if not given_j and (given_i or holds):
        return frame_i, freeze(r_ji @ frame_i)
    if not given_i and given_j:
        return freeze(r_ji.T @ frame_j), frame_j
    if holds and not planar:
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
    name, kind
        Its name, and a key of `SPATIAL` or `PLANAR`.
    first, second
        Markers i and j.
    frame_i, frame_j
        R_BM of the joint's frame on each body: that of the marker, or the completed rotation of a
        marker that was given without a full rotation.
    type
        Its rows and coordinates.
    length
        Of a distance joint, in m.
    """

    name: str
    kind: str
    first: Marker
    second: Marker
    frame_i: Array
    frame_j: Array
    type: JointType
    length: float | None = None

    @property
    def rows(self) -> tuple[Row, ...]:
        """Return its equations."""
        return self.type.rows

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Return its coordinates; empty for joints that have none that are simple."""
        return self.type.coordinates

    def given_axis(self, name: str) -> Array:
        """Return one of its axes, such as ``"h_i"``, in the given pose and in world axes."""
        marker, frame = (
            (self.first, self.frame_i) if name[2] == "i" else (self.second, self.frame_j)
        )
        return np.asarray(marker.body.rotation @ frame[:, "fgh".index(name[0])])

    def given_value(self, number: int) -> float:
        """Return a coordinate in the given pose, in m or rad, angles from -π to π."""
        of = self.coordinates[number]
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
