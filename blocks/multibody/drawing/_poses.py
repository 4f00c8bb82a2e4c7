"""Where the bodies are: at the start, over time, and as a result recorded it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import DiagramError, name_list, suggest
from ..joints._joint import Joint
from ..system._bodies import Body, Marker
from ..system._rotations import Array, quaternion_from_rotation, rotation_from_quaternion

if TYPE_CHECKING:
    from ..system._system import System


@dataclass(frozen=True)
class Poses:
    """Poses of all bodies over time.

    Attributes
    ----------
    times
        In s, rising; shape (n,).
    positions
        p_WB of each body of `System.bodies` in m; shape (n, bodies, 3).
    quaternions
        Euler parameters (e0, e1, e2, e3) of R_WB; shape (n, bodies, 4).
    """

    times: Array
    positions: Array
    quaternions: Array

    def __len__(self) -> int:
        """Return the number of times."""
        return len(self.times)

    def at(self, times: Array) -> Poses:
        """Return the poses at other times, by straight lines between the nearest two.

        Euler parameters are interpolated on the shorter way and made unit again.
        """
        after = np.clip(np.searchsorted(self.times, times, side="right"), 1, len(self) - 1)
        before = after - 1
        span = self.times[after] - self.times[before]
        share = np.clip((times - self.times[before]) / span, 0.0, 1.0)[:, None, None]
        first, second = self.quaternions[before], self.quaternions[after]
        sign = np.where((first * second).sum(axis=2, keepdims=True) < 0.0, -1.0, 1.0)
        turned = (1.0 - share) * first + share * sign * second
        turned /= np.linalg.norm(turned, axis=2, keepdims=True)
        moved = (1.0 - share) * self.positions[before] + share * self.positions[after]
        return Poses(times, moved, turned)


@dataclass(frozen=True)
class Snapshot:
    """All bodies at one time: what a picture asks for places and directions in the world."""

    t: float
    positions: Array
    quaternions: Array

    @cached_property
    def _rotations(self) -> list[Array]:
        return [rotation_from_quaternion(e) for e in self.quaternions]

    def rotation(self, body: Body) -> Array:
        """Return R_WB."""
        return body.rotation if body.is_ground else self._rotations[body.index]

    def place(self, body: Body, point: Array) -> Array:
        """Return a point of a body, given in its axes, in the world."""
        if body.is_ground:
            return point
        return np.asarray(self.positions[body.index] + self._rotations[body.index] @ point)

    def point(self, marker: Marker) -> Array:
        """Return p_WM; a marker that an input moves is where the default of the input puts it."""
        return self.place(marker.body, marker.place(self.t)[0])

    def axis(self, joint: Joint, name: str) -> Array:
        """Return an axis of a joint, such as ``"h_i"``, in the world."""
        marker, frame = (
            (joint.first, joint.frame_i) if name[2] == "i" else (joint.second, joint.frame_j)
        )
        return self.rotation(marker.body) @ frame[:, "fgh".index(name[0])]


def snapshots(poses: Poses) -> list[Snapshot]:
    """Return the poses one by one."""
    rows = zip(poses.times.tolist(), poses.positions, poses.quaternions, strict=True)
    return [Snapshot(*row) for row in rows]


def given_poses(system: System) -> Poses:
    """Return the poses that the bodies of a system were given, at time 0."""
    positions = np.array([body.position for body in system.bodies]).reshape(1, -1, 3)
    rotations = [quaternion_from_rotation(body.rotation) for body in system.bodies]
    return Poses(np.zeros(1), positions, np.array(rotations).reshape(1, -1, 4))


def read_poses(system: System, value: Any, prefix: str | None = None) -> Poses:
    """Return poses from `Poses`, from (times, positions, quaternions), or from a result.

    Raises
    ------
    DiagramError
        If a shape does not fit the system, times do not rise, or a number is not finite.
    """
    if isinstance(value, Mapping):
        return poses_from_result(system, value, prefix)
    if isinstance(value, Poses):
        value = (value.times, value.positions, value.quaternions)
    try:
        times, positions, quaternions = (np.asarray(part, dtype=np.float64) for part in value)
    except (TypeError, ValueError):
        raise DiagramError(
            f"poses are (times, positions, quaternions), Poses, or the result of a run; got "
            f"{type(value).__name__}."
        ) from None
    bodies = len(system.bodies)
    for name, array, shape in (
        ("times", times, (times.size,)),
        ("positions", positions, (times.size, bodies, 3)),
        ("quaternions", quaternions, (times.size, bodies, 4)),
    ):
        if array.shape != shape or not times.size:
            raise DiagramError(
                f"`{name}` of the poses has shape {array.shape}; for {times.size} times and the "
                f"{bodies} bodies of `{system.name}` it must be {shape}, with at least one time."
            )
        if not np.isfinite(array).all():
            raise DiagramError(
                f"`{name}` of the poses must be finite; row {_first_bad(array)} is not."
            )
    falls = np.flatnonzero(np.diff(times) <= 0.0)
    if falls.size:
        n = int(falls[0])
        raise DiagramError(
            f"`times` of the poses must rise: {times[n + 1]:g} s comes after {times[n]:g} s."
        )
    lengths = np.linalg.norm(quaternions, axis=2, keepdims=True)
    if (np.abs(lengths - 1.0) > 1e-3).any():
        row, body, _ = (int(i) for i in np.argwhere(np.abs(lengths - 1.0) > 1e-3)[0])
        raise DiagramError(
            f"`quaternions` of the poses are Euler parameters (e0, e1, e2, e3) of length 1; those "
            f"of `{system.bodies[body].name}` in row {row} have length "
            f"{lengths[row, body, 0]:g}."
        )
    return Poses(times, positions, quaternions / lengths)


def poses_from_result(
    system: System, result: Mapping[str, Any], prefix: str | None = None
) -> Poses:
    """Return the poses that a run recorded.

    Parameters
    ----------
    system
        Whose bodies they are.
    result
        A `Result`, or any mapping of signals with times ``t``: for every body the signals
        ``<prefix>.<body>.position``, shape (n, 3), in m, and ``<prefix>.<body>.rotation``, shape
        (n, 4), the Euler parameters.
    prefix
        Path of the block that holds the system; found if only one can be meant.

    Raises
    ------
    DiagramError
        If signals are missing: it names them.
    """
    if prefix is None:
        prefix = _find_prefix(system, result)
    start = f"{prefix}." if prefix else ""
    wanted = [
        f"{start}{body.name}.{what}" for body in system.bodies for what in ("position", "rotation")
    ]
    missing = [path for path in wanted if path not in result]
    if missing:
        hint = suggest(missing[0], result)
        raise DiagramError(
            f"the result has no {name_list(f'`{path}`' for path in missing)}.{hint} Record the "
            f"pose of every body of `{system.name}`."
        )
    times = np.asarray(getattr(result, "t", result.get("t")), dtype=np.float64)
    parts = [np.asarray(result[path], dtype=np.float64) for path in wanted]
    for path, part, width in zip(wanted, parts, (3, 4) * len(system.bodies), strict=True):
        if part.shape != (times.size, width):
            raise DiagramError(
                f"`{path}` has shape {part.shape}; a pose needs ({times.size}, {width})."
            )
    return read_poses(system, (times, np.stack(parts[::2], 1), np.stack(parts[1::2], 1)))


def _find_prefix(system: System, result: Mapping[str, Any]) -> str:
    """Return the one prefix under which the result has poses of the system's bodies."""
    if not system.bodies:
        raise DiagramError(f"the system `{system.name}` has no bodies: add one with .body(…).")
    tail = f"{system.bodies[0].name}.position"
    found = [
        path.removesuffix(tail).removesuffix(".")
        for path in result
        if path == tail or path.endswith(f".{tail}")
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise DiagramError(
            f"the result has poses of `{system.bodies[0].name}` under "
            f"{name_list(f'`{name}`' for name in found)}: choose one with prefix=…."
        )
    raise DiagramError(
        f"the result has no `….{tail}`: record position and rotation of every body of "
        f"`{system.name}`. It has: {name_list(result)}."
    )


def _first_bad(array: Array) -> int:
    return int(np.argwhere(~np.isfinite(array))[0][0])
