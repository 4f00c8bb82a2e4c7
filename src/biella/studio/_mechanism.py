"""Mechanisms of a diagram: what a page draws of them, and where their bodies are.

The studio adds the poses of all bodies, and the forces that are drawn, to the outputs of each
mechanism before it compiles a diagram: outputs do not enter the motion. They are recorded with
everything else, so a picture at any recorded time is exact. It also adds a push, whose inputs name
no body until a page pushes one: until then it adds no force and changes no bit.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..blocks.multibody.drawing._poses import Poses, given_poses, snapshots
from ..blocks.multibody.drawing._shapes import shape_of
from ..blocks.multibody.drawing._strokes import PALETTE
from ..blocks.multibody.elements._push import INPUTS as PUSH_INPUTS
from ..blocks.multibody.elements._push import Push
from ..blocks.multibody.plant._plant import Plant
from ..blocks.multibody.system._bodies import Body, Marker
from ..blocks.multibody.system._rotations import quaternion_from_rotation
from ..blocks.multibody.system._visuals import Visual
from ..errors import BiellaError
from ..scheduler.compile._flatten import FlatDiagram
from ..scheduler.compile._rewrite import add_block_inputs
from ._scopes import EFFORTS, HEAD, MESH, POSES, AbstractRows, pack
from .mechanism._efforts import Effort, list_efforts
from .mechanism._journals import list_journal_outputs
from .mechanism._meshes import find_mesh, read_mesh

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


def show_mechanisms(
    flat: FlatDiagram, *, reactions: bool = True, pushes: bool = True
) -> FlatDiagram:
    """Add what pages show of mechanisms to their outputs, and inputs to push their bodies.

    Parameters
    ----------
    reactions
        Whether to show also what needs the accelerations, such as the reactions of joints.
    pushes
        Whether bodies can be pushed.
    """
    made = {}
    for item in flat.blocks:
        plant = item.block
        if not isinstance(plant, Plant) or not plant.system.bodies:
            continue
        if pushes:
            plant, _ = plant.with_push()
        system = plant.system
        efforts = [
            path
            for effort in list_efforts(system)
            if reactions or not effort.follows_solution
            for path, _ in effort.outputs
        ]
        wanted = [*list_poses(system), *efforts, *list_journal_outputs(system)]
        # Outputs of one film are computed together where they follow one another.
        owners: dict[str, dict[str, None]] = {}
        for path in wanted:
            owners.setdefault(path.rpartition(".")[0], {})[path] = None
        more = [path for paths in owners.values() for path in paths]
        made[item.path] = plant.with_outputs(more)
    return add_block_inputs(flat, made)


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
    efforts
        The forces and torques that are recorded.
    effort_columns
        Those of their values, one effort after the other.
    """

    path: str
    system: System
    columns: tuple[int, ...]
    efforts: tuple[Effort, ...] = ()
    effort_columns: tuple[int, ...] = ()

    @property
    def push(self) -> Push | None:
        """Return what pushes its bodies."""
        return next((item for item in self.system.elements if isinstance(item, Push)), None)

    @cached_property
    def _files(self) -> tuple[dict[tuple[str, Path | None], int], tuple[Path, ...], list[str]]:
        """Return the number of each mesh, the files by number, and why some are not drawn."""
        numbers: dict[tuple[str, Path | None], int] = {}
        paths: list[Path] = []
        problems = {}
        for visual in (one for found in self.system.visuals.values() for one in found):
            key = visual.file, visual.source
            if visual.kind != "mesh" or key in numbers or key in problems:
                continue
            try:
                path = find_mesh(visual)
            except BiellaError as error:
                problems[key] = f"a mesh is not drawn: {error}"
                continue
            if path not in paths:
                paths.append(path)
            numbers[key] = paths.index(path)
        return numbers, tuple(paths), list(problems.values())

    @property
    def meshes(self) -> tuple[Path, ...]:
        """Return the files of the shapes of its bodies."""
        return self._files[1]

    @property
    def problems(self) -> list[str]:
        """Return which meshes are not drawn, and why."""
        return self._files[2]

    def _describe_visuals(self, body: str) -> list[dict[str, Any]]:
        numbers = self._files[0]
        found = []
        for visual in self.system.visuals.get(body, ()):
            number = numbers.get((visual.file, visual.source))
            if visual.kind == "mesh" and number is None:
                continue
            found.append(_describe_visual(visual) | ({} if number is None else {"mesh": number}))
        return found

    def mesh_at(self, mesh: int, number: int) -> bytes:
        """Return a message with the file of a mesh.

        Raises
        ------
        BiellaError
            If it cannot be read.
        """
        form, content = read_mesh(self.meshes[mesh])
        return HEAD.pack(MESH, number, mesh, len(content), form, 0) + content

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
            "bodies": [
                _describe_body(body, system, extent)
                | {"visuals": self._describe_visuals(body.name)}
                for body in system.bodies
            ],
            "visuals": self._describe_visuals(system.ground.name),
            "joints": [_describe_joint(joint) for joint in system.joints],
            "efforts": list(self._describe_efforts()),
            "can_push": self.push is not None,
            "elements": [
                {
                    "name": item.name,
                    "kind": type(item).__name__.lower(),
                    "ends": [_describe_end(end) for end in getattr(item, "ends", None) or ()],
                    "is_load": item.is_load,
                }
                for item in (*system.elements, *system.constraints)
                if not isinstance(item, Push)
            ],
            "ground": [
                {"name": marker.name, "point": marker.place(0.0)[0].tolist()}
                for marker in system.ground.markers.values()
            ],
            "given": _rows_of(given_poses(system))[0].tolist(),
        }

    def _describe_efforts(self) -> Iterator[dict[str, Any]]:
        first = 0
        for effort in self.efforts:
            yield effort.describe(first)
            first += effort.width

    def efforts_at(self, rows: AbstractRows, row: int, number: int) -> bytes | None:
        """Return a message with the values of the efforts at a row; None if it is not there."""
        _, found = rows.read(row, row + 1, [0, *self.effort_columns])
        if not found.shape[1] or not self.effort_columns:
            return None
        return pack(EFFORTS, number, 1, len(self.effort_columns), 0, found[:, 0])

    def read_push(self, request: Mapping[str, Any]) -> dict[str, float]:
        """Return the values of the inputs that push a body as a page asks for, by path.

        Raises
        ------
        BiellaError
            If the request names no body, or has numbers that are not finite.
        """
        push = self.push
        if push is None:
            raise BiellaError(
                f"the bodies of `{self.path}` cannot be pushed: the run has no inputs for it. "
                f"Runs with devices have them if they are started with --push."
            )
        body = request.get("body")
        values = [0.0] * len(PUSH_INPUTS)
        if body is not None:
            count = len(self.system.bodies)
            if isinstance(body, bool) or not isinstance(body, int) or not 0 <= body < count:
                raise BiellaError(f"`body` is a number from 0 to {count - 1}, got {body!r}.")
            values = [body + 1.0, *read_three(request, "point"), *read_three(request, "force")]
        return dict(zip(self._push_paths(push), values, strict=True))

    def _push_paths(self, push: Push) -> list[str]:
        return [f"{self.path}.{name}" for name in push.input_names()]

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
            efforts, own = _find_efforts(path, system, columns)
            found.append(Mechanism(path, system, tuple(places), efforts, own))
    return found


