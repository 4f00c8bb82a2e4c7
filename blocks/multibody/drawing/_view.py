"""View directions for pictures of a mechanism.

Pictures are orthographic projections: the world's `right` and `up` become the picture's x and y,
and `toward` points to the viewer. Planar motion is viewed normal to its plane; other mechanisms are
viewed obliquely from above, from the direction in which their points overlap least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import DiagramError
from ..system._reading import read_direction
from ..system._rotations import Array
from ._poses import Snapshot

if TYPE_CHECKING:
    from ..system._system import System

NAMED = {"xy": ("x", "y"), "xz": ("x", "z"), "yz": ("y", "z"), "zx": ("z", "x")}
"""Views along an axis: what points right, and what up."""

_UNIT = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}

# A mechanism this thin, compared with its size, is drawn in its plane.
_FLAT = 0.02
_ELEVATIONS = (20.0, 28.0, 36.0)
_AZIMUTH_STEP = 15


@dataclass(frozen=True)
class View:
    """Right, up and toward the eye, as unit vectors in the world; whether it shows a plane."""

    right: Array
    up: Array
    flat: bool

    @property
    def toward(self) -> Array:
        """Return the direction to the eye."""
        return np.cross(self.right, self.up)

    def project(self, vector: Array) -> Array:
        """Return (..., 2) of (..., 3)."""
        return np.asarray(vector @ np.column_stack([self.right, self.up]))

    def label(self, axis: Array) -> str:
        """Return how an axis of the picture is called, with its unit."""
        for name, unit in _UNIT.items():
            if abs(axis @ np.array(unit) - 1.0) < 1e-9:
                return f"{name} [m]"
        components = ", ".join(f"{value:.2f}".replace("-0.00", "0.00") for value in axis)
        return f"along ({components}) [m]"


def read_view(system: System, frames: Sequence[Snapshot], view: Any) -> View:
    """Return the view that the user asked for, or the best one.

    Parameters
    ----------
    system
        The mechanism.
    frames
        Poses that the picture shows.
    view
        None to choose; ``"xy"``, ``"xz"``, ``"yz"`` or ``"zx"`` for a plane, the first axis to the
        right; or a direction (x, y, z) from the mechanism to the eye.

    Raises
    ------
    DiagramError
        If it is none of these.
    """
    if view is None:
        return _choose(system, frames)
    if isinstance(view, str):
        if view not in NAMED:
            raise DiagramError(
                f"`view` is one of {', '.join(NAMED)}, or a direction (x, y, z) toward the eye; "
                f"got {view!r}."
            )
        right, up = (np.array(_UNIT[axis]) for axis in NAMED[view])
        return View(right, up, True)
    toward = read_direction("`view`", view, False)
    return _upright(toward, _up(system, toward), bool(np.abs(toward).max() > 1.0 - 1e-9))


def _choose(system: System, frames: Sequence[Snapshot]) -> View:
    if system.planar:
        return View(np.array(_UNIT["x"]), np.array(_UNIT["y"]), True)
    points = _points(system, frames)
    centered = points - points.mean(axis=0)
    _, spreads, axes = np.linalg.svd(np.vstack([centered, np.zeros((3, 3))]), full_matrices=False)
    if spreads[0] <= 0.0:
        return _oblique(system, points)
    # A marker that strays by rounding must not make a line a plane.
    on_line = spreads[1] < 1e-3 * spreads[0]
    if on_line and not system.gravity.any():
        return _along(axes[0])
    normal = _cleaned(np.cross(axes[0], _up(system, None)) if on_line else axes[2])
    if np.linalg.norm(normal) < 0.5:  # a line along gravity
        normal = np.array([0.0, -1.0, 0.0])
    normal = _snapped(normal / np.linalg.norm(normal))
    if spreads[2] < _FLAT * spreads[0] and _turns_in_plane(system, frames[0], normal):
        return _upright(normal, _up(system, normal), True)
    return _oblique(system, points)


def _turns_in_plane(system: System, frame: Snapshot, normal: Array) -> bool:
    """Whether hinges stand upright on a plane and slides lie in it."""
    for joint in system.joints:
        h = abs(float(frame.axis(joint, "h_i") @ normal))
        if joint.is_hinge and h < 0.99:
            return False
        if joint.slide is not None and h > 0.15:
            return False
        if sum(of.kind == "angle" for of in joint.coordinates) > 1:
            return False
    return True


def _points(system: System, frames: Sequence[Snapshot]) -> Array:
    """Return the positions of all markers and centers of mass, at up to 40 of the times."""
    chosen = [frames[i] for i in np.unique(np.linspace(0, len(frames) - 1, 40).astype(int))]
    points = [
        frame.point(marker)
        for frame in chosen
        for body in (system.ground, *system.bodies)
        for marker in body.markers.values()
    ]
    if not points:
        points = [frame.place(body, body.com) for frame in chosen for body in system.bodies]
    return np.array(points)


def _up(system: System, normal: Array | None) -> Array:
    """Return what should point up: against gravity, else z, else y; never along `normal`."""
    for axis in (-system.gravity, np.array(_UNIT["z"]), np.array(_UNIT["y"])):
        size = float(np.linalg.norm(axis))
        if size and (normal is None or abs(axis @ normal) < 0.98 * size):
            return np.asarray(axis / size)
    raise AssertionError("z and y are not parallel")


def _upright(toward: Array, up: Array, flat: bool) -> View:
    """Look along a normal, from the side where x, else y, points right."""
    up = up - (up @ toward) * toward
    up = _cleaned(up / np.linalg.norm(up))
    right = _cleaned(np.cross(up, toward))
    if flat and right[np.argmax(np.abs(right))] < 0.0:
        right = -right
    return View(right, up, flat)


def _along(axis: Array) -> View:
    """Lay a line that nothing pulls down, a shaft, from left to right."""
    right = _cleaned(axis * np.sign(axis[np.argmax(np.abs(axis))]))
    up = np.array(_UNIT["x" if abs(right[2]) > 0.5 else "z"])
    up = up - (up @ right) * right
    return View(right, up / np.linalg.norm(up), True)


def _oblique(system: System, points: Array) -> View:
    """Look from above and aside, from where the closest points are farthest apart."""
    up = _up(system, None)
    side = np.cross(up, _UNIT["y"] if abs(up[1]) < 0.9 else _UNIT["x"])
    side /= np.linalg.norm(side)
    ahead = np.cross(up, side)
    distinct = np.unique(np.round(points - points.mean(axis=0), 9), axis=0)[:200]
    i, j = np.triu_indices(len(distinct), 1)
    pairs = distinct[i] - distinct[j]
    size = float(np.linalg.norm(pairs, axis=1).max()) if len(pairs) else 1.0
    best, best_score = None, -np.inf
    # Start from the usual three-quarter view, which ties keep.
    for elevation in np.radians(_ELEVATIONS):
        for turn in range(-60, 300, _AZIMUTH_STEP):
            azimuth = np.radians(turn)
            level = np.cos(azimuth) * side + np.sin(azimuth) * ahead
            toward = np.cos(elevation) * level + np.sin(elevation) * up
            view = _upright(toward, up, False)
            seen = np.linalg.norm(view.project(pairs), axis=1) / size
            score = float(np.log(seen + 0.02).mean()) if len(pairs) else 0.0
            if score > best_score + 1e-9:
                best, best_score = view, score
    assert best is not None
    return best


def _snapped(normal: Array) -> Array:
    """Return the axis of the world that a normal is within one degree of, else the normal."""
    largest = int(np.argmax(np.abs(normal)))
    if abs(normal[largest]) < np.cos(np.radians(1.0)):
        return normal
    return np.asarray(np.eye(3)[largest] * np.sign(normal[largest]))


def _cleaned(vector: Array) -> Array:
    """Return a direction without the dust of rounding, so that x is called x."""
    return np.asarray(np.where(np.abs(vector) < 1e-6, 0.0, vector))
