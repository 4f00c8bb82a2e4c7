"""Mechanisms of a diagram: what a page draws of them, and where their bodies are.

The studio adds the poses of all bodies to the outputs of each mechanism before it compiles a
diagram: outputs do not enter the motion. They are recorded with everything else, so a picture at
any recorded time is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..blocks.multibody.drawing._poses import Poses, given_poses, snapshots
from ..blocks.multibody.drawing._shapes import shape_of
from ..blocks.multibody.drawing._strokes import PALETTE
from ..blocks.multibody.plant._plant import Plant
from ..blocks.multibody.system._bodies import Body, Marker
from ..scheduler.compile._flatten import FlatDiagram
from ._scopes import POSES, AbstractRows, pack

if TYPE_CHECKING:
    from ..blocks.multibody.joints._joint import Joint
    from ..blocks.multibody.system._system import System

Array = NDArray[np.float64]


def show_poses(flat: FlatDiagram) -> FlatDiagram:
    """Add the poses of all bodies to the outputs of mechanisms."""
    blocks = tuple(
        replace(item, block=item.block.with_outputs(list_poses(item.block.system)))
        if isinstance(item.block, Plant)
        else item
        for item in flat.blocks
    )
    return replace(flat, blocks=blocks)


def list_poses(system: System) -> list[str]:
    """Return the outputs that are the poses of the bodies of a system."""
    return [f"{body.name}.{what}" for body in system.bodies for what in ("position", "rotation")]


@dataclass(frozen=True)
class Mechanism:
    """A mechanism in a diagram.

    Attributes
    ----------
    path
        Of its block.
    system
        Its description.
    columns
        Those of its poses in the rows, 7 for each body.
    """

    path: str
    system: System
    columns: tuple[int, ...]

    def describe(self) -> dict[str, Any]:
        """Return what a page draws, as plain data; places are in axes of the bodies, in m."""
        system = self.system
        extent = _find_extent(system)
        return {
            "path": self.path,
            "name": system.name,
            "planar": system.planar,
            "normal": [0.0, 0.0, 1.0],
            "up": [0.0, 1.0, 0.0] if system.planar else [0.0, 0.0, 1.0],
            "gravity": np.asarray(system.gravity, dtype=np.float64).tolist(),
            "extent": extent,
            "bodies": [_describe_body(body, system, extent) for body in system.bodies],
            "joints": [_describe_joint(joint) for joint in system.joints],
            "elements": [
                {
                    "name": item.name,
                    "kind": type(item).__name__.lower(),
                    "ends": [_describe_end(end) for end in getattr(item, "ends", None) or ()],
                    "is_load": item.is_load,
                }
                for item in (*system.elements, *system.constraints)
            ],
            "ground": [
                {"name": marker.name, "point": marker.place(0.0)[0].tolist()}
                for marker in system.ground.markers.values()
            ],
            "given": _rows_of(given_poses(system))[0].tolist(),
        }

    def pose_at(self, rows: AbstractRows, row: int, number: int) -> bytes | None:
        """Return a message with the poses of a row; None if it is not there."""
        _, found = rows.read(row, row + 1, [0, *self.columns])
        if not found.shape[1]:
            return None
        return pack(POSES, number, 7, len(self.system.bodies), 0, found[:, 0])


def find_mechanisms(systems: Mapping[str, System], columns: Mapping[str, int]) -> list[Mechanism]:
    """Return the mechanisms whose poses are recorded; `systems` by the paths of their blocks."""
    found = []
    for path, system in systems.items():
        paths = [f"{path}.{name}" for name in list_poses(system)]
        if system.bodies and all(path in columns for path in paths):
            places = _spread(paths, columns, (3, 4) * len(system.bodies))
            found.append(Mechanism(path, system, tuple(places)))
    return found


def list_systems(flat: FlatDiagram) -> dict[str, System]:
    """Return the systems in a diagram by the paths of their blocks."""
    return {item.path: item.block.system for item in flat.blocks if isinstance(item.block, Plant)}


def _spread(
    paths: Sequence[str], columns: Mapping[str, int], widths: Sequence[int]
) -> Iterator[int]:
    for path, width in zip(paths, widths, strict=True):
        yield from range(columns[path], columns[path] + width)


def _rows_of(poses: Poses) -> Array:
    return np.concatenate([poses.positions, poses.quaternions], axis=2)


def _find_extent(system: System) -> float:
    """Return the span of all marked points, in m."""
    frame = snapshots(given_poses(system))[0]
    points = [
        frame.point(marker)
        for body in (system.ground, *system.bodies)
        for marker in body.markers.values()
    ]
    points += [frame.place(body, body.com) for body in system.bodies]
    return float(np.linalg.norm(np.ptp(np.array(points), axis=0))) if points else 1.0


def _describe_body(body: Body, system: System, extent: float) -> dict[str, Any]:
    shape = shape_of(body, system, extent or 1.0)
    shapes = [
        {
            "kind": shape.kind,
            "points": np.asarray(shape.points, dtype=np.float64).tolist(),
            "axis": shape.axis.tolist(),
            "round": shape.round_bar,
            "small": shape.small,
        }
    ]
    if shape.disc and shape.hub is not None and shape.kind != "disc":
        shapes.append({"kind": "disc", "points": [shape.hub.tolist()], "axis": shape.axis.tolist()})
    if shape.disc:
        shapes[-1]["radius"] = shape.disc
    return {
        "name": body.name,
        "color": PALETTE[body.index % len(PALETTE)],
        "mass": body.mass,
        "com": body.com.tolist(),
        "shapes": shapes,
        "markers": [
            {"name": marker.name, "point": marker.place(0.0)[0].tolist()}
            for marker in body.markers.values()
        ],
    }


def _describe_joint(joint: Joint) -> dict[str, Any]:
    return {
        "name": joint.name,
        "kind": joint.kind,
        "body_i": joint.first.body.index,
        "body_j": joint.second.body.index,
        "p_i": joint.first.place(0.0)[0].tolist(),
        "p_j": joint.second.place(0.0)[0].tolist(),
        "axis_i": _find_axis(joint).tolist(),
    }


def _find_axis(joint: Joint) -> Array:
    """Return what it slides along or turns about, in axes of body i."""
    name = joint.slide.along if joint.slide else "h_i"
    if name[2] == "i":
        return joint.frame_i[:, "fgh".index(name[0])]
    bodies = joint.first.body, joint.second.body
    axis: Array = bodies[0].rotation.T @ bodies[1].rotation @ joint.frame_j[:, "fgh".index(name[0])]
    return axis


def _describe_end(end: Marker) -> list[Any]:
    return [end.body.index, end.place(0.0)[0].tolist()]
