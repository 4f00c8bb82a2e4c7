"""Shape of a body: a block, a disc, a rod or a plate, inferred from its markers and joints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..joints._joint import Joint
from ..system._bodies import Body
from ..system._rotations import Array
from ._paper import Paper
from ._poses import Snapshot
from ._strokes import INK, WHITE, Stroke, circle, rectangle, rounded, unit

if TYPE_CHECKING:
    from ..system._system import System


@dataclass(frozen=True)
class Shape:
    """How a body is drawn; places and directions are in its axes, in m.

    Attributes
    ----------
    kind
        ``"block"``: it slides. ``"disc"``: it turns about its one marker. ``"rod"`` between two
        ends. ``"plate"`` around more points.
    points
        Ends of a rod, corners of a plate, else the center alone.
    axis
        Of a slide or of a disc.
    disc
        Radius of a disc at `hub`; 0 for none. A rod may carry one: a rotor, or a pendulum's bob.
    round_bar
        Whether a block slides on a round bar, and so is a barrel.
    small
        Whether a block slides on another body, not on the ground.
    """

    kind: Literal["block", "disc", "rod", "plate"]
    points: Array
    axis: Array
    disc: float = 0.0
    hub: Array | None = None
    round_bar: bool = False
    small: bool = False


def sleeve_of(joint: Joint) -> Body:
    """Return the body that slides on the other one."""
    return joint.first.body if joint.second.body.is_ground else joint.second.body


def shape_of(body: Body, system: System, extent: float) -> Shape:
    """Return the shape of a body in a system that spans `extent` meters."""
    points = _distinct([marker.position for marker in body.markers.values()], 1e-4 * extent)
    joints = [joint for joint in system.joints if body in (joint.first.body, joint.second.body)]
    z = np.array([0.0, 0.0, 1.0])
    if len(points) <= 1:
        center = points if len(points) else np.array([body.com])
        for joint in joints:
            if joint.entry.sleeve and joint.slide and sleeve_of(joint) is body:
                axis = _frame(joint, body)[:, "fgh".index(joint.slide.along[0])]
                small = not (joint.first.body.is_ground or joint.second.body.is_ground)
                is_round = joint.entry.sleeve == "barrel"
                return Shape("block", center, axis, round_bar=is_round, small=small)
        if np.linalg.norm(body.com - center[0]) > 1e-2 * extent:
            ends = np.array([center[0], body.com])
            return Shape("rod", ends, z, _disc_radius(body, z, 0.05 * extent), body.com)
        hinges = [joint for joint in joints if joint.is_hinge]
        axis = _frame(hinges[0], body)[:, 2] if hinges else z
        return Shape("disc", center, axis, _disc_radius(body, axis, 0.16 * extent), center[0])
    centered = points - points.mean(axis=0)
    _, spreads, axes = np.linalg.svd(centered, full_matrices=False)
    if len(points) > 2 and spreads[1] > 1e-2 * spreads[0]:
        return Shape("plate", points, z)
    along = centered @ axes[0]
    ends = points[[int(along.argmin()), int(along.argmax())]]
    moments, directions = np.linalg.eigh(body.inertia)
    is_wheel = moments[2] > 1.5 * moments[1] and abs(directions[:, 2] @ axes[0]) > 0.9
    if not system.planar and is_wheel:
        return Shape("rod", ends, axes[0], _disc_radius(body, axes[0], 0.2 * extent), body.com)
    return Shape("rod", ends, z)


def draw_body(
    shape: Shape, body: Body, frame: Snapshot, paper: Paper, color: str, layer: float
) -> list[Stroke]:
    """Return the strokes of a body."""
    k = paper.size
    points = np.array([paper.at(frame.place(body, point)) for point in shape.points])
    axis = frame.rotation(body) @ shape.axis
    strokes: list[Stroke] = []
    if shape.kind == "block":
        k = 0.65 * k if shape.small else k
        along = paper.slant(axis)
        if shape.round_bar:
            strokes += paper.barrel(
                points[0], axis, 40 * k, 11 * k, face=color, edge=color, tint=0.3, layer=layer
            )
        elif np.linalg.norm(along) > 0.2:
            box = rectangle(points[0], unit(along), 40 * k, 24 * k)
            strokes.append(Stroke(box, color, color, 1.4, layer, 0.3))
        else:
            box = rectangle(points[0], np.array([1.0, 0.0]), 22 * k, 22 * k)
            strokes.append(Stroke(box, color, color, 1.4, layer, 0.3))
    elif shape.kind == "plate":
        outline = rounded(points, 4.6 * k)
        if paper.view.flat:
            strokes.append(Stroke(outline, color, color, 1.4, layer, 0.3))
        else:
            # In space a plate is a guess: spokes show the connections.
            strokes.append(Stroke(outline, "", color, 0.0, layer, 0.5, 0.4))
            middle = points.mean(axis=0)
            strokes += [
                Stroke(rounded(np.array([middle, end]), 3.2 * k), "", color, 0.0, layer, 0.6)
                for end in points
            ]
    elif shape.kind == "rod":
        strokes.append(Stroke(rounded(points, 4.6 * k), color, color, 1.4, layer, 0.3))
    if shape.disc and shape.hub is not None:
        hub = paper.at(frame.place(body, shape.hub))
        radius = max(shape.disc * paper.scale, 9.0 * k)
        strokes += paper.barrel(
            hub, axis, 9 * k, radius, face=color, edge=color, tint=0.3, layer=layer
        )
        if abs(axis @ paper.view.toward) > 0.8:
            strokes += _center_of_mass(hub, 4.0 * k, layer)
    return strokes


def _center_of_mass(at: Array, radius: float, layer: float) -> list[Stroke]:
    """Return the quartered circle that marks a center of mass."""
    strokes = [Stroke(circle(at, radius), INK, WHITE, 0.8, layer)]
    for start in (0.0, np.pi):
        angles = np.linspace(start, start + np.pi / 2.0, 9)
        quarter = at + radius * np.column_stack([np.cos(angles), np.sin(angles)])
        strokes.append(Stroke(np.vstack([at, quarter]), INK, INK, 0.4, layer))
    return strokes


def _frame(joint: Joint, body: Body) -> Array:
    return joint.frame_i if joint.first.body is body else joint.frame_j


def _disc_radius(body: Body, axis: Array, most: float) -> float:
    """Return the radius of the solid disc with the same inertia, √(2 J/m), within limits."""
    moment = float(axis @ body.inertia @ axis)
    radius = np.sqrt(2.0 * moment / body.mass) if body.mass else 0.0
    return float(np.clip(radius, 0.02 * most, most))


def _distinct(points: list[Array], tolerance: float) -> Array:
    kept: list[Array] = []
    for point in points:
        if all(np.linalg.norm(point - other) > tolerance for other in kept):
            kept.append(point)
    return np.array(kept).reshape(-1, 3)