def _find_efforts(
    path: str, system: System, columns: Mapping[str, int]
) -> tuple[tuple[Effort, ...], tuple[int, ...]]:
    """Return the efforts all of whose values are recorded, and the columns of these."""
    efforts = tuple(
        effort
        for effort in list_efforts(system)
        if all(f"{path}.{name}" in columns for name, _ in effort.outputs)
    )
    outputs = [output for effort in efforts for output in effort.outputs]
    paths = [f"{path}.{name}" for name, _ in outputs]
    return efforts, tuple(_spread(paths, columns, [width for _, width in outputs]))


def list_added(flat: FlatDiagram) -> set[str]:
    """Return the signals that the studio has added to a diagram, by path."""
    return {
        f"{item.path}.{name}"
        for item in flat.blocks
        if isinstance(item.block, Plant)
        for name in item.block.added_outputs
    }


def list_push_inputs(flat: FlatDiagram) -> set[str]:
    """Return the inputs of a diagram that push bodies: pages set them by `push` alone."""
    return {
        f"{item.path}.{name}"
        for item in flat.blocks
        if isinstance(item.block, Plant)
        for part in item.block.system.elements
        if isinstance(part, Push)
        for name in part.input_names()
    }


def read_three(request: Mapping[str, Any], name: str) -> list[float]:
    """Return three finite numbers of a request."""
    value = request.get(name)
    if isinstance(value, list) and len(value) == 3:
        with contextlib.suppress(TypeError, OverflowError):
            numbers = [float(one) for one in value if not isinstance(one, bool | str)]
            if len(numbers) == 3 and all(map(math.isfinite, numbers)):
                return numbers
    raise BiellaError(f"`{name}` is three finite numbers, got {value!r}.")


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


def _describe_visual(visual: Visual) -> dict[str, Any]:
    found: dict[str, Any] = {
        "kind": visual.kind,
        "size": list(visual.size),
        "position": visual.position.tolist(),
        "rotation": quaternion_from_rotation(visual.rotation).tolist(),
    }
    if visual.color is not None:
        red, green, blue = (round(255 * part) for part in visual.color[:3])
        found |= {"color": f"#{red:02x}{green:02x}{blue:02x}", "opacity": visual.color[3]}
    return found


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
