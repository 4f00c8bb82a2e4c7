"""Joints, forces and the ground as the signs of textbooks."""

from __future__ import annotations

import numpy as np

from ..system._bodies import Marker
from ..system._joints import Joint
from ..system._rotations import Array
from ._paper import Paper
from ._poses import Snapshot
from ._shapes import SLIDES, slide_axis
from ._strokes import (
    GROUND_LAYER,
    INK,
    STEEL,
    WHITE,
    Stroke,
    across,
    circle,
    hatch,
    rectangle,
    rounded,
    unit,
)


def draw_joint(
    joint: Joint, frame: Snapshot, paper: Paper, rail: tuple[float, float], plain: bool = False
) -> list[Stroke]:
    """Return the sign of a joint, without what belongs to the ground.

    `rail` is how far the joint slides, from and to, in m; a `plain` one has no separate sleeve.
    """
    k = paper.size
    at = paper.at(frame.point(joint.second))
    h = frame.axis(joint, "h_i")
    match joint.kind:
        case "revolute":
            return paper.barrel(at, h, 17 * k, 5.4 * k)
        case "spherical":
            return [
                Stroke(circle(at, 6.6 * k), INK, WHITE, 1.2),
                Stroke(circle(at, 4.0 * k), INK, INK, 0.4),
            ]
        case "universal":
            return [Stroke(circle(at, 7.5 * k), INK, WHITE, 1.2)] + [
                Stroke(at + np.outer([-7.5 * k, 7.5 * k], paper.slant(axis)), INK, width=2.0)
                for axis in (h, frame.axis(joint, "h_j"))
            ]
        case "fixed":
            box = rectangle(at, np.array([1.0, 0.0]), 9 * k, 9 * k)
            return [Stroke(box, INK, WHITE, 1.2)] + [
                Stroke(box[[n, n + 2]], INK, width=1.2) for n in (0, 1)
            ]
        case "distance":
            ends = np.array([paper.at(frame.point(joint.first)), at])
            line = Stroke(ends, INK, width=2.2)
            return [line, *(Stroke(circle(end, 3.6 * k), INK, WHITE, 1.2) for end in ends)]
        case "planar" | "in_plane":
            return _sheets(joint, frame, paper, at)
        case _:
            return _rail(joint, frame, paper, rail, at, plain)


def _sheets(joint: Joint, frame: Snapshot, paper: Paper, at: Array) -> list[Stroke]:
    f, g, h = (frame.axis(joint, f"{axis}_i") for axis in "fgh")
    k = paper.size
    offsets = (-2.5 * k, 2.5 * k) if joint.kind == "planar" else (0.0,)
    strokes = [
        Stroke(paper.sheet(at + paper.slant(h) * n, f, g, 15 * k), INK, STEEL, 1.0, alpha=0.35)
        for n in offsets
    ]
    if joint.kind == "in_plane":
        strokes.append(Stroke(circle(at, 2.6 * k), INK, INK, 0.4))
    return strokes


def _rail(
    joint: Joint,
    frame: Snapshot,
    paper: Paper,
    rail: tuple[float, float],
    at: Array,
    plain: bool,
) -> list[Stroke]:
    """Return a slot and its pin, or a bar that the other body slides on."""
    k = paper.size
    axis = frame.axis(joint, f"{slide_axis(joint)}_i")
    start = paper.at(frame.point(joint.first))
    along = paper.slant(axis)
    ends = np.array(
        [start + along * (rail[0] * paper.scale), start + along * (rail[1] * paper.scale)]
    )
    if joint.kind == "guide":
        slot = rounded(ends + np.outer([-18 * k, 18 * k], unit(along)), 5.4 * k)
        return [
            Stroke(slot, INK, WHITE, 1.2, GROUND_LAYER + 0.5),
            Stroke(circle(at, 4.0 * k), INK, WHITE, 1.2),
        ]
    if joint.first.body.is_ground or joint.second.body.is_ground:
        return []
    bar = Stroke(ends + np.outer([-24 * k, 24 * k], along), INK, width=2.4 * k, layer=GROUND_LAYER)
    if plain:
        return [bar]
    if joint.kind == "cylindrical":
        return [bar, *paper.barrel(at, axis, 24 * k, 7 * k)]
    if np.linalg.norm(along) < 0.2:
        return [bar, Stroke(rectangle(at, np.array([1.0, 0.0]), 14 * k, 14 * k), INK, WHITE)]
    return [bar, Stroke(rectangle(at, unit(along), 24 * k, 14 * k), INK, WHITE, 1.2)]


def draw_mount(
    joint: Joint, frame: Snapshot, paper: Paper, rail: tuple[float, float], away: Array
) -> list[Stroke]:
    """Return what holds a joint to the ground; `away` points where no body is."""
    k = paper.size
    first_is_ground = joint.first.body.is_ground
    at = paper.at(frame.point(joint.first if first_is_ground else joint.second))
    if joint.kind in SLIDES or joint.kind == "guide":
        along = paper.slant(frame.axis(joint, f"{slide_axis(joint)}_i"))
        if np.linalg.norm(along) < 0.2:
            return pedestal(at, away, k)
        middle = paper.at(frame.point(joint.first))
        if first_is_ground:
            ends = middle + np.outer(np.array(rail) * paper.scale, along)
        else:
            ends = np.array([at, at])
        return _ground_rail(joint.kind, ends, unit(along), k)
    if joint.kind in ("planar", "in_plane"):
        return []
    if joint.kind == "fixed":
        side = across(away) * 15 * k
        return hatch(at - side, at + side, away, 7 * k)
    return pedestal(at, away, k)


def _ground_rail(kind: str, ends: Array, along: Array, k: float) -> list[Stroke]:
    side = across(along)
    if side[1] > 1e-9 or (abs(side[1]) <= 1e-9 and side[0] > 0.0):
        side = -side
    if kind == "prismatic":
        ends = ends + np.outer([-34 * k, 34 * k], along) + side * 12.8 * k
        return hatch(ends[0], ends[1], side, 7 * k)
    ends = ends + np.outer([-46 * k, 46 * k], along)
    strokes = []
    if kind == "cylindrical":
        bar = Stroke(rounded(ends, 2.2 * k), INK, STEEL, 1.0, GROUND_LAYER, 0.5)
        strokes.append(bar)
    for end, out in zip(ends, (-along, along), strict=True):
        wall = across(out) * 9 * k
        strokes += hatch(end - wall, end + wall, out, 6 * k)
    return strokes


def pedestal(at: Array, away: Array, k: float) -> list[Stroke]:
    """Return a triangle from a joint to a hatched line."""
    side, base = across(away), at + away * 16 * k
    legs = np.array([at, base - side * 9 * k, base + side * 9 * k])
    ground = hatch(base - side * 16 * k, base + side * 16 * k, away, 7 * k)
    return [*ground, Stroke(legs, INK, WHITE, 1.2, GROUND_LAYER)]


def is_still(marker: Marker) -> bool:
    """Whether a marker stands on the ground and does not move by a law."""
    return marker.body.is_ground and not marker.motion
